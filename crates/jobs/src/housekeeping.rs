//! The sender's surroundings: this node's heartbeat, the takeover of what dead nodes held, the search
//! for what nobody told this node of, and the ending of deliveries nobody wants any more.

use std::collections::HashSet;
use std::time::Duration;

use rapport_app::delivery::{EndDeliveries, TakeOver};
use rapport_app::job_report::Job;
use rapport_app::{Access, App, Error, log_failure};
use rapport_domain::time::Time;
use rapport_store::{delivery, manual_attempt, webhook};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::nodes::{Heartbeat, Watch};
use crate::sender::{Config, Message};

const BEAT_EVERY: Duration = Duration::from_secs(2);
/// Clocks drift slowly; an operator may set one at any time.
const FOLLOW_CLOCK_EVERY: Duration = Duration::from_secs(30);

pub async fn run(
    app: App,
    beat: Heartbeat,
    config: Config,
    mail: mpsc::UnboundedSender<Message>,
    stop: CancellationToken,
) {
    let mut beats = interval(BEAT_EVERY);
    let mut sweeps = interval(config.sweep);
    let mut clock_looks = interval(FOLLOW_CLOCK_EVERY);
    for ticks in [&mut beats, &mut sweeps, &mut clock_looks] {
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    }
    let mut watch = Watch::default();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = beats.tick() => {
                if let Err(error) = beat.beat(&app).await {
                    log_failure!(error, "the heartbeat failed");
                }
            }
            _ = clock_looks.tick() => {
                if let Err(error) = app.follow_database_clock().await {
                    log_failure!(error, "the database's clock could not be read");
                }
            }
            _ = sweeps.tick() => {
                app.services().jobs().begin(Job::Deliveries, app.now());
                let ended = sweep(&app, &beat, &mut watch, &mail).await;
                if let Err(error) = &ended {
                    log_failure!(error, "looking for waiting deliveries failed");
                }
                app.services().jobs().end(Job::Deliveries, app.now(), ended.as_ref().err(), config.sweep);
            }
        }
    }
}

async fn sweep(
    app: &App,
    beat: &Heartbeat,
    watch: &mut Watch,
    mail: &mpsc::UnboundedSender<Message>,
) -> Result<(), Error> {
    take_over(app, beat, watch).await?;
    for (company, webhook, due) in app.read_across(webhook::with_work).await? {
        let _ = mail.send(Message::Due((company, webhook), due));
    }
    for company in app.read_across(manual_attempt::companies_waiting).await? {
        let _ = mail.send(Message::WakeManual(company));
    }
    end_unwanted(app).await
}

/// What dead nodes held waits in the database again, for whoever claims it.
async fn take_over(app: &App, beat: &Heartbeat, watch: &mut Watch) -> Result<(), Error> {
    // Owners first: one that registered after the look at the nodes would seem to be dead.
    let owners = app.read_across(delivery::owners).await?;
    let manual = app.read_across(manual_attempt::owners).await?;
    let alive = if beat.alone { HashSet::new() } else { watch.alive(app, beat.node).await? };
    let is_dead = |owner: &i64| *owner != beat.node && !alive.contains(owner);
    for dead in owners.into_iter().filter(is_dead) {
        let companies = app.read_across(move |across| delivery::owned_companies(across, dead)).await?;
        tracing::info!(dead, companies = companies.len(), "taking over what a dead node held");
        for company in companies {
            while app.write(&Access::System(company), TakeOver { dead }).await? {}
        }
    }
    for (company, dead) in manual.into_iter().filter(|(_, owner)| is_dead(owner)) {
        app.write(&Access::System(company), TakeOver { dead }).await?;
    }
    Ok(())
}

/// Ends, in steps, what deleted webhooks left open and what operators dropped.
async fn end_unwanted(app: &App) -> Result<(), Error> {
    for ending in app.read_across(webhook::ending).await? {
        let webhook = ending.webhook;
        let (before, error) = if ending.deleted {
            (Time::from_micros(i64::MAX), "webhook_deleted")
        } else {
            (ending.dropped_before, "dropped")
        };
        let access = Access::System(ending.company);
        while app.write(&access, EndDeliveries { webhook, before, error }).await? {}
    }
    Ok(())
}

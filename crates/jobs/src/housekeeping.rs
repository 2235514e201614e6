//! Housekeeping for the sender: this node's heartbeat, the takeover from dead nodes, the search for
//! deliveries this node wasn't told of or has lost track of, and the ending of unwanted deliveries.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use rapport_app::delivery::EndDeliveries;
use rapport_app::job_report::Job;
use rapport_app::ownership::TakeOver;
use rapport_app::{Access, App, Error, log_failure};
use rapport_domain::time::Time;
use rapport_store::{delivery, manual_attempt, webhook};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::nodes::{Heartbeat, Watch};
use crate::places::Gates;
use crate::reconcile::{Suspects, reconcile};
use crate::rounds::unless_deleted;
use crate::sender::Message;

const BEAT_EVERY: Duration = Duration::from_secs(2);
/// Clocks drift slowly, but an operator may set one at any time.
const FOLLOW_CLOCK_EVERY: Duration = Duration::from_secs(30);

/// The data that housekeeping works with.
pub struct Surroundings {
    pub app: App,
    pub beat: Heartbeat,
    pub gates: Arc<Gates>,
    pub mail: mpsc::UnboundedSender<Message>,
}

/// State that a sweep keeps for the next one.
#[derive(Default)]
struct Seen {
    nodes: Watch,
    suspects: Suspects,
}

impl Surroundings {
    /// Runs until `stop`.
    pub async fn run(self, every: Duration, stop: CancellationToken) {
        let mut beats = interval(BEAT_EVERY);
        let mut sweeps = interval(every);
        let mut clock_looks = interval(FOLLOW_CLOCK_EVERY);
        for ticks in [&mut beats, &mut sweeps, &mut clock_looks] {
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        }
        let mut seen = Seen::default();
        let app = &self.app;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = beats.tick() => {
                    if let Err(error) = self.beat.beat(app).await {
                        log_failure!(error, "heartbeat failed");
                    }
                }
                _ = clock_looks.tick() => {
                    if let Err(error) = app.follow_database_clock().await {
                        log_failure!(error, "failed to read the database's clock");
                    }
                }
                _ = sweeps.tick() => {
                    app.services().jobs().begin(Job::Deliveries, app.now());
                    let ended = self.sweep(&mut seen).await;
                    if let Err(error) = &ended {
                        log_failure!(error, "failed to look for waiting deliveries");
                    }
                    app.services().jobs().end(Job::Deliveries, app.now(), ended.as_ref().err(), Some(every));
                }
            }
        }
    }

    async fn sweep(&self, seen: &mut Seen) -> Result<(), Error> {
        let Self { app, beat, gates, mail } = self;
        take_over(app, beat, &mut seen.nodes).await?;
        reconcile(app, beat.node, gates, &mut seen.suspects).await?;
        for (company, webhook, due) in app.read_across(webhook::with_work).await? {
            let _ = mail.send(Message::Due((company, webhook), due));
        }
        for company in app.read_across(manual_attempt::companies_waiting).await? {
            let _ = mail.send(Message::WakeManual(company));
        }
        end_unwanted(app).await
    }
}

/// Releases what dead nodes held; it waits in the database again for any node to claim.
async fn take_over(app: &App, beat: &Heartbeat, watch: &mut Watch) -> Result<(), Error> {
    // Owners first: one that registered after the nodes were read would seem dead.
    let owners = app.read_across(delivery::owners).await?;
    let manual = app.read_across(manual_attempt::owners).await?;
    let alive = if beat.alone { HashSet::new() } else { watch.alive(app, beat.node).await? };
    let is_dead = |owner: &i64| *owner != beat.node && !alive.contains(owner);
    for dead in owners.into_iter().filter(is_dead) {
        let companies = app.read_across(move |across| delivery::owned_companies(across, dead)).await?;
        tracing::info!(dead, companies = companies.len(), "taking over from a dead node");
        for company in companies {
            while unless_deleted(app.write(&Access::System(company), TakeOver { dead }).await)? {}
        }
    }
    for (company, dead) in manual.into_iter().filter(|(_, owner)| is_dead(owner)) {
        unless_deleted(app.write(&Access::System(company), TakeOver { dead }).await)?;
    }
    Ok(())
}

/// Ends, in steps, the open deliveries of deleted webhooks and those operators dropped.
async fn end_unwanted(app: &App) -> Result<(), Error> {
    for ending in app.read_across(webhook::ending).await? {
        let webhook = ending.webhook;
        let (before, error) = if ending.deleted {
            (Time::from_micros(i64::MAX), "webhook_deleted")
        } else {
            (ending.dropped_before, "dropped")
        };
        let access = Access::System(ending.company);
        while unless_deleted(app.write(&access, EndDeliveries { webhook, before, error }).await)? {}
    }
    Ok(())
}

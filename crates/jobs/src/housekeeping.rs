//! The sender's surroundings: this node's heartbeat, the takeover of what dead nodes held, the search for what
//! nobody told this node of or this node has lost sight of, and the ending of deliveries nobody wants any more.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rapport_app::delivery::EndDeliveries;
use rapport_app::job_report::Job;
use rapport_app::ownership::TakeOver;
use rapport_app::{Access, App, Command, Context, Error, Needs};
use rapport_domain::time::Time;
use rapport_store::{Lane, Tx, delivery, manual_attempt, node, webhook};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::places::Gates;
use crate::reconcile::{Suspects, reconcile};
use crate::sender::Message;

const BEAT_EVERY: Duration = Duration::from_secs(2);
/// A node not heard of for so long is dead to the others; it stops sending a little before.
const DEAD_AFTER_SECONDS: i64 = 10;
const STOP_SENDING_AFTER: Duration = Duration::from_secs(8);
const FORGET_NODES_AFTER_DAYS: i64 = 7;

/// A new incarnation.
pub struct RegisterNode;

impl Command for RegisterNode {
    type Reply = i64;
    const NEEDS: Needs = Needs::Server;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<i64, Error> {
        node::forget(tx, cx.now.plus_days(-FORGET_NODES_AFTER_DAYS))?;
        Ok(node::register(tx, cx.now)?)
    }
}

struct Beat(i64);

impl Command for Beat {
    type Reply = ();
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Outcome;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        Ok(node::beat(tx, self.0, cx.now)?)
    }
}

/// Whether this node is alive in the eyes of the others.
#[derive(Clone)]
pub struct Heartbeat {
    node: i64,
    alone: bool,
    last: Arc<Mutex<Instant>>,
}

impl Heartbeat {
    pub fn new(node: i64, alone: bool) -> Self {
        Self { node, alone, last: Arc::new(Mutex::new(Instant::now())) }
    }

    /// A node past its own deadline starts nothing: another may have taken over.
    pub fn may_send(&self) -> bool {
        self.alone || self.last.lock().elapsed() < STOP_SENDING_AFTER
    }
}

/// What the sender's surroundings work with.
pub struct Surroundings {
    pub app: App,
    pub beat: Heartbeat,
    pub gates: Arc<Gates>,
    pub mail: mpsc::UnboundedSender<Message>,
}

impl Surroundings {
    /// Runs until `stop`.
    pub async fn run(self, every: Duration, stop: CancellationToken) {
        let mut beats = tokio::time::interval(BEAT_EVERY);
        let mut sweeps = tokio::time::interval(every);
        sweeps.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut suspects = Suspects::default();
        let app = &self.app;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = beats.tick() => self.beat().await,
                _ = sweeps.tick() => {
                    app.services().jobs().begin(Job::Deliveries, app.now());
                    let ended = self.sweep(&mut suspects).await;
                    if let Err(error) = &ended {
                        tracing::warn!(%error, "failed to look for waiting deliveries");
                    }
                    app.services().jobs().end(Job::Deliveries, app.now(), ended.as_ref().err(), every);
                }
            }
        }
    }

    async fn beat(&self) {
        if self.beat.alone {
            return;
        }
        let sent = Instant::now();
        match self.app.write(&Access::NO_COMPANY, Beat(self.beat.node)).await {
            Ok(()) => *self.beat.last.lock() = sent,
            Err(error) => tracing::warn!(%error, "the heartbeat failed"),
        }
    }

    async fn sweep(&self, suspects: &mut Suspects) -> Result<(), Error> {
        let Self { app, beat, gates, mail } = self;
        take_over(app, beat).await?;
        reconcile(app, beat.node, gates, suspects).await?;
        for (company, webhook, due) in app.read_across(webhook::with_work).await? {
            let _ = mail.send(Message::Due((company, webhook), due));
        }
        for company in app.read_across(manual_attempt::companies_waiting).await? {
            let _ = mail.send(Message::WakeManual(company));
        }
        end_unwanted(app).await
    }
}

/// What dead nodes held waits in the database again, for whoever claims it.
async fn take_over(app: &App, beat: &Heartbeat) -> Result<(), Error> {
    let since = app.now().plus_seconds(-DEAD_AFTER_SECONDS);
    let alive: HashSet<i64> = if beat.alone {
        HashSet::new()
    } else {
        app.read_across(move |across| node::alive(across, since)).await?.into_iter().collect()
    };
    let is_dead = |owner: &i64| *owner != beat.node && !alive.contains(owner);
    for dead in app.read_across(delivery::owners).await?.into_iter().filter(is_dead) {
        let companies = app.read_across(move |across| delivery::owned_companies(across, dead)).await?;
        tracing::info!(dead, companies = companies.len(), "taking over what a dead node held");
        for company in companies {
            while app.write(&Access::System(company), TakeOver { dead }).await? {}
        }
    }
    let manual = app.read_across(manual_attempt::owners).await?;
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

//! The sender: from a committed delivery to a recorded attempt.
//!
//! One task owns the lanes and decides; attempts run as tasks of their own. A commit hands its
//! deliveries over in memory, so the normal way needs no query. What finds no place waits in the
//! database and is claimed when its webhook has room; so do retries, and what a dead node held.
//!
//! A request's slot is free when the receiver has accepted it, its place in memory when the outcome is
//! committed: a slow disk bounds memory, not the receivers' concurrency. After a failure the slot too
//! waits for the commit: the twentieth in a row is the last.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use rapport_app::delivery::{
    ClaimDue, ClaimManual, Dispatch, Place, RecordAttempt, Recorded, Release, Sender, reason,
};
use rapport_app::{Access, App, log_failure};
use rapport_domain::delivery::{Outcome, Verdict};
use rapport_domain::id::{CompanyId, DeliveryId, WebhookId};
use rapport_domain::time::Time;
use rapport_store::webhook::{self, Target};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::client::{Client, Post};
use crate::housekeeping;
use crate::lanes::{Item, Key, Lanes, Slots};
use crate::nodes::{Heartbeat, RegisterNode};
use crate::places::Gates;

/// How many are started between two looks at the mail.
const ROUND: usize = 256;
/// How long a stopping sender waits for what is under way.
const STOP_WAIT: Duration = Duration::from_secs(2);
/// … and after that for what came last to be given back.
const GIVE_BACK_WAIT: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub struct Config {
    /// How many requests may be under way at once.
    pub slots: usize,
    /// How often due times are looked at.
    pub tick: Duration,
    /// How often the database is asked for what this node does not know of.
    pub sweep: Duration,
    /// The only node on its database, proved by a lock: earlier incarnations are dead.
    pub alone: bool,
    /// The place this node runs from. Whoever gives it proves by a lock that no other process has it, so that
    /// earlier incarnations of the place are dead.
    pub identity: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            slots: 1024,
            tick: Duration::from_millis(100),
            sweep: Duration::from_secs(3),
            alone: false,
            identity: None,
        }
    }
}

/// Starts sending. It stops when `stop` is cancelled; await `tasks` for the rest.
pub async fn start(
    app: &App,
    client: Arc<Client>,
    config: Config,
    stop: CancellationToken,
    tasks: &TaskTracker,
) -> Result<(), rapport_app::Error> {
    let (identity, alone) = (config.identity.clone(), config.alone);
    let register = RegisterNode { identity: identity.clone(), alone };
    let node = app.write(&Access::NO_COMPANY, register).await?;
    let (mail, inbox) = mpsc::unbounded_channel();
    let gates = Arc::new(Gates::default());
    let post_office = PostOffice { node, mail: mail.clone(), gates: Arc::clone(&gates) };
    app.services().set_sender(Arc::new(post_office));
    let beat = Heartbeat::new(node, alone, identity);
    let state = State {
        app: app.clone(),
        client,
        node,
        lanes: Lanes::new(Slots { total: config.slots }),
        gates,
        mail,
        attempts: TaskTracker::new(),
        beat: beat.clone(),
        claiming_manual: HashMap::new(),
    };
    tasks.spawn(housekeeping::run(app.clone(), beat, config.clone(), state.mail.clone(), stop.clone()));
    tasks.spawn(state.run(inbox, config, stop));
    Ok(())
}

/// What the sender is told.
pub enum Message {
    HandOver(Vec<(Dispatch, Place)>),
    /// Something waits in the database, or the webhook's switch was turned.
    Wake(Key),
    WakeManual(CompanyId),
    /// Something of this webhook is due then.
    Due(Key, Time),
    Answered {
        key: Key,
        verdict: Verdict,
    },
    Recorded {
        key: Key,
        verdict: Verdict,
        recorded: Option<Recorded>,
    },
    Claimed {
        key: Key,
        items: Vec<Item>,
        more: bool,
        next_due: Option<Time>,
    },
    ClaimedManual {
        company: CompanyId,
        items: Vec<Item>,
        more: bool,
    },
    /// Read for a round of dispatches: their webhooks as they are now.
    Ready {
        items: Vec<Item>,
        targets: HashMap<WebhookId, Target>,
    },
    /// The read failed: the items go back to their lanes.
    NotReady {
        items: Vec<Item>,
    },
}

/// The side of the sender that commands see.
struct PostOffice {
    node: i64,
    mail: mpsc::UnboundedSender<Message>,
    gates: Arc<Gates>,
}

impl Sender for PostOffice {
    fn node(&self) -> i64 {
        self.node
    }

    fn reserve(&self, webhook: WebhookId) -> Option<Place> {
        self.gates.reserve(webhook, false)
    }

    fn hand_over(&self, dispatches: Vec<(Dispatch, Place)>) {
        if !dispatches.is_empty() {
            let _ = self.mail.send(Message::HandOver(dispatches));
        }
    }

    fn wake(&self, company: CompanyId, webhook: WebhookId) {
        let _ = self.mail.send(Message::Wake((company, webhook)));
    }

    fn wake_manual(&self, company: CompanyId) {
        let _ = self.mail.send(Message::WakeManual(company));
    }
}

struct State {
    app: App,
    client: Arc<Client>,
    node: i64,
    lanes: Lanes,
    gates: Arc<Gates>,
    mail: mpsc::UnboundedSender<Message>,
    attempts: TaskTracker,
    beat: Heartbeat,
    claiming_manual: HashMap<CompanyId, bool>,
}

impl State {
    async fn run(
        mut self,
        mut inbox: mpsc::UnboundedReceiver<Message>,
        config: Config,
        stop: CancellationToken,
    ) {
        let mut tick = tokio::time::interval(config.tick);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut ticks: u64 = 0;
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                message = inbox.recv() => match message {
                    Some(message) => self.take(message),
                    None => break,
                },
                _ = tick.tick() => {
                    ticks += 1;
                    if ticks.is_multiple_of(64) {
                        self.lanes.forget_idle();
                        self.gates.forget_idle();
                        self.client.close_idle();
                    }
                }
            }
            for _ in 0..ROUND {
                let Ok(message) = inbox.try_recv() else { break };
                self.take(message);
            }
            self.claim();
            self.dispatch();
        }
        self.stop(inbox).await;
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::HandOver(dispatches) => {
                for (dispatch, place) in dispatches {
                    self.lanes.push(Item { dispatch, place });
                }
            }
            Message::Wake(key) => {
                self.lanes.has_backlog(key);
                self.regate(key);
            }
            Message::WakeManual(company) => self.claim_manual(company),
            Message::Due(key, at) => self.lanes.due(key, at),
            Message::Answered { key, verdict } => {
                match verdict {
                    Verdict::NotCharged => self.lanes.ended(key),
                    verdict => self.lanes.answered(key, verdict == Verdict::Succeeded),
                }
                self.regate(key);
            }
            Message::Recorded { key, verdict, recorded } => {
                self.recorded(key, recorded);
                if matches!(verdict, Verdict::Again | Verdict::Final) {
                    self.lanes.ended(key);
                }
            }
            Message::Claimed { key, items, more, next_due } => {
                self.lanes.claimed(key, more, next_due);
                items.into_iter().for_each(|item| self.lanes.push(item));
                self.regate(key);
            }
            Message::ClaimedManual { company, items, more } => {
                let again = self.claiming_manual.remove(&company).unwrap_or(false) || more;
                items.into_iter().for_each(|item| self.lanes.push(item));
                if again {
                    self.claim_manual(company);
                }
            }
            Message::Ready { items, targets } => self.start(items, &targets),
            Message::NotReady { items } => {
                for item in items {
                    let key = (item.dispatch.company, item.dispatch.webhook);
                    self.lanes.ended(key);
                    self.lanes.push(item);
                }
            }
        }
    }

    fn regate(&self, key: Key) {
        self.gates.set(key.1, self.lanes.gate(key));
    }

    fn recorded(&mut self, key: Key, recorded: Option<Recorded>) {
        let Some(Recorded { retry_at, disabled }) = recorded else { return };
        if disabled {
            let waiting = self.lanes.drain(key);
            self.release(waiting);
            self.regate(key);
        } else if let Some(at) = retry_at {
            self.lanes.due(key, at);
        }
    }

    /// Reads the webhooks of a round of deliveries, then starts them.
    fn dispatch(&mut self) {
        if !self.beat.may_send() {
            return;
        }
        let mut items = Vec::new();
        while items.len() < ROUND {
            let Some(item) = self.lanes.next() else { break };
            items.push(item);
        }
        if items.is_empty() {
            return;
        }
        let mut wanted: HashMap<CompanyId, Vec<WebhookId>> = HashMap::new();
        for item in &items {
            let webhooks = wanted.entry(item.dispatch.company).or_default();
            if !webhooks.contains(&item.dispatch.webhook) {
                webhooks.push(item.dispatch.webhook);
            }
        }
        let (app, mail) = (self.app.clone(), self.mail.clone());
        self.attempts.spawn(async move {
            let read = app.read_across(move |across| {
                let mut targets = HashMap::new();
                for (company, webhooks) in wanted {
                    for target in webhook::targets(across, company, &webhooks)? {
                        targets.insert(target.id, target);
                    }
                }
                Ok(targets)
            });
            let message = match read.await {
                Ok(targets) => Message::Ready { items, targets },
                Err(error) => {
                    log_failure!(error, "webhooks could not be read for sending; trying again");
                    tokio::time::sleep(Duration::from_millis(500)).await;
                    Message::NotReady { items }
                }
            };
            let _ = mail.send(message);
        });
    }

    fn start(&mut self, items: Vec<Item>, targets: &HashMap<WebhookId, Target>) {
        let mut back = Vec::new();
        for item in items {
            let dispatch = &item.dispatch;
            let key = (dispatch.company, dispatch.webhook);
            match targets.get(&dispatch.webhook) {
                Some(target) if !target.deleted && (target.enabled || dispatch.manual.is_some()) => {
                    self.attempt(item, target.clone());
                }
                _ => {
                    // Switched off or deleted meanwhile: it is held, or ended, in the database.
                    self.lanes.ended(key);
                    back.extend(self.lanes.drain(key));
                    back.push(item);
                }
            }
        }
        self.release(back);
    }

    fn attempt(&self, item: Item, target: Target) {
        let (app, client, mail) = (self.app.clone(), Arc::clone(&self.client), self.mail.clone());
        self.attempts.spawn(async move {
            let Item { dispatch, place } = item;
            let key = (dispatch.company, dispatch.webhook);
            let attempt = make(&app, &client, &dispatch, &target).await;
            let verdict = attempt.outcome.verdict();
            count(verdict);
            let _ = mail.send(Message::Answered { key, verdict });
            let access = Access::System(dispatch.company);
            let recorded = loop {
                let record = RecordAttempt {
                    webhook: dispatch.webhook,
                    delivery: dispatch.delivery,
                    attempt: attempt.clone(),
                    manual: dispatch.manual,
                };
                match app.write(&access, record).await {
                    Ok(recorded) => break Some(recorded),
                    Err(
                        rapport_app::Error::Busy
                        | rapport_app::Error::Unavailable(_)
                        | rapport_app::Error::OutcomeUnknown,
                    ) => {
                        // The answer is known; it must only be written down.
                        tokio::time::sleep(Duration::from_millis(500)).await;
                    }
                    Err(error) => {
                        tracing::debug!(%error, delivery = %dispatch.delivery, "an attempt was not recorded");
                        break None;
                    }
                }
            };
            drop(place);
            let _ = mail.send(Message::Recorded { key, verdict, recorded });
        });
    }

    /// Claims what is due for webhooks that have room.
    fn claim(&mut self) {
        if !self.gates.has_room() || !self.beat.may_send() {
            return;
        }
        for (key, limit) in self.lanes.claims(self.app.now()) {
            self.regate(key);
            let (app, mail, gates, node) =
                (self.app.clone(), self.mail.clone(), Arc::clone(&self.gates), self.node);
            self.attempts.spawn(async move {
                let limit = i64::try_from(limit).unwrap_or(i64::MAX);
                let claim = ClaimDue { webhook: key.1, node, limit };
                let message = match app.write(&Access::System(key.0), claim).await {
                    Ok(found) => {
                        let more = i64::try_from(found.claimed.len()).unwrap_or(0) == limit;
                        let items = found.claimed.into_iter().filter_map(|claimed| {
                            let dispatch = Dispatch {
                                company: key.0,
                                webhook: key.1,
                                delivery: claimed.id,
                                kind: claimed.kind,
                                number: claimed.attempts + 1,
                                payload: claimed.payload?.into(),
                                manual: None,
                            };
                            gates.reserve(key.1, true).map(|place| Item { dispatch, place })
                        });
                        let items: Vec<Item> = items.collect();
                        // Due, yet not to be had: dropped and not ended yet, or in another node's hands.
                        let soonest = if items.is_empty() { app.now().plus_seconds(1) } else { app.now() };
                        let next_due = found.next_due.map(|due| due.max(soonest));
                        Message::Claimed { key, items, more, next_due }
                    }
                    Err(error) => {
                        log_failure!(error, "due deliveries could not be claimed; trying again");
                        tokio::time::sleep(Duration::from_millis(500)).await;
                        Message::Claimed { key, items: Vec::new(), more: true, next_due: None }
                    }
                };
                let _ = mail.send(message);
            });
        }
    }

    fn claim_manual(&mut self, company: CompanyId) {
        const LIMIT: i64 = 64;
        if let Some(again) = self.claiming_manual.get_mut(&company) {
            *again = true;
            return;
        }
        self.claiming_manual.insert(company, false);
        let (app, mail, gates, node) =
            (self.app.clone(), self.mail.clone(), Arc::clone(&self.gates), self.node);
        self.attempts.spawn(async move {
            let claimed = match app.write(&Access::System(company), ClaimManual { node, limit: LIMIT }).await
            {
                Ok(claimed) => claimed,
                Err(error) => {
                    log_failure!(error, "manual attempts could not be claimed");
                    Vec::new()
                }
            };
            let more = i64::try_from(claimed.len()).unwrap_or(0) == LIMIT;
            let items = claimed.into_iter().filter_map(|claimed| {
                let dispatch = Dispatch {
                    company,
                    webhook: claimed.webhook,
                    delivery: claimed.delivery,
                    kind: claimed.kind?,
                    number: claimed.attempts + 1,
                    payload: claimed.payload?.into(),
                    manual: Some(claimed.id),
                };
                gates.reserve(dispatch.webhook, true).map(|place| Item { dispatch, place })
            });
            let _ = mail.send(Message::ClaimedManual { company, items: items.collect(), more });
        });
    }

    /// Gives deliveries back to the database.
    fn release(&self, items: Vec<Item>) {
        let mut by_company: HashMap<CompanyId, Vec<DeliveryId>> = HashMap::new();
        for item in &items {
            by_company.entry(item.dispatch.company).or_default().push(item.dispatch.delivery);
        }
        for (company, deliveries) in by_company {
            let (app, node) = (self.app.clone(), self.node);
            self.attempts.spawn(async move {
                let release = Release { node, deliveries };
                if let Err(error) = app.write(&Access::System(company), release).await {
                    log_failure!(error, "deliveries could not be given back");
                }
            });
        }
    }

    /// What is under way may end and be recorded; what waits in memory is given back, and so is what
    /// claims and readings that are under way still bring.
    async fn stop(mut self, mut inbox: mpsc::UnboundedReceiver<Message>) {
        let waiting = self.lanes.drain_all();
        self.give_back(waiting);
        self.attempts.close();
        let attempts = self.attempts.clone();
        let deadline = tokio::time::sleep(STOP_WAIT);
        tokio::pin!(deadline);
        loop {
            tokio::select! {
                biased;
                Some(message) = inbox.recv() => self.give_back(items_of(message)),
                () = attempts.wait() => break,
                () = &mut deadline => break,
            }
        }
        inbox.close();
        while let Ok(message) = inbox.try_recv() {
            self.give_back(items_of(message));
        }
        let _ = tokio::time::timeout(GIVE_BACK_WAIT, attempts.wait()).await;
    }

    fn give_back(&self, mut items: Vec<Item>) {
        items.retain(|item| item.dispatch.manual.is_none());
        self.release(items);
    }
}

fn items_of(message: Message) -> Vec<Item> {
    match message {
        Message::HandOver(dispatches) => {
            dispatches.into_iter().map(|(dispatch, place)| Item { dispatch, place }).collect()
        }
        Message::Claimed { items, .. }
        | Message::ClaimedManual { items, .. }
        | Message::Ready { items, .. }
        | Message::NotReady { items } => items,
        _ => Vec::new(),
    }
}

async fn make(
    app: &App,
    client: &Client,
    dispatch: &Dispatch,
    target: &Target,
) -> rapport_domain::delivery::Attempt {
    let started_at = app.now();
    let reason = reason(dispatch);
    let secret = match app.services().vault().open(target.id, &target.sealed_secret) {
        Ok(secret) => secret,
        Err(error) => {
            tracing::error!(webhook = %target.id, %error, "a webhook's secret cannot be opened");
            return rapport_domain::delivery::Attempt {
                started_at,
                reason,
                outcome: Outcome::Failed(rapport_domain::delivery::Failure::Own),
                error: Some("the webhook's secret cannot be opened".to_owned()),
                timings: rapport_domain::delivery::Timings::default(),
                address: None,
                excerpt: Vec::new(),
                excerpt_cut: false,
            };
        }
    };
    let post = Post {
        url: &target.url,
        secret: &secret,
        event: dispatch.kind.as_str(),
        delivery: dispatch.delivery.to_string(),
        number: dispatch.number,
        payload: &dispatch.payload,
        reason,
    };
    client.attempt(post, started_at).await
}

fn count(verdict: Verdict) {
    let outcome = match verdict {
        Verdict::Succeeded => "succeeded",
        Verdict::Again => "retried",
        Verdict::Final => "failed",
        Verdict::NotCharged => "own_fault",
    };
    metrics::counter!("rapport_delivery_attempts_total", "outcome" => outcome).increment(1);
}

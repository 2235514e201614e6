//! The task that owns the lanes: handles messages, claims what is due, and starts attempts.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rapport_app::delivery::Recorded;
use rapport_app::dispatch::{Dispatch, Owned};
use rapport_app::ownership::{ClaimDue, ClaimManual, GiveBack, TakeBack};
use rapport_app::{Access, App, log_failure};
use rapport_domain::delivery::Verdict;
use rapport_domain::id::{CompanyId, RedeliveryId, WebhookId};
use rapport_store::{Across, manual_attempt, webhook};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::attempt::{Attempting, Meters};
use super::gathering::{Gathering, ROUND};
use super::target::{Target, Targets};
use super::{Checked, Message};
use crate::client::Client;
use crate::flights::Ticket;
use crate::lanes::{Item, Key, Lanes};
use crate::nodes::Heartbeat;
use crate::places::Gates;

/// Ticks between two rounds of forgetting idle webhooks.
const FORGET_EVERY: u64 = 64;
/// How long to leave the database alone after it refused something.
const PAUSE: Duration = Duration::from_millis(500);
/// Manual attempts of one company claimed at a time, and how many of a bulk redelivery wait in memory before
/// more are claimed. It is small, so that a cancelled redelivery has little to take back.
const MANUAL_LIMIT: i64 = 64;
const MAX_BULK_WAITING: usize = 64;
/// How long a stopping sender waits for attempts in progress.
const STOP_WAIT: Duration = Duration::from_secs(2);
/// How long it then waits for late arrivals to be given back.
const GIVE_BACK_WAIT: Duration = Duration::from_secs(1);

pub struct State {
    app: App,
    node: i64,
    attempting: Arc<Attempting>,
    lanes: Lanes,
    /// Taken from the lanes for the next round.
    gathering: Gathering<(Ticket, Item)>,
    targets: Targets,
    gates: Arc<Gates>,
    mail: mpsc::UnboundedSender<Message>,
    attempts: TaskTracker,
    beat: Heartbeat,
    /// Companies whose manual attempts are being claimed, and whether more was reported since.
    claiming_manual: HashMap<CompanyId, bool>,
    /// Companies with more waiting manual attempts than memory has room for now.
    more_manual: HashSet<CompanyId>,
}

/// What to do with a dispatch that is about to be sent.
enum Decision<'a> {
    Send(&'a Arc<Target>),
    /// It waits in the database: the webhook is disabled, or a bulk redelivery is paused.
    GiveBack,
    TakeBack(RedeliveryId),
    /// Someone else has ended it.
    Forget,
}

fn decide<'a>(dispatch: &Dispatch, checked: &'a Checked) -> Decision<'a> {
    let target = checked.targets.get(&dispatch.webhook).filter(|target| !target.webhook.deleted);
    let Some(manual) = dispatch.manual else {
        return target.filter(|target| target.webhook.enabled).map_or(Decision::GiveBack, Decision::Send);
    };
    match (target, manual.bulk) {
        _ if !checked.wanted.contains(&manual.id) => Decision::Forget,
        (_, Some(bulk)) if checked.cancelled.contains(&manual.id) => Decision::TakeBack(bulk),
        (Some(target), Some(_)) if target.webhook.auto_disabled => Decision::GiveBack,
        (Some(target), _) => Decision::Send(target),
        (None, _) => Decision::GiveBack,
    }
}

impl State {
    pub fn new(
        app: App,
        client: Arc<Client>,
        node: i64,
        lanes: Lanes,
        gates: Arc<Gates>,
        mail: mpsc::UnboundedSender<Message>,
        beat: Heartbeat,
    ) -> Self {
        let attempting =
            Attempting { app: app.clone(), client, mail: mail.clone(), node, meters: Meters::new() };
        Self {
            app,
            node,
            attempting: Arc::new(attempting),
            lanes,
            gathering: Gathering::default(),
            targets: Targets::default(),
            gates,
            mail,
            attempts: TaskTracker::new(),
            beat,
            claiming_manual: HashMap::new(),
            more_manual: HashSet::new(),
        }
    }

    pub async fn run(
        mut self,
        mut inbox: mpsc::UnboundedReceiver<Message>,
        tick: Duration,
        stop: CancellationToken,
    ) {
        let mut tick = tokio::time::interval(tick);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut ticks: u64 = 0;
        loop {
            let round = self.next_round();
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                message = inbox.recv() => match message {
                    Some(message) => self.take(message),
                    None => break,
                },
                () = sleep_until(round), if round.is_some() => {}
                _ = tick.tick() => {
                    ticks += 1;
                    self.lanes.set_slow_aside(Instant::now());
                    if ticks.is_multiple_of(FORGET_EVERY) {
                        self.lanes.forget_idle();
                        self.gates.forget_idle();
                        self.targets.forget();
                        self.attempting.client.close_idle();
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
            Message::Answered { key, ticket, verdict } => {
                match verdict {
                    Verdict::NotCharged => self.lanes.ended(ticket),
                    verdict => {
                        self.lanes.answered(ticket, verdict == Verdict::Succeeded, Instant::now());
                    }
                }
                self.regate(key);
            }
            Message::Recorded { key, ticket, verdict, recorded } => {
                self.recorded(key, recorded);
                if matches!(verdict, Verdict::Again | Verdict::Final) {
                    self.lanes.ended(ticket);
                }
                self.claim_more_manual(key.0);
            }
            Message::Claimed { key, items, more, next_due } => {
                self.lanes.claimed(key, more, next_due);
                items.into_iter().for_each(|item| self.lanes.push(item));
                self.regate(key);
            }
            Message::ClaimedManual { company, items, more } => {
                let again = self.claiming_manual.remove(&company).unwrap_or(false);
                items.into_iter().for_each(|item| self.lanes.push(item));
                if again || more {
                    self.more_manual.insert(company);
                }
                self.claim_more_manual(company);
            }
            Message::Ready { items, mut checked } => {
                self.targets.meet(&mut checked.targets);
                self.start(items, &checked);
            }
            Message::NotReady { items } => {
                // In reverse, so that they keep their order at the front.
                for (ticket, item) in items.into_iter().rev() {
                    self.lanes.put_back(ticket, item);
                }
            }
        }
    }

    fn regate(&self, key: Key) {
        let (behind, standing) = self.lanes.gate(key);
        self.gates.set(key.1, behind, standing);
    }

    fn recorded(&mut self, key: Key, recorded: Option<Recorded>) {
        let Some(Recorded { retry_at, disabled }) = recorded else { return };
        if disabled {
            let waiting = self.lanes.drain(key);
            self.give_back(waiting);
            self.regate(key);
        } else if let Some(at) = retry_at {
            self.lanes.due(key, at);
        }
    }

    /// When to check again whether a round may start.
    fn next_round(&self) -> Option<Instant> {
        self.gathering.starts_at(Instant::now()).filter(|_| self.beat.may_send())
    }

    /// Reads what a round of deliveries must know right before it is sent, then starts the attempts.
    fn dispatch(&mut self) {
        if !self.beat.may_send() {
            return;
        }
        let now = Instant::now();
        self.gathering.gather(|| self.lanes.next(now));
        let Some(items) = self.gathering.round(now) else { return };
        let wanted = Wanted::by(items.iter().map(|(_, item)| &item.dispatch));
        let (app, mail) = (self.app.clone(), self.mail.clone());
        self.attempts.spawn(async move {
            let message = match app.read_across(move |across| wanted.read(across)).await {
                Ok(checked) => Message::Ready { items, checked },
                Err(error) => {
                    log_failure!(error, "failed to read webhooks for sending; trying again");
                    tokio::time::sleep(PAUSE).await;
                    Message::NotReady { items }
                }
            };
            let _ = mail.send(message);
        });
    }

    fn start(&mut self, items: Vec<(Ticket, Item)>, checked: &Checked) {
        let mut back = Vec::new();
        let mut unwanted: HashMap<(CompanyId, RedeliveryId), Vec<RedeliveryId>> = HashMap::new();
        for (ticket, item) in items {
            let key = item.key();
            let decision = decide(&item.dispatch, checked);
            if let Decision::Send(target) = decision {
                self.attempt(ticket, item, Arc::clone(target));
                continue;
            }
            self.lanes.ended(ticket);
            match decision {
                Decision::TakeBack(bulk) => {
                    unwanted.entry((key.0, bulk)).or_default().extend(item.dispatch.manual.map(|it| it.id));
                }
                Decision::GiveBack => {
                    if item.dispatch.manual.is_none() {
                        back.extend(self.lanes.drain(key));
                    }
                    if checked.targets.get(&key.1).is_none_or(|target| target.webhook.deleted) {
                        self.lanes.forget(key);
                        self.gates.forget(key.1);
                    }
                    back.push(item);
                }
                Decision::Forget | Decision::Send(_) => {}
            }
        }
        self.give_back(back);
        for ((company, bulk), attempts) in unwanted {
            self.take_back(company, bulk, attempts);
            self.claim_more_manual(company);
        }
    }

    fn attempt(&self, ticket: Ticket, item: Item, target: Arc<Target>) {
        self.attempts.spawn(Arc::clone(&self.attempting).run(ticket, item, target));
    }

    /// Claims what is due for webhooks that have room.
    fn claim(&mut self) {
        if !self.beat.may_send() {
            return;
        }
        let gates = &self.gates;
        let claims = self.lanes.claims(self.app.now(), |company, standing| gates.has_room(company, standing));
        for (key, limit) in claims {
            self.regate(key);
            let (app, mail, node) = (self.app.clone(), self.mail.clone(), self.node);
            self.attempts.spawn(async move {
                let limit = i64::try_from(limit).unwrap_or(i64::MAX);
                let claim = ClaimDue { webhook: key.1, node, limit };
                let message = match app.write(&Access::System(key.0), claim).await {
                    Ok(found) => {
                        let items: Vec<Item> = found.claimed.into_iter().map(into_item).collect();
                        let more = i64::try_from(items.len()).unwrap_or(0) == limit;
                        // Due but not available: dropped and not ended yet, or held by another node.
                        let soonest = if items.is_empty() { app.now().plus_seconds(1) } else { app.now() };
                        let next_due = found.next_due.map(|due| due.max(soonest));
                        Message::Claimed { key, items, more, next_due }
                    }
                    Err(error) if error.is_deleted_company() => {
                        Message::Claimed { key, items: Vec::new(), more: false, next_due: None }
                    }
                    Err(error) => {
                        log_failure!(error, "failed to claim due deliveries; trying again");
                        tokio::time::sleep(PAUSE).await;
                        Message::Claimed { key, items: Vec::new(), more: true, next_due: None }
                    }
                };
                let _ = mail.send(message);
            });
        }
    }

    fn claim_more_manual(&mut self, company: CompanyId) {
        if self.more_manual.contains(&company) && self.lanes.bulk_waiting(company) < MAX_BULK_WAITING {
            self.more_manual.remove(&company);
            self.claim_manual(company);
        }
    }

    fn claim_manual(&mut self, company: CompanyId) {
        if let Some(again) = self.claiming_manual.get_mut(&company) {
            *again = true;
            return;
        }
        self.claiming_manual.insert(company, false);
        let (app, mail, node) = (self.app.clone(), self.mail.clone(), self.node);
        self.attempts.spawn(async move {
            let claim = ClaimManual { node, limit: MANUAL_LIMIT };
            let message = match app.write(&Access::System(company), claim).await {
                Ok(found) => {
                    let items = found.claimed.into_iter().map(into_item).collect();
                    Message::ClaimedManual { company, items, more: found.more }
                }
                Err(error) => {
                    // The next sweep finds them again.
                    log_failure!(error, "failed to claim manual attempts");
                    Message::ClaimedManual { company, items: Vec::new(), more: false }
                }
            };
            let _ = mail.send(message);
        });
    }

    /// Gives deliveries back to the database. If that fails, the next sweeps find them.
    fn give_back(&self, items: Vec<Item>) {
        let mut by_company: HashMap<CompanyId, Vec<Owned>> = HashMap::new();
        for item in &items {
            by_company.entry(item.dispatch.company).or_default().push(item.dispatch.owned());
        }
        // Release their places first: what is held isn't given back.
        drop(items);
        for (company, owned) in by_company {
            let (app, node) = (self.app.clone(), self.node);
            self.attempts.spawn(async move {
                if let Err(error) = app.write(&Access::System(company), GiveBack { node, owned }).await {
                    log_failure!(error, "failed to give deliveries back");
                }
            });
        }
    }

    fn take_back(&self, company: CompanyId, bulk: RedeliveryId, attempts: Vec<RedeliveryId>) {
        let app = self.app.clone();
        self.attempts.spawn(async move {
            if let Err(error) = app.write(&Access::System(company), TakeBack { bulk, attempts }).await {
                log_failure!(error, "failed to take back cancelled attempts");
            }
        });
    }

    /// Lets attempts in progress end and be recorded. Gives back what waits in memory, and what claims and
    /// reads in progress still bring.
    async fn stop(mut self, mut inbox: mpsc::UnboundedReceiver<Message>) {
        let mut waiting = self.lanes.drain_all();
        waiting.extend(self.gathering.take().into_iter().map(|(_, item)| item));
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
}

async fn sleep_until(at: Option<Instant>) {
    if let Some(at) = at {
        tokio::time::sleep_until(at.into()).await;
    }
}

/// What to look up for a round of dispatches.
#[derive(Default)]
struct Wanted(HashMap<CompanyId, (HashSet<WebhookId>, Vec<RedeliveryId>)>);

impl Wanted {
    fn by<'a>(dispatches: impl Iterator<Item = &'a Dispatch>) -> Self {
        let mut wanted = Self::default();
        for dispatch in dispatches {
            let (webhooks, manual) = wanted.0.entry(dispatch.company).or_default();
            webhooks.insert(dispatch.webhook);
            manual.extend(dispatch.manual.map(|manual| manual.id));
        }
        wanted
    }

    fn read(self, across: &mut Across) -> Result<Checked, rapport_store::Error> {
        let mut checked = Checked::default();
        for (company, (webhooks, manual)) in self.0 {
            let webhooks: Vec<WebhookId> = webhooks.into_iter().collect();
            let targets = webhook::targets(across, company, &webhooks)?;
            checked.targets.extend(targets.into_iter().map(|it| (it.id, Arc::new(Target::new(it)))));
            for (id, cancelled) in manual_attempt::check(across, company, &manual)? {
                checked.wanted.insert(id);
                if cancelled {
                    checked.cancelled.insert(id);
                }
            }
        }
        Ok(checked)
    }
}

fn into_item((dispatch, place): (Dispatch, rapport_app::dispatch::Place)) -> Item {
    Item { dispatch, place }
}

fn items_of(message: Message) -> Vec<Item> {
    match message {
        Message::HandOver(dispatches) => dispatches.into_iter().map(into_item).collect(),
        Message::Claimed { items, .. } | Message::ClaimedManual { items, .. } => items,
        Message::Ready { items, .. } | Message::NotReady { items } => {
            items.into_iter().map(|(_, item)| item).collect()
        }
        _ => Vec::new(),
    }
}

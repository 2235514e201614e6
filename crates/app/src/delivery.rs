//! Deliveries: handed to a sender when they are committed, settled when an attempt has ended.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rapport_domain::delivery::{Attempt, Delivery, Progress, Reason, State, Verdict, after_attempt};
use rapport_domain::event::Kind;
use rapport_domain::id::{CompanyId, DeliveryId, EventId, RedeliveryId, WebhookId};
use rapport_domain::member::Role;
use rapport_domain::time::Time;
use rapport_domain::webhook::{Switch, Webhook};
use rapport_store::delivery::{self, Claimed, NumberedAttempt};
use rapport_store::manual_attempt::{self, NewManualAttempt};
use rapport_store::{Lane, Tx, event, webhook};
use serde_json::json;

use crate::access::Needs;
use crate::audit;
use crate::command::{Command, Context};
use crate::error::Error;
use crate::webhook::tell_auto_disabled;

/// A delivery on its way to an attempt.
#[derive(Debug, Clone)]
pub struct Dispatch {
    pub company: CompanyId,
    pub webhook: WebhookId,
    pub delivery: DeliveryId,
    pub kind: Kind,
    /// The number its next attempt will have, unless another one comes between.
    pub number: i64,
    pub payload: Arc<str>,
    /// Asked for by somebody: made whether the webhook is enabled or not.
    pub manual: Option<RedeliveryId>,
}

/// The sender of this process, as commands see it.
pub trait Sender: Send + Sync + 'static {
    /// The number of this incarnation: the owner of what it holds.
    fn node(&self) -> i64;

    /// A place in memory for one delivery, or `None`: then it waits in the database.
    fn reserve(&self, webhook: WebhookId) -> Option<Place>;

    /// Committed deliveries, each with the place that was reserved for it.
    fn hand_over(&self, dispatches: Vec<(Dispatch, Place)>);

    /// Something of this webhook waits in the database, or its switch was turned.
    fn wake(&self, company: CompanyId, webhook: WebhookId);

    /// An attempt that somebody asked for waits in the database.
    fn wake_manual(&self, company: CompanyId);
}

/// A reserved place; given back when dropped.
pub struct Place(Option<Box<dyn FnOnce() + Send>>);

impl Place {
    pub fn new(give_back: impl FnOnce() + Send + 'static) -> Self {
        Self(Some(Box::new(give_back)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(give_back) = self.0.take() {
            give_back();
        }
    }
}

/// Records how an attempt ended, in completion order under the webhook's row lock.
pub struct RecordAttempt {
    pub webhook: WebhookId,
    pub delivery: DeliveryId,
    pub attempt: Attempt,
    /// The manual attempt that this was.
    pub manual: Option<RedeliveryId>,
}

/// What follows from an attempt, for the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// When the delivery is due again.
    pub retry_at: Option<Time>,
    /// The webhook was switched off, now or before.
    pub disabled: bool,
}

impl Command for RecordAttempt {
    type Reply = Recorded;
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Outcome;
    const TOGETHER: usize = 512;
    /// Each takes the rows of its webhooks.
    const AT_ONCE: usize = 1;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Recorded, Error> {
        let mut answers = Self::run_many(&[(self, cx)], tx)?;
        answers.pop().unwrap_or(Err(Error::NotFound("delivery")))
    }

    fn run_many(
        batch: &[(&Self, &Context)],
        tx: &mut Tx,
    ) -> Result<Vec<Result<Recorded, Error>>, rapport_store::Error> {
        let webhooks = webhook::lock(tx, &distinct(batch.iter().map(|(record, _)| record.webhook)))?;
        let enabled: HashSet<WebhookId> =
            webhooks.iter().filter(|webhook| webhook.switch.is_enabled()).map(|webhook| webhook.id).collect();
        let mut webhooks: HashMap<WebhookId, (Webhook, bool)> =
            webhooks.into_iter().map(|webhook| (webhook.id, (webhook, false))).collect();
        let deliveries = delivery::lock(tx, &distinct(batch.iter().map(|(record, _)| record.delivery)))?;
        let mut deliveries: HashMap<DeliveryId, Delivery> =
            deliveries.into_iter().map(|delivery| (delivery.id, delivery)).collect();
        let mut attempts = Vec::with_capacity(batch.len());
        let mut answers = Vec::with_capacity(batch.len());
        for (record, cx) in batch {
            let webhook = webhooks.get_mut(&record.webhook);
            let Some(delivery) = deliveries.get_mut(&record.delivery) else {
                // Pruned meanwhile: there is nothing left to record it on.
                answers.push(Err(Error::NotFound("delivery")));
                continue;
            };
            answers.push(Ok(settle(record, delivery, webhook, cx, &mut attempts)));
        }
        delivery::insert_attempts(tx, &attempts)?;
        // The sender may hold a delivery for its own attempt while another one is asked for.
        let by_sender: HashSet<DeliveryId> = batch
            .iter()
            .filter(|(record, _)| record.manual.is_none())
            .map(|(record, _)| record.delivery)
            .collect();
        let mut recorded: Vec<&Delivery> = deliveries.values().collect();
        recorded.sort_unstable_by_key(|delivery| delivery.id);
        let (settled, described): (Vec<&Delivery>, Vec<&Delivery>) =
            recorded.into_iter().partition(|delivery| by_sender.contains(&delivery.id));
        delivery::settle(tx, &settled)?;
        delivery::describe(tx, &described)?;
        let mut changed: Vec<&Webhook> =
            webhooks.values().filter(|(_, changed)| *changed).map(|(webhook, _)| webhook).collect();
        changed.sort_unstable_by_key(|webhook| webhook.id);
        webhook::update(tx, &changed)?;
        let switched_off = changed.iter().filter(|webhook| {
            enabled.contains(&webhook.id) && matches!(webhook.switch, Switch::AutoDisabled { .. })
        });
        for webhook in switched_off {
            tell_auto_disabled(tx, batch[0].1, webhook)?;
        }
        let (unmade, made): (Vec<_>, Vec<_>) = batch
            .iter()
            .filter_map(|(record, _)| record.manual.map(|manual| (manual, record.attempt.outcome.verdict())))
            .partition(|(_, verdict)| *verdict == Verdict::NotCharged);
        manual_attempt::delete(tx, &ids_of(made))?;
        // A fault of ours kept them from being made: they wait for their next chance.
        manual_attempt::release(tx, &ids_of(unmade))?;
        Ok(answers)
    }
}

fn ids_of(manual: Vec<(RedeliveryId, Verdict)>) -> Vec<RedeliveryId> {
    manual.into_iter().map(|(id, _)| id).collect()
}

/// One attempt's effect on its delivery and its webhook. A deleted webhook is `None`.
fn settle<'a>(
    record: &'a RecordAttempt,
    delivery: &mut Delivery,
    webhook: Option<&mut (Webhook, bool)>,
    cx: &Context,
    attempts: &mut Vec<NumberedAttempt<'a>>,
) -> Recorded {
    let outcome = record.attempt.outcome;
    let verdict = outcome.verdict();
    let mut disabled = true;
    if let Some((webhook, changed)) = webhook {
        if verdict != Verdict::NotCharged {
            let before = (webhook.failure_streak, webhook.switch, webhook.last_test);
            webhook.record(verdict == Verdict::Succeeded, cx.now);
            if delivery.kind == Kind::WebhookTest {
                // A test proves what was there when it was made, not what has changed since.
                webhook.record_test(verdict == Verdict::Succeeded, record.attempt.started_at);
            }
            *changed |= before != (webhook.failure_streak, webhook.switch, webhook.last_test);
        }
        disabled = !webhook.switch.is_enabled();
    }
    // A test of a disabled webhook is one attempt; everything else keeps its schedule, held or not.
    let retries = !(disabled && delivery.kind == Kind::WebhookTest);
    let before = Progress { state: delivery.state, scheduled: delivery.scheduled };
    let jitter = u16::from_le_bytes(cx.random());
    let after = after_attempt(before, record.attempt.reason, outcome, retries, cx.now, jitter);
    if verdict != Verdict::NotCharged {
        delivery.attempts += 1;
        attempts.push(NumberedAttempt {
            delivery: delivery.id,
            number: delivery.attempts,
            attempt: &record.attempt,
        });
        describe(delivery, &record.attempt, after.state);
    }
    if after.state != delivery.state && !matches!(after.state, State::Open { .. }) {
        delivery.finished_at = Some(cx.now);
    }
    delivery.state = after.state;
    delivery.scheduled = after.scheduled;
    let retry_at = match after.state {
        State::Open { next_at } => Some(next_at),
        State::Succeeded | State::Failed => None,
    };
    Recorded { retry_at, disabled }
}

/// The delivery shows its last attempt; a success is not covered by a later manual failure.
fn describe(delivery: &mut Delivery, attempt: &Attempt, after: State) {
    let succeeded = attempt.outcome.verdict() == Verdict::Succeeded;
    if after == State::Succeeded && !succeeded {
        return;
    }
    delivery.response_code = attempt.outcome.code().map(i64::from);
    delivery.error.clone_from(&attempt.error);
}

fn distinct<T: Ord>(ids: impl Iterator<Item = T>) -> Vec<T> {
    let mut ids: Vec<T> = ids.collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// Takes what is due of a webhook into the sender's memory.
pub struct ClaimDue {
    pub webhook: WebhookId,
    pub node: i64,
    pub limit: i64,
}

/// What was taken, and when the next one is due.
pub struct ClaimedDue {
    pub claimed: Vec<Claimed>,
    pub next_due: Option<Time>,
}

impl Command for ClaimDue {
    type Reply = ClaimedDue;
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Outcome;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<ClaimedDue, Error> {
        let target = webhook::state(tx, self.webhook)?;
        let Some(target) = target.filter(|target| target.enabled) else {
            return Ok(ClaimedDue { claimed: Vec::new(), next_due: None });
        };
        let claimed =
            delivery::claim(tx, self.webhook, self.node, cx.now, target.dropped_before, self.limit)?;
        let next_due = delivery::next_due(tx, self.webhook)?;
        Ok(ClaimedDue { claimed, next_due })
    }
}

/// Takes the attempts that somebody asked for.
pub struct ClaimManual {
    pub node: i64,
    pub limit: i64,
}

impl Command for ClaimManual {
    type Reply = Vec<manual_attempt::ClaimedManual>;
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Outcome;

    fn run(&self, tx: &mut Tx, _: &Context) -> Result<Self::Reply, Error> {
        let claimed = manual_attempt::claim(tx, self.node, self.limit)?;
        // What has lost its delivery or payload meanwhile cannot be made any more.
        let gone: Vec<RedeliveryId> =
            claimed.iter().filter(|claimed| claimed.payload.is_none()).map(|claimed| claimed.id).collect();
        manual_attempt::delete(tx, &gone)?;
        Ok(claimed.into_iter().filter(|claimed| claimed.payload.is_some()).collect())
    }
}

/// Gives deliveries back to the database: the webhook is disabled, or the sender stops.
pub struct Release {
    pub node: i64,
    pub deliveries: Vec<DeliveryId>,
}

impl Command for Release {
    type Reply = ();
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Outcome;

    fn run(&self, tx: &mut Tx, _: &Context) -> Result<(), Error> {
        Ok(delivery::release(tx, self.node, &self.deliveries)?)
    }
}

/// Gives back what a dead node held, in small steps; says whether there is more.
pub struct TakeOver {
    pub dead: i64,
}

const STEP: i64 = 500;
/// How long after a drop a sender may still give back a delivery that it held.
const DROP_SETTLED_SECONDS: i64 = 60;

impl Command for TakeOver {
    type Reply = bool;
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Outcome;

    fn run(&self, tx: &mut Tx, _: &Context) -> Result<bool, Error> {
        manual_attempt::release_owner(tx, self.dead)?;
        let owned = delivery::owned(tx, self.dead, STEP)?;
        delivery::release(tx, self.dead, &owned)?;
        Ok(i64::try_from(owned.len()).unwrap_or(0) == STEP)
    }
}

/// Ends the waiting deliveries of a deleted webhook, or those its operator dropped, in small steps;
/// says whether there is more.
pub struct EndDeliveries {
    pub webhook: WebhookId,
    pub before: Time,
    pub error: &'static str,
}

impl Command for EndDeliveries {
    type Reply = bool;
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Background;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<bool, Error> {
        let open = delivery::open_of_webhook(tx, self.webhook, self.before, STEP)?;
        delivery::end(tx, &open, self.error, cx.now)?;
        if open.is_empty() && self.before.plus_seconds(DROP_SETTLED_SECONDS) < cx.now {
            // Nothing is left, and no sender can still give one back: the cutoff has done its work.
            webhook::drop_before(tx, self.webhook, Time::from_micros(0))?;
        }
        Ok(i64::try_from(open.len()).unwrap_or(0) == STEP)
    }
}

/// One more attempt of a delivery, in any state: same id, same bytes, marked manual.
pub struct Redeliver(pub DeliveryId);

impl Command for Redeliver {
    type Reply = Delivery;
    const NEEDS: Needs = Needs::Role(Role::Admin);

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Delivery, Error> {
        let found = delivery::get(tx, self.0)?.ok_or(Error::NotFound("delivery"))?;
        if webhook::get(tx, found.webhook)?.is_none() {
            return Err(Error::conflict("webhook_deleted", "the webhook of this delivery was deleted"));
        }
        let payload = payload(tx, found.event)?;
        force(tx, cx, &found, payload)?;
        audit::record(tx, cx, "delivery.redelivered", Some(self.0.to_string()), &json!({}))?;
        Ok(found)
    }
}

fn payload(tx: &mut Tx, id: EventId) -> Result<Arc<str>, Error> {
    let found = event::get(tx, id)?.map(|event| event.payload).filter(|payload| !payload.is_empty());
    let gone = || Error::conflict("payload_erased", "the payload of this delivery was erased");
    found.map(Into::into).ok_or_else(gone)
}

/// Asks for one attempt of a delivery whether its webhook is enabled or not.
pub(crate) fn force(tx: &mut Tx, cx: &Context, delivery: &Delivery, payload: Arc<str>) -> Result<(), Error> {
    let sender = cx.sender();
    let place = sender.as_ref().and_then(|sender| sender.reserve(delivery.webhook));
    let owner = place.as_ref().and(sender.as_ref()).map(|sender| sender.node());
    let id: RedeliveryId = cx.id();
    let attempt = NewManualAttempt {
        id,
        delivery: delivery.id,
        webhook: delivery.webhook,
        redelivery: None,
        owner,
        requested_at: cx.now,
    };
    manual_attempt::insert(tx, &[attempt])?;
    let Some(sender) = sender else { return Ok(()) };
    let company = cx.company().id;
    let dispatch = Dispatch {
        company,
        webhook: delivery.webhook,
        delivery: delivery.id,
        kind: delivery.kind,
        number: delivery.attempts + 1,
        payload,
        manual: Some(id),
    };
    tx.after_commit(move || match place {
        Some(place) => sender.hand_over(vec![(dispatch, place)]),
        None => sender.wake_manual(company),
    });
    Ok(())
}

/// Why an attempt counts as made: the schedule's, unless somebody asked for it. A test's first
/// attempt is the test itself, however it got to its sender.
pub fn reason(dispatch: &Dispatch) -> Reason {
    let is_first_test = dispatch.kind == Kind::WebhookTest && dispatch.number == 1;
    if dispatch.manual.is_some() && !is_first_test { Reason::Manual } else { Reason::Automatic }
}

//! Deliveries: settled when an attempt ends, closed when nobody wants them any more.

use std::collections::{HashMap, HashSet};

use rapport_domain::delivery::{Attempt, Delivery, Progress, State, Verdict, after_attempt};
use rapport_domain::event::Kind;
use rapport_domain::id::{DeliveryId, RedeliveryId, WebhookId};
use rapport_domain::time::Time;
use rapport_domain::webhook::{Switch, Webhook};
use rapport_store::delivery::{self, NumberedAttempt};
use rapport_store::subscription::Selects;
use rapport_store::{Lane, Tx, manual_attempt, webhook};

use crate::access::Needs;
use crate::command::{Command, Context};
use crate::error::Error;
use crate::webhook::tell_auto_disabled;

/// Records how an attempt ended, in order of completion, under the webhook's row lock.
pub struct RecordAttempt {
    pub webhook: WebhookId,
    pub delivery: DeliveryId,
    pub attempt: Attempt,
    /// The manual attempt this was, if it was one.
    pub manual: Option<RedeliveryId>,
    /// The node that made the attempt. If another node owns the delivery by now, it stays the owner.
    pub node: i64,
    /// An earlier try to record the attempt may have been committed; if so, it isn't recorded again.
    pub maybe_recorded: bool,
}

impl RecordAttempt {
    /// The first try to record an attempt.
    pub const fn new(
        node: i64,
        webhook: WebhookId,
        delivery: DeliveryId,
        attempt: Attempt,
        manual: Option<RedeliveryId>,
    ) -> Self {
        Self { webhook, delivery, attempt, manual, node, maybe_recorded: false }
    }
}

/// The consequences of an attempt, for the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// When the delivery is due again.
    pub retry_at: Option<Time>,
    /// The webhook is disabled, by this attempt or before.
    pub disabled: bool,
}

impl Command for RecordAttempt {
    type Reply = Recorded;
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Outcome;
    const TOGETHER: usize = 512;
    /// Each batch locks the rows of its webhooks.
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
        let owners: HashMap<DeliveryId, Option<i64>> =
            deliveries.iter().map(|(delivery, owner)| (delivery.id, *owner)).collect();
        let mut deliveries: HashMap<DeliveryId, Delivery> =
            deliveries.into_iter().map(|(delivery, _)| (delivery.id, delivery)).collect();
        let unsure =
            batch.iter().filter(|(record, _)| record.maybe_recorded).map(|(record, _)| record.delivery);
        let known: HashSet<(DeliveryId, Time)> =
            delivery::attempt_starts(tx, &distinct(unsure))?.into_iter().collect();
        let mut attempts = Vec::with_capacity(batch.len());
        let mut answers = Vec::with_capacity(batch.len());
        // Another node may already work on what an earlier try recorded, so leave that alone.
        let is_known = |record: &Self| {
            record.maybe_recorded && known.contains(&(record.delivery, record.attempt.started_at))
        };
        for (record, cx) in batch {
            let webhook = webhooks.get_mut(&record.webhook);
            let Some(delivery) = deliveries.get_mut(&record.delivery) else {
                // The delivery was pruned in the meantime, so there is nothing to record the attempt on.
                answers.push(Err(Error::NotFound("delivery")));
                continue;
            };
            if is_known(record) {
                answers.push(Ok(recorded_before(delivery, webhook)));
                continue;
            }
            answers.push(Ok(settle(record, delivery, webhook, cx, &mut attempts)));
        }
        delivery::insert_attempts(tx, &attempts)?;
        // The sender may hold a delivery for its own attempt while a manual one is made. And a node that was
        // wrongly considered dead records its attempt while another node holds the delivery.
        let ends_ownership = |record: &Self| {
            let owner = owners.get(&record.delivery).copied().flatten();
            record.manual.is_none() && owner.is_none_or(|owner| owner == record.node)
        };
        let made = || batch.iter().map(|(record, _)| *record).filter(|record| !is_known(record));
        let settled: HashSet<DeliveryId> =
            made().filter(|record| ends_ownership(record)).map(|record| record.delivery).collect();
        let changed = distinct(made().map(|record| record.delivery));
        let (settled, described): (Vec<&Delivery>, Vec<&Delivery>) = changed
            .iter()
            .filter_map(|id| deliveries.get(id))
            .partition(|delivery| settled.contains(&delivery.id));
        delivery::settle(tx, &settled)?;
        delivery::describe(tx, &described)?;
        let mut changed: Vec<&Webhook> =
            webhooks.values().filter(|(_, changed)| *changed).map(|(webhook, _)| webhook).collect();
        changed.sort_unstable_by_key(|webhook| webhook.id);
        let is_switched_off = |webhook: &&&Webhook| {
            enabled.contains(&webhook.id) && matches!(webhook.switch, Switch::AutoDisabled { .. })
        };
        let switched_off: Vec<&Webhook> = changed.iter().filter(is_switched_off).copied().collect();
        let selects = if switched_off.is_empty() { Selects::AsBefore } else { Selects::Anew(batch[0].1.now) };
        webhook::update(tx, &changed, selects)?;
        for webhook in switched_off {
            tell_auto_disabled(tx, batch[0].1, webhook)?;
        }
        let (unmade, made): (Vec<_>, Vec<_>) = batch
            .iter()
            .filter_map(|(record, _)| record.manual.map(|manual| (manual, record.attempt.outcome.verdict())))
            .partition(|(_, verdict)| *verdict == Verdict::NotCharged);
        manual_attempt::delete(tx, &ids_of(made))?;
        // A fault on our side prevented these attempts, so they wait for their next chance.
        manual_attempt::release(tx, &ids_of(unmade))?;
        Ok(answers)
    }
}

fn ids_of(manual: Vec<(RedeliveryId, Verdict)>) -> Vec<RedeliveryId> {
    manual.into_iter().map(|(id, _)| id).collect()
}

/// The consequences of an attempt that an earlier try did record.
fn recorded_before(delivery: &Delivery, webhook: Option<&mut (Webhook, bool)>) -> Recorded {
    let retry_at = match delivery.state {
        State::Open { next_at } => Some(next_at),
        State::Succeeded | State::Failed => None,
    };
    Recorded { retry_at, disabled: webhook.is_none_or(|(webhook, _)| !webhook.switch.is_enabled()) }
}

/// Applies one attempt to its delivery and its webhook. A deleted webhook is `None`.
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
            let before = (webhook.failure_streak, webhook.proven, webhook.switch, webhook.last_test);
            webhook.record(verdict == Verdict::Succeeded, cx.now);
            if delivery.kind == Kind::WebhookTest {
                // A test only proves the configuration it was made with, not later changes.
                webhook.record_test(verdict == Verdict::Succeeded, record.attempt.started_at);
            }
            *changed |= before != (webhook.failure_streak, webhook.proven, webhook.switch, webhook.last_test);
        }
        disabled = !webhook.switch.is_enabled();
    }
    // A test of a disabled webhook gets one attempt. Everything else keeps its schedule, held or not.
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

/// The delivery shows its last attempt, but a later manual failure doesn't hide a success.
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

/// Deliveries ended per step.
const STEP: i64 = 500;
/// How long after a drop a sender may still give back a delivery it held.
const DROP_SETTLED_SECONDS: i64 = 60;

/// Ends the waiting deliveries of a deleted webhook, or those its operator dropped, in small steps. Returns
/// whether there are more.
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
            // Nothing is left and no sender can still give one back, so the cutoff is no longer needed.
            webhook::drop_before(tx, self.webhook, Time::from_micros(0))?;
        }
        Ok(i64::try_from(open.len()).unwrap_or(0) == STEP)
    }
}

//! Ownership of work: a node claims deliveries and manual attempts, gives them back, and takes over from dead
//! nodes.

use rapport_domain::id::{DeliveryId, RedeliveryId, WebhookId};
use rapport_domain::time::Time;
use rapport_store::{Lane, Tx, delivery, manual_attempt, redelivery, webhook};

use crate::access::Needs;
use crate::command::{Command, Context};
use crate::dispatch::{Asking, Dispatch, Manual, Owned, Place};
use crate::error::Error;

/// Rows given back per step of a takeover.
const STEP: i64 = 500;

/// Claims a webhook's due deliveries into the sender's memory.
pub struct ClaimDue {
    pub webhook: WebhookId,
    pub node: i64,
    pub limit: i64,
}

/// The claimed deliveries, each with its place, and when the next one is due.
pub struct ClaimedDue {
    pub claimed: Vec<(Dispatch, Place)>,
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
        let found = delivery::claim(tx, self.webhook, self.node, cx.now, target.dropped_before, self.limit)?;
        let company = cx.company().id;
        let (found, erased): (Vec<_>, Vec<_>) = found.into_iter().partition(|due| due.payload.is_some());
        let claimed = found.into_iter().map(|due| {
            let dispatch = Dispatch {
                company,
                webhook: self.webhook,
                delivery: due.id,
                event: due.event,
                kind: due.kind,
                number: due.attempts + 1,
                payload: due.payload.unwrap_or_default().into(),
                manual: None,
            };
            let place = hold(cx, self.node, &dispatch);
            (dispatch, place)
        });
        let claimed = claimed.collect();
        // Without its payload there is nothing left to send.
        let erased: Vec<DeliveryId> = erased.into_iter().map(|due| due.id).collect();
        delivery::end(tx, &erased, rapport_domain::delivery_list::PAYLOAD_ERASED, cx.now)?;
        let next_due = delivery::next_due(tx, self.webhook)?;
        Ok(ClaimedDue { claimed, next_due })
    }
}

/// Claims manual attempts. Those of a bulk redelivery wait while their webhook is auto-disabled.
pub struct ClaimManual {
    pub node: i64,
    pub limit: i64,
}

/// The claimed attempts, each with its place, and whether more may be waiting.
pub struct ClaimedManual {
    pub claimed: Vec<(Dispatch, Place)>,
    pub more: bool,
}

impl Command for ClaimManual {
    type Reply = ClaimedManual;
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Outcome;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<ClaimedManual, Error> {
        let found = manual_attempt::claim(tx, self.node, self.limit)?;
        let more = i64::try_from(found.len()).unwrap_or(0) == self.limit;
        let (mut claimed, mut gone) = (Vec::new(), Vec::new());
        for attempt in found {
            // An attempt whose delivery, payload or webhook is gone by now can't be made any more.
            let (Some(event), Some(kind), Some(payload)) = (attempt.event, attempt.kind, attempt.payload)
            else {
                gone.push(attempt.id);
                continue;
            };
            let dispatch = Dispatch {
                company: cx.company().id,
                webhook: attempt.webhook,
                delivery: attempt.delivery,
                event,
                kind,
                number: attempt.attempts + 1,
                payload: payload.into(),
                manual: Some(Manual { id: attempt.id, bulk: attempt.redelivery }),
            };
            let place = hold(cx, self.node, &dispatch);
            claimed.push((dispatch, place));
        }
        manual_attempt::delete(tx, &gone)?;
        Ok(ClaimedManual { claimed, more })
    }
}

/// Reserves a place for a claim before the commit, so that whatever is owned is held from the start.
fn hold(cx: &Context, node: i64, dispatch: &Dispatch) -> Place {
    let sender = cx.sender().filter(|sender| sender.node() == node);
    let reserved = sender.and_then(|sender| {
        sender.reserve(dispatch.company, dispatch.webhook, dispatch.owned(), Asking::Claimed)
    });
    reserved.unwrap_or(Place::uncounted())
}

/// Gives back what this node owns but doesn't hold: the webhook was disabled, the sender is stopping, or a
/// commit, an outcome or an earlier release was lost. Whatever is held stays. This is checked under the row's
/// lock, so nothing can be claimed in between.
pub struct GiveBack {
    pub node: i64,
    pub owned: Vec<Owned>,
}

impl Command for GiveBack {
    /// How many deliveries and manual attempts were given back.
    type Reply = usize;
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Outcome;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<usize, Error> {
        let sender = cx.sender();
        let held = |owned: Owned| sender.as_ref().is_some_and(|sender| sender.holds(owned));
        let (deliveries, attempts) = split(&self.owned);
        let mut deliveries = delivery::lock_owned(tx, self.node, &deliveries)?;
        deliveries.retain(|id| !held(Owned::Delivery(*id)));
        delivery::release(tx, self.node, &deliveries)?;
        let mut attempts = manual_attempt::lock_owned(tx, self.node, &attempts)?;
        attempts.retain(|id| !held(Owned::Manual(*id)));
        manual_attempt::release(tx, &attempts)?;
        Ok(deliveries.len() + attempts.len())
    }
}

fn split(owned: &[Owned]) -> (Vec<DeliveryId>, Vec<RedeliveryId>) {
    let (mut deliveries, mut attempts) = (Vec::new(), Vec::new());
    for owned in owned {
        match owned {
            Owned::Delivery(id) => deliveries.push(*id),
            Owned::Manual(id) => attempts.push(*id),
        }
    }
    deliveries.sort_unstable();
    attempts.sort_unstable();
    (deliveries, attempts)
}

/// Takes back attempts of a cancelled bulk redelivery that this node held but didn't begin.
pub struct TakeBack {
    pub bulk: RedeliveryId,
    pub attempts: Vec<RedeliveryId>,
}

impl Command for TakeBack {
    type Reply = ();
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Outcome;

    fn run(&self, tx: &mut Tx, _: &Context) -> Result<(), Error> {
        let found = redelivery::lock(tx, self.bulk)?;
        let taken = manual_attempt::take_back(tx, &self.attempts)?;
        if let Some(mut found) = found {
            found.take_back(taken);
            redelivery::update(tx, &found)?;
        }
        Ok(())
    }
}

/// Gives back what a dead node held, in small steps; returns whether there is more.
pub struct TakeOver {
    pub dead: i64,
}

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

//! Redelivers a single delivery on request.

use std::sync::Arc;

use rapport_domain::audit::Action;
use rapport_domain::delivery::Delivery;
use rapport_domain::id::{DeliveryId, EventId};
use rapport_domain::right::Right;
use rapport_store::manual_attempt::{self, NewManualAttempt};
use rapport_store::{Tx, delivery, event, webhook};
use serde_json::json;

use crate::access::Needs;
use crate::audit;
use crate::command::{Command, Context};
use crate::dispatch::{Asking, Dispatch, Manual, Owned, Sender};
use crate::error::Error;

/// Makes one more attempt of a delivery, in any state: same id, same bytes, marked manual.
pub struct Redeliver(pub DeliveryId);

impl Command for Redeliver {
    type Reply = Delivery;
    const NEEDS: Needs = Needs::Right(Right::Webhooks);

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Delivery, Error> {
        let found = delivery::get(tx, self.0)?.ok_or(Error::NotFound("delivery"))?;
        if webhook::get(tx, found.webhook)?.is_none() {
            return Err(Error::conflict("webhook_deleted", "the webhook of this delivery was deleted"));
        }
        let payload = payload(tx, found.event)?;
        force(tx, cx, &found, payload)?;
        audit::record(tx, cx, Action::DeliveryRedelivered, Some(self.0.to_string()), &json!({}))?;
        Ok(found)
    }
}

fn payload(tx: &mut Tx, id: EventId) -> Result<Arc<str>, Error> {
    let found = event::get(tx, id)?.map(|event| event.payload).filter(|payload| !payload.is_empty());
    let gone = || Error::conflict("payload_erased", "the payload of this delivery was erased");
    found.map(Into::into).ok_or_else(gone)
}

/// Requests one attempt of a delivery, whether its webhook is enabled or not.
pub(crate) fn force(tx: &mut Tx, cx: &Context, delivery: &Delivery, payload: Arc<str>) -> Result<(), Error> {
    let (sender, company) = (cx.sender(), cx.company().id);
    let manual = Manual { id: cx.id(), bulk: None };
    let reserve = |sender: &Arc<dyn Sender>| {
        sender.reserve(company, delivery.webhook, Owned::Manual(manual.id), Asking::Urgent)
    };
    let place = sender.as_ref().and_then(reserve);
    let owner = place.as_ref().and(sender.as_ref()).map(|sender| sender.node());
    let attempt = NewManualAttempt {
        id: manual.id,
        delivery: delivery.id,
        webhook: delivery.webhook,
        redelivery: None,
        owner,
        requested_at: cx.now,
    };
    manual_attempt::insert(tx, &[attempt])?;
    let Some(sender) = sender else { return Ok(()) };
    let dispatch = Dispatch {
        company,
        webhook: delivery.webhook,
        delivery: delivery.id,
        event: delivery.event,
        kind: delivery.kind,
        number: delivery.attempts + 1,
        payload,
        manual: Some(manual),
    };
    tx.after_commit(move || match place {
        Some(place) => sender.hand_over(vec![(dispatch, place)]),
        None => sender.wake_manual(company),
    });
    Ok(())
}

//! Erasure: removes an account's payloads from the delivery history and keeps the metadata.

use rapport_domain::audit::Action;
use rapport_domain::delivery_list::PAYLOAD_ERASED;
use rapport_domain::id::{AccountId, EventId};
use rapport_domain::member::Role;
use rapport_store::{Tx, account, delivery, erasure};
use serde_json::json;

use crate::access::{Access, Needs};
use crate::command::{Command, Context};
use crate::error::Error;
use crate::{App, audit};

/// Events per transaction; each may have a delivery for every webhook.
const STEP: i64 = 100;

/// Erases all payloads of an account, which may already be deleted; returns how many.
pub async fn erase_payloads(app: &App, access: &Access, account: AccountId) -> Result<usize, Error> {
    let (mut erased, mut after) = (0, None);
    loop {
        let step = app.write(access, ErasePayloads { account, after }).await?;
        erased += step.erased;
        if step.next.is_none() {
            return Ok(erased);
        }
        after = step.next;
    }
}

/// Erases the payloads of the next events after `after`.
pub struct ErasePayloads {
    pub account: AccountId,
    pub after: Option<EventId>,
}

/// The number of payloads a step erased, and where the next step begins, if there is one.
pub struct Erased {
    pub erased: usize,
    pub next: Option<EventId>,
}

impl Command for ErasePayloads {
    type Reply = Erased;
    const NEEDS: Needs = Needs::Role(Role::Admin);

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Erased, Error> {
        if self.after.is_none() {
            if account::existing(tx, &[self.account])?.is_empty() && !erasure::knows(tx, self.account)? {
                return Err(Error::NotFound("account"));
            }
            audit::record(tx, cx, Action::AccountPayloadsErased, Some(self.account.to_string()), &json!({}))?;
        }
        let events = erasure::with_payload(tx, self.account, self.after, STEP)?;
        let deliveries = erasure::erase(tx, &events)?;
        // Without payloads there is nothing left to send.
        delivery::end(tx, &deliveries, PAYLOAD_ERASED, cx.now)?;
        let is_full = i64::try_from(events.len()).unwrap_or(0) == STEP;
        Ok(Erased { erased: events.len(), next: events.last().copied().filter(|_| is_full) })
    }
}

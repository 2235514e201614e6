//! Erasure: removes an account's payloads from the delivery history, its values from the audit log, and its imported_id
//! from the record that it was deleted. The metadata is kept: who did what and when, and the account's id.

use rapport_domain::audit::{Action, erased};
use rapport_domain::delivery_list::PAYLOAD_ERASED;
use rapport_domain::id::{AccountId, AuditId, EventId};
use rapport_domain::right::Right;
use rapport_store::{Tx, account, audit as log, delivery, erasure, tombstone};
use serde_json::json;

use crate::access::{Access, Needs};
use crate::command::{Command, Context};
use crate::error::Error;
use crate::{App, audit};

/// Events per transaction; each may have a delivery for every webhook.
const STEP: i64 = 100;
/// Entries of the audit log per transaction.
const ENTRIES: i64 = 100;

/// Erases an account, which may already be deleted; returns how many payloads it had.
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

/// What comes after the last step: nothing, so that the whole erasure can be recorded as done.
pub struct EndErasure;

impl Command for EndErasure {
    type Reply = ();
    const NEEDS: Needs = ErasePayloads::NEEDS;

    fn run(&self, _: &mut Tx, _: &Context) -> Result<(), Error> {
        Ok(())
    }
}

/// How far an erasure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Events up to this one are done.
    Events(EventId),
    /// All events are done, and entries of the audit log back to this one.
    Entries(Option<AuditId>),
}

/// Erases the payloads of the next events, or the values in the next entries of the audit log.
pub struct ErasePayloads {
    pub account: AccountId,
    /// `None` to begin.
    pub after: Option<Progress>,
}

/// The number of payloads a step erased, and where the next step begins, if there is one.
pub struct Erased {
    pub erased: usize,
    pub next: Option<Progress>,
}

impl Command for ErasePayloads {
    type Reply = Erased;
    const NEEDS: Needs = Needs::Right(Right::Delete);

    /// Only the first step: what has begun is carried through.
    fn needs_proof(&self, _: &Context) -> bool {
        self.after.is_none()
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Erased, Error> {
        let after = match self.after {
            None => {
                self.begin(tx, cx)?;
                None
            }
            Some(Progress::Events(event)) => Some(event),
            Some(Progress::Entries(before)) => return self.erase_entries(tx, before),
        };
        let events = erasure::with_payload(tx, self.account, after, STEP)?;
        let deliveries = erasure::erase(tx, &events)?;
        // Without payloads there is nothing left to send.
        delivery::end(tx, &deliveries, PAYLOAD_ERASED, cx.now)?;
        let is_full = i64::try_from(events.len()).unwrap_or(0) == STEP;
        let next =
            events.last().filter(|_| is_full).map_or(Progress::Entries(None), |last| Progress::Events(*last));
        Ok(Erased { erased: events.len(), next: Some(next) })
    }
}

impl ErasePayloads {
    fn begin(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let target = self.account.to_string();
        let is_known = !account::existing(tx, &[self.account])?.is_empty()
            || erasure::knows(tx, self.account)?
            || tombstone::exists(tx, self.account)?
            || !log::about(tx, &target, None, 1)?.is_empty();
        if !is_known {
            return Err(Error::NotFound("account"));
        }
        tombstone::erase(tx, self.account)?;
        Ok(audit::record(tx, cx, Action::AccountPayloadsErased, Some(target), &json!({}))?)
    }

    fn erase_entries(&self, tx: &mut Tx, before: Option<AuditId>) -> Result<Erased, Error> {
        let entries = log::about(tx, &self.account.to_string(), before, ENTRIES)?;
        let is_full = i64::try_from(entries.len()).unwrap_or(0) == ENTRIES;
        let next = entries.last().filter(|_| is_full).map(|last| Progress::Entries(Some(last.id)));
        let details: Vec<(AuditId, String)> =
            entries.into_iter().map(|entry| (entry.id, erased(&entry.detail))).collect();
        log::set_details(tx, &details)?;
        Ok(Erased { erased: 0, next })
    }
}

//! Erasure: removes an account's payloads from the delivery history, its values from the audit log, what corrections of
//! its entries removed, and its imported_id from the record that it was deleted. The metadata is kept: who did what and
//! when, and the account's id.
//!
//! It takes several transactions, each of which counts what it removes. The entry of the audit log about the erasure has
//! the numbers of all of them so far.

use rapport_domain::audit::{Action, erased};
use rapport_domain::delivery_list::PAYLOAD_ERASED;
use rapport_domain::erasure::Erased;
use rapport_domain::id::{AccountId, AuditId, EventId};
use rapport_domain::right::Right;
use rapport_store::erasure::ErasedDeliveries;
use rapport_store::{Tx, account, audit as log, correction, delivery, erasure, tombstone};

use crate::access::{Access, Needs};
use crate::account::is_known;
use crate::command::{Command, Context};
use crate::error::Error;
use crate::{App, audit};

/// Events per transaction; each may have a delivery for every webhook.
const STEP: i64 = 100;
/// Entries of the audit log per transaction.
const ENTRIES: i64 = 100;

/// Erases an account, which may already be deleted; returns what was removed and kept.
pub async fn erase_payloads(app: &App, access: &Access, account: AccountId) -> Result<Erased, Error> {
    let mut after = None;
    loop {
        let step = app.write(access, ErasePayloads { account, after }).await?;
        if step.next.is_none() {
            return Ok(step.erased);
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
pub struct Progress {
    /// The erasure's own entry in the audit log.
    entry: AuditId,
    erased: Erased,
    at: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Events up to this one are done.
    Events(Option<EventId>),
    /// All events are done, and entries of the audit log back to this one.
    Entries(Option<AuditId>),
}

/// Erases the payloads of the next events, or the values in the next entries of the audit log.
pub struct ErasePayloads {
    pub account: AccountId,
    /// `None` to begin.
    pub after: Option<Progress>,
}

/// What was erased so far, and where the next step begins, if there is one.
pub struct Step {
    pub erased: Erased,
    pub next: Option<Progress>,
}

impl Command for ErasePayloads {
    type Reply = Step;
    const NEEDS: Needs = Needs::Right(Right::Delete);

    /// Only the first step: what has begun is carried through.
    fn needs_proof(&self, _: &Context) -> bool {
        self.after.is_none()
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Step, Error> {
        let Progress { entry, erased: before, at } = match self.after {
            Some(progress) => progress,
            None => self.begin(tx, cx)?,
        };
        let (erased, next) = match at {
            Stage::Events(after) => self.erase_events(tx, cx, after)?,
            Stage::Entries(before) => self.erase_entries(tx, before)?,
        };
        let erased = before.and(erased);
        log::set_details(tx, &[(entry, erased.to_json().to_string())])?;
        Ok(Step { erased, next: next.map(|at| Progress { entry, erased, at }) })
    }
}

impl ErasePayloads {
    fn begin(&self, tx: &mut Tx, cx: &Context) -> Result<Progress, Error> {
        if !is_known(tx, self.account)? {
            return Err(Error::NotFound("account"));
        }
        let erased = Erased {
            accounts: account::existing(tx, &[self.account])?.len() as u64,
            imported_ids: tombstone::erase(tx, self.account)?,
            corrections: correction::forget_of_account(tx, self.account)?,
            ..Erased::default()
        };
        let (action, target) = (Action::AccountPayloadsErased, Some(self.account.to_string()));
        let entry = audit::begin(tx, cx, action, target, &erased.to_json())?;
        Ok(Progress { entry, erased, at: Stage::Events(None) })
    }

    fn erase_events(
        &self,
        tx: &mut Tx,
        cx: &Context,
        after: Option<EventId>,
    ) -> Result<(Erased, Option<Stage>), Error> {
        let events = erasure::with_payload(tx, self.account, after, STEP)?;
        let ErasedDeliveries { deliveries, attempts, responses } = erasure::erase(tx, &events)?;
        // Without payloads there is nothing left to send.
        delivery::end(tx, &deliveries, PAYLOAD_ERASED, cx.now)?;
        let is_full = i64::try_from(events.len()).unwrap_or(0) == STEP;
        let last = events.last().filter(|_| is_full);
        let next = last.map_or(Stage::Entries(None), |last| Stage::Events(Some(*last)));
        let erased = Erased {
            payloads: events.len() as u64,
            responses,
            deliveries: deliveries.len() as u64,
            attempts,
            ..Erased::default()
        };
        Ok((erased, Some(next)))
    }

    fn erase_entries(&self, tx: &mut Tx, before: Option<AuditId>) -> Result<(Erased, Option<Stage>), Error> {
        let entries = log::about(tx, &self.account.to_string(), before, ENTRIES)?;
        let is_full = i64::try_from(entries.len()).unwrap_or(0) == ENTRIES;
        let next = entries.last().filter(|_| is_full).map(|last| Stage::Entries(Some(last.id)));
        let changed = entries.into_iter().filter_map(|entry| {
            let detail = erased(&entry.detail);
            (!is_same(&detail, &entry.detail)).then_some((entry.id, detail))
        });
        let details: Vec<(AuditId, String)> = changed.collect();
        log::set_details(tx, &details)?;
        Ok((Erased { values: details.len() as u64, ..Erased::default() }, next))
    }
}

/// Whether two details say the same, in whatever order.
fn is_same(one: &str, other: &str) -> bool {
    let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    read(one).is_some_and(|one| Some(one) == read(other))
}

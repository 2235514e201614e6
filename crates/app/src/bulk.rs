//! Changes many accounts at once, and undoes that: each the way an operator changes one, all in one transaction.

use std::collections::{BTreeMap, HashMap};

use rapport_domain::account::Account;
use rapport_domain::audit::Action;
use rapport_domain::bulk::{BulkChange, Changed as After, Effect};
use rapport_domain::channel::ChannelRef;
use rapport_domain::difference::Differences;
use rapport_domain::id::{AccountId, BulkId};
use rapport_domain::pipeline::{Source, Status};
use rapport_domain::right::Right;
use rapport_store::account::Edit;
use rapport_store::{Tx, account, bulk_change, channel};
use serde_json::{Value, json};

use crate::access::Needs;
use crate::account::{attribution, record_change};
use crate::audit;
use crate::command::{Command, Context};
use crate::error::Error;
use crate::outbox::Outbox;

const NEEDS: Needs = Needs::Right(Right::Work);

pub struct ChangeAccounts(pub BulkChange);

/// The outcome of a change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changed {
    /// Undoes it, if anything changed.
    pub bulk: Option<BulkId>,
    pub changed: usize,
    /// Accounts that were as the change wants them already.
    pub same: usize,
    /// Accounts that can't be changed that way.
    pub refused: usize,
    /// Accounts that were deleted in the meantime.
    pub missed: usize,
}

impl Command for ChangeAccounts {
    type Reply = Changed;
    const NEEDS: Needs = NEEDS;

    fn weight(&self) -> usize {
        self.0.accounts.len()
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Changed, Error> {
        let attribution = attribution(tx, self.0.promo_code.as_ref())?;
        let found = account::lock(tx, &self.0.accounts)?;
        let mut reply = Changed { missed: self.0.accounts.len() - found.len(), ..Changed::default() };
        let mut outbox = Outbox::default();
        let (mut pairs, mut kept) = (Vec::new(), Vec::new());
        for before in found {
            match self.0.effect(&before, attribution.as_ref(), cx.settings(), cx.now) {
                Effect::Same => reply.same += 1,
                Effect::Refused(_) => reply.refused += 1,
                Effect::Changes(changed) => {
                    let After { after, moved, differences } = *changed;
                    if let Some(step) = moved {
                        outbox.moved(cx, &after, step, Source::Operator, self.0.note.as_deref());
                    }
                    outbox.updated(cx, &before, &after, Source::Operator);
                    kept.push((after.id, differences));
                    pairs.push((before, after));
                }
            }
        }
        reply.changed = pairs.len();
        if !pairs.is_empty() {
            let id = cx.id();
            bulk_change::insert(tx, id, &kept)?;
            write(tx, cx, &pairs, outbox, self.0.only_moves())?;
            reply.bulk = Some(id);
        }
        Ok(reply)
    }
}

/// Undoes a change. What somebody has changed since stays.
pub struct UndoChange(pub BulkId);

/// The outcome of an undo.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Undone {
    /// False if it was undone already, or can't be any more.
    pub is_known: bool,
    pub restored: usize,
    /// Accounts that were changed or deleted in the meantime.
    pub kept: usize,
}

impl Command for UndoChange {
    type Reply = Undone;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Undone, Error> {
        let changes: HashMap<AccountId, Differences> = bulk_change::take(tx, self.0)?.into_iter().collect();
        let ids: Vec<AccountId> = changes.keys().copied().collect();
        let found = account::lock(tx, &ids)?;
        let channels = channels(tx)?;
        let mut reply = Undone { is_known: !ids.is_empty(), restored: 0, kept: ids.len() - found.len() };
        let (mut outbox, mut pairs) = (Outbox::default(), Vec::new());
        let mut only_moves = true;
        for before in found {
            let mut after = before.clone();
            let reverted = changes[&before.id].revert(&mut after, &channels, cx.settings(), cx.now);
            reply.kept += usize::from(reverted.kept > 0);
            if reverted.restored == 0 {
                continue;
            }
            if let Some(step) = reverted.moved {
                outbox.moved(cx, &after, step, Source::Operator, None);
            }
            only_moves &= reverted.moved.is_some();
            outbox.updated(cx, &before, &after, Source::Operator);
            pairs.push((before, after));
        }
        reply.restored = pairs.len();
        if !pairs.is_empty() {
            write(tx, cx, &pairs, outbox, only_moves)?;
        }
        Ok(reply)
    }
}

/// Writes accounts with what follows from their change.
fn write(
    tx: &mut Tx,
    cx: &Context,
    pairs: &[(Account, Account)],
    outbox: Outbox,
    only_moves: bool,
) -> Result<(), Error> {
    let edits: Vec<Edit> = pairs.iter().map(|(before, after)| Edit { before, after }).collect();
    account::update(tx, &edits)?;
    cx.wake_cadence(tx);
    outbox.write(tx, cx)?;
    if only_moves {
        return Ok(audit::record(tx, cx, Action::AccountMovedInBulk, None, &summary(&edits))?);
    }
    for edit in edits {
        record_change(tx, cx, edit)?;
    }
    Ok(())
}

fn channels(tx: &mut Tx) -> Result<Vec<ChannelRef>, Error> {
    let channels = channel::list(tx)?.into_iter();
    Ok(channels.map(|channel| ChannelRef { id: channel.id, name: channel.name }).collect())
}

/// How many accounts moved, and how many were in each stage before and after. Each account's history has its move.
fn summary(edits: &[Edit]) -> Value {
    let count = |statuses: &mut dyn Iterator<Item = Status>| {
        statuses.fold(BTreeMap::<&str, u64>::new(), |mut counts, status| {
            *counts.entry(status.as_str()).or_default() += 1;
            counts
        })
    };
    let from = count(&mut edits.iter().map(|edit| edit.before.status));
    let to = count(&mut edits.iter().map(|edit| edit.after.status));
    json!({ "accounts": edits.len(), "status": { "from": from, "to": to } })
}

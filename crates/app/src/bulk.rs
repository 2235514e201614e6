//! Moves many accounts at once: each the way an operator moves one, all in one transaction.

use std::collections::BTreeMap;

use rapport_domain::account::Mover;
use rapport_domain::audit::Action;
use rapport_domain::bulk::{BulkMove, Wanted};
use rapport_domain::id::AccountId;
use rapport_domain::pipeline::{Source, Status, Trigger};
use rapport_domain::right::Right;
use rapport_store::account::Edit;
use rapport_store::{Tx, account};
use serde_json::{Value, json};

use crate::access::Needs;
use crate::audit;
use crate::command::{Command, Context};
use crate::error::Error;
use crate::outbox::Outbox;

pub struct MoveAccounts(pub BulkMove);

/// The outcome of a bulk move.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Moved {
    /// The accounts that moved, each with its previous status.
    pub moved: Vec<(AccountId, Status)>,
    /// Accounts that already had the status.
    pub stayed: usize,
    /// Accounts that were deleted or moved elsewhere in the meantime.
    pub missed: usize,
}

impl Command for MoveAccounts {
    type Reply = Moved;
    const NEEDS: Needs = Needs::Right(Right::Work);

    fn weight(&self) -> usize {
        self.0.moves.len()
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Moved, Error> {
        let ids: Vec<AccountId> = self.0.moves.iter().map(|wanted| wanted.account).collect();
        let found = account::lock(tx, &ids)?;
        let mut reply = Moved { missed: ids.len() - found.len(), ..Moved::default() };
        let mut outbox = Outbox::default();
        let mut changed = Vec::new();
        for before in &found {
            let Some(wanted) = self.0.moves.iter().find(|wanted| wanted.account == before.id) else {
                continue;
            };
            let Wanted { to, only_from, .. } = *wanted;
            if only_from.is_some_and(|from| from != before.status) {
                reply.missed += 1;
                continue;
            }
            let mut account = before.clone();
            let step = account.trigger(Trigger::Set(to), Mover::Operator, cx.settings(), cx.now);
            let Some(step) = step else {
                reply.stayed += 1;
                continue;
            };
            outbox.moved(cx, &account, step, Source::Operator, self.0.note.as_deref());
            reply.moved.push((account.id, step.from));
            changed.push((before, account));
        }
        if !changed.is_empty() {
            let edits: Vec<Edit> = changed.iter().map(|(before, after)| Edit { before, after }).collect();
            account::update(tx, &edits)?;
            cx.wake_cadence(tx);
            outbox.write(tx, cx)?;
            audit::record(tx, cx, Action::AccountMovedInBulk, None, &summary(&edits))?;
        }
        Ok(reply)
    }
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

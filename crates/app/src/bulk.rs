//! Moves many accounts at once: each the way an operator moves one, all in one transaction.

use rapport_domain::account::{Account, Mover};
use rapport_domain::bulk::{BulkMove, Wanted};
use rapport_domain::id::AccountId;
use rapport_domain::member::Role;
use rapport_domain::pipeline::{Source, Status, Trigger};
use rapport_store::{Tx, account};

use crate::access::Needs;
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
    const NEEDS: Needs = Needs::Role(Role::Member);

    fn weight(&self) -> usize {
        self.0.moves.len()
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Moved, Error> {
        let ids: Vec<AccountId> = self.0.moves.iter().map(|wanted| wanted.account).collect();
        let mut found = account::lock(tx, &ids)?;
        let mut reply = Moved { missed: ids.len() - found.len(), ..Moved::default() };
        let mut outbox = Outbox::default();
        let mut changed: Vec<&Account> = Vec::new();
        for account in &mut found {
            let Some(wanted) = self.0.moves.iter().find(|wanted| wanted.account == account.id) else {
                continue;
            };
            let Wanted { to, only_from, .. } = *wanted;
            if only_from.is_some_and(|from| from != account.status) {
                reply.missed += 1;
                continue;
            }
            let step = account.trigger(Trigger::Set(to), Mover::Operator, cx.settings(), cx.now);
            let Some(step) = step else {
                reply.stayed += 1;
                continue;
            };
            outbox.moved(cx, account, step, Source::Operator, self.0.note.as_deref());
            reply.moved.push((account.id, step.from));
            changed.push(account);
        }
        if !changed.is_empty() {
            account::update(tx, &changed)?;
            cx.wake_cadence(tx);
            outbox.write(tx, cx)?;
        }
        Ok(reply)
    }
}

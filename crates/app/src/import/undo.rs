//! The undo of an import: every account it changed, in order of their ids.

use std::collections::HashMap;

use rapport_domain::account::Account;
use rapport_domain::channel::ChannelRef;
use rapport_domain::id::{AccountId, ImportId};
use rapport_domain::import::{Import, STEP_ROWS, State};
use rapport_domain::pipeline::Source;
use rapport_store::account::Edit;
use rapport_store::import_data::{self, Changed};
use rapport_store::{Lane, Tx, account, account_address, channel, import};

use super::patiently;
use crate::App;
use crate::access::{Access, Needs};
use crate::command::{Command, Context};
use crate::error::Error;
use crate::outbox::Outbox;

/// Accounts removed per transaction: nothing else of the company runs at the same time.
const REMOVED_AT_ONCE: usize = 20;

/// Runs one step of an undo.
pub async fn step(app: &App, access: &Access, import: &Import, runner: i64) -> Result<Option<Import>, Error> {
    let (id, after) = (import.id, import.undo.after);
    let limit = i64::try_from(STEP_ROWS).unwrap_or(1);
    let read =
        app.read(access, Needs::Server, move |snapshot, _| import_data::changes(snapshot, id, after, limit));
    let mut changes = read.await?.reply;
    // A step either restores or removes: it takes as many changes as share the first one's kind.
    let created = changes.first().is_some_and(|change| change.created);
    let alike = changes.iter().take_while(|change| change.created == created).count();
    changes.truncate(alike.min(if created { REMOVED_AT_ONCE } else { STEP_ROWS }));
    let place = Place { id, runner, after };
    if created {
        patiently(app, access, Remove { place, changes }).await
    } else {
        patiently(app, access, Restore { place, changes }).await
    }
}

/// The position of the undo when the changes were read.
#[derive(Clone)]
struct Place {
    id: ImportId,
    runner: i64,
    after: Option<AccountId>,
}

impl Place {
    /// The import, if it is still at that position and this runner may continue it.
    fn take(&self, tx: &mut Tx, cx: &Context) -> Result<Option<Import>, Error> {
        let Some(mut import) = import::lock(tx, self.id)? else { return Ok(None) };
        let is_there = import.state == State::Undoing && import.undo.after == self.after;
        if !is_there || !import.may_take(self.runner, cx.now) {
            return Ok(None);
        }
        import.take(self.runner, cx.now);
        Ok(Some(import))
    }
}

/// Restores the accounts' fields; when none are left, the undo is done.
#[derive(Clone)]
struct Restore {
    place: Place,
    changes: Vec<Changed>,
}

impl Command for Restore {
    type Reply = Option<Import>;
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Background;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Option<Import>, Error> {
        let Some(mut import) = self.place.take(tx, cx)? else { return Ok(None) };
        let cx = &cx.acting_as(import.actor.clone());
        let mut found = locked(tx, &self.changes)?;
        let channels = channels(tx)?;
        let (mut outbox, mut changed, mut renamed) = (Outbox::default(), Vec::new(), Vec::new());
        for change in &self.changes {
            import.undo.done += 1;
            import.undo.after = Some(change.account);
            let Some(before) = found.remove(&change.account) else { continue };
            let mut account = before.clone();
            let reverted = change.differences.revert(&mut account, &channels, cx.settings(), cx.now);
            for address in change.differences.emails() {
                account_address::delete(tx, &address, account.id)?;
            }
            if let Some(step) = reverted.moved {
                outbox.moved(cx, &account, step, Source::Import, None);
            }
            outbox.updated(cx, &before, &account, Source::Import);
            import.undo.restored += i64::from(reverted.kept == 0);
            import.undo.kept += i64::from(reverted.kept > 0);
            if reverted.renamed {
                renamed.push(account.clone());
            }
            if account != before {
                changed.push((before, account));
            }
        }
        let edits: Vec<Edit> = changed.iter().map(|(before, after)| Edit { before, after }).collect();
        account::update(tx, &edits)?;
        if !edits.is_empty() {
            // An account may be overdue again.
            cx.wake_cadence(tx);
        }
        account::replace_words_of(tx, &renamed.iter().collect::<Vec<_>>())?;
        outbox.write(tx, cx)?;
        if self.changes.is_empty() {
            import.finish_undo(cx.now);
        }
        import::update_progress(tx, &import)?;
        Ok(Some(import))
    }
}

/// Removes accounts that the import created and nobody has edited since.
#[derive(Clone)]
struct Remove {
    place: Place,
    changes: Vec<Changed>,
}

impl Command for Remove {
    type Reply = Option<Import>;
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Background;
    /// No ingest may count for an account that is being deleted.
    const EXCLUSIVE: bool = true;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Option<Import>, Error> {
        let Some(mut import) = self.place.take(tx, cx)? else { return Ok(None) };
        let cx = &cx.acting_as(import.actor.clone());
        let found = locked(tx, &self.changes)?;
        let mut outbox = Outbox::default();
        let ids: Vec<AccountId> = self.changes.iter().map(|change| change.account).collect();
        let spoken_to = import_data::spoken_to(tx, &ids)?;
        for change in &self.changes {
            import.undo.done += 1;
            import.undo.after = Some(change.account);
            let Some(account) = found.get(&change.account) else { continue };
            // The last contact may come from the file; one that was made since is in `spoken_to`.
            let is_untouched = account.updated_at == change.mark
                && account.first_seen_at.is_none()
                && !spoken_to.contains(&account.id);
            if is_untouched {
                account::delete(tx, account.id, cx.now)?;
                outbox.deleted(cx, account, Source::Import);
                import.undo.removed += 1;
            } else {
                import.undo.kept += 1;
            }
        }
        outbox.write(tx, cx)?;
        import::update_progress(tx, &import)?;
        Ok(Some(import))
    }
}

fn locked(tx: &mut Tx, changes: &[Changed]) -> Result<HashMap<AccountId, Account>, Error> {
    let ids: Vec<AccountId> = changes.iter().map(|change| change.account).collect();
    Ok(account::lock(tx, &ids)?.into_iter().map(|account| (account.id, account)).collect())
}

fn channels(tx: &mut Tx) -> Result<Vec<ChannelRef>, Error> {
    let channels = channel::list(tx)?.into_iter();
    Ok(channels.map(|channel| ChannelRef { id: channel.id, name: channel.name }).collect())
}

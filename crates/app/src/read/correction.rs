//! What was logged on an account and can be corrected, and what was corrected.

use rapport_domain::correction::content::Correctable;
use rapport_domain::correction::logged::Logged;
use rapport_domain::correction::{Correction, Mark};
use rapport_domain::id::{AccountId, CorrectionId, NoteId};
use rapport_domain::note::Note;
use rapport_store::{Error, Snapshot, correction, note};

use crate::correction::Target;
use crate::read::Page;
use crate::read::account::of_existing;

pub use rapport_store::correction::{Edits, last_edits};

/// An entry, with its last edit.
pub fn entry(snapshot: &mut Snapshot, target: Target) -> Result<Option<(Logged, Option<Mark>)>, Error> {
    let Some(logged) = target.find(snapshot)? else { return Ok(None) };
    let edits = last_edits(snapshot, logged.account(), &[logged.entry()])?;
    Ok(Some((logged, edits.into_values().next())))
}

/// These entries of an account, with their last edits.
pub fn with_edits<T: Correctable>(
    snapshot: &mut Snapshot,
    account: AccountId,
    page: Page<T>,
) -> Result<(Page<T>, Edits), Error> {
    let entries: Vec<_> = page.items.iter().map(Correctable::entry).collect();
    let edits = last_edits(snapshot, account, &entries)?;
    Ok((page, edits))
}

/// Its notes, newest first.
pub fn notes(
    snapshot: &mut Snapshot,
    account: AccountId,
    before: Option<NoteId>,
    limit: i64,
) -> Result<Option<(Page<Note>, Edits)>, Error> {
    of_existing(snapshot, account, |snapshot| {
        let page = note::of_account(snapshot, account, before, limit)?;
        with_edits(snapshot, account, page)
    })
}

/// Its corrections, newest first.
pub fn corrections(
    snapshot: &mut Snapshot,
    account: AccountId,
    before: Option<CorrectionId>,
    limit: i64,
) -> Result<Option<Page<Correction>>, Error> {
    of_existing(snapshot, account, |snapshot| correction::of_account(snapshot, account, before, limit))
}

//! One account: its page, and the lists below it.

use rapport_domain::account::Account;
use rapport_domain::contact::Contact;
use rapport_domain::conversation::Conversation;
use rapport_domain::correction::Entry;
use rapport_domain::correction::content::Correctable as _;
use rapport_domain::correction::logged::Logged;
use rapport_domain::history::HistoryEntry;
use rapport_domain::id::{AccountId, ContactId, HistoryId};
use rapport_domain::note::{MAX_PINNED, Note};
use rapport_domain::time::Time;
use rapport_store::{Error, Snapshot, account, clients, contact, conversation, history, note};

use crate::account_address;
use crate::correction::Target;
use crate::read::correction::{Edits, last_edits, with_edits};
use crate::read::pulse::{self, Card};
use crate::read::timeline::{self, Part, Stretch};
use crate::read::{Page, Viewer};

pub use rapport_store::account::get as one;
pub use rapport_store::account_address::Known;
pub use rapport_store::account_site::find as of_site;

/// How many conversations the page lists and its form offers.
const CONVERSATIONS: i64 = 10;
/// How many entries of the timeline the page shows.
const ENTRIES: i64 = 25;

/// Everything an account's page shows.
pub struct AccountPage {
    pub account: Account,
    /// Explains the due date.
    pub why: String,
    pub addresses: Vec<Known>,
    pub conversations: Vec<Conversation>,
    pub pulse: Card,
    pub timeline: Stretch,
    /// The newest ones that are pinned.
    pub pinned: Vec<Note>,
    /// The last edits of everything that is shown.
    pub edits: Edits,
    /// The entry that is being edited.
    pub editing: Option<Logged>,
}

/// What a page is asked to show.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    pub part: Part,
    /// An entry to edit.
    pub entry: Option<Entry>,
}

pub fn page(
    snapshot: &mut Snapshot,
    viewer: &Viewer,
    id: AccountId,
    asked: Asked,
) -> Result<Option<AccountPage>, Error> {
    let Some(account) = one(snapshot, id)? else { return Ok(None) };
    let timeline = timeline::stretch(snapshot, id, asked.part, ENTRIES)?;
    let pinned = note::pinned(snapshot, id, MAX_PINNED)?;
    let mut entries = timeline.entries();
    entries.extend(pinned.iter().map(Note::entry));
    let editing = match asked.entry {
        Some(entry) => Target::OfAccount(id, entry).find(snapshot)?,
        None => None,
    };
    Ok(Some(AccountPage {
        why: clients::why(snapshot, &account, viewer.settings(), viewer.now)?,
        addresses: account_address::all(snapshot, id)?,
        conversations: conversation::of_account(snapshot, id, None, CONVERSATIONS)?.items,
        pulse: pulse::card(snapshot, viewer, id)?,
        edits: last_edits(snapshot, id, &entries)?,
        timeline,
        pinned,
        editing,
        account,
    }))
}

/// Answers a question about an account; `None` if there is no such account.
pub(super) fn of_existing<T>(
    snapshot: &mut Snapshot,
    id: AccountId,
    read: impl FnOnce(&mut Snapshot) -> Result<T, Error>,
) -> Result<Option<T>, Error> {
    if account::existing(snapshot, &[id])?.is_empty() {
        return Ok(None);
    }
    read(snapshot).map(Some)
}

/// Its moves, newest first.
pub fn history(
    snapshot: &mut Snapshot,
    id: AccountId,
    before: Option<HistoryId>,
    limit: i64,
) -> Result<Option<Page<HistoryEntry>>, Error> {
    of_existing(snapshot, id, |snapshot| history::of_account(snapshot, id, before, limit))
}

/// The contacts made with it, latest first, and their last edits.
pub fn contacts(
    snapshot: &mut Snapshot,
    id: AccountId,
    before: Option<(Time, ContactId)>,
    limit: i64,
) -> Result<Option<(Page<Contact>, Edits)>, Error> {
    of_existing(snapshot, id, |snapshot| {
        let page = contact::of_account(snapshot, id, before, limit)?;
        with_edits(snapshot, id, page)
    })
}

/// Every address it is known by.
pub fn addresses(snapshot: &mut Snapshot, id: AccountId) -> Result<Option<Vec<Known>>, Error> {
    of_existing(snapshot, id, |snapshot| account_address::all(snapshot, id))
}

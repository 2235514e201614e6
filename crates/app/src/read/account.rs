//! One account: its page, and the lists below it.

use rapport_domain::account::Account;
use rapport_domain::contact::Contact;
use rapport_domain::conversation::Conversation;
use rapport_domain::history::HistoryEntry;
use rapport_domain::id::{AccountId, ContactId, HistoryId};
use rapport_domain::time::Time;
use rapport_store::{Error, Snapshot, account, clients, contact, conversation, history};

use crate::account_address;
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
}

pub fn page(
    snapshot: &mut Snapshot,
    viewer: &Viewer,
    id: AccountId,
    part: Part,
) -> Result<Option<AccountPage>, Error> {
    let Some(account) = one(snapshot, id)? else { return Ok(None) };
    Ok(Some(AccountPage {
        why: clients::why(snapshot, &account, viewer.settings(), viewer.now)?,
        addresses: account_address::all(snapshot, id)?,
        conversations: conversation::of_account(snapshot, id, None, CONVERSATIONS)?.items,
        pulse: pulse::card(snapshot, viewer, id)?,
        timeline: timeline::stretch(snapshot, id, part, ENTRIES)?,
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

/// The contacts made with it, latest first.
pub fn contacts(
    snapshot: &mut Snapshot,
    id: AccountId,
    before: Option<(Time, ContactId)>,
    limit: i64,
) -> Result<Option<Page<Contact>>, Error> {
    of_existing(snapshot, id, |snapshot| contact::of_account(snapshot, id, before, limit))
}

/// Every address it is known by.
pub fn addresses(snapshot: &mut Snapshot, id: AccountId) -> Result<Option<Vec<Known>>, Error> {
    of_existing(snapshot, id, |snapshot| account_address::all(snapshot, id))
}

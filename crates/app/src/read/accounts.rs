//! Lists of accounts: the page with its filters, the search, and what the form of a new account suggests.

use rapport_domain::account::Account;
use rapport_domain::caps;
use rapport_domain::channel::Channel;
use rapport_domain::saved_view::SavedView;
use rapport_domain::search::query_words;
use rapport_domain::time::Time;
use rapport_store::account_list::{AccountFilter, count_capped};
use rapport_store::{Error, Query as _, Snapshot, channel, saved_view, stage_totals};

use crate::read::{CappedCount, Viewer};

pub use rapport_store::account_field::names as field_names;
pub use rapport_store::account_list::{AccountPage, By, Cursor, ListAccounts, Sort};

/// How many custom fields the menus of the list offer. A query may name others.
const OFFERED_FIELDS: i64 = 40;
/// How many promo codes and custom fields the form of a new account suggests, and how many codes the list offers.
const SUGGESTED: i64 = 100;
/// How many accounts the search finds.
const SEARCHED: i64 = 8;

/// A page of accounts.
pub fn list(snapshot: &mut Snapshot, question: &ListAccounts) -> Result<AccountPage, Error> {
    question.run(snapshot)
}

/// Everything the page of accounts shows.
pub struct ListPage {
    pub page: AccountPage,
    pub count: CappedCount,
    /// When they were counted, unless that was just now.
    pub as_of: Option<Time>,
    /// By name.
    pub channels: Vec<Channel>,
    pub fields: Vec<String>,
    pub views: Vec<SavedView>,
    /// Promo codes that aren't archived, each with the name of its channel.
    pub codes: Vec<(String, String)>,
}

/// Without a question it lists nothing.
pub fn list_page(snapshot: &mut Snapshot, question: Option<&ListAccounts>) -> Result<ListPage, Error> {
    let (page, count, as_of) = match question {
        Some(question) => {
            let page = list(snapshot, question)?;
            let (count, as_of) = count(snapshot, question, &page)?;
            (page, count, as_of)
        }
        None => (nothing(), CappedCount { count: 0, capped: false }, None),
    };
    let mut channels = channel::list(snapshot)?;
    channels.sort_by_key(|channel| channel.name.to_lowercase());
    let fields = field_names(snapshot, None, OFFERED_FIELDS)?.items;
    let codes = channel::all_codes(snapshot)?.into_iter().filter(|code| code.archived_at.is_none());
    let codes = codes.filter_map(|code| {
        let channel = channels.iter().find(|channel| channel.id == code.channel)?;
        Some((code.code.as_str().to_owned(), channel.name.clone()))
    });
    let codes = codes.take(usize::try_from(SUGGESTED).unwrap_or(0)).collect();
    Ok(ListPage { page, count, as_of, channels, fields, views: saved_view::list(snapshot)?, codes })
}

fn count(
    snapshot: &mut Snapshot,
    question: &ListAccounts,
    page: &AccountPage,
) -> Result<(CappedCount, Option<Time>), Error> {
    let ListAccounts { filter, cursor, limit, now, .. } = question;
    if filter.q.is_some() && (cursor.is_some() || page.next.is_some()) {
        // Counting the matches of a search would read every account that has one of the words.
        return Ok((CappedCount { count: *limit, capped: true }, None));
    }
    // Large stages have the figures of the board.
    if let Some(stages) = filter.only_stages()
        && let Some((count, at)) = stage_totals::more_than(snapshot, &stages, caps::IN_A_LIST)?
    {
        return Ok((CappedCount { count, capped: false }, Some(at)));
    }
    Ok((count_capped(snapshot, filter, *now, caps::IN_A_LIST)?, None))
}

/// A page without accounts.
pub(super) fn nothing() -> AccountPage {
    AccountPage { items: Vec::new(), next: None }
}

/// The accounts that the words of a search match, newest first. Without words, none.
pub fn search(snapshot: &mut Snapshot, viewer: &Viewer, text: String) -> Result<Vec<Account>, Error> {
    if query_words(&text).is_empty() {
        return Ok(Vec::new());
    }
    let filter = AccountFilter { q: Some(text), ..AccountFilter::default() };
    let question =
        ListAccounts { filter, sort: Sort::default(), cursor: None, limit: SEARCHED, now: viewer.now };
    Ok(list(snapshot, &question)?.items)
}

/// What the form of a new account suggests.
pub struct Suggestions {
    /// Promo codes that are not archived.
    pub codes: Vec<String>,
    /// Names of custom fields.
    pub fields: Vec<String>,
}

pub fn suggestions(snapshot: &mut Snapshot) -> Result<Suggestions, Error> {
    let fields = field_names(snapshot, None, SUGGESTED)?.items;
    let live = channel::all_codes(snapshot)?.into_iter().filter(|code| code.archived_at.is_none());
    let codes = live.map(|code| code.code.as_str().to_owned());
    Ok(Suggestions { codes: codes.take(usize::try_from(SUGGESTED).unwrap_or(0)).collect(), fields })
}

//! The Clients page: tracked accounts by due date, each with a line that explains the date, and their number.
//!
//! A page is a merge of index ranges; then its accounts are loaded, and how each was last contacted.

#[cfg(test)]
pub(crate) mod plans;

use std::collections::HashMap;

use rapport_domain::account::Account;
use rapport_domain::cadence::{self, DUE_SOON_DAYS, Due, LastContact, Means};
use rapport_domain::caps;
use rapport_domain::company::Settings;
use rapport_domain::id::AccountId;
use rapport_domain::invalid::Fault;
use rapport_domain::time::{Day, Time};

pub use crate::account_list::CappedCount;
use crate::account_list::{self, Sql};
use crate::cadence_ranges::{self, Derived, Which, Window};
use crate::engine::Query;
use crate::error::Error;
use crate::page::{DEFAULT_LIMIT, MAX_LIMIT};
use crate::statement::statements;
use crate::tx::Snapshot;
use crate::value::{Row, Value};
use crate::{company, contact};

statements! {
    company LAST_CONTACTS = "SELECT a.id, k.kind, k.actor_kind, k.actor_name FROM account a \
                             JOIN contact k /*INDEXED BY contact_by_time*/ ON k.company = a.company AND k.account = a.id \
                             AND k.occurred_at = a.last_contact_at WHERE a.company = $1 AND a.id = ANY($2)";
    company LAST_MESSAGES = "SELECT a.id, CAST(NULL AS TEXT), m.author_kind, m.author_name FROM account a \
                             JOIN message m /*INDEXED BY message_by_account*/ ON m.company = a.company AND m.account = a.id \
                             AND m.occurred_at = a.last_contact_at AND m.direction = 'outbound' \
                             WHERE a.company = $1 AND a.id = ANY($2)";
}

/// Counting stops here.
pub const COUNT_CAP: i64 = caps::IN_A_LIST;

/// Which tracked accounts, and in which order. Ties are ordered by id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tab {
    /// Due and not snoozed, most overdue first.
    Overdue,
    /// Due within the next days and not snoozed, soonest first.
    DueSoon,
    /// Snoozed, due or not, by the end of the snooze.
    Snoozed,
    /// All, by due date.
    Tracked,
}

impl Tab {
    pub const ALL: [Self; 4] = [Self::Overdue, Self::DueSoon, Self::Snoozed, Self::Tracked];

    /// The API's name for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Overdue => "overdue",
            Self::DueSoon => "due_soon",
            Self::Snoozed => "snoozed",
            Self::Tracked => "tracked",
        }
    }

    pub fn parse(text: &str) -> Result<Self, Fault> {
        let unknown = || Fault::not_one_of("unknown_tab", Self::ALL.map(Self::as_str));
        Self::ALL.into_iter().find(|tab| tab.as_str() == text).ok_or_else(unknown)
    }
}

/// Where a page ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The due date in microseconds; for a snooze, its day.
    pub key: i64,
    pub account: AccountId,
}

/// A page of a tab.
#[derive(Debug, Clone, Copy)]
pub struct ListClients {
    pub tab: Tab,
    /// Where the previous page ended, in the same tab.
    pub after: Option<Place>,
    /// Clamped to 1 to `MAX_LIMIT`.
    pub limit: i64,
    /// The time at which due dates are evaluated.
    pub now: Time,
}

/// The clients of a page, and the start of the next one if there is more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientPage {
    pub items: Vec<Client>,
    pub next: Option<Place>,
}

/// A tracked account and its cadence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    pub account: Account,
    pub due: Due,
    /// Explains the due date in one line.
    pub why: String,
}

impl Query for ListClients {
    type Reply = ClientPage;

    fn run(&self, snapshot: &mut Snapshot) -> Result<ClientPage, Error> {
        let settings = settings(snapshot)?;
        let limit = usize::try_from(self.limit.clamp(1, MAX_LIMIT)).unwrap_or(1);
        let mut places = self.places(snapshot, &Derived::of(&settings, self.now))?;
        let more = places.len() > limit;
        places.truncate(limit);
        let next = places.last().copied().filter(|_| more);
        let ids: Vec<AccountId> = places.iter().map(|place| place.account).collect();
        let accounts = account_list::load(snapshot, &ids)?;
        let mut last = last_contacts(snapshot, &accounts)?;
        let client = |account: Account| {
            let last = last.remove(&account.id);
            let why = cadence::why(&account.clock(), &settings, last.as_ref(), self.now);
            Client { due: account.due(&settings, self.now), account, why }
        };
        Ok(ClientPage { items: accounts.into_iter().map(client).collect(), next })
    }
}

impl ListClients {
    /// The keys of the page and of at least one more account, in order.
    fn places(&self, snapshot: &mut Snapshot, derived: &Derived) -> Result<Vec<Place>, Error> {
        let date = self.after.map(|place| Day::from_number(place.key).to_string());
        let sql = self.sql(derived, date.as_deref());
        let rows = snapshot.query_text(sql.text(), sql.values())?;
        let read = if self.tab == Tab::Snoozed { read_snoozed } else { read_due };
        rows.into_iter().map(read).collect()
    }

    fn sql<'a>(&'a self, derived: &'a Derived, date: Option<&'a str>) -> Sql<'a> {
        // One of two fixed limits, so that the planner sees a constant and there are few distinct statements.
        let fetch = 1 + if self.limit <= DEFAULT_LIMIT { DEFAULT_LIMIT } else { MAX_LIMIT };
        let after = self.after.as_ref();
        match ranges(self.tab, self.now) {
            None => derived.asleep(date.zip(after.map(|place| &place.account)), fetch),
            Some((which, window)) => {
                let after = after.map(|Place { key, account }| cadence_ranges::Place {
                    due_at: Time::from_micros(*key),
                    account,
                });
                derived.ordered(which, window, after, fetch)
            }
        }
    }
}

/// Explains the due date of one account in one line.
pub fn why(
    snapshot: &mut Snapshot,
    account: &Account,
    settings: &Settings,
    now: Time,
) -> Result<String, Error> {
    let last = last_contacts(snapshot, std::slice::from_ref(account))?.remove(&account.id);
    Ok(cadence::why(&account.clock(), settings, last.as_ref(), now))
}

/// The ranges of a tab that is ordered by due date; the Snoozed tab isn't.
fn ranges(tab: Tab, now: Time) -> Option<(&'static [Which], Window)> {
    match tab {
        Tab::Overdue => Some((Which::REMINDABLE, Window::until(now))),
        Tab::DueSoon => {
            let window = Window { until: Some(now.plus_days(DUE_SOON_DAYS)), ..Window::after(now) };
            Some((Which::REMINDABLE, window))
        }
        Tab::Snoozed => None,
        Tab::Tracked => Some((Which::ALL, Window::ALL)),
    }
}

/// How many clients a tab has, up to `COUNT_CAP`.
pub fn count(snapshot: &mut Snapshot, tab: Tab, now: Time) -> Result<CappedCount, Error> {
    count_up_to(snapshot, tab, now, COUNT_CAP)
}

/// How many clients a tab has, up to `cap`.
pub fn count_up_to(snapshot: &mut Snapshot, tab: Tab, now: Time, cap: i64) -> Result<CappedCount, Error> {
    let derived = Derived::of(&settings(snapshot)?, now);
    let sql = count_sql(&derived, tab, now, cap);
    let count = account_list::count(&sql, snapshot)?;
    Ok(CappedCount { count: count.min(cap), capped: count > cap })
}

fn count_sql(derived: &Derived, tab: Tab, now: Time, cap: i64) -> Sql<'_> {
    let mut sql = Sql::default();
    let (which, window) = ranges(tab, now).unwrap_or((&[Which::Asleep], Window::ALL));
    derived.ids(&mut sql, which, window, Some(cap + 1));
    sql.limit(cap + 1);
    sql
}

fn settings(snapshot: &mut Snapshot) -> Result<Settings, Error> {
    let company =
        company::get(snapshot)?.ok_or_else(|| Error::fault("the company of the clients does not exist"))?;
    Ok(company.settings)
}

fn read_due(mut row: Row) -> Result<Place, Error> {
    Ok(Place { account: row.take()?, key: row.take()? })
}

fn read_snoozed(mut row: Row) -> Result<Place, Error> {
    let account = row.take()?;
    let date: jiff::civil::Date =
        row.take::<String>()?.parse().map_err(|_| Error::fault("a snooze is not a date"))?;
    Ok(Place { account, key: Day::of(date).number() })
}

/// How these accounts were last contacted. If a contact and a message have the same time, the contact is
/// preferred because it says more.
fn last_contacts(
    snapshot: &mut Snapshot,
    accounts: &[Account],
) -> Result<HashMap<AccountId, LastContact>, Error> {
    let contacted = accounts.iter().filter(|account| account.last_contact_at.is_some());
    let keys: Vec<Value> = contacted.map(|account| Value::from(&account.id)).collect();
    let mut found = HashMap::new();
    for statement in [&LAST_MESSAGES, &LAST_CONTACTS] {
        for row in snapshot.query_keys(statement, &[], &keys)? {
            let (account, last) = read_last(row)?;
            found.insert(account, last);
        }
    }
    Ok(found)
}

fn read_last(mut row: Row) -> Result<(AccountId, LastContact), Error> {
    let account = row.take()?;
    let by = match row.take::<Option<String>>()? {
        Some(kind) => Means::Contact(contact::read_kind(&kind)?),
        None => Means::Message,
    };
    let (who, name): (String, Option<String>) = (row.take()?, row.take()?);
    Ok((account, LastContact { by, person: name.filter(|_| who == "person") }))
}

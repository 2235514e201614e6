//! The account list: filters, sorts, pages. The queries are in `keys`.
//!
//! A page is read in two steps: first the keys of its accounts from an index, then those accounts.

mod column_walk;
mod created_terms;
mod cursor;
mod field_terms;
pub(crate) mod groups;
mod keys;
mod order;
#[cfg(test)]
mod plans;
mod ranges;
mod sort;
mod sql;
pub(crate) mod terms;

use std::collections::HashMap;

use rapport_domain::account::Account;
pub use rapport_domain::audience::Filter as AccountFilter;
use rapport_domain::id::AccountId;
use rapport_domain::time::Time;

pub use self::cursor::{Cursor, NotACursor};
use self::cursor::{Key, Place};
use self::groups::Groups;
use self::keys::Terms;
use self::order::Order;
pub use self::sort::{By, Sort};
pub(crate) use self::sql::{Sql, count};
use crate::account::{read, select_account};
use crate::engine::Query;
use crate::error::Error;
use crate::page::{DEFAULT_LIMIT, MAX_LIMIT};
use crate::statement::statements;
use crate::tx::Snapshot;
use crate::value::{Row, Value};

statements! {
    company BY_IDS = select_account!("WHERE a.company = $1 AND a.id = ANY($2)");
}

/// A page of the list.
#[derive(Debug, Clone)]
pub struct ListAccounts {
    pub filter: AccountFilter,
    pub sort: Sort,
    /// Where the previous page ended; must be from the same sort.
    pub cursor: Option<Cursor>,
    /// Clamped to 1 to `MAX_LIMIT`.
    pub limit: i64,
    /// The time at which overdue is evaluated.
    pub now: Time,
}

/// The accounts of a page, and the start of the next one if there is more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountPage {
    pub items: Vec<Account>,
    pub next: Option<Cursor>,
}

impl Query for ListAccounts {
    type Reply = AccountPage;

    fn run(&self, snapshot: &mut Snapshot) -> Result<AccountPage, Error> {
        let after = self.cursor.as_ref().map(|cursor| cursor.place(self.sort)).transpose()?;
        let limit = usize::try_from(self.limit.clamp(1, MAX_LIMIT)).unwrap_or(1);
        let mut places = self.places(snapshot, after)?;
        let more = places.len() > limit;
        places.truncate(limit);
        let next = places.last().filter(|_| more).map(|last| Cursor::new(self.sort, last.clone()));
        let ids: Vec<AccountId> = places.iter().map(|place| place.id).collect();
        Ok(AccountPage { items: load(snapshot, &ids)?, next })
    }
}

impl ListAccounts {
    /// The keys of the page and of at least one more account, in order.
    fn places(&self, snapshot: &mut Snapshot, after: Option<&Place>) -> Result<Vec<Place>, Error> {
        let terms = Terms::of(&self.filter, self.now, snapshot)?;
        if terms.are_empty() {
            return Ok(Vec::new());
        }
        // One of two fixed limits, so that the planner sees a constant and there are few distinct statements.
        let fetch = 1 + if self.limit <= DEFAULT_LIMIT { DEFAULT_LIMIT } else { MAX_LIMIT };
        let narrow = terms.narrow_source(self.sort, snapshot)?;
        let order = Order { sort: self.sort, after, limit: fetch };
        let groups = Groups::of(self.sort.by, snapshot)?;
        let mut places: Vec<Place> = Vec::new();
        for sql in terms.queries(narrow.as_ref(), order, &groups) {
            if i64::try_from(places.len()).is_ok_and(|found| found < fetch) {
                let rows = snapshot.query_text(sql.text(), sql.values())?;
                let found = rows.into_iter().map(|row| read_place(self.sort, row));
                places.extend(found.collect::<Result<Vec<_>, _>>()?);
            }
        }
        Ok(places)
    }
}

fn read_place(sort: Sort, mut row: Row) -> Result<Place, Error> {
    let id = row.take()?;
    let key = match sort.by {
        By::Created => Key::Id,
        By::Name => Key::Name(row.take()?),
        By::LastSeen => Key::Seen { minute: row.take()?, at: row.take()? },
        By::PromoCode | By::Channel => row.take::<Option<String>>()?.map_or(Key::Missing, Key::Text),
        By::Value => match (row.take()?, row.take()?) {
            (Some(currency), Some(amount)) => Key::Value { currency, amount },
            _ => Key::Missing,
        },
        By::Status | By::FirstSeen | By::LastContact | By::Acquired | By::Updated => {
            row.take::<Option<i64>>()?.map_or(Key::Missing, Key::Number)
        }
    };
    Ok(Place { id, key })
}

/// The accounts with these ids, in the order of the ids.
pub(crate) fn load(snapshot: &mut Snapshot, ids: &[AccountId]) -> Result<Vec<Account>, Error> {
    let keys: Vec<Value> = ids.iter().map(Value::from).collect();
    let rows = snapshot.query_keys(&BY_IDS, &[], &keys)?;
    let mut accounts: HashMap<AccountId, Account> = HashMap::with_capacity(rows.len());
    for row in rows {
        let account = read(row)?;
        accounts.insert(account.id, account);
    }
    Ok(ids.iter().filter_map(|id| accounts.remove(id)).collect())
}

/// The number of accounts in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CappedCount {
    pub count: i64,
    /// Whether there are more than `count`.
    pub capped: bool,
}

/// Counts a list up to `cap`.
pub fn count_capped(
    snapshot: &mut Snapshot,
    filter: &AccountFilter,
    now: Time,
    cap: i64,
) -> Result<CappedCount, Error> {
    let terms = Terms::of(filter, now, snapshot)?;
    if terms.are_empty() {
        return Ok(CappedCount { count: 0, capped: false });
    }
    let (narrow, groups) = (terms.narrow_source(Sort::NEWEST, snapshot)?, Groups::default());
    let mut found = 0;
    for sql in terms.countable(narrow.as_ref(), cap.saturating_add(1), &groups) {
        if found <= cap {
            found += count(&sql, snapshot)?;
        }
    }
    Ok(CappedCount { count: found.min(cap), capped: found > cap })
}

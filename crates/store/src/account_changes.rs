//! The accounts of a company in the order of their last change, for readers that follow them with a cursor. Sample
//! accounts are left out: they aren't for other systems.
//!
//! The order is in a log, `account_change`, that is only added to; an entry counts while its account still has that number.

use rapport_domain::account::Account;
use rapport_domain::id::AccountId;
use rapport_domain::time::Time;
use rapport_domain::tombstone::Tombstone;

use crate::account_list::load;
use crate::change::{Place, Settled};
use crate::error::Error;
use crate::statement::{DeleteMany, statements};
use crate::tx::{Snapshot, Tx};
use crate::value::{Row, Type, Value};
use crate::values;

statements! {
    // The last column is null if the account has another number since, or was deleted.
    company KEYS = "SELECT l.change, l.account, l.at, a.change FROM account_change l LEFT JOIN account a \
                    ON a.company = l.company AND a.id = l.account AND a.change = l.change WHERE l.company = $1 \
                    AND (l.change, l.account) > ($2, $3) AND l.change < $4 ORDER BY l.change, l.account LIMIT $5";
    company DELETED = "SELECT change, account, imported_id, deleted_at FROM account_tombstone \
                       /*INDEXED BY account_tombstone_by_change*/ WHERE company = $1 \
                       AND (change, account) > ($2, $3) AND change < $4 ORDER BY change, account LIMIT $5";
    company FIRST = "SELECT change, at FROM account_change WHERE company = $1 AND change >= $2 \
                     ORDER BY change, account LIMIT 1";
    company NEWEST = "SELECT change FROM account_change WHERE company = $1 \
                      ORDER BY change DESC, account DESC LIMIT 1";
}

static FORGET: DeleteMany =
    DeleteMany::new("account_change", &[("change", Type::Int), ("account", Type::Bytes)]);

/// How many accounts a page looks at if some of them were changed too early.
const SEARCHED: i64 = 1_000;
/// A change gets its time some time before its number: while it waits for its turn, and by the clock of its node.
const SLACK_SECONDS: i64 = 600;

/// Asks for the accounts that changed after a place.
#[derive(Debug, Clone)]
pub struct AccountsAfter {
    /// None begins with the first change after `updated_after`.
    pub place: Option<Place>,
    /// Only those that changed later.
    pub updated_after: Option<Time>,
    /// Whether to tell which accounts were deleted.
    pub deleted: bool,
    pub limit: i64,
}

/// Some accounts and deletions, in the order of their numbers, and where to continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    pub accounts: Vec<Account>,
    pub deleted: Vec<Tombstone>,
    pub next: Place,
    /// Whether there are further changes now.
    pub more: bool,
}

enum What {
    Account(AccountId),
    /// An account that has changed again since, or was deleted.
    Past,
    Deleted(Tombstone),
}

struct Change {
    place: Place,
    what: What,
    at: Time,
}

/// `settled` must be from before this snapshot.
pub fn after(snapshot: &mut Snapshot, asked: &AccountsAfter, settled: Settled) -> Result<Changes, Error> {
    let begin = match (asked.place, asked.updated_after) {
        (Some(place), _) => place,
        (None, Some(time)) => Place::before(first_change_after(snapshot, time)?),
        (None, None) => Place::START,
    };
    let limit = usize::try_from(asked.limit).unwrap_or(0);
    let most = if asked.updated_after.is_none() { asked.limit + 1 } else { SEARCHED.max(asked.limit + 1) };
    let bounds = values![begin.change, begin.id.as_slice(), settled.0, most];
    let rows = snapshot.query(&KEYS, bounds)?;
    let mut changes: Vec<Change> = rows.into_iter().map(read_account).collect::<Result<_, _>>()?;
    if asked.deleted {
        let rows = snapshot.query(&DELETED, bounds)?;
        changes.extend(rows.into_iter().map(read_deleted).collect::<Result<Vec<_>, _>>()?);
        changes.sort_unstable_by_key(|change| change.place);
    }
    // Each list may have more than was read, so nothing after the end of a full one is known yet.
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let is_full = changes.len() >= most;
    changes.truncate(most);
    let total = changes.len();
    let (mut ids, mut deleted, mut passed, mut next) = (Vec::new(), Vec::new(), 0, begin);
    for change in changes {
        let is_past = matches!(change.what, What::Past);
        let counts = !is_past && asked.updated_after.is_none_or(|after| change.at > after);
        if counts && ids.len() + deleted.len() == limit {
            break;
        }
        (passed, next) = (passed + 1, change.place);
        match change.what {
            _ if !counts => {}
            What::Past => {}
            What::Account(id) => ids.push(id),
            What::Deleted(tombstone) => deleted.push(tombstone),
        }
    }
    let mut accounts = load(snapshot, &ids)?;
    accounts.retain(|account| !account.sample);
    Ok(Changes { accounts, deleted, next, more: passed < total || is_full })
}

fn read_account(mut row: Row) -> Result<Change, Error> {
    let (change, id, at): (i64, AccountId, Time) = (row.take()?, row.take()?, row.take()?);
    let what = if row.take::<Option<i64>>()?.is_some() { What::Account(id) } else { What::Past };
    Ok(Change { place: Place { change, id: *id.as_bytes() }, what, at })
}

fn read_deleted(mut row: Row) -> Result<Change, Error> {
    let (change, id): (i64, AccountId) = (row.take()?, row.take()?);
    let tombstone = Tombstone { id, imported_id: row.take()?, deleted_at: row.take()? };
    let at = tombstone.deleted_at;
    Ok(Change { place: Place { change, id: *id.as_bytes() }, what: What::Deleted(tombstone), at })
}

/// A number before which no account changed after this time. Times follow the numbers but for the slack, so it is found
/// by halving.
fn first_change_after(snapshot: &mut Snapshot, time: Time) -> Result<i64, Error> {
    let before = time.plus_seconds(-SLACK_SECONDS);
    // Rows from before there were numbers are in another order. They are all older than the first number, which was
    // taken from the clock.
    if first(snapshot, 0)?.is_some_and(|(change, _)| change == 0) {
        let numbered = first(snapshot, 1)?;
        if numbered.is_none_or(|(change, _)| before.as_micros() < change) {
            return Ok(0);
        }
    }
    let newest = snapshot.query_opt(&NEWEST, &[])?.map_or(Ok(0), |mut row| row.take::<i64>())?;
    let (mut low, mut high) = (1, newest + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        match first(snapshot, middle)? {
            Some((change, updated_at)) if updated_at <= before => low = change + 1,
            _ => high = middle,
        }
    }
    Ok(low)
}

/// The first change from this number on.
fn first(snapshot: &mut Snapshot, change: i64) -> Result<Option<(i64, Time)>, Error> {
    let row = snapshot.query_opt(&FIRST, values![change])?;
    row.map(|mut row| Ok((row.take()?, row.take()?))).transpose()
}

/// One part of the log: what in it no longer counts, and where to continue unless it reached the end.
pub struct Past {
    pub entries: Vec<(i64, AccountId)>,
    pub next: Option<Place>,
}

/// Looks for entries that no longer count. They never will again, because numbers only grow.
pub fn past(snapshot: &mut Snapshot, after: Place, limit: i64) -> Result<Past, Error> {
    let rows = snapshot.query(&KEYS, values![after.change, after.id.as_slice(), i64::MAX, limit])?;
    let is_full = i64::try_from(rows.len()).is_ok_and(|found| found == limit);
    let read: Vec<Change> = rows.into_iter().map(read_account).collect::<Result<_, _>>()?;
    let next = read.last().filter(|_| is_full).map(|change| change.place);
    let past = read.into_iter().filter(|change| matches!(change.what, What::Past));
    let entries = past.map(|Change { place, .. }| (place.change, AccountId::from_bytes(place.id)));
    Ok(Past { entries: entries.collect(), next })
}

/// Deletes entries that no longer count.
pub fn forget(tx: &mut Tx, entries: &[(i64, AccountId)]) -> Result<(), Error> {
    let values: Vec<Value> =
        entries.iter().flat_map(|(change, id)| [Value::from(*change), id.into()]).collect();
    tx.delete(&FORGET, &values)
}

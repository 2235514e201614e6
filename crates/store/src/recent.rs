//! Recent activity in a company: new accounts, moves, outcomes of deliveries and mail. Each is a bounded read
//! of an index, because ids are ordered by time.

use rapport_domain::caps;
use rapport_domain::history::{Actor, HistoryEntry};
use rapport_domain::id::{AccountId, DeliveryId, HistoryId, MailId, lowest_at};
use rapport_domain::time::Time;

use crate::account_list::CappedCount;
use crate::delivery_state::{FAILED, SUCCEEDED};
use crate::error::Error;
use crate::page::Page;
use crate::statement::{Statement, statements};
use crate::tx::Snapshot;
use crate::value::{Row, Value};
use crate::values;

/// Counting stops here.
pub const COUNT_CAP: i64 = caps::ON_A_PAGE;

statements! {
    // One more than `COUNT_CAP`. Ordered, so that no engine scans the table instead of the index.
    company NEW_ACCOUNTS = "SELECT count(*) FROM (SELECT id FROM account WHERE company = $1 AND id >= $2 \
                            ORDER BY id LIMIT 1001) AS found";
    company MOVE_COUNT = "SELECT count(*) FROM (SELECT id FROM status_history /*INDEXED BY status_history_moves*/ \
                          WHERE company = $1 AND from_status IS NOT NULL AND id >= $2 ORDER BY id LIMIT 1001) AS found";
    company MOVES = "SELECT h.id, h.account, h.from_status, h.to_status, h.source, h.actor_kind, h.actor_id, \
                     h.actor_name, h.note, h.at, h.happened_at, a.name FROM status_history h /*INDEXED BY status_history_moves*/ \
                     JOIN account a ON a.company = h.company AND a.id = h.account \
                     WHERE h.company = $1 AND h.from_status IS NOT NULL AND h.id < $2 ORDER BY h.id DESC LIMIT $3";
    company DELIVERIES = "SELECT state, count(*) FROM (SELECT state FROM delivery WHERE company = $1 AND id >= $2 \
                          ORDER BY id DESC LIMIT 500) AS found GROUP BY state";
    company FAILED_MAILS = "SELECT count(*) FROM (SELECT state FROM mail WHERE company = $1 AND id >= $2 \
                            ORDER BY id DESC LIMIT 1000) AS found WHERE state = 2";
}

/// Accounts created since then that still exist.
pub fn new_accounts(snapshot: &mut Snapshot, since: Time) -> Result<CappedCount, Error> {
    count_capped(snapshot, &NEW_ACCOUNTS, values![&lowest_at::<AccountId>(since)])
}

/// Moves in the pipeline since then, of accounts that still exist.
pub fn count_moves(snapshot: &mut Snapshot, since: Time) -> Result<CappedCount, Error> {
    count_capped(snapshot, &MOVE_COUNT, values![&lowest_at::<HistoryId>(since)])
}

/// A move and the account's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedMove {
    pub entry: HistoryEntry,
    pub name: String,
}

/// Moves, newest first, before `before` if given.
pub fn moves(
    snapshot: &mut Snapshot,
    before: Option<HistoryId>,
    limit: i64,
) -> Result<Page<NamedMove>, Error> {
    let before = before.unwrap_or(HistoryId::from_bytes([0xff; 16]));
    let rows = snapshot.query(&MOVES, values![&before, limit + 1])?;
    let moves = rows.into_iter().map(read_move).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::from_one_more(moves, limit))
}

/// The outcomes of the latest deliveries, at most 500.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Delivered {
    pub succeeded: i64,
    pub failed: i64,
    pub open: i64,
}

pub fn deliveries(snapshot: &mut Snapshot, since: Time) -> Result<Delivered, Error> {
    let mut delivered = Delivered::default();
    for mut row in snapshot.query(&DELIVERIES, values![&lowest_at::<DeliveryId>(since)])? {
        let (state, count): (i64, i64) = (row.take()?, row.take()?);
        match state {
            SUCCEEDED => delivered.succeeded = count,
            FAILED => delivered.failed = count,
            _ => delivered.open = count,
        }
    }
    Ok(delivered)
}

/// The number of failed mails among the latest 1,000.
pub fn failed_mails(snapshot: &mut Snapshot, since: Time) -> Result<i64, Error> {
    let row = snapshot.query_opt(&FAILED_MAILS, values![&lowest_at::<MailId>(since)])?;
    row.ok_or_else(|| Error::fault("a count returned no row"))?.take()
}

fn count_capped(
    snapshot: &mut Snapshot,
    statement: &Statement,
    values: &[Value],
) -> Result<CappedCount, Error> {
    let row = snapshot.query_opt(statement, values)?;
    let count: i64 = row.ok_or_else(|| Error::fault("a count returned no row"))?.take()?;
    Ok(CappedCount { count: count.min(COUNT_CAP), capped: count > COUNT_CAP })
}

fn read_move(mut row: Row) -> Result<NamedMove, Error> {
    let row = &mut row;
    let entry = HistoryEntry {
        id: row.take()?,
        account: row.take()?,
        from: row.take()?,
        to: row.take()?,
        source: row.take()?,
        actor: Actor::from_parts(&row.take::<String>()?, row.take()?, row.take()?),
        note: row.take()?,
        at: row.take()?,
        happened_at: row.take()?,
    };
    Ok(NamedMove { entry, name: row.take()? })
}

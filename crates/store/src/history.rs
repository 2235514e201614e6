//! The status history of accounts.

use rapport_domain::history::{Actor, HistoryEntry};
use rapport_domain::id::{AccountId, HistoryId};
use rapport_domain::time::Time;

use crate::error::Error;
use crate::page::Page;
use crate::statement::{InsertMany, statements};
use crate::tx::{Snapshot, Tx};
use crate::value::{Row, Type, Value};
use crate::values;

statements! {
    company OF_ACCOUNT = "SELECT id, account, from_status, to_status, source, actor_kind, actor_id, actor_name, \
                          note, at, happened_at FROM status_history WHERE company = $1 AND account = $2 AND id < $3 \
                          ORDER BY id DESC LIMIT $4";
    company LATEST_MOVES = "SELECT account, \
                            max(CASE WHEN from_status IS NOT NULL THEN COALESCE(happened_at, at) END) \
                            FROM status_history WHERE company = $1 AND account = ANY($2) GROUP BY account";
    company ENTERED = "SELECT a.id, (SELECT COALESCE(h.happened_at, h.at) FROM status_history h \
                       WHERE h.company = a.company AND h.account = a.id ORDER BY h.id DESC LIMIT 1) \
                       FROM account a WHERE a.company = $1 AND a.id = ANY($2)";
    company DELETE = "DELETE FROM status_history WHERE company = $1 AND account = $2";
}

pub(crate) static INSERT: InsertMany = InsertMany::new(
    "status_history",
    &[
        ("account", Type::Bytes),
        ("id", Type::Bytes),
        ("from_status", Type::Text),
        ("to_status", Type::Text),
        ("source", Type::Text),
        ("actor_kind", Type::Text),
        ("actor_id", Type::Bytes),
        ("actor_name", Type::Text),
        ("note", Type::Text),
        ("at", Type::Int),
        ("happened_at", Type::Int),
    ],
    "",
);

pub fn insert(tx: &mut Tx, entries: &[HistoryEntry]) -> Result<(), Error> {
    let mut rows = Vec::with_capacity(entries.len() * INSERT.width());
    for entry in entries {
        rows.extend::<[Value; 11]>([
            (&entry.account).into(),
            (&entry.id).into(),
            entry.from.into(),
            entry.to.into(),
            entry.source.into(),
            entry.actor.kind().into(),
            entry.actor.id_bytes().map(<[u8; 16]>::as_slice).into(),
            entry.actor.name().into(),
            entry.note.as_deref().into(),
            entry.at.into(),
            entry.happened_at.into(),
        ]);
    }
    tx.insert(&INSERT, &rows)?;
    Ok(())
}

/// An account's history, newest first, before `before` if given.
pub fn of_account(
    snapshot: &mut Snapshot,
    account: AccountId,
    before: Option<HistoryId>,
    limit: i64,
) -> Result<Page<HistoryEntry>, Error> {
    let before = before.unwrap_or(HistoryId::from_bytes([0xff; 16]));
    let rows = snapshot.query(&OF_ACCOUNT, values![&account, &before, limit + 1])?;
    let entries = rows.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::from_one_more(entries, limit))
}

/// When each of these accounts last moved: when what moved it happened, if that is known. Creation is no move. Ask with
/// the accounts locked.
pub fn latest_moves(tx: &mut Tx, accounts: &[AccountId]) -> Result<Vec<(AccountId, Option<Time>)>, Error> {
    let keys: Vec<Value> = accounts.iter().map(Value::from).collect();
    let rows = tx.query_keys(&LATEST_MOVES, &[], &keys)?;
    rows.into_iter().map(|mut row| Ok((row.take()?, row.take()?))).collect()
}

/// When each of these accounts entered its current stage, by a move or by its creation.
pub fn entered(snapshot: &mut Snapshot, accounts: &[AccountId]) -> Result<Vec<(AccountId, Time)>, Error> {
    let keys: Vec<Value> = accounts.iter().map(Value::from).collect();
    let rows = snapshot.query_keys(&ENTERED, &[], &keys)?;
    let read = |mut row: Row| Ok((row.take()?, row.take()?));
    let found: Vec<(AccountId, Option<Time>)> = rows.into_iter().map(read).collect::<Result<_, Error>>()?;
    Ok(found.into_iter().filter_map(|(id, at)| at.map(|at| (id, at))).collect())
}

pub(crate) fn delete_of_account(tx: &mut Tx, account: AccountId) -> Result<u64, Error> {
    tx.execute(&DELETE, values![&account])
}

fn read(mut row: Row) -> Result<HistoryEntry, Error> {
    let row = &mut row;
    Ok(HistoryEntry {
        id: row.take()?,
        account: row.take()?,
        from: row.take()?,
        to: row.take()?,
        source: row.take()?,
        actor: Actor::from_parts(&row.take::<String>()?, row.take()?, row.take()?),
        note: row.take()?,
        at: row.take()?,
        happened_at: row.take()?,
    })
}

//! Deleted accounts, kept for those who follow the accounts.

use rapport_domain::id::AccountId;
use rapport_domain::time::Time;
use rapport_domain::tombstone::Tombstone;

use crate::error::Error;
use crate::statement::{InsertMany, statements};
use crate::tx::{Snapshot, Tx};
use crate::value::{Type, Value};
use crate::values;

statements! {
    company EXISTS = "SELECT 1 FROM account_tombstone WHERE company = $1 AND account = $2";
    company ERASE = "UPDATE account_tombstone SET imported_id = NULL WHERE company = $1 AND account = $2 \
                     AND imported_id IS NOT NULL";
    company OLDEST = "SELECT account, deleted_at FROM account_tombstone /*INDEXED BY account_tombstone_by_change*/ \
                      WHERE company = $1 ORDER BY change, account LIMIT $2";
    company DELETE = "DELETE FROM account_tombstone WHERE company = $1 AND account = ANY($2)";
}

/// An account is deleted once, unless its row was inserted again by hand.
pub(crate) static INSERT: InsertMany = InsertMany::numbered(
    "account_tombstone",
    &[("account", Type::Bytes), ("imported_id", Type::Text), ("deleted_at", Type::Int)],
    "ON CONFLICT (company, account) DO UPDATE SET imported_id = excluded.imported_id, \
     deleted_at = excluded.deleted_at, change = excluded.change",
);

pub fn insert(tx: &mut Tx, tombstone: &Tombstone) -> Result<(), Error> {
    let Tombstone { id, imported_id, deleted_at } = tombstone;
    tx.insert(&INSERT, values![id, imported_id.as_deref(), *deleted_at])?;
    Ok(())
}

pub fn exists(snapshot: &mut Snapshot, account: AccountId) -> Result<bool, Error> {
    Ok(snapshot.query_opt(&EXISTS, values![&account])?.is_some())
}

/// Leaves nothing but the fact that an account with this id was deleted; returns how many rows had more.
pub fn erase(tx: &mut Tx, account: AccountId) -> Result<u64, Error> {
    tx.execute(&ERASE, values![&account])
}

/// Forgets some accounts that were deleted before `cutoff`; returns how many.
pub fn prune(tx: &mut Tx, cutoff: Time, limit: i64) -> Result<usize, Error> {
    let rows = tx.query(&OLDEST, values![limit])?;
    let oldest = rows.into_iter().map(|mut row| Ok((row.take()?, row.take()?)));
    let oldest: Vec<(AccountId, Time)> = oldest.collect::<Result<_, Error>>()?;
    let old: Vec<AccountId> =
        oldest.into_iter().filter(|(_, deleted_at)| *deleted_at < cutoff).map(|(id, _)| id).collect();
    let keys: Vec<Value> = old.iter().map(Value::from).collect();
    tx.execute_keys(&DELETE, &[], &keys)?;
    Ok(old.len())
}

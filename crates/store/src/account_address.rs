//! The email addresses of accounts.

use rapport_domain::id::AccountId;
use rapport_domain::member::Email;
use rapport_domain::time::Time;

use crate::error::Error;
use crate::statement::{InsertMany, statements};
use crate::tx::{Snapshot, Tx};
use crate::value::{Type, Value};
use crate::values;

statements! {
    company FIND = "SELECT address, account FROM account_address WHERE company = $1 AND address = ANY($2)";
    company OF_ACCOUNT = "SELECT address, created_at FROM account_address /*INDEXED BY account_address_by_account*/ \
                          WHERE company = $1 AND account = $2 ORDER BY address LIMIT $3";
    company COUNTS = "SELECT account, count(*) FROM account_address /*INDEXED BY account_address_by_account*/ \
                      WHERE company = $1 AND account = ANY($2) GROUP BY account";
    company INSERT = "INSERT INTO account_address (company, address, account, created_at) \
                      VALUES ($1, $2, $3, $4) ON CONFLICT (company, address) DO NOTHING RETURNING address";
    company DELETE_ONE = "DELETE FROM account_address WHERE company = $1 AND address = $2 AND account = $3";
    company DELETE = "DELETE FROM account_address WHERE company = $1 AND account = $2";
}

pub(crate) static INSERT_MANY: InsertMany = InsertMany::new(
    "account_address",
    &[("address", Type::Text), ("account", Type::Bytes), ("created_at", Type::Int)],
    "ON CONFLICT (company, address) DO NOTHING",
)
.telling_written();

/// An email address of an account, and since when.
pub type Known = (Email, Time);

/// The accounts that these addresses belong to.
pub fn find(snapshot: &mut Snapshot, addresses: &[&Email]) -> Result<Vec<(Email, AccountId)>, Error> {
    let keys: Vec<Value> = addresses.iter().map(|address| Value::from(address.as_str())).collect();
    let rows = snapshot.query_keys(&FIND, &[], &keys)?;
    rows.into_iter().map(|mut row| Ok((Email::from_stored(row.take()?), row.take()?))).collect()
}

/// An account's addresses in order, up to `limit`.
pub fn of_account(snapshot: &mut Snapshot, account: AccountId, limit: i64) -> Result<Vec<Known>, Error> {
    let rows = snapshot.query(&OF_ACCOUNT, values![&account, limit])?;
    rows.into_iter().map(|mut row| Ok((Email::from_stored(row.take()?), row.take()?))).collect()
}

/// How many addresses each of these accounts has. Those without any are left out.
pub fn counts(snapshot: &mut Snapshot, accounts: &[AccountId]) -> Result<Vec<(AccountId, i64)>, Error> {
    let keys: Vec<Value> = accounts.iter().map(Value::from).collect();
    let rows = snapshot.query_keys(&COUNTS, &[], &keys)?;
    rows.into_iter().map(|mut row| Ok((row.take()?, row.take()?))).collect()
}

/// Adds addresses to accounts. Returns `false` if another transaction took one of them.
pub fn insert_many(tx: &mut Tx, added: &[(&Email, AccountId)], now: Time) -> Result<bool, Error> {
    let mut rows = Vec::with_capacity(added.len() * INSERT_MANY.width());
    for (address, account) in added {
        rows.extend::<[Value; 3]>([address.as_str().into(), account.into(), now.into()]);
    }
    Ok(tx.insert(&INSERT_MANY, &rows)?.len() == added.len())
}

/// Returns `false` if the address is taken.
pub fn insert(tx: &mut Tx, address: &Email, account: AccountId, now: Time) -> Result<bool, Error> {
    Ok(tx.query_opt(&INSERT, values![address.as_str(), &account, now])?.is_some())
}

/// Returns `false` if the account doesn't have this address.
pub fn delete(tx: &mut Tx, address: &Email, account: AccountId) -> Result<bool, Error> {
    Ok(tx.execute(&DELETE_ONE, values![address.as_str(), &account])? > 0)
}

pub(crate) fn delete_of_account(tx: &mut Tx, account: AccountId) -> Result<u64, Error> {
    tx.execute(&DELETE, values![&account])
}

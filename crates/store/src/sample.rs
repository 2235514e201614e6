//! The marks of sample data: which accounts and channels belong to it.

use rapport_domain::account::Account;
use rapport_domain::id::{AccountId, ChannelId};
use rapport_domain::time::Time;

use crate::error::Error;
use crate::statement::statements;
use crate::tx::{Snapshot, Tx};
use crate::value::Value;
use crate::values;

statements! {
    // Everything is read: there are a few dozen at most, and none in most companies.
    company ACCOUNTS = "SELECT id FROM account /*INDEXED BY account_sample*/ WHERE company = $1 AND sample = 1 \
                        ORDER BY id";
    company MARK_ACCOUNTS = "UPDATE account SET sample = 1 WHERE company = $1 AND id = ANY($2)";
    company ANY_ACCOUNT = "SELECT id FROM account WHERE company = $1 ORDER BY id LIMIT 1";
    company CHANNELS = "SELECT id FROM channel WHERE company = $1 AND sample = 1 ORDER BY id";
    company MARK_CHANNEL = "UPDATE channel SET sample = 1 WHERE company = $1 AND id = $2";
    company KEEP_CHANNELS = "UPDATE channel SET sample = 0 WHERE company = $1 AND sample = 1";
    company SET_SINCE = "UPDATE company SET sample_since = $2 WHERE id = $1";
}

/// The ids of the sample accounts.
pub fn accounts(snapshot: &mut Snapshot) -> Result<Vec<AccountId>, Error> {
    snapshot.query(&ACCOUNTS, &[])?.into_iter().map(|mut row| row.take()).collect()
}

/// Marks those of these new accounts that are sample accounts.
pub(crate) fn mark(tx: &mut Tx, new: &[&Account]) -> Result<(), Error> {
    let samples = new.iter().filter(|account| account.sample);
    let keys: Vec<Value> = samples.map(|account| Value::from(&account.id)).collect();
    tx.execute_keys(&MARK_ACCOUNTS, &[], &keys)?;
    Ok(())
}

/// Whether the company has any account.
pub fn has_any_account(snapshot: &mut Snapshot) -> Result<bool, Error> {
    Ok(snapshot.query_opt(&ANY_ACCOUNT, &[])?.is_some())
}

/// The ids of the sample channels.
pub fn channels(snapshot: &mut Snapshot) -> Result<Vec<ChannelId>, Error> {
    snapshot.query(&CHANNELS, &[])?.into_iter().map(|mut row| row.take()).collect()
}

pub fn mark_channel(tx: &mut Tx, id: ChannelId) -> Result<(), Error> {
    tx.execute(&MARK_CHANNEL, values![&id])?;
    Ok(())
}

/// Makes the sample channels that are left the company's own.
pub fn keep_channels(tx: &mut Tx) -> Result<(), Error> {
    tx.execute(&KEEP_CHANNELS, &[])?;
    Ok(())
}

/// Notes since when the company has sample data, or that it has none.
pub fn set_since(tx: &mut Tx, since: Option<Time>) -> Result<(), Error> {
    tx.execute(&SET_SINCE, values![since])?;
    Ok(())
}

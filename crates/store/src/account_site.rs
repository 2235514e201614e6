//! The websites that accounts were created from by lookup.

use rapport_domain::id::AccountId;

use crate::error::Error;
use crate::statement::statements;
use crate::tx::{Snapshot, Tx};
use crate::values;

statements! {
    company FIND = "SELECT account FROM account_site WHERE company = $1 AND site = $2";
    company INSERT = "INSERT INTO account_site (company, site, account) VALUES ($1, $2, $3) \
                      ON CONFLICT (company, site) DO NOTHING RETURNING site";
    company DELETE = "DELETE FROM account_site WHERE company = $1 AND account = $2";
}

/// The account that was created from this site.
pub fn find(snapshot: &mut Snapshot, site: &str) -> Result<Option<AccountId>, Error> {
    snapshot.query_opt(&FIND, values![site])?.map(|mut row| row.take()).transpose()
}

/// Returns `false` if the site is taken.
pub fn insert(tx: &mut Tx, site: &str, account: AccountId) -> Result<bool, Error> {
    Ok(tx.query_opt(&INSERT, values![site, &account])?.is_some())
}

pub(crate) fn delete_of_account(tx: &mut Tx, account: AccountId) -> Result<u64, Error> {
    tx.execute(&DELETE, values![&account])
}

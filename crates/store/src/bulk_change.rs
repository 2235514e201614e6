//! What changes of many accounts at once did to each of them, kept until they can't be undone any more.

use rapport_domain::difference::Differences;
use rapport_domain::id::{AccountId, BulkId, lowest_at};
use rapport_domain::time::Time;

use crate::error::Error;
use crate::statement::{InsertMany, statements};
use crate::tx::Tx;
use crate::value::{Type, Value};
use crate::values;

statements! {
    company OF = "SELECT account, differences FROM bulk_change WHERE company = $1 AND bulk = $2 ORDER BY account";
    company DELETE = "DELETE FROM bulk_change WHERE company = $1 AND bulk = $2";
    company OLD = "SELECT bulk, account FROM bulk_change WHERE company = $1 AND bulk < $2 \
                   ORDER BY bulk, account LIMIT $3";
    company FORGET = "DELETE FROM bulk_change WHERE company = $1 AND bulk = $2 AND account = $3";
    company DELETE_OF_ACCOUNT = "DELETE FROM bulk_change /*INDEXED BY bulk_change_by_account*/ \
                                 WHERE company = $1 AND account = $2";
}

pub(crate) static INSERT: InsertMany = InsertMany::new(
    "bulk_change",
    &[("bulk", Type::Bytes), ("account", Type::Bytes), ("differences", Type::Text)],
    "",
);

pub fn insert(tx: &mut Tx, bulk: BulkId, changes: &[(AccountId, Differences)]) -> Result<(), Error> {
    let texts: Vec<String> = changes.iter().map(|(_, differences)| differences.to_stored()).collect();
    let mut rows = Vec::with_capacity(changes.len() * INSERT.width());
    for ((account, _), text) in changes.iter().zip(&texts) {
        rows.extend::<[Value; 3]>([(&bulk).into(), account.into(), text.into()]);
    }
    tx.insert(&INSERT, &rows)?;
    Ok(())
}

/// Takes what a change did, so that it is undone once. Empty if it was undone already, or can't be any more.
pub fn take(tx: &mut Tx, bulk: BulkId) -> Result<Vec<(AccountId, Differences)>, Error> {
    let rows = tx.query(&OF, values![&bulk])?;
    tx.execute(&DELETE, values![&bulk])?;
    let read =
        |mut row: crate::value::Row| Ok((row.take()?, Differences::from_stored(&row.take::<String>()?)));
    rows.into_iter().map(read).collect()
}

/// Forgets some changes from before `cutoff`; returns how many.
pub fn forget(tx: &mut Tx, cutoff: Time, limit: i64) -> Result<usize, Error> {
    let old = tx.query(&OLD, values![&lowest_at::<BulkId>(cutoff), limit])?;
    let count = old.len();
    for mut row in old {
        let (bulk, account): (BulkId, AccountId) = (row.take()?, row.take()?);
        tx.execute(&FORGET, values![&bulk, &account])?;
    }
    Ok(count)
}

pub(crate) fn delete_of_account(tx: &mut Tx, account: AccountId) -> Result<u64, Error> {
    tx.execute(&DELETE_OF_ACCOUNT, values![&account])
}

//! The index of custom fields, written in the same transaction as every change to an account.
//!
//! `domain::field_index` decides the index texts of a value. SQL can't do this the same way on both engines
//! (SQLite folds only ASCII), so accounts older than the table are indexed once, in steps.

use rapport_domain::account::Account;
use rapport_domain::custom_fields::{CustomFields, FieldDifference};
use rapport_domain::id::{AccountId, CompanyId};

use crate::account::Edit;
use crate::error::Error;
use crate::page::Page;
use crate::statement::{DeleteMany, InsertMany, statements};
use crate::tx::{Across, Snapshot, Tx};
use crate::value::{Type, Value};
use crate::values;

statements! {
    company DELETE_OF_ACCOUNT = "DELETE FROM account_field WHERE company = $1 AND account = $2";
    // Jumps from each name to the next in the index: one step per name, however many accounts there are.
    company NAMES = "WITH RECURSIVE names(field) AS (\
                     SELECT (SELECT e.field FROM account_field e WHERE e.company = $1 AND e.field > $2 \
                     ORDER BY e.field LIMIT 1) \
                     UNION ALL SELECT (SELECT e.field FROM account_field e WHERE e.company = $1 \
                     AND e.field > names.field ORDER BY e.field LIMIT 1) FROM names WHERE names.field IS NOT NULL) \
                     SELECT field FROM names WHERE field IS NOT NULL LIMIT $3";
    reference UNFILLED = "SELECT company FROM field_fill ORDER BY company";
    company LOCK_FILL = "SELECT walked_to FROM field_fill WHERE company = $1 FOR UPDATE";
    company NEXT = "SELECT a.id, a.custom_fields FROM account a WHERE a.company = $1 AND a.id > $2 \
                    ORDER BY a.id LIMIT $3 FOR UPDATE OF a";
    company WALKED = "UPDATE field_fill SET walked_to = $2 WHERE company = $1";
    company FILLED = "DELETE FROM field_fill WHERE company = $1";
}

const COLUMNS: &[(&str, Type)] = &[("field", Type::Text), ("value", Type::Text), ("account", Type::Bytes)];

pub(crate) static INSERT: InsertMany =
    InsertMany::new("account_field", COLUMNS, "ON CONFLICT (company, field, value, account) DO NOTHING");
pub(crate) static DELETE: DeleteMany = DeleteMany::new("account_field", COLUMNS);

/// Indexes the fields of new accounts and updates those of changed ones: at most two statements, and none if
/// no field changed.
pub(crate) fn write(tx: &mut Tx, new: &[&Account], edits: &[Edit]) -> Result<(), Error> {
    let indexes: Vec<(&AccountId, Vec<(String, String)>)> =
        new.iter().map(|account| (&account.id, account.custom_fields.index())).collect();
    let difference = |edit: &Edit| edit.after.custom_fields.difference(&edit.before.custom_fields);
    let differences: Vec<(&AccountId, FieldDifference)> =
        edits.iter().map(|edit| (&edit.after.id, difference(edit))).collect();
    let (mut added, mut removed): (Vec<Value>, Vec<Value>) = (Vec::new(), Vec::new());
    for (id, index) in &indexes {
        added.extend(index.iter().flat_map(|(field, text)| row(field, text, id)));
    }
    for (id, difference) in &differences {
        removed.extend(difference.removed.iter().flat_map(|(field, text)| row(field, text, id)));
        added.extend(difference.added.iter().flat_map(|(field, text)| row(field, text, id)));
    }
    tx.delete(&DELETE, &removed)?;
    tx.insert(&INSERT, &added)?;
    Ok(())
}

fn row<'a>(field: &'a str, text: &'a str, account: &'a AccountId) -> [Value<'a>; 3] {
    [field.into(), text.into(), account.into()]
}

pub(crate) fn delete_of_account(tx: &mut Tx, account: AccountId) -> Result<(), Error> {
    tx.execute(&DELETE_OF_ACCOUNT, values![&account])?;
    Ok(())
}

/// The names of the fields that accounts have, in order, after `after` if given.
pub fn names(snapshot: &mut Snapshot, after: Option<&str>, limit: i64) -> Result<Page<String>, Error> {
    let rows = snapshot.query(&NAMES, values![after.unwrap_or(""), limit + 1])?;
    let names = rows.into_iter().map(|mut row| row.take()).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::from_one_more(names, limit))
}

/// The companies with accounts that may not be indexed yet.
pub fn unfilled(across: &mut Across) -> Result<Vec<CompanyId>, Error> {
    across.query(&UNFILLED, &[])?.into_iter().map(|mut row| row.take()).collect()
}

/// Indexes the next of a company's older accounts; returns whether there are more.
pub fn fill(tx: &mut Tx, limit: i64) -> Result<bool, Error> {
    // Nodes that do this at the same time wait for each other here.
    let Some(mut found) = tx.query_opt(&LOCK_FILL, &[])? else { return Ok(false) };
    let walked_to: Option<AccountId> = found.take()?;
    let after = walked_to.unwrap_or(AccountId::from_bytes([0; 16]));
    let mut indexes: Vec<(AccountId, Vec<(String, String)>)> = Vec::new();
    for mut row in tx.query(&NEXT, values![&after, limit])? {
        indexes.push((row.take()?, CustomFields::from_stored(row.take()?).index()));
    }
    let rows: Vec<Value> = indexes
        .iter()
        .flat_map(|(id, index)| index.iter().map(move |pair| (id, pair)))
        .flat_map(|(id, (field, text))| row(field, text, id))
        .collect();
    tx.insert(&INSERT, &rows)?;
    let is_full = i64::try_from(indexes.len()).is_ok_and(|count| count == limit);
    if let Some((last, _)) = indexes.last().filter(|_| is_full) {
        tx.execute(&WALKED, values![last])?;
    } else {
        tx.execute(&FILLED, &[])?;
    }
    Ok(is_full)
}

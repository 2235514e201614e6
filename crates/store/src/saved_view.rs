//! Saved views of the account list.

use rapport_domain::saved_view::SavedView;
use rapport_domain::text::fold;

use crate::error::Error;
use crate::statement::statements;
use crate::tx::{Snapshot, Tx};
use crate::value::Row;
use crate::values;

statements! {
    company LIST = "SELECT name, query, created_at, created_by FROM saved_view WHERE company = $1 \
                    ORDER BY name_folded";
    company INSERT = "INSERT INTO saved_view (company, name_folded, name, query, created_at, created_by) \
                      VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (company, name_folded) DO NOTHING RETURNING name";
    company REPLACE = "UPDATE saved_view SET name = $3, query = $4 WHERE company = $1 AND name_folded = $2";
    company DELETE = "DELETE FROM saved_view WHERE company = $1 AND name_folded = $2";
}

/// All views of the company, ordered by name.
pub fn list(snapshot: &mut Snapshot) -> Result<Vec<SavedView>, Error> {
    let rows = snapshot.query(&LIST, &[])?;
    let view = |mut row: Row| {
        let (name, query, created_at) = (row.take()?, row.take()?, row.take()?);
        Ok(SavedView { name, query, created_at, created_by: row.take()? })
    };
    rows.into_iter().map(view).collect()
}

/// Returns `false` if the name is taken.
pub fn insert(tx: &mut Tx, view: &SavedView) -> Result<bool, Error> {
    let SavedView { name, query, created_at, created_by } = view;
    let inserted =
        tx.query_opt(&INSERT, values![&fold(name), name, query, *created_at, created_by.as_ref()])?;
    Ok(inserted.is_some())
}

/// Replaces the query of the view with this name; returns `false` if it doesn't exist.
pub fn replace(tx: &mut Tx, name: &str, query: &str) -> Result<bool, Error> {
    Ok(tx.execute(&REPLACE, values![&fold(name), name, query])? > 0)
}

/// Returns `false` if it doesn't exist.
pub fn delete(tx: &mut Tx, name: &str) -> Result<bool, Error> {
    Ok(tx.execute(&DELETE, values![&fold(name)])? > 0)
}

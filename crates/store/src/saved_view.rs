//! Saved views of the account list.

use rapport_domain::saved_view::SavedView;
use rapport_domain::text::fold;

use crate::error::Error;
use crate::statement::statements;
use crate::tx::{Snapshot, Tx};
use crate::values;

statements! {
    company LIST = "SELECT name, query, created_at FROM saved_view WHERE company = $1 ORDER BY name_folded";
    company INSERT = "INSERT INTO saved_view (company, name_folded, name, query, created_at) \
                      VALUES ($1, $2, $3, $4, $5) ON CONFLICT (company, name_folded) DO NOTHING RETURNING name";
    company REPLACE = "UPDATE saved_view SET name = $3, query = $4 WHERE company = $1 AND name_folded = $2";
    company DELETE = "DELETE FROM saved_view WHERE company = $1 AND name_folded = $2";
}

/// All views of the company, ordered by name.
pub fn list(snapshot: &mut Snapshot) -> Result<Vec<SavedView>, Error> {
    let rows = snapshot.query(&LIST, &[])?;
    rows.into_iter()
        .map(|mut row| Ok(SavedView { name: row.take()?, query: row.take()?, created_at: row.take()? }))
        .collect()
}

/// Returns `false` if the name is taken.
pub fn insert(tx: &mut Tx, view: &SavedView) -> Result<bool, Error> {
    let folded = fold(&view.name);
    Ok(tx.query_opt(&INSERT, values![&folded, &view.name, &view.query, view.created_at])?.is_some())
}

/// Replaces the query of the view with this name; returns `false` if it doesn't exist.
pub fn replace(tx: &mut Tx, name: &str, query: &str) -> Result<bool, Error> {
    Ok(tx.execute(&REPLACE, values![&fold(name), name, query])? > 0)
}

/// Returns `false` if it doesn't exist.
pub fn delete(tx: &mut Tx, name: &str) -> Result<bool, Error> {
    Ok(tx.execute(&DELETE, values![&fold(name)])? > 0)
}

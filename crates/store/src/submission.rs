//! Forms that were already submitted.

use rapport_domain::id::{FormId, lowest_at};
use rapport_domain::time::Time;

use crate::error::Error;
use crate::statement::statements;
use crate::tx::Tx;
use crate::values;

statements! {
    company INSERT = "INSERT INTO submission (company, form) VALUES ($1, $2) \
                      ON CONFLICT (company, form) DO NOTHING RETURNING form";
    company PRUNE = "DELETE FROM submission WHERE company = $1 AND form < $2";
}

/// Claims a form for the transaction; returns `false` if it was submitted before.
pub fn take(tx: &mut Tx, form: FormId) -> Result<bool, Error> {
    Ok(tx.query_opt(&INSERT, values![&form])?.is_some())
}

/// Deletes the forms that were shown before `cutoff`: their ids begin with the time.
pub fn prune(tx: &mut Tx, cutoff: Time) -> Result<(), Error> {
    tx.execute(&PRUNE, values![&lowest_at::<FormId>(cutoff)])?;
    Ok(())
}

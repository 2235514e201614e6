//! Members who were removed from a company or left it, by their marks.

use rapport_domain::sso::removed::Mark;
use rapport_domain::time::Time;

use crate::error::Error;
use crate::statement::statements;
use crate::tx::{Snapshot, Tx};
use crate::values;

statements! {
    company MARK = "INSERT INTO removed_member (company, mark, removed_at) VALUES ($1, $2, $3) \
                    ON CONFLICT (company, mark) DO UPDATE SET removed_at = excluded.removed_at";
    company FIND = "SELECT removed_at FROM removed_member WHERE company = $1 AND mark = $2";
}

pub fn mark(tx: &mut Tx, mark: Mark, now: Time) -> Result<(), Error> {
    tx.execute(&MARK, values![mark.as_bytes(), now])?;
    Ok(())
}

pub fn is_marked(snapshot: &mut Snapshot, mark: Mark) -> Result<bool, Error> {
    Ok(snapshot.query_opt(&FIND, values![mark.as_bytes()])?.is_some())
}

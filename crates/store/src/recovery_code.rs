//! Recovery codes of people that were not used yet, by their hash. A reference table, like people.

use rapport_domain::credential::SecretHash;
use rapport_domain::id::PersonId;
use rapport_domain::time::Time;

use crate::error::Error;
use crate::statement::statements;
use crate::tx::{Snapshot, Tx};
use crate::values;

statements! {
    reference COUNT = "SELECT count(*) FROM recovery_code WHERE person = $1";
    reference INSERT = "INSERT INTO recovery_code (person, hash, created_at) VALUES ($1, $2, $3)";
    // The transaction that removes a code uses it.
    reference TAKE = "DELETE FROM recovery_code WHERE person = $1 AND hash = $2 RETURNING hash";
    reference DELETE_ALL = "DELETE FROM recovery_code WHERE person = $1";
}

/// How many codes the person has left.
pub fn count(snapshot: &mut Snapshot, person: PersonId) -> Result<i64, Error> {
    snapshot.query_opt(&COUNT, values![&person])?.map_or(Ok(0), |mut row| row.take())
}

pub fn insert(tx: &mut Tx, person: PersonId, code: &SecretHash, now: Time) -> Result<(), Error> {
    tx.execute(&INSERT, values![&person, code, now])?;
    Ok(())
}

/// Uses a code up; returns `false` if the person has no such code.
pub fn take(tx: &mut Tx, person: PersonId, code: &SecretHash) -> Result<bool, Error> {
    Ok(tx.query_opt(&TAKE, values![&person, code])?.is_some())
}

pub fn delete_all(tx: &mut Tx, person: PersonId) -> Result<(), Error> {
    tx.execute(&DELETE_ALL, values![&person])?;
    Ok(())
}

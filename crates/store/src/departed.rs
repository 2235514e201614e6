//! Logins of people who belong to no company any more.

use rapport_domain::departed::Standing;
use rapport_domain::id::PersonId;
use rapport_domain::time::Time;

use crate::error::Error;
use crate::statement::statements;
use crate::tx::{Across, Tx};
use crate::value::{Row, Value};
use crate::{address_change, passkey, password_reset, recovery_code, session, sso_identity, totp, values};

statements! {
    reference STANDINGS = "SELECT p.id, p.left_at, (SELECT 1 FROM member m WHERE m.person = p.id LIMIT 1 OFFSET 0) \
                           FROM person p WHERE p.id > $1 ORDER BY p.id LIMIT $2";
    reference DEPART = "UPDATE person SET left_at = $1 WHERE id = ANY($2) AND left_at IS NULL";
    reference RETURN = "UPDATE person SET left_at = NULL WHERE id = $1";
    reference LOCK = "SELECT id FROM person WHERE id = $1 FOR UPDATE";
    reference DELETE = "DELETE FROM person WHERE id = $1 AND NOT EXISTS \
                        (SELECT 1 FROM member m WHERE m.person = person.id) RETURNING id";
}

/// Some logins and whether they have a company, in the order of their ids, after `after` if given.
pub fn standings(
    across: &mut Across,
    after: Option<PersonId>,
    limit: i64,
) -> Result<Vec<(PersonId, Standing)>, Error> {
    let after = after.unwrap_or(PersonId::from_bytes([0; 16]));
    let standing = |mut row: Row| {
        let (person, left_at) = (row.take()?, row.take()?);
        Ok((person, Standing { left_at, is_member: row.take::<Option<i64>>()?.is_some() }))
    };
    across.query(&STANDINGS, values![&after, limit])?.into_iter().map(standing).collect()
}

/// Notes since when logins have no company.
pub fn depart(tx: &mut Tx, people: &[PersonId], now: Time) -> Result<(), Error> {
    let keys: Vec<Value> = people.iter().map(Value::from).collect();
    tx.execute_keys(&DEPART, values![now], &keys)?;
    Ok(())
}

/// Notes that a login has a company again; returns `false` if the login is gone. It stays until the transaction ends.
pub fn come_back(tx: &mut Tx, person: PersonId) -> Result<bool, Error> {
    Ok(tx.execute(&RETURN, values![&person])? > 0)
}

/// Deletes a login that has no company, and all that belongs to it; returns `false` if it has one.
pub fn delete(tx: &mut Tx, person: PersonId) -> Result<bool, Error> {
    // Somebody who is joining a company holds the lock, and the next statement sees that they joined.
    tx.query(&LOCK, values![&person])?;
    if tx.query_opt(&DELETE, values![&person])?.is_none() {
        return Ok(false);
    }
    session::delete_of_person(tx, person)?;
    password_reset::delete_all(tx, person)?;
    address_change::delete_all(tx, person)?;
    passkey::delete_all(tx, person)?;
    totp::delete(tx, person)?;
    recovery_code::delete_all(tx, person)?;
    sso_identity::delete_of_person(tx, person)?;
    Ok(true)
}

//! New email addresses that people asked for: the links that confirm them. People don't belong to a single company, so
//! this is a reference table.

use rapport_domain::credential::SecretHash;
use rapport_domain::id::PersonId;
use rapport_domain::member::Email;
use rapport_domain::time::Time;

use crate::error::Error;
use crate::statement::statements;
use crate::tx::{Snapshot, Tx};
use crate::value::Row;
use crate::values;

statements! {
    reference INSERT = "INSERT INTO address_change (hash, person, email, created_at, expires_at) \
                        VALUES ($1, $2, $3, $4, $5)";
    reference FIND = "SELECT a.person, p.email, a.email, a.expires_at FROM address_change a \
                      JOIN person p ON p.id = a.person WHERE a.hash = $1";
    reference COUNT = "SELECT count(*) FROM address_change WHERE person = $1 AND created_at > $2";
    reference OF_PERSON = "SELECT email, created_at, expires_at FROM address_change WHERE person = $1 \
                           ORDER BY created_at";
    reference CONSUME = "DELETE FROM address_change WHERE hash = $1 RETURNING person";
    reference DELETE_ALL = "DELETE FROM address_change WHERE person = $1";
    reference PRUNE = "DELETE FROM address_change WHERE expires_at < $1";
}

/// A link that goes to a new address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewChange<'a> {
    pub person: PersonId,
    pub email: &'a Email,
    pub created_at: Time,
    pub expires_at: Time,
}

pub fn insert(tx: &mut Tx, hash: &SecretHash, change: &NewChange) -> Result<(), Error> {
    let NewChange { person, email, created_at, expires_at } = change;
    tx.execute(&INSERT, values![hash, person, email.as_str(), *created_at, *expires_at])?;
    Ok(())
}

/// A change that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub person: PersonId,
    /// The current address.
    pub from: Email,
    pub to: Email,
    pub expires_at: Time,
}

pub fn find(snapshot: &mut Snapshot, hash: &SecretHash) -> Result<Option<Change>, Error> {
    let change = |mut row: Row| {
        let row = &mut row;
        Ok(Change {
            person: row.take()?,
            from: Email::from_stored(row.take()?),
            to: Email::from_stored(row.take()?),
            expires_at: row.take()?,
        })
    };
    snapshot.query_opt(&FIND, values![hash])?.map(change).transpose()
}

/// The number of links issued to a person after `since`.
pub fn count(snapshot: &mut Snapshot, person: PersonId, since: Time) -> Result<i64, Error> {
    snapshot.query_opt(&COUNT, values![&person, since])?.map_or(Ok(0), |mut row| row.take())
}

/// A person's open links: the new address, when it was asked for, and until when it can be confirmed.
pub fn of_person(snapshot: &mut Snapshot, person: PersonId) -> Result<Vec<(Email, Time, Time)>, Error> {
    let open = |mut row: Row| Ok((Email::from_stored(row.take()?), row.take()?, row.take()?));
    snapshot.query(&OF_PERSON, values![&person])?.into_iter().map(open).collect()
}

/// Uses up a link; returns `false` if it was already used.
pub fn consume(tx: &mut Tx, hash: &SecretHash) -> Result<bool, Error> {
    Ok(tx.query_opt(&CONSUME, values![hash])?.is_some())
}

/// Deletes every link of a person.
pub fn delete_all(tx: &mut Tx, person: PersonId) -> Result<(), Error> {
    tx.execute(&DELETE_ALL, values![&person])?;
    Ok(())
}

pub fn prune(tx: &mut Tx, now: Time) -> Result<(), Error> {
    tx.execute(&PRUNE, values![now])?;
    Ok(())
}

//! Passkeys of people, and the challenges that they have answered. People don't belong to a single company, so these are
//! reference tables.

use rapport_domain::credential::SecretHash;
use rapport_domain::id::{PasskeyId, PersonId};
use rapport_domain::second_factor::Passkey;
use rapport_domain::time::Time;

use crate::error::Error;
use crate::statement::statements;
use crate::tx::{Across, Snapshot, Tx};
use crate::value::Row;
use crate::values;

statements! {
    reference LIST = "SELECT id, name, created_at, last_used_at FROM passkey WHERE person = $1 ORDER BY id";
    reference CREDENTIALS = "SELECT credential FROM passkey WHERE person = $1 ORDER BY id";
    reference BY_CREDENTIAL = "SELECT person, id, public_key FROM passkey WHERE credential = $1";
    reference INSERT = "INSERT INTO passkey (person, id, credential, public_key, name, created_at) \
                        VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (credential) DO NOTHING RETURNING id";
    // Only if nobody used or removed it since it was read.
    reference USE = "UPDATE passkey SET public_key = $4, last_used_at = $5 \
                     WHERE person = $1 AND id = $2 AND public_key = $3 RETURNING id";
    reference RENAME = "UPDATE passkey SET name = $3 WHERE person = $1 AND id = $2";
    reference DELETE = "DELETE FROM passkey WHERE person = $1 AND id = $2 RETURNING name";
    reference DELETE_ALL = "DELETE FROM passkey WHERE person = $1";
    reference SPEND = "INSERT INTO spent_challenge (hash, expires_at) VALUES ($1, $2) \
                       ON CONFLICT (hash) DO NOTHING RETURNING hash";
    reference PRUNE = "DELETE FROM spent_challenge WHERE expires_at < $1";
}

/// The person's passkeys, oldest first.
pub fn list(snapshot: &mut Snapshot, person: PersonId) -> Result<Vec<Passkey>, Error> {
    let passkey = |mut row: Row| {
        let row = &mut row;
        Ok(Passkey { id: row.take()?, name: row.take()?, created_at: row.take()?, last_used_at: row.take()? })
    };
    snapshot.query(&LIST, values![&person])?.into_iter().map(passkey).collect()
}

/// What the authenticators call the person's passkeys.
pub fn credentials(snapshot: &mut Snapshot, person: PersonId) -> Result<Vec<Vec<u8>>, Error> {
    let rows = snapshot.query(&CREDENTIALS, values![&person])?;
    rows.into_iter().map(|mut row| row.take()).collect()
}

/// A passkey with what its answers are checked against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    pub person: PersonId,
    pub id: PasskeyId,
    pub public_key: String,
}

pub fn by_credential(across: &mut Across, credential: &[u8]) -> Result<Option<Known>, Error> {
    let row = across.query_opt(&BY_CREDENTIAL, values![credential])?;
    row.map(|mut row| {
        let row = &mut row;
        Ok(Known { person: row.take()?, id: row.take()?, public_key: row.take()? })
    })
    .transpose()
}

/// A passkey that is added.
pub struct NewPasskey<'a> {
    pub person: PersonId,
    pub id: PasskeyId,
    pub credential: &'a [u8],
    pub public_key: &'a str,
    pub name: &'a str,
}

/// Returns `false` if anybody has this passkey already.
pub fn insert(tx: &mut Tx, new: &NewPasskey, now: Time) -> Result<bool, Error> {
    let NewPasskey { person, id, credential, public_key, name } = new;
    Ok(tx.query_opt(&INSERT, values![person, id, *credential, *public_key, *name, now])?.is_some())
}

/// Stores that it was used, with its new counter; returns `false` if it changed since it was read.
pub fn note_use(tx: &mut Tx, known: &Known, public_key: &str, now: Time) -> Result<bool, Error> {
    let values = values![&known.person, &known.id, &known.public_key, public_key, now];
    Ok(tx.query_opt(&USE, values)?.is_some())
}

/// Returns `false` if the person has no such passkey.
pub fn rename(tx: &mut Tx, person: PersonId, id: PasskeyId, name: &str) -> Result<bool, Error> {
    Ok(tx.execute(&RENAME, values![&person, &id, name])? > 0)
}

/// Removes a passkey and returns its name.
pub fn delete(tx: &mut Tx, person: PersonId, id: PasskeyId) -> Result<Option<String>, Error> {
    tx.query_opt(&DELETE, values![&person, &id])?.map(|mut row| row.take()).transpose()
}

pub fn delete_all(tx: &mut Tx, person: PersonId) -> Result<u64, Error> {
    tx.execute(&DELETE_ALL, values![&person])
}

/// Uses a challenge up; returns `false` if it was used before.
pub fn spend(tx: &mut Tx, challenge: &SecretHash, expires_at: Time, now: Time) -> Result<bool, Error> {
    tx.execute(&PRUNE, values![now])?;
    Ok(tx.query_opt(&SPEND, values![challenge, expires_at])?.is_some())
}

//! Authenticator apps of people, at most one each. A reference table, like people.

use rapport_domain::id::PersonId;
use rapport_domain::time::Time;

use crate::error::Error;
use crate::statement::statements;
use crate::tx::{Snapshot, Tx};
use crate::value::Row;
use crate::values;

statements! {
    reference GET = "SELECT secret, created_at, confirmed_at, last_used_at, last_step, wrong_codes FROM totp \
                     WHERE person = $1";
    reference LOCK = "SELECT secret, created_at, confirmed_at, last_used_at, last_step, wrong_codes FROM totp \
                      WHERE person = $1 FOR UPDATE";
    // Replaces one that was never confirmed.
    reference PUT = "INSERT INTO totp (person, secret, created_at) VALUES ($1, $2, $3) \
                     ON CONFLICT (person) DO UPDATE SET secret = excluded.secret, created_at = excluded.created_at \
                     WHERE totp.confirmed_at IS NULL RETURNING person";
    reference CONFIRM = "UPDATE totp SET confirmed_at = $3, last_step = $2 WHERE person = $1";
    reference USE = "UPDATE totp SET last_step = $2, last_used_at = $3 WHERE person = $1";
    reference COUNT_WRONG = "UPDATE totp SET wrong_codes = wrong_codes + 1 WHERE person = $1";
    reference FORGET_WRONG = "UPDATE totp SET wrong_codes = 0 WHERE person = $1 AND wrong_codes > 0";
    reference DELETE = "DELETE FROM totp WHERE person = $1 RETURNING confirmed_at";
}

/// An authenticator app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Totp {
    /// Encrypted.
    pub secret: Vec<u8>,
    pub created_at: Time,
    /// It counts from then on.
    pub confirmed_at: Option<Time>,
    pub last_used_at: Option<Time>,
    pub last_step: i64,
    /// Wrong codes since the person last logged in.
    pub wrong_codes: i64,
}

pub fn get(snapshot: &mut Snapshot, person: PersonId) -> Result<Option<Totp>, Error> {
    snapshot.query_opt(&GET, values![&person])?.map(read).transpose()
}

pub fn lock(tx: &mut Tx, person: PersonId) -> Result<Option<Totp>, Error> {
    tx.query_opt(&LOCK, values![&person])?.map(read).transpose()
}

/// Stores the secret of an app that isn't confirmed yet; returns `false` if the person has a confirmed one.
pub fn put(tx: &mut Tx, person: PersonId, secret: &[u8], now: Time) -> Result<bool, Error> {
    Ok(tx.query_opt(&PUT, values![&person, secret, now])?.is_some())
}

pub fn confirm(tx: &mut Tx, person: PersonId, step: i64, now: Time) -> Result<(), Error> {
    tx.execute(&CONFIRM, values![&person, step, now])?;
    Ok(())
}

/// Stores that the code of a step was used.
pub fn note_use(tx: &mut Tx, person: PersonId, step: i64, now: Time) -> Result<(), Error> {
    tx.execute(&USE, values![&person, step, now])?;
    Ok(())
}

pub fn count_wrong(tx: &mut Tx, person: PersonId) -> Result<(), Error> {
    tx.execute(&COUNT_WRONG, values![&person])?;
    Ok(())
}

pub fn forget_wrong(tx: &mut Tx, person: PersonId) -> Result<(), Error> {
    tx.execute(&FORGET_WRONG, values![&person])?;
    Ok(())
}

/// Removes it; returns whether it was confirmed.
pub fn delete(tx: &mut Tx, person: PersonId) -> Result<bool, Error> {
    let removed = tx.query_opt(&DELETE, values![&person])?;
    let confirmed_at = removed.map(|mut row| row.take::<Option<Time>>()).transpose()?;
    Ok(confirmed_at.flatten().is_some())
}

fn read(mut row: Row) -> Result<Totp, Error> {
    let row = &mut row;
    Ok(Totp {
        secret: row.take()?,
        created_at: row.take()?,
        confirmed_at: row.take()?,
        last_used_at: row.take()?,
        last_step: row.take()?,
        wrong_codes: row.take()?,
    })
}

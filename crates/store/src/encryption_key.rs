//! Which key encrypts the secrets in this database, by its fingerprint. The key itself is never here.

use crate::error::Error;
use crate::statement::statements;
use crate::tx::{Across, Tx};
use crate::value::Row;
use crate::values;

statements! {
    reference GET = "SELECT fingerprint, previous FROM encryption_key WHERE id = 1";
    reference HOLD = "SELECT fingerprint, previous FROM encryption_key WHERE id = 1 FOR SHARE";
    reference ADOPT = "INSERT INTO encryption_key (id, fingerprint) VALUES (1, $1) ON CONFLICT (id) DO NOTHING";
    reference CHANGE = "UPDATE encryption_key SET fingerprint = $2, previous = $1 \
                        WHERE id = 1 AND fingerprint = $1 AND previous IS NULL";
    reference FINISH = "UPDATE encryption_key SET previous = NULL WHERE id = 1 AND fingerprint = $1";
    reference RESET = "INSERT INTO encryption_key (id, fingerprint) VALUES (1, $1) \
                       ON CONFLICT (id) DO UPDATE SET fingerprint = excluded.fingerprint, previous = NULL";
}

/// The fingerprints of the keys that the database's secrets are encrypted under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Noted {
    /// Of the key for everything new.
    pub fingerprint: String,
    /// Of the key that some secrets still need, while the key is changed.
    pub previous: Option<String>,
}

impl Noted {
    pub fn all(&self) -> impl Iterator<Item = &str> {
        [Some(self.fingerprint.as_str()), self.previous.as_deref()].into_iter().flatten()
    }
}

/// What the database says about its key; nothing if it never used one.
pub fn get(across: &mut Across) -> Result<Option<Noted>, Error> {
    across.query_opt(&GET, &[])?.map(read).transpose()
}

/// The same, and nobody can change the key before this transaction ends.
pub fn hold(tx: &mut Tx) -> Result<Option<Noted>, Error> {
    tx.query_opt(&HOLD, &[])?.map(read).transpose()
}

/// Notes the database's first key, unless it already has one.
pub fn adopt(tx: &mut Tx, fingerprint: &str) -> Result<(), Error> {
    tx.execute(&ADOPT, values![fingerprint])?;
    Ok(())
}

/// Encrypts everything new under another key; returns false if the key was changed in the meantime.
pub fn change(tx: &mut Tx, from: &str, to: &str) -> Result<bool, Error> {
    Ok(tx.execute(&CHANGE, values![from, to])? > 0)
}

/// Nothing needs the previous key any more.
pub fn finish(tx: &mut Tx, fingerprint: &str) -> Result<(), Error> {
    tx.execute(&FINISH, values![fingerprint])?;
    Ok(())
}

/// Gives the database another key although its secrets are encrypted under a lost one.
pub fn reset(tx: &mut Tx, fingerprint: &str) -> Result<(), Error> {
    tx.execute(&RESET, values![fingerprint])?;
    Ok(())
}

fn read(mut row: Row) -> Result<Noted, Error> {
    Ok(Noted { fingerprint: row.take()?, previous: row.take()? })
}

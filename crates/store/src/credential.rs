//! API tokens, ingest and inbound keys: looked up by the hash of their text and checked in the transaction
//! they authorise, so that a rotation takes effect immediately on every node.

use rapport_domain::company::Company;
use rapport_domain::credential::{Credential, Kind, SecretHash};
use rapport_domain::id::CredentialId;
use rapport_domain::member::Role;
use rapport_domain::time::Time;

use crate::error::Error;
use crate::statement::statements;
use crate::tx::{Snapshot, Tx};
use crate::value::{Row, Value};
use crate::{company, values};

statements! {
    company CALLERS = "SELECT c.id, c.slug, c.name, c.cadence_days, c.tracked_stages, c.digest_enabled, \
                       c.digest_weekday, c.time_zone, c.default_currency, c.audit_days, c.created_at, \
                       k.hash, k.id, k.kind, k.name, k.role, k.shown, k.created_at, k.last_used_at \
                       FROM company c LEFT JOIN credential k ON k.company = c.id AND k.hash = ANY($2) \
                       WHERE c.id = $1";
    company LIST = "SELECT id, kind, name, role, shown, created_at, last_used_at FROM credential \
                    WHERE company = $1 AND kind = $2 ORDER BY id DESC";
    company INSERT = "INSERT INTO credential (company, hash, id, kind, name, role, shown, created_at) \
                      VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    company DELETE = "DELETE FROM credential WHERE company = $1 AND id = $2 AND kind = $3";
    company DELETE_KIND = "DELETE FROM credential WHERE company = $1 AND kind = $2";
    company TOUCH = "UPDATE credential SET last_used_at = $3 WHERE company = $1 AND id = $2 \
                     AND (last_used_at IS NULL OR last_used_at < $3)";
}

/// A company, and the live credentials among those presented.
#[derive(Debug, Default)]
pub struct Callers {
    pub company: Option<Company>,
    pub live: Vec<(SecretHash, Credential)>,
}

/// The first query of every transaction.
pub fn callers(snapshot: &mut Snapshot, hashes: &[SecretHash]) -> Result<Callers, Error> {
    if hashes.is_empty() {
        return Ok(Callers { company: company::get(snapshot)?, live: Vec::new() });
    }
    let keys: Vec<Value> = hashes.iter().map(Value::from).collect();
    let mut callers = Callers::default();
    for mut row in snapshot.query_keys(&CALLERS, &[], &keys)? {
        callers.company = Some(company::read_from(&mut row)?);
        if let Some(hash) = row.take()? {
            callers.live.push((hash, read_from(&mut row)?));
        }
    }
    Ok(callers)
}

pub fn list(snapshot: &mut Snapshot, kind: Kind) -> Result<Vec<Credential>, Error> {
    let rows = snapshot.query(&LIST, values![kind.as_str()])?;
    rows.into_iter().map(read).collect()
}

pub fn insert(tx: &mut Tx, hash: &SecretHash, credential: &Credential) -> Result<(), Error> {
    let Credential { id, kind, name, role, shown, created_at, .. } = credential;
    tx.execute(&INSERT, values![hash, id, kind.as_str(), name, role.as_str(), shown, *created_at])?;
    Ok(())
}

pub fn delete(tx: &mut Tx, id: CredentialId, kind: Kind) -> Result<bool, Error> {
    Ok(tx.execute(&DELETE, values![&id, kind.as_str()])? > 0)
}

/// Deletes every credential of a kind, so that a rotation leaves none behind.
pub fn delete_kind(tx: &mut Tx, kind: Kind) -> Result<(), Error> {
    tx.execute(&DELETE_KIND, values![kind.as_str()])?;
    Ok(())
}

pub fn touch(tx: &mut Tx, id: CredentialId, at: Time) -> Result<(), Error> {
    tx.execute(&TOUCH, values![&id, at])?;
    Ok(())
}

fn read(mut row: Row) -> Result<Credential, Error> {
    read_from(&mut row)
}

fn read_from(row: &mut Row) -> Result<Credential, Error> {
    let bad = |what: &str| Error::fault(format!("a credential's stored {what} is not valid"));
    Ok(Credential {
        id: row.take()?,
        kind: Kind::parse(&row.take::<String>()?).ok_or_else(|| bad("kind"))?,
        name: row.take()?,
        role: Role::parse(&row.take::<String>()?).map_err(|_| bad("role"))?,
        shown: row.take()?,
        created_at: row.take()?,
        last_used_at: row.take()?,
    })
}

//! Pending invitations, looked up by the hash of the secret in their link.

use rapport_domain::credential::SecretHash;
use rapport_domain::id::InvitationId;
use rapport_domain::invitation::Invitation;
use rapport_domain::member::{Email, Role};
use rapport_domain::time::Time;

use crate::error::Error;
use crate::statement::statements;
use crate::tx::{Snapshot, Tx};
use crate::value::Row;
use crate::values;

statements! {
    company LIST = "SELECT id, email, role, invited_by, created_at, expires_at, name, by_mail FROM invitation \
                    WHERE company = $1 ORDER BY id DESC";
    company GET = "SELECT id, email, role, invited_by, created_at, expires_at, name, by_mail FROM invitation \
                   WHERE company = $1 AND id = $2";
    company LOCK = "SELECT id, email, role, invited_by, created_at, expires_at, name, by_mail FROM invitation \
                    WHERE company = $1 AND id = $2 FOR UPDATE";
    company BY_HASH = "SELECT id, email, role, invited_by, created_at, expires_at, name, by_mail FROM invitation \
                       WHERE company = $1 AND hash = $2";
    company BY_EMAIL = "SELECT id, email, role, invited_by, created_at, expires_at, name, by_mail FROM invitation \
                        WHERE company = $1 AND email = $2";
    company INSERT = "INSERT INTO invitation (company, id, hash, email, role, invited_by, created_at, expires_at, name, \
                      by_mail) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (company, email) DO NOTHING RETURNING id";
    company RENEW = "UPDATE invitation SET hash = $3, expires_at = $4, by_mail = $5 WHERE company = $1 AND id = $2";
    // Only the transaction that removes it may use it, so it is accepted once.
    company DELETE = "DELETE FROM invitation WHERE company = $1 AND id = $2 RETURNING id";
    company PRUNE = "DELETE FROM invitation WHERE company = $1 AND expires_at < $2";
}

pub fn list(snapshot: &mut Snapshot) -> Result<Vec<Invitation>, Error> {
    snapshot.query(&LIST, &[])?.into_iter().map(read).collect()
}

pub fn get(snapshot: &mut Snapshot, id: InvitationId) -> Result<Option<Invitation>, Error> {
    snapshot.query_opt(&GET, values![&id])?.map(read).transpose()
}

pub fn lock(tx: &mut Tx, id: InvitationId) -> Result<Option<Invitation>, Error> {
    tx.query_opt(&LOCK, values![&id])?.map(read).transpose()
}

pub fn by_hash(snapshot: &mut Snapshot, hash: &SecretHash) -> Result<Option<Invitation>, Error> {
    snapshot.query_opt(&BY_HASH, values![hash])?.map(read).transpose()
}

pub fn by_email(snapshot: &mut Snapshot, email: &Email) -> Result<Option<Invitation>, Error> {
    snapshot.query_opt(&BY_EMAIL, values![email.as_str()])?.map(read).transpose()
}

/// Returns `false` if the address already has a pending invitation.
pub fn insert(tx: &mut Tx, hash: &SecretHash, invitation: &Invitation) -> Result<bool, Error> {
    let Invitation { id, email, role, invited_by, created_at, expires_at, name, by_mail } = invitation;
    let values = values![
        id,
        hash,
        email.as_str(),
        role.as_str(),
        invited_by.as_deref(),
        *created_at,
        *expires_at,
        name.as_deref(),
        i64::from(*by_mail),
    ];
    Ok(tx.query_opt(&INSERT, values)?.is_some())
}

/// Gives it a new secret; the previous one stops working.
pub fn renew(tx: &mut Tx, invitation: &Invitation, hash: &SecretHash) -> Result<(), Error> {
    let Invitation { id, expires_at, by_mail, .. } = invitation;
    tx.execute(&RENEW, values![id, hash, *expires_at, i64::from(*by_mail)])?;
    Ok(())
}

/// Removes it; returns `false` if someone else already did.
pub fn delete(tx: &mut Tx, id: InvitationId) -> Result<bool, Error> {
    Ok(tx.query_opt(&DELETE, values![&id])?.is_some())
}

pub fn prune(tx: &mut Tx, cutoff: Time) -> Result<(), Error> {
    tx.execute(&PRUNE, values![cutoff])?;
    Ok(())
}

fn read(mut row: Row) -> Result<Invitation, Error> {
    let row = &mut row;
    Ok(Invitation {
        id: row.take()?,
        email: Email::from_stored(row.take()?),
        role: Role::parse(&row.take::<String>()?)
            .map_err(|_| Error::fault("an invitation's role is not valid"))?,
        invited_by: row.take()?,
        created_at: row.take()?,
        expires_at: row.take()?,
        name: row.take()?,
        by_mail: row.take::<i64>()? != 0,
    })
}

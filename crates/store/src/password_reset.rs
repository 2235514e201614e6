//! Forgotten passwords: the requests, and the resets that were issued. People don't belong to a single
//! company, so these are reference tables.

use rapport_domain::credential::SecretHash;
use rapport_domain::id::{CompanyId, PersonId};
use rapport_domain::member::Email;
use rapport_domain::time::Time;

use crate::error::Error;
use crate::statement::statements;
use crate::tx::{Across, Snapshot, Tx};
use crate::value::Row;
use crate::values;

statements! {
    reference REQUEST = "INSERT INTO reset_request (email, address, requested_at) VALUES ($1, $2, $3) \
                         ON CONFLICT (email) DO NOTHING";
    reference REQUESTS = "SELECT email FROM reset_request ORDER BY email LIMIT $1";
    reference IS_REQUESTED = "SELECT email FROM reset_request WHERE email = $1";
    // The transaction that removes a request answers it.
    reference TAKE_REQUEST = "DELETE FROM reset_request WHERE email = $1 RETURNING address";
    reference MEMBERSHIPS = "SELECT p.id, p.name, m.company, c.slug, CASE WHEN w.mode = 'required' \
                             AND (w.break_glass IS NULL OR w.break_glass <> m.person) THEN 1 ELSE 0 END \
                             FROM person p JOIN member m ON m.person = p.id JOIN company c ON c.id = m.company \
                             LEFT JOIN sso w ON w.company = m.company \
                             WHERE p.email = $1 AND m.deactivated_at IS NULL \
                             ORDER BY m.created_at, m.company";
    reference COUNT = "SELECT count(*) FROM password_reset WHERE person = $1 AND created_at > $2";
    reference INSERT = "INSERT INTO password_reset (hash, person, created_at, expires_at, by_mail, for_proof) \
                        VALUES ($1, $2, $3, $4, $5, $6)";
    reference FIND = "SELECT r.person, p.email, p.name, r.expires_at, r.by_mail, r.for_proof FROM password_reset r \
                      JOIN person p ON p.id = r.person WHERE r.hash = $1";
    reference CONSUME = "DELETE FROM password_reset WHERE hash = $1 RETURNING person";
    reference DELETE_ALL = "DELETE FROM password_reset WHERE person = $1";
    reference PRUNE = "DELETE FROM password_reset WHERE expires_at < $1";
}

/// Records a request, whether the address is known or not.
pub fn request(tx: &mut Tx, email: &Email, address: Option<&str>, now: Time) -> Result<(), Error> {
    tx.execute(&REQUEST, values![email.as_str(), address, now])?;
    Ok(())
}

/// Some addresses whose request hasn't been answered yet.
pub fn requests(across: &mut Across, limit: i64) -> Result<Vec<Email>, Error> {
    let rows = across.query(&REQUESTS, values![limit])?;
    rows.into_iter().map(|mut row| row.take().map(Email::from_stored)).collect()
}

/// Whether a request for this address hasn't been answered yet.
pub fn is_requested(snapshot: &mut Snapshot, email: &Email) -> Result<bool, Error> {
    Ok(snapshot.query_opt(&IS_REQUESTED, values![email.as_str()])?.is_some())
}

/// Removes a request and returns the address it came from; `None` if another node is answering it.
pub fn take_request(tx: &mut Tx, email: &Email) -> Result<Option<Option<String>>, Error> {
    tx.query_opt(&TAKE_REQUEST, values![email.as_str()])?.map(|mut row| row.take()).transpose()
}

/// A login, and a company that it works for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    pub person: PersonId,
    pub name: String,
    pub company: CompanyId,
    pub slug: String,
    /// Whether the person can enter the company only with single sign-on.
    pub needs_sso: bool,
}

/// The active memberships of every login with this address, in the order they joined.
pub fn memberships(across: &mut Across, email: &Email) -> Result<Vec<Membership>, Error> {
    let membership = |mut row: Row| {
        let row = &mut row;
        Ok(Membership {
            person: row.take()?,
            name: row.take()?,
            company: row.take()?,
            slug: row.take()?,
            needs_sso: row.take()?,
        })
    };
    across.query(&MEMBERSHIPS, values![email.as_str()])?.into_iter().map(membership).collect()
}

/// The number of resets issued to a person after `since`.
pub fn count(snapshot: &mut Snapshot, person: PersonId, since: Time) -> Result<i64, Error> {
    snapshot.query_opt(&COUNT, values![&person, since])?.map_or(Ok(0), |mut row| row.take())
}

/// How a link reaches its person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Somebody hands it over.
    ByHand,
    /// It goes to the address.
    ByMail,
    /// It goes to the address, and was asked for in a session in order to prove it.
    ForProof,
}

pub fn insert(
    tx: &mut Tx,
    hash: &SecretHash,
    person: PersonId,
    now: Time,
    expires_at: Time,
    way: Way,
) -> Result<(), Error> {
    let (by_mail, for_proof) = (way != Way::ByHand, way == Way::ForProof);
    tx.execute(&INSERT, values![hash, &person, now, expires_at, by_mail, for_proof])?;
    Ok(())
}

/// An issued reset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reset {
    pub person: PersonId,
    pub email: Email,
    pub name: String,
    pub expires_at: Time,
    pub way: Way,
}

pub fn find(snapshot: &mut Snapshot, hash: &SecretHash) -> Result<Option<Reset>, Error> {
    let row = snapshot.query_opt(&FIND, values![hash])?;
    row.map(|mut row| {
        let row = &mut row;
        let (person, email, name) = (row.take()?, Email::from_stored(row.take()?), row.take()?);
        let expires_at = row.take()?;
        let way = match (row.take()?, row.take()?) {
            (false, _) => Way::ByHand,
            (true, false) => Way::ByMail,
            (true, true) => Way::ForProof,
        };
        Ok(Reset { person, email, name, expires_at, way })
    })
    .transpose()
}

/// Uses up a reset; returns `false` if it was already used.
pub fn consume(tx: &mut Tx, hash: &SecretHash) -> Result<bool, Error> {
    Ok(tx.query_opt(&CONSUME, values![hash])?.is_some())
}

/// Deletes every reset of a person.
pub fn delete_all(tx: &mut Tx, person: PersonId) -> Result<(), Error> {
    tx.execute(&DELETE_ALL, values![&person])?;
    Ok(())
}

pub fn prune(tx: &mut Tx, now: Time) -> Result<(), Error> {
    tx.execute(&PRUNE, values![now])?;
    Ok(())
}

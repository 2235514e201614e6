//! People and their membership in companies.

use rapport_domain::id::PersonId;
use rapport_domain::member::{Email, Member, Role};
use rapport_domain::time::Time;

use crate::error::Error;
use crate::statement::statements;
use crate::tx::{Snapshot, Tx};
use crate::value::{Row, Value};
use crate::values;

statements! {
    // Only a proven address is unique.
    reference INSERT_PERSON = "INSERT INTO person (id, email, name, password_hash, created_at, proven_at) \
                               VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING RETURNING id";
    reference LOGIN = "SELECT id, name, password_hash, proven_at FROM person WHERE id = $1";
    reference PROVEN_LOGIN = "SELECT id, name, password_hash, proven_at FROM person \
                              WHERE email = $1 AND proven_at IS NOT NULL";
    // Another login with this address may be the proven one already; then this one stays as it is.
    reference PROVE = "UPDATE person SET proven_at = $2 WHERE id = $1 AND proven_at IS NULL AND NOT EXISTS \
                       (SELECT 1 FROM person o WHERE o.email = person.email AND o.proven_at IS NOT NULL)";
    reference ADDRESS = "SELECT email, name FROM person WHERE id = $1";
    reference SET_PASSWORD = "UPDATE person SET password_hash = $2 WHERE id = $1";
    reference RENAME = "UPDATE person SET name = $2 WHERE id = $1";
    // A new address is proven. If it has a proven login meanwhile, this one stays as it is.
    reference SET_EMAIL = "UPDATE person SET email = $2, proven_at = $3 WHERE id = $1 AND NOT EXISTS \
                           (SELECT 1 FROM person o WHERE o.email = $2 AND o.proven_at IS NOT NULL AND o.id <> $1)";
    reference COMPANIES_OF = "SELECT count(*) FROM member WHERE person = $1";
    reference EMAIL = "SELECT email FROM person WHERE id = $1";
    reference REQUIRING = "SELECT count(*) FROM member m JOIN company c ON c.id = m.company \
                           WHERE m.person = $1 AND m.deactivated_at IS NULL AND c.second_factor_required = 1";
    company INSERT_MEMBER = "INSERT INTO member (company, person, role, created_at) VALUES ($1, $2, $3, $4) \
                             ON CONFLICT (company, person) DO NOTHING RETURNING person";
    company LIST = "SELECT m.person, p.email, p.name, m.role, m.created_at, m.deactivated_at FROM member m \
                    JOIN person p ON p.id = m.person WHERE m.company = $1 ORDER BY m.created_at, m.person";
    company GET = "SELECT m.person, p.email, p.name, m.role, m.created_at, m.deactivated_at FROM member m \
                   JOIN person p ON p.id = m.person WHERE m.company = $1 AND m.person = $2";
    company BY_EMAIL = "SELECT m.person, p.email, p.name, m.role, m.created_at, m.deactivated_at FROM person p \
                        JOIN member m ON m.company = $1 AND m.person = p.id WHERE p.email = ANY($2)";
    company UPDATE = "UPDATE member SET role = $3, deactivated_at = $4 WHERE company = $1 AND person = $2";
    company DELETE = "DELETE FROM member WHERE company = $1 AND person = $2";
}

/// A login that comes into being.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPerson<'a> {
    pub id: PersonId,
    pub email: &'a Email,
    pub name: &'a str,
    pub password_hash: &'a str,
    /// Whether the owner of the address made it.
    pub is_proven: bool,
}

/// Returns `false` if the address already has a proven login, and this one claims to be it.
pub fn insert_person(tx: &mut Tx, person: &NewPerson, now: Time) -> Result<bool, Error> {
    let NewPerson { id, email, name, password_hash, is_proven } = person;
    let proven_at = is_proven.then_some(now);
    let values = values![id, email.as_str(), *name, *password_hash, now, proven_at];
    Ok(tx.query_opt(&INSERT_PERSON, values)?.is_some())
}

/// The data that a login is checked against.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    pub person: PersonId,
    pub name: String,
    pub password_hash: String,
    /// When the owner of the address proved it; until then the login gets no further company.
    pub proven_at: Option<Time>,
}

pub fn login(snapshot: &mut Snapshot, person: PersonId) -> Result<Option<Login>, Error> {
    snapshot.query_opt(&LOGIN, values![&person])?.map(read_login).transpose()
}

/// The login of the address's owner.
pub fn proven_login(snapshot: &mut Snapshot, email: &Email) -> Result<Option<Login>, Error> {
    snapshot.query_opt(&PROVEN_LOGIN, values![email.as_str()])?.map(read_login).transpose()
}

fn read_login(mut row: Row) -> Result<Login, Error> {
    let row = &mut row;
    Ok(Login { person: row.take()?, name: row.take()?, password_hash: row.take()?, proven_at: row.take()? })
}

/// Notes that the owner of the address uses this login. Returns `false` if that was known, or another login with this
/// address is the proven one.
pub fn prove(tx: &mut Tx, person: PersonId, now: Time) -> Result<bool, Error> {
    Ok(tx.execute(&PROVE, values![&person, now])? > 0)
}

/// The address and the name of a person, whatever companies they belong to.
pub fn address(snapshot: &mut Snapshot, person: PersonId) -> Result<Option<(Email, String)>, Error> {
    let found = snapshot.query_opt(&ADDRESS, values![&person])?;
    found.map(|mut row| Ok((Email::from_stored(row.take()?), row.take()?))).transpose()
}

pub fn set_password(tx: &mut Tx, person: PersonId, password_hash: &str) -> Result<(), Error> {
    tx.execute(&SET_PASSWORD, values![&person, password_hash])?;
    Ok(())
}

pub fn rename(tx: &mut Tx, person: PersonId, name: &str) -> Result<(), Error> {
    tx.execute(&RENAME, values![&person, name])?;
    Ok(())
}

/// Gives a person a new address, which they proved; returns `false` if it has another proven login.
pub fn set_email(tx: &mut Tx, person: PersonId, email: &Email, now: Time) -> Result<bool, Error> {
    Ok(tx.execute(&SET_EMAIL, values![&person, email.as_str(), now])? > 0)
}

/// The number of companies that a person belongs to.
pub fn companies_of(snapshot: &mut Snapshot, person: PersonId) -> Result<i64, Error> {
    snapshot.query_opt(&COMPANIES_OF, values![&person])?.map_or(Ok(0), |mut row| row.take())
}

/// The address of a login, whatever companies it works for.
pub fn email(snapshot: &mut Snapshot, person: PersonId) -> Result<Option<Email>, Error> {
    let found = snapshot.query_opt(&EMAIL, values![&person])?;
    found.map(|mut row| row.take().map(Email::from_stored)).transpose()
}

/// The number of companies that require a second factor of this person.
pub fn companies_requiring_factor(snapshot: &mut Snapshot, person: PersonId) -> Result<i64, Error> {
    snapshot.query_opt(&REQUIRING, values![&person])?.map_or(Ok(0), |mut row| row.take())
}

/// Makes the person a member; returns `false` if they already are one.
pub fn insert(tx: &mut Tx, person: PersonId, role: Role, now: Time) -> Result<bool, Error> {
    Ok(tx.query_opt(&INSERT_MEMBER, values![&person, role.as_str(), now])?.is_some())
}

pub fn list(snapshot: &mut Snapshot) -> Result<Vec<Member>, Error> {
    snapshot.query(&LIST, &[])?.into_iter().map(read).collect()
}

pub fn get(snapshot: &mut Snapshot, person: PersonId) -> Result<Option<Member>, Error> {
    snapshot.query_opt(&GET, values![&person])?.map(read).transpose()
}

/// The members with these addresses, including deactivated ones.
pub fn by_email(snapshot: &mut Snapshot, emails: &[&Email]) -> Result<Vec<Member>, Error> {
    let keys: Vec<Value> = emails.iter().map(|email| Value::from(email.as_str())).collect();
    snapshot.query_keys(&BY_EMAIL, &[], &keys)?.into_iter().map(read).collect()
}

pub fn update(tx: &mut Tx, person: PersonId, role: Role, deactivated_at: Option<Time>) -> Result<(), Error> {
    tx.execute(&UPDATE, values![&person, role.as_str(), deactivated_at])?;
    Ok(())
}

pub fn delete(tx: &mut Tx, person: PersonId) -> Result<(), Error> {
    tx.execute(&DELETE, values![&person])?;
    Ok(())
}

fn read(mut row: Row) -> Result<Member, Error> {
    let row = &mut row;
    Ok(Member {
        person: row.take()?,
        email: Email::from_stored(row.take()?),
        name: row.take()?,
        role: Role::parse(&row.take::<String>()?)
            .map_err(|_| Error::fault("a member's role is not valid"))?,
        created_at: row.take()?,
        deactivated_at: row.take()?,
    })
}

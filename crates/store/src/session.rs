//! Sessions of logged-in people. A session is looked up by its company and the hash of its text, and is valid
//! only while the person is an active member there: deactivating someone takes effect immediately.

use rapport_domain::credential::SecretHash;
use rapport_domain::id::{CompanyId, PersonId, SessionId};
use rapport_domain::member::{Email, Role};
use rapport_domain::session::{Limits, Session};
use rapport_domain::time::Time;

use crate::error::Error;
use crate::statement::statements;
use crate::tx::{Across, Snapshot, Tx};
use crate::value::Row;
use crate::values;

/// The columns of a session as `s` in its company as `c`, in the order that `listed` takes them.
macro_rules! listed_columns {
    () => {
        "s.id, s.hash, c.name, c.session_idle_minutes, c.session_max_minutes, s.created_at, s.last_seen_at, \
         coalesce(s.proved_at, s.created_at), s.second_factor_at, s.address, s.browser, s.by_sso"
    };
}

statements! {
    // A session of an earlier release proved nothing since the login. A session that began with a password is over where
    // single sign-on is required, except that of the break-glass owner; one that began with single sign-on is over where
    // that is off.
    company FIND = "SELECT s.id, s.person, p.name, m.role, s.created_at, s.last_seen_at, \
                    coalesce(s.proved_at, s.created_at), \
                    s.by_sso, \
                    (SELECT count(*) FROM member o WHERE o.person = s.person AND o.deactivated_at IS NULL), \
                    s.second_factor_at, (SELECT count(*) FROM passkey k WHERE k.person = s.person) + \
                    (SELECT count(*) FROM totp t WHERE t.person = s.person AND t.confirmed_at IS NOT NULL) \
                    FROM session s JOIN member m ON m.company = s.company AND m.person = s.person \
                    JOIN person p ON p.id = s.person \
                    LEFT JOIN sso w ON w.company = s.company \
                    WHERE s.company = $1 AND s.hash = $2 AND m.deactivated_at IS NULL \
                    AND CASE WHEN s.by_sso = 1 THEN w.mode IS NOT NULL AND w.mode <> 'off' \
                    ELSE w.mode IS NULL OR w.mode <> 'required' OR w.break_glass = s.person END";
    company INSERT = "INSERT INTO session (company, hash, id, person, created_at, last_seen_at, proved_at, address, \
                      browser, second_factor_at, by_sso) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    company PROVE = "UPDATE session SET proved_at = $3 WHERE company = $1 AND hash = $2";
    company NOTE_FACTOR = "UPDATE session SET second_factor_at = $3 WHERE company = $1 AND hash = $2";
    company TOUCH = "UPDATE session SET last_seen_at = $3 WHERE company = $1 AND id = $2 AND last_seen_at < $3";
    company DELETE = "DELETE FROM session WHERE company = $1 AND hash = $2";
    company DELETE_OF_MEMBER = "DELETE FROM session WHERE company = $1 AND person = $2";
    company DELETE_OTHERS_HERE = "DELETE FROM session WHERE company = $1 AND person = $2 AND hash <> $3";
    company END_BY_PASSWORD = "DELETE FROM session WHERE company = $1 AND by_sso = 0 AND person <> $2";
    company END_BY_SSO = "DELETE FROM session WHERE company = $1 AND by_sso = 1";
    company PRUNE = "DELETE FROM session WHERE company = $1 AND (last_seen_at < $2 OR created_at < $3)";
    reference DELETE_ONE = "DELETE FROM session WHERE person = $1 AND id = $2 RETURNING company, address, browser";
    company DELETE_ONE_HERE = "DELETE FROM session WHERE company = $1 AND person = $2 AND id = $3 \
                               RETURNING company, address, browser";
    reference DELETE_OTHERS = "DELETE FROM session WHERE person = $1 AND hash <> $2";
    reference DELETE_OF_PERSON = "DELETE FROM session WHERE person = $1";
    reference OF_PERSON = concat!(
        "SELECT ", listed_columns!(), " FROM session s JOIN company c ON c.id = s.company WHERE s.person = $1 ",
        "ORDER BY s.last_seen_at DESC, s.id"
    );
    company OF_MEMBER = concat!(
        "SELECT ", listed_columns!(), " FROM session s JOIN company c ON c.id = s.company ",
        "WHERE s.company = $1 AND s.person = $2 ORDER BY s.last_seen_at DESC, s.id"
    );
    // A proven login first, then the oldest.
    reference LOGINS = "SELECT p.id, p.password_hash, p.proven_at FROM person p WHERE p.email = $1 AND EXISTS \
                        (SELECT 1 FROM member m WHERE m.person = p.id AND m.deactivated_at IS NULL) \
                        ORDER BY CASE WHEN p.proven_at IS NULL THEN 1 ELSE 0 END, p.created_at, p.id LIMIT $2";
    // The company they used last, or else the one they joined first.
    reference COMPANIES = "SELECT c.id, c.slug, c.name, m.role, (SELECT max(s.last_seen_at) FROM session s \
                           WHERE s.person = m.person AND s.company = m.company), CASE WHEN w.mode = 'required' \
                           AND (w.break_glass IS NULL OR w.break_glass <> m.person) THEN 1 ELSE 0 END \
                           FROM member m JOIN company c ON c.id = m.company LEFT JOIN sso w ON w.company = m.company \
                           WHERE m.person = $1 AND m.deactivated_at IS NULL ORDER BY m.created_at, c.id";
}

/// The live session of an active member.
pub fn find(snapshot: &mut Snapshot, hash: &SecretHash) -> Result<Option<Session>, Error> {
    snapshot.query_opt(&FIND, values![hash])?.map(read).transpose()
}

/// How and where a session starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun<'a> {
    pub id: SessionId,
    pub person: PersonId,
    pub at: Time,
    /// When it began and when its person last proved who they are. Both are earlier than `at` if it continues another.
    pub created_at: Time,
    pub proved_at: Time,
    pub address: Option<&'a str>,
    pub browser: Option<&'a str>,
    /// When a second factor was shown, if one was.
    pub second_factor_at: Option<Time>,
    pub by_sso: bool,
}

pub fn insert(tx: &mut Tx, hash: &SecretHash, begun: &Begun) -> Result<(), Error> {
    let Begun { id, person, at, created_at, proved_at, address, browser, second_factor_at, by_sso } = begun;
    let (at, created_at, proved_at, second_factor_at) = (*at, *created_at, *proved_at, *second_factor_at);
    let values =
        values![hash, id, person, created_at, at, proved_at, *address, *browser, second_factor_at, *by_sso];
    tx.execute(&INSERT, values)?;
    Ok(())
}

/// Notes that the person proved again who they are.
pub fn prove(tx: &mut Tx, hash: &SecretHash, at: Time) -> Result<(), Error> {
    tx.execute(&PROVE, values![hash, at])?;
    Ok(())
}

/// Notes that a second factor was shown in a session.
pub fn note_factor(tx: &mut Tx, hash: &SecretHash, at: Time) -> Result<(), Error> {
    tx.execute(&NOTE_FACTOR, values![hash, at])?;
    Ok(())
}

pub fn touch(tx: &mut Tx, id: SessionId, at: Time) -> Result<(), Error> {
    tx.execute(&TOUCH, values![&id, at])?;
    Ok(())
}

pub fn delete(tx: &mut Tx, hash: &SecretHash) -> Result<(), Error> {
    tx.execute(&DELETE, values![hash])?;
    Ok(())
}

/// Deletes the company's expired sessions.
pub fn prune(tx: &mut Tx, unseen_since: Time, begun_before: Time) -> Result<(), Error> {
    tx.execute(&PRUNE, values![unseen_since, begun_before])?;
    Ok(())
}

/// Where a session was started that has just ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub company: CompanyId,
    pub address: Option<String>,
    pub browser: Option<String>,
}

/// Ends one of the person's sessions, in any company. `None` if there is no such session.
pub fn delete_one(tx: &mut Tx, person: PersonId, id: SessionId) -> Result<Option<Ended>, Error> {
    tx.query_opt(&DELETE_ONE, values![&person, &id])?.map(ended).transpose()
}

/// The same in this company only.
pub fn delete_one_here(tx: &mut Tx, person: PersonId, id: SessionId) -> Result<Option<Ended>, Error> {
    tx.query_opt(&DELETE_ONE_HERE, values![&person, &id])?.map(ended).transpose()
}

fn ended(mut row: Row) -> Result<Ended, Error> {
    Ok(Ended { company: row.take()?, address: row.take()?, browser: row.take()? })
}

/// Ends the person's sessions in every company except one.
pub fn delete_others(tx: &mut Tx, person: PersonId, kept: &SecretHash) -> Result<(), Error> {
    tx.execute(&DELETE_OTHERS, values![&person, kept])?;
    Ok(())
}

/// Ends the person's sessions in this company except one.
pub fn delete_others_here(tx: &mut Tx, person: PersonId, kept: &SecretHash) -> Result<(), Error> {
    tx.execute(&DELETE_OTHERS_HERE, values![&person, kept])?;
    Ok(())
}

/// Ends all sessions in this company that began with a password, except those of one person.
pub fn end_by_password(tx: &mut Tx, spared: PersonId) -> Result<(), Error> {
    tx.execute(&END_BY_PASSWORD, values![&spared])?;
    Ok(())
}

/// Ends all sessions in this company that began with single sign-on.
pub fn end_by_sso(tx: &mut Tx) -> Result<(), Error> {
    tx.execute(&END_BY_SSO, &[])?;
    Ok(())
}

/// Ends the person's sessions in this company.
pub fn delete_of_member(tx: &mut Tx, person: PersonId) -> Result<(), Error> {
    tx.execute(&DELETE_OF_MEMBER, values![&person])?;
    Ok(())
}

/// Ends the person's sessions in every company.
pub fn delete_of_person(tx: &mut Tx, person: PersonId) -> Result<(), Error> {
    tx.execute(&DELETE_OF_PERSON, values![&person])?;
    Ok(())
}

/// A session as listed to its person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub id: SessionId,
    pub hash: SecretHash,
    pub company: String,
    pub limits: Limits,
    pub created_at: Time,
    pub last_seen_at: Time,
    pub proved_at: Time,
    /// When a second factor was shown, if one was.
    pub second_factor_at: Option<Time>,
    pub address: Option<String>,
    pub browser: Option<String>,
    pub by_sso: bool,
}

/// The person's sessions in all companies, most recently used first.
pub fn of_person(snapshot: &mut Snapshot, person: PersonId) -> Result<Vec<Listed>, Error> {
    snapshot.query(&OF_PERSON, values![&person])?.into_iter().map(listed).collect()
}

/// The person's sessions in this company, most recently used first.
pub fn of_member(snapshot: &mut Snapshot, person: PersonId) -> Result<Vec<Listed>, Error> {
    snapshot.query(&OF_MEMBER, values![&person])?.into_iter().map(listed).collect()
}

fn listed(mut row: Row) -> Result<Listed, Error> {
    let row = &mut row;
    Ok(Listed {
        id: row.take()?,
        hash: row.take()?,
        company: row.take()?,
        limits: Limits { idle_minutes: row.take()?, max_minutes: row.take()? },
        created_at: row.take()?,
        last_seen_at: row.take()?,
        proved_at: row.take()?,
        second_factor_at: row.take()?,
        address: row.take()?,
        browser: row.take()?,
        by_sso: row.take()?,
    })
}

/// A login with an address, and the hash to check its password against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub person: PersonId,
    pub password_hash: String,
    pub is_proven: bool,
}

/// The logins with this address that work for a company: the proven one first, then the oldest.
pub fn logins(across: &mut Across, email: &Email, limit: i64) -> Result<Vec<Candidate>, Error> {
    let candidate = |mut row: Row| {
        let row = &mut row;
        let (person, password_hash) = (row.take()?, row.take()?);
        Ok(Candidate { person, password_hash, is_proven: row.take::<Option<Time>>()?.is_some() })
    };
    across.query(&LOGINS, values![email.as_str(), limit])?.into_iter().map(candidate).collect()
}

/// A company that a person may work in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workplace {
    pub company: CompanyId,
    pub slug: String,
    pub name: String,
    pub role: Role,
    pub last_seen_at: Option<Time>,
    /// Whether the person can enter it only with single sign-on.
    pub needs_sso: bool,
}

/// The companies in which the person is an active member, in the order they joined.
pub fn workplaces(across: &mut Across, person: PersonId) -> Result<Vec<Workplace>, Error> {
    let workplace = |mut row: Row| {
        let row = &mut row;
        Ok(Workplace {
            company: row.take()?,
            slug: row.take()?,
            name: row.take()?,
            role: role(row)?,
            last_seen_at: row.take()?,
            needs_sso: row.take()?,
        })
    };
    across.query(&COMPANIES, values![&person])?.into_iter().map(workplace).collect()
}

fn role(row: &mut Row) -> Result<Role, Error> {
    Role::parse(&row.take::<String>()?).map_err(|_| Error::fault("a member's role is not valid"))
}

fn read(mut row: Row) -> Result<Session, Error> {
    let row = &mut row;
    Ok(Session {
        id: row.take()?,
        person: row.take()?,
        name: row.take()?,
        role: role(row)?,
        created_at: row.take()?,
        last_seen_at: row.take()?,
        proved_at: row.take()?,
        by_sso: row.take()?,
        companies: row.take()?,
        second_factor_at: row.take()?,
        has_factor: row.take()?,
    })
}

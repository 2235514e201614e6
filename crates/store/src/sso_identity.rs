//! The people that a company's identity provider knows, and the logins that they are linked to.

use rapport_domain::id::PersonId;
use rapport_domain::member::Email;
use rapport_domain::sso::Issuer;
use rapport_domain::time::Time;

use crate::error::Error;
use crate::statement::statements;
use crate::tx::{Snapshot, Tx};
use crate::value::Row;
use crate::values;

statements! {
    company FIND = "SELECT person FROM sso_identity WHERE company = $1 AND issuer = $2 AND subject = $3";
    company PUT = "INSERT INTO sso_identity (company, issuer, subject, person, email, created_at, last_login_at) \
                   VALUES ($1, $2, $3, $4, $5, $6, $6) ON CONFLICT (company, issuer, subject) DO UPDATE SET \
                   person = excluded.person, email = excluded.email, last_login_at = excluded.last_login_at";
    company OF_MEMBER = "SELECT issuer, subject, email FROM sso_identity WHERE company = $1 AND person = $2";
    reference DELETE_OF_PERSON = "DELETE FROM sso_identity WHERE person = $1";
}

/// The person that a provider's subject is linked to.
pub fn find(snapshot: &mut Snapshot, issuer: &Issuer, subject: &str) -> Result<Option<PersonId>, Error> {
    let found = snapshot.query_opt(&FIND, values![issuer.as_str(), subject])?;
    found.map(|mut row| row.take()).transpose()
}

/// Links a subject to a person, or notes that they logged in again.
pub fn put(
    tx: &mut Tx,
    issuer: &Issuer,
    subject: &str,
    person: PersonId,
    email: &Email,
    now: Time,
) -> Result<(), Error> {
    tx.execute(&PUT, values![issuer.as_str(), subject, &person, email.as_str(), now])?;
    Ok(())
}

/// Somebody whom a provider knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub issuer: Issuer,
    pub subject: String,
    /// The address that the provider vouched for at the last login.
    pub email: Email,
}

/// The identities of a member.
pub fn of_member(snapshot: &mut Snapshot, person: PersonId) -> Result<Vec<Identity>, Error> {
    let identity = |mut row: Row| {
        let row = &mut row;
        let (issuer, subject) = (Issuer::from_stored(row.take()?), row.take()?);
        Ok(Identity { issuer, subject, email: Email::from_stored(row.take()?) })
    };
    snapshot.query(&OF_MEMBER, values![&person])?.into_iter().map(identity).collect()
}

/// Forgets whom providers know a person as, in every company.
pub fn delete_of_person(tx: &mut Tx, person: PersonId) -> Result<(), Error> {
    tx.execute(&DELETE_OF_PERSON, values![&person])?;
    Ok(())
}

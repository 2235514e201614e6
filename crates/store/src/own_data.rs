//! What is stored about a person as such, in no company or in any.

use rapport_domain::id::PersonId;
use rapport_domain::member::{Email, Role};
use rapport_domain::time::Time;

use crate::error::Error;
use crate::statement::statements;
use crate::tx::Snapshot;
use crate::value::Row;
use crate::values;

statements! {
    reference LOGIN = "SELECT email, name, created_at, proven_at FROM person WHERE id = $1";
    reference MEMBERSHIPS = "SELECT c.slug, c.name, m.role, m.created_at, m.deactivated_at FROM member m \
                             JOIN company c ON c.id = m.company WHERE m.person = $1 ORDER BY m.created_at, c.id";
    reference RESETS = "SELECT created_at, expires_at FROM password_reset WHERE person = $1 ORDER BY created_at";
    reference INVITATIONS = "SELECT c.name, i.role, i.created_at, i.expires_at FROM invitation i \
                             JOIN company c ON c.id = i.company WHERE i.email = $1 ORDER BY i.created_at, c.id";
}

/// A login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnLogin {
    pub email: Email,
    pub name: String,
    pub created_at: Time,
    pub proven_at: Option<Time>,
}

pub fn login(snapshot: &mut Snapshot, person: PersonId) -> Result<Option<OwnLogin>, Error> {
    let login = |mut row: Row| {
        let row = &mut row;
        Ok(OwnLogin {
            email: Email::from_stored(row.take()?),
            name: row.take()?,
            created_at: row.take()?,
            proven_at: row.take()?,
        })
    };
    snapshot.query_opt(&LOGIN, values![&person])?.map(login).transpose()
}

/// A company that a person belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnMembership {
    pub project: String,
    pub company: String,
    pub role: Role,
    pub created_at: Time,
    pub deactivated_at: Option<Time>,
}

/// The companies of a person, in the order they joined.
pub fn memberships(snapshot: &mut Snapshot, person: PersonId) -> Result<Vec<OwnMembership>, Error> {
    let membership = |mut row: Row| {
        let row = &mut row;
        Ok(OwnMembership {
            project: row.take()?,
            company: row.take()?,
            role: role(row)?,
            created_at: row.take()?,
            deactivated_at: row.take()?,
        })
    };
    snapshot.query(&MEMBERSHIPS, values![&person])?.into_iter().map(membership).collect()
}

/// A person's open links for a new password: when each was made, and until when it works.
pub fn resets(snapshot: &mut Snapshot, person: PersonId) -> Result<Vec<(Time, Time)>, Error> {
    let rows = snapshot.query(&RESETS, values![&person])?;
    rows.into_iter().map(|mut row| Ok((row.take()?, row.take()?))).collect()
}

/// An invitation to an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnInvitation {
    pub company: String,
    pub role: Role,
    pub created_at: Time,
    pub expires_at: Time,
}

/// The invitations to an address, from all companies. Only for its owner.
pub fn invitations(snapshot: &mut Snapshot, email: &Email) -> Result<Vec<OwnInvitation>, Error> {
    let invitation = |mut row: Row| {
        let row = &mut row;
        Ok(OwnInvitation {
            company: row.take()?,
            role: role(row)?,
            created_at: row.take()?,
            expires_at: row.take()?,
        })
    };
    snapshot.query(&INVITATIONS, values![email.as_str()])?.into_iter().map(invitation).collect()
}

fn role(row: &mut Row) -> Result<Role, Error> {
    Role::parse(&row.take::<String>()?).map_err(|_| Error::fault("a member's role is not valid"))
}

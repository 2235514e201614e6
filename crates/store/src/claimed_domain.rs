//! Email domains that the server's administrator confirmed as a company's. A domain is at most one company's, so this is
//! a reference table.

use rapport_domain::email_domain::EmailDomain;
use rapport_domain::time::Time;

use crate::error::Error;
use crate::statement::statements;
use crate::tx::{Across, Snapshot, Tx};
use crate::value::Row;
use crate::values;

statements! {
    company LIST = "SELECT domain, claimed_at FROM claimed_domain WHERE company = $1 ORDER BY domain";
    company CLAIM = "INSERT INTO claimed_domain (company, domain, claimed_at) VALUES ($1, $2, $3) \
                     ON CONFLICT (domain) DO NOTHING RETURNING domain";
    company RELEASE = "DELETE FROM claimed_domain WHERE company = $1 AND domain = $2 RETURNING domain";
    reference OWNER = "SELECT c.slug FROM claimed_domain d JOIN company c ON c.id = d.company WHERE d.domain = $1";
}

/// A domain of the company.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    pub domain: EmailDomain,
    pub claimed_at: Time,
}

pub fn list(snapshot: &mut Snapshot) -> Result<Vec<Claimed>, Error> {
    let read =
        |mut row: Row| Ok(Claimed { domain: EmailDomain::from_stored(row.take()?), claimed_at: row.take()? });
    snapshot.query(&LIST, &[])?.into_iter().map(read).collect()
}

/// Returns `false` if the domain is a company's already, this one's or another's.
pub fn claim(tx: &mut Tx, domain: &EmailDomain, now: Time) -> Result<bool, Error> {
    Ok(tx.query_opt(&CLAIM, values![domain.as_str(), now])?.is_some())
}

/// Returns `false` if the domain isn't the company's.
pub fn release(tx: &mut Tx, domain: &EmailDomain) -> Result<bool, Error> {
    Ok(tx.query_opt(&RELEASE, values![domain.as_str()])?.is_some())
}

/// The slug of the company that a domain belongs to.
pub fn owner(across: &mut Across, domain: &EmailDomain) -> Result<Option<String>, Error> {
    across.query_opt(&OWNER, values![domain.as_str()])?.map(|mut row| row.take()).transpose()
}

/// The same, inside a transaction of any company.
pub fn owner_now(tx: &mut Tx, domain: &EmailDomain) -> Result<Option<String>, Error> {
    tx.query_opt(&OWNER, values![domain.as_str()])?.map(|mut row| row.take()).transpose()
}

//! The settings of a company's single sign-on, and its client secret, which only the vault can decrypt.

use rapport_domain::email_domain::EmailDomain;
use rapport_domain::id::SsoId;
use rapport_domain::member::Role;
use rapport_domain::sso::{Issuer, Mode, Settings};
use rapport_domain::time::Time;

use crate::error::Error;
use crate::statement::statements;
use crate::tx::{Snapshot, Tx};
use crate::value::Row;
use crate::values;

statements! {
    company GET = "SELECT id, mode, issuer, client_id, domains, role, break_glass, updated_at FROM sso \
                   WHERE company = $1";
    company SECRET = "SELECT secret FROM sso WHERE company = $1";
    company PUT = "INSERT INTO sso (company, id, mode, issuer, client_id, domains, role, break_glass, updated_at, secret) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (company) DO UPDATE SET \
                   mode = excluded.mode, issuer = excluded.issuer, client_id = excluded.client_id, \
                   domains = excluded.domains, role = excluded.role, break_glass = excluded.break_glass, \
                   updated_at = excluded.updated_at, secret = excluded.secret";
    company DELETE = "DELETE FROM sso WHERE company = $1";
}

/// A company's single sign-on, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sso {
    pub id: SsoId,
    pub settings: Settings,
    pub updated_at: Time,
}

pub fn get(snapshot: &mut Snapshot) -> Result<Option<Sso>, Error> {
    snapshot.query_opt(&GET, &[])?.map(read).transpose()
}

/// The encrypted client secret.
pub fn sealed_secret(snapshot: &mut Snapshot) -> Result<Option<Vec<u8>>, Error> {
    snapshot.query_opt(&SECRET, &[])?.map(|mut row| row.take()).transpose()
}

pub fn put(tx: &mut Tx, sso: &Sso, secret: &[u8]) -> Result<(), Error> {
    let Sso { id, settings, updated_at } = sso;
    let domains = settings.domains.iter().map(EmailDomain::as_str).collect::<Vec<_>>().join(",");
    let values = values![
        id,
        settings.mode.as_str(),
        settings.issuer.as_str(),
        &settings.client_id,
        &domains,
        settings.role.as_str(),
        settings.break_glass.as_ref(),
        *updated_at,
        secret,
    ];
    tx.execute(&PUT, values)?;
    Ok(())
}

pub fn delete(tx: &mut Tx) -> Result<(), Error> {
    tx.execute(&DELETE, &[])?;
    Ok(())
}

fn read(mut row: Row) -> Result<Sso, Error> {
    let row = &mut row;
    let bad = |what: &str| Error::fault(format!("the stored {what} of single sign-on is not valid"));
    let id = row.take()?;
    let mode = Mode::parse(&row.take::<String>()?).map_err(|_| bad("mode"))?;
    let (issuer, client_id) = (Issuer::from_stored(row.take()?), row.take()?);
    let domains = row.take::<String>()?;
    let domains = domains.split(',').map(|domain| EmailDomain::from_stored(domain.to_owned())).collect();
    let role = Role::parse(&row.take::<String>()?).map_err(|_| bad("role"))?;
    let settings = Settings { mode, issuer, client_id, domains, role, break_glass: row.take()? };
    Ok(Sso { id, settings, updated_at: row.take()? })
}

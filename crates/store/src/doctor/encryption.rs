//! What a database says about its encryption key, read without changing anything, whatever its schema version.

use rapport_domain::id::{MailId, PersonId, ResponseId, SsoId, WebhookId};
use rusqlite::{Connection, OptionalExtension as _};

use super::{SESSION, STATEMENT_LIMIT, only, open_read_only};
use crate::encryption_key::Noted;
use crate::engine::{Database, Link};
use crate::error::Error;
use crate::sealed::Owner;

/// Enough to tell whether a key fits.
const SOME: usize = 100;

/// The database's encryption key, as far as it can be told.
#[derive(Debug, Default)]
pub struct Encryption {
    pub noted: Option<Noted>,
    /// If no key is noted, some of the secrets that it would have to open.
    pub some_secrets: Vec<(Owner, Vec<u8>)>,
}

/// Reads it; an empty result if there is no database yet.
pub fn encryption(database: &Database) -> Result<Encryption, String> {
    match database {
        Database::Sqlite(path) if !path.exists() => Ok(Encryption::default()),
        Database::Sqlite(path) => {
            open_read_only(path).and_then(|sqlite| of_sqlite(&sqlite)).map_err(|error| error.to_string())
        }
        Database::Postgres(url) => of_postgres(url).map_err(|error| match error {
            Error::Unavailable(detail) | Error::Fault(detail) => detail,
            other => other.to_string(),
        }),
    }
}

fn noted_sql() -> &'static str {
    "SELECT fingerprint, previous FROM encryption_key WHERE id = 1"
}

fn secrets_sql(before: Owner) -> String {
    let (table, column) = before.column();
    let (id, order) = if before.is_of_company() { ("id", "company, id") } else { ("person", "person") };
    format!("SELECT {id}, {column} FROM {table} WHERE {column} IS NOT NULL ORDER BY {order} LIMIT {SOME}")
}

fn owner_like(before: Owner, id: [u8; 16]) -> Owner {
    match before {
        Owner::Webhook(_) => Owner::Webhook(WebhookId::from_bytes(id)),
        Owner::WebhookHeaders(_) => Owner::WebhookHeaders(WebhookId::from_bytes(id)),
        Owner::MailLink(_) => Owner::MailLink(MailId::from_bytes(id)),
        Owner::Totp(_) => Owner::Totp(PersonId::from_bytes(id)),
        Owner::SsoClient(_) => Owner::SsoClient(SsoId::from_bytes(id)),
        Owner::Response(_) => Owner::Response(ResponseId::from_bytes(id)),
    }
}

fn of_sqlite(sqlite: &Connection) -> Result<Encryption, rusqlite::Error> {
    let exists = |table: &str| {
        let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1";
        sqlite.query_row(sql, [table], |_| Ok(())).optional().map(|found| found.is_some())
    };
    let has = |(table, column): (&str, &str)| {
        let sql = "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2";
        sqlite.query_row(sql, [table, column], |_| Ok(())).optional().map(|found| found.is_some())
    };
    let mut found = Encryption::default();
    if exists("encryption_key")? {
        let read = |row: &rusqlite::Row| Ok(Noted { fingerprint: row.get(0)?, previous: row.get(1)? });
        found.noted = sqlite.query_row(noted_sql(), [], read).optional()?;
    }
    for before in Owner::BEFORE_ALL {
        if found.noted.is_some() || !has(before.column())? {
            continue;
        }
        let mut statement = sqlite.prepare(&secrets_sql(before))?;
        let rows = statement.query_map([], |row| Ok((owner_like(before, row.get(0)?), row.get(1)?)))?;
        found.some_secrets.extend(rows.collect::<Result<Vec<_>, _>>()?);
    }
    Ok(found)
}

fn of_postgres(url: &str) -> Result<Encryption, Error> {
    let mut link = Link::to(url, SESSION, Some(STATEMENT_LIMIT))?;
    link.connect()?;
    let unexpected = |error: tokio_postgres::Error| Error::fault(error.to_string());
    let mut found = Encryption::default();
    if exists(&mut link, "encryption_key")? {
        let statement = link.prepare(noted_sql())?;
        for row in link.query(&statement, &[])? {
            let fingerprint = row.try_get(0).map_err(unexpected)?;
            found.noted = Some(Noted { fingerprint, previous: row.try_get(1).map_err(unexpected)? });
        }
    }
    for before in Owner::BEFORE_ALL {
        if found.noted.is_some() || !has(&mut link, before.column())? {
            continue;
        }
        let statement = link.prepare(&secrets_sql(before))?;
        for row in link.query(&statement, &[])? {
            let id: &[u8] = row.try_get(0).map_err(unexpected)?;
            let id = id.try_into().map_err(|_| Error::fault("an id doesn't have 16 bytes"))?;
            found.some_secrets.push((owner_like(before, id), row.try_get(1).map_err(unexpected)?));
        }
    }
    Ok(found)
}

/// Whether the table exists and has the column, which an older one may lack.
fn has(link: &mut Link, (table, column): (&str, &str)) -> Result<bool, Error> {
    let sql = "SELECT EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass($1) AND attname = $2 \
               AND NOT attisdropped)";
    let statement = link.prepare(sql)?;
    only(&link.query(&statement, &[&table, &column])?)
}

fn exists(link: &mut Link, table: &str) -> Result<bool, Error> {
    let statement = link.prepare("SELECT to_regclass($1) IS NOT NULL")?;
    only(&link.query(&statement, &[&table])?)
}

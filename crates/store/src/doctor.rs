//! Checks that tell an administrator about a database. Read-only: creates and changes nothing.

mod encryption;

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::copy;
use crate::engine::postgres::address::Address;
use crate::engine::postgres::pooler;
use crate::engine::{Database, Link};
use crate::error::Error;
use crate::migrate;

pub use encryption::{Encryption, encryption};

const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
const SESSION: &str = "SET statement_timeout = '15s'";
const STATEMENT_LIMIT: Duration = Duration::from_secs(17);
/// The oldest version that the tests run on.
const OLDEST_POSTGRES: i32 = 150_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Ok,
    Warn,
    Fail,
}

impl Level {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub level: Level,
    pub text: String,
}

impl Finding {
    fn new(level: Level, text: impl Into<String>) -> Self {
        Self { level, text: text.into() }
    }
}

pub fn examine(database: &Database) -> Vec<Finding> {
    let mut findings = Vec::new();
    let ended = match database {
        Database::Sqlite(path) => examine_sqlite(path, &mut findings).map_err(|error| error.to_string()),
        Database::Postgres(url) => examine_postgres(url, &mut findings).map_err(|error| match error {
            Error::Unavailable(detail) | Error::Fault(detail) => detail,
            other => other.to_string(),
        }),
    };
    if let Err(error) = ended {
        findings.push(Finding::new(Level::Fail, error));
    }
    findings
}

fn examine_sqlite(path: &Path, findings: &mut Vec<Finding>) -> Result<(), rusqlite::Error> {
    if let Err(Error::Unavailable(incomplete)) = copy::refuse_file(path) {
        findings.push(Finding::new(Level::Fail, incomplete));
        return Ok(());
    }
    if !path.exists() {
        findings.push(Finding::new(Level::Warn, "does not exist yet; serving creates it"));
        return Ok(());
    }
    let connection = open_read_only(path)?;
    findings.push(Finding::new(Level::Ok, format!("SQLite {}", rusqlite::version())));
    match migrate::sqlite::version(&connection) {
        Ok(version) => findings.push(schema(version)),
        Err(error) => findings.push(Finding::new(Level::Fail, error.to_string())),
    }
    let answer: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    findings.push(match answer.as_str() {
        "ok" => Finding::new(Level::Ok, "integrity check passed"),
        damage => Finding::new(Level::Fail, format!("damaged: {damage}; restore it from a backup")),
    });
    Ok(())
}

fn open_read_only(path: &Path) -> Result<Connection, rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok(connection)
}

fn examine_postgres(url: &str, findings: &mut Vec<Finding>) -> Result<(), Error> {
    let address = Address::parse(url).map_err(Error::Unavailable)?;
    findings.extend(address.warnings.iter().map(|warning| Finding::new(Level::Warn, warning)));
    let mut link = Link::new(&address, SESSION, Some(STATEMENT_LIMIT))?;
    link.connect()?;
    copy::refuse_server(&mut link)?;
    pooler::refuse(&mut link, &address)?;
    findings.push(transport(&mut link)?);
    let shown = setting(&mut link, "server_version")?;
    let number: i32 = setting(&mut link, "server_version_num")?.parse().unwrap_or(0);
    let level = if number >= OLDEST_POSTGRES { Level::Ok } else { Level::Warn };
    findings.push(Finding::new(level, format!("PostgreSQL {shown} (tested with 15 and newer)")));
    findings.push(schema(postgres_version(&mut link)?));
    for (name, good, why) in [
        ("fsync", &["on"][..], "a machine crash can destroy the database"),
        ("full_page_writes", &["on"], "a machine crash can destroy the database"),
        (
            "synchronous_commit",
            &["on", "remote_apply", "remote_write", "local"],
            "a crash can lose acknowledged changes",
        ),
        ("server_encoding", &["UTF8"], "some text cannot be stored"),
    ] {
        let value = setting(&mut link, name)?;
        findings.push(if good.contains(&value.as_str()) {
            Finding::new(Level::Ok, format!("{name} = {value}"))
        } else {
            Finding::new(Level::Warn, format!("{name} = {value}: {why}"))
        });
    }
    Ok(())
}

/// Whether this connection is encrypted; one on this machine need not be.
fn transport(link: &mut Link) -> Result<Finding, Error> {
    let known = "SELECT CASE WHEN ssl THEN version ELSE '' END FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    let version = link.last_text(known)?.unwrap_or_default();
    let local = "SELECT CASE WHEN inet_server_addr() IS NULL OR inet_server_addr() <<= '127.0.0.0/8' \
                 OR inet_server_addr() = '::1' THEN 'local' ELSE '' END";
    Ok(if !version.is_empty() {
        Finding::new(Level::Ok, format!("the connection is encrypted with {version}"))
    } else if link.last_text(local)?.as_deref() == Some("local") {
        Finding::new(Level::Ok, "the connection is not encrypted, and stays on this machine")
    } else {
        Finding::new(Level::Warn, "the connection is not encrypted; use sslmode=verify-full")
    })
}

fn setting(link: &mut Link, name: &str) -> Result<String, Error> {
    let statement = link.prepare("SELECT current_setting($1)")?;
    only(&link.query(&statement, &[&name])?)
}

fn postgres_version(link: &mut Link) -> Result<i64, Error> {
    let statement = link.prepare("SELECT to_regclass('schema_version') IS NOT NULL")?;
    let known: bool = only(&link.query(&statement, &[])?)?;
    if !known {
        return Ok(0);
    }
    let statement = link.prepare("SELECT coalesce(max(version), 0) FROM schema_version")?;
    only(&link.query(&statement, &[])?)
}

/// The only value of the only row.
fn only<'a, T: FromSql<'a>>(rows: &'a [Row]) -> Result<T, Error> {
    let row = rows.first().ok_or_else(|| Error::fault("a query returned no row"))?;
    row.try_get(0).map_err(|error| Error::fault(error.to_string()))
}

fn schema(found: i64) -> Finding {
    let known = migrate::VERSION;
    let (level, text) = match found {
        0 => (Level::Warn, "no schema yet; serving creates it".to_owned()),
        _ if found < known => {
            (Level::Warn, format!("schema version {found}; serving upgrades it to {known}"))
        }
        _ if found == known => (Level::Ok, format!("schema version {found}")),
        _ => (
            Level::Fail,
            format!("schema version {found}; this rapport supports up to {known}: use a newer one"),
        ),
    };
    Finding::new(level, text)
}

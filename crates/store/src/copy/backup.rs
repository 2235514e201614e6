//! Backup files: a SQLite file with a whole database, and with what it takes to verify it: when it was made,
//! from what, and the count and the checksum of every table.

use std::path::Path;

use rapport_domain::time::Time;
use rusqlite::{Connection, OptionalExtension as _};

use super::part::Leftover;
use super::schema::Schema;
use super::sqlite::{self, SqliteSide, run};
use super::sum::compare;
use super::{
    Error, TableSum, View, Watch, expect_version, incomplete, into_file, open_source, pages, postgres,
};
use super::{part::Part, refuse_filled_file};
use crate::engine::Database;
use crate::engine::sqlite::{from_sqlite, in_words};
use crate::migrate;

/// The tables that only a backup has.
pub(super) const METADATA: [&str; 2] = ["backup", "backup_table"];
const CREATE: &str = "
    CREATE TABLE backup (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL);
    CREATE TABLE backup_table (name TEXT NOT NULL PRIMARY KEY, \"rows\" INTEGER NOT NULL, checksum TEXT NOT NULL)";
const DROP: &str = "DROP TABLE backup; DROP TABLE backup_table";

/// What a backup says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// Everything that was acknowledged before this is in the backup.
    pub made_at: Time,
    /// The version of the program that made it.
    pub program: String,
    pub schema: i64,
    /// The database that it was made from: SQLite or PostgreSQL.
    pub engine: String,
    /// Of the encryption key that the database names, or else of the one that the program has; `None` if neither is
    /// known.
    pub fingerprint: Option<String>,
    /// The encryption key itself, in hexadecimal digits, if the operator wanted it in the file.
    pub key: Option<String>,
}

impl About {
    pub fn new(from: &Database, made_at: Time, program: &str) -> Self {
        let engine = match from {
            Database::Sqlite(_) => "SQLite",
            Database::Postgres(_) => "PostgreSQL",
        };
        Self {
            made_at,
            program: program.to_owned(),
            schema: migrate::VERSION,
            engine: engine.to_owned(),
            fingerprint: None,
            key: None,
        }
    }

    fn entries(&self) -> Vec<(&'static str, String)> {
        let always = [
            ("made_at", self.made_at.as_micros().to_string()),
            ("program", self.program.clone()),
            ("schema", self.schema.to_string()),
            ("engine", self.engine.clone()),
        ];
        let sometimes = [("fingerprint", self.fingerprint.clone()), ("key", self.key.clone())];
        let sometimes = sometimes.into_iter().filter_map(|(name, value)| Some((name, value?)));
        always.into_iter().chain(sometimes).collect()
    }

    fn read(connection: &Connection) -> Result<Self, Error> {
        let text = |name: &str| -> Result<Option<String>, Error> {
            let found =
                connection.query_row("SELECT value FROM backup WHERE name = ?1", [name], |row| row.get(0));
            found.optional().map_err(|error| from_sqlite(error).into())
        };
        let required =
            |name: &str| text(name)?.ok_or_else(|| Error::Refused(format!("it doesn't say its {name}")));
        let number = |name: &str| {
            let bad = || Error::Refused(format!("its {name} is not a number"));
            required(name)?.parse::<i64>().map_err(|_| bad())
        };
        Ok(Self {
            made_at: Time::from_micros(number("made_at")?),
            program: required("program")?,
            schema: number("schema")?,
            engine: required("engine")?,
            fingerprint: text("fingerprint")?,
            key: text("key")?,
        })
    }
}

/// A backup that is what it says it is.
#[derive(Debug, Clone)]
pub struct Verified {
    pub about: About,
    pub tables: Vec<TableSum>,
}

/// Copies a database into a new backup file.
pub fn back_up(
    from: &Database,
    file: &Path,
    about: &About,
    watch: &mut Watch,
) -> Result<Vec<TableSum>, Error> {
    if file.exists() {
        return Err(Error::Refused(format!("{} already exists: choose another name", file.display())));
    }
    incomplete::refuse_source(from)?;
    into_file(from, file, Leftover::Nothing, watch, |target, sums| {
        let write = || -> rusqlite::Result<()> {
            target.execute_batch("BEGIN")?;
            target.execute_batch(CREATE)?;
            let about =
                About { fingerprint: noted_key(target)?.or(about.fingerprint.clone()), ..about.clone() };
            for (name, value) in about.entries() {
                target.execute("INSERT INTO backup (name, value) VALUES (?1, ?2)", (name, value))?;
            }
            for TableSum { table, rows, checksum } in sums {
                let rows = i64::try_from(*rows).unwrap_or(i64::MAX);
                let insert = "INSERT INTO backup_table (name, \"rows\", checksum) VALUES (?1, ?2, ?3)";
                target.execute(insert, (table, rows, checksum))?;
            }
            target.execute_batch("COMMIT")
        };
        write().map_err(|error| from_sqlite(error).into())
    })
}

/// The fingerprint of the key that a copied database was encrypted with.
fn noted_key(copy: &Connection) -> rusqlite::Result<Option<String>> {
    copy.query_row("SELECT fingerprint FROM encryption_key", [], |row| row.get(0)).optional()
}

/// What a backup file says about itself, without verifying it.
pub fn about(file: &Path) -> Result<About, Error> {
    open(file).map(|(_, about)| about)
}

/// Checks that a backup file is intact: its structure, and every row of every table.
pub fn verify(file: &Path, watch: &mut Watch) -> Result<Verified, Error> {
    let not_intact = |error| match error {
        Error::Refused(cause) | Error::Differs(cause) => damaged(file, &cause),
        other => other,
    };
    let (connection, about) = open(file)?;
    let checked = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get::<_, String>(0));
    match checked.map_err(|error| damaged(file, &in_words(&error)))?.as_str() {
        "ok" => {}
        damage => return Err(damaged(file, damage)),
    }
    let recorded = recorded(&connection).map_err(not_intact)?;
    let schema = Schema::read(&connection)?;
    let found = sum_up_file(&schema, connection, watch).map_err(|error| match error {
        Error::Storage(error) => damaged(file, &error.to_string()),
        other => not_intact(other),
    })?;
    compare(&recorded, &found).map_err(not_intact)?;
    Ok(Verified { about, tables: found })
}

/// Copies a backup file that was verified into an empty database. A backup of an older version can be restored
/// into SQLite, where the service upgrades it.
pub fn restore(file: &Path, verified: &Verified, to: &Database, watch: &mut Watch) -> Result<(), Error> {
    match to {
        Database::Sqlite(path) => {
            refuse_newer(&verified.about)?;
            refuse_filled_file(path)?;
            let (source, _) = open(file)?;
            let part = Part::create(path, Leftover::Mark, watch)?;
            let (target, sums) = pages::copy(source, &part, watch)?;
            compare(&verified.tables, &sums)?;
            run(&target, DROP)?;
            sqlite::close(target)?;
            part.finish()?;
        }
        Database::Postgres(url) => {
            refuse_newer(&verified.about)?;
            expect_version(verified.about.schema, "the backup").map_err(|_| {
                Error::Refused(format!(
                    "the backup has schema version {}, but this rapport needs {}: restore it into an empty data \
                     directory, run `rapport migrate` there, and copy that to PostgreSQL with `rapport copy`",
                    verified.about.schema,
                    migrate::VERSION
                ))
            })?;
            let mut source = open_source(&Database::Sqlite(file.to_owned()))?;
            let sums = postgres::into_server(source.as_mut(), url, watch)?;
            compare(&verified.tables, &sums)?;
        }
    }
    Ok(())
}

fn refuse_newer(about: &About) -> Result<(), Error> {
    if about.schema <= migrate::VERSION {
        return Ok(());
    }
    Err(Error::Refused(format!(
        "the backup was made by rapport {} with schema version {}, which is newer than this one ({}): use that version",
        about.program,
        about.schema,
        migrate::VERSION
    )))
}

fn open(file: &Path) -> Result<(Connection, About), Error> {
    let connection = sqlite::open_snapshot(file).map_err(|error| match error {
        Error::Storage(error) => damaged(file, &cause(error)),
        other => other,
    })?;
    let is_known = "SELECT count(*) FROM sqlite_schema WHERE name IN ('backup', 'backup_table')";
    let tables = connection.query_row(is_known, [], |row| row.get::<_, i64>(0));
    if tables.map_err(|error| damaged(file, &in_words(&error)))? != 2 {
        return Err(Error::Refused(format!("{} is not a complete Rapport backup", file.display())));
    }
    let about = About::read(&connection).map_err(|error| match error {
        Error::Refused(text) => damaged(file, &text),
        Error::Storage(error) => damaged(file, &cause(error)),
        other => other,
    })?;
    Ok((connection, about))
}

fn recorded(connection: &Connection) -> Result<Vec<TableSum>, Error> {
    let read = || -> rusqlite::Result<Vec<TableSum>> {
        let mut statement =
            connection.prepare("SELECT name, \"rows\", checksum FROM backup_table ORDER BY name")?;
        let rows = statement.query_map([], |row| {
            let rows: i64 = row.get(1)?;
            Ok(TableSum { table: row.get(0)?, rows: u64::try_from(rows).unwrap_or(0), checksum: row.get(2)? })
        })?;
        rows.collect()
    };
    read().map_err(|error| from_sqlite(error).into())
}

fn sum_up_file(schema: &Schema, connection: Connection, watch: &mut Watch) -> Result<Vec<TableSum>, Error> {
    super::sum_up(schema, &mut SqliteSide::new(connection), View::default(), watch)
}

fn damaged(file: &Path, cause: &str) -> Error {
    Error::Refused(format!("{} is damaged: {cause}", file.display()))
}

/// The error's message, without the store's own prefix.
fn cause(error: crate::Error) -> String {
    match error {
        crate::Error::Unavailable(cause) | crate::Error::Fault(cause) => cause,
        other => other.to_string(),
    }
}

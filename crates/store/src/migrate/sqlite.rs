//! Upgrades of an embedded database, each version in its own transaction.
//!
//! A database that isn't new is first backed up next to itself. One process at a time upgrades it, holding a lock on a
//! file that notes the version it began with and the name of the backup. The file is removed when the upgrade is
//! complete: a process that finds it continues an upgrade that was killed, and needs no second backup.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};

use super::progress::{Rows, Teller};
use super::steps::{Kind, Step};
use super::{VERSION, VERSION_TABLE, pending, record, refuse_newer};
use crate::dialect::SQLITE_WORDS;
use crate::engine::sqlite::in_words;
use crate::error::Error;

/// Copies hold everything that the database holds.
const PRIVATE: u32 = 0o600;

pub fn run(connection: &mut Connection, path: &Path, teller: &mut Teller) -> Result<i64, Error> {
    let found = version(connection)?;
    refuse_newer(found)?;
    match found {
        VERSION => {}
        0 => create(connection)?,
        _ => upgrade(connection, path, teller)?,
    }
    Ok(VERSION)
}

pub fn version(connection: &Connection) -> Result<i64, Error> {
    let bad = |error: rusqlite::Error| {
        Error::Unavailable(format!("the database cannot be read: {}", in_words(&error)))
    };
    let known: Option<i64> = connection
        .query_row("SELECT 1 FROM sqlite_schema WHERE name = 'schema_version'", [], |row| row.get(0))
        .optional()
        .map_err(bad)?;
    if known.is_none() {
        return Ok(0);
    }
    connection
        .query_row("SELECT coalesce(max(version), 0) FROM schema_version", [], |row| row.get(0))
        .map_err(bad)
}

/// A new database gets everything in one transaction.
fn create(connection: &mut Connection) -> Result<(), Error> {
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    tx.execute_batch(VERSION_TABLE).map_err(failed)?;
    // Another process may have been faster.
    for migration in pending(version(&tx)?, &SQLITE_WORDS)? {
        tx.execute_batch(&migration.whole()).map_err(failed)?;
    }
    tx.commit().map_err(failed)
}

fn upgrade(connection: &mut Connection, path: &Path, teller: &mut Teller) -> Result<(), Error> {
    teller.begin(VERSION);
    let mut turn = Turn::take(path, teller).map_err(|error| backup_failed(&error))?;
    // Another process may have been faster.
    let found = version(connection)?;
    if found < VERSION {
        let (from, copy) = turn.backup(path, found).map_err(|error| backup_failed(&error))?;
        // A killed process may have copied the database and changed nothing yet: it may have been used since.
        if from == found || !copy.exists() {
            teller.say(format!("backing up to {}", copy.display()), None);
            copy_into(connection, &copy)?;
            tracing::info!(backup = %copy.display(), "backed up the database before migrating");
        }
    }
    for migration in pending(found, &SQLITE_WORDS)? {
        teller.begin(migration.version);
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        for step in &migration.steps {
            run_step(&tx, step, teller)?;
        }
        tx.execute_batch(&record(migration.version)).map_err(failed)?;
        tx.commit().map_err(failed)?;
        teller.done();
    }
    turn.finished();
    Ok(())
}

fn run_step(tx: &Connection, step: &Step, teller: &mut Teller) -> Result<(), Error> {
    teller.begin_step();
    tx.execute_batch(&step.whole()).map_err(failed)?;
    match &step.kind {
        Kind::Change => {}
        Kind::Fill(fill) => {
            teller.say("filled", Some(Rows { table: fill.table.clone(), done: tx.changes(), about: None }));
        }
        Kind::Index(index) => teller.say(format!("built the index {} on {}", index.name, index.table), None),
    }
    Ok(())
}

fn failed(error: rusqlite::Error) -> Error {
    Error::Unavailable(format!("the schema could not be upgraded: {}", in_words(&error)))
}

/// The right to upgrade a database.
struct Turn {
    path: PathBuf,
    file: File,
}

impl Turn {
    /// Waits for its turn.
    fn take(database: &Path, teller: &mut Teller) -> io::Result<Self> {
        let path = beside(database, ".migrating");
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).mode(PRIVATE).open(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                teller.say("waiting for another process that upgrades this database", None);
                file.lock()?;
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        Ok(Self { path, file })
    }

    /// The version that this upgrade began with, and its backup, which may exist already. The backup of an earlier
    /// upgrade is not this one's: the database may have been restored and used since.
    fn backup(&mut self, database: &Path, found: i64) -> io::Result<(i64, PathBuf)> {
        let mut text = String::new();
        self.file.read_to_string(&mut text)?;
        let noted = text.split_once(' ').and_then(|(from, name)| Some((from.parse().ok()?, name)));
        if let Some((from, name)) = noted {
            return Ok((from, database.with_file_name(name)));
        }
        let mut copies = (1..).map(|number| {
            let again = if number == 1 { String::new() } else { format!(".{number}") };
            beside(database, &format!(".before-v{VERSION}-from-v{found}{again}"))
        });
        let copy = copies.find(|copy| !copy.exists()).unwrap_or_default();
        self.file.set_len(0)?;
        self.file.rewind()?;
        write!(self.file, "{found} {}", copy.file_name().unwrap_or_default().display())?;
        self.file.sync_all()?;
        Ok((found, copy))
    }

    fn finished(self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Copies a database. The copy gets its name only once it is complete and on the disk, so a process that is killed
/// halfway leaves nothing that looks like a backup.
fn copy_into(connection: &Connection, copy: &Path) -> Result<(), Error> {
    let part = beside(copy, ".part");
    // Left behind by a killed process.
    for leftover in [part.clone(), beside(&part, "-journal")] {
        let _ = fs::remove_file(leftover);
    }
    let made = OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(&part);
    made.map_err(|error| backup_failed(&error))?;
    let copied = connection.execute("VACUUM INTO ?1", [part.to_string_lossy()]);
    copied.map_err(|error| backup_failed(&in_words(&error)))?;
    let synced = File::open(&part).and_then(|file| file.sync_all());
    let directory = copy.parent().filter(|directory| !directory.as_os_str().is_empty());
    let named = synced
        .and_then(|()| fs::rename(&part, copy))
        .and_then(|()| File::open(directory.unwrap_or(Path::new(".")))?.sync_all());
    named.map_err(|error| backup_failed(&error))
}

fn backup_failed(cause: &impl std::fmt::Display) -> Error {
    Error::Unavailable(format!("the backup before migrating failed: {cause}"))
}

/// The path of a file in the same directory, with this suffix added to the name.
fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(end);
    path.with_file_name(name)
}

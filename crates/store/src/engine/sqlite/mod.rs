//! SQLite: one writer thread that commits in groups, a few reader threads, and a checkpointer.
//!
//! The writer takes everything that arrived while the last commit was being written to disk, runs each batch
//! in a savepoint, commits once and settles all of them: group commit without added waiting.
//!
//! - `writer` runs groups; `agenda` decides which jobs of a group run in the time available.
//! - `checkpointer` keeps the write-ahead log short without making the writer wait for readers or for the
//!   database file; `log` is the state they share, and `disk` syncs the file.
//! - `files` notices when the database is deleted or replaced.
//! - `cause` explains why SQLite failed.

mod agenda;
mod cause;
mod checkpointer;
mod connection;
mod disk;
mod files;
mod log;
mod writer;

use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rusqlite::{Connection as Sqlite, ErrorCode, MAIN_DB, OpenFlags};

pub use self::cause::{from_sqlite, in_words};
use self::checkpointer::Checkpointer;
use self::connection::Conn;
use self::disk::Disk;
use self::files::Files;
pub use self::log::Log;
use self::writer::Writer;
use super::Config;
use crate::copy;
use crate::error::Error;
use crate::health::Health;
use crate::migrate;
use crate::migrate::progress::{Progress, Teller};
use crate::queue::{Group, Queue, ReadQueue};

/// Earlier versions have a bug in the write-ahead log that can corrupt a database used by several
/// connections.
const OLDEST_VERSION: i32 = 3_051_003;
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
const BUSY_INTERVAL: Duration = Duration::from_millis(10);
/// A fill of a large table writes its indexes in a different order.
const MIGRATION_CACHE_BYTES: usize = 64 << 20;
const OWNER_ONLY: u32 = 0o600;
/// The pages of a new database. Whatever changes in a page, all of it goes into the log and from there into the file, and
/// activity changes few bytes of many pages. So half of SQLite's default is up to a quarter more events per second on a
/// large database. With still smaller pages, events and accounts of a usual size would no longer fit into one.
const PAGE_BYTES: u32 = 2_048;
/// What SQLite puts before each page in the log.
const FRAME_HEADER_BYTES: u32 = 24;
const GROUP: Group = Group { max_jobs: 512, max_weight: 4096, one_family: false };

/// The parts of a started engine that the store needs.
pub struct Started {
    pub threads: Vec<JoinHandle<()>>,
    pub log: Arc<Log>,
}

pub fn start(
    path: &Path,
    config: &Config,
    (writes, reads): (&Arc<Queue>, &Arc<ReadQueue>),
    health: &Arc<Health>,
) -> Result<Started, Error> {
    copy::refuse_file(path)?;
    let mut connection = open(path, config.page_cache_bytes, config.durable)?;
    migrate::sqlite::run(&mut connection.sqlite, path, &mut Teller::new(&mut migrate::progress::log))?;
    let disk = Disk::of(path, config.durable)?;
    // After a restore or a large upgrade the system may still have gigabytes to write. The first checkpoint would
    // wait for all of them, and commits with it.
    disk.sync()?;
    connection.sqlite.pragma_update(None, "wal_autocheckpoint", 0).map_err(from_sqlite)?;
    let files = Files::watch(path, Arc::clone(health))?;
    let log = Arc::new(Log::new(frame_bytes(&connection.sqlite)?));
    let mut threads = Vec::new();
    let (open_reader_guard, all_readers_closed) = channel::<()>();
    for n in 0..config.readers.max(1) {
        let mut reader = open_reader(path, config.page_cache_bytes / 8)?;
        let (reads, guard, disk) = (Arc::clone(reads), open_reader_guard.clone(), disk.clone());
        threads.push(spawn(&format!("sqlite-read-{n}"), move || {
            while let Some(read) = reads.take() {
                reader.read(read);
            }
            drop(reader);
            drop(disk);
            drop(guard);
        })?);
    }
    drop(open_reader_guard);
    let connection_of_its_own = open(path, 1 << 20, config.durable)?;
    let checkpointer =
        Checkpointer::new(connection_of_its_own, disk.clone(), Arc::clone(&log), files.clone());
    let mut writer = Writer::new(connection, files, Arc::clone(health));
    let (writes, shared) = (Arc::clone(writes), Arc::clone(&log));
    threads.push(spawn("sqlite-write", move || {
        let turns = shared.writer();
        while let Some(group) = writes.take_waiting(GROUP) {
            let turn = turns.begin();
            let left = writer.run_group(group, turn.is_short);
            drop(turn);
            writes.give_back(left.into_iter());
        }
        drop(writer);
        drop(disk);
    })?);
    threads.push(spawn("sqlite-checkpoint", move || {
        let (connection, disk) = checkpointer.run();
        // The last connection to close empties and removes the log, which a read-only connection can't do.
        let _ = all_readers_closed.recv();
        drop(connection);
        drop(disk);
    })?);
    Ok(Started { threads, log })
}

pub fn migrate(path: &Path, tell: &mut dyn FnMut(&Progress)) -> Result<i64, Error> {
    copy::refuse_file(path)?;
    let mut connection = open(path, MIGRATION_CACHE_BYTES, true)?;
    migrate::sqlite::run(&mut connection.sqlite, path, &mut Teller::new(tell))
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(work);
    spawned.map_err(|error| Error::Unavailable(error.to_string()))
}

fn open(path: &Path, cache_bytes: usize, durable: bool) -> Result<Conn, Error> {
    if rusqlite::version_number() < OLDEST_VERSION {
        let found = rusqlite::version();
        return Err(Error::fault(format!("SQLite {found} is too old: 3.51.3 or newer is required")));
    }
    let cannot_open = |error: rusqlite::Error| cause::cannot_open(path, &error);
    create_private(path);
    let sqlite = Sqlite::open(path).map_err(cannot_open)?;
    // SQLite opens a file that it can't write in read-only mode, and reports it only at the first write.
    if sqlite.is_readonly(MAIN_DB).map_err(cannot_open)? {
        return Err(cause::read_only(path));
    }
    sqlite.busy_timeout(BUSY_TIMEOUT).map_err(cannot_open)?;
    shape(&sqlite).map_err(cannot_open)?;
    let use_log =
        || sqlite.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
    let mode = patiently(use_log).map_err(cannot_open)?;
    if mode != "wal" {
        return Err(Error::Unavailable(format!("{} cannot use a write-ahead log", path.display())));
    }
    let synchronous = if durable { "FULL" } else { "OFF" };
    patiently(|| sqlite.pragma_update(None, "synchronous", synchronous)).map_err(cannot_open)?;
    let limit_log = || sqlite.pragma_update(None, "journal_size_limit", checkpointer::MOST_FILE_BYTES);
    patiently(limit_log).map_err(cannot_open)?;
    Conn::tuned(sqlite, cache_bytes)
}

/// Says how large the pages of a new database are, before anything is written. An existing one keeps its own.
pub fn shape(sqlite: &Sqlite) -> rusqlite::Result<()> {
    sqlite.pragma_update(None, "page_size", PAGE_BYTES)
}

/// How long the log gets by a page.
fn frame_bytes(sqlite: &Sqlite) -> Result<u32, Error> {
    let page_bytes = || sqlite.pragma_query_value(None, "page_size", |row| row.get::<_, u32>(0));
    Ok(patiently(page_bytes).map_err(from_sqlite)? + FRAME_HEADER_BYTES)
}

/// Tries again while the database is locked. Where waiting could be a deadlock, SQLite refuses immediately: so it may be
/// when several processes switch a new database to its write-ahead log at once.
fn patiently<T>(act: impl Fn() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let since = Instant::now();
    loop {
        match act() {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && since.elapsed() < BUSY_TIMEOUT =>
            {
                thread::sleep(BUSY_INTERVAL);
            }
            done => return done,
        }
    }
}

/// Creates a missing database file that only its owner can read. SQLite gives the log and its index the same
/// permissions, but creates the file itself for everyone. If creating it fails, opening it says why.
fn create_private(path: &Path) {
    let mut options = std::fs::OpenOptions::new();
    let _ = options.write(true).create_new(true).mode(OWNER_ONLY).open(path);
}

fn open_reader(path: &Path, cache_bytes: usize) -> Result<Conn, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let cannot_open = |error: rusqlite::Error| cause::cannot_open(path, &error);
    let sqlite = Sqlite::open_with_flags(path, flags).map_err(cannot_open)?;
    sqlite.busy_timeout(BUSY_TIMEOUT).map_err(cannot_open)?;
    Conn::tuned(sqlite, cache_bytes)
}

/// The path of SQLite's write-ahead log: next to the database file itself, after resolving links.
fn log_of(database: &Path) -> PathBuf {
    let mut name = std::fs::canonicalize(database).unwrap_or_else(|_| database.to_owned()).into_os_string();
    name.push("-wal");
    PathBuf::from(name)
}

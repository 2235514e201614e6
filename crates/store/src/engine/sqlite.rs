//! SQLite: one writer thread that commits in groups, a few reader threads, and a checkpointer.
//!
//! The writer takes everything that arrived while the last commit was on its way to the disk, runs
//! each batch in a savepoint, commits once and answers all: group commit with no waiting added.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rapport_domain::id::CompanyId;
use rapport_domain::time::Time;
use rusqlite::types::ValueRef;
use rusqlite::{Connection as Sqlite, ErrorCode, OpenFlags};

use super::{Config, act, batches, run_batch};
use crate::dialect;
use crate::error::Error;
use crate::health::{Health, Side};
use crate::migrate;
use crate::queue::{Group, Job, Queue, ReadQueue, Verdict};
use crate::statement::{DeleteMany, InsertMany, Statement, UpdateMany};
use crate::tx::{AfterCommit, Connection};
use crate::value::{Cell, Row, Value};

/// Earlier write-ahead-log code can corrupt a database that several connections use.
const OLDEST_VERSION: i32 = 3_051_003;
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
const CHECKPOINT_EVERY: Duration = Duration::from_millis(250);
/// Frames in the log past which the writer itself finishes a checkpoint, so that the log starts over.
const MAX_LOG_FRAMES: u64 = 16_384;
const GROUP: Group = Group { max_jobs: 512, max_weight: 4096, one_family: false };

pub fn start(
    path: &Path,
    config: &Config,
    writes: &Arc<Queue>,
    reads: &Arc<ReadQueue>,
    health: &Arc<Health>,
) -> Result<Vec<JoinHandle<()>>, Error> {
    let mut writer = open(path, config.page_cache_bytes, config.durable)?;
    migrate::sqlite(&mut writer.sqlite, path)?;
    writer.sqlite.pragma_update(None, "wal_autocheckpoint", 0).map_err(from_sqlite)?;
    let log = Arc::new(Log::default());
    let mut threads = Vec::new();
    for n in 0..config.readers.max(1) {
        let mut reader = open_reader(path, config.page_cache_bytes / 8)?;
        let reads = Arc::clone(reads);
        threads.push(spawn(&format!("sqlite-read-{n}"), move || {
            while let Some(read) = reads.take() {
                reader.read(read);
            }
        })?);
    }
    let checkpointer = open(path, 1 << 20, config.durable)?;
    let (writes, shared, health) = (Arc::clone(writes), Arc::clone(&log), Arc::clone(health));
    threads.push(spawn("sqlite-write", move || {
        while let Some(group) = writes.take(GROUP) {
            writer.run_group(group, &health);
            shared.committed.store(true, Ordering::Relaxed);
            writer.restart_log(&shared);
        }
        shared.closed.store(true, Ordering::Relaxed);
    })?);
    threads.push(spawn("sqlite-checkpoint", move || checkpoint(&checkpointer, &log))?);
    Ok(threads)
}

pub fn migrate(path: &Path) -> Result<i64, Error> {
    let mut connection = open(path, 8 << 20, true)?;
    migrate::sqlite(&mut connection.sqlite, path)
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(work);
    spawned.map_err(|error| Error::Unavailable(error.to_string()))
}

/// What the writer and the checkpointer tell each other.
#[derive(Default)]
struct Log {
    committed: AtomicBool,
    frames: AtomicU64,
    closed: AtomicBool,
}

/// Copies the log into the database file beside the writer, so that commits never wait for it.
fn checkpoint(connection: &Conn, log: &Log) {
    let mut failing = false;
    while !log.closed.load(Ordering::Relaxed) {
        thread::park_timeout(CHECKPOINT_EVERY);
        if log.committed.swap(false, Ordering::Relaxed) {
            match connection.checkpoint("PASSIVE") {
                Ok(frames) => {
                    log.frames.store(frames, Ordering::Relaxed);
                    failing = false;
                }
                // Said once: on a full disk the next one fails just so.
                Err(error) if !failing => {
                    tracing::warn!(%error, "a checkpoint failed");
                    failing = true;
                }
                Err(error) => tracing::debug!(%error, "a checkpoint failed again"),
            }
        }
    }
    let _ = connection.checkpoint("TRUNCATE");
}

struct Conn {
    sqlite: Sqlite,
}

fn open(path: &Path, cache_bytes: usize, durable: bool) -> Result<Conn, Error> {
    if rusqlite::version_number() < OLDEST_VERSION {
        let found = rusqlite::version();
        return Err(Error::fault(format!("SQLite {found} is too old: 3.51.3 or newer is needed")));
    }
    let sqlite = Sqlite::open(path).map_err(|error| cannot_open(path, &error))?;
    sqlite.busy_timeout(BUSY_TIMEOUT).map_err(from_sqlite)?;
    let mode: String = sqlite
        .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))
        .map_err(|error| cannot_open(path, &error))?;
    if mode != "wal" {
        return Err(Error::Unavailable(format!("{} cannot use a write-ahead log", path.display())));
    }
    let synchronous = if durable { "FULL" } else { "OFF" };
    sqlite.pragma_update(None, "synchronous", synchronous).map_err(from_sqlite)?;
    Conn::tuned(sqlite, cache_bytes)
}

fn open_reader(path: &Path, cache_bytes: usize) -> Result<Conn, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let sqlite = Sqlite::open_with_flags(path, flags).map_err(|error| cannot_open(path, &error))?;
    sqlite.busy_timeout(BUSY_TIMEOUT).map_err(from_sqlite)?;
    Conn::tuned(sqlite, cache_bytes)
}

fn cannot_open(path: &Path, error: &rusqlite::Error) -> Error {
    Error::Unavailable(format!("{}: {error}", PathBuf::from(path).display()))
}

impl Conn {
    fn tuned(sqlite: Sqlite, cache_bytes: usize) -> Result<Self, Error> {
        let kibibytes = i64::try_from(cache_bytes / 1024).unwrap_or(i64::MAX);
        sqlite.pragma_update(None, "cache_size", -kibibytes).map_err(from_sqlite)?;
        sqlite.pragma_update(None, "temp_store", "MEMORY").map_err(from_sqlite)?;
        sqlite.set_prepared_statement_cache_capacity(512);
        Ok(Self { sqlite })
    }

    fn statement(&self, sql: &str) -> Result<rusqlite::CachedStatement<'_>, Error> {
        self.sqlite.prepare_cached(sql).map_err(|error| named(sql, error))
    }

    fn control(&self, sql: &str) -> Result<(), Error> {
        self.statement(sql)?.raw_execute().map(|_| ()).map_err(from_sqlite)
    }

    fn checkpoint(&self, mode: &str) -> Result<u64, Error> {
        let sql = format!("PRAGMA wal_checkpoint({mode})");
        let frames: i64 = self.sqlite.query_row(&sql, [], |row| row.get(1)).map_err(from_sqlite)?;
        Ok(u64::try_from(frames).unwrap_or(0))
    }

    /// Under constant writing the checkpointer never reaches the end of the log, and the log would
    /// grow for ever: past a bound the writer does the short rest itself.
    fn restart_log(&self, log: &Log) {
        if log.frames.load(Ordering::Relaxed) > MAX_LOG_FRAMES {
            if let Err(error) = self.checkpoint("RESTART") {
                tracing::warn!(%error, "the log could not be restarted");
            }
            log.frames.store(0, Ordering::Relaxed);
        }
    }

    fn read(&mut self, read: crate::queue::Read) {
        if let Err(error) = self.control("BEGIN DEFERRED") {
            return read(Err(error));
        }
        read(Ok(self));
        // No snapshot is kept between jobs.
        let _ = self.control("COMMIT");
    }

    fn run_group(&mut self, group: Vec<Box<dyn Job>>, health: &Health) {
        match self.try_group(batches(group), health) {
            Ok(()) => {}
            Err((jobs, error)) if jobs.len() > 1 => {
                if error.is_outage() {
                    tracing::debug!(%error, jobs = jobs.len(), "a group was rolled back; its jobs run one by one");
                } else {
                    tracing::warn!(%error, jobs = jobs.len(), "a group was rolled back; its jobs run one by one");
                }
                for job in jobs {
                    if let Err((alone, error)) = self.try_group(vec![vec![job]], health) {
                        settle_all(alone, &error, health);
                    }
                }
            }
            Err((jobs, error)) => settle_all(jobs, &error, health),
        }
    }

    /// Runs batches in one transaction and answers them. Where the whole transaction was lost, the
    /// jobs come back unanswered.
    fn try_group(
        &mut self,
        mut batches: Vec<Vec<Box<dyn Job>>>,
        health: &Health,
    ) -> Result<(), (Vec<Box<dyn Job>>, Error)> {
        let changes = self.sqlite.total_changes();
        if let Err(error) = self.control("BEGIN IMMEDIATE") {
            return Err((batches.into_iter().flatten().collect(), error));
        }
        let mut results = Vec::with_capacity(batches.len());
        for batch in &mut batches {
            match self.run_part(batch) {
                Ok(result) => results.push(result),
                Err(error) => {
                    if !self.sqlite.is_autocommit() {
                        let _ = self.control("ROLLBACK");
                    }
                    return Err((batches.into_iter().flatten().collect(), error));
                }
            }
        }
        if let Err(error) = self.control("COMMIT") {
            let _ = self.control("ROLLBACK");
            return Err((batches.into_iter().flatten().collect(), error));
        }
        if self.sqlite.total_changes() != changes {
            // A commit that wrote nothing proves nothing about the disk.
            health.succeeded(Side::Write);
        }
        for (batch, result) in batches.into_iter().zip(results) {
            match result {
                Ok(actions) => {
                    act(actions);
                    batch.into_iter().for_each(|job| job.settle(Ok(())));
                }
                Err(error) => settle_all(batch, &error, health),
            }
        }
        Ok(())
    }

    /// Runs one batch of a group. The outer error means that the whole transaction must go: SQLite
    /// rolled it back itself (a full disk, an I/O error), or a batch without a savepoint failed.
    fn run_part(&mut self, batch: &mut [Box<dyn Job>]) -> Result<Result<Vec<AfterCommit>, Error>, Error> {
        // Hot families refuse nothing halfway, so they go without: under an open savepoint every
        // statement pays for all pages changed since, and a batch of thousands becomes quadratic.
        if batch[0].family().is_some() {
            return match run_batch(self, batch)? {
                (Verdict::Commit, actions) => Ok(Ok(actions)),
                (Verdict::Rollback, _) => Err(Error::fault("a batch asked to be rolled back")),
            };
        }
        let result = self.run_in_savepoint(batch);
        if self.sqlite.is_autocommit() {
            return Err(result.err().unwrap_or_else(|| Error::fault("the transaction ended early")));
        }
        Ok(result)
    }

    fn run_in_savepoint(&mut self, batch: &mut [Box<dyn Job>]) -> Result<Vec<AfterCommit>, Error> {
        self.control("SAVEPOINT job")?;
        match run_batch(self, batch) {
            Ok((Verdict::Commit, actions)) => {
                self.control("RELEASE job")?;
                Ok(actions)
            }
            Ok((Verdict::Rollback, _)) => self.undo().map(|()| Vec::new()),
            Err(error) => {
                if !self.sqlite.is_autocommit() {
                    self.undo()?;
                }
                Err(error)
            }
        }
    }

    fn undo(&self) -> Result<(), Error> {
        self.control("ROLLBACK TO job")?;
        self.control("RELEASE job")
    }

    fn rows(&self, sql: &str, values: &[Value]) -> Result<Vec<Row>, Error> {
        let mut statement = self.statement(sql)?;
        collect(&mut statement, values).map_err(|error| named(sql, error))
    }
}

fn settle_all(jobs: Vec<Box<dyn Job>>, error: &Error, health: &Health) {
    health.failed(Side::Write, error, jobs.len());
    for job in jobs {
        job.settle(Err(error.clone()));
    }
}

fn collect(statement: &mut rusqlite::CachedStatement, values: &[Value]) -> rusqlite::Result<Vec<Row>> {
    for (n, value) in values.iter().enumerate() {
        statement.raw_bind_parameter(n + 1, value)?;
    }
    let width = statement.column_count();
    let mut found = Vec::new();
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next()? {
        let cells = (0..width).map(|n| row.get_ref(n).map(cell)).collect::<rusqlite::Result<Vec<_>>>()?;
        found.push(Row::new(cells));
    }
    Ok(found)
}

fn cell(value: ValueRef) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Int(number),
        #[expect(clippy::cast_possible_truncation, reason = "no column holds a float; sums are whole")]
        ValueRef::Real(number) => Cell::Int(number as i64),
        ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec()),
    }
}

impl Connection for Conn {
    fn query(&mut self, statement: &Statement, values: &[Value]) -> Result<Vec<Row>, Error> {
        self.rows(statement.sqlite(), values)
    }

    fn query_text(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, Error> {
        self.rows(&dialect::to_sqlite(sql), values)
    }

    fn facts(&mut self) -> Result<Vec<Row>, Error> {
        self.rows(dialect::SQLITE_FACTS, &[])
    }

    fn clock(&mut self) -> Result<Option<Time>, Error> {
        Ok(None)
    }

    fn execute(&mut self, statement: &Statement, values: &[Value]) -> Result<u64, Error> {
        let sql = statement.sqlite();
        let mut prepared = self.statement(sql)?;
        let mut run = || {
            for (n, value) in values.iter().enumerate() {
                prepared.raw_bind_parameter(n + 1, value)?;
            }
            prepared.raw_execute()
        };
        run().map(|count| count as u64).map_err(|error| named(sql, error))
    }

    fn query_keys(
        &mut self,
        statement: &Statement,
        values: &[Value],
        keys: &[Value],
    ) -> Result<Vec<Row>, Error> {
        let sql = statement.sqlite();
        let mut prepared = self.statement(sql)?;
        let mut all = values.to_vec();
        all.push(Value::Null);
        let mut found = Vec::with_capacity(keys.len());
        for key in keys {
            all[values.len()] = *key;
            found.extend(collect(&mut prepared, &all).map_err(|error| named(sql, error))?);
        }
        Ok(found)
    }

    fn insert(
        &mut self,
        insert: &InsertMany,
        company: CompanyId,
        values: &[Value],
    ) -> Result<Vec<Row>, Error> {
        self.each_row(insert.sqlite(), insert.width(), company, values)
    }

    fn update(&mut self, update: &UpdateMany, company: CompanyId, values: &[Value]) -> Result<(), Error> {
        self.each_row(update.sqlite(), update.width(), company, values).map(|_| ())
    }

    fn delete(&mut self, delete: &DeleteMany, company: CompanyId, values: &[Value]) -> Result<(), Error> {
        self.each_row(delete.sqlite(), delete.width(), company, values).map(|_| ())
    }
}

impl Conn {
    fn each_row(
        &self,
        sql: &str,
        width: usize,
        company: CompanyId,
        values: &[Value],
    ) -> Result<Vec<Row>, Error> {
        let mut prepared = self.statement(sql)?;
        prepared.raw_bind_parameter(1, Value::from(company)).map_err(|error| named(sql, error))?;
        let returns = prepared.column_count();
        let mut found = Vec::new();
        let mut run = |row: &[Value]| {
            for (n, value) in row.iter().enumerate() {
                prepared.raw_bind_parameter(n + 2, value)?;
            }
            if returns == 0 {
                return prepared.raw_execute().map(|_| ());
            }
            let mut rows = prepared.raw_query();
            while let Some(row) = rows.next()? {
                let cells =
                    (0..returns).map(|n| row.get_ref(n).map(cell)).collect::<rusqlite::Result<Vec<_>>>()?;
                found.push(Row::new(cells));
            }
            Ok(())
        };
        values.chunks_exact(width).try_for_each(&mut run).map_err(|error| named(sql, error))?;
        Ok(found)
    }
}

fn named(sql: &str, error: rusqlite::Error) -> Error {
    match from_sqlite(error) {
        Error::Fault(message) => {
            Error::Fault(format!("{message} in: {}", sql.chars().take(200).collect::<String>()))
        }
        other => other,
    }
}

pub fn from_sqlite(error: rusqlite::Error) -> Error {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::Busy,
        Some(
            ErrorCode::DiskFull
            | ErrorCode::SystemIoFailure
            | ErrorCode::ReadOnly
            | ErrorCode::CannotOpen
            | ErrorCode::OutOfMemory,
        ) => Error::Unavailable(error.to_string()),
        _ => Error::fault(error.to_string()),
    }
}

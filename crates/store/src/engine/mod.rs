//! The engines: threads that own connections and process the queues.
//!
//! Use cases and storage are synchronous; callers wait for the result on a channel.

mod link;
pub(crate) mod postgres;
mod sql_state;
pub(crate) mod sqlite;

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rapport_domain::id::CompanyId;
use tokio::sync::oneshot;

use crate::error::Error;
use crate::faults::Faults;
use crate::health::{Health, Outage, Side};
use crate::migrate::progress::{self, Progress};
use crate::queue::{Job, Lane, Queue, ReadQueue, Verdict};
use crate::tx::{Across, AfterCommit, Connection, Snapshot, Tx};

pub(crate) use link::Link;

/// How often expired work is looked for while no thread of the engine is free to do it.
const MAX_WAIT: Duration = Duration::from_secs(1);
const EXPIRE_EVERY: Duration = Duration::from_millis(250);
const CLOSE_POLL: Duration = Duration::from_millis(2);

/// Which database to use, and where it is. Displayed without its password.
#[derive(Clone, PartialEq, Eq)]
pub enum Database {
    Sqlite(PathBuf),
    /// A URL.
    Postgres(String),
}

impl Database {
    /// Checks the URL of a PostgreSQL database without connecting to it; the error contains nothing secret.
    pub fn postgres(url: &str) -> Result<Self, String> {
        postgres::address::check(url)?;
        Ok(Self::Postgres(url.to_owned()))
    }
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(url) => f.write_str(&postgres::address::shown(url)),
        }
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[derive(Debug, Clone)]
pub struct Config {
    pub database: Database,
    /// The size of the SQLite writer's page cache; each reader gets an eighth.
    pub page_cache_bytes: usize,
    pub readers: usize,
    /// The number of PostgreSQL's writing connections; SQLite has one writer.
    pub writers: usize,
    /// Whether a SQLite commit waits until it is on the disk; PostgreSQL decides that itself. Turn it off
    /// only for throwaway data.
    pub durable: bool,
    /// How long a person or a program waits for its turn before it is told that the service is busy.
    pub max_wait: Duration,
    /// Makes jobs fail on demand, for tests.
    pub faults: Option<Faults>,
}

impl Config {
    pub fn new(database: Database) -> Self {
        Self {
            database,
            page_cache_bytes: 64 << 20,
            readers: 3,
            writers: 4,
            durable: true,
            max_wait: MAX_WAIT,
            faults: None,
        }
    }
}

/// A read of one company that needs no business rules.
pub trait Query: Send + 'static {
    type Reply: Send + 'static;

    fn run(&self, snapshot: &mut Snapshot) -> Result<Self::Reply, Error>;
}

/// The load on storage.
#[derive(Debug, Clone, Copy)]
pub struct Figures {
    pub waiting: usize,
    /// Figures for SQLite's write-ahead log; PostgreSQL manages its own.
    pub log: Option<LogFigures>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogFigures {
    /// The current size of the log. The file keeps its size when the log starts over, so it may be larger.
    pub bytes: u64,
    /// Checkpoints of a long log that couldn't copy most of it because of a reader's snapshot.
    pub blocked_checkpoints: u64,
    pub failed_checkpoints: u64,
}

/// An open database. Dropping it stops its threads once they finish their current work.
pub struct Store {
    writes: Arc<Queue>,
    reads: Arc<ReadQueue>,
    health: Arc<Health>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    log: Option<Arc<sqlite::Log>>,
    faults: Option<Faults>,
}

impl Store {
    /// Opens the database, upgrades its schema and starts the threads.
    pub fn open(config: &Config) -> Result<Self, Error> {
        let writes = Arc::new(Queue::new(config.max_wait));
        let reads = Arc::new(ReadQueue::new(config.max_wait));
        let health = Arc::new(Health::default());
        let (mut threads, log) = match &config.database {
            Database::Sqlite(path) => {
                let started = sqlite::start(path, config, (&writes, &reads), &health)?;
                (started.threads, Some(started.log))
            }
            Database::Postgres(url) => (postgres::start(url, config, &writes, &reads, &health)?, None),
        };
        threads.push(start_expiry(&writes, &reads, &health)?);
        let faults = config.faults.clone();
        Ok(Self { writes, reads, health, threads: Mutex::new(threads), log, faults })
    }

    /// Whether the database is working; if not, since when and why.
    pub fn health(&self) -> Result<(), Outage> {
        self.health.now()
    }

    /// Hands a job to the writers, or settles it as "busy" immediately.
    pub fn submit(&self, lane: Lane, job: Box<dyn Job>) {
        let job = match &self.faults {
            Some(faults) => faults.wrap(job),
            None => job,
        };
        if let Err((job, error)) = self.writes.push(lane, job) {
            job.settle(Err(error));
        }
    }

    /// Reads one company.
    pub fn read<T: Send + 'static>(
        &self,
        company: CompanyId,
        read: impl FnOnce(&mut Snapshot) -> Result<T, Error> + Send + 'static,
    ) -> oneshot::Receiver<Result<T, Error>> {
        self.submit_read(move |connection| read(&mut Snapshot::new(connection, company)))
    }

    /// Reads across all companies.
    pub fn read_across<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut Across) -> Result<T, Error> + Send + 'static,
    ) -> oneshot::Receiver<Result<T, Error>> {
        self.submit_read(move |connection| read(&mut Across::new(connection)))
    }

    fn submit_read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut dyn Connection) -> Result<T, Error> + Send + 'static,
    ) -> oneshot::Receiver<Result<T, Error>> {
        let (reply, receiver) = oneshot::channel();
        let health = Arc::clone(&self.health);
        let pushed = self.reads.push(Box::new(move |connection| {
            let answer = connection.and_then(|connection| guarded(|| read(connection)));
            match &answer {
                Ok(_) => health.succeeded(Side::Read),
                Err(error) => health.failed(Side::Read, error, 1),
            }
            let _ = reply.send(answer);
        }));
        if let Err((read, error)) = pushed {
            read(Err(error));
        }
        receiver
    }

    pub fn figures(&self) -> Figures {
        Figures { waiting: self.writes.depth(), log: self.log.as_ref().map(|log| log.figures()) }
    }

    /// Finishes queued work, then stops.
    pub fn close(&self) {
        self.writes.close();
        self.reads.close();
        for thread in self.threads.lock().drain(..) {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }

    /// The same with a time limit: returns `false` if a thread is still waiting for the database, which is
    /// left behind.
    pub fn close_within(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        self.writes.close();
        self.reads.close();
        let mut in_time = true;
        for thread in self.threads.lock().drain(..) {
            while !thread.is_finished() && Instant::now() < deadline {
                thread.thread().unpark();
                thread::sleep(CLOSE_POLL);
            }
            if thread.is_finished() {
                let _ = thread.join();
            } else {
                in_time = false;
            }
        }
        in_time
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.close();
    }
}

/// Rejects work that waited too long even while every thread of the engine waits for the database.
fn start_expiry(
    writes: &Arc<Queue>,
    reads: &Arc<ReadQueue>,
    health: &Arc<Health>,
) -> Result<JoinHandle<()>, Error> {
    let (writes, reads, health) = (Arc::clone(writes), Arc::clone(reads), Arc::clone(health));
    let work = move || {
        while !writes.is_closed() {
            thread::park_timeout(EXPIRE_EVERY);
            health.turned_away(writes.expire() + reads.expire());
        }
    };
    let spawned = thread::Builder::new().name("store-expiry".to_owned()).spawn(work);
    spawned.map_err(|error| Error::Unavailable(error.to_string()))
}

/// Upgrades a database's schema without starting anything; returns the new version.
pub fn migrate_only(database: &Database) -> Result<i64, Error> {
    migrate_and_tell(database, &mut progress::log)
}

/// The same, and says how far it is.
pub fn migrate_and_tell(database: &Database, tell: &mut dyn FnMut(&Progress)) -> Result<i64, Error> {
    match database {
        Database::Sqlite(path) => sqlite::migrate(path, tell),
        Database::Postgres(url) => postgres::migrate(url, tell),
    }
}

/// Runs work that may panic: a panic becomes an error of that work alone.
fn guarded<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let message = panic_message(panic.as_ref());
        tracing::error!(%message, "a storage job panicked");
        Err(Error::fault(format!("panic: {message}")))
    })
}

/// Runs the actions that had to wait for the commit. A panic in one must not end the writer.
fn act(actions: Vec<AfterCommit>) {
    for action in actions {
        let _ = guarded(|| {
            action();
            Ok(())
        });
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "unknown".to_owned())
}

/// Runs a batch (a job and others of its family) inside an open savepoint or transaction.
fn run_batch(
    connection: &mut dyn Connection,
    batch: &mut [Box<dyn Job>],
) -> Result<(Verdict, Vec<AfterCommit>), Error> {
    let (first, rest) = batch.split_first_mut().ok_or_else(|| Error::fault("an empty batch"))?;
    let mut tx = Tx::new(connection, first.company());
    let verdict = guarded(|| first.run(rest, &mut tx))?;
    Ok((verdict, tx.into_after_commit()))
}

//! PostgreSQL: writer and reader threads that own one connection each.
//!
//! Round trips are the main cost, so work waiting for one company runs together in few statements. A
//! transaction takes the company's advisory lock: shared for ordinary work, exclusive for work that must not
//! run beside it (such as deleting an account during ingest).

pub mod address;
mod numbering;
#[cfg(test)]
mod outgrown;
pub mod pooler;

use std::collections::HashMap;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rapport_domain::id::CompanyId;
use rapport_domain::time::Time;
use tokio_postgres::types::{ToSql, Type as PgType};

use super::link::Link;
use super::{Config, act, run_batch};
use crate::copy;
use crate::dialect;
use crate::error::Error;
use crate::health::{Health, Side};
use crate::migrate;
use crate::migrate::progress::{Progress, Teller};
use crate::queue::{Group, Job, Queue, ReadQueue, Verdict, weight_of};
use crate::statement::{DeleteMany, InsertMany, Statement, UpdateMany};
use crate::tx::{AfterCommit, Connection, Take};
use crate::value::{Cell, Row, Type, Value, hand_out};
use address::Address;

/// Every statement finds its rows by an index that its keys are bound to, and has few driving keys. So plans
/// are made without values and kept, and plans that first read a whole company are ruled out: a bitmap and
/// the table of a hash join are filled before the first row is returned, whatever the LIMIT. The timeouts
/// make the server end what a vanished client left behind, so that its locks don't block others.
pub(crate) const SESSION: &str = "SET statement_timeout = '15s'; SET lock_timeout = '5s'; \
     SET idle_in_transaction_session_timeout = '10s'; SET tcp_user_timeout = '15s'; \
     SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3; \
     SET default_transaction_isolation = 'read committed'; \
     SET plan_cache_mode = 'force_generic_plan'; SET jit = off; SET enable_seqscan = off; \
     SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off";
/// Slightly longer than the server's own timeout, which ends a statement more cleanly.
const STATEMENT_LIMIT: Duration = Duration::from_secs(17);
const GROUP: Group = Group { max_jobs: 512, max_weight: 2000, one_family: true };
/// How many times and for how long a transaction blocked by another one is retried: a session that died
/// holding locks blocks it until the server ends that session.
const MAX_RUNS: usize = 8;
const RUN_AGAIN_FOR: Duration = Duration::from_secs(5);
/// If a connection turns out to be lost within this time, it is replaced before the work begins; after that,
/// the caller has waited long enough.
const REPLACE_WITHIN: Duration = Duration::from_secs(4);
/// How many statements are kept prepared on a connection, as on SQLite.
const MAX_PREPARED: usize = 512;
/// A plan made for a few rows may read all of a table once it has grown. This often, one of the connections checks
/// whether a table has doubled, and each makes new plans if one has since it made its own. It is based on time
/// because slow plans make transactions rare.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The key space of our advisory locks; the other half of the key is the company.
const LOCK_SPACE: i32 = 0x7261_7070;

pub fn start(
    url: &str,
    config: &Config,
    writes: &Arc<Queue>,
    reads: &Arc<ReadQueue>,
    health: &Arc<Health>,
) -> Result<Vec<JoinHandle<()>>, Error> {
    let address = parse(url)?;
    migrate_at(&address, &mut migrate::progress::log)?;
    let (mut threads, sizes) = (Vec::new(), Arc::default());
    for n in 0..config.readers.max(1) {
        let mut reader = Conn::open(&address, &sizes)?;
        let reads = Arc::clone(reads);
        threads.push(spawn(&format!("pg-read-{n}"), move || {
            while let Some(read) = reads.take() {
                reader.read(read);
            }
        })?);
    }
    for n in 0..config.writers.max(1) {
        let mut writer = Conn::open(&address, &sizes)?;
        let (writes, health) = (Arc::clone(writes), Arc::clone(health));
        threads.push(spawn(&format!("pg-write-{n}"), move || {
            while let Some(group) = writes.take(GROUP) {
                let key = (group[0].company(), group[0].family());
                let (weight, begun) = (weight_of(&group), Instant::now());
                writer.run_group(group, &health);
                writes.finished(key, weight, begun.elapsed());
            }
        })?);
    }
    Ok(threads)
}

pub fn migrate(url: &str, tell: &mut dyn FnMut(&Progress)) -> Result<i64, Error> {
    migrate_at(&parse(url)?, tell)
}

fn migrate_at(address: &Address, tell: &mut dyn FnMut(&Progress)) -> Result<i64, Error> {
    let mut link = Link::new(address, migrate::postgres::SESSION, None)?;
    link.connect()?;
    pooler::refuse(&mut link, address)?;
    copy::refuse_server(&mut link)?;
    migrate::postgres::run(&mut link, &mut Teller::new(tell))
}

/// Reads an address, and logs what a person should know about it.
fn parse(url: &str) -> Result<Address, Error> {
    let address = Address::parse(url).map_err(Error::Unavailable)?;
    for warning in &address.warnings {
        tracing::warn!("{warning}");
    }
    Ok(address)
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(work);
    spawned.map_err(|error| Error::Unavailable(error.to_string()))
}

struct Conn {
    link: Link,
    prepared: HashMap<String, tokio_postgres::Statement>,
    /// The size of the tables when the plans were made.
    planned_for: Option<i64>,
    sizes: Arc<Sizes>,
    /// Whether the current transaction has written anything.
    wrote: bool,
}

/// The size of the tables, as one of the connections saw it last, and when that was.
type Sizes = Mutex<Option<(Option<i64>, Instant)>>;

impl Conn {
    fn open(address: &Address, sizes: &Arc<Sizes>) -> Result<Self, Error> {
        let link = Link::new(address, SESSION, Some(STATEMENT_LIMIT))?;
        let (prepared, sizes) = (HashMap::new(), Arc::clone(sizes));
        let mut connection = Self { link, prepared, planned_for: None, sizes, wrote: false };
        connection.connected()?;
        Ok(connection)
    }

    /// Reconnects if the last connection was lost.
    fn connected(&mut self) -> Result<(), Error> {
        if !self.link.is_open() {
            self.prepared.clear();
            self.link.connect()?;
            numbering::begin(&mut self.link).inspect_err(|_| self.link.close())?;
        }
        Ok(())
    }

    fn begin(&mut self, sql: &str) -> Result<(), Error> {
        self.wrote = false;
        let (had_one, since) = (self.link.is_open(), Instant::now());
        match self.try_begin(sql) {
            // The server may have closed the connection while it was idle. Nothing has been done yet, so
            // there is no reason to reject the caller.
            Err(_) if had_one && !self.link.is_open() && since.elapsed() < REPLACE_WITHIN => {
                self.try_begin(sql)
            }
            result => result,
        }
    }

    fn try_begin(&mut self, sql: &str) -> Result<(), Error> {
        self.connected()?;
        let known = self.sizes.lock().filter(|(_, at)| at.elapsed() < LOOK_EVERY);
        let size = if let Some((size, _)) = known {
            self.link.batch(sql)?;
            size
        } else {
            // In the same round trip.
            let size = self.link.last_number(&format!("{sql}; {}", dialect::POSTGRES_DOUBLINGS))?;
            *self.sizes.lock() = Some((size, Instant::now()));
            size
        };
        if size != self.planned_for {
            self.link.batch("DISCARD PLANS")?;
            self.planned_for = size;
        }
        Ok(())
    }

    fn control(&mut self, sql: &str) -> Result<(), Error> {
        self.link.batch(sql)
    }

    fn prepare(&mut self, sql: &str) -> Result<tokio_postgres::Statement, Error> {
        if let Some(statement) = self.prepared.get(sql) {
            return Ok(statement.clone());
        }
        if self.prepared.len() >= MAX_PREPARED {
            // Lists have more variants than a server should keep plans for; those in use will be prepared
            // again.
            self.prepared.clear();
        }
        let statement = self.link.prepare(sql).map_err(|error| named(sql, error))?;
        self.prepared.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    fn rows(&mut self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Error> {
        self.found(sql, values)?.iter().map(row).collect()
    }

    fn found(
        &mut self,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<tokio_postgres::Row>, Error> {
        let statement = self.prepare(sql)?;
        self.link.query(&statement, values).map_err(|error| named(sql, error))
    }

    fn read(&mut self, read: crate::queue::Read) {
        if let Err(error) = self.begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY") {
            let _ = self.undo();
            return read(Err(error));
        }
        read(Ok(self));
        if self.control("COMMIT").is_err() {
            self.link.close();
        }
    }

    fn run_group(&mut self, mut group: Vec<Box<dyn Job>>, health: &Health) {
        match self.transact(&mut group) {
            Ok(actions) => {
                if self.wrote {
                    health.succeeded(Side::Write);
                }
                act(actions);
                group.into_iter().for_each(|job| job.settle(Ok(())));
            }
            Err(error)
                if group.len() > 1 && !matches!(error, Error::OutcomeUnknown | Error::Unavailable(_)) =>
            {
                tracing::debug!(%error, jobs = group.len(), "batch failed; running its jobs one by one");
                for job in group {
                    self.run_group(vec![job], health);
                }
            }
            Err(error) => {
                health.failed(Side::Write, &error, group.len());
                group.into_iter().for_each(|job| job.settle(Err(error.clone())));
            }
        }
    }

    fn transact(&mut self, batch: &mut [Box<dyn Job>]) -> Result<Vec<AfterCommit>, Error> {
        let since = Instant::now();
        let mut runs = 0;
        loop {
            runs += 1;
            match self.transact_once(batch) {
                Err(Error::Again) if runs < MAX_RUNS && since.elapsed() < RUN_AGAIN_FOR => {}
                Err(Error::Again) => return Err(Error::Busy),
                result => return result,
            }
        }
    }

    fn transact_once(&mut self, batch: &mut [Box<dyn Job>]) -> Result<Vec<AfterCommit>, Error> {
        let company = batch[0].company();
        let shared = if batch.iter().any(|job| job.exclusive()) { "" } else { "_shared" };
        let key = lock_key(company);
        let begun = self.begin(&format!("BEGIN; SELECT pg_advisory_xact_lock{shared}({LOCK_SPACE}, {key})"));
        if let Err(error) = begun {
            // If only the lock was refused, the transaction is open.
            self.undo()?;
            return Err(error);
        }
        match run_batch(self, batch) {
            Ok((Verdict::Commit, actions)) => {
                if !self.link.is_open() {
                    // If it is lost before the COMMIT is sent, we know that it was rolled back.
                    return Err(Error::Unavailable("the connection was lost".to_owned()));
                }
                match self.control("COMMIT") {
                    Ok(()) => Ok(actions),
                    Err(Error::Again) => Err(Error::Again),
                    Err(error) => {
                        let lost = !self.link.is_open();
                        self.link.close();
                        Err(if lost { Error::OutcomeUnknown } else { error })
                    }
                }
            }
            Ok((Verdict::Rollback, _)) => {
                // A rolled back transaction proves nothing about writing.
                self.wrote = false;
                self.undo().map(|()| Vec::new())
            }
            Err(error) => {
                self.undo()?;
                Err(error)
            }
        }
    }

    fn undo(&mut self) -> Result<(), Error> {
        if !self.link.is_open() {
            // It is gone with its connection.
            return Ok(());
        }
        self.control("ROLLBACK").inspect_err(|_| self.link.close())
    }
}

/// The second half of a company's lock. The key is 32 + 32 bits; companies beyond 2^32 would share locks, never data.
fn lock_key(company: CompanyId) -> i32 {
    let [.., a, b, c, d] = company.0.to_be_bytes();
    i32::from_be_bytes([a, b, c, d])
}

/// One array parameter of a bulk statement.
enum Column<'a> {
    Int(Vec<Option<i64>>),
    Text(Vec<Option<&'a str>>),
    Bytes(Vec<Option<&'a [u8]>>),
}

impl<'a> Column<'a> {
    fn collect(kind: Type, values: impl Iterator<Item = Value<'a>>) -> Result<Self, Error> {
        fn mismatch<T>() -> Result<T, Error> {
            Err(Error::fault("a bulk value does not have its column's type"))
        }
        Ok(match kind {
            Type::Int => Self::Int(
                values
                    .map(|value| match value {
                        Value::Null => Ok(None),
                        Value::Int(number) => Ok(Some(number)),
                        _ => mismatch(),
                    })
                    .collect::<Result<_, Error>>()?,
            ),
            Type::Text => Self::Text(
                values
                    .map(|value| match value {
                        Value::Null => Ok(None),
                        Value::Text(text) => Ok(Some(text)),
                        _ => mismatch(),
                    })
                    .collect::<Result<_, Error>>()?,
            ),
            Type::Bytes => Self::Bytes(
                values
                    .map(|value| match value {
                        Value::Null => Ok(None),
                        Value::Bytes(bytes) => Ok(Some(bytes)),
                        _ => mismatch(),
                    })
                    .collect::<Result<_, Error>>()?,
            ),
        })
    }

    fn parameter(&self) -> &(dyn ToSql + Sync) {
        match self {
            Self::Int(column) => column,
            Self::Text(column) => column,
            Self::Bytes(column) => column,
        }
    }
}

fn type_of(values: &[Value]) -> Type {
    match values.iter().find(|value| **value != Value::Null) {
        Some(Value::Text(_)) => Type::Text,
        Some(Value::Bytes(_)) => Type::Bytes,
        _ => Type::Int,
    }
}

impl Connection for Conn {
    fn query(&mut self, statement: &Statement, values: &[Value]) -> Result<Vec<Row>, Error> {
        self.rows(statement.sql, &parameters(values))
    }

    fn each(&mut self, statement: &Statement, values: &[Value], take: &mut Take) -> Result<(), Error> {
        for row in self.found(statement.sql, &parameters(values))? {
            hand_out(row.len(), |n| value(&row, n), &mut *take)?;
        }
        Ok(())
    }

    fn query_text(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, Error> {
        self.rows(sql, &parameters(values))
    }

    fn facts(&mut self) -> Result<Vec<Row>, Error> {
        self.rows(dialect::POSTGRES_FACTS, &[])
    }

    fn clock(&mut self) -> Result<Option<Time>, Error> {
        let rows = self.rows(dialect::POSTGRES_CLOCK, &[])?;
        rows.into_iter().next().map(|mut row| row.take()).transpose()
    }

    fn settled(&mut self, company: CompanyId) -> Result<i64, Error> {
        // The server shows the halves of a key as unsigned numbers.
        let (space, key) =
            (i64::from(LOCK_SPACE.cast_unsigned()), i64::from(lock_key(company).cast_unsigned()));
        numbering::settled(self.rows(dialect::POSTGRES_RUNNING, &[&space, &key])?)
    }

    fn execute(&mut self, statement: &Statement, values: &[Value]) -> Result<u64, Error> {
        let prepared = self.prepare(statement.sql)?;
        let parameters = parameters(values);
        self.wrote = true;
        self.link.execute(&prepared, &parameters).map_err(|error| named(statement.sql, error))
    }

    fn query_keys(
        &mut self,
        statement: &Statement,
        values: &[Value],
        keys: &[Value],
    ) -> Result<Vec<Row>, Error> {
        let column = Column::collect(type_of(keys), keys.iter().copied())?;
        let mut all = parameters(values);
        all.push(column.parameter());
        self.rows(statement.sql, &all)
    }

    fn insert(
        &mut self,
        insert: &InsertMany,
        company: CompanyId,
        values: &[Value],
    ) -> Result<Vec<Row>, Error> {
        self.bulk(insert.postgres(), insert.columns.iter().map(|(_, kind)| *kind), company, values)
    }

    fn update(&mut self, update: &UpdateMany, company: CompanyId, values: &[Value]) -> Result<(), Error> {
        let kinds = update.keys.iter().chain(update.columns).map(|(_, kind)| *kind);
        let updated = self.bulk(update.postgres(), kinds, company, values)?.len();
        // The transaction gets a higher number when it runs again.
        if update.numbering.is_numbered() && updated < values.len() / update.width() {
            Err(Error::Again)
        } else {
            Ok(())
        }
    }

    fn delete(&mut self, delete: &DeleteMany, company: CompanyId, values: &[Value]) -> Result<(), Error> {
        let kinds = delete.keys.iter().map(|(_, kind)| *kind);
        self.bulk(delete.postgres(), kinds, company, values).map(|_| ())
    }
}

impl Conn {
    fn bulk(
        &mut self,
        sql: &str,
        kinds: impl Iterator<Item = Type>,
        company: CompanyId,
        values: &[Value],
    ) -> Result<Vec<Row>, Error> {
        let kinds: Vec<Type> = kinds.collect();
        let width = kinds.len();
        let columns = kinds
            .iter()
            .enumerate()
            .map(|(n, kind)| Column::collect(*kind, values.chunks_exact(width).map(|row| row[n])));
        let columns: Vec<Column> = columns.collect::<Result<_, _>>()?;
        let mut all: Vec<&(dyn ToSql + Sync)> = vec![&company.0];
        all.extend(columns.iter().map(Column::parameter));
        self.wrote = true;
        self.rows(sql, &all)
    }
}

fn parameters<'a>(values: &'a [Value<'a>]) -> Vec<&'a (dyn ToSql + Sync)> {
    values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

fn row(found: &tokio_postgres::Row) -> Result<Row, Error> {
    Row::read(found.len(), |n| value(found, n).map(Cell::from))
}

fn value(found: &tokio_postgres::Row, n: usize) -> Result<Value<'_>, Error> {
    let value = match *found.columns()[n].type_() {
        PgType::INT8 => found.try_get::<_, Option<i64>>(n).map(Value::from),
        PgType::INT4 => found.try_get::<_, Option<i32>>(n).map(|number| number.map(i64::from).into()),
        PgType::TEXT => found.try_get::<_, Option<&str>>(n).map(Value::from),
        PgType::BYTEA => found.try_get::<_, Option<&[u8]>>(n).map(Value::from),
        ref other => return Err(Error::fault(format!("columns of type {other} are not supported"))),
    };
    value.map_err(|error| Error::fault(error.to_string()))
}

fn named(sql: &str, error: Error) -> Error {
    match error {
        Error::Fault(message) => {
            Error::Fault(format!("{message} in: {}", sql.chars().take(200).collect::<String>()))
        }
        other => other,
    }
}

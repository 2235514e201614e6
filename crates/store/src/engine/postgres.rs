//! PostgreSQL: writer and reader threads that own a connection each.
//!
//! Round trips are the cost here, so what waits for one company runs together in few statements.
//! A transaction takes the company's advisory lock, shared by ordinary work, alone by what must not
//! run beside it (deleting an account under ingest, say).

#[cfg(test)]
mod outgrown;

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use postgres::error::SqlState;
use postgres::types::{ToSql, Type as PgType};
use postgres::{Client, NoTls, SimpleQueryMessage};
use rapport_domain::id::CompanyId;

use super::{Config, act, run_batch};
use crate::dialect;
use crate::error::Error;
use crate::migrate;
use crate::queue::{Group, Job, Queue, ReadQueue, Verdict};
use crate::statement::{DeleteMany, InsertMany, Statement, UpdateMany};
use crate::tx::{AfterCommit, Connection};
use crate::value::{Cell, Row, Type, Value};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Every statement finds its rows by an index that its keys are bound to, and the keys it drives by are few. So plans
/// are made without values and kept, and the ways to read a whole company first are ruled out: a bitmap and the table
/// of a hash join are filled before the first row is answered, whatever the LIMIT.
pub(crate) const SESSION: &str = "SET statement_timeout = '15s'; SET lock_timeout = '5s'; \
     SET idle_in_transaction_session_timeout = '30s'; SET default_transaction_isolation = 'read committed'; \
     SET plan_cache_mode = 'force_generic_plan'; SET jit = off; SET enable_seqscan = off; \
     SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off";
const GROUP: Group = Group { max_jobs: 512, max_weight: 2000, one_family: true };
/// How often a transaction that another one was in the way of runs again.
const MAX_RUNS: usize = 8;
/// Statements kept prepared on a connection, as on SQLite.
const MAX_PREPARED: usize = 512;
/// A plan made for a few rows may read all of what a table grows to. This often a connection looks whether a table
/// has doubled since its plans were made, and if so makes them anew. By time, because slow plans make transactions rare.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The key space of our advisory locks; the other half of the key is the company.
const LOCK_SPACE: i32 = 0x7261_7070;

pub fn start(
    url: &str,
    config: &Config,
    writes: &Arc<Queue>,
    reads: &Arc<ReadQueue>,
) -> Result<Vec<JoinHandle<()>>, Error> {
    migrate(url)?;
    let mut threads = Vec::new();
    for n in 0..config.readers.max(1) {
        let mut reader = Conn::open(url)?;
        let reads = Arc::clone(reads);
        threads.push(spawn(&format!("pg-read-{n}"), move || {
            while let Some(read) = reads.take() {
                reader.read(read);
            }
        })?);
    }
    for n in 0..config.writers.max(1) {
        let mut writer = Conn::open(url)?;
        let writes = Arc::clone(writes);
        threads.push(spawn(&format!("pg-write-{n}"), move || {
            while let Some(group) = writes.take(GROUP) {
                let key = (group[0].company(), group[0].family());
                writer.run_group(group);
                writes.finished(key);
            }
        })?);
    }
    Ok(threads)
}

pub fn migrate(url: &str) -> Result<i64, Error> {
    let mut connection = Conn::open(url)?;
    migrate::postgres(connection.client()?)
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(work);
    spawned.map_err(|error| Error::Unavailable(error.to_string()))
}

struct Conn {
    config: postgres::Config,
    client: Option<Client>,
    prepared: HashMap<String, postgres::Statement>,
    /// How large the tables were when the plans were made, and when that was last looked at.
    planned_for: Option<i64>,
    looked_at: Option<Instant>,
}

impl Conn {
    fn open(url: &str) -> Result<Self, Error> {
        let mut config = postgres::Config::from_str(url)
            .map_err(|error| Error::Unavailable(format!("bad address: {error}")))?;
        config.connect_timeout(CONNECT_TIMEOUT).application_name("rapport");
        let mut connection =
            Self { config, client: None, prepared: HashMap::new(), planned_for: None, looked_at: None };
        connection.connected()?;
        Ok(connection)
    }

    /// The client of the transaction under way: on a new connection there would be none.
    fn client(&mut self) -> Result<&mut Client, Error> {
        let open = self.client.as_mut().filter(|client| !client.is_closed());
        open.ok_or_else(|| Error::Unavailable("the connection was lost".to_owned()))
    }

    /// The client, connected anew where the last connection was lost.
    fn connected(&mut self) -> Result<&mut Client, Error> {
        if self.client.as_ref().is_none_or(Client::is_closed) {
            self.prepared.clear();
            let mut client = self.config.connect(NoTls).map_err(from_postgres)?;
            client.batch_execute(SESSION).map_err(from_postgres)?;
            self.client = Some(client);
        }
        self.client.as_mut().ok_or_else(|| Error::fault("no connection"))
    }

    fn begin(&mut self, sql: &str) -> Result<(), Error> {
        if self.looked_at.is_some_and(|at| at.elapsed() < LOOK_EVERY) {
            return self.connected()?.batch_execute(sql).map_err(from_postgres);
        }
        let planned_for = self.planned_for;
        // In the same round trip.
        let looking = format!("{sql}; {}", dialect::POSTGRES_DOUBLINGS);
        let client = self.connected()?;
        let size = last_number(&client.simple_query(&looking).map_err(from_postgres)?);
        if size != planned_for {
            client.batch_execute("DISCARD PLANS").map_err(from_postgres)?;
        }
        (self.planned_for, self.looked_at) = (size, Some(Instant::now()));
        Ok(())
    }

    fn control(&mut self, sql: &str) -> Result<(), Error> {
        self.client()?.batch_execute(sql).map_err(from_postgres)
    }

    fn prepare(&mut self, sql: &str) -> Result<postgres::Statement, Error> {
        if let Some(statement) = self.prepared.get(sql) {
            return Ok(statement.clone());
        }
        if self.prepared.len() >= MAX_PREPARED {
            // Lists have more shapes than a server should keep plans for; those in use come back.
            self.prepared.clear();
        }
        let statement = self.client()?.prepare(sql).map_err(|error| named(sql, &error))?;
        self.prepared.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    fn rows(&mut self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Error> {
        let statement = self.prepare(sql)?;
        let rows = self.client()?.query(&statement, values).map_err(|error| named(sql, &error))?;
        rows.iter().map(row).collect()
    }

    fn read(&mut self, read: crate::queue::Read) {
        if let Err(error) = self.begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY") {
            let _ = self.undo();
            return read(Err(error));
        }
        read(Ok(self));
        if self.control("COMMIT").is_err() {
            self.client = None;
        }
    }

    fn run_group(&mut self, mut group: Vec<Box<dyn Job>>) {
        match self.transact(&mut group) {
            Ok(actions) => {
                act(actions);
                group.into_iter().for_each(|job| job.settle(Ok(())));
            }
            Err(error)
                if group.len() > 1 && !matches!(error, Error::OutcomeUnknown | Error::Unavailable(_)) =>
            {
                tracing::debug!(%error, jobs = group.len(), "a batch failed; its jobs run one by one");
                for job in group {
                    self.run_group(vec![job]);
                }
            }
            Err(error) => group.into_iter().for_each(|job| job.settle(Err(error.clone()))),
        }
    }

    fn transact(&mut self, batch: &mut [Box<dyn Job>]) -> Result<Vec<AfterCommit>, Error> {
        let mut runs = 0;
        loop {
            runs += 1;
            match self.transact_once(batch) {
                Err(Error::Again) if runs < MAX_RUNS => {}
                Err(Error::Again) => return Err(Error::Busy),
                result => return result,
            }
        }
    }

    fn transact_once(&mut self, batch: &mut [Box<dyn Job>]) -> Result<Vec<AfterCommit>, Error> {
        let company = batch[0].company();
        let shared = if batch.iter().any(|job| job.exclusive()) { "" } else { "_shared" };
        // The lock's key is 32 + 32 bits; companies past 2^32 would share locks, never data.
        let [.., a, b, c, d] = company.0.to_be_bytes();
        let key = i32::from_be_bytes([a, b, c, d]);
        let begun = self.begin(&format!("BEGIN; SELECT pg_advisory_xact_lock{shared}({LOCK_SPACE}, {key})"));
        if let Err(error) = begun {
            // Where only the lock was refused, the transaction is open.
            self.undo()?;
            return Err(error);
        }
        match run_batch(self, batch) {
            Ok((Verdict::Commit, actions)) => {
                // Lost before the COMMIT is sent, it is known to be undone.
                self.client()?;
                match self.control("COMMIT") {
                    Ok(()) => Ok(actions),
                    Err(Error::Again) => Err(Error::Again),
                    Err(error) => {
                        let lost = self.client.as_ref().is_none_or(Client::is_closed);
                        self.client = None;
                        Err(if lost { Error::OutcomeUnknown } else { error })
                    }
                }
            }
            Ok((Verdict::Rollback, _)) => self.undo().map(|()| Vec::new()),
            Err(error) => {
                self.undo()?;
                Err(error)
            }
        }
    }

    fn undo(&mut self) -> Result<(), Error> {
        if self.client.as_ref().is_none_or(Client::is_closed) {
            // Gone with its connection.
            self.client = None;
            return Ok(());
        }
        self.control("ROLLBACK").inspect_err(|_| self.client = None)
    }
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
            Err(Error::fault("a bulk value is not of its column's type"))
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

    fn query_text(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, Error> {
        self.rows(sql, &parameters(values))
    }

    fn facts(&mut self) -> Result<Vec<Row>, Error> {
        self.rows(dialect::POSTGRES_FACTS, &[])
    }

    fn execute(&mut self, statement: &Statement, values: &[Value]) -> Result<u64, Error> {
        let prepared = self.prepare(statement.sql)?;
        let parameters = parameters(values);
        self.client()?.execute(&prepared, &parameters).map_err(|error| named(statement.sql, &error))
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
        self.bulk(update.postgres(), kinds, company, values).map(|_| ())
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
        self.rows(sql, &all)
    }
}

/// The number in the last row of what a simple query answered.
fn last_number(messages: &[SimpleQueryMessage]) -> Option<i64> {
    messages.iter().rev().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0)?.parse().ok(),
        _ => None,
    })
}

fn parameters<'a>(values: &'a [Value<'a>]) -> Vec<&'a (dyn ToSql + Sync)> {
    values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

fn row(found: &postgres::Row) -> Result<Row, Error> {
    let cells = found.columns().iter().enumerate().map(|(n, column)| {
        let bad = |error: postgres::Error| Error::fault(error.to_string());
        Ok(match *column.type_() {
            PgType::INT8 => found.try_get::<_, Option<i64>>(n).map_err(bad)?.map_or(Cell::Null, Cell::Int),
            PgType::INT4 => {
                let number = found.try_get::<_, Option<i32>>(n).map_err(bad)?;
                number.map_or(Cell::Null, |number| Cell::Int(i64::from(number)))
            }
            PgType::TEXT => {
                found.try_get::<_, Option<String>>(n).map_err(bad)?.map_or(Cell::Null, Cell::Text)
            }
            PgType::BYTEA => {
                found.try_get::<_, Option<Vec<u8>>>(n).map_err(bad)?.map_or(Cell::Null, Cell::Bytes)
            }
            ref other => return Err(Error::fault(format!("a column of type {other} is not read"))),
        })
    });
    cells.collect::<Result<Vec<_>, _>>().map(Row::new)
}

fn named(sql: &str, error: &postgres::Error) -> Error {
    match classify(error) {
        Error::Fault(message) => {
            Error::Fault(format!("{message} in: {}", sql.chars().take(200).collect::<String>()))
        }
        other => other,
    }
}

pub fn from_postgres(error: postgres::Error) -> Error {
    classify(&error)
}

/// With its cause: its own text stops at "error connecting to server".
pub fn described(error: &postgres::Error) -> String {
    let cause = std::error::Error::source(error);
    cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

fn classify(error: &postgres::Error) -> Error {
    let Some(state) = error.code() else {
        return Error::Unavailable(described(error));
    };
    match *state {
        SqlState::T_R_SERIALIZATION_FAILURE
        | SqlState::T_R_DEADLOCK_DETECTED
        | SqlState::LOCK_NOT_AVAILABLE => Error::Again,
        // Taken by another transaction between our look and our write: the next run sees it.
        SqlState::UNIQUE_VIOLATION => {
            tracing::warn!(%error, "a unique key was taken meanwhile; the transaction runs again");
            Error::Again
        }
        SqlState::QUERY_CANCELED
        | SqlState::ADMIN_SHUTDOWN
        | SqlState::CRASH_SHUTDOWN
        | SqlState::CANNOT_CONNECT_NOW
        | SqlState::TOO_MANY_CONNECTIONS
        | SqlState::DISK_FULL
        | SqlState::OUT_OF_MEMORY => Error::Unavailable(described(error)),
        _ => Error::fault(error.as_db_error().map_or_else(|| error.to_string(), ToString::to_string)),
    }
}

//! The raw engine: plain connections that write rows durably, without a service or HTTP. `raw_ingest` and
//! `raw_upsert` run over them.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use postgres::types::ToSql;
use postgres::{Client, NoTls};
use rapport_domain::id::CompanyId;
use rapport_store::{Database, DeleteMany, InsertMany, Type, UpdateMany, Value};

use crate::drive::per_second;
use crate::place::Place;

/// The service's own page cache.
const CACHE_KIBIBYTES: i64 = 64 * 1024;
/// How large SQLite's log may grow before the writer copies it back: the service's own limit, and the default
/// of a plain program.
pub const LATE_CHECKPOINTS: i64 = 16_384;
pub const DEFAULT_CHECKPOINTS: i64 = 1_000;
/// "One writer on SQLite, two connections on PostgreSQL."
const POSTGRES_CONNECTIONS: usize = 2;

/// A connection that writes.
pub trait Raw: Send {
    fn begin(&mut self) -> anyhow::Result<()>;
    fn commit(&mut self) -> anyhow::Result<()>;
    fn insert(&mut self, insert: &InsertMany, values: &[Value]) -> anyhow::Result<()>;
    fn update(&mut self, update: &UpdateMany, values: &[Value]) -> anyhow::Result<()>;
    fn delete(&mut self, delete: &DeleteMany, values: &[Value]) -> anyhow::Result<()>;
    /// Looks accounts up by imported_id; returns how many exist.
    fn look_up(&mut self, imported_ids: &[String]) -> anyhow::Result<usize>;
}

/// Opens as many connections as the engine writes over.
pub fn connect(place: &Place, company: CompanyId, checkpoints: i64) -> anyhow::Result<Vec<Box<dyn Raw>>> {
    Ok(match &place.database {
        Database::Sqlite(path) => vec![Box::new(RawSqlite::open(path, company, checkpoints)?)],
        Database::Postgres(url) => {
            let mut connections: Vec<Box<dyn Raw>> = Vec::new();
            for _ in 0..POSTGRES_CONNECTIONS {
                connections.push(Box::new(RawPostgres::open(url, company)?));
            }
            connections
        }
    })
}

/// Runs `transaction` on every connection for a while; returns what was written per second. `transaction` gets
/// its connection and that connection's number, and returns how much it wrote.
pub fn run(
    connections: Vec<Box<dyn Raw>>,
    time: Duration,
    transaction: impl Fn(usize) -> Box<dyn FnMut(&mut dyn Raw) -> anyhow::Result<u64>> + Sync,
) -> anyhow::Result<f64> {
    let start = Barrier::new(connections.len());
    let worked = std::thread::scope(|scope| {
        let threads: Vec<_> = connections
            .into_iter()
            .enumerate()
            .map(|(number, mut raw)| {
                let (start, transaction) = (&start, &transaction);
                scope.spawn(move || {
                    let mut write = transaction(number);
                    start.wait();
                    let started = Instant::now();
                    let mut written = 0;
                    while started.elapsed() < time {
                        written += write(raw.as_mut())?;
                    }
                    Ok(per_second(written, started.elapsed()))
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| bail!("a raw writer panicked")))
            .collect()
    });
    let worked: Vec<anyhow::Result<f64>> = worked;
    worked.into_iter().sum()
}

struct RawSqlite {
    connection: rusqlite::Connection,
    company: CompanyId,
}

impl RawSqlite {
    fn open(path: &std::path::Path, company: CompanyId, checkpoints: i64) -> anyhow::Result<Self> {
        let connection = rusqlite::Connection::open(path).context("opening the database")?;
        let mode: String =
            connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
        anyhow::ensure!(mode == "wal", "no write-ahead log");
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "cache_size", -CACHE_KIBIBYTES)?;
        connection.pragma_update(None, "wal_autocheckpoint", checkpoints)?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(Self { connection, company })
    }

    fn each_row(&self, sql: &str, width: usize, values: &[Value]) -> anyhow::Result<()> {
        let mut statement = self.connection.prepare_cached(sql)?;
        statement.raw_bind_parameter(1, Value::from(self.company))?;
        for row in values.chunks_exact(width) {
            for (n, value) in row.iter().enumerate() {
                statement.raw_bind_parameter(n + 2, value)?;
            }
            statement.raw_execute()?;
        }
        Ok(())
    }
}

impl Raw for RawSqlite {
    fn begin(&mut self) -> anyhow::Result<()> {
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.raw_execute()?;
        Ok(())
    }

    fn commit(&mut self) -> anyhow::Result<()> {
        self.connection.prepare_cached("COMMIT")?.raw_execute()?;
        Ok(())
    }

    fn insert(&mut self, insert: &InsertMany, values: &[Value]) -> anyhow::Result<()> {
        self.each_row(insert.sqlite(), insert.width(), values)
    }

    fn update(&mut self, update: &UpdateMany, values: &[Value]) -> anyhow::Result<()> {
        self.each_row(update.sqlite(), update.width(), values)
    }

    fn delete(&mut self, delete: &DeleteMany, values: &[Value]) -> anyhow::Result<()> {
        self.each_row(delete.sqlite(), delete.width(), values)
    }

    fn look_up(&mut self, imported_ids: &[String]) -> anyhow::Result<usize> {
        let sql = "SELECT id FROM account WHERE company = ?1 AND imported_id = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut found = 0;
        for imported_id in imported_ids {
            statement.raw_bind_parameter(1, self.company.0)?;
            statement.raw_bind_parameter(2, imported_id)?;
            let mut rows = statement.raw_query();
            while let Some(row) = rows.next()? {
                found += usize::from(row.get::<_, [u8; 16]>(0).is_ok());
            }
        }
        Ok(found)
    }
}

struct RawPostgres {
    client: Client,
    company: CompanyId,
    prepared: std::collections::HashMap<String, postgres::Statement>,
}

/// One array parameter.
enum Column<'a> {
    Int(Vec<Option<i64>>),
    Text(Vec<Option<&'a str>>),
    Bytes(Vec<Option<&'a [u8]>>),
}

impl<'a> Column<'a> {
    fn collect(kind: Type, values: impl Iterator<Item = Value<'a>>) -> Self {
        match kind {
            Type::Int => Self::Int(
                values
                    .map(|value| if let Value::Int(number) = value { Some(number) } else { None })
                    .collect(),
            ),
            Type::Text => Self::Text(
                values.map(|value| if let Value::Text(text) = value { Some(text) } else { None }).collect(),
            ),
            Type::Bytes => Self::Bytes(
                values
                    .map(|value| if let Value::Bytes(bytes) = value { Some(bytes) } else { None })
                    .collect(),
            ),
        }
    }

    fn parameter(&self) -> &(dyn ToSql + Sync) {
        match self {
            Self::Int(column) => column,
            Self::Text(column) => column,
            Self::Bytes(column) => column,
        }
    }
}

impl RawPostgres {
    fn open(url: &str, company: CompanyId) -> anyhow::Result<Self> {
        let mut client = Client::connect(url, NoTls).context("connecting to the database")?;
        client.batch_execute("SET plan_cache_mode = 'force_generic_plan'; SET jit = off")?;
        Ok(Self { client, company, prepared: std::collections::HashMap::new() })
    }

    fn prepare(&mut self, sql: &str) -> anyhow::Result<postgres::Statement> {
        if let Some(statement) = self.prepared.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).with_context(|| sql.to_owned())?;
        self.prepared.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    fn bulk(&mut self, sql: &str, kinds: &[Type], values: &[Value]) -> anyhow::Result<()> {
        let statement = self.prepare(sql)?;
        let rows = || values.chunks_exact(kinds.len());
        let columns: Vec<Column> = kinds
            .iter()
            .enumerate()
            .map(|(n, kind)| Column::collect(*kind, rows().map(|row| row[n])))
            .collect();
        let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&self.company.0];
        parameters.extend(columns.iter().map(Column::parameter));
        self.client.execute(&statement, &parameters).with_context(|| sql.to_owned())?;
        Ok(())
    }
}

impl Raw for RawPostgres {
    fn begin(&mut self) -> anyhow::Result<()> {
        Ok(self.client.batch_execute("BEGIN")?)
    }

    fn commit(&mut self) -> anyhow::Result<()> {
        Ok(self.client.batch_execute("COMMIT")?)
    }

    fn insert(&mut self, insert: &InsertMany, values: &[Value]) -> anyhow::Result<()> {
        let kinds: Vec<Type> = insert.columns.iter().map(|(_, kind)| *kind).collect();
        self.bulk(insert.postgres(), &kinds, values)
    }

    fn update(&mut self, update: &UpdateMany, values: &[Value]) -> anyhow::Result<()> {
        let kinds: Vec<Type> = update.keys.iter().chain(update.columns).map(|(_, kind)| *kind).collect();
        self.bulk(update.postgres(), &kinds, values)
    }

    fn delete(&mut self, delete: &DeleteMany, values: &[Value]) -> anyhow::Result<()> {
        let kinds: Vec<Type> = delete.keys.iter().map(|(_, kind)| *kind).collect();
        self.bulk(delete.postgres(), &kinds, values)
    }

    fn look_up(&mut self, imported_ids: &[String]) -> anyhow::Result<usize> {
        let sql = "SELECT imported_id, id FROM account WHERE company = $1 AND imported_id = ANY($2)";
        let statement = self.prepare(sql)?;
        let found = self.client.query(&statement, &[&self.company.0, &imported_ids])?;
        Ok(found.iter().filter(|row| row.try_get::<_, &[u8]>(1).is_ok()).count())
    }
}

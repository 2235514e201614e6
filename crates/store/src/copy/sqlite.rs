//! SQLite as a side of a copy.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::part::Part;
use super::schema::{Schema, Table, quoted};
use super::{Error, NextBatch, Side, TakeRow, View, row};
use crate::engine::sqlite::{from_sqlite, in_words, shape};
use crate::migrate;
use crate::migrate::progress::Teller;
use crate::value::Value;

const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Enough to sort an index in few passes.
const CACHE_KIBIBYTES: i64 = 32 << 10;
const SMALL_CACHE_KIBIBYTES: i64 = 4 << 10;

pub struct SqliteSide<'p> {
    connection: Connection,
    /// The file, if this is a target.
    part: Option<&'p Part>,
}

/// Opens a file for reading, in a snapshot that lasts as long as the connection.
pub fn open_snapshot(path: &Path) -> Result<Connection, Error> {
    if !path.exists() {
        return Err(Error::Refused(format!("{} does not exist", path.display())));
    }
    let unreadable = |error: rusqlite::Error| {
        crate::Error::Unavailable(format!("{} cannot be read: {}", path.display(), in_words(&error)))
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.pragma_update(None, "cache_size", -SMALL_CACHE_KIBIBYTES)?;
        // The first read takes the snapshot.
        connection.execute_batch("BEGIN")?;
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(connection)
    };
    open().map_err(|error| unreadable(error).into())
}

/// Opens a file that nobody else uses and that is worthless until it is complete, so it needs no journal.
pub fn open_target(part: &Part) -> Result<Connection, Error> {
    let open = || -> rusqlite::Result<Connection> {
        let connection = Connection::open(part.path())?;
        shape(&connection)?;
        connection.pragma_update_and_check(None, "journal_mode", "OFF", |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", "OFF")?;
        connection.pragma_update(None, "cache_size", -SMALL_CACHE_KIBIBYTES)?;
        Ok(connection)
    };
    open().map_err(|error| from_sqlite(error).into())
}

pub fn close(connection: Connection) -> Result<(), Error> {
    connection.close().map_err(|(_, error)| from_sqlite(error).into())
}

/// The name of a table that has data, if there is one.
pub fn first_filled(connection: &Connection, schema: &Schema) -> Result<Option<String>, Error> {
    use rusqlite::OptionalExtension as _;
    if schema.tables.is_empty() {
        return Ok(None);
    }
    let found = connection.query_row(&schema.first_filled(), [], |row| row.get(0)).optional();
    found.map_err(|error| from_sqlite(error).into())
}

impl<'p> SqliteSide<'p> {
    pub fn new(connection: Connection) -> Self {
        Self { connection, part: None }
    }

    /// A new database in this file, within one transaction.
    pub fn create(part: &'p Part) -> Result<Self, Error> {
        let mut connection = open_target(part)?;
        connection.pragma_update(None, "cache_size", -CACHE_KIBIBYTES).map_err(from_sqlite)?;
        migrate::sqlite::run(&mut connection, part.path(), &mut Teller::new(&mut |_| {}))?;
        run(&connection, "BEGIN")?;
        Ok(Self { connection, part: Some(part) })
    }

    /// Drops the indexes, because it is much faster to build them at the end; returns how to.
    pub fn drop_indexes(&mut self) -> Result<Vec<String>, Error> {
        let mut found = self
            .connection
            .prepare(
                "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL ORDER BY name",
            )
            .map_err(from_sqlite)?;
        let read = found.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).map_err(from_sqlite)?;
        let indexes: Vec<(String, String)> = read.collect::<rusqlite::Result<_>>().map_err(from_sqlite)?;
        drop(found);
        for (name, _) in &indexes {
            run(&self.connection, &format!("DROP INDEX {}", quoted(name)))?;
        }
        Ok(indexes.into_iter().map(|(_, sql)| sql).collect())
    }

    pub fn create_indexes(&mut self, indexes: &[String]) -> Result<(), Error> {
        for sql in indexes {
            run(&self.connection, sql)?;
            self.sync()?;
        }
        Ok(())
    }

    /// Commits what was loaded.
    pub fn into_connection(self) -> Result<Connection, Error> {
        run(&self.connection, "COMMIT")?;
        Ok(self.connection)
    }

    pub fn into_inner(self) -> Connection {
        self.connection
    }

    fn sync(&self) -> Result<(), Error> {
        self.part.map_or(Ok(()), Part::sync_some)
    }
}

pub fn run(connection: &Connection, sql: &str) -> Result<(), Error> {
    connection.execute_batch(sql).map_err(|error| from_sqlite(error).into())
}

impl Side for SqliteSide<'_> {
    fn read(&mut self, table: &Table, view: View, take: TakeRow<'_>) -> Result<(), Error> {
        let mut statement = self.connection.prepare(&table.select(view)).map_err(from_sqlite)?;
        let mut rows = statement.query([]).map_err(from_sqlite)?;
        let mut encoded = Vec::new();
        while let Some(found) = rows.next().map_err(|error| damaged(table, &error))? {
            encoded.clear();
            row::encode(table, found, &mut encoded)?;
            take(&encoded)?;
        }
        Ok(())
    }

    fn load(&mut self, table: &Table, next: NextBatch<'_>) -> Result<(), Error> {
        let places: Vec<String> = (1..=table.columns.len()).map(|n| format!("?{n}")).collect();
        let (name, columns) = (quoted(&table.name), table.column_list());
        let insert = format!("INSERT INTO {name} ({columns}) VALUES ({})", places.join(", "));
        run(&self.connection, &format!("DELETE FROM {name}"))?;
        let mut insert = self.connection.prepare(&insert).map_err(from_sqlite)?;
        while let Some(batch) = next()? {
            let (mut rest, mut values): (&[u8], Vec<Value>) = (&batch, Vec::new());
            while !rest.is_empty() {
                row::decode(table, &mut rest, &mut values)?;
                insert.execute(rusqlite::params_from_iter(&values)).map_err(from_sqlite)?;
            }
            self.sync()?;
        }
        Ok(())
    }

    fn numbers(&mut self) -> Result<Vec<(String, i64)>, Error> {
        let read = || -> rusqlite::Result<Vec<(String, i64)>> {
            let mut statement = self.connection.prepare("SELECT name, seq FROM sqlite_sequence")?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        };
        read().map_err(|error| from_sqlite(error).into())
    }

    fn continue_numbers(&mut self, numbers: &[(String, i64)]) -> Result<(), Error> {
        for (table, number) in numbers {
            let is_numbered =
                "SELECT count(*) FROM sqlite_schema WHERE name = ?1 AND sql LIKE '%AUTOINCREMENT%'";
            let write = || -> rusqlite::Result<()> {
                if self.connection.query_row(is_numbered, [table], |row| row.get::<_, i64>(0))? == 0 {
                    return Ok(());
                }
                let update = "UPDATE sqlite_sequence SET seq = max(seq, ?2) WHERE name = ?1";
                if self.connection.execute(update, (table, number))? == 0 {
                    let insert = "INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)";
                    self.connection.execute(insert, (table, number))?;
                }
                Ok(())
            };
            write().map_err(from_sqlite)?;
        }
        Ok(())
    }
}

fn damaged(table: &Table, error: &rusqlite::Error) -> Error {
    let text = format!("the table {} cannot be read: {}", table.name, in_words(error));
    crate::Error::Unavailable(text).into()
}

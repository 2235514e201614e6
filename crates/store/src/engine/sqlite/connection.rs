//! A connection to SQLite: statements, rows and values.

use std::cell::Cell as Counter;

use rapport_domain::id::CompanyId;
use rapport_domain::time::Time;
use rusqlite::Connection as Sqlite;
use rusqlite::config::DbConfig;
use rusqlite::types::ValueRef;

use super::from_sqlite;
use crate::dialect;
use crate::error::Error;
use crate::statement::{DeleteMany, InsertMany, Numbering, Statement, UpdateMany};
use crate::tx::{Connection, Take};
use crate::value::{Cell, Row, Value, hand_out};

pub struct Conn {
    pub sqlite: Sqlite,
    /// The number of the next change.
    next_change: Counter<i64>,
    /// What SQLite called the state of the database when the changes of others were last looked at.
    state_seen: Counter<Option<i64>>,
}

impl Conn {
    pub fn tuned(sqlite: Sqlite, cache_bytes: usize) -> Result<Self, Error> {
        let kibibytes = i64::try_from(cache_bytes / 1024).unwrap_or(i64::MAX);
        sqlite.pragma_update(None, "cache_size", -kibibytes).map_err(from_sqlite)?;
        sqlite.pragma_update(None, "temp_store", "MEMORY").map_err(from_sqlite)?;
        // One plan for each statement, whatever is bound. Otherwise a statement with a LIMIT is prepared again for each use.
        sqlite.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(from_sqlite)?;
        sqlite.set_prepared_statement_cache_capacity(512);
        Ok(Self { sqlite, next_change: Counter::new(0), state_seen: Counter::new(None) })
    }

    /// Begins a transaction that makes changes.
    pub fn begin_changes(&self) -> Result<(), Error> {
        self.control("BEGIN IMMEDIATE")?;
        self.number_changes().inspect_err(|_| {
            let _ = self.control("ROLLBACK");
        })
    }

    /// Another process, such as a command beside the service, may have made changes since the last transaction. The next
    /// numbers must be above its numbers. SQLite says without a look at any table whether there was one.
    fn number_changes(&self) -> Result<(), Error> {
        let number = |sql: &str| {
            let mut statement = self.statement(sql)?;
            statement.query_row([], |row| row.get(0)).map_err(from_sqlite)
        };
        let state = Some(number(dialect::SQLITE_STATE)?);
        if self.state_seen.get() != state {
            let first: i64 = number(dialect::SQLITE_FIRST_CHANGE)?;
            self.next_change.set(first.max(self.next_change.get()));
            self.state_seen.set(state);
        }
        Ok(())
    }

    fn statement(&self, sql: &str) -> Result<rusqlite::CachedStatement<'_>, Error> {
        self.sqlite.prepare_cached(sql).map_err(|error| named(sql, error))
    }

    pub fn control(&self, sql: &str) -> Result<(), Error> {
        self.statement(sql)?.raw_execute().map(|_| ()).map_err(from_sqlite)
    }

    pub fn read(&mut self, read: crate::queue::Read) {
        if let Err(error) = self.control("BEGIN DEFERRED") {
            return read(Err(error));
        }
        read(Ok(self));
        // No snapshot is kept between jobs.
        let _ = self.control("COMMIT");
    }

    fn rows(&self, sql: &str, values: &[Value]) -> Result<Vec<Row>, Error> {
        let mut statement = self.statement(sql)?;
        let mut found = Vec::new();
        collect(&mut statement, values, &mut found).map_err(|error| named(sql, error))?;
        Ok(found)
    }
}

fn collect(
    statement: &mut rusqlite::CachedStatement,
    values: &[Value],
    found: &mut Vec<Row>,
) -> rusqlite::Result<()> {
    bind(statement, values)?;
    let width = statement.column_count();
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next()? {
        found.push(Row::read(width, |n| value(row, n).map(Cell::from))?);
    }
    Ok(())
}

fn bind(statement: &mut rusqlite::CachedStatement, values: &[Value]) -> rusqlite::Result<()> {
    for (n, value) in values.iter().enumerate() {
        statement.raw_bind_parameter(n + 1, value)?;
    }
    Ok(())
}

fn value<'r>(row: &'r rusqlite::Row, n: usize) -> rusqlite::Result<Value<'r>> {
    Ok(match row.get_ref(n)? {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Int(number),
        #[expect(clippy::cast_possible_truncation, reason = "no column holds a float; sums are whole")]
        ValueRef::Real(number) => Value::Int(number as i64),
        text @ ValueRef::Text(_) => Value::Text(text.as_str()?),
        ValueRef::Blob(bytes) => Value::Bytes(bytes),
    })
}

impl Connection for Conn {
    fn query(&mut self, statement: &Statement, values: &[Value]) -> Result<Vec<Row>, Error> {
        self.rows(statement.sqlite(), values)
    }

    fn each(&mut self, statement: &Statement, values: &[Value], take: &mut Take) -> Result<(), Error> {
        let sql = statement.sqlite();
        let named = |error| named(sql, error);
        let mut prepared = self.statement(sql)?;
        bind(&mut prepared, values).map_err(named)?;
        let width = prepared.column_count();
        let mut rows = prepared.raw_query();
        while let Some(row) = rows.next().map_err(named)? {
            hand_out(width, |n| value(row, n).map_err(named), &mut *take)?;
        }
        Ok(())
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

    /// One writer numbers changes in the order of their commits.
    fn settled(&mut self, _: CompanyId) -> Result<i64, Error> {
        Ok(i64::MAX)
    }

    fn execute(&mut self, statement: &Statement, values: &[Value]) -> Result<u64, Error> {
        let sql = statement.sqlite();
        let mut prepared = self.statement(sql)?;
        let run = bind(&mut prepared, values).and_then(|()| prepared.raw_execute());
        run.map(|count| count as u64).map_err(|error| named(sql, error))
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
            collect(&mut prepared, &all, &mut found).map_err(|error| named(sql, error))?;
        }
        Ok(found)
    }

    fn insert(
        &mut self,
        insert: &InsertMany,
        company: CompanyId,
        values: &[Value],
    ) -> Result<Vec<Row>, Error> {
        let mut written = Vec::new();
        let table = (insert.table, insert.numbering);
        self.each_row(insert.sqlite(), table, insert.width(), company, values, |row| {
            if insert.tells_written {
                written.push(Row::of(Cell::from(row[0])));
            }
        })?;
        Ok(written)
    }

    fn update(&mut self, update: &UpdateMany, company: CompanyId, values: &[Value]) -> Result<(), Error> {
        let table = (update.table, update.numbering);
        self.each_row(update.sqlite(), table, update.width(), company, values, |_| ())
    }

    fn delete(&mut self, delete: &DeleteMany, company: CompanyId, values: &[Value]) -> Result<(), Error> {
        let table = (delete.table, Numbering::None);
        self.each_row(delete.sqlite(), table, delete.width(), company, values, |_| ())
    }
}

impl Conn {
    /// Runs a statement for each row; `written` gets those that it inserted, updated or deleted.
    fn each_row(
        &self,
        sql: &str,
        (table, numbering): (&str, Numbering),
        width: usize,
        company: CompanyId,
        values: &[Value],
        mut written: impl FnMut(&[Value]),
    ) -> Result<(), Error> {
        let mut prepared = self.statement(sql)?;
        prepared.raw_bind_parameter(1, Value::from(company)).map_err(|error| named(sql, error))?;
        let mut log = match numbering {
            Numbering::Log => Some(self.statement(&dialect::log_sqlite(table))?),
            Numbering::None | Numbering::Row => None,
        };
        let mut run = |row: &[Value]| {
            for (n, value) in row.iter().enumerate() {
                prepared.raw_bind_parameter(n + 2, value)?;
            }
            let change = self.next_change.get();
            if numbering.is_numbered() {
                self.next_change.set(change + 1);
                prepared.raw_bind_parameter(width + 2, change)?;
            }
            if prepared.raw_execute()? > 0 {
                written(row);
                if let (Some(log), [id, .., at]) = (&mut log, row) {
                    log.execute((Value::from(company), change, id, at))?;
                }
            }
            Ok(())
        };
        values.chunks_exact(width).try_for_each(&mut run).map_err(|error| named(sql, error))
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

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;

    #[test]
    fn a_statement_is_prepared_once_whatever_is_bound() {
        let connection = Conn::tuned(Sqlite::open_in_memory().unwrap(), 1 << 20).unwrap();
        connection
            .sqlite
            .execute_batch("CREATE TABLE t (a INTEGER PRIMARY KEY); INSERT INTO t VALUES (1), (2)")
            .unwrap();
        let mut statement = connection.statement("SELECT a FROM t WHERE a >= ?1 LIMIT ?2").unwrap();
        for limit in [1, 2, 100, 0] {
            let mut rows = statement.query([0, limit]).unwrap();
            while rows.next().unwrap().is_some() {}
        }
        assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
    }
}

//! PostgreSQL as a side of a copy.

use bytes::Bytes;

use super::incomplete::MARK_TABLE;
use super::row::{HEADER, Splitter, TRAILER};
use super::schema::{Schema, Table, quoted};
use super::sum::compare;
use super::{Error, NextBatch, Side, TableSum, TakeRow, View, Watch, expect_version, sum_up, transfer};
use crate::dialect::POSTGRES_FORGET_SHIFT;
use crate::engine::Link;
use crate::migrate;
use crate::migrate::progress::Teller;

/// A copy takes as long as it takes, but waits for nobody's locks. It reads in the order of an index: a sort would
/// fill the server's disk and not slow down with its reader.
pub const SESSION: &str = "SET statement_timeout = 0; SET lock_timeout = '10s'; \
     SET idle_in_transaction_session_timeout = 0; SET maintenance_work_mem = '128MB'; \
     SET enable_sort = off; \
     SET default_transaction_isolation = 'read committed'";

pub struct PostgresSide {
    link: Link,
}

impl PostgresSide {
    fn connect(url: &str) -> Result<Self, Error> {
        let mut link = Link::to(url, SESSION, None)?;
        link.connect()?;
        Ok(Self { link })
    }

    /// Opens a snapshot that lasts as long as the connection.
    pub fn open_snapshot(url: &str) -> Result<Self, Error> {
        let mut side = Self::connect(url)?;
        expect_version(side.version()?, "the source")?;
        let schema = Schema::newest()?;
        let tables: Vec<String> = schema.tables.iter().map(|table| quoted(&table.name)).collect();
        // Locks first: an upgrade waits for the copy, or the copy sees that it came too late.
        side.link.batch(&format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; LOCK TABLE {} IN ACCESS SHARE MODE",
            tables.join(", ")
        ))?;
        expect_version(side.version()?, "the source")?;
        Ok(side)
    }

    /// The schema's version; 0 without a schema.
    fn version(&mut self) -> Result<i64, Error> {
        let found = self
            .link
            .last_number("SELECT count(*) FROM pg_class WHERE oid = to_regclass('schema_version')")?;
        if found != Some(1) {
            return Ok(0);
        }
        Ok(self.link.last_number("SELECT coalesce(max(version), 0) FROM schema_version")?.unwrap_or(0))
    }

    fn refuse_filled(&mut self, schema: &Schema) -> Result<(), Error> {
        if self.version()? == 0 {
            return Ok(());
        }
        expect_version(self.version()?, "the target")?;
        match self.texts(&schema.first_filled())?.pop().and_then(|mut row| row.pop()) {
            None => Ok(()),
            Some(table) => Err(Error::Refused(format!(
                "the target already has data (in the table {table}): a copy needs a database without data"
            ))),
        }
    }

    /// Rows of texts.
    fn texts(&mut self, sql: &str) -> Result<Vec<Vec<String>>, Error> {
        let statement = self.link.prepare(sql)?;
        let rows = self.link.query(&statement, &[])?;
        let texts = rows.iter().map(|row| {
            (0..row.len())
                .map(|n| row.try_get(n).map_err(|error| crate::Error::fault(error.to_string())))
                .collect()
        });
        texts.collect::<Result<_, crate::Error>>().map_err(Error::from)
    }

    /// The columns whose numbers PostgreSQL generates, with their tables and sequences.
    fn identities(&mut self) -> Result<Vec<Vec<String>>, Error> {
        self.texts(
            "SELECT CAST(table_name AS TEXT), CAST(column_name AS TEXT), \
             pg_get_serial_sequence(quote_ident(table_name), column_name) FROM information_schema.columns \
             WHERE table_schema = current_schema() AND is_identity = 'YES' ORDER BY 1",
        )
    }

    /// Drops the indexes that no constraint needs, because it is faster to build them at the end; returns how to.
    fn drop_indexes(&mut self) -> Result<Vec<String>, Error> {
        let indexes = self.texts(
            "SELECT CAST(c.relname AS TEXT), pg_get_indexdef(c.oid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid \
             WHERE c.relnamespace = CAST(current_schema() AS REGNAMESPACE) \
             AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = c.oid) ORDER BY 1",
        )?;
        let mut definitions = Vec::new();
        for mut index in indexes {
            let (Some(definition), Some(name)) = (index.pop(), index.pop()) else { continue };
            self.link.batch(&format!("DROP INDEX {}", quoted(&name)))?;
            definitions.push(definition);
        }
        Ok(definitions)
    }
}

impl Side for PostgresSide {
    fn read(&mut self, table: &Table, view: View, take: TakeRow<'_>) -> Result<(), Error> {
        let sql = format!("COPY ({}) TO STDOUT (FORMAT binary)", table.select(view));
        let mut splitter = Splitter::default();
        self.link.copy_out(&sql, |part| splitter.feed(part, &mut *take))??;
        if !splitter.is_complete() {
            return Err(crate::Error::fault(format!("the table {} ended early", table.name)).into());
        }
        Ok(())
    }

    fn load(&mut self, table: &Table, next: NextBatch<'_>) -> Result<(), Error> {
        let name = quoted(&table.name);
        self.link.batch(&format!("DELETE FROM {name}"))?;
        let sql = format!("COPY {name} ({}) FROM STDIN (FORMAT binary)", table.column_list());
        let mut header = Some(Bytes::from_static(HEADER));
        let mut trailer = Some(Bytes::copy_from_slice(&TRAILER));
        let loaded = self.link.copy_in(&sql, || {
            if let Some(header) = header.take() {
                return Ok(Some(header));
            }
            // After its end, `next` has nothing more to say.
            if trailer.is_none() {
                return Ok(None);
            }
            Ok(next()?.map(Bytes::from).or_else(|| trailer.take()))
        });
        let named = |error| match error {
            crate::Error::Fault(text) => crate::Error::Fault(format!("the table {}: {text}", table.name)),
            other => other,
        };
        loaded.map_err(named)?
    }

    fn numbers(&mut self) -> Result<Vec<(String, i64)>, Error> {
        let mut numbers = Vec::new();
        for identity in self.identities()? {
            let [table, _, sequence] = &identity[..] else { continue };
            let last = format!("SELECT last_value - CASE WHEN is_called THEN 0 ELSE 1 END FROM {sequence}");
            numbers.push((table.clone(), self.link.last_number(&last)?.unwrap_or(0)));
        }
        Ok(numbers)
    }

    fn continue_numbers(&mut self, numbers: &[(String, i64)]) -> Result<(), Error> {
        for identity in self.identities()? {
            let [table, column, sequence] = &identity[..] else { continue };
            let known = numbers.iter().find(|(name, _)| name == table).map_or(0, |(_, number)| *number);
            let (table, column) = (quoted(table), quoted(column));
            self.link.batch(&format!(
                "SELECT setval('{sequence}', greatest({known}, (SELECT coalesce(max({column}), 0) FROM {table})) + 1, false)"
            ))?;
        }
        Ok(())
    }
}

/// Copies into an empty database. The data arrives in one transaction, which also removes the mark.
pub fn into_server(source: &mut dyn Side, url: &str, watch: &mut Watch) -> Result<Vec<TableSum>, Error> {
    let schema = Schema::newest()?;
    let mut target = PostgresSide::connect(url)?;
    // Before anything is written: the mark would keep a service from starting on its own data.
    target.refuse_filled(&schema)?;
    target.link.batch(&format!(
        "CREATE TABLE IF NOT EXISTS {MARK_TABLE} (since TIMESTAMPTZ NOT NULL DEFAULT now())"
    ))?;
    migrate::postgres::run(&mut target.link, &mut Teller::new(&mut |_| {}))?;
    // Another copy waits here for this one, and then finds its data.
    target.link.batch(&format!("BEGIN; LOCK TABLE {MARK_TABLE} IN ACCESS EXCLUSIVE MODE"))?;
    target.refuse_filled(&schema)?;
    let indexes = target.drop_indexes()?;
    let view = View { released: true, ordered: false };
    let sums = transfer(&schema, source, &mut target, view, watch)?;
    for index in indexes {
        target.link.batch(&index)?;
    }
    let found = sum_up(&schema, &mut target, View::default(), watch)?;
    compare(&sums, &found)?;
    target.link.batch(&format!("{POSTGRES_FORGET_SHIFT}; DROP TABLE {MARK_TABLE}; COMMIT"))?;
    Ok(sums)
}

//! Copies a whole database: between the engines in any direction, into a backup file and back.
//!
//! - The source is read in one snapshot, next to a service that may be running.
//! - `schema` knows the tables and columns from the migrations, so no table can be forgotten.
//! - A row travels in the format of PostgreSQL's binary COPY (`row`), which is also what its checksum covers. So
//!   the sums of both sides (`sum`) can be compared, whatever the engines are.
//! - `sqlite` and `postgres` read and load tables; `pages` copies SQLite to SQLite page by page.
//! - `incomplete` marks a target until its copy is complete and verified; the engines refuse to open a marked one.
//! - `backup` makes, verifies and restores backup files.
//!
//! A copy is a database that no node has used yet: it has no nodes, and nobody owns its deliveries, manual
//! attempts and imports. A service that starts on it sends what is open in it.

pub mod backup;
mod incomplete;
mod pages;
mod part;
mod postgres;
mod row;
mod schema;
mod sqlite;
mod sum;
#[cfg(test)]
mod tests;
mod watch;

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use rusqlite::Connection as Sqlite;

use crate::engine::Database;
use crate::migrate;
pub(crate) use incomplete::{refuse_file, refuse_server};
use part::{Leftover, Part};
use postgres::PostgresSide;
use schema::{Schema, Table};
use sqlite::SqliteSide;
pub use sum::TableSum;
use sum::{Sum, compare};
pub use watch::{Pace, Progress, Step, Watch};

/// How much of a table is on its way between the reader and the loader.
const BATCH_BYTES: usize = 256 << 10;
const BATCHES_ON_THE_WAY: usize = 4;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The source or the target can't be used as it is. The text says what to do.
    #[error("{0}")]
    Refused(String),
    /// The target doesn't contain what was read.
    #[error("the copy is not complete: {0}")]
    Differs(String),
    #[error("stopped before the copy was complete")]
    Stopped,
    #[error("{0}")]
    File(String),
    #[error(transparent)]
    Storage(#[from] crate::Error),
}

/// A database that a copy reads from or writes to.
trait Side: Send {
    /// Hands out the rows of a table, by primary key if they must be `ordered`.
    fn read(&mut self, table: &Table, view: View, take: TakeRow<'_>) -> Result<(), Error>;

    /// Inserts the rows of batches until there are no more.
    fn load(&mut self, table: &Table, next: NextBatch<'_>) -> Result<(), Error>;

    /// The highest number that each table with generated numbers ever gave out, as far as is known.
    fn numbers(&mut self) -> Result<Vec<(String, i64)>, Error>;

    /// Makes the generated numbers continue after these.
    fn continue_numbers(&mut self, numbers: &[(String, i64)]) -> Result<(), Error>;
}

type TakeRow<'a> = &'a mut dyn FnMut(&[u8]) -> Result<(), Error>;
/// The next batch of whole rows; `None` at the end of the table.
type NextBatch<'a> = &'a mut dyn FnMut() -> Result<Option<Vec<u8>>, Error>;

/// How a table is read.
#[derive(Debug, Clone, Copy, Default)]
struct View {
    /// Without what belongs to the nodes of the database (see `schema::RELEASED`).
    released: bool,
    /// In the order of the primary key.
    ordered: bool,
}

/// Copies a database into an empty one, and returns what the copy contains.
pub fn copy(from: &Database, to: &Database, watch: &mut Watch) -> Result<Vec<TableSum>, Error> {
    match to {
        Database::Sqlite(path) => {
            incomplete::refuse_source(from)?;
            refuse_filled_file(path)?;
            into_file(from, path, Leftover::Mark, watch, |_, _| Ok(()))
        }
        Database::Postgres(url) => {
            incomplete::refuse_source(from)?;
            let mut source = open_source(from)?;
            postgres::into_server(source.as_mut(), url, watch)
        }
    }
}

/// Copies a database into a new file. `finish` may add to the file before it gets its name.
fn into_file(
    from: &Database,
    path: &Path,
    leftover: Leftover,
    watch: &mut Watch,
    finish: impl FnOnce(&Sqlite, &[TableSum]) -> Result<(), Error>,
) -> Result<Vec<TableSum>, Error> {
    match from {
        Database::Sqlite(source) => {
            let source = sqlite::open_snapshot(source)?;
            expect_version(migrate::sqlite::version(&source)?, "the source")?;
            let part = Part::create(path, leftover, watch)?;
            let (target, sums) = pages::copy(source, &part, watch)?;
            finish(&target, &sums)?;
            sqlite::close(target)?;
            part.finish()?;
            Ok(sums)
        }
        Database::Postgres(_) => {
            let mut source = open_source(from)?;
            let part = Part::create(path, leftover, watch)?;
            let schema = Schema::newest()?;
            let mut target = SqliteSide::create(&part)?;
            let indexes = target.drop_indexes()?;
            let sums = transfer(
                &schema,
                source.as_mut(),
                &mut target,
                View { released: true, ordered: true },
                watch,
            )?;
            target.create_indexes(&indexes)?;
            let found = sum_up(&schema, &mut target, View::default(), watch)?;
            compare(&sums, &found)?;
            let target = target.into_connection()?;
            finish(&target, &sums)?;
            sqlite::close(target)?;
            part.finish()?;
            Ok(sums)
        }
    }
}

fn refuse_filled_file(path: &Path) -> Result<(), Error> {
    if !path.exists() {
        return Ok(());
    }
    let not_empty =
        |what: &str| Error::Refused(format!("{} {what}: a copy needs a place without data", path.display()));
    if std::fs::metadata(path).is_ok_and(|found| found.len() == 0) {
        return Ok(());
    }
    let connection = sqlite::open_snapshot(path)?;
    if migrate::sqlite::version(&connection)? == 0 {
        return Err(not_empty("is not a Rapport database"));
    }
    let schema = Schema::read(&connection)?;
    match sqlite::first_filled(&connection, &schema)? {
        Some(table) => Err(not_empty(&format!("already has data (in the table {table})"))),
        None => Ok(()),
    }
}

/// Opens a snapshot of a source with this program's schema.
fn open_source(from: &Database) -> Result<Box<dyn Side>, Error> {
    Ok(match from {
        Database::Sqlite(path) => {
            let connection = sqlite::open_snapshot(path)?;
            expect_version(migrate::sqlite::version(&connection)?, "the source")?;
            Box::new(SqliteSide::new(connection))
        }
        Database::Postgres(url) => Box::new(PostgresSide::open_snapshot(url)?),
    })
}

fn expect_version(found: i64, what: &str) -> Result<(), Error> {
    let known = migrate::VERSION;
    let advice = match found {
        _ if found == known => return Ok(()),
        0 => return Err(Error::Refused(format!("{what} is not a Rapport database: it has no schema"))),
        _ if found < known => "upgrade it first with `rapport migrate`",
        _ => "use the newer rapport that upgraded it",
    };
    Err(Error::Refused(format!(
        "{what} has schema version {found}, but this rapport needs {known}: {advice}"
    )))
}

/// Copies every table; one thread reads while this one loads.
fn transfer(
    schema: &Schema,
    source: &mut dyn Side,
    target: &mut dyn Side,
    view: View,
    watch: &mut Watch,
) -> Result<Vec<TableSum>, Error> {
    let mut sums = Vec::new();
    for table in &schema.tables {
        let (send, receive) = sync_channel(BATCHES_ON_THE_WAY);
        let (source, watch) = (&mut *source, &mut *watch);
        let sum = thread::scope(|scope| {
            let reader = scope.spawn(move || send_table(table, source, view, &send, watch));
            let loaded = target.load(table, &mut || next_batch(&receive));
            drop(receive);
            let read = reader.join().map_err(|_| crate::Error::fault("the reader of a copy panicked"))?;
            match (read, loaded) {
                // Each side fails when the other one does; the other one knows why.
                (Err(Error::Stopped) | Ok(_), Err(error)) | (Err(error), _) => Err(error),
                (Ok(sum), Ok(())) => Ok(sum),
            }
        });
        sums.push(TableSum::new(table, sum?));
    }
    target.continue_numbers(&source.numbers()?)?;
    Ok(sums)
}

enum Message {
    Rows(Vec<u8>),
    End,
}

fn send_table(
    table: &Table,
    source: &mut dyn Side,
    view: View,
    send: &SyncSender<Message>,
    watch: &mut Watch,
) -> Result<Sum, Error> {
    let (mut sum, mut batch) = (Sum::default(), Vec::with_capacity(BATCH_BYTES));
    source.read(table, view, &mut |row| {
        sum.add(row);
        batch.extend_from_slice(row);
        if batch.len() >= BATCH_BYTES {
            watch.step(Step::Copying, &table.name, sum.rows)?;
            let full = std::mem::replace(&mut batch, Vec::with_capacity(BATCH_BYTES));
            send.send(Message::Rows(full)).map_err(|_| Error::Stopped)?;
        }
        Ok(())
    })?;
    watch.table_done(Step::Copying, &table.name, sum.rows)?;
    send.send(Message::Rows(batch)).and_then(|()| send.send(Message::End)).map_err(|_| Error::Stopped)?;
    Ok(sum)
}

/// A reader that ends without a word has failed.
fn next_batch(receive: &Receiver<Message>) -> Result<Option<Vec<u8>>, Error> {
    match receive.recv() {
        Ok(Message::Rows(rows)) => Ok(Some(rows)),
        Ok(Message::End) => Ok(None),
        Err(_) => Err(Error::Stopped),
    }
}

/// The sums of every table of one side.
fn sum_up(
    schema: &Schema,
    side: &mut dyn Side,
    view: View,
    watch: &mut Watch,
) -> Result<Vec<TableSum>, Error> {
    let mut sums = Vec::new();
    for table in &schema.tables {
        let (mut sum, mut bytes) = (Sum::default(), 0);
        side.read(table, view, &mut |row| {
            sum.add(row);
            bytes += row.len();
            if bytes >= BATCH_BYTES {
                bytes = 0;
                watch.step(Step::Checking, &table.name, sum.rows)?;
            }
            Ok(())
        })?;
        watch.table_done(Step::Checking, &table.name, sum.rows)?;
        sums.push(TableSum::new(table, sum));
    }
    Ok(sums)
}

//! The tables of an export as CSV files in a ZIP archive, which is written as it is sent: nothing of it is read or changed
//! again.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;

use jiff::tz::TimeZone;
use parking_lot::Mutex;
use rapport_domain::time::Time;
use serde_json::{Map, Value};
use zip::result::{ZipError, ZipResult};
use zip::write::{SimpleFileOptions, StreamWriter};
use zip::{CompressionMethod, DateTime, ZipWriter};

use crate::spreadsheet::{BYTE_ORDER_MARK, cell, write};

/// The first and the last file.
const ABOUT: &str = "about.json";
const MANIFEST: &str = "manifest.json";

/// A table and its columns.
type Table = (&'static str, Vec<&'static str>);

pub struct Archive {
    zip: ZipWriter<StreamWriter<Bytes>>,
    written: Bytes,
    options: SimpleFileOptions,
    /// The tables that come next.
    tables: std::vec::IntoIter<Table>,
    current: Table,
}

impl Archive {
    pub fn begin(about: &Value, tables: Vec<Table>, now: Time) -> ZipResult<Self> {
        let written = Bytes::default();
        let mut archive = Self {
            zip: ZipWriter::new_stream(written.clone()),
            written,
            // Nobody knows beforehand how large a table is.
            options: SimpleFileOptions::default()
                .compression_method(CompressionMethod::Deflated)
                .last_modified_time(modified_at(now))
                .large_file(true),
            tables: tables.into_iter(),
            current: ("", Vec::new()),
        };
        archive.put(ABOUT, about)?;
        Ok(archive)
    }

    /// Writes rows of a table. Tables come in their order.
    pub fn write(&mut self, table: &str, rows: Vec<Map<String, Value>>) -> ZipResult<()> {
        while self.current.0 != table {
            if !self.begin_table()? {
                return Err(ZipError::FileNotFound);
            }
        }
        let (_, columns) = &self.current;
        let rows = rows.into_iter().map(|mut row| {
            let shown = move |column: &&str| Cow::from(cell(row.remove(*column).unwrap_or_default()));
            columns.iter().map(shown)
        });
        self.zip.write_all(&write(rows))?;
        Ok(())
    }

    /// What was written since the last time.
    pub fn take(&self) -> Vec<u8> {
        self.written.take()
    }

    /// Writes the rest: the tables that are empty, and the file that says that nothing is missing.
    pub fn end(mut self, manifest: &Value) -> ZipResult<Vec<u8>> {
        while self.begin_table()? {}
        self.put(MANIFEST, manifest)?;
        let Self { zip, written, .. } = self;
        zip.finish()?;
        Ok(written.take())
    }

    /// Begins the file of the next table; returns `false` after the last.
    fn begin_table(&mut self) -> ZipResult<bool> {
        let Some(next) = self.tables.next() else { return Ok(false) };
        self.zip.start_file(format!("{}.csv", next.0), self.options)?;
        self.zip.write_all(BYTE_ORDER_MARK.as_bytes())?;
        self.zip.write_all(&write(std::iter::once(next.1.iter().copied().map(Cow::from))))?;
        self.current = next;
        Ok(true)
    }

    fn put(&mut self, name: &str, value: &Value) -> ZipResult<()> {
        self.zip.start_file(name, self.options)?;
        self.zip.write_all(format!("{value:#}\n").as_bytes())?;
        Ok(())
    }
}

/// Archives have the time without a zone; this is in UTC.
fn modified_at(now: Time) -> DateTime {
    let at = now.to_timestamp().to_zoned(TimeZone::UTC).datetime();
    let part = |number: i8| number.unsigned_abs();
    let made = DateTime::from_date_and_time(
        at.year().unsigned_abs(),
        part(at.month()),
        part(at.day()),
        part(at.hour()),
        part(at.minute()),
        part(at.second()),
    );
    made.unwrap_or_default()
}

/// What an archive has written and nobody has taken yet.
#[derive(Clone, Default)]
struct Bytes(Arc<Mutex<Vec<u8>>>);

impl Bytes {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock())
    }
}

impl Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

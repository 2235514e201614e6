//! Rows in the format of PostgreSQL's binary COPY: the number of columns (2 bytes), then for each its length
//! (4 bytes, -1 for null) and its bytes. Integers have 8 bytes. All numbers are big-endian.

use rusqlite::types::ValueRef;

use super::Error;
use super::schema::Table;
use crate::value::{Type, Value};

/// What begins a binary COPY: its signature, no flags, no extension.
pub const HEADER: &[u8; 19] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// What ends it: a row of -1 columns.
pub const TRAILER: [u8; 2] = [0xff, 0xff];
const NULL: [u8; 4] = (-1_i32).to_be_bytes();

/// Writes a row that SQLite returned.
pub fn encode(table: &Table, row: &rusqlite::Row, out: &mut Vec<u8>) -> Result<(), Error> {
    let width = i16::try_from(table.columns.len()).map_err(|_| crate::Error::fault("a table is too wide"))?;
    out.extend_from_slice(&width.to_be_bytes());
    for (n, column) in table.columns.iter().enumerate() {
        let value = row.get_ref(n).map_err(crate::engine::sqlite::from_sqlite)?;
        match (value, column.kind) {
            (ValueRef::Null, _) => out.extend_from_slice(&NULL),
            (ValueRef::Integer(number), Type::Int) => put(out, &number.to_be_bytes())?,
            (ValueRef::Text(bytes), Type::Text) | (ValueRef::Blob(bytes), Type::Bytes) => put(out, bytes)?,
            (found, _) => {
                let (table, column) = (&table.name, &column.name);
                let text = format!("{table}.{column} contains a value of type {}", found.data_type());
                return Err(Error::Refused(format!("the source is damaged: {text}; restore a backup")));
            }
        }
    }
    Ok(())
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) -> Result<(), Error> {
    let length = i32::try_from(bytes.len()).map_err(|_| crate::Error::fault("a value is too long"))?;
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(bytes);
    Ok(())
}

/// Takes the first row off a batch and reads its values.
pub fn decode<'b>(table: &Table, batch: &mut &'b [u8], values: &mut Vec<Value<'b>>) -> Result<(), Error> {
    values.clear();
    let width = take(batch, 2)?;
    if usize::from(u16::from_be_bytes([width[0], width[1]])) != table.columns.len() {
        return Err(broken());
    }
    for column in &table.columns {
        let Some(length) = length(take(batch, 4)?) else {
            values.push(Value::Null);
            continue;
        };
        let bytes = take(batch, length)?;
        values.push(match column.kind {
            Type::Int => Value::Int(i64::from_be_bytes(bytes.try_into().map_err(|_| broken())?)),
            Type::Text => Value::Text(std::str::from_utf8(bytes).map_err(|_| broken())?),
            Type::Bytes => Value::Bytes(bytes),
        });
    }
    Ok(())
}

fn take<'b>(batch: &mut &'b [u8], count: usize) -> Result<&'b [u8], Error> {
    let (taken, rest) = batch.split_at_checked(count).ok_or_else(broken)?;
    *batch = rest;
    Ok(taken)
}

fn length(bytes: &[u8]) -> Option<usize> {
    usize::try_from(i32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])).ok()
}

fn broken() -> Error {
    crate::Error::fault("a row of a copy is malformed").into()
}

/// Cuts what a binary COPY returns into rows, whatever its pieces are.
#[derive(Default)]
pub struct Splitter {
    pending: Vec<u8>,
    has_header: bool,
    has_ended: bool,
}

impl Splitter {
    pub fn feed(
        &mut self,
        part: &[u8],
        row: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.pending.is_empty() {
            let used = self.rows(part, row)?;
            self.pending.extend_from_slice(&part[used..]);
        } else {
            let mut pending = std::mem::take(&mut self.pending);
            pending.extend_from_slice(part);
            let used = self.rows(&pending, row)?;
            pending.drain(..used);
            self.pending = pending;
        }
        Ok(())
    }

    /// Whether everything has arrived.
    pub fn is_complete(&self) -> bool {
        self.has_ended && self.pending.is_empty()
    }

    /// Hands out the whole rows at the beginning of `bytes`; returns how many bytes they took.
    fn rows(
        &mut self,
        bytes: &[u8],
        row: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<usize, Error> {
        let mut at = 0;
        if !self.has_header {
            if bytes.len() < HEADER.len() {
                return Ok(0);
            }
            at = HEADER.len();
            self.has_header = true;
        }
        while let Some(end) = end_of_row(&bytes[at..]) {
            match end {
                End::Row(length) => {
                    row(&bytes[at..at + length])?;
                    at += length;
                }
                End::Trailer => {
                    self.has_ended = true;
                    return Ok(at + TRAILER.len());
                }
            }
        }
        Ok(at)
    }
}

enum End {
    Row(usize),
    Trailer,
}

fn end_of_row(bytes: &[u8]) -> Option<End> {
    let width = i16::from_be_bytes([*bytes.first()?, *bytes.get(1)?]);
    let Ok(width) = usize::try_from(width) else { return Some(End::Trailer) };
    let mut at = 2;
    for _ in 0..width {
        at += 4 + length(bytes.get(at..at + 4)?).unwrap_or(0);
    }
    (at <= bytes.len()).then_some(End::Row(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_however_the_stream_is_cut() {
        let rows: [&[u8]; 3] = [b"\0\x01\0\0\0\x03abc", b"\0\x02\xff\xff\xff\xff\0\0\0\0", b"\0\0"];
        let stream = [HEADER.as_slice(), &rows.concat(), &TRAILER].concat();
        for size in 1..=stream.len() {
            let (mut splitter, mut found) = (Splitter::default(), Vec::new());
            for (n, part) in stream.chunks(size).enumerate() {
                assert!(!splitter.is_complete(), "complete before part {n} of {size} bytes");
                let mut take = |row: &[u8]| {
                    found.push(row.to_vec());
                    Ok(())
                };
                splitter.feed(part, &mut take).expect("fed");
            }
            assert!(splitter.is_complete(), "in parts of {size} bytes");
            assert_eq!(found, rows, "in parts of {size} bytes");
        }
    }
}

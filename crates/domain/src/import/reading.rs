//! Reads records from part of a file: quotes, newlines in cells, ragged and blank lines.
//!
//! A file is read in windows. A record that doesn't end inside its window is read again with more of the
//! file, so the only state to remember is a position between two records.

use csv::{ByteRecord, Reader, ReaderBuilder};

use super::charset::Charset;
use crate::invalid::Fault;

/// A longer record is taken to be an unclosed quote: its first line is reported as an error, and the lines
/// after it are read separately.
pub const MAX_RECORD_BYTES: usize = 1 << 20;

/// A place between two records of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position {
    /// The number of bytes before it, in the file as stored.
    pub offset: i64,
    /// The line number, as in an editor: the first is 1.
    pub line: i64,
}

/// The character between two cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delimiter(u8);

impl Delimiter {
    pub const COMMA: Self = Self(b',');
    /// The delimiters that detection tries.
    pub const USUAL: [Self; 4] = [Self::COMMA, Self(b';'), Self(b'\t'), Self(b'|')];

    /// One character, or the word `tab`.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        match text.as_bytes() {
            b"tab" | b"\\t" => Ok(Self(b'\t')),
            [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\r' | b'\n' | 0) => Ok(Self(*byte)),
            _ => Err(Fault::new("malformed", "must be a single character such as , or ; or the word tab")),
        }
    }

    pub fn from_stored(text: &str) -> Self {
        Self::parse(text).unwrap_or(Self::COMMA)
    }

    pub fn text(self) -> String {
        char::from(self.0).to_string()
    }
}

/// The layout of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    pub charset: Charset,
    pub delimiter: Delimiter,
    /// How many cells every record must have.
    pub columns: usize,
}

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The line it begins on.
    pub line: i64,
    pub cells: Vec<String>,
    /// Why it can't be imported as it is.
    pub fault: Option<String>,
}

/// Some records, and where the next one begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    pub records: Vec<Record>,
    pub next: Position,
}

/// The part of a file that starts at `at`.
#[derive(Debug, Clone, Copy)]
pub struct Window<'a> {
    pub bytes: &'a [u8],
    pub at: Position,
    /// Whether the file ends here.
    pub is_end: bool,
}

/// Reads up to `most` records; `None` if the first doesn't end inside the window.
pub fn read(window: Window, layout: Layout, most: usize) -> Option<Batch> {
    let Window { bytes, at, is_end } = window;
    let mut reader = reader(bytes, layout.delimiter);
    let (mut record, mut records) = (ByteRecord::new(), Vec::new());
    let (mut done, mut line) = (0, at.line);
    while records.len() < most {
        if !read_one(&mut reader, &mut record) {
            // Only blank lines are left; a `\r` at the end may be half of a line end.
            let end = if !is_end && bytes.last() == Some(&b'\r') { bytes.len() - 1 } else { bytes.len() };
            line += lines(bytes, done, end);
            done = end;
            break;
        }
        let end = usize::try_from(reader.position().byte()).unwrap_or(bytes.len());
        let end = end + usize::from(end > 0 && bytes[end - 1] == b'\r' && bytes.get(end) == Some(&b'\n'));
        let begin = done + blank(&bytes[done..end]);
        let begin_line = line + lines(bytes, done, begin);
        if end == bytes.len() {
            let is_unclosed = is_end && is_unclosed(&bytes[begin..end], &record, layout.delimiter);
            let is_endless = !is_end && records.is_empty() && bytes.len() >= MAX_RECORD_BYTES;
            if is_unclosed || is_endless {
                let end = begin + first_line(&bytes[begin..]);
                records.push(unclosed(&bytes[begin..end], begin_line, layout));
                line = begin_line + lines(bytes, begin, end);
                done = end;
                // The quote swallowed the rest of the window, which is read again.
                break;
            }
            if !is_end {
                break;
            }
        }
        records.push(read_record(&record, begin_line, layout));
        line = begin_line + lines(bytes, begin, end);
        done = end;
    }
    let offset = at.offset + i64::try_from(done).unwrap_or(0);
    let stuck = done == 0 && !is_end;
    (!stuck).then_some(Batch { records, next: Position { offset, line } })
}

pub(super) fn reader(bytes: &[u8], delimiter: Delimiter) -> Reader<&[u8]> {
    ReaderBuilder::new().has_headers(false).flexible(true).delimiter(delimiter.0).from_reader(bytes)
}

/// Reading from memory can't fail, and records may have any length.
pub(super) fn read_one(reader: &mut Reader<&[u8]>, record: &mut ByteRecord) -> bool {
    reader.read_byte_record(record).unwrap_or(false)
}

fn read_record(record: &ByteRecord, line: i64, layout: Layout) -> Record {
    let cells: Option<Vec<String>> =
        record.iter().map(|cell| layout.charset.decode(cell).map(std::borrow::Cow::into_owned)).collect();
    let Some(mut cells) = cells else {
        let cells = record.iter().map(|cell| layout.charset.decode_lossy(cell).into_owned()).collect();
        return Record { line, cells, fault: Some(format!("is not valid {} text", layout.charset.name())) };
    };
    // Spreadsheets leave empty cells after the last column.
    while cells.len() > layout.columns && cells.last().is_some_and(String::is_empty) {
        cells.pop();
    }
    let (found, wanted) = (cells.len(), layout.columns);
    let fault = (found != wanted && !(found == 1 && cells[0].trim().is_empty()))
        .then(|| format!("has {found} cells, but the header has {wanted}"));
    Record { line, cells, fault }
}

fn unclosed(line_bytes: &[u8], line: i64, layout: Layout) -> Record {
    let text = layout.charset.decode_lossy(line_bytes);
    let cells = vec![text.trim_end_matches(['\r', '\n']).to_owned()];
    Record { line, cells, fault: Some("contains a quote that is never closed".to_owned()) }
}

/// Whether the last record of a file ends inside a quoted cell: if so, one more quote closes it and changes
/// nothing else.
fn is_unclosed(span: &[u8], record: &ByteRecord, delimiter: Delimiter) -> bool {
    if !span.contains(&b'"') || (span.last() == Some(&delimiter.0) && record.iter().next_back() == Some(b""))
    {
        return false;
    }
    let closed = [span, b"\""].concat();
    let mut reader = reader(&closed, delimiter);
    let (mut first, mut second) = (ByteRecord::new(), ByteRecord::new());
    read_one(&mut reader, &mut first) && first == *record && !read_one(&mut reader, &mut second)
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

/// The number of bytes of line ends before the first record.
fn blank(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| is_line_end(**byte)).count()
}

/// The length of the first line in bytes, including its end.
fn first_line(bytes: &[u8]) -> usize {
    let text = bytes.iter().take_while(|byte| !is_line_end(**byte)).count();
    match bytes[text..] {
        [b'\r', b'\n', ..] => text + 2,
        [_, ..] => text + 1,
        [] => text,
    }
}

/// The number of line ends between two positions; `\r\n` counts as one.
fn lines(bytes: &[u8], from: usize, to: usize) -> i64 {
    let ends = (from..to).filter(|at| match bytes[*at] {
        b'\n' => true,
        b'\r' => bytes.get(at + 1) != Some(&b'\n'),
        _ => false,
    });
    i64::try_from(ends.count()).unwrap_or(0)
}

#[cfg(test)]
mod tests;

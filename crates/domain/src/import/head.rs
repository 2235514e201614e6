//! The beginning of a file: its delimiter, columns, samples, and where the rows begin.

use csv::ByteRecord;

use super::charset::Charset;
use super::reading::{self, Delimiter, Layout, Position, Window};
use crate::invalid::Invalid;

/// How much of a file is examined.
pub const HEAD_BYTES: usize = 256 << 10;
pub const MAX_COLUMNS: usize = 500;
const MAX_NAME_CHARS: usize = 128;
/// How many records are used to detect the delimiter.
const JUDGED_RECORDS: usize = 50;
const SAMPLES: usize = 3;
const MAX_SAMPLE_CHARS: usize = 80;

/// A column: its unique name and some of its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub samples: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    pub delimiter: Delimiter,
    pub columns: Vec<Column>,
    /// Where the first row begins.
    pub data: Position,
}

impl Head {
    /// Examines the first bytes of a file; `is_whole` means there are no more.
    pub fn of(
        bytes: &[u8],
        is_whole: bool,
        charset: Charset,
        chosen: Option<Delimiter>,
    ) -> Result<Self, Invalid> {
        let bytes = &bytes[..bytes.len().min(HEAD_BYTES)];
        let (hint, skipped) = separator_line(bytes);
        let at = Position { offset: i64::try_from(skipped).unwrap_or(0), line: 1 + i64::from(skipped > 0) };
        let window = Window { bytes: &bytes[skipped..], at, is_end: is_whole };
        let delimiter = chosen.or(hint).unwrap_or_else(|| detect(window));
        // The header determines the number of cells, so it may have any number itself.
        let layout = Layout { charset, delimiter, columns: usize::MAX };
        let header = reading::read(window, layout, 1).filter(|batch| !batch.records.is_empty());
        let Some(batch) = header else {
            return Err(at_fault("no_header", "has no header row; the first line must name the columns"));
        };
        let cells = &batch.records[0].cells;
        if cells.len() > MAX_COLUMNS {
            let detail = format!("must have at most {MAX_COLUMNS} columns, but has {}", cells.len());
            return Err(at_fault("too_many_columns", detail));
        }
        let names = names(cells);
        let rest = usize::try_from(batch.next.offset - at.offset).unwrap_or(0);
        let rows = Window { bytes: &window.bytes[rest..], at: batch.next, is_end: is_whole };
        let columns = with_samples(names, rows, layout);
        Ok(Self { delimiter, columns, data: batch.next })
    }
}

fn at_fault(code: &'static str, detail: impl Into<String>) -> Invalid {
    Invalid::one("", code, format!("the file {}", detail.into()))
}

/// Excel's hint: a first line `sep=;`.
fn separator_line(bytes: &[u8]) -> (Option<Delimiter>, usize) {
    let Some((start, rest)) = bytes.split_at_checked(5) else { return (None, 0) };
    if !start[..4].eq_ignore_ascii_case(b"sep=") {
        return (None, 0);
    }
    let end = match rest {
        [b'\r', b'\n', ..] => 2,
        [b'\r' | b'\n', ..] => 1,
        _ => return (None, 0),
    };
    let delimiter = str::from_utf8(&start[4..]).ok().and_then(|text| Delimiter::parse(text).ok());
    delimiter.map_or((None, 0), |delimiter| (Some(delimiter), 5 + end))
}

/// The delimiter that gives most records as many cells as the header; on a tie, the one that gives the most
/// cells.
fn detect(window: Window) -> Delimiter {
    // The last of several equal candidates wins, so the most common one comes last.
    let judged = Delimiter::USUAL.into_iter().rev().filter_map(|delimiter| {
        let mut reader = reading::reader(window.bytes, delimiter);
        let mut record = ByteRecord::new();
        let mut counts = Vec::new();
        while counts.len() < JUDGED_RECORDS && reading::read_one(&mut reader, &mut record) {
            let is_cut = reader.position().byte() == window.bytes.len() as u64 && !window.is_end;
            if is_cut && !counts.is_empty() {
                break;
            }
            counts.push(record.len());
        }
        let header = *counts.first().filter(|cells| **cells > 1)?;
        let alike = counts.iter().filter(|cells| **cells == header).count();
        Some((alike * JUDGED_RECORDS / counts.len(), header, delimiter))
    });
    judged.max_by_key(|(alike, cells, _)| (*alike, *cells)).map_or(Delimiter::COMMA, |(.., found)| found)
}

/// Unique, non-empty names without control characters.
fn names(cells: &[String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(cells.len());
    for (number, cell) in (1..).zip(cells) {
        let plain = cell.replace(|character: char| character.is_control(), " ");
        let name: String = plain.trim().chars().take(MAX_NAME_CHARS).collect();
        let name = if name.is_empty() { format!("Column {number}") } else { name };
        let again = (2..).map(|count| format!("{name} ({count})"));
        let free = std::iter::once(name.clone()).chain(again).find(|name| !names.contains(name));
        names.extend(free);
    }
    names
}

fn with_samples(names: Vec<String>, rows: Window, layout: Layout) -> Vec<Column> {
    let layout = Layout { columns: names.len(), ..layout };
    let records = reading::read(rows, layout, JUDGED_RECORDS).map_or(Vec::new(), |batch| batch.records);
    let rows: Vec<_> = records.iter().filter(|record| record.fault.is_none()).collect();
    let column = |(at, name): (usize, String)| {
        let cells = rows.iter().filter_map(|record| record.cells.get(at)).map(|cell| cell.trim());
        let shown = |cell: &str| cell.chars().take(MAX_SAMPLE_CHARS).collect();
        let samples = cells.filter(|cell| !cell.is_empty()).take(SAMPLES).map(shown).collect();
        Column { name, samples }
    };
    names.into_iter().enumerate().map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> Head {
        Head::of(text.as_bytes(), true, Charset::UTF_8, None).unwrap()
    }

    fn names_of(head: &Head) -> Vec<&str> {
        head.columns.iter().map(|column| column.name.as_str()).collect()
    }

    #[test]
    fn the_delimiter_is_the_one_that_fits_the_rows() {
        let table = [
            ("id,name\n1,a\n", ","),
            ("id;name;value\n1;\"a, b, c\";1,5\n2;d;2,5\n", ";"),
            ("id\tname\n1\ta,b\n", "\t"),
            ("id|name\n1|a\n", "|"),
            ("name\nAcme, Inc.\nGlobex\n", ","),
            ("id;note\n1;a,b,c,d\n2;a,b,c,d\n", ";"),
            ("a,b;c\n", ","),
        ];
        for (text, delimiter) in table {
            assert_eq!(head(text).delimiter.text(), delimiter, "{text:?}");
        }
    }

    #[test]
    fn excels_hint_is_used_and_is_not_a_header() {
        for end in ["\n", "\r\n", "\r"] {
            let found = head(&format!("sep=|{end}a,1|b{end}x|y{end}"));
            assert_eq!((found.delimiter.text().as_str(), names_of(&found)), ("|", vec!["a,1", "b"]));
            assert_eq!(found.data.line, 3);
        }
        assert_eq!(names_of(&head("sep=;x\n1\n")), ["sep=", "x"]);
    }

    #[test]
    fn columns_have_names_of_their_own_and_samples() {
        let found = head("\n Name ,,Name,\"Na\nme\"\nAcme,,,x\n,,,\nGlobex,1,2,3\nInitech,,,\nHooli,,,\n");
        assert_eq!(names_of(&found), ["Name", "Column 2", "Name (2)", "Na me"]);
        assert_eq!(found.columns[0].samples, ["Acme", "Globex", "Initech"]);
        assert_eq!(found.columns[1].samples, ["1"]);
        assert_eq!(found.data, Position { offset: 22, line: 4 });
    }

    #[test]
    fn a_header_alone_is_enough_and_less_is_not() {
        assert_eq!(names_of(&head("id,name")), ["id", "name"]);
        for text in ["", "\n\n", "\r\n"] {
            let refused = Head::of(text.as_bytes(), true, Charset::UTF_8, None).unwrap_err();
            assert_eq!(refused.0[0].code, "no_header", "{text:?}");
        }
        let wide = ",".repeat(MAX_COLUMNS);
        let refused = Head::of(wide.as_bytes(), true, Charset::UTF_8, None).unwrap_err();
        assert_eq!(refused.0[0].code, "too_many_columns");
    }

    #[test]
    fn a_chosen_delimiter_is_not_guessed() {
        let found = Head::of(b"a;b,c\n", true, Charset::UTF_8, Some(Delimiter::COMMA)).unwrap();
        assert_eq!(names_of(&found), ["a;b", "c"]);
    }
}

//! Odd cases from real exports, each read as a whole and in windows of every size.

use proptest::prelude::*;

use super::*;

const START: Position = Position { offset: 0, line: 1 };

fn layout(columns: usize, delimiter: &str, charset: &str) -> Layout {
    Layout {
        charset: Charset::parse(charset).unwrap(),
        delimiter: Delimiter::parse(delimiter).unwrap(),
        columns,
    }
}

/// Reads a whole file through windows that begin with this many bytes and grow when needed.
fn read_all(bytes: &[u8], layout: Layout, width: usize, most: usize) -> Vec<Record> {
    let (mut at, mut all) = (START, Vec::new());
    loop {
        let from = usize::try_from(at.offset).unwrap();
        let mut to = (from + width).min(bytes.len());
        let batch = loop {
            let window = Window { bytes: &bytes[from..to], at, is_end: to == bytes.len() };
            match read(window, layout, most) {
                Some(batch) => break batch,
                None => to = (to + width).min(bytes.len()),
            }
        };
        assert!(batch.next.offset > at.offset || from == bytes.len(), "stuck at {at:?}");
        at = batch.next;
        all.extend(batch.records);
        if at.offset == i64::try_from(bytes.len()).unwrap() {
            return all;
        }
    }
}

fn rows(records: &[Record]) -> Vec<(i64, Vec<&str>, bool)> {
    records
        .iter()
        .map(|record| {
            let cells = record.cells.iter().map(String::as_str).collect();
            (record.line, cells, record.fault.is_some())
        })
        .collect()
}

#[test]
fn the_odd_cases_of_real_exports() {
    type Rows = Vec<(i64, Vec<&'static str>, bool)>;
    let table: Vec<(&str, &[u8], Layout, Rows)> = vec![
        (
            "plain",
            b"a,b\nc,d\n",
            layout(2, ",", "utf-8"),
            vec![(1, vec!["a", "b"], false), (2, vec!["c", "d"], false)],
        ),
        (
            "no newline at the end",
            b"a,b\nc,d",
            layout(2, ",", "utf-8"),
            vec![(1, vec!["a", "b"], false), (2, vec!["c", "d"], false)],
        ),
        (
            "CRLF",
            b"a,b\r\nc,d\r\n",
            layout(2, ",", "utf-8"),
            vec![(1, vec!["a", "b"], false), (2, vec!["c", "d"], false)],
        ),
        (
            "CR alone",
            b"a,b\rc,d\re,f",
            layout(2, ",", "utf-8"),
            vec![(1, vec!["a", "b"], false), (2, vec!["c", "d"], false), (3, vec!["e", "f"], false)],
        ),
        (
            "quotes",
            b"\"a, \"\"x\"\"\",b\nc\"c,\"d\"\n",
            layout(2, ",", "utf-8"),
            vec![(1, vec!["a, \"x\"", "b"], false), (2, vec!["c\"c", "d"], false)],
        ),
        (
            "newlines in cells",
            b"\"one\ntwo\r\nthree\",b\nc,d\n",
            layout(2, ",", "utf-8"),
            vec![(1, vec!["one\ntwo\r\nthree", "b"], false), (4, vec!["c", "d"], false)],
        ),
        (
            "blank lines",
            b"\n\r\na,b\n\n\nc,d\n\n",
            layout(2, ",", "utf-8"),
            vec![(3, vec!["a", "b"], false), (6, vec!["c", "d"], false)],
        ),
        (
            "semicolons",
            b"a;1,5\nb;2,5\n",
            layout(2, ";", "utf-8"),
            vec![(1, vec!["a", "1,5"], false), (2, vec!["b", "2,5"], false)],
        ),
        ("tabs", b"a\tb\n", layout(2, "tab", "utf-8"), vec![(1, vec!["a", "b"], false)]),
        (
            "Windows-1252",
            b"Gr\xf6\xdfe,\x80 5\n",
            layout(2, ",", "windows-1252"),
            vec![(1, vec!["Größe", "€ 5"], false)],
        ),
        (
            "bytes that are no text",
            b"a,b\n\xff,d\ne,f\n",
            layout(2, ",", "utf-8"),
            vec![(1, vec!["a", "b"], false), (2, vec!["\u{fffd}", "d"], true), (3, vec!["e", "f"], false)],
        ),
        (
            "ragged rows",
            b"a,b\nc\nd,e,f\ng,h,,\n",
            layout(2, ",", "utf-8"),
            vec![
                (1, vec!["a", "b"], false),
                (2, vec!["c"], true),
                (3, vec!["d", "e", "f"], true),
                (4, vec!["g", "h"], false),
            ],
        ),
        ("a NUL", b"a\0,b\n", layout(2, ",", "utf-8"), vec![(1, vec!["a\0", "b"], false)]),
        (
            "a quote never closed",
            b"a,b\n\"c,d\ne,f\ng,h\n",
            layout(2, ",", "utf-8"),
            vec![
                (1, vec!["a", "b"], false),
                (2, vec!["\"c,d"], true),
                (3, vec!["e", "f"], false),
                (4, vec!["g", "h"], false),
            ],
        ),
        (
            "a quote opened at the very end",
            b"a,b\nc,\"",
            layout(2, ",", "utf-8"),
            vec![(1, vec!["a", "b"], false), (2, vec!["c,\""], true)],
        ),
        (
            "an empty cell at the very end",
            b"\"a\",b\n\"c\",",
            layout(2, ",", "utf-8"),
            vec![(1, vec!["a", "b"], false), (2, vec!["c", ""], false)],
        ),
        (
            "quoted cells at the end",
            b"a,b\n\"c\",\"d\"",
            layout(2, ",", "utf-8"),
            vec![(1, vec!["a", "b"], false), (2, vec!["c", "d"], false)],
        ),
        (
            "empty quoted cells at the end",
            b"a,b\n\"\",\"\"\n",
            layout(2, ",", "utf-8"),
            vec![(1, vec!["a", "b"], false), (2, vec!["", ""], false)],
        ),
        ("nothing", b"", layout(2, ",", "utf-8"), vec![]),
        ("blank lines only", b"\r\n\n\r", layout(2, ",", "utf-8"), vec![]),
    ];
    for (what, bytes, layout, expected) in table {
        for width in 1..=bytes.len().max(1) {
            for most in [1, 2, 100] {
                let found = read_all(bytes, layout, width, most);
                assert_eq!(rows(&found), expected, "{what}, by {width} bytes and {most} records");
            }
        }
    }
}

#[test]
fn a_huge_cell_is_one_cell() {
    let cell = "x\n".repeat(200_000);
    let file = format!("a,b\nc,\"{cell}\"\ne,f\n");
    let found = read_all(file.as_bytes(), layout(2, ",", "utf-8"), 64 << 10, 100);
    assert_eq!(found.len(), 3);
    assert_eq!(found[1].cells[1], cell);
    assert_eq!((found[2].line, found[2].fault.as_deref()), (200_003, None));
}

#[test]
fn a_quote_never_closed_costs_its_line_and_not_the_file() {
    let rest = "e,f\n".repeat(MAX_RECORD_BYTES / 2);
    let file = format!("a,b\n\"c,d\n{rest}");
    let found = read_all(file.as_bytes(), layout(2, ",", "utf-8"), 256 << 10, 200);
    assert_eq!(found.len(), 2 + MAX_RECORD_BYTES / 2);
    let at_fault: Vec<i64> =
        found.iter().filter(|record| record.fault.is_some()).map(|record| record.line).collect();
    assert_eq!(at_fault, [2]);
}

proptest! {
    #[test]
    fn written_csv_is_read_back(
        rows in proptest::collection::vec(proptest::collection::vec("[a-c\", ;\n\r]{0,6}", 2), 1..8),
        width in 1_usize..40,
    ) {
        let mut writer = csv::WriterBuilder::new().quote_style(csv::QuoteStyle::Always).from_writer(Vec::new());
        for row in &rows {
            writer.write_record(row).unwrap();
        }
        let file = writer.into_inner().unwrap();
        let found = read_all(&file, layout(2, ",", "utf-8"), width, 3);
        let cells: Vec<Vec<String>> = found.iter().map(|record| record.cells.clone()).collect();
        prop_assert_eq!(cells, rows);
        prop_assert!(found.iter().all(|record| record.fault.is_none()));
    }

    #[test]
    fn any_bytes_are_read_to_the_end_in_any_windows(
        bytes in proptest::collection::vec(proptest::sample::select(b"a,\"\r\n\xff;".to_vec()), 0..60),
        width in 1_usize..20,
    ) {
        let whole = read_all(&bytes, layout(2, ",", "utf-8"), bytes.len().max(1), 1000);
        prop_assert_eq!(read_all(&bytes, layout(2, ",", "utf-8"), width, 2), whole);
    }
}

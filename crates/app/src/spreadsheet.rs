//! CSV files made for spreadsheets: with a byte order mark, because some of them don't recognise UTF-8 without one, and
//! no cell that they would treat as a formula.

use std::borrow::Cow;

use serde_json::Value;

pub const MEDIA_TYPE: &str = "text/csv; charset=utf-8; header=present";
pub const BYTE_ORDER_MARK: &str = "\u{feff}";
/// Characters that make a spreadsheet treat a cell as a formula, or might if the cell is split.
const FORMULA_STARTS: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

/// Escapes a text so that no spreadsheet treats it as a formula.
pub fn safe(text: &str) -> Cow<'_, str> {
    if text.starts_with(FORMULA_STARTS) { Cow::from(format!("'{text}")) } else { Cow::from(text) }
}

/// A value as the text of a cell. A number is not a formula, not even a negative one.
pub fn cell(value: Value) -> String {
    match value {
        Value::String(text) => safe(&text).into_owned(),
        Value::Null => String::new(),
        value => value.to_string(),
    }
}

pub fn write<'a, R: Iterator<Item = Cow<'a, str>>>(rows: impl Iterator<Item = R>) -> Vec<u8> {
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    for row in rows {
        writer
            .write_record(row.map(Cow::into_owned))
            .expect("rows have equal length and memory does not fail");
    }
    writer.into_inner().expect("flushing to memory does not fail")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_looks_like_a_formula() {
        let table = [
            ("=1+1", "'=1+1"),
            ("+49 30 1", "'+49 30 1"),
            ("-5", "'-5"),
            ("@sum", "'@sum"),
            ("\tx", "'\tx"),
            ("\rx", "'\rx"),
            ("\n=x", "'\n=x"),
            ("＝1", "'＝1"),
            ("a=b", "a=b"),
            ("", ""),
            ("'quoted", "'quoted"),
        ];
        for (text, shown) in table {
            assert_eq!(safe(text), shown);
        }
    }

    #[test]
    fn a_number_is_not_a_formula() {
        assert_eq!(cell(serde_json::json!(-5)), "-5");
        assert_eq!(cell(serde_json::json!("-5")), "'-5");
        assert_eq!(cell(serde_json::json!(["=x"])), r#"["=x"]"#);
        assert_eq!(cell(Value::Null), "");
    }

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        let row = ["plain", "a,b", "say \"hi\"", "two\r\nlines", ""].map(Cow::from);
        let text = String::from_utf8(write(std::iter::once(row.into_iter()))).unwrap();
        assert_eq!(text, "plain,\"a,b\",\"say \"\"hi\"\"\",\"two\r\nlines\",\r\n");
    }
}

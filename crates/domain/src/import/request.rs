//! A request to preview or start an import, checked against the file.

use serde_json::{Map, Value};

use super::charset::Charset;
use super::format::{Format, Shape};
use super::head::{Column, Head};
use super::mapping::{Mapping, Target};
use super::number::Proposed;
use super::reading::{self, Delimiter, Layout, Record, Window};
use super::status_word::StatusWords;
use super::{Import, Mode};
use crate::invalid::{Fault, FieldError, Invalid, Members, as_object, as_str};

/// How many rows at the beginning of a file are read to propose formats and to list its words.
pub const JUDGED_ROWS: usize = 5_000;

/// How to import a file, checked against the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub charset: Charset,
    pub head: Head,
    pub mapping: Mapping,
    pub formats: Vec<Option<Format>>,
    pub words: StatusWords,
    pub mode: Mode,
}

/// A request to preview or start an import; absent members keep their current values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    pub mapping: Option<Map<String, Value>>,
    /// A format for each column name. A column that isn't listed keeps its format, or gets the one its values are in.
    pub formats: Option<Map<String, Value>>,
    /// A stage for each word.
    pub words: StatusWords,
    pub mode: Option<Mode>,
    pub charset: Option<Charset>,
    pub delimiter: Option<Delimiter>,
}

impl Request {
    pub fn parse(body: &Map<String, Value>) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let mapping = members.optional("mapping", as_object).cloned();
        let formats = members.optional("formats", as_object).cloned();
        let words = match members.optional("status_words", as_object).map(StatusWords::parse) {
            Some(Ok(words)) => words,
            Some(Err(invalid)) => {
                members.absorb(invalid);
                StatusWords::default()
            }
            None => StatusWords::default(),
        };
        let mode = members.optional("mode", |value| as_str(value).and_then(Mode::parse));
        let charset = members.optional("encoding", |value| as_str(value).and_then(Charset::parse));
        let delimiter = members.optional("delimiter", |value| as_str(value).and_then(Delimiter::parse));
        members.refuse_unknown();
        members.finish().map(|()| Self { mapping, formats, words, mode, charset, delimiter })
    }

    /// The layout that this request gives a file that begins with `first`.
    pub fn layout(&self, import: &Import, first: &[u8]) -> Result<(Charset, Head), Invalid> {
        let charset = self.charset.unwrap_or(import.charset);
        if charset != import.charset && !(charset.is_kept() && import.charset.is_kept()) {
            let detail = format!(
                "the file was converted from {} on upload; to change that, upload it again with ?encoding=",
                import.charset.name()
            );
            return Err(Invalid::one("/encoding", "already_converted", detail));
        }
        let is_whole = i64::try_from(first.len()).is_ok_and(|bytes| bytes >= import.bytes);
        let delimiter = self.delimiter.unwrap_or(import.delimiter);
        Ok((charset, Head::of(first, is_whole, charset, Some(delimiter))?))
    }

    /// The plan that this request makes for a file that begins with `first`.
    pub fn plan(&self, import: &Import, first: &[u8]) -> Result<Plan, Invalid> {
        let (charset, head) = self.layout(import, first)?;
        let names: Vec<&str> = head.columns.iter().map(|column| column.name.as_str()).collect();
        let mode = self.mode.unwrap_or(import.mode);
        let mapping = match &self.mapping {
            Some(sent) => Mapping::parse(sent, &names)?,
            None if names == import.column_names() => import.mapping.clone(),
            None => Mapping::guess(names),
        };
        mapping.check(mode)?;
        let layout = Layout { charset, delimiter: head.delimiter, columns: head.columns.len() };
        let values = values(&rows(import, first, (layout, head.data), JUDGED_ROWS), layout.columns);
        let formats = self.formats(import, &head.columns, &mapping, &values)?;
        let mut words = import.words.clone();
        words.extend(&self.words);
        Ok(Plan { charset, head, mapping, formats, words, mode })
    }

    /// The format of each column that needs one: the one sent, the one it has, or the one its values are in.
    fn formats(
        &self,
        import: &Import,
        columns: &[Column],
        mapping: &Mapping,
        values: &[Vec<String>],
    ) -> Result<Vec<Option<Format>>, Invalid> {
        let mut errors = Vec::new();
        let mut refuse = |name: &str, Fault { code, detail }: Fault| {
            let name = name.replace('~', "~0").replace('/', "~1");
            errors.push(FieldError { pointer: format!("/formats/{name}"), code, detail });
        };
        let is_column = |name: &str| columns.iter().any(|column| column.name == name);
        for (name, _) in self.formats.iter().flatten().filter(|(name, _)| !is_column(name)) {
            refuse(name, Fault::new("unknown_column", "is not a column of the file"));
        }
        let names = |columns: &[Column]| columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>();
        let is_same = names(columns) == names(&import.columns);
        let mut formats = Vec::with_capacity(columns.len());
        for (number, (column, target)) in columns.iter().zip(&mapping.0).enumerate() {
            let kept = import.formats.get(number).copied().flatten().filter(|_| is_same);
            let sent = self.formats.as_ref().and_then(|formats| formats.get(&column.name));
            match format_of(target, sent, kept, values.get(number).map_or(&[][..], Vec::as_slice)) {
                Ok(format) => formats.push(format),
                Err(fault) => {
                    formats.push(None);
                    refuse(&column.name, fault);
                }
            }
        }
        if errors.is_empty() { Ok(formats) } else { Err(Invalid(errors)) }
    }
}

fn format_of(
    target: &Target,
    sent: Option<&Value>,
    kept: Option<Format>,
    values: &[String],
) -> Result<Option<Format>, Fault> {
    let sent = sent.map(|value| as_str(value).and_then(Format::parse)).transpose()?;
    let Some(shape) = Shape::of_target(target) else { return Ok(sent) };
    if let Some(sent) = sent {
        let words = shape.formats().map(Format::as_str);
        return if sent.shape() == shape {
            Ok(Some(sent))
        } else {
            Err(Fault::not_one_of("unknown_format", words))
        };
    }
    if let Some(kept) = kept.filter(|kept| kept.shape() == shape) {
        return Ok(Some(kept));
    }
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    match shape.propose(&values) {
        Proposed::Clear(format) => Ok(Some(format)),
        Proposed::Unclear => Err(ambiguous(shape, &values)),
    }
}

fn ambiguous(shape: Shape, values: &[&str]) -> Fault {
    let value = shape.telling(values).unwrap_or_default();
    let words: Vec<&str> = shape.formats().map(Format::as_str).collect();
    Fault::new("ambiguous", format!("{value} can be read in two ways; choose one of: {}", words.join(", ")))
}

/// The first records of a file that is laid out in this way.
pub(super) fn rows(
    import: &Import,
    first: &[u8],
    (layout, data): (Layout, reading::Position),
    most: usize,
) -> Vec<Record> {
    let start = usize::try_from(data.offset).unwrap_or(0).min(first.len());
    let is_end = i64::try_from(first.len()).is_ok_and(|bytes| bytes >= import.bytes);
    let window = Window { bytes: &first[start..], at: data, is_end };
    reading::read(window, layout, most).map_or(Vec::new(), |batch| batch.records)
}

/// The values of each column, without empty cells.
pub(super) fn values(records: &[Record], columns: usize) -> Vec<Vec<String>> {
    let column = |number: usize| {
        let whole = records.iter().filter(|record| record.fault.is_none());
        let cells = whole.filter_map(|record| record.cells.get(number)).map(|cell| cell.trim());
        cells.filter(|cell| !cell.is_empty()).map(str::to_owned).collect()
    };
    (0..columns).map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Actor;
    use crate::id::ImportId;
    use crate::import::date::Order;
    use crate::import::number::Decimal;
    use crate::import::status_word::Meaning;
    use crate::pipeline::Status;
    use crate::time::Time;
    use serde_json::json;

    fn uploaded(file: &str) -> Import {
        let now = Time::from_micros(0);
        let mut import = Import::new(ImportId::from_bytes([1; 16]), "a.csv".into(), Actor::CommandLine, now);
        let head = Head::of(file.as_bytes(), true, Charset::UTF_8, None).unwrap();
        import.arrive(i64::try_from(file.len()).unwrap(), Charset::UTF_8, head);
        import
    }

    fn request(body: &Value) -> Request {
        Request::parse(body.as_object().unwrap()).unwrap()
    }

    fn planned(file: &str, body: &Value) -> Result<Vec<Option<Format>>, Vec<(String, &'static str)>> {
        let plan = request(body).plan(&uploaded(file), file.as_bytes());
        plan.map(|plan| plan.formats)
            .map_err(|invalid| invalid.0.into_iter().map(|error| (error.pointer, error.code)).collect())
    }

    const CLEAR: &str = "id;value;last contact\n1;1.200;03/04/2026\n2;12,50;31/12/2025\n";
    const UNCLEAR: &str = "id;value;last contact\n1;1.200;03/04/2026\n2;;05/05/2025\n";

    #[test]
    fn formats_are_proposed_from_the_values() {
        let expected = vec![None, Some(Format::Number(Decimal::Comma)), Some(Format::Date(Order::DayFirst))];
        assert_eq!(planned(CLEAR, &json!({})), Ok(expected));
        let chosen = json!({"formats": {"value": "decimal_point", "last contact": "month_first"}});
        let expected =
            vec![None, Some(Format::Number(Decimal::Point)), Some(Format::Date(Order::MonthFirst))];
        assert_eq!(planned(CLEAR, &chosen), Ok(expected));
    }

    #[test]
    fn a_column_that_can_be_read_in_two_ways_asks() {
        let asked =
            [("/formats/value".to_owned(), "ambiguous"), ("/formats/last contact".to_owned(), "ambiguous")];
        assert_eq!(planned(UNCLEAR, &json!({})).unwrap_err(), asked);
        let ignored = json!({"mapping": {"id": "imported_id", "value": "custom_fields.value"}});
        assert_eq!(planned(UNCLEAR, &ignored), Ok(vec![None; 3]), "text needs no format");
        let wrong = json!({"formats": {"value": "day_first", "last contact": "roman", "nope": "day_first"}});
        let mut faults = planned(UNCLEAR, &wrong).unwrap_err();
        faults.sort();
        assert_eq!(
            faults,
            [
                ("/formats/last contact".to_owned(), "unknown_format"),
                ("/formats/nope".to_owned(), "unknown_column"),
                ("/formats/value".to_owned(), "unknown_format"),
            ]
        );
    }

    #[test]
    fn a_choice_is_kept_until_another_one() {
        let mut import = uploaded(UNCLEAR);
        let chosen = json!({
            "formats": {"value": "decimal_comma", "last contact": "day_first"}, "status_words": {"Hot": "in_trial"},
        });
        let plan = request(&chosen).plan(&import, UNCLEAR.as_bytes()).unwrap();
        import.plan(plan).unwrap();
        let again = request(&json!({"status_words": {"Cold": "lost"}}));
        let again = again.plan(&import, UNCLEAR.as_bytes()).unwrap();
        assert_eq!(again.formats[1], Some(Format::Number(Decimal::Comma)));
        let status = |word: &str| again.words.meaning(word).and_then(Meaning::status);
        assert_eq!((status("hot"), status("cold")), (Some(Status::InTrial), Some(Status::Lost)));
    }
}

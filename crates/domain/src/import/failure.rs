//! Why rows can't be imported, grouped by reason: how many rows, which values, and which column would fix them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::invalid::{Fault, FieldError, Invalid};

/// How many reasons are kept. Rows with further reasons are only counted.
pub const MAX_GROUPS: usize = 100;
/// How many values of a reason are kept.
pub const MAX_VALUES: usize = 20;
/// How many different unmatched promo codes are counted.
pub const MAX_CODES: usize = 1_000;
const MAX_VALUE_CHARS: usize = 80;

/// A reason why a row can't be imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The column at fault; `None` if the row as a whole is.
    pub column: Option<String>,
    pub code: &'static str,
    pub detail: String,
    /// The cell.
    pub value: String,
}

impl Failure {
    pub fn of_cell(column: &str, value: &str, fault: Fault) -> Self {
        Self {
            column: Some(column.to_owned()),
            code: fault.code,
            detail: fault.detail,
            value: value.to_owned(),
        }
    }

    /// The row can't be read at all.
    pub fn of_row(detail: &str) -> Self {
        Self { column: None, code: "malformed", detail: detail.to_owned(), value: String::new() }
    }

    /// The failures of a row that was read but that an account can't take. `cell` finds the column of a field, and
    /// what the row has there.
    pub fn of_invalid(invalid: &Invalid, cell: impl Fn(&str) -> Option<(String, String)>) -> Vec<Self> {
        let one = |error: &FieldError| {
            let member = error.pointer.trim_start_matches('/').replace('/', ".");
            let (code, detail) = (error.code, error.detail.clone());
            if let Some((column, value)) = cell(&member) {
                Self { column: Some(column), code, detail, value }
            } else {
                let detail = format!("{member} {detail}").trim().to_owned();
                Self { column: None, code, detail, value: String::new() }
            }
        };
        invalid.0.iter().map(one).collect()
    }
}

/// All failures of a row in one line.
pub fn in_words(failures: &[Failure]) -> String {
    let one = |failure: &Failure| match &failure.column {
        Some(column) => format!("{column}: {}", failure.detail),
        None => failure.detail.clone(),
    };
    failures.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// The rows that fail for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ImportFailure)]
pub struct Group {
    /// The column that these rows fail in. Null if the row as a whole is at fault.
    #[schema(required = true, example = "Stage")]
    pub column: Option<String>,
    #[schema(example = "unknown_status")]
    pub code: String,
    /// The reason, as the first of these rows gives it.
    pub reason: String,
    pub rows: i64,
    /// The line of the first of these rows.
    pub line: i64,
    /// The first 20 different values.
    pub values: Vec<FailedValue>,
    /// Whether there are more values.
    pub more_values: bool,
}

/// A value that can't be imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ImportFailedValue)]
pub struct FailedValue {
    #[schema(example = "Hot lead")]
    pub value: String,
    pub rows: i64,
    /// The first line with it.
    pub line: i64,
}

/// What an import or a dry run noticed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Findings {
    #[serde(default)]
    pub failures: Vec<Group>,
    /// The different promo codes that match no active code, in lower case.
    #[serde(default)]
    pub unmatched_codes: BTreeSet<String>,
}

impl Findings {
    /// Notes the failures of a row. A row counts once for each of its reasons.
    pub fn fail(&mut self, line: i64, failures: &[Failure]) {
        for failure in failures {
            let same = |group: &&mut Group| group.column == failure.column && group.code == failure.code;
            if let Some(group) = self.failures.iter_mut().find(same) {
                group.rows += 1;
                group.take(line, &failure.value);
            } else if self.failures.len() < MAX_GROUPS {
                let mut group = Group {
                    column: failure.column.clone(),
                    code: failure.code.to_owned(),
                    reason: failure.detail.clone(),
                    rows: 1,
                    line,
                    values: Vec::new(),
                    more_values: false,
                };
                group.take(line, &failure.value);
                self.failures.push(group);
            }
        }
    }

    /// Notes a promo code that matches none. Returns whether it is new here.
    pub fn miss(&mut self, code: &str) -> bool {
        let code: String = code.to_lowercase().chars().take(MAX_VALUE_CHARS).collect();
        self.unmatched_codes.len() < MAX_CODES && self.unmatched_codes.insert(code)
    }

    /// The reasons, those of most rows first.
    pub fn by_rows(&self) -> Vec<&Group> {
        let mut groups: Vec<&Group> = self.failures.iter().collect();
        groups.sort_by_key(|group| (std::cmp::Reverse(group.rows), group.line));
        groups
    }

    pub fn to_stored(&self) -> String {
        if *self == Self::default() {
            return String::new();
        }
        serde_json::to_string(self).unwrap_or_default()
    }

    pub fn from_stored(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }
}

impl Group {
    fn take(&mut self, line: i64, value: &str) {
        let value: String = value.chars().take(MAX_VALUE_CHARS).collect();
        if value.is_empty() {
            return;
        }
        if let Some(known) = self.values.iter_mut().find(|known| known.value == value) {
            known.rows += 1;
        } else if self.values.len() < MAX_VALUES {
            self.values.push(FailedValue { value, rows: 1, line });
        } else {
            self.more_values = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(value: &str) -> Failure {
        Failure::of_cell("Stage", value, Fault::new("unknown_status", "must be one of: …"))
    }

    #[test]
    fn rows_are_grouped_by_column_and_reason() {
        let mut findings = Findings::default();
        let negative = Failure::of_cell("Value", "-1", Fault::new("negative", "must not be negative"));
        findings.fail(2, std::slice::from_ref(&negative));
        findings.fail(3, &[stage("Hot")]);
        findings.fail(5, &[stage("Cold"), negative]);
        findings.fail(6, &[stage("Hot")]);
        findings.fail(9, &[Failure::of_row("has 1 cells, but the header has 3")]);
        let shown: Vec<(Option<&str>, &str, i64, i64)> = findings
            .by_rows()
            .into_iter()
            .map(|group| (group.column.as_deref(), group.code.as_str(), group.rows, group.line))
            .collect();
        assert_eq!(
            shown,
            [
                (Some("Stage"), "unknown_status", 3, 3),
                (Some("Value"), "negative", 2, 2),
                (None, "malformed", 1, 9),
            ]
        );
        let hot = FailedValue { value: "Hot".to_owned(), rows: 2, line: 3 };
        assert_eq!(findings.by_rows()[0].values[0], hot);
        assert_eq!(Findings::from_stored(&findings.to_stored()), findings);
        assert_eq!(Findings::from_stored(""), Findings::default());
    }

    #[test]
    fn what_an_account_cannot_take_is_told_with_its_column() {
        let invalid = Invalid::one("/last_contact_at", "in_the_future", "must not be in the future");
        let cell =
            |member: &str| (member == "last_contact_at").then(|| ("Last".to_owned(), "2033".to_owned()));
        let failures = Failure::of_invalid(&invalid, cell);
        let told = (in_words(&failures), failures[0].value.clone());
        assert_eq!(told, ("Last: must not be in the future".to_owned(), "2033".to_owned()));
        let whole =
            Failure::of_invalid(&Invalid::one("/custom_fields", "too_large", "must be smaller"), cell);
        assert_eq!((in_words(&whole).as_str(), &whole[0].column), ("custom_fields must be smaller", &None));
    }

    #[test]
    fn values_and_reasons_have_an_end() {
        let mut findings = Findings::default();
        for line in 0..40 {
            findings.fail(line, &[stage(&format!("word {line}"))]);
        }
        let group = &findings.failures[0];
        assert_eq!((group.rows, group.values.len(), group.more_values), (40, MAX_VALUES, true));
        for number in 0..200 {
            let column = format!("Column {number}");
            findings.fail(number, &[Failure::of_cell(&column, "x", Fault::new("malformed", "no"))]);
        }
        assert_eq!(findings.failures.len(), MAX_GROUPS);
        let long = stage(&"x".repeat(500));
        findings.fail(1, &[long]);
        assert!(findings.failures[0].values.iter().all(|value| value.value.len() <= MAX_VALUE_CHARS));
    }

    #[test]
    fn codes_count_once() {
        let mut findings = Findings::default();
        assert_eq!(["Spring", "SPRING", "fair"].map(|code| findings.miss(code)), [true, false, true]);
        assert_eq!(findings.unmatched_codes.len(), 2);
        (0..2 * MAX_CODES).for_each(|number| {
            findings.miss(&format!("code-{number}"));
        });
        assert_eq!(findings.unmatched_codes.len(), MAX_CODES);
    }
}

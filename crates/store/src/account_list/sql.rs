//! SQL composed from constant parts; values are always bound.

use std::fmt::Write;

use crate::error::Error;
use crate::tx::Snapshot;
use crate::value::Value;

/// The day and time for an account that was never seen, before every real day and time.
pub(super) const NEVER: i64 = -9_000_000_000_000_000_000;
macro_rules! never {
    () => {
        "CAST(-9000000000000000000 AS BIGINT)"
    };
}
pub(super) use never;

/// SQL under construction, with the values of its parameters after the company.
#[derive(Default)]
pub(crate) struct Sql<'a> {
    text: String,
    values: Vec<Value<'a>>,
}

impl<'a> Sql<'a> {
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn values(&self) -> &[Value<'a>] {
        &self.values
    }

    pub fn push(&mut self, text: &str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    pub fn bind(&mut self, value: impl Into<Value<'a>>) -> &mut Self {
        self.values.push(value.into());
        // `$1` is the company.
        let _ = write!(self.text, "${}", self.values.len() + 1);
        self
    }

    /// Appends that `column` has one of these values. There must be at least one.
    pub fn one_of<V: Into<Value<'a>>>(&mut self, column: &str, values: impl ExactSizeIterator<Item = V>) {
        let alone = values.len() == 1;
        self.push(column).push(if alone { " = " } else { " IN (" });
        for (n, value) in values.enumerate() {
            self.push(if n > 0 { ", " } else { "" }).bind(value);
        }
        self.push(if alone { "" } else { ")" });
    }

    pub fn limit(&mut self, rows: i64) {
        let _ = write!(self.text, " LIMIT {rows}");
    }
}

/// The number of rows of a query for keys.
pub(crate) fn count(keys: &Sql, snapshot: &mut Snapshot) -> Result<i64, Error> {
    let text = format!("SELECT CAST(count(*) AS BIGINT) FROM ({}) AS counted", keys.text);
    let row = snapshot.query_text(&text, &keys.values)?.into_iter().next();
    row.ok_or_else(|| Error::fault("a count returned no row"))?.take()
}

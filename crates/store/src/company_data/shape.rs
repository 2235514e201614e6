//! How a stored value is shown in an export: as the API shows it.

use rapport_domain::exchange_rate::Rate;
use rapport_domain::id::{ContactId, MessageId, NoteId, PersonId, base32};
use rapport_domain::time::{Day, Time};
use serde_json::{Map, Value};

use crate::value::Cell;

/// Stored in place of a contact that never was.
const NEVER: i64 = -9_000_000_000_000_000_000;
const TEN_THOUSANDTHS: i64 = 10_000;

/// The meaning of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Text,
    Number,
    /// 0 or 1.
    Flag,
    /// Microseconds.
    Time,
    /// Days since 1970; 0 is the total of days that are no longer kept apart.
    Day,
    /// An amount in ten-thousandths.
    Amount,
    /// An exchange rate in ten-billionths.
    Rate,
    Json,
    /// 16 bytes, shown with this prefix.
    Id(&'static str),
    /// The id of who did something, whose kind is in this column, which comes before.
    Actor(&'static str),
    /// The id of a contact, message or note. Which of them it is is in this column, which comes before.
    Entry(&'static str),
    /// A number that stands for one of these words.
    Word(&'static [&'static str]),
}

impl Shape {
    /// The value of a column, beside those that come before it in the row.
    pub fn show(self, cell: Cell, before: &Map<String, Value>) -> Value {
        match (self, cell) {
            (_, Cell::Null) | (Self::Time, Cell::Int(NEVER)) | (Self::Day, Cell::Int(0)) => Value::Null,
            (Self::Flag, Cell::Int(flag)) => (flag != 0).into(),
            (Self::Time, Cell::Int(micros)) => Time::from_micros(micros).to_string().into(),
            (Self::Day, Cell::Int(number)) => Day::from_number(number).date().to_string().into(),
            (Self::Amount, Cell::Int(units)) => amount(units).into(),
            (Self::Rate, Cell::Int(units)) => Rate::from_ten_billionths(units).text().into(),
            (Self::Word(words), Cell::Int(number)) => {
                usize::try_from(number).ok().and_then(|number| words.get(number)).copied().into()
            }
            (_, Cell::Int(number)) => number.into(),
            (Self::Json, Cell::Text(text)) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
            (_, Cell::Text(text)) => text.into(),
            (Self::Id(prefix), Cell::Id(bytes)) => id(prefix, &bytes),
            (Self::Actor(kind), Cell::Id(bytes)) => {
                let is_person = before.get(kind).is_some_and(|kind| kind == "person");
                id(if is_person { PersonId::PREFIX } else { "crd_" }, &bytes)
            }
            (Self::Entry(kind), Cell::Id(bytes)) => {
                let prefix = match before.get(kind).and_then(Value::as_str) {
                    Some("contact") => ContactId::PREFIX,
                    Some("message") => MessageId::PREFIX,
                    _ => NoteId::PREFIX,
                };
                id(prefix, &bytes)
            }
            (_, Cell::Id(bytes)) => id("", &bytes),
            (_, Cell::Bytes(bytes)) => id("", &bytes),
        }
    }
}

fn id(prefix: &str, bytes: &[u8]) -> Value {
    format!("{prefix}{}", base32().encode(bytes)).into()
}

/// The exact decimal number.
fn amount(units: i64) -> String {
    let (whole, rest) = (units / TEN_THOUSANDTHS, (units % TEN_THOUSANDTHS).abs());
    let text = format!("{whole}.{rest:04}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use rapport_domain::id::AccountId;
    use serde_json::json;

    use super::*;

    #[test]
    fn values_look_as_in_the_api() {
        let account = AccountId::from_bytes([7; 16]);
        let bytes = || Cell::Id(*account.as_bytes());
        let text = |text: &str| Cell::Text(text.to_owned());
        let person = PersonId::from_bytes([7; 16]).to_string();
        let token = account.to_string().replace("acc_", "crd_");
        let table = [
            (Shape::Text, text("a\nb"), json!("a\nb")),
            (Shape::Text, Cell::Null, json!(null)),
            (Shape::Number, Cell::Int(-5), json!(-5)),
            (Shape::Flag, Cell::Int(1), json!(true)),
            (Shape::Flag, Cell::Int(0), json!(false)),
            (Shape::Time, Cell::Int(1_000_000), json!("1970-01-01T00:00:01Z")),
            (Shape::Time, Cell::Int(NEVER), json!(null)),
            (Shape::Day, Cell::Int(20_585), json!("2026-05-12")),
            (Shape::Day, Cell::Int(0), json!(null)),
            (Shape::Amount, Cell::Int(12_005_000), json!("1200.5")),
            (Shape::Amount, Cell::Int(10_000), json!("1")),
            (Shape::Amount, Cell::Int(1), json!("0.0001")),
            (Shape::Amount, Cell::Int(0), json!("0")),
            (Shape::Rate, Cell::Int(9_200_000_000), json!("0.92")),
            (Shape::Json, text(r#"{"a":1.50}"#), serde_json::from_str(r#"{"a":1.50}"#).unwrap()),
            (Shape::Json, text("not JSON"), json!("not JSON")),
            (Shape::Id("acc_"), bytes(), json!(account.to_string())),
            (Shape::Actor("by_person"), bytes(), json!(person)),
            (Shape::Actor("by_token"), bytes(), json!(token)),
            (Shape::Entry("by_message"), bytes(), json!(token.replace("crd_", "msg_"))),
            (Shape::Entry("by_nothing"), bytes(), json!(token.replace("crd_", "nte_"))),
            (Shape::Word(&["open", "failed"]), Cell::Int(1), json!("failed")),
            (Shape::Word(&["open"]), Cell::Int(9), json!(null)),
        ];
        let before = json!({"by_person": "person", "by_token": "token", "by_message": "message"});
        for (shape, cell, expected) in table {
            assert_eq!(shape.show(cell.clone(), before.as_object().unwrap()), expected, "{shape:?} {cell:?}");
        }
    }
}

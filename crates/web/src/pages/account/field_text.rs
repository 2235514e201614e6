//! Custom fields as people type and read them. Text that parses as JSON is JSON; anything else is a string.

use rapport_domain::invalid::Fault;
use serde_json::Value;

use crate::edge::json;

/// A custom field and the text that shows its value.
pub struct FieldRow {
    pub key: String,
    pub text: String,
    /// An object or a list, shown as JSON.
    pub is_nested: bool,
}

impl FieldRow {
    pub fn new((key, value): (String, Value)) -> Self {
        let is_nested = value.is_object() || value.is_array();
        let text = match value {
            Value::String(text) => text,
            nested if is_nested => serde_json::to_string_pretty(&nested).unwrap_or_default(),
            other => other.to_string(),
        };
        Self { key, text, is_nested }
    }
}

/// The text of a value in a form. [`read`] gives the same value back if the text is unchanged.
pub fn write(value: &Value) -> String {
    match value {
        Value::String(text) if read(text).is_ok_and(|typed| typed == *value) => text.clone(),
        nested if nested.is_object() || nested.is_array() => {
            serde_json::to_string_pretty(nested).unwrap_or_default()
        }
        other => other.to_string(),
    }
}

/// Reads a typed value: JSON if it parses as JSON, else a string. Malformed JSON is most likely a mistake, so it is
/// refused.
pub fn read(text: &str) -> Result<Value, Fault> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(Fault::new("required", "is required; enter \"\" for an empty text"));
    }
    match value(trimmed) {
        Some(value) => Ok(value),
        None if trimmed.starts_with(['{', '[', '"']) => Err(Fault::new(
            "malformed",
            "looks like JSON but is invalid; put it in quotes to keep it as text",
        )),
        None => Ok(Value::from(trimmed)),
    }
}

/// Parses JSON as strictly as the API parses a request's body.
fn value(text: &str) -> Option<Value> {
    let mut members = json::parse(format!("{{\"value\":{text}}}").as_bytes()).ok()?;
    let value = members.remove("value")?;
    members.is_empty().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_typed_is_json_where_it_is_some() {
        let table = [
            (" enterprise ", json!("enterprise")),
            ("240", json!(240)),
            ("\"240\"", json!("240")),
            ("true", json!(true)),
            ("null", json!(null)),
            ("{\"a\": [1, {}]}", json!({"a": [1, {}]})),
            ("=1+1", json!("=1+1")),
            ("1, \"b\": 2", json!("1, \"b\": 2")),
            ("1}", json!("1}")),
            ("two\nlines", json!("two\nlines")),
            ("\"\"", json!("")),
        ];
        for (typed, expected) in table {
            assert_eq!(read(typed), Ok(expected), "{typed}");
        }
        for (typed, code) in
            [(" ", "required"), ("{a", "malformed"), ("[1,", "malformed"), ("\"x", "malformed")]
        {
            assert_eq!(read(typed).unwrap_err().code, code, "{typed}");
        }
    }

    #[test]
    fn what_is_shown_reads_back() {
        let values = [
            json!("plain"),
            json!("240"),
            json!("true"),
            json!(""),
            json!(" padded "),
            json!("{not json"),
            json!("\"quoted\""),
            json!(1.50),
            json!(false),
            json!([1, "a", {"b": null}]),
            json!({"<b>": "\u{202e}x"}),
        ];
        for value in values {
            assert_eq!(read(&write(&value)), Ok(value.clone()), "{value}");
        }
    }
}

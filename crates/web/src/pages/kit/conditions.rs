//! Conditions on custom fields as rows of a form, and in words. The forms of campaigns and webhooks have them.

use rapport_domain::audience::{FieldFilter, FieldTest};
use rapport_domain::channel::Channel;
use rapport_domain::id::ChannelId;
use rapport_domain::invalid::{FieldError, Invalid};
use serde_json::{Map, Value, json};

use crate::pages::kit::form::Form;

/// Empty rows at the end of a form.
pub const SPARE_ROWS: usize = 2;
/// The field names in a row: field, test, value.
const ROW: [&str; 3] = ["field", "test", "value"];

/// A row for one custom field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldRow {
    pub key: String,
    pub test: String,
    pub value: String,
}

impl FieldRow {
    fn is_empty(&self) -> bool {
        self.key.trim().is_empty() && self.value.is_empty()
    }
}

/// The rows that were filled in.
pub fn rows(form: &Form) -> Vec<FieldRow> {
    let [keys, tests, values] = ROW.map(|name| form.all(name).map(str::to_owned).collect::<Vec<_>>());
    let at = |texts: &[String], place: usize| texts.get(place).cloned().unwrap_or_default();
    (0..keys.len())
        .map(|place| FieldRow { key: at(&keys, place), test: at(&tests, place), value: at(&values, place) })
        .filter(|row| !row.is_empty())
        .collect()
}

/// The same, and empty ones to fill in.
pub fn rows_to_fill(form: &Form) -> Vec<FieldRow> {
    let mut rows = rows(form);
    rows.extend(vec![FieldRow::default(); SPARE_ROWS]);
    rows
}

/// Reads the rows as the member `fields` of a filter. Several "is" rows for one field are its alternative values.
pub fn fields(form: &Form) -> Result<Map<String, Value>, Invalid> {
    let mut fields: Map<String, Value> = Map::new();
    for FieldRow { key, test, value } in rows(form) {
        let key = key.trim().to_owned();
        if key.is_empty() {
            return Err(Invalid::one("/fields", "required", "a value needs a field"));
        }
        let test = match test.as_str() {
            "exists" => json!({"exists": true}),
            "begins_with" => json!({ "begins_with": value }),
            _ => json!([value]),
        };
        match (fields.get_mut(&key), test) {
            (None, test) => {
                fields.insert(key, test);
            }
            (Some(Value::Array(values)), Value::Array(mut more)) => values.append(&mut more),
            _ => {
                let detail = format!("use {key} in one row, or only in “is” rows");
                return Err(Invalid::one("/fields", "repeated", detail));
            }
        }
    }
    Ok(fields)
}

/// The rows of a filter, as fields of a form.
pub fn of_fields(fields: &[FieldFilter]) -> Vec<(&'static str, String)> {
    let mut pairs = Vec::new();
    for field in fields {
        let rows: Vec<(&str, &str)> = match &field.test {
            FieldTest::Is(values) => values.iter().map(|value| ("is", value.as_str())).collect(),
            FieldTest::Exists => vec![("exists", "")],
            FieldTest::BeginsWith(text) => vec![("begins_with", text)],
        };
        for (test, value) in rows {
            let texts = [field.key.as_str(), test, value];
            pairs.extend(ROW.into_iter().zip(texts).map(|(name, text)| (name, text.to_owned())));
        }
    }
    pairs
}

/// The chosen channels that were deleted. Dropping the last one would match everything.
pub fn gone(form: &Form, channels: &[Channel]) -> Vec<String> {
    let is_there = |id: &str| channels.iter().any(|channel| channel.id.to_string() == id);
    form.all("channel").filter(|id| !is_there(id)).map(str::to_owned).collect()
}

/// Moves faults of members of `filters` to the fields of the form, which has no nesting.
pub fn flat(invalid: Invalid) -> Invalid {
    let flat = |error: FieldError| {
        let pointer = error.pointer.strip_prefix("/filters").filter(|rest| rest.starts_with('/'));
        // The message includes the name of the custom field.
        let detail = match pointer.and_then(|pointer| pointer.strip_prefix("/fields/")) {
            Some(field) => format!("{} {}", field.replace("~1", "/").replace("~0", "~"), error.detail),
            None => error.detail,
        };
        FieldError { pointer: pointer.map_or(error.pointer.clone(), str::to_owned), detail, ..error }
    };
    Invalid(invalid.0.into_iter().map(flat).collect())
}

/// The names of channels.
pub fn channel_names(ids: &[ChannelId], channels: &[Channel]) -> String {
    let name = |id: &ChannelId| {
        channels.iter().find(|channel| channel.id == *id).map_or("deleted channel", |found| &found.name)
    };
    ids.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// Conditions on custom fields in words.
pub fn field_words(fields: &[FieldFilter]) -> String {
    let words = |FieldFilter { key, test }: &FieldFilter| match test {
        FieldTest::Is(values) => format!("{key} is {}", values.join(" or ")),
        FieldTest::Exists => format!("{key} exists"),
        FieldTest::BeginsWith(text) => format!("{key} begins with {text}"),
    };
    fields.iter().map(words).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_one_field_are_its_values() {
        let form = |text: &str| Form::parse(text.as_bytes());
        let found =
            fields(&form("field=plan&test=is&value=a&field=&test=is&value=&field=plan&test=is&value=b"));
        assert_eq!(Value::Object(found.unwrap()), json!({"plan": ["a", "b"]}));
        for text in [
            "field=plan&test=is&value=a&field=plan&test=exists&value=",
            "field=plan&test=exists&value=&field=plan&test=exists&value=",
            "field=&test=is&value=a",
        ] {
            assert_eq!(fields(&form(text)).unwrap_err().0[0].pointer, "/fields", "{text}");
        }
    }
}

//! Custom fields: a map of key to any JSON value, merged per key.

use serde_json::{Map, Value};

use crate::invalid::{Fault, FieldError, Invalid};
use crate::text::{Length, refuse_nul_within};

pub const MAX_KEYS: usize = 200;
pub const MAX_KEY: Length = Length::up_to(128);
pub const MAX_BYTES: usize = 64 * 1024;

/// The kept fields, as compact JSON text with keys in order: what storage and payloads carry as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomFields(String);

impl Default for CustomFields {
    fn default() -> Self {
        Self("{}".to_owned())
    }
}

impl CustomFields {
    /// From text that this type made.
    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    pub fn as_json(&self) -> &str {
        &self.0
    }

    pub fn to_map(&self) -> Map<String, Value> {
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// The fields after a merge: `null` deletes its key, other values replace whole, the rest stays.
    /// The limits hold for the result.
    pub fn merged(&self, change: &FieldChange) -> Result<Self, Invalid> {
        let mut map = self.to_map();
        for (key, value) in &change.0 {
            if value.is_null() {
                map.remove(key);
            } else {
                map.insert(key.clone(), value.clone());
            }
        }
        let whole = |code, detail| Invalid::one("/custom_fields", code, detail);
        if map.len() > MAX_KEYS {
            return Err(whole("too_many_keys", format!("must have at most {MAX_KEYS} keys after the merge")));
        }
        let text = Value::Object(map).to_string();
        if text.len() > MAX_BYTES {
            return Err(whole(
                "too_large",
                format!("must be at most {MAX_BYTES} bytes of JSON after the merge"),
            ));
        }
        Ok(Self(text))
    }
}

/// The custom fields of a request: checked keys and values, not yet merged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldChange(Map<String, Value>);

impl FieldChange {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn parse(map: &Map<String, Value>) -> Result<Self, Invalid> {
        let mut errors = Vec::new();
        for (key, value) in map {
            if let Err(fault) = MAX_KEY.check(key).and_then(|()| refuse_nul_within(value)) {
                errors.push(fault_at(key, fault));
            }
        }
        if errors.is_empty() { Ok(Self(map.clone())) } else { Err(Invalid(errors)) }
    }
}

fn fault_at(key: &str, fault: Fault) -> FieldError {
    let shown: String = key.chars().filter(|character| *character != '\0').take(MAX_KEY.max).collect();
    let pointer = format!("/custom_fields/{}", shown.replace('~', "~0").replace('/', "~1"));
    FieldError { pointer, code: fault.code, detail: fault.detail }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn change(value: &Value) -> FieldChange {
        FieldChange::parse(value.as_object().unwrap()).unwrap()
    }

    #[test]
    fn fields_merge_per_key_and_null_deletes() {
        let kept =
            CustomFields::default().merged(&change(&json!({"plan": "pro", "seats": 3, "tags": {"a": 1}})));
        let merged =
            kept.unwrap().merged(&change(&json!({"seats": null, "tags": {"b": 2}, "new": [1]}))).unwrap();
        assert_eq!(merged.as_json(), r#"{"new":[1],"plan":"pro","tags":{"b":2}}"#);
    }

    #[test]
    fn limits_hold_after_the_merge() {
        let many: Map<String, Value> = (0..MAX_KEYS).map(|n| (format!("k{n}"), json!(n))).collect();
        let full = CustomFields::default().merged(&FieldChange(many)).unwrap();
        assert_eq!(full.merged(&change(&json!({"one_more": 1}))).unwrap_err().0[0].code, "too_many_keys");
        assert!(full.merged(&change(&json!({"one_more": 1, "k0": null}))).is_ok());
        let large = change(&json!({"k": "x".repeat(MAX_BYTES)}));
        assert_eq!(CustomFields::default().merged(&large).unwrap_err().0[0].code, "too_large");
    }

    #[test]
    fn keys_and_nested_text_are_checked() {
        let faults = |value: Value| FieldChange::parse(value.as_object().unwrap()).unwrap_err().0;
        assert_eq!(faults(json!({"a": {"b": "\0"}}))[0].code, "nul_character");
        assert_eq!(faults(json!({"": 1}))[0].code, "empty");
        assert_eq!(faults(json!({"k".repeat(129): 1}))[0].code, "too_long");
    }

    #[test]
    fn huge_numbers_stay_as_they_were_written() {
        let sent: Value = serde_json::from_str(r#"{"n": 123456789012345678901234567890.10}"#).unwrap();
        let merged = CustomFields::default().merged(&change(&sent)).unwrap();
        assert_eq!(merged.as_json(), r#"{"n":123456789012345678901234567890.10}"#);
    }

    proptest! {
        #[test]
        fn merging_twice_is_merging_once(keys in proptest::collection::btree_map("[a-d]{1,2}", proptest::option::of(0..9), 0..6)) {
            let sent: Map<String, Value> = keys.into_iter().map(|(key, value)| (key, json!(value))).collect();
            let sent = FieldChange(sent);
            let once = CustomFields::default().merged(&sent).unwrap();
            prop_assert_eq!(once.merged(&sent).unwrap(), once);
        }
    }
}

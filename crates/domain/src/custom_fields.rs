//! Custom fields: a map from key to any JSON value, merged per key.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::field_index;
use crate::invalid::{Fault, FieldError, Invalid};
use crate::text::{Length, refuse_nul_within};

pub const MAX_KEYS: usize = 200;
pub const MAX_KEY: Length = Length::up_to(128);
pub const MAX_BYTES: usize = 64 * 1024;

/// The stored fields, as compact JSON text with sorted keys, used unchanged in storage and payloads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomFields {
    json: String,
}

/// The index entries that a change of fields removes and adds: pairs of a key and one of its index texts.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FieldDifference {
    pub removed: Vec<(String, String)>,
    pub added: Vec<(String, String)>,
}

impl PartialSchema for CustomFields {
    fn schema() -> RefOr<Schema> {
        let fields = by_key().description(Some("JSON values by key."));
        fields.max_properties(Some(MAX_KEYS)).examples([json!({"plan": "pro", "seats": 12})]).into()
    }
}

impl ToSchema for CustomFields {}

impl PartialSchema for FieldChange {
    fn schema() -> RefOr<Schema> {
        let description = format!(
            "Merged per key: null deletes a key, and keys you don't send are kept. At most {MAX_KEYS} keys and {} KiB \
             after the merge.",
            MAX_BYTES >> 10
        );
        by_key().description(Some(description)).examples([json!({"plan": "pro", "old_key": null})]).into()
    }
}

impl ToSchema for FieldChange {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("CustomFieldChange")
    }
}

/// Any JSON value for each key.
fn by_key() -> ObjectBuilder {
    let key = ObjectBuilder::new().schema_type(Type::String).min_length(Some(MAX_KEY.min));
    ObjectBuilder::new()
        .property_names(Some(key.max_length(Some(MAX_KEY.max))))
        .additional_properties(Some(AdditionalProperties::FreeForm(true)))
}

impl Default for CustomFields {
    fn default() -> Self {
        Self::from_stored("{}".to_owned())
    }
}

impl CustomFields {
    /// From text that this type produced.
    pub fn from_stored(json: String) -> Self {
        Self { json }
    }

    pub fn as_json(&self) -> &str {
        &self.json
    }

    pub fn to_map(&self) -> Map<String, Value> {
        serde_json::from_str(&self.json).unwrap_or_default()
    }

    /// All index entries of the fields: pairs of a key and one of its texts.
    pub fn index(&self) -> Vec<(String, String)> {
        let texts = |(key, value): (String, Value)| {
            field_index::texts_of(&value).into_iter().map(move |text| (key.clone(), text))
        };
        self.to_map().into_iter().flat_map(texts).collect()
    }

    /// The changes to the index entries since the fields were `before`. Fields whose JSON is the same aren't
    /// parsed.
    pub fn difference(&self, before: &Self) -> FieldDifference {
        let mut difference = FieldDifference::default();
        if self == before {
            return difference;
        }
        let (old, new) = (before.raw(), self.raw());
        let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for key in keys {
            let (old, new) = (old.get(key).map(|json| json.get()), new.get(key).map(|json| json.get()));
            if old == new {
                continue;
            }
            let (old, new) = (texts_in(old), texts_in(new));
            let pair = |text: &String| (key.clone(), text.clone());
            difference.removed.extend(old.iter().filter(|text| !new.contains(text)).map(pair));
            difference.added.extend(new.iter().filter(|text| !old.contains(text)).map(pair));
        }
        difference
    }

    fn raw(&self) -> BTreeMap<String, &RawValue> {
        serde_json::from_str(&self.json).unwrap_or_default()
    }

    /// The fields after a merge: `null` deletes its key, other values replace the old ones entirely, and keys
    /// not mentioned stay. The limits apply to the result.
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
        Ok(Self { json: text })
    }
}

/// The index texts of a field's JSON; none if there is no such field.
fn texts_in(json: Option<&str>) -> Vec<String> {
    let value: Option<Value> = json.and_then(|json| serde_json::from_str(json).ok());
    value.as_ref().map(field_index::texts_of).unwrap_or_default()
}

/// The custom fields of a request: keys and values are checked but not yet merged.
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

    #[test]
    fn the_difference_is_what_changed_in_the_index() {
        let fields = |json: &str| CustomFields::from_stored(json.to_owned());
        let owned = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect()
        };
        let before = fields(r#"{"plan":"pro","seats":3,"tags":["a","b"]}"#);
        type Pairs<'a> = &'a [(&'a str, &'a str)];
        let table: [(&str, Pairs, Pairs); 4] = [
            (r#"{"plan":"pro","seats":3,"tags":["a","b"]}"#, &[], &[]),
            (r#"{"plan":"PRO","seats":3.0,"tags":["b","a","a"]}"#, &[], &[]),
            (
                r#"{"new":{},"seats":4,"tags":["b","c"]}"#,
                &[("plan", "spro"), ("seats", "n3"), ("tags", "sa")],
                &[("new", ""), ("seats", "n4"), ("tags", "sc")],
            ),
            ("{}", &[("plan", "spro"), ("seats", "n3"), ("tags", "sa"), ("tags", "sb")], &[]),
        ];
        for (after, removed, added) in table {
            let expected = FieldDifference { removed: owned(removed), added: owned(added) };
            assert_eq!(fields(after).difference(&before), expected, "{after}");
        }
    }

    fn any_fields() -> impl Strategy<Value = Map<String, Value>> {
        let value = prop_oneof![
            Just(Value::Null),
            (0..4).prop_map(|number| json!(number)),
            "[a-c]{0,1}".prop_map(|text| json!(text)),
            proptest::collection::vec(0..3, 0..3).prop_map(|numbers| json!(numbers)),
        ];
        proptest::collection::btree_map("[a-d]", value, 0..5).prop_map(|map| map.into_iter().collect())
    }

    proptest! {
        #[test]
        fn the_index_and_its_difference_agree(kept in any_fields(), changes in proptest::collection::vec(any_fields(), 0..4)) {
            let kept = CustomFields::default().merged(&FieldChange(kept)).unwrap();
            let mut fields = kept.clone();
            for change in changes {
                fields = fields.merged(&FieldChange(change)).unwrap();
            }
            let mut index: BTreeSet<(String, String)> = kept.index().into_iter().collect();
            let FieldDifference { removed, added } = fields.difference(&kept);
            for pair in removed {
                prop_assert!(index.remove(&pair));
            }
            for pair in added {
                prop_assert!(index.insert(pair));
            }
            prop_assert_eq!(index.into_iter().collect::<Vec<_>>(), fields.index());
        }

        #[test]
        fn merging_twice_is_merging_once(keys in proptest::collection::btree_map("[a-d]{1,2}", proptest::option::of(0..9), 0..6)) {
            let sent: Map<String, Value> = keys.into_iter().map(|(key, value)| (key, json!(value))).collect();
            let sent = FieldChange(sent);
            let once = CustomFields::default().merged(&sent).unwrap();
            prop_assert_eq!(once.merged(&sent).unwrap(), once);
        }
    }
}

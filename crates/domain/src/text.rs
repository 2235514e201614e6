//! Text from outside: its length limits, forbidden characters, and folding for search.

use serde_json::Value;

use crate::invalid::Fault;

/// Length limits for a text, in characters (Unicode scalar values).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Length {
    pub min: usize,
    pub max: usize,
}

impl Length {
    pub const fn up_to(max: usize) -> Self {
        Self { min: 1, max }
    }

    #[must_use]
    pub const fn or_empty(self) -> Self {
        Self { min: 0, max: self.max }
    }

    pub fn check(self, text: &str) -> Result<(), Fault> {
        refuse_nul(text)?;
        // A text has at most as many characters as bytes, so short texts don't have to be counted.
        if text.len() > self.max && text.chars().count() > self.max {
            return Err(Fault::new("too_long", format!("must be at most {} characters", self.max)));
        }
        if text.len() < self.min {
            return Err(Fault::new("empty", "must not be empty"));
        }
        Ok(())
    }
}

/// Not every engine can store a NUL, so none is accepted.
pub fn refuse_nul(text: &str) -> Result<(), Fault> {
    if text.contains('\0') {
        return Err(Fault::new("nul_character", "must not contain the NUL character"));
    }
    Ok(())
}

/// Rejects a NUL anywhere inside a JSON value, including member names.
pub fn refuse_nul_within(value: &Value) -> Result<(), Fault> {
    match value {
        Value::String(text) => refuse_nul(text),
        Value::Array(items) => items.iter().try_for_each(refuse_nul_within),
        Value::Object(map) => map.iter().try_for_each(|(key, value)| {
            refuse_nul(key)?;
            refuse_nul_within(value)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

/// Lower case for comparison, done here so that it is the same on every engine.
pub fn fold(text: &str) -> String {
    text.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lengths_are_counted_in_characters() {
        let length = Length::up_to(3);
        assert!(length.check("äöü").is_ok());
        assert_eq!(length.check("abcd").unwrap_err().code, "too_long");
        assert_eq!(length.check("").unwrap_err().code, "empty");
        assert!(length.or_empty().check("").is_ok());
    }

    #[test]
    fn nul_is_found_at_any_depth() {
        assert!(refuse_nul_within(&json!({"a": ["fine", {"b": 1}]})).is_ok());
        assert_eq!(refuse_nul_within(&json!({"a": ["x\0"]})).unwrap_err().code, "nul_character");
        assert_eq!(refuse_nul_within(&json!([{"a\0": 1}])).unwrap_err().code, "nul_character");
    }
}

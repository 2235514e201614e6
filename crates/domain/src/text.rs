//! Text from outside: its length limits, forbidden and invisible characters, and folding for search.

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

/// Characters that show nothing, besides white space and control characters: format characters, fillers and letters
/// that are blank. In order, both ends included. Format characters that are drawn, such as the Arabic number signs,
/// are not listed.
const INVISIBLE: [(char, char); 20] = [
    // Soft hyphen.
    ('\u{ad}', '\u{ad}'),
    // Combining grapheme joiner.
    ('\u{34f}', '\u{34f}'),
    // Arabic letter mark.
    ('\u{61c}', '\u{61c}'),
    // Hangul fillers.
    ('\u{115f}', '\u{1160}'),
    // Khmer inherent vowels.
    ('\u{17b4}', '\u{17b5}'),
    // Mongolian variation selectors and vowel separator.
    ('\u{180b}', '\u{180f}'),
    // Zero-width space, joiners and marks of direction.
    ('\u{200b}', '\u{200f}'),
    // Embeddings and overrides of direction.
    ('\u{202a}', '\u{202e}'),
    // Word joiner, invisible operators, isolates, and deprecated format characters.
    ('\u{2060}', '\u{206f}'),
    // Blank Braille pattern.
    ('\u{2800}', '\u{2800}'),
    // Hangul filler.
    ('\u{3164}', '\u{3164}'),
    // Variation selectors.
    ('\u{fe00}', '\u{fe0f}'),
    // Byte order mark.
    ('\u{feff}', '\u{feff}'),
    // Half-width Hangul filler.
    ('\u{ffa0}', '\u{ffa0}'),
    // Reserved for format characters, and interlinear annotations.
    ('\u{fff0}', '\u{fffb}'),
    // Egyptian hieroglyph joiners and brackets.
    ('\u{13430}', '\u{1343f}'),
    // Shorthand format characters.
    ('\u{1bca0}', '\u{1bca3}'),
    // Musical null note head.
    ('\u{1d159}', '\u{1d159}'),
    // Musical format characters.
    ('\u{1d173}', '\u{1d17a}'),
    // Tags, further variation selectors, and what is reserved for format characters.
    ('\u{e0000}', '\u{e0fff}'),
];

fn is_invisible(letter: char) -> bool {
    letter.is_whitespace()
        || letter.is_control()
        || (!letter.is_ascii() && INVISIBLE.iter().any(|(first, last)| (*first..=*last).contains(&letter)))
}

/// Whether a person could see any of it.
pub fn is_visible(text: &str) -> bool {
    !text.chars().all(is_invisible)
}

/// Refuses a text that nobody can see.
pub fn refuse_invisible(text: &str) -> Result<(), Fault> {
    if is_visible(text) {
        return Ok(());
    }
    Err(Fault::new("invisible", "must contain at least one visible character"))
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
    fn a_text_is_visible_if_one_of_its_characters_is() {
        let invisible = [
            "",
            " ",
            "\t\r\n\u{b}\u{85}",
            "\u{a0}\u{1680}\u{2003}\u{2028}\u{202f}\u{205f}\u{3000}",
            "\u{1}\u{1b}\u{7f}\u{9f}",
            "\u{ad}",
            "\u{34f}",
            "\u{61c}",
            "\u{115f}\u{1160}",
            "\u{17b4}\u{17b5}",
            "\u{180b}\u{180e}\u{180f}",
            "\u{200b}\u{200c}\u{200d}\u{200e}\u{200f}",
            "\u{202a}\u{202e}",
            "\u{2060}\u{2064}\u{2066}\u{2069}\u{206f}",
            "\u{2800}",
            "\u{3164}",
            "\u{fe00}\u{fe0f}",
            "\u{feff}",
            "\u{ffa0}",
            "\u{fff9}\u{fffb}",
            "\u{1d159}\u{1d173}",
            "\u{e0001}\u{e0020}\u{e01ef}",
            " \u{3164}\u{200b} \u{feff}",
        ];
        for text in invisible {
            assert!(!is_visible(text), "{text:?}");
            assert_eq!(refuse_invisible(text).unwrap_err().code, "invisible", "{text:?}");
        }
        let visible =
            ["a", " a ", "\u{200b}a", "0", "-", ".", "é", "e\u{301}", "王", "ㄱ", "한", "ا", "🦊", "\u{600}"];
        for text in visible {
            assert!(is_visible(text), "{text:?}");
            assert_eq!(refuse_invisible(text), Ok(()), "{text:?}");
        }
    }

    #[test]
    fn the_table_of_invisible_characters_is_in_order() {
        assert!(INVISIBLE.iter().all(|(first, last)| first <= last));
        assert!(INVISIBLE.windows(2).all(|pair| pair[0].1 < pair[1].0));
    }

    #[test]
    fn nul_is_found_at_any_depth() {
        assert!(refuse_nul_within(&json!({"a": ["fine", {"b": 1}]})).is_ok());
        assert_eq!(refuse_nul_within(&json!({"a": ["x\0"]})).unwrap_err().code, "nul_character");
        assert_eq!(refuse_nul_within(&json!([{"a\0": 1}])).unwrap_err().code, "nul_character");
    }
}

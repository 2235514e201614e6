//! How custom fields are searched: the texts under which storage indexes a field's values.
//!
//! Each text begins with the kind of the value, so the numbers 1.10 and 1.1 are equal but the strings "1.10"
//! and "1.1" are not. Strings are folded and truncated; numbers are written in one canonical form. A value
//! without a text (an object, an empty array) is indexed as the empty text: the field exists.

use serde_json::Value;

use crate::text::fold;

/// How many characters of a string are compared.
pub const MAX_VALUE_CHARS: usize = 200;
/// How many elements of an array are indexed.
pub const MAX_ELEMENTS: usize = 50;
/// Numbers with more digits than this are written with an exponent.
const MAX_PLAIN_DIGITS: i64 = 40;

const TEXT: char = 's';
const NUMBER: char = 'n';
const BOOLEAN: char = 'b';
const PRESENT: &str = "";

/// The index texts of a stored value, sorted and without duplicates. Null is never stored, so it has none.
pub fn texts_of(value: &Value) -> Vec<String> {
    let mut texts: Vec<String> = match value {
        Value::Null => return Vec::new(),
        Value::Array(elements) => elements.iter().take(MAX_ELEMENTS).filter_map(scalar).collect(),
        value => scalar(value).into_iter().collect(),
    };
    if texts.is_empty() {
        texts.push(PRESENT.to_owned());
    }
    texts.sort_unstable();
    texts.dedup();
    texts
}

/// The index texts that match a value in a filter: as a string, and as the number or boolean it spells.
pub fn texts_asked(asked: &str) -> Vec<String> {
    let mut texts = vec![of_text(asked)];
    texts.extend(canonical_number(asked).map(|number| tagged(NUMBER, &number)));
    if let "true" | "false" = asked.to_ascii_lowercase().as_str() {
        texts.push(tagged(BOOLEAN, &asked.to_ascii_lowercase()));
    }
    texts
}

/// The prefix of the index texts of all strings that begin with this one.
pub fn beginning(asked: &str) -> String {
    of_text(asked)
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(of_text(text)),
        Value::Number(number) => {
            let literal = number.to_string();
            let number = canonical_number(&literal).unwrap_or(literal);
            Some(tagged(NUMBER, &number))
        }
        Value::Bool(flag) => Some(tagged(BOOLEAN, if *flag { "true" } else { "false" })),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn of_text(text: &str) -> String {
    tagged(TEXT, &fold(text))
}

fn tagged(kind: char, text: &str) -> String {
    std::iter::once(kind).chain(text.chars().take(MAX_VALUE_CHARS)).collect()
}

/// A JSON number in canonical form: 12, 12.0 and 1.2e1 are the same. `None` if it isn't a JSON number.
fn canonical_number(literal: &str) -> Option<String> {
    let (negative, unsigned) = match literal.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, literal),
    };
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], exponent(&unsigned[at + 1..])?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) if is_digits(fraction) => (whole, fraction),
        Some(_) => return None,
        None => (mantissa, ""),
    };
    if !is_digits(whole) || (whole.len() > 1 && whole.starts_with('0')) {
        return None;
    }
    let all = format!("{whole}{fraction}");
    let digits = all.trim_end_matches('0');
    let dropped = i64::try_from(all.len() - digits.len()).ok()?;
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some("0".to_owned());
    }
    let power = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?.checked_add(dropped)?;
    let sign = if negative { "-" } else { "" };
    Some(format!("{sign}{}", written_out(digits, power)))
}

fn exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if is_digits(digits) { text.strip_prefix('+').unwrap_or(text).parse().ok() } else { None }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// `digits` times ten to the `power`; the digits neither begin nor end with a zero.
fn written_out(digits: &str, power: i64) -> String {
    let places = usize::try_from(power.unsigned_abs()).unwrap_or(usize::MAX);
    if power.abs() > MAX_PLAIN_DIGITS {
        return format!("{digits}e{power}");
    }
    if power >= 0 {
        return format!("{digits}{}", "0".repeat(places));
    }
    if places < digits.len() {
        let (whole, fraction) = digits.split_at(digits.len() - places);
        return format!("{whole}.{fraction}");
    }
    format!("0.{}{digits}", "0".repeat(places - digits.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn is_found(kept: &Value, asked: &str) -> bool {
        let texts = texts_of(kept);
        texts_asked(asked).iter().any(|asked| texts.contains(asked))
    }

    #[test]
    fn values_are_found_by_what_they_say() {
        let table = [
            (json!("Pro"), "pro", true),
            (json!("PRO"), "pRo", true),
            (json!("pro"), "pr", false),
            (json!("Łódź"), "ŁÓDŹ", true),
            (json!(""), "", true),
            (json!(12), "12", true),
            (json!("12"), "12", true),
            (json!(12), "12.0", true),
            (json!("1.10"), "1.1", false),
            (json!("1.10"), "1.10", true),
            (json!("007"), "7", false),
            (json!(7), "007", false),
            (json!(true), "true", true),
            (json!(true), "TRUE", true),
            (json!("true"), "true", true),
            (json!(false), "true", false),
            (json!(["de", "AT", 7]), "at", true),
            (json!(["de", "AT", 7]), "7", true),
            (json!(["de", ["at"]]), "at", false),
            (json!({"a": "x"}), "x", false),
            (json!({"a": "x"}), "", false),
        ];
        for (kept, asked, found) in table {
            assert_eq!(is_found(&kept, asked), found, "{kept} by {asked:?}");
        }
    }

    #[test]
    fn every_kept_value_exists() {
        for kept in [json!(""), json!(0), json!(false), json!([]), json!({}), json!([null, {}])] {
            assert!(!texts_of(&kept).is_empty(), "{kept}");
        }
        assert!(texts_of(&Value::Null).is_empty());
    }

    #[test]
    fn numbers_have_one_spelling() {
        let same = [
            ["0", "-0", "0.00", "0e9"],
            ["12", "12.0", "1.2e1", "120E-1"],
            ["-0.5", "-5e-1", "-0.50", "-0.5e0"],
            ["1000", "1e3", "1E+3", "1000.000"],
            ["0.001", "1e-3", "0.0010", "10e-4"],
        ];
        for [first, rest @ ..] in same {
            let canonical = canonical_number(first).unwrap();
            for other in rest {
                assert_eq!(canonical_number(other).unwrap(), canonical, "{other}");
            }
        }
        assert_eq!(canonical_number("1e400").unwrap(), canonical_number("10e399").unwrap());
        assert_eq!(
            canonical_number("123456789012345678901234567890.10").unwrap(),
            "123456789012345678901234567890.1"
        );
        for text in
            ["", "-", "007", "1.", ".5", "1e", "1e+", "0x1", "1 ", "+1", "NaN", "1e99999999999999999999"]
        {
            assert_eq!(canonical_number(text), None, "{text:?}");
        }
    }

    #[test]
    fn long_texts_and_arrays_are_cut() {
        let long = "ä".repeat(500);
        let texts = texts_of(&json!(long));
        assert_eq!(texts[0].chars().count(), 1 + MAX_VALUE_CHARS);
        assert_eq!(texts_asked(&long)[0], texts[0]);
        let many: Vec<usize> = (0..1_000).collect();
        assert_eq!(texts_of(&json!(many)).len(), MAX_ELEMENTS);
    }

    proptest! {
        #[test]
        fn a_kept_text_is_found_by_itself_and_by_its_beginning(text in ".{1,60}", cut in 0_usize..60) {
            prop_assert!(is_found(&json!(text), &text));
            let start: String = text.chars().take(cut).collect();
            // Folding depends on neighbouring characters (final sigma), so the prefix of a text may fold
            // differently.
            if fold(&text).starts_with(&fold(&start)) {
                prop_assert!(texts_of(&json!(text))[0].starts_with(&beginning(&start)));
            }
        }

        #[test]
        fn any_number_is_found_by_its_literal(digits in "-?[1-9][0-9]{0,20}(\\.[0-9]{1,20})?(e-?[0-9]{1,3})?") {
            let kept: Value = serde_json::from_str(&digits).unwrap();
            prop_assert!(is_found(&kept, &digits));
            prop_assert!(is_found(&kept, &kept.to_string()));
        }

        #[test]
        fn any_text_is_a_number_or_not(text in "[-+0-9eE.]{0,12}") {
            let is_number = serde_json::from_str::<serde_json::Number>(&text).is_ok();
            prop_assert_eq!(canonical_number(&text).is_some(), is_number);
        }
    }
}

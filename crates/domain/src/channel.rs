//! Channels and the promo codes that attribute accounts to them.

use serde_json::{Map, Value};

use crate::id::ChannelId;
use crate::invalid::{Fault, Invalid, Members, as_bool, as_str, as_text};
use crate::text::Length;
use crate::time::Time;

pub const MAX_CODE_CHARS: usize = 64;
pub const MAX_NAME: Length = Length::up_to(120);

/// A promo code as the company spells it: at most 64 letters, digits, hyphens and underscores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromoCode(String);

impl PromoCode {
    pub fn parse(text: &str) -> Result<Self, Fault> {
        if text.is_empty() {
            return Err(Fault::new("empty", "must not be empty"));
        }
        if text.chars().count() > MAX_CODE_CHARS {
            return Err(Fault::new("too_long", format!("must be at most {MAX_CODE_CHARS} characters")));
        }
        if !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_') {
            return Err(Fault::new(
                "bad_characters",
                "must contain only letters, digits, hyphens and underscores",
            ));
        }
        Ok(Self(text.to_owned()))
    }

    pub fn from_json(value: &Value) -> Result<Self, Fault> {
        Self::parse(as_str(value)?)
    }

    /// From storage, which holds only parsed codes.
    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The form used for comparison: codes are unique per company and matched case-insensitively.
    pub fn folded(&self) -> String {
        self.0.to_ascii_lowercase()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    pub id: ChannelId,
    pub name: String,
    pub created_at: Time,
}

/// A code and the channel it attributes accounts to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelCode {
    pub channel: ChannelId,
    pub code: PromoCode,
    pub archived_at: Option<Time>,
    pub created_at: Time,
}

/// Parses the name of a channel.
pub fn parse_name(body: &Map<String, Value>) -> Result<String, Invalid> {
    let mut members = Members::of(body);
    let name = members.required("name", |value| as_text(value, MAX_NAME));
    members.refuse_unknown();
    members.build(|| name)
}

/// Parses a code of a channel.
pub fn parse_code(body: &Map<String, Value>) -> Result<PromoCode, Invalid> {
    let mut members = Members::of(body);
    let code = members.required("code", PromoCode::from_json);
    members.refuse_unknown();
    members.build(|| code)
}

/// Parses whether a code is to be archived.
pub fn parse_archived(body: &Map<String, Value>) -> Result<bool, Invalid> {
    let mut members = Members::of(body);
    let archived = members.required("archived", as_bool);
    members.refuse_unknown();
    members.build(|| archived)
}

/// The live code named in a request, and its channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribution {
    pub code: PromoCode,
    pub channel: ChannelRef,
}

/// The channel an account is attributed to.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
pub struct ChannelRef {
    /// The channel's id.
    #[schema(value_type = String, example = "chn_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    pub id: ChannelId,
    /// The channel's name.
    #[schema(example = "Spring fair")]
    pub name: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn codes_follow_the_limits_table() {
        let longest = "a".repeat(64);
        for text in ["SPRING_26", "a", "x-1", longest.as_str()] {
            assert_eq!(PromoCode::parse(text).unwrap().as_str(), text);
        }
        let table = [
            ("", "empty"),
            ("has space", "bad_characters"),
            ("ümlaut", "bad_characters"),
            ("a.b", "bad_characters"),
            ("a\0", "bad_characters"),
        ];
        for (text, code) in table {
            assert_eq!(PromoCode::parse(text).unwrap_err().code, code, "{text:?}");
        }
        assert_eq!(PromoCode::parse(&"a".repeat(65)).unwrap_err().code, "too_long");
    }

    #[test]
    fn every_request_needs_its_member_and_takes_no_other() {
        let code = |invalid: Invalid| invalid.0[0].code;
        let name = |body: &Value| parse_name(body.as_object().unwrap()).map(|_| ()).map_err(code);
        let promo = |body: &Value| parse_code(body.as_object().unwrap()).map(|_| ()).map_err(code);
        let archived = |body: &Value| parse_archived(body.as_object().unwrap()).map(|_| ()).map_err(code);
        let table = [
            (json!({"name": "Spring fair"}), Ok(()), Err("required"), Err("required")),
            (json!({"name": ""}), Err("empty"), Err("required"), Err("required")),
            (json!({"name": "x".repeat(121)}), Err("too_long"), Err("required"), Err("required")),
            (json!({"code": "SPRING_26"}), Err("required"), Ok(()), Err("required")),
            (json!({"code": "a b"}), Err("required"), Err("bad_characters"), Err("required")),
            (json!({"archived": false}), Err("required"), Err("required"), Ok(())),
            (json!({"archived": "no"}), Err("required"), Err("required"), Err("wrong_type")),
            (
                json!({"name": "a", "code": "b", "archived": true}),
                Err("unknown_member"),
                Err("unknown_member"),
                Err("unknown_member"),
            ),
        ];
        for (body, a_name, a_code, a_flag) in table {
            assert_eq!((name(&body), promo(&body), archived(&body)), (a_name, a_code, a_flag), "{body}");
        }
    }

    #[test]
    fn codes_compare_without_case() {
        let folded = |text: &str| PromoCode::parse(text).unwrap().folded();
        assert_eq!(folded("Spring_26"), folded("SPRING_26"));
    }
}

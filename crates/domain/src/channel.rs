//! Channels and the promo codes that attribute accounts to them.

use serde_json::Value;

use crate::id::ChannelId;
use crate::invalid::{Fault, as_str};
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

/// The live code named in a request, and its channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribution {
    pub code: PromoCode,
    pub channel: ChannelRef,
}

/// A channel as shown on accounts.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ChannelRef {
    pub id: ChannelId,
    pub name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn codes_compare_without_case() {
        let folded = |text: &str| PromoCode::parse(text).unwrap().folded();
        assert_eq!(folded("Spring_26"), folded("SPRING_26"));
    }
}

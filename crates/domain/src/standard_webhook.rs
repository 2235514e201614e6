//! Signatures as Standard Webhooks (<https://www.standardwebhooks.com>) defines them, for receivers that use one of its
//! libraries: `webhook-signature` is `v1,` and the base64 HMAC-SHA256 of `id.timestamp.body`, where the id and the
//! timestamp are those of `webhook-id` and `webhook-timestamp`. This module formats and parses them; `app` signs.

use std::borrow::Cow;
use std::fmt;

use data_encoding::BASE64;
use subtle::ConstantTimeEq as _;

use crate::signature::value_of;
use crate::time::Time;

/// The event's id: the same in every attempt and redelivery.
pub const ID_HEADER: &str = "webhook-id";
/// When the attempt began, in seconds since 1970.
pub const TIMESTAMP_HEADER: &str = "webhook-timestamp";
pub const SIGNATURE_HEADER: &str = "webhook-signature";
/// How far a timestamp may be from the receiver's clock. The libraries have the same limit.
pub const TOLERANCE_SECONDS: i64 = 300;

const VERSION: &str = "v1,";
const SECRET_PREFIX: &str = "whsec_";
const BYTES: usize = 32;
const BASE64_CHARS: usize = 44;
/// As seconds this is the year 5138; as milliseconds, 1973.
const FIRST_MILLISECONDS: i64 = 100_000_000_000;

/// One signature of `webhook-signature`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature([u8; BYTES]);

/// Why headers aren't those of a signed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// No signature begins with `v1,`.
    NoVersion,
    /// `v1,` isn't followed by 32 bytes in base64.
    NotBase64,
    NoId,
    NoTimestamp,
    /// The timestamp isn't a whole number.
    NotSeconds,
    /// The timestamp is far too large for seconds.
    Milliseconds,
}

impl Signature {
    pub const fn new(bytes: [u8; BYTES]) -> Self {
        Self(bytes)
    }

    /// Compares in constant time.
    pub fn matches(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }

    fn parse(base64: &str) -> Result<Self, Malformed> {
        let bytes = BASE64.decode(base64.as_bytes()).map_err(|_| Malformed::NotBase64)?;
        bytes.try_into().map(Self).map_err(|_| Malformed::NotBase64)
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0; BASE64_CHARS];
        BASE64.encode_mut(&self.0, &mut text);
        f.write_str(VERSION)?;
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

/// Parses `webhook-signature`, optionally preceded by its name. A sender that has several valid secrets signs with each of
/// them, and separates the signatures by spaces. Signatures of other versions are left out.
pub fn parse_signatures(text: &str) -> Result<Vec<Signature>, Malformed> {
    let ours = value_of(text).split_whitespace().filter_map(|signature| signature.strip_prefix(VERSION));
    let signatures = ours.map(Signature::parse).collect::<Result<Vec<_>, _>>()?;
    if signatures.is_empty() { Err(Malformed::NoVersion) } else { Ok(signatures) }
}

/// Parses `webhook-id`, optionally preceded by its name.
pub fn parse_id(text: &str) -> Result<&str, Malformed> {
    Some(value_of(text)).filter(|id| !id.is_empty()).ok_or(Malformed::NoId)
}

/// Parses `webhook-timestamp`, optionally preceded by its name.
pub fn parse_timestamp(text: &str) -> Result<i64, Malformed> {
    let value = value_of(text);
    if value.is_empty() {
        return Err(Malformed::NoTimestamp);
    }
    match value.parse::<i64>() {
        Ok(seconds) if (0..FIRST_MILLISECONDS).contains(&seconds) => Ok(seconds),
        Ok(seconds) if seconds >= FIRST_MILLISECONDS => Err(Malformed::Milliseconds),
        Ok(_) | Err(_) => Err(Malformed::NotSeconds),
    }
}

/// How a timestamp compares with the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Age {
    Fresh,
    /// It is this many seconds old, which is more than a receiver accepts.
    Old(i64),
    /// It is this many seconds ahead, which is more than a receiver accepts.
    Ahead(i64),
}

impl Age {
    pub const fn of(timestamp: i64, now: Time) -> Self {
        let old = now.unix_seconds() - timestamp;
        if old > TOLERANCE_SECONDS {
            Self::Old(old)
        } else if -old > TOLERANCE_SECONDS {
            Self::Ahead(-old)
        } else {
            Self::Fresh
        }
    }
}

/// A secret in the form that the libraries take: `whsec_` and the base64 of its bytes.
pub fn library_secret(secret: &str) -> String {
    format!("{SECRET_PREFIX}{}", BASE64.encode(secret.as_bytes()))
}

/// Whether a secret has the form that the libraries take.
pub fn is_library_secret(secret: &str) -> bool {
    secret.starts_with(SECRET_PREFIX)
}

/// The key that signs, whether the secret is given as it was shown or in the form for libraries.
pub fn key(secret: &str) -> Cow<'_, [u8]> {
    let decoded = secret.strip_prefix(SECRET_PREFIX).and_then(|base64| BASE64.decode(base64.as_bytes()).ok());
    decoded.map_or(Cow::Borrowed(secret.as_bytes()), Cow::Owned)
}

/// The secret as it was shown, whichever form it is given in.
pub fn shown_secret(secret: &str) -> String {
    String::from_utf8_lossy(&key(secret)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_read_back_in_any_number() {
        let (one, two) = (Signature::new([0xab; 32]), Signature::new([7; 32]));
        assert!(one.matches(&one) && !one.matches(&two));
        assert_eq!(one.to_string(), "v1,q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=");
        let table = [
            (one.to_string(), Ok(vec![one])),
            (format!(" webhook-signature: {one}\n"), Ok(vec![one])),
            (format!("{one} {two}"), Ok(vec![one, two])),
            (format!("v1a,abc {two}"), Ok(vec![two])),
            (String::new(), Err(Malformed::NoVersion)),
            ("webhook-signature:".to_owned(), Err(Malformed::NoVersion)),
            ("v1a,abc".to_owned(), Err(Malformed::NoVersion)),
            (one.to_string()[3..].to_owned(), Err(Malformed::NoVersion)),
            (one.to_string()[..20].to_owned(), Err(Malformed::NotBase64)),
            ("v1,AAAA".to_owned(), Err(Malformed::NotBase64)),
        ];
        for (text, expected) in table {
            assert_eq!(parse_signatures(&text), expected, "{text}");
        }
    }

    #[test]
    fn an_id_is_any_text() {
        let table =
            [("evt_1", Ok("evt_1")), ("webhook-id: evt_1 ", Ok("evt_1")), (" ", Err(Malformed::NoId))];
        for (text, expected) in table {
            assert_eq!(parse_id(text), expected, "{text}");
        }
    }

    #[test]
    fn a_timestamp_is_whole_seconds() {
        let table = [
            ("1800000000", Ok(1_800_000_000)),
            (" webhook-timestamp: 1800000000 ", Ok(1_800_000_000)),
            (" ", Err(Malformed::NoTimestamp)),
            ("1800000000000", Err(Malformed::Milliseconds)),
            ("1800000000.5", Err(Malformed::NotSeconds)),
            ("-5", Err(Malformed::NotSeconds)),
            ("2027-01-15T08:00", Err(Malformed::NotSeconds)),
        ];
        for (text, expected) in table {
            assert_eq!(parse_timestamp(text), expected, "{text}");
        }
    }

    #[test]
    fn a_receiver_accepts_five_minutes_either_way() {
        let now = Time::from_micros(1_800_000_000_999_999);
        let table = [
            (0, Age::Fresh),
            (-300, Age::Fresh),
            (300, Age::Fresh),
            (-301, Age::Old(301)),
            (301, Age::Ahead(301)),
        ];
        for (after, expected) in table {
            assert_eq!(Age::of(1_800_000_000 + after, now), expected, "{after}");
        }
    }

    #[test]
    fn both_forms_of_a_secret_are_one_key() {
        let shown = "whs_0123";
        assert_eq!(library_secret(shown), "whsec_d2hzXzAxMjM=");
        let table = [
            (shown, b"whs_0123".as_slice()),
            ("whsec_d2hzXzAxMjM=", b"whs_0123"),
            ("whsec_not base64", b"whsec_not base64"),
        ];
        for (secret, expected) in table {
            assert_eq!(key(secret).as_ref(), expected, "{secret}");
        }
        assert!(is_library_secret(&library_secret(shown)) && !is_library_secret(shown));
        assert_eq!([shown_secret(shown), shown_secret(&library_secret(shown))], [shown, shown]);
    }
}

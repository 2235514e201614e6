//! Signatures of deliveries: `sha256=` and the lower-case hexadecimal HMAC-SHA256 of the raw body. This
//! module formats and parses them; `app` decides what is signed with which key. A delivery carries a second
//! signature beside this one: `standard_webhook`.

use std::fmt;

use data_encoding::HEXLOWER;

use crate::standard_webhook;

const SCHEME: &str = "sha256=";
const BYTES: usize = 32;

/// The two ways in which a delivery is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// `X-Service-Signature`, over the body.
    Service,
    /// `webhook-signature`, over the event's id, a timestamp and the body.
    Standard,
}

impl Scheme {
    /// The header that holds the signature.
    pub const fn header(self) -> &'static str {
        match self {
            Self::Service => "X-Service-Signature",
            Self::Standard => standard_webhook::SIGNATURE_HEADER,
        }
    }

    /// The scheme that a header's value, optionally preceded by its name, is meant for.
    pub fn of(text: &str) -> Self {
        let name = text.split_once(':').map_or("", |(name, _)| name.trim());
        let is_standard = name.eq_ignore_ascii_case(standard_webhook::SIGNATURE_HEADER)
            || value_of(text).split_whitespace().any(|signature| signature.starts_with("v1"));
        if is_standard { Self::Standard } else { Self::Service }
    }
}

/// The value of a header, which its name may precede.
pub(crate) fn value_of(text: &str) -> &str {
    let text = text.trim();
    let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-');
    text.split_once(':').filter(|(name, _)| is_name(name)).map_or(text, |(_, value)| value.trim())
}

/// The value of `X-Service-Signature`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature([u8; BYTES]);

/// Why a text isn't a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    Empty,
    /// It does not begin with `sha256=`.
    NoScheme,
    /// This many characters follow the scheme instead of 64.
    Length(usize),
    UpperCase,
    NotHexadecimal,
}

impl Signature {
    pub const fn new(bytes: [u8; BYTES]) -> Self {
        Self(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; BYTES] {
        &self.0
    }

    /// Parses a header's value, optionally preceded by its name.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let value = value_of(text);
        if value.is_empty() {
            return Err(Malformed::Empty);
        }
        let hex = value.strip_prefix(SCHEME).ok_or(Malformed::NoScheme)?;
        let length = hex.chars().count();
        if length != 2 * BYTES {
            return Err(Malformed::Length(length));
        }
        if hex.chars().all(|letter| letter.is_ascii_hexdigit())
            && hex.chars().any(|letter| letter.is_ascii_uppercase())
        {
            return Err(Malformed::UpperCase);
        }
        let bytes = HEXLOWER.decode(hex.as_bytes()).map_err(|_| Malformed::NotHexadecimal)?;
        bytes.try_into().map(Self).map_err(|_| Malformed::NotHexadecimal)
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0; 2 * BYTES];
        HEXLOWER.encode_mut(&self.0, &mut text);
        f.write_str(SCHEME)?;
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_reads_back_and_says_what_is_wrong_with_it() {
        let signature = Signature::new([0xab; 32]);
        let text = signature.to_string();
        assert_eq!(text, format!("sha256={}", "ab".repeat(32)));
        assert_eq!(Signature::parse(&text), Ok(signature));
        assert_eq!(Signature::parse(&format!(" X-Service-Signature: {text}\n")), Ok(signature));
        let table = [
            (" ".to_owned(), Malformed::Empty),
            ("X-Service-Signature:".to_owned(), Malformed::Empty),
            ("ab".repeat(32), Malformed::NoScheme),
            ("sha256=abcd".to_owned(), Malformed::Length(4)),
            (format!("sha256={}", "AB".repeat(32)), Malformed::UpperCase),
            (format!("sha256={}", "xy".repeat(32)), Malformed::NotHexadecimal),
        ];
        for (text, expected) in table {
            assert_eq!(Signature::parse(&text), Err(expected), "{text}");
        }
    }

    #[test]
    fn a_header_tells_its_scheme() {
        let table = [
            ("sha256=ab", Scheme::Service),
            ("X-Service-Signature: sha256=ab", Scheme::Service),
            ("v1,AAAA", Scheme::Standard),
            ("v1a,AAAA v1,AAAA", Scheme::Standard),
            ("Webhook-Signature: ", Scheme::Standard),
            ("nonsense", Scheme::Service),
            ("", Scheme::Service),
        ];
        for (text, expected) in table {
            assert_eq!(Scheme::of(text), expected, "{text}");
        }
    }
}

//! Signatures of deliveries: `sha256=` and the lower-case hexadecimal HMAC-SHA256 of the raw body. This
//! module formats and parses them; `app` decides what is signed with which key.

use std::fmt;

use data_encoding::HEXLOWER;

const SCHEME: &str = "sha256=";
const BYTES: usize = 32;

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
        let text = text.trim();
        let value = text.split_once(':').map_or(text, |(_, value)| value.trim());
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
        write!(f, "{SCHEME}{}", HEXLOWER.encode(&self.0))
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
}

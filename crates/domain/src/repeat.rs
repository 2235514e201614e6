//! Requests that are safe to repeat: what an `Idempotency-Key` may be, which request it belongs to, and how much is kept
//! for it.

use std::fmt;

use ring::digest::{Context, SHA256};

use crate::credential::SecretHash;
use crate::id::ResponseId;
use crate::invalid::Fault;
use crate::time::Time;

pub const MAX_KEY_CHARS: usize = 255;
/// How long the response to a request is kept.
pub const KEPT_HOURS: i64 = 24;
/// The largest response that is kept. Of a larger one, only its status is.
pub const MAX_KEPT_BYTES: usize = 256 << 10;
/// A company's keys are divided into 256 shares by a hash, and each share may have so many. So the keys of a company are
/// counted by reading one share: it can always have 100,000 of them, and never more than 131,072.
pub const MAX_KEYS_OF_SHARE: i64 = 512;

/// A key that a caller chose for one request and its repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// Parses the header's value: a string in quotes, as the draft of the standard says, or the same text without them, as
    /// most clients send it. Both are the same key.
    pub fn parse(header: &str) -> Result<Self, Fault> {
        let header = header.trim_matches([' ', '\t']);
        let text = match header.strip_prefix('"') {
            Some(quoted) => unquoted(quoted)?,
            None => header.to_owned(),
        };
        if text.is_empty() {
            return Err(Fault::new("empty", "must not be empty"));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Fault::new(
                "bad_character",
                "must consist of printable ASCII characters without spaces",
            ));
        }
        if text.len() > MAX_KEY_CHARS {
            return Err(Fault::new("too_long", format!("must have at most {MAX_KEY_CHARS} characters")));
        }
        Ok(Self(text))
    }

    /// The place of the response: each credential has its own keys.
    pub fn response_of(&self, credential: &SecretHash) -> ResponseId {
        let mut hash = Context::new(&SHA256);
        hash.update(credential.as_bytes());
        hash.update(self.0.as_bytes());
        let mut id = [0; 16];
        id.copy_from_slice(&hash.finish().as_ref()[..16]);
        ResponseId::from_bytes(id)
    }
}

/// The text between the quotes; `"` and `\` have a `\` in front.
fn unquoted(quoted: &str) -> Result<String, Fault> {
    let malformed = || Fault::new("malformed", "must end with the quote that it begins with");
    let inner = quoted.strip_suffix('"').ok_or_else(malformed)?;
    let mut text = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('"' | '\\')) => text.push(escaped),
                _ => return Err(malformed()),
            },
            '"' => return Err(malformed()),
            other => text.push(other),
        }
    }
    Ok(text)
}

/// The hash of a request: two requests with the same one ask for the same thing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RequestHash([u8; 32]);

impl RequestHash {
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for RequestHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestHash(…)")
    }
}

/// Computes the hash of a request while its body arrives.
pub struct RequestHasher(Context);

impl RequestHasher {
    pub fn new(method: &str, target: &str) -> Self {
        let mut hash = Context::new(&SHA256);
        for part in [method, target] {
            hash.update(&(part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        Self(hash)
    }

    pub fn body(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn finish(self) -> RequestHash {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.0.finish().as_ref());
        RequestHash(bytes)
    }
}

/// Responses kept at this time or before are forgotten.
pub fn forgotten_at(now: Time) -> Time {
    now.plus_seconds(-KEPT_HOURS * 3_600)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_printable_text_with_or_without_quotes() {
        let longest = "k".repeat(MAX_KEY_CHARS);
        let table = [
            ("8e03978e-40d5-43dd-bc93-6894a57f9324", Ok("8e03978e-40d5-43dd-bc93-6894a57f9324")),
            (r#""8e03978e""#, Ok("8e03978e")),
            (r#"  "a\"b\\c" "#, Ok(r#"a"b\c"#)),
            ("a", Ok("a")),
            ("~!", Ok("~!")),
            (&longest, Ok(longest.as_str())),
            ("", Err("empty")),
            ("  ", Err("empty")),
            (r#""""#, Err("empty")),
            (r#"""#, Err("malformed")),
            (r#""a"#, Err("malformed")),
            (r#""a"b""#, Err("malformed")),
            (r#""a\n""#, Err("malformed")),
            (r#""a\""#, Err("malformed")),
            ("a b", Err("bad_character")),
            (r#""a b""#, Err("bad_character")),
            ("ä", Err("bad_character")),
            ("a\tb", Err("bad_character")),
        ];
        for (header, expected) in table {
            let parsed = Key::parse(header).map_err(|fault| fault.code);
            assert_eq!(parsed, expected.map(|text: &str| Key(text.to_owned())), "{header}");
        }
        let long = Key::parse(&"k".repeat(MAX_KEY_CHARS + 1)).map_err(|fault| fault.code);
        assert_eq!(long, Err("too_long"));
    }

    #[test]
    fn each_credential_has_its_own_keys() {
        let (one, other) = (SecretHash::from_bytes([1; 32]), SecretHash::from_bytes([2; 32]));
        let (a, b) = (Key::parse("a").unwrap(), Key::parse("b").unwrap());
        assert_eq!(a.response_of(&one), Key::parse(r#""a""#).unwrap().response_of(&one));
        assert_ne!(a.response_of(&one), a.response_of(&other));
        assert_ne!(a.response_of(&one), b.response_of(&one));
    }

    #[test]
    fn requests_differ_by_method_target_and_body() {
        let hash = |method: &str, target: &str, body: &[&[u8]]| {
            let mut hasher = RequestHasher::new(method, target);
            body.iter().for_each(|part| hasher.body(part));
            hasher.finish()
        };
        let one = hash("POST", "/api/a/", &[b"{}"]);
        assert_eq!(one, hash("POST", "/api/a/", &[b"{", b"}"]), "however the body arrives");
        for other in [
            hash("PUT", "/api/a/", &[b"{}"]),
            hash("POST", "/api/b/", &[b"{}"]),
            hash("POST", "/api/a/", &[b"{ }"]),
            hash("POST", "/api/a/{", &[b"}"]),
            hash("POST/", "api/a/", &[b"{}"]),
        ] {
            assert_ne!(one, other);
        }
    }
}

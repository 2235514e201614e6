//! The text form of API tokens, ingest and inbound keys, webhook secrets, sessions, and the secrets of links
//! in mail.
//!
//! `rap_` and 52 base32 characters: the company's number (8 bytes, so that a lookup knows where to look), 160
//! random bits, and a checksum that catches mistyped credentials without asking storage. Tokens and keys are
//! stored only as the SHA-256 of the whole text.

use ring::digest::{SHA256, digest};
use serde_json::{Map, Value};
use subtle::ConstantTimeEq;

use crate::company::MAX_NAME;
use crate::id::{CompanyId, CredentialId, base32};
use crate::invalid::{Invalid, Members, as_text};
use crate::member::Role;
use crate::time::Time;

const RANDOM_BYTES: usize = 20;
const CHECKSUM_BYTES: usize = 4;
const TOTAL_BYTES: usize = 8 + RANDOM_BYTES + CHECKSUM_BYTES;
/// How much of a credential settings pages may show: its prefix and this many characters.
const SHOWN_CHARS: usize = 4;

/// The purpose of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    ApiToken,
    IngestKey,
    InboundKey,
    WebhookSecret,
    /// In the link of an invitation.
    Invitation,
    /// In the link of a password reset.
    PasswordReset,
    /// In the cookie of a logged-in person.
    Session,
}

impl Kind {
    pub const ALL: [Self; 7] = [
        Self::ApiToken,
        Self::IngestKey,
        Self::InboundKey,
        Self::WebhookSecret,
        Self::Invitation,
        Self::PasswordReset,
        Self::Session,
    ];

    pub const fn prefix(self) -> &'static str {
        match self {
            Self::ApiToken => "rap_",
            Self::IngestKey => "rik_",
            Self::InboundKey => "rin_",
            Self::WebhookSecret => "whs_",
            Self::Invitation => "rjn_",
            Self::PasswordReset => "rpw_",
            Self::Session => "rse_",
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ApiToken => "api_token",
            Self::IngestKey => "ingest_key",
            Self::InboundKey => "inbound_key",
            Self::WebhookSecret => "webhook_secret",
            Self::Invitation => "invitation",
            Self::PasswordReset => "password_reset",
            Self::Session => "session",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// The SHA-256 of a credential's text, which storage keeps and looks it up by.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SecretHash([u8; 32]);

impl SecretHash {
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    pub fn matches(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl std::fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretHash(…)")
    }
}

/// A newly created credential: the only time its text is available.
pub struct Issued {
    pub text: String,
    pub hash: SecretHash,
    /// The part that may be shown later: the prefix and a few of the random characters.
    pub shown: String,
}

/// Creates a credential from the given randomness.
pub fn issue(kind: Kind, company: CompanyId, random: [u8; RANDOM_BYTES]) -> Issued {
    let mut bytes = [0; TOTAL_BYTES];
    bytes[..8].copy_from_slice(&company.0.to_be_bytes());
    bytes[8..8 + RANDOM_BYTES].copy_from_slice(&random);
    let sum = checksum(kind, &bytes[..8 + RANDOM_BYTES]);
    bytes[8 + RANDOM_BYTES..].copy_from_slice(&sum);
    let digits = base32().encode(&bytes);
    let text = format!("{}{digits}", kind.prefix());
    let shown = format!("{}…{}", kind.prefix(), &digits[digits.len() - 7 - SHOWN_CHARS..digits.len() - 7]);
    Issued { hash: hash(&text), text, shown }
}

/// A credential that a caller presented: well-formed, but not yet known to be live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Presented {
    pub kind: Kind,
    pub company: CompanyId,
    pub hash: SecretHash,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a well-formed credential of this kind")]
pub struct Malformed;

/// Parses a presented credential: prefix, length, alphabet and checksum must be correct.
pub fn read(kind: Kind, text: &str) -> Result<Presented, Malformed> {
    let digits = text.strip_prefix(kind.prefix()).ok_or(Malformed)?;
    let bytes = base32().decode(digits.as_bytes()).map_err(|_| Malformed)?;
    let bytes: [u8; TOTAL_BYTES] = bytes.try_into().map_err(|_| Malformed)?;
    let (body, sum) = bytes.split_at(8 + RANDOM_BYTES);
    if checksum(kind, body) != sum {
        return Err(Malformed);
    }
    let company = body[..8].try_into().map_err(|_| Malformed)?;
    Ok(Presented { kind, company: CompanyId(i64::from_be_bytes(company)), hash: hash(text) })
}

fn hash(text: &str) -> SecretHash {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
    SecretHash(bytes)
}

fn checksum(kind: Kind, body: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut context = ring::digest::Context::new(&SHA256);
    context.update(kind.prefix().as_bytes());
    context.update(body);
    let mut sum = [0; CHECKSUM_BYTES];
    sum.copy_from_slice(&context.finish().as_ref()[..CHECKSUM_BYTES]);
    sum
}

/// The record of a token or key, without the secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    pub id: CredentialId,
    pub kind: Kind,
    pub name: String,
    pub role: Role,
    pub shown: String,
    pub created_at: Time,
    pub last_used_at: Option<Time>,
}

/// A request for an API token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRequest {
    pub name: String,
    pub role: Role,
}

impl TokenRequest {
    pub fn parse(body: &Map<String, Value>) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let name = members.required("name", |value| as_text(value, MAX_NAME));
        let role = members.optional("role", Role::from_json).unwrap_or(Role::Admin);
        members.refuse_unknown();
        members.build(|| Some(Self { name: name?, role }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn each_kind_has_its_prefix_and_reads_back_only_as_itself() {
        for kind in Kind::ALL {
            let issued = issue(kind, CompanyId(7), [9; 20]);
            assert!(issued.text.starts_with(kind.prefix()));
            let presented = read(kind, &issued.text).unwrap();
            assert_eq!((presented.company, presented.hash), (CompanyId(7), issued.hash));
            for other in Kind::ALL.into_iter().filter(|other| *other != kind) {
                let disguised = issued.text.replacen(kind.prefix(), other.prefix(), 1);
                assert_eq!(read(other, &issued.text), Err(Malformed));
                assert_eq!(read(other, &disguised), Err(Malformed), "the checksum binds the kind");
            }
        }
    }

    #[test]
    fn a_token_has_a_name_and_is_an_admins_unless_said() {
        let parse =
            |body: Value| TokenRequest::parse(body.as_object().unwrap()).map_err(|invalid| invalid.0[0].code);
        let token = |role: Role| Ok(TokenRequest { name: "CRM sync".to_owned(), role });
        let table = [
            (json!({"name": "CRM sync"}), token(Role::Admin)),
            (json!({"name": "CRM sync", "role": "member"}), token(Role::Member)),
            (json!({"role": "member"}), Err("required")),
            (json!({"name": ""}), Err("empty")),
            (json!({"name": "x".repeat(121)}), Err("too_long")),
            (json!({"name": "x", "role": "king"}), Err("unknown_role")),
            (json!({"name": "x", "kind": "api_token"}), Err("unknown_member")),
        ];
        for (body, expected) in table {
            assert_eq!(parse(body.clone()), expected, "{body}");
        }
    }

    proptest! {
        #[test]
        fn one_wrong_character_is_noticed(random: [u8; 20], place in 4_usize..56, company in 0_i64..1_000_000) {
            let issued = issue(Kind::ApiToken, CompanyId(company), random);
            let mut bytes = issued.text.clone().into_bytes();
            bytes[place] = if bytes[place] == b'0' { b'1' } else { b'0' };
            let wrong = String::from_utf8(bytes).unwrap();
            prop_assert_eq!(read(Kind::ApiToken, &wrong), Err(Malformed));
            prop_assert!(!issued.shown.contains(&issued.text[8..]));
        }

        #[test]
        fn reading_never_panics(text in ".{0,80}") {
            let _ = read(Kind::ApiToken, &text);
        }
    }
}

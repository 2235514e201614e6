//! The text form of API tokens, ingest and inbound keys, webhook secrets, sessions, and the secrets of links
//! in mail.
//!
//! `rap_` and 52 base32 characters: the company's number (8 bytes, so that a lookup knows where to look), 160
//! random bits, and a checksum that catches mistyped credentials without asking storage. Tokens and keys are
//! stored only as the SHA-256 of the whole text.

use ring::digest::{SHA256, digest};
use serde_json::{Map, Value};
use subtle::ConstantTimeEq;

use crate::audit::person_id;
use crate::company::MAX_NAME;
use crate::id::{CompanyId, CredentialId, PersonId, base32};
use crate::invalid::{Fault, Invalid, Members, as_integer, as_str, as_text};
use crate::member::Role;
use crate::time::Time;

const RANDOM_BYTES: usize = 20;
const CHECKSUM_BYTES: usize = 4;
const TOTAL_BYTES: usize = 8 + RANDOM_BYTES + CHECKSUM_BYTES;
/// How far ahead a token can expire.
pub const MAX_TOKEN_DAYS: i64 = 3_650;
/// How many requests per second a token's own limit can allow. The server's limit applies as well.
pub const TOKEN_RATE_LIMIT: std::ops::RangeInclusive<i64> = 1..=1_000_000;
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
    /// In the link that confirms a new email address.
    AddressChange,
}

impl Kind {
    pub const ALL: [Self; 8] = [
        Self::ApiToken,
        Self::IngestKey,
        Self::InboundKey,
        Self::WebhookSecret,
        Self::Invitation,
        Self::PasswordReset,
        Self::Session,
        Self::AddressChange,
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
            Self::AddressChange => "rem_",
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
            Self::AddressChange => "address_change",
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

pub(crate) fn hash(text: &str) -> SecretHash {
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
    /// The person whose token it is. Without one, it belongs to the company.
    pub person: Option<PersonId>,
    /// When it stops working.
    pub expires_at: Option<Time>,
    /// Its own limit, in requests per second. Without one, the server's limit applies alone. It never changes.
    pub rate_limit: Option<i64>,
}

impl Credential {
    pub fn is_expired(&self, now: Time) -> bool {
        self.expires_at.is_some_and(|at| now >= at)
    }

    /// The role that it acts with now, or `None` if it no longer works. `holder` is the current role of the person whose
    /// token it is, while they are an active member.
    pub fn role_now(&self, holder: Option<Role>, now: Time) -> Option<Role> {
        if self.is_expired(now) {
            return None;
        }
        match self.person {
            None => Some(self.role),
            Some(_) => holder.map(|role| role.min(self.role)),
        }
    }

    /// The role that it takes to see or revoke it: its own, or that of the person whose token it is.
    pub fn rank(&self, holder: Option<Role>) -> Role {
        holder.map_or(self.role, |role| role.max(self.role))
    }
}

/// A request for an API token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRequest {
    pub name: String,
    pub role: Role,
    /// The person whose token it is to be. Without one, it belongs to the company.
    pub person: Option<PersonId>,
    pub expires_at: Option<Time>,
    /// Requests per second.
    pub rate_limit: Option<i64>,
}

impl TokenRequest {
    /// A token that belongs to the company, never expires and has no limit of its own.
    pub fn of_company(name: impl Into<String>, role: Role) -> Self {
        Self { name: name.into(), role, person: None, expires_at: None, rate_limit: None }
    }

    pub fn parse(body: &Map<String, Value>) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let name = members.required("name", |value| as_text(value, MAX_NAME));
        let role = members.optional("role", Role::from_json).unwrap_or(Role::Admin);
        let person = members.optional("owner", |value| person_id(as_str(value)?));
        let expires_at = members.optional("expires_at", |value| {
            Time::parse(as_str(value)?).map_err(|error| Fault::new("malformed", error.to_string()))
        });
        let rate_limit = members.optional("rate_limit", |value| as_integer(value, TOKEN_RATE_LIMIT));
        members.refuse_unknown();
        members.build(|| Some(Self { name: name?, role, person, expires_at, rate_limit }))
    }
}

/// Checks when a new token is to expire.
pub fn check_expiry(expires_at: Time, now: Time) -> Result<(), Fault> {
    if expires_at <= now {
        return Err(Fault::new("in_the_past", "must be in the future"));
    }
    if expires_at > now.plus_days(MAX_TOKEN_DAYS) {
        let detail =
            format!("must be at most {MAX_TOKEN_DAYS} days ahead; leave it out for a token without an end");
        return Err(Fault::new("out_of_range", detail));
    }
    Ok(())
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
        let token = |role: Role| Ok(TokenRequest::of_company("CRM sync", role));
        let person = PersonId::from_bytes([7; 16]);
        let ending = Time::parse("2027-01-31T00:00:00Z").unwrap();
        let whole = TokenRequest {
            person: Some(person),
            expires_at: Some(ending),
            ..TokenRequest::of_company("CRM sync", Role::Admin)
        };
        let limited =
            TokenRequest { rate_limit: Some(5), ..TokenRequest::of_company("CRM sync", Role::Admin) };
        let table = [
            (json!({"name": "CRM sync"}), token(Role::Admin)),
            (json!({"name": "CRM sync", "role": "member"}), token(Role::Member)),
            (json!({"role": "member"}), Err("required")),
            (json!({"name": ""}), Err("empty")),
            (json!({"name": "x".repeat(121)}), Err("too_long")),
            (json!({"name": "x", "role": "king"}), Err("unknown_role")),
            (json!({"name": "x", "kind": "api_token"}), Err("unknown_member")),
            (json!({"name": "CRM sync", "owner": person.to_string(), "expires_at": "2027-01-31"}), Ok(whole)),
            (json!({"name": "CRM sync", "owner": null, "expires_at": null}), token(Role::Admin)),
            (json!({"name": "x", "owner": "crd_1"}), Err("malformed")),
            (json!({"name": "x", "expires_at": "never"}), Err("malformed")),
            (json!({"name": "x", "expires_at": 5}), Err("wrong_type")),
            (json!({"name": "CRM sync", "rate_limit": 5}), Ok(limited)),
            (json!({"name": "CRM sync", "rate_limit": null}), token(Role::Admin)),
            (json!({"name": "x", "rate_limit": 0}), Err("out_of_range")),
            (json!({"name": "x", "rate_limit": 1_000_001}), Err("out_of_range")),
            (json!({"name": "x", "rate_limit": 2.5}), Err("out_of_range")),
            (json!({"name": "x", "rate_limit": "5"}), Err("wrong_type")),
        ];
        for (body, expected) in table {
            assert_eq!(parse(body.clone()), expected, "{body}");
        }
    }

    const NOW: Time = Time::from_micros(1_800_000_000_000_000);

    fn a_token(role: Role, is_persons: bool, expires_at: Option<Time>) -> Credential {
        Credential {
            id: CredentialId::from_bytes([1; 16]),
            kind: Kind::ApiToken,
            name: String::new(),
            role,
            shown: String::new(),
            created_at: NOW,
            last_used_at: None,
            person: is_persons.then(|| PersonId::from_bytes([7; 16])),
            expires_at,
            rate_limit: None,
        }
    }

    #[test]
    fn a_persons_token_never_does_more_than_the_person() {
        use Role::{Admin, Member, Owner};
        let (past, future) = (Some(NOW), Some(NOW.plus_seconds(1)));
        let table = [
            (Owner, false, None, None, Some(Owner)),
            (Owner, false, None, future, Some(Owner)),
            (Owner, false, None, past, None),
            (Admin, true, Some(Owner), None, Some(Admin)),
            (Admin, true, Some(Admin), None, Some(Admin)),
            (Admin, true, Some(Member), None, Some(Member)),
            (Admin, true, None, None, None),
            (Admin, true, Some(Admin), past, None),
        ];
        for (role, is_persons, holder, expires_at, expected) in table {
            let token = a_token(role, is_persons, expires_at);
            assert_eq!(
                token.role_now(holder, NOW),
                expected,
                "{role:?} {is_persons} {holder:?} {expires_at:?}"
            );
        }
    }

    #[test]
    fn only_an_owner_touches_an_owners_token() {
        use Role::{Admin, Member, Owner};
        let table = [
            (Member, None, Member),
            (Owner, None, Owner),
            (Member, Some(Owner), Owner),
            (Admin, Some(Member), Admin),
        ];
        for (role, holder, rank) in table {
            assert_eq!(a_token(role, holder.is_some(), None).rank(holder), rank, "{role:?} {holder:?}");
        }
    }

    #[test]
    fn a_token_expires_later_but_within_ten_years() {
        let table = [
            (0, Err("in_the_past")),
            (-5, Err("in_the_past")),
            (1, Ok(())),
            (3_650, Ok(())),
            (3_651, Err("out_of_range")),
        ];
        for (days, expected) in table {
            let checked = check_expiry(NOW.plus_days(days), NOW).map_err(|fault| fault.code);
            assert_eq!(checked, expected, "{days}");
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

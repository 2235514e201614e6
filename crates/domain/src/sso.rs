//! Single sign-on: a company's own identity provider, and what it may do. Who comes in is in [`entry`].

pub mod entry;
pub mod proof;
pub mod removed;

use serde_json::{Map, Value};
use subtle::ConstantTimeEq as _;

use crate::destination::Destination;
use crate::email_domain::EmailDomain;
use crate::id::PersonId;
use crate::invalid::{Fault, Invalid, Members, as_array, as_str, as_text};
use crate::member::Role;
use crate::schema::words;
use crate::text::{Length, refuse_nul};

/// How long a person may take to log in at the provider.
pub const ATTEMPT_SECONDS: i64 = 10 * 60;
pub const MAX_CLIENT_ID: Length = Length::up_to(255);
pub const MAX_CLIENT_SECRET: Length = Length::up_to(1_024);
pub const MAX_DOMAINS: usize = 20;
/// The highest role that people can get by logging in for the first time.
pub const HIGHEST_ROLE: Role = Role::Member;

/// The path that the provider sends people back to. Each company has its own: a code that one company's provider issued
/// can't be brought to another company's login.
pub fn callback_path(project: &str) -> String {
    format!("/sso/{project}/callback")
}

/// Whether two secrets are the same, compared in constant time.
pub fn is_same_secret(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

/// Whether a company's people log in with its provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    #[default]
    Off,
    /// With the provider or with a password.
    Optional,
    /// Only with the provider, except for one owner.
    Required,
}

impl Mode {
    pub const ALL: [Self; 3] = [Self::Off, Self::Optional, Self::Required];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Optional => "optional",
            Self::Required => "required",
        }
    }

    pub fn parse(text: &str) -> Result<Self, Fault> {
        let found = Self::ALL.into_iter().find(|mode| mode.as_str() == text);
        found.ok_or_else(|| Fault::not_one_of("unknown_mode", Self::ALL.map(Self::as_str)))
    }
}

words!(
    Mode,
    "SsoMode",
    "`optional` lets members log in with single sign-on or with a password. `required` ends all sessions that began with \
     a password, and refuses new ones except those of the break-glass owner."
);

impl serde::Serialize for Mode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The URL that identifies a provider. Kept as it was written: tokens must name exactly the same one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issuer(String);

impl Issuer {
    pub fn parse(text: &str) -> Result<Self, Fault> {
        refuse_nul(text)?;
        Destination::parse(text).map_err(|refusal| Fault::new(refusal.code(), refusal.to_string()))?;
        if text.contains('?') {
            return Err(Fault::new("bad_url", "must not contain a query (?)"));
        }
        Ok(Self(text.to_owned()))
    }

    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name that people know the provider by.
    pub fn host(&self) -> String {
        match Destination::parse(&self.0) {
            Ok(found) => found.authority().to_owned(),
            Err(_) => self.0.clone(),
        }
    }
}

/// A company's settings, without the client secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub mode: Mode,
    pub issuer: Issuer,
    /// How the provider knows us.
    pub client_id: String,
    /// The domains whose people log in with the provider, as far as the server's administrator confirmed them.
    pub domains: Vec<EmailDomain>,
    /// The role of people who become members by logging in for the first time.
    pub role: Role,
    /// The owner who can log in with a password if the provider fails.
    pub break_glass: Option<PersonId>,
}

impl Settings {
    /// Whether this person may enter the company with a password.
    pub fn takes_password(&self, person: PersonId) -> bool {
        self.mode != Mode::Required || self.break_glass == Some(person)
    }

    /// Whether entering with a password is the emergency that the company is told about.
    pub fn is_break_glass(&self, person: PersonId) -> bool {
        self.mode == Mode::Required && self.break_glass == Some(person)
    }
}

/// New settings, as requested. Not shown in logs: it contains a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Change {
    pub settings: Settings,
    /// `None` keeps the current one.
    pub client_secret: Option<String>,
}

impl Change {
    pub fn parse(body: &Map<String, Value>) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let mode = members.optional("mode", |value| Mode::parse(as_str(value)?)).unwrap_or_default();
        let issuer = members.required("issuer", |value| Issuer::parse(as_str(value)?));
        let client_id = members.required("client_id", |value| as_text(value, MAX_CLIENT_ID));
        let client_secret = members.optional("client_secret", |value| as_text(value, MAX_CLIENT_SECRET));
        let domains = members.required("domains", domains);
        let role = members.optional("default_role", default_role).unwrap_or(HIGHEST_ROLE);
        let break_glass = members.optional("break_glass_owner", |value| {
            as_str(value)?.parse().map_err(|_| Fault::new("malformed", "must be the id of a member"))
        });
        if mode == Mode::Required && body.get("break_glass_owner").is_none_or(Value::is_null) {
            let detail =
                "is required if single sign-on is: choose an owner who can log in if the provider fails";
            members.fault("break_glass_owner", Fault::new("required", detail));
        }
        members.refuse_unknown();
        members.build(|| {
            let (issuer, client_id, domains) = (issuer?, client_id?, domains?);
            let settings = Settings { mode, issuer, client_id, domains, role, break_glass };
            Some(Self { settings, client_secret })
        })
    }
}

/// Each domain once, in alphabetical order.
fn domains(value: &Value) -> Result<Vec<EmailDomain>, Fault> {
    let items = as_array(value)?;
    if items.is_empty() {
        return Err(Fault::new("empty", "must include at least one domain"));
    }
    if items.len() > MAX_DOMAINS {
        return Err(Fault::new("too_many", format!("must be at most {MAX_DOMAINS} domains")));
    }
    let mut domains =
        items.iter().map(|item| EmailDomain::parse(as_str(item)?)).collect::<Result<Vec<_>, _>>()?;
    domains.sort_unstable();
    domains.dedup();
    Ok(domains)
}

/// The roles that people can get by logging in for the first time.
pub fn default_roles() -> impl Iterator<Item = Role> {
    Role::ALL.into_iter().filter(|role| *role <= HIGHEST_ROLE)
}

fn default_role(value: &Value) -> Result<Role, Fault> {
    let role = Role::from_json(value)?;
    if role > HIGHEST_ROLE {
        return Err(Fault::not_one_of("unknown_role", default_roles().map(Role::as_str)));
    }
    Ok(role)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const ANA: PersonId = PersonId::from_bytes([1; 16]);
    const BO: PersonId = PersonId::from_bytes([2; 16]);

    fn body(more: Value) -> Map<String, Value> {
        let mut body =
            json!({"issuer": "https://login.acme.test", "client_id": "rapport", "domains": ["acme.test"]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body.as_object().unwrap().clone()
    }

    fn parse(more: Value) -> Result<Change, Vec<(String, &'static str)>> {
        let faults =
            |invalid: Invalid| invalid.0.into_iter().map(|fault| (fault.pointer, fault.code)).collect();
        Change::parse(&body(more)).map_err(faults)
    }

    #[test]
    fn settings_are_read_and_domains_are_sorted() {
        let least = parse(json!({})).ok().unwrap();
        assert_eq!((least.settings.mode, least.settings.role), (Mode::Off, Role::Member));
        assert_eq!((least.client_secret, least.settings.break_glass), (None, None));
        let all = json!({
            "mode": "required", "client_secret": "s", "domains": ["Beta.test", "acme.test", "beta.test"],
            "default_role": "member", "break_glass_owner": ANA.to_string(),
        });
        let all = parse(all).ok().unwrap();
        let names: Vec<&str> = all.settings.domains.iter().map(EmailDomain::as_str).collect();
        assert_eq!(names, ["acme.test", "beta.test"]);
        assert_eq!((all.client_secret.as_deref(), all.settings.break_glass), (Some("s"), Some(ANA)));
    }

    #[test]
    fn every_fault_names_its_field() {
        let table = [
            (json!({"mode": "on"}), "/mode", "unknown_mode"),
            (json!({"mode": "required"}), "/break_glass_owner", "required"),
            (json!({"issuer": null}), "/issuer", "required"),
            (json!({"issuer": "http://login.acme.test"}), "/issuer", "not_https"),
            (json!({"issuer": "https://user@login.acme.test"}), "/issuer", "userinfo"),
            (json!({"issuer": "https://login.acme.test/?x=1"}), "/issuer", "bad_url"),
            (json!({"issuer": "https://login.acme.test/#x"}), "/issuer", "fragment"),
            (json!({"client_id": ""}), "/client_id", "empty"),
            (json!({"client_id": "x".repeat(256)}), "/client_id", "too_long"),
            (json!({"client_secret": ""}), "/client_secret", "empty"),
            (json!({"client_secret": "x".repeat(1_025)}), "/client_secret", "too_long"),
            (json!({"domains": []}), "/domains", "empty"),
            (json!({"domains": ["acme"]}), "/domains", "bad_host"),
            (json!({"domains": "acme.test"}), "/domains", "wrong_type"),
            (json!({"domains": vec!["acme.test"; 21]}), "/domains", "too_many"),
            (json!({"default_role": "admin"}), "/default_role", "unknown_role"),
            (json!({"default_role": "owner"}), "/default_role", "unknown_role"),
            (json!({"default_role": "king"}), "/default_role", "unknown_role"),
            (json!({"break_glass_owner": "Ana"}), "/break_glass_owner", "malformed"),
            (json!({"secret": "s"}), "/secret", "unknown_member"),
        ];
        for (more, pointer, code) in table {
            assert_eq!(parse(more.clone()).err(), Some(vec![(pointer.to_owned(), code)]), "{more}");
        }
    }

    #[test]
    fn an_issuer_is_kept_as_it_was_written() {
        for text in ["https://login.acme.test", "https://login.acme.test/", "https://Login.acme.test/a//b"] {
            assert_eq!(Issuer::parse(text).unwrap().as_str(), text);
            assert_eq!(Issuer::parse(text).unwrap().host(), "login.acme.test");
        }
    }

    #[test]
    fn a_password_opens_what_does_not_require_single_sign_on() {
        let settings = |mode: &str| {
            let owner = json!({"mode": mode, "break_glass_owner": ANA.to_string()});
            parse(owner).ok().unwrap().settings
        };
        let table = [
            ("off", [true, true], [false, false]),
            ("optional", [true, true], [false, false]),
            ("required", [true, false], [true, false]),
        ];
        for (mode, password, emergency) in table {
            let settings = settings(mode);
            assert_eq!([ANA, BO].map(|person| settings.takes_password(person)), password, "{mode}");
            assert_eq!([ANA, BO].map(|person| settings.is_break_glass(person)), emergency, "{mode}");
        }
    }

    #[test]
    fn secrets_are_compared_whole() {
        assert!(is_same_secret("abc", "abc"));
        assert!(!is_same_secret("abc", "abd") && !is_same_secret("abc", "ab") && !is_same_secret("", "a"));
    }
}

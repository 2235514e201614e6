//! Invitations to a company: how long they are valid, their links, and the requests to invite and to join.

use serde_json::{Map, Value};

use crate::company::MAX_NAME;
use crate::id::InvitationId;
use crate::invalid::{Fault, Invalid, Members, as_str, as_text};
use crate::member::{Email, Role};
use crate::schema::words;
use crate::time::Time;

/// How long an invitation can be accepted.
pub const INVITATION_DAYS: i64 = 7;
/// The page that the link in the mail points to; the secret is the next path segment.
pub const INVITATION_PATH: &str = "/invitation/";

/// A pending invitation, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invitation {
    pub id: InvitationId,
    pub email: Email,
    pub role: Role,
    /// The name of the person who sent it, if a person did.
    pub invited_by: Option<String>,
    pub created_at: Time,
    pub expires_at: Time,
    /// The name that was proposed for them.
    pub name: Option<String>,
    /// Whether the link went to the address, so that using it proves the address. Otherwise it was handed over.
    pub by_mail: bool,
}

impl Invitation {
    pub fn is_expired(&self, now: Time) -> bool {
        now >= self.expires_at
    }
}

/// A request to invite someone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub email: Email,
    /// Proposed to the person, who decides.
    pub name: Option<String>,
    pub role: Role,
}

impl Request {
    pub fn parse(body: &Map<String, Value>) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let email = members.required("email", Email::from_json);
        let name = members.optional("name", |value| as_text(value, MAX_NAME));
        let role = members.required("role", Role::from_json);
        members.refuse_unknown();
        members.build(|| Some(Self { email: email?, name, role: role? }))
    }
}

/// How a person joins with a link that was handed over. A link that came by mail leaves no choice: the owner of the
/// address joins with their login, or gets one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// With a new login that works for this company only.
    New,
    /// With the proven login they have.
    Existing,
}

impl Way {
    pub const ALL: [Self; 2] = [Self::New, Self::Existing];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Existing => "existing",
        }
    }

    pub fn from_json(value: &Value) -> Result<Self, Fault> {
        let text = as_str(value)?;
        let found = Self::ALL.into_iter().find(|way| way.as_str() == text);
        found.ok_or_else(|| Fault::not_one_of("unknown_login", Self::ALL.map(Self::as_str)))
    }
}

words!(
    Way,
    "InvitationLogin",
    "How to join with a link that was handed over. `new` makes a login that works for this company only; `existing` \
     joins with a login whose address was proven by mail."
);

/// A request to join with an invitation.
pub struct Acceptance {
    pub token: String,
    /// Used if the person is new here; others keep their own name.
    pub name: Option<String>,
    /// The chosen password of a person who is new here; others send their own, of any length.
    pub password: String,
    /// Only for a link that was handed over.
    pub login: Option<Way>,
}

impl Acceptance {
    pub fn parse(body: &Map<String, Value>) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let token = members.required("token", |value| as_str(value).map(str::to_owned));
        let name = members.optional("name", |value| as_text(value, MAX_NAME));
        let password = members.required("password", |value| as_str(value).map(str::to_owned));
        let login = members.optional("login", Way::from_json);
        members.refuse_unknown();
        members.build(|| Some(Self { token: token?, name, password: password?, login }))
    }
}

/// The URL of a page with a secret, or with a placeholder for one.
pub fn link(base_url: &str, path: &str, secret: &str) -> String {
    format!("{base_url}{path}{secret}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn codes(invalid: Invalid) -> Vec<(String, &'static str)> {
        invalid.0.into_iter().map(|error| (error.pointer, error.code)).collect()
    }

    #[test]
    fn an_invitation_has_an_address_and_a_role() {
        let parse = |body: Value| Request::parse(body.as_object().unwrap()).map_err(codes);
        let email = Email::parse("ana@acme.test").unwrap();
        let request = Request { email, name: None, role: Role::Member };
        assert_eq!(parse(json!({"email": "Ana@acme.test", "role": "member"})), Ok(request.clone()));
        let named = json!({"email": "ana@acme.test", "role": "member", "name": "Ana"});
        assert_eq!(parse(named), Ok(Request { name: Some("Ana".to_owned()), ..request }));
        let faults = parse(json!({"role": "king", "name": "", "active": true})).unwrap_err();
        let expected = [
            ("/email", "required"),
            ("/name", "empty"),
            ("/role", "unknown_role"),
            ("/active", "unknown_member"),
        ];
        assert_eq!(faults, expected.map(|(pointer, code)| (pointer.to_owned(), code)));
    }

    #[test]
    fn a_known_persons_password_may_have_any_length() {
        let parse = |body: Value| {
            let parsed = Acceptance::parse(body.as_object().unwrap());
            let told =
                |accepted: Acceptance| (accepted.token, accepted.name, accepted.password, accepted.login);
            parsed.map(told).map_err(codes)
        };
        let accepted = parse(json!({"token": "rjn_x", "password": "short"}));
        assert_eq!(accepted, Ok(("rjn_x".to_owned(), None, "short".to_owned(), None)));
        let chosen = parse(json!({"token": "rjn_x", "password": "short", "login": "existing"}));
        assert_eq!(chosen.unwrap().3, Some(Way::Existing));
        let faults = parse(json!({"token": 1, "name": "", "login": "old"})).unwrap_err();
        let expected = [
            ("/token", "wrong_type"),
            ("/name", "empty"),
            ("/password", "required"),
            ("/login", "unknown_login"),
        ];
        assert_eq!(faults, expected.map(|(pointer, code)| (pointer.to_owned(), code)));
    }
}

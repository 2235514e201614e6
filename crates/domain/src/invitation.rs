//! Invitations to a company: how long they are valid, their links, and the requests to invite and to join.

use serde_json::{Map, Value};

use crate::company::MAX_NAME;
use crate::id::InvitationId;
use crate::invalid::{Invalid, Members, as_str, as_text};
use crate::member::{Email, Role};
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
    pub role: Role,
}

impl Request {
    pub fn parse(body: &Map<String, Value>) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let email = members.required("email", Email::from_json);
        let role = members.required("role", Role::from_json);
        members.refuse_unknown();
        members.build(|| Some(Self { email: email?, role: role? }))
    }
}

/// A request to join with an invitation.
pub struct Acceptance {
    pub token: String,
    /// Used if the person is new here; others keep their own name.
    pub name: Option<String>,
    /// The chosen password of a person who is new here; others send their own, of any length.
    pub password: String,
}

impl Acceptance {
    pub fn parse(body: &Map<String, Value>) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let token = members.required("token", |value| as_str(value).map(str::to_owned));
        let name = members.optional("name", |value| as_text(value, MAX_NAME));
        let password = members.required("password", |value| as_str(value).map(str::to_owned));
        members.refuse_unknown();
        members.build(|| Some(Self { token: token?, name, password: password? }))
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
        let request = Request { email, role: Role::Member };
        assert_eq!(parse(json!({"email": "Ana@acme.test", "role": "member"})), Ok(request));
        let faults = parse(json!({"role": "king", "name": "Ana"})).unwrap_err();
        let expected = [("/email", "required"), ("/role", "unknown_role"), ("/name", "unknown_member")];
        assert_eq!(faults, expected.map(|(pointer, code)| (pointer.to_owned(), code)));
    }

    #[test]
    fn a_known_persons_password_may_have_any_length() {
        let parse = |body: Value| {
            let parsed = Acceptance::parse(body.as_object().unwrap());
            parsed.map(|accepted| (accepted.token, accepted.name, accepted.password)).map_err(codes)
        };
        let accepted = parse(json!({"token": "rjn_x", "password": "short"}));
        assert_eq!(accepted, Ok(("rjn_x".to_owned(), None, "short".to_owned())));
        let faults = parse(json!({"token": 1, "name": ""})).unwrap_err();
        let expected = [("/token", "wrong_type"), ("/name", "empty"), ("/password", "required")];
        assert_eq!(faults, expected.map(|(pointer, code)| (pointer.to_owned(), code)));
    }
}

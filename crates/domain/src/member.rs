//! People who log in, and what they may do in a company.

use serde_json::{Map, Value};

use crate::company::MAX_NAME;
use crate::id::PersonId;
use crate::invalid::{Fault, Invalid, Members, as_bool, as_str, as_text};
use crate::schema::words;
use crate::text::refuse_nul;
use crate::time::Time;

pub const MAX_EMAIL_CHARS: usize = 254;

/// What a member or a token may do. Ordered: each role includes the ones before it. `right` has the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Sees everything that a member sees, and changes nothing but their own profile and saved views.
    Viewer,
    /// Works with accounts.
    Member,
    /// Also manages settings, keys, members and webhooks.
    Admin,
    /// An admin that only an owner can remove.
    Owner,
}

impl Role {
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Member, Self::Admin, Self::Owner];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Member => "member",
            Self::Admin => "admin",
            Self::Owner => "owner",
        }
    }

    pub fn parse(text: &str) -> Result<Self, Fault> {
        Self::ALL
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or_else(|| Fault::not_one_of("unknown_role", Self::ALL.map(Self::as_str)))
    }

    pub fn from_json(value: &Value) -> Result<Self, Fault> {
        Self::parse(as_str(value)?)
    }
}

words!(
    Role,
    "Role",
    "What a member or a token may do. `viewer` only reads; `member` works with accounts; `admin` and `owner` also \
     manage settings, keys, members and webhooks."
);

impl serde::Serialize for Role {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// An email address in lower case, which people are looked up by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Email(String);

impl Email {
    pub fn parse(text: &str) -> Result<Self, Fault> {
        refuse_nul(text)?;
        let malformed = || Fault::new("malformed", "must be an email address");
        let (local, host) = text.rsplit_once('@').ok_or_else(malformed)?;
        let plain = |part: &str| {
            !part.is_empty()
                && !part.chars().any(|c| c.is_whitespace() || c.is_control() || "<>,;@\"()".contains(c))
        };
        if !plain(local) || !plain(host) || host.starts_with('.') || host.ends_with('.') {
            return Err(malformed());
        }
        if text.chars().count() > MAX_EMAIL_CHARS {
            return Err(Fault::new("too_long", format!("must be at most {MAX_EMAIL_CHARS} characters")));
        }
        Ok(Self(text.to_lowercase()))
    }

    pub fn from_json(value: &Value) -> Result<Self, Fault> {
        Self::parse(as_str(value)?)
    }

    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A person as a member of one company.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub person: PersonId,
    pub email: Email,
    pub name: String,
    pub role: Role,
    pub created_at: Time,
    pub deactivated_at: Option<Time>,
}

impl Member {
    pub const fn is_active(&self) -> bool {
        self.deactivated_at.is_none()
    }
}

/// A change of a member's role, or of whether they are active.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patch {
    pub role: Option<Role>,
    pub active: Option<bool>,
}

impl Patch {
    pub fn parse(body: &Map<String, Value>) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let role = members.replaceable("role", Role::from_json);
        let active = members.replaceable("active", as_bool);
        members.refuse_unknown();
        members.finish().map(|()| Self { role, active })
    }
}

/// Parses the new name of a person.
pub fn parse_name(body: &Map<String, Value>) -> Result<String, Invalid> {
    let mut members = Members::of(body);
    let name = members.required("name", |value| as_text(value, MAX_NAME));
    members.refuse_unknown();
    members.build(|| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn codes(invalid: Invalid) -> Vec<(String, &'static str)> {
        invalid.0.into_iter().map(|error| (error.pointer, error.code)).collect()
    }

    #[test]
    fn a_change_of_a_member_leaves_out_what_stays() {
        let parse = |body: Value| Patch::parse(body.as_object().unwrap()).map_err(codes);
        assert_eq!(parse(json!({})), Ok(Patch { role: None, active: None }));
        let both = Patch { role: Some(Role::Owner), active: Some(false) };
        assert_eq!(parse(json!({"role": "owner", "active": false})), Ok(both));
        let faults = parse(json!({"role": "king", "active": "no", "name": "x"})).unwrap_err();
        let expected = [("/role", "unknown_role"), ("/active", "wrong_type"), ("/name", "unknown_member")];
        assert_eq!(faults, expected.map(|(pointer, code)| (pointer.to_owned(), code)));
    }

    #[test]
    fn a_person_always_has_a_name() {
        let parse = |body: Value| parse_name(body.as_object().unwrap()).map_err(|invalid| invalid.0[0].code);
        let table = [
            (json!({"name": "Ana"}), Ok("Ana".to_owned())),
            (json!({}), Err("required")),
            (json!({"name": ""}), Err("empty")),
            (json!({"name": "x".repeat(121)}), Err("too_long")),
        ];
        for (body, expected) in table {
            assert_eq!(parse(body.clone()), expected, "{body}");
        }
    }

    #[test]
    fn roles_include_the_ones_below() {
        assert!(Role::ALL.is_sorted());
        assert_eq!(Role::ALL.map(Role::as_str), ["viewer", "member", "admin", "owner"]);
    }

    #[test]
    fn email_addresses_are_checked_and_folded() {
        assert_eq!(Email::parse("Ana@Acme.test").unwrap().as_str(), "ana@acme.test");
        for bad in
            ["", "ana", "@acme.test", "ana@", "a b@acme.test", "ana@acme.test\0", "a@b@c.test", "ana@.test"]
        {
            assert!(Email::parse(bad).is_err(), "{bad:?}");
        }
    }
}

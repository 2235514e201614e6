//! People who log in, and what they may do in a company.

use crate::id::PersonId;
use crate::invalid::Fault;
use crate::text::{Length, refuse_nul};
use crate::time::Time;

pub const MAX_EMAIL_CHARS: usize = 254;
pub const MIN_PASSWORD_CHARS: usize = 10;
/// A longer password is no safer: argon2id reduces it to the same size.
pub const MAX_PASSWORD_CHARS: usize = 256;

/// What a member or a token may do. Ordered: each role includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Works with accounts.
    Member,
    /// Also manages settings, keys, members and webhooks.
    Admin,
    /// An admin that only an owner can remove.
    Owner,
}

impl Role {
    pub const ALL: [Self; 3] = [Self::Member, Self::Admin, Self::Owner];

    pub const fn as_str(self) -> &'static str {
        match self {
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
}

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

    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Checks a new password: its length in characters, and that it contains no NUL.
pub fn check_password(text: &str) -> Result<(), Fault> {
    Length::up_to(MAX_PASSWORD_CHARS).check(text)?;
    if text.chars().count() < MIN_PASSWORD_CHARS {
        return Err(Fault::new("too_short", format!("must be at least {MIN_PASSWORD_CHARS} characters")));
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_include_the_ones_below() {
        assert!(Role::Owner > Role::Admin && Role::Admin > Role::Member);
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

    #[test]
    fn passwords_are_ten_to_256_characters() {
        let code = |text: &str| check_password(text).map_err(|fault| fault.code);
        assert_eq!(code("ten chars!"), Ok(()));
        assert_eq!(code("ÄÖÜäöüßẞéè"), Ok(()));
        assert_eq!(code(&"x".repeat(256)), Ok(()));
        assert_eq!(code("nine char"), Err("too_short"));
        assert_eq!(code("äöüäöüäöü"), Err("too_short"), "characters count, not bytes");
        assert_eq!(code(&"x".repeat(257)), Err("too_long"));
        assert_eq!(code("with a nul \0"), Err("nul_character"));
        assert_eq!(code(""), Err("empty"));
    }
}

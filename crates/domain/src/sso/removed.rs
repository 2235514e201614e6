//! People who were removed from a company, or left it, and don't come back just by logging in. They are known by marks, from
//! which neither their address nor their name can be read: the marks stay when their login is deleted.

use ring::digest::{SHA256, digest};

use crate::member::Email;
use crate::sso::Issuer;

/// Stands for an address or for a provider's subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark([u8; 32]);

impl Mark {
    pub fn of_email(email: &Email) -> Self {
        Self::of(&["email", email.as_str()])
    }

    pub fn of_subject(issuer: &Issuer, subject: &str) -> Self {
        Self::of(&["subject", issuer.as_str(), subject])
    }

    fn of(parts: &[&str]) -> Self {
        let mut mark = [0; 32];
        mark.copy_from_slice(digest(&SHA256, parts.join("\0").as_bytes()).as_ref());
        Self(mark)
    }

    pub const fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_and_every_subject_of_a_provider_has_its_own_mark() {
        let issuer = |text: &str| Issuer::from_stored(text.to_owned());
        let email = |text: &str| Mark::of_email(&Email::parse(text).unwrap());
        let marks = [
            email("ana@acme.test"),
            email("bo@acme.test"),
            Mark::of_subject(&issuer("https://a.test"), "ana@acme.test"),
            Mark::of_subject(&issuer("https://b.test"), "ana@acme.test"),
            Mark::of_subject(&issuer("https://b.test"), "bo"),
        ];
        for (at, mark) in marks.iter().enumerate() {
            assert!(!marks[..at].contains(mark), "{at}");
        }
        assert_eq!(email("Ana@Acme.test"), marks[0]);
    }
}

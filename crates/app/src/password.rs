//! Passwords: hashed with argon2id, never stored or logged. Those that people choose are checked first.

use std::borrow::Cow;

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use rapport_domain::id::base32;
use rapport_domain::invalid::Invalid;
use rapport_domain::password::{Known, check, normalized};

use crate::context::Services;
use crate::error::Error;

/// Checked if there is no such login, so that the answer takes equally long. Nobody knows its password.
pub const NOBODYS: &str = "$argon2id$v=19$m=19456,t=2,p=1$bm9ib2R5LWhhcy10aGlzIQ$\
                           8mAGZ0bQxGh3Eo0qfFhJ1tYyWmI0Qm3Hn1cV7hVZk5c";

/// Checks and hashes a password that a person chose. A fault is one of the member `password`. Slow on purpose, like
/// `hash`.
pub fn choose(services: &Services, password: &str, known: &Known) -> Result<String, Error> {
    check(password, known).map_err(|fault| Invalid::one("/password", fault.code, fault.detail))?;
    hash(services, password)
}

/// Hashes a password. Slow on purpose, so call it neither on an engine thread nor in async code.
pub fn hash(services: &Services, password: &str) -> Result<String, Error> {
    let salt: [u8; 16] = services.random();
    let hashed = Argon2::default().hash_password_with_salt(normalized(password).as_bytes(), &salt);
    Ok(hashed.map_err(|error| Error::Internal(error.to_string()))?.to_string())
}

pub fn verify(password: &str, hash: &str) -> bool {
    let Ok(parsed) = PasswordHash::new(hash) else { return false };
    let is_right = |password: &str| Argon2::default().verify_password(password.as_bytes(), &parsed).is_ok();
    match normalized(password) {
        Cow::Borrowed(password) => is_right(password),
        // Before passwords were normalized, they were hashed as they were typed.
        Cow::Owned(normalized) => is_right(&normalized) || is_right(password),
    }
}

/// Generates a password to give to a person once: 100 random bits.
pub fn generate(services: &Services) -> String {
    let bytes: [u8; 15] = services.random();
    let text = base32().encode(&bytes);
    text.as_bytes().chunks(6).map(|part| String::from_utf8_lossy(part)).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_address_costs_a_hash_too() {
        let parsed = PasswordHash::new(NOBODYS).expect("a hash");
        assert!(parsed.hash.is_some() && parsed.salt.is_some());
    }
}

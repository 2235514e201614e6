//! Second factors: what a person shows besides their password, and when they have to.
//!
//! A factor belongs to a login, so it counts in every company that the login works for.

use serde_json::{Map, Value};

use crate::credential::SecretHash;
use crate::id::PasskeyId;
use crate::invalid::{Invalid, Members, as_text};
use crate::recovery_code;
use crate::text::Length;
use crate::time::Time;
use crate::totp;

/// How long a person may take between their password and their second factor.
pub const FIRST_STEP_SECONDS: i64 = 5 * 60;
/// How long an authenticator may take to answer a challenge.
pub const CHALLENGE_SECONDS: i64 = 5 * 60;
/// How many passkeys a login can have.
pub const MAX_PASSKEYS: usize = 20;
pub const MAX_PASSKEY_NAME: Length = Length::up_to(60);

/// How a second factor was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Factor {
    /// Counts as two factors: the authenticator, and the finger or PIN that unlocked it.
    Passkey,
    /// A code from an authenticator app.
    Totp,
    RecoveryCode,
}

impl Factor {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passkey => "passkey",
            Self::Totp => "totp",
            Self::RecoveryCode => "recovery_code",
        }
    }
}

/// What a person has to do before a session lets them into its company.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Nothing,
    /// Show the second factor that they have.
    Show,
    /// Set up a second factor, because the company requires one.
    SetUp,
}

/// The next step of a session, by whether a second factor was shown in it, whether its person has one, and whether
/// its company requires one.
pub const fn next_step(was_shown: bool, has_one: bool, is_required: bool) -> Step {
    match (was_shown, has_one, is_required) {
        (true, _, _) | (false, false, false) => Step::Nothing,
        (false, true, _) => Step::Show,
        (false, false, true) => Step::SetUp,
    }
}

/// A code that somebody typed: from an authenticator app, or a recovery code.
pub enum Code {
    Totp(String),
    Recovery(SecretHash),
}

impl Code {
    /// `None` for a text that can be neither.
    pub fn read(typed: &str) -> Option<Self> {
        let plain: String = typed.chars().filter(|c| !c.is_whitespace()).collect();
        if plain.len() == totp::DIGITS && plain.bytes().all(|byte| byte.is_ascii_digit()) {
            return Some(Self::Totp(plain));
        }
        recovery_code::read(&plain).map(Self::Recovery)
    }
}

/// A passkey as its person sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passkey {
    pub id: PasskeyId,
    pub name: String,
    pub created_at: Time,
    pub last_used_at: Option<Time>,
}

/// Parses the name that a person gives a passkey.
pub fn parse_passkey_name(body: &Map<String, Value>) -> Result<String, Invalid> {
    let mut members = Members::of(body);
    let name = members.required("name", |value| as_text(value, MAX_PASSKEY_NAME));
    members.refuse_unknown();
    members.build(|| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_factor_is_asked_for_if_there_is_one_and_set_up_if_there_has_to_be() {
        let table = [
            // shown, has one, required
            ((false, false, false), Step::Nothing),
            ((false, false, true), Step::SetUp),
            ((false, true, false), Step::Show),
            ((false, true, true), Step::Show),
            ((true, false, false), Step::Nothing),
            ((true, false, true), Step::Nothing),
            ((true, true, false), Step::Nothing),
            ((true, true, true), Step::Nothing),
        ];
        for ((was_shown, has_one, is_required), step) in table {
            let found = next_step(was_shown, has_one, is_required);
            assert_eq!(found, step, "shown {was_shown}, has one {has_one}, required {is_required}");
        }
    }

    #[test]
    fn six_digits_are_from_an_app_and_anything_else_is_a_recovery_code() {
        let kind = |typed: &str| match Code::read(typed) {
            Some(Code::Totp(digits)) => digits,
            Some(Code::Recovery(_)) => "recovery".to_owned(),
            None => "neither".to_owned(),
        };
        let recovery = recovery_code::make([7; recovery_code::CODE_BYTES]).text;
        let table = [
            ("123456", "123456"),
            (" 123 456 ", "123456"),
            ("12345", "neither"),
            ("1234567", "neither"),
            ("+12345", "neither"),
            ("١٢٣٤٥٦", "neither"),
            ("", "neither"),
            (recovery.as_str(), "recovery"),
        ];
        for (typed, expected) in table {
            assert_eq!(kind(typed), expected, "{typed:?}");
        }
    }

    #[test]
    fn a_passkey_has_a_name() {
        let parse =
            |body: Value| parse_passkey_name(body.as_object().unwrap()).map_err(|invalid| invalid.0[0].code);
        let table = [
            (json!({"name": "Laptop"}), Ok("Laptop".to_owned())),
            (json!({}), Err("required")),
            (json!({"name": ""}), Err("empty")),
            (json!({"name": "x".repeat(61)}), Err("too_long")),
        ];
        for (body, expected) in table {
            assert_eq!(parse(body.clone()), expected, "{body}");
        }
    }
}

//! New passwords: how long they may be, and whether somebody would guess them.
//!
//! A password may contain every character but NUL. Before it is hashed it is brought into one form (NFC), because the
//! same letters arrive in different bytes from different keyboards.

use std::borrow::Cow;

use serde_json::Value;
use unicode_normalization::{UnicodeNormalization as _, is_nfc};
use zxcvbn::feedback::{Feedback, Warning};
use zxcvbn::{Score, zxcvbn};

use crate::invalid::{Fault, as_str};
use crate::member::Email;
use crate::text::{Length, fold};

pub const MIN_PASSWORD_CHARS: usize = 10;
/// A longer password is no safer: argon2id reduces it to the same size.
pub const MAX_PASSWORD_CHARS: usize = 256;
/// How much of a password is rated. Rating a long text takes long, and this much decides.
const RATED_CHARS: usize = 100;
/// What an attacker with a stolen database can't try out.
const LEAST_SCORE: Score = Score::Three;
/// How many letters and digits must remain besides what everyone knows about the person.
const MIN_OWN_CHARS: usize = 6;
/// Shorter parts of a name are in too many other words.
const MIN_PART_CHARS: usize = 3;
const PRODUCT: &str = "rapport";

/// What others know about the person who chooses a password.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    pub email: &'a Email,
    pub name: &'a str,
    pub company: &'a str,
}

impl Known<'_> {
    /// The address, the names and their parts, in lower case.
    fn parts(&self) -> Vec<String> {
        let (local, host) = self.email.as_str().rsplit_once('@').unwrap_or((self.email.as_str(), ""));
        // Without `com` or `org`, which are in too many other words.
        let host = host.rsplit_once('.').map_or(host, |(name, _)| name);
        let whole = [self.email.as_str(), local, self.name, self.company, PRODUCT];
        let words = [local, host, self.name, self.company].into_iter().flat_map(words);
        let mut parts: Vec<String> = whole.into_iter().chain(words).map(fold).collect();
        parts.retain(|part| part.chars().count() >= MIN_PART_CHARS);
        parts.sort_unstable();
        parts.dedup();
        parts
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric())
}

/// Checks a new password: its length, and that neither a program nor a person who knows its owner would guess it.
/// Takes some milliseconds.
pub fn check(text: &str, known: &Known) -> Result<(), Fault> {
    check_length(text)?;
    let parts = known.parts();
    if is_personal(text, &parts) {
        let detail = "must not consist of your email address, your name or your company's name";
        return Err(Fault::new("too_personal", detail));
    }
    let rated: String = text.chars().take(RATED_CHARS).collect();
    let inputs: Vec<&str> = parts.iter().map(String::as_str).collect();
    let rating = zxcvbn(&rated, &inputs);
    if rating.score() < LEAST_SCORE {
        let reason = reason(rating.feedback().and_then(Feedback::warning));
        let detail = format!("is too easy to guess: {reason}; use several unrelated words");
        return Err(Fault::new("too_weak", detail));
    }
    Ok(())
}

/// Checks the length in characters, and that there is no NUL.
fn check_length(text: &str) -> Result<(), Fault> {
    Length::up_to(MAX_PASSWORD_CHARS).check(text)?;
    if text.chars().count() < MIN_PASSWORD_CHARS {
        return Err(Fault::new("too_short", format!("must be at least {MIN_PASSWORD_CHARS} characters")));
    }
    Ok(())
}

/// Reads a new password, so far as it can be checked without knowing whose it is.
pub fn new_password(value: &Value) -> Result<String, Fault> {
    let text = as_str(value)?;
    check_length(text).map(|()| text.to_owned())
}

/// The form that is hashed.
pub fn normalized(text: &str) -> Cow<'_, str> {
    if is_nfc(text) { Cow::Borrowed(text) } else { Cow::Owned(text.nfc().collect()) }
}

/// Whether too little remains without what everyone knows.
fn is_personal(text: &str, parts: &[String]) -> bool {
    let letters = |text: &str| text.chars().filter(|letter| letter.is_alphanumeric()).collect::<String>();
    let whole = letters(&fold(text));
    let mut parts: Vec<String> = parts.iter().map(|part| letters(part)).collect();
    parts.retain(|part| part.chars().count() >= MIN_PART_CHARS);
    // The whole address before its parts.
    parts.sort_by_key(|part| std::cmp::Reverse(part.len()));
    // A space keeps what is left and right of a part from becoming another part.
    let rest = parts.iter().fold(whole.clone(), |rest, part| rest.replace(part.as_str(), " "));
    rest != whole && rest.chars().filter(|letter| *letter != ' ').count() < MIN_OWN_CHARS
}

/// Why a password is weak, as the end of a sentence.
const fn reason(warning: Option<Warning>) -> &'static str {
    match warning {
        Some(
            Warning::ThisIsATop10Password | Warning::ThisIsATop100Password | Warning::ThisIsACommonPassword,
        ) => "many people use it",
        Some(Warning::ThisIsSimilarToACommonlyUsedPassword) => "many people use one like it",
        Some(Warning::StraightRowsOfKeysAreEasyToGuess | Warning::ShortKeyboardPatternsAreEasyToGuess) => {
            "keys that are next to each other are tried first"
        }
        Some(
            Warning::RepeatsLikeAaaAreEasyToGuess | Warning::RepeatsLikeAbcAbcAreOnlySlightlyHarderToGuess,
        ) => "repetitions add almost nothing",
        Some(Warning::SequencesLikeAbcAreEasyToGuess) => "sequences such as abc or 6543 add almost nothing",
        Some(Warning::RecentYearsAreEasyToGuess | Warning::DatesAreOftenEasyToGuess) => {
            "dates and years are tried first"
        }
        Some(Warning::AWordByItselfIsEasyToGuess) => "one word isn't enough",
        Some(
            Warning::NamesAndSurnamesByThemselvesAreEasyToGuess
            | Warning::CommonNamesAndSurnamesAreEasyToGuess,
        ) => "names are tried first",
        None => "it has too few parts that nobody would guess",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Result<(), &'static str> {
        let email = Email::parse("ana.ruiz@nordlys.test").unwrap();
        let known = Known { email: &email, name: "Ana Ruiz", company: "Nordlys & Söhne" };
        check(text, &known).map_err(|fault| fault.code)
    }

    #[test]
    fn passwords_are_ten_to_256_characters() {
        let (longest, too_long) =
            ("kestrel over 7 bridges, ".repeat(10), "kestrel over 7 bridges, ".repeat(11));
        let table = [
            ("correct horse 9 battery", Ok(())),
            ("ÄÖÜ-vier Kühe im Regen", Ok(())),
            ("密码不是一个好密码但够长", Ok(())),
            (longest.as_str(), Ok(())),
            ("nine char", Err("too_short")),
            ("äöüäöüäöü", Err("too_short")),
            (too_long.as_str(), Err("too_long")),
            ("with a nul \0", Err("nul_character")),
            ("", Err("empty")),
        ];
        for (text, expected) in table {
            assert_eq!(code(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_password_that_a_program_would_guess_is_refused_with_the_reason() {
        let email = Email::parse("bo@acme.test").unwrap();
        let known = Known { email: &email, name: "Bo", company: "Acme" };
        let table = [
            ("1234567890", "many people use it"),
            ("password123", "many people use it"),
            ("P4ssw0rd12", "many people use one like it"),
            ("wertyuiop[", "next to each other"),
            ("dfghjkl;'[", "next to each other"),
            ("aaaaaaaaaaaaaaaa", "repetitions"),
            ("abcabcabcabcabc", "repetitions"),
            ("abcdefghijklmnop", "sequences"),
            ("13.05.1987", "dates and years"),
            ("constantinople", "one word"),
            ("jennifer1987", "names"),
            ("trustworthiness", "too few parts"),
        ];
        for (text, reason) in table {
            let fault = check(text, &known).expect_err(text);
            assert_eq!(fault.code, "too_weak", "{text}");
            assert!(fault.detail.contains(reason), "{text}: {}", fault.detail);
        }
    }

    #[test]
    fn a_password_that_an_acquaintance_would_guess_is_refused() {
        let table = [
            ("ana.ruiz@nordlys.test", Err("too_personal")),
            ("Ana.Ruiz@Nordlys.test!1", Err("too_personal")),
            ("ANA RUIZ ANA RUIZ", Err("too_personal")),
            ("nordlys-2026", Err("too_personal")),
            ("Nordlys&Söhne7", Err("too_personal")),
            ("ruiznordlysana99", Err("too_personal")),
            ("rapportrapport1", Err("too_personal")),
            // A part of the name among other words is fine.
            ("Ana keeps seven kestrels", Ok(())),
            // Short names are in too many words.
            ("banana-thruizt-gulf-9", Ok(())),
        ];
        for (text, expected) in table {
            assert_eq!(code(text), expected, "{text}");
        }
    }

    #[test]
    fn what_others_know_makes_a_password_weaker() {
        let email = Email::parse("bo@acme.test").unwrap();
        let text = "kestrelmere-harbour";
        assert!(check(text, &Known { email: &email, name: "Bo", company: "Acme" }).is_ok());
        let known = Known { email: &email, name: "Kestrelmere", company: "Harbour 9" };
        assert!(check(text, &known).is_err());
    }

    #[test]
    fn a_long_password_is_rated_by_its_beginning() {
        let long = format!("{}{}", "kestrel over the 7 bridges ", "a".repeat(200));
        assert_eq!(code(&long), Ok(()));
        assert_eq!(code(&"a".repeat(256)), Err("too_weak"));
    }

    #[test]
    fn the_same_letters_are_the_same_password() {
        let (composed, decomposed) = ("M\u{fc}nchen im Regen", "Mu\u{308}nchen im Regen");
        assert_ne!(composed, decomposed);
        assert_eq!(normalized(decomposed), composed);
        assert!(matches!(normalized(composed), Cow::Borrowed(_)));
    }

    #[test]
    fn only_the_length_is_checked_before_the_person_is_known() {
        assert_eq!(new_password(&Value::from("ana ana ana")), Ok("ana ana ana".to_owned()));
        assert_eq!(new_password(&Value::from("short")).unwrap_err().code, "too_short");
        assert_eq!(new_password(&Value::from(5)).unwrap_err().code, "wrong_type");
    }
}

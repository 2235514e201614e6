//! A login that was started: what the browser keeps, signed, until it comes back from the provider.

use data_encoding::HEXLOWER;
use rapport_domain::credential::Presented;
use rapport_domain::id::{CompanyId, FormId, base32};
use rapport_domain::sso::{ATTEMPT_SECONDS, is_same_secret};
use rapport_domain::time::Time;

use crate::context::Services;
use crate::sso::provider::Bond;
use crate::vault::{Purpose, Vault};

/// A longer page to go on to is not kept: browsers drop long cookies.
pub const MAX_NEXT_BYTES: usize = 1_000;
/// 160 bits could not be guessed either; 256 make a verifier long enough for PKCE.
const SECRET_BYTES: usize = 32;

pub struct Attempt {
    /// Makes it count once.
    pub form: FormId,
    pub company: CompanyId,
    until: Time,
    state: String,
    nonce: String,
    verifier: String,
    /// The page to go on to.
    pub next: String,
    /// The session whose person proves again who they are, by its hash. None for a login.
    session: Option<String>,
}

impl Attempt {
    pub fn new(services: &Services, company: CompanyId, next: &str, session: Option<Presented>) -> Self {
        let now = services.now();
        let secret = || base32().encode(&services.random::<SECRET_BYTES>());
        let next = if next.len() <= MAX_NEXT_BYTES { next } else { "/" };
        Self {
            form: services.id(now),
            company,
            until: now.plus_seconds(ATTEMPT_SECONDS),
            state: secret(),
            nonce: secret(),
            verifier: secret(),
            next: next.to_owned(),
            session: session.map(|session| HEXLOWER.encode(session.hash.as_bytes())),
        }
    }

    /// Whether this is no login, but somebody who proves again who they are.
    pub fn is_proof(&self) -> bool {
        self.session.is_some()
    }

    /// Whether it is for this session.
    pub fn is_for(&self, session: &Presented) -> bool {
        self.session.as_ref().is_some_and(|hash| *hash == HEXLOWER.encode(session.hash.as_bytes()))
    }

    /// When it started.
    pub fn started_at(&self) -> Time {
        self.until.plus_seconds(-ATTEMPT_SECONDS)
    }

    pub fn bond<'a>(&'a self, redirect_uri: &'a str) -> Bond<'a> {
        Bond {
            redirect_uri,
            state: &self.state,
            nonce: &self.nonce,
            verifier: &self.verifier,
            asks_again: self.is_proof(),
        }
    }

    /// The text for the browser's cookie.
    pub fn to_cookie(&self, vault: &Vault) -> String {
        let Self { form, company, until, state, nonce, verifier, next, session } = self;
        let (next, session) = (HEXLOWER.encode(next.as_bytes()), session.as_deref().unwrap_or(""));
        let (company, until) = (company.0, until.as_micros());
        let text = format!("{form}.{company}.{until}.{state}.{nonce}.{verifier}.{next}.{session}");
        let signature = vault.sign(Purpose::Sso, &[text.as_bytes()]).unwrap_or_default();
        format!("{text}.{signature}")
    }

    /// Reads the cookie of this browser, if we signed it, it is not too old, and the provider repeats its state.
    pub fn from_cookie(vault: &Vault, cookie: &str, state: &str, now: Time) -> Option<Self> {
        let (text, signature) = cookie.rsplit_once('.')?;
        if !vault.has_signed(Purpose::Sso, &[text.as_bytes()], signature) {
            return None;
        }
        let mut parts = text.split('.');
        let mut part = || parts.next();
        let read = Self {
            form: part()?.parse().ok()?,
            company: CompanyId(part()?.parse().ok()?),
            until: Time::from_micros(part()?.parse().ok()?),
            state: part()?.to_owned(),
            nonce: part()?.to_owned(),
            verifier: part()?.to_owned(),
            next: String::from_utf8(HEXLOWER.decode(part()?.as_bytes()).ok()?).ok()?,
            session: Some(part()?.to_owned()).filter(|hash| !hash.is_empty()),
        };
        (now < read.until && is_same_secret(&read.state, state)).then_some(read)
    }
}

#[cfg(test)]
mod tests {
    use rapport_domain::credential::{self, Kind, issue};

    use super::*;

    const NOW: Time = Time::from_micros(1_700_000_000_000_000);

    fn attempt(next: &str) -> Attempt {
        let text = |letter: &str| letter.repeat(52);
        Attempt {
            form: FormId::from_bytes([3; 16]),
            company: CompanyId(7),
            until: NOW.plus_seconds(ATTEMPT_SECONDS),
            state: text("s"),
            nonce: text("n"),
            verifier: text("v"),
            next: next.to_owned(),
            session: None,
        }
    }

    #[test]
    fn a_proof_is_for_one_session() {
        let session = |text: &str| issue_for(text);
        let (vault, hers) = (Vault::new(&[7; 32]), session("a"));
        let proof = Attempt { session: Some(HEXLOWER.encode(hers.hash.as_bytes())), ..attempt("/") };
        let read =
            Attempt::from_cookie(&vault, &proof.to_cookie(&vault), &"s".repeat(52), NOW).expect("an attempt");
        assert!(read.is_proof() && read.is_for(&hers) && !read.is_for(&session("b")));
        assert!(read.bond("").asks_again && read.started_at() == NOW);
        let login =
            Attempt::from_cookie(&vault, &attempt("/").to_cookie(&vault), &"s".repeat(52), NOW).unwrap();
        assert!(!login.is_proof() && !login.is_for(&hers) && !login.bond("").asks_again);
    }

    fn issue_for(letter: &str) -> Presented {
        let secret = [letter.as_bytes()[0]; 20];
        credential::read(Kind::Session, &issue(Kind::Session, CompanyId(7), secret).text).unwrap()
    }

    #[test]
    fn an_attempt_comes_back_as_it_was() {
        let (vault, next) = (Vault::new(&[7; 32]), "/accounts?q=a.b&x=\u{fc}");
        let cookie = attempt(next).to_cookie(&vault);
        assert!(cookie.bytes().all(|byte| byte.is_ascii_graphic() && !b";,\"\\".contains(&byte)), "{cookie}");
        let read = Attempt::from_cookie(&vault, &cookie, &"s".repeat(52), NOW).expect("an attempt");
        assert_eq!(
            (read.form, read.company, read.next.as_str()),
            (FormId::from_bytes([3; 16]), CompanyId(7), next)
        );
        let bond = read.bond("https://crm.acme.test/");
        assert_eq!((bond.nonce, bond.verifier), ("n".repeat(52).as_str(), "v".repeat(52).as_str()));
    }

    #[test]
    fn only_our_own_attempt_of_this_browser_counts_and_not_for_long() {
        let (vault, state) = (Vault::new(&[7; 32]), "s".repeat(52));
        let cookie = attempt("/").to_cookie(&vault);
        let later = |seconds| NOW.plus_seconds(ATTEMPT_SECONDS + seconds);
        assert!(Attempt::from_cookie(&vault, &cookie, &state, later(-1)).is_some());
        assert!(Attempt::from_cookie(&vault, &cookie, &state, later(0)).is_none(), "too late");
        for state in ["", "s", &"t".repeat(52)] {
            assert!(Attempt::from_cookie(&vault, &cookie, state, NOW).is_none(), "{state}");
        }
        let (text, signature) = cookie.rsplit_once('.').unwrap();
        for forged in [
            String::new(),
            text.to_owned(),
            format!("{}.{signature}", text.replace(".7.", ".8.")),
            format!("{text}.{}", "0".repeat(64)),
            attempt("/").to_cookie(&Vault::new(&[8; 32])),
        ] {
            assert!(Attempt::from_cookie(&vault, &forged, &state, NOW).is_none(), "{forged}");
        }
    }
}

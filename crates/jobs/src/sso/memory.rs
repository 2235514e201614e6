//! What providers say about themselves, kept for a while: otherwise every login would ask twice more. Failures are kept
//! too, for a moment: anyone can start a login, and nobody must be able to have us send requests as often as they like.

use std::collections::HashMap;

use openidconnect::core::CoreProviderMetadata;
use parking_lot::Mutex;
use rapport_app::sso::provider::ProviderError;
use rapport_domain::sso::Issuer;
use rapport_domain::time::Time;

/// How long a provider is believed. A key that it no longer publishes is accepted for no longer than this.
const KEPT_SECONDS: i64 = 10 * 60;
/// How long a failure is.
const FAILURE_SECONDS: i64 = 5;
/// A token with an unknown key makes us ask for the keys again, but only this often.
const KEYS_AGAIN_SECONDS: i64 = 60;
/// Each company has one provider, and many have the same.
const MAX_REMEMBERED: usize = 1_000;

#[derive(Default)]
pub struct Memory(Mutex<HashMap<String, Remembered>>);

struct Remembered {
    answer: Result<CoreProviderMetadata, ProviderError>,
    at: Time,
    keys_asked_at: Time,
}

impl Remembered {
    fn is_fresh(&self, now: Time) -> bool {
        let seconds = if self.answer.is_ok() { KEPT_SECONDS } else { FAILURE_SECONDS };
        is_within(self.at, seconds, now)
    }
}

impl Memory {
    /// What the provider said, if that was not too long ago.
    pub fn recall(&self, issuer: &Issuer, now: Time) -> Option<Result<CoreProviderMetadata, ProviderError>> {
        let known = self.0.lock();
        let found = known.get(issuer.as_str()).filter(|known| known.is_fresh(now));
        found.map(|known| known.answer.clone())
    }

    pub fn remember(&self, issuer: &Issuer, answer: &Result<CoreProviderMetadata, ProviderError>, now: Time) {
        let mut known = self.0.lock();
        if known.len() >= MAX_REMEMBERED {
            known.retain(|_, known| known.is_fresh(now));
        }
        if known.len() < MAX_REMEMBERED || known.contains_key(issuer.as_str()) {
            let remembered = Remembered { answer: answer.clone(), at: now, keys_asked_at: now };
            known.insert(issuer.as_str().to_owned(), remembered);
        }
    }

    /// Whether to ask for the keys again. If so, that is noted.
    pub fn may_ask_for_keys(&self, issuer: &Issuer, now: Time) -> bool {
        match self.0.lock().get_mut(issuer.as_str()) {
            Some(known) if is_within(known.keys_asked_at, KEYS_AGAIN_SECONDS, now) => false,
            Some(known) => {
                known.keys_asked_at = now;
                true
            }
            // There was no room to remember it.
            None => false,
        }
    }

    /// Replaces the keys; the rest is not newer than before.
    pub fn replace_keys(&self, issuer: &Issuer, described: &CoreProviderMetadata) {
        if let Some(known) = self.0.lock().get_mut(issuer.as_str()) {
            known.answer = Ok(described.clone());
        }
    }
}

/// Whether `now` is within so many seconds after `at`. A clock that was set back makes nothing last longer.
fn is_within(at: Time, seconds: i64, now: Time) -> bool {
    at <= now && now < at.plus_seconds(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Time = Time::from_micros(1_700_000_000_000_000);

    #[expect(clippy::unnecessary_wraps, reason = "this is what is remembered")]
    fn described(number: usize) -> Result<CoreProviderMetadata, ProviderError> {
        let text = format!(
            r#"{{"issuer": "https://{number}.test", "authorization_endpoint": "https://{number}.test/auth",
                 "jwks_uri": "https://{number}.test/keys", "response_types_supported": ["code"],
                 "subject_types_supported": ["public"], "id_token_signing_alg_values_supported": ["RS256"]}}"#
        );
        Ok(serde_json::from_str(&text).expect("a description"))
    }

    fn issuer(number: usize) -> Issuer {
        Issuer::from_stored(format!("https://{number}.test"))
    }

    #[test]
    fn a_provider_is_believed_for_ten_minutes() {
        let memory = Memory::default();
        assert!(memory.recall(&issuer(1), START).is_none());
        memory.remember(&issuer(1), &described(1), START);
        assert_eq!(memory.recall(&issuer(1), START.plus_seconds(599)), Some(described(1)));
        assert!(memory.recall(&issuer(2), START).is_none());
        assert!(memory.recall(&issuer(1), START.plus_seconds(600)).is_none());
        assert!(memory.recall(&issuer(1), START.plus_seconds(-1)).is_none(), "the clock was set back");
    }

    #[test]
    fn a_failure_is_remembered_for_a_moment() {
        let memory = Memory::default();
        memory.remember(&issuer(1), &Err(ProviderError::NoKey), START);
        assert_eq!(memory.recall(&issuer(1), START.plus_seconds(4)), Some(Err(ProviderError::NoKey)));
        assert!(memory.recall(&issuer(1), START.plus_seconds(5)).is_none());
    }

    #[test]
    fn keys_are_asked_for_once_a_minute() {
        let memory = Memory::default();
        assert!(!memory.may_ask_for_keys(&issuer(1), START), "a provider that we don't know");
        memory.remember(&issuer(1), &described(1), START);
        let asks =
            [0, 59, 60, 61, 119, 120].map(|at| memory.may_ask_for_keys(&issuer(1), START.plus_seconds(at)));
        assert_eq!(asks, [false, false, true, false, false, true]);
    }

    #[test]
    fn the_memory_is_bounded() {
        let memory = Memory::default();
        for number in 0..MAX_REMEMBERED {
            memory.remember(&issuer(number), &described(number), START);
        }
        let (new, later) = (issuer(MAX_REMEMBERED), START.plus_seconds(KEPT_SECONDS));
        memory.remember(&new, &described(1), START);
        assert!(memory.recall(&new, START).is_none());
        memory.remember(&issuer(1), &described(1), START.plus_seconds(1));
        assert!(memory.recall(&issuer(1), later).is_some(), "a known one is kept up to date");
        memory.remember(&new, &described(1), later);
        assert!(memory.recall(&new, later).is_some(), "old ones make room");
    }
}

//! Keeps repeated events out of the audit log, so that someone who guesses passwords or tries everything can't flood
//! it. Each process counts for itself.

use std::collections::HashMap;

use parking_lot::Mutex;
use rapport_domain::audit::REPEAT_SECONDS;
use rapport_domain::credential::SecretHash;
use rapport_domain::id::{CompanyId, PersonId};
use rapport_domain::sso::entry::Reason;
use rapport_domain::time::Time;

/// How many events are remembered. If there are more within a minute, the others aren't recorded.
const MAX_REMEMBERED: usize = 10_000;

/// What may be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Repeated {
    FailedLogin(PersonId),
    Refusal(SecretHash),
    SsoRefusal(CompanyId, Reason),
}

/// What was recorded during the last minute.
#[derive(Default)]
pub struct Repeats(Mutex<HashMap<Repeated, Time>>);

impl Repeats {
    /// Whether this is the first of its kind within a minute. If so, it is remembered.
    pub fn is_first(&self, what: Repeated, now: Time) -> bool {
        let mut recorded = self.0.lock();
        // A clock that was set back must not silence the log.
        let is_recent = |at: Time| at <= now && at.plus_seconds(REPEAT_SECONDS) > now;
        if recorded.get(&what).is_some_and(|at| is_recent(*at)) {
            return false;
        }
        if recorded.len() >= MAX_REMEMBERED {
            recorded.retain(|_, at| is_recent(*at));
        }
        if recorded.len() >= MAX_REMEMBERED {
            return false;
        }
        recorded.insert(what, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Time = Time::from_micros(1_700_000_000_000_000);

    fn person(number: usize) -> Repeated {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        Repeated::FailedLogin(PersonId::from_bytes(bytes))
    }

    #[test]
    fn each_is_recorded_once_a_minute() {
        let repeats = Repeats::default();
        assert!(repeats.is_first(person(1), START));
        assert!(!repeats.is_first(person(1), START.plus_seconds(59)));
        assert!(repeats.is_first(person(2), START.plus_seconds(59)));
        assert!(repeats.is_first(person(1), START.plus_seconds(60)));
        assert!(repeats.is_first(person(1), START.plus_seconds(-3_600)), "the clock was set back");
    }

    #[test]
    fn the_memory_is_bounded() {
        let repeats = Repeats::default();
        assert!((0..MAX_REMEMBERED).all(|number| repeats.is_first(person(number), START)));
        assert!(!repeats.is_first(person(MAX_REMEMBERED), START));
        assert!(repeats.is_first(person(MAX_REMEMBERED), START.plus_seconds(60)));
        assert_eq!(repeats.0.lock().len(), 1);
    }
}

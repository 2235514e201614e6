//! Following events and accounts with a cursor: which events there are to read, how long a reader may wait for the next
//! ones, and how long a cursor is valid.

use crate::delivery::HISTORY_DAYS;
use crate::event::Kind;
use crate::invalid::Fault;
use crate::time::Time;

/// The longest time that a request waits for events. Longer waits count as this one.
pub const MAX_WAIT_SECONDS: u64 = 25;

/// The kinds of events that a reader asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kinds(pub Vec<Kind>);

impl Kinds {
    /// Without a choice it is every kind that tells something about the company. A test only tells something about its
    /// webhook, so it has to be asked for.
    pub fn include(&self, kind: Kind) -> bool {
        if self.0.is_empty() { kind != Kind::WebhookTest } else { self.0.contains(&kind) }
    }
}

/// Reads how many seconds to wait for events.
pub fn parse_wait(text: &str) -> Result<u64, Fault> {
    let seconds: u64 =
        text.parse().map_err(|_| Fault::new("wrong_type", "must be a whole number of seconds, 0 or more"))?;
    Ok(seconds.min(MAX_WAIT_SECONDS))
}

/// The time up to which a reader has seen everything, if the last event it passed is from `reached` and there are more.
/// Events that are about to go don't end a reader that has just begun with them.
pub fn complete_at(reached: Time, now: Time) -> Time {
    reached.max(now.plus_days(1 - HISTORY_DAYS))
}

/// Whether something that a cursor has yet to show may be gone: events and deletions are kept for a limited time.
/// `complete_at` is a time up to which the cursor's reader has seen everything.
pub fn has_expired(complete_at: Time, now: Time) -> bool {
    complete_at < now.plus_days(-HISTORY_DAYS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_of_webhooks_have_to_be_asked_for() {
        let created = Kinds(vec![Kind::AccountCreated]);
        let tests = Kinds(vec![Kind::WebhookTest, Kind::MessageInbound]);
        for (kinds, kind, expected) in [
            (&Kinds::default(), Kind::AccountCreated, true),
            (&Kinds::default(), Kind::ClientContactDue, true),
            (&Kinds::default(), Kind::WebhookTest, false),
            (&created, Kind::AccountCreated, true),
            (&created, Kind::AccountStatusChanged, false),
            (&tests, Kind::WebhookTest, true),
            (&tests, Kind::AccountCreated, false),
        ] {
            assert_eq!(kinds.include(kind), expected, "{kinds:?} {kind:?}");
        }
    }

    #[test]
    fn a_wait_is_a_number_of_seconds_up_to_a_limit() {
        for (text, expected) in [("0", Some(0)), ("10", Some(10)), ("25", Some(25)), ("30", Some(25))] {
            assert_eq!(parse_wait(text).ok(), expected, "{text}");
        }
        for text in ["-1", "1.5", "soon", "1s", ""] {
            assert_eq!(parse_wait(text).map_err(|fault| fault.code), Err("wrong_type"), "{text}");
        }
    }

    #[test]
    fn a_cursor_expires_when_what_it_has_yet_to_show_may_be_gone() {
        let now = Time::from_micros(1_800_000_000_000_000);
        assert!(!has_expired(now, now));
        assert!(!has_expired(now.plus_days(-HISTORY_DAYS), now));
        assert!(has_expired(now.plus_days(-HISTORY_DAYS).plus_seconds(-1), now));
        for (days, expected) in [(1, 1), (89, 89), (90, 89), (200, 89)] {
            assert_eq!(complete_at(now.plus_days(-days), now), now.plus_days(-expected), "{days} days ago");
        }
    }
}

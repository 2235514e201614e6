//! Sessions: one person logged in to one company with one browser. The company decides how long they last.

use std::ops::RangeInclusive;

use crate::id::{PersonId, SessionId};
use crate::invalid::{Fault, Members, as_integer};
use crate::member::Role;
use crate::second_factor::{Step, next_step};
use crate::time::Time;

const HOUR_MINUTES: i64 = 60;
const DAY_MINUTES: i64 = 24 * HOUR_MINUTES;
/// How long a company can let sessions live that nobody uses.
pub const IDLE_MINUTES: RangeInclusive<i64> = 15..=90 * DAY_MINUTES;
/// How long a company can let sessions live at all.
pub const MAX_MINUTES: RangeInclusive<i64> = HOUR_MINUTES..=365 * DAY_MINUTES;
/// How long a browser keeps a session's cookie. The service decides earlier whether the session still lives.
pub const COOKIE_DAYS: i64 = 365;
/// After this long, something sensitive asks again who is there.
pub const PROOF_SECONDS: i64 = 15 * 60;
/// How much of a browser's user agent is kept.
pub const MAX_BROWSER_CHARS: usize = 200;
/// The precision with which a session's last use is known, in seconds.
const SEEN_SECONDS: RangeInclusive<i64> = 60..=5 * 60;

/// How long sessions of a company live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// A session that is unused for this long expires.
    pub idle_minutes: i64,
    /// Every session expires after this long, even in constant use.
    pub max_minutes: i64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { idle_minutes: 14 * DAY_MINUTES, max_minutes: 90 * DAY_MINUTES }
    }
}

impl Limits {
    /// The limits after a PATCH of the settings.
    pub(crate) fn patched(self, members: &mut Members) -> Self {
        let idle = members.replaceable("session_idle_minutes", |value| as_integer(value, IDLE_MINUTES));
        let max = members.replaceable("session_max_minutes", |value| as_integer(value, MAX_MINUTES));
        let patched = Self {
            idle_minutes: idle.unwrap_or(self.idle_minutes),
            max_minutes: max.unwrap_or(self.max_minutes),
        };
        if patched.idle_minutes > patched.max_minutes {
            let (member, detail) = match max {
                Some(_) => ("session_max_minutes", "must not be below session_idle_minutes"),
                None => ("session_idle_minutes", "must not be above session_max_minutes"),
            };
            members.fault(member, Fault::new("out_of_range", detail));
        }
        patched
    }

    pub fn is_over(self, created_at: Time, last_seen_at: Time, now: Time) -> bool {
        last_seen_at <= self.unseen_since(now) || created_at <= self.begun_before(now)
    }

    /// Sessions that were last used then are over.
    pub const fn unseen_since(self, now: Time) -> Time {
        now.plus_seconds(-60 * self.idle_minutes)
    }

    /// Sessions that began then are over.
    pub const fn begun_before(self, now: Time) -> Time {
        now.plus_seconds(-60 * self.max_minutes)
    }

    /// How old the note of a session's last use may get. A short limit needs a precise one.
    pub fn seen_seconds(self) -> i64 {
        let fraction = self.idle_minutes * 60 / 15;
        fraction.clamp(*SEEN_SECONDS.start(), *SEEN_SECONDS.end())
    }
}

/// A session of an active member, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub id: SessionId,
    pub person: PersonId,
    /// The person's current name and role, not those at login.
    pub name: String,
    pub role: Role,
    pub created_at: Time,
    pub last_seen_at: Time,
    /// When the person last proved in this session who they are: at login, and when they were asked again.
    pub proved_at: Time,
    /// Whether it began with single sign-on. Then it works for its company only, and may not do anything that reaches the
    /// person's other companies: their company's provider could have begun it.
    pub by_sso: bool,
    /// The number of companies in which the person is an active member.
    pub companies: i64,
    /// When a second factor was shown, if one was.
    pub second_factor_at: Option<Time>,
    /// Whether the person has a second factor.
    pub has_factor: bool,
}

impl Session {
    pub fn is_over(&self, limits: Limits, now: Time) -> bool {
        limits.is_over(self.created_at, self.last_seen_at, now)
    }

    /// What the person has to do before they see a company that requires a second factor, or doesn't.
    pub const fn next_step(&self, is_required: bool) -> Step {
        next_step(self.second_factor_at.is_some(), self.has_factor, is_required)
    }
}

/// Whether a proof of who someone is still counts for something sensitive.
pub fn is_recent_proof(proved_at: Time, now: Time) -> bool {
    now < proved_at.plus_seconds(PROOF_SECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invalid::Invalid;
    use serde_json::{Value, json};

    #[test]
    fn a_session_ends_when_unused_and_eventually_in_any_case() {
        let start = Time::parse("2026-01-01T00:00:00Z").unwrap();
        let table = [(0, 13, false), (0, 14, true), (80, 89, false), (89, 90, true)];
        for (seen, now, over) in table {
            let limits = Limits::default();
            assert_eq!(
                limits.is_over(start, start.plus_days(seen), start.plus_days(now)),
                over,
                "{seen} {now}"
            );
        }
        let short = Limits { idle_minutes: 15, max_minutes: 60 };
        for (seen, now, over) in [(0, 14, false), (0, 15, true), (50, 59, false), (59, 60, true)] {
            let at = |minutes: i64| start.plus_seconds(60 * minutes);
            assert_eq!(short.is_over(start, at(seen), at(now)), over, "{seen} {now}");
        }
    }

    #[test]
    fn the_last_use_is_known_precisely_enough_for_the_limit() {
        for (idle_minutes, seconds) in [(15, 60), (30, 120), (60, 240), (120, 300), (20_160, 300)] {
            assert_eq!(
                Limits { idle_minutes, max_minutes: 525_600 }.seen_seconds(),
                seconds,
                "{idle_minutes}"
            );
        }
    }

    fn patched(body: Value) -> Result<(i64, i64), Vec<(String, &'static str)>> {
        let mut members = Members::of(body.as_object().unwrap());
        let limits = Limits::default().patched(&mut members);
        let faults = |invalid: Invalid| {
            invalid.0.into_iter().map(|fault| (fault.pointer, fault.code)).collect::<Vec<_>>()
        };
        members.finish().map(|()| (limits.idle_minutes, limits.max_minutes)).map_err(faults)
    }

    #[test]
    fn limits_have_bounds_and_fit_each_other() {
        let refused = |member: &str| Err(vec![(format!("/{member}"), "out_of_range")]);
        let table = [
            (json!({}), Ok((20_160, 129_600))),
            (json!({"session_idle_minutes": 15, "session_max_minutes": 60}), Ok((15, 60))),
            (json!({"session_idle_minutes": 129_600}), Ok((129_600, 129_600))),
            (json!({"session_max_minutes": 525_600}), Ok((20_160, 525_600))),
            (json!({"session_idle_minutes": 14}), refused("session_idle_minutes")),
            (
                json!({"session_idle_minutes": 129_601, "session_max_minutes": 525_600}),
                refused("session_idle_minutes"),
            ),
            (json!({"session_idle_minutes": 15, "session_max_minutes": 59}), refused("session_max_minutes")),
            (json!({"session_max_minutes": 525_601}), refused("session_max_minutes")),
            (json!({"session_max_minutes": 20_159}), refused("session_max_minutes")),
            (json!({"session_idle_minutes": 61, "session_max_minutes": 60}), refused("session_max_minutes")),
        ];
        for (body, expected) in table {
            assert_eq!(patched(body.clone()), expected, "{body}");
        }
        let short = Limits { idle_minutes: 30, max_minutes: 60 };
        let body = json!({"session_idle_minutes": 90});
        let mut members = Members::of(body.as_object().unwrap());
        short.patched(&mut members);
        assert_eq!(members.finish().unwrap_err().0[0].pointer, "/session_idle_minutes");
    }

    #[test]
    fn a_proof_counts_for_fifteen_minutes() {
        let at = Time::parse("2026-01-01T00:00:00Z").unwrap();
        for (seconds, is_recent) in [(0, true), (899, true), (900, false), (86_400, false)] {
            assert_eq!(is_recent_proof(at, at.plus_seconds(seconds)), is_recent, "{seconds}");
        }
    }
}

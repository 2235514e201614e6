//! Sessions: one person logged in to one company with one browser.

use crate::id::{PersonId, SessionId};
use crate::member::Role;
use crate::time::Time;

/// A session that is unused for this long expires.
pub const IDLE_DAYS: i64 = 14;
/// Every session expires after this long, even in constant use.
pub const MAX_DAYS: i64 = 90;
/// How much of a browser's user agent is kept.
pub const MAX_BROWSER_CHARS: usize = 200;

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
    /// The number of companies in which the person is an active member.
    pub companies: i64,
}

impl Session {
    pub fn is_over(&self, now: Time) -> bool {
        is_over(self.created_at, self.last_seen_at, now)
    }
}

pub fn is_over(created_at: Time, last_seen_at: Time, now: Time) -> bool {
    now >= last_seen_at.plus_days(IDLE_DAYS) || now >= created_at.plus_days(MAX_DAYS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_ends_when_unused_and_eventually_in_any_case() {
        let start = Time::parse("2026-01-01T00:00:00Z").unwrap();
        let table = [(0, 13, false), (0, 14, true), (80, 89, false), (89, 90, true)];
        for (seen, now, over) in table {
            assert_eq!(is_over(start, start.plus_days(seen), start.plus_days(now)), over, "{seen} {now}");
        }
    }
}

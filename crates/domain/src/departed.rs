//! Logins of people who belong to no company any more.

use crate::time::Time;

/// How long such a login is kept. Who was removed by mistake, or comes back soon, still has it.
pub const KEPT_DAYS: i64 = 30;

/// A login, and what is known about its companies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    pub is_member: bool,
    /// When it was first seen without a company.
    pub left_at: Option<Time>,
}

/// What becomes of a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Stays,
    /// It has no company: note since when.
    Departs,
    /// It has a company again.
    Returns,
    Ends,
}

pub fn fate(standing: Standing, now: Time) -> Fate {
    match (standing.is_member, standing.left_at) {
        (true, Some(_)) => Fate::Returns,
        (false, None) => Fate::Departs,
        (false, Some(left_at)) if now >= left_at.plus_days(KEPT_DAYS) => Fate::Ends,
        (true, None) | (false, Some(_)) => Fate::Stays,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_without_a_company_ends_after_a_month() {
        let now = Time::parse("2026-03-01T00:00:00Z").unwrap();
        let table = [
            (true, None, Fate::Stays),
            (true, Some(100), Fate::Returns),
            (false, None, Fate::Departs),
            (false, Some(0), Fate::Stays),
            (false, Some(29), Fate::Stays),
            (false, Some(30), Fate::Ends),
        ];
        for (is_member, days_ago, expected) in table {
            let left_at = days_ago.map(|days: i64| now.plus_days(-days));
            assert_eq!(fate(Standing { is_member, left_at }, now), expected, "{is_member} {days_ago:?}");
        }
    }
}

//! The track record of a webhook's receiver, as far as sending is concerned.
//!
//! Receivers of different standing never compete for the same request slots: a proven receiver must not wait
//! for ones that hang, and a new one must not wait for either.

/// After this many failures in a row, a receiver that used to work counts as failing. A single failure
/// reduces its concurrency but leaves it among the proven.
pub const FAILING_AFTER: i64 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Standing {
    /// Has neither succeeded nor failed yet.
    New,
    /// Has succeeded, with at most a few failures in a row since.
    Proven,
    Failing,
}

impl Standing {
    /// The standing of a receiver, from whether it ever succeeded and its current failure streak.
    pub const fn of(proven: bool, failure_streak: i64) -> Self {
        match (proven, failure_streak) {
            (false, 0) => Self::New,
            (true, streak) if streak < FAILING_AFTER => Self::Proven,
            _ => Self::Failing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standing_follows_from_success_and_streak() {
        for (proven, streak, expected) in [
            (false, 0, Standing::New),
            (false, 1, Standing::Failing),
            (false, 20, Standing::Failing),
            (true, 0, Standing::Proven),
            (true, FAILING_AFTER - 1, Standing::Proven),
            (true, FAILING_AFTER, Standing::Failing),
            (true, 20, Standing::Failing),
        ] {
            assert_eq!(Standing::of(proven, streak), expected, "proven {proven}, streak {streak}");
        }
    }
}

//! What a webhook's receiver has shown so far, as far as sending cares.
//!
//! Receivers of different standing never compete for the same requests under way: one that has proved itself
//! must not wait for those that hang, and one that nobody knows yet must not wait for either.

/// Failures in a row after which a receiver that once worked counts as failing. A single bad answer costs it
/// its concurrency, not its place among the proven.
pub const FAILING_AFTER: i64 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Standing {
    /// Never answered with success, never failed.
    New,
    /// Has answered with success, and failed at most a few times in a row since.
    Proven,
    Failing,
}

impl Standing {
    /// The standing of a receiver by whether it ever answered with success, and its failures in a row.
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

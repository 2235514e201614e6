//! Proving again who one is, in a session that began with single sign-on: the provider asks, and says when it did.

use crate::time::Time;

/// How far a provider's clock may be behind ours.
const LEEWAY_SECONDS: i64 = 60;

/// Whether somebody logged in at the provider after they were sent there. A provider that doesn't say when they did may
/// not have asked at all.
pub fn is_after(authenticated_at: Option<Time>, sent_at: Time) -> bool {
    authenticated_at.is_some_and(|at| at >= sent_at.plus_seconds(-LEEWAY_SECONDS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_login_after_the_question_is_an_answer() {
        let sent_at = Time::from_micros(1_700_000_000_000_000);
        let at = |seconds| Some(sent_at.plus_seconds(seconds));
        for (authenticated_at, expected) in
            [(None, false), (at(-61), false), (at(-60), true), (at(0), true), (at(500), true)]
        {
            assert_eq!(is_after(authenticated_at, sent_at), expected, "{authenticated_at:?}");
        }
    }
}

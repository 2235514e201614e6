//! Deliveries: what the outcome of an attempt means, and when the next attempt is due.
//!
//! Pure policy. The schedule, the terminal status codes and what counts against the receiver are tables here
//! and again in the tests.

use crate::event::Kind;
use crate::id::{AccountId, DeliveryId, EventId, WebhookId};
use crate::schema::words;
use crate::time::Time;

/// The waits after each failed automatic attempt, in seconds: ten attempts in all.
pub const SCHEDULE_SECONDS: [i64; 9] =
    [5, 5 * 60, 30 * 60, 2 * 3600, 5 * 3600, 10 * 3600, 14 * 3600, 20 * 3600, 24 * 3600];
/// A receiver's `Retry-After` is honoured up to this.
pub const MAX_RETRY_AFTER_SECONDS: i64 = 24 * 3600;
/// The most jitter added to a wait, so that many retries don't happen at the same instant.
pub const MAX_JITTER_PERMILLE: i64 = 100;
/// The wait after a fault on our side prevented the attempt.
pub const OWN_FAULT_WAIT_SECONDS: i64 = 15;
pub const HISTORY_DAYS: i64 = 90;
pub const MAX_EXCERPT_BYTES: usize = 16 * 1024;
pub const CONNECT_TIMEOUT_SECONDS: u64 = 5;
pub const TOTAL_TIMEOUT_SECONDS: u64 = 15;

/// Why no complete response came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// The host name doesn't resolve.
    Dns,
    /// No connection: refused or unreachable.
    Connect,
    Tls,
    Timeout,
    /// The connection broke, or the response wasn't HTTP.
    Protocol,
    /// The destination guard refused the address.
    Refused,
    /// A fault on our side: no DNS server, no sockets, no key to decrypt the secret. Not charged.
    Own,
}

impl Failure {
    pub const ALL: [Self; 7] =
        [Self::Dns, Self::Connect, Self::Tls, Self::Timeout, Self::Protocol, Self::Refused, Self::Own];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::Protocol => "protocol",
            Self::Refused => "destination_refused",
            Self::Own => "own_fault",
        }
    }
}

words!(
    Failure,
    "ErrorClass",
    "Why an attempt got no complete response. `destination_refused`: the destination is not allowed. `own_fault`: an \
     error of the service itself, which is not counted against the receiver."
);

/// How one HTTP request of a delivery ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Answered {
        code: u16,
        /// `Retry-After` in seconds, if the response had one.
        retry_after: Option<i64>,
    },
    /// The status and the headers arrived, but the response was cut off or took too long.
    BrokenOff { code: u16, retry_after: Option<i64>, failure: Failure },
    /// No status arrived.
    Failed(Failure),
}

/// The consequence of an outcome for the delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Succeeded,
    /// A failure that is retried.
    Again,
    /// A failure that retrying can't fix.
    Final,
    /// Our fault: neither counted nor recorded against the receiver.
    NotCharged,
}

impl Outcome {
    /// The status code, if one arrived.
    pub const fn code(self) -> Option<u16> {
        match self {
            Self::Answered { code, .. } | Self::BrokenOff { code, .. } => Some(code),
            Self::Failed(_) => None,
        }
    }

    /// Why no complete response arrived, if it didn't.
    pub const fn failure(self) -> Option<Failure> {
        match self {
            Self::Answered { .. } => None,
            Self::BrokenOff { failure, .. } | Self::Failed(failure) => Some(failure),
        }
    }

    /// Only a complete response settles a delivery: one that was cut off is retried, whatever its code.
    pub const fn verdict(self) -> Verdict {
        match self {
            Self::Answered { code: 200..=299, .. } => Verdict::Succeeded,
            Self::Answered { code: 401 | 404 | 410, .. } => Verdict::Final,
            Self::Failed(Failure::Own) => Verdict::NotCharged,
            Self::Answered { .. } | Self::BrokenOff { .. } | Self::Failed(_) => Verdict::Again,
        }
    }

    /// How long the receiver asks us to wait; honoured only with 429 and 503.
    const fn asked_wait(self) -> Option<i64> {
        match self {
            Self::Answered { code: 429 | 503, retry_after: Some(seconds) }
            | Self::BrokenOff { code: 429 | 503, retry_after: Some(seconds), .. } => {
                Some(if seconds > MAX_RETRY_AFTER_SECONDS { MAX_RETRY_AFTER_SECONDS } else { seconds })
            }
            _ => None,
        }
    }
}

/// The state of a delivery. *Held* is derived: it is an open delivery of a disabled webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Open {
        /// The earliest time of the next attempt.
        next_at: Time,
    },
    Succeeded,
    Failed,
}

/// Why an attempt was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The schedule.
    Automatic,
    /// An operator's redelivery: one attempt that doesn't start a schedule.
    Manual,
}

/// The facts about a delivery that the policy needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub state: State,
    /// Automatic attempts recorded so far.
    pub scheduled: i64,
}

/// The delivery after an attempt. `jitter` is a random number that is reduced to a permille. `retries` is
/// whether the webhook is enabled: a disabled one gets one attempt and no schedule.
pub fn after_attempt(
    before: Progress,
    reason: Reason,
    outcome: Outcome,
    retries: bool,
    now: Time,
    jitter: u16,
) -> Progress {
    let verdict = outcome.verdict();
    if verdict == Verdict::Succeeded {
        let scheduled = before.scheduled + i64::from(reason == Reason::Automatic);
        return Progress { state: State::Succeeded, scheduled };
    }
    if reason == Reason::Manual {
        return before;
    }
    if !matches!(before.state, State::Open { .. }) {
        // A manual attempt has settled it in the meantime.
        return Progress { scheduled: before.scheduled + 1, ..before };
    }
    if verdict == Verdict::NotCharged {
        return Progress {
            state: State::Open { next_at: now.plus_seconds(OWN_FAULT_WAIT_SECONDS) },
            ..before
        };
    }
    let scheduled = before.scheduled + 1;
    let wait = usize::try_from(scheduled - 1).ok().and_then(|done| SCHEDULE_SECONDS.get(done)).copied();
    let state = match (verdict, wait) {
        (Verdict::Again, Some(wait)) if retries => {
            State::Open { next_at: next_at(now, wait, outcome, jitter) }
        }
        _ => State::Failed,
    };
    Progress { state, scheduled }
}

/// Never early: jitter and the receiver's `Retry-After` only add to the wait.
fn next_at(now: Time, wait_seconds: i64, outcome: Outcome, jitter: u16) -> Time {
    let permille = i64::from(jitter) % (MAX_JITTER_PERMILLE + 1);
    let jittered = wait_seconds * 1000 + wait_seconds * permille;
    let asked = outcome.asked_wait().unwrap_or(0).saturating_mul(1000);
    now.plus_millis(jittered.max(asked))
}

/// One event for one webhook, as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub id: DeliveryId,
    pub webhook: WebhookId,
    pub event: EventId,
    pub kind: Kind,
    pub account: Option<AccountId>,
    pub state: State,
    /// The number of attempts recorded, manual ones included.
    pub attempts: i64,
    pub scheduled: i64,
    pub response_code: Option<i64>,
    pub error: Option<String>,
    pub created_at: Time,
    pub finished_at: Option<Time>,
}

/// The durations of an attempt's phases, in microseconds; `None` for phases that didn't happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timings {
    pub dns: Option<i64>,
    pub connect: Option<i64>,
    pub tls: Option<i64>,
    pub first_byte: Option<i64>,
    pub total: i64,
}

/// One HTTP request of a delivery, as recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub started_at: Time,
    pub reason: Reason,
    pub outcome: Outcome,
    /// A description of what went wrong.
    pub error: Option<String>,
    pub timings: Timings,
    /// The IP address we connected to.
    pub address: Option<String>,
    pub excerpt: Vec<u8>,
    pub excerpt_cut: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_micros(1_700_000_000_000_000);

    fn answered(code: u16) -> Outcome {
        Outcome::Answered { code, retry_after: None }
    }

    fn open(scheduled: i64) -> Progress {
        Progress { state: State::Open { next_at: NOW }, scheduled }
    }

    #[test]
    fn delivery_semantics_are_the_documents_table() {
        for code in 100..600 {
            let expected = match code {
                200..=299 => Verdict::Succeeded,
                401 | 404 | 410 => Verdict::Final,
                _ => Verdict::Again,
            };
            assert_eq!(answered(code).verdict(), expected, "{code}");
        }
        for failure in Failure::ALL {
            let expected = if failure == Failure::Own { Verdict::NotCharged } else { Verdict::Again };
            assert_eq!(Outcome::Failed(failure).verdict(), expected, "{failure:?}");
        }
    }

    #[test]
    fn a_response_that_breaks_off_keeps_its_code_and_is_tried_again() {
        for code in [200, 204, 301, 401, 404, 410, 500] {
            for failure in [Failure::Protocol, Failure::Timeout] {
                let outcome = Outcome::BrokenOff { code, retry_after: None, failure };
                assert_eq!(outcome.verdict(), Verdict::Again, "{outcome:?}");
                assert_eq!((outcome.code(), outcome.failure()), (Some(code), Some(failure)));
            }
        }
        assert_eq!((answered(200).code(), answered(200).failure()), (Some(200), None));
        let failed = Outcome::Failed(Failure::Tls);
        assert_eq!((failed.code(), failed.failure()), (None, Some(Failure::Tls)));
    }

    #[test]
    fn ten_attempts_follow_the_schedule_and_never_come_early() {
        let waits = [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400];
        for (done, wait) in (0_i64..).zip(waits) {
            for jitter in [0, 50, 100, 101, u16::MAX] {
                let after = after_attempt(open(done), Reason::Automatic, answered(500), true, NOW, jitter);
                let State::Open { next_at } = after.state else {
                    panic!("attempt {done} should be followed by another")
                };
                let least = NOW.plus_seconds(wait);
                assert!(next_at >= least && next_at <= least.plus_millis(wait * 100), "attempt {done}");
                assert_eq!(after.scheduled, done + 1);
            }
        }
        let last = after_attempt(open(9), Reason::Automatic, answered(500), true, NOW, 0);
        assert_eq!(last, Progress { state: State::Failed, scheduled: 10 });
    }

    #[test]
    fn terminal_codes_fail_at_once() {
        for code in [401, 404, 410] {
            let after = after_attempt(open(0), Reason::Automatic, answered(code), true, NOW, 0);
            assert_eq!(after.state, State::Failed, "{code}");
        }
    }

    #[test]
    fn retry_after_is_honoured_when_later_and_only_where_it_may_be_said() {
        let after = |code, seconds| {
            let outcome = Outcome::Answered { code, retry_after: Some(seconds) };
            let State::Open { next_at } =
                after_attempt(open(0), Reason::Automatic, outcome, true, NOW, 0).state
            else {
                panic!("retried")
            };
            next_at.micros_since(NOW) / 1_000_000
        };
        assert_eq!(after(429, 60), 60);
        assert_eq!(after(503, 60), 60);
        assert_eq!(after(500, 60), 5);
        assert_eq!(after(429, 1), 5);
        assert_eq!(after(429, 999_999), 86_400);
        let outcome = Outcome::BrokenOff { code: 503, retry_after: Some(60), failure: Failure::Protocol };
        let state = after_attempt(open(0), Reason::Automatic, outcome, true, NOW, 0).state;
        assert_eq!(
            state,
            State::Open { next_at: NOW.plus_seconds(60) },
            "the wait was requested before the response was cut off"
        );
    }

    #[test]
    fn a_manual_attempt_starts_no_schedule_and_undoes_no_success() {
        for state in [State::Succeeded, State::Failed, State::Open { next_at: NOW }] {
            let before = Progress { state, scheduled: 3 };
            assert_eq!(after_attempt(before, Reason::Manual, answered(500), true, NOW, 0), before);
            let after = after_attempt(before, Reason::Manual, answered(204), true, NOW, 0);
            assert_eq!(after, Progress { state: State::Succeeded, scheduled: 3 });
        }
    }

    #[test]
    fn a_fault_of_ours_costs_the_delivery_nothing() {
        let after = after_attempt(open(4), Reason::Automatic, Outcome::Failed(Failure::Own), true, NOW, 0);
        assert_eq!(after.scheduled, 4);
        assert!(matches!(after.state, State::Open { .. }));
    }

    #[test]
    fn a_disabled_webhook_gets_one_attempt() {
        let after = after_attempt(open(0), Reason::Automatic, answered(500), false, NOW, 0);
        assert_eq!(after.state, State::Failed);
    }
}

//! Whether the database is working: the one place that tracks outages.
//!
//! An outage is logged once when it begins and once when it ends; rejected requests are counted, not logged.
//! It begins with the first failure and ends with a success some time after the last failure, because one
//! connection may work while others are still lost. Reads and writes are tracked separately, since a full
//! disk or a read-only server still serves reads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::error::Error;

/// A success ends the outage once there was no failure for this long.
const QUIET: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Read,
    Write,
}

/// The database is failing.
#[derive(Debug, Clone)]
pub struct Outage {
    /// The first error: for the log and operators, not for callers.
    pub cause: String,
    pub lasted: Duration,
    /// Whether reads still work.
    pub writes_only: bool,
}

#[derive(Default)]
pub(crate) struct Health {
    /// Whether there is an outage: the only thing that a success on the hot path has to check.
    failing: AtomicBool,
    state: Mutex<Option<State>>,
    /// A fault found by the engine itself, such as a deleted database file. No success ends it.
    fault: Mutex<Option<Fault>>,
}

struct Fault {
    cause: String,
    since: Instant,
}

struct State {
    began: Instant,
    cause: String,
    turned_away: u64,
    /// The last failure of each side, until a success ends it.
    reads: Option<Instant>,
    writes: Option<Instant>,
}

impl Health {
    /// Sets or clears the engine's own fault. Logs only changes.
    pub fn set_fault(&self, cause: Option<String>) {
        let mut known = self.fault.lock();
        match (&*known, &cause) {
            (None, None) => return,
            (Some(before), Some(now)) if before.cause == *now => return,
            (_, Some(now)) => tracing::error!(cause = %now, "storage refuses changes"),
            (Some(_), None) => tracing::info!("storage accepts changes again"),
        }
        *known = cause.map(|cause| Fault { cause, since: Instant::now() });
    }

    /// The engine's own fault as an error, if there is one.
    pub fn check_fault(&self) -> Result<(), Error> {
        match &*self.fault.lock() {
            Some(fault) => Err(Error::Unavailable(fault.cause.clone())),
            None => Ok(()),
        }
    }

    pub fn now(&self) -> Result<(), Outage> {
        if let Some(fault) = &*self.fault.lock() {
            return Err(Outage {
                cause: fault.cause.clone(),
                lasted: fault.since.elapsed(),
                writes_only: true,
            });
        }
        if !self.failing.load(Ordering::Relaxed) {
            return Ok(());
        }
        match &*self.state.lock() {
            None => Ok(()),
            Some(state) => Err(Outage {
                cause: state.cause.clone(),
                lasted: state.began.elapsed(),
                writes_only: state.reads.is_none(),
            }),
        }
    }

    pub fn succeeded(&self, side: Side) {
        if self.failing.load(Ordering::Relaxed) {
            self.succeeded_at(side, Instant::now());
        }
    }

    fn succeeded_at(&self, side: Side, now: Instant) {
        let mut place = self.state.lock();
        let Some(state) = place.as_mut() else { return };
        let failed = match side {
            Side::Read => &mut state.reads,
            Side::Write => &mut state.writes,
        };
        if failed.is_some_and(|last| now.saturating_duration_since(last) >= QUIET) {
            *failed = None;
        }
        if state.reads.is_none() && state.writes.is_none() {
            let seconds = now.saturating_duration_since(state.began).as_secs_f64();
            tracing::info!(seconds, turned_away = state.turned_away, "the database is available again");
            *place = None;
            self.failing.store(false, Ordering::Relaxed);
        }
    }

    /// Records that this many requests failed. Other errors don't count.
    pub fn failed(&self, side: Side, error: &Error, requests: usize) {
        if self.fault.lock().is_some() {
            // The engine has reported the fault, and will report its end.
            return;
        }
        if error.is_outage() {
            self.failed_at(side, error, requests, Instant::now());
        } else if matches!(error, Error::Busy) {
            self.turned_away(requests);
        }
    }

    fn failed_at(&self, side: Side, error: &Error, requests: usize, now: Instant) {
        let mut place = self.state.lock();
        let state = place.get_or_insert_with(|| {
            let cause = match error {
                Error::Unavailable(cause) => cause.clone(),
                other => other.to_string(),
            };
            tracing::error!(cause, "the database is not available");
            State { began: now, cause, turned_away: 0, reads: None, writes: None }
        });
        match side {
            Side::Read => state.reads = Some(now),
            Side::Write => state.writes = Some(now),
        }
        state.turned_away += requests as u64;
        self.failing.store(true, Ordering::Relaxed);
    }

    /// Counts requests that waited in vain.
    pub fn turned_away(&self, requests: usize) {
        if requests > 0
            && self.failing.load(Ordering::Relaxed)
            && let Some(state) = self.state.lock().as_mut()
        {
            state.turned_away += requests as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn away() -> Error {
        Error::Unavailable("connection refused".to_owned())
    }

    #[test]
    fn an_outage_begins_with_a_failure_and_ends_with_a_success_after_a_quiet_moment() {
        let health = Health::default();
        let began = Instant::now();
        health.failed_at(Side::Write, &away(), 3, began);
        assert_eq!(health.now().unwrap_err().cause, "connection refused");
        health.succeeded_at(Side::Write, began + QUIET / 2);
        assert!(health.now().is_err(), "another connection may still fail");
        health.succeeded_at(Side::Write, began + QUIET);
        assert!(health.now().is_ok());
    }

    #[test]
    fn reading_does_not_end_an_outage_of_writing() {
        let health = Health::default();
        let began = Instant::now();
        health.failed_at(Side::Write, &away(), 1, began);
        health.succeeded_at(Side::Read, began + QUIET * 10);
        assert!(health.now().unwrap_err().writes_only);
        health.failed_at(Side::Read, &away(), 1, began);
        health.succeeded_at(Side::Write, began + QUIET * 10);
        assert!(!health.now().unwrap_err().writes_only, "reads still fail");
        health.succeeded_at(Side::Read, began + QUIET * 10);
        assert!(health.now().is_ok());
    }

    #[test]
    fn load_and_faults_of_ours_are_no_outage() {
        let health = Health::default();
        for error in [Error::Busy, Error::Again, Error::Closed, Error::fault("a bad statement")] {
            health.failed(Side::Write, &error, 1);
        }
        assert!(health.now().is_ok());
        health.failed(Side::Read, &Error::OutcomeUnknown, 1);
        assert!(health.now().is_err());
    }
}

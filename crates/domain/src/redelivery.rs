//! Bulk redelivery: one more attempt for every delivery that matches a filter.

use serde_json::{Map, Value};

use crate::caps;
use crate::delivery_list::Filter;
use crate::id::{DeliveryId, RedeliveryId};
use crate::invalid::{Fault, Invalid, Members, as_bool};
use crate::schema::words;
use crate::time::Time;

/// Counts are exact up to this.
pub const MAX_COUNT: i64 = caps::IN_BULK;
/// How many deliveries one step queues.
pub const STEP: usize = 200;
/// Queueing pauses while this many attempts are waiting.
pub const MAX_UNMADE: i64 = 1_000;

/// A request for a bulk redelivery, or for the number of deliveries it would include. A filter is required:
/// leaving it out is more likely a mistake than a wish to resend everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    pub filter: Filter,
    pub preview: bool,
}

impl Request {
    pub fn parse(body: &Map<String, Value>) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let filter = Filter::read(&mut members);
        let preview = members.optional("preview", as_bool).unwrap_or(false);
        members.refuse_unknown();
        if filter == Filter::default() && !members.has_faults() {
            members.fault_of_all(Fault::new(
                "filter_required",
                "send at least one filter: webhook, type, state, account, since or until",
            ));
        }
        members.finish().map(|()| Self { filter, preview })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Running,
    Finished,
    Cancelled,
}

impl State {
    pub const ALL: [Self; 3] = [Self::Running, Self::Finished, Self::Cancelled];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Cancelled => "cancelled",
        }
    }
}

words!(State, "RedeliveryState", "The state of a bulk redelivery.");

/// A bulk redelivery, as stored. It goes from the newest delivery to the oldest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redelivery {
    pub id: RedeliveryId,
    pub filter: Filter,
    /// How many deliveries matched when it started, as far as they were counted.
    pub total: i64,
    /// Attempts queued so far, not counting cancelled ones.
    pub queued: i64,
    /// Matching deliveries whose webhook or payload is gone.
    pub skipped: i64,
    /// The oldest delivery processed; `WALKED` once all are.
    pub walked_to: DeliveryId,
    pub cancelled_at: Option<Time>,
    pub finished_at: Option<Time>,
    pub created_at: Time,
}

/// Sorts before every delivery.
pub const WALKED: DeliveryId = DeliveryId::from_bytes([0; 16]);

impl Redelivery {
    /// Starts at its own creation: ids are ordered by time, so later deliveries aren't included.
    pub const fn new(id: RedeliveryId, filter: Filter, total: i64, now: Time) -> Self {
        Self {
            id,
            filter,
            total,
            queued: 0,
            skipped: 0,
            walked_to: DeliveryId::from_bytes(*id.as_bytes()),
            cancelled_at: None,
            finished_at: None,
            created_at: now,
        }
    }

    pub const fn state(&self) -> State {
        match (self.cancelled_at, self.finished_at) {
            (Some(_), _) => State::Cancelled,
            (None, Some(_)) => State::Finished,
            (None, None) => State::Running,
        }
    }

    /// Records a step: how far it got, and how many deliveries it queued and skipped.
    pub fn walk(&mut self, to: DeliveryId, queued: i64, skipped: i64) {
        self.walked_to = to;
        self.queued += queued;
        self.skipped += skipped;
        if to == WALKED {
            self.total = self.queued + self.skipped;
        } else {
            self.total = self.total.max(self.queued + self.skipped);
        }
    }

    /// Marks it finished once every delivery is processed and every queued attempt is made.
    pub fn finish(&mut self, unmade: i64, now: Time) {
        if self.state() == State::Running && self.walked_to == WALKED && unmade == 0 {
            self.finished_at = Some(now);
        }
    }

    /// Stops it. Attempts that were queued but not started are cancelled.
    pub fn cancel(&mut self, taken_back: i64, now: Time) {
        self.take_back(taken_back);
        self.cancelled_at = Some(now);
    }

    /// Subtracts attempts that were queued but won't be made.
    pub fn take_back(&mut self, attempts: i64) {
        self.queued = (self.queued - attempts).max(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery_list::Shown;
    use serde_json::json;

    const NOW: Time = Time::from_micros(1_700_000_000_000_000);

    fn started(total: i64) -> Redelivery {
        Redelivery::new(RedeliveryId::from_bytes([9; 16]), Filter::default(), total, NOW)
    }

    #[test]
    fn it_runs_until_every_attempt_is_made() {
        let mut one = started(5);
        one.walk(DeliveryId::from_bytes([5; 16]), 3, 0);
        one.finish(0, NOW);
        assert_eq!((one.state(), one.total), (State::Running, 5));
        one.walk(WALKED, 1, 2);
        one.finish(4, NOW);
        assert_eq!((one.state(), one.total), (State::Running, 6), "the final total is the number found");
        one.finish(0, NOW);
        assert_eq!((one.state(), one.queued, one.skipped), (State::Finished, 4, 2));
    }

    #[test]
    fn a_cancelled_redelivery_does_not_finish() {
        let mut one = started(5);
        one.walk(WALKED, 5, 0);
        one.cancel(3, NOW);
        one.finish(0, NOW);
        assert_eq!((one.state(), one.queued, one.finished_at), (State::Cancelled, 2, None));
    }

    #[test]
    fn a_request_is_a_filter_and_optionally_a_preview() {
        let read = |body: Value| Request::parse(body.as_object().unwrap());
        let filter = Filter { state: Some(Shown::Failed), ..Filter::default() };
        assert_eq!(read(json!({"state": "failed"})), Ok(Request { filter, preview: false }));
        assert!(read(json!({"state": "failed", "preview": true})).unwrap().preview);
        assert_eq!(read(json!({"preview": 1, "limit": 3})).unwrap_err().0.len(), 2);
    }

    #[test]
    fn a_request_without_a_filter_is_refused() {
        for body in [json!({}), json!({"preview": true}), json!({"state": null})] {
            let refused = Request::parse(body.as_object().unwrap()).unwrap_err().0;
            let found: Vec<_> = refused.iter().map(|error| (error.pointer.as_str(), error.code)).collect();
            assert_eq!(found, [("", "filter_required")], "{body}");
        }
    }
}

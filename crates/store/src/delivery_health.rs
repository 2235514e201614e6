//! The success rate of a webhook's deliveries, counted over the newest in a period, never over all of them.

use rapport_domain::id::{DeliveryId, WebhookId, lowest_at};
use rapport_domain::time::Time;

use crate::delivery_state::{FAILED, SUCCEEDED};
use crate::error::Error;
use crate::statement::statements;
use crate::tx::Snapshot;
use crate::values;

statements! {
    // Ordered so that only the index of webhooks fits.
    company NEWEST = "SELECT created_at, state FROM delivery /*INDEXED BY delivery_by_webhook*/ WHERE company = $1 \
                      AND (webhook, id) < ($2, $3) AND (webhook, id) >= ($2, $4) \
                      ORDER BY webhook DESC, id DESC LIMIT $5";
    company LAST_ATTEMPTS = "SELECT a.delivery, a.started_at, a.succeeded, a.response_code, a.error FROM \
                             (SELECT company, id, attempts FROM delivery /*INDEXED BY delivery_by_webhook*/ WHERE company = $1 \
                              AND (webhook, id) < ($2, $3) AND webhook >= $2 \
                              ORDER BY webhook DESC, id DESC LIMIT $4) AS d \
                             JOIN attempt a ON a.company = d.company AND a.delivery = d.id AND a.number = d.attempts";
}

/// The last failure is searched for among this many deliveries.
const LOOKED_AT: i64 = 200;
/// An id may be a little later than the creation time of its delivery.
const SLACK_SECONDS: i64 = 600;

/// The outcomes of some deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    pub succeeded: i64,
    pub failed: i64,
    /// Not finished yet.
    pub open: i64,
    /// There were more than were counted.
    pub capped: bool,
    /// When the newest of them was created.
    pub newest: Option<Time>,
}

impl Tally {
    pub const fn ended(&self) -> i64 {
        self.succeeded + self.failed
    }

    pub const fn all(&self) -> i64 {
        self.ended() + self.open
    }
}

/// Counts the newest deliveries of a webhook created from `since` until before `until`, at most `cap`.
pub fn tally(
    snapshot: &mut Snapshot,
    webhook: WebhookId,
    since: Time,
    until: Time,
    cap: i64,
) -> Result<Tally, Error> {
    let (from, to): (DeliveryId, DeliveryId) = (lowest_at(since), lowest_at(until));
    let rows = snapshot.query(&NEWEST, values![&webhook, &to, &from, cap + 1])?;
    let mut tally = Tally { capped: i64::try_from(rows.len()).unwrap_or(0) > cap, ..Tally::default() };
    for mut row in rows.into_iter().take(usize::try_from(cap).unwrap_or(0)) {
        let created_at: Time = row.take()?;
        tally.newest = tally.newest.max(Some(created_at));
        match row.take::<i64>()? {
            SUCCEEDED => tally.succeeded += 1,
            FAILED => tally.failed += 1,
            _ => tally.open += 1,
        }
    }
    Ok(tally)
}

/// A failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastFailure {
    pub delivery: DeliveryId,
    pub at: Time,
    pub response_code: Option<i64>,
    pub error: Option<String>,
}

/// The last failed attempt of a webhook's deliveries created before a given time, among the newest of them.
pub fn last_failure(
    snapshot: &mut Snapshot,
    webhook: WebhookId,
    until: Time,
) -> Result<Option<LastFailure>, Error> {
    let to: DeliveryId = lowest_at(until.plus_seconds(SLACK_SECONDS));
    let rows = snapshot.query(&LAST_ATTEMPTS, values![&webhook, &to, LOOKED_AT])?;
    let mut failures = Vec::new();
    for mut row in rows {
        let (delivery, at, succeeded) = (row.take()?, row.take()?, row.take::<bool>()?);
        let failure = LastFailure { delivery, at, response_code: row.take()?, error: row.take()? };
        if !succeeded && failure.at <= until {
            failures.push(failure);
        }
    }
    Ok(failures.into_iter().max_by_key(|failure| (failure.at, failure.delivery)))
}

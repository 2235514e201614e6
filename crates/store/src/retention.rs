//! Deletes expired data in small steps: delivery history, used event_ids, bulk redeliveries, deleted
//! webhooks; and folds activity counts that are too old to be shown by day.
//!
//! Ids are ordered by time, so old rows are at the beginning of a primary key. Marks and counts have no such
//! order: readers walk them by their keys, one part at a time.

use std::collections::BTreeMap;

use rapport_domain::activity::EventMark;
use rapport_domain::id::{AccountId, DeliveryId, EventId, RedeliveryId, lowest_at};
use rapport_domain::time::{Day, Time};

use crate::activity::{self, Count};
use crate::error::Error;
use crate::statement::statements;
use crate::tx::{Snapshot, Tx};
use crate::value::Value;
use crate::values;

statements! {
    company OLD_DELIVERIES = "SELECT id FROM delivery WHERE company = $1 AND id < $2 ORDER BY id LIMIT $3";
    company DELETE_ATTEMPTS = "DELETE FROM attempt WHERE company = $1 AND delivery = ANY($2)";
    company DELETE_DELIVERIES = "DELETE FROM delivery WHERE company = $1 AND id = ANY($2)";
    company OLD_EVENTS = "SELECT id FROM event WHERE company = $1 AND id < $2 ORDER BY id LIMIT $3";
    company DELETE_EVENTS = "DELETE FROM event WHERE company = $1 AND id = ANY($2)";
    company DELETE_REDELIVERIES = "DELETE FROM redelivery WHERE company = $1 AND id < $2";
    company DELETE_WEBHOOKS = "DELETE FROM webhook WHERE company = $1 AND deleted_at < $2 AND \
                               (SELECT 1 FROM delivery d /*INDEXED BY delivery_by_webhook*/ WHERE d.company = webhook.company \
                               AND d.webhook = webhook.id LIMIT 1 OFFSET 0) IS NULL";
    company MARKS = "SELECT mark, at FROM event_mark WHERE company = $1 AND mark > $2 ORDER BY mark LIMIT $3";
    company DELETE_MARKS = "DELETE FROM event_mark WHERE company = $1 AND at <= $2 AND mark = ANY($3)";
    company ACCOUNTS = "SELECT s.account, (SELECT 1 FROM activity_count c WHERE c.company = s.company \
                        AND c.account = s.account AND c.day <= $3 AND c.day <> 0 LIMIT 1 OFFSET 0) \
                        FROM account_seen s WHERE s.company = $1 AND s.account > $2 ORDER BY s.account LIMIT $4";
    company LAST_DAY_OF_STEP = "SELECT day FROM activity_count WHERE company = $1 AND account = $2 AND day <= $3 \
                                AND day <> 0 ORDER BY day LIMIT 1 OFFSET $4";
    // Only the deleted rows are added up: a count that arrives in the meantime is in neither or in both.
    company TAKE_COUNTS = "DELETE FROM activity_count WHERE company = $1 AND account = $2 AND day <= $3 \
                           AND day <> 0 RETURNING feature, count, last_used_at";
}

/// An event is created just before its deliveries, so it is deleted a little later than they are.
const EVENT_SLACK_SECONDS: i64 = 60;
/// The day under which old counts are stored.
const TOTALS: Day = Day::from_number(0);

/// Deletes some deliveries created before `cutoff`, with their attempts; returns how many.
pub fn prune_deliveries(tx: &mut Tx, cutoff: Time, limit: i64) -> Result<usize, Error> {
    let rows = tx.query(&OLD_DELIVERIES, values![&lowest_at::<DeliveryId>(cutoff), limit])?;
    let old: Vec<DeliveryId> = rows.into_iter().map(|mut row| row.take()).collect::<Result<_, _>>()?;
    let keys: Vec<Value> = old.iter().map(Value::from).collect();
    tx.execute_keys(&DELETE_ATTEMPTS, &[], &keys)?;
    tx.execute_keys(&DELETE_DELIVERIES, &[], &keys)?;
    Ok(old.len())
}

/// Deletes some events created before `cutoff`, whose deliveries are gone; returns how many.
pub fn prune_events(tx: &mut Tx, cutoff: Time, limit: i64) -> Result<usize, Error> {
    let cutoff = cutoff.plus_seconds(-EVENT_SLACK_SECONDS);
    let rows = tx.query(&OLD_EVENTS, values![&lowest_at::<EventId>(cutoff), limit])?;
    let old: Vec<EventId> = rows.into_iter().map(|mut row| row.take()).collect::<Result<_, _>>()?;
    let keys: Vec<Value> = old.iter().map(Value::from).collect();
    tx.execute_keys(&DELETE_EVENTS, &[], &keys)?;
    Ok(old.len())
}

/// Deletes bulk redeliveries started before `cutoff`.
pub fn prune_redeliveries(tx: &mut Tx, cutoff: Time) -> Result<(), Error> {
    tx.execute(&DELETE_REDELIVERIES, values![&lowest_at::<RedeliveryId>(cutoff)])?;
    Ok(())
}

/// Removes webhooks that were deleted before `cutoff` and have no deliveries left.
pub fn prune_webhooks(tx: &mut Tx, cutoff: Time) -> Result<(), Error> {
    tx.execute(&DELETE_WEBHOOKS, values![cutoff])?;
    Ok(())
}

/// One part of a walk: the old entries in it, and where to continue unless it reached the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch<T> {
    pub old: Vec<T>,
    pub next: Option<T>,
}

/// Reads one part of the used event_ids.
pub fn old_marks(
    snapshot: &mut Snapshot,
    after: Option<EventMark>,
    cutoff: Time,
    limit: i64,
) -> Result<Stretch<EventMark>, Error> {
    let after = after.as_ref().map_or(&[][..], |mark| mark.as_bytes().as_slice());
    let rows = snapshot.query(&MARKS, values![after, limit])?;
    let walked = rows.into_iter().map(|mut row| Ok((EventMark::from_bytes(row.take()?), row.take()?)));
    let walked: Vec<(EventMark, Time)> = walked.collect::<Result<_, Error>>()?;
    let is_full = i64::try_from(walked.len()).unwrap_or(0) == limit;
    let next = walked.last().filter(|_| is_full).map(|(mark, _)| *mark);
    let old = walked.into_iter().filter(|(_, at)| *at <= cutoff).map(|(mark, _)| mark).collect();
    Ok(Stretch { old, next })
}

/// Frees event_ids, unless they were used again in the meantime.
pub fn free_marks(tx: &mut Tx, marks: &[EventMark], cutoff: Time) -> Result<(), Error> {
    let keys: Vec<Value> = marks.iter().map(Value::from).collect();
    tx.execute_keys(&DELETE_MARKS, values![cutoff], &keys)?;
    Ok(())
}

/// Searches one part of the accounts for counts of days up to `last`.
pub fn foldable_accounts(
    snapshot: &mut Snapshot,
    after: Option<AccountId>,
    last: Day,
    limit: i64,
) -> Result<Stretch<AccountId>, Error> {
    let after = after.as_ref().map_or(&[][..], |account| account.as_bytes().as_slice());
    let rows = snapshot.query(&ACCOUNTS, values![after, last, limit])?;
    let walked = rows.into_iter().map(|mut row| Ok((row.take()?, row.take()?)));
    let walked: Vec<(AccountId, Option<i64>)> = walked.collect::<Result<_, Error>>()?;
    let is_full = i64::try_from(walked.len()).unwrap_or(0) == limit;
    let next = walked.last().filter(|_| is_full).map(|(account, _)| *account);
    let old = walked.into_iter().filter(|(_, old)| old.is_some()).map(|(account, _)| account).collect();
    Ok(Stretch { old, next })
}

/// Folds an account's oldest counts of days up to `last` into its totals, about `limit` rows at a time;
/// returns how many rows. The sum over all days of each feature doesn't change.
pub fn fold_counts(tx: &mut Tx, account: AccountId, last: Day, limit: i64) -> Result<usize, Error> {
    let bound = tx.query_opt(&LAST_DAY_OF_STEP, values![&account, last, limit - 1])?;
    let last = bound.map_or(Ok(last), |mut row| row.take())?;
    let rows = tx.query(&TAKE_COUNTS, values![&account, last])?;
    let folded = rows.len();
    let mut totals: BTreeMap<String, (i64, Time)> = BTreeMap::new();
    for mut row in rows {
        let (feature, count, used): (String, i64, Time) = (row.take()?, row.take()?, row.take()?);
        let total = totals.entry(feature).or_insert((0, used));
        *total = (total.0 + count, total.1.max(used));
    }
    let counts: Vec<Count> = totals
        .iter()
        .map(|(feature, (count, last_used_at))| Count {
            account,
            day: TOTALS,
            feature,
            count: *count,
            last_used_at: *last_used_at,
        })
        .collect();
    activity::count(tx, &counts)?;
    Ok(folded)
}

//! A company's activity per day, over all accounts.

use std::collections::BTreeMap;

use rapport_domain::activity::PULSE_DAYS;
use rapport_domain::time::Day;

use crate::error::Error;
use crate::statement::{InsertMany, statements};
use crate::tx::{Snapshot, Tx};
use crate::value::{Type, Value};
use crate::values;

/// The count of a day is spread over this many rows, so that concurrent writers rarely wait for each other.
const SHARDS: u8 = 8;
/// The activity of sample accounts is counted apart, so that it can be removed.
const SAMPLE_SHARD: i64 = 8;

statements! {
    company DAYS = "SELECT day, CAST(sum(count) AS BIGINT) FROM activity_day \
                    WHERE company = $1 AND day > $2 AND day <= $3 GROUP BY day ORDER BY day";
    company REMOVE_SHARD = "DELETE FROM activity_day WHERE company = $1 AND shard = $2";
    company PRUNE = "DELETE FROM activity_day WHERE company = $1 AND day < $2";
}

pub(crate) static ADD: InsertMany = InsertMany::new(
    "activity_day",
    &[("day", Type::Int), ("shard", Type::Int), ("count", Type::Int)],
    "ON CONFLICT (company, day, shard) DO UPDATE SET count = activity_day.count + excluded.count",
);

/// Adds to the counts of some days; `spread` can be any number and selects the shard.
pub fn add(tx: &mut Tx, days: &BTreeMap<Day, i64>, spread: u8) -> Result<(), Error> {
    add_to(tx, days, i64::from(spread % SHARDS))
}

/// Adds the activity of sample accounts.
pub fn add_samples(tx: &mut Tx, days: &BTreeMap<Day, i64>) -> Result<(), Error> {
    add_to(tx, days, SAMPLE_SHARD)
}

/// Removes the activity of sample accounts.
pub fn remove_samples(tx: &mut Tx) -> Result<(), Error> {
    tx.execute(&REMOVE_SHARD, values![SAMPLE_SHARD])?;
    Ok(())
}

fn add_to(tx: &mut Tx, days: &BTreeMap<Day, i64>, shard: i64) -> Result<(), Error> {
    let rows: Vec<Value> = days
        .iter()
        .flat_map(|(day, count)| [Value::from(*day), Value::from(shard), Value::from(*count)])
        .collect();
    tx.insert(&ADD, &rows)?;
    Ok(())
}

/// Events per day over the days shown up to `today`, without days that have none.
pub fn days(snapshot: &mut Snapshot, today: Day) -> Result<Vec<(Day, i64)>, Error> {
    let rows = snapshot.query(&DAYS, values![today.minus_days(PULSE_DAYS), today])?;
    rows.into_iter().map(|mut row| Ok((row.take()?, row.take()?))).collect()
}

/// Deletes the days before `first`.
pub fn prune(tx: &mut Tx, first: Day) -> Result<(), Error> {
    tx.execute(&PRUNE, values![first])?;
    Ok(())
}

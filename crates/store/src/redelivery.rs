//! Bulk redeliveries and their progress. Their attempts are in `manual_attempt`.

use rapport_domain::delivery_list::Filter;
use rapport_domain::id::{CompanyId, DeliveryId, RedeliveryId, WebhookId};
use rapport_domain::redelivery::Redelivery;

use crate::error::Error;
use crate::statement::statements;
use crate::tx::{Across, Snapshot, Tx};
use crate::value::{Row, Value};
use crate::values;

macro_rules! select_redelivery {
    ($rest:literal) => {
        concat!(
            "SELECT id, filter, total, queued, skipped, walked_to, cancelled_at, finished_at, created_at ",
            "FROM redelivery ",
            $rest
        )
    };
}

statements! {
    company GET = select_redelivery!("WHERE company = $1 AND id = $2");
    company RECENT = select_redelivery!("WHERE company = $1 ORDER BY id DESC LIMIT $2");
    company LOCK = select_redelivery!("WHERE company = $1 AND id = $2 FOR UPDATE");
    company INSERT = "INSERT INTO redelivery (company, id, filter, total, queued, skipped, walked_to, created_at) \
                      VALUES ($1, $2, $3, $4, 0, 0, $5, $6)";
    company UPDATE = "UPDATE redelivery SET total = $3, queued = $4, skipped = $5, walked_to = $6, \
                      cancelled_at = $7, finished_at = $8 WHERE company = $1 AND id = $2";
    // Subselects, so that no planner starts from the webhooks and reads everything ever sent to them.
    company REDELIVERABLE = "SELECT d.id, d.webhook FROM delivery d WHERE d.company = $1 AND d.id = ANY($2) AND \
                             (SELECT 1 FROM event e WHERE e.company = d.company AND e.id = d.event \
                             AND e.payload IS NOT NULL LIMIT 1 OFFSET 0) IS NOT NULL AND \
                             (SELECT 1 FROM webhook w WHERE w.company = d.company AND w.id = d.webhook \
                             AND w.deleted_at IS NULL LIMIT 1 OFFSET 0) IS NOT NULL";
    reference RUNNING = "SELECT company, id FROM redelivery WHERE finished_at IS NULL AND cancelled_at IS NULL \
                         ORDER BY id";
}

pub fn get(snapshot: &mut Snapshot, id: RedeliveryId) -> Result<Option<Redelivery>, Error> {
    snapshot.query_opt(&GET, values![&id])?.map(read).transpose()
}

/// The latest ones, newest first.
pub fn recent(snapshot: &mut Snapshot, limit: i64) -> Result<Vec<Redelivery>, Error> {
    snapshot.query(&RECENT, values![limit])?.into_iter().map(read).collect()
}

pub fn lock(tx: &mut Tx, id: RedeliveryId) -> Result<Option<Redelivery>, Error> {
    tx.query_opt(&LOCK, values![&id])?.map(read).transpose()
}

pub fn insert(tx: &mut Tx, new: &Redelivery) -> Result<(), Error> {
    let filter = new.filter.to_stored();
    tx.execute(&INSERT, values![&new.id, &filter, new.total, &new.walked_to, new.created_at])?;
    Ok(())
}

pub fn update(tx: &mut Tx, changed: &Redelivery) -> Result<(), Error> {
    let Redelivery { id, total, queued, skipped, walked_to, cancelled_at, finished_at, .. } = changed;
    tx.execute(&UPDATE, values![id, *total, *queued, *skipped, walked_to, *cancelled_at, *finished_at])?;
    Ok(())
}

/// The deliveries among these that can be attempted again: their webhook and payload still exist.
pub fn redeliverable(
    snapshot: &mut Snapshot,
    deliveries: &[DeliveryId],
) -> Result<Vec<(DeliveryId, WebhookId)>, Error> {
    let keys: Vec<Value> = deliveries.iter().map(Value::from).collect();
    let rows = snapshot.query_keys(&REDELIVERABLE, &[], &keys)?;
    rows.into_iter().map(|mut row| Ok((row.take()?, row.take()?))).collect()
}

/// The running bulk redeliveries of all companies.
pub fn running(across: &mut Across) -> Result<Vec<(CompanyId, RedeliveryId)>, Error> {
    across.query(&RUNNING, &[])?.into_iter().map(|mut row| Ok((row.take()?, row.take()?))).collect()
}

fn read(mut row: Row) -> Result<Redelivery, Error> {
    let row = &mut row;
    let id = row.take()?;
    let filter = Filter::from_stored(&row.take::<String>()?);
    Ok(Redelivery {
        id,
        filter: filter.map_err(|_| Error::fault("a redelivery's stored filter is not valid"))?,
        total: row.take()?,
        queued: row.take()?,
        skipped: row.take()?,
        walked_to: row.take()?,
        cancelled_at: row.take()?,
        finished_at: row.take()?,
        created_at: row.take()?,
    })
}

//! Manual attempts: redeliveries, and tests of a disabled webhook. They are made whether the webhook is
//! enabled or not, and wait here until then.

use rapport_domain::event::Kind;
use rapport_domain::id::{CompanyId, DeliveryId, EventId, RedeliveryId, WebhookId};
use rapport_domain::time::Time;

use crate::error::Error;
use crate::statement::{InsertMany, statements};
use crate::tx::{Across, Snapshot, Tx};
use crate::value::{Type, Value};
use crate::values;

statements! {
    company WAITING = "SELECT m.id, m.delivery, m.webhook, m.redelivery, d.event, d.kind, d.attempts, \
                       e.payload \
                       FROM manual_attempt m \
                       LEFT JOIN delivery d ON d.company = m.company AND d.id = m.delivery \
                       LEFT JOIN webhook w ON w.company = m.company AND w.id = m.webhook AND w.deleted_at IS NULL \
                       LEFT JOIN event e ON e.company = w.company AND e.id = d.event \
                       WHERE m.company = $1 AND m.owner IS NULL \
                       AND (m.redelivery IS NULL OR w.auto_disabled_at IS NULL) ORDER BY m.id LIMIT $2 \
                       FOR UPDATE OF m SKIP LOCKED";
    company CLAIM = "UPDATE manual_attempt SET owner = $2 WHERE company = $1 AND id = ANY($3)";
    company DELETE = "DELETE FROM manual_attempt WHERE company = $1 AND id = ANY($2)";
    company RELEASE = "UPDATE manual_attempt SET owner = NULL WHERE company = $1 AND id = ANY($2)";
    company DELETE_UNOWNED_OF = "DELETE FROM manual_attempt WHERE company = $1 AND redelivery = $2 AND owner IS NULL";
    company DELETE_OF_WEBHOOK = "DELETE FROM manual_attempt WHERE company = $1 AND webhook = $2";
    company RELEASE_OWNER = "UPDATE manual_attempt SET owner = NULL WHERE company = $1 AND owner = $2";
    company LOCK_OWNED = "SELECT id FROM manual_attempt WHERE company = $1 AND owner = $2 AND id = ANY($3) \
                          ORDER BY id FOR UPDATE";
    company TAKE_BACK = "DELETE FROM manual_attempt WHERE company = $1 AND id = ANY($2) RETURNING id";
    reference CHECKED = "SELECT m.id, CASE WHEN r.cancelled_at IS NULL THEN 0 ELSE 1 END FROM manual_attempt m \
                         LEFT JOIN redelivery r ON r.company = m.company AND r.id = m.redelivery \
                         WHERE m.company = $1 AND m.id = ANY($2)";
    reference OWNED_AFTER = "SELECT company, id FROM manual_attempt /*INDEXED BY manual_attempt_owned*/ WHERE owner = $1 \
                             AND owner IS NOT NULL AND (company, id) > ($2, $3) ORDER BY company, id LIMIT $4";
    reference UNOWNED = "SELECT DISTINCT m.company FROM manual_attempt m \
                         LEFT JOIN webhook w ON w.company = m.company AND w.id = m.webhook \
                         WHERE m.owner IS NULL AND (m.redelivery IS NULL OR w.auto_disabled_at IS NULL)";
    company PAUSED_OF = "SELECT 1 FROM manual_attempt m \
                         JOIN webhook w ON w.company = m.company AND w.id = m.webhook \
                         WHERE m.company = $1 AND m.redelivery = $2 AND w.auto_disabled_at IS NOT NULL LIMIT 1";
    reference OWNED = "SELECT DISTINCT company, owner FROM manual_attempt WHERE owner IS NOT NULL";
    company UNMADE_OF = "SELECT count(*) FROM manual_attempt WHERE company = $1 AND redelivery = $2";
}

pub(crate) static INSERT: InsertMany = InsertMany::new(
    "manual_attempt",
    &[
        ("id", Type::Bytes),
        ("delivery", Type::Bytes),
        ("webhook", Type::Bytes),
        ("redelivery", Type::Bytes),
        ("owner", Type::Int),
        ("requested_at", Type::Int),
    ],
    "",
);

#[derive(Debug, Clone)]
pub struct NewManualAttempt {
    pub id: RedeliveryId,
    pub delivery: DeliveryId,
    pub webhook: WebhookId,
    /// The bulk redelivery that requested it.
    pub redelivery: Option<RedeliveryId>,
    pub owner: Option<i64>,
    pub requested_at: Time,
}

pub fn insert(tx: &mut Tx, attempts: &[NewManualAttempt]) -> Result<(), Error> {
    let mut rows = Vec::with_capacity(attempts.len() * INSERT.width());
    for attempt in attempts {
        rows.extend::<[Value; 6]>([
            (&attempt.id).into(),
            (&attempt.delivery).into(),
            (&attempt.webhook).into(),
            attempt.redelivery.as_ref().into(),
            attempt.owner.into(),
            attempt.requested_at.into(),
        ]);
    }
    tx.insert(&INSERT, &rows)?;
    Ok(())
}

/// A manual attempt claimed for sending; fields are `None` if its delivery, payload or webhook is gone.
#[derive(Debug, Clone)]
pub struct ClaimedManual {
    pub id: RedeliveryId,
    pub delivery: DeliveryId,
    pub webhook: WebhookId,
    /// The bulk redelivery that requested it.
    pub redelivery: Option<RedeliveryId>,
    pub event: Option<EventId>,
    pub kind: Option<Kind>,
    pub attempts: i64,
    pub payload: Option<String>,
}

pub fn claim(tx: &mut Tx, owner: i64, limit: i64) -> Result<Vec<ClaimedManual>, Error> {
    let rows = tx.query(&WAITING, values![limit])?;
    let claimed = rows
        .into_iter()
        .map(|mut row| {
            let row = &mut row;
            Ok(ClaimedManual {
                id: row.take()?,
                delivery: row.take()?,
                webhook: row.take()?,
                redelivery: row.take()?,
                event: row.take()?,
                kind: row.take::<Option<String>>()?.and_then(|kind| Kind::parse(&kind)),
                attempts: row.take::<Option<i64>>()?.unwrap_or(0),
                payload: row.take()?,
            })
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let keys: Vec<Value> = claimed.iter().map(|claimed| Value::from(&claimed.id)).collect();
    tx.execute_keys(&CLAIM, values![owner], &keys)?;
    Ok(claimed)
}

pub fn delete(tx: &mut Tx, ids: &[RedeliveryId]) -> Result<(), Error> {
    let keys: Vec<Value> = ids.iter().map(Value::from).collect();
    tx.execute_keys(&DELETE, &[], &keys)?;
    Ok(())
}

/// Releases attempts that weren't made: they wait for a node again.
pub fn release(tx: &mut Tx, ids: &[RedeliveryId]) -> Result<(), Error> {
    let keys: Vec<Value> = ids.iter().map(Value::from).collect();
    tx.execute_keys(&RELEASE, &[], &keys)?;
    Ok(())
}

/// Cancels the attempts of a bulk redelivery that no node owns yet.
pub fn cancel(tx: &mut Tx, redelivery: RedeliveryId) -> Result<(), Error> {
    tx.execute(&DELETE_UNOWNED_OF, values![&redelivery])?;
    Ok(())
}

/// Deletes all attempts for a webhook that is deleted.
pub fn delete_of_webhook(tx: &mut Tx, webhook: WebhookId) -> Result<(), Error> {
    tx.execute(&DELETE_OF_WEBHOOK, values![&webhook])?;
    Ok(())
}

/// The number of attempts of a bulk redelivery that haven't been made yet.
pub fn unmade(snapshot: &mut Snapshot, redelivery: RedeliveryId) -> Result<i64, Error> {
    snapshot.query_opt(&UNMADE_OF, values![&redelivery])?.map_or(Ok(0), |mut row| row.take())
}

/// Whether some attempts of a bulk redelivery wait for an auto-disabled webhook.
pub fn is_paused(snapshot: &mut Snapshot, redelivery: RedeliveryId) -> Result<bool, Error> {
    Ok(snapshot.query_opt(&PAUSED_OF, values![&redelivery])?.is_some())
}

/// The attempts among these that a node owns, locked in key order.
pub fn lock_owned(tx: &mut Tx, owner: i64, ids: &[RedeliveryId]) -> Result<Vec<RedeliveryId>, Error> {
    let keys: Vec<Value> = ids.iter().map(Value::from).collect();
    tx.query_keys(&LOCK_OWNED, values![owner], &keys)?.into_iter().map(|mut row| row.take()).collect()
}

/// Deletes attempts that won't be made; returns how many there were.
pub fn take_back(tx: &mut Tx, ids: &[RedeliveryId]) -> Result<i64, Error> {
    let keys: Vec<Value> = ids.iter().map(Value::from).collect();
    let taken = tx.execute_keys(&TAKE_BACK, &[], &keys)?;
    Ok(i64::try_from(taken.len()).unwrap_or(i64::MAX))
}

/// The attempts among these that still exist, and whether their bulk redelivery was cancelled.
pub fn check(
    across: &mut Across,
    company: CompanyId,
    ids: &[RedeliveryId],
) -> Result<Vec<(RedeliveryId, bool)>, Error> {
    let keys: Vec<Value> = ids.iter().map(Value::from).collect();
    let rows = across.query_keys(&CHECKED, values![company], &keys)?;
    rows.into_iter().map(|mut row| Ok((row.take()?, row.take()?))).collect()
}

/// Attempts that a node owns in any company, in key order after `after`.
pub fn owned_after(
    across: &mut Across,
    owner: i64,
    after: (CompanyId, RedeliveryId),
    limit: i64,
) -> Result<Vec<(CompanyId, RedeliveryId)>, Error> {
    let rows = across.query(&OWNED_AFTER, values![owner, after.0, &after.1, limit])?;
    rows.into_iter().map(|mut row| Ok((row.take()?, row.take()?))).collect()
}

pub fn release_owner(tx: &mut Tx, owner: i64) -> Result<(), Error> {
    tx.execute(&RELEASE_OWNER, values![owner])?;
    Ok(())
}

/// The companies with attempts that wait for a node.
pub fn companies_waiting(across: &mut Across) -> Result<Vec<CompanyId>, Error> {
    across.query(&UNOWNED, &[])?.into_iter().map(|mut row| row.take()).collect()
}

/// The nodes that own attempts, with the company.
pub fn owners(across: &mut Across) -> Result<Vec<(CompanyId, i64)>, Error> {
    across.query(&OWNED, &[])?.into_iter().map(|mut row| Ok((row.take()?, row.take()?))).collect()
}

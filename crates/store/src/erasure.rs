//! Erasure: removes an account's payloads from the delivery history and keeps the metadata.

use rapport_domain::id::{AccountId, DeliveryId, EventId};

use crate::error::Error;
use crate::statement::statements;
use crate::tx::{Snapshot, Tx};
use crate::value::Value;
use crate::values;

statements! {
    company KNOWN = "SELECT 1 FROM event /*INDEXED BY event_by_account*/ WHERE company = $1 AND account = $2 LIMIT 1";
    company WITH_PAYLOAD = "SELECT id FROM event /*INDEXED BY event_by_account*/ WHERE company = $1 AND account = $2 \
                            AND id > $3 AND payload IS NOT NULL ORDER BY id LIMIT $4";
    company ERASE = "UPDATE event SET payload = NULL WHERE company = $1 AND id = ANY($2)";
    company DELIVERIES = "SELECT id FROM delivery /*INDEXED BY delivery_by_event*/ WHERE company = $1 AND event = ANY($2)";
    // A receiver's response may repeat the payload.
    company ERASE_EXCERPTS = "UPDATE attempt SET excerpt = NULL, excerpt_cut = 0 \
                              WHERE company = $1 AND delivery = ANY($2) AND excerpt IS NOT NULL RETURNING number";
    company COUNT_ATTEMPTS = "SELECT count(*) FROM attempt WHERE company = $1 AND delivery = ANY($2)";
}

/// What was erased: the deliveries of some events, how many attempts they have, and how many of those had a response.
pub struct ErasedDeliveries {
    pub deliveries: Vec<DeliveryId>,
    pub attempts: u64,
    pub responses: u64,
}

/// Whether the history has events of an account, which may itself be deleted.
pub fn knows(snapshot: &mut Snapshot, account: AccountId) -> Result<bool, Error> {
    Ok(snapshot.query_opt(&KNOWN, values![&account])?.is_some())
}

/// Some events of an account that still have their payload, oldest first, after `after` if given.
pub fn with_payload(
    snapshot: &mut Snapshot,
    account: AccountId,
    after: Option<EventId>,
    limit: i64,
) -> Result<Vec<EventId>, Error> {
    let after = after.unwrap_or(EventId::from_bytes([0; 16]));
    let rows = snapshot.query(&WITH_PAYLOAD, values![&account, &after, limit])?;
    rows.into_iter().map(|mut row| row.take()).collect()
}

/// Erases the payloads of these events and the responses to them; returns the deliveries affected.
pub fn erase(tx: &mut Tx, events: &[EventId]) -> Result<ErasedDeliveries, Error> {
    let keys: Vec<Value> = events.iter().map(Value::from).collect();
    tx.execute_keys(&ERASE, &[], &keys)?;
    let rows = tx.query_keys(&DELIVERIES, &[], &keys)?;
    let mut deliveries: Vec<DeliveryId> =
        rows.into_iter().map(|mut row| row.take()).collect::<Result<_, _>>()?;
    deliveries.sort_unstable();
    let keys: Vec<Value> = deliveries.iter().map(Value::from).collect();
    let responses = tx.execute_keys(&ERASE_EXCERPTS, &[], &keys)?.len() as u64;
    // One row in all, or one for each delivery.
    let mut attempts = 0;
    for mut row in tx.query_keys(&COUNT_ATTEMPTS, &[], &keys)? {
        attempts += row.take::<i64>()?.unsigned_abs();
    }
    Ok(ErasedDeliveries { deliveries, attempts, responses })
}

//! Webhooks that still have to receive an event, in parts small enough for one short transaction each.

use rapport_domain::id::{CompanyId, EventId, WebhookId};

use crate::error::Error;
use crate::statement::{InsertMany, statements};
use crate::tx::{Across, Tx};
use crate::value::{Type, Value};
use crate::values;

statements! {
    company OLDEST = "SELECT event, part, webhooks FROM fan_out WHERE company = $1 ORDER BY event, part LIMIT 1 \
                      FOR UPDATE SKIP LOCKED";
    company DELETE = "DELETE FROM fan_out WHERE company = $1 AND event = $2 AND part = $3";
    reference COMPANIES = "SELECT DISTINCT company FROM fan_out";
}

pub(crate) static INSERT: InsertMany =
    InsertMany::new("fan_out", &[("event", Type::Bytes), ("part", Type::Int), ("webhooks", Type::Bytes)], "");

/// Some of the webhooks that one event goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub event: EventId,
    /// Its number among the parts of its event.
    pub number: i64,
    pub webhooks: Vec<WebhookId>,
}

pub fn insert(tx: &mut Tx, parts: &[Part]) -> Result<(), Error> {
    let ids: Vec<Vec<u8>> = parts
        .iter()
        .map(|part| part.webhooks.iter().flat_map(WebhookId::as_bytes).copied().collect())
        .collect();
    let mut rows = Vec::with_capacity(parts.len() * INSERT.width());
    for (part, ids) in parts.iter().zip(&ids) {
        rows.extend::<[Value; 3]>([(&part.event).into(), part.number.into(), ids.as_slice().into()]);
    }
    tx.insert(&INSERT, &rows)?;
    Ok(())
}

/// Takes the oldest part, unless another node is working on it.
pub fn take(tx: &mut Tx) -> Result<Option<Part>, Error> {
    let Some(mut row) = tx.query_opt(&OLDEST, &[])? else { return Ok(None) };
    let (event, number) = (row.take()?, row.take()?);
    let ids: Vec<u8> = row.take()?;
    let (ids, rest) = ids.as_chunks::<16>();
    if !rest.is_empty() {
        return Err(Error::fault("a stored part of a fan-out is truncated"));
    }
    let webhooks = ids.iter().map(|id| WebhookId::from_bytes(*id)).collect();
    tx.execute(&DELETE, values![&event, number])?;
    Ok(Some(Part { event, number, webhooks }))
}

/// The companies with events that some of their webhooks haven't received yet.
pub fn companies(across: &mut Across) -> Result<Vec<CompanyId>, Error> {
    across.query(&COMPANIES, &[])?.into_iter().map(|mut row| row.take()).collect()
}

//! Deliveries and their attempts: written in the transaction of the change, claimed by a node, settled in
//! batches.

use rapport_domain::delivery::{Attempt, Delivery, Failure, Reason, State};
use rapport_domain::event::Kind;
use rapport_domain::id::{AccountId, CompanyId, DeliveryId, EventId, WebhookId};
use rapport_domain::time::Time;

use crate::delivery_state::{self, delivery_state};
use crate::error::Error;
use crate::statement::{InsertMany, UpdateMany, statements};
use crate::tx::{Across, Snapshot, Tx};
use crate::value::{Row, Type, Value};
use crate::values;

macro_rules! delivery_columns {
    () => {
        "d.id, d.webhook, d.event, d.kind, d.account, d.state, d.next_at, d.attempts, d.scheduled, d.response_code, \
         d.error, d.created_at, d.finished_at"
    };
}
pub(crate) use delivery_columns;

macro_rules! select_delivery {
    ($($rest:tt)+) => {
        concat!("SELECT ", $crate::delivery::delivery_columns!(), " FROM delivery d ", $($rest)+)
    };
}
pub(crate) use select_delivery;

statements! {
    company GET = select_delivery!("WHERE d.company = $1 AND d.id = $2");
    company LOCK = concat!("SELECT ", delivery_columns!(), ", d.owner FROM delivery d \
                    WHERE d.company = $1 AND d.id = ANY($2) ORDER BY d.id FOR UPDATE");
    company ATTEMPT_STARTS = "SELECT delivery, started_at FROM attempt WHERE company = $1 AND delivery = ANY($2)";
    // `coalesce`, here and below, keeps planners from walking everything that the node owns.
    company LOCK_OWNED = concat!(
        "SELECT id FROM delivery WHERE company = $1 AND coalesce(owner, 0) = $2 AND state = ", delivery_state!(open),
        " AND id = ANY($3) ORDER BY id FOR UPDATE"
    );
    reference OWNED_AFTER = concat!(
        "SELECT company, id FROM delivery /*INDEXED BY delivery_owned*/ WHERE owner = $1 AND state = ",
        delivery_state!(open),
        " AND owner IS NOT NULL AND (company, id) > ($2, $3) ORDER BY company, id LIMIT $4"
    );
    company ATTEMPTS = "SELECT number, started_at, succeeded, manual, response_code, failure, error, dns_us, \
                        connect_us, tls_us, first_byte_us, total_us, address, excerpt, excerpt_cut FROM attempt \
                        WHERE company = $1 AND delivery = $2 ORDER BY number";
    company DUE = concat!(
        "SELECT d.id, d.event, d.kind, d.attempts, d.next_at, e.payload FROM delivery d ",
        "JOIN event e ON e.company = d.company AND e.id = d.event ",
        "WHERE d.company = $1 AND d.webhook = $2 AND d.state = ", delivery_state!(open), " AND d.owner IS NULL ",
        "AND d.next_at <= $3 AND d.created_at >= $4 ",
        "ORDER BY d.next_at, d.id LIMIT $5 FOR UPDATE OF d SKIP LOCKED"
    );
    company NEXT_DUE = concat!(
        "SELECT min(next_at) FROM delivery WHERE company = $1 AND webhook = $2 AND state = ", delivery_state!(open),
        " AND owner IS NULL"
    );
    company CLAIM = "UPDATE delivery SET owner = $2 WHERE company = $1 AND id = ANY($3)";
    company RELEASE = concat!(
        "UPDATE delivery SET owner = NULL WHERE company = $1 AND coalesce(owner, 0) = $2 AND state = ",
        delivery_state!(open), " AND id = ANY($3)"
    );
    company OWNED = concat!(
        "SELECT id FROM delivery /*INDEXED BY delivery_owned*/ WHERE company = $1 AND owner = $2 AND state = ",
        delivery_state!(open), " AND owner IS NOT NULL LIMIT $3"
    );
    reference OWNED_COMPANIES = concat!(
        "SELECT DISTINCT company FROM delivery WHERE owner = $1 AND state = ", delivery_state!(open),
        " AND owner IS NOT NULL"
    );
    reference OWNERS = concat!(
        "SELECT DISTINCT owner FROM delivery WHERE state = ", delivery_state!(open), " AND owner IS NOT NULL"
    );
    company OPEN_OF_WEBHOOK = concat!(
        "SELECT id FROM delivery /*INDEXED BY delivery_waiting*/ WHERE company = $1 AND webhook = $2 AND state = ",
        delivery_state!(open), " AND owner IS NULL AND created_at < $3 LIMIT $4"
    );
    company END = concat!(
        "UPDATE delivery SET state = ", delivery_state!(failed), ", error = $2, finished_at = $3, owner = NULL ",
        "WHERE company = $1 AND state = ", delivery_state!(open), " AND id = ANY($4)"
    );
    company HELD_COUNT = concat!(
        "SELECT count(*) FROM (SELECT 1 FROM delivery /*INDEXED BY delivery_waiting*/ ",
        "WHERE company = $1 AND webhook = $2 AND state = ", delivery_state!(open),
        " AND owner IS NULL AND created_at >= $3 LIMIT $4) AS held"
    );
}

const INSERT_COLUMNS: &[(&str, Type)] = &[
    ("id", Type::Bytes),
    ("webhook", Type::Bytes),
    ("event", Type::Bytes),
    ("kind", Type::Text),
    ("account", Type::Bytes),
    ("state", Type::Int),
    ("next_at", Type::Int),
    ("owner", Type::Int),
    ("attempts", Type::Int),
    ("scheduled", Type::Int),
    ("created_at", Type::Int),
];

pub(crate) static INSERT: InsertMany = InsertMany::new("delivery", INSERT_COLUMNS, "");

const SETTLED_COLUMNS: &[(&str, Type)] = &[
    ("state", Type::Int),
    ("next_at", Type::Int),
    ("attempts", Type::Int),
    ("scheduled", Type::Int),
    ("response_code", Type::Int),
    ("error", Type::Text),
    ("finished_at", Type::Int),
    ("owner", Type::Int),
];

pub(crate) static SETTLE: UpdateMany = UpdateMany::new("delivery", &[("id", Type::Bytes)], SETTLED_COLUMNS);
/// The same, without changing the owner.
pub(crate) static DESCRIBE: UpdateMany = UpdateMany::new(
    "delivery",
    &[("id", Type::Bytes)],
    SETTLED_COLUMNS.split_at(SETTLED_COLUMNS.len() - 1).0,
);

const ATTEMPT_COLUMNS: &[(&str, Type)] = &[
    ("delivery", Type::Bytes),
    ("number", Type::Int),
    ("started_at", Type::Int),
    ("succeeded", Type::Int),
    ("manual", Type::Int),
    ("response_code", Type::Int),
    ("failure", Type::Text),
    ("error", Type::Text),
    ("dns_us", Type::Int),
    ("connect_us", Type::Int),
    ("tls_us", Type::Int),
    ("first_byte_us", Type::Int),
    ("total_us", Type::Int),
    ("address", Type::Text),
    ("excerpt", Type::Bytes),
    ("excerpt_cut", Type::Int),
];

pub(crate) static INSERT_ATTEMPTS: InsertMany = InsertMany::new("attempt", ATTEMPT_COLUMNS, "");

/// A new delivery.
#[derive(Debug, Clone)]
pub struct NewDelivery {
    pub id: DeliveryId,
    pub webhook: WebhookId,
    pub event: EventId,
    pub kind: Kind,
    pub account: Option<AccountId>,
    /// The node that holds it in memory; without one it waits to be polled.
    pub owner: Option<i64>,
    pub created_at: Time,
}

pub fn insert(tx: &mut Tx, deliveries: &[NewDelivery]) -> Result<(), Error> {
    let mut rows = Vec::with_capacity(deliveries.len() * INSERT.width());
    for delivery in deliveries {
        rows.extend::<[Value; 11]>([
            (&delivery.id).into(),
            (&delivery.webhook).into(),
            (&delivery.event).into(),
            delivery.kind.as_str().into(),
            delivery.account.as_ref().into(),
            delivery_state::OPEN.into(),
            delivery.created_at.into(),
            delivery.owner.into(),
            0.into(),
            0.into(),
            delivery.created_at.into(),
        ]);
    }
    tx.insert(&INSERT, &rows)?;
    Ok(())
}

pub fn get(snapshot: &mut Snapshot, id: DeliveryId) -> Result<Option<Delivery>, Error> {
    snapshot.query_opt(&GET, values![&id])?.map(read).transpose()
}

/// The deliveries with these ids and the nodes that own them, locked in key order.
pub fn lock(tx: &mut Tx, ids: &[DeliveryId]) -> Result<Vec<(Delivery, Option<i64>)>, Error> {
    let keys: Vec<Value> = ids.iter().map(Value::from).collect();
    let rows = tx.query_keys(&LOCK, &[], &keys)?;
    rows.into_iter().map(|mut row| Ok((read_columns(&mut row)?, row.take()?))).collect()
}

/// The deliveries among these that are open and owned by a node, locked in key order.
pub fn lock_owned(tx: &mut Tx, owner: i64, ids: &[DeliveryId]) -> Result<Vec<DeliveryId>, Error> {
    let keys: Vec<Value> = ids.iter().map(Value::from).collect();
    tx.query_keys(&LOCK_OWNED, values![owner], &keys)?.into_iter().map(|mut row| row.take()).collect()
}

/// When the recorded attempts of these deliveries began.
pub fn attempt_starts(tx: &mut Tx, ids: &[DeliveryId]) -> Result<Vec<(DeliveryId, Time)>, Error> {
    let keys: Vec<Value> = ids.iter().map(Value::from).collect();
    let rows = tx.query_keys(&ATTEMPT_STARTS, &[], &keys)?;
    rows.into_iter().map(|mut row| Ok((row.take()?, row.take()?))).collect()
}

/// Writes deliveries back after an attempt and clears their owner.
pub fn settle(tx: &mut Tx, deliveries: &[&Delivery]) -> Result<(), Error> {
    let mut rows = Vec::with_capacity(deliveries.len() * SETTLE.width());
    for delivery in deliveries {
        rows.extend(settled(delivery));
        rows.push(Value::Null);
    }
    tx.update(&SETTLE, &rows)
}

/// Writes deliveries back after a manual attempt. A node that holds one for an automatic attempt keeps it.
pub fn describe(tx: &mut Tx, deliveries: &[&Delivery]) -> Result<(), Error> {
    let rows: Vec<Value> = deliveries.iter().flat_map(|delivery| settled(delivery)).collect();
    tx.update(&DESCRIBE, &rows)
}

fn settled(delivery: &Delivery) -> [Value<'_>; 8] {
    let next_at = match delivery.state {
        State::Open { next_at } => next_at,
        State::Succeeded | State::Failed => delivery.created_at,
    };
    [
        (&delivery.id).into(),
        delivery_state::encode(delivery.state).into(),
        next_at.into(),
        delivery.attempts.into(),
        delivery.scheduled.into(),
        delivery.response_code.into(),
        delivery.error.as_deref().into(),
        delivery.finished_at.into(),
    ]
}

/// An attempt with its number.
pub struct NumberedAttempt<'a> {
    pub delivery: DeliveryId,
    pub number: i64,
    pub attempt: &'a Attempt,
}

pub fn insert_attempts(tx: &mut Tx, attempts: &[NumberedAttempt]) -> Result<(), Error> {
    let mut rows = Vec::with_capacity(attempts.len() * INSERT_ATTEMPTS.width());
    for NumberedAttempt { delivery, number, attempt } in attempts {
        let code = attempt.outcome.code().map(i64::from);
        let failure = attempt.outcome.failure().map(Failure::as_str);
        let succeeded = attempt.outcome.verdict() == rapport_domain::delivery::Verdict::Succeeded;
        let excerpt = (!attempt.excerpt.is_empty()).then_some(attempt.excerpt.as_slice());
        rows.extend::<[Value; 16]>([
            delivery.into(),
            (*number).into(),
            attempt.started_at.into(),
            succeeded.into(),
            (attempt.reason == Reason::Manual).into(),
            code.into(),
            failure.into(),
            attempt.error.as_deref().into(),
            attempt.timings.dns.into(),
            attempt.timings.connect.into(),
            attempt.timings.tls.into(),
            attempt.timings.first_byte.into(),
            attempt.timings.total.into(),
            attempt.address.as_deref().into(),
            excerpt.into(),
            attempt.excerpt_cut.into(),
        ]);
    }
    tx.insert(&INSERT_ATTEMPTS, &rows)?;
    Ok(())
}

/// An attempt as shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptAttempt {
    pub number: i64,
    pub started_at: Time,
    pub succeeded: bool,
    pub manual: bool,
    pub response_code: Option<i64>,
    pub failure: Option<String>,
    pub error: Option<String>,
    pub dns_us: Option<i64>,
    pub connect_us: Option<i64>,
    pub tls_us: Option<i64>,
    pub first_byte_us: Option<i64>,
    pub total_us: i64,
    pub address: Option<String>,
    pub excerpt: Option<Vec<u8>>,
    pub excerpt_cut: bool,
}

pub fn attempts(snapshot: &mut Snapshot, delivery: DeliveryId) -> Result<Vec<KeptAttempt>, Error> {
    let rows = snapshot.query(&ATTEMPTS, values![&delivery])?;
    rows.into_iter()
        .map(|mut row| {
            let row = &mut row;
            Ok(KeptAttempt {
                number: row.take()?,
                started_at: row.take()?,
                succeeded: row.take()?,
                manual: row.take()?,
                response_code: row.take()?,
                failure: row.take()?,
                error: row.take()?,
                dns_us: row.take()?,
                connect_us: row.take()?,
                tls_us: row.take()?,
                first_byte_us: row.take()?,
                total_us: row.take()?,
                address: row.take()?,
                excerpt: row.take()?,
                excerpt_cut: row.take()?,
            })
        })
        .collect()
}

/// A delivery claimed for sending.
#[derive(Debug, Clone)]
pub struct Claimed {
    pub id: DeliveryId,
    pub event: EventId,
    pub kind: Kind,
    pub attempts: i64,
    pub due_at: Time,
    /// `None` if the payload was erased.
    pub payload: Option<String>,
}

/// Claims a webhook's due deliveries for this node, oldest first.
pub fn claim(
    tx: &mut Tx,
    webhook: WebhookId,
    owner: i64,
    now: Time,
    not_before: Time,
    limit: i64,
) -> Result<Vec<Claimed>, Error> {
    let rows = tx.query(&DUE, values![&webhook, now, not_before, limit])?;
    let claimed = rows
        .into_iter()
        .map(|mut row| {
            let row = &mut row;
            Ok(Claimed {
                id: row.take()?,
                event: row.take()?,
                kind: read_kind(row)?,
                attempts: row.take()?,
                due_at: row.take()?,
                payload: row.take()?,
            })
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let keys: Vec<Value> = claimed.iter().map(|claimed| Value::from(&claimed.id)).collect();
    tx.execute_keys(&CLAIM, values![owner], &keys)?;
    Ok(claimed)
}

/// When the next waiting delivery of a webhook is due.
pub fn next_due(snapshot: &mut Snapshot, webhook: WebhookId) -> Result<Option<Time>, Error> {
    let row = snapshot.query_opt(&NEXT_DUE, values![&webhook])?;
    row.map_or(Ok(None), |mut row| row.take())
}

/// Releases deliveries: they wait in the database again.
pub fn release(tx: &mut Tx, owner: i64, ids: &[DeliveryId]) -> Result<(), Error> {
    let keys: Vec<Value> = ids.iter().map(Value::from).collect();
    tx.execute_keys(&RELEASE, values![owner], &keys)?;
    Ok(())
}

/// Some open deliveries that a node owns in this company.
pub fn owned(snapshot: &mut Snapshot, owner: i64, limit: i64) -> Result<Vec<DeliveryId>, Error> {
    let rows = snapshot.query(&OWNED, values![owner, limit])?;
    rows.into_iter().map(|mut row| row.take()).collect()
}

/// Open deliveries that a node owns in any company, in key order after `after`.
pub fn owned_after(
    across: &mut Across,
    owner: i64,
    after: (CompanyId, DeliveryId),
    limit: i64,
) -> Result<Vec<(CompanyId, DeliveryId)>, Error> {
    let rows = across.query(&OWNED_AFTER, values![owner, after.0, &after.1, limit])?;
    rows.into_iter().map(|mut row| Ok((row.take()?, row.take()?))).collect()
}

/// The companies in which a node owns open deliveries.
pub fn owned_companies(across: &mut Across, owner: i64) -> Result<Vec<CompanyId>, Error> {
    across.query(&OWNED_COMPANIES, values![owner])?.into_iter().map(|mut row| row.take()).collect()
}

/// The nodes that own open deliveries.
pub fn owners(across: &mut Across) -> Result<Vec<i64>, Error> {
    across.query(&OWNERS, &[])?.into_iter().map(|mut row| row.take()).collect()
}

/// Some waiting deliveries of a webhook that were created before `before`.
pub fn open_of_webhook(
    snapshot: &mut Snapshot,
    webhook: WebhookId,
    before: Time,
    limit: i64,
) -> Result<Vec<DeliveryId>, Error> {
    let rows = snapshot.query(&OPEN_OF_WEBHOOK, values![&webhook, before, limit])?;
    rows.into_iter().map(|mut row| row.take()).collect()
}

/// Ends open deliveries without an attempt.
pub fn end(tx: &mut Tx, ids: &[DeliveryId], error: &str, now: Time) -> Result<(), Error> {
    let keys: Vec<Value> = ids.iter().map(Value::from).collect();
    tx.execute_keys(&END, values![error, now], &keys)?;
    Ok(())
}

/// The number of waiting deliveries of a webhook, up to `cap`.
pub fn waiting_count(
    snapshot: &mut Snapshot,
    webhook: WebhookId,
    since: Time,
    cap: i64,
) -> Result<i64, Error> {
    let row = snapshot.query_opt(&HELD_COUNT, values![&webhook, since, cap])?;
    row.map_or(Ok(0), |mut row| row.take())
}

fn read_kind(row: &mut Row) -> Result<Kind, Error> {
    Kind::parse(&row.take::<String>()?).ok_or_else(|| Error::fault("an unknown kind of event"))
}

pub(crate) fn read(mut row: Row) -> Result<Delivery, Error> {
    read_columns(&mut row)
}

fn read_columns(row: &mut Row) -> Result<Delivery, Error> {
    let (id, webhook, event, kind, account) =
        (row.take()?, row.take()?, row.take()?, read_kind(row)?, row.take()?);
    let state = delivery_state::decode(row.take()?, row.take()?);
    Ok(Delivery {
        id,
        webhook,
        event,
        kind,
        account,
        state,
        attempts: row.take()?,
        scheduled: row.take()?,
        response_code: row.take()?,
        error: row.take()?,
        created_at: row.take()?,
        finished_at: row.take()?,
    })
}

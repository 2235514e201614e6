//! Webhooks. The row of a deleted one stays until its history is gone, but isn't shown anywhere.

use rapport_domain::id::{CompanyId, WebhookId};
use rapport_domain::standing::Standing;
use rapport_domain::time::Time;
use rapport_domain::webhook::{LastTest, Selection, Switch, Webhook};

use crate::delivery_state::delivery_state;
use crate::error::Error;
use crate::statement::{UpdateMany, statements};
use crate::subscription::{self, Selects};
use crate::tx::{Across, Snapshot, Tx};
use crate::value::{Row, Type, Value};
use crate::values;

macro_rules! select_webhook {
    ($rest:literal) => {
        concat!(
            "SELECT id, url, description, events, disabled_by_hand, auto_disabled_at, failure_streak, proven, ",
            "last_test_at, last_test_succeeded, url_changed_at, created_at, updated_at FROM webhook ",
            $rest
        )
    };
}

statements! {
    company GET = select_webhook!("WHERE company = $1 AND deleted_at IS NULL AND id = $2");
    company LIST = select_webhook!("WHERE company = $1 AND deleted_at IS NULL ORDER BY id DESC");
    company LOCK = select_webhook!("WHERE company = $1 AND deleted_at IS NULL AND id = ANY($2) ORDER BY id FOR UPDATE");
    company SELECTIONS = "SELECT events FROM webhook WHERE company = $1 AND deleted_at IS NULL ORDER BY id";
    company STATES = "SELECT id, CASE WHEN disabled_by_hand = 0 AND auto_disabled_at IS NULL THEN 1 ELSE 0 END, \
                      dropped_before FROM webhook WHERE company = $1 AND deleted_at IS NULL AND id = ANY($2)";
    company INSERT = "INSERT INTO webhook (company, id, url, description, events, disabled_by_hand, \
                      failure_streak, proven, url_changed_at, secret, secret_shown, dropped_before, created_at, updated_at) \
                      VALUES ($1, $2, $3, $4, $5, 0, 0, 0, $6, $7, $8, 0, $6, $6)";
    company SET_SECRET = "UPDATE webhook SET secret = $3, secret_shown = $4, updated_at = $5 \
                          WHERE company = $1 AND id = $2";
    // Nothing is sent to a deleted webhook, so nothing keeps the secrets of its headers.
    company MARK_DELETED = "UPDATE webhook SET deleted_at = $3, headers = '', header_secrets = NULL \
                            WHERE company = $1 AND id = $2";
    company DROP_BEFORE = "UPDATE webhook SET dropped_before = $3 WHERE company = $1 AND id = $2";
    company SECRET_SHOWN = "SELECT secret_shown FROM webhook WHERE company = $1 AND id = $2";
    company SECRET = "SELECT secret FROM webhook WHERE company = $1 AND deleted_at IS NULL AND id = $2";
    reference TARGETS = "SELECT id, url, secret, CASE WHEN disabled_by_hand = 0 AND auto_disabled_at IS NULL \
                         THEN 1 ELSE 0 END, CASE WHEN auto_disabled_at IS NULL THEN 0 ELSE 1 END, \
                         CASE WHEN deleted_at IS NULL THEN 0 ELSE 1 END, dropped_before, headers, header_secrets \
                         FROM webhook WHERE company = $1 AND id = ANY($2)";
    reference STANDINGS = "SELECT company, id, failure_streak, proven FROM webhook WHERE deleted_at IS NULL \
                           AND (proven = 1 OR failure_streak > 0)";
    reference WITH_WORK = concat!(
        "SELECT w.company, w.id, (SELECT min(d.next_at) FROM delivery d /*INDEXED BY delivery_waiting*/ ",
        "WHERE d.company = w.company AND d.webhook = w.id AND d.state = ", delivery_state!(open),
        " AND d.owner IS NULL) ",
        "FROM webhook w WHERE w.deleted_at IS NULL AND w.disabled_by_hand = 0 AND w.auto_disabled_at IS NULL ",
        "AND (SELECT 1 FROM delivery d /*INDEXED BY delivery_waiting*/ ",
        "WHERE d.company = w.company AND d.webhook = w.id AND d.state = ", delivery_state!(open),
        " AND d.owner IS NULL LIMIT 1 OFFSET 0) IS NOT NULL"
    );
    reference ENDING = "SELECT company, id, deleted_at, dropped_before FROM webhook \
                        WHERE deleted_at IS NOT NULL OR dropped_before > 0";
}

pub(crate) static UPDATE: UpdateMany = UpdateMany::new(
    "webhook",
    &[("id", Type::Bytes)],
    &[
        ("url", Type::Text),
        ("description", Type::Text),
        ("events", Type::Text),
        ("disabled_by_hand", Type::Int),
        ("auto_disabled_at", Type::Int),
        ("failure_streak", Type::Int),
        ("proven", Type::Int),
        ("last_test_at", Type::Int),
        ("last_test_succeeded", Type::Int),
        ("url_changed_at", Type::Int),
        ("updated_at", Type::Int),
    ],
);

pub fn get(snapshot: &mut Snapshot, id: WebhookId) -> Result<Option<Webhook>, Error> {
    snapshot.query_opt(&GET, values![&id])?.map(read).transpose()
}

pub fn list(snapshot: &mut Snapshot) -> Result<Vec<Webhook>, Error> {
    snapshot.query(&LIST, &[])?.into_iter().map(read).collect()
}

/// The part of the secret that settings pages may show.
pub fn secret_shown(snapshot: &mut Snapshot, id: WebhookId) -> Result<Option<String>, Error> {
    snapshot.query_opt(&SECRET_SHOWN, values![&id])?.map(|mut row| row.take()).transpose()
}

/// The encrypted secret, which only the vault can decrypt.
pub fn sealed_secret(snapshot: &mut Snapshot, id: WebhookId) -> Result<Option<Vec<u8>>, Error> {
    snapshot.query_opt(&SECRET, values![&id])?.map(|mut row| row.take()).transpose()
}

/// The webhooks with these ids, locked in key order, without deleted ones.
pub fn lock(tx: &mut Tx, ids: &[WebhookId]) -> Result<Vec<Webhook>, Error> {
    let keys: Vec<Value> = ids.iter().map(Value::from).collect();
    tx.query_keys(&LOCK, &[], &keys)?.into_iter().map(read).collect()
}

/// What the webhooks of the company select, one selection each.
pub fn selections(snapshot: &mut Snapshot) -> Result<Vec<Selection>, Error> {
    let rows = snapshot.query(&SELECTIONS, &[])?;
    rows.into_iter().map(|mut row| Ok(Selection::from_stored(&row.take::<String>()?))).collect()
}

pub fn insert(tx: &mut Tx, webhook: &Webhook, sealed: &[u8], shown: &str) -> Result<(), Error> {
    let events = webhook.events.to_stored();
    tx.execute(
        &INSERT,
        values![&webhook.id, &webhook.url, &webhook.description, &events, webhook.created_at, sealed, shown],
    )?;
    subscription::renew(tx, webhook.created_at)
}

pub fn update(tx: &mut Tx, webhooks: &[&Webhook], selects: Selects) -> Result<(), Error> {
    let events: Vec<String> = webhooks.iter().map(|webhook| webhook.events.to_stored()).collect();
    let mut rows = Vec::with_capacity(webhooks.len() * UPDATE.width());
    for (webhook, events) in webhooks.iter().zip(&events) {
        let auto_disabled_at = match webhook.switch {
            Switch::AutoDisabled { at } => Some(at),
            Switch::Enabled | Switch::DisabledByHand => None,
        };
        rows.extend::<[Value; 12]>([
            (&webhook.id).into(),
            (&webhook.url).into(),
            (&webhook.description).into(),
            events.into(),
            (webhook.switch == Switch::DisabledByHand).into(),
            auto_disabled_at.into(),
            webhook.failure_streak.into(),
            webhook.proven.into(),
            webhook.last_test.map(|test| test.at).into(),
            webhook.last_test.map(|test| test.succeeded).into(),
            webhook.url_changed_at.into(),
            webhook.updated_at.into(),
        ]);
    }
    tx.update(&UPDATE, &rows)?;
    match selects {
        Selects::AsBefore => Ok(()),
        Selects::Anew(now) => subscription::renew(tx, now),
    }
}

pub fn set_secret(tx: &mut Tx, id: WebhookId, sealed: &[u8], shown: &str, now: Time) -> Result<(), Error> {
    tx.execute(&SET_SECRET, values![&id, sealed, shown, now])?;
    Ok(())
}

pub fn mark_deleted(tx: &mut Tx, id: WebhookId, now: Time) -> Result<(), Error> {
    tx.execute(&MARK_DELETED, values![&id, now])?;
    subscription::renew(tx, now)
}

/// Open deliveries created before `time` will no longer be sent.
pub fn drop_before(tx: &mut Tx, id: WebhookId, time: Time) -> Result<(), Error> {
    tx.execute(&DROP_BEFORE, values![&id, time])?;
    Ok(())
}

/// Whether a webhook is enabled, and which of its deliveries were dropped.
#[derive(Debug, Clone, Copy)]
pub struct SendState {
    pub enabled: bool,
    pub dropped_before: Time,
}

pub fn state(snapshot: &mut Snapshot, id: WebhookId) -> Result<Option<SendState>, Error> {
    Ok(states(snapshot, &[id])?.pop().map(|(_, state)| state))
}

/// The states of these webhooks, without deleted ones.
pub fn states(snapshot: &mut Snapshot, ids: &[WebhookId]) -> Result<Vec<(WebhookId, SendState)>, Error> {
    let keys: Vec<Value> = ids.iter().map(Value::from).collect();
    let rows = snapshot.query_keys(&STATES, &[], &keys)?;
    rows.into_iter()
        .map(|mut row| Ok((row.take()?, SendState { enabled: row.take()?, dropped_before: row.take()? })))
        .collect()
}

/// The parts of a webhook that an attempt needs, read again for each dispatch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub id: WebhookId,
    pub url: String,
    pub sealed_secret: Vec<u8>,
    pub enabled: bool,
    /// Disabled after repeated failures, not by hand.
    pub auto_disabled: bool,
    pub deleted: bool,
    pub dropped_before: Time,
    /// Its own headers as stored; empty if it has none.
    pub headers: String,
    pub sealed_headers: Option<Vec<u8>>,
}

pub fn targets(across: &mut Across, company: CompanyId, ids: &[WebhookId]) -> Result<Vec<Target>, Error> {
    let keys: Vec<Value> = ids.iter().map(Value::from).collect();
    let rows = across.query_keys(&TARGETS, values![company], &keys)?;
    rows.into_iter()
        .map(|mut row| {
            let row = &mut row;
            Ok(Target {
                id: row.take()?,
                url: row.take()?,
                sealed_secret: row.take()?,
                enabled: row.take()?,
                auto_disabled: row.take()?,
                deleted: row.take()?,
                dropped_before: row.take()?,
                headers: row.take()?,
                sealed_headers: row.take()?,
            })
        })
        .collect()
}

/// The standing of every receiver that was ever sent to.
pub fn standings(across: &mut Across) -> Result<Vec<(CompanyId, WebhookId, Standing)>, Error> {
    let rows = across.query(&STANDINGS, &[])?;
    rows.into_iter()
        .map(|mut row| {
            let (company, id, streak) = (row.take()?, row.take()?, row.take()?);
            Ok((company, id, Standing::of(row.take()?, streak)))
        })
        .collect()
}

/// The enabled webhooks with waiting deliveries, and when the first of those is due.
pub fn with_work(across: &mut Across) -> Result<Vec<(CompanyId, WebhookId, Time)>, Error> {
    let rows = across.query(&WITH_WORK, &[])?;
    rows.into_iter().map(|mut row| Ok((row.take()?, row.take()?, row.take()?))).collect()
}

/// A webhook whose open deliveries must be ended because it was deleted or they were dropped.
#[derive(Debug, Clone, Copy)]
pub struct Ending {
    pub company: CompanyId,
    pub webhook: WebhookId,
    pub deleted: bool,
    pub dropped_before: Time,
}

pub fn ending(across: &mut Across) -> Result<Vec<Ending>, Error> {
    let rows = across.query(&ENDING, &[])?;
    rows.into_iter()
        .map(|mut row| {
            let (company, webhook) = (row.take()?, row.take()?);
            let deleted: Option<Time> = row.take()?;
            Ok(Ending { company, webhook, deleted: deleted.is_some(), dropped_before: row.take()? })
        })
        .collect()
}

fn read(mut row: Row) -> Result<Webhook, Error> {
    let row = &mut row;
    let (id, url, description) = (row.take()?, row.take()?, row.take()?);
    let events = Selection::from_stored(&row.take::<String>()?);
    let (by_hand, auto): (bool, Option<Time>) = (row.take()?, row.take()?);
    let switch = match auto {
        Some(at) => Switch::AutoDisabled { at },
        None if by_hand => Switch::DisabledByHand,
        None => Switch::Enabled,
    };
    let (failure_streak, proven) = (row.take()?, row.take()?);
    let last_test = match (row.take()?, row.take()?) {
        (Some(at), Some(succeeded)) => Some(LastTest { at, succeeded }),
        _ => None,
    };
    Ok(Webhook {
        id,
        url,
        description,
        events,
        switch,
        failure_streak,
        proven,
        last_test,
        url_changed_at: row.take()?,
        created_at: row.take()?,
        updated_at: row.take()?,
    })
}

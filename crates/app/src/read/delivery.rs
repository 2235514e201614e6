//! Deliveries: the log, and one delivery with its payload and attempts.

use std::collections::HashMap;

use rapport_domain::delivery::Delivery;
use rapport_domain::delivery_list::{Appearance, Filter};
use rapport_domain::event::Event;
use rapport_domain::id::{AccountId, DeliveryId, WebhookId};
use rapport_domain::invalid::Invalid;
use rapport_domain::signature::Signature;
use rapport_domain::standard_webhook;
use rapport_domain::webhook::Webhook;
use rapport_domain::webhook_header::Header;
use rapport_store::delivery_list::{self, Bounds, account_names};
use rapport_store::{Error, Snapshot, account, delivery, event, webhook, webhook_choice};
use serde_json::{Map, Value};

use crate::context::Services;
use crate::read::accounts::search;
use crate::read::{Viewer, with_zone};
use crate::signature;

pub use rapport_store::delivery::KeptAttempt;
pub use rapport_store::delivery_list::{Listed, Scan};

/// How many deliveries a page of the log has.
const LISTED: i64 = 50;
/// How many webhooks a form offers to choose from.
const CHOICES: usize = 200;

/// A delivery with the names that a row shows.
pub struct Named {
    pub delivery: Delivery,
    pub shown: Appearance,
    /// The account, and its name unless it was deleted.
    pub account: Option<(AccountId, Option<String>)>,
    /// Unless it was deleted.
    pub webhook: Option<Webhook>,
}

pub(super) fn named(snapshot: &mut Snapshot, listed: Vec<Listed>) -> Result<Vec<Named>, Error> {
    let names = account_names(snapshot, listed.iter().filter_map(|listed| listed.delivery.account))?;
    let webhooks: HashMap<WebhookId, Webhook> =
        webhook::list(snapshot)?.into_iter().map(|webhook| (webhook.id, webhook)).collect();
    let name = |Listed { delivery, shown }| Named {
        account: delivery.account.map(|id| (id, names.get(&id).cloned())),
        webhook: webhooks.get(&delivery.webhook).cloned(),
        delivery,
        shown,
    };
    Ok(listed.into_iter().map(name).collect())
}

/// A stretch of the log, newest first.
pub fn log(
    snapshot: &mut Snapshot,
    filter: &Filter,
    before: Option<DeliveryId>,
    limit: i64,
) -> Result<Scan, Error> {
    delivery_list::scan(snapshot, filter, before, Bounds::page(limit))
}

/// Everything the page of the log shows. Without a valid filter it lists nothing.
pub struct LogPage {
    pub filter: Result<Filter, Invalid>,
    /// The webhooks to choose from.
    pub webhooks: Vec<Webhook>,
    /// The name of the account in the filter.
    pub account: Option<String>,
    /// The accounts to choose from, if the filter names several.
    pub candidates: Vec<(AccountId, String)>,
    pub rows: Vec<Named>,
    pub next: Option<DeliveryId>,
}

/// Reads the log with a filter as a person typed it.
pub fn log_page(
    snapshot: &mut Snapshot,
    viewer: &Viewer,
    typed: Map<String, Value>,
    before: Option<DeliveryId>,
) -> Result<LogPage, Error> {
    let name = typed.get("account").and_then(Value::as_str).unwrap_or_default().to_owned();
    let filter = filter(snapshot, viewer, typed)?;
    let webhooks = choices(snapshot)?;
    let Ok(meant) = filter else {
        let candidates = named_like(snapshot, viewer, &name)?;
        return Ok(LogPage { filter, webhooks, account: None, candidates, rows: Vec::new(), next: None });
    };
    let account = match meant.account {
        Some(id) => account::get(snapshot, id)?.map(|account| account.name),
        None => None,
    };
    let Scan { found, next } = log(snapshot, &meant, before, LISTED)?;
    Ok(LogPage { filter, webhooks, account, candidates: Vec::new(), rows: named(snapshot, found)?, next })
}

/// The webhooks that a form offers.
pub fn choices(snapshot: &mut Snapshot) -> Result<Vec<Webhook>, Error> {
    let mut webhooks = webhook::list(snapshot)?;
    webhooks.truncate(CHOICES);
    Ok(webhooks)
}

/// The filter that a person typed. A time without a zone is in the company's, and an account may be given by
/// either of its ids, or by a name that no other account has.
pub fn filter(
    snapshot: &mut Snapshot,
    viewer: &Viewer,
    mut typed: Map<String, Value>,
) -> Result<Result<Filter, Invalid>, Error> {
    for name in ["since", "until"] {
        if let Some(Value::String(text)) = typed.get_mut(name) {
            *text = with_zone(text, viewer.zone());
        }
    }
    if let Some(Value::String(text)) = typed.get_mut("account") {
        *text = with_own_id(snapshot, viewer, text)?;
    }
    Ok(Filter::parse(&typed))
}

fn with_own_id(snapshot: &mut Snapshot, viewer: &Viewer, text: &str) -> Result<String, Error> {
    if text.parse::<AccountId>().is_ok() {
        return Ok(text.to_owned());
    }
    if let Some((_, id)) = account::ids_by_imported_id(snapshot, &[text])?.pop() {
        return Ok(id.to_string());
    }
    let found = named_like(snapshot, viewer, text)?;
    let exact: Vec<_> = found.iter().filter(|(_, name)| name.to_lowercase() == text.to_lowercase()).collect();
    Ok(match (exact.as_slice(), found.as_slice()) {
        ([only], _) => only.0.to_string(),
        ([], [only]) => only.0.to_string(),
        _ => text.to_owned(),
    })
}

/// The accounts whose names or imported ids contain these words. An id isn't a name.
fn named_like(
    snapshot: &mut Snapshot,
    viewer: &Viewer,
    text: &str,
) -> Result<Vec<(AccountId, String)>, Error> {
    if text.parse::<AccountId>().is_ok() {
        return Ok(Vec::new());
    }
    let found = search(snapshot, viewer, text.to_owned())?;
    Ok(found.into_iter().map(|account| (account.id, account.name)).collect())
}

/// A delivery as the API shows it.
pub struct Detail {
    pub listed: Listed,
    pub event: Option<Event>,
    pub attempts: Vec<KeptAttempt>,
}

pub fn one(snapshot: &mut Snapshot, id: DeliveryId) -> Result<Option<Detail>, Error> {
    let Some(listed) = delivery_list::get(snapshot, id)? else { return Ok(None) };
    let event = event::get(snapshot, listed.delivery.event)?;
    Ok(Some(Detail { listed, event, attempts: delivery::attempts(snapshot, id)? }))
}

/// Everything a delivery's page shows.
pub struct DeliveryPage {
    pub row: Named,
    /// Unless it was erased.
    pub payload: Option<String>,
    /// The `X-Service-Signature` that an attempt made now would carry.
    pub signature: Option<Signature>,
    /// The headers that the webhook adds now, without the values of secret ones.
    pub headers: Vec<Header>,
    /// Oldest first, each with the `webhook-signature` that the current secret gives.
    pub attempts: Vec<(KeptAttempt, Option<standard_webhook::Signature>)>,
}

pub fn page(
    snapshot: &mut Snapshot,
    services: &Services,
    id: DeliveryId,
) -> Result<Option<DeliveryPage>, Error> {
    let Some(Detail { listed, event, attempts }) = one(snapshot, id)? else { return Ok(None) };
    let payload = event.and_then(kept_payload);
    let key = signature::key_of_webhook(services, snapshot, listed.delivery.webhook)?;
    let signing = key.as_ref().zip(payload.as_deref().map(str::as_bytes));
    let signature = signing.map(|(key, body)| key.sign(body));
    let id = listed.delivery.event;
    let sign = |attempt: &KeptAttempt| {
        signing.map(|(key, body)| key.sign_standard(id, attempt.started_at.unix_seconds(), body))
    };
    let signatures: Vec<_> = attempts.iter().map(sign).collect();
    let attempts = attempts.into_iter().zip(signatures).collect();
    let headers = webhook_choice::get(snapshot, listed.delivery.webhook)?.headers;
    let row = named(snapshot, vec![listed])?.pop();
    Ok(row.map(|row| DeliveryPage { row, payload, signature, headers, attempts }))
}

/// The exact text that a delivery sends, unless it was erased.
pub fn payload(snapshot: &mut Snapshot, id: DeliveryId) -> Result<Option<String>, Error> {
    let Some(found) = delivery::get(snapshot, id)? else { return Ok(None) };
    Ok(event::get(snapshot, found.event)?.and_then(kept_payload))
}

/// An erased payload is empty.
fn kept_payload(event: Event) -> Option<String> {
    Some(event.payload).filter(|payload| !payload.is_empty())
}

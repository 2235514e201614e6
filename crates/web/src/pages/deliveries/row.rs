//! A delivery as a line of a table.

use std::collections::HashMap;

use rapport_domain::delivery::Delivery;
use rapport_domain::delivery_list::{Appearance, DROPPED, PAYLOAD_ERASED, Shown, WEBHOOK_DELETED};
use rapport_domain::id::{AccountId, WebhookId};
use rapport_domain::webhook::Webhook;
use rapport_store::delivery_list::{Listed, account_names};
use rapport_store::{Error, Snapshot, webhook};

use crate::pages::deliveries::filter::state_name;
use crate::pages::webhooks::{name, place};

pub struct Row {
    pub delivery: Delivery,
    pub shown: Appearance,
    /// What the account is called, unless it is deleted.
    pub account: Option<(AccountId, Option<String>)>,
    /// Where the webhook points, unless it is deleted.
    pub webhook: Option<(WebhookId, String)>,
    /// Its description, or where it points.
    pub webhook_name: String,
}

impl Row {
    pub fn badge(&self) -> (&'static str, &'static str) {
        badge(self.shown.state)
    }

    /// The code that was answered, or what kept one from coming.
    pub fn response(&self) -> (Option<i64>, &str) {
        response(&self.delivery, &self.shown)
    }
}

/// Looks up what the lines of a table name.
pub fn rows(snapshot: &mut Snapshot, listed: Vec<Listed>) -> Result<Vec<Row>, Error> {
    let names = account_names(snapshot, &listed)?;
    let webhooks: HashMap<WebhookId, Webhook> =
        webhook::list(snapshot)?.into_iter().map(|webhook| (webhook.id, webhook)).collect();
    let row = |Listed { delivery, shown }| {
        let webhook = webhooks.get(&delivery.webhook);
        Row {
            account: delivery.account.map(|id| (id, names.get(&id).cloned())),
            webhook: webhook.map(|webhook| (webhook.id, place(webhook).to_owned())),
            webhook_name: webhook.map(name).unwrap_or_default().to_owned(),
            delivery,
            shown,
        }
    };
    Ok(listed.into_iter().map(row).collect())
}

/// The colour and the word of a state.
pub const fn badge(state: Shown) -> (&'static str, &'static str) {
    let colour = match state {
        Shown::Pending => "",
        Shown::Succeeded => "good",
        Shown::Failed => "bad",
        Shown::Held => "warn",
    };
    (colour, state_name(state))
}

fn response<'a>(delivery: &Delivery, shown: &'a Appearance) -> (Option<i64>, &'a str) {
    let error = match shown.error.as_deref().unwrap_or_default() {
        WEBHOOK_DELETED => "the webhook was deleted",
        DROPPED => "dropped when the webhook was enabled",
        PAYLOAD_ERASED => "the payload was erased",
        error => error,
    };
    (delivery.response_code, without_code(delivery.response_code, error))
}

/// An error that begins with the code, without it: the code stands beside it.
pub fn without_code(code: Option<i64>, error: &str) -> &str {
    let code = code.map(|code| code.to_string());
    code.and_then(|code| error.strip_prefix(&code)).map_or(error, str::trim_start)
}

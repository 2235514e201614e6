//! A delivery as a row of a table.

use rapport_app::read::delivery::Named;
use rapport_domain::delivery::Delivery;
use rapport_domain::delivery_list::{Appearance, DROPPED, PAYLOAD_ERASED, Shown, WEBHOOK_DELETED};
use rapport_domain::id::{AccountId, WebhookId};

use crate::pages::deliveries::filter::state_name;
use crate::pages::webhooks::{name, place};

pub struct Row {
    pub delivery: Delivery,
    pub shown: Appearance,
    /// The account's name, unless it was deleted.
    pub account: Option<(AccountId, Option<String>)>,
    /// The webhook's URL, unless it was deleted.
    pub webhook: Option<(WebhookId, String)>,
    /// Its description, or its URL.
    pub webhook_name: String,
}

impl From<Named> for Row {
    fn from(Named { delivery, shown, account, webhook }: Named) -> Self {
        let webhook_name = webhook.as_ref().map(name).unwrap_or_default().to_owned();
        let webhook = webhook.map(|webhook| (webhook.id, place(&webhook).to_owned()));
        Self { delivery, shown, account, webhook, webhook_name }
    }
}

impl Row {
    pub fn badge(&self) -> (&'static str, &'static str) {
        badge(self.shown.state)
    }

    /// The response code, and the error.
    pub fn response(&self) -> (Option<i64>, &str) {
        response(&self.delivery, &self.shown)
    }
}

/// The class and the label of a state.
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

/// Removes the response code from the start of an error, because it is shown beside it.
pub fn without_code(code: Option<i64>, error: &str) -> &str {
    let code = code.map(|code| code.to_string());
    code.and_then(|code| error.strip_prefix(&code)).map_or(error, str::trim_start)
}

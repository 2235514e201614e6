//! The webhook pages: the list, a webhook with its actions, the signature checker, how to receive webhooks, and the event
//! catalogue.

mod act;
mod check;
mod edit;
mod events;
mod fields;
mod list;
mod one;
mod preview;
mod receiving;
mod secret;

use axum::Router;
use axum::routing::{get, post};
use rapport_domain::event::Kind;
use rapport_domain::id::WebhookId;
use rapport_domain::webhook::{Switch, Webhook};

use crate::pages::Pages;
use crate::pages::kit::visit::show;
use crate::pages::webhooks::edit::EditPage;
use crate::pages::webhooks::one::WebhookPage;
use crate::shared::catalogue;

pub const PATH: &str = "/webhooks";

pub fn routes() -> Router<Pages> {
    Router::new()
        .route(PATH, get(list::show).post(edit::create))
        .route("/webhooks/new", get(show::<EditPage, ()>))
        .route("/webhooks/preview", post(edit::preview_new))
        .route("/webhooks/check", get(check::show).post(check::check))
        .route("/webhooks/receiving", get(receiving::show))
        .route(catalogue::PAGE, get(events::show))
        .route("/webhooks/{id}", get(show::<WebhookPage, WebhookId>))
        .route("/webhooks/{id}/edit", get(show::<EditPage, WebhookId>).post(edit::save))
        .route("/webhooks/{id}/preview", post(edit::preview_existing))
        .route("/webhooks/{id}/test", post(act::test))
        .route("/webhooks/{id}/rotate", post(act::rotate))
        .route("/webhooks/{id}/enable", post(act::enable))
        .route("/webhooks/{id}/disable", post(act::disable))
        .route("/webhooks/{id}/delete", post(act::delete))
}

pub fn path_of(id: WebhookId) -> String {
    format!("{PATH}/{id}")
}

/// The webhook's URL without the scheme, which people recognise it by.
pub fn place(webhook: &Webhook) -> &str {
    webhook.place()
}

/// The webhook's description, else its URL.
pub fn name(webhook: &Webhook) -> &str {
    if webhook.description.is_empty() { place(webhook) } else { &webhook.description }
}

/// The class and the label of a switch.
pub fn badge(switch: &Switch) -> (&'static str, &'static str) {
    match switch {
        Switch::Enabled => ("good", "Enabled"),
        Switch::DisabledByHand => ("warn", "Disabled"),
        Switch::AutoDisabled { .. } => ("bad", "Auto-disabled"),
    }
}

/// When an event of this kind is sent, in a sentence or two. The catalogue has it in full.
pub const fn meaning(kind: Kind) -> &'static str {
    match kind {
        Kind::AccountCreated => {
            "An account was created: by hand, through the API, by an upsert, an import, a lookup or a mail."
        }
        Kind::AccountStatusChanged => {
            "An account moved to another stage. Includes the previous stage and the source."
        }
        Kind::MessageInbound => "An inbound message was logged.",
        Kind::ClientContactDue => {
            "A tracked client became overdue for contact. Sent once until the next contact."
        }
        Kind::WebhookTest => "Someone sent a test to this webhook.",
        Kind::AccountUpdated => {
            "Members of an account changed, with old and new values: by hand, by an import or through the API. Moves \
             alone aren’t included."
        }
        Kind::AccountDeleted => "An account was deleted. Includes the account as it was.",
        Kind::ContactLogged => "Contact was recorded, or an outbound message was logged.",
    }
}

//! The webhook pages: the list, a webhook with its actions, the signature checker, and how to receive webhooks.

mod act;
mod check;
mod edit;
mod list;
mod one;
mod receiving;
mod secret;

use std::str::FromStr;

use axum::Router;
use axum::response::Response;
use axum::routing::{get, post};
use rapport_app::Error;
use rapport_domain::event::Kind;
use rapport_domain::webhook::{Switch, Webhook};

use crate::pages::Pages;
use crate::pages::kit::draft::sentence;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;

pub const PATH: &str = "/webhooks";

pub fn routes() -> Router<Pages> {
    Router::new()
        .route(PATH, get(list::show).post(edit::create))
        .route("/webhooks/new", get(edit::show_new))
        .route("/webhooks/check", get(check::show).post(check::check))
        .route("/webhooks/receiving", get(receiving::show))
        .route("/webhooks/{id}", get(one::show))
        .route("/webhooks/{id}/edit", get(edit::show).post(edit::save))
        .route("/webhooks/{id}/test", post(act::test))
        .route("/webhooks/{id}/rotate", post(act::rotate))
        .route("/webhooks/{id}/enable", post(act::enable))
        .route("/webhooks/{id}/disable", post(act::disable))
        .route("/webhooks/{id}/delete", post(act::delete))
}

/// Parses the id in a path. An invalid one is not found.
pub fn named<T: FromStr>(text: &str, what: &'static str) -> Result<T, Refusal> {
    text.parse().map_err(|_| Refusal::not_found(what))
}

/// Redirects to a page that says what was done, or why it failed.
pub fn settle(
    pages: &Pages,
    visitor: &Visitor,
    to: &str,
    done: Result<Flash, Error>,
) -> Result<Response, Refusal> {
    match done {
        Ok(flash) => Ok(pages.done(to, flash)),
        Err(Error::Conflict { detail, .. }) => Ok(pages.done(to, Flash::bad(sentence(&detail)))),
        Err(error) => Err(visitor.refused(error)),
    }
}

/// The webhook's URL without the scheme, which people recognise it by.
pub fn place(webhook: &Webhook) -> &str {
    webhook.url.strip_prefix("https://").unwrap_or(&webhook.url)
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

/// When an event of this kind is sent.
pub const fn meaning(kind: Kind) -> &'static str {
    match kind {
        Kind::AccountCreated => "An account was created: by hand, by an import, through the API or by mail.",
        Kind::AccountStatusChanged => {
            "An account moved to another stage. Includes the previous stage and the source."
        }
        Kind::MessageInbound => "An inbound message was logged.",
        Kind::ClientContactDue => {
            "A tracked client became overdue for contact. Sent once until the next contact."
        }
        Kind::WebhookTest => "Someone sent a test to this webhook.",
    }
}

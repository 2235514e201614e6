//! Webhooks: listed, made, edited, tested, switched off and on, and how to receive them.

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
use crate::pages::draft::sentence;
use crate::pages::flash::Flash;
use crate::pages::refusal::Refusal;
use crate::pages::visitor::Visitor;

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

/// The id in a path; what does not parse names nothing there is.
pub fn named<T: FromStr>(text: &str, what: &'static str) -> Result<T, Refusal> {
    text.parse().map_err(|_| Refusal::not_found(what))
}

/// Goes on to a page that says what was done, or why it was not.
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

/// What people know a webhook by: where it points.
pub fn place(webhook: &Webhook) -> &str {
    webhook.url.strip_prefix("https://").unwrap_or(&webhook.url)
}

/// What its people call it; where it points if they do not.
pub fn name(webhook: &Webhook) -> &str {
    if webhook.description.is_empty() { place(webhook) } else { &webhook.description }
}

/// The colour and the word of a switch.
pub fn badge(switch: &Switch) -> (&'static str, &'static str) {
    match switch {
        Switch::Enabled => ("good", "Enabled"),
        Switch::DisabledByHand => ("warn", "Disabled"),
        Switch::AutoDisabled { .. } => ("bad", "Auto-disabled"),
    }
}

/// When an event of a kind happens.
pub const fn meaning(kind: Kind) -> &'static str {
    match kind {
        Kind::AccountCreated => "An account was made: by hand, by an import, over the API or by activity.",
        Kind::AccountStatusChanged => "An account moved to another stage; says from where and by what.",
        Kind::MessageInbound => "A message of a client came in.",
        Kind::ClientContactDue => "A tracked client has become due for contact; once until it is contacted.",
        Kind::WebhookTest => "A test that somebody sent to this webhook.",
    }
}

//! An account's page: its details, timeline and Pulse card, and the forms that change it.
//!
//! `page`, `pulse`, `timeline` and `conversation` show it. `editing`, `clock`, `moving` and `removal` handle its forms.
//! Each form leads back to the page it was on.

mod clock;
mod conversation;
mod editing;
mod field_text;
mod moving;
mod page;
mod pulse;
mod removal;
mod timeline;
pub mod words;

use axum::Router;
use axum::routing::{get, post};
use rapport_app::read::account::one;
use rapport_app::{Answer, Command, Error};
use rapport_domain::account::Account;
use rapport_domain::id::AccountId;
use rapport_domain::invalid::Invalid;

use crate::pages::entry::login::own_path;
use crate::pages::kit::form::Form;
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;
use crate::pages::{MEMBER, Pages};

pub use page::snoozes;

pub fn routes() -> Router<Pages> {
    Router::new()
        .route("/accounts/{id}", get(page::show))
        .route("/accounts/{id}/details", post(editing::details))
        .route("/accounts/{id}/fields", post(editing::put_field))
        .route("/accounts/{id}/fields/remove", post(editing::remove_field))
        .route("/accounts/{id}/addresses", post(editing::add_address))
        .route("/accounts/{id}/addresses/remove", post(editing::remove_address))
        .route("/accounts/{id}/contacts", post(clock::log_contact))
        .route("/accounts/{id}/snooze", post(clock::snooze))
        .route("/accounts/{id}/cadence", post(clock::change_cadence))
        .route("/accounts/{id}/move", post(moving::change_status))
        .route("/accounts/{id}/messages", post(conversation::log_on_account))
        .route("/accounts/{id}/conversations/{conversation}", get(conversation::show).post(conversation::log))
        .route("/accounts/{id}/delete", post(removal::delete))
        .route("/accounts/{id}/erase-payloads", post(removal::erase_payloads))
}

fn account_id(text: &str) -> Result<AccountId, Refusal> {
    text.parse().map_err(|_| Refusal::not_found("account"))
}

fn path_of(id: AccountId) -> String {
    format!("/accounts/{id}")
}

/// The page that a form was on, to go back to.
fn back(form: &Form, id: AccountId) -> String {
    form.given("next").map_or_else(|| path_of(id), own_path)
}

/// The name of the hidden field with the value that a field had when the form was shown.
fn was(name: &str) -> String {
    format!("was_{name}")
}

/// Reads the account and its company before a form changes anything.
async fn before(pages: &Pages, visitor: &Visitor, id: AccountId) -> Result<Answer<Account>, Refusal> {
    let access = visitor.access();
    let found = pages.app().read(&access, MEMBER, move |snapshot, _| one(snapshot, id));
    let Answer { reply, company, now } = found.await.map_err(|error| visitor.refused(error))?;
    let account = reply.ok_or_else(|| Refusal::not_found("account"))?;
    Ok(Answer { reply: account, company, now })
}

/// Runs the command of a form, if the form was valid.
async fn run<C: Command>(
    pages: &Pages,
    visitor: &Visitor,
    form: &Form,
    command: Result<C, Invalid>,
) -> Result<C::Reply, Error> {
    pages.submit(visitor, form, command?).await
}

//! An account's page: its details, its timeline and its Pulse card, and the forms that change it.
//!
//! `page` is what is shown, with `pulse`, `timeline` and `conversation` beside it; `editing`, `clock`, `moving` and
//! `removal` are what its forms do. Each form leads back to the page it stood on.

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
use rapport_app::{Answer, Command, Error};
use rapport_domain::account::Account;
use rapport_domain::id::AccountId;
use rapport_domain::invalid::Invalid;

use crate::pages::form::Form;
use crate::pages::login::own_path;
use crate::pages::refusal::Refusal;
use crate::pages::visitor::Visitor;
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

/// Where a form leads: back to the page it stood on.
fn back(form: &Form, id: AccountId) -> String {
    form.given("next").map_or_else(|| path_of(id), own_path)
}

/// The field that says what another one held when the form was shown.
fn was(name: &str) -> String {
    format!("was_{name}")
}

/// The account as it is before a form does anything, with its company.
async fn before(pages: &Pages, visitor: &Visitor, id: AccountId) -> Result<Answer<Account>, Refusal> {
    let access = visitor.access();
    let found = pages.app().read(&access, MEMBER, move |snapshot| rapport_store::account::get(snapshot, id));
    let Answer { reply, company, now } = found.await.map_err(|error| visitor.refused(error))?;
    let account = reply.ok_or_else(|| Refusal::not_found("account"))?;
    Ok(Answer { reply: account, company, now })
}

/// Runs what a form asks for, if that could be read.
async fn run<C: Command>(
    pages: &Pages,
    visitor: &Visitor,
    form: &Form,
    command: Result<C, Invalid>,
) -> Result<C::Reply, Error> {
    pages.submit(visitor, form, command?).await
}

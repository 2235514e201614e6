//! An account's page: its details, timeline and Pulse card, and the forms that change it.
//!
//! `page`, `pulse`, `timeline` and `conversation` show it. `editing`, `clock`, `moving` and `removal` handle its forms.
//! `correcting` handles those about what was logged, and `corrected` tells what was corrected.
//! `export` sends everything about it.
//! Each form leads back to the page it was on.

mod clock;
mod conversation;
mod corrected;
mod correcting;
mod editing;
mod export;
pub mod field_text;
mod moving;
mod page;
mod pulse;
mod removal;
mod timeline;
pub mod words;

use axum::Router;
use axum::routing::{get, post};
use rapport_app::read::account::one;
use rapport_app::{Answer, Needs};
use rapport_domain::account::Account;
use rapport_domain::id::{AccountId, ConversationId};

use crate::pages::Pages;
use crate::pages::account::conversation::ConversationPage;
use crate::pages::account::page::AccountPage;
use crate::pages::kit::action::Action;
use crate::pages::kit::origin::own_path;
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Visit, show};

pub use page::snoozes;

pub fn routes() -> Router<Pages> {
    Router::new()
        .route("/accounts/{id}", get(show::<AccountPage, AccountId>))
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
        .route(
            "/accounts/{id}/conversations/{conversation}",
            get(show::<ConversationPage, (AccountId, ConversationId)>).post(conversation::log),
        )
        .route("/accounts/{id}/notes", post(correcting::add_note))
        .route("/accounts/{id}/entries/{entry}", post(correcting::edit))
        .route("/accounts/{id}/entries/{entry}/delete", post(correcting::delete))
        .route("/accounts/{id}/entries/{entry}/pin", post(correcting::pin))
        .route("/accounts/{id}/corrections/{correction}/undo", post(correcting::undo))
        .route("/accounts/{id}/export", get(export::export))
        .route("/accounts/{id}/delete", post(removal::delete))
        .route("/accounts/{id}/erase-payloads", post(removal::erase_payloads))
}

fn path_of(id: AccountId) -> String {
    format!("/accounts/{id}")
}

/// The page that a form was on, to go back to.
fn back(action: &Action<AccountId>) -> String {
    action.form.given("next").map_or_else(|| path_of(action.id), own_path)
}

/// The name of the hidden field with the value that a field had when the form was shown.
fn was(name: &str) -> String {
    format!("was_{name}")
}

/// Reads the account and its company before a form changes anything.
async fn before(visit: &Visit<AccountId>, needs: Needs) -> Result<Answer<Account>, Refusal> {
    account_now(visit, visit.id, needs).await
}

/// Reads an account and its company, for a form about something on the account.
async fn account_now<I: Sync>(
    visit: &Visit<I>,
    id: AccountId,
    needs: Needs,
) -> Result<Answer<Account>, Refusal> {
    let access = visit.visitor.access();
    let found = visit.pages.app().read(&access, needs, move |snapshot, _| one(snapshot, id));
    let Answer { reply, company, now } = found.await.map_err(|error| visit.visitor.refused(error))?;
    let account = reply.ok_or_else(|| Refusal::not_found("account"))?;
    Ok(Answer { reply: account, company, now })
}

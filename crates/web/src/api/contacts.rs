//! Contacts recorded on an account.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use rapport_app::contact::RecordContact;
use rapport_app::read::account;
use rapport_domain::contact::{Contact, NewContact};
use rapport_domain::correction::logged::Logged;
use rapport_domain::id::{AccountId, ContactId};
use rapport_domain::time::Time;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::{Call, Caller, Id};
use crate::api::logged::{LoggedContact, render};
use crate::api::{Api, READ, requests};
use crate::edge::json;
use crate::edge::problem::Problem;
use crate::shared::paging::Page;
use crate::shared::parameters::{Parameters, read_cursor, write_cursor};

const LIST: u8 = b'o';

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(list_contacts, record_contact))
}

/// List an account's contacts
///
/// Recorded contacts, latest `occurred_at` first. Outbound messages count as contact too, but are listed with their
/// conversations.
#[utoipa::path(
    get,
    path = "/api/accounts/{id}/contacts/",
    tag = "Accounts",
    params(("id" = String, Path, description = "The account's id."), requests::PageParameters),
    responses((status = 200, description = "A page of contacts.", body = Page<LoggedContact>)),
    security(("token" = ["read"])),
)]
async fn list_contacts(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id<AccountId>,
    mut parameters: Parameters,
) -> Result<Response, Problem> {
    let before = parameters.cursor(read_place);
    let limit = parameters.limit();
    let question = parameters.about(id);
    let found = api
        .read(&caller, READ, question, move |snapshot, _, id| account::contacts(snapshot, id, before, limit));
    let (page, edits) = found.await?.reply.ok_or_else(|| Problem::not_found("account"))?;
    let next_cursor = page.items.last().filter(|_| page.more).map(write_place);
    let items = page.items.into_iter().map(|contact| LoggedContact::new(contact, &edits)).collect();
    Ok(json::respond(StatusCode::OK, &Page { items, next_cursor }))
}

/// Record a contact
///
/// For example a call, a meeting or a mail sent elsewhere. Unless there is a later contact, the account is next due one
/// interval after this one.
#[utoipa::path(
    post,
    path = "/api/accounts/{id}/contacts/",
    tag = "Accounts",
    params(("id" = String, Path, description = "The account's id.")),
    request_body = requests::ContactCreate,
    responses((status = 201, description = "The contact.", body = LoggedContact)),
    security(("token" = ["work"])),
)]
async fn record_contact(
    State(api): State<Api>,
    Id(id): Id<AccountId>,
    call: Call,
) -> Result<Response, Problem> {
    let now = api.app().now();
    let (caller, contact) = call.parse(|members| NewContact::parse(members, now));
    let account = id;
    let command = account.and_then(|account| contact.map(|contact| RecordContact { account, contact }));
    api.act(&caller, command, |made| render(StatusCode::CREATED, Logged::Contact(made), None)).await
}

fn write_place(last: &Contact) -> String {
    let at = last.occurred_at.as_micros().to_be_bytes();
    write_cursor(LIST, &[at.as_slice(), last.id.as_bytes()].concat())
}

fn read_place(text: &str) -> Option<(Time, ContactId)> {
    let place: [u8; 24] = read_cursor(LIST, text)?;
    let (at, id) = place.split_first_chunk::<8>()?;
    Some((Time::from_micros(i64::from_be_bytes(*at)), ContactId::from_bytes(id.try_into().ok()?)))
}

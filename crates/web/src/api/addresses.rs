//! The email addresses of an account.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use rapport_app::account_address::{AddAddress, RemoveAddress};
use rapport_app::read::account::{self, Known};
use rapport_domain::conversation::parse_address;
use rapport_domain::id::AccountId;
use rapport_domain::member::Email;
use rapport_domain::time::Time;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::{Call, Caller, Id};
use crate::api::{Api, READ, requests};
use crate::edge::json;
use crate::edge::problem::Problem;
use crate::shared::paging::Page;
use crate::shared::parameters::{Parameters, read_cursor_bytes, write_cursor};

const LIST: u8 = b'D';

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(list_addresses, add_address)).routes(routes!(remove_address))
}

/// An email address of an account.
#[derive(Serialize, ToSchema)]
#[schema(as = Address)]
struct AddressView {
    #[schema(example = "ana@nordlys.example")]
    address: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
}

impl From<Known> for AddressView {
    fn from((address, created_at): Known) -> Self {
        Self { address: address.as_str().to_owned(), created_at }
    }
}

/// List an account's email addresses
///
/// Mail from and to these addresses is logged on the account. A mail in one of its conversations adds its sender.
#[utoipa::path(
    get,
    path = "/api/accounts/{id}/addresses/",
    tag = "Conversations",
    params(("id" = String, Path, description = "The account's id."), requests::PageParameters),
    responses((status = 200, description = "A page of addresses, newest first.", body = Page<AddressView>)),
    security(("token" = ["read"])),
)]
async fn list_addresses(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id<AccountId>,
    mut parameters: Parameters,
) -> Result<Response, Problem> {
    let after = parameters.cursor(read_place);
    let limit = parameters.limit();
    let question = parameters.about(id);
    let found = api.read(&caller, READ, question, |snapshot, _, id| account::addresses(snapshot, id));
    let known = found.await?.reply.ok_or_else(|| Problem::not_found("account"))?;
    let key = |(address, created_at): &Known| (*created_at, address.as_str().to_owned());
    let Page { items, next_cursor } = Page::cut(known, key, after.as_ref(), limit, write_place);
    let items: Vec<AddressView> = items.into_iter().map(AddressView::from).collect();
    Ok(json::respond(StatusCode::OK, &Page { items, next_cursor }))
}

fn write_place((at, address): (Time, String)) -> String {
    write_cursor(LIST, &[at.as_micros().to_be_bytes().as_slice(), address.as_bytes()].concat())
}

fn read_place(text: &str) -> Option<(Time, String)> {
    let place = read_cursor_bytes(LIST, text)?;
    let (at, address) = place.split_first_chunk::<8>()?;
    Some((Time::from_micros(i64::from_be_bytes(*at)), String::from_utf8(address.to_vec()).ok()?))
}

/// Add an email address to an account
///
/// Adding an address that the account already has changes nothing.
#[utoipa::path(
    post,
    path = "/api/accounts/{id}/addresses/",
    tag = "Conversations",
    params(("id" = String, Path, description = "The account's id.")),
    request_body = requests::AddressCreate,
    responses(
        (status = 201, description = "The address, in lower case.", body = AddressView),
        (status = 409, description = "Another account has this address, or this account has too many."),
    ),
    security(("token" = ["work"])),
)]
async fn add_address(State(api): State<Api>, Id(id): Id<AccountId>, call: Call) -> Result<Response, Problem> {
    let (caller, address) = call.parse(parse_address);
    let command = id.and_then(|account| address.map(|address| AddAddress { account, address }));
    api.act(&caller, command, |added| json::render(StatusCode::CREATED, &AddressView::from(added))).await
}

/// Remove an email address from an account
///
/// New mails from the address no longer belong to the account. Those that are logged stay.
#[utoipa::path(
    delete,
    path = "/api/accounts/{id}/addresses/{address}/",
    tag = "Conversations",
    params(
        ("id" = String, Path, description = "The account's id."),
        ("address" = String, Path, description = "The address."),
    ),
    responses(
        (status = 204, description = "Removed."),
        (status = 404, description = "The account has no such address."),
    ),
    security(("token" = ["work"])),
)]
async fn remove_address(
    State(api): State<Api>,
    caller: Caller,
    Id(path): Id<(AccountId, Email)>,
) -> Result<Response, Problem> {
    let command = path.map(|(account, address)| RemoveAddress { account, address });
    api.write(&caller, command).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

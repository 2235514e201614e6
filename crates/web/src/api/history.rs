//! An account's status history.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use rapport_app::read::account;
use rapport_domain::history::HistoryEntry;
use rapport_domain::id::{AccountId, HistoryId};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::{Caller, Id};
use crate::api::{Api, READ, requests};
use crate::edge::json;
use crate::edge::problem::Problem;
use crate::shared::paging::Page;
use crate::shared::parameters::{Parameters, read_cursor, write_cursor};

const LIST: u8 = b'h';

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(account_history))
}

/// List an account's status history
///
/// Every move, newest first, with its source and actor. The first entry of an account has no `from`.
#[utoipa::path(
    get,
    path = "/api/accounts/{id}/history/",
    tag = "Accounts",
    params(("id" = String, Path, description = "The account's id."), requests::PageParameters),
    responses((status = 200, description = "A page of the history.", body = Page<HistoryEntry>)),
    security(("token" = ["read"])),
)]
async fn account_history(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id<AccountId>,
    mut parameters: Parameters,
) -> Result<Response, Problem> {
    let before = parameters.cursor(|text| read_cursor(LIST, text).map(HistoryId::from_bytes));
    let limit = parameters.limit();
    let question = parameters.about(id);
    let found = api
        .read(&caller, READ, question, move |snapshot, _, id| account::history(snapshot, id, before, limit));
    let page = found.await?.reply.ok_or_else(|| Problem::not_found("account"))?;
    let next_cursor =
        page.items.last().filter(|_| page.more).map(|last| write_cursor(LIST, last.id.as_bytes()));
    Ok(json::respond(StatusCode::OK, &Page { items: page.items, next_cursor }))
}

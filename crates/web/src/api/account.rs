//! A single account: read, edit, move and delete it.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use rapport_app::account::{ChangeStatus, DeleteAccount, PatchAccount, StatusChanged};
use rapport_app::read::account;
use rapport_app::{Answer, Viewer};
use rapport_domain::account::{AccountView, Patch, StatusChange};
use rapport_domain::id::AccountId;
use rapport_store::Snapshot;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::accounts::render;
use crate::api::call::{Call, Caller, Id};
use crate::api::conditional::{Conditions, versioned};
use crate::api::{Api, READ, requests};
use crate::edge::json::{self, Rendered};
use crate::edge::problem::Problem;

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(get_account, patch_account, delete_account))
        .routes(routes!(change_status))
}

/// Get an account
///
/// With its clock: whether it is tracked, and when contact is due.
#[utoipa::path(
    get,
    path = "/api/accounts/{id}/",
    tag = "Accounts",
    params(("id" = String, Path, description = "The account's id.", example = "acc_01jz3v8m5xqkf0t6b2n9rc7d4e")),
    responses((status = 200, description = "The account.", body = AccountView)),
    security(("token" = ["read"])),
)]
async fn get_account(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id<AccountId>,
    conditions: Conditions,
) -> Result<Response, Problem> {
    let found = api.read(&caller, READ, id, |snapshot, _, id| account::one(snapshot, id));
    let Answer { reply, company, now } = found.await?;
    let account = reply.ok_or_else(|| Problem::not_found("account"))?;
    conditions.answer(render(StatusCode::OK, &Answer { reply: account, company, now }))
}

/// The account as `get_account` shows it.
fn current(
    snapshot: &mut Snapshot,
    viewer: &Viewer,
    id: AccountId,
) -> Result<Option<Rendered>, rapport_store::Error> {
    let found = account::one(snapshot, id)?;
    Ok(found.map(|account| json::render(StatusCode::OK, &account.view(viewer.settings(), viewer.now))))
}

/// Edit an account
///
/// Only the fields you send are changed; null clears `imported_id`, `cadence_days`, `snoozed_until`,
/// `captured_value` and `promo_code` (with the channel). `custom_fields` are merged per key; null deletes
/// a key. A different status moves the account, like an operator's change.
#[utoipa::path(
    patch,
    path = "/api/accounts/{id}/",
    tag = "Accounts",
    params(("id" = String, Path, description = "The account's id.")),
    request_body = requests::AccountPatch,
    responses(
        (status = 200, description = "The account.", body = AccountView),
        (status = 409, description = "Another account has this imported_id."),
    ),
    security(("token" = ["work"])),
)]
async fn patch_account(
    State(api): State<Api>,
    Id(id): Id<AccountId>,
    conditions: Conditions,
    call: Call,
) -> Result<Response, Problem> {
    let (caller, patch) = call.parse(Patch::parse);
    let command =
        id.and_then(|id| patch.map(|(patch, promo_code)| (id, PatchAccount { id, patch, promo_code })));
    let patched = api.change(&caller, conditions, command, current).await?;
    Ok(versioned(render(StatusCode::OK, &patched)))
}

/// Delete an account
///
/// Also deletes its activity, contacts and history. Its imported_id can be used again. Events that have already
/// happened are still delivered.
#[utoipa::path(
    delete,
    path = "/api/accounts/{id}/",
    tag = "Accounts",
    params(("id" = String, Path, description = "The account's id.")),
    responses((status = 204, description = "Deleted.")),
    security(("token" = ["delete"])),
)]
async fn delete_account(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id<AccountId>,
    conditions: Conditions,
) -> Result<Response, Problem> {
    api.change(&caller, conditions, id.map(|id| (id, DeleteAccount(id))), current).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// An account after a change of status.
#[derive(Serialize, ToSchema)]
struct MovedAccount<'a> {
    #[serde(flatten)]
    account: AccountView<'a>,
    /// False if the account already had this status.
    moved: bool,
}

/// Change an account's status
///
/// Counts as a change by an operator. `account.status_changed` fires if the account actually moves.
#[utoipa::path(
    post,
    path = "/api/accounts/{id}/status/",
    tag = "Accounts",
    params(("id" = String, Path, description = "The account's id.")),
    request_body = requests::StatusChange,
    responses((status = 200, description = "The account, and whether it moved.", body = MovedAccount)),
    security(("token" = ["work"])),
)]
async fn change_status(
    State(api): State<Api>,
    Id(id): Id<AccountId>,
    call: Call,
) -> Result<Response, Problem> {
    let (caller, change) = call.parse(StatusChange::parse);
    let command = id.and_then(|id| change.map(|change| ChangeStatus { id, change }));
    let render = |changed: StatusChanged| {
        let Answer { reply, company, now } = &changed.account;
        let reply = MovedAccount { account: reply.view(&company.settings, *now), moved: changed.moved };
        json::render(StatusCode::OK, &reply)
    };
    api.act(&caller, command, render).await
}

//! A single contact: read, edit and delete it.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use rapport_app::correction::{DeleteEntry, EditEntry};
use rapport_domain::correction::edit::Edit;
use rapport_domain::id::{AccountId, ContactId};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::{Call, Caller, Id};
use crate::api::conditional::{Conditions, versioned};
use crate::api::logged::{LoggedContact, current, render};
use crate::api::{Api, READ, requests};
use crate::edge::problem::Problem;

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(get_contact, edit_contact, delete_contact))
}

/// Get a contact
///
/// With who last edited it.
#[utoipa::path(
    get,
    path = "/api/accounts/{id}/contacts/{contact}/",
    tag = "Accounts",
    params(
        ("id" = String, Path, description = "The account's id."),
        ("contact" = String, Path, description = "The contact's id."),
    ),
    responses((status = 200, description = "The contact.", body = LoggedContact)),
    security(("token" = ["read"])),
)]
async fn get_contact(
    State(api): State<Api>,
    caller: Caller,
    Id(path): Id<(AccountId, ContactId)>,
    conditions: Conditions,
) -> Result<Response, Problem> {
    let found = api.read(&caller, READ, path, current).await?.reply;
    conditions.answer(found.ok_or_else(|| Problem::not_found("contact"))?)
}

/// Edit a contact
///
/// Only the fields you send are changed; null clears `note`. Who recorded the contact may edit it, and admins and
/// owners. The account's last contact follows. If the contact had closed an overdue episode that is open again now, that
/// one is announced at most once.
#[utoipa::path(
    patch,
    path = "/api/accounts/{id}/contacts/{contact}/",
    tag = "Accounts",
    params(
        ("id" = String, Path, description = "The account's id."),
        ("contact" = String, Path, description = "The contact's id."),
    ),
    request_body = requests::ContactPatch,
    responses((status = 200, description = "The contact.", body = LoggedContact)),
    security(("token" = ["work"])),
)]
async fn edit_contact(
    State(api): State<Api>,
    Id(path): Id<(AccountId, ContactId)>,
    conditions: Conditions,
    call: Call,
) -> Result<Response, Problem> {
    let now = api.app().now();
    let (caller, edit) = call.parse(|members| Edit::of_contact(members, now));
    let command = path.and_then(|path| edit.map(|edit| (path, EditEntry { target: path.into(), edit })));
    let done = api.change(&caller, conditions, command, current).await?;
    Ok(versioned(render(StatusCode::OK, done.logged, done.edited)))
}

/// Delete a contact
///
/// Who recorded the contact may delete it, and admins and owners. The account's last contact follows, as for an edit.
/// For 30 days it can be undone with the correction that is then in `accounts/{id}/corrections/`.
#[utoipa::path(
    delete,
    path = "/api/accounts/{id}/contacts/{contact}/",
    tag = "Accounts",
    params(
        ("id" = String, Path, description = "The account's id."),
        ("contact" = String, Path, description = "The contact's id."),
    ),
    responses((status = 204, description = "Deleted.")),
    security(("token" = ["work"])),
)]
async fn delete_contact(
    State(api): State<Api>,
    caller: Caller,
    Id(path): Id<(AccountId, ContactId)>,
    conditions: Conditions,
) -> Result<Response, Problem> {
    let command = path.map(|path| (path, DeleteEntry(path.into())));
    api.change(&caller, conditions, command, current).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

//! A single message: read, edit and delete it.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use rapport_app::correction::{DeleteEntry, EditEntry};
use rapport_domain::correction::edit::Edit;
use rapport_domain::id::{ConversationId, MessageId};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::{Call, Caller, Id};
use crate::api::conditional::{Conditions, versioned};
use crate::api::logged::{LoggedMessage, current, render};
use crate::api::{Api, READ, requests};
use crate::edge::problem::Problem;

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(get_message, edit_message, delete_message))
}

/// Get a message
///
/// With who last edited it.
#[utoipa::path(
    get,
    path = "/api/conversations/{id}/messages/{message}/",
    tag = "Conversations",
    params(
        ("id" = String, Path, description = "The conversation's id."),
        ("message" = String, Path, description = "The message's id."),
    ),
    responses((status = 200, description = "The message.", body = LoggedMessage)),
    security(("token" = ["read"])),
)]
async fn get_message(
    State(api): State<Api>,
    caller: Caller,
    Id(path): Id<(ConversationId, MessageId)>,
    conditions: Conditions,
) -> Result<Response, Problem> {
    let found = api.read(&caller, READ, path, current).await?.reply;
    conditions.answer(found.ok_or_else(|| Problem::not_found("message"))?)
}

/// Edit a message
///
/// Only the fields you send are changed; null clears `subject`. Who logged the message may edit it, and admins and
/// owners. If that changes when we last wrote to the account, its last contact follows. No event is fired.
#[utoipa::path(
    patch,
    path = "/api/conversations/{id}/messages/{message}/",
    tag = "Conversations",
    params(
        ("id" = String, Path, description = "The conversation's id."),
        ("message" = String, Path, description = "The message's id."),
    ),
    request_body = requests::MessagePatch,
    responses((status = 200, description = "The message.", body = LoggedMessage)),
    security(("token" = ["work"])),
)]
async fn edit_message(
    State(api): State<Api>,
    Id(path): Id<(ConversationId, MessageId)>,
    conditions: Conditions,
    call: Call,
) -> Result<Response, Problem> {
    let now = api.app().now();
    let (caller, edit) = call.parse(|members| Edit::of_message(members, now));
    let command = path.and_then(|path| edit.map(|edit| (path, EditEntry { target: path.into(), edit })));
    let done = api.change(&caller, conditions, command, current).await?;
    Ok(versioned(render(StatusCode::OK, done.logged, done.edited)))
}

/// Delete a message
///
/// Who logged the message may delete it, and admins and owners. The same mail isn't logged again. If it counted as
/// contact, the account's last contact follows. For 30 days it can be undone with the correction that is then in
/// `accounts/{id}/corrections/`.
#[utoipa::path(
    delete,
    path = "/api/conversations/{id}/messages/{message}/",
    tag = "Conversations",
    params(
        ("id" = String, Path, description = "The conversation's id."),
        ("message" = String, Path, description = "The message's id."),
    ),
    responses((status = 204, description = "Deleted.")),
    security(("token" = ["work"])),
)]
async fn delete_message(
    State(api): State<Api>,
    caller: Caller,
    Id(path): Id<(ConversationId, MessageId)>,
    conditions: Conditions,
) -> Result<Response, Problem> {
    let command = path.map(|path| (path, DeleteEntry(path.into())));
    api.change(&caller, conditions, command, current).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

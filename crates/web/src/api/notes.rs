//! Notes on an account.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use rapport_app::correction::{DeleteEntry, EditEntry};
use rapport_app::note::AddNote;
use rapport_app::read::correction;
use rapport_domain::correction::edit::Edit;
use rapport_domain::correction::logged::Logged;
use rapport_domain::id::{AccountId, NoteId};
use rapport_domain::note::NewNote;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::{Call, Caller, Id};
use crate::api::conditional::{Conditions, versioned};
use crate::api::logged::{LoggedNote, current, render};
use crate::api::{Api, READ, requests};
use crate::edge::json;
use crate::edge::problem::Problem;
use crate::shared::paging::Page;
use crate::shared::parameters::{Parameters, read_cursor, write_cursor};

const LIST: u8 = b'n';

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(list_notes, add_note)).routes(routes!(
        get_note,
        edit_note,
        delete_note
    ))
}

/// List an account's notes
///
/// Newest first. Notes aren't contact, so they don't change when contact is due.
#[utoipa::path(
    get,
    path = "/api/accounts/{id}/notes/",
    tag = "Accounts",
    params(("id" = String, Path, description = "The account's id."), requests::PageParameters),
    responses((status = 200, description = "A page of notes.", body = Page<LoggedNote>)),
    security(("token" = ["read"])),
)]
async fn list_notes(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id<AccountId>,
    mut parameters: Parameters,
) -> Result<Response, Problem> {
    let before = parameters.cursor(|text| read_cursor(LIST, text).map(NoteId::from_bytes));
    let limit = parameters.limit();
    let question = parameters.about(id);
    let found = api
        .read(&caller, READ, question, move |snapshot, _, id| correction::notes(snapshot, id, before, limit));
    let (page, edits) = found.await?.reply.ok_or_else(|| Problem::not_found("account"))?;
    let last = page.items.last().filter(|_| page.more);
    let next_cursor = last.map(|last| write_cursor(LIST, last.id.as_bytes()));
    let items = page.items.into_iter().map(|note| LoggedNote::new(note, &edits)).collect();
    Ok(json::respond(StatusCode::OK, &Page { items, next_cursor }))
}

/// Add a note
///
/// A pinned one is shown above the account's timeline.
#[utoipa::path(
    post,
    path = "/api/accounts/{id}/notes/",
    tag = "Accounts",
    params(("id" = String, Path, description = "The account's id.")),
    request_body = requests::NoteCreate,
    responses((status = 201, description = "The note.", body = LoggedNote)),
    security(("token" = ["work"])),
)]
async fn add_note(State(api): State<Api>, Id(id): Id<AccountId>, call: Call) -> Result<Response, Problem> {
    let (caller, note) = call.parse(NewNote::parse);
    let command = id.and_then(|account| note.map(|note| AddNote { account, note }));
    api.act(&caller, command, |added| render(StatusCode::CREATED, Logged::Note(added), None)).await
}

/// Get a note
///
/// With who last edited it.
#[utoipa::path(
    get,
    path = "/api/accounts/{id}/notes/{note}/",
    tag = "Accounts",
    params(
        ("id" = String, Path, description = "The account's id."),
        ("note" = String, Path, description = "The note's id."),
    ),
    responses((status = 200, description = "The note.", body = LoggedNote)),
    security(("token" = ["read"])),
)]
async fn get_note(
    State(api): State<Api>,
    caller: Caller,
    Id(path): Id<(AccountId, NoteId)>,
    conditions: Conditions,
) -> Result<Response, Problem> {
    let found = api.read(&caller, READ, path, current).await?.reply;
    conditions.answer(found.ok_or_else(|| Problem::not_found("note"))?)
}

/// Edit, pin or unpin a note
///
/// Only the fields you send are changed. Who wrote the note may edit it, and admins and owners.
#[utoipa::path(
    patch,
    path = "/api/accounts/{id}/notes/{note}/",
    tag = "Accounts",
    params(
        ("id" = String, Path, description = "The account's id."),
        ("note" = String, Path, description = "The note's id."),
    ),
    request_body = requests::NotePatch,
    responses((status = 200, description = "The note.", body = LoggedNote)),
    security(("token" = ["work"])),
)]
async fn edit_note(
    State(api): State<Api>,
    Id(path): Id<(AccountId, NoteId)>,
    conditions: Conditions,
    call: Call,
) -> Result<Response, Problem> {
    let (caller, edit) = call.parse(Edit::of_note);
    let command = path.and_then(|path| edit.map(|edit| (path, EditEntry { target: path.into(), edit })));
    let done = api.change(&caller, conditions, command, current).await?;
    Ok(versioned(render(StatusCode::OK, done.logged, done.edited)))
}

/// Delete a note
///
/// Who wrote the note may delete it, and admins and owners. For 30 days it can be undone with the correction that is
/// then in `accounts/{id}/corrections/`.
#[utoipa::path(
    delete,
    path = "/api/accounts/{id}/notes/{note}/",
    tag = "Accounts",
    params(
        ("id" = String, Path, description = "The account's id."),
        ("note" = String, Path, description = "The note's id."),
    ),
    responses((status = 204, description = "Deleted.")),
    security(("token" = ["work"])),
)]
async fn delete_note(
    State(api): State<Api>,
    caller: Caller,
    Id(path): Id<(AccountId, NoteId)>,
    conditions: Conditions,
) -> Result<Response, Problem> {
    let command = path.map(|path| (path, DeleteEntry(path.into())));
    api.change(&caller, conditions, command, current).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

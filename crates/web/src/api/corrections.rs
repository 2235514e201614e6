//! Corrections of what was logged on an account, and how they are undone.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use rapport_app::Viewer;
use rapport_app::correction::UndoCorrection;
use rapport_app::read::correction;
use rapport_domain::correction::{Correction, CorrectionView, may_correct};
use rapport_domain::id::{AccountId, CorrectionId};
use rapport_domain::right::Right;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::{Caller, Id, PlainCall};
use crate::api::{Api, READ, requests};
use crate::edge::json;
use crate::edge::problem::Problem;
use crate::shared::paging::Page;
use crate::shared::parameters::{Parameters, read_cursor, write_cursor};

const LIST: u8 = b'k';

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(list_corrections)).routes(routes!(undo_correction))
}

/// List an account's corrections
///
/// The edits and deletions of its contacts, messages and notes, newest first. What was changed is shown to those who
/// may correct the entry: who logged it, admins and owners.
#[utoipa::path(
    get,
    path = "/api/accounts/{id}/corrections/",
    tag = "Accounts",
    params(("id" = String, Path, description = "The account's id."), requests::PageParameters),
    responses((status = 200, description = "A page of corrections.", body = Page<CorrectionView>)),
    security(("token" = ["read"])),
)]
async fn list_corrections(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id<AccountId>,
    mut parameters: Parameters,
) -> Result<Response, Problem> {
    let before = parameters.cursor(|text| read_cursor(LIST, text).map(CorrectionId::from_bytes));
    let limit = parameters.limit();
    let question = parameters.about(id);
    let found = api.read(&caller, READ, question, move |snapshot, viewer, id| {
        let page = correction::corrections(snapshot, id, before, limit)?;
        Ok(page.map(|page| (page, viewer.clone())))
    });
    let (page, viewer) = found.await?.reply.ok_or_else(|| Problem::not_found("account"))?;
    let last = page.items.last().filter(|_| page.more);
    let next_cursor = last.map(|last| write_cursor(LIST, last.id.as_bytes()));
    let items = page.items.iter().map(|item| item.view(may(&viewer, item), viewer.now)).collect();
    Ok(json::respond(StatusCode::OK, &Page { items, next_cursor }))
}

/// Whether the viewer may correct what was corrected.
fn may(Viewer { caller, .. }: &Viewer, correction: &Correction) -> bool {
    let has_work = caller.may(Right::Work);
    has_work && may_correct(&correction.author, &caller.actor, caller.may(Right::Correct))
}

/// Undo a correction
///
/// Restores a deleted entry, or what an edit changed. Who logged the entry may undo it, and admins and owners. The
/// account's last contact follows.
#[utoipa::path(
    post,
    path = "/api/accounts/{id}/corrections/{correction}/undo/",
    tag = "Accounts",
    params(
        ("id" = String, Path, description = "The account's id."),
        ("correction" = String, Path, description = "The correction's id."),
    ),
    responses(
        (status = 200, description = "The correction, which is undone now.", body = CorrectionView),
        (status = 409, description = "It was undone before, is older than 30 days, or the entry was changed since."),
    ),
    security(("token" = ["work"])),
)]
async fn undo_correction(
    State(api): State<Api>,
    Id(path): Id<(AccountId, CorrectionId)>,
    call: PlainCall,
) -> Result<Response, Problem> {
    let (caller, command) = call.command(path.map(|(account, id)| UndoCorrection { account, id }));
    let command = command.and_then(|command| command);
    let now = api.app().now();
    api.act(&caller, command, move |undone| json::render(StatusCode::OK, &undone.view(true, now))).await
}

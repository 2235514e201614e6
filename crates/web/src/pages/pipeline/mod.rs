//! The pipeline pages: the board, moves between stages, and the list of moves.

mod board;
mod moves;

use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use axum::routing::{get, post};
use rapport_app::Error;
use rapport_app::account::{ChangeStatus, StatusChanged};
use rapport_domain::account::StatusChange;
use rapport_domain::id::AccountId;

use self::board::Places;
use crate::pages::Pages;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;

pub fn routes() -> Router<Pages> {
    Router::new()
        .route("/pipeline", get(board::show))
        .route("/pipeline/moves", get(moves::show))
        .route("/pipeline/{id}/move", post(change_stage))
}

/// Moves an account, from the card's menu or by dragging it.
async fn change_stage(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    form: Form,
) -> Result<Response, Refusal> {
    let id: AccountId = id.parse().map_err(|_| Refusal::not_found("account"))?;
    let places = Places::read(&Form::of_query(query.as_deref()));
    let change = StatusChange::parse(&form.members(&[("status", As::Text)])).map_err(Error::from);
    let done = match change {
        Ok(change) => pages.submit(&visitor, &form, ChangeStatus { id, change }).await,
        Err(error) => Err(error),
    };
    let StatusChanged { account, moved, from } = done.map_err(|error| visitor.refused(error))?;
    let account = account.reply;
    // Keep a folded column open for someone who is working through it.
    let places = places.opened(from);
    let to = account.status.label();
    let flash = if moved {
        let back = vec![("status".to_owned(), from.as_str().to_owned())];
        Flash::good(format!("Moved {} to {to}.", account.name))
            .undo(format!("/pipeline/{id}/move{}", places.query()), back)
    } else {
        Flash::good(format!("{} is already in {to}.", account.name))
    };
    Ok(pages.done(&format!("/pipeline{}", places.query()), flash))
}

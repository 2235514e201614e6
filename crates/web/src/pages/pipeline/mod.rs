//! The pipeline pages: the board, moves between stages, and the list of moves.

mod board;
mod card;
mod moves;

use axum::Router;
use axum::response::Response;
use axum::routing::{get, post};
use rapport_app::account::{ChangeStatus, StatusChanged};
use rapport_domain::account::StatusChange;
use rapport_domain::id::AccountId;

use self::board::{BoardPage, Places};
use crate::pages::Pages;
use crate::pages::kit::action::{Action, banner};
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::As;
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::show;

pub fn routes() -> Router<Pages> {
    Router::new()
        .route("/pipeline", get(show::<BoardPage, ()>))
        .route("/pipeline/moves", get(moves::show))
        .route("/pipeline/{id}/move", post(change_stage))
}

/// Moves an account, from the card's menu or by dragging it.
async fn change_stage(action: Action<AccountId>) -> Result<Response, Refusal> {
    let change = StatusChange::parse(&action.form.members(&[("status", As::Text)]));
    let command = change.map(|change| ChangeStatus { id: action.id, change });
    let StatusChanged { account, moved, from } = action.run(command, banner::<BoardPage>).await?;
    let account = account.reply;
    // Keep a folded column open for someone who is working through it.
    let places = Places::read(&action.query).opened(from);
    let (path, to) = (format!("/pipeline{}", places.query()), account.status.label());
    if !moved {
        return action.done(&path, format!("{} is already in {to}.", account.name));
    }
    let back = vec![("status".to_owned(), from.as_str().to_owned())];
    let flash = Flash::good(format!("Moved {} to {to}.", account.name));
    action.done(&path, flash.undo(format!("/pipeline/{}/move{}", action.id, places.query()), back))
}

//! The channel pages: promo codes, and the accounts and values of each. The figures are counted in the background, so a
//! page says how old they are.

mod change;
mod figures;
mod list;
mod one;

use axum::Router;
use axum::routing::{get, post};
use rapport_app::Error;
use rapport_domain::id::ChannelId;
use rapport_domain::invalid::Invalid;

use crate::pages::Pages;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::form::Form;
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;

const PATH: &str = "/channels";

pub fn routes() -> Router<Pages> {
    Router::new()
        .route(PATH, get(list::show).post(list::create))
        .route("/channels/{id}", get(one::show))
        .route("/channels/{id}/rename", post(change::rename))
        .route("/channels/{id}/delete", post(change::delete))
        .route("/channels/{id}/codes", post(change::add_code))
        .route("/channels/{id}/codes/archive", post(change::archive_code))
        .route("/channels/{id}/codes/delete", post(change::delete_code))
}

fn path_of(id: ChannelId) -> String {
    format!("{PATH}/{id}")
}

/// The form again, with the fault beside its field. A visitor without the role gets an error page instead.
fn refused(visitor: &Visitor, form: &Form, error: Error) -> Result<Draft, Refusal> {
    let error = match error {
        Error::Conflict { code: code @ "name_taken", detail } => Invalid::one("/name", code, detail).into(),
        Error::Conflict { code: code @ "code_taken", detail } => Invalid::one("/code", code, detail).into(),
        error @ Error::Forbidden { .. } => return Err(visitor.refused(error)),
        error => error,
    };
    Draft::refused(form, error).map_err(|error| visitor.refused(error))
}

//! The accounts pages: the list with its filters, views, bulk changes and export, and the forms for new accounts.

mod asked;
mod bulk;
mod chip;
mod column;
mod create;
mod export;
mod fault;
mod list;
mod lookup;
mod views;

use axum::Router;
use axum::routing::{get, post};

use crate::pages::Pages;
use crate::pages::accounts::create::NewPage;
use crate::pages::accounts::lookup::LookupPage;
use crate::pages::kit::visit::show;

const PATH: &str = "/accounts";

pub fn routes() -> Router<Pages> {
    Router::new()
        .route(PATH, get(list::show))
        .route("/accounts/export", get(export::export))
        .route("/accounts/bulk", post(bulk::preview))
        .route("/accounts/bulk/apply", post(bulk::apply))
        .route("/accounts/bulk/delete", post(bulk::delete::delete))
        .route("/accounts/bulk/undo", post(bulk::undo))
        .route("/accounts/views", post(views::save))
        .route("/accounts/views/rename", post(views::rename))
        .route("/accounts/views/delete", post(views::delete))
        .route("/accounts/new", get(show::<NewPage, ()>).post(create::create))
        .route("/accounts/lookup", get(show::<LookupPage, ()>).post(lookup::preview))
        .route("/accounts/lookup/create", post(lookup::create))
}

//! The campaign pages: the list, the form with live counts, and a campaign with its members and export.

mod edit;
mod fields;
mod list;
mod one;
mod words;

use axum::Router;
use axum::routing::{get, post};
use rapport_domain::id::CampaignId;

use crate::pages::Pages;
use crate::pages::campaigns::one::ShowPage;
use crate::pages::kit::visit::show;

const PATH: &str = "/campaigns";

pub fn routes() -> Router<Pages> {
    Router::new()
        .route(PATH, get(list::show))
        .route("/campaigns/new", get(edit::show_new).post(edit::create))
        .route("/campaigns/{id}", get(show::<ShowPage, CampaignId>))
        .route("/campaigns/{id}/edit", get(edit::show_existing).post(edit::change))
        .route("/campaigns/{id}/export", get(one::export))
        .route("/campaigns/{id}/delete", post(one::delete))
}

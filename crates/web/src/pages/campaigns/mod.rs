//! The campaign pages: the list, the form with live counts, and a campaign with its members and export.

mod edit;
mod fields;
mod list;
mod show;
mod words;

use axum::Router;
use axum::extract::Path;
use axum::routing::{get, post};
use rapport_domain::id::CampaignId;

use crate::pages::Pages;
use crate::pages::kit::refusal::Refusal;

const PATH: &str = "/campaigns";

pub fn routes() -> Router<Pages> {
    Router::new()
        .route(PATH, get(list::show))
        .route("/campaigns/new", get(edit::show_new).post(edit::create))
        .route("/campaigns/{id}", get(show::show))
        .route("/campaigns/{id}/edit", get(edit::show_existing).post(edit::change))
        .route("/campaigns/{id}/export", get(show::export))
        .route("/campaigns/{id}/delete", post(show::delete))
}

fn id_of(Path(id): &Path<String>) -> Result<CampaignId, Refusal> {
    id.parse().map_err(|_| Refusal::not_found("campaign"))
}

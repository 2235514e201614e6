//! The channel pages: promo codes, and the accounts and values of each. The figures are counted in the background, so a
//! page says how old they are.

mod change;
mod figures;
mod list;
mod one;

use axum::Router;
use axum::routing::{get, post};
use rapport_domain::id::ChannelId;

use crate::pages::Pages;
use crate::pages::channels::list::ChannelsPage;
use crate::pages::channels::one::ChannelPage;
use crate::pages::kit::visit::show;

const PATH: &str = "/channels";

pub fn routes() -> Router<Pages> {
    Router::new()
        .route(PATH, get(show::<ChannelsPage, ()>).post(list::create))
        .route("/channels/{id}", get(show::<ChannelPage, ChannelId>))
        .route("/channels/{id}/rename", post(change::rename))
        .route("/channels/{id}/delete", post(change::delete))
        .route("/channels/{id}/codes", post(change::add_code))
        .route("/channels/{id}/codes/archive", post(change::archive_code))
        .route("/channels/{id}/codes/delete", post(change::delete_code))
}

fn path_of(id: ChannelId) -> String {
    format!("{PATH}/{id}")
}

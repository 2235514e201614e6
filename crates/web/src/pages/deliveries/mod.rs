//! The delivery pages: the log with its filters, and a delivery with its attempts.

pub mod filter;
mod list;
mod one;
pub mod row;

use axum::Router;
use axum::routing::{get, post};

use crate::pages::Pages;

pub const PATH: &str = "/deliveries";

pub fn routes() -> Router<Pages> {
    Router::new()
        .route(PATH, get(list::show))
        .route("/deliveries/{id}", get(one::show))
        .route("/deliveries/{id}/payload.json", get(one::payload))
        .route("/deliveries/{id}/redeliver", post(one::redeliver))
}

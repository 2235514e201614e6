//! The delivery pages: the log with its filters, and a delivery with its attempts.

pub mod filter;
mod list;
mod one;
pub mod row;

use axum::Router;
use axum::routing::{get, post};
use rapport_domain::id::DeliveryId;

use crate::pages::Pages;
use crate::pages::deliveries::one::DeliveryPage;
use crate::pages::kit::visit::show;

pub const PATH: &str = "/deliveries";

pub fn routes() -> Router<Pages> {
    Router::new()
        .route(PATH, get(list::show))
        .route("/deliveries/{id}", get(show::<DeliveryPage, DeliveryId>))
        .route("/deliveries/{id}/payload.json", get(one::payload))
        .route("/deliveries/{id}/redeliver", post(one::redeliver))
}

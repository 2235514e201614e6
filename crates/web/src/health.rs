//! What watches the service: alive, ready, and its figures. Never rate limited, never authenticated.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use rapport_app::App;
use serde_json::json;

use crate::json;
use crate::problem::Problem;
use crate::server::MetricsText;

const READY_TIMEOUT: Duration = Duration::from_secs(2);

pub fn routes(app: App, metrics: Option<MetricsText>) -> Router {
    Router::new()
        .route("/health/live", get(async || json::respond(StatusCode::OK, &json!({ "status": "alive" }))))
        .route("/health/ready", get(ready))
        .with_state(app)
        .route("/metrics", get(async move || figures(metrics.as_ref())))
}

/// Ready if the database can be read, and storage knows of nothing that keeps it from writing.
async fn ready(State(app): State<App>) -> Response {
    if app.store().health().is_err() {
        // What is wrong is in the log; it may name files, which are nobody's business out here.
        return not_ready("the database cannot be written");
    }
    let read = app.read_across(|across| rapport_store::company::by_slug(across, ""));
    match tokio::time::timeout(READY_TIMEOUT, read).await {
        Ok(Ok(_)) => json::respond(StatusCode::OK, &json!({ "status": "ready" })),
        Ok(Err(_)) | Err(_) => not_ready("the database cannot be read"),
    }
}

fn not_ready(detail: &'static str) -> Response {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", detail).into_response()
}

fn figures(metrics: Option<&MetricsText>) -> Response {
    match metrics {
        Some(render) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], render()).into_response(),
        None => Problem::not_found("page").into_response(),
    }
}

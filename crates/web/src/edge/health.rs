//! Monitoring endpoints: liveness, readiness and metrics. Never rate limited, never authenticated.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use rapport_app::App;
use rapport_app::read::system::probe;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::edge::json;
use crate::edge::problem::Problem;
use crate::edge::server::MetricsText;

const READY_TIMEOUT: Duration = Duration::from_secs(2);

pub fn routes(app: App, metrics: Option<MetricsText>, stopping: CancellationToken) -> Router {
    Router::new()
        .route("/health/live", get(async || json::respond(StatusCode::OK, &json!({ "status": "alive" }))))
        .route("/health/ready", get(ready))
        .with_state((app, stopping))
        .route("/metrics", get(async move || figures(metrics.as_ref())))
}

/// Ready if the database can be read, the last writes did not fail and the service was not asked to stop.
async fn ready(State((app, stopping)): State<(App, CancellationToken)>) -> Response {
    if stopping.is_cancelled() {
        return Problem::not_ready("the service is stopping").into_response();
    }
    let answer = tokio::time::timeout(READY_TIMEOUT, app.read_across(probe)).await;
    if !matches!(answer, Ok(Ok(()))) {
        return Problem::not_ready("the database cannot be read").into_response();
    }
    // Check this after the read, which may be the success that ends an outage. The cause is only logged, because
    // it may name files.
    match app.store().health() {
        Ok(()) => json::respond(StatusCode::OK, &json!({ "status": "ready" })),
        Err(outage) if outage.writes_only => {
            Problem::not_ready("the database cannot be written").into_response()
        }
        Err(_) => Problem::not_ready("the database is not available").into_response(),
    }
}

fn figures(metrics: Option<&MetricsText>) -> Response {
    match metrics {
        Some(render) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], render()).into_response(),
        None => Problem::not_found("page").into_response(),
    }
}

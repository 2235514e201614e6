//! The JSON Schemas of events, at addresses that stay the same, for anyone.

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use rapport_domain::event::Kind;
use serde_json::{Value, json};

use crate::api::Api;
use crate::shared::catalogue::{self, SCHEMAS_PATH};

/// They change only with a new version of the service.
const CACHED: HeaderValue = HeaderValue::from_static("public, max-age=3600");

pub fn routes() -> Router<Api> {
    let mut router = Router::new().route(SCHEMAS_PATH, get(list));
    for kind in Kind::ALL {
        let one = move |State(api): State<Api>| async move {
            respond("application/schema+json", &catalogue::schema(kind, base_url(&api)))
        };
        router = router.route(&catalogue::schema_path(kind), get(one));
    }
    router
}

/// Whether a path is one of a schema, which has no trailing slash.
pub fn is_file(path: &str) -> bool {
    let name = path.strip_prefix(SCHEMAS_PATH).and_then(|file| file.strip_suffix(".json"));
    name.is_some_and(|name| !name.contains('/'))
}

async fn list(State(api): State<Api>) -> Response {
    let item = |kind: Kind| {
        let schema = format!("{}{}", base_url(&api), catalogue::schema_path(kind));
        json!({ "type": kind.as_str(), "schema": schema })
    };
    respond("application/json", &json!({ "items": Kind::ALL.map(item) }))
}

fn base_url(api: &Api) -> &str {
    &api.app().services().outside().base_url
}

fn respond(media_type: &'static str, body: &Value) -> Response {
    let headers =
        [(header::CONTENT_TYPE, HeaderValue::from_static(media_type)), (header::CACHE_CONTROL, CACHED)];
    (headers, body.to_string()).into_response()
}

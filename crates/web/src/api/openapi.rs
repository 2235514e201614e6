//! Builds the OpenAPI 3.1 document from the endpoints' own descriptions and serves it.

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::routing::get;
use bytes::Bytes;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{
    Components, ContentBuilder, InfoBuilder, License, OpenApi, OpenApiBuilder, Ref, RefOr, ResponseBuilder,
};

use crate::api::{Api, documented};

pub const PATH: &str = "/api/openapi.json";

const DESCRIPTION: &str = "\
Rapport stores a company's accounts, moves them through a pipeline and records client activity.

Every path works with and without the trailing slash. Times are returned as RFC 3339 in UTC. In requests, send ISO \
8601 with or without an offset. Lists return `items` and `next_cursor`; send the latter as `cursor` to get the next \
page. Errors are `application/problem+json` with a stable `code`. Every response has the headers \
`X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset`, and an `X-Request-Id` to quote when you report \
a problem.";

/// Responses that every operation can return, in addition to its own.
const COMMON: [(&str, &str); 4] = [
    ("401", "No valid credential was sent."),
    ("422", "Some fields or parameters are invalid. See `errors`."),
    ("429", "Rate limit exceeded. Wait for the number of seconds in `Retry-After`."),
    ("503", "Busy, or the database is unavailable. Try again after the number of seconds in `Retry-After`."),
];
/// Responses that only requests with a body can get.
const COMMON_WITH_BODY: [(&str, &str); 3] = [
    ("400", "The body is not a JSON object, or it is damaged."),
    ("413", "The body is over 1 MiB after decompression."),
    ("415", "The body is not sent as JSON, or its encoding is not gzip."),
];

/// The whole document.
pub fn document() -> OpenApi {
    completed(documented().into_openapi())
}

/// The document without the endpoints: general information and authentication.
pub fn frame() -> OpenApi {
    let info = InfoBuilder::new()
        .title("Rapport")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(DESCRIPTION))
        .license(Some(License::new(env!("CARGO_PKG_LICENSE"))));
    let mut components = Components::new();
    let token = Http::builder().scheme(HttpAuthScheme::Bearer).bearer_format("rap_…").build();
    components.add_security_scheme("token", SecurityScheme::Http(token));
    let ingest_key = ApiKeyValue::with_description("X-Service-Ingest-Key", "The company's ingest key.");
    components.add_security_scheme("ingest_key", SecurityScheme::ApiKey(ApiKey::Header(ingest_key)));
    let inbound_key = ApiKeyValue::with_description("X-Service-Inbound-Key", "The company's inbound key.");
    components.add_security_scheme("inbound_key", SecurityScheme::ApiKey(ApiKey::Header(inbound_key)));
    OpenApiBuilder::new().info(info.build()).components(Some(components)).build()
}

pub fn routes(document: &OpenApi) -> Router<Api> {
    let text = Bytes::from(document.to_json().expect("the document is plain data"));
    let served = async move || {
        let headers = [
            (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        ];
        (headers, text.clone())
    };
    Router::new().route(PATH, get(served))
}

/// Adds the responses that are common to all operations.
pub fn completed(mut document: OpenApi) -> OpenApi {
    for item in document.paths.paths.values_mut() {
        operations_mut(item).for_each(complete);
    }
    document
}

fn complete(operation: &mut Operation) {
    let responses = &mut operation.responses.responses;
    let with_body = if operation.request_body.is_some() { COMMON_WITH_BODY.as_slice() } else { &[] };
    let is_open =
        operation.security.as_ref().is_some_and(|security| security == &[SecurityRequirement::default()]);
    let common = COMMON.iter().filter(|(status, _)| !(is_open && *status == "401"));
    for (status, description) in common.chain(with_body) {
        let response = ResponseBuilder::new().description(*description).build();
        responses.entry((*status).to_owned()).or_insert(RefOr::T(response));
    }
    for (status, response) in responses.iter_mut() {
        if let (true, RefOr::T(response)) = (status.starts_with(['4', '5']), response) {
            let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
            response.content.clear();
            response.content.insert("application/problem+json".to_owned(), RefOr::T(content));
        }
    }
}

fn operations_mut(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.post, &mut item.patch, &mut item.delete, &mut item.put].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use axum::http::StatusCode;
    use axum::routing::any;
    use serde_json::{Value, json};

    use super::*;
    use crate::api;
    use crate::edge::auth::OPEN_PATHS;

    /// Paths that serve the document itself.
    const META: [&str; 3] = [PATH, "/api/docs/", "/api/docs/style.css"];

    fn shown() -> Value {
        serde_json::from_str(&document().to_json().unwrap()).unwrap()
    }

    /// The paths of a router, as its debug form lists them.
    fn paths_of(router: &Router<Api>) -> BTreeSet<String> {
        let shown = format!("{router:?}");
        let quoted = shown.split('"').filter(|part| part.starts_with("/api/"));
        quoted.map(str::to_owned).collect()
    }

    #[test]
    fn every_route_is_in_the_document() {
        let routed = paths_of(&api::routes());
        let document = shown();
        let mut described: BTreeSet<String> =
            document["paths"].as_object().unwrap().keys().cloned().collect();
        described.extend(META.map(str::to_owned));
        assert!(routed.len() > 15, "the debug form of a router no longer lists its paths: {routed:?}");
        assert_eq!(routed, described);
        assert!(routed.iter().all(|path| path.ends_with('/') || api::FILES.contains(&path.as_str())));
    }

    #[test]
    fn every_operation_describes_its_authentication_and_errors() {
        let document = shown();
        assert_eq!(document["openapi"], json!("3.1.0"));
        let mut ids = BTreeSet::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                let place = format!("{method} {path}");
                assert!(
                    ids.insert(operation["operationId"].as_str().unwrap().to_owned()),
                    "{place}: duplicate id"
                );
                assert!(!operation["summary"].as_str().unwrap().is_empty(), "{place}: no summary");
                let is_open = OPEN_PATHS.contains(&path.as_str());
                let scheme = match path.as_str() {
                    "/api/pulse/ingest/" => "ingest_key",
                    "/api/inbound/email/" => "inbound_key",
                    _ => "token",
                };
                let security = if is_open { json!([{}]) } else { json!([{ scheme: [] }]) };
                assert_eq!(operation["security"], security, "{place}");
                assert_eq!(operation["responses"]["401"].is_object(), !is_open, "{place}");
                let common = ["401", "422", "429", "503"];
                for status in common.into_iter().filter(|status| !(is_open && *status == "401")) {
                    let content = &operation["responses"][status]["content"];
                    assert!(content["application/problem+json"].is_object(), "{place} {status}: {content}");
                }
                assert_eq!(operation["responses"]["415"].is_object(), operation["requestBody"].is_object());
            }
        }
        let schemes = document["components"]["securitySchemes"].as_object().unwrap();
        assert_eq!(schemes.keys().collect::<Vec<_>>(), ["inbound_key", "ingest_key", "token"]);
    }

    #[test]
    fn every_reference_resolves() {
        let document = shown();
        let text = document.to_string();
        let references = text.split("\"$ref\":\"#").skip(1).map(|rest| rest.split('"').next().unwrap());
        let mut seen = 0;
        for pointer in references {
            assert!(document.pointer(pointer).is_some(), "{pointer}");
            seen += 1;
        }
        assert!(seen > 20);
    }

    #[test]
    fn a_router_names_its_paths_in_its_debug_form() {
        // The first test relies on this.
        let router: Router<Api> = Router::new().route("/api/hidden/{id}/", any(StatusCode::OK));
        assert_eq!(paths_of(&router), BTreeSet::from(["/api/hidden/{id}/".to_owned()]));
    }
}

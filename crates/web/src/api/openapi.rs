//! The OpenAPI 3.1 document: put together from the endpoints' own descriptions, and served.

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
Rapport keeps accounts per company, moves them through a pipeline, and takes client activity.

Every path is served with and without its last slash. Times are RFC 3339 in UTC; on the way in, ISO 8601 with or \
without an offset. Lists answer `items` and `next_cursor`; send the latter back as `cursor`. Errors are \
`application/problem+json` with a stable `code`. Every answer carries `X-RateLimit-Limit`, \
`X-RateLimit-Remaining` and `X-RateLimit-Reset`, and an `X-Request-Id` to quote.";

/// Answers that every operation may give, beside its own.
const COMMON: [(&str, &str); 4] = [
    ("401", "No valid credential was presented."),
    ("422", "Members or parameters are at fault; `errors` names each of them."),
    ("429", "The rate limit is reached; `Retry-After` says when to go on."),
    ("503", "Busy, or the database is away; `Retry-After` says when to try again."),
];
/// Answers that only requests with a body may get.
const COMMON_WITH_BODY: [(&str, &str); 3] = [
    ("400", "The body is no JSON object, or damaged."),
    ("413", "The body is over 1 MiB after decompression."),
    ("415", "The body is not sent as JSON, or in an encoding other than gzip."),
];

/// The whole document.
pub fn document() -> OpenApi {
    completed(documented().into_openapi())
}

/// The document before the endpoints: what it is about, and how callers authenticate.
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

/// The document with what is true of every operation.
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
    use crate::auth::OPEN_PATHS;

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
        assert!(routed.len() > 15, "the debug form of a router still lists its paths: {routed:?}");
        assert_eq!(routed, described);
        assert!(routed.iter().all(|path| path.ends_with('/') || api::FILES.contains(&path.as_str())));
    }

    #[test]
    fn every_operation_says_who_may_call_it_and_what_may_go_wrong() {
        let document = shown();
        assert_eq!(document["openapi"], json!("3.1.0"));
        let mut ids = BTreeSet::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                let place = format!("{method} {path}");
                assert!(
                    ids.insert(operation["operationId"].as_str().unwrap().to_owned()),
                    "{place}: id twice"
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
    fn every_reference_leads_somewhere() {
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
        // What the first test relies on, with a route that is in no document.
        let router: Router<Api> = Router::new().route("/api/hidden/{id}/", any(StatusCode::OK));
        assert_eq!(paths_of(&router), BTreeSet::from(["/api/hidden/{id}/".to_owned()]));
    }
}

//! Builds the OpenAPI 3.1 document from the endpoints' own descriptions and serves it.

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::routing::get;
use bytes::Bytes;
use rapport_domain::audience::ImportEffect;
use rapport_domain::member::Role;
use rapport_domain::right::{Grants, Right};
use utoipa::ToSchema;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::info::{ContactBuilder, InfoBuilder, LicenseBuilder};
use utoipa::openapi::path::{Operation, Parameter, ParameterIn};
use utoipa::openapi::schema::{ArrayItems, KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{
    Components, ContentBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, ResponseBuilder, Server,
};

use crate::api::deprecation::{self, DEPRECATED};
use crate::api::{Api, Later, bounds, documented, events, headers, later};
use crate::edge::problem::Problem;
use crate::shared::sentence;

pub const PATH: &str = "/api/openapi.json";

const DESCRIPTION: &str = "\
Rapport stores a company's accounts, moves them through a pipeline and records client activity.

Every path works with and without the trailing slash. Times are returned as RFC 3339 in UTC. In requests, send ISO \
8601 with or without an offset. Lists return `items` and `next_cursor`; send the latter as `cursor` to get the next \
page. An empty query parameter counts as not sent. Errors are `application/problem+json` with a stable `code`, and a `Link` to its description. In a PATCH, a field \
that you leave out stays as it is, and null clears a field; a field that can't be empty refuses null (422 \
`not_clearable`). A POST with an `Idempotency-Key` is safe to repeat. Every response has \
the headers `RateLimit-Policy` (`q` requests in `w` seconds) and `RateLimit` (`r` requests remaining, full again in `t` \
seconds), the same as `X-RateLimit-Limit` (requests per second), `X-RateLimit-Remaining` (requests) and \
`X-RateLimit-Reset` (seconds), and an `X-Request-Id` to quote when you report a problem. An operation that will be removed \
is marked as deprecated, and its responses have `Deprecation` and `Sunset`.";

/// The groups of operations, in the order of the document.
const TAGS: [(&str, &str); 18] = [
    (
        "Upsert and ingest",
        "The two endpoints that your own systems need: accounts by record id, and client activity.",
    ),
    ("Accounts", "Accounts, and what happened to them."),
    ("Audit", "Who did what."),
    ("Campaigns", "Goals with filters, and the accounts that they reach."),
    ("Channels", "Where accounts come from, and the promo codes that attribute them."),
    ("Clients", "Accounts in tracked stages, and when contact is due."),
    ("Conversations", "Messages with accounts, by hand and by mail."),
    ("Deliveries", "What webhooks were sent, and how to send it again."),
    ("Digest", "The weekly mail about overdue clients."),
    ("Events", "What webhooks deliver."),
    ("Imports", "Accounts from CSV files."),
    ("Invitations", "People who are asked to become members."),
    ("Mail", "Mails that the service sent."),
    ("Members", "The people of the company."),
    ("Password", "New passwords for people who forgot theirs."),
    ("Settings", "The company's settings and keys."),
    ("Tokens", "The credentials of programs."),
    ("Webhooks", "Where events are sent."),
];

/// Responses that every operation can return, in addition to its own.
const COMMON: [(&str, &str); 3] = [
    ("429", "Rate limit exceeded. Wait for the number of seconds in `Retry-After`."),
    ("500", "Unexpected error. The server log has it under this response's `X-Request-Id`."),
    ("503", "Busy, or the database is unavailable. Try again after the number of seconds in `Retry-After`."),
];
const WITH_CREDENTIAL: [(&str, &str); 1] = [("401", "No valid credential was sent.")];
const WITH_FIELDS: [(&str, &str); 1] = [("422", "Some fields or parameters are invalid. See `errors`.")];
/// Methods with a body read it even if they need none.
const WITH_BODY: [(&str, &str); 4] = [
    ("400", "The body is not a JSON object, or it is damaged."),
    ("408", "The body took too long to arrive."),
    ("413", "The body is over 1 MiB after decompression."),
    ("415", "The body is not sent as JSON, or its encoding is not gzip."),
];

/// The whole document.
pub fn document() -> OpenApi {
    completed(documented().into_openapi())
}

/// The document without the endpoints: general information and authentication.
pub fn frame() -> OpenApi {
    let license = env!("CARGO_PKG_LICENSE");
    let license = LicenseBuilder::new().name(license).identifier(Some(license)).build();
    let info = InfoBuilder::new()
        .title("Rapport")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(DESCRIPTION))
        .contact(Some(ContactBuilder::new().name(Some("The operator of this service")).build()))
        .license(Some(license));
    let tag = |(name, description)| TagBuilder::new().name(name).description(Some(description)).build();
    let mut components = Components::new();
    let token = Http::builder().scheme(HttpAuthScheme::Bearer).bearer_format("rap_…").build();
    components.add_security_scheme("token", SecurityScheme::Http(token));
    let ingest_key = ApiKeyValue::with_description("X-Service-Ingest-Key", "The company's ingest key.");
    components.add_security_scheme("ingest_key", SecurityScheme::ApiKey(ApiKey::Header(ingest_key)));
    let inbound_key = ApiKeyValue::with_description("X-Service-Inbound-Key", "The company's inbound key.");
    components.add_security_scheme("inbound_key", SecurityScheme::ApiKey(ApiKey::Header(inbound_key)));
    let servers = [Server::new("/")];
    OpenApiBuilder::new()
        .info(info.build())
        .servers(Some(servers))
        .components(Some(components))
        .tags(Some(TAGS.map(tag)))
        .build()
}

pub fn routes(document: Later<OpenApi>) -> Router<Api> {
    let text = later(move || Bytes::from(document.to_json().expect("the document is plain data")));
    let served = async move || {
        let headers = [
            (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        ];
        (headers, Bytes::clone(&text))
    };
    Router::new().route(PATH, get(served))
}

/// Adds what follows from the operations' own descriptions: common responses, limits, references and events.
pub fn completed(mut document: OpenApi) -> OpenApi {
    for (path, item) in &mut document.paths.paths {
        headers::describe(path, item);
        let without_body = [&mut item.get, &mut item.delete].into_iter().flatten();
        without_body.for_each(|operation| complete(operation, false));
        let with_body = [&mut item.post, &mut item.patch, &mut item.put].into_iter().flatten();
        with_body.for_each(|operation| complete(operation, true));
    }
    let components = document.components.get_or_insert_default();
    add_schema::<Problem>(components);
    add_schema::<ImportEffect>(components);
    document.webhooks = Some(events::describe(components));
    refer_to_items(components);
    bounds::add_to_schemas(components);
    deprecation::mark(DEPRECATED, &mut document);
    document
}

fn add_schema<T: ToSchema>(components: &mut Components) {
    let mut named = vec![(T::name().into_owned(), T::schema())];
    T::schemas(&mut named);
    components.schemas.extend(named);
}

/// Marks bodies that aren't JSON as files, which generated clients send as they are.
fn describe_files(operation: &mut Operation) {
    let Some(RefOr::T(body)) = &mut operation.request_body else { return };
    for (_, content) in body.content.iter_mut().filter(|(media_type, _)| !media_type.ends_with("json")) {
        let file = ObjectBuilder::new().schema_type(Type::String);
        let file = file.format(Some(SchemaFormat::KnownFormat(KnownFormat::Binary)));
        *content = ContentBuilder::new().schema(Some(file)).build().into();
    }
}

/// An empty parameter counts as not given.
fn allow_empty_parameters(operation: &mut Operation) {
    for parameter in operation.parameters.iter_mut().flatten() {
        if let RefOr::T(parameter) = parameter
            && parameter.parameter_in == ParameterIn::Query
        {
            let empty = Extensions::from_iter([("allowEmptyValue", true)]);
            parameter.extensions.get_or_insert_default().merge(empty);
        }
    }
}

fn complete(operation: &mut Operation, has_body: bool) {
    describe_files(operation);
    bounds::add_to_parameters(operation);
    allow_empty_parameters(operation);
    let parameters = operation.parameters.iter().flatten();
    let mut parameters = parameters.filter_map(|parameter| match parameter {
        RefOr::T(parameter) => Some(parameter),
        RefOr::Ref(_) => None,
    });
    let has_query = parameters.clone().any(|parameter| parameter.parameter_in == ParameterIn::Query);
    let subject = parameters.rfind(|parameter| parameter.parameter_in == ParameterIn::Path);
    let missing = subject.map(|parameter| ("404".to_owned(), no_such(parameter)));
    let mut security = operation.security.iter().flatten();
    let is_open = security.all(|requirement| *requirement == SecurityRequirement::default());
    let refused = right_of(operation).filter(|right| right.least_role(Grants::default()) > Role::Viewer);
    let refused = refused.map(|right| ("403".to_owned(), sentence(&right.needed(Grants::default()))));
    let common = [
        (true, COMMON.as_slice()),
        (!is_open, &WITH_CREDENTIAL),
        (has_query || has_body, &WITH_FIELDS),
        (has_body, &WITH_BODY),
    ];
    let common = common.into_iter().filter(|(applies, _)| *applies).flat_map(|(_, responses)| responses);
    let common = common.map(|(status, description)| ((*status).to_owned(), (*description).to_owned()));
    let responses = &mut operation.responses.responses;
    for (status, description) in common.chain(refused).chain(missing) {
        let response = ResponseBuilder::new().description(description).build();
        responses.entry(status).or_insert(RefOr::T(response));
    }
    for (status, response) in responses.iter_mut() {
        if let (true, RefOr::T(response)) = (status.starts_with(['4', '5']), response) {
            let problem = Ref::from_schema_name(Problem::name());
            let content = ContentBuilder::new().schema(Some(problem)).build();
            response.content.insert("application/problem+json".to_owned(), RefOr::T(content));
        }
    }
}

/// From "The account's id." to "No such account.".
fn no_such(parameter: &Parameter) -> String {
    let description = parameter.description.as_deref().unwrap_or_default();
    let subject = description.strip_prefix("The ").and_then(|rest| rest.split_once("'s ")).map(|(it, _)| it);
    format!("No such {}.", subject.unwrap_or(&parameter.name))
}

/// The right that an operation declares as the scope of its token, as in `"token" = ["export"]`.
fn right_of(operation: &Operation) -> Option<Right> {
    let security = serde_json::to_value(&operation.security).ok()?;
    Right::parse(security[0]["token"][0].as_str()?)
}

/// Lists refer to the schema of their items. The derive macro of a generic type repeats it.
fn refer_to_items(components: &mut Components) {
    for (name, schema) in &mut components.schemas {
        let Some(item) = name.strip_prefix("Page_") else { continue };
        if let RefOr::T(Schema::Object(page)) = schema
            && let Some(RefOr::T(Schema::Array(items))) = page.properties.get_mut("items")
        {
            items.items = ArrayItems::RefOrSchema(Box::new(Ref::from_schema_name(item).into()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use axum::http::StatusCode;
    use axum::routing::any;
    use rapport_app::Error;
    use rapport_app::read::DEFAULT_LIMIT;
    use rapport_domain::account::MAX_NAME;
    use rapport_domain::activity::MAX_EVENTS;
    use rapport_domain::company::CADENCE_DAYS;
    use rapport_domain::event::Kind;
    use rapport_domain::invalid::Fault;
    use serde_json::{Value, json};

    use super::*;
    use crate::api;
    use crate::edge::auth::OPEN_PATHS;
    use crate::edge::codes;
    use crate::shared::catalogue;

    /// Paths that describe the API.
    const META: [&str; 5] = [PATH, "/api/docs/", "/api/docs/style.css", catalogue::SCHEMAS_PATH, codes::PATH];

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
        described.extend(Kind::ALL.map(catalogue::schema_path));
        assert!(routed.len() > 15, "the debug form of a router no longer lists its paths: {routed:?}");
        assert_eq!(routed, described);
        assert!(routed.iter().all(|path| path.ends_with('/') || api::is_file(path)));
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
                let scopes = &operation["security"][0][scheme];
                let security = if is_open { json!([{}]) } else { json!([{ scheme: scopes }]) };
                assert_eq!(operation["security"], security, "{place}");
                let responses = operation["responses"].as_object().unwrap();
                let has_body = !["get", "delete"].contains(&method.as_str());
                let expected = [
                    ("400", has_body),
                    ("401", !is_open),
                    ("404", path.contains('{')),
                    ("408", has_body),
                    ("413", has_body),
                    ("415", has_body),
                    ("422", has_body || operation["parameters"].to_string().contains(r#""in":"query""#)),
                    ("429", true),
                    ("500", true),
                    ("503", true),
                ];
                for (status, applies) in expected {
                    let is_there = responses.contains_key(status);
                    assert!(is_there || !applies, "{place} {status}");
                }
                let right = scopes[0].as_str().and_then(Right::parse);
                let declared = if scheme == "token" { json!([right.map(Right::as_str)]) } else { json!([]) };
                assert!(scopes == &declared || is_open, "{place} must declare one right: {scopes}");
                let for_all = right.is_none_or(|right| right.least_role(Grants::default()) == Role::Viewer);
                assert!(responses.contains_key("403") || for_all, "{place}");
                for (status, response) in
                    responses.iter().filter(|(status, _)| status.starts_with(['4', '5']))
                {
                    let content = &response["content"]["application/problem+json"]["schema"]["$ref"];
                    assert_eq!(content, "#/components/schemas/Problem", "{place} {status}");
                }
            }
        }
        let schemes = document["components"]["securitySchemes"].as_object().unwrap();
        assert_eq!(schemes.keys().collect::<Vec<_>>(), ["inbound_key", "ingest_key", "token"]);
    }

    #[test]
    fn every_group_is_described_and_has_operations() {
        let document = shown();
        let mut used = BTreeSet::new();
        for section in ["paths", "webhooks"] {
            let items = document[section].as_object().unwrap().values();
            let operations = items.flat_map(|item| item.as_object().unwrap().values());
            used.extend(operations.map(|operation| operation["tags"][0].as_str().unwrap().to_owned()));
        }
        let described: BTreeSet<String> = TAGS.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(used, described);
    }

    #[test]
    fn lists_refer_to_the_schema_of_their_items() {
        let document = shown();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let pages: Vec<_> = schemas.iter().filter(|(name, _)| name.starts_with("Page_")).collect();
        assert!(pages.len() > 15);
        for (name, page) in pages {
            let item = name.replace("Page_", "#/components/schemas/");
            assert_eq!(page["properties"]["items"]["items"], json!({ "$ref": item }), "{name}");
        }
    }

    #[test]
    fn limits_and_codes_are_those_that_are_enforced() {
        let document = shown();
        let schemas = &document["components"]["schemas"];
        let name = &schemas["AccountCreate"]["properties"]["name"];
        assert_eq!((&name["minLength"], &name["maxLength"]), (&json!(1), &json!(MAX_NAME.max)));
        let cadence = &schemas["Account"]["allOf"][1]["properties"]["cadence_days"];
        assert_eq!(cadence["maximum"], json!(CADENCE_DAYS.end()));
        assert_eq!(schemas["IngestRequest"]["properties"]["events"]["maxItems"], json!(MAX_EVENTS));
        let limit = document["paths"]["/api/tokens/"]["get"]["parameters"][0].clone();
        assert_eq!((&limit["name"], &limit["schema"]["default"]), (&json!("limit"), &json!(DEFAULT_LIMIT)));
        assert_eq!(schemas["FieldError"]["properties"]["code"]["enum"], json!(Fault::CODES.as_slice()));
        let codes = schemas["Problem"]["properties"]["code"]["enum"].as_array().unwrap();
        for code in Error::CODES.into_iter().chain(["invalid", "not_found", "rate_limited"]) {
            assert!(codes.contains(&json!(code)), "{code}");
        }
        assert_eq!(schemas["CustomFields"]["additionalProperties"], json!(true));
        assert_eq!(document["servers"], json!([{"url": "/"}]));
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

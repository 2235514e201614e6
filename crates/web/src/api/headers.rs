//! The headers of requests and responses that make changes safe to repeat and to make at the same time, in the OpenAPI
//! document.

use rapport_domain::repeat::{KEPT_HOURS, MAX_KEY_CHARS};
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{RefOr, Required, ResponseBuilder};

/// What is shown with a version.
pub const VERSIONED: [&str; 8] = [
    "/api/accounts/{id}/",
    "/api/accounts/{id}/contacts/{contact}/",
    "/api/accounts/{id}/notes/{note}/",
    "/api/campaigns/{id}/",
    "/api/conversations/{id}/messages/{message}/",
    "/api/exchange-rates/{id}/",
    "/api/settings/",
    "/api/webhooks/{id}/",
];

/// POST operations that create nothing and do nothing, so that repeating them is safe without a key.
pub const LOOKING: [&str; 3] =
    ["/api/campaigns/preview/", "/api/imports/{id}/preview/", "/api/settings/sso/test/"];

/// `*`, or the versions that are shown as `ETag`.
const TAGS: &str = r#"^(\*|(W/)?"[!#-~]*"([ \t]*,[ \t]*(W/)?"[!#-~]*")*)$"#;
/// Printable characters without spaces, with or without quotes around them.
const KEY: &str = r#"^([!#-~][!-~]*|"([!#-\[\]-~]|\\["\\])+")$"#;

/// Describes the headers of a path's operations, and the responses that they cause.
pub fn describe(path: &str, item: &mut PathItem) {
    if let Some(post) = &mut item.post
        && takes_key(path, post)
    {
        describe_key(post);
    }
    if !VERSIONED.contains(&path) {
        return;
    }
    if let Some(get) = &mut item.get {
        let detail = "Respond with 304 if this is still the version: the `ETag` of an earlier response.";
        add_parameter(get, "If-None-Match", detail, text(TAGS));
        add_response(get, "304", "The version in `If-None-Match` is the current one.");
        add_response(get, "400", "`If-None-Match` can't be read.");
        if let Some(response) = get.responses.responses.get_mut("304") {
            add_header(response, "ETag", etag());
        }
    }
    let shown = [&mut item.get, &mut item.patch].into_iter().flatten();
    for response in shown.filter_map(|operation| operation.responses.responses.get_mut("200")) {
        add_header(response, "ETag", etag());
    }
    if let Some(delete) = &mut item.delete {
        add_response(delete, "400", "`If-Match` can't be read.");
    }
    for change in [&mut item.patch, &mut item.delete].into_iter().flatten() {
        let detail =
            "Make the change only if this is the current version: the `ETag` of an earlier response, or `*`.";
        add_parameter(change, "If-Match", detail, text(TAGS));
        let stale = "The version in `If-Match` is not the current one. Nothing was changed.";
        add_response(change, "412", stale);
        if let Some(response) = change.responses.responses.get_mut("412") {
            add_header(response, "ETag", etag());
        }
    }
}

/// Whether an operation creates or does something for a caller with a credential.
fn takes_key(path: &str, post: &Operation) -> bool {
    let mut security = post.security.iter().flatten();
    let is_open = security.all(|requirement| *requirement == SecurityRequirement::default());
    !is_open && !LOOKING.contains(&path)
}

fn describe_key(post: &mut Operation) {
    let detail = format!(
        "Makes the request safe to repeat: for {KEPT_HOURS} hours, another one with the same key gets the same response, \
         and nothing is done again. Choose a new key, such as a UUID, for each new request."
    );
    let key = text(KEY).min_length(Some(1)).max_length(Some(MAX_KEY_CHARS));
    add_parameter(post, "Idempotency-Key", &detail, key);
    let conflict =
        "A request with the same `Idempotency-Key` is still being handled, or its response was not kept.";
    add_response(post, "409", conflict);
    for (status, response) in &mut post.responses.responses {
        if status.starts_with('2') {
            let detail =
                "`true` if this is the response to an earlier request with the same `Idempotency-Key`.";
            add_header(response, "Idempotency-Replayed", header(detail));
        }
    }
}

fn text(pattern: &str) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern))
}

fn add_parameter(operation: &mut Operation, name: &str, detail: &str, schema: ObjectBuilder) {
    let parameter: Parameter = ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(detail))
        .schema(Some(schema))
        .build();
    operation.parameters.get_or_insert_default().push(RefOr::T(parameter));
}

fn add_response(operation: &mut Operation, status: &str, description: &str) {
    let response = || RefOr::T(ResponseBuilder::new().description(description).build());
    operation.responses.responses.entry(status.to_owned()).or_insert_with(response);
}

fn add_header(response: &mut RefOr<utoipa::openapi::Response>, name: &str, header: Header) {
    if let RefOr::T(response) = response {
        response.headers.insert(name.to_owned(), RefOr::T(header));
    }
}

fn etag() -> Header {
    header("The version of what is shown. It changes whenever that does.")
}

fn header(description: &str) -> Header {
    let schema = ObjectBuilder::new().schema_type(Type::String);
    HeaderBuilder::new().schema(Some(schema)).description(Some(description)).build()
}

//! The events that webhooks deliver, for the OpenAPI document.

use rapport_domain::event::Kind;
use rapport_domain::standard_webhook;
use utoipa::openapi::path::{
    HttpMethod, OperationBuilder, ParameterBuilder, ParameterIn, PathItem, Paths, PathsBuilder,
};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{Components, ContentBuilder, Ref, Required, ResponseBuilder};

use crate::shared::catalogue;

/// The group of the events in the document.
const TAG: &str = "Events";

/// The headers of a delivery.
const HEADERS: [(&str, Type, &str); 7] = [
    (
        "X-Service-Signature",
        Type::String,
        "`sha256=` and the lowercase hexadecimal HMAC-SHA256 of the raw body, with the webhook's secret as the key.",
    ),
    ("X-Service-Event", Type::String, "The event type."),
    ("X-Service-Delivery", Type::String, "The delivery's id."),
    ("X-Service-Attempt", Type::Integer, "The number of the attempt, starting at 1."),
    (
        standard_webhook::ID_HEADER,
        Type::String,
        "The event's id, which is also the `id` of the body: the same in every attempt and redelivery.",
    ),
    (
        standard_webhook::TIMESTAMP_HEADER,
        Type::Integer,
        "When the attempt began, in seconds since 1970. Refuse a request whose timestamp is more than 5 minutes off.",
    ),
    (
        standard_webhook::SIGNATURE_HEADER,
        Type::String,
        "The signature of [Standard Webhooks](https://www.standardwebhooks.com): `v1,` and the base64 HMAC-SHA256 of \
         `webhook-id`, `webhook-timestamp` and the raw body, joined by dots, with the webhook's secret as the key. There may \
         be several, separated by spaces; one has to match.",
    ),
];

const RESPONSES: [(&str, &str); 5] = [
    ("2XX", "The event was received."),
    ("401", "The delivery fails without a retry."),
    ("404", "The delivery fails without a retry."),
    ("410", "The delivery fails without a retry."),
    ("default", "The attempt failed. It is repeated later."),
];

/// Describes every event. Their payloads become schemas.
pub fn describe(components: &mut Components) -> Paths {
    let mut paths = PathsBuilder::new();
    for kind in Kind::ALL {
        let name = schema_name(kind);
        let (payload, named) = kind.payload_schema();
        components.schemas.extend(named);
        components.schemas.insert(name.clone(), payload);
        paths = paths.path(kind.as_str(), delivery(kind, &name));
    }
    paths.build()
}

fn delivery(kind: Kind, payload: &str) -> PathItem {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(payload)));
    let content = content.example(Some(catalogue::example(kind))).build();
    let body = RequestBodyBuilder::new().content("application/json", content).required(Some(Required::True));
    let mut operation = OperationBuilder::new()
        .operation_id(Some(kind.as_str().replace('.', "_")))
        .tag(TAG)
        .summary(Some(catalogue::summary(kind)))
        .description(Some(catalogue::when(kind)))
        // A delivery has a signature, and no credential.
        .securities(Some([SecurityRequirement::default()]))
        .request_body(Some(body.build()));
    for (name, kind, description) in HEADERS {
        let header = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Header);
        let schema = ObjectBuilder::new().schema_type(kind);
        let header = header.required(Required::True).description(Some(description)).schema(Some(schema));
        operation = operation.parameter(header);
    }
    for (status, description) in RESPONSES {
        operation = operation.response(status, ResponseBuilder::new().description(description));
    }
    PathItem::new(HttpMethod::Post, operation)
}

/// From `account.created` to `AccountCreatedEvent`.
pub fn schema_name(kind: Kind) -> String {
    let capitalized = |word: &str| word[..1].to_uppercase() + &word[1..];
    let words: String = kind.as_str().split(['.', '_']).map(capitalized).collect();
    words + "Event"
}

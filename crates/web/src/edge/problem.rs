//! The one place where an error becomes an HTTP response: `application/problem+json` (RFC 9457).
//!
//! Use cases return `rapport_app::Error`, and the HTTP layer adds its own errors (an unreadable body, an unknown
//! path). Both end here, so that the status, code and title are decided in one place.

use std::borrow::Cow;
use std::collections::BTreeSet;

use axum::body::Body;
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse;
use rapport_app::refusal::Refused;
use rapport_app::{Error, Origin};
use rapport_domain::activity::{MAX_EVENTS, Rejection};
use rapport_domain::credential::Presented;
use rapport_domain::invalid::{FieldError, Invalid};
use rapport_domain::upsert_batch::MAX_ACCOUNTS;
use serde::ser::SerializeMap;
use serde_json::{Value, json};
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, Type};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use crate::edge::auth::Scheme;
use crate::edge::codes::TYPE_PREFIX;
use crate::edge::etag::Etag;
use crate::edge::slow_body::is_too_slow;

const MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/problem+json");
/// When to retry after "busy": the queue drains in well under a second.
const BUSY_SECONDS: u64 = 1;
/// When to retry while the database or the service is unavailable.
const AWAY_SECONDS: u64 = 5;

/// An error, ready to be sent.
#[derive(Debug)]
pub struct Problem(Box<Parts>);

#[derive(Debug)]
struct Parts {
    status: StatusCode,
    code: &'static str,
    detail: Cow<'static, str>,
    errors: Vec<FieldError>,
    /// Members in addition to the standard ones.
    more: Vec<(&'static str, Value)>,
    headers: Vec<(HeaderName, HeaderValue)>,
    fault: Option<Fault>,
    refused: Option<Refused>,
}

/// An internal error for the log. It is never part of the response.
#[derive(Debug, Clone)]
pub struct Fault(pub String);

impl Problem {
    /// Every code that the HTTP layer of the API adds to those of the use cases.
    const CODES: [&str; 35] = [
        "all_rejected",
        "bad_host",
        "bad_idempotency_key",
        "bad_precondition",
        "batch_refused",
        "batch_too_large",
        "body_too_large",
        "body_too_slow",
        "broken_body",
        "broken_gzip",
        "busy",
        "duplicate_member",
        "https_required",
        "idempotency_key_reused",
        "internal_error",
        "invalid",
        "method_not_allowed",
        "not_a_mail",
        "not_an_object",
        "not_found",
        "not_json",
        "not_ready",
        "outcome_unknown",
        "precondition_failed",
        "rate_limited",
        "request_in_progress",
        "response_not_kept",
        "stopping",
        "timed_out",
        "too_deep",
        "too_many_connections",
        "unauthenticated",
        "unavailable",
        "unsupported_encoding",
        "unsupported_media_type",
    ];

    /// Every code that the API sends.
    pub fn codes() -> BTreeSet<&'static str> {
        Error::CODES.into_iter().chain(Self::CODES).collect()
    }

    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Parts {
            status,
            code,
            detail: detail.into(),
            errors: Vec::new(),
            more: Vec::new(),
            headers: Vec::new(),
            fault: None,
            refused: None,
        }))
    }

    pub fn bad_request(code: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, detail)
    }

    pub fn bad_host() -> Self {
        Self::bad_request("bad_host", "the request must have exactly one Host header, with a valid host")
    }

    /// Plain HTTP where the service speaks TLS.
    pub fn not_tls() -> Self {
        let problem = Self::bad_request("https_required", "this port only accepts https");
        problem.with_header(header::CONNECTION, HeaderValue::from_static("close"))
    }

    pub fn unauthenticated(scheme: Scheme) -> Self {
        let problem = Self::new(StatusCode::UNAUTHORIZED, "unauthenticated", scheme.advice());
        problem.with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static(scheme.challenge()))
    }

    pub fn not_found(what: &'static str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", format!("no such {what}"))
    }

    pub fn method_not_allowed() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            "this path does not support the method; the Allow header lists those it supports",
        )
    }

    pub fn body_too_large(max_bytes: usize) -> Self {
        let detail = format!("the body must be at most {max_bytes} bytes after decompression");
        let problem = Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail);
        problem.with_member("max_bytes", max_bytes.into())
    }

    pub fn batch_too_large(received: usize) -> Self {
        let detail = format!("a batch can have at most {MAX_EVENTS} events; send several batches");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "batch_too_large", detail)
            .with_member("max_events", MAX_EVENTS.into())
            .with_member("received", received.into())
    }

    pub fn too_many_accounts(received: usize) -> Self {
        let detail = format!("a batch can have at most {MAX_ACCOUNTS} accounts; send several batches");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "batch_too_large", detail)
            .with_member("max_accounts", MAX_ACCOUNTS.into())
            .with_member("received", received.into())
    }

    pub fn unsupported(code: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, code, detail)
    }

    pub fn body_too_slow() -> Self {
        let problem =
            Self::new(StatusCode::REQUEST_TIMEOUT, "body_too_slow", "the body took too long to arrive");
        problem.with_header(header::CONNECTION, HeaderValue::from_static("close"))
    }

    pub fn too_many_connections() -> Self {
        let detail = "this address has too many open connections; close some and try again";
        let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_connections", detail);
        let problem = problem.with_header(header::CONNECTION, HeaderValue::from_static("close"));
        problem.retry_after(BUSY_SECONDS)
    }

    /// An error while the body was being read.
    pub fn of_body(error: &axum::Error) -> Self {
        if is_too_slow(error) {
            return Self::body_too_slow();
        }
        Self::bad_request("broken_body", "the body ended before it was complete")
    }

    pub fn too_many_requests(retry_after: u64) -> Self {
        let detail = "rate limit exceeded; wait for the number of seconds in Retry-After";
        Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", detail).retry_after(retry_after)
    }

    /// The request ran out of time. Its change may or may not have been made.
    pub fn timed_out() -> Self {
        let detail = "the request took too long; its change may or may not have been made";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "timed_out", detail).retry_after(BUSY_SECONDS)
    }

    /// The service cannot do its work at the moment. For load balancers and other health checks.
    pub fn not_ready(detail: &'static str) -> Self {
        Self::unavailable("not_ready", detail, AWAY_SECONDS)
    }

    /// A change to something that isn't in any of the versions that `If-Match` names.
    pub fn stale(current: &Etag) -> Self {
        let detail = "the version in If-Match is not the current one, so nothing was changed; read it again";
        Self::new(StatusCode::PRECONDITION_FAILED, "precondition_failed", detail)
            .with_member("current_etag", current.as_str().into())
            .with_header(header::ETAG, current.to_header())
    }

    /// A repeat while the first request with the same key is being handled.
    pub fn in_progress() -> Self {
        let detail = "a request with this Idempotency-Key is still being handled; try again shortly";
        Self::new(StatusCode::CONFLICT, "request_in_progress", detail).retry_after(BUSY_SECONDS)
    }

    /// A repeat of a request whose response was too large to keep.
    pub fn response_not_kept() -> Self {
        let detail = "this request was already done, and nothing was done again; its response was not kept";
        Self::new(StatusCode::CONFLICT, "response_not_kept", detail)
    }

    pub fn key_reused() -> Self {
        let detail = "this Idempotency-Key was used for a different request; nothing was done";
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "idempotency_key_reused", detail)
    }

    /// An internal error. The response has no details; the log has them under the request's id.
    pub fn internal(fault: impl Into<String>) -> Self {
        let detail = "unexpected error; look for this response's X-Request-Id in the server log";
        let mut problem = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", detail);
        problem.0.fault = Some(Fault(fault.into()));
        problem
    }

    fn unavailable(code: &'static str, detail: &'static str, retry_after: u64) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, detail).retry_after(retry_after)
    }

    /// The response to an error of a use case, for a caller with this credential. If their role isn't enough, the audit
    /// log records it.
    pub fn for_caller(error: Error, scheme: Scheme, by: Presented, origin: Origin) -> Self {
        let lacks_role = error.is_lack_of_role();
        let mut problem = Self::of(error, scheme);
        if lacks_role {
            problem.0.refused = Some(Refused { by, origin, reason: problem.detail().to_owned() });
        }
        problem
    }

    /// The response to an error of a use case, for a caller who authenticates with `scheme`.
    pub fn of(error: Error, scheme: Scheme) -> Self {
        match error {
            Error::Unauthenticated => Self::unauthenticated(scheme),
            Error::Forbidden { code, detail } => Self::new(StatusCode::FORBIDDEN, code, detail),
            Error::NotFound(what) => Self::not_found(what),
            Error::Conflict { code, detail } => Self::new(StatusCode::CONFLICT, code, detail),
            Error::TooMany { code, detail, seconds } => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, code, detail).retry_after(seconds)
            }
            Error::Invalid(invalid) => invalid.into(),
            Error::Busy => Self::unavailable(
                "busy",
                "the service is busy and nothing was saved; try again shortly",
                BUSY_SECONDS,
            ),
            Error::OutcomeUnknown => {
                let detail =
                    "the database connection was lost during the commit; the change may or may not be saved";
                Self::unavailable("outcome_unknown", detail, BUSY_SECONDS)
            }
            Error::Unavailable(fault) => {
                let mut problem = Self::unavailable(
                    "unavailable",
                    "the database is unavailable and nothing was saved; try again later",
                    AWAY_SECONDS,
                );
                problem.0.fault = Some(Fault(fault));
                problem
            }
            Error::Closed => Self::unavailable(
                "stopping",
                "the service is shutting down and nothing was saved",
                AWAY_SECONDS,
            ),
            Error::Internal(fault) => Self::internal(fault),
            Error::Store(error) => Self::internal(error.to_string()),
        }
    }

    #[must_use]
    pub fn with_errors(mut self, errors: Vec<FieldError>) -> Self {
        self.0.errors = errors;
        self
    }

    #[must_use]
    pub fn with_member(mut self, name: &'static str, value: Value) -> Self {
        self.0.more.push((name, value));
        self
    }

    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.push((name, value));
        self
    }

    fn retry_after(self, seconds: u64) -> Self {
        self.with_header(header::RETRY_AFTER, HeaderValue::from(seconds))
    }
}

impl From<Invalid> for Problem {
    fn from(invalid: Invalid) -> Self {
        let problem =
            Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", "some fields are invalid; see `errors`");
        problem.with_errors(invalid.0)
    }
}

/// The title depends only on the status; the code is more specific.
fn title(status: StatusCode) -> &'static str {
    match status {
        StatusCode::BAD_REQUEST => "Bad request",
        StatusCode::UNAUTHORIZED => "Not authenticated",
        StatusCode::FORBIDDEN => "Not allowed",
        StatusCode::CONFLICT => "Conflict",
        StatusCode::PRECONDITION_FAILED => "Precondition failed",
        StatusCode::PAYLOAD_TOO_LARGE => "Too large",
        StatusCode::UNPROCESSABLE_ENTITY => "Invalid fields",
        other => other.canonical_reason().unwrap_or("Error"),
    }
}

impl serde::Serialize for Problem {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Parts { status, code, detail, errors, more, .. } = &*self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", &format_args!("{TYPE_PREFIX}{code}"))?;
        map.serialize_entry("title", title(*status))?;
        map.serialize_entry("status", &status.as_u16())?;
        map.serialize_entry("detail", detail)?;
        map.serialize_entry("code", code)?;
        if !errors.is_empty() {
            map.serialize_entry("errors", errors)?;
        }
        for (name, value) in more {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl PartialSchema for Problem {
    fn schema() -> RefOr<Schema> {
        let text = || ObjectBuilder::new().schema_type(Type::String);
        let number =
            |description| ObjectBuilder::new().schema_type(Type::Integer).description(Some(description));
        let list = |items: Ref, description| ArrayBuilder::new().items(items).description(Some(description));
        let code =
            text().enum_values(Some(Self::codes())).description(Some("A stable identifier for programs."));
        let errors = list(
            Ref::from_schema_name(FieldError::name()),
            "All invalid fields or parameters, if there are any.",
        );
        let rejected = list(
            Ref::from_schema_name(Rejection::name()),
            "`all_rejected`, `batch_refused`: the invalid events.",
        );
        let unmatched = ArrayBuilder::new().items(ObjectBuilder::new().schema_type(Type::Object)).description(Some(
            "`batch_refused`: the events that match no account, as sent, plus `index` unless they have one. \
             `all_rejected`: empty.",
        ));
        let unmatched_indexes = ArrayBuilder::new()
            .items(ObjectBuilder::new().schema_type(Type::Integer))
            .description(Some("`batch_refused`: the indexes of `unmatched` in the request."));
        ObjectBuilder::new()
            .description(Some("An error (RFC 9457), sent as `application/problem+json`."))
            .property("type", text().examples([json!("urn:rapport:problem:invalid")]))
            .required("type")
            .property("title", text())
            .required("title")
            .property("status", number("The status of the response.").examples([json!(422)]))
            .required("status")
            .property("detail", text())
            .required("detail")
            .property("code", code.examples([json!("invalid")]))
            .required("code")
            .property("errors", errors)
            .property("max_bytes", number("`body_too_large`: the largest body that is accepted."))
            .property("max_events", number("`batch_too_large`: the largest batch of events that is accepted."))
            .property("max_accounts", number("`batch_too_large`: the largest batch of accounts that is accepted."))
            .property(
                "received",
                number(
                    "`batch_too_large`, `all_rejected`, `batch_refused`: the number of events or accounts in the batch.",
                ),
            )
            .property("current_etag", text().description(Some("`precondition_failed`: the current version.")))
            .property("accepted", number("`all_rejected`, `batch_refused`: always zero."))
            .property("duplicates", number("`all_rejected`, `batch_refused`: always zero."))
            .property("unmatched", unmatched)
            .property("rejected", rejected)
            .property("unmatched_indexes", unmatched_indexes)
            .into()
    }
}

impl ToSchema for Problem {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((FieldError::name().into(), FieldError::schema()));
        schemas.push((Rejection::name().into(), Rejection::schema()));
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> axum::response::Response {
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = Response::new(Body::from(body));
        let Parts { status, code, headers, fault, refused, .. } = *self.0;
        *response.status_mut() = status;
        response.headers_mut().insert(header::CONTENT_TYPE, MEDIA_TYPE);
        // The type is a URN, which nobody can open. This can be.
        if let Ok(help) = HeaderValue::try_from(format!("</api/errors/{code}/>; rel=\"help\"")) {
            response.headers_mut().insert(header::LINK, help);
        }
        response.headers_mut().extend(headers);
        if let Some(fault) = fault {
            response.extensions_mut().insert(fault);
        }
        if let Some(refused) = refused {
            response.extensions_mut().insert(refused);
        }
        response
    }
}

impl Problem {
    pub fn status(&self) -> StatusCode {
        self.0.status
    }

    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    pub fn errors(&self) -> &[FieldError] {
        &self.0.errors
    }

    pub fn code(&self) -> &'static str {
        self.0.code
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(problem: &Problem) -> Value {
        serde_json::to_value(problem).unwrap()
    }

    #[test]
    fn every_error_of_a_use_case_has_its_status() {
        let invalid = || Invalid::one("/name", "required", "is required");
        let table = [
            (Error::Unauthenticated, 401, "unauthenticated"),
            (Error::forbidden("role_required", "no"), 403, "role_required"),
            (Error::NotFound("account"), 404, "not_found"),
            (Error::conflict("code_taken", "taken"), 409, "code_taken"),
            (Error::too_many("too_many_mails", "wait", 60), 429, "too_many_mails"),
            (Error::Invalid(invalid()), 422, "invalid"),
            (Error::Busy, 503, "busy"),
            (Error::OutcomeUnknown, 503, "outcome_unknown"),
            (Error::Unavailable("secret host".to_owned()), 503, "unavailable"),
            (Error::Closed, 503, "stopping"),
            (Error::Internal("secret column".to_owned()), 500, "internal_error"),
            (Error::Store(rapport_store::Error::Fault("secret column".to_owned())), 500, "internal_error"),
        ];
        for (error, status, code) in table {
            let problem = Problem::of(error, Scheme::Token);
            let body = shown(&problem);
            assert_eq!((problem.status().as_u16(), problem.code()), (status, code));
            assert_eq!(body["status"], json!(status));
            assert_eq!(body["type"], json!(format!("urn:rapport:problem:{code}")));
            assert!(body["title"].is_string() && body["detail"].is_string(), "{body}");
            assert!(!body.to_string().contains("secret"), "internal details must not leak: {body}");
            let response = problem.into_response();
            assert_eq!(response.headers()["content-type"], "application/problem+json");
            assert_eq!(response.headers()["link"], format!("</api/errors/{code}/>; rel=\"help\""));
            assert_eq!(response.headers().contains_key("retry-after"), [429, 503].contains(&status));
            assert_eq!(response.headers().contains_key("www-authenticate"), status == 401);
        }
    }

    #[test]
    fn the_challenge_names_the_header_to_send() {
        let challenge = |scheme| {
            let response = Problem::unauthenticated(scheme).into_response();
            response.headers()["www-authenticate"].to_str().unwrap().to_owned()
        };
        assert_eq!(challenge(Scheme::Token), r#"Bearer realm="rapport""#);
        assert_eq!(challenge(Scheme::IngestKey), r#"X-Service-Ingest-Key realm="rapport""#);
    }

    #[test]
    fn field_errors_and_extra_members_are_in_the_body() {
        let body = shown(&Invalid::one("/a", "required", "is required").into());
        assert_eq!(body["errors"], json!([{"pointer": "/a", "code": "required", "detail": "is required"}]));
        let body = shown(&Problem::batch_too_large(101));
        assert_eq!((&body["max_events"], &body["received"]), (&json!(100), &json!(101)));
        assert!(body.get("errors").is_none());
    }

    #[test]
    fn a_fault_is_only_logged() {
        let mut response = Problem::internal("disk gone").into_response();
        let fault = response.extensions_mut().remove::<Fault>().unwrap();
        assert_eq!(fault.0, "disk gone");
    }
}

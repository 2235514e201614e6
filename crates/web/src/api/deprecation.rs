//! Operations that will be removed: the table, the headers that their responses carry, and how the OpenAPI document marks
//! them. docs/versioning.md is the policy.
//!
//! To deprecate an operation, add a row. Nothing else has to be done.

use std::fmt::Write as _;

use axum::http::HeaderMap;
use axum::http::header::{HeaderName, HeaderValue, LINK};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::fmt::rfc2822::DateTimePrinter;
use jiff::tz::TimeZone;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::{Deprecated, OpenApi};

const DEPRECATION: HeaderName = HeaderName::from_static("deprecation");
const SUNSET: HeaderName = HeaderName::from_static("sunset");

/// An operation that will be removed.
#[derive(Debug, Clone, Copy)]
pub struct Deprecation {
    /// `GET`, `POST` and so on.
    pub method: &'static str,
    /// The path as the OpenAPI document has it.
    pub path: &'static str,
    /// The day of the release that deprecated it.
    pub since: Date,
    /// It isn't removed before this day, which is at least a year later.
    pub sunset: Date,
    /// What to use instead, as a sentence.
    pub instead: &'static str,
}

/// All operations that are deprecated. None is at the moment.
pub const DEPRECATED: &[Deprecation] = &[];

/// Tells the callers of a deprecated operation: `Deprecation` (RFC 9745), `Sunset` (RFC 8594), and where it is described.
pub fn announce(table: &[Deprecation], method: &str, path: &str, headers: &mut HeaderMap) {
    let Some(found) = table.iter().find(|row| row.method == method && row.path == path) else { return };
    let since = midnight(found.since);
    headers.insert(DEPRECATION, text(format!("@{}", since.as_second())));
    let sunset = DateTimePrinter::new().timestamp_to_rfc9110_string(&midnight(found.sunset));
    headers.insert(SUNSET, text(sunset.expect("a year that HTTP can express")));
    headers.append(LINK, HeaderValue::from_static("</api/docs/>; rel=\"deprecation\"; type=\"text/html\""));
}

fn midnight(day: Date) -> Timestamp {
    day.to_zoned(TimeZone::UTC).expect("a day of our time").timestamp()
}

fn text(value: String) -> HeaderValue {
    HeaderValue::try_from(value).expect("plain ASCII")
}

/// Marks the operations in the document, and says in their descriptions until when they work and what to use instead.
///
/// # Panics
///
/// If a row names an operation that doesn't exist.
pub fn mark(table: &[Deprecation], document: &mut OpenApi) {
    for row in table {
        let item = document.paths.paths.get_mut(row.path);
        let operation = item.and_then(|item| operation_of(item, row.method));
        let operation =
            operation.unwrap_or_else(|| panic!("there is no {} {} to deprecate", row.method, row.path));
        operation.deprecated = Some(Deprecated::True);
        let mut description = operation.description.take().unwrap_or_default();
        if !description.is_empty() {
            description.push_str("\n\n");
        }
        let Deprecation { since, sunset, instead, .. } = row;
        let _ = write!(description, "Deprecated since {since}; works at least until {sunset}. {instead}");
        operation.description = Some(description);
    }
}

fn operation_of<'a>(item: &'a mut PathItem, method: &str) -> Option<&'a mut Operation> {
    match method {
        "GET" => item.get.as_mut(),
        "POST" => item.post.as_mut(),
        "PATCH" => item.patch.as_mut(),
        "PUT" => item.put.as_mut(),
        "DELETE" => item.delete.as_mut(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use serde_json::json;

    use super::*;
    use crate::api::openapi;

    /// How long an operation works after the release that deprecated it.
    const MIN_DAYS: i32 = 365;

    const EXAMPLE: [Deprecation; 1] = [Deprecation {
        method: "GET",
        path: "/api/accounts/{id}/history/",
        since: date(2027, 1, 31),
        sunset: date(2028, 1, 31),
        instead: "Use the timeline.",
    }];

    fn announced(table: &[Deprecation], method: &str, path: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        announce(table, method, path, &mut headers);
        headers
    }

    #[test]
    fn callers_are_told_when_it_was_deprecated_and_when_it_ends() {
        let headers = announced(&EXAMPLE, "GET", "/api/accounts/{id}/history/");
        assert_eq!(headers["deprecation"], "@1801353600");
        assert_eq!(headers["sunset"], "Mon, 31 Jan 2028 00:00:00 GMT");
        assert_eq!(headers["link"], "</api/docs/>; rel=\"deprecation\"; type=\"text/html\"");
        assert!(announced(&EXAMPLE, "POST", "/api/accounts/{id}/history/").is_empty(), "another method");
        assert!(announced(&EXAMPLE, "GET", "/api/accounts/{id}/").is_empty(), "another path");
    }

    #[test]
    fn the_link_of_a_problem_stays() {
        let mut headers = HeaderMap::new();
        headers.insert(LINK, HeaderValue::from_static("</api/errors/not_found/>; rel=\"help\""));
        announce(&EXAMPLE, "GET", "/api/accounts/{id}/history/", &mut headers);
        assert_eq!(headers.get_all(LINK).iter().count(), 2);
    }

    #[test]
    fn the_document_marks_it_and_nothing_else() {
        let before = serde_json::to_value(openapi::document()).unwrap();
        let mut document = openapi::document();
        mark(&EXAMPLE, &mut document);
        let mut after = serde_json::to_value(document).unwrap();
        let operation = &mut after["paths"]["/api/accounts/{id}/history/"]["get"];
        assert_eq!(operation["deprecated"], json!(true));
        let description = operation["description"].as_str().unwrap();
        let added = "Deprecated since 2027-01-31; works at least until 2028-01-31. Use the timeline.";
        assert!(description.ends_with(added), "{description}");
        *operation = before["paths"]["/api/accounts/{id}/history/"]["get"].clone();
        assert_eq!(after, before);
    }

    #[test]
    #[should_panic(expected = "there is no DELETE /api/nothing/ to deprecate")]
    fn a_row_must_name_an_operation() {
        let row = Deprecation { method: "DELETE", path: "/api/nothing/", ..EXAMPLE[0] };
        mark(&[row], &mut openapi::document());
    }

    #[test]
    fn every_row_keeps_the_promise_and_is_marked() {
        // Making the document marks the rows, and panics if one names nothing.
        let document = serde_json::to_value(openapi::document()).unwrap();
        let marked = document.to_string().matches("\"deprecated\":true").count();
        assert_eq!(marked, DEPRECATED.len());
        for row in DEPRECATED.iter().chain(&EXAMPLE) {
            let days = row.since.until(row.sunset).unwrap().get_days();
            assert!(days >= MIN_DAYS, "{} {} ends after {days} days", row.method, row.path);
            assert!(row.instead.ends_with('.'), "{}", row.instead);
            assert_eq!(announced(&[*row], row.method, row.path).len(), 3);
        }
    }
}

//! Receivers that answer properly, with every class of status and with many forms of `Retry-After`.

use super::table::{Record, Row, Then};

const DAY_SECONDS: i64 = 24 * 3600;

pub fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> = CODES.iter().map(|&(name, words, then)| code(name, words, then)).collect();
    rows.extend(redirects());
    rows.extend(waits());
    rows
}

/// The status line as sent, its name in the record, and what follows.
const CODES: &[(&str, &str, Then)] = &[
    ("200 OK", "", Then::Succeeded),
    ("201 Created", "", Then::Succeeded),
    ("202 Accepted", "", Then::Succeeded),
    ("203 Non-Authoritative", "", Then::Succeeded),
    ("204 No Content", "", Then::Succeeded),
    ("205 Reset Content", "", Then::Succeeded),
    ("206 Partial Content", "", Then::Succeeded),
    ("226 IM Used", "", Then::Succeeded),
    ("299 Whatever", "", Then::Succeeded),
    ("300 Choices", "Multiple Choices", Then::Retried),
    ("304 Not Modified", "Not Modified", Then::Retried),
    ("400 Bad", "Bad Request", Then::Retried),
    ("401 Unauthorized", "Unauthorized", Then::Failed),
    ("402 Pay", "Payment Required", Then::Retried),
    ("403 No", "Forbidden", Then::Retried),
    ("404 Not Found", "Not Found", Then::Failed),
    ("405 No", "Method Not Allowed", Then::Retried),
    ("408 Slow", "Request Timeout", Then::Retried),
    ("409 Conflict", "Conflict", Then::Retried),
    ("410 Gone", "Gone", Then::Failed),
    ("413 Large", "Payload Too Large", Then::Retried),
    ("418 Teapot", "I'm a teapot", Then::Retried),
    ("421 Elsewhere", "Misdirected Request", Then::Retried),
    ("422 No", "Unprocessable Entity", Then::Retried),
    ("425 Early", "Too Early", Then::Retried),
    ("429 Slowly", "Too Many Requests", Then::Retried),
    ("451 No", "Unavailable For Legal Reasons", Then::Retried),
    ("499 Odd", "unknown status", Then::Retried),
    ("500 Oops", "Internal Server Error", Then::Retried),
    ("501 No", "Not Implemented", Then::Retried),
    ("502 Gateway", "Bad Gateway", Then::Retried),
    ("503 Later", "Service Unavailable", Then::Retried),
    ("504 Gateway", "Gateway Timeout", Then::Retried),
    ("511 Log in", "Network Authentication Required", Then::Retried),
    ("599 Odd", "unknown status", Then::Retried),
    ("600 Odd", "unknown status", Then::Retried),
    ("999 Odd", "unknown status", Then::Retried),
];

fn code(status: &'static str, words: &str, then: Then) -> Row {
    let code: i64 = status[..3].parse().expect("a code");
    let record =
        if then == Then::Succeeded { Record::success(code) } else { Record::answered(code, words, then) };
    Row::says(status, &format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n"), record)
}

/// Redirects aren't followed, wherever they lead.
fn redirects() -> Vec<Row> {
    let redirect = |name, code, words, location: &str| {
        let response = format!("HTTP/1.1 {code} Moved\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
        Row::says(name, &response, Record::answered(code, words, Then::Retried))
    };
    vec![
        redirect("301 to a private address", 301, "Moved Permanently", "https://10.0.0.1/"),
        redirect("302 to cloud metadata", 302, "Found", "http://169.254.169.254/latest/meta-data/"),
        redirect("303 to a file", 303, "See Other", "file:///etc/passwd"),
        redirect("307 to itself", 307, "Temporary Redirect", "/hook"),
        redirect("308 to nowhere", 308, "Permanent Redirect", ""),
    ]
}

fn waits() -> Vec<Row> {
    let wait = |name, code, words, retry_after: &str, then| {
        let response =
            format!("HTTP/1.1 {code} Later\r\nretry-after: {retry_after}\r\ncontent-length: 0\r\n\r\n");
        Row::says(name, &response, Record::answered(code, words, then))
    };
    let slowly = |name, retry_after, then| wait(name, 429, "Too Many Requests", retry_after, then);
    vec![
        slowly("429 for 120 s", "120", Then::RetriedAfter(120)),
        slowly("429 for less than the schedule", "1", Then::Retried),
        slowly("429 for a year", "31536000", Then::RetriedAfter(DAY_SECONDS)),
        slowly("429 past all numbers", "99999999999999999999999", Then::RetriedAfter(DAY_SECONDS)),
        slowly("429 until 2100", "Fri, 31 Dec 2100 23:59:59 GMT", Then::RetriedAfter(DAY_SECONDS)),
        slowly("429 until 1999", "Fri, 31 Dec 1999 23:59:59 GMT", Then::Retried),
        slowly("429 for a negative time", "-120", Then::Retried),
        slowly("429 for a fraction", "120.5", Then::Retried),
        slowly("429 until soon", "soon", Then::Retried),
        slowly("429 for nothing at all", "", Then::Retried),
        slowly("429 with two waits", "120\r\nretry-after: 600", Then::RetriedAfter(120)),
        wait("503 for 120 s", 503, "Service Unavailable", "120", Then::RetriedAfter(120)),
        wait("500 for 120 s", 500, "Internal Server Error", "120", Then::Retried),
        wait("302 for 120 s", 302, "Found", "120", Then::Retried),
    ]
}

//! Receivers with a good status and a bad body. The code is kept; the delivery is retried.

use std::time::Duration;

use rapport_testkit::Step;

use super::table::{Record, Row, Then};

const CLOSED: &str = "the receiver closed the connection";
const NOT_HTTP: &str = "its body isn't valid HTTP/1.1";
const BAD_HEAD: &str = "the response isn't valid HTTP/1.1";
const NOT_TLS: &str = "the receiver sent something other than TLS; check the URL's host and port";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

pub fn rows() -> Vec<Row> {
    [lengths(), broken(), chunks(), slow()].into_iter().flatten().collect()
}

fn lengths() -> Vec<Row> {
    let with = |headers: &str, body: &str| format!("HTTP/1.1 200 OK\r\n{headers}\r\n\r\n{body}");
    vec![
        Row::says(
            "is shorter than it says",
            &with("content-length: 100", "half"),
            Record::broken_off(200, CLOSED),
        ),
        Row::says(
            "is longer than it says",
            &with("content-length: 4", &"x".repeat(500)),
            Record::success(200),
        ),
        Row::says("has a negative length", &with("content-length: -1", ""), Record::protocol(BAD_HEAD)),
        Row::says("has a length of letters", &with("content-length: many", ""), Record::protocol(BAD_HEAD)),
        Row::says(
            "has two lengths",
            &with("content-length: 1\r\ncontent-length: 2", "xy"),
            Record::protocol(BAD_HEAD),
        ),
        Row::says(
            "has the same length twice",
            &with("content-length: 2\r\ncontent-length: 2", "ok"),
            Record::success(200),
        ),
        Row::says(
            "has a length past all numbers",
            &with("content-length: 99999999999999999999999", ""),
            Record::protocol(BAD_HEAD),
        ),
        Row::trusted(
            "has a length of an exbibyte",
            vec![
                Step::ReadRequest,
                Step::send(&with("content-length: 1152921504606846976", "")),
                Step::Flood(vec![b'x'; 1000]),
            ],
            Record::success(200),
        ),
        Row::says(
            "has a length and chunks",
            &with("content-length: 3\r\ntransfer-encoding: chunked", "2\r\nok\r\n0\r\n\r\n"),
            Record::success(200),
        ),
        Row::says(
            "has an unknown transfer encoding",
            &with("transfer-encoding: banana", "ok"),
            Record::success(200),
        ),
        Row::says("ends with the connection", &with("x: y", "ok"), Record::success(200)),
        Row::says(
            "has a body where none may be",
            "HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\nhello",
            Record::success(204),
        ),
        Row::says(
            "says gzip and lies",
            &with("content-encoding: gzip\r\ncontent-length: 4", "oops"),
            Record::success(200),
        ),
        Row::says("has a body of NULs", &with("content-length: 3", "\0\0\0"), Record::success(200)),
        Row::says(
            "closes the connection as announced",
            &with("connection: close\r\ncontent-length: 2", "ok"),
            Record::success(200),
        ),
    ]
}

fn broken() -> Vec<Row> {
    let half = |status: &str| format!("HTTP/1.1 {status}\r\ncontent-length: 100\r\n\r\nhalf");
    let read_soon = || Step::Pause(Duration::from_millis(300));
    let then = |status: &str, last: Step| vec![Step::ReadRequest, Step::send(&half(status)), last];
    vec![
        Row::trusted(
            "resets within the body",
            // A reset also discards earlier data that wasn't read yet.
            vec![Step::ReadRequest, Step::send(&half("200 OK")), read_soon(), Step::Reset],
            Record::broken_off(200, "the receiver reset the connection"),
        )
        .or(Record::protocol("the receiver reset the connection before it answered")),
        Row::trusted("cuts within the body", then("200 OK", Step::Cut), Record::broken_off(200, CLOSED)),
        Row::trusted("cuts within a 404", then("404 Not Found", Step::Cut), Record::broken_off(404, CLOSED)),
        Row::trusted("cuts within a 410", then("410 Gone", Step::Cut), Record::broken_off(410, CLOSED)),
        Row::trusted("cuts within a 500", then("500 Oops", Step::Cut), Record::broken_off(500, CLOSED)),
        Row::trusted(
            "cuts within a 503 that asks to wait",
            then("503 Later\r\nretry-after: 120", Step::Cut),
            Record { then: Then::RetriedAfter(120), ..Record::broken_off(503, CLOSED) },
        ),
        Row::trusted(
            "ends with the connection, without a goodbye",
            vec![Step::ReadRequest, Step::send("HTTP/1.1 200 OK\r\n\r\nok"), Step::Cut],
            Record::broken_off(200, CLOSED),
        ),
        Row::trusted(
            "leaves TLS within the body",
            vec![
                Step::ReadRequest,
                Step::send(&half("200 OK")),
                read_soon(),
                Step::Underneath(b"HTTP/1.1 200 OK\r\n\r\n".to_vec()),
            ],
            Record::broken_off(200, NOT_TLS),
        )
        .or(Record::tls(NOT_TLS)),
    ]
}

fn chunks() -> Vec<Row> {
    let chunks = |name, body: &str| {
        let response = format!("{CHUNKED}{body}");
        Row::says(name, &response, Record::broken_off(200, NOT_HTTP))
    };
    let flood = |name, beginning: &str, over_and_over: &str, record| {
        let beginning = Step::send(&format!("{CHUNKED}{beginning}"));
        Row::trusted(
            name,
            vec![Step::ReadRequest, beginning, Step::Flood(over_and_over.as_bytes().to_vec())],
            record,
        )
    };
    vec![
        chunks("has a chunk without a size", "zz\r\nok\r\n0\r\n\r\n"),
        chunks("has a chunk past all sizes", "fffffffffffffffff\r\nok"),
        chunks("has a chunk longer than its size", "1\r\nok\r\n0\r\n\r\n"),
        Row::says("closes within a chunk", &format!("{CHUNKED}5\r\nok"), Record::broken_off(200, CLOSED)),
        Row::says(
            "closes before the last chunk",
            &format!("{CHUNKED}2\r\nok\r\n"),
            Record::broken_off(200, CLOSED),
        ),
        flood("has chunks without end", "", "1\r\nx\r\n", Record::success(200)),
        flood("has a chunk extension without end", "2;", "extension", Record::broken_off(200, NOT_HTTP)),
        flood("has trailers without end", "2\r\nok\r\n0\r\n", "x: y\r\n", Record::broken_off(200, NOT_HTTP)),
    ]
}

fn slow() -> Vec<Row> {
    let response = |status: &str| format!("HTTP/1.1 {status}\r\ncontent-length: 10000\r\n\r\n");
    let drip = |status: &str| {
        let every = Duration::from_millis(50);
        vec![
            Step::ReadRequest,
            Step::send(&response(status)),
            Step::Drip { bytes: vec![b'.'; 10_000], every },
        ]
    };
    vec![
        Row::trusted("drips its body", drip("200 OK"), Record::unfinished(200)),
        Row::trusted("drips the body of a 404", drip("404 Not Found"), Record::unfinished(404)),
        Row::trusted(
            "stops within the body",
            vec![Step::ReadRequest, Step::send(&response("200 OK")), Step::Hold],
            Record::unfinished(200),
        ),
        Row::trusted(
            "stops within a chunk",
            vec![Step::ReadRequest, Step::send(&format!("{CHUNKED}5\r\nok")), Step::Hold],
            Record::unfinished(200),
        ),
        Row::trusted(
            "keeps open what should end with the connection",
            vec![Step::ReadRequest, Step::send("HTTP/1.1 200 OK\r\n\r\nok"), Step::Hold],
            Record::unfinished(200),
        ),
    ]
}

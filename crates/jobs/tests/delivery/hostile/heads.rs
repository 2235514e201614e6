//! Receivers that fail between the request and the end of the response's headers.

use std::time::Duration;

use rapport_testkit::Step;

use super::table::{Record, Row, Then};

const NO_RESPONSE: &str = "no response within 3 s";
const CLOSED: &str = "the receiver closed the connection before it answered";
const NOT_HTTP: &str = "the response isn't valid HTTP/1.1";
const BAD_STATUS: &str = "the response's status line is invalid";
const TOO_LARGE: &str = "the response's headers are too large (at most 100 of them, and 64 KiB)";
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const CONTINUE: &str = "HTTP/1.1 100 Continue\r\n\r\n";

pub fn rows() -> Vec<Row> {
    [nothing(), endless(), not_http(), informational()].into_iter().flatten().collect()
}

fn answering(mut steps: Vec<Step>) -> Vec<Step> {
    steps.insert(0, Step::ReadRequest);
    steps
}

fn nothing() -> Vec<Row> {
    let half = "HTTP/1.1 200 OK\r\ncontent-le";
    vec![
        Row::trusted("closes instead of answering", answering(Vec::new()), Record::protocol(CLOSED)),
        Row::trusted("cuts the connection instead", answering(vec![Step::Cut]), Record::protocol(CLOSED)),
        Row::trusted(
            "resets instead of answering",
            answering(vec![Step::Reset]),
            Record::protocol("the receiver reset the connection before it answered"),
        ),
        Row::trusted("closes without reading", Vec::new(), Record::protocol(CLOSED)),
        Row::trusted("never reads the request", vec![Step::Ignore], Record::timeout(NO_RESPONSE)),
        Row::trusted("never answers", answering(vec![Step::Hold]), Record::timeout(NO_RESPONSE)),
        Row::trusted(
            "says half a status line",
            answering(vec![Step::send("HTTP/1.1 20"), Step::Hold]),
            Record::timeout(NO_RESPONSE),
        ),
        Row::trusted(
            "says half a header",
            answering(vec![Step::send(half), Step::Hold]),
            Record::timeout(NO_RESPONSE),
        ),
        Row::says("closes within a header", half, Record::protocol(CLOSED)),
        Row::trusted(
            "answers before it has read the request",
            vec![Step::Read(1), Step::send(OK), Step::Hold],
            Record::success(200),
        ),
    ]
}

fn endless() -> Vec<Row> {
    let status = || Step::send("HTTP/1.1 200 OK\r\n");
    let line = |bytes: usize| format!("x-filler: {}\r\n", "y".repeat(bytes));
    let many = |count: usize| format!("HTTP/1.1 200 OK\r\n{}\r\n", "x-filler: y\r\n".repeat(count));
    let drip = |text: &str, millis| {
        vec![
            Step::ReadRequest,
            Step::Drip { bytes: text.as_bytes().to_vec(), every: Duration::from_millis(millis) },
        ]
    };
    vec![
        Row::trusted("drips its headers", drip(&many(50), 100), Record::timeout(NO_RESPONSE)),
        Row::trusted("drips a short response", drip(OK, 1), Record::success(200)),
        Row::trusted(
            "has headers without end",
            answering(vec![status(), Step::Flood(line(1000).into_bytes())]),
            Record::protocol(TOO_LARGE),
        ),
        Row::trusted(
            "has a header line without end",
            answering(vec![status(), Step::send("x-filler: "), Step::Flood(vec![b'y'; 1000])]),
            Record::protocol(TOO_LARGE),
        ),
        Row::trusted(
            "has a status line without end",
            answering(vec![Step::send("HTTP/1.1 200 "), Step::Flood(vec![b'O'; 1000])]),
            Record::protocol(TOO_LARGE),
        ),
        Row::says(
            "has a header of 200 KiB",
            &format!("HTTP/1.1 200 OK\r\n{}content-length: 0\r\n\r\n", line(200 << 10)),
            Record::protocol(TOO_LARGE),
        ),
        Row::says("has 200 headers", &many(200), Record::protocol(TOO_LARGE)),
        Row::says(
            "has a header of 40 KiB",
            &format!("HTTP/1.1 200 OK\r\n{}content-length: 0\r\n\r\n", line(40 << 10)),
            Record::success(200),
        ),
    ]
}

fn not_http() -> Vec<Row> {
    let not_http = |name, response| Row::says(name, response, Record::protocol(NOT_HTTP));
    let bad_status = |name, response| Row::says(name, response, Record::protocol(BAD_STATUS));
    vec![
        not_http("answers in plain text", "hello\r\n\r\n"),
        not_http("answers in HTTP/0.9", "<html>ok</html>\r\n\r\n"),
        Row::trusted(
            "answers in HTTP/2",
            answering(vec![Step::Send(b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64\0\0\0\0\0\0\0\0".to_vec())]),
            Record::protocol(NOT_HTTP),
        ),
        not_http("answers in HTTP/3.7", "HTTP/3.7 200 OK\r\ncontent-length: 0\r\n\r\n"),
        Row::says(
            "answers in HTTP/1.0",
            "HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n",
            Record::success(200),
        ),
        bad_status("has a status of two digits", "HTTP/1.1 20\r\ncontent-length: 0\r\n\r\n"),
        bad_status("has a status of letters", "HTTP/1.1 abc OK\r\ncontent-length: 0\r\n\r\n"),
        bad_status("has the status 000", "HTTP/1.1 000 Nothing\r\ncontent-length: 0\r\n\r\n"),
        bad_status("has the status 099", "HTTP/1.1 099 Low\r\ncontent-length: 0\r\n\r\n"),
        bad_status("has a status of four digits", "HTTP/1.1 2000 OK\r\ncontent-length: 0\r\n\r\n"),
        bad_status("has a negative status", "HTTP/1.1 -20 OK\r\ncontent-length: 0\r\n\r\n"),
        not_http("has a header without a colon", "HTTP/1.1 200 OK\r\nno colon\r\ncontent-length: 0\r\n\r\n"),
        not_http("has a NUL in a header", "HTTP/1.1 200 OK\r\nx: a\0b\r\ncontent-length: 0\r\n\r\n"),
        not_http("has a header without a name", "HTTP/1.1 200 OK\r\n: x\r\ncontent-length: 0\r\n\r\n"),
        Row::says("ends its lines with LF", "HTTP/1.1 200 OK\ncontent-length: 0\n\n", Record::success(200)),
    ]
}

fn informational() -> Vec<Row> {
    vec![
        Row::trusted(
            "says 100 Continue without end",
            answering(vec![Step::Flood(CONTINUE.repeat(100).into_bytes())]),
            Record::timeout(NO_RESPONSE),
        ),
        Row::trusted(
            "says 100 Continue and no more",
            answering(vec![Step::send(CONTINUE), Step::Hold]),
            Record::timeout(NO_RESPONSE),
        ),
        Row::says(
            "says 100, 102 and 103 before 200",
            &format!(
                "{CONTINUE}HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n{OK}"
            ),
            Record::success(200),
        ),
        Row::says(
            "switches protocols",
            "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n\x01\x02",
            Record::answered(101, "Switching Protocols", Then::Retried),
        ),
    ]
}

//! Receivers that behave once and turn hostile on the same connection.

use std::time::Duration;

use rapport_domain::delivery::Failure;
use rapport_jobs::Limits;
use rapport_testkit::{Hostile, Identity, Opening, Step};

use super::table::Record;
use super::{UNHURRIED, then};
use crate::harness::{Options, Sending};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

struct Kept {
    name: &'static str,
    /// What the first connection does after its first response.
    afterwards: Vec<Step>,
    second: Record,
    connections: usize,
}

/// Sends two events to the same receiver. The first is answered; the second finds whatever is left of the
/// connection, or a new one, which answers.
fn run(sending: &Sending, rows: Vec<Kept>) {
    let started: Vec<_> = rows
        .iter()
        .map(|row| {
            let mut first = vec![Step::ReadRequest, Step::send(OK)];
            first.extend(row.afterwards.clone());
            let next = vec![Step::ReadRequest, Step::send(OK), Step::Hold];
            let receiver = Hostile::start_each(Opening::Tls(Identity::Trusted), vec![first, next]);
            let hook = sending.webhook(&receiver.url("/hook"));
            (receiver, hook)
        })
        .collect();
    sending.create_account();
    for (_, hook) in &started {
        sending.wait_for_success(sending.deliveries(hook)[0].id);
    }
    sending.create_account();
    for (row, (receiver, hook)) in rows.iter().zip(&started) {
        let delivery = sending.deliveries(hook).pop().expect("the second delivery");
        let attempt = sending.only_attempt(delivery.id);
        let seen = Record::of(&attempt, then(sending, sending.delivery(delivery.id).state), receiver);
        assert_eq!(seen, row.second, "{}", row.name);
        assert_eq!(receiver.connections(), row.connections, "{}", row.name);
    }
}

#[test]
fn a_kept_connection_that_went_bad_costs_no_attempt() {
    let ok =
        |name, afterwards, connections| Kept { name, afterwards, second: Record::success(200), connections };
    Sending::on_both_with(Options { limits: UNHURRIED, ..Options::default() }, |sending| {
        run(
            sending,
            vec![
                ok("stays as it should", vec![Step::ReadRequest, Step::send(OK), Step::Hold], 1),
                ok("closes after its answer", Vec::new(), 2),
                ok("cuts the connection after its answer", vec![Step::Cut], 2),
                ok("resets after its answer", vec![Step::Reset], 2),
                ok("resets when the next request comes", vec![Step::Read(1), Step::Reset], 2),
                ok("closes when the next request was read", vec![Step::ReadRequest], 2),
                ok(
                    "answers twice",
                    vec![Step::send("HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n"), Step::Hold],
                    2,
                ),
                ok(
                    "says that it grew tired of waiting",
                    vec![Step::send("HTTP/1.1 408 Request Timeout\r\nconnection: close\r\n\r\n")],
                    2,
                ),
                Kept {
                    name: "breaks off its second answer",
                    afterwards: vec![
                        Step::ReadRequest,
                        Step::send("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf"),
                        Step::Cut,
                    ],
                    second: Record::broken_off(200, "the receiver closed the connection"),
                    connections: 1,
                },
            ],
        );
    });
}

#[test]
fn a_kept_connection_that_hangs_is_given_up() {
    let limits = Limits { connect: Duration::from_secs(5), total: Duration::from_secs(5) };
    Sending::on_both_with(Options { limits, ..Options::default() }, |sending| {
        let hangs = |name, afterwards| Kept {
            name,
            afterwards,
            second: Record::nothing(Failure::Timeout, "no response within 5 s"),
            connections: 1,
        };
        run(
            sending,
            vec![
                hangs("never answers the second request", vec![Step::ReadRequest, Step::Hold]),
                hangs("never reads the second request", vec![Step::Ignore]),
            ],
        );
    });
}

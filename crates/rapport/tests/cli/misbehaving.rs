//! Receivers that misbehave cost the service no memory: an endless body, a small gzip body of four gibibytes, a byte
//! now and then, half a header, a reset, and floods of headers, chunks and "100 Continue". Memory is measured as the
//! operating system sees it.

use std::time::Duration;

use rapport_testkit::{Behaviour, Hostile, Identity, Opening, Receiver, Step};
use serde_json::{Value, json};

use crate::program::{Place, Service, wait_until};

const MEBIBYTE: u64 = 1 << 20;
/// Reading one body to its end would take far more.
const MOST_GROWTH: u64 = 64 * MEBIBYTE;
const ACCOUNTS: usize = 60;
/// More than the headers of a response may take.
const ENOUGH_FLOODED: u64 = 64 << 10;
/// Deliveries to each receiver that answers at all, before memory is measured.
const ENOUGH: usize = 25;
const MOST_TRIES: usize = 60;

#[test]
fn memory_stays_flat_whatever_receivers_answer() {
    Place::each(|place| {
        let made =
            place.json(&["company", "create", "acme", "--name", "A", "--owner", "a@acme.test", "--json"]);
        let token = made["api_token"].as_str().unwrap().to_owned();
        let receiver = Receiver::start();
        let authority = receiver.ca_file().to_str().unwrap().to_owned();
        let service = place.serve_with(&["--extra-ca", &authority, "--allow-destination", "127.0.0.0/8"]);
        let behaviours = [
            ("/endless", Behaviour::EndlessBody),
            ("/bomb", Behaviour::GzipBomb),
            ("/slow", Behaviour::SlowBody { byte_every: Duration::from_secs(1) }),
            ("/half", Behaviour::HalfHeader),
            ("/reset", Behaviour::Reset),
        ];
        for (path, behaviour) in behaviours {
            receiver.answer_path(path, behaviour);
            let webhook = json!({ "url": receiver.url(path), "events": ["account.created"] });
            post(&service, &token, "/api/webhooks/", &webhook);
        }
        let floods = floods();
        for flood in &floods {
            let webhook = json!({ "url": flood.url("/flood"), "events": ["account.created"] });
            post(&service, &token, "/api/webhooks/", &webhook);
        }
        let before = service.most_memory();
        for number in 0..ACCOUNTS {
            let account =
                json!({ "project": "acme", "imported_id": format!("crm-{number}"), "name": "Nordlys" });
            post(&service, &token, "/api/accounts/upsert-by-imported-id/", &account);
        }
        let arrived = |path: &str| receiver.requests().iter().filter(|request| request.path == path).count();
        wait_until("the receivers to be tried", || {
            ["/endless", "/bomb"].into_iter().all(|path| arrived(path) >= ENOUGH)
                && ["/slow", "/half", "/reset"].into_iter().all(|path| arrived(path) >= 1)
                && floods.iter().all(|flood| flood.requests() >= 1 && flood.bytes_sent() >= ENOUGH_FLOODED)
        });
        let grown = service.most_memory() - before;
        assert!(grown < MOST_GROWTH, "grew by {} MiB", grown / MEBIBYTE);
        println!("grew by {} MiB over {} requests", grown / MEBIBYTE, receiver.requests().len());
    });
}

/// Receivers that never stop talking once they have begun.
fn floods() -> Vec<Hostile> {
    let floods = [
        ("", "HTTP/1.1 100 Continue\r\n\r\n"),
        ("HTTP/1.1 200 OK\r\n", "x-filler: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n"),
        ("HTTP/1.1 200 OK\r\nx-filler: ", "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "1\r\nx\r\n"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2;", "extension"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n", "x-filler: y\r\n"),
    ];
    let start = |(beginning, over_and_over): (&str, &str)| {
        let flood = Step::Flood(over_and_over.repeat(1_000).into_bytes());
        let steps = vec![Step::ReadRequest, Step::send(beginning), flood];
        Hostile::start(Opening::Tls(Identity::Trusted), steps)
    };
    floods.map(start).into()
}

fn post(service: &Service, token: &str, path: &str, body: &Value) {
    let authorization = format!("Bearer {token}");
    let headers = [("Authorization", authorization.as_str()), ("Content-Type", "application/json")];
    let send = || service.request("POST", path, &headers, &body.to_string());
    // On a loaded machine the service may be busy, and says so.
    let busy = |(status, _): &(u16, String)| *status == 503;
    let (status, answer) = (0..MOST_TRIES).map(|_| send()).find(|answer| !busy(answer)).expect("an answer");
    assert_eq!(status, 201, "{answer}");
}

//! The parts of a request: its headers, its signature, its bytes.

use data_encoding::BASE64;
use rapport_domain::standard_webhook::library_secret;
use rapport_domain::time::Time;
use rapport_testkit::{Behaviour, ReceivedRequest, Receiver};
use ring::hmac;
use serde_json::json;

use crate::harness::{Hook, Options, Sending, payload, wait_for_requests};

/// Verifies like a receiver: HMAC-SHA256 of the raw body, keyed by the secret as it was shown.
fn is_signed_with(request: &ReceivedRequest, secret: &str) -> bool {
    let signature = request.header("X-Service-Signature");
    let hex = signature.strip_prefix("sha256=").expect("the scheme");
    assert!(hex.len() == 64 && hex.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f')), "{signature}");
    let read = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits");
    let tag: Vec<u8> = (0..hex.len()).step_by(2).map(read).collect();
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    hmac::verify(&key, &request.body, &tag).is_ok()
}

/// Verifies like a library of Standard Webhooks: the key is the base64 after `whsec_`, and every signature is tried. Panics
/// unless the timestamp is this time.
fn is_signed_for_libraries(request: &ReceivedRequest, secret: &str, now: Time) -> bool {
    let [id, timestamp, signatures] =
        ["webhook-id", "webhook-timestamp", "webhook-signature"].map(|name| request.header(name));
    assert_eq!(timestamp, (now.as_micros() / 1_000_000).to_string(), "whole seconds");
    let base64 = library_secret(secret);
    let key = BASE64.decode(base64.strip_prefix("whsec_").expect("the prefix").as_bytes()).expect("base64");
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
    let signed = [id.as_bytes(), b".", timestamp.as_bytes(), b".", &request.body].concat();
    signatures.split(' ').any(|signature| {
        let base64 = signature.strip_prefix("v1,").expect("the version");
        hmac::verify(&key, &signed, &BASE64.decode(base64.as_bytes()).expect("base64")).is_ok()
    })
}

#[test]
fn a_request_carries_its_headers_and_a_signature_that_verifies() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        let hook = sending.webhook(&receiver.url("/hooks/crm?tenant=7"));
        let id = sending.send_event(&hook);
        let request = wait_for_requests(&receiver, 1).remove(0);
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/hooks/crm?tenant=7"));
        assert!(hook.secret.starts_with("whs_"), "the key is the secret as shown, prefix included");
        assert!(is_signed_with(&request, &hook.secret));
        assert!(!is_signed_with(&request, hook.secret.trim_start_matches("whs_")));
        assert!(is_signed_for_libraries(&request, &hook.secret, sending.now()));
        assert!(!is_signed_for_libraries(&request, "whs_other", sending.now()));
        assert_eq!(request.header("webhook-id"), payload(&request)["id"], "the event's id");
        assert_eq!(request.header("X-Service-Event"), "account.created");
        assert_eq!(request.header("X-Service-Delivery"), id.to_string());
        assert!(id.to_string().starts_with("dlv_"));
        assert_eq!(request.header("X-Service-Attempt"), "1");
        assert_eq!(request.header("Content-Type"), "application/json");
        assert_eq!(request.header("Content-Length"), request.body.len().to_string());
        assert_eq!(request.header("Host"), receiver.address().to_string());
        assert!(request.header("User-Agent").starts_with("Rapport/"), "{}", request.header("User-Agent"));
        assert!(!request.headers.contains_key("accept-encoding"), "no compressed answer is asked for");
    });
}

#[test]
fn the_payload_names_its_event_and_its_account() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        sending.webhook(&receiver.url("/hook"));
        let imported_id = sending.create_account();
        let created = payload(&wait_for_requests(&receiver, 1)[0]);
        assert!(created["id"].as_str().is_some_and(|id| id.starts_with("evt_")), "{created}");
        assert_eq!(created["type"], "account.created");
        assert_eq!(created["created_at"], sending.now().to_string());
        assert_eq!(created["project"], "acme");
        assert_eq!(created["data"]["account"]["imported_id"], imported_id.as_str());
        assert_eq!(created["data"]["source"], "upsert");
        sending.ingest("trial_started", &[imported_id]);
        let request = wait_for_requests(&receiver, 2).remove(1);
        assert_eq!(request.header("X-Service-Event"), "account.status_changed");
        let moved = payload(&request);
        assert_eq!(
            (&moved["data"]["previous_status"], &moved["data"]["status"]),
            (&json!("prospect"), &json!("in_trial"))
        );
        assert_eq!(moved["data"]["source"], "automation");
        assert_ne!(moved["id"], created["id"]);
    });
}

#[test]
fn retries_and_redeliveries_carry_the_same_bytes_and_ids() {
    Sending::on_both_with(Options::hasty(), |sending| {
        let receiver = Receiver::start();
        receiver.script(vec![Behaviour::Status(500), Behaviour::Stall, Behaviour::Status(200)]);
        let hook = sending.webhook(&receiver.url("/hook"));
        let imported_id = sending.create_account();
        let id = sending.deliveries(&hook)[0].id;
        let mut times = vec![sending.now()];
        for done in 1..=2 {
            sending.wait_for_attempts(id, done);
            sending.move_to_due(id);
            times.push(sending.now());
        }
        sending.wait_for_success(id);
        // The account changes; the frozen event doesn't.
        sending.ingest("became_customer", &[imported_id]);
        wait_for_requests(&receiver, 4);
        sending.clock().advance_days(1);
        times.push(sending.now());
        sending.redeliver(id).expect("a redelivery");
        sending.wait_for_attempts(id, 4);
        let requests: Vec<ReceivedRequest> = receiver
            .requests()
            .into_iter()
            .filter(|request| request.header("X-Service-Event") == "account.created")
            .collect();
        assert_eq!(requests.len(), 4);
        for (number, request) in (1..).zip(&requests) {
            assert_eq!(request.body, requests[0].body, "the bytes of attempt {number}");
            assert_eq!(request.header("X-Service-Delivery"), id.to_string());
            assert_eq!(request.header("X-Service-Attempt"), number.to_string());
            assert_eq!(request.header("X-Service-Signature"), requests[0].header("X-Service-Signature"));
            assert_eq!(request.header("webhook-id"), requests[0].header("webhook-id"));
        }
        for (request, at) in requests.iter().zip(times) {
            assert!(is_signed_for_libraries(request, &hook.secret, at), "each attempt has its own timestamp");
        }
    });
}

#[test]
fn one_event_has_one_id_for_all_webhooks_and_a_delivery_for_each() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        let hooks: Vec<Hook> = (1..=3).map(|n| sending.webhook(&receiver.url(&format!("/{n}")))).collect();
        sending.create_account();
        let requests = wait_for_requests(&receiver, 3);
        for request in &requests {
            assert_eq!(request.body, requests[0].body);
            let hook: usize = request.path[1..].parse().expect("a number");
            assert!(is_signed_with(request, &hooks[hook - 1].secret), "each with its own secret");
        }
        let mut deliveries: Vec<&str> = requests.iter().map(|it| it.header("X-Service-Delivery")).collect();
        deliveries.sort_unstable();
        deliveries.dedup();
        assert_eq!(deliveries.len(), 3);
    });
}

#[test]
fn rotation_signs_the_next_attempt_with_the_new_secret_only() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        receiver.answer(Behaviour::Status(500));
        let hook = sending.webhook(&receiver.url("/hook"));
        let id = sending.send_event(&hook);
        sending.only_attempt(id);
        let rotated = sending.rotate(&hook);
        assert_ne!(rotated.secret, hook.secret);
        let first_at = sending.now();
        sending.move_to_due(id);
        sending.wait_for_attempts(id, 2);
        let requests = receiver.requests();
        assert!(is_signed_with(&requests[0], &hook.secret) && !is_signed_with(&requests[0], &rotated.secret));
        assert!(is_signed_with(&requests[1], &rotated.secret) && !is_signed_with(&requests[1], &hook.secret));
        for (request, at, right, wrong) in [
            (&requests[0], first_at, &hook.secret, &rotated.secret),
            (&requests[1], sending.now(), &rotated.secret, &hook.secret),
        ] {
            assert!(is_signed_for_libraries(request, right, at));
            assert!(!is_signed_for_libraries(request, wrong, at), "the old secret is invalid at once");
            assert!(!request.header("webhook-signature").contains(' '), "one valid secret, one signature");
        }
        assert_eq!(requests[0].body, requests[1].body);
    });
}

#[test]
fn tests_and_attempts_claimed_from_the_database_are_signed_for_libraries_too() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        let hook = sending.webhook(&receiver.url("/hook"));
        sending.disable(&hook);
        // A manual attempt of a test, and one that waits in the database until there is a sender.
        let test = sending.send_test(&hook);
        sending.wait_for_success(test);
        sending.stop();
        sending.redeliver(test).expect("a redelivery");
        sending.start();
        let requests = wait_for_requests(&receiver, 2);
        for request in &requests {
            assert_eq!(request.header("X-Service-Event"), "webhook.test");
            assert_eq!(request.header("webhook-id"), payload(request)["id"]);
            assert!(is_signed_for_libraries(request, &hook.secret, sending.now()));
        }
    });
}

#[test]
fn an_edited_url_is_where_the_next_attempt_goes() {
    Sending::on_both(|sending| {
        let (old, new) = (Receiver::start(), Receiver::start());
        old.answer(Behaviour::Status(500));
        let hook = sending.webhook(&old.url("/hook"));
        let id = sending.send_event(&hook);
        sending.only_attempt(id);
        sending.patch(&hook, json!({ "url": new.url("/moved") }));
        sending.move_to_due(id);
        sending.wait_for_success(id);
        assert_eq!((old.requests().len(), new.requests().len()), (1, 1));
        assert_eq!(new.requests()[0].path, "/moved");
        assert_eq!(new.requests()[0].body, old.requests()[0].body);
    });
}

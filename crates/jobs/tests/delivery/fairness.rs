//! No healthy receiver waits for a bad one. The benchmark measures by how much; these tests show that it
//! holds.

use rapport_testkit::{Behaviour, Receiver, create_webhook};
use serde_json::json;

use crate::harness::{Options, Sending, requests_to, wait_for_requests_to};

const EVENTS: usize = 50;

#[test]
fn a_stalled_receiver_does_not_hold_up_a_healthy_one() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        receiver.answer_path("/stalled", Behaviour::Stall);
        let stalled = sending.webhook(&receiver.url("/stalled"));
        sending.webhook(&receiver.url("/healthy"));
        for _ in 0..EVENTS {
            sending.create_account();
        }
        wait_for_requests_to(&receiver, "/healthy", EVENTS);
        assert_eq!(requests_to(&receiver, "/stalled").len(), 1, "it still holds its first request");
        assert_eq!(sending.streak(&stalled), 0);
        assert_eq!(sending.deliveries(&stalled).len(), EVENTS, "the others wait for it");
    });
}

#[test]
fn many_stalled_receivers_do_not_hold_up_a_healthy_one() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        for number in 0..20 {
            let path = format!("/stalled/{number}");
            receiver.answer_path(&path, Behaviour::Stall);
            sending.webhook(&receiver.url(&path));
        }
        sending.webhook(&receiver.url("/healthy"));
        for _ in 0..10 {
            sending.create_account();
        }
        wait_for_requests_to(&receiver, "/healthy", 10);
        let stalled = receiver.requests().iter().filter(|it| it.path.starts_with("/stalled")).count();
        assert!(stalled <= 20, "each stalled one has one request at most: {stalled} came");
    });
}

/// More than new and failing receivers may have in progress together.
const DEAD: usize = 300;

#[test]
fn a_proven_webhook_and_a_new_one_do_not_wait_for_hundreds_that_hang() {
    Sending::on_both_with(Options { slots: 64, ..Options::default() }, |sending| {
        let receiver = Receiver::start();
        sending.webhook(&receiver.url("/proven"));
        sending.create_account();
        wait_for_requests_to(&receiver, "/proven", 1);
        for number in 0..DEAD {
            let path = format!("/stalled/{number}");
            receiver.answer_path(&path, Behaviour::Stall);
            sending.webhook(&receiver.url(&path));
        }
        for sent in 2..12 {
            sending.create_account();
            wait_for_requests_to(&receiver, "/proven", sent);
        }
        let stalled = receiver.requests().iter().filter(|it| it.path.starts_with("/stalled")).count();
        assert!((8..DEAD).contains(&stalled), "they are bounded: {stalled} hang");
        let fresh = sending.webhook_for(&receiver.url("/fresh"), &["client.contact_due"]);
        sending.send_test(&fresh);
        wait_for_requests_to(&receiver, "/fresh", 1);
        let hanging = requests_to(&receiver, "/stalled/0").len() + requests_to(&receiver, "/stalled/1").len();
        assert!(hanging <= 2, "each has one request at most");
    });
}

#[test]
fn what_a_webhook_has_proved_outlives_a_restart() {
    Sending::on_both_with(Options { slots: 16, ..Options::default() }, |sending| {
        let receiver = Receiver::start();
        sending.webhook(&receiver.url("/proven"));
        sending.create_account();
        wait_for_requests_to(&receiver, "/proven", 1);
        sending.quiet();
        for number in 0..40 {
            let path = format!("/stalled/{number}");
            receiver.answer_path(&path, Behaviour::Stall);
            sending.webhook(&receiver.url(&path));
        }
        sending.restart();
        sending.create_account();
        wait_for_requests_to(&receiver, "/proven", 2);
    });
}

#[test]
fn a_company_with_stalled_receivers_does_not_hold_up_another() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        receiver.answer_path("/stalled", Behaviour::Stall);
        sending.webhook(&receiver.url("/stalled"));
        let globex = sending.test().company("globex");
        let body = json!({ "url": receiver.url("/globex"), "events": ["account.created"] });
        globex.write(create_webhook(globex.app(), &body)).expect("a new webhook");
        for number in 0..10 {
            sending.create_account();
            globex.upsert(json!({ "imported_id": format!("globex-{number}") }));
        }
        wait_for_requests_to(&receiver, "/globex", 10);
        assert_eq!(requests_to(&receiver, "/stalled").len(), 1, "it still holds its first request");
    });
}

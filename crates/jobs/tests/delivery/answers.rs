//! What each response, and each missing response, means for the delivery.

use std::net::Ipv4Addr;

use rapport_domain::delivery::State;
use rapport_jobs::guard::ResolveError;
use rapport_store::delivery::KeptAttempt;
use rapport_testkit::{Behaviour, Receiver};
use serde_json::json;
use tokio::net::TcpSocket;

use crate::harness::{Hook, Options, Sending, eventually, requests_to, seconds};

#[test]
fn any_2xx_is_success() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        let hook = sending.webhook(&receiver.url("/hook"));
        for code in [200, 201, 202, 204, 299] {
            receiver.answer(Behaviour::Status(code));
            let id = sending.send_event(&hook);
            let delivery = sending.wait_for_success(id);
            assert_eq!((delivery.attempts, delivery.response_code), (1, Some(i64::from(code))));
            assert_eq!(delivery.error, None);
            assert_eq!(delivery.finished_at, Some(sending.now()));
            let attempt = sending.only_attempt(id);
            assert!(attempt.succeeded && !attempt.manual, "{attempt:?}");
            assert_eq!(attempt.address, Some(receiver.address().to_string()));
        }
        sending.clock().advance_days(2);
        sending.quiet();
        assert_eq!(receiver.requests().len(), 5, "successful deliveries aren't sent again");
        assert_eq!(receiver.connections(), 1, "one kept connection serves them all");
    });
}

/// Sends an event to a receiver that fails it; returns the attempt's record when the retry is due.
fn fails_and_waits(sending: &Sending, hook: &Hook) -> KeptAttempt {
    let id = sending.send_event(hook);
    let attempt = sending.only_attempt(id);
    assert!(!attempt.succeeded, "{attempt:?}");
    assert_eq!(sending.streak(hook), 1, "it counts as a failure");
    let wait = seconds(sending.now(), sending.due_at(id));
    assert!((5.0..=5.5).contains(&wait), "the first retry is due after {wait} s");
    attempt
}

/// The same; then the retry is made and succeeds.
fn is_retried(sending: &Sending, hook: &Hook, receiver: &Receiver) -> KeptAttempt {
    let attempt = fails_and_waits(sending, hook);
    receiver.answer(Behaviour::Status(200));
    let id = sending.deliveries(hook)[0].id;
    sending.move_to_due(id);
    sending.wait_for_success(id);
    assert_eq!(sending.wait_for_attempts(id, 2)[0], attempt);
    assert_eq!(sending.streak(hook), 0, "a success resets the streak");
    attempt
}

fn a_code_is_retried(code: u16) {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        receiver.answer(Behaviour::Status(code));
        let hook = sending.webhook(&receiver.url("/hook"));
        let attempt = is_retried(sending, &hook, &receiver);
        assert_eq!((attempt.response_code, attempt.failure), (Some(i64::from(code)), None));
        let error = attempt.error.expect("the record has an error");
        assert!(error.starts_with(&code.to_string()), "{error}");
    });
}

#[test]
fn a_500_is_retried() {
    a_code_is_retried(500);
}

#[test]
fn a_503_is_retried() {
    a_code_is_retried(503);
}

#[test]
fn a_429_is_retried() {
    a_code_is_retried(429);
}

#[test]
fn a_400_is_retried() {
    a_code_is_retried(400);
}

#[test]
fn a_403_is_retried() {
    a_code_is_retried(403);
}

#[test]
fn a_redirect_is_a_failure_and_not_followed() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        let hook = sending.webhook(&receiver.url("/hook"));
        let headers = vec![("location".to_owned(), receiver.url("/elsewhere"))];
        receiver.answer_path("/elsewhere", Behaviour::Status(200));
        receiver.answer(Behaviour::StatusWith { code: 307, headers, body: Vec::new() });
        let attempt = is_retried(sending, &hook, &receiver);
        assert_eq!(attempt.response_code, Some(307));
        assert!(requests_to(&receiver, "/elsewhere").is_empty());
    });
}

#[test]
fn a_timeout_is_retried() {
    Sending::on_both_with(Options::hasty(), |sending| {
        let receiver = Receiver::start();
        receiver.answer(Behaviour::Stall);
        let hook = sending.webhook(&receiver.url("/hook"));
        let attempt = is_retried(sending, &hook, &receiver);
        assert_eq!((attempt.response_code, attempt.failure.as_deref()), (None, Some("timeout")));
        assert_eq!(attempt.error.as_deref(), Some("no response within 1 s"));
    });
}

#[test]
fn a_refused_connection_is_retried() {
    // Bound, so that nobody else gets the port, but not listening.
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a free port");
    let closed = socket.local_addr().expect("its address");
    Sending::on_both(|sending| {
        let hook = sending.webhook(&format!("https://{closed}/hook"));
        let attempt = fails_and_waits(sending, &hook);
        assert_eq!((attempt.response_code, attempt.failure.as_deref()), (None, Some("connect")));
        assert_eq!(attempt.address, Some(closed.to_string()), "the record has the dialled address");
        let receiver = Receiver::start();
        sending.patch(&hook, json!({ "url": receiver.url("/hook") }));
        let id = sending.deliveries(&hook)[0].id;
        sending.move_to_due(id);
        sending.wait_for_success(id);
    });
}

#[test]
fn a_tls_failure_is_retried() {
    Sending::on_both(|sending| {
        let untrusted = Receiver::start_untrusted();
        let hook = sending.webhook(&untrusted.url("/hook"));
        let attempt = fails_and_waits(sending, &hook);
        assert_eq!((attempt.response_code, attempt.failure.as_deref()), (None, Some("tls")));
        assert!(untrusted.requests().is_empty(), "nothing is sent to an unverified receiver");
        let receiver = Receiver::start();
        sending.patch(&hook, json!({ "url": receiver.url("/hook") }));
        let id = sending.deliveries(&hook)[0].id;
        sending.move_to_due(id);
        sending.wait_for_success(id);
    });
}

#[test]
fn a_certificate_for_another_name_is_a_tls_failure() {
    let options = Options::default();
    options.names.set("other.test", &["127.0.0.1"]);
    Sending::on_both_with(options, |sending| {
        let receiver = Receiver::start();
        let hook = sending.webhook(&format!("https://other.test:{}/hook", receiver.address().port()));
        let attempt = fails_and_waits(sending, &hook);
        assert_eq!(attempt.failure.as_deref(), Some("tls"));
        assert!(receiver.requests().is_empty());
    });
}

#[test]
fn a_name_that_does_not_resolve_is_retried() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        let hook = sending.webhook(&format!("https://nowhere.test:{}/hook", receiver.address().port()));
        let attempt = fails_and_waits(sending, &hook);
        assert_eq!((attempt.response_code, attempt.failure.as_deref()), (None, Some("dns")));
        assert_eq!((attempt.address, attempt.connect_us), (None, None));
        sending.patch(&hook, json!({ "url": receiver.url("/hook") }));
        let id = sending.deliveries(&hook)[0].id;
        sending.move_to_due(id);
        sending.wait_for_success(id);
    });
}

#[test]
fn a_fault_on_our_side_is_not_charged_to_the_receiver() {
    let options = Options::default();
    let names = options.names.clone();
    Sending::on_both_with(options, |sending| {
        let receiver = Receiver::start();
        let name = format!("{:?}.receiver.test", sending.test().engine()).to_lowercase();
        names.fail(&name, ResolveError::Own("no server answers".to_owned()));
        let hook = sending.webhook(&format!("https://{name}:{}/hook", receiver.address().port()));
        let made_at = sending.now();
        let id = sending.send_event(&hook);
        eventually("a later try", || (sending.due_at(id) > made_at).then_some(()));
        let delivery = sending.delivery(id);
        assert_eq!((delivery.attempts, delivery.scheduled, sending.streak(&hook)), (0, 0, 0));
        names.set(&name, &["127.0.0.1"]);
        // Resolutions are cached for a moment of real time, so keep making the delivery due until then.
        eventually("the name to be resolved anew", || {
            let delivery = sending.delivery(id);
            if let State::Open { next_at } = delivery.state {
                sending.clock().set(sending.now().max(next_at));
            }
            (delivery.state == State::Succeeded).then_some(())
        });
        assert_eq!(sending.only_attempt(id).number, 1, "only the attempt that was made is numbered");
    });
}

fn a_code_fails_at_once(code: u16) {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        receiver.answer(Behaviour::Status(code));
        let hook = sending.webhook(&receiver.url("/hook"));
        let id = sending.send_event(&hook);
        let delivery = sending.wait_for_state(id, State::Failed);
        assert_eq!((delivery.attempts, delivery.response_code), (1, Some(i64::from(code))));
        assert_eq!(delivery.finished_at, Some(sending.now()));
        assert_eq!(sending.streak(&hook), 1, "it still counts as a failure");
        sending.clock().advance_days(2);
        sending.quiet();
        assert_eq!(receiver.requests().len(), 1, "no retry follows");
        assert_eq!(sending.only_attempt(id).response_code, Some(i64::from(code)));
    });
}

#[test]
fn a_404_fails_at_once() {
    a_code_fails_at_once(404);
}

#[test]
fn a_401_fails_at_once() {
    a_code_fails_at_once(401);
}

#[test]
fn a_410_fails_at_once() {
    a_code_fails_at_once(410);
}

//! Receivers that answer badly: the deadline holds, little is read, and the record says what happened.

use std::time::Duration;

use rapport_domain::delivery::{MAX_EXCERPT_BYTES, State};
use rapport_store::delivery::KeptAttempt;
use rapport_testkit::{Behaviour, Receiver};

use crate::harness::{HASTY, Options, Sending};

/// The record of one attempt at a receiver with this behaviour.
fn attempt_at(sending: &Sending, behaviour: &Behaviour) -> KeptAttempt {
    let receiver = Receiver::start();
    receiver.answer(behaviour.clone());
    let hook = sending.webhook(&receiver.url("/hook"));
    let id = sending.send_event(&hook);
    let attempt = sending.only_attempt(id);
    assert_eq!(receiver.requests().len(), 1);
    assert_eq!(attempt.succeeded, sending.delivery(id).state == State::Succeeded);
    assert_eq!(attempt.address, Some(receiver.address().to_string()));
    assert_eq!(attempt.dns_us, None, "an address needs no resolving");
    let (connect, tls) = (attempt.connect_us.expect("it connected"), attempt.tls_us.expect("TLS was set up"));
    assert!(connect > 0 && tls > 0 && attempt.total_us >= connect + tls, "{attempt:?}");
    attempt
}

/// For receivers that answer, however slow the machine is.
fn on_both(behaviour: Behaviour, expected: impl Fn(&KeptAttempt)) {
    Sending::on_both(|sending| expected(&attempt_at(sending, &behaviour)));
}

/// For receivers that never answer.
fn on_both_hastily(behaviour: Behaviour, expected: impl Fn(&KeptAttempt)) {
    Sending::on_both_with(Options::hasty(), |sending| expected(&attempt_at(sending, &behaviour)));
}

fn as_micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).expect("a short time")
}

#[track_caller]
fn assert_deadline_held(attempt: &KeptAttempt, code: Option<i64>) {
    assert_eq!((attempt.failure.as_deref(), attempt.response_code), (Some("timeout"), code));
    // A generous upper limit, because the machine may be busy; the receiver would go on forever.
    let allowed = as_micros(HASTY.total)..as_micros(HASTY.total * 8);
    assert!(allowed.contains(&attempt.total_us), "it took {} µs", attempt.total_us);
}

fn excerpt(attempt: &KeptAttempt) -> &[u8] {
    attempt.excerpt.as_deref().unwrap_or_default()
}

#[test]
fn a_receiver_that_never_answers_is_given_up() {
    on_both_hastily(Behaviour::Stall, |attempt| {
        assert_deadline_held(attempt, None);
        assert_eq!(attempt.error.as_deref(), Some("no response within 1 s"));
        assert_eq!((attempt.first_byte_us, excerpt(attempt)), (None, &b""[..]));
    });
}

#[test]
fn half_a_header_is_no_answer() {
    on_both_hastily(Behaviour::HalfHeader, |attempt| {
        assert_deadline_held(attempt, None);
        assert_eq!(attempt.error.as_deref(), Some("no response within 1 s"));
        assert_eq!((attempt.first_byte_us, excerpt(attempt)), (None, &b""[..]));
    });
}

#[test]
fn a_body_of_one_byte_at_a_time_meets_the_deadline() {
    on_both_hastily(Behaviour::SlowBody { byte_every: Duration::from_millis(50) }, |attempt| {
        assert_deadline_held(attempt, Some(200));
        assert_eq!(attempt.error.as_deref(), Some("the response didn't end within 1 s"));
        assert!(attempt.first_byte_us.is_some());
        let read = excerpt(attempt);
        assert!((1..=20).contains(&read.len()) && read.iter().all(|byte| *byte == b'.'), "{read:?}");
    });
}

#[test]
fn of_an_endless_body_16_kib_are_kept_and_the_cut_is_flagged() {
    on_both(Behaviour::EndlessBody, |attempt| {
        assert!(attempt.succeeded, "the receiver did say 200: {attempt:?}");
        assert_eq!((attempt.response_code, attempt.error.as_deref()), (Some(200), None));
        assert_eq!((excerpt(attempt).len(), attempt.excerpt_cut), (MAX_EXCERPT_BYTES, true));
    });
}

#[test]
fn a_body_of_just_16_kib_is_not_cut() {
    let body = vec![b'x'; MAX_EXCERPT_BYTES];
    let behaviour = Behaviour::StatusWith { code: 200, headers: Vec::new(), body: body.clone() };
    on_both(behaviour, |attempt| {
        assert_eq!((attempt.succeeded, attempt.excerpt_cut), (true, false));
        assert_eq!(excerpt(attempt), body);
    });
}

#[test]
fn a_gzip_bomb_is_not_unpacked() {
    on_both(Behaviour::GzipBomb, |attempt| {
        assert!(attempt.succeeded);
        let read = excerpt(attempt);
        assert_eq!((read.len(), attempt.excerpt_cut), (MAX_EXCERPT_BYTES, true));
        assert!(read.starts_with(&[0x1f, 0x8b]), "the bytes are kept unchanged");
    });
}

#[test]
fn a_connection_reset_in_the_middle_of_the_body_is_a_failure() {
    on_both(Behaviour::Reset, |attempt| {
        assert!(!attempt.succeeded);
        assert_eq!((attempt.failure.as_deref(), attempt.response_code), (Some("protocol"), Some(200)));
        let error = "the response ended early: the receiver reset the connection";
        assert_eq!(attempt.error.as_deref(), Some(error));
        assert!(attempt.first_byte_us.is_some());
    });
}

#[test]
fn what_a_failing_receiver_says_is_kept() {
    let body = br#"{"error": "no such tenant"}"#.to_vec();
    let behaviour = Behaviour::StatusWith { code: 422, headers: Vec::new(), body: body.clone() };
    on_both(behaviour, |attempt| {
        assert_eq!((attempt.succeeded, attempt.response_code), (false, Some(422)));
        assert_eq!(attempt.error.as_deref(), Some("422 Unprocessable Entity"));
        assert_eq!((excerpt(attempt), attempt.excerpt_cut), (&body[..], false));
    });
}

#[test]
fn after_a_broken_connection_the_next_attempt_dials_anew() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        receiver.script(vec![Behaviour::Status(200), Behaviour::Reset, Behaviour::Status(200)]);
        let hook = sending.webhook(&receiver.url("/hook"));
        let first = sending.send_event(&hook);
        sending.wait_for_success(first);
        let second = sending.send_event(&hook);
        let broken = sending.only_attempt(second);
        assert_eq!(
            (broken.failure.as_deref(), broken.connect_us),
            (Some("protocol"), None),
            "a kept connection"
        );
        sending.move_to_due(second);
        sending.wait_for_success(second);
        assert!(sending.attempts(second)[1].connect_us.is_some());
        assert_eq!((receiver.requests().len(), receiver.connections()), (3, 2));
    });
}

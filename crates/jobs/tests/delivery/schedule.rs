//! When the attempts of a delivery are made. Tests move the clock, so days pass in milliseconds.

use rapport_domain::delivery::State;
use rapport_domain::time::Time;
use rapport_testkit::{Behaviour, Receiver};

use crate::harness::{Sending, seconds};

const MINUTE: f64 = 60.0;
const HOUR: f64 = 3600.0;
/// From the decisions page: the wait after each failed attempt.
const WAITS: [f64; 9] = [
    5.0,
    5.0 * MINUTE,
    30.0 * MINUTE,
    2.0 * HOUR,
    5.0 * HOUR,
    10.0 * HOUR,
    14.0 * HOUR,
    20.0 * HOUR,
    24.0 * HOUR,
];

fn just_before(time: Time) -> Time {
    Time::from_micros(time.as_micros() - 1)
}

#[test]
fn ten_attempts_come_on_schedule_and_never_early_and_then_it_has_failed() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        receiver.answer(Behaviour::Status(500));
        let hook = sending.webhook(&receiver.url("/hook"));
        let id = sending.send_event(&hook);
        let mut made_at = vec![sending.now()];
        for (done, expected) in (1..).zip(WAITS) {
            sending.wait_for_attempts(id, done);
            let due = sending.due_at(id);
            let wait = seconds(sending.now(), due);
            assert!((expected..=expected * 1.1).contains(&wait), "after attempt {done} it waits {wait} s");
            sending.clock().set(just_before(due));
            sending.quiet();
            assert_eq!(receiver.requests().len(), done, "attempt {} came early", done + 1);
            sending.clock().set(due);
            made_at.push(due);
        }
        let attempts = sending.wait_for_attempts(id, 10);
        let started_at: Vec<Time> = attempts.iter().map(|attempt| attempt.started_at).collect();
        assert_eq!(started_at, made_at, "each attempt is made when it is due");
        let failed = sending.wait_for_state(id, State::Failed);
        assert_eq!((failed.attempts, failed.scheduled, failed.finished_at), (10, 10, Some(sending.now())));
        sending.clock().advance_days(30);
        sending.quiet();
        assert_eq!(receiver.requests().len(), 10, "there is no eleventh attempt");
    });
}

#[test]
fn retries_that_are_due_together_do_not_come_at_one_instant() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        receiver.answer(Behaviour::Status(500));
        let hook = sending.webhook(&receiver.url("/hook"));
        let ids: Vec<_> = (0..8).map(|_| sending.send_event(&hook)).collect();
        ids.iter().for_each(|id| drop(sending.only_attempt(*id)));
        let mut due: Vec<Time> = ids.iter().map(|id| sending.due_at(*id)).collect();
        due.sort_unstable();
        due.dedup();
        assert!(due.len() > 1, "all eight are due at {}", due[0]);
    });
}

fn answer_with_retry_after(receiver: &Receiver, code: u16, retry_after: &str) {
    let headers = vec![("retry-after".to_owned(), retry_after.to_owned())];
    receiver.answer(Behaviour::StatusWith { code, headers, body: b"later, please".to_vec() });
}

/// How long the delivery of a new event waits after this response.
fn wait_after(sending: &Sending, code: u16, retry_after: &str) -> f64 {
    let receiver = Receiver::start();
    answer_with_retry_after(&receiver, code, retry_after);
    let hook = sending.webhook(&receiver.url("/hook"));
    let id = sending.send_event(&hook);
    sending.only_attempt(id);
    let wait = seconds(sending.now(), sending.due_at(id));
    sending.delete(&hook);
    wait
}

fn is_the_schedules(wait: f64) -> bool {
    (5.0..=5.5).contains(&wait)
}

#[test]
fn retry_after_is_honoured_on_429_and_503_when_it_is_later() {
    Sending::on_both(|sending| {
        for code in [429, 503] {
            let wait = wait_after(sending, code, "3600");
            assert!((wait - 3600.0).abs() < 1e-6, "{code}: {wait} s");
            let wait = wait_after(sending, code, "1");
            assert!(is_the_schedules(wait), "{code}: asking for less has no effect: {wait} s");
        }
        let wait = wait_after(sending, 500, "3600");
        assert!(is_the_schedules(wait), "Retry-After on a 500 is ignored: {wait} s");
        let wait = wait_after(sending, 429, "soon");
        assert!(is_the_schedules(wait), "neither a number nor a date: {wait} s");
    });
}

#[test]
fn retry_after_is_capped_at_a_day() {
    Sending::on_both(|sending| {
        for asked in ["86401", "999999999", "99999999999999999999999"] {
            let wait = wait_after(sending, 429, asked);
            assert!((wait - 24.0 * HOUR).abs() < 1e-6, "{asked}: {wait} s");
        }
    });
}

#[test]
fn retry_after_may_be_a_date() {
    Sending::on_both(|sending| {
        // The test clock starts at 09:00.
        for (date, expected) in
            [("Mon, 05 Jan 2026 10:30:00 GMT", 1.5 * HOUR), ("Sat, 05 Sep 2026 09:00:00 GMT", 24.0 * HOUR)]
        {
            let wait = wait_after(sending, 503, date);
            assert!((wait - expected).abs() < 1e-6, "{date}: {wait} s");
        }
        let wait = wait_after(sending, 503, "Sun, 06 Nov 1994 08:49:37 GMT");
        assert!(is_the_schedules(wait), "a date in the past: {wait} s");
    });
}

#[test]
fn the_asked_wait_is_kept_to_the_end_and_the_schedule_goes_on_after_it() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        answer_with_retry_after(&receiver, 429, "3600");
        let hook = sending.webhook(&receiver.url("/hook"));
        let id = sending.send_event(&hook);
        sending.only_attempt(id);
        let due = sending.due_at(id);
        sending.clock().set(just_before(due));
        sending.quiet();
        assert_eq!(receiver.requests().len(), 1, "it isn't retried before the requested time");
        sending.clock().set(due);
        let attempts = sending.wait_for_attempts(id, 2);
        assert_eq!(attempts[1].started_at, due);
        answer_with_retry_after(&receiver, 429, "10");
        let wait = seconds(due, sending.due_at(id));
        assert!((wait - HOUR).abs() < 1e-6, "{wait} s");
    });
}

//! Redelivery: one more attempt of the same delivery, in any state, that starts no schedule.

use rapport_app::erasure::erase_payloads;
use rapport_domain::delivery::State;
use rapport_domain::webhook::Held;
use rapport_testkit::{Behaviour, Gate, Receiver, block_on};

use crate::harness::{Sending, conflict, wait_for_requests};

#[test]
fn a_succeeded_delivery_is_redelivered_and_stays_succeeded() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        let hook = sending.webhook(&receiver.url("/hook"));
        let id = sending.send_event(&hook);
        let finished_at = sending.wait_for_success(id).finished_at;
        sending.clock().advance_seconds(60);
        receiver.answer(Behaviour::Status(500));
        sending.redeliver(id).expect("a redelivery");
        let attempts = sending.wait_for_attempts(id, 2);
        assert_eq!(
            attempts.iter().map(|it| (it.manual, it.succeeded)).collect::<Vec<_>>(),
            [(false, true), (true, false)]
        );
        let delivery = sending.delivery(id);
        assert_eq!((delivery.state, delivery.finished_at), (State::Succeeded, finished_at));
        assert_eq!(
            (delivery.response_code, delivery.error.as_deref()),
            (Some(200), None),
            "it shows the success"
        );
        assert_eq!(sending.streak(&hook), 1, "manual attempts count");
        sending.clock().advance_days(2);
        sending.quiet();
        assert_eq!(receiver.requests().len(), 2, "it starts no schedule");
    });
}

#[test]
fn a_failed_delivery_is_redelivered_without_a_new_schedule() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        receiver.script(vec![Behaviour::Status(410), Behaviour::Status(500)]);
        let hook = sending.webhook(&receiver.url("/hook"));
        let id = sending.send_event(&hook);
        sending.wait_for_state(id, State::Failed);
        sending.redeliver(id).expect("a redelivery");
        sending.wait_for_attempts(id, 2);
        assert_eq!(sending.delivery(id).state, State::Failed);
        sending.clock().advance_days(2);
        sending.quiet();
        assert_eq!(receiver.requests().len(), 2, "a 500 to a redelivery is not retried");
        sending.redeliver(id).expect("a redelivery");
        let delivery = sending.wait_for_success(id);
        assert_eq!(
            (delivery.attempts, delivery.scheduled, delivery.finished_at),
            (3, 1, Some(sending.now()))
        );
        assert!(sending.attempts(id)[2].manual);
    });
}

#[test]
fn a_redelivery_of_a_pending_delivery_leaves_its_schedule_as_it_is() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        receiver.answer(Behaviour::Status(500));
        let hook = sending.webhook(&receiver.url("/hook"));
        let id = sending.send_event(&hook);
        sending.only_attempt(id);
        let due = sending.due_at(id);
        sending.redeliver(id).expect("a redelivery");
        let attempts = sending.wait_for_attempts(id, 2);
        assert!(!attempts[0].manual && attempts[1].manual);
        assert_eq!((sending.due_at(id), sending.delivery(id).scheduled), (due, 1));
        sending.clock().set(due);
        let attempts = sending.wait_for_attempts(id, 3);
        assert!(!attempts[2].manual, "the retry comes when it was due");
        assert_eq!(sending.delivery(id).scheduled, 2);
        receiver.answer(Behaviour::Status(200));
        sending.redeliver(id).expect("a redelivery");
        sending.wait_for_success(id);
        sending.clock().advance_days(2);
        sending.quiet();
        assert_eq!(receiver.requests().len(), 4, "its success ends the schedule");
    });
}

#[test]
fn a_held_delivery_is_redelivered_while_the_webhook_is_disabled() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        receiver.answer(Behaviour::Status(500));
        let hook = sending.webhook(&receiver.url("/hook"));
        sending.fail_until_disabled(&hook);
        let id = sending.send_event(&hook);
        sending.redeliver(id).expect("a redelivery");
        let attempt = sending.only_attempt(id);
        assert!(attempt.manual && !attempt.succeeded);
        assert!(matches!(sending.delivery(id).state, State::Open { .. }), "it is held as before");
        sending.quiet();
        assert_eq!(receiver.requests().len(), 21);
        receiver.answer(Behaviour::Status(200));
        sending.redeliver(id).expect("a redelivery");
        sending.wait_for_success(id);
        assert_eq!(sending.wait_for_attempts(id, 2).iter().filter(|it| it.manual).count(), 2);
    });
}

#[test]
fn a_delivery_that_was_redelivered_while_held_is_not_sent_again_on_enabling() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        let hook = sending.webhook(&receiver.url("/hook"));
        sending.disable(&hook);
        let (sent, held) = (sending.send_event(&hook), sending.send_event(&hook));
        sending.redeliver(sent).expect("a redelivery");
        sending.wait_for_success(sent);
        sending.enable(&hook, Held::Send).expect("enabled");
        sending.wait_for_success(held);
        sending.quiet();
        assert_eq!(receiver.requests().len(), 2);
    });
}

#[test]
fn redeliveries_asked_for_without_a_sender_are_made_when_there_is_one() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        receiver.script(vec![Behaviour::Status(404)]);
        let hook = sending.webhook(&receiver.url("/hook"));
        let id = sending.send_event(&hook);
        sending.wait_for_state(id, State::Failed);
        sending.stop();
        sending.redeliver(id).expect("a redelivery");
        assert_eq!(receiver.requests().len(), 1);
        sending.start();
        sending.wait_for_success(id);
        let attempts = sending.wait_for_attempts(id, 2);
        assert!(attempts[1].manual);
        assert_eq!(receiver.requests()[1].header("X-Service-Attempt"), "2");
        assert_eq!(sending.test().rows("manual_attempt"), 0);
    });
}

#[test]
fn a_redelivery_of_what_waits_in_memory_is_one_attempt_more_and_not_two() {
    Sending::on_both(|sending| {
        let (first, last) = (Gate::shut(), Gate::shut());
        let after = |gate: &Gate| Behaviour::Until(gate.clone(), Box::new(Behaviour::Status(500)));
        let receiver = Receiver::start();
        receiver.script(vec![after(&first), Behaviour::Status(500), after(&last)]);
        receiver.answer(Behaviour::Status(500));
        let hook = sending.webhook(&receiver.url("/hook"));
        sending.create_account();
        wait_for_requests(&receiver, 1);
        let id = sending.send_event(&hook);
        sending.redeliver(id).expect("a redelivery");
        first.open();
        // The manual attempt is in progress, and nobody else considers the delivery waiting.
        wait_for_requests(&receiver, 3);
        sending.quiet();
        last.open();
        let attempts = sending.wait_for_attempts(id, 2);
        assert_eq!(attempts.iter().map(|it| it.manual).collect::<Vec<_>>(), [true, false]);
        sending.quiet();
        assert_eq!((receiver.requests().len(), sending.delivery(id).scheduled), (3, 1));
    });
}

#[test]
fn two_redeliveries_are_two_attempts() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        let hook = sending.webhook(&receiver.url("/hook"));
        let id = sending.send_event(&hook);
        sending.wait_for_success(id);
        sending.redeliver(id).expect("a redelivery");
        sending.redeliver(id).expect("a redelivery");
        let attempts = sending.wait_for_attempts(id, 3);
        assert_eq!(attempts.iter().filter(|it| it.manual && it.succeeded).count(), 2);
        assert_eq!(receiver.requests().len(), 3);
    });
}

#[test]
fn an_erased_payload_is_neither_retried_nor_redelivered() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        receiver.script(vec![Behaviour::Status(200), Behaviour::Status(500)]);
        let hook = sending.webhook(&receiver.url("/hook"));
        let imported_id = sending.create_account();
        sending.ingest("trial_started", std::slice::from_ref(&imported_id));
        let [created, moved] = [0, 1].map(|at| sending.deliveries(&hook)[at].id);
        sending.wait_for_success(created);
        sending.only_attempt(moved);
        let account = sending.test().account(&imported_id).id;
        let erased = block_on(erase_payloads(sending.app(), sending.test().token(), account));
        assert_eq!(erased.expect("erased").payloads, 2);
        let ended = sending.wait_for_state(moved, State::Failed);
        assert_eq!((ended.attempts, ended.error.as_deref()), (1, Some("payload_erased")));
        for id in [created, moved] {
            assert_eq!(conflict(sending.redeliver(id)), "payload_erased");
        }
        sending.clock().advance_days(2);
        sending.quiet();
        assert_eq!(receiver.requests().len(), 2);
        assert_eq!(sending.delivery(created).state, State::Succeeded, "the metadata stays");
    });
}

//! The failure streak, what it does to a webhook, and how to enable it again.

use rapport_domain::delivery::State;
use rapport_domain::id::DeliveryId;
use rapport_domain::webhook::{Held, Switch};
use rapport_testkit::{Behaviour, Gate, Receiver};
use serde_json::json;

use crate::harness::{
    Hook, Sending, conflict, eventually, requests_to, wait_for_requests, wait_for_requests_to,
};

fn is_open(sending: &Sending, id: DeliveryId) -> bool {
    matches!(sending.delivery(id).state, State::Open { .. })
}

/// A webhook that was auto-disabled a minute ago by twenty events that failed for good.
fn disabled_webhook(sending: &Sending, receiver: &Receiver) -> Hook {
    receiver.answer(Behaviour::Status(404));
    let hook = sending.webhook(&receiver.url("/hook"));
    sending.fail_until_disabled(&hook);
    sending.clock().advance_seconds(60);
    receiver.answer(Behaviour::Status(500));
    hook
}

#[test]
fn the_20th_consecutive_failure_disables_whichever_deliveries_failed() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        receiver.answer(Behaviour::Status(500));
        let hook = sending.webhook(&receiver.url("/hook"));
        // Eight deliveries fail twice: sixteen.
        let ids: Vec<DeliveryId> = (0..8).map(|_| sending.send_event(&hook)).collect();
        sending.wait_for_streak(&hook, 8);
        sending.clock().advance_seconds(6);
        sending.wait_for_streak(&hook, 16);
        // A test and a redelivery fail as well, and a 404: nineteen.
        sending.send_test(&hook);
        sending.wait_for_streak(&hook, 17);
        sending.redeliver(ids[0]).expect("a redelivery");
        sending.wait_for_streak(&hook, 18);
        receiver.script(vec![Behaviour::Status(404)]);
        sending.send_event(&hook);
        sending.wait_for_streak(&hook, 19);
        assert_eq!(sending.webhook_now(&hook).switch, Switch::Enabled);
        // All are due again; the first one is the twentieth failure, and the last attempt.
        sending.clock().advance_days(1);
        sending.wait_for_streak(&hook, 20);
        assert_eq!(sending.webhook_now(&hook).switch, Switch::AutoDisabled { at: sending.now() });
        sending.quiet();
        assert_eq!(receiver.requests().len(), 20);
        assert!(ids.iter().all(|id| is_open(sending, *id)), "they are held, not failed");
    });
}

#[test]
fn a_success_resets_the_streak() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        receiver.answer(Behaviour::Status(410));
        let hook = sending.webhook(&receiver.url("/hook"));
        for round in 1..=2 {
            for failure in 1..=19 {
                sending.create_account();
                sending.wait_for_streak(&hook, failure);
            }
            assert_eq!(sending.webhook_now(&hook).switch, Switch::Enabled, "in round {round}");
            receiver.script(vec![Behaviour::Status(204)]);
            sending.create_account();
            sending.wait_for_streak(&hook, 0);
        }
    });
}

#[test]
fn events_of_an_auto_disabled_webhook_are_held_and_nothing_is_attempted() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        let hook = disabled_webhook(sending, &receiver);
        receiver.answer(Behaviour::Status(200));
        let held: Vec<DeliveryId> = (0..3).map(|_| sending.send_event(&hook)).collect();
        sending.clock().advance_days(3);
        sending.quiet();
        assert_eq!(receiver.requests().len(), 20, "nothing is attempted");
        for id in held {
            assert!(is_open(sending, id));
            assert_eq!(sending.delivery(id).attempts, 0);
        }
        assert_eq!(sending.waiting(&hook), 3);
    });
}

#[test]
fn events_of_a_webhook_disabled_by_hand_are_held_and_sent_when_it_is_enabled() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        let hook = sending.webhook(&receiver.url("/hook"));
        sending.disable(&hook);
        assert_eq!(sending.webhook_now(&hook).switch, Switch::DisabledByHand);
        let held = sending.send_event(&hook);
        sending.quiet();
        assert!(receiver.requests().is_empty());
        let enabled = sending.enable(&hook, Held::Send).expect("no test is required");
        assert_eq!(enabled.switch, Switch::Enabled);
        sending.wait_for_success(held);
    });
}

#[test]
fn what_waits_in_memory_is_held_when_the_webhook_is_disabled() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        let gate = Gate::shut();
        receiver.answer(Behaviour::Until(gate.clone(), Box::new(Behaviour::Status(200))));
        let accounts: Vec<String> = (0..5).map(|_| sending.create_account()).collect();
        let hook = sending.webhook(&receiver.url("/hook"));
        sending.ingest("trial_started", &accounts);
        wait_for_requests(&receiver, 1);
        sending.disable(&hook);
        gate.open();
        let ids: Vec<DeliveryId> = sending.deliveries(&hook).iter().map(|delivery| delivery.id).collect();
        sending.wait_for_success(ids[0]);
        sending.quiet();
        assert_eq!(receiver.requests().len(), 1, "the current attempt ends, and no other begins");
        assert_eq!(sending.waiting(&hook), 4);
        receiver.answer(Behaviour::Status(200));
        sending.enable(&hook, Held::Send).expect("enabled");
        ids.iter().for_each(|id| drop(sending.wait_for_success(*id)));
        assert_eq!(receiver.requests().len(), 5, "each is sent once");
    });
}

#[test]
fn a_test_of_a_disabled_webhook_is_one_attempt() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        let hook = disabled_webhook(sending, &receiver);
        let failing = sending.send_test(&hook);
        let failed = sending.wait_for_state(failing, State::Failed);
        assert_eq!((failed.attempts, failed.response_code), (1, Some(500)));
        assert!(!sending.only_attempt(failing).manual, "a test is not a redelivery");
        assert_eq!(sending.streak(&hook), 21, "tests count");
        sending.clock().advance_days(2);
        sending.quiet();
        assert_eq!(receiver.requests().len(), 21, "it is not retried");
        receiver.answer(Behaviour::Status(200));
        let passing = sending.send_test(&hook);
        sending.wait_for_success(passing);
        let after = sending.webhook_now(&hook);
        assert_eq!(after.failure_streak, 0);
        assert!(matches!(after.switch, Switch::AutoDisabled { .. }), "a test alone does not enable");
    });
}

#[test]
fn enabling_after_auto_disabling_takes_a_successful_test() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        let hook = sending.webhook(&receiver.url("/hook"));
        let test = sending.send_test(&hook);
        sending.wait_for_success(test);
        sending.clock().advance_seconds(60);
        receiver.answer(Behaviour::Status(500));
        sending.fail_until_disabled(&hook);
        sending.clock().advance_seconds(60);
        let refused =
            |why: &str| assert_eq!(conflict(sending.enable(&hook, Held::Send)), "test_required", "{why}");
        refused("a test from before the disabling proves nothing");
        let test = sending.send_test(&hook);
        sending.wait_for_state(test, State::Failed);
        refused("the test failed");
        receiver.answer(Behaviour::Status(200));
        let test = sending.send_test(&hook);
        sending.wait_for_success(test);
        sending.clock().advance_seconds(60);
        sending.patch(&hook, json!({ "url": receiver.url("/moved") }));
        refused("the test was for another URL");
        let test = sending.send_test(&hook);
        sending.wait_for_success(test);
        let enabled = sending.enable(&hook, Held::Send).expect("enabled after a successful test");
        assert_eq!((enabled.switch, enabled.failure_streak), (Switch::Enabled, 0));
    });
}

#[test]
fn a_test_that_was_under_way_when_the_url_changed_proves_nothing_of_the_new_one() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        let hook = disabled_webhook(sending, &receiver);
        let gate = Gate::shut();
        receiver.answer(Behaviour::Until(gate.clone(), Box::new(Behaviour::Status(200))));
        let test = sending.send_test(&hook);
        wait_for_requests(&receiver, 21);
        sending.clock().advance_seconds(60);
        sending.patch(&hook, json!({ "url": receiver.url("/moved") }));
        gate.open();
        sending.wait_for_success(test);
        assert_eq!(conflict(sending.enable(&hook, Held::Send)), "test_required");
    });
}

#[test]
fn what_is_held_is_sent_oldest_first_when_the_operator_says_so() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        let hook = disabled_webhook(sending, &receiver);
        let held: Vec<DeliveryId> = (0..6)
            .map(|_| {
                sending.clock().advance_seconds(10);
                sending.send_event(&hook)
            })
            .collect();
        receiver.answer(Behaviour::Status(200));
        let test = sending.send_test(&hook);
        sending.wait_for_success(test);
        // After a failure only one request is made at a time, so the order of arrival is the order of
        // sending.
        receiver.answer(Behaviour::Status(400));
        let failed_before = sending.deliveries(&hook)[0].id;
        sending.redeliver(failed_before).expect("a redelivery");
        sending.wait_for_attempts(failed_before, 2);
        let before = receiver.requests().len();
        sending.enable(&hook, Held::Send).expect("enabled after a successful test");
        held.iter().for_each(|id| drop(sending.only_attempt(*id)));
        let requests = receiver.requests().split_off(before);
        let arrived: Vec<&str> = requests.iter().map(|it| it.header("X-Service-Delivery")).collect();
        assert_eq!(arrived, held.iter().map(ToString::to_string).collect::<Vec<_>>());
        receiver.answer(Behaviour::Status(200));
        sending.clock().advance_days(2);
        for id in held {
            let delivered = sending.wait_for_success(id);
            assert_eq!(delivered.attempts, 2, "attempts continue from the earlier count");
        }
    });
}

#[test]
fn what_is_held_is_dropped_when_the_operator_says_so() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        let hook = disabled_webhook(sending, &receiver);
        let held: Vec<DeliveryId> = (0..3).map(|_| sending.send_event(&hook)).collect();
        receiver.answer(Behaviour::Status(200));
        let test = sending.send_test(&hook);
        sending.wait_for_success(test);
        sending.clock().advance_seconds(1);
        sending.enable(&hook, Held::Drop).expect("enabled after a successful test");
        let later = sending.send_event(&hook);
        for id in held {
            let dropped = sending.wait_for_state(id, State::Failed);
            assert_eq!((dropped.attempts, dropped.error.as_deref()), (0, Some("dropped")));
        }
        sending.wait_for_success(later);
        sending.quiet();
        assert_eq!(receiver.requests().len(), 22, "twenty failures, the test, and the later event");
    });
}

#[test]
fn attempts_under_way_are_recorded_and_a_late_success_does_not_enable() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        let accounts: Vec<String> = (0..50).map(|_| sending.create_account()).collect();
        let hook = sending.webhook(&receiver.url("/hook"));
        // The receiver proves itself, so that many requests may be made at once; then it fails.
        let (failures, success) = (Gate::shut(), Gate::shut());
        let after = |gate: &Gate, code| Behaviour::Until(gate.clone(), Box::new(Behaviour::Status(code)));
        receiver.script(vec![Behaviour::Status(200); 25]);
        receiver.script(vec![after(&success, 200)]);
        receiver.answer(after(&failures, 500));
        sending.ingest("trial_started", &accounts);
        wait_for_requests(&receiver, 50);
        let succeeded = || {
            let deliveries = sending.deliveries(&hook);
            deliveries.iter().filter(|delivery| delivery.state == State::Succeeded).count()
        };
        // One that is recorded between the failures would end their streak.
        eventually("25 successes", || (succeeded() == 25).then_some(()));
        failures.open();
        sending.wait_for_streak(&hook, 24);
        assert!(matches!(sending.webhook_now(&hook).switch, Switch::AutoDisabled { .. }));
        success.open();
        sending.wait_for_streak(&hook, 0);
        assert!(
            matches!(sending.webhook_now(&hook).switch, Switch::AutoDisabled { .. }),
            "it stays disabled"
        );
        let deliveries = sending.deliveries(&hook);
        assert_eq!((deliveries.len(), succeeded()), (50, 26));
        assert!(
            deliveries.iter().all(|delivery| delivery.attempts == 1),
            "all attempts in progress are recorded"
        );
        sending.clock().advance_days(1);
        sending.quiet();
        assert_eq!(receiver.requests().len(), 50);
    });
}

#[test]
fn the_streak_of_one_webhook_is_nothing_to_another() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        receiver.answer_path("/bad", Behaviour::Status(404));
        let (good, bad) = (sending.webhook(&receiver.url("/good")), sending.webhook(&receiver.url("/bad")));
        for _ in 0..22 {
            sending.create_account();
        }
        sending.wait_for_streak(&bad, 20);
        wait_for_requests_to(&receiver, "/good", 22);
        sending.quiet();
        assert_eq!(requests_to(&receiver, "/bad").len(), 20);
        assert_eq!(sending.webhook_now(&good).switch, Switch::Enabled);
        assert_eq!(sending.waiting(&bad), 2);
    });
}

//! Sending processes: none, one, one after another, two at once. Nothing committed is lost.

use std::collections::HashSet;
use std::time::Duration;

use rapport_domain::delivery::State;
use rapport_domain::id::DeliveryId;
use rapport_testkit::{Behaviour, Engine, Receiver, TestClock};

use crate::harness::{Hook, Options, Sending, payload, wait_for_requests};

/// Longer than a node may be silent before the others consider it dead.
const DEAD_AFTER_SECONDS: i64 = 11;
const EVENTS: usize = 40;

fn slowly(code: u16) -> Behaviour {
    Behaviour::Delay(Duration::from_millis(20), Box::new(Behaviour::Status(code)))
}

/// Waits until every delivery of the webhook has succeeded; returns how many requests it took.
#[track_caller]
fn all_arrive(sending: &Sending, hook: &Hook, receiver: &Receiver, events: usize) -> usize {
    let deliveries = sending.deliveries(hook);
    assert_eq!(deliveries.len(), events);
    for delivery in deliveries {
        sending.wait_for_success(delivery.id);
    }
    let requests = receiver.requests();
    let ids: HashSet<String> = requests.iter().map(|request| payload(request)["id"].to_string()).collect();
    assert_eq!(ids.len(), events, "every event arrived");
    requests.len()
}

#[test]
fn what_was_committed_without_a_sender_is_sent_by_the_next_one() {
    for engine in Engine::BOTH {
        let mut sending = Sending::without_sender(engine, Options::default());
        let receiver = Receiver::start();
        let hook = sending.webhook(&receiver.url("/hook"));
        (0..10).for_each(|_| drop(sending.create_account()));
        let test = sending.send_test(&hook);
        assert_eq!(sending.waiting(&hook), 11);
        sending.start();
        assert_eq!(all_arrive(&sending, &hook, &receiver, 11), 11, "on {engine}");
        assert_eq!(sending.delivery(test).state, State::Succeeded);
    }
}

#[test]
fn what_the_command_line_commits_beside_a_sender_is_found() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        let hook = sending.webhook(&receiver.url("/hook"));
        (0..10).for_each(|_| drop(sending.create_account_through(sending.test().app())));
        assert_eq!(all_arrive(sending, &hook, &receiver, 10), 10);
    });
}

#[test]
fn an_orderly_restart_in_the_middle_loses_nothing_and_sends_nothing_twice() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        receiver.answer(slowly(200));
        let hook = sending.webhook(&receiver.url("/hook"));
        (0..EVENTS).for_each(|_| drop(sending.create_account()));
        wait_for_requests(&receiver, 3);
        sending.restart();
        assert_eq!(all_arrive(sending, &hook, &receiver, EVENTS), EVENTS);
    });
}

#[test]
fn a_sender_killed_in_the_middle_loses_nothing() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        let hook = sending.webhook(&receiver.url("/hook"));
        let retried = {
            receiver.script(vec![Behaviour::Status(500)]);
            let id = sending.send_event(&hook);
            sending.only_attempt(id);
            id
        };
        receiver.answer(slowly(200));
        (1..EVENTS).for_each(|_| drop(sending.create_account()));
        wait_for_requests(&receiver, 8);
        sending.kill();
        sending.start();
        if sending.test().engine() == Engine::Postgres {
            sending.sweep();
            sending.clock().advance_seconds(DEAD_AFTER_SECONDS);
        } else {
            sending.move_to_due(retried);
        }
        let requests = all_arrive(sending, &hook, &receiver, EVENTS);
        // One failed; requests in progress at the kill were sent again.
        assert!(requests > EVENTS && requests <= EVENTS + 1 + 64, "{requests} requests");
    });
}

#[test]
fn a_manual_attempt_that_a_killed_sender_held_is_made_by_the_next() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        let hook = sending.webhook(&receiver.url("/hook"));
        let id = sending.send_event(&hook);
        sending.wait_for_success(id);
        receiver.script(vec![Behaviour::Stall]);
        sending.redeliver(id).expect("a redelivery");
        wait_for_requests(&receiver, 2);
        sending.kill();
        sending.start();
        // It must have seen the node once before it can notice that it stays silent.
        sending.sweep();
        sending.clock().advance_seconds(DEAD_AFTER_SECONDS);
        let attempts = sending.wait_for_attempts(id, 2);
        assert!(attempts[1].manual && attempts[1].succeeded);
        assert_eq!(receiver.requests().len(), 3);
    });
}

#[test]
fn of_two_nodes_one_takes_over_what_the_dead_other_held() {
    let mut sending = Sending::with(Engine::Postgres, Options::default());
    let survivor = sending.another_node();
    let receiver = Receiver::start();
    let hook = sending.webhook(&receiver.url("/hook"));
    receiver.script(vec![Behaviour::Stall]);
    // The first occupies its node's one slot for this webhook; the others wait in that node's memory.
    (0..EVENTS).for_each(|_| drop(sending.create_account()));
    wait_for_requests(&receiver, 1);
    sending.kill();
    sending.quiet();
    assert_eq!(receiver.requests().len(), 1, "a node isn't dead after a moment of silence");
    sending.clock().advance_seconds(DEAD_AFTER_SECONDS);
    assert_eq!(all_arrive(&sending, &hook, &receiver, EVENTS), EVENTS + 1, "the stalled one is sent again");
    survivor.stop();
}

#[test]
fn nodes_whose_clocks_differ_leave_each_other_alone() {
    for days_ahead in [8, -8] {
        let mut sending = Sending::with(Engine::Postgres, Options::default());
        let receiver = Receiver::start();
        let hook = sending.webhook(&receiver.url("/hook"));
        receiver.script(vec![Behaviour::Stall]);
        (0..EVENTS).for_each(|_| drop(sending.create_account()));
        wait_for_requests(&receiver, 1);
        let clock = TestClock::at(sending.now());
        clock.advance_days(days_ahead);
        let other = sending.another_node_by(&clock);
        other.sweep();
        assert_eq!(sending.test().rows("node"), 2, "no live node is forgotten");
        assert_eq!(receiver.requests().len(), 1, "nothing is taken from a live node");
        // It still notices when the other node dies.
        sending.kill();
        other.sweep();
        clock.set(clock.now().max(sending.now()).plus_seconds(DEAD_AFTER_SECONDS));
        assert_eq!(all_arrive(&sending, &hook, &receiver, EVENTS), EVENTS + 1);
        other.stop();
    }
}

#[test]
fn a_restarted_node_takes_over_from_its_former_self_at_once() {
    let options = Options { identity: Some("this place"), ..Options::default() };
    for (identity, engine) in [(None, Engine::Sqlite), (options.identity, Engine::Postgres)] {
        let mut sending = Sending::with(engine, Options { identity, ..options.clone() });
        let receiver = Receiver::start();
        let hook = sending.webhook(&receiver.url("/hook"));
        receiver.script(vec![Behaviour::Stall]);
        (0..EVENTS).for_each(|_| drop(sending.create_account()));
        wait_for_requests(&receiver, 1);
        sending.kill();
        sending.start();
        // The clock hasn't moved, so no node was watched for ten seconds.
        assert_eq!(all_arrive(&sending, &hook, &receiver, EVENTS), EVENTS + 1, "on {engine}");
        assert_eq!(sending.test().rows("node"), 1, "the previous incarnation is forgotten");
    }
}

#[test]
fn a_node_of_another_place_waits_until_the_silent_one_is_dead() {
    let mut sending =
        Sending::with(Engine::Postgres, Options { identity: Some("here"), ..Options::default() });
    let receiver = Receiver::start();
    let hook = sending.webhook(&receiver.url("/hook"));
    receiver.script(vec![Behaviour::Stall]);
    (0..EVENTS).for_each(|_| drop(sending.create_account()));
    wait_for_requests(&receiver, 1);
    sending.kill();
    sending.run_from("elsewhere");
    let survivor = sending.another_node();
    survivor.sweep();
    assert_eq!(receiver.requests().len(), 1);
    sending.clock().advance_seconds(DEAD_AFTER_SECONDS);
    assert_eq!(all_arrive(&sending, &hook, &receiver, EVENTS), EVENTS + 1);
    survivor.stop();
}

#[test]
fn two_nodes_share_a_backlog_and_send_nothing_twice() {
    let mut sending = Sending::without_sender(Engine::Postgres, Options::default());
    let receiver = Receiver::start();
    let hook = sending.webhook(&receiver.url("/hook"));
    (0..EVENTS).for_each(|_| drop(sending.create_account()));
    let other = sending.another_node();
    sending.start();
    // Each node also sends what it commits itself.
    for _ in 0..10 {
        sending.create_account();
        sending.create_account_through(&other.app);
    }
    assert_eq!(all_arrive(&sending, &hook, &receiver, EVENTS + 20), EVENTS + 20);
    other.stop();
}

#[test]
fn retries_wait_for_their_time_over_a_restart() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        receiver.script(vec![Behaviour::Status(500)]);
        let hook = sending.webhook(&receiver.url("/hook"));
        let id: DeliveryId = sending.send_event(&hook);
        sending.only_attempt(id);
        let due = sending.due_at(id);
        sending.restart();
        sending.clock().advance_seconds(4);
        sending.quiet();
        assert_eq!((receiver.requests().len(), sending.due_at(id)), (1, due));
        sending.clock().set(due);
        sending.wait_for_success(id);
    });
}

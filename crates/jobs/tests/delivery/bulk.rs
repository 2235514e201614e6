//! Bulk redelivery through a real sender: cancelling stops attempts that haven't started, auto-disabling
//! pauses.

use std::time::Duration;

use rapport_app::redelivery::{CancelRedelivery, Progress, StartRedelivery, progress, step};
use rapport_domain::delivery::State;
use rapport_domain::delivery_list::{Filter, Shown};
use rapport_domain::id::RedeliveryId;
use rapport_domain::redelivery::State as Stage;
use rapport_domain::webhook::{Held, MAX_STREAK};
use rapport_testkit::{Behaviour, Receiver, block_on};

use crate::harness::{Hook, Sending, eventually, wait_for_requests};

const MANY: usize = 100;

/// Creates this many deliveries that failed for good.
fn failed(sending: &Sending, receiver: &Receiver, many: usize) -> Hook {
    receiver.answer(Behaviour::Status(404));
    let hook = sending.webhook(&receiver.url("/hook"));
    for number in 0..many {
        // An occasional success keeps the webhook enabled.
        if number % 15 == 0 {
            receiver.script(vec![Behaviour::Status(200)]);
        }
        let id = sending.send_event(&hook);
        eventually("a delivery to end", || {
            (!matches!(sending.delivery(id).state, State::Open { .. })).then_some(())
        });
    }
    hook
}

fn start(sending: &Sending) -> RedeliveryId {
    let filter = Filter { state: Some(Shown::Failed), ..Filter::default() };
    let started = sending.write(|| StartRedelivery { filter, total: 0 }).expect("started");
    while block_on(step(sending.app(), sending.test().id(), started.id)).expect("a step")
        == rapport_app::redelivery::Stepped::More
    {}
    started.id
}

fn seen(sending: &Sending, id: RedeliveryId) -> Progress {
    sending.read(move |snapshot| progress(snapshot, id)).expect("there")
}

#[test]
fn cancelling_stops_everything_that_has_not_started() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        failed(sending, &receiver, MANY);
        let before = receiver.requests().len();
        // Each response is delayed, so that most attempts wait in memory at the time of the cancel.
        receiver.answer(Behaviour::Delay(Duration::from_millis(200), Box::new(Behaviour::Status(500))));
        let id = start(sending);
        wait_for_requests(&receiver, before + 3);
        sending.write(|| CancelRedelivery(id)).expect("cancelled");
        let sent_by_then = receiver.requests().len();
        eventually("nothing of it to be left", || (sending.test().rows("manual_attempt") == 0).then_some(()));
        sending.quiet();
        let sent = receiver.requests().len();
        assert!(sent <= sent_by_then + 1, "{} more were sent after the cancel", sent - sent_by_then);
        let end = seen(sending, id);
        assert_eq!((end.redelivery.state(), end.unmade), (Stage::Cancelled, 0));
        let made = i64::try_from(sent - before).unwrap();
        assert_eq!(end.redelivery.queued, made, "only attempts that were made are counted");
    });
}

#[test]
fn it_pauses_when_the_webhook_is_auto_disabled_and_resumes_when_it_is_enabled() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        let hook = failed(sending, &receiver, 40);
        receiver.answer(Behaviour::Status(500));
        let before = receiver.requests().len();
        let streak = sending.streak(&hook);
        let id = start(sending);
        sending.wait_for_streak(&hook, MAX_STREAK);
        eventually("it to be paused", || seen(sending, id).paused.then_some(()));
        sending.quiet();
        let made = i64::try_from(receiver.requests().len() - before).unwrap();
        assert_eq!(made, MAX_STREAK - streak, "nothing is sent to an auto-disabled webhook");
        let open = seen(sending, id);
        assert_eq!((open.redelivery.state(), open.redelivery.queued - open.unmade), (Stage::Running, made));

        receiver.answer(Behaviour::Status(200));
        let test = sending.send_test(&hook);
        sending.wait_for_success(test);
        assert!(seen(sending, id).paused, "a test alone does not resume it");
        sending.enable(&hook, Held::Send).expect("enabled");
        eventually("every attempt to be made", || (seen(sending, id).unmade == 0).then_some(()));
        assert!(!seen(sending, id).paused);
    });
}

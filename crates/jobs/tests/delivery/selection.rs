//! Which webhooks get an event, and what remains of a deleted webhook.

use rapport_app::webhook::TestWebhook;
use rapport_app::{Command, Context, Error, Needs};
use rapport_domain::delivery::State;
use rapport_domain::event::Kind;
use rapport_store::Tx;
use rapport_testkit::{Behaviour, Gate, Receiver, block_on};
use serde_json::json;

use crate::harness::{Sending, conflict, eventually, payload, requests_to, wait_for_requests};

#[test]
fn the_selection_at_the_moment_of_the_event_decides() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        receiver.answer(Behaviour::Status(500));
        let hook = sending.webhook_for(&receiver.url("/hook"), &["account.created"]);
        let imported_id = sending.create_account();
        let created = sending.deliveries(&hook)[0].id;
        sending.only_attempt(created);
        sending.ingest("trial_started", std::slice::from_ref(&imported_id));
        assert_eq!(sending.deliveries(&hook).len(), 1, "events that aren't selected aren't delivered");
        sending.patch(&hook, json!({ "events": ["account.status_changed"] }));
        sending.quiet();
        assert_eq!(sending.deliveries(&hook).len(), 1, "nor afterwards");
        // It was selected at the time, so it is still due.
        receiver.answer(Behaviour::Status(200));
        sending.move_to_due(created);
        sending.wait_for_success(created);
        sending.create_account();
        sending.ingest("became_customer", &[imported_id]);
        let deliveries = sending.deliveries(&hook);
        let kinds: Vec<Kind> = deliveries.iter().map(|delivery| delivery.kind).collect();
        assert_eq!(kinds, [Kind::AccountCreated, Kind::AccountStatusChanged]);
        sending.wait_for_success(deliveries[1].id);
    });
}

#[test]
fn a_test_goes_to_its_webhook_whatever_that_selects_and_to_no_other() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        let hook = sending.webhook_for(&receiver.url("/tested"), &["message.inbound"]);
        sending.webhook(&receiver.url("/other"));
        let id = sending.send_test(&hook);
        sending.wait_for_success(id);
        sending.quiet();
        let requests = receiver.requests();
        assert_eq!(requests.len(), 1);
        assert_eq!(
            (requests[0].path.as_str(), requests[0].header("X-Service-Event")),
            ("/tested", "webhook.test")
        );
        let test = payload(&requests[0]);
        assert_eq!(test["data"]["account"]["imported_id"], "test");
        assert_eq!(test["data"]["webhook_id"], hook.id.to_string());
        assert!(test["data"]["message"].is_string(), "{test}");
        let last_test = sending.webhook_now(&hook).last_test.expect("the test is kept");
        assert!(last_test.succeeded);
    });
}

#[test]
fn a_failed_test_of_an_enabled_webhook_is_retried_as_everything_is() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        receiver.script(vec![Behaviour::Status(500)]);
        let hook = sending.webhook(&receiver.url("/hook"));
        let id = sending.send_test(&hook);
        sending.only_attempt(id);
        assert!(!sending.webhook_now(&hook).last_test.expect("the test is kept").succeeded);
        sending.move_to_due(id);
        sending.wait_for_success(id);
        assert!(sending.webhook_now(&hook).last_test.expect("the test is kept").succeeded);
    });
}

/// Causes an event, and then rolls back.
struct Undone(TestWebhook);

impl Command for Undone {
    type Reply = ();
    const NEEDS: Needs = TestWebhook::NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        self.0.run(tx, cx)?;
        Err(Error::conflict("undoing", "this is rolled back"))
    }
}

#[test]
fn a_rollback_leaves_no_delivery_and_sends_nothing() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        let hook = sending.webhook(&receiver.url("/hook"));
        let undone = block_on(sending.app().write(sending.test().token(), Undone(TestWebhook(hook.id))));
        assert_eq!(conflict(undone), "undoing");
        assert_eq!(sending.test().rows("delivery"), 0);
        sending.quiet();
        assert!(receiver.requests().is_empty());
        assert!(sending.deliveries(&hook).is_empty());
    });
}

#[test]
fn deleting_a_webhook_ends_its_open_deliveries() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        let gate = Gate::shut();
        let slow = Behaviour::Until(gate.clone(), Box::new(Behaviour::Status(500)));
        receiver.script(vec![Behaviour::Status(200), Behaviour::Status(500), slow]);
        let hook = sending.webhook(&receiver.url("/hook"));
        let [done, waiting, under_way] = [(); 3].map(|()| {
            let id = sending.send_event(&hook);
            let sent = sending.deliveries(&hook).len();
            wait_for_requests(&receiver, sent);
            if sent < 3 {
                sending.only_attempt(id);
            }
            id
        });
        let queued = sending.send_event(&hook);
        sending.delete(&hook);
        gate.open();
        for id in [waiting, under_way, queued] {
            let ended = sending.wait_for_state(id, State::Failed);
            assert_eq!(ended.error.as_deref(), Some("webhook_deleted"));
            assert_eq!(ended.finished_at, Some(sending.now()));
        }
        assert_eq!(sending.delivery(done).state, State::Succeeded, "finished deliveries stay as they are");
        assert_eq!(sending.only_attempt(under_way).response_code, Some(500), "its history stays");
        assert_eq!(conflict(sending.redeliver(done)), "webhook_deleted");
        sending.create_account();
        sending.clock().advance_days(2);
        sending.quiet();
        assert_eq!(requests_to(&receiver, "/hook").len(), 3, "a deleted webhook is not sent to");
        assert_eq!(sending.deliveries(&hook).len(), 4, "later events have no delivery to it");
    });
}

#[test]
fn a_redelivery_that_meets_a_deletion_leaves_nothing_behind() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        let hook = sending.webhook(&receiver.url("/hook"));
        let id = sending.send_event(&hook);
        sending.wait_for_success(id);
        sending.stop();
        sending.redeliver(id).expect("a redelivery that waits for a sender");
        sending.delete(&hook);
        sending.start();
        eventually("the redelivery to be given up", || {
            (sending.test().rows("manual_attempt") == 0).then_some(())
        });
        assert_eq!(receiver.requests().len(), 1);
        assert_eq!(sending.delivery(id).state, State::Succeeded);
    });
}

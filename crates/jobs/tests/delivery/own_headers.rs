//! The headers that a webhook adds to its deliveries, and the events that its filter lets through.

use rapport_testkit::{Behaviour, Receiver};
use serde_json::json;

use crate::harness::{Hook, Sending, payload, wait_for_requests};

const TOKEN: &str = "Bearer 8f3a-topsecret-51";

fn webhook(sending: &Sending, body: &serde_json::Value) -> Hook {
    let create = rapport_testkit::create_webhook(sending.app(), body);
    let made = sending.write(|| create.clone()).expect("a webhook");
    Hook { id: made.webhook.id, secret: made.secret }
}

#[test]
fn every_delivery_carries_the_webhooks_own_headers() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        let headers = json!([
            {"name": "Authorization", "value": TOKEN}, {"name": "X-Environment", "value": "prod", "secret": false},
        ]);
        let url = receiver.url("/hook");
        let hook = webhook(sending, &json!({"url": url, "events": ["account.created"], "headers": headers}));
        let id = sending.send_event(&hook);
        sending.wait_for_success(id);
        let request = wait_for_requests(&receiver, 1).remove(0);
        assert_eq!(request.header("Authorization"), TOKEN);
        assert_eq!(request.header("X-Environment"), "prod");
        assert_eq!(request.header("X-Service-Event"), "account.created", "ours are as always");
        let test = sending.send_test(&hook);
        sending.wait_for_success(test);
        assert_eq!(wait_for_requests(&receiver, 2)[1].header("Authorization"), TOKEN, "tests too");

        // They are read at each attempt, like the URL.
        sending.patch(&hook, json!({"headers": [{"name": "Authorization"}]}));
        sending.redeliver(id).expect("a redelivery");
        let request = wait_for_requests(&receiver, 3).remove(2);
        assert_eq!(request.header("Authorization"), TOKEN, "a secret without a value keeps its value");
        assert!(!request.headers.contains_key("x-environment"));
        sending.patch(&hook, json!({"headers": []}));
        sending.redeliver(id).expect("a redelivery");
        assert!(!wait_for_requests(&receiver, 4)[3].headers.contains_key("authorization"));
    });
}

#[test]
fn a_response_that_repeats_a_secret_header_is_kept_without_it() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        let body = format!("you sent {TOKEN}, thanks").into_bytes();
        receiver.answer(Behaviour::StatusWith { code: 200, headers: Vec::new(), body });
        let headers = json!([{"name": "Authorization", "value": TOKEN}]);
        let url = receiver.url("/hook");
        let hook = webhook(sending, &json!({"url": url, "events": ["account.created"], "headers": headers}));
        let id = sending.send_event(&hook);
        sending.wait_for_success(id);
        assert_eq!(sending.only_attempt(id).excerpt.as_deref(), Some(&b"you sent ****, thanks"[..]));
    });
}

#[test]
fn only_events_that_match_the_filter_are_delivered() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        let events = ["account.created", "account.status_changed"];
        let filters = json!({"from": "prospect", "to": ["in_trial", "customer"]});
        let url = receiver.url("/hook");
        let hook = webhook(sending, &json!({"url": url, "events": events, "filters": filters}));
        let first = sending.create_account();
        sending.ingest("trial_started", std::slice::from_ref(&first));
        sending.ingest("became_customer", std::slice::from_ref(&first));
        sending.ingest("churned", &[first]);
        let deliveries = sending.deliveries(&hook);
        assert_eq!(deliveries.len(), 1, "nothing is written for the others");
        sending.wait_for_success(deliveries[0].id);
        let moved = payload(&wait_for_requests(&receiver, 1)[0]);
        assert_eq!(
            (&moved["data"]["previous_status"], &moved["data"]["status"]),
            (&json!("prospect"), &json!("in_trial"))
        );
        let test = sending.send_test(&hook);
        sending.wait_for_success(test);
        assert_eq!(receiver.requests().len(), 2, "a test is sent whatever the filter says");
    });
}

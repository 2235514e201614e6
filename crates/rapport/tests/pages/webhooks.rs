//! The life of a webhook: its secret once, tests, failures until it is disabled, and the way back.

use std::time::Duration;

use rapport_testkit::{Behaviour, Receiver};
use serde_json::json;

use crate::office::Office;

const PATIENCE: Duration = Duration::from_secs(20);
const FAILURES: usize = 20;

#[tokio::test]
async fn from_its_creation_over_twenty_failures_to_what_was_held() {
    let receiver = Receiver::start();
    let authority = receiver.ca_file().to_str().expect("a path").to_owned();
    let office = Office::open_with(&["--extra-ca", &authority, "--allow-destination", "127.0.0.0/8"]);
    let browser = office.browser().await;

    browser.go("/webhooks").await;
    browser.see("No webhooks yet").await;
    browser.press("n").await;
    browser.fill("url", "http://127.0.0.1/plain").await;
    browser.click("All events").await;
    browser.click("Create the webhook").await;
    browser.see("https").await;
    browser.fill("url", &receiver.url("/hook")).await;
    browser.click("Create the webhook").await;
    browser.see("The webhook is created").await;
    let secret = browser.text_of("#secret").await;
    assert!(secret.starts_with("whs_"), "{secret}");
    browser.click("Copy").await;
    browser.see("Copied").await;
    browser.click("To the webhook").await;

    browser.click("Send test").await;
    receiver.wait_for(1, PATIENCE);
    browser.see("webhook.test").await;
    browser.see("Succeeded").await;

    receiver.answer(Behaviour::Status(500));
    for number in 0..FAILURES {
        office.account(json!({ "imported_id": format!("crm-{number}"), "name": "Nordlys Bank" }));
    }
    receiver.wait_for(1 + FAILURES, PATIENCE);
    browser.see("Disabled after 20 failures in a row").await;
    browser.go("/").await;
    browser.see("1 off").await;
    browser.click("Webhooks").await;
    browser.click_css("table a[href^='/webhooks/']").await;
    office.account(json!({ "imported_id": "crm-held", "name": "Held Ltd" }));
    browser.see("held and will not be lost").await;
    browser.see("Send a test; once it succeeds you can enable the webhook.").await;

    receiver.answer(Behaviour::Status(200));
    let before = receiver.requests().len();
    browser.click("Send test").await;
    browser.see("A test has succeeded: the webhook can be enabled.").await;
    browser.click_css("button[name=held][value=send]").await;
    browser.see_not("Disabled after 20 failures").await;
    // The test, what was held, and what failed and is due again.
    let arrived = receiver.wait_for(before + 2, PATIENCE);
    let held = arrived.iter().any(|request| String::from_utf8_lossy(&request.body).contains("crm-held"));
    assert!(held, "what was held is sent");

    browser.click_css("#deliveries a[href^='/deliveries/']").await;
    browser.see("Attempts").await;
    let before = receiver.requests().len();
    browser.click("Redeliver").await;
    receiver.wait_for(before + 1, PATIENCE);

    browser.go("/webhooks").await;
    browser.click_css("table a[href^='/webhooks/']").await;
    browser.click("Rotate secret").await;
    browser.click("Rotate the secret now").await;
    browser.see("The secret is rotated").await;
    let rotated = browser.text_of("#secret").await;
    assert!(rotated.starts_with("whs_") && rotated != secret);
    browser.close().await;
}

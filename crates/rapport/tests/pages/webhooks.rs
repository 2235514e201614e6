//! The life of a webhook: its secret, tests, failures until it is auto-disabled, enabling it again, and how it is
//! changed, disabled and deleted.

use rapport_testkit::{Behaviour, Browser, Hands, PATIENCE, ReceivedRequest, Receiver, with_all_hands};
use serde_json::{Value, json};

use crate::office::Office;
use crate::program::wait_until;

const FAILURES: usize = 20;

with_all_hands!(
    from_its_creation_over_twenty_failures_to_what_was_held,
    it_is_edited_disabled_and_deleted,
    its_events_are_filtered_and_its_headers_kept_secret,
    its_signatures_are_checked,
);

async fn from_its_creation_over_twenty_failures_to_what_was_held(hands: Hands) {
    let receiver = Receiver::start();
    let office = Office::open_for(&receiver);
    let browser = office.browser_with(hands).await;
    let secret = create_it(&browser, hands, &receiver).await;
    test_it(&browser, &receiver).await;
    fail_until_it_is_disabled(&office, &browser, &receiver).await;
    hold_what_happens_meanwhile(&office, &browser).await;
    test_and_enable_it(&browser, &receiver).await;
    redeliver_one(&browser, &receiver).await;
    let rotated = rotate_its_secret(&browser).await;
    assert_ne!(rotated, secret);
    browser.close();
}

/// Returns its secret, which is shown only once.
async fn create_it(browser: &Browser, hands: Hands, receiver: &Receiver) -> String {
    browser.click("Webhooks").await;
    browser.see("No webhooks yet").await;
    if hands == Hands::Keyboard {
        browser.press("n").await;
    } else {
        browser.click("New webhook").await;
    }
    browser.fill("url", "http://127.0.0.1/plain").await;
    browser.fill("description", "The CRM").await;
    browser.click("All events").await;
    browser.click("Create webhook").await;
    browser.expect_count("#url[aria-invalid]", 1).await;
    browser.see_in("#url-note", "https").await;
    // What was typed stays.
    browser.expect_count("#description[value='The CRM']", 1).await;
    browser.fill("url", &receiver.url("/hook")).await;
    browser.click("Create webhook").await;
    browser.see("Webhook created").await;
    let secret = browser.text_of("#secret").await;
    assert!(secret.starts_with("whs_"), "{secret}");
    assert!(browser.text_of("#library-secret").await.starts_with("whsec_"));
    if hands != Hands::NoScripts {
        // What the button says for a moment, it says for good.
        browser.run("window.setTimeout = () => 0", Vec::new()).await;
        browser.click("Copy").await;
        browser.see("Copied").await;
    }
    browser.click("Go to webhook").await;
    secret
}

async fn test_it(browser: &Browser, receiver: &Receiver) {
    browser.click("Send test").await;
    browser.see("Test sent").await;
    receiver.wait_for(1, PATIENCE);
    browser.see_news("webhook.test").await;
    browser.see_news("Succeeded").await;
}

async fn fail_until_it_is_disabled(office: &Office, browser: &Browser, receiver: &Receiver) {
    receiver.answer(Behaviour::Status(500));
    for number in 0..FAILURES {
        office.account(json!({ "imported_id": format!("crm-{number}"), "name": "Nordlys Bank" }));
    }
    receiver.wait_for(1 + FAILURES, PATIENCE);
    browser.see_news("Disabled after 20 failures in a row").await;
    browser.click("Dashboard").await;
    browser.see("1 off").await;
    browser.see("Auto-disabled after repeated failures").await;
    browser.click_css("main a[href='/webhooks']").await;
    browser.see("after 20 failures in a row").await;
    open_it(browser).await;
}

async fn open_it(browser: &Browser) {
    browser.click_css("table a[href^='/webhooks/']").await;
    browser.see("Send test").await;
}

async fn hold_what_happens_meanwhile(office: &Office, browser: &Browser) {
    office.account(json!({ "imported_id": "crm-held", "name": "Held Ltd" }));
    browser.see_news("held and won’t be lost").await;
    browser.see("Send a test. Once it succeeds, you can enable the webhook.").await;
    // It cannot be enabled yet.
    browser.expect_count("button[name=held]", 0).await;
}

async fn test_and_enable_it(browser: &Browser, receiver: &Receiver) {
    receiver.answer(Behaviour::Status(200));
    browser.click("Send test").await;
    browser.see_news("A test succeeded, so you can enable the webhook.").await;
    browser.click_css("button[name=held][value=send]").await;
    browser.see("Held deliveries are being sent").await;
    browser.see_not("Disabled after 20 failures").await;
    // Deliveries that failed before may be due again and arrive first.
    wait_until("what was held to be sent", || {
        let is_held = |request: &ReceivedRequest| String::from_utf8_lossy(&request.body).contains("crm-held");
        receiver.requests().iter().any(is_held)
    });
}

async fn redeliver_one(browser: &Browser, receiver: &Receiver) {
    browser.click_css("#deliveries a[href^='/deliveries/']").await;
    browser.see("Attempts").await;
    let before = receiver.requests().len();
    browser.click("Redeliver").await;
    browser.see("Redelivery started").await;
    receiver.wait_for(before + 1, PATIENCE);
    browser.see_news("manual").await;
}

/// Returns the new secret.
async fn rotate_its_secret(browser: &Browser) -> String {
    browser.click("Webhooks").await;
    open_it(browser).await;
    browser.click("Rotate secret").await;
    browser.click("Rotate secret now").await;
    browser.see("Secret rotated").await;
    let rotated = browser.text_of("#secret").await;
    assert!(rotated.starts_with("whs_"), "{rotated}");
    rotated
}

async fn it_is_edited_disabled_and_deleted(hands: Hands) {
    let receiver = Receiver::start();
    let office = Office::open_for(&receiver);
    office.webhook(&receiver.url("/old"), &["account.created", "account.status_changed"]);
    let browser = office.browser_with(hands).await;
    browser.click("Webhooks").await;
    open_it(&browser).await;
    edit_it(&office, &browser, hands, &receiver).await;
    disable_it(&office, &browser, &receiver).await;
    delete_it(&office, &browser).await;
    browser.close();
}

async fn edit_it(office: &Office, browser: &Browser, hands: Hands, receiver: &Receiver) {
    if hands == Hands::Keyboard {
        browser.press("e").await;
    } else {
        browser.click("Edit").await;
    }
    // An address inside the network is refused, and nothing of the form is lost.
    browser.fill("url", "https://10.1.2.3/inside").await;
    browser.fill("description", "The new CRM").await;
    browser.click_css("input[value='account.status_changed']").await;
    browser.click("Save").await;
    browser.expect_count("#url[aria-invalid]", 1).await;
    browser.expect_count("#url[value='https://10.1.2.3/inside']", 1).await;
    browser.expect_count("#description[value='The new CRM']", 1).await;
    browser.expect_count("input[name=events][checked]", 1).await;
    browser.fill("url", &receiver.url("/new")).await;
    browser.click("Save").await;
    browser.see("Webhook saved.").await;
    browser.see("The new CRM").await;

    let account = office.account(json!({ "imported_id": "crm-1", "name": "Nordlys Bank" }));
    let id = account["id"].as_str().expect("an id");
    office.api("POST", &format!("/api/accounts/{id}/status/"), &json!({ "status": "contacted" }));
    let arrived = receiver.wait_for(1, PATIENCE);
    assert_eq!(arrived[0].path, "/new");
    assert_eq!(arrived[0].header("X-Service-Event"), "account.created");
    let listed = office.api("GET", "/api/deliveries/", &Value::Null);
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(1), "moves are not asked for: {listed}");
}

/// Disables it twice: once with an undo, and once with the held deliveries dropped.
async fn disable_it(office: &Office, browser: &Browser, receiver: &Receiver) {
    browser.click("Disable").await;
    browser.see("Webhook disabled. New events are held.").await;
    browser.click("Undo").await;
    browser.see("Webhook enabled.").await;
    browser.click("Disable").await;
    browser.see("Disabled by hand").await;
    office.account(json!({ "imported_id": "crm-2", "name": "Held Ltd" }));
    browser.see_news("1 delivery is held and won’t be lost.").await;
    browser.click("Enable without sending").await;
    browser.click("Enable and drop 1").await;
    browser.see("Webhook enabled. Held deliveries were dropped.").await;
    browser.see("dropped when the webhook was enabled").await;
    assert_eq!(receiver.requests().len(), 1, "what was held is not sent");
}

async fn delete_it(office: &Office, browser: &Browser) {
    browser.click("Delete").await;
    browser.see("Pending deliveries won’t be sent.").await;
    browser.click("Delete webhook").await;
    browser.see("Webhook deleted.").await;
    browser.see("No webhooks yet").await;
    assert_eq!(office.api("GET", "/api/webhooks/", &Value::Null)["items"], json!([]));
    browser.click("Deliveries").await;
    browser.see("Nordlys Bank").await;
    // Nothing is left to redeliver to.
    browser.expect_count("#deliveries form", 0).await;
}

async fn its_signatures_are_checked(hands: Hands) {
    let receiver = Receiver::start();
    let office = Office::open_for(&receiver);
    let id = office.webhook(&receiver.url("/hook"), &["account.created"]);
    office.account(json!({ "imported_id": "crm-1", "name": "Nordlys Bank" }));
    let arrived = receiver.wait_for(1, PATIENCE).remove(0);
    let body = String::from_utf8(arrived.body.clone()).expect("text");
    let signature = arrived.header("X-Service-Signature");
    let browser = office.browser_at(&format!("/webhooks/{id}"), hands).await;
    browser.click("Check a signature").await;

    // The webhook is chosen already.
    check(&browser, signature, &body).await;
    browser.see("Valid signature").await;
    check(&browser, &signature.to_uppercase().replace("SHA256", "sha256"), &body).await;
    browser.see("must be lower case").await;
    check(&browser, &format!("  {signature} "), &body).await;
    browser.see("Valid signature").await;
    check(&browser, signature, &body.replace("\":", "\": ")).await;
    browser.see("The body was parsed and serialized again").await;
    check(&browser, signature, &body.replace("Nordlys", "Another")).await;
    browser.see("this isn’t the body that was sent for this event").await;
    browser.choose("webhook", "").await;
    browser.fill("secret", "whs_of_somebody_else").await;
    check(&browser, signature, &body).await;
    browser.see("Wrong secret").await;

    // The signature of Standard Webhooks, with its timestamp.
    browser.choose("webhook", &id).await;
    browser.fill("timestamp", arrived.header("webhook-timestamp")).await;
    check(&browser, arrived.header("webhook-signature"), &body).await;
    browser.see_in("#verdict", "Valid signature (webhook-signature)").await;
    browser.fill("timestamp", "1800000000000").await;
    check(&browser, arrived.header("webhook-signature"), &body).await;
    browser.see_in("#verdict", "looks like milliseconds").await;
    browser.close();
}

async fn check(browser: &Browser, signature: &str, body: &str) {
    browser.fill("signature", signature).await;
    browser.fill("body", body).await;
    browser.click("Check").await;
}

async fn its_events_are_filtered_and_its_headers_kept_secret(hands: Hands) {
    let receiver = Receiver::start();
    let office = Office::open_for(&receiver);
    office.account(json!({ "imported_id": "crm-0", "name": "Nordlys Bank" }));
    let browser = office.browser_at("/webhooks/new", hands).await;
    browser.fill("url", &receiver.url("/hook")).await;
    browser.click("All events").await;
    browser.click_css("input[name=more][value='account.updated']").await;
    browser.click_css("input[name=to][value='lost']").await;
    browser.fill_css("input[aria-label='Field 1']", "plan").await;
    browser.fill_css("input[aria-label='Value 1']", "pro").await;
    browser.fill_css("input[aria-label='Header 1']", "X-Environment").await;
    browser.choose_css("select[aria-label='Kind of header 1']", "visible").await;
    browser.fill_css("input[aria-label='Value of header 1']", "test").await;

    // The preview says why an event would not be sent, and keeps what was typed.
    browser.click("Preview").await;
    browser.see("Nothing was saved.").await;
    browser.see("The stage is Prospect.").await;
    browser.expect_count("input[name=to][checked]", 1).await;
    browser.expect_count("input[aria-label='Field 1'][value=plan]", 1).await;
    browser.fill_css("input[aria-label='Header 2']", "Authorization").await;
    browser.fill_css("input[aria-label='Value of header 2']", "Bearer hush").await;
    browser.click("Create webhook").await;
    browser.see("Webhook created").await;
    browser.click("Go to webhook").await;
    browser.see("Authorization: ****").await;
    browser.see("plan is pro").await;
    browser.see_not("hush").await;

    office.account(json!({ "imported_id": "crm-1", "status": "lost" }));
    let body = json!({ "imported_id": "crm-2", "status": "lost", "custom_fields": { "plan": "Pro" } });
    office.account(body);
    let arrived = receiver.wait_for(1, PATIENCE);
    assert!(String::from_utf8_lossy(&arrived[0].body).contains("crm-2"), "only what matches is sent");
    assert_eq!(arrived[0].header("Authorization"), "Bearer hush");
    assert_eq!(arrived[0].header("X-Environment"), "test");

    // A secret stays if nothing else is typed, and a header goes if another takes its row.
    browser.click("Edit").await;
    browser.expect_count("input[placeholder='Leave empty to keep'][value='']", 1).await;
    browser.fill_css("input[aria-label='Header 1']", "X-Stage").await;
    browser.click("Save").await;
    browser.see("Webhook saved.").await;
    browser.see("X-Stage: test").await;
    browser.see_not("X-Environment").await;
    browser.click("Send test").await;
    let arrived = receiver.wait_for(2, PATIENCE);
    assert_eq!(arrived[1].header("Authorization"), "Bearer hush");
    assert_eq!(arrived[1].header("X-Stage"), "test");
    assert!(!arrived[1].headers.contains_key("x-environment"));
    browser.close();
}

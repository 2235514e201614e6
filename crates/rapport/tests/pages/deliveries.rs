//! The log of deliveries: filters, attempts, redelivery of one and of many, and live updates.

use std::collections::BTreeSet;

use rapport_testkit::{Behaviour, Browser, Hands, PATIENCE, Receiver, with_all_hands};
use serde_json::{Value, json};

use crate::office::Office;
use crate::program::wait_until;

const ENTER: &str = "\u{e007}";
const ROWS: &str = "#deliveries tbody tr";

with_all_hands!(
    the_log_is_filtered_and_a_delivery_read_and_sent_again,
    many_are_counted_sent_again_followed_and_cancelled,
);

async fn the_log_is_filtered_and_a_delivery_read_and_sent_again(hands: Hands) {
    let receiver = Receiver::start();
    let office = Office::open_for(&receiver);
    // Each attempt opens its own connection, so it has the times of all phases.
    let answer = |code, body: &[u8]| {
        let headers = vec![("Connection".to_owned(), "close".to_owned())];
        Behaviour::StatusWith { code, headers, body: body.to_vec() }
    };
    receiver.answer(answer(200, b""));
    receiver.answer_path("/billing", answer(404, b"<b>moved</b> away"));
    let crm = office.webhook(&receiver.url("/crm"), &["account.created", "account.status_changed"]);
    office.webhook(&receiver.url("/billing"), &["account.created"]);
    let account = office.account(json!({ "imported_id": "crm-1", "name": "Nordlys Bank" }));
    let id = account["id"].as_str().expect("an id");
    office.api("POST", &format!("/api/accounts/{id}/status/"), &json!({ "status": "contacted" }));
    receiver.wait_for(3, PATIENCE);
    let browser = office.browser_with(hands).await;
    browser.click("Webhooks").await;
    browser.click("Deliveries").await;
    browser.see_news("404").await;
    filter_it(&browser, hands, &crm).await;
    filter_by_time(&office, &browser).await;
    filter_by_account(&browser).await;

    browser.choose("state", "failed").await;
    if hands != Hands::Mouse {
        browser.click("Filter").await;
    }
    filtered(&browser, "option[value='failed'][selected]", 1).await;
    browser.click("account.created").await;
    read_it(&browser).await;
    send_it_again(&office, &browser, &receiver).await;
    browser.close();
}

/// Waits for the page with this filter and checks the number of its rows.
async fn filtered(browser: &Browser, by: &str, rows: usize) {
    browser.expect_count(by, 1).await;
    browser.expect_count(ROWS, rows).await;
}

/// A choice by mouse applies immediately, and Enter applies a choice by keyboard. A button works for both.
async fn filter_it(browser: &Browser, hands: Hands, webhook: &str) {
    filtered(browser, "form.filters:not(:has([selected]))", 3).await;
    let rows = [("webhook", webhook, 2), ("type", "account.status_changed", 1)];
    for (name, value, rows) in rows {
        choose(browser, hands, name, value, rows).await;
    }
    browser.see("Nordlys Bank").await;
    // One filter is kept while another is chosen.
    browser.expect_count(&format!("[name=webhook] [value='{webhook}'][selected]"), 1).await;
    browser.click("Clear").await;
    filtered(browser, "form.filters:not(:has([selected]))", 3).await;
}

async fn choose(browser: &Browser, hands: Hands, name: &str, value: &str, rows: usize) {
    browser.choose(name, value).await;
    match hands {
        Hands::Mouse => {}
        Hands::Keyboard => browser.press_and_leave(ENTER).await,
        Hands::NoScripts => browser.click("Filter").await,
    }
    filtered(browser, &format!("[name={name}] [value='{value}'][selected]"), rows).await;
}

async fn filter_by_time(office: &Office, browser: &Browser) {
    let listed = office.api("GET", "/api/deliveries/", &Value::Null);
    let first = listed["items"][2]["created_at"].as_str().expect("a time");
    // The second in which the first was created. The company's zone is UTC.
    let second = first.get(..19).expect("a time");
    browser.fill("since", second).await;
    browser.click("Filter").await;
    filtered(browser, &format!("[name=since][value='{second}']"), 3).await;
    browser.fill("until", second).await;
    browser.click("Filter").await;
    browser.see("No deliveries match").await;
    filtered(browser, &format!("[name=until][value='{second}']"), 0).await;
    browser.click("All deliveries").await;
    filtered(browser, "[name=until][value='']", 3).await;
}

/// Filters by either id. An unknown id is refused and stays in the field to be corrected.
async fn filter_by_account(browser: &Browser) {
    browser.fill("account", "crm-nobody").await;
    browser.press_and_leave(ENTER).await;
    filtered(browser, "[name=account][value='crm-nobody']", 0).await;
    browser.expect_count(".banner[role=alert]", 1).await;
    // Without the invalid filter it would mean all deliveries.
    browser.expect_count("a[href^='/redeliveries/new']", 0).await;
    browser.fill("account", "crm-1").await;
    browser.press_and_leave(ENTER).await;
    browser.see("Deliveries for the account Nordlys Bank.").await;
    filtered(browser, "[name=account][value='crm-1']", 3).await;
}

async fn read_it(browser: &Browser) {
    browser.see("Failed").await;
    browser.see("\"name\": \"Nordlys Bank\"").await;
    browser.see("sha256=").await;
    for part in ["#1", "404", "automatic", "127.0.0.1", "TLS", "total", "<b>moved</b> away"] {
        browser.see_in("#attempts li", part).await;
    }
    // The response can be folded away and shown again.
    browser.click("Response").await;
    browser.see_not("<b>moved</b> away").await;
    browser.click("Response").await;
    browser.see("<b>moved</b> away").await;
}

async fn send_it_again(office: &Office, browser: &Browser, receiver: &Receiver) {
    receiver.answer_path("/billing", Behaviour::Status(204));
    let path = browser.path().await;
    browser.click("Redeliver").await;
    browser.see("Redelivery started.").await;
    browser.see_news("#2").await;
    browser.see_news("Succeeded").await;
    for part in ["204", "manual"] {
        browser.see_in("#attempts li", part).await;
    }
    let delivery = office.api("GET", &format!("/api{path}/"), &Value::Null);
    assert_eq!(
        (&delivery["state"], &delivery["attempt_count"]),
        (&json!("succeeded"), &json!(2)),
        "{delivery}"
    );
    let arrived = receiver.requests();
    let again: Vec<_> = arrived.iter().filter(|request| request.path == "/billing").collect();
    assert_eq!(again.len(), 2);
    assert_eq!(again[0].body, again[1].body, "the same bytes");
    assert_eq!(again[0].header("X-Service-Delivery"), again[1].header("X-Service-Delivery"));
}

async fn many_are_counted_sent_again_followed_and_cancelled(hands: Hands) {
    let receiver = Receiver::start();
    let office = Office::open_for(&receiver);
    office.webhook(&receiver.url("/crm"), &["account.created"]);
    for number in 0..3 {
        office.account(json!({ "imported_id": format!("crm-{number}"), "name": "Nordlys Bank" }));
    }
    receiver.wait_for(3, PATIENCE);
    let browser = office.browser_with(hands).await;
    browser.click("Webhooks").await;
    browser.click("Redeliveries").await;
    browser.see("No bulk redeliveries yet").await;
    browser.click("Failed deliveries").await;
    browser.see("No deliveries match").await;
    browser.click("Bulk redeliver").await;
    browser.see("Nothing to redeliver").await;
    browser.click("Back to the log").await;
    browser.click("Clear").await;

    choose(&browser, hands, "type", "account.created", 3).await;
    ask_for(&browser, 3).await;
    browser.see_news("3 of 3 attempts made").await;
    browser.see_news("Finished").await;
    let ids: BTreeSet<String> =
        receiver.wait_for(6, PATIENCE).iter().map(|it| it.header("X-Service-Delivery").to_owned()).collect();
    assert_eq!(ids.len(), 3, "each was sent again under its own id");

    // After a failure there is one request at a time. Nobody answers any more, so four take a minute, unless somebody
    // cancels them.
    receiver.answer(Behaviour::Status(404));
    office.account(json!({ "imported_id": "crm-3", "name": "Nordlys Bank" }));
    wait_until("the failure to be recorded", || {
        office.api("GET", "/api/deliveries/?state=failed&limit=1", &Value::Null)["items"][0].is_object()
    });
    receiver.answer(Behaviour::Stall);
    browser.click("View in the log").await;
    ask_for(&browser, 4).await;
    receiver.wait_for(8, PATIENCE);
    browser.see("Running").await;
    browser.click("Cancel").await;
    browser.see("Cancelled. Requests already under way will finish.").await;
    // A cancelled redelivery has ended.
    browser.expect_count("form[action$='/cancel']", 0).await;
    browser.click("Redeliveries").await;
    browser.see("Finished").await;
    browser.expect_text("#redeliveries tbody tr .badge", "Cancelled").await;
    browser.close();
}

/// Shows the count first, then starts it.
async fn ask_for(browser: &Browser, count: usize) {
    browser.click("Bulk redeliver").await;
    browser.see(&format!("{count} deliveries")).await;
    browser.click(&format!("Redeliver {count} deliveries")).await;
    browser.see("The bulk redelivery has started.").await;
}

#[tokio::test]
async fn a_new_delivery_shows_by_itself_and_what_was_opened_stays() {
    let receiver = Receiver::start();
    let office = Office::open_for(&receiver);
    let id = office.webhook(&receiver.url("/crm"), &["account.created"]);
    office.account(json!({ "imported_id": "crm-1", "name": "Nordlys Bank" }));
    receiver.wait_for(1, PATIENCE);
    let browser = office.browser_at("/deliveries", Hands::Mouse).await;
    browser.run("window.untouched = true", Vec::new()).await;
    browser.see("Nordlys Bank").await;
    browser.run("document.querySelector('#deliveries a').focus()", Vec::new()).await;
    let focused = "return document.activeElement.getAttribute('href')";
    let before = browser.run(focused, Vec::new()).await;
    browser.press("j").await;
    office.account(json!({ "imported_id": "crm-2", "name": "Harbour Freight" }));
    browser.see("Harbour Freight").await;
    // The focus stays, and the selected row stays selected.
    browser.expect_script(focused, &before).await;
    browser.expect_script("return document.querySelector('tr.here')?.dataset.href", &before).await;
    assert_eq!(browser.run("return window.untouched", Vec::new()).await, json!(true));

    browser.go(&format!("/webhooks/{id}")).await;
    browser.click("Show as table").await;
    browser.see_in("details.more thead", "Pending").await;
    office.account(json!({ "imported_id": "crm-3", "name": "Åre Lifts" }));
    browser.see("Åre Lifts").await;
    browser.expect_text("details.more td.n", "3").await;
    browser.see_in("details.more thead", "Pending").await;
    browser.close();
}

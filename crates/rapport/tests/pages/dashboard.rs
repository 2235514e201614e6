//! The dashboard: each number links to the list behind it.

use rapport_testkit::{Behaviour, Browser, Hands, PATIENCE, Receiver, with_all_hands};
use serde_json::json;

use crate::office::Office;

with_all_hands!(numbers_lead_to_the_lists_behind_them);

async fn numbers_lead_to_the_lists_behind_them(hands: Hands) {
    let receiver = Receiver::start();
    let office = Office::open_for(&receiver);
    // One of two deliveries fails for good.
    receiver.script(vec![Behaviour::Status(404)]);
    let webhook = office.webhook(&receiver.url("/crm"), &["account.status_changed"]);
    let clients = [overdue(&office, "Nordlys Bank"), overdue(&office, "Harbour Freight")];
    let prospect = office.account(json!({ "imported_id": "crm-1", "name": "Åre Lifts" }));
    for status in ["contacted", "in_trial"] {
        let path = format!("/api/accounts/{}/status/", prospect["id"].as_str().expect("an id"));
        office.api("POST", &path, &json!({ "status": status }));
    }
    receiver.wait_for(2, PATIENCE);
    let browser = office.browser_with(hands).await;

    stages(&browser).await;
    overdue_clients(&browser, &clients).await;
    this_week(&browser).await;
    deliveries(&browser, &webhook).await;
    browser.click("Dashboard").await;
    browser.see("Mail isn’t set up").await;
    browser.click("Mail").await;
    browser.arrive("/settings/mail").await;
    browser.close();
}

fn overdue(office: &Office, name: &str) -> String {
    let account = office.account(json!({ "imported_id": name, "name": name, "status": "customer" }));
    let id = account["id"].as_str().expect("an id").to_owned();
    let long_ago = json!({ "kind": "call", "occurred_at": "2026-01-15T10:00:00Z" });
    office.api("POST", &format!("/api/accounts/{id}/contacts/"), &long_ago);
    id
}

async fn rows(browser: &Browser, count: usize) {
    browser.expect_count("main tbody tr", count).await;
}

async fn stages(browser: &Browser) {
    browser.click("2 accounts, Customer").await;
    browser.arrive("/accounts").await;
    rows(browser, 2).await;
    browser.see_not("Åre Lifts").await;
    browser.click("Dashboard").await;
    browser.click("Open the board").await;
    browser.arrive("/pipeline").await;
}

async fn overdue_clients(browser: &Browser, clients: &[String]) {
    browser.click("Dashboard").await;
    browser.click_css("[aria-labelledby=overdue-title] a.big").await;
    browser.arrive("/clients").await;
    rows(browser, clients.len()).await;
    browser.click("Dashboard").await;
    browser.click_css(&format!("[aria-labelledby=overdue-title] a[href='/accounts/{}']", clients[0])).await;
    browser.see("Log contact").await;
}

async fn this_week(browser: &Browser) {
    browser.click("Dashboard").await;
    browser.click("New accounts this week: 3").await;
    browser.arrive("/accounts").await;
    browser.see("Created since").await;
    rows(browser, 3).await;
    browser.click("Dashboard").await;
    browser.click("Moves this week: 2").await;
    browser.arrive("/pipeline/moves").await;
    rows(browser, 2).await;
}

async fn deliveries(browser: &Browser, webhook: &str) {
    browser.click("Dashboard").await;
    browser.see_news("Delivered in 7 days").await;
    browser.see_news("50 %").await;
    browser.click("50 %").await;
    browser.arrive("/deliveries").await;
    rows(browser, 2).await;
    // Only the last seven days.
    browser.expect_count("[name=since]:not([value=''])", 1).await;
    browser.click("Dashboard").await;
    browser.click_css("[aria-labelledby=webhooks-title] a[href*='state=failed']").await;
    browser.see("404").await;
    rows(browser, 1).await;
    // Only the last seven days.
    browser.expect_count("[name=since]:not([value=''])", 1).await;
    browser.click("Dashboard").await;
    browser.click_css("[aria-labelledby=webhooks-title] header a").await;
    browser.click_css(&format!("a[href='/webhooks/{webhook}']")).await;
    browser.see("Send test").await;
}

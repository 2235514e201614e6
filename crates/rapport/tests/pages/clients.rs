//! A client becomes overdue, is seen where people look, and leaves once somebody spoke to them.

use serde_json::json;

use crate::office::Office;

fn overdue(office: &Office, number: usize, name: &str) -> String {
    let account =
        office.account(json!({ "imported_id": format!("crm-{number}"), "name": name, "status": "customer" }));
    let id = account["id"].as_str().expect("an id").to_owned();
    let long_ago = json!({ "kind": "call", "occurred_at": "2026-01-15T10:00:00Z" });
    office.api("POST", &format!("/api/accounts/{id}/contacts/"), &long_ago);
    id
}

#[tokio::test]
async fn an_overdue_client_is_listed_until_contact_is_logged() {
    let office = Office::open();
    overdue(&office, 1, "Nordlys Bank");
    let browser = office.browser().await;
    browser.go("/").await;
    browser.see("Nordlys Bank").await;
    browser.see("Overdue clients").await;
    browser.go("/clients").await;
    browser.see("Nordlys Bank").await;

    // One key opens the form in the row that was chosen; the keyboard alone does the rest.
    browser.press("j").await;
    browser.press("c").await;
    browser.press("\u{e004}They like the new reports").await;
    browser.press("\u{e007}").await;
    browser.see("Nobody is overdue").await;
    browser.go("/").await;
    browser.see_not("Nordlys Bank").await;
    assert_eq!(office.api("GET", "/api/clients/?tab=overdue", &json!(null))["items"], json!([]));
    browser.close().await;
}

#[tokio::test]
async fn a_snoozed_client_waits_in_its_own_tab() {
    let office = Office::open();
    let id = overdue(&office, 1, "Nordlys Bank");
    let browser = office.browser().await;
    browser.go(&format!("/accounts/{id}")).await;
    browser.press("s").await;
    browser.run("document.getElementById('snoozed_until').value = '2099-01-01'", Vec::new()).await;
    browser.click("Snooze").await;
    browser.go("/clients?tab=snoozed").await;
    browser.see("Nordlys Bank").await;
    browser.go("/clients").await;
    browser.see("Nobody is overdue").await;
    browser.close().await;
}

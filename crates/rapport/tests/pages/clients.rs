//! A client becomes overdue, is listed, and leaves the list after a contact.

use rapport_testkit::{Hands, with_all_hands};
use serde_json::json;

use crate::office::Office;

pub fn overdue(office: &Office, number: usize, name: &str) -> String {
    let account =
        office.account(json!({ "imported_id": format!("crm-{number}"), "name": name, "status": "customer" }));
    let id = account["id"].as_str().expect("an id").to_owned();
    let long_ago = json!({ "kind": "call", "occurred_at": "2026-01-15T10:00:00Z" });
    office.api("POST", &format!("/api/accounts/{id}/contacts/"), &long_ago);
    id
}

with_all_hands!(an_overdue_client_is_listed_until_contact_is_logged, a_snoozed_client_waits_in_its_own_tab);

async fn an_overdue_client_is_listed_until_contact_is_logged(hands: Hands) {
    let office = Office::open();
    overdue(&office, 1, "Nordlys Bank");
    let browser = office.browser_with(hands).await;
    browser.see("Nordlys Bank").await;
    browser.see("Overdue clients").await;
    browser.click("Clients").await;
    browser.see("Nordlys Bank").await;

    if hands == Hands::Keyboard {
        // One key opens the form in the selected row.
        browser.press("j").await;
        browser.press("c").await;
    } else {
        browser.click("Log contact").await;
    }
    browser.fill("note", "They like the new reports").await;
    browser.press_and_leave("\u{e007}").await;
    browser.see("Nobody is overdue").await;
    browser.click("Dashboard").await;
    browser.see("Ana Ruiz").await;
    browser.see_not("Nordlys Bank").await;
    assert_eq!(office.api("GET", "/api/clients/?tab=overdue", &json!(null))["items"], json!([]));
    browser.close();
}

async fn a_snoozed_client_waits_in_its_own_tab(hands: Hands) {
    let office = Office::open();
    let id = overdue(&office, 1, "Nordlys Bank");
    let browser = office.browser_at(&format!("/accounts/{id}"), hands).await;
    browser.click("Snooze…").await;
    browser.fill("snoozed_until", "2099-01-01").await;
    browser.click_css("form[action$='/snooze'] button").await;
    browser.see("Snoozed until").await;
    browser.click("Clients").await;
    browser.see("Nobody is overdue").await;
    browser.click_css(".tabs a[href='/clients?tab=snoozed']").await;
    browser.see("Nordlys Bank").await;
    browser.close();
}

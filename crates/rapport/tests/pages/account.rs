//! An account's page: details, due dates, messages and deletion.

use rapport_testkit::{Browser, Hands, Screen, with_all_hands};
use serde_json::{Value, json};

use crate::office::Office;

with_all_hands!(
    details_and_custom_fields_are_edited_in_place,
    a_move_and_a_contact_are_written_down,
    an_account_has_its_own_clock,
    what_was_said_is_logged_and_filtered,
    an_account_is_deleted_for_good,
    everything_is_exported_and_what_is_erased_is_listed,
);

/// A customer and its page.
async fn open(office: &Office, hands: Hands) -> (Browser, String) {
    let account =
        office.account(json!({ "imported_id": "crm-1", "name": "Nordlys Bank", "status": "customer" }));
    let path = format!("/accounts/{}", account["id"].as_str().expect("an id"));
    let browser = office.browser_at(&path, hands).await;
    (browser, path)
}

fn shown(office: &Office, path: &str) -> Value {
    office.api("GET", &format!("/api{path}/"), &Value::Null)
}

/// The width of the timeline, and of the widest other card.
const WIDTHS: &str = "const width = (card) => card.getBoundingClientRect().width; \
    const [timeline, ...others] = [document.getElementById('timeline'), ...document.querySelectorAll( \
    '.cols > div:nth-child(odd) .card')].map(width); return timeline > Math.max(...others)";
/// The texts of buttons, fields and navigation that are shown.
const SHOWN: &str = "return [...document.querySelectorAll('button, .btn, input, select, textarea, form, nav, summary')] \
    .filter((element) => element.checkVisibility()).map((element) => element.textContent.trim())";

#[tokio::test]
async fn the_timeline_is_the_widest_column_and_contact_comes_first() {
    let office = Office::open();
    let (browser, _) = open(&office, Hands::Mouse).await;
    for width in [861, 1024, 1200, 1280, 1361, 1440, 1920] {
        browser.resize(Screen::new(width, 900)).await;
        browser.expect_script(WIDTHS, &json!(true)).await;
    }
    browser.restore().await;
    let labels = "return [...document.querySelectorAll('header.page .actions > details > summary')] \
        .map((summary) => summary.firstChild.textContent.trim())";
    let order = json!(["Log contact", "Snooze…", "Move…", "Add note", "⋯"]);
    browser.expect_script(labels, &order).await;
    browser.close();
}

#[tokio::test]
async fn a_printed_account_has_no_buttons_forms_or_navigation() {
    let office = Office::open();
    let (browser, path) = open(&office, Hands::Mouse).await;
    let note = json!({ "kind": "call", "note": "They like the new reports" });
    office.api("POST", &format!("/api{path}/contacts/"), &note);
    browser.reload().await;
    browser.print(true).await;
    browser.expect_script(SHOWN, &json!([])).await;
    browser.see("They like the new reports").await;
    browser.see("Nordlys Bank").await;
    browser.print(false).await;
    browser.see("Log contact").await;
    browser.go("/accounts").await;
    browser.print(true).await;
    browser.expect_script(SHOWN, &json!([])).await;
    browser.see("Nordlys Bank").await;
    browser.print(false).await;
    browser.close();
}

async fn details_and_custom_fields_are_edited_in_place(hands: Hands) {
    let office = Office::open();
    let (browser, path) = open(&office, hands).await;
    browser.click("Edit details").await;
    browser.fill("name", "Nordlys Bank AS").await;
    browser.fill("captured_value", "12,5").await;
    browser.click("Save").await;
    browser.see("Must be a decimal amount").await;
    browser.expect_value("name", "Nordlys Bank AS").await;
    browser.expect_value("captured_value", "12,5").await;
    browser.fill("captured_value", "12.50").await;
    browser.click("Save").await;
    browser.see("Details saved.").await;
    browser.see("Nordlys Bank AS").await;
    let account = shown(&office, &path);
    assert_eq!((&account["name"], &account["captured_value"]), (&json!("Nordlys Bank AS"), &json!("12.50")));

    browser.click("Add custom field").await;
    browser.fill("key", "limits").await;
    browser.fill("value", "{\"seats\": 5").await;
    browser.click("Add").await;
    browser.expect_some("#fields .fault").await;
    browser.expect_value("key", "limits").await;
    browser.expect_value("value", "{\"seats\": 5").await;
    browser.fill("value", "{\"seats\": 5}").await;
    browser.click("Add").await;
    browser.see("Field limits added.").await;
    assert_eq!(shown(&office, &path)["custom_fields"], json!({ "limits": { "seats": 5 } }));

    browser.click("Edit limits").await;
    browser.fill("value", "7").await;
    browser.click("Save").await;
    browser.see("Field limits saved.").await;
    assert_eq!(shown(&office, &path)["custom_fields"], json!({ "limits": 7 }));
    browser.click("Edit limits").await;
    browser.click("Remove…").await;
    browser.click("Remove field").await;
    browser.see("Field limits removed.").await;
    assert_eq!(shown(&office, &path)["custom_fields"], json!({}));
    browser.close();
}

async fn a_move_and_a_contact_are_written_down(hands: Hands) {
    let office = Office::open();
    let (browser, path) = open(&office, hands).await;
    browser.click("Move…").await;
    browser.choose("status", "in_negotiation").await;
    browser.fill("note", "They want more seats").await;
    browser.click("Move").await;
    browser.see("Nordlys Bank moved to In negotiation.").await;
    browser.see("They want more seats").await;
    assert_eq!(shown(&office, &path)["status"], json!("in_negotiation"));
    browser.click("Undo").await;
    browser.see("Nordlys Bank moved to Customer.").await;
    assert_eq!(shown(&office, &path)["status"], json!("customer"));

    browser.click_css("#log-contact > summary").await;
    browser.choose("kind", "meeting").await;
    browser.fill("note", "Lunch at the fair").await;
    browser.fill("occurred_at", "2099-01-15T14:30").await;
    browser.click("Log contact").await;
    browser.expect_some("#log-contact .fault").await;
    browser.expect_value("kind", "meeting").await;
    browser.expect_value("note", "Lunch at the fair").await;
    browser.expect_value("occurred_at", "2099-01-15T14:30").await;
    browser.fill("occurred_at", "2026-01-15T14:30").await;
    browser.click("Log contact").await;
    browser.see("Contact with Nordlys Bank logged; the next one was due").await;
    browser.see("Lunch at the fair").await;
    let contacts = office.api("GET", &format!("/api{path}/contacts/"), &Value::Null);
    let contact = &contacts["items"][0];
    assert_eq!(contacts["items"].as_array().map(Vec::len), Some(1), "the refused one is not written down");
    assert_eq!(
        (&contact["kind"], &contact["occurred_at"], &contact["note"]),
        (&json!("meeting"), &json!("2026-01-15T14:30:00Z"), &json!("Lunch at the fair"))
    );
    browser.close();
}

async fn an_account_has_its_own_clock(hands: Hands) {
    let office = Office::open();
    let (browser, path) = open(&office, hands).await;
    let company = shown(&office, &path)["cadence_days"].clone();
    browser.click("Change cadence").await;
    browser.fill("cadence_days", "7").await;
    browser.click("Save").await;
    browser.see("Contact is now due every 7 days.").await;
    browser.see("7 days this account only").await;
    assert_eq!(shown(&office, &path)["cadence_days"], json!(7));
    browser.click("Change cadence").await;
    browser.click_css("#cadence form.after button").await;
    browser.see("the company default").await;
    assert_eq!(shown(&office, &path)["cadence_days"], company);
    browser.click("Undo").await;
    browser.see("Contact is now due every 7 days.").await;

    browser.click("Snooze…").await;
    browser.fill("snoozed_until", "2099-01-31").await;
    browser.click("Snooze").await;
    browser.see("Nordlys Bank snoozed until 31 Jan 2099.").await;
    assert_eq!(shown(&office, &path)["snoozed_until"], json!("2099-01-31"));
    browser.click("Snooze…").await;
    browser.click("End snooze").await;
    browser.see("Nordlys Bank is no longer snoozed.").await;
    assert_eq!(shown(&office, &path)["snoozed_until"], Value::Null);
    browser.click("Undo").await;
    browser.see("Snoozed until 31 Jan 2099").await;
    assert_eq!(shown(&office, &path)["snoozed_until"], json!("2099-01-31"));
    browser.close();
}

async fn what_was_said_is_logged_and_filtered(hands: Hands) {
    let office = Office::open();
    let (browser, path) = open(&office, hands).await;
    browser.click("Log a message").await;
    browser.fill("subject", "The offer").await;
    browser.click("Log message").await;
    browser.see("Is required.").await;
    browser.expect_value("subject", "The offer").await;
    browser.fill("body", "Five seats for a year").await;
    browser.click("Log message").await;
    browser.see("Message logged.").await;
    browser.see("1 message").await;

    browser.click("The offer").await;
    browser.click("Log a message").await;
    browser.click("Inbound: they wrote").await;
    browser.fill("body", "Sounds good to us").await;
    browser.fill("occurred_at", "2026-02-03T09:05").await;
    browser.click("Log message").await;
    browser.see("2 messages").await;
    browser.see("Sounds good to us").await;
    let timeline = office.api("GET", &format!("/api{path}/timeline/"), &Value::Null).to_string();
    assert!(
        timeline.contains("Sounds good to us") && timeline.contains("2026-02-03T09:05:00Z"),
        "{timeline}"
    );

    browser.click("Nordlys Bank").await;
    let entries = "#timeline-entries";
    for (tab, there, not_there) in [
        ("Moves", "Account created", "Sounds good to us"),
        ("Messages", "Sounds good to us", "Account created"),
        ("Imports", "No import has changed this account", "Sounds good to us"),
        ("All", "Account created", "No import has changed this account"),
    ] {
        browser.click(tab).await;
        browser.see_in(entries, there).await;
        browser.see_not_in(entries, not_there).await;
    }
    browser.close();
}

async fn an_account_is_deleted_for_good(hands: Hands) {
    let office = Office::open();
    let (browser, path) = open(&office, hands).await;
    browser.click("More").await;
    // Nothing happens before it is confirmed.
    browser.click_in_vain("Delete account").await;
    browser.arrive(&path).await;
    assert_eq!(shown(&office, &path)["name"], json!("Nordlys Bank"));
    browser.click("Yes, delete it").await;
    browser.click("Delete account").await;
    browser.see("Nordlys Bank deleted.").await;
    browser.see("No accounts yet").await;
    assert_eq!(office.api("GET", "/api/accounts/", &Value::Null)["items"], json!([]));
    browser.close();
}

async fn everything_is_exported_and_what_is_erased_is_listed(hands: Hands) {
    let office = Office::open();
    let (browser, path) = open(&office, hands).await;
    browser.click("More").await;
    browser.see("Everything stored about this account in one file").await;
    browser.expect_count(&format!("a[href='{path}/export'][download]"), 1).await;
    browser.expect_count(&format!("a[href='{path}/export?format=csv'][download]"), 1).await;
    browser.click_in_vain("Erase payloads").await;
    browser.click("Yes, erase them").await;
    browser.click("Erase payloads").await;
    browser.see("1 payload erased from the delivery history").await;
    browser.see("Kept without them, as a record of what happened: 1 account.").await;
    browser.close();
}

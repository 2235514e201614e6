//! Correcting what was logged on an account, and notes.

use rapport_testkit::{Browser, Hands, with_all_hands};
use serde_json::{Value, json};

use crate::office::Office;

with_all_hands!(
    a_contact_is_edited_and_the_edit_undone,
    a_contact_is_deleted_and_restored_at_once_or_from_the_history,
    a_message_is_corrected_in_its_conversation,
    notes_are_added_pinned_edited_and_deleted,
);

/// A customer who was called, and its page.
async fn open(office: &Office, hands: Hands) -> (Browser, String) {
    let account =
        office.account(json!({ "imported_id": "crm-1", "name": "Nordlys Bank", "status": "customer" }));
    let path = format!("/accounts/{}", account["id"].as_str().expect("an id"));
    let call = json!({ "kind": "call", "note": "Rang twice", "occurred_at": "2026-01-15T14:30:00Z" });
    office.api("POST", &format!("/api{path}/contacts/"), &call);
    let browser = office.browser_at(&path, hands).await;
    (browser, path)
}

/// What is open is accessible. Looking needs scripts.
async fn has_no_violations(browser: &Browser, hands: Hands) {
    if !matches!(hands, Hands::NoScripts) {
        assert_eq!(browser.axe().await, Vec::<String>::new());
    }
}

fn contacts(office: &Office, path: &str) -> Vec<Value> {
    let listed = office.api("GET", &format!("/api{path}/contacts/"), &Value::Null);
    listed["items"].as_array().expect("a list").clone()
}

fn last_contact(office: &Office, path: &str) -> Value {
    office.api("GET", &format!("/api{path}/"), &Value::Null)["last_contact_at"].clone()
}

async fn a_contact_is_edited_and_the_edit_undone(hands: Hands) {
    let office = Office::open();
    let (browser, path) = open(&office, hands).await;
    browser.see_in("#timeline-entries", "Rang twice").await;
    browser.click("Edit contact").await;
    browser.see_in("#edit-entry", "Edit contact").await;
    has_no_violations(&browser, hands).await;
    browser.expect_value("note", "Rang twice").await;
    browser.choose("kind", "meeting").await;
    browser.fill("note", "Lunch at the fair").await;
    browser.fill("occurred_at", "2099-01-16T09:00:00").await;
    browser.click("Save").await;
    browser.expect_some("#edit-entry .fault").await;
    browser.expect_value("note", "Lunch at the fair").await;
    browser.fill("occurred_at", "2026-01-16T09:00:00").await;
    browser.click("Save").await;
    browser.see("Contact changed; the next one was due").await;
    browser.see_in("#timeline-entries", "Lunch at the fair").await;
    browser.see_in("#timeline-entries", "Edited by Ana Ruiz").await;
    browser.see_in("#timeline-entries", "Contact edited").await;
    let edited = &contacts(&office, &path)[0];
    assert_eq!((&edited["kind"], &edited["note"]), (&json!("meeting"), &json!("Lunch at the fair")));
    assert_eq!(last_contact(&office, &path), json!("2026-01-16T09:00:00Z"));

    browser.click("Undo").await;
    browser.see("Contact restored").await;
    browser.see_in("#timeline-entries", "undone by Ana Ruiz").await;
    browser.see_not_in("#timeline-entries", "Edited by").await;
    assert_eq!(contacts(&office, &path)[0]["note"], json!("Rang twice"));
    assert_eq!(last_contact(&office, &path), json!("2026-01-15T14:30:00Z"));

    // Saving without a change is no correction, and a cancelled edit neither.
    browser.click("Edit contact").await;
    browser.click("Save").await;
    browser.see("Nothing was changed.").await;
    browser.click("Edit contact").await;
    browser.fill("note", "Nobody knows").await;
    browser.click("Cancel").await;
    browser.see_not("Nobody knows").await;
    assert_eq!(contacts(&office, &path)[0]["note"], json!("Rang twice"));
    browser.close();
}

async fn a_contact_is_deleted_and_restored_at_once_or_from_the_history(hands: Hands) {
    let office = Office::open();
    let (browser, path) = open(&office, hands).await;
    browser.click("Delete contact").await;
    browser.see("Contact deleted; the next one is due").await;
    assert_eq!((contacts(&office, &path).len(), last_contact(&office, &path)), (0, Value::Null));
    browser.click("Undo").await;
    browser.see("Contact restored").await;
    browser.see_in("#timeline-entries", "Rang twice").await;
    assert_eq!(last_contact(&office, &path), json!("2026-01-15T14:30:00Z"));

    browser.click("Delete contact").await;
    browser.see("Contact deleted").await;
    browser.go(&path).await;
    browser.click("Corrections").await;
    browser.see_in("#timeline-entries", "Contact deleted").await;
    browser.see_in("#timeline-entries", "Rang twice").await;
    browser.click("Undo this correction").await;
    browser.see("Contact restored").await;
    assert_eq!(contacts(&office, &path).len(), 1);
    browser.expect_count("#timeline-entries form", 0).await;
    browser.go("/settings/audit").await;
    browser.see("Deleted a contact").await;
    browser.see("Undid a correction of a contact").await;
    browser.close();
}

async fn a_message_is_corrected_in_its_conversation(hands: Hands) {
    let office = Office::open();
    let (browser, path) = open(&office, hands).await;
    browser.click("Log a message").await;
    browser.fill("subject", "The offer").await;
    browser.fill("body", "Five seats for a year").await;
    browser.click("Log message").await;
    browser.see("Message logged.").await;
    browser.click("The offer").await;
    browser.click("Edit message").await;
    browser.see_in("#edit-entry", "Edit message").await;
    has_no_violations(&browser, hands).await;
    browser.fill("body", "Six seats for a year").await;
    browser.click("Save").await;
    browser.see("Message changed").await;
    browser.see_in("#conversation-messages", "Six seats for a year").await;
    browser.see_in("#conversation-messages", "Edited by Ana Ruiz").await;
    browser.click("Delete message").await;
    browser.see("Message deleted").await;
    browser.see("0 messages").await;
    assert_eq!(
        last_contact(&office, &path),
        json!("2026-01-15T14:30:00Z"),
        "the call is the last contact again"
    );
    browser.click("Undo").await;
    browser.see("Message restored").await;
    browser.see_in("#conversation-messages", "Six seats for a year").await;
    browser.close();
}

async fn notes_are_added_pinned_edited_and_deleted(hands: Hands) {
    let office = Office::open();
    let (browser, path) = open(&office, hands).await;
    let before = last_contact(&office, &path);
    browser.click_css("#add-note > summary").await;
    browser.click_css("#add-note button.primary").await;
    browser.expect_some("#add-note .fault").await;
    browser.fill("text", "Prefers calls before noon").await;
    browser.click("Pin above the timeline").await;
    browser.click_css("#add-note button.primary").await;
    browser.see("Note added.").await;
    browser.see_in("#pinned", "Prefers calls before noon").await;
    browser.see_in("#timeline-entries", "Pinned note").await;
    has_no_violations(&browser, hands).await;
    browser.click_css("#pinned a").await;
    browser.fill("text", "Prefers calls after noon").await;
    browser.click("Save").await;
    browser.see("Note changed.").await;
    browser.see_in("#pinned", "Prefers calls after noon").await;
    browser.see_in("#pinned", "edited by Ana Ruiz").await;
    browser.click_css("#pinned button[aria-label='Unpin note']").await;
    browser.see("Note unpinned.").await;
    browser.expect_count("#pinned-title", 0).await;
    browser.click("Pin note").await;
    browser.see("Note pinned.").await;
    browser.expect_count("#pinned-title", 1).await;
    browser.click_css("#pinned button[aria-label='Delete note']").await;
    browser.see("Note deleted.").await;
    browser.expect_count("#pinned-title", 0).await;
    browser.click("Undo").await;
    browser.see("Note restored.").await;
    browser.see_in("#pinned", "Prefers calls after noon").await;
    browser.click("Notes").await;
    browser.see_in("#timeline-entries", "Prefers calls after noon").await;
    browser.see_not_in("#timeline-entries", "Rang twice").await;
    assert_eq!(last_contact(&office, &path), before, "a note isn't contact");
    browser.close();
}

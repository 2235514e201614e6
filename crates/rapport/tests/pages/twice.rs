//! A form that is sent twice is handled once: after a double click, a reload, or going back.

use rapport_testkit::{Hands, with_all_hands};
use serde_json::json;

use crate::mailbox::Mailbox;
use crate::office::Office;

with_all_hands!(a_token_is_made_once, an_invitation_is_sent_once, a_key_is_rotated_once);

fn tokens(office: &Office) -> usize {
    office.api("GET", "/api/tokens/", &json!(null))["items"].as_array().map_or(0, Vec::len)
}

async fn a_token_is_made_once(hands: Hands) {
    let office = Office::open();
    let before = tokens(&office);
    let browser = office.browser_at("/settings/tokens", hands).await;
    browser.fill("name", "CRM sync").await;
    browser.click_twice("Create token").await;
    browser.see("Copy it now. You won’t see it again.").await;
    let token = browser.text_of("#token").await;
    assert_eq!(tokens(&office), before + 1);
    let bearer = format!("Bearer {token}");
    assert_eq!(office.status("GET", "/api/accounts/", ("Authorization", &bearer), &json!(null)), 200);

    // The browser sends the form again, and the same token is shown.
    browser.reload().await;
    browser.see("Copy it now. You won’t see it again.").await;
    browser.expect_text("#token", &token).await;
    assert_eq!(tokens(&office), before + 1);
    browser.close();
}

async fn an_invitation_is_sent_once(hands: Hands) {
    let (mailbox, office) = Mailbox::with_office();
    let browser = office.browser_at("/settings/members", hands).await;
    browser.fill("email", "bo@acme.test").await;
    browser.click_twice("Invite").await;
    browser.see("An invitation to bo@acme.test is on its way.").await;
    browser.see("Pending invitations").await;
    browser.back().await;
    browser.see("Invite someone").await;
    browser.fill("email", "bo@acme.test").await;
    browser.click("Invite").await;
    browser.see_any(&["This address already has an open invitation", "is on its way."]).await;
    let open = office.api("GET", "/api/invitations/", &json!(null));
    assert_eq!(open["items"].as_array().map(Vec::len), Some(1));
    // A second mail would be listed here.
    let written = office.api("GET", "/api/mails/", &json!(null));
    assert_eq!(written["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(mailbox.mail(1).to, ["bo@acme.test"]);
    browser.close();
}

async fn a_key_is_rotated_once(hands: Hands) {
    let office = Office::open();
    let browser = office.browser_at("/settings/ingest", hands).await;
    browser.click("Rotate ingest key…").await;
    browser.click_twice("Rotate ingest key").await;
    browser.see("Copy it now. You won’t see it again.").await;
    let key = browser.text_of("#ingest-key").await;
    let events = json!({ "events": [{ "imported_id": "crm-1", "kind": "app_opened" }] });
    let header = ("X-Service-Ingest-Key", key.as_str());
    assert_eq!(office.status("POST", "/api/pulse/ingest/", header, &events), 200, "what is shown is the key");
    browser.go("/settings/audit").await;
    browser.see_in("#audit tbody tr", "Rotated the ingest key").await;
    assert_eq!(browser.text_of("#audit").await.matches("Rotated the ingest key").count(), 1);
    browser.close();
}

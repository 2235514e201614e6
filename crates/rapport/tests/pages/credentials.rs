//! Keys and tokens are created, shown once, used and revoked.

use rapport_testkit::{Hands, with_all_hands};
use serde_json::json;

use crate::office::Office;

with_all_hands!(
    a_token_is_shown_once_used_and_revoked,
    a_token_of_a_person_ends_with_them,
    the_ingest_key_is_rotated_and_rejects_are_told,
);

async fn a_token_is_shown_once_used_and_revoked(hands: Hands) {
    let office = Office::open();
    let browser = office.browser_with(hands).await;
    browser.click("Settings").await;
    browser.click("API tokens").await;
    browser.fill("name", "CRM <sync>").await;
    browser.choose("role", "admin").await;
    browser.click("Create token").await;
    browser.see("Copy it now. You won’t see it again.").await;
    if hands == Hands::Mouse {
        assert_eq!(browser.axe().await, [""; 0]);
    }
    let token = browser.text_of("#token").await;
    let bearer = format!("Bearer {token}");
    let reading = || office.status("GET", "/api/tokens/", ("Authorization", &bearer), &json!(null));
    assert_eq!(reading(), 200);

    browser.click("API tokens").await;
    browser.see("New token").await;
    browser.see_not(&token).await;
    browser.see("CRM <sync>").await;
    browser.click("Revoke CRM <sync>").await;
    browser.see("Programs that use CRM <sync> lose access immediately.").await;
    browser.click("Revoke token").await;
    browser.see("Token revoked. It no longer works.").await;
    assert_eq!(reading(), 401);

    browser.click("Audit log").await;
    browser.see_in("#audit", "Created an API token").await;
    for part in ["Revoked an API token", "Ana Ruiz", "CRM <sync>"] {
        browser.see_in("#audit tbody tr", part).await;
    }
    browser.close();
}

async fn a_token_of_a_person_ends_with_them(hands: Hands) {
    let office = Office::open();
    let bo = office.employ("bo@acme.test", "Bo Lind", "member", "the password of Bo Lind");
    let bo = bo["id"].as_str().expect("an id").to_owned();
    let browser = office.browser_at("/settings/tokens", hands).await;
    browser.fill("name", "Bo’s script").await;
    browser.choose("role", "member").await;
    browser.choose("owner", &bo).await;
    browser.fill("expires_at", "2020-01-31").await;
    browser.click("Create token").await;
    browser.see("Must be in the future.").await;
    browser.fill("expires_at", "2031-01-31").await;
    browser.fill("rate_limit", "20").await;
    browser.click("Create token").await;
    browser.see("Copy it now. You won’t see it again.").await;
    let bearer = format!("Bearer {}", browser.text_of("#token").await);
    let reading = || office.status("GET", "/api/accounts/", ("Authorization", &bearer), &json!(null));
    assert_eq!(reading(), 200);
    browser.click("API tokens").await;
    for part in ["Bo Lind", "2031", "20/s"] {
        browser.see_in("#tokens tbody tr", part).await;
    }
    office.api("DELETE", &format!("/api/members/{bo}/"), &json!(null));
    assert_eq!(reading(), 401);
    browser.close();
}

async fn the_ingest_key_is_rotated_and_rejects_are_told(hands: Hands) {
    let office = Office::open();
    office.account(json!({ "imported_id": "crm-1", "name": "Nordlys Bank" }));
    let browser = office.browser_with(hands).await;
    browser.click("Ingest").await;
    browser.see("No rejected events").await;
    browser.click("Rotate ingest key…").await;
    browser.click("Rotate ingest key").await;
    browser.see("Copy it now. You won’t see it again.").await;
    let key = browser.text_of("#ingest-key").await;
    // The example command contains it too.
    browser.see_in("#batch", &key).await;
    let opened = json!({ "events": [{ "imported_id": "crm-1", "kind": "app_opened" }] });
    let ingest =
        |key: &str, body| office.status("POST", "/api/pulse/ingest/", ("X-Service-Ingest-Key", key), body);
    assert_eq!(ingest(office.ingest_key(), &opened), 401, "the one before is refused");
    assert_eq!(ingest(&key, &opened), 200);

    browser.click("Ingest").await;
    browser.see("Send activity").await;
    browser.see_not(&key).await;
    let half = json!({ "events": [
        { "imported_id": "crm-1", "kind": "app_opened" },
        { "imported_id": "crm-1", "kind": "feature_used" },
    ]});
    assert_eq!(ingest(&key, &half), 200);
    browser.see_news("Is required when kind is feature_used.").await;
    browser.see("crm-1").await;
    browser.click("Audit log").await;
    browser.see("Rotated the ingest key").await;
    browser.close();
}

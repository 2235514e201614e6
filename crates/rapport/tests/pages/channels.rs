//! A channel and its codes are created, archived, restored, renamed and deleted.

use rapport_testkit::{Browser, Hands, with_all_hands};
use serde_json::{Value, json};

use crate::office::Office;

with_all_hands!(a_channel_has_codes_and_an_end);

fn channels(office: &Office) -> Value {
    office.api("GET", "/api/channels/", &Value::Null)["items"].clone()
}

/// The codes of the only channel, each with whether it is archived.
fn codes(office: &Office) -> Vec<(String, bool)> {
    let channel = &channels(office)[0];
    let codes = channel["codes"].as_array().expect("codes").iter();
    codes
        .map(|code| (code["code"].as_str().expect("a code").to_owned(), !code["archived_at"].is_null()))
        .collect()
}

async fn a_channel_has_codes_and_an_end(hands: Hands) {
    let office = Office::open();
    let browser = office.browser_with(hands).await;
    browser.click("Channels").await;
    browser.see("No channels yet").await;
    browser.click("New channel").await;
    browser.fill("name", "Spring fair").await;
    browser.click("Create").await;
    browser.see("“Spring fair” created. Next, add a promo code.").await;
    browser.see("No codes yet").await;
    add_and_archive_a_code(&office, &browser).await;

    browser.click("Rename").await;
    browser.expect_value("name", "Spring fair").await;
    browser.fill("name", "Autumn fair").await;
    browser.click("Save").await;
    browser.see("Channel renamed.").await;
    assert_eq!(channels(&office)[0]["name"], json!("Autumn fair"));

    // A channel with accounts cannot be deleted.
    office.api("PATCH", &code_path(&office), &json!({ "archived": false }));
    let account = office.account(json!({ "imported_id": "crm-1", "promo_code": "spring-26" }));
    browser.click("Delete").await;
    browser.click("Delete channel").await;
    browser.see("Accounts are attributed to this channel; archive its codes instead.").await;
    browser.click("View accounts").await;
    browser.see("Channel: Autumn fair").await;
    office.api("DELETE", &format!("/api/accounts/{}/", account["id"].as_str().expect("an id")), &Value::Null);
    browser.click("Channels").await;
    browser.click("Autumn fair").await;
    browser.click("Delete").await;
    browser.click("Delete channel").await;
    browser.see("Channel and codes deleted.").await;
    browser.see("No channels yet").await;
    assert_eq!(channels(&office), json!([]));
    browser.close();
}

fn code_path(office: &Office) -> String {
    format!("/api/channels/{}/codes/SPRING-26/", channels(office)[0]["id"].as_str().expect("an id"))
}

async fn add_and_archive_a_code(office: &Office, browser: &Browser) {
    browser.fill("code", "spring 26").await;
    browser.click("Add").await;
    browser.see("Must contain only letters").await;
    browser.expect_value("code", "spring 26").await;
    browser.fill("code", "SPRING-26").await;
    browser.click("Add").await;
    browser.see("The code SPRING-26 is active.").await;
    let code = |archived| [("SPRING-26".to_owned(), archived)];
    assert_eq!(codes(office), code(false));
    browser.click("Archive SPRING-26").await;
    browser.see("Code SPRING-26 archived. It no longer matches.").await;
    assert_eq!(codes(office), code(true));
    browser.click("Restore SPRING-26").await;
    browser.see("Code SPRING-26 restored. It matches again.").await;
    assert_eq!(codes(office), code(false));
    browser.click("Archive SPRING-26").await;
    browser.see("It no longer matches").await;
    browser.click("Delete SPRING-26").await;
    browser.see("Code SPRING-26 deleted.").await;
    assert_eq!(codes(office), []);
    browser.click("Undo").await;
    browser.see("The code SPRING-26 is restored and archived.").await;
    assert_eq!(codes(office), code(true));
}

//! A card is dragged to another stage: the history, the webhook and the undo follow.

use std::time::Duration;

use rapport_testkit::Receiver;
use serde_json::{Value, json};

use crate::office::Office;

const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_dragged_card_moves_the_account_writes_history_and_is_announced() {
    let receiver = Receiver::start();
    let authority = receiver.ca_file().to_str().expect("a path").to_owned();
    let office = Office::open_with(&["--extra-ca", &authority, "--allow-destination", "127.0.0.0/8"]);
    let hook = json!({ "url": receiver.url("/hook"), "events": ["account.status_changed"] });
    office.api("POST", "/api/webhooks/", &hook);
    let account =
        office.account(json!({ "imported_id": "crm-1", "name": "Nordlys Bank", "status": "contacted" }));
    let id = account["id"].as_str().expect("an id");
    let browser = office.browser().await;
    browser.go("/pipeline").await;
    assert_eq!(browser.count(&format!("#stage-contacted #{id}")).await, 1);

    browser.drag(&format!("#{id}"), "#stage-in_negotiation").await;
    browser
        .wait("the card in its new stage", async |browser| {
            browser.count(&format!("#stage-in_negotiation #{id}")).await == 1
        })
        .await;
    let arrived = receiver.wait_for(1, PATIENCE);
    let payload: Value = serde_json::from_slice(&arrived[0].body).expect("JSON");
    assert_eq!(payload["type"], json!("account.status_changed"));
    assert_eq!(payload["data"]["status"], json!("in_negotiation"), "{payload}");
    browser.go(&format!("/accounts/{id}")).await;
    browser.see("Ana Ruiz").await;
    browser.see("In negotiation").await;

    browser.go("/pipeline").await;
    browser.drag(&format!("#{id}"), "#stage-lost").await;
    browser.click("Undo").await;
    browser
        .wait("the card back", async |browser| {
            browser.count(&format!("#stage-in_negotiation #{id}")).await == 1
        })
        .await;
    browser.close().await;
}

#[tokio::test]
async fn the_keyboard_moves_a_card_too() {
    let office = Office::open();
    let account =
        office.account(json!({ "imported_id": "crm-1", "name": "Nordlys Bank", "status": "prospect" }));
    let id = account["id"].as_str().expect("an id");
    let browser = office.browser().await;
    browser.press("g").await;
    browser.press("p").await;
    browser.see("Nordlys Bank").await;
    browser.run(&format!("document.querySelector('#{id} summary').focus()"), Vec::new()).await;
    browser.press("\u{e007}").await;
    browser.press("In trial").await;
    browser.press("\u{e004}\u{e007}").await;
    browser
        .wait("the card in its new stage", async |browser| {
            browser.count(&format!("#stage-in_trial #{id}")).await == 1
        })
        .await;
    browser.close().await;
}

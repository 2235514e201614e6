//! Moves a card to another stage, by its menu or by dragging, and checks the history, the webhook and the undo.

use rapport_testkit::{Browser, Hands, PATIENCE, Receiver, with_all_hands};
use serde_json::{Value, json};

use crate::office::Office;

/// One more than a column shows at a time.
const CARDS: usize = 15;

with_all_hands!(a_card_is_moved_by_its_menu_and_back_again, columns_page_and_the_folded_ones_open);

#[tokio::test]
async fn a_dragged_card_moves_the_account_writes_history_and_is_announced() {
    let receiver = Receiver::start();
    let office = Office::open_for(&receiver);
    office.webhook(&receiver.url("/hook"), &["account.status_changed"]);
    let id = account(&office, "Nordlys Bank", "contacted");
    let browser = office.browser_at("/pipeline", Hands::Mouse).await;
    stands_in(&browser, &id, "contacted").await;

    browser.drag(&format!("#{id}"), "#stage-in_negotiation").await;
    stands_in(&browser, &id, "in_negotiation").await;
    was_announced(&receiver, 1, "in_negotiation");
    browser.go(&format!("/accounts/{id}")).await;
    browser.see("Ana Ruiz").await;
    browser.see("In negotiation").await;

    browser.go("/pipeline").await;
    browser.drag(&format!("#{id}"), "#stage-lost").await;
    browser.click("Undo").await;
    stands_in(&browser, &id, "in_negotiation").await;
    browser.close();
}

fn account(office: &Office, name: &str, status: &str) -> String {
    let account = office.account(json!({ "imported_id": name, "name": name, "status": status }));
    account["id"].as_str().expect("an id").to_owned()
}

async fn stands_in(browser: &Browser, id: &str, stage: &str) {
    browser.expect_count(&format!("#stage-{stage} #{id}"), 1).await;
}

fn was_announced(receiver: &Receiver, count: usize, status: &str) {
    let arrived = receiver.wait_for(count, PATIENCE);
    let payload: Value = serde_json::from_slice(&arrived[count - 1].body).expect("JSON");
    assert_eq!(payload["type"], json!("account.status_changed"));
    assert_eq!(payload["data"]["status"], json!(status), "{payload}");
}

async fn a_card_is_moved_by_its_menu_and_back_again(hands: Hands) {
    let receiver = Receiver::start();
    let office = Office::open_for(&receiver);
    office.webhook(&receiver.url("/hook"), &["account.status_changed"]);
    let id = account(&office, "Nordlys Bank", "prospect");
    account(&office, "Harbour Freight", "prospect");
    let browser = office.browser_with(hands).await;
    if hands == Hands::Keyboard {
        browser.go_by_keys("gp", "/pipeline").await;
    } else {
        browser.click("Pipeline").await;
    }
    browser.see("Harbour Freight").await;
    move_by_menu(&browser, "Nordlys Bank", "in_trial").await;
    browser.see("Moved Nordlys Bank to In trial.").await;
    stands_in(&browser, &id, "in_trial").await;
    was_announced(&receiver, 1, "in_trial");
    browser.click("Undo").await;
    browser.see("Moved Nordlys Bank to Prospect.").await;
    stands_in(&browser, &id, "prospect").await;
    was_announced(&receiver, 2, "prospect");
    let history = office.api("GET", &format!("/api/accounts/{id}/history/"), &Value::Null);
    assert_eq!(history["items"].as_array().map(Vec::len), Some(3), "{history}");

    browser.click("Moves").await;
    browser.see("Ana Ruiz").await;
    browser.expect_count("#moves tbody tr", 2).await;
    for (cell, text) in [(1, "Nordlys Bank"), (2, "In trial"), (3, "Prospect"), (4, "Ana Ruiz")] {
        browser.expect_text(&format!("#moves tbody tr td:nth-child({cell})"), text).await;
    }
    browser.click("Nordlys Bank").await;
    browser.arrive(&format!("/accounts/{id}")).await;
    browser.close();
}

async fn move_by_menu(browser: &Browser, name: &str, status: &str) {
    browser.click(&format!("Move {name}")).await;
    browser.choose("status", status).await;
    browser.click("Move").await;
}

async fn columns_page_and_the_folded_ones_open(hands: Hands) {
    let office = Office::open();
    for number in 1..=CARDS {
        account(&office, &format!("Prospect {number:02}"), "prospect");
    }
    let gone = account(&office, "Gone Ltd", "lost");
    account(&office, "Also Gone Ltd", "lost");
    let browser = office.browser_with(hands).await;
    browser.click("Pipeline").await;
    browser.see("Prospect 15").await;
    browser.see_not("Prospect 01").await;
    browser.click("More in Prospect").await;
    browser.see("Prospect 01").await;
    browser.see_not("Prospect 15").await;
    // A move returns to the same position.
    move_by_menu(&browser, "Prospect 01", "contacted").await;
    browser.see("Moved Prospect 01 to Contacted.").await;
    browser.see("No more accounts.").await;
    browser.click("First").await;
    browser.see("Prospect 15").await;

    browser.see_not("Gone Ltd").await;
    browser.click_css("#stage-lost > summary").await;
    browser.see("Gone Ltd").await;
    move_by_menu(&browser, "Gone Ltd", "contacted").await;
    stands_in(&browser, &gone, "contacted").await;
    // The next card is in view.
    browser.see("Also Gone Ltd").await;
    assert_eq!(office.api("GET", &format!("/api/accounts/{gone}/"), &Value::Null)["status"], "contacted");
    browser.close();
}

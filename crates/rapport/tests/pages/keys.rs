//! Keyboard use: the palette, shortcuts, rows, and closing menus.

use rapport_testkit::{Browser, Hands};
use serde_json::json;

use crate::office::Office;

const CONTROL: char = '\u{e009}';
const ENTER: &str = "\u{e007}";
const ESCAPE: &str = "\u{e00c}";
const DOWN: &str = "\u{e015}";

/// Waits until only this row is selected.
async fn is_chosen(browser: &Browser, path: &str) {
    let row = format!("tr.here[data-href='{path}']");
    browser.expect_count(&row, 1).await;
    browser.expect_count("tr.here", 1).await;
}

/// Returns the text of the focused element.
const FOCUSED: &str = "return document.activeElement.textContent.trim()";

fn account(office: &Office, number: usize, name: &str) -> String {
    let account = office.account(json!({ "imported_id": format!("crm-{number}"), "name": name }));
    format!("/accounts/{}", account["id"].as_str().expect("an id"))
}

#[tokio::test]
async fn the_palette_finds_accounts_pages_and_actions() {
    let office = Office::open();
    let nordlys = account(&office, 1, "Nordlys Bank");
    account(&office, 2, "Northern Lights");
    let browser = office.browser().await;
    // By keyboard alone, typing fast.
    browser.press_with(CONTROL, 'k').await;
    browser.press(&format!("nordlys{ENTER}")).await;
    browser.arrive(&nordlys).await;
    browser.press_with(CONTROL, 'k').await;
    browser.press(&format!("channels{ENTER}")).await;
    browser.arrive("/channels").await;
    browser.press_with(CONTROL, 'k').await;
    browser.press("new ").await;
    browser.see("New webhook").await;
    browser.press(&format!("{DOWN}{ENTER}")).await;
    browser.arrive("/campaigns/new").await;

    // By mouse.
    browser.click_css("button[data-palette]").await;
    browser.press("nor").await;
    browser.see("Northern Lights").await;
    browser.click_css("#palette-hits li:nth-child(2)").await;
    browser.arrive(&nordlys).await;
    // It closes again, and the focus returns.
    browser.click_css("button[data-palette]").await;
    browser.press(ESCAPE).await;
    browser.expect_count("dialog[open]", 0).await;
    let button = "return document.activeElement.matches('button[data-palette]')";
    browser.expect_script(button, &json!(true)).await;
    browser.close();
}

#[tokio::test]
async fn keys_are_listed_and_lead_places() {
    let office = Office::open();
    let browser = office.browser().await;
    browser.press("?").await;
    browser.see("Next and previous row").await;
    browser.press(ESCAPE).await;
    browser.see_not("Next and previous row").await;
    for (keys, path) in [("ga", "/accounts"), ("gp", "/pipeline"), ("gc", "/clients"), ("gd", "/")] {
        browser.go_by_keys(keys, path).await;
    }
    browser.go_by_keys("ga", "/accounts").await;
    browser.press("n").await;
    browser.arrive("/accounts/new").await;
    // In a field, a key types a letter.
    browser.press("ga").await;
    browser.expect_value("name", "ga").await;
    browser.close();
}

#[tokio::test]
async fn rows_are_chosen_by_keys_and_stay_chosen_while_the_list_changes() {
    let office = Office::open();
    let paths: Vec<String> =
        (1..=3).map(|number| account(&office, number, &format!("Account {number}"))).collect();
    let browser = office.browser().await;
    browser.go_by_keys("ga", "/accounts").await;
    browser.press("jjk").await;
    // The newest is first.
    is_chosen(&browser, &paths[2]).await;
    browser.press("j").await;
    browser.expect_script(FOCUSED, &json!("Account 2")).await;
    account(&office, 4, "Account 4");
    browser.see("Account 4").await;
    is_chosen(&browser, &paths[1]).await;
    browser.expect_script(FOCUSED, &json!("Account 2")).await;
    browser.press(ENTER).await;
    browser.arrive(&paths[1]).await;
    browser.close();
}

#[tokio::test]
async fn escape_closes_a_menu_and_gives_the_focus_back() {
    let office = Office::open();
    let path = account(&office, 1, "Nordlys Bank");
    let browser = office.browser_at(&path, Hands::Mouse).await;
    for (key, menu, field) in
        [("s", "snooze", "snoozed_until"), ("m", "move", "status"), ("c", "log-contact", "kind")]
    {
        browser.press(key).await;
        let name = "return document.activeElement.name";
        browser.expect_script(name, &json!(field)).await;
        browser.press(ESCAPE).await;
        browser.expect_count("details.menu[open]", 0).await;
        let script = "return document.activeElement.parentElement.id";
        browser.expect_script(script, &json!(menu)).await;
    }
    browser.close();
}

//! Without the mouse: the palette, single keys, rows, and menus that close.

use rapport_testkit::Browser;
use serde_json::{Value, json};

use crate::office::Office;

const CONTROL: char = '\u{e009}';
const ENTER: &str = "\u{e007}";
const ESCAPE: &str = "\u{e00c}";
const DOWN: &str = "\u{e015}";

async fn arrives(browser: &Browser, path: &str) {
    browser.wait(path, async |browser| browser.path().await == path).await;
}

/// Waits until this row alone is the chosen one.
async fn is_chosen(browser: &Browser, path: &str) {
    let row = format!("tr.here[data-href='{path}']");
    browser
        .wait(&row, async |browser| browser.count(&row).await == 1 && browser.count("tr.here").await == 1)
        .await;
}

/// What the focus is on, as its text.
async fn focused(browser: &Browser) -> Value {
    browser.run("return document.activeElement.textContent.trim()", Vec::new()).await
}

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
    // By keys alone, and as fast as one types.
    browser.press_with(CONTROL, 'k').await;
    browser.press(&format!("nordlys{ENTER}")).await;
    arrives(&browser, &nordlys).await;
    browser.press_with(CONTROL, 'k').await;
    browser.press(&format!("channels{ENTER}")).await;
    arrives(&browser, "/channels").await;
    browser.press_with(CONTROL, 'k').await;
    browser.press("new ").await;
    browser.see("New webhook").await;
    browser.press(&format!("{DOWN}{ENTER}")).await;
    arrives(&browser, "/campaigns/new").await;

    // By mouse.
    browser.click_css("button[data-palette]").await;
    browser.press("nor").await;
    browser.see("Northern Lights").await;
    browser.click_css("#palette-hits li:nth-child(2)").await;
    arrives(&browser, &nordlys).await;
    // And away again, with the focus where it was.
    browser.click_css("button[data-palette]").await;
    browser.press(ESCAPE).await;
    browser.wait("a closed palette", async |browser| browser.count("dialog[open]").await == 0).await;
    assert!(focused(&browser).await.as_str().is_some_and(|text| text.starts_with("Find or go to")));
    browser.close().await;
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
        browser.press(keys).await;
        arrives(&browser, path).await;
    }
    browser.press("ga").await;
    arrives(&browser, "/accounts").await;
    browser.press("n").await;
    arrives(&browser, "/accounts/new").await;
    // In a field a key is a letter.
    browser.press("ga").await;
    assert_eq!(browser.value_of("name").await, "ga");
    browser.close().await;
}

#[tokio::test]
async fn rows_are_chosen_by_keys_and_stay_chosen_while_the_list_changes() {
    let office = Office::open();
    let paths: Vec<String> =
        (1..=3).map(|number| account(&office, number, &format!("Account {number}"))).collect();
    let browser = office.browser().await;
    browser.press("ga").await;
    arrives(&browser, "/accounts").await;
    browser.press("jjk").await;
    // The newest is first.
    is_chosen(&browser, &paths[2]).await;
    browser.press("j").await;
    assert_eq!(focused(&browser).await, json!("Account 2"));
    account(&office, 4, "Account 4");
    browser.see("Account 4").await;
    is_chosen(&browser, &paths[1]).await;
    assert_eq!(focused(&browser).await, json!("Account 2"));
    browser.press(ENTER).await;
    arrives(&browser, &paths[1]).await;
    browser.close().await;
}

#[tokio::test]
async fn escape_closes_a_menu_and_gives_the_focus_back() {
    let office = Office::open();
    let path = account(&office, 1, "Nordlys Bank");
    let browser = office.browser().await;
    browser.go(&path).await;
    for (key, menu, field) in
        [("s", "snooze", "snoozed_until"), ("m", "move", "status"), ("c", "log-contact", "kind")]
    {
        browser.press(key).await;
        let name = "return document.activeElement.name";
        browser.wait(field, async |browser| browser.run(name, Vec::new()).await == json!(field)).await;
        browser.press(ESCAPE).await;
        assert_eq!(browser.count("details.menu[open]").await, 0);
        let script = "return document.activeElement.parentElement.id";
        assert_eq!(browser.run(script, Vec::new()).await, json!(menu));
    }
    browser.close().await;
}

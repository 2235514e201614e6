//! On a phone: the bar shows where one is and leads everywhere, a client is a card, and an account opens at its top.

use rapport_testkit::browser::Setup;
use rapport_testkit::{Browser, Hands, with_all_hands};
use serde_json::json;

use crate::clients::overdue;
use crate::office::Office;

with_all_hands!(
    the_bar_shows_the_current_page_and_leads_to_all_others,
    a_client_is_a_card_with_its_actions,
    an_account_opens_at_its_top_with_the_timeline_near,
);

async fn phone(office: &Office, hands: Hands) -> Browser {
    office.browser_as(Setup { width: 390, height: 844, hands, ..Setup::default() }).await
}

async fn the_bar_shows_the_current_page_and_leads_to_all_others(hands: Hands) {
    let office = Office::open();
    let browser = phone(&office, hands).await;
    browser.expect_text(".places [aria-current]", "Dashboard").await;
    browser.click("Clients").await;
    browser.arrive("/clients").await;
    browser.expect_text(".places [aria-current]", "Clients").await;
    // The others open from the last button, which then names the page.
    browser.click("More").await;
    browser.click("Settings").await;
    browser.arrive("/settings").await;
    browser.see_in(".places [data-here]", "Settings").await;
    browser.click("More, now Settings").await;
    browser.expect_text(".beyond [aria-current]", "Settings").await;
    browser.click("Channels").await;
    browser.arrive("/channels").await;
    browser.click("Pipeline").await;
    browser.arrive("/pipeline").await;
    browser.close();
}

async fn a_client_is_a_card_with_its_actions(hands: Hands) {
    let office = Office::open();
    overdue(&office, 1, "Nordlys Bank");
    overdue(&office, 2, "Harbour Freight");
    let browser = phone(&office, hands).await;
    browser.go("/clients").await;
    browser.see_in(".clients tbody tr", "days").await;
    browser.see_in(".clients tbody tr", "Last contact: call").await;
    browser.click("Log contact").await;
    browser.fill("note", "They like the new reports").await;
    browser.press_and_leave("\u{e007}").await;
    browser.expect_count(".clients tbody tr", 1).await;
    browser.click("Snooze").await;
    browser.click_css(".clients form[action$='/snooze'] button").await;
    browser.see("Nobody is overdue").await;
    browser.close();
}

async fn an_account_opens_at_its_top_with_the_timeline_near(hands: Hands) {
    let office = Office::open();
    let id = overdue(&office, 1, "Nordlys Bank");
    let browser = phone(&office, hands).await;
    browser.go("/clients").await;
    browser.click("Nordlys Bank").await;
    browser.arrive(&format!("/accounts/{id}")).await;
    browser.see("Timeline").await;
    if hands != Hands::NoScripts {
        browser.expect_script("return scrollY", &json!(0)).await;
        let near = "return document.getElementById('timeline').getBoundingClientRect().top < 2 * innerHeight";
        browser.expect_script(near, &json!(true)).await;
    }
    browser.close();
}

//! Every page, and everything that opens on it, fits every screen: nothing scrolls sideways except code and charts, and
//! no action is off the screen.

use rapport_testkit::{Browser, Screen};
use serde_json::{Value, json};

use crate::every_page::every_path;
use crate::office::Office;
use crate::paths::for_strangers;

/// Returns what doesn't fit.
const LOOK: &str = include_str!("fit.js");

const PHONES_AND_TABLETS: [Screen; 4] =
    [Screen::new(320, 640), Screen::new(390, 844), Screen::new(768, 1024), Screen::new(1024, 768)];
const DESKTOPS: [Screen; 4] = [
    Screen::new(1280, 800),
    Screen::new(1440, 900),
    Screen::new(1920, 1080),
    Screen::new(1280, 800).zoomed(200),
];

/// The list of accounts with every column that it offers.
const ALL_COLUMNS: &str = "/accounts?status=customer&columns=status&columns=value&columns=channel&columns=promo_code\
                           &columns=last_seen&columns=first_seen&columns=last_contact&columns=acquired\
                           &columns=created&columns=updated&columns=field.country&columns=field.employees\
                           &columns=field.industry&columns=field.plan&columns=field.seats";

/// Looks at a page on each of these screens.
async fn look_at(browser: &Browser, page: &str, screens: &[Screen], found: &mut Vec<String>) {
    browser.go(page).await;
    // Another typeface is wider or narrower.
    browser.expect_script("return document.fonts.status", &json!("loaded")).await;
    look(browser, page, screens, found).await;
}

/// Looks at the page that is open.
async fn look(browser: &Browser, page: &str, screens: &[Screen], found: &mut Vec<String>) {
    for screen in screens {
        browser.resize(*screen).await;
        found.extend(faults(browser).await.into_iter().map(|fault| {
            let Screen { width, zoom_percent, .. } = screen;
            format!("{page} at {width}, {zoom_percent} %: {fault}")
        }));
    }
}

async fn faults(browser: &Browser) -> Vec<String> {
    let answer = browser.run(LOOK, Vec::new()).await;
    let lines = answer.as_array().unwrap_or_else(|| panic!("no list of faults: {answer}"));
    lines.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[track_caller]
fn assert_fits(found: &[String]) {
    assert!(found.is_empty(), "{} faults:\n{}", found.len(), found.join("\n"));
}

async fn every_page_fits(screens: &[Screen]) {
    let office = Office::demo();
    let browser = office.browser().await;
    let mut found = Vec::new();
    for page in every_path(&office).into_iter().chain([ALL_COLUMNS.to_owned()]) {
        look_at(&browser, &page, screens, &mut found).await;
    }
    browser.restore_size().await;
    browser.close();
    assert_fits(&found);
}

#[tokio::test]
async fn every_page_fits_phones_and_tablets() {
    every_page_fits(&PHONES_AND_TABLETS).await;
}

#[tokio::test]
async fn every_page_fits_desktops_and_zoomed_windows() {
    every_page_fits(&DESKTOPS).await;
}

#[tokio::test]
async fn what_strangers_and_new_owners_see_fits_every_screen() {
    let office = Office::open();
    let screens = [PHONES_AND_TABLETS, DESKTOPS].concat();
    let mut found = Vec::new();
    let browser = office.browser().await;
    for page in
        ["/", "/pipeline", "/accounts", "/clients", "/campaigns", "/channels", "/imports", "/webhooks"]
    {
        look_at(&browser, page, &screens, &mut found).await;
    }
    browser.restore_size().await;
    browser.close();
    let stranger = Browser::open(&office.base()).await;
    for page in for_strangers(&office) {
        look_at(&stranger, &page, &screens, &mut found).await;
    }
    stranger.restore_size().await;
    stranger.close();
    assert_fits(&found);
}

#[tokio::test]
async fn the_bar_for_selected_accounts_and_its_previews_fit_every_screen() {
    const PICK: &str = "document.querySelectorAll('td.pick input').forEach((box) => box.click())";
    let office = Office::demo();
    let screens = [PHONES_AND_TABLETS, DESKTOPS].concat();
    let mut found = Vec::new();
    let browser = office.browser().await;
    browser.go("/accounts").await;
    browser.run(PICK, Vec::new()).await;
    browser.see("50 selected").await;
    look(&browser, "the bar", &screens, &mut found).await;
    browser.restore_size().await;
    found.extend(browser.axe_everywhere().await);
    for (button, heading) in [("button[value=move]", "Move to Lost"), (".bulk > .danger", "Delete accounts")]
    {
        browser.go("/accounts").await;
        browser.run(PICK, Vec::new()).await;
        let send = "document.getElementById('bulk-status').value = 'lost'; \
            document.querySelector(arguments[0]).click()";
        browser.run(send, vec![json!(button)]).await;
        browser.see_in("h1", heading).await;
        look(&browser, heading, &screens, &mut found).await;
        browser.restore_size().await;
        found.extend(browser.axe_everywhere().await);
    }
    browser.close();
    assert_fits(&found);
}

#[tokio::test]
async fn what_does_not_fit_is_found() {
    let office = Office::open();
    let browser = office.browser().await;
    browser.resize(Screen::new(390, 844)).await;
    assert_fits(&faults(&browser).await);
    let faulty = [
        ("<p class='nowrap'>LONG</p>", "the page scrolls sideways by"),
        ("<div class='ticks'><p class='nowrap'>LONG</p></div>", "div.ticks \"LONG\" scrolls sideways by"),
        ("<button class='btn nowrap'>LONG</button>", "button.btn nowrap \"LONG\" is at"),
        ("<details><summary>Menu</summary><p class='nowrap'>LONG</p></details>", "page, Menu open"),
        ("<dialog id='wide'><p class='nowrap'>LONG</p></dialog>", "#wide open"),
    ];
    let put = "document.getElementById('content').innerHTML = arguments[0].replace('LONG', 'x'.repeat(999))";
    for (content, fault) in faulty {
        browser.run(put, vec![json!(content)]).await;
        let (found, fault) = (faults(&browser).await.join("\n"), fault.replace("LONG", &"x".repeat(40)));
        assert!(found.contains(&fault), "{content}: {found:?} doesn't contain {fault:?}");
    }
    let code = "<pre class='nowrap'>LONG</pre><p class='sr'>LONG</p>";
    browser.run(put, vec![json!(code)]).await;
    assert_fits(&faults(&browser).await);
    browser.restore_size().await;
    browser.close();
}

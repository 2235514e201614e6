//! Whether a page, and everything that opens on it, fits every screen: nothing scrolls sideways except code and charts,
//! and no action is off the screen. `every_page` looks at all pages.

use rapport_testkit::{Browser, Hands, Screen};
use serde_json::{Value, json};

use crate::every_page::assert_none;
use crate::office::Office;

/// Returns what doesn't fit.
const LOOK: &str = include_str!("fit.js");

/// Phones, tablets and desktops.
const SCREENS: [Screen; 8] = [
    Screen::new(320, 640),
    Screen::new(390, 844),
    Screen::new(768, 1024),
    Screen::new(1024, 768),
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

/// What doesn't fit on the page that is open, on any screen.
pub async fn look(browser: &Browser, page: &str) -> Vec<String> {
    // Another typeface is wider or narrower.
    browser.expect_script("return document.fonts.status", &json!("loaded")).await;
    let mut found = Vec::new();
    for screen in SCREENS {
        browser.resize(screen).await;
        found.extend(faults(browser).await.into_iter().map(|fault| {
            let Screen { width, zoom_percent, .. } = screen;
            format!("{page} at {width}, {zoom_percent} %: {fault}")
        }));
    }
    browser.restore().await;
    found
}

async fn faults(browser: &Browser) -> Vec<String> {
    let answer = browser.run(LOOK, Vec::new()).await;
    let lines = answer.as_array().unwrap_or_else(|| panic!("no list of faults: {answer}"));
    lines.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[tokio::test]
async fn what_new_owners_see_fits_every_screen() {
    let office = Office::open();
    let browser = office.browser().await;
    let mut found = Vec::new();
    for page in
        ["/", "/pipeline", "/accounts", "/clients", "/campaigns", "/channels", "/imports", "/webhooks"]
    {
        browser.go(page).await;
        found.extend(look(&browser, page).await);
    }
    browser.close();
    assert_none(&found);
}

#[tokio::test]
async fn the_list_of_accounts_fits_every_screen_with_all_columns() {
    let office = Office::demo();
    let browser = office.browser_at(ALL_COLUMNS, Hands::Mouse).await;
    assert_none(&look(&browser, "all columns").await);
    browser.close();
}

#[tokio::test]
async fn the_bar_for_selected_accounts_and_its_previews_fit_every_screen() {
    const PICK: &str = "document.querySelectorAll('td.pick input').forEach((box) => box.click())";
    let office = Office::demo();
    let mut found = Vec::new();
    let browser = office.browser_at("/accounts", Hands::Mouse).await;
    browser.run(PICK, Vec::new()).await;
    browser.see("50 selected").await;
    found.extend(look(&browser, "the bar").await);
    found.extend(browser.axe_everywhere().await);
    for (button, heading) in [("button[value=move]", "Move to Lost"), (".bulk > .danger", "Delete accounts")]
    {
        browser.go("/accounts").await;
        browser.run(PICK, Vec::new()).await;
        let send = "document.getElementById('bulk-status').value = 'lost'; \
            document.querySelector(arguments[0]).click()";
        browser.run(send, vec![json!(button)]).await;
        browser.see_in("h1", heading).await;
        found.extend(look(&browser, heading).await);
        found.extend(browser.axe_everywhere().await);
    }
    browser.close();
    assert_none(&found);
}

#[tokio::test]
async fn what_does_not_fit_is_found() {
    let office = Office::open();
    let browser = office.browser().await;
    browser.resize(Screen::new(390, 844)).await;
    assert_none(&faults(&browser).await);
    let faulty = [
        ("<p class='nowrap'>LONG</p>", "the page scrolls sideways by"),
        ("<div class='ticks'><p class='nowrap'>LONG</p></div>", "div.ticks \"LONG\" scrolls sideways by"),
        ("<button class='btn nowrap'>LONG</button>", "button.btn nowrap \"LONG\" is at"),
        (
            "<details class='menu'><summary>Menu</summary><p class='nowrap'>LONG</p></details>",
            "page, Menu open",
        ),
        (
            "<details><summary>Fold</summary><p class='nowrap'>LONG</p></details>",
            "unfolded page: the page scrolls",
        ),
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
    assert_none(&faults(&browser).await);
    browser.close();
}

//! The board stays put: a move keeps the page, its scroll position and the focus, keys choose and move cards, nothing
//! shifts while the page arrives, and every control is large enough.

use rapport_testkit::browser::Setup;
use rapport_testkit::{Browser, Hands};
use serde_json::{Value, json};

use crate::office::Office;

const ENTER: &str = "\u{e007}";
const ESCAPE: &str = "\u{e00c}";
const DOWN: &str = "\u{e015}";
/// So small that the board scrolls both ways.
const SMALL: Setup = Setup { width: 900, height: 500, dark: false, hands: Hands::Mouse };
/// At this speed, a compressed board takes a second or two.
const SLOW: u32 = 5_000;

fn account(office: &Office, name: &str, status: &str) -> String {
    let account = office.account(json!({ "imported_id": name, "name": name, "status": status }));
    account["id"].as_str().expect("an id").to_owned()
}

fn prospects(office: &Office, count: usize) -> Vec<String> {
    (1..=count).map(|n| account(office, &format!("Prospect {n:02}"), "prospect")).collect()
}

/// Marks the window, which a loaded page would replace, and returns where it is scrolled to.
async fn mark(browser: &Browser) -> Value {
    browser.run("window.marked = true", Vec::new()).await;
    browser.run(SCROLLED, Vec::new()).await
}

const SCROLLED: &str = "return [scrollX, scrollY]";
/// The card that has the focus.
const FOCUSED: &str = "return document.activeElement.closest('.item')?.id ?? null";
const CHOSEN: &str = "return [...document.querySelectorAll('.here')].map((card) => card.id).join()";

async fn stays(browser: &Browser, scrolled: &Value) {
    browser.expect_script("return window.marked === true", &json!(true)).await;
    browser.expect_script(SCROLLED, scrolled).await;
}

async fn stands_in(browser: &Browser, id: &str, stage: &str) {
    browser.expect_count(&format!("#stage-{stage} #{id}"), 1).await;
}

#[tokio::test]
async fn a_move_by_mouse_keeps_the_page_its_scroll_position_and_the_focus() {
    let office = Office::open();
    let ids = prospects(&office, 8);
    let others: Vec<String> = (1..=9).map(|n| account(&office, &format!("Other {n}"), "contacted")).collect();
    let browser = office.browser_as(SMALL).await;
    browser.go("/pipeline").await;
    // The third oldest card is in view, also when its menu is open.
    let scroll = "scrollTo(0, document.getElementById(arguments[0]).getBoundingClientRect().top - 150)";
    browser.run(scroll, vec![json!(ids[2])]).await;
    let scrolled = mark(&browser).await;
    assert!(scrolled[1].as_f64() > Some(100.0), "{scrolled}");

    browser.click("Move Prospect 03").await;
    browser.choose_css("details[open] select", "contacted").await;
    browser.click_css("details[open] button").await;
    stands_in(&browser, &ids[2], "contacted").await;
    browser.expect_text("#messages .flash .grow", "Moved Prospect 03 to Contacted.").await;
    browser.expect_script(FOCUSED, &json!(ids[2])).await;
    stays(&browser, &scrolled).await;
    browser
        .expect_script(
            "return document.getElementById('said').textContent",
            &json!("Moved Prospect 03 to Contacted."),
        )
        .await;

    browser.click("Undo").await;
    stands_in(&browser, &ids[2], "prospect").await;
    stays(&browser, &scrolled).await;
    browser.drag(&format!("#{}", others[8]), "#stage-customer").await;
    stands_in(&browser, &others[8], "customer").await;
    stays(&browser, &scrolled).await;
    browser.expect_count("#stage-contacted .item", 8).await;
    browser.expect_text("#stage-contacted .count", "8").await;
    browser.close();
}

#[tokio::test]
async fn cards_are_chosen_and_moved_by_keys() {
    let office = Office::open();
    let ids = prospects(&office, 3);
    let contacted = account(&office, "Contacted", "contacted");
    account(&office, "Gone", "lost");
    let browser = office.browser_with(Hands::Keyboard).await;
    browser.go_by_keys("gp", "/pipeline").await;
    let scrolled = mark(&browser).await;
    // The newest is first; after the last card of a column comes the first of the next. What is folded is skipped.
    for (keys, id) in [("j", &ids[2]), ("j", &ids[1]), ("k", &ids[2]), ("jjj", &contacted), ("j", &contacted)]
    {
        browser.press(keys).await;
        browser.expect_script(CHOSEN, &json!(id)).await;
        browser.expect_script(FOCUSED, &json!(id)).await;
    }
    browser.press("kk").await;
    browser.expect_script(FOCUSED, &json!(ids[1])).await;
    browser.press("m").await;
    browser.expect_script("return document.activeElement.name", &json!("status")).await;
    browser.press(ESCAPE).await;
    browser.expect_count("details.menu[open]", 0).await;
    browser.press("m").await;
    browser.expect_script("return document.activeElement.name", &json!("status")).await;
    // Contacted is offered first, then In negotiation.
    browser.press(&format!("{DOWN}{ENTER}")).await;
    stands_in(&browser, &ids[1], "in_negotiation").await;
    browser.expect_script(CHOSEN, &json!(ids[1])).await;
    browser.expect_script(FOCUSED, &json!(ids[1])).await;
    stays(&browser, &scrolled).await;
    browser.press("k").await;
    browser.expect_script(FOCUSED, &json!(contacted)).await;
    browser.press_and_leave(ENTER).await;
    browser.arrive(&format!("/accounts/{contacted}")).await;
    browser.close();
}

#[tokio::test]
async fn a_move_that_fails_says_so_and_can_be_tried_again() {
    let office = Office::open();
    let id = account(&office, "Nordlys Bank", "prospect");
    let browser = office.browser_at("/pipeline", Hands::Mouse).await;
    let scrolled = mark(&browser).await;
    // An account that is gone in the meantime.
    let status = "document.querySelector('form[data-move] option').value = 'won'";
    browser.run(status, Vec::new()).await;
    browser.click("Move Nordlys Bank").await;
    browser.choose_css("details[open] select", "won").await;
    browser.click_css("details[open] button").await;
    browser.see_in("#messages", "Status must be one of").await;
    stays(&browser, &scrolled).await;
    browser.click("Move Nordlys Bank").await;
    browser.choose_css("details[open] select", "contacted").await;
    browser.click_css("details[open] button").await;
    stands_in(&browser, &id, "contacted").await;
    browser.see_not_in("#messages", "Status must be one of").await;
    // The connection is gone.
    browser.run("window.fetch = () => Promise.reject(new TypeError('Failed to fetch'))", Vec::new()).await;
    browser.drag(&format!("#{id}"), "#stage-lost").await;
    browser.see_in("#messages .flash.bad", "We couldn’t reach the server.").await;
    stands_in(&browser, &id, "contacted").await;
    stays(&browser, &scrolled).await;
    browser.close();
}

/// Adds up how far things moved by themselves.
const WATCH: &str = "
    window.shifted = 0;
    window.sources = [];
    new PerformanceObserver((list) => list.getEntries().forEach((entry) => {
        if (entry.hadRecentInput) return;
        window.shifted += entry.value;
        window.sources.push(...entry.sources.map((source) => source.node?.outerHTML?.slice(0, 80)));
    })).observe({ type: 'layout-shift', buffered: true })";

#[tokio::test]
async fn nothing_shifts_while_the_board_arrives() {
    let office = Office::demo();
    let browser = office.browser().await;
    // The stylesheet and the script are known from the first visit, and the page is drawn while it arrives.
    browser.go("/pipeline").await;
    browser.slow_down(SLOW).await;
    browser.reload().await;
    browser.speed_up().await;
    browser.run(WATCH, Vec::new()).await;
    let palette = "return !document.querySelector('button[data-palette]').hidden";
    browser.expect_script(palette, &json!(true)).await;
    let frames = "const done = arguments[arguments.length - 1];
        requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0)))";
    browser.run_async(frames, Vec::new()).await;
    let shifted = browser.run("return [window.shifted, window.sources]", Vec::new()).await;
    assert!(shifted[0].as_f64().is_some_and(|sum| sum < 0.01), "{shifted}");
    // It would have been noticed.
    browser.run("document.getElementById('content').style.paddingTop = '300px'", Vec::new()).await;
    browser.expect_script("return window.shifted > 0.01", &json!(true)).await;
    browser.close();
}

/// The controls that are smaller than a finger may miss.
const SMALL_TARGETS: &str = "
    return [...document.querySelectorAll('main :is(a, button, summary, select, input:not([type=hidden]))')]
        .filter((control) => control.checkVisibility())
        .map((control) => [control.getBoundingClientRect(), control.outerHTML.slice(0, 120)])
        .filter(([box]) => box.width < 24 || box.height < 24)
        .map(([box, html]) => `${box.width}x${box.height} ${html}`)";

#[tokio::test]
async fn every_target_on_the_board_is_large_enough() {
    let office = Office::demo();
    for setup in [Setup::default(), Setup { width: 390, ..Setup::default() }] {
        let browser = office.browser_as(setup).await;
        browser.go("/pipeline").await;
        browser
            .run("document.querySelectorAll('main details').forEach((box) => (box.open = true))", Vec::new())
            .await;
        browser.expect_script(SMALL_TARGETS, &json!([])).await;
        browser.close();
    }
}

#[tokio::test]
async fn other_currencies_show_on_hover_and_with_the_focus() {
    let office = Office::open();
    for (name, currency) in [("One", "USD"), ("Two", "CHF"), ("Three", "EUR")] {
        let body =
            json!({ "imported_id": name, "captured_value": "1000", "captured_value_currency": currency });
        office.account(body);
    }
    let browser = office.browser_with(Hands::Keyboard).await;
    browser.go("/pipeline").await;
    browser.see_in("#head-prospect", "$1,000.00").await;
    browser.see_not_in("#head-prospect", "€1,000.00").await;
    browser.click_css("#head-prospect button").await;
    browser.see_in("#head-prospect", "€1,000.00").await;
    browser.see_in("#head-prospect", "CHF").await;
    browser.press(ESCAPE).await;
    browser.see_not_in("#head-prospect", "€1,000.00").await;
    browser.close();
}

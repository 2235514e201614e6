//! Rules for every page: axe-core finds no violations on it or in what opens on it, nothing is inline, and each works with
//! scripts off. That each fits every screen is in `fit`.

use std::time::Instant;

use rapport_testkit::browser::Setup;
use rapport_testkit::{Browser, Hands, PATIENCE};
use serde_json::json;

use crate::office::Office;
use crate::paths::{ABOUT_LOGIN, Page, for_strangers, pages};

async fn has_no_violations(setup: Setup) {
    let office = Office::demo();
    let browser = office.browser_as(setup).await;
    let mut found = Vec::new();
    for page in every_path(&office) {
        look_at(&browser, &page, &mut found).await;
    }
    browser.close();
    assert!(found.is_empty(), "{} faults:\n{}", found.len(), found.join("\n"));
}

/// All pages that the owner sees.
pub fn every_path(office: &Office) -> Vec<String> {
    let paths = pages(office).into_iter().map(|Page { path, .. }| path);
    paths.chain(ABOUT_LOGIN.map(str::to_owned)).collect()
}

/// Collects the faults of a page.
async fn look_at(browser: &Browser, page: &str, found: &mut Vec<String>) {
    browser.go(page).await;
    let title = browser.run("return document.querySelector('h1')?.textContent ?? ''", Vec::new()).await;
    if title == "" || title == "Page not found" || title == "Something went wrong" {
        found.push(format!("{page}: {title}"));
        return;
    }
    found.extend(browser.axe_everywhere().await.into_iter().map(|line| format!("{page}: {line}")));
    let inline = browser.run(INLINE, Vec::new()).await;
    if inline != json!(0) {
        found.push(format!("{page}: {inline} inline styles or scripts"));
    }
}

const INLINE: &str =
    "return document.querySelectorAll('[style], script:not([src]), style, [onclick]').length";

#[tokio::test]
async fn axe_finds_nothing_in_what_strangers_see() {
    let office = Office::open();
    let pages = for_strangers(&office);
    let mut found = Vec::new();
    for setup in [Setup::default(), Setup { width: 390, dark: true, ..Setup::default() }] {
        let browser = Browser::open_as(&office.base(), setup).await;
        for page in &pages {
            look_at(&browser, page, &mut found).await;
        }
        browser.go("/nowhere").await;
        found.extend(browser.axe().await);
        browser.close();
    }
    assert!(found.is_empty(), "{} faults:\n{}", found.len(), found.join("\n"));
}

#[tokio::test]
async fn axe_finds_nothing_in_the_light() {
    has_no_violations(Setup::default()).await;
}

#[tokio::test]
async fn axe_finds_nothing_in_the_dark() {
    has_no_violations(Setup { dark: true, ..Setup::default() }).await;
}

#[tokio::test]
async fn axe_finds_nothing_in_the_light_on_a_phone() {
    has_no_violations(Setup { width: 390, ..Setup::default() }).await;
}

#[tokio::test]
async fn axe_finds_nothing_in_the_dark_on_a_phone() {
    has_no_violations(Setup { width: 390, dark: true, ..Setup::default() }).await;
}

#[tokio::test]
async fn every_page_is_whole_without_scripts() {
    let office = Office::demo();
    let with = office.browser().await;
    let without = office.browser_as(Setup { hands: Hands::NoScripts, ..Setup::default() }).await;
    for page in every_path(&office) {
        is_the_same(&with, &without, &page).await;
    }
    with.close();
    without.close();
}

/// Controls that need the script are hidden until it runs; everything else is there either way. If something changes
/// between loading the two pages, both are loaded again.
async fn is_the_same(with: &Browser, without: &Browser, page: &str) {
    let since = Instant::now();
    loop {
        with.go(page).await;
        without.go(page).await;
        let (there, here) = (count(with).await, count(without).await);
        if there == here {
            return;
        }
        assert!(since.elapsed() < PATIENCE, "{page}: {there:?} with scripts, {here:?} without");
    }
}

/// How many links, forms and controls there are.
async fn count(browser: &Browser) -> (usize, usize, usize) {
    (
        browser.count("main a[href]").await,
        browser.count("main form").await,
        browser.count("main button:not([data-copy]), main input, main select").await,
    )
}

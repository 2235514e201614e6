//! Rules for every page: axe-core finds no violations on it or in what opens on it, it fits every screen, nothing is
//! inline, and it works with scripts off.

use std::time::Instant;

use rapport_testkit::browser::Setup;
use rapport_testkit::{Browser, Hands, PATIENCE};
use serde_json::json;

use crate::fit;
use crate::office::Office;
use crate::paths::{ABOUT_LOGIN, Page, for_strangers, pages};

/// All pages that the owner sees.
fn every_path(office: &Office) -> Vec<String> {
    let paths = pages(office).into_iter().map(|Page { path, .. }| path);
    paths.chain(ABOUT_LOGIN.map(str::to_owned)).collect()
}

/// The rules are checked in this many tests at once, each with its share of the pages.
const SHARES: usize = 3;

async fn pages_follow_the_rules(share: usize) {
    let office = Office::demo();
    let browser = office.browser().await;
    let mut found = Vec::new();
    for page in every_path(&office).iter().skip(share).step_by(SHARES) {
        found.extend(faults(&browser, page).await);
    }
    browser.close();
    assert_none(&found);
}

/// What is wrong with a page.
pub async fn faults(browser: &Browser, page: &str) -> Vec<String> {
    browser.go(page).await;
    let title = browser.run("return document.querySelector('h1')?.textContent ?? ''", Vec::new()).await;
    if title == "" || title == "Page not found" || title == "Something went wrong" {
        return vec![format!("{page}: {title}")];
    }
    let mut found = fit::look(browser, page).await;
    found.extend(browser.axe_on_every_screen().await.into_iter().map(|line| format!("{page} at {line}")));
    let inline = browser.run(INLINE, Vec::new()).await;
    if inline != json!(0) {
        found.push(format!("{page}: {inline} inline styles or scripts"));
    }
    found
}

#[track_caller]
pub fn assert_none(faults: &[String]) {
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

const INLINE: &str =
    "return document.querySelectorAll('[style], script:not([src]), style, [onclick]').length";

#[tokio::test]
async fn pages_follow_the_rules_first_share() {
    pages_follow_the_rules(0).await;
}

#[tokio::test]
async fn pages_follow_the_rules_second_share() {
    pages_follow_the_rules(1).await;
}

#[tokio::test]
async fn pages_follow_the_rules_third_share() {
    pages_follow_the_rules(2).await;
}

#[tokio::test]
async fn pages_for_strangers_follow_the_rules() {
    let office = Office::open();
    let browser = Browser::open(&office.base()).await;
    let mut found = Vec::new();
    for page in for_strangers(&office) {
        found.extend(faults(&browser, &page).await);
    }
    browser.go("/nowhere").await;
    found.extend(browser.axe_on_every_screen().await);
    browser.close();
    assert_none(&found);
}

#[tokio::test]
async fn what_breaks_the_rules_is_found() {
    let office = Office::open();
    let browser = office.browser().await;
    let pale = "const sheet = new CSSStyleSheet(); document.adoptedStyleSheets.push(sheet);
        sheet.insertRule('@media (prefers-color-scheme: dark) { .pale:last-child { color: #333 } }')";
    browser.run(pale, Vec::new()).await;
    let image = "<img src='/favicon.ico'>";
    let faulty = [
        (image.to_owned(), "1280, light: image-alt: "),
        (format!("<details><summary>Fold</summary>{image}</details>"), "1280, light: image-alt: "),
        (
            format!("<details class='menu'><summary>Menu</summary>{image}</details>"),
            "390, light: Menu open: image-alt: ",
        ),
        ("<p class='pale'>Pale in the dark</p>".to_owned(), "390, dark: color-contrast: "),
        // Of those that are alike, the first and the last are measured.
        (format!("<div>{}</div>", "<p class='pale'>Pale</p>".repeat(4)), "1280, dark: color-contrast: "),
    ];
    let put = "document.getElementById('content').innerHTML = arguments[0]";
    for (content, fault) in faulty {
        browser.run(put, vec![json!(content)]).await;
        let found = browser.axe_on_every_screen().await;
        assert!(found.iter().any(|line| line.starts_with(fault)), "{content}: {found:?}");
    }
    browser.run(put, vec![json!("<h1>Right</h1>")]).await;
    assert_none(&browser.axe_on_every_screen().await);
    browser.close();
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

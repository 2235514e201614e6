//! What holds of every page: axe-core finds nothing, nothing is inline, nothing is wider than a phone, each works with
//! scripts off, and each says when it is not there.

use rapport_testkit::browser::Setup;
use rapport_testkit::{Browser, Hands};
use serde_json::{Value, json};

use crate::office::Office;

/// Pages with an address of their own.
const FIXED: [&str; 30] = [
    "/",
    "/pipeline",
    "/accounts",
    "/accounts?status=customer&sort=name",
    "/accounts?q=nobody-is-called-so",
    "/accounts?status=nonsense&cursor=nonsense",
    "/accounts/new",
    "/accounts/lookup",
    "/clients",
    "/clients?tab=due_soon",
    "/clients?tab=snoozed",
    "/clients?tab=tracked",
    "/campaigns",
    "/campaigns/new",
    "/channels",
    "/imports",
    "/webhooks",
    "/webhooks/new",
    "/webhooks/check",
    "/deliveries",
    "/settings",
    "/settings/cadence",
    "/settings/digest",
    "/settings/members",
    "/settings/tokens",
    "/settings/ingest",
    "/settings/mail",
    "/settings/audit",
    "/settings/system",
    "/profile",
];

/// And one page of each thing that there are many of.
fn pages(office: &Office) -> Vec<String> {
    let first = |path: &str| -> String {
        let found = office.api("GET", path, &Value::Null);
        let item = &found["items"][0];
        item["id"]
            .as_str()
            .or(item["account"]["id"].as_str())
            .unwrap_or_else(|| panic!("{path}: {found}"))
            .to_owned()
    };
    let mut pages: Vec<String> = FIXED.iter().map(ToString::to_string).collect();
    pages.push(format!("/accounts/{}", first("/api/clients/?tab=overdue&limit=1")));
    pages.push(format!("/campaigns/{}", first("/api/campaigns/?limit=1")));
    pages.push(format!("/imports/{}", first("/api/imports/?limit=1")));
    pages.push(format!("/deliveries/{}", first("/api/deliveries/?limit=1")));
    let webhooks = office.api("GET", "/api/webhooks/", &Value::Null);
    let ids = webhooks["items"].as_array().into_iter().flatten().filter_map(|item| item["id"].as_str());
    pages.extend(ids.map(|id| format!("/webhooks/{id}")));
    pages
}

async fn has_no_violations(setup: Setup) {
    let office = Office::demo();
    let browser = office.browser_as(setup).await;
    let mut found = Vec::new();
    for page in pages(&office) {
        browser.go(&page).await;
        let title = browser.run("return document.querySelector('h1')?.textContent ?? ''", Vec::new()).await;
        if title == "" || title == "Nothing here" || title == "Something went wrong" {
            found.push(format!("{page}: {title}"));
            continue;
        }
        found.extend(browser.axe().await.into_iter().map(|line| format!("{page}: {line}")));
        let inline = browser.run(INLINE, Vec::new()).await;
        if inline != json!(0) {
            found.push(format!("{page}: {inline} inline styles or scripts"));
        }
        let wider = browser.run(WIDER, Vec::new()).await;
        if wider != json!(0) {
            found.push(format!("{page}: wider than the window by {wider}"));
        }
    }
    browser.close().await;
    assert!(found.is_empty(), "{} faults:\n{}", found.len(), found.join("\n"));
}

const INLINE: &str =
    "return document.querySelectorAll('[style], script:not([src]), style, [onclick]').length";
const WIDER: &str =
    "return Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth)";

#[tokio::test]
async fn axe_finds_nothing_in_the_light() {
    has_no_violations(Setup::default()).await;
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
    for page in pages(&office) {
        with.go(&page).await;
        without.go(&page).await;
        // What needs the script is hidden until it runs; everything else is there either way.
        let (links, buttons) = (count(&with).await, count(&without).await);
        assert_eq!(links, buttons, "{page}");
    }
    with.close().await;
    without.close().await;
}

async fn count(browser: &Browser) -> (usize, usize, usize) {
    (
        browser.count("main a[href]").await,
        browser.count("main form").await,
        browser.count("main button:not([data-copy]), main input, main select").await,
    )
}

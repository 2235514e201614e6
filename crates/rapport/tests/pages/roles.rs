//! A member without rights sees neither the links nor the pages.

use rapport_testkit::Browser;
use serde_json::json;

use crate::office::{Login, Office, log_in};

/// What only admins may see.
const FOR_ADMINS: [&str; 14] = [
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
    "/imports",
];

#[tokio::test]
async fn a_member_sees_neither_the_links_nor_the_pages() {
    let office = Office::open();
    let member = json!({ "email": "bo@acme.test", "name": "Bo Lind", "role": "member" });
    let password =
        office.api("POST", "/api/members/", &member)["password"].as_str().expect("a password").to_owned();
    let browser = Browser::open(&office.base()).await;
    log_in(&browser, &Login { email: "bo@acme.test".to_owned(), password }).await;
    for path in FOR_ADMINS {
        assert_eq!(browser.count(&format!("a[href='{path}']")).await, 0, "no link to {path}");
    }
    for path in FOR_ADMINS {
        browser.go(path).await;
        browser.see("Not for your role").await;
        browser.see("403").await;
    }
    for path in ["/", "/pipeline", "/accounts", "/clients", "/campaigns", "/channels", "/profile"] {
        browser.go(path).await;
        browser.see_not("Not for your role").await;
        browser.see("Bo Lind").await;
    }
    browser.close().await;
}

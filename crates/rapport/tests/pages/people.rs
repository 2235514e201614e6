//! Logging in and out, the profile page, and pages for people who are not logged in.

use rapport_testkit::browser::Setup;
use rapport_testkit::{Browser, Hands, with_all_hands};
use serde_json::json;

use crate::office::{Login, Office, log_in};

with_all_hands!(a_person_logs_in_and_out, a_person_changes_their_name);

async fn a_person_logs_in_and_out(hands: Hands) {
    let office = Office::open();
    let browser = Browser::open_as(&office.base(), Setup { hands, ..Setup::default() }).await;
    browser.go("/profile").await;
    browser.fill("email", &office.owner.email).await;
    browser.fill("password", "wrong").await;
    browser.click("Log in").await;
    browser.see("Incorrect email or password").await;
    browser.fill("password", &office.owner.password).await;
    browser.click("Log in").await;
    // They get to the page they wanted.
    browser.see("Active sessions").await;

    browser.fill("current", "not it either").await;
    browser.fill("password", "another long one").await;
    browser.click("Change password").await;
    browser.see("Incorrect password.").await;
    browser.fill("current", &office.owner.password).await;
    browser.fill("password", "another long one").await;
    browser.click("Change password").await;
    browser.see("Password changed").await;
    browser.click("Log out").await;
    browser.see("You’re logged out.").await;

    log_in(&browser, &Login { email: office.owner.email.clone(), password: "another long one".to_owned() })
        .await;
    browser.close();
}

async fn a_person_changes_their_name(hands: Hands) {
    let office = Office::open();
    let browser = office.browser_at("/profile", hands).await;
    browser.fill("name", "Ana Ruiz-Berg").await;
    browser.click_css("form[action='/profile/name'] button").await;
    browser.see("Name changed.").await;
    browser.see("Ana Ruiz-Berg").await;
    browser.close();
}

#[tokio::test]
async fn the_theme_is_a_choice() {
    let office = Office::open();
    let browser = office.browser().await;
    let background = "return getComputedStyle(document.body).backgroundColor";
    let light = browser.run(background, Vec::new()).await;
    browser.go("/profile").await;
    browser.click("Dark").await;
    browser.click_css("form[action='/theme'] button").await;
    let is_dark = format!("return getComputedStyle(document.body).backgroundColor !== {light}");
    browser.expect_script(&is_dark, &json!(true)).await;
    browser.close();
}

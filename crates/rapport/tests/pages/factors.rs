//! Second factors in a browser: a passkey instead of the password, an authenticator app with recovery codes, and a company
//! that requires one of them.

use std::time::SystemTime;

use rapport_domain::time::Time;
use rapport_domain::totp::TotpSecret;
use rapport_testkit::{Browser, Hands, with_all_hands};
use serde_json::json;

use crate::office::{Login, Office, log_in};

with_all_hands!(an_app_asks_for_codes_and_a_recovery_code_helps, a_company_requires_a_second_factor);

/// Passkeys need scripts.
mod somebody_logs_in_with_a_passkey {
    use super::{Hands, passkeys};

    #[tokio::test]
    async fn by_mouse() {
        passkeys(Hands::Mouse).await;
    }

    #[tokio::test]
    async fn by_keyboard() {
        passkeys(Hands::Keyboard).await;
    }
}

/// The time of the service, and of this test.
fn now() -> Time {
    let since = SystemTime::UNIX_EPOCH.elapsed().expect("a time after 1970");
    Time::from_micros(i64::try_from(since.as_micros()).expect("a time before the year 294247"))
}

async fn has_no_violations(browser: &Browser, hands: Hands) {
    if hands == Hands::Mouse {
        assert_eq!(browser.axe().await, [""; 0]);
    }
}

async fn log_out(browser: &Browser) {
    browser.click("Log out").await;
    browser.see("You’re logged out.").await;
}

/// Gives the password and stops at the second step.
async fn first_step(browser: &Browser, login: &Login) {
    browser.go("/login").await;
    browser.fill("email", &login.email).await;
    browser.fill("password", &login.password).await;
    browser.click("Log in").await;
    browser.see("Second step").await;
}

async fn passkeys(hands: Hands) {
    let office = Office::open_by_name();
    let browser = office.browser_with(hands).await;
    let authenticator = browser.add_authenticator().await;
    browser.click_css(".me a[href='/profile']").await;
    browser.click("Add passkey").await;
    browser.see("A passkey is kept on your device").await;
    has_no_violations(&browser, hands).await;
    // She logged in a while ago.
    office.age_proofs();
    browser.fill("name", "Laptop").await;
    browser.click("Add passkey").await;
    browser.see("Confirm it’s you").await;
    browser.see_not("Use a passkey").await;
    browser.fill("password", "not her password").await;
    browser.click("Confirm").await;
    browser.see("Incorrect password.").await;
    browser.fill("password", &office.owner.password).await;
    browser.click("Confirm").await;
    browser.see("Now add the passkey.").await;
    has_no_violations(&browser, hands).await;
    browser.expect_count("#name[value='Laptop']", 1).await;
    browser.click("Add passkey").await;
    browser.see("shown only once").await;
    has_no_violations(&browser, hands).await;
    browser.click("Continue").await;
    browser.see("Laptop").await;
    browser.see("never used").await;
    browser.see("Codes left: 10.").await;
    has_no_violations(&browser, hands).await;

    log_out(&browser).await;
    browser.see("Log in with a passkey").await;
    has_no_violations(&browser, hands).await;
    browser.recognize(&authenticator, false).await;
    browser.click_in_vain("Log in with a passkey").await;
    browser.see("The passkey wasn’t used.").await;
    browser.recognize(&authenticator, true).await;
    browser.click("Log in with a passkey").await;
    browser.see("Dashboard").await;
    browser.see("Ana Ruiz").await;

    // After the password it is the second factor.
    log_out(&browser).await;
    first_step(&browser, &office.owner).await;
    has_no_violations(&browser, hands).await;
    browser.click("Use a passkey").await;
    browser.see("Dashboard").await;

    browser.click_css(".me a[href='/profile']").await;
    browser.click("Change Laptop").await;
    browser.fill_css("[id^=name-psk]", "Work laptop").await;
    browser.click("Rename").await;
    browser.see("Passkey renamed.").await;
    // A passkey is also enough to confirm who is there.
    office.age_proofs();
    browser.click("Change Work laptop").await;
    browser.click("Remove passkey").await;
    browser.see("Confirm it’s you").await;
    has_no_violations(&browser, hands).await;
    browser.recognize(&authenticator, false).await;
    browser.click_in_vain("Use a passkey").await;
    browser.see("The passkey wasn’t used.").await;
    browser.recognize(&authenticator, true).await;
    browser.click("Use a passkey").await;
    browser.see("Passkey removed.").await;
    browser.see_not("Codes left").await;
    log_out(&browser).await;
    log_in(&browser, &office.owner).await;
    browser.close();
}

/// Sets up an authenticator app, from its first page on; returns its secret and the recovery codes.
async fn set_up_app(browser: &Browser, hands: Hands) -> (TotpSecret, Vec<String>) {
    browser.see("An app on your phone shows a new code").await;
    has_no_violations(browser, hands).await;
    browser.click("Show the QR code").await;
    confirm_app(browser, hands).await
}

/// Confirms an app with its first code, from the page with the QR code on.
async fn confirm_app(browser: &Browser, hands: Hands) -> (TotpSecret, Vec<String>) {
    browser.see("Scan this code").await;
    browser.expect_some("svg.qr path").await;
    has_no_violations(browser, hands).await;
    let secret = TotpSecret::parse(&browser.text_of("#key").await.replace(' ', "")).expect("a secret");
    browser.fill("code", "000000").await;
    browser.click("Confirm").await;
    browser.see("Isn't the current code").await;
    browser.fill("code", &secret.code_at(now())).await;
    browser.click("Confirm").await;
    browser.see("shown only once").await;
    let codes: Vec<String> = browser.text_of("#codes").await.split_whitespace().map(str::to_owned).collect();
    assert_eq!(codes.len(), 10, "{codes:?}");
    browser.click("Continue").await;
    (secret, codes)
}

async fn an_app_asks_for_codes_and_a_recovery_code_helps(hands: Hands) {
    let office = Office::open();
    let browser = office.browser_with(hands).await;
    browser.click_css(".me a[href='/profile']").await;
    browser.see("passkeys need a host name").await;
    browser.click("Set up an app").await;
    let (secret, codes) = set_up_app(&browser, hands).await;
    browser.see("Codes left: 10.").await;
    browser.see("Codes from your app").await;

    log_out(&browser).await;
    first_step(&browser, &office.owner).await;
    has_no_violations(&browser, hands).await;
    // Nothing is open yet.
    browser.go("/accounts").await;
    browser.see("Forgot your password?").await;
    first_step(&browser, &office.owner).await;
    browser.fill("code", "000000").await;
    browser.click("Continue").await;
    browser.see("Incorrect code.").await;
    // The code that confirmed the app has been used, so she waits for the next one. Apps may be ahead.
    browser.fill("code", &secret.code_at(now().plus_seconds(30))).await;
    browser.click("Continue").await;
    browser.see("Dashboard").await;

    // The phone is lost.
    log_out(&browser).await;
    first_step(&browser, &office.owner).await;
    browser.fill("code", &codes[0]).await;
    browser.click("Continue").await;
    browser.see("Dashboard").await;
    log_out(&browser).await;
    first_step(&browser, &office.owner).await;
    browser.fill("code", &codes[0]).await;
    browser.click("Continue").await;
    browser.see("Incorrect code.").await;
    browser.fill("code", &codes[1]).await;
    browser.click("Continue").await;
    browser.click_css(".me a[href='/profile']").await;
    browser.see("Codes left: 8.").await;
    browser.click("Create new codes").await;
    browser.click("Create codes").await;
    browser.see("shown only once").await;
    browser.click("Continue").await;
    browser.see("Codes left: 10.").await;
    browser.click("Remove the authenticator app").await;
    browser.click("Remove app").await;
    browser.see("Authenticator app removed.").await;
    log_out(&browser).await;
    log_in(&browser, &office.owner).await;
    browser.close();
}

async fn a_company_requires_a_second_factor(hands: Hands) {
    let office = Office::open();
    let bo = Login { email: "bo@acme.test".to_owned(), password: "the password of Bo Lind".to_owned() };
    office.employ(&bo.email, "Bo Lind", "member", &bo.password);
    office.account(json!({ "imported_id": "crm-1", "name": "Nordlys Bank", "status": "customer" }));
    let theirs = office.stranger(hands).await;
    log_in(&theirs, &bo).await;

    let ana = office.browser_at("/settings/security", hands).await;
    ana.click("Members need a second factor to log in").await;
    ana.click("Save").await;
    // It applies to her as well.
    ana.see("Set up a second factor").await;
    has_no_violations(&ana, hands).await;
    ana.click("Log out").await;
    ana.see("You’re logged out.").await;
    ana.close();

    theirs.click("Accounts").await;
    theirs.see("Acme requires a second factor").await;
    theirs.go("/clients").await;
    theirs.see("Set up a second factor").await;
    theirs.see_not("Nordlys Bank").await;
    theirs.click("Use an authenticator app").await;
    // It took them a while.
    office.age_proofs();
    theirs.see("An app on your phone shows a new code").await;
    theirs.click("Show the QR code").await;
    theirs.see("Confirm it’s you").await;
    theirs.see_not("Nordlys Bank").await;
    has_no_violations(&theirs, hands).await;
    theirs.fill("password", &bo.password).await;
    theirs.click("Confirm").await;
    let (secret, _) = confirm_app(&theirs, hands).await;
    // They get to the page they wanted.
    theirs.arrive("/clients").await;
    theirs.click("Accounts").await;
    theirs.see("Nordlys Bank").await;

    log_out(&theirs).await;
    first_step(&theirs, &bo).await;
    theirs.fill("code", &secret.code_at(now().plus_seconds(30))).await;
    theirs.click("Continue").await;
    theirs.see("Dashboard").await;

    // An owner resets it, and Bo starts over.
    let members = office.api("GET", "/api/members/", &json!(null));
    let members = members["items"].as_array().expect("members");
    let found = members.iter().find(|member| member["email"] == bo.email.as_str()).expect("Bo");
    let bo_id = found["id"].as_str().expect("an id");
    office.api("POST", &format!("/api/members/{bo_id}/factor-reset/"), &json!(null));
    theirs.click("Accounts").await;
    theirs.see("Forgot your password?").await;
    theirs.fill("email", &bo.email).await;
    theirs.fill("password", &bo.password).await;
    theirs.click("Log in").await;
    theirs.see("Set up a second factor").await;
    theirs.close();
}

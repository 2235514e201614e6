//! A person who works in two companies, and in two browsers.

use rapport_testkit::{Hands, with_all_hands};
use serde_json::json;

use crate::mailbox::{INVITATION, Mailbox, RESET, link};
use crate::office::Office;

with_all_hands!(
    a_person_of_two_companies_goes_from_one_to_the_other,
    other_sessions_are_logged_out,
    without_mail_a_forgotten_password_is_a_matter_for_an_admin,
);

async fn a_person_of_two_companies_goes_from_one_to_the_other(hands: Hands) {
    let (mailbox, mut office) = Mailbox::with_office();
    // Only the owner of an address can have two companies with one login.
    "the second password of Ana".clone_into(&mut office.owner.password);
    office.api("POST", "/api/password-reset/", &json!({ "email": office.owner.email }));
    let reset = link(&mailbox.mail(1), RESET);
    let chosen = json!({ "token": reset.rsplit('/').next(), "password": office.owner.password });
    office.api("POST", "/api/password-reset/confirm/", &chosen);
    let options = mailbox.options();
    office.second_company("birch", "Birch & Sons", &options.each_ref().map(String::as_str));
    office.join(&link(&mailbox.mail(2), INVITATION), &office.owner.password);
    office.account(json!({ "imported_id": "crm-1", "name": "Nordlys Bank", "status": "customer" }));
    let browser = office.browser_with(hands).await;
    browser.click("Accounts").await;
    browser.see("Nordlys Bank").await;

    browser.click("Switch company").await;
    browser.see("Your companies").await;
    if hands == Hands::Mouse {
        assert_eq!(browser.axe().await, [""; 0]);
    }
    browser.click("Switch to Birch & Sons").await;
    browser.see("Switched to Birch & Sons.").await;
    browser.click("Accounts").await;
    browser.see("No accounts yet").await;
    browser.see_not("Nordlys Bank").await;

    // A new login continues in the same company.
    let elsewhere = office.browser_with(hands).await;
    elsewhere.see("Birch & Sons").await;
    elsewhere.close();
    browser.click("Switch company").await;
    browser.click("Switch to Acme").await;
    browser.see("Switched to Acme.").await;
    browser.click("Accounts").await;
    browser.see("Nordlys Bank").await;
    browser.close();
}

async fn other_sessions_are_logged_out(hands: Hands) {
    let office = Office::open();
    let here = office.browser_with(hands).await;
    let there = office.browser_at("/settings", hands).await;
    there.fill("time_zone", "Europe/Berlin").await;
    here.click_css(".me a[href='/profile']").await;
    here.see("Active sessions").await;
    here.expect_count("[aria-labelledby=sessions] tbody tr", 2).await;
    here.click("Log out everywhere else").await;
    here.see("Your other sessions are logged out.").await;
    here.expect_count("[aria-labelledby=sessions] tbody tr", 1).await;
    here.see("this session").await;

    there.click("Save").await;
    there.see("Forgot your password?").await;
    there.fill("email", &office.owner.email).await;
    there.fill("password", &office.owner.password).await;
    there.click("Log in").await;
    // They return to the page they were on, and nothing was saved meanwhile.
    there.see("Default currency").await;
    there.arrive("/settings").await;
    assert_eq!(office.api("GET", "/api/settings/", &json!(null))["time_zone"], "UTC");
    here.close();
    there.close();
}

async fn without_mail_a_forgotten_password_is_a_matter_for_an_admin(hands: Hands) {
    let office = Office::open();
    office.employ("bo@acme.test", "Bo Lind", "member", "the first password");
    let theirs = office.stranger(hands).await;
    theirs.go("/login").await;
    theirs.click("Forgot your password?").await;
    theirs.see("This server doesn’t send mail.").await;
    theirs.click("Back to login").await;
    theirs.see("Forgot your password?").await;

    let ana = office.browser_at("/settings/members", hands).await;
    ana.click("Change Bo Lind").await;
    ana.click("Create password-reset link").await;
    ana.see("Share this link").await;
    if hands == Hands::Mouse {
        assert_eq!(ana.axe().await, [""; 0]);
    }
    let link = ana.text_of("#link").await;
    ana.click("Members").await;
    ana.see("Invite someone").await;
    ana.see_not("Share this link").await;

    theirs.go(&link).await;
    theirs.see("For bo@acme.test.").await;
    theirs.fill("password", "a long enough one").await;
    theirs.click("Change password").await;
    theirs.see("Password changed. Log in with your new password.").await;
    ana.close();
    theirs.close();
}

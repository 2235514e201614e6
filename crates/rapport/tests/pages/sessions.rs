//! Sessions: seen and ended by their person, limited by the company, and asked again before something sensitive.

use rapport_testkit::{Hands, with_all_hands};
use serde_json::{Value, json};

use crate::mailbox::Mailbox;
use crate::office::{Office, log_in};

with_all_hands!(
    a_person_ends_one_of_their_sessions,
    a_sensitive_form_goes_on_after_the_password,
    a_person_changes_their_mind_before_the_password,
    a_weak_password_says_why,
    the_company_limits_sessions,
    a_login_with_a_new_browser_is_told_by_mail,
);

async fn a_person_ends_one_of_their_sessions(hands: Hands) {
    let office = Office::open();
    let here = office.browser_with(hands).await;
    let there = office.stranger(hands).await;
    log_in(&there, &office.owner).await;
    here.click_css(".me a[href='/profile']").await;
    here.see("Active sessions").await;
    here.expect_count("[aria-labelledby=sessions] tbody tr", 2).await;
    if hands == Hands::Mouse {
        assert_eq!(here.axe().await, [""; 0]);
    }
    here.click("End Chrome on Linux").await;
    here.see("Session logged out.").await;
    here.expect_count("[aria-labelledby=sessions] tbody tr", 1).await;
    there.click("Clients").await;
    there.see("Forgot your password?").await;
    here.click("Clients").await;
    here.arrive("/clients").await;
    here.close();
    there.close();
}

async fn a_sensitive_form_goes_on_after_the_password(hands: Hands) {
    let office = Office::open();
    let browser = office.browser_at("/settings/tokens", hands).await;
    browser.fill("name", "CRM <sync>").await;
    browser.choose("role", "member").await;
    office.age_proofs();
    browser.click("Create token").await;
    browser.see("Confirm it’s you").await;
    browser.see_not("CRM <sync>").await;
    if hands == Hands::Mouse {
        assert_eq!(browser.axe().await, [""; 0]);
    }
    browser.fill("password", "not this one").await;
    browser.click("Confirm").await;
    browser.see("Incorrect password.").await;
    browser.fill("password", &office.owner.password).await;
    browser.click("Confirm").await;
    browser.see("Copy it now. You won’t see it again.").await;
    browser.see("New token: CRM <sync>").await;
    let token = browser.text_of("#token").await;
    let bearer = format!("Bearer {token}");
    let reading = || office.status("GET", "/api/accounts/", ("Authorization", &bearer), &json!(null));
    assert_eq!(reading(), 200);

    // The next one doesn't ask again.
    browser.click("Revoke CRM <sync>").await;
    browser.click("Revoke token").await;
    browser.see("Token revoked. It no longer works.").await;
    assert_eq!(reading(), 401);
    browser.close();
}

async fn a_person_changes_their_mind_before_the_password(hands: Hands) {
    let office = Office::open();
    let browser = office.browser_at("/settings/ingest", hands).await;
    office.age_proofs();
    browser.click("Rotate ingest key…").await;
    browser.click("Rotate ingest key").await;
    browser.see("Confirm it’s you").await;
    browser.click("Cancel").await;
    browser.arrive("/settings/ingest").await;
    let events = json!({ "events": [{ "imported_id": "crm-1", "kind": "app_opened" }] });
    let header = ("X-Service-Ingest-Key", office.ingest_key());
    assert_eq!(office.status("POST", "/api/pulse/ingest/", header, &events), 200, "it is still the key");
    browser.close();
}

async fn a_weak_password_says_why(hands: Hands) {
    let office = Office::open();
    let browser = office.browser_at("/profile", hands).await;
    for (chosen, fault) in [
        ("password1234", "Is too easy to guess"),
        ("Ana Ruiz, Acme", "Must not consist of your email address, your name or your company's name."),
    ] {
        browser.fill("current", &office.owner.password).await;
        browser.fill("password", chosen).await;
        browser.click("Change password").await;
        browser.see(fault).await;
        browser.expect_count("#password[aria-invalid][value='']", 1).await;
    }
    browser.fill("current", &office.owner.password).await;
    browser.fill("password", "kestrel over 7 bridges").await;
    browser.click("Change password").await;
    browser.see("Password changed.").await;
    browser.close();
}

async fn the_company_limits_sessions(hands: Hands) {
    let office = Office::open();
    let browser = office.browser_at("/settings/security", hands).await;
    browser.see("Log people out when idle for").await;
    browser.choose("session_max_minutes", "1440").await;
    browser.click("Save").await;
    browser.see("Must not be below session_idle_minutes.").await;
    browser.choose("session_idle_minutes", "480").await;
    office.age_proofs();
    browser.click("Save").await;
    browser.fill("password", &office.owner.password).await;
    browser.click("Confirm").await;
    browser.see("Security settings saved.").await;
    let saved = office.api("GET", "/api/settings/", &Value::Null);
    assert_eq!((&saved["session_idle_minutes"], &saved["session_max_minutes"]), (&json!(480), &json!(1440)));
    browser.close();
}

async fn a_login_with_a_new_browser_is_told_by_mail(hands: Hands) {
    let (mailbox, office) = Mailbox::with_office();
    let browser = office.stranger(hands).await;
    log_in(&browser, &office.owner).await;
    let notice = mailbox.notice(1);
    assert_eq!((&notice.to[0], notice.header("Subject")), (&office.owner.email, "New login on Rapport"));
    for part in ["Chrome on Linux", "127.0.0.1", "choose a new password"] {
        assert!(notice.plain.contains(part), "{part}: {}", notice.plain);
    }
    browser.click("Log out").await;
    log_in(&browser, &office.owner).await;
    let mails = office.api("GET", "/api/mails/", &Value::Null);
    assert_eq!(mails["items"].as_array().map(Vec::len), Some(1), "the browser is known");
    browser.close();
}

//! A person is invited by mail, joins, gets another role and loses access; passwords are reset by mail.

use rapport_testkit::{Browser, Hands, with_all_hands};
use serde_json::{Value, json};

use crate::mailbox::{INVITATION, Mailbox, RESET, link};
use crate::office::{Login, Office, log_in};

const PASSWORD: &str = "a long enough one";

with_all_hands!(
    somebody_joins_by_mail_and_is_deactivated,
    an_invitation_is_sent_again_and_withdrawn,
    a_forgotten_password_is_replaced_by_mail,
    an_admin_sends_a_link_for_a_new_password,
);

/// The owner's browser with the members page open.
async fn members(office: &Office, hands: Hands) -> Browser {
    let browser = office.browser_at("/settings/members", hands).await;
    browser.see("No pending invitations").await;
    browser
}

async fn invite(browser: &Browser, email: &str) {
    browser.fill("email", email).await;
    browser.choose("role", "member").await;
    browser.click("Invite").await;
    browser.see(&format!("An invitation to {email} is on its way.")).await;
}

fn bo(office: &Office) -> Value {
    let found = office.api("GET", "/api/members/", &json!(null));
    let found = found["items"].as_array().into_iter().flatten().find(|one| one["email"] == "bo@acme.test");
    found.cloned().unwrap_or_default()
}

async fn somebody_joins_by_mail_and_is_deactivated(hands: Hands) {
    let (mailbox, office) = Mailbox::with_office();
    let ana = members(&office, hands).await;
    invite(&ana, "bo@acme.test").await;
    let mail = mailbox.mail(1);
    assert_eq!(
        (&mail.to[..], mail.header("Subject")),
        (&["bo@acme.test".to_owned()][..], "Join Acme on Rapport")
    );

    let theirs = office.stranger(hands).await;
    let invitation = link(&mail, INVITATION);
    if hands == Hands::Mouse {
        theirs.go(&invitation).await;
        assert_eq!(theirs.axe().await, [""; 0]);
    }
    join(&theirs, &invitation).await;
    ana.see_news("Bo Lind").await;
    ana.see("No pending invitations").await;

    promote(&ana, &theirs).await;
    assert_eq!(bo(&office)["role"], "admin");

    deactivate_and_back(&office, &ana, &theirs).await;

    ana.click("Change Bo Lind").await;
    ana.click("Remove…").await;
    ana.click("Remove Bo Lind").await;
    ana.see("Member removed.").await;
    theirs.click("Dashboard").await;
    theirs.see("Forgot your password?").await;
    assert_eq!(bo(&office), Value::Null);
    ana.close();
    theirs.close();
}

async fn join(browser: &Browser, invitation: &str) {
    browser.go(invitation).await;
    browser.see("Join Acme").await;
    browser.see("You’ve been invited to join as member with the address bo@acme.test.").await;
    browser.fill("name", "Bo Lind").await;
    browser.fill("password", PASSWORD).await;
    browser.click("Join").await;
    browser.see("Dashboard").await;
    browser.see("Bo Lind").await;
    // A member manages nothing.
    browser.expect_count("a[href='/settings']", 0).await;
    // It works once.
    browser.go(invitation).await;
    browser.see("This link was already used, was replaced or has expired").await;
    browser.click("Go to the dashboard").await;
}

/// A role applies from the next page on.
async fn promote(ana: &Browser, theirs: &Browser) {
    ana.click("Change Bo Lind").await;
    ana.choose_css("form[action$='/role'] select", "admin").await;
    ana.click("Save").await;
    ana.see("Bo Lind now has the role admin.").await;
    theirs.click("Clients").await;
    theirs.click("Settings").await;
    theirs.see("Time zone").await;
}

async fn deactivate_and_back(office: &Office, ana: &Browser, theirs: &Browser) {
    ana.click("Change Bo Lind").await;
    ana.click("Deactivate").await;
    ana.see("Bo Lind can no longer log in.").await;
    assert_eq!(bo(office)["active"], false);
    theirs.click("Cadence").await;
    theirs.see("Forgot your password?").await;
    theirs.fill("email", "bo@acme.test").await;
    theirs.fill("password", PASSWORD).await;
    theirs.click("Log in").await;
    theirs.see("Incorrect email or password").await;

    ana.click("Undo").await;
    ana.see("Bo Lind can log in again.").await;
    theirs.fill("password", PASSWORD).await;
    theirs.click("Log in").await;
    // They get to the page they wanted before.
    theirs.see("Contact every client at least every").await;
}

async fn an_invitation_is_sent_again_and_withdrawn(hands: Hands) {
    let (mailbox, office) = Mailbox::with_office();
    let ana = members(&office, hands).await;
    invite(&ana, "cy@acme.test").await;
    let first = link(&mailbox.mail(1), INVITATION);
    ana.fill("email", "cy@acme.test").await;
    ana.click("Invite").await;
    ana.see("This address already has an open invitation; resend or revoke it.").await;
    ana.click("Send again to cy@acme.test").await;
    ana.see("An invitation to cy@acme.test is on its way.").await;
    let second = link(&mailbox.mail(2), INVITATION);

    let theirs = office.stranger(hands).await;
    theirs.go(&first).await;
    theirs.see("This link was already used, was replaced or has expired").await;
    theirs.go(&second).await;
    theirs.see("Join Acme").await;

    ana.click("Revoke the invitation for cy@acme.test").await;
    ana.click("Revoke invitation").await;
    ana.see("Invitation revoked. Its link no longer works.").await;
    ana.see("No pending invitations").await;
    // Also for a person who has it open.
    theirs.fill("name", "Cy Young").await;
    theirs.fill("password", PASSWORD).await;
    theirs.click("Join").await;
    theirs.see("This link was already used, was replaced or has expired").await;
    let found = office.api("GET", "/api/members/", &json!(null));
    assert_eq!(found["items"].as_array().map(Vec::len), Some(1));
    ana.close();
    theirs.close();
}

async fn a_forgotten_password_is_replaced_by_mail(hands: Hands) {
    let (mailbox, office) = Mailbox::with_office();
    let elsewhere = office.browser_with(hands).await;
    let browser = office.stranger(hands).await;
    let sent = "If this address has a login here, a mail with a link is on its way.";
    // The message does not reveal who has a login.
    for email in ["nobody@acme.test", &office.owner.email] {
        browser.go("/login").await;
        browser.click("Forgot your password?").await;
        browser.fill("email", email).await;
        browser.click("Send reset link").await;
        browser.see(sent).await;
    }
    let mail = mailbox.mail(1);
    assert_eq!(mail.to, [office.owner.email.as_str()]);
    let reset = link(&mail, RESET);
    choose_password(&browser, &reset, &office.owner.email).await;
    log_in(&browser, &Login { email: office.owner.email.clone(), password: PASSWORD.to_owned() }).await;
    elsewhere.click("Clients").await;
    elsewhere.see("Forgot your password?").await;

    browser.go(&reset).await;
    browser.see("This link was already used, was replaced or has expired").await;
    assert_eq!(mailbox.count(), 1);
    browser.close();
    elsewhere.close();
}

async fn choose_password(browser: &Browser, reset: &str, email: &str) {
    browser.go(reset).await;
    browser.see("Choose a new password").await;
    browser.see(&format!("For {email}.")).await;
    browser.fill("password", PASSWORD).await;
    browser.click("Change password").await;
    browser.see("Password changed. Log in with your new password.").await;
}

async fn an_admin_sends_a_link_for_a_new_password(hands: Hands) {
    let (mailbox, office) = Mailbox::with_office();
    let bo = json!({ "email": "bo@acme.test", "name": "Bo Lind", "role": "member" });
    office.api("POST", "/api/invitations/", &bo);
    office.join(&link(&mailbox.mail(1), INVITATION), "the first password");
    let ana = members(&office, hands).await;
    ana.click("Change Bo Lind").await;
    if hands == Hands::Mouse {
        assert_eq!(ana.axe().await, [""; 0]);
    }
    ana.click("Send password-reset link").await;
    ana.see("A mail with a password-reset link is on its way.").await;
    let mail = mailbox.mail(2);
    assert_eq!(mail.to, ["bo@acme.test"]);

    let theirs = office.stranger(hands).await;
    choose_password(&theirs, &link(&mail, RESET), "bo@acme.test").await;
    log_in(&theirs, &Login { email: "bo@acme.test".to_owned(), password: PASSWORD.to_owned() }).await;
    theirs.see("Bo Lind").await;
    ana.close();
    theirs.close();
}

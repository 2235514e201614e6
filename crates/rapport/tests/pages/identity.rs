//! A company gets another name and is nearly deleted; people change their address and leave.

use rapport_testkit::{Browser, Hands, with_all_hands};
use serde_json::json;

use crate::mailbox::{EMAIL_CHANGE, Mailbox, link};
use crate::office::{Login, Office, log_in};

with_all_hands!(
    the_company_gets_another_name,
    a_person_changes_their_address,
    a_person_leaves_the_company,
    a_company_waits_to_be_deleted_and_is_kept,
);

const BOS_PASSWORD: &str = "the password of Bo Lind";

async fn the_company_gets_another_name(hands: Hands) {
    let office = Office::open();
    let browser = office.browser_at("/settings", hands).await;
    browser.fill("name", "Acme & Söhne").await;
    browser.click("Save").await;
    browser.see("Company settings saved.").await;
    browser.see_in("nav .brand", "Acme & Söhne").await;
    let found = office.api("GET", "/api/settings/", &json!(null));
    assert_eq!((&found["name"], &found["project"]), (&json!("Acme & Söhne"), &json!("acme")));
    browser.click("Audit log").await;
    browser.see("name: Acme → Acme & Söhne").await;
    browser.close();
}

async fn a_person_changes_their_address(hands: Hands) {
    let (mailbox, office) = Mailbox::with_office();
    let ana = office.browser_with(hands).await;
    let elsewhere = office.browser_with(hands).await;
    ana.go("/profile").await;
    ana.fill("email", "ana@new.test").await;
    ana.fill("email_password", "not it").await;
    ana.click("Change email address").await;
    ana.see("Incorrect password.").await;
    ana.expect_value("email", "ana@new.test").await;
    ana.fill("email_password", &office.owner.password).await;
    ana.click("Change email address").await;
    ana.see("A mail with a link is on its way to your new address.").await;

    let mails = [mailbox.mail(1), mailbox.mail(2)];
    let to = |address: &str| mails.iter().find(|mail| mail.to == [address]).expect("a mail");
    assert!(to("ana@acme.test").plain.contains("ana@new.test"), "the old address is told");
    let change = link(to("ana@new.test"), EMAIL_CHANGE);
    // The link works only for Ana, when she is logged in.
    let stranger = office.stranger(hands).await;
    stranger.go(&change).await;
    stranger.see("Forgot your password?").await;
    stranger.close();
    ana.go(&change).await;
    ana.see("Current address").await;
    if hands == Hands::Mouse {
        assert_eq!(ana.axe().await, [""; 0]);
    }
    ana.click("Use the new address").await;
    ana.see("Your email address is now ana@new.test.").await;
    elsewhere.click("Clients").await;
    elsewhere.see("Forgot your password?").await;
    elsewhere.close();

    ana.click("Log out").await;
    ana.see("You’re logged out.").await;
    log_in(&ana, &Login { email: "ana@new.test".to_owned(), password: office.owner.password.clone() }).await;
    ana.go(&change).await;
    ana.see("This link was already used, was replaced or has expired").await;
    ana.close();
}

async fn leave(browser: &Browser) {
    browser.go("/profile").await;
    browser.see("Download my data").await;
    browser.click("Leave…").await;
    browser.click("Leave Acme").await;
}

async fn a_person_leaves_the_company(hands: Hands) {
    let office = Office::open();
    office.employ("bo@acme.test", "Bo Lind", "member", BOS_PASSWORD);
    let bo = office.stranger(hands).await;
    let login = Login { email: "bo@acme.test".to_owned(), password: BOS_PASSWORD.to_owned() };
    log_in(&bo, &login).await;
    leave(&bo).await;
    bo.see("You left the company.").await;
    bo.fill("email", &login.email).await;
    bo.fill("password", &login.password).await;
    bo.click("Log in").await;
    bo.see("Incorrect email or password").await;
    bo.close();

    let ana = office.browser_with(hands).await;
    leave(&ana).await;
    ana.see("You are the last owner; make somebody else an owner first, or delete the company.").await;
    ana.click("Dashboard").await;
    ana.see("Ana Ruiz").await;
    ana.close();
}

async fn a_company_waits_to_be_deleted_and_is_kept(hands: Hands) {
    let office = Office::open();
    office.employ("bo@acme.test", "Bo Lind", "member", BOS_PASSWORD);
    let ana = office.browser_at("/settings", hands).await;
    ana.click("Delete company…").await;
    ana.see("Nobody can restore it afterwards.").await;
    ana.expect_count("a[href='/settings/export'][download]", 1).await;
    ana.fill("project", "Acme").await;
    ana.fill("current", &office.owner.password).await;
    ana.click("Delete this company").await;
    ana.see("Must be acme, the company's short name.").await;
    ana.fill("project", "acme").await;
    ana.fill("current", &office.owner.password).await;
    ana.click("Delete this company").await;
    ana.see("Waiting to be deleted").await;
    ana.see("Acme will be deleted on").await;
    if hands == Hands::Mouse {
        assert_eq!(ana.axe().await, [""; 0]);
    }

    // Everything works, and everyone knows.
    let bo = office.stranger(hands).await;
    log_in(&bo, &Login { email: "bo@acme.test".to_owned(), password: BOS_PASSWORD.to_owned() }).await;
    bo.see("Acme will be deleted on").await;
    bo.click("Accounts").await;
    bo.see("No accounts yet").await;
    ana.click("Dashboard").await;
    ana.click("Export or cancel").await;
    ana.click("Cancel deletion").await;
    ana.see("Deletion cancelled. Nothing was deleted.").await;
    ana.see_not("Acme will be deleted on").await;
    bo.click("Clients").await;
    bo.see_not("Acme will be deleted on").await;
    ana.close();
    bo.close();
}

//! Single sign-on with a real identity provider: an owner sets it up, people log in with it for the first time, and it
//! becomes required.

use rapport_testkit::oidc::person;
use rapport_testkit::{Browser, Hands, OidcProvider, with_all_hands};
use serde_json::{Value, json};

use crate::office::{Login, Office, log_in};

with_all_hands!(
    a_company_sets_it_up_and_somebody_joins_by_logging_in,
    where_it_is_required_only_the_break_glass_owner_has_a_password,
    the_provider_asks_again_before_something_sensitive,
);

/// An office, and the provider that its people log in with. Somebody else may use the same browser next, so it asks each of
/// them.
fn office() -> (OidcProvider, Office) {
    office_with(true)
}

fn office_with(forgetful: bool) -> (OidcProvider, Office) {
    let provider = OidcProvider::start();
    let authority = provider.ca_file();
    let authority = authority.to_str().expect("a path");
    let office = Office::open_with(&["--extra-ca", authority, "--allow-sso", "127.0.0.0/8"]);
    let redirect = format!("{}/sso/acme/callback", office.base());
    let people = json!({
        "ana": person("ana@acme.test", "Ana at the provider"),
        "bo": person("bo@acme.test", "Bo Lind"),
        "eve": person("eve@evil.test", "Eve"),
    });
    provider.order(&json!({ "people": people, "redirects": [redirect], "forgetful": forgetful }));
    (provider, office)
}

/// Sets everything up without the page.
fn set_up(office: &Office, provider: &OidcProvider, changes: Value) {
    office.command_line(&["company", "claim-domain", "acme", "acme.test"]);
    let OidcProvider { issuer, client_id, client_secret, .. } = provider;
    let mut body = json!({
        "mode": "optional", "issuer": issuer, "client_id": client_id, "client_secret": client_secret,
        "domains": ["acme.test"],
    });
    body.as_object_mut().expect("an object").extend(changes.as_object().expect("an object").clone());
    office.api("PUT", "/api/settings/sso/", &body);
}

fn member(office: &Office, email: &str) -> Value {
    let found = office.api("GET", "/api/members/", &json!(null));
    let found = found["items"].as_array().into_iter().flatten().find(|one| one["email"] == email);
    found.cloned().unwrap_or_default()
}

/// Goes from the login page of the company to the provider, and logs in there.
async fn log_in_there(browser: &Browser, who: &str) {
    browser.click("Log in with single sign-on").await;
    browser.see("Acme login").await;
    browser.fill("login", who).await;
    browser.click("Continue to Rapport").await;
}

async fn a_company_sets_it_up_and_somebody_joins_by_logging_in(hands: Hands) {
    let (provider, office) = office();
    let ana = office.browser_at("/settings/sso", hands).await;
    configure(&office, &provider, &ana, hands).await;

    let theirs = office.stranger(hands).await;
    // They want a page, and get there in the end.
    theirs.go("/clients").await;
    theirs.click("Log in with single sign-on").await;
    theirs.fill("company", "bo@acme.test").await;
    theirs.click("Continue").await;
    theirs.see("Log in to Acme").await;
    if hands == Hands::Mouse {
        assert_eq!(theirs.axe().await, [""; 0]);
    }
    log_in_there(&theirs, "bo").await;
    theirs.see("Bo Lind").await;
    theirs.arrive("/clients").await;
    assert_eq!(member(&office, "bo@acme.test")["role"], "member");
    theirs.go("/profile").await;
    theirs.see("You log in with single sign-on, so you have no password.").await;
    theirs.click("Log out").await;
    theirs.see("You’re logged out.").await;

    // Who isn't in the company's domain doesn't come in.
    theirs.go("/login?project=acme").await;
    log_in_there(&theirs, "eve").await;
    theirs.see("You’re not logged in").await;
    theirs.see("Your email address isn't in one of this company's confirmed domains").await;
    if hands == Hands::Mouse {
        assert_eq!(theirs.axe().await, [""; 0]);
    }
    theirs.click("Back to login").await;
    theirs.click("Log in with single sign-on").await;
    theirs.see("Acme login").await;
    theirs.click("Cancel").await;
    theirs.see("The login was cancelled").await;
    theirs.click("Back to login").await;
    log_in_there(&theirs, "bo").await;
    theirs.see("Dashboard").await;

    // A member who is removed while they are logged in is out, and stays out.
    ana.click("Members").await;
    ana.click("Change Bo Lind").await;
    ana.click("Remove…").await;
    ana.click("Remove Bo Lind").await;
    ana.see("Member removed.").await;
    theirs.click("Accounts").await;
    theirs.see("Forgot your password?").await;
    theirs.go("/login?project=acme").await;
    log_in_there(&theirs, "bo").await;
    theirs.see("You're no longer a member of this company").await;
    assert_eq!(member(&office, "bo@acme.test"), Value::Null);
    let refused = office.api("GET", "/api/audit/?action=session.failed", &json!(null));
    assert_eq!(refused["items"][0]["detail"]["reason"], "removed");
    ana.close();
    theirs.close();
}

/// The owner enters the provider; the server's administrator confirms the domain.
async fn configure(office: &Office, provider: &OidcProvider, ana: &Browser, hands: Hands) {
    ana.see(&format!("{}/sso/acme/callback", office.base())).await;
    ana.fill("issuer", &provider.issuer).await;
    ana.fill("client_id", &provider.client_id).await;
    ana.fill("client_secret", &provider.client_secret).await;
    ana.fill("domains", "acme.test").await;
    ana.choose("mode", "optional").await;
    ana.click("Save").await;
    ana.see("None of these domains is confirmed yet").await;
    office.command_line(&["company", "claim-domain", "acme", "acme.test"]);
    // A browser doesn't repeat a password that was typed.
    ana.fill("client_secret", &provider.client_secret).await;
    ana.click("Save").await;
    ana.see("Single sign-on saved.").await;
    ana.see_in("[aria-labelledby=domains-title]", "confirmed").await;
    if hands == Hands::Mouse {
        assert_eq!(ana.axe().await, [""; 0]);
    }
    ana.click("Test the connection").await;
    ana.see("The provider answers, and we can work with it.").await;
}

async fn where_it_is_required_only_the_break_glass_owner_has_a_password(hands: Hands) {
    let (provider, office) = office();
    let password = "the password of Bo Lind";
    office.employ("bo@acme.test", "Bo Lind", "admin", password);
    set_up(&office, &provider, json!({}));
    let theirs = office.stranger(hands).await;
    let bo = Login { email: "bo@acme.test".to_owned(), password: password.to_owned() };
    log_in(&theirs, &bo).await;

    let ana = office.browser_at("/settings/sso", hands).await;
    ana.choose("mode", "required").await;
    ana.click("Save").await;
    ana.see("Is required if single sign-on is").await;
    let id = member(&office, "ana@acme.test")["id"].as_str().expect("an id").to_owned();
    ana.choose("break_glass_owner", &id).await;
    ana.click("Save").await;
    ana.see("Single sign-on saved.").await;

    // The session that began with a password is over, and the password opens nothing.
    theirs.click("Accounts").await;
    theirs.see("Forgot your password?").await;
    theirs.fill("email", &bo.email).await;
    theirs.fill("password", &bo.password).await;
    theirs.click("Log in").await;
    theirs.see("Acme requires single sign-on.").await;
    log_in_there(&theirs, "bo").await;
    theirs.see("Accounts").await;
    // With the login and the role that they have.
    theirs.see("Bo Lind").await;
    theirs.click("Settings").await;
    theirs.see("Time zone").await;

    let again = office.stranger(hands).await;
    log_in(&again, &office.owner).await;
    ana.click("Audit log").await;
    ana.see_in("#audit", "Logged in with a password although single sign-on is required").await;
    ana.close();
    theirs.close();
    again.close();
}

async fn the_provider_asks_again_before_something_sensitive(hands: Hands) {
    // The provider remembers who they are, and asks only because we want it to.
    let (provider, office) = office_with(false);
    office.employ("bo@acme.test", "Bo Lind", "admin", "the password of Bo Lind");
    set_up(&office, &provider, json!({}));
    let theirs = office.stranger(hands).await;
    theirs.go("/login?project=acme").await;
    log_in_there(&theirs, "bo").await;
    theirs.see("Dashboard").await;
    theirs.go("/settings/tokens").await;
    theirs.fill("name", "CRM").await;
    theirs.choose("role", "member").await;
    office.age_proofs();
    theirs.click("Create token").await;
    theirs.see("Confirm it’s you").await;
    if hands == Hands::Mouse {
        assert_eq!(theirs.axe().await, [""; 0]);
    }
    let host = provider.issuer.trim_start_matches("https://");
    theirs.click(&format!("Continue with {host}")).await;
    theirs.see("Acme login").await;
    theirs.fill("login", "bo").await;
    theirs.click("Continue to Rapport").await;
    theirs.see("You confirmed that it’s you. Send the form again.").await;
    theirs.arrive("/settings/tokens").await;
    theirs.fill("name", "CRM").await;
    theirs.choose("role", "member").await;
    theirs.click("Create token").await;
    theirs.see("New token: CRM").await;

    // A login needs no question where the provider remembers them.
    theirs.go("/profile").await;
    theirs.click("Log out").await;
    theirs.see("You’re logged out.").await;
    theirs.go("/login?project=acme").await;
    theirs.click("Log in with single sign-on").await;
    theirs.see("Bo Lind").await;
    theirs.close();
}

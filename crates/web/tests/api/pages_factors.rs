//! Second factors over HTTP: setting them up, the second step of a login, companies that require one, and resetting them.

use std::time::{Duration, Instant};

use rapport_app::session::Proven;
use rapport_app::{Access, Outside, password};
use rapport_domain::id::PersonId;
use rapport_domain::member::{Email, Role};
use rapport_domain::totp::TotpSecret;
use rapport_testkit::app::Hire;
use rapport_testkit::{Authenticator, Engine, block_on};
use serde_json::{Value, json};

use crate::harness::{Server, Tenant, on_both_engines};
use crate::person::{Person, Seen};

on_both_engines!(
    an_app_is_set_up_with_a_code,
    a_found_open_session_changes_no_factor,
    a_passkey_proves_who_is_there,
    a_required_factor_is_set_up_after_a_proof,
    wrong_passkeys_are_limited_like_passwords,
    a_login_asks_for_the_code_and_then_leads_on,
    wrong_codes_are_limited_and_recorded,
    an_invitation_that_is_accepted_with_a_password_asks_for_the_factor_too,
    a_passkey_is_added_and_logs_in,
    a_passkey_is_the_second_step,
    passkeys_are_renamed_and_removed,
    without_a_host_name_the_pages_say_why_there_are_no_passkeys,
    a_required_factor_leads_to_its_set_up,
    a_required_factor_leaves_other_companies_open,
    the_requirement_is_a_setting_of_page_and_api,
    an_owner_resets_factors_on_the_members_page,
    the_api_resets_factors_for_owners,
);

const PATIENCE: Duration = Duration::from_mins(1);
const PASSWORD: &str = "the password of Ana";
const BASE_URL: &str = "http://localhost:4711";

/// A service at a host name, which passkeys need.
async fn with_host_name(engine: Engine) -> Server {
    let outside = Outside { base_url: BASE_URL.to_owned(), mail_configured: true };
    Server::with_parts(engine, move |parts| parts.outside = outside.clone()).await
}

/// A member with a password, logged in.
fn ana(acme: &Tenant, role: Role) -> (Person<'_>, String) {
    let app = acme.company.app();
    let number = u64::from_be_bytes(app.services().random());
    let email = format!("ana-{number}@acme.test");
    let hire = Hire {
        email: Email::parse(&email).expect("an address"),
        name: "Ana".to_owned(),
        role,
        password_hash: password::hash(app.services(), PASSWORD).expect("a hash"),
        is_proven: false,
    };
    let member = block_on(app.write(&Access::System(acme.company.id()), hire)).expect("a member");
    (session(acme, member.person), email)
}

fn session(acme: &Tenant, person: PersonId) -> Person<'_> {
    let proven = Proven { person, company: acme.company.id() };
    let begun = block_on(acme.company.app().write(&proven.access(), proven.begin(Some("A test"))));
    Person { tenant: acme, id: person, cookie: format!("rapport={}", begun.expect("a session")) }
}

/// The secret that a page shows.
fn secret(page: &Seen) -> TotpSecret {
    let text = page.0.text().split("<code id=\"key\">").nth(1).expect("a key");
    let text = text.split('<').next().unwrap().replace(' ', "");
    TotpSecret::parse(&text).unwrap_or_else(|| panic!("{text} is not a secret"))
}

/// The recovery codes that a page shows.
fn codes(page: &Seen) -> Vec<String> {
    let text = page.0.text().split("id=\"codes\">").nth(1).expect("codes");
    text.split('<').next().unwrap().split_whitespace().map(str::to_owned).collect()
}

async fn set_up_app(ana: &Person<'_>) -> (TotpSecret, Vec<String>) {
    let secret = secret(&ana.send("/profile/app", &[]).await.expect(200));
    let code = secret.code_at(ana.tenant.company.app().now());
    let done = ana.send("/profile/app/confirm", &[("code", &code)]).await.expect(200);
    let codes = codes(&done);
    (secret, codes)
}

/// Sends a form without a session, with these cookies.
async fn post(acme: &Tenant, path: &str, cookies: &str, fields: &[(&str, &str)]) -> Seen {
    let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
    let call = acme.post(path).without_credential().text(&body).header("cookie", cookies);
    let call = call.header("content-type", "application/x-www-form-urlencoded");
    Seen(call.header("sec-fetch-site", "same-origin").send().await)
}

/// The value of a cookie that a response sets.
fn cookie(seen: &Seen, name: &str) -> Option<String> {
    let cookies = seen.0.headers.get_all("set-cookie").iter().filter_map(|value| value.to_str().ok());
    let mut values = cookies.filter_map(|cookie| cookie.split(';').next()?.split_once('='));
    values.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
}

/// Gives the password; the cookie with which the second step goes on.
async fn first_step(acme: &Tenant, email: &str) -> String {
    let fields = [("email", email), ("password", PASSWORD), ("next", "/accounts?q=x")];
    let answer = post(acme, "/login", "", &fields).await;
    assert_eq!(answer.leads_to("/login/second"), "/login/second?next=%2Faccounts%3Fq%3Dx");
    assert_eq!(cookie(&answer, "rapport"), None, "no session before the second step");
    format!("first_step={}", cookie(&answer, "first_step").expect("the first step"))
}

/// The failed logins in the audit log, once there is one. They are recorded after the response.
async fn failed_logins(acme: &Tenant) -> Vec<Value> {
    let since = Instant::now();
    loop {
        assert!(since.elapsed() < PATIENCE, "no failed login is recorded");
        let found = acme.get("/api/audit/?action=session.failed").send().await.expect(200);
        match found["items"].as_array() {
            Some(items) if !items.is_empty() => return items.clone(),
            _ => tokio::task::yield_now().await,
        }
    }
}

async fn an_app_is_set_up_with_a_code(server: Server) {
    let (ana, _) = ana(&server, Role::Member);
    ana.see("/profile").await.expect(200).says("Ways to log in").says("Set up an app").says_not("Codes left");
    ana.see("/profile/app").await.expect(200).says("Show the QR code").says_not("<svg class=\"qr\"");
    let shown = ana.send("/profile/app", &[]).await.expect(200).says("<svg class=\"qr\"");
    let secret = secret(&shown);
    let wrong = ana.send("/profile/app/confirm", &[("code", "000000")]).await.expect(422);
    let wrong =
        wrong.says("Isn&#39;t the current code; check the clock of your device.").says("<svg class=\"qr\"");
    assert_eq!(self::secret(&wrong).to_text(), secret.to_text(), "the same QR code again");
    ana.see("/profile").await.says("Set up an app");
    let code = secret.code_at(server.app.clock().now());
    let done = ana.send("/profile/app/confirm", &[("code", &code), ("next", "/accounts")]).await.expect(200);
    assert_eq!(codes(&done).len(), 10);
    done.says("href=\"/accounts\"").says("shown only once");
    let page = ana.see("/profile").await.expect(200).says("Codes left: 10.").says_not("Set up an app");
    page.says_not(&secret.to_text());
    ana.see("/profile/app").await.leads_to("/profile");
    ana.see("/profile/app/confirm").await.leads_to("/profile/app");

    let renewed = ana.send("/profile/recovery-codes", &[]).await.expect(200);
    assert_eq!(codes(&renewed).len(), 10);
    ana.send("/profile/app/remove", &[]).await.leads_to("/profile");
    ana.see("/profile").await.says("Set up an app").says_not("Codes left");
    let refused = ana.send("/profile/recovery-codes", &[]).await.expect(422);
    refused.says("Recovery codes are for people with a second factor; set one up first.");
}

async fn a_found_open_session_changes_no_factor(engine: Engine) {
    let server = with_host_name(engine).await;
    let (ana, email) = ana(&server, Role::Member);
    let waiting = secret(&ana.send("/profile/app", &[]).await.expect(200));
    server.app.clock().advance_seconds(16 * 60);
    // Nobody sees a secret that waits for its first code.
    let asked = ana.send("/profile/app/confirm", &[("code", "000000")]).await.expect(403);
    asked.says("Confirm it’s you").says_not("<svg class=\"qr\"");
    let asked =
        ana.send("/profile/app", &[("next", "/clients")]).await.expect(403).says_not("<svg class=\"qr\"");
    let asked = asked.says("Confirm it’s you").says(&email);
    ana.confirm("/profile/app", &asked, "wrong").await.expect(422).says("Incorrect password.");
    let shown = ana.confirm("/profile/app", &asked, PASSWORD).await.expect(200).says("value=\"/clients\"");
    let secret = secret(&shown);
    assert_ne!(secret.to_text(), waiting.to_text());
    let code = secret.code_at(server.app.clock().now());
    ana.send("/profile/app/confirm", &[("code", &code)]).await.expect(200);

    server.app.clock().advance_seconds(16 * 60);
    for path in ["/profile/app/remove", "/profile/recovery-codes"] {
        ana.send(path, &[]).await.expect(403).says("Confirm it’s you");
    }
    let refused = ana.send("/profile/passkeys/challenge", &[("name", "Mine")]).await;
    refused.0.expect_problem(403, "proof_required");
    // The script sends the form as it is then, and the page that asked leads back to it.
    let fields = [("name", "Mine"), ("state", ""), ("credential", "")];
    let asked = ana.send("/profile/passkeys", &fields).await.expect(403).says("Confirm it’s you");
    let again = ana.confirm("/profile/passkeys", &asked, PASSWORD).await.expect(200);
    again.says("Now add the passkey.").says("value=\"Mine\"");
    challenge(&ana.send("/profile/passkeys/challenge", &[("name", "Mine")]).await);
    ana.send("/profile/app/remove", &[]).await.leads_to("/profile");
}

/// The fields with which a passkey answers the question who is there.
async fn proof(ana: &Person<'_>, asked: &Seen, authenticator: &mut Authenticator) -> [(String, String); 3] {
    let (options, state) = challenge(&ana.send("/profile/passkeys/proof", &[]).await);
    let credential = authenticator.answer(&options);
    let waiting = asked.hidden("waiting_form");
    [("waiting_form", waiting), ("state", state), ("credential", credential)]
        .map(|(name, value)| (name.to_owned(), value))
}

async fn answer(ana: &Person<'_>, path: &str, fields: &[(String, String)]) -> Seen {
    let fields: Vec<(&str, &str)> =
        fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    ana.send(path, &fields).await
}

async fn a_passkey_proves_who_is_there(engine: Engine) {
    let server = with_host_name(engine).await;
    let (ana, _) = ana(&server, Role::Owner);
    server.app.clock().advance_seconds(16 * 60);
    let asked = ana.send("/settings/ingest/key", &[]).await.expect(403);
    asked.says_not("Use a passkey").says_not("or your passkey");
    let (options, _) = challenge(&ana.send("/profile/passkeys/proof", &[]).await);
    assert_eq!(options["publicKey"]["allowCredentials"], json!([]));

    let weak = session(&server, ana.id);
    let mut laptop = add_passkey(&weak, "Laptop").await;
    server.app.clock().advance_seconds(16 * 60);
    let asked = weak.send("/settings/ingest/key", &[]).await.expect(403).says("Use a passkey");
    let asked = asked.says("data-passkey=\"/profile/passkeys/proof\"").says("or your passkey");
    laptop.verifies = false;
    let fields = proof(&weak, &asked, &mut laptop).await;
    let wrong = answer(&weak, "/settings/ingest/key", &fields).await.expect(422);
    let asked = wrong.says("Passkey wasn&#39;t accepted; try again, or type your password.");
    assert_eq!(failed_logins(&server).await[0]["detail"]["factor"], json!("passkey"));
    laptop.verifies = true;
    let fields = proof(&weak, &asked, &mut laptop).await;
    answer(&weak, "/settings/ingest/key", &fields).await.expect(200).says("rik_");
    weak.send("/settings/ingest/inbound-key", &[]).await.expect(200);
}

async fn wrong_passkeys_are_limited_like_passwords(engine: Engine) {
    let server = with_host_name(engine).await;
    let (ana, email) = ana(&server, Role::Owner);
    let mut laptop = add_passkey(&ana, "Laptop").await;
    let (options, state) = challenge(&post(&server, "/login/passkey/challenge", "", &[]).await);
    laptop.verifies = false;
    let wrong = laptop.answer(&options);
    for _ in 0..10 {
        let fields = [("state", state.as_str()), ("credential", &wrong)];
        post(&server, "/login/passkey", "", &fields).await.expect(422);
    }
    laptop.verifies = true;
    let right = laptop.answer(&options);
    let fields = [("state", state.as_str()), ("credential", &right)];
    post(&server, "/login/passkey", "", &fields).await.expect(429);
    let password = [("email", email.as_str()), ("password", PASSWORD)];
    post(&server, "/login", "", &password).await.expect(429);
    server.app.clock().advance_seconds(30);
    assert_eq!(post(&server, "/login/passkey", "", &fields).await.leads_to("/"), "/");
}

async fn a_required_factor_is_set_up_after_a_proof(server: Server) {
    let (ana, _) = ana(&server, Role::Viewer);
    server.app.set(json!({ "second_factor_required": true }));
    server.app.clock().advance_seconds(16 * 60);
    let asked = ana.send("/profile/app", &[]).await.expect(403).says("Confirm it’s you");
    let asked = asked.says_not("Accounts").says_not("Pipeline");
    let secret = secret(&ana.confirm("/profile/app", &asked, PASSWORD).await.expect(200));
    ana.see("/").await.leads_to("/login/second");
    let code = secret.code_at(server.app.clock().now());
    ana.send("/profile/app/confirm", &[("code", &code)]).await.expect(200);
    ana.see("/").await.expect(200);
}

async fn a_login_asks_for_the_code_and_then_leads_on(server: Server) {
    let (ana, email) = ana(&server, Role::Member);
    let (secret, recovery) = set_up_app(&ana).await;
    server.app.clock().advance_seconds(60);
    let cookies = first_step(&server, &email).await;
    let page = server.get("/login/second?next=/accounts").without_credential().header("cookie", &cookies);
    Seen(page.send().await).expect(200).says("Second step").says("autocomplete=\"one-time-code\"");
    Seen(server.get("/login/second").without_credential().send().await).leads_to("/login");
    let wrong = post(&server, "/login/second", &cookies, &[("code", "000000")]).await.expect(422);
    assert_eq!(cookie(&wrong, "rapport"), None);
    wrong.says("Incorrect code.");
    let code = secret.code_at(server.app.clock().now());
    let fields = [("code", code.as_str()), ("next", "/accounts?q=x")];
    let done = post(&server, "/login/second", &cookies, &fields).await;
    assert_eq!(done.leads_to("/accounts"), "/accounts?q=x");
    let session = cookie(&done, "rapport").expect("a session");
    assert_eq!(cookie(&done, "first_step").as_deref(), Some(""), "the first step is over");
    assert!(cookie(&done, "browser").is_some(), "the browser is known from now on");
    let there = Person { tenant: &server, id: ana.id, cookie: format!("rapport={session}") };
    there.see("/accounts").await.expect(200);
    // The same code doesn't count again; a recovery code does.
    post(&server, "/login/second", &cookies, &fields).await.expect(422);
    let elsewhere = [("code", recovery[0].as_str()), ("next", "//evil.test")];
    assert_eq!(post(&server, "/login/second", &cookies, &elsewhere).await.leads_to("/"), "/");
    server.app.clock().advance_seconds(300);
    post(&server, "/login/second", &cookies, &[("code", &recovery[1])]).await.leads_to("/login");
}

async fn wrong_codes_are_limited_and_recorded(server: Server) {
    let (ana, email) = ana(&server, Role::Member);
    let (secret, _) = set_up_app(&ana).await;
    server.app.clock().advance_seconds(60);
    let cookies = first_step(&server, &email).await;
    for wrong in ["000000", "nonsense", "0000-0000-0000-0000"] {
        post(&server, "/login/second", &cookies, &[("code", wrong)]).await.expect(422);
    }
    for _ in 3..10 {
        post(&server, "/login/second", &cookies, &[("code", "000000")]).await.expect(422);
    }
    let code = secret.code_at(server.app.clock().now());
    post(&server, "/login/second", &cookies, &[("code", &code)]).await.expect(429);
    let failed = failed_logins(&server).await;
    assert_eq!(failed.len(), 1, "at most one a minute: {failed:?}");
    assert_eq!(failed[0]["detail"], json!({ "email": email, "factor": "totp" }));
    server.app.clock().advance_seconds(30);
    let code = secret.code_at(server.app.clock().now());
    assert_eq!(post(&server, "/login/second", &cookies, &[("code", &code)]).await.leads_to("/"), "/");
}

async fn an_invitation_that_is_accepted_with_a_password_asks_for_the_factor_too(engine: Engine) {
    let server = with_host_name(engine).await;
    let acme: &Tenant = &server;
    let hire = Hire {
        email: Email::parse("ana@acme.test").expect("an address"),
        name: "Ana".to_owned(),
        role: Role::Member,
        password_hash: password::hash(server.app.app().services(), PASSWORD).expect("a hash"),
        is_proven: true,
    };
    let access = Access::System(acme.company.id());
    let ana = session(acme, block_on(server.app.app().write(&access, hire)).expect("a member").person);
    let (secret, _) = set_up_app(&ana).await;
    let b = server.app.company("b");
    let invite = json!({ "email": "ana@acme.test", "role": "member" });
    server.post("/api/invitations/").of_company(&b).json(&invite).send().await.expect(201);
    let mails = block_on(rapport_app::mail::take_due(server.app.app(), b.id(), 10)).expect("mails");
    let link = mails[0].plain.split_whitespace().find(|word| word.contains("/invitation/")).expect("a link");
    let path = link.strip_prefix(BASE_URL).expect("our link");
    let joined = post(acme, path, "", &[("password", PASSWORD)]).await;
    joined.leads_to("/login/second");
    assert_eq!(cookie(&joined, "rapport"), None);
    let cookies = format!("first_step={}", cookie(&joined, "first_step").expect("the first step"));
    server.app.clock().advance_seconds(60);
    let code = secret.code_at(server.app.clock().now());
    let done = post(acme, "/login/second", &cookies, &[("code", &code)]).await;
    assert_eq!(done.leads_to("/"), "/");
    assert!(cookie(&done, "rapport").is_some());
}

/// A challenge for the script.
fn challenge(seen: &Seen) -> (Value, String) {
    let asked = seen.0.expect(200);
    (asked["options"].clone(), asked["state"].as_str().expect("a state").to_owned())
}

async fn add_passkey(ana: &Person<'_>, name: &str) -> Authenticator {
    let (options, state) = challenge(&ana.send("/profile/passkeys/challenge", &[("name", name)]).await);
    let (authenticator, credential) = Authenticator::create(&options, BASE_URL);
    let fields = [("name", name), ("state", state.as_str()), ("credential", &credential)];
    let added = ana.send("/profile/passkeys", &fields).await;
    assert!([200, 303].contains(&added.0.status), "{}", added.0.text());
    authenticator
}

async fn a_passkey_is_added_and_logs_in(engine: Engine) {
    let server = with_host_name(engine).await;
    let (ana, _) = ana(&server, Role::Member);
    ana.see("/profile/passkeys").await.expect(200).says("data-passkey=\"/profile/passkeys/challenge\"");
    let refused = ana.send("/profile/passkeys/challenge", &[("name", "")]).await;
    assert_eq!(refused.0.faults()[0].0, "/name");
    let fields = [("name", "Laptop"), ("state", "1.e30.00"), ("credential", "{}")];
    ana.send("/profile/passkeys", &fields).await.expect(422).says("Passkey wasn&#39;t accepted; try again.");

    let mut laptop = add_passkey(&ana, "Laptop").await;
    ana.see("/profile").await.says("Laptop").says("never used").says("Codes left: 10.");
    let login = Seen(server.get("/login").without_credential().send().await).expect(200);
    login.says("Log in with a passkey");
    let (options, state) = challenge(&post(&server, "/login/passkey/challenge", "", &[]).await);
    assert_eq!(options["publicKey"]["userVerification"], json!("required"));
    assert_eq!(options["publicKey"]["allowCredentials"], json!([]), "no address is asked for");
    let credential = laptop.answer(&options);
    let fields = [("state", state.as_str()), ("credential", &credential), ("next", "/profile")];
    let done = post(&server, "/login/passkey", "", &fields).await;
    done.leads_to("/profile");
    let there = Person {
        tenant: &server,
        id: ana.id,
        cookie: format!("rapport={}", cookie(&done, "rapport").expect("a session")),
    };
    there.see("/profile").await.expect(200).says("last used");
    let again = post(&server, "/login/passkey", "", &fields).await.expect(422);
    assert_eq!(cookie(&again, "rapport"), None);
    again.says("That passkey wasn’t accepted.").says("Log in with a passkey");
    assert_eq!(failed_logins(&server).await[0]["detail"]["factor"], json!("passkey"));
}

async fn a_passkey_is_the_second_step(engine: Engine) {
    let server = with_host_name(engine).await;
    let (ana, email) = ana(&server, Role::Member);
    let mut laptop = add_passkey(&ana, "Laptop").await;
    let cookies = first_step(&server, &email).await;
    let page = server.get("/login/second").without_credential().header("cookie", &cookies);
    Seen(page.send().await).expect(200).says("Use a passkey").says("Recovery code");
    let (options, state) = challenge(&post(&server, "/login/second/challenge", &cookies, &[]).await);
    assert_eq!(options["publicKey"]["allowCredentials"].as_array().map(Vec::len), Some(1));
    laptop.verifies = false;
    let unverified = laptop.answer(&options);
    let fields = [("state", state.as_str()), ("credential", &unverified)];
    let refused = post(&server, "/login/second/passkey", &cookies, &fields).await.expect(422);
    refused.says("That passkey wasn’t accepted. Try again.");
    laptop.verifies = true;
    let credential = laptop.answer(&options);
    let fields = [("state", state.as_str()), ("credential", &credential)];
    let done = post(&server, "/login/second/passkey", &cookies, &fields).await;
    assert_eq!(done.leads_to("/"), "/");
    assert!(cookie(&done, "rapport").is_some());
    post(&server, "/login/second/passkey", "", &fields).await.leads_to("/login");
}

async fn passkeys_are_renamed_and_removed(engine: Engine) {
    let server = with_host_name(engine).await;
    let (ana, _) = ana(&server, Role::Member);
    add_passkey(&ana, "Laptop").await;
    add_passkey(&ana, "Phone").await;
    let page = ana.see("/profile").await.expect(200);
    let id =
        page.0.text().split("/profile/passkeys/psk_").nth(1).expect("a passkey").split('/').next().unwrap();
    let path = |act: &str| format!("/profile/passkeys/psk_{id}/{act}");
    ana.send(&path("name"), &[("name", "")]).await.expect(422).says("Name is required.");
    ana.send(&path("name"), &[("name", "<b>Work</b>")]).await.leads_to("/profile");
    ana.see("/profile").await.says("&#60;b&#62;Work&#60;/b&#62;").says_not("Laptop").says("Phone");
    ana.send(&path("remove"), &[]).await.leads_to("/profile");
    ana.see("/profile").await.says_not("Work").says("Phone");
    ana.send(&path("remove"), &[]).await.expect(404);
    ana.send("/profile/passkeys/x/remove", &[]).await.expect(404);
    // Nobody else's.
    let phone = ana.see("/profile").await.expect(200);
    let id =
        phone.0.text().split("/profile/passkeys/psk_").nth(1).expect("a passkey").split('/').next().unwrap();
    let (other, _) = self::ana(&server, Role::Owner);
    other.send(&format!("/profile/passkeys/psk_{id}/name"), &[("name", "Mine")]).await.expect(404);
    other.send(&format!("/profile/passkeys/psk_{id}/remove"), &[]).await.expect(404);
    ana.see("/profile").await.says("Phone");
}

async fn without_a_host_name_the_pages_say_why_there_are_no_passkeys(acme: Tenant) {
    let (ana, _) = ana(&acme, Role::Member);
    let why = "Passkeys aren’t available here: passkeys need a host name, and this service is opened by an IP address.";
    ana.see("/profile").await.expect(200).says(why).says_not("Add passkey");
    ana.see("/profile/passkeys").await.expect(200).says(why).says_not("data-passkey");
    let login = Seen(acme.get("/login").without_credential().send().await).expect(200);
    login.says_not("Log in with a passkey");
    post(&acme, "/login/passkey/challenge", "", &[]).await.expect(404);
}

async fn a_required_factor_leads_to_its_set_up(acme: Tenant) {
    let (ana, email) = ana(&acme, Role::Admin);
    ana.see("/accounts").await.expect(200);
    acme.company.set(json!({ "second_factor_required": true }));
    assert_eq!(
        ana.see("/accounts?q=x").await.leads_to("/login/second"),
        "/login/second?next=%2Faccounts%3Fq%3Dx"
    );
    let set_up = ana.see("/login/second?next=%2Faccounts%3Fq%3Dx").await.leads_to("/login/set-up");
    let page = ana.see(&set_up).await.expect(200).says("requires a second factor");
    page.says("href=\"/profile/app?next=%2Faccounts%3Fq%3Dx\"").says("Log out").says_not("Switch to");
    for path in ["/", "/profile", "/settings", "/companies", "/palette"] {
        ana.see(path).await.leads_to("/login/second");
    }
    // A stream ends instead of leading to a page.
    ana.see("/live").await.expect(204);
    ana.send("/settings/security", &[]).await.leads_to("/login/second");
    acme.get("/api/accounts/").send().await.expect(200);
    // Logging in again doesn't help.
    let fields = [("email", email.as_str()), ("password", PASSWORD)];
    let again = post(&acme, "/login", "", &fields).await;
    let again = format!("rapport={}", cookie(&again, "rapport").expect("a session"));
    Person { tenant: &acme, id: ana.id, cookie: again }.see("/").await.leads_to("/login/second");

    set_up_app(&ana).await;
    ana.see("/accounts?q=x").await.expect(200);
    ana.see("/login/set-up?next=/clients").await.leads_to("/clients");
    // Somebody who has one shows it, also in a session from before.
    let weak = session(&acme, ana.id);
    weak.see("/accounts").await.leads_to("/login/second");
    weak.see("/login/second").await.expect(200).says("Second step");
    weak.see("/login/set-up").await.leads_to("/login/second");
    weak.see("/profile/app").await.leads_to("/login/second");
    weak.send("/profile/app", &[]).await.leads_to("/login/second");
    weak.send("/logout", &[]).await.leads_to("/login");
}

async fn a_required_factor_leaves_other_companies_open(acme: Tenant) {
    let (ana, _) = ana(&acme, Role::Member);
    let b = acme.neighbour();
    // The test makes her a member; in truth, only a proven login has two companies.
    let join = rapport_testkit::app::Join { person: ana.id, role: Role::Member };
    block_on(b.company.app().write(&Access::System(b.company.id()), join)).expect("a member");
    acme.company.set(json!({ "second_factor_required": true }));
    let page = ana.see("/login/set-up").await.expect(200);
    page.says(&format!("value=\"{}\"", b.slug()));
    let moved = ana.send("/companies", &[("project", b.slug())]).await;
    assert_eq!(moved.leads_to("/"), "/");
    let there = Person {
        tenant: &acme,
        id: ana.id,
        cookie: format!("rapport={}", cookie(&moved, "rapport").expect("a session")),
    };
    there.see("/accounts").await.expect(200);
    // The way back leads through the set-up.
    let back = there.send("/companies", &[("project", acme.slug())]).await;
    assert_eq!(back.leads_to("/"), "/");
    let cookie = format!("rapport={}", cookie(&back, "rapport").expect("a session"));
    let back = Person { tenant: &acme, id: ana.id, cookie };
    back.see("/").await.leads_to("/login/second");
    back.see("/login/second").await.leads_to("/login/set-up");
}

async fn the_requirement_is_a_setting_of_page_and_api(acme: Tenant) {
    let owner = Person::of(&acme, Role::Owner);
    owner.see("/settings/security").await.expect(200).says_not("value=\"yes\" checked");
    let limits = [("session_idle_minutes", "20160"), ("session_max_minutes", "129600")];
    let on = [&limits[..], &[("second_factor_required", "yes")]].concat();
    owner.send("/settings/security", &on).await.leads_to("/settings/security");
    let settings = acme.get("/api/settings/").send().await.expect(200);
    assert_eq!(settings["second_factor_required"], json!(true));
    let patch = |body: Value| acme.patch("/api/settings/").json(&body);
    let off = patch(json!({ "second_factor_required": false })).send().await.expect(200);
    assert_eq!(off["second_factor_required"], json!(false));
    patch(json!({ "second_factor_required": 1 }))
        .expect_faults(&[("/second_factor_required", "wrong_type")])
        .await;
    let member = acme.token_of(Role::Member);
    patch(json!({ "second_factor_required": true }))
        .token(&member)
        .send()
        .await
        .expect_problem(403, "role_required");
    let changed = acme.get("/api/audit/?action=settings.changed").send().await.expect(200);
    let changes: Vec<&Value> =
        changed["items"].as_array().into_iter().flatten().map(|entry| &entry["detail"]).collect();
    let change = |from, to| json!({ "second_factor_required": { "from": from, "to": to } });
    assert_eq!(changes, [&change(true, false), &change(false, true)]);
}

async fn an_owner_resets_factors_on_the_members_page(acme: Tenant) {
    let (ana, email) = ana(&acme, Role::Member);
    set_up_app(&ana).await;
    let (owner, admin) = (Person::of(&acme, Role::Owner), Person::of(&acme, Role::Admin));
    let path = format!("/settings/members/{}/factor-reset", ana.id);
    admin.see("/settings/members").await.expect(200).says_not("Reset second factor");
    admin.send(&path, &[]).await.expect(403);
    let page = owner.see("/settings/members").await.expect(200).says(&path);
    // Not for herself, and not for those who have none.
    let page = page.says_not(&format!("/settings/members/{}/factor-reset", owner.id));
    page.says_not(&format!("/settings/members/{}/factor-reset", admin.id));
    let done = owner.send(&path, &[]).await;
    done.leads_to("/settings/members");
    assert!(done.flash().contains("Ana is logged out"), "{}", done.flash());
    ana.see("/").await.leads_to("/login");
    let fields = [("email", email.as_str()), ("password", PASSWORD)];
    assert_eq!(post(&acme, "/login", "", &fields).await.leads_to("/"), "/");
    owner.send(&path, &[]).await.expect(422).says("This member has no second factor.");
}

async fn the_api_resets_factors_for_owners(acme: Tenant) {
    let (ana, _) = ana(&acme, Role::Member);
    let path = format!("/api/members/{}/factor-reset/", ana.id);
    acme.post(&path).expect_refused(409, "no_second_factor").await;
    set_up_app(&ana).await;
    let admin = acme.token_of(Role::Admin);
    acme.post(&path).token(&admin).send().await.expect_problem(403, "role_required");
    acme.post(&path).of_company(&acme.neighbour().company).expect_refused(404, "not_found").await;
    acme.post(&path).json(&json!({ "all": true })).expect_faults(&[("/all", "unknown_member")]).await;
    let reset = || acme.post(&path).header("idempotency-key", "key-1").send();
    reset().await.expect(204);
    let again = reset().await;
    again.expect(204);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    ana.see("/").await.leads_to("/login");
    let log = acme.get("/api/audit/?action=factor.reset").send().await.expect(200);
    assert_eq!(log["items"][0]["target"], json!(ana.id.to_string()));
}

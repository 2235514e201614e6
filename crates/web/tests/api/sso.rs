//! Single sign-on over HTTP: the settings of owners, and a login from the login page to the session. The provider is made
//! up; the protocol is tested with a real one (`jobs/tests/sso`).

use std::sync::Arc;

use rapport_app::sso::domain::ClaimDomain;
use rapport_app::sso::provider::ProviderError;
use rapport_app::{Access, Outside};
use rapport_domain::email_domain::EmailDomain;
use rapport_domain::id::FormId;
use rapport_domain::member::Role;
use rapport_domain::sso::entry::Claims;
use rapport_testkit::providers::claims;
use rapport_testkit::{Engine, TestProviders};
use serde_json::{Value, json};

use crate::harness::{Server, Tenant, members_of, on_both_engines};
use crate::person::{Person, Seen};

on_both_engines!(
    the_settings_are_saved_and_shown_without_the_secret,
    bad_settings_are_refused_by_field,
    the_settings_are_for_owners,
    the_connection_is_tested,
    the_page_saves_tests_and_removes,
    a_person_logs_in_from_the_login_page,
    a_login_stays_in_the_browser_that_started_it,
    a_login_starts_with_a_click_on_our_page,
    a_refused_login_says_why,
    where_it_is_required_a_password_leads_to_it,
    a_session_by_single_sign_on_knows_one_company,
    the_provider_asks_again_before_something_sensitive,
    an_invitation_leads_to_it_where_it_is_required,
);

const PATH: &str = "/api/settings/sso/";
const PAGE: &str = "/settings/sso";
const ISSUER: &str = "https://login.acme.test";

/// A service with its made-up providers.
struct House {
    server: Server,
    providers: Arc<TestProviders>,
}

impl House {
    async fn on(engine: Engine) -> Self {
        let providers = Arc::new(TestProviders::default());
        let furnished = Arc::clone(&providers);
        let server = Server::with_parts(engine, move |parts| {
            parts.providers = Arc::clone(&furnished) as _;
            parts.outside = Outside { base_url: "http://crm.acme.test".to_owned(), mail_configured: false };
        });
        Self { server: server.await, providers }
    }

    /// The same with the domain confirmed and single sign-on turned on.
    async fn open(engine: Engine) -> Self {
        let house = Self::on(engine).await;
        house.claim("acme.test");
        house.put(json!({})).await;
        house
    }

    fn claim(&self, domain: &str) {
        let company = &self.server.company;
        let claim = ClaimDomain(EmailDomain::parse(domain).unwrap());
        company.write_as(&Access::CommandLine(company.id()), claim).unwrap();
    }

    async fn put(&self, changes: Value) -> Value {
        self.server.request("PUT", PATH).json(&settings(changes)).send().await.expect(200)
    }

    /// A browser without cookies.
    fn browser(&self) -> Browser<'_> {
        Browser { tenant: &self.server, cookies: Vec::new() }
    }
}

/// The id of the company's owner.
async fn owner_of(acme: &Tenant) -> Value {
    let members = acme.all_pages("/api/members/", 50).await;
    members.iter().find(|member| member["role"] == "owner").expect("an owner")["id"].clone()
}

fn settings(changes: Value) -> Value {
    let mut body = json!({
        "mode": "optional", "issuer": ISSUER, "client_id": "rapport", "client_secret": "hush hush",
        "domains": ["acme.test"],
    });
    body.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    body
}

/// Keeps cookies, as a browser does.
struct Browser<'a> {
    tenant: &'a Tenant,
    cookies: Vec<(String, String)>,
}

impl Browser<'_> {
    async fn go(&mut self, path: &str) -> Seen {
        let cookies: Vec<String> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let call = self.tenant.get(path).without_credential().header("cookie", &cookies.join("; "));
        let seen = Seen(call.send().await);
        for line in seen.0.headers.get_all("set-cookie").iter().filter_map(|value| value.to_str().ok()) {
            let (name, value) = line.split(';').next().unwrap().split_once('=').unwrap();
            self.cookies.retain(|(known, _)| known != name);
            if !value.is_empty() {
                self.cookies.push((name.to_owned(), value.to_owned()));
            }
        }
        seen
    }

    /// Sends a form from a page.
    async fn send(&self, page: &str, path: &str, fields: &[(&str, &str)]) -> Seen {
        let cookies: Vec<String> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        body.extend_pairs(fields);
        let form = FormId::from_bytes([9; 16]).to_string();
        body.append_pair("form", &form);
        let call = self.tenant.post(path).without_credential().header("cookie", &cookies.join("; "));
        let call = call.header("sec-fetch-site", "same-origin");
        let call =
            call.header("host", "crm.acme.test").header("referer", &format!("http://crm.acme.test{page}"));
        let call = call.text(&body.finish()).header("content-type", "application/x-www-form-urlencoded");
        Seen(call.send().await)
    }

    /// Goes to the provider; returns the state that it repeats.
    async fn start(&mut self) -> String {
        let there = self.go("/sso/acme?next=%2Fclients").await.leads_to(&format!("{ISSUER}/login?state="));
        there.rsplit('=').next().unwrap().to_owned()
    }

    fn has(&self, name: &str) -> bool {
        self.cookies.iter().any(|(known, _)| known == name)
    }
}

fn back(state: &str) -> String {
    format!("/sso/acme/callback?code=code&state={state}")
}

async fn the_settings_are_saved_and_shown_without_the_secret(engine: Engine) {
    let House { server: acme, .. } = &House::on(engine).await;
    acme.get(PATH).send().await.expect_problem(404, "not_found");
    acme.delete(PATH).send().await.expect_problem(404, "not_found");
    let off = json!({"mode": "off", "domains": ["b.test", "ACME.test"]});
    let made = acme.request("PUT", PATH).json(&settings(off)).send().await.expect(200);
    assert_eq!(
        members_of(&made).join(" "),
        "break_glass_owner callback_url client_id default_role domains issuer mode updated_at"
    );
    assert_eq!(made["callback_url"], "http://crm.acme.test/sso/acme/callback");
    let unconfirmed = |domain: &str| json!({"domain": domain, "confirmed_at": null});
    assert_eq!(made["domains"], json!([unconfirmed("acme.test"), unconfirmed("b.test")]));
    let on = settings(json!({}));
    acme.request("PUT", PATH).json(&on).expect_refused(409, "domain_not_confirmed").await;
    let company = &acme.company;
    let claim = ClaimDomain(EmailDomain::parse("acme.test").unwrap());
    company.write_as(&Access::CommandLine(company.id()), claim).unwrap();
    let owner = owner_of(acme).await;
    let required = json!({"mode": "required", "break_glass_owner": owner, "client_secret": null});
    let saved = acme.request("PUT", PATH).json(&settings(required)).send().await.expect(200);
    assert_eq!((&saved["mode"], &saved["break_glass_owner"]), (&json!("required"), &json!(owner)));
    assert!(saved["domains"][0]["confirmed_at"].is_string());
    assert_eq!(acme.get(PATH).send().await.expect(200), saved);
    for path in [PATH, "/api/audit/"] {
        assert!(!acme.get(path).send().await.text().contains("hush"), "{path}");
    }
    acme.delete(PATH).send().await.expect(204);
    acme.get(PATH).send().await.expect_problem(404, "not_found");
}

async fn bad_settings_are_refused_by_field(engine: Engine) {
    let House { server: acme, .. } = &House::open(engine).await;
    let stranger = acme.company.employ("bo@acme.test", "Bo", Role::Admin).person.to_string();
    for (changes, pointer, code) in [
        (json!({"mode": "on"}), "/mode", "unknown_mode"),
        (json!({"mode": "required"}), "/break_glass_owner", "required"),
        (json!({"mode": "required", "break_glass_owner": stranger}), "/break_glass_owner", "not_an_owner"),
        (json!({"issuer": "http://login.acme.test"}), "/issuer", "not_https"),
        (json!({"issuer": "https://login.evil.test", "client_secret": null}), "/client_secret", "required"),
        (json!({"domains": ["acme"]}), "/domains", "bad_host"),
        (json!({"default_role": "admin"}), "/default_role", "unknown_role"),
        (json!({"secret": "x"}), "/secret", "unknown_member"),
    ] {
        let call = acme.request("PUT", PATH).json(&settings(changes));
        call.expect_faults(&[(pointer, code)]).await;
    }
    let both = json!({"client_id": "", "domains": []});
    acme.request("PUT", PATH)
        .json(&settings(both))
        .expect_faults(&[("/client_id", "empty"), ("/domains", "empty")])
        .await;
}

async fn the_settings_are_for_owners(engine: Engine) {
    let House { server: acme, .. } = &House::open(engine).await;
    let before = acme.get(PATH).send().await.expect(200);
    for role in [Role::Member, Role::Admin] {
        let token = acme.token_of(role);
        for (method, path) in [("GET", PATH), ("DELETE", PATH), ("POST", "/api/settings/sso/test/")] {
            acme.request(method, path).token(&token).send().await.expect_problem(403, "role_required");
        }
        let put = acme.request("PUT", PATH).token(&token).json(&settings(json!({"client_id": "x"})));
        put.send().await.expect_problem(403, "role_required");
        let person = Person::of(acme, role);
        person.see(PAGE).await.expect(403).says("Your role doesn’t allow this");
        for path in [PAGE, "/settings/sso/test", "/settings/sso/remove"] {
            person.send(path, &[("issuer", "https://login.evil.test")]).await.expect(403);
        }
        if role == Role::Admin {
            person.see("/settings").await.expect(200).says_not("/settings/sso");
        }
    }
    assert_eq!(acme.get(PATH).send().await.expect(200), before);
    Person::of(acme, Role::Owner).see("/settings").await.expect(200).says("href=\"/settings/sso\"");
}

async fn the_connection_is_tested(engine: Engine) {
    let House { server: acme, providers } = &House::on(engine).await;
    let test = || acme.post("/api/settings/sso/test/");
    test().send().await.expect_problem(404, "not_found");
    acme.request("PUT", PATH).json(&settings(json!({"mode": "off"}))).send().await.expect(200);
    providers.say(ISSUER, claims("ana", "ana@acme.test"));
    assert_eq!(test().send().await.expect(200), json!({"works": true, "problem": null}));
    providers.fail(ISSUER, ProviderError::Unreachable("10.0.0.1 is not public".to_owned()));
    let failed = test().send().await.expect(200);
    assert_eq!(failed["works"], false);
    let problem = failed["problem"].as_str().unwrap();
    assert!(problem.starts_with("we couldn't reach the provider") && !problem.contains("10.0"), "{problem}");
    test().json(&json!({"issuer": "x"})).send().await.expect_problem(422, "invalid");
}

async fn the_page_saves_tests_and_removes(engine: Engine) {
    let house = House::on(engine).await;
    let acme = &house.server;
    let ana = Person::of(acme, Role::Owner);
    let page = ana.see(PAGE).await.expect(200).says("http://crm.acme.test/sso/acme/callback");
    page.says("aria-current=\"page\">Single sign-on").says_not("Test the connection");
    let id = ana.id.to_string();
    let fields = [
        ("mode", "off"),
        ("issuer", ISSUER),
        ("client_id", "rapport"),
        ("client_secret", " a secret "),
        ("domains", "acme.test, b.test\r\nacme.test"),
        ("default_role", "member"),
        ("break_glass_owner", id.as_str()),
    ];
    ana.send(PAGE, &fields).await.leads_to(PAGE);
    let page = ana.see(PAGE).await.expect(200).says("acme.test\nb.test").says_not("a secret");
    page.says("rapport company claim-domain acme b.test").says("not confirmed");
    // What is refused stays in the form, except the secret.
    let with = |name: &'static str, value: &'static str| {
        fields.map(|(field, old)| if field == name { (field, value) } else { (field, old) })
    };
    let page = ana.send(PAGE, &with("issuer", "login.evil.test")).await.expect(422);
    page.says("value=\"login.evil.test\"").says("The URL must begin with https://.").says_not("a secret");
    let page = ana.send(PAGE, &with("mode", "optional")).await.expect(422);
    page.says("None of these domains is confirmed yet").says("<option value=\"optional\" selected>");
    house.claim("acme.test");
    ana.send(PAGE, &with("mode", "optional")).await.leads_to(PAGE);
    ana.send(PAGE, &with("client_secret", "")).await.leads_to(PAGE);

    house.providers.say(ISSUER, claims("ana", "ana@acme.test"));
    let tested = ana.send("/settings/sso/test", &[]).await;
    tested.leads_to(PAGE);
    assert!(tested.flash().contains("we can work with it"), "{}", tested.flash());
    house.providers.fail(ISSUER, ProviderError::NoKey);
    let tested = ana.send("/settings/sso/test", &[]).await;
    assert!(tested.flash().contains("The provider publishes no key"), "{}", tested.flash());
    ana.send("/settings/sso/remove", &[]).await.leads_to(PAGE);
    acme.get(PATH).send().await.expect_problem(404, "not_found");
}

async fn a_person_logs_in_from_the_login_page(engine: Engine) {
    let house = House::open(engine).await;
    house.providers.say(ISSUER, claims("ana", "ana@acme.test"));
    let mut browser = house.browser();
    browser.go("/login").await.expect(200).says("Log in with single sign-on").says("action=\"/sso\"");
    let nowhere = browser.go("/sso?company=nobody.test").await;
    nowhere.leads_to("/login");
    assert!(nowhere.flash().contains("No company here offers single sign-on"), "{}", nowhere.flash());
    let page =
        browser.go("/sso?company=Ana%40acme.test&next=%2Fclients").await.leads_to("/login?project=acme");
    browser.go(&page).await.expect(200).says("href=\"/sso/acme?next=%2Fclients\"");
    let state = browser.start().await;
    let cookie = "set-cookie";
    let done = browser.go(&back(&state)).await;
    assert_eq!(done.leads_to("/"), "/clients");
    assert_eq!(done.0.header("cache-control"), Some("no-store"));
    assert!(done.0.headers.get_all(cookie).iter().count() >= 2 && !browser.has("sso"), "the attempt is over");
    let page = browser.go("/profile").await.expect(200).says("ana from the provider");
    page.says("so you have no password").says_not("Change password");
    // Only our own pages are gone on to.
    let mut other = house.browser();
    let there = other.go("/sso/acme?next=https%3A%2F%2Fevil.test%2F").await.leads_to(ISSUER);
    let done = other.go(&back(there.rsplit('=').next().unwrap())).await;
    assert_eq!(done.leads_to("/"), "/");
}

async fn a_login_starts_with_a_click_on_our_page(engine: Engine) {
    let house = House::open(engine).await;
    let start = |site: &'static str| {
        let call = house.server.get("/sso/acme?next=%2Fclients").without_credential();
        call.header("sec-fetch-site", site).send()
    };
    Seen(start("same-origin").await).leads_to(ISSUER);
    // Typed, or from a bookmark.
    Seen(start("none").await).leads_to(ISSUER);
    for site in ["cross-site", "same-site"] {
        Seen(start(site).await).leads_to("/login?project=acme&next=%2Fclients");
    }
}

async fn a_login_stays_in_the_browser_that_started_it(engine: Engine) {
    let house = House::open(engine).await;
    house.providers.say(ISSUER, claims("eve", "eve@acme.test"));
    let (mut hers, mut mine) = (house.browser(), house.browser());
    let (her_state, my_state) = (hers.start().await, mine.start().await);
    let cookie = hers.cookies.iter().find(|(name, _)| name == "sso").expect("a cookie").1.clone();
    // Somebody has her open their own answer.
    let page = hers.go(&back(&my_state)).await.expect(403);
    page.says("This login was started in another browser, or more than ten minutes ago; start again.");
    assert!(!hers.has("rapport") && !hers.has("sso"));
    house.browser().go(&back(&my_state)).await.expect(403);
    hers.cookies.push(("sso".to_owned(), cookie.replace("frm_", "frm_0")));
    hers.go(&back(&her_state)).await.expect(403);
    hers.cookies.push(("sso".to_owned(), cookie));
    hers.go(&back(&her_state)).await.leads_to("/clients");
    let page = house.server.get("/api/audit/?action=session.failed").send().await.expect(200);
    assert_eq!(page["items"][0]["detail"], json!({"by": "single sign-on", "reason": "wrong_state"}));
}

async fn a_refused_login_says_why(engine: Engine) {
    let house = House::open(engine).await;
    let mut browser = house.browser();
    for (answer, status, part) in [
        (
            Ok(claims("eve", "eve@evil.test")),
            403,
            "Your email address isn't in one of this company's confirmed domains",
        ),
        (Err(ProviderError::NoAlgorithm), 403, "Your company's login service isn't set up correctly"),
    ] {
        match answer {
            Ok(who) => house.providers.say(ISSUER, who),
            Err(error) => house.providers.fail(ISSUER, error),
        }
        let state = browser.start().await;
        let page = browser.go(&back(&state)).await.expect(status);
        page.says("You’re not logged in").says(&part.replace('\'', "&#39;")).says_not("eve");
        assert!(!browser.has("rapport"));
    }
    house.providers.fail(ISSUER, ProviderError::Unreachable("10.0.0.1".to_owned()));
    browser.go("/sso/acme").await.expect(502).says_not("10.0.0.1");
    for unknown in ["/sso/nobody", "/sso/nobody/callback?code=x&state=y", "/sso/%2e%2e"] {
        browser.go(unknown).await.expect(404);
    }
    let page = browser.go(&format!("{}&error=access_denied", back(""))).await.expect(403);
    page.says("started in another browser");
}

async fn where_it_is_required_a_password_leads_to_it(engine: Engine) {
    let house = House::open(engine).await;
    let acme = &house.server;
    let password = "the password of Bo Lind";
    let invited = json!({"email": "bo@acme.test", "name": "Bo", "role": "member"});
    let invited = acme.post("/api/invitations/").json(&invited).send().await.expect(201);
    let token = invited["link"].as_str().unwrap().rsplit('/').next().unwrap();
    let accept = json!({"token": token, "password": password});
    acme.post("/api/invitations/accept/").json(&accept).send().await.expect(201);
    let log_in = async || {
        let fields = [("email", "bo@acme.test"), ("password", password), ("next", "/clients")];
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        body.extend_pairs(fields);
        let call = acme.post("/login").without_credential().header("sec-fetch-site", "same-origin");
        Seen(
            call.text(&body.finish())
                .header("content-type", "application/x-www-form-urlencoded")
                .send()
                .await,
        )
    };
    assert_eq!(log_in().await.leads_to("/"), "/clients");
    let bo = Person::of(acme, Role::Member);
    bo.see("/").await.expect(200);
    let owner = owner_of(acme).await;
    house.put(json!({"mode": "required", "break_glass_owner": owner})).await;
    bo.see("/").await.leads_to("/login");
    let refused = log_in().await;
    assert_eq!(refused.leads_to("/login"), "/login?project=acme&next=%2Fclients");
    assert!(refused.flash().contains("acme requires single sign-on."), "{}", refused.flash());
    let page = house.browser().go("/login?project=acme&next=%2Fclients").await.expect(200);
    page.says("requires single sign-on").says("href=\"/sso/acme?next=%2Fclients\"");
}

async fn a_session_by_single_sign_on_knows_one_company(engine: Engine) {
    let house = House::open(engine).await;
    house.providers.say(ISSUER, claims("ana", "ana@acme.test"));
    let mut browser = house.browser();
    let state = browser.start().await;
    browser.go(&back(&state)).await.leads_to("/clients");
    browser.go("/").await.expect(200).says_not("Switch company");
    browser.go("/companies").await.expect(200).says("current").says_not("Switch");
}

async fn the_provider_asks_again_before_something_sensitive(engine: Engine) {
    let house = House::open(engine).await;
    let acme = &house.server;
    house.providers.say(ISSUER, claims("ana", "ana@acme.test"));
    let mut browser = house.browser();
    let state = browser.start().await;
    browser.go(&back(&state)).await.leads_to("/clients");
    let members = acme.all_pages("/api/members/", 50).await;
    let ana = members.iter().find(|member| member["email"] == "ana@acme.test").expect("a member");
    let path = format!("/api/members/{}/", ana["id"].as_str().expect("an id"));
    acme.request("PATCH", &path).json(&json!({"role": "owner"})).send().await.expect(200);
    let (page, fields) = ("/settings/tokens", [("name", "CRM"), ("role", "member")]);
    acme.app.clock().advance_seconds(16 * 60);
    let asked = browser.send(page, page, &fields).await.expect(403).says("Confirm it’s you");
    let way = "/profile/confirm?next=%2Fsettings%2Ftokens";
    asked.says("Continue with <bdi>login.acme.test</bdi>").says(way).says_not("type=\"password\"");
    // A password doesn't do instead.
    let typed = [("current", "not hers"), ("password", "kestrel over 7 bridges")];
    browser.send("/profile", "/profile/password", &typed).await.expect(422).says("single sign-on");

    let now = acme.app.clock().now();
    let there = browser.go(way).await.leads_to(&format!("{ISSUER}/login?state="));
    let refused = browser.go(&back(there.rsplit('=').next().unwrap())).await.expect(403);
    refused.says("confirm that you logged in there just now");
    assert!(browser.has("rapport"), "the session goes on");
    house.providers.say(ISSUER, Claims { authenticated_at: Some(now), ..claims("ana", "ana@acme.test") });
    let session = browser.cookies.iter().find(|(name, _)| name == "rapport").cloned();
    let there = browser.go(way).await.leads_to(&format!("{ISSUER}/login?state="));
    let proved = browser.go(&back(there.rsplit('=').next().unwrap())).await;
    assert_eq!(proved.leads_to("/"), page);
    assert!(proved.flash().contains("You confirmed that it’s you."), "{}", proved.flash());
    assert_eq!(browser.cookies.iter().find(|(name, _)| name == "rapport").cloned(), session, "the same one");
    assert!(!browser.has("sso"));
    browser.send(page, page, &fields).await.expect(200).says("New token: <bdi>CRM</bdi>");
    // Only for those who logged in with it.
    Person::of(acme, Role::Owner).see(way).await.expect(404);
}

async fn an_invitation_leads_to_it_where_it_is_required(engine: Engine) {
    let house = House::open(engine).await;
    let acme = &house.server;
    let invited = json!({"email": "bo@acme.test", "name": "Bo", "role": "admin"});
    let invited = acme.post("/api/invitations/").json(&invited).send().await.expect(201);
    let token = invited["link"].as_str().unwrap().rsplit('/').next().unwrap();
    let owner = owner_of(acme).await;
    house.put(json!({"mode": "required", "break_glass_owner": owner})).await;
    let path = format!("/invitation/{token}");
    let mut browser = house.browser();
    let page = browser.go(&path).await.expect(200);
    page.says("requires single sign-on").says("href=\"/sso/acme\"").says_not("type=\"password\"");
    let typed = [("name", "Bo"), ("password", "kestrel over 7 bridges")];
    browser.send(&path, &path, &typed).await.expect(403).says("requires single sign-on");
    let accept = json!({"token": token, "password": "kestrel over 7 bridges"});
    let refused = acme.post("/api/invitations/accept/").json(&accept).send().await;
    refused.expect_problem(403, "sso_required");
    house.providers.say(ISSUER, claims("bo", "bo@acme.test"));
    let state = browser.start().await;
    browser.go(&back(&state)).await.leads_to("/clients");
    let members = acme.all_pages("/api/members/", 50).await;
    let bo = members.iter().find(|member| member["email"] == "bo@acme.test").expect("a member");
    assert_eq!(bo["role"], "admin");
}

//! Pages about who somebody is: passwords, sessions, and the question that comes before something sensitive.

use std::time::{Duration, Instant};

use rapport_app::invitation::Invite;
use rapport_app::password_reset::SendReset;
use rapport_app::{Outside, Parts};
use rapport_domain::member::{Email, Role};
use rapport_testkit::Engine;
use serde_json::{Value, json};

use crate::harness::{Answer, Server, Tenant, column, on_both_engines};
use crate::person::{Person, Seen};

on_both_engines!(
    a_sensitive_form_asks_who_is_there_and_then_goes_on,
    nothing_of_a_form_is_lost_or_shown_while_it_waits,
    a_form_that_waits_is_good_for_its_session_and_its_address_only,
    a_form_that_waited_counts_once,
    a_wrong_password_is_a_failed_login_and_limited,
    who_may_not_do_it_is_not_asked,
    an_ended_session_leads_to_the_login,
    people_end_one_of_their_sessions,
    the_company_chooses_how_long_sessions_last,
    a_weak_password_is_refused_at_its_field,
    a_login_with_an_unknown_browser_is_told,
    guesses_on_the_login_page_are_limited_but_not_in_a_known_browser,
    a_new_password_logs_out_the_other_sessions,
    logging_out_is_recorded,
    a_login_ends_the_session_that_the_browser_had,
    a_token_is_made_for_a_member_until_a_day,
);

const PASSWORD: &str = "kestrel over 7 bridges";
const TOKENS: &str = "/settings/tokens";
const PATIENCE: Duration = Duration::from_mins(1);

fn with_mail(parts: &mut Parts) {
    parts.outside = Outside { base_url: "http://crm.acme.test".to_owned(), mail_configured: true };
}

fn ana(tenant: &Tenant, role: Role) -> Person<'_> {
    Person::with_password(tenant, "ana@acme.test", role, PASSWORD)
}

/// Ana, who logged in a while ago.
fn ana_after_a_while(server: &Server) -> Person<'_> {
    let ana = ana(server, Role::Owner);
    server.app.clock().advance_seconds(16 * 60);
    ana
}

async fn a_sensitive_form_asks_who_is_there_and_then_goes_on(server: Server) {
    let ana = ana_after_a_while(&server);
    let fields = [("name", "CRM"), ("role", "member")];
    let asked = ana.send(TOKENS, &fields).await.expect(403).says("Confirm it’s you");
    assert_eq!(column(&server.all_pages("/api/tokens/", 50).await, "name"), ["First token"]);
    let wrong = ana.confirm(TOKENS, &asked, "not this one").await.expect(422).says("Incorrect password.");
    assert_eq!(wrong.hidden("back"), asked.hidden("back"));
    ana.confirm(TOKENS, &wrong, PASSWORD).await.expect(200).says("New token: <bdi>CRM</bdi>").says("rap_");
    assert_eq!(column(&server.all_pages("/api/tokens/", 50).await, "name"), ["CRM", "First token"]);
    // The proof holds for a while.
    ana.send(TOKENS, &[("name", "Another"), ("role", "member")]).await.expect(200);
    server.app.clock().advance_seconds(15 * 60);
    ana.send(TOKENS, &fields).await.expect(403).says("Confirm it’s you");
    // What is not sensitive is never asked.
    ana.send("/profile/name", &[("name", "Ana B")]).await.leads_to("/profile");
    let audit = column(&server.all_pages("/api/audit/", 50).await, "action");
    assert!(audit.contains(&"session.proved".to_owned()), "{audit:?}");
}

async fn nothing_of_a_form_is_lost_or_shown_while_it_waits(server: Server) {
    let ana = ana_after_a_while(&server);
    let email = "Bö+x@acme.test";
    let path = "/settings/members";
    let asked = ana.send(path, &[("email", email), ("role", "admin")]).await.expect(403);
    let asked =
        asked.says("action=\"/settings/members\"").says("value=\"ana@acme.test\"").says_not("+x@acme");
    ana.confirm(path, &asked, PASSWORD).await.expect(200).says("/invitation/rjn_");
    let invited = server.all_pages("/api/invitations/", 50).await;
    let expected = (&json!("bö+x@acme.test"), &json!("admin"));
    assert_eq!((&invited[0]["email"], &invited[0]["role"]), expected);
    // A form that is refused after the question still says why, with what was typed.
    server.app.clock().advance_seconds(16 * 60);
    let asked = ana.send(path, &[("email", email), ("role", "admin")]).await.expect(403);
    let again = ana.confirm(path, &asked, PASSWORD).await.expect(422);
    again.says("This address already has an open invitation").says("value=\"Bö+x@acme.test\"");
}

async fn a_form_that_waits_is_good_for_its_session_and_its_address_only(server: Server) {
    let ana = ana_after_a_while(&server);
    let asked = ana.send("/settings/ingest/key", &[]).await.expect(403);
    let waiting = asked.hidden("waiting_form");
    let send = async |person: &Person<'_>, path: &str, waiting: &str| {
        person.send(path, &[("waiting_form", waiting), ("password", PASSWORD)]).await
    };
    let unreadable = "Form can’t be read any more; go back, reload the page and try again.";
    send(&ana, "/settings/ingest/inbound-key", &waiting).await.expect(422).says(unreadable);
    let other = Person::with_session(&server, ana.id);
    send(&other, "/settings/ingest/key", &waiting).await.expect(422).says(unreadable);
    let other_letter = if waiting.starts_with('A') { 'B' } else { 'A' };
    let changed = format!("{other_letter}{}", &waiting[1..]);
    send(&ana, "/settings/ingest/key", &changed).await.expect(422).says(unreadable);
    let settings = server.get("/api/settings/").send().await.expect(200);
    assert_eq!(settings["inbound_key"], Value::Null);
    send(&ana, "/settings/ingest/key", &waiting).await.expect(200).says("rik_");
}

async fn a_form_that_waited_counts_once(server: Server) {
    let ana = ana_after_a_while(&server);
    let asked = ana.send(TOKENS, &[("name", "CRM"), ("role", "member")]).await.expect(403);
    let (waiting, form) = (asked.hidden("waiting_form"), ana.form());
    let fields = [("waiting_form", waiting.as_str()), ("password", PASSWORD)];
    let token = |page: &Seen| page.0.text().split("<code id=\"token\">").nth(1).unwrap()[..56].to_owned();
    let first = ana.send_form(TOKENS, form, &fields).await.expect(200);
    let second = ana.send_form(TOKENS, form, &fields).await.expect(200);
    assert_eq!(token(&first), token(&second), "two clicks");
    // Sent again from the page that asked.
    ana.send(TOKENS, &fields).await.expect(422).says("This form was already submitted");
    assert_eq!(server.all_pages("/api/tokens/", 50).await.len(), 2);
}

async fn a_wrong_password_is_a_failed_login_and_limited(server: Server) {
    let ana = ana_after_a_while(&server);
    let asked = ana.send("/settings/ingest/key", &[]).await.expect(403);
    for _ in 0..10 {
        ana.confirm("/settings/ingest/key", &asked, "a guess").await.expect(422).says("Incorrect password.");
    }
    let limited = ana.confirm("/settings/ingest/key", &asked, PASSWORD).await.expect(422);
    limited.says("Too many incorrect passwords; wait a minute.");
    let since = Instant::now();
    // It is recorded after the response.
    loop {
        let failed = server.all_pages("/api/audit/?action=session.failed", 50).await;
        if let Some(entry) = failed.first() {
            assert_eq!(entry["target"], json!(ana.id.to_string()));
            assert!(!entry.to_string().contains("a guess"), "{entry}");
            break;
        }
        assert!(since.elapsed() < PATIENCE, "no failed login was recorded");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    server.app.clock().advance_seconds(30);
    ana.confirm("/settings/ingest/key", &asked, PASSWORD).await.expect(200).says("rik_");
}

async fn who_may_not_do_it_is_not_asked(server: Server) {
    let bo = Person::with_password(&server, "bo@acme.test", Role::Member, PASSWORD);
    server.app.clock().advance_seconds(16 * 60);
    let refused = bo.send(TOKENS, &[("name", "x"), ("role", "member")]).await.expect(403);
    refused.says("Your role doesn’t allow this").says_not("Confirm it’s you");
}

async fn an_ended_session_leads_to_the_login(server: Server) {
    let ana = ana_after_a_while(&server);
    let asked = ana.send("/settings/ingest/key", &[]).await.expect(403);
    ana.send("/logout", &[]).await.leads_to("/login");
    ana.confirm("/settings/ingest/key", &asked, PASSWORD).await.leads_to("/login");
}

async fn people_end_one_of_their_sessions(acme: Tenant) {
    let ana = Person::of(&acme, Role::Member);
    let other = Person::with_session(&acme, ana.id);
    let page = ana.see("/profile").await.expect(200).says("this session").says("Began");
    let id = page.0.text().split("/profile/sessions/ses_").nth(1).expect("a session to end");
    let id = id.split('/').next().unwrap().to_owned();
    assert_eq!(page.0.text().matches("/profile/sessions/ses_").count(), 1, "not the current one");
    let path = format!("/profile/sessions/ses_{id}/end");
    let stranger = Person::of(&acme, Role::Owner);
    stranger.send(&path, &[]).await.expect(404);
    other.see("/profile").await.expect(200);
    let ended = ana.send(&path, &[]).await;
    ended.leads_to("/profile");
    assert!(ended.flash().contains("Session logged out."), "{}", ended.flash());
    other.see("/profile").await.leads_to("/login");
    ana.see("/profile").await.expect(200).says_not("/profile/sessions/ses_");
    ana.send("/profile/sessions/x/end", &[]).await.expect(404);
}

async fn the_company_chooses_how_long_sessions_last(server: Server) {
    let ana = Person::of(&server, Role::Admin);
    let page = ana.see("/settings/security").await.expect(200);
    page.says("<option value=\"20160\" selected>14 days").says("<option value=\"129600\" selected>90 days");
    let fields = [("session_idle_minutes", "60"), ("session_max_minutes", "60")];
    ana.send("/settings/security", &fields).await.leads_to("/settings/security");
    let settings = server.get("/api/settings/").send().await.expect(200);
    assert_eq!(
        (&settings["session_idle_minutes"], &settings["session_max_minutes"]),
        (&json!(60), &json!(60))
    );
    let audit = server.all_pages("/api/audit/?action=settings.changed", 50).await;
    assert_eq!(audit[0]["detail"]["session_idle_minutes"], json!({"from": 20_160, "to": 60}));
    let refused = [("session_idle_minutes", "480"), ("session_max_minutes", "60")];
    let page = ana.send("/settings/security", &refused).await.expect(422);
    page.says("Must not be below session_idle_minutes.").says("<option value=\"480\" selected>");
    ana.send("/settings/security", &[("session_idle_minutes", "5")])
        .await
        .expect(422)
        .says("Must be a whole number");
    // A value that was set through the API is an option.
    server.patch("/api/settings/").json(&json!({"session_idle_minutes": 45})).send().await.expect(200);
    ana.see("/settings/security").await.says("<option value=\"45\" selected>45 minutes");
    server.app.clock().advance_seconds(45 * 60);
    ana.see("/settings/security").await.leads_to("/login");
}

async fn a_weak_password_is_refused_at_its_field(acme: Tenant) {
    let email = Email::parse("ida.berg@nordlys.test").unwrap();
    let invited = acme.company.write(Invite { email, name: None, role: Role::Member }).unwrap();
    let post = async |link: &str, fields: &[(&str, &str)]| {
        let path = &link[link.find("/invitation/").or(link.find("/password-reset/")).expect("a link")..];
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let call = acme.post(path).without_credential().text(&body);
        let call = call.header("content-type", "application/x-www-form-urlencoded");
        Seen(call.header("sec-fetch-site", "same-origin").send().await)
    };
    let link = invited.link.expect("a link");
    let weak = post(&link, &[("name", "Ida Berg"), ("password", "password1234")]).await.expect(422);
    let weak =
        weak.says("Is too easy to guess").says("aria-invalid=\"true\" aria-describedby=\"password-note\"");
    weak.says("value=\"Ida Berg\"").says_not("password1234");
    let own = post(&link, &[("name", "Ida Berg"), ("password", "Ida Berg, Nordlys")]).await.expect(422);
    own.says("Must not consist of your email address, your name or your company").says_not("Berg, Nordlys");
    post(&link, &[("name", "Ida Berg"), ("password", PASSWORD)]).await.leads_to("/");

    let bo = acme.company.employ("bo@acme.test", "Bo", Role::Member).person;
    let link = acme.company.write(SendReset(bo)).unwrap().expect("a link");
    let weak = post(&link, &[("password", "aaaaaaaaaaaaa")])
        .await
        .expect(422)
        .says("repetitions add almost nothing");
    weak.says("For bo@acme.test.");
    post(&link, &[("password", PASSWORD)]).await.leads_to("/login");
}

/// The cookies that a response sets, as a browser sends them back.
fn cookies(answer: &Answer) -> String {
    let set = answer.headers.get_all("set-cookie").iter().filter_map(|value| value.to_str().ok());
    set.filter_map(|cookie| cookie.split(';').next()).collect::<Vec<_>>().join("; ")
}

/// Ana logs in with a browser that has these cookies.
async fn log_in(server: &Server, password: &str, cookies: &str) -> Answer {
    let fields = [("email", "ana@acme.test"), ("password", password)];
    let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
    let call = server.post("/login").without_credential().text(&body).header("cookie", cookies);
    let call = call.header("content-type", "application/x-www-form-urlencoded");
    let call = call.header("user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Firefox/140.0");
    call.header("sec-fetch-site", "same-origin").send().await
}

async fn guesses_on_the_login_page_are_limited_but_not_in_a_known_browser(server: Server) {
    ana(&server, Role::Member);
    let first = log_in(&server, PASSWORD, "theme=dark").await;
    assert_eq!(first.status, 303, "{}", first.text());
    for _ in 0..10 {
        // In another case it is another password.
        let guess = log_in(&server, &PASSWORD.to_uppercase(), "theme=dark").await;
        Seen(guess).expect(422).says("Incorrect email or password.");
    }
    let limited = Seen(log_in(&server, PASSWORD, "theme=dark").await).expect(429).says("Too many attempts");
    assert_eq!(limited.0.header("retry-after"), Some("30"));
    let known = cookies(&first);
    let browser = known.split("; ").find(|cookie| cookie.starts_with("browser=")).expect("a known browser");
    assert_eq!(log_in(&server, PASSWORD, browser).await.status, 303, "strangers lock nobody out");
    assert_eq!(log_in(&server, PASSWORD, "theme=dark").await.status, 429);
    server.app.clock().advance_seconds(30);
    assert_eq!(log_in(&server, PASSWORD, "theme=dark").await.status, 303);
}

async fn a_login_ends_the_session_that_the_browser_had(server: Server) {
    let ana = ana(&server, Role::Member);
    let elsewhere = Person::with_session(&server, ana.id);
    let again = log_in(&server, PASSWORD, &ana.cookie).await;
    assert_eq!(again.status, 303, "{}", again.text());
    ana.see("/").await.leads_to("/login");
    elsewhere.see("/").await.expect(200);
    let session =
        cookies(&again).split("; ").find(|cookie| cookie.starts_with("rapport=")).map(str::to_owned);
    let now = Person { cookie: session.expect("a session"), ..ana };
    now.see("/").await.expect(200);
}

async fn a_new_password_logs_out_the_other_sessions(server: Server) {
    let ana = ana(&server, Role::Member);
    let other = Person::with_session(&server, ana.id);
    let change = async |current: &str| {
        let fields = [("current", current), ("password", "harbour lights in June")];
        ana.send("/profile/password", &fields).await
    };
    change("not this one").await.expect(422).says("Incorrect password.");
    other.see("/profile").await.expect(200);
    change(PASSWORD).await.leads_to("/profile");
    other.see("/profile").await.leads_to("/login");
    ana.see("/profile").await.expect(200);
}

async fn logging_out_is_recorded(acme: Tenant) {
    let ana = Person::of(&acme, Role::Member);
    ana.send("/logout", &[]).await.leads_to("/login");
    let log = acme.all_pages("/api/audit/?action=session.logged_out", 50).await;
    assert_eq!(column(&log, "target"), [ana.id.to_string()]);
    assert_eq!((&log[0]["actor"]["type"], &log[0]["address"]), (&json!("person"), &json!("127.0.0.1")));
    // Like a login, it is hidden unless it is asked for.
    let quiet = column(&acme.all_pages("/api/audit/?logins=false", 50).await, "action");
    assert_eq!(quiet, ["company.created"]);
}

async fn a_login_with_an_unknown_browser_is_told(engine: Engine) {
    let server = Server::with_parts(engine, with_mail).await;
    ana(&server, Role::Member);
    let log_in = async |cookies: &str| log_in(&server, PASSWORD, cookies).await;
    let notices = async || column(&server.all_pages("/api/mails/", 50).await, "subject");
    let first = log_in("theme=dark").await;
    assert_eq!(first.status, 303, "{}", first.text());
    assert_eq!(notices().await, ["New login on Rapport"]);
    let again = log_in(&cookies(&first)).await;
    assert_eq!(again.status, 303, "{}", again.text());
    assert_eq!(notices().await.len(), 1, "the browser is known");
    assert_eq!(log_in("theme=dark").await.status, 303);
    assert_eq!(notices().await.len(), 2);
}

async fn a_token_is_made_for_a_member_until_a_day(acme: Tenant) {
    let ana = Person::of(&acme, Role::Owner);
    let bo = acme.company.employ("bo@acme.test", "Bo <b>Lind</b>", Role::Member).person.to_string();
    let page = ana.see(TOKENS).await.expect(200).says("<option value=\"\">The company</option>");
    page.says(&format!("<option value=\"{bo}\">Bo &#60;b&#62;Lind&#60;/b&#62;</option>"));
    let fields = [("name", "CRM"), ("role", "member"), ("owner", bo.as_str()), ("expires_at", "2026-01-31")];
    let made = ana.send(TOKENS, &fields).await.expect(200);
    made.says("<bdi>Bo &#60;b&#62;Lind&#60;/b&#62;</bdi>").says("datetime=\"2026-02-01T00:00:00Z\"");
    let listed = acme.all_pages("/api/tokens/", 50).await;
    assert_eq!(listed[0]["owner"], json!(bo));
    let fields = [("name", "CRM"), ("role", "admin"), ("owner", bo.as_str()), ("expires_at", "2020-01-31")];
    let refused = ana.send(TOKENS, &fields).await.expect(422).says("Must be in the future.");
    refused.says("value=\"2020-01-31\"").says(&format!("<option value=\"{bo}\" selected>"));
    let fields = [("name", "Nightly"), ("role", "member"), ("rate_limit", "20")];
    ana.send(TOKENS, &fields).await.expect(200).says("20/s");
    assert_eq!(acme.all_pages("/api/tokens/", 50).await[0]["rate_limit"], json!(20));
    let fields = [("name", "Nightly"), ("role", "member"), ("rate_limit", "0.5")];
    let refused = ana.send(TOKENS, &fields).await.expect(422);
    refused.says("Must be a whole number from 1 to 1000000.").says("value=\"0.5\"");
    let fields = [("name", "CRM"), ("role", "admin"), ("owner", bo.as_str())];
    ana.send(TOKENS, &fields)
        .await
        .expect(422)
        .says("Must not be above the role of the person whose token it is.");
    let admin = Person::of(&acme, Role::Admin);
    admin.see(TOKENS).await.expect(200).says("CRM").says_not("First token").says_not(&ana.id.to_string());
}

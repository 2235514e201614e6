//! Rules for every page: who may see it, where forms may come from, forms sent twice, and security headers.

use rapport_app::session::Proven;
use rapport_domain::member::Role;
use rapport_testkit::block_on;

use crate::harness::{Server, Tenant, on_both_engines};
use crate::person::{Person, Seen};

on_both_engines!(
    visitors_are_redirected_to_the_login_and_back,
    an_ended_session_no_longer_works,
    only_a_message_that_we_wrote_for_this_session_is_shown,
    a_person_logged_out_while_typing_comes_back_to_the_page,
    a_deactivated_member_no_longer_sees_anything,
    a_session_only_works_for_its_company,
    idle_sessions_end,
    forms_from_elsewhere_are_refused,
    a_form_sent_twice_counts_once,
    a_second_click_after_the_first_response_gets_the_same_response,
    a_secret_is_repeated_only_for_a_moment,
    pages_allow_no_foreign_frames_or_scripts,
    errors_and_the_documentation_keep_the_navigation_for_who_is_logged_in,
    pages_have_a_description,
);

async fn errors_and_the_documentation_keep_the_navigation_for_who_is_logged_in(acme: Tenant) {
    let ana = Person::of(&acme, Role::Member);
    let navigation = "<nav class=\"side\" aria-label=\"Main\">";
    let missing = ["/nowhere", "/accounts/acc_00000000000000000000000000", "/accounts/nonsense"];
    for path in missing {
        let page = ana.see(path).await.expect(404).says("<h1>Page not found</h1>").says(navigation);
        page.says("href=\"/pipeline\"");
    }
    ana.see("/settings").await.expect(403).says("Your role doesn’t allow this").says(navigation);
    let gone = ana.send("/pipeline/acc_00000000000000000000000000/move", &[("status", "lost")]).await;
    gone.expect(404).says(navigation);
    let docs = ana.see("/api/docs").await.expect(200).says(navigation);
    let docs = docs.says("<code>/api/accounts/upsert-by-imported-id/</code>").says("/api/docs/style.css");
    assert!(
        docs.0.header("content-security-policy").is_some_and(|policy| policy.contains("script-src 'self'"))
    );
    let stranger = |path: &'static str| acme.get(path).without_credential().send();
    for path in ["/nowhere", "/api/docs"] {
        assert!(!stranger(path).await.text().contains("<nav class=\"side\""), "{path}");
    }
    // Somebody whose session has ended is a stranger.
    ana.send("/logout", &[]).await.leads_to("/login");
    ana.see("/nowhere").await.expect(404).says_not(navigation);
    ana.see("/api/docs").await.expect(200).says_not(navigation);
}

async fn pages_have_a_description(acme: Tenant) {
    let owner = Person::of(&acme, Role::Owner);
    for path in
        ["/", "/pipeline", "/accounts", "/clients", "/settings", "/deliveries", "/nowhere", "/api/docs"]
    {
        let page = owner.see(path).await;
        let found = page.0.text().split("<meta name=\"description\" content=\"").nth(1);
        let described = found.and_then(|rest| rest.split('"').next()).unwrap_or_default();
        assert!(described.len() > 30, "{path}: {described:?}");
    }
    let login = acme.get("/login").without_credential().send().await;
    assert!(login.text().contains("<meta name=\"description\" content=\"Rapport"));
}

async fn visitors_are_redirected_to_the_login_and_back(acme: Tenant) {
    let answer = acme.get("/profile?x=1").without_credential().send().await;
    assert_eq!((answer.status, answer.header("location")), (303, Some("/login?next=%2Fprofile%3Fx%3D1")));
    // A stream ends instead of leading to a page.
    acme.get("/live").without_credential().send().await.expect(204);
    Person::of(&acme, Role::Member).see("/profile").await.expect(200).says("Your profile").says("A member");
}

async fn only_a_message_that_we_wrote_for_this_session_is_shown(acme: Tenant) {
    let (ana, bo) = (Person::of(&acme, Role::Member), Person::of(&acme, Role::Member));
    let shown = async |person: &Person<'_>, flash: &str| {
        let cookie = format!("{}; flash={flash}", person.cookie);
        let person = Person { tenant: &acme, id: person.id, cookie };
        person.see("/profile").await.expect(200)
    };
    let sent = ana.send("/profile/sessions/end", &[]).await;
    sent.leads_to("/profile");
    let mut cookies = sent.0.headers.get_all("set-cookie").iter().filter_map(|value| value.to_str().ok());
    let flash = cookies.find_map(|cookie| cookie.strip_prefix("flash=")).expect("a flash");
    let flash = flash.split(';').next().unwrap_or_default();
    let message = "Your other sessions are logged out.";
    shown(&ana, flash).await.says(message);
    shown(&bo, flash).await.says_not(message);
    shown(&ana, flash.split('.').next().unwrap_or_default()).await.says_not(message);
    let forged = "%7B%22text%22%3A%22Call%20us%22%7D";
    shown(&ana, forged).await.says_not("Call us");
    shown(&ana, &format!("{forged}.{}", flash.split('.').nth(1).unwrap())).await.says_not("Call us");
}

async fn an_ended_session_no_longer_works(acme: Tenant) {
    let ana = Person::of(&acme, Role::Member);
    ana.see("/").await.expect(200);
    ana.send("/logout", &[]).await.leads_to("/login");
    ana.see("/").await.leads_to("/login");
}

async fn a_person_logged_out_while_typing_comes_back_to_the_page(acme: Tenant) {
    let send = async |from: &str| {
        let call = acme.post("/settings/tokens").without_credential().header("sec-fetch-site", "same-origin");
        let call = call.text("name=x").header("content-type", "application/x-www-form-urlencoded");
        Seen(call.header("referer", from).send().await).leads_to("/login")
    };
    let from = format!("http://{}/settings/tokens?after=x", acme.address);
    assert_eq!(send(&from).await, "/login?next=%2Fsettings%2Ftokens%3Fafter%3Dx");
    assert_eq!(send("http://evil.test/settings").await, "/login");
}

async fn a_deactivated_member_no_longer_sees_anything(acme: Tenant) {
    let ana = Person::of(&acme, Role::Member);
    ana.see("/").await.expect(200);
    let change = rapport_app::member::ChangeMember { person: ana.id, role: None, active: Some(false) };
    acme.company.write(change).expect("deactivated");
    ana.see("/").await.leads_to("/login");
}

async fn a_session_only_works_for_its_company(acme: Tenant) {
    let other = acme.neighbour();
    let ana = Person::of(&acme, Role::Member);
    let proven = Proven { person: ana.id, company: other.company.id() };
    let begun = block_on(other.company.app().write(&proven.access(), proven.begin(None)));
    assert!(begun.is_err(), "she is not a member there");
    ana.send("/companies", &[("project", other.slug())]).await.expect(404);
}

async fn idle_sessions_end(acme: Server) {
    let ana = Person::of(&acme, Role::Member);
    acme.app.clock().advance_days(13);
    ana.see("/").await.expect(200);
    acme.app.clock().advance_days(1);
    ana.see("/").await.leads_to("/login");
}

async fn forms_from_elsewhere_are_refused(acme: Tenant) {
    let ana = Person::of(&acme, Role::Member);
    for (name, value) in [("sec-fetch-site", "cross-site"), ("origin", "https://evil.test")] {
        let call = acme.post("/profile/name").without_credential().header("cookie", &ana.cookie);
        let call = call.text("name=Eve").header("content-type", "application/x-www-form-urlencoded");
        Seen(call.header(name, value).send().await).expect(403);
    }
    ana.see("/profile").await.says("A member").says_not("Eve");
}

async fn a_form_sent_twice_counts_once(acme: Tenant) {
    let ana = Person::of(&acme, Role::Member);
    let form = ana.form();
    let first = ana.send_form("/profile/name", form, &[("name", "Ana")]).await;
    first.leads_to("/profile");
    // The response is the same and nothing is done, not even what the form asks for now.
    let second = ana.send_form("/profile/name", form, &[("name", "Eve")]).await;
    second.leads_to("/profile");
    assert_eq!(first.flash(), second.flash());
    ana.see("/profile").await.says("Ana").says_not("Eve");
    // A refused form can be corrected and sent again.
    let form = ana.form();
    ana.send_form("/profile/name", form, &[("name", "")]).await.expect(422).says("Is required.");
    ana.send_form("/profile/name", form, &[("name", "Bea")]).await.leads_to("/profile");
    ana.see("/profile").await.says("Bea");
}

async fn a_second_click_after_the_first_response_gets_the_same_response(acme: Tenant) {
    let mut ana = Person::of(&acme, Role::Admin);
    let form = ana.form();
    let fields = [("time_zone", "Europe/Berlin"), ("default_currency", "EUR")];
    let first = ana.send_form("/settings", form, &fields).await;
    // By now the browser has the flash of the first response.
    ana.cookie = format!("flash=%7B%7D; {}", ana.cookie);
    let second = ana.send_form("/settings", form, &fields).await;
    second.leads_to("/settings");
    assert_eq!(first.flash(), second.flash());
}

async fn a_secret_is_repeated_only_for_a_moment(server: Server) {
    let ana = Person::of(&server, Role::Admin);
    let form = ana.form();
    let rotate = async || ana.send_form("/settings/ingest/key", form, &[]).await;
    rotate().await.expect(200).says("rik_");
    rotate().await.expect(200).says("rik_");
    server.app.clock().advance_seconds(121);
    rotate().await.expect(422).says("This form was already submitted").says_not("You won’t see it again");
}

async fn pages_allow_no_foreign_frames_or_scripts(acme: Tenant) {
    let page = Person::of(&acme, Role::Member).see("/").await.expect(200).0;
    let policy = page.header("content-security-policy").expect("a policy");
    for part in ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"] {
        assert!(policy.contains(part), "{policy}");
    }
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(page.header("cache-control"), Some("no-store"));
    let text = page.text();
    assert!(!text.contains("style=\"") && !text.contains("onclick"), "nothing inline");
    let style =
        text.split("href=\"/assets/").nth(1).and_then(|rest| rest.split('"').next()).expect("a stylesheet");
    let style = acme.get(&format!("/assets/{style}")).header("accept-encoding", "gzip, br").send().await;
    assert_eq!((style.status, style.header("content-encoding")), (200, Some("gzip")));
    assert!(style.header("cache-control").is_some_and(|value| value.contains("immutable")));
    let missing = acme.get("/nowhere").without_credential().send().await;
    assert_eq!(missing.status, 404);
    assert!(missing.text().contains("Page not found"));
}

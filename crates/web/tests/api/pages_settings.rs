//! The settings pages: their contents, their forms and who may see them.

use rapport_app::digest::{Made, make_due};
use rapport_app::{Outside, Parts};
use rapport_domain::member::Role;
use rapport_testkit::Engine;
use serde_json::{Value, json};

use crate::harness::{Server, Tenant, column, on_both_engines};
use crate::person::Person;

on_both_engines!(
    settings_are_for_admins,
    the_company_is_shown_and_its_settings_are_saved,
    a_refused_value_stays_in_its_field,
    the_company_decides_who_may_export_and_delete,
    a_preview_of_the_cadence_counts_and_saves_nothing,
    a_preview_shows_exactly_who_becomes_overdue,
    an_invalid_cadence_is_refused,
    the_digest_has_a_weekday_and_a_preview,
    the_digest_is_sent_once_when_asked,
    past_digests_can_be_read,
    every_page_says_if_mail_is_not_configured,
    a_test_mail_is_queued_and_listed,
    the_audit_log_shows_old_and_new_values,
    the_audit_log_is_paged,
    the_system_page_shows_the_database_and_the_jobs,
);

const TABS: [&str; 11] = [
    "/settings",
    "/settings/currencies",
    "/settings/cadence",
    "/settings/digest",
    "/settings/members",
    "/settings/security",
    "/settings/tokens",
    "/settings/ingest",
    "/settings/mail",
    "/settings/audit",
    "/settings/system",
];

/// With mail, over plain http, so that the session's cookie keeps its name.
fn with_mail(parts: &mut Parts) {
    parts.outside = Outside { base_url: "http://crm.acme.test".to_owned(), mail_configured: true };
}

async fn settings(acme: &Tenant) -> Value {
    acme.get("/api/settings/").send().await.expect(200)
}

async fn settings_are_for_admins(acme: Tenant) {
    let (member, admin) = (Person::of(&acme, Role::Member), Person::of(&acme, Role::Admin));
    member.see("/").await.says_not("href=\"/settings");
    admin.see("/").await.says("href=\"/settings\"").says("href=\"/settings/ingest\"");
    for path in TABS.into_iter().chain(["/settings/digest/preview"]) {
        member.see(path).await.expect(403).says("Your role doesn’t allow this");
        let page = admin.see(path).await.expect(200).0.text().to_owned();
        assert!(page.len() < 100_000, "{path} has {} bytes", page.len());
    }
    let before = settings(&acme).await;
    let forms: [(&str, &[(&str, &str)]); 7] = [
        ("/settings", &[("time_zone", "Asia/Tokyo"), ("default_currency", "JPY")]),
        ("/settings/cadence", &[("cadence_days", "1"), ("tracked_stages", "customer")]),
        ("/settings/digest", &[("digest_weekday", "friday")]),
        ("/settings/digest/send", &[]),
        ("/settings/ingest/key", &[]),
        ("/settings/security", &[("session_idle_minutes", "15")]),
        ("/settings/tokens", &[("name", "x"), ("role", "member")]),
    ];
    for (path, fields) in forms {
        member.send(path, fields).await.expect(403);
    }
    assert_eq!(settings(&acme).await, before);
}

async fn the_company_is_shown_and_its_settings_are_saved(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let page = ana.see("/settings").await.expect(200).says(acme.slug()).says("value=\"UTC\"");
    page.says("<option value=\"Europe/Berlin\">").says("aria-current=\"page\">Company");
    let fields = [("time_zone", " Europe/Berlin "), ("default_currency", "eur")];
    let saved = ana.send("/settings", &fields).await;
    saved.leads_to("/settings");
    assert!(saved.flash().contains("saved"), "{}", saved.flash());
    let found = settings(&acme).await;
    assert_eq!((&found["time_zone"], &found["default_currency"]), (&json!("Europe/Berlin"), &json!("EUR")));
    ana.see("/settings").await.says("value=\"Europe/Berlin\"").says("value=\"EUR\"");
}

async fn a_refused_value_stays_in_its_field(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let before = settings(&acme).await;
    let fields = [("time_zone", "Nowhere/\"At all"), ("default_currency", "")];
    let page = ana.send("/settings", &fields).await.expect(422);
    let page = page.says("value=\"Nowhere/&#34;At all\"").says("Must be an IANA time zone");
    page.says("aria-invalid=\"true\" aria-describedby=\"default_currency-note\"");
    assert_eq!(settings(&acme).await, before);
}

async fn the_company_decides_who_may_export_and_delete(acme: Tenant) {
    let (ana, bo) = (Person::of(&acme, Role::Admin), Person::of(&acme, Role::Member));
    let page = ana.see("/settings").await.expect(200).says("Who may export").says("Who may delete");
    let page = page.says("<option value=\"admin\" selected>Admins and owners</option>");
    page.says("<option value=\"member\">Members, admins and owners</option>");
    bo.see("/accounts/export").await.expect(403).says("Only admins and owners can export data");
    let save = async |export: &str, delete: &str| {
        let fields = [("time_zone", "UTC"), ("default_currency", "USD"), ("audit_days", "730")];
        ana.send("/settings", &[&fields[..], &[("export_role", export), ("delete_role", delete)]].concat())
            .await
    };
    let refused = save("member", "viewer").await.expect(422);
    refused
        .says("Must be one of: admin, member.")
        .says("id=\"delete_role\" name=\"delete_role\" aria-invalid");
    bo.see("/accounts/export").await.expect(403);
    save("member", "admin").await.leads_to("/settings");
    let found = settings(&acme).await;
    assert_eq!((&found["export_role"], &found["delete_role"]), (&json!("member"), &json!("admin")));
    bo.see("/accounts/export").await.expect(200);
    ana.see("/settings").await.says("<option value=\"member\" selected>Members, admins and owners</option>");
    ana.see("/settings/audit")
        .await
        .says("export role: <del><bdi>admin</bdi></del>")
        .says("<ins><bdi>member</bdi></ins>");
}

async fn a_preview_of_the_cadence_counts_and_saves_nothing(server: Server) {
    let ana = Person::of(&server, Role::Admin);
    for number in 0..3 {
        server.account(json!({"imported_id": format!("c{number}"), "status": "customer"})).await;
    }
    server.account(json!({"imported_id": "n", "status": "in_negotiation"})).await;
    // Not long enough to end the session.
    server.app.clock().advance_days(10);
    let path = |days: i64, more: &str| {
        format!("/settings/cadence?cadence_days={days}&tracked_stages=customer{more}")
    };
    let page = ana.see(&path(10, "")).await.expect(200);
    page.says("3 accounts become overdue.").says("value=\"10\"").says("Nothing is saved yet");
    ana.see(&path(10, "&tracked_stages=in_negotiation")).await.says("4 accounts become overdue.");
    ana.see(&path(11, "")).await.says("No account becomes overdue.");
    assert_eq!(settings(&server).await["cadence_days"], json!(42));
    let fields =
        [("cadence_days", "10"), ("tracked_stages", "customer"), ("tracked_stages", "in_negotiation")];
    ana.send("/settings/cadence", &fields).await.leads_to("/settings/cadence");
    let found = settings(&server).await;
    assert_eq!(found["cadence_days"], json!(10));
    assert_eq!(found["tracked_stages"], json!(["customer", "in_negotiation"]));
    ana.see("/settings/cadence").await.says(">4</a> overdue").says_not("Nothing is saved yet");
    let back = ana.see(&path(42, "")).await;
    back.says("No account becomes overdue.").says("4 accounts are no longer overdue.");
}

async fn overdue(server: &Server) -> Vec<Value> {
    server
        .all_pages("/api/clients/?tab=overdue", 50)
        .await
        .into_iter()
        .map(|one| one["account"]["id"].clone())
        .collect()
}

/// The preview is right for any old and new settings.
async fn a_preview_shows_exactly_who_becomes_overdue(server: Server) {
    let days_between = 2;
    for number in 0..12 {
        let status = ["customer", "in_trial", "in_negotiation", "prospect"][number % 4];
        let account = server.account(json!({"imported_id": format!("a{number}"), "status": status})).await;
        let path = format!("/api/accounts/{}/", account["id"].as_str().unwrap());
        let own = match number {
            4..=6 => json!({"cadence_days": 9}),
            8 => json!({"snoozed_until": "2026-12-31"}),
            9 => json!({"snoozed_until": "2026-01-10"}),
            _ => json!({}),
        };
        server.patch(&path).json(&own).send().await.expect(200);
        server.app.clock().advance_days(days_between);
    }
    let ana = Person::of(&server, Role::Admin);
    let steps: [(i64, &[&str]); 8] = [
        (10, &["customer"]),
        (20, &["customer", "in_trial"]),
        (5, &["customer", "in_trial", "in_negotiation"]),
        (5, &["in_negotiation"]),
        (12, &["customer", "in_trial"]),
        (1, &["customer"]),
        (30, &["in_trial", "in_negotiation"]),
        (3, &["customer", "in_trial", "in_negotiation"]),
    ];
    for (days, stages) in steps {
        let before = overdue(&server).await;
        let stages_asked: Vec<String> =
            stages.iter().map(|stage| format!("&tracked_stages={stage}")).collect();
        let page = ana.see(&format!("/settings/cadence?cadence_days={days}{}", stages_asked.concat())).await;
        let page = page.expect(200);
        let change = json!({"cadence_days": days, "tracked_stages": stages});
        server.patch("/api/settings/").json(&change).send().await.expect(200);
        let after = overdue(&server).await;
        let becoming = after.iter().filter(|id| !before.contains(id)).count();
        let ceasing = before.iter().filter(|id| !after.contains(id)).count();
        let page = match becoming {
            0 => page.says("No account becomes overdue."),
            1 => page.says("1 account becomes overdue."),
            many => page.says(&format!("{many} accounts become overdue.")),
        };
        match ceasing {
            0 => page.says_not("no longer overdue"),
            1 => page.says("1 account is no longer overdue."),
            many => page.says(&format!("{many} accounts are no longer overdue.")),
        };
    }
}

async fn an_invalid_cadence_is_refused(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let before = settings(&acme).await;
    for days in ["0", "", "soon", "3651", "1.5"] {
        let page = ana.send("/settings/cadence", &[("cadence_days", days)]).await.expect(422);
        let page = page.says(&format!("value=\"{days}\"")).says("Must be a whole number");
        page.says("Must include at least one stage.");
        let path = format!("/settings/cadence?cadence_days={days}&tracked_stages=customer");
        let page = ana.see(&path).await.expect(422).says("Must be a whole number");
        page.says("value=\"customer\" checked").says_not("value=\"in_trial\" checked");
    }
    assert_eq!(settings(&acme).await, before);
}

async fn the_digest_has_a_weekday_and_a_preview(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let page = ana.see("/settings/digest").await.expect(200).says("nobody is overdue for contact");
    page.says("value=\"on\" checked").says("<option value=\"monday\" selected>").says("No digests yet");
    ana.send("/settings/digest", &[("digest_weekday", "friday"), ("digest_enabled", "on")])
        .await
        .leads_to("/settings/digest");
    let found = settings(&acme).await;
    assert_eq!((&found["digest_weekday"], &found["digest_enabled"]), (&json!("friday"), &json!(true)));
    // Browsers don't send unchecked boxes.
    ana.send("/settings/digest", &[("digest_weekday", "friday")]).await.leads_to("/settings/digest");
    assert_eq!(settings(&acme).await["digest_enabled"], json!(false));
    ana.send("/settings/digest", &[("digest_weekday", "someday")]).await.expect(422).says("Must be one of");
    let mail = ana.see("/settings/digest/preview").await.expect(200).says("Nobody is overdue").0;
    let policy = mail.header("content-security-policy").expect("a policy");
    assert!(policy.starts_with("default-src 'none'; style-src 'unsafe-inline';"), "{policy}");
    assert!(!policy.contains("script-src"), "{policy}");
}

async fn the_digest_is_sent_once_when_asked(engine: Engine) {
    let server = Server::with_parts(engine, with_mail).await;
    let (ana, _other) = (Person::of(&server, Role::Admin), Person::of(&server, Role::Member));
    ana.see("/settings/digest").await.says("Send now").says_not("Mail isn’t configured");
    let form = ana.form();
    ana.send_form("/settings/digest/send", form, &[("to", "me")]).await.leads_to("/settings/digest");
    ana.send_form("/settings/digest/send", form, &[("to", "me")]).await.leads_to("/settings/digest");
    assert_eq!(server.all_pages("/api/mails/", 50).await.len(), 1);
    let members = server.all_pages("/api/members/", 50).await.len();
    let sent = ana.send("/settings/digest/send", &[("to", "everyone")]).await;
    assert!(sent.flash().contains(&format!("{members} mails are on the way")), "{}", sent.flash());
    let mails = server.all_pages("/api/mails/", 50).await;
    assert_eq!(mails.len(), 1 + members);
    assert!(column(&mails, "kind").iter().all(|kind| kind == "digest"));
}

async fn past_digests_can_be_read(server: Server) {
    server.app.clock().advance_days(7);
    make_due(server.app.app(), &mut Made::new()).await.expect("a digest");
    let ana = Person::of(&server, Role::Admin);
    // Without mail it cannot be sent.
    ana.send("/settings/digest/send", &[("to", "me")]).await.expect(422).says("so the digest can");
    ana.see("/settings/digest").await.says("href=\"/settings/digest/2026-W03\"").says_not("Send now");
    let page = ana.see("/settings/digest/2026-W03").await.expect(200);
    page.says("Nobody is overdue for contact.").says("None (mail wasn’t configured)");
    ana.see("/settings/digest/2026-W03/mail").await.expect(200).says("<!DOCTYPE html>");
    for path in ["/settings/digest/2026-W04", "/settings/digest/x", "/settings/digest/x/mail"] {
        ana.see(path).await.expect(404);
    }
}

async fn every_page_says_if_mail_is_not_configured(server: Server) {
    let ana = Person::of(&server, Role::Admin);
    for path in TABS {
        ana.see(path).await.expect(200).says("Mail isn’t configured on this server.");
    }
    ana.see("/settings/mail").await.says("--smtp-url").says_not("Send me a test");
    ana.send("/settings/mail/test", &[]).await.expect(422).says("so a test can");
}

async fn a_test_mail_is_queued_and_listed(engine: Engine) {
    let route = rapport_app::MailRoute {
        server: "smtp://ana:****@mail.acme.test:587".to_owned(),
        from: "Rapport <rapport@acme.test>".to_owned(),
    };
    let furnish = move |parts: &mut Parts| {
        with_mail(parts);
        parts.mail_route = Some(route.clone());
    };
    let server = Server::with_parts(engine, furnish).await;
    let ana = Person::of(&server, Role::Admin);
    let page = ana.see("/settings/mail").await.expect(200).says_not("Mail isn’t configured");
    page.says("smtp://ana:****@mail.acme.test:587")
        .says("Rapport &#60;rapport@acme.test&#62;")
        .says("No mail yet");
    let sent = ana.send("/settings/mail/test", &[]).await;
    sent.leads_to("/settings/mail");
    let mails = server.all_pages("/api/mails/", 50).await;
    assert_eq!((mails.len(), &mails[0]["kind"], &mails[0]["state"]), (1, &json!("test"), &json!("waiting")));
    let recipient = mails[0]["recipient"].as_str().unwrap();
    assert!(sent.flash().contains(recipient), "{}", sent.flash());
    ana.see("/settings/mail").await.says(recipient).says("Test mail from Rapport").says("Waiting");
    let audit = server.all_pages("/api/audit/", 50).await;
    assert!(column(&audit, "action").contains(&"mail.tested".to_owned()), "{audit:?}");
}

async fn the_audit_log_shows_old_and_new_values(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    ana.send("/settings", &[("time_zone", "Europe/Berlin"), ("default_currency", "USD")])
        .await
        .leads_to("/settings");
    ana.send("/profile/name", &[("name", "<i>Ana</i> & Bo")]).await.leads_to("/profile");
    let page = ana.see("/settings/audit").await.expect(200).says("<b>Changed the settings</b>");
    let page = page.says("time zone: <del><bdi>UTC</bdi></del>").says("<ins><bdi>Europe/Berlin</bdi></ins>");
    page.says("A admin")
        .says("127.0.0.1<span")
        .says("request <code>")
        .says("&#60;i&#62;Ana&#60;/i&#62; &#38; Bo")
        .says_not("<i>Ana");
}

async fn the_audit_log_is_paged(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    for number in 0..60 {
        acme.post("/api/channels/")
            .json(&json!({"name": format!("Channel {number}")}))
            .send()
            .await
            .expect(201);
    }
    let first = ana.see("/settings/audit").await.expect(200).says("Channel 59").says_not("Channel 5<");
    let page = first.0.text().to_owned();
    let next = page.split("href=\"/settings/audit?before=").nth(1).and_then(|rest| rest.split('"').next());
    let path = format!("/settings/audit?before={}", next.expect("an older page"));
    ana.see(&path).await.expect(200).says("Channel 5<").says_not("Channel 59").says("Newest");
}

async fn the_system_page_shows_the_database_and_the_jobs(server: Server) {
    use rapport_app::backup_report::LastBackup;
    use rapport_app::job_report::Job;
    let services = server.app.app().services().clone();
    let jobs = services.jobs();
    let ana = Person::of(&server, Role::Admin);
    let page = ana.see("/settings/system").await.expect(200).says(env!("CARGO_PKG_VERSION"));
    let page = page.says("B</dd>").says("not secure").says("not yet").says("empty");
    let engine = if page.0.text().contains("SQLite 3.") { "SQLite" } else { "PostgreSQL 1" };
    let page = page.says(engine);
    for job in Job::ALL {
        assert!(page.0.text().contains(job.label()), "{job:?}");
    }
    let now = services.now();
    jobs.end(Job::Digest, now, Some(&"<the disk> is full"), Some(std::time::Duration::from_secs(7_300)));
    let page = ana.see("/settings/system").await;
    page.says("&#60;the disk&#62; is full").says("in 2 h").says("failed").says("not scheduled");
    services.backups().scheduled(None);
    ana.see("/settings/system").await.says("none yet").says_not("not scheduled");
    let file = "rapport-auto-abc-20260105-090000.backup".to_owned();
    services.backups().scheduled(Some(LastBackup { made_at: now, bytes: 48_234_567, file: file.clone() }));
    ana.see("/settings/system").await.says(&format!("{file}, 48.2 MB")).says_not("none yet");
}

//! The audit log: its filters, its files, what is recorded by itself, and that nothing can change it.

use std::time::{Duration, Instant};

use rapport_domain::member::Role;
use rapport_testkit::{Engine, raw};
use serde_json::{Value, json};

use crate::export::read_csv;
use crate::harness::{Server, Tenant, column, id_of, on_both_engines};
use crate::person::{Person, Seen};

on_both_engines! {
    entries_are_filtered_by_person_action_and_time,
    invalid_filters_are_refused,
    the_log_is_exported_as_csv_and_json_lines,
    a_long_log_is_exported_completely,
    exports_of_accounts_and_campaigns_are_recorded,
    an_export_that_cannot_be_recorded_is_not_made,
    no_endpoint_changes_or_deletes_an_entry,
    a_request_without_the_role_is_recorded_once_a_minute,
    a_failed_login_is_recorded_without_the_password,
    the_page_hides_logins_until_they_are_asked_for,
    the_page_filters_and_exports,
    the_company_chooses_how_long_it_is_kept,
}

const AUDIT: &str = "/api/audit/";
const EXPORT: &str = "/api/audit/export/";
const PATIENCE: Duration = Duration::from_mins(1);

/// The actions of all entries that match, newest first.
async fn actions(acme: &Tenant, query: &str) -> Vec<String> {
    column(&acme.all_pages(&format!("{AUDIT}?{query}"), 2).await, "action")
}

async fn entries_are_filtered_by_person_action_and_time(server: Server) {
    let (ana, bo) = (Person::of(&server, Role::Admin), Person::of(&server, Role::Admin));
    ana.send("/settings/tokens", &[("name", "x"), ("role", "member")]).await.expect(200);
    // Not long enough that creating a token asks for the password again.
    server.app.clock().advance_seconds(600);
    let from = server.app.clock().now();
    bo.send("/settings/tokens", &[("name", "y"), ("role", "member")]).await.expect(200);
    bo.send("/profile/name", &[("name", "Bob")]).await.leads_to("/profile");
    server.app.clock().advance_seconds(3_600);
    server.patch("/api/settings/").json(&json!({"cadence_days": 7})).send().await.expect(200);

    let everything = [
        "settings.changed",
        "person.renamed",
        "token.created",
        "token.created",
        "session.begun",
        "session.begun",
        "company.created",
    ];
    assert_eq!(actions(&server, "").await, everything, "as before, logins are included");
    let quiet: Vec<&str> = everything.into_iter().filter(|action| *action != "session.begun").collect();
    assert_eq!(actions(&server, "logins=false").await, quiet);
    assert_eq!(
        actions(&server, &format!("person={}", bo.id)).await,
        ["person.renamed", "token.created", "session.begun"]
    );
    assert_eq!(actions(&server, &format!("person={}&logins=false&action=session", bo.id)).await, [""; 0]);
    assert_eq!(actions(&server, &format!("person={}&action=token", ana.id)).await, ["token.created"]);
    assert_eq!(actions(&server, "action=settings.changed").await, ["settings.changed"]);
    assert_eq!(actions(&server, "action=session").await, ["session.begun", "session.begun"]);
    assert_eq!(
        actions(&server, &format!("from={from}")).await,
        ["settings.changed", "person.renamed", "token.created"]
    );
    let to = from.plus_seconds(3_600);
    assert_eq!(actions(&server, &format!("from={from}&to={to}")).await, ["person.renamed", "token.created"]);
    assert_eq!(actions(&server, &format!("to={from}&action=token")).await, ["token.created"]);
}

async fn invalid_filters_are_refused(acme: Tenant) {
    let query = "person=Ana&action=webhooks&from=may&to=soon&logins=no&since=x";
    let faults = [
        ("person", "malformed"),
        ("action", "unknown_action"),
        ("from", "malformed"),
        ("to", "malformed"),
        ("logins", "wrong_type"),
        ("since", "unknown_parameter"),
    ];
    acme.get(&format!("{AUDIT}?{query}")).expect_faults(&faults).await;
    let faults = [("format", "unknown_format"), ("limit", "unknown_parameter")];
    acme.get(&format!("{EXPORT}?format=xml&limit=5")).expect_faults(&faults).await;
    let member = acme.token_of(Role::Member);
    acme.get(EXPORT).token(&member).expect_refused(403, "role_required").await;
    acme.get(EXPORT).without_credential().expect_refused(401, "unauthenticated").await;
    let ana = Person::of(&acme, Role::Admin);
    ana.see("/settings/audit?action=x").await.expect(422).says("Action must be an action");
    ana.see("/settings/audit/export?action=x").await.expect(422);
    ana.see("/settings/audit/export?format=xml").await.expect(422);
    assert_eq!(actions(&acme, "action=audit").await, [""; 0], "nothing was exported");
}

async fn the_log_is_exported_as_csv_and_json_lines(acme: Tenant) {
    acme.patch("/api/settings/").json(&json!({"cadence_days": 7})).send().await.expect(200);
    acme.post("/api/channels/").json(&json!({"name": "=Fair"})).send().await.expect(201);
    let listed = acme.all_pages(AUDIT, 50).await;
    let lines = acme.get(&format!("{EXPORT}?format=jsonl")).send().await;
    assert_eq!(lines.status, 200);
    assert_eq!(lines.header("content-type"), Some("application/jsonl"));
    let name = lines.header("content-disposition").unwrap();
    assert!(name.starts_with("attachment; filename=\"audit-log-20") && name.ends_with(".jsonl\""), "{name}");
    let objects: Vec<Value> =
        lines.text().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(objects, listed, "the lines are the entries of the list");

    let rows = read_csv(&acme.get(&format!("{EXPORT}?action=channel")).send().await);
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0]["action"].as_str(), rows[0]["actor_type"].as_str()), ("channel.created", "token"));
    assert_eq!(rows[0]["detail"], json!({"name": "=Fair"}).to_string());
    assert_eq!(rows[0]["address"], "127.0.0.1");
    for (member, column) in [("id", "id"), ("at", "at"), ("target", "target"), ("request_id", "request_id")] {
        assert_eq!(rows[0][column], listed[0][member].as_str().unwrap());
    }
    let recorded = acme.all_pages(&format!("{AUDIT}?action=audit.exported"), 50).await;
    let details: Vec<&Value> = recorded.iter().map(|entry| &entry["detail"]).collect();
    let expected = [
        json!({"format": "csv", "filter": "action=channel"}),
        json!({"format": "jsonl", "filter": "format=jsonl"}),
    ];
    assert_eq!(details, expected.iter().collect::<Vec<_>>());
}

async fn a_long_log_is_exported_completely(acme: Tenant) {
    for days in 1..=450 {
        acme.company.set(json!({ "cadence_days": days }));
    }
    let rows = read_csv(&acme.get(&format!("{EXPORT}?action=settings")).send().await);
    assert_eq!(rows.len(), 450);
    let newest_first = rows.windows(2).all(|pair| pair[0]["id"] > pair[1]["id"]);
    assert!(newest_first);
}

async fn exports_of_accounts_and_campaigns_are_recorded(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let body = json!({"name": "Spring", "goal": "announcement", "filters": {}});
    let made = acme.post("/api/campaigns/").json(&body).send().await.expect(201);
    let id = made["id"].as_str().unwrap();
    acme.get("/api/accounts/export/?status=customer").send().await;
    acme.get(&format!("/api/campaigns/{id}/export/")).send().await;
    ana.see("/accounts/export?status=lost").await.expect(200);
    ana.see(&format!("/campaigns/{id}/export")).await.expect(200);
    acme.get("/api/accounts/export/?colour=red").expect_refused(422, "invalid").await;
    let log = acme.all_pages(AUDIT, 50).await;
    let exports: Vec<&Value> =
        log.iter().filter(|entry| entry["action"].as_str().unwrap().ends_with(".exported")).collect();
    let shown: Vec<Value> = exports
        .iter()
        .map(|entry| json!([entry["action"], entry["actor"]["type"], entry["target"], entry["detail"]]))
        .collect();
    let expected = json!([
        ["campaign.exported", "person", id, {"format": "csv"}],
        ["account.exported", "person", null, {"format": "csv", "filter": "status=lost"}],
        ["campaign.exported", "token", id, {"format": "csv"}],
        ["account.exported", "token", null, {"format": "csv", "filter": "status=customer"}],
    ]);
    assert_eq!(Value::Array(shown), expected);
}

/// Makes the database refuse entries about exports.
fn refuse_entries_of_exports(server: &Server) {
    let sql = match server.app.engine() {
        Engine::Sqlite => {
            "CREATE TRIGGER full BEFORE INSERT ON audit WHEN NEW.action LIKE '%exported' \
             BEGIN SELECT RAISE(ABORT, 'no more entries'); END"
        }
        Engine::Postgres => {
            "ALTER TABLE audit ADD CONSTRAINT full_log CHECK (action NOT LIKE '%exported') NOT VALID"
        }
    };
    raw::run(server.app.database(), sql);
}

async fn an_export_that_cannot_be_recorded_is_not_made(server: Server) {
    let ana = Person::of(&server, Role::Owner);
    let token = server.token_of(Role::Owner);
    let account = server.account(json!({"imported_id": "crm-1", "name": "Nordlys"})).await;
    let account = id_of(&account);
    let body = json!({"name": "Spring", "goal": "announcement", "filters": {}});
    let made = server.post("/api/campaigns/").json(&body).send().await.expect(201);
    let id = made["id"].as_str().unwrap();
    let exports = [
        "/api/accounts/export/".to_owned(),
        format!("/api/campaigns/{id}/export/"),
        EXPORT.to_owned(),
        "/api/company/export/".to_owned(),
        "/api/company/export/?format=csv".to_owned(),
        format!("/api/accounts/{account}/export/"),
        format!("/api/accounts/{account}/export/?format=csv"),
        "/accounts/export".to_owned(),
        format!("/campaigns/{id}/export"),
        "/settings/audit/export".to_owned(),
        "/settings/export".to_owned(),
        "/settings/export?format=csv".to_owned(),
        format!("/accounts/{account}/export"),
        format!("/accounts/{account}/export?format=csv"),
        "/profile/data".to_owned(),
    ];
    let export = async |path: &str| {
        if path.starts_with("/api/") {
            server.get(path).token(&token).send().await
        } else {
            ana.see(path).await.0
        }
    };
    for path in &exports {
        let made = export(path).await;
        assert_eq!(made.status, 200, "{path}: {}", made.text());
        assert!(made.header("content-disposition").is_some(), "{path}");
    }
    refuse_entries_of_exports(&server);
    for path in &exports {
        let refused = export(path).await;
        assert_eq!(refused.status, 500, "{path}");
        assert!(refused.header("content-disposition").is_none(), "{path}");
        assert!(!refused.text().contains("Nordlys") && !refused.text().contains("acme.test"), "{path}");
    }
}

async fn no_endpoint_changes_or_deletes_an_entry(acme: Tenant) {
    let document = acme.get("/api/openapi.json").without_credential().send().await.expect(200);
    let paths = document["paths"].as_object().unwrap().iter();
    let audit: Vec<(&String, &Value)> = paths.filter(|(path, _)| path.starts_with(AUDIT)).collect();
    assert_eq!(audit.len(), 2, "the list and the export");
    for (path, item) in audit {
        let methods: Vec<&String> = item.as_object().unwrap().keys().collect();
        assert_eq!(methods, ["get"], "{path}");
    }
    let entry = acme.all_pages(AUDIT, 50).await[0]["id"].as_str().unwrap().to_owned();
    let ana = Person::of(&acme, Role::Owner);
    let before = acme.contents();
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        for path in [AUDIT, EXPORT] {
            let answer = acme.request(method, path).json(&json!({})).send().await;
            answer.expect_problem(405, "method_not_allowed");
            let mut allowed: Vec<&str> = answer.header("allow").unwrap().split(',').map(str::trim).collect();
            allowed.sort_unstable();
            assert_eq!(allowed, ["GET", "HEAD"], "{method} {path}");
        }
        let answer = acme.request(method, &format!("{AUDIT}{entry}/")).json(&json!({})).send().await;
        answer.expect_problem(404, "not_found");
    }
    for path in ["/settings/audit", "/settings/audit/export"] {
        ana.send(path, &[("id", &entry)]).await.expect(405);
    }
    assert_eq!(acme.contents(), before);
}

async fn a_request_without_the_role_is_recorded_once_a_minute(server: Server) {
    let bo = Person::of(&server, Role::Member);
    bo.see("/settings/tokens").await.expect(403);
    bo.see("/settings").await.expect(403);
    server.app.clock().advance_seconds(60);
    bo.send("/settings/tokens", &[("name", "x"), ("role", "member")]).await.expect(403);
    let token = server.token_of(Role::Member);
    for _ in 0..3 {
        server.get("/api/tokens/").token(&token).header("x-request-id", "abc-7").send().await.expect(403);
    }
    server.get("/api/accounts/").token(&token).send().await.expect(200);
    let log = server.all_pages(&format!("{AUDIT}?action=request"), 50).await;
    let shown: Vec<Value> =
        log.iter().map(|entry| json!([entry["actor"]["type"], entry["detail"]["request"]])).collect();
    let expected = json!([
        ["token", "GET /api/tokens/"],
        ["person", "POST /settings/tokens"],
        ["person", "GET /settings/tokens"]
    ]);
    assert_eq!(Value::Array(shown), expected);
    assert_eq!((&log[0]["request_id"], &log[0]["address"]), (&json!("abc-7"), &json!("127.0.0.1")));
    assert_eq!(log[0]["detail"]["reason"], json!("only admins and owners can manage API tokens and keys"));
    assert_eq!(log[2]["actor"]["id"], json!(bo.id.to_string()));
}

async fn a_failed_login_is_recorded_without_the_password(acme: Tenant) {
    let number = u64::from_be_bytes(acme.company.app().services().random::<8>());
    let address = format!("{number}@acme.test");
    let cy = acme.company.employ(&address, "Cy", Role::Member).person.to_string();
    for typed in [address.as_str(), "nobody@acme.test", "hunter2hunter2"] {
        let body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs([("email", typed), ("password", "hunter2hunter2")])
            .finish();
        let call = acme.post("/login").without_credential().text(&body);
        let call = call.header("content-type", "application/x-www-form-urlencoded");
        let answer = call.header("sec-fetch-site", "same-origin").send().await;
        Seen(answer).expect(422).says("Incorrect email or password.");
    }
    // It is recorded after the response, so that its time says nothing.
    let since = Instant::now();
    let log = loop {
        let log = acme.all_pages(&format!("{AUDIT}?action=session.failed"), 50).await;
        assert!(since.elapsed() < PATIENCE, "no failed login is recorded");
        if !log.is_empty() {
            break log;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(log.len(), 1, "{log:?}");
    assert_eq!((&log[0]["target"], &log[0]["actor"]["type"]), (&json!(cy), &json!("system")));
    assert_eq!((&log[0]["detail"], &log[0]["address"]), (&json!({"email": address}), &json!("127.0.0.1")));
    assert!(!acme.contents().contains("hunter2"));
}

async fn the_page_hides_logins_until_they_are_asked_for(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    ana.send("/profile/name", &[("name", "Anna")]).await.leads_to("/profile");
    let page =
        ana.see("/settings/audit").await.expect(200).says("<b>Changed their name</b>").says("Show logins");
    page.says_not("<b>Logged in</b>").says("Logins, failed logins and logouts are hidden.");
    let page = ana.see("/settings/audit?logins=true").await.expect(200).says("<b>Logged in</b>");
    page.says("checked> Show logins").says_not("Logins, failed logins and logouts are hidden.");
    ana.see("/settings/audit?action=session").await.expect(200).says("<b>Logged in</b>");
    ana.see("/settings/audit?action=webhook").await.expect(200).says("No entries match");
}

async fn the_page_filters_and_exports(acme: Tenant) {
    let (ana, bo) = (Person::of(&acme, Role::Admin), Person::of(&acme, Role::Admin));
    ana.send("/settings/tokens", &[("name", "of Ana"), ("role", "member")]).await.expect(200);
    bo.send("/settings/tokens", &[("name", "of Bo"), ("role", "member")]).await.expect(200);
    let path = format!("/settings/audit?person={}&action=token", bo.id);
    let page = ana.see(&path).await.expect(200).says("of Bo").says_not("of Ana<");
    let page = page.says(&format!("<option value=\"{}\" selected>", bo.id)).says("value=\"token\" selected");
    page.says(&format!("/settings/audit/export?format=jsonl&amp;person={}&#38;action=token", bo.id));
    ana.see("/settings/audit?to=2001-01-01T00:00").await.expect(200).says("No entries match");
    let gone = "per_00000000000000000000000000";
    ana.see(&format!("/settings/audit?person={gone}")).await.expect(200).says(&format!("selected>{gone}"));

    let export =
        |format: &str| format!("/settings/audit/export?format={format}&action=token&person={}", bo.id);
    let rows = read_csv(&ana.see(&export("csv")).await.0);
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["actor_id"], bo.id.to_string());
    let lines = ana.see(&export("jsonl")).await.expect(200);
    assert_eq!(lines.0.text().lines().count(), 1);
    let exports = acme.all_pages(&format!("{AUDIT}?action=audit&person={}", ana.id), 50).await;
    assert_eq!(exports.len(), 2);
    let filter = format!("person={}&action=token", bo.id);
    assert_eq!(exports[0]["detail"], json!({"format": "jsonl", "filter": filter}));
    Person::of(&acme, Role::Member).see(&export("csv")).await.expect(403);
}

async fn the_company_chooses_how_long_it_is_kept(acme: Tenant) {
    let kept = async || acme.get("/api/settings/").send().await.expect(200)["audit_days"].clone();
    assert_eq!(kept().await, json!(730));
    acme.patch("/api/settings/").json(&json!({"audit_days": 365})).send().await.expect(200);
    assert_eq!(kept().await, json!(365));
    for days in [json!(29), json!(3_651), json!(0)] {
        let body = json!({ "audit_days": days });
        acme.patch("/api/settings/").json(&body).expect_faults(&[("/audit_days", "out_of_range")]).await;
    }
    let ana = Person::of(&acme, Role::Admin);
    ana.see("/settings").await.expect(200).says("value=\"365\"");
    let save = async |days: &str| {
        let fields = [("time_zone", "UTC"), ("default_currency", "USD"), ("audit_days", days)];
        ana.send("/settings", &fields).await
    };
    save("90").await.leads_to("/settings");
    assert_eq!(kept().await, json!(90));
    for days in ["10", "", "many"] {
        save(days).await.expect(422).says("id=\"audit_days-note\"").says("aria-invalid=\"true\"");
    }
    assert_eq!(kept().await, json!(90));
    ana.see("/settings/audit").await.expect(200).says("Entries are kept for 90 days.");
    let log = acme.all_pages(&format!("{AUDIT}?action=settings.changed"), 50).await;
    assert_eq!(log[0]["detail"], json!({"audit_days": {"from": 365, "to": 90}}));
}

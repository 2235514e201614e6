//! Imports over HTTP, in the steps of the wizard.

use rapport_app::import::{Runner, Stepped};
use rapport_domain::member::Role;
use rapport_testkit::Engine;
use serde_json::{Value, json};

use crate::harness::{Answer, Call, Server, Tenant, column, members_of, on_both_engines};

const IMPORTS: &str = "/api/imports/";

on_both_engines!(
    a_wizard_uploads_tries_starts_and_undoes,
    an_invalid_import_is_refused,
    an_upload_may_be_larger_than_any_other_body,
    imports_are_listed_newest_first,
    members_read_and_admins_act,
    the_error_file_is_a_csv,
    a_running_import_is_cancelled_and_another_removed,
    a_large_dry_run_continues_in_the_background,
    numbers_dates_and_words_are_chosen,
);

fn uploading<'a>(tenant: &'a Tenant, query: &str, file: impl Into<Vec<u8>>) -> Call<'a> {
    tenant.post(&format!("{IMPORTS}{query}")).bytes(file.into()).header("content-type", "text/csv")
}

async fn uploaded(tenant: &Tenant, file: impl Into<Vec<u8>>) -> Value {
    uploading(tenant, "?filename=accounts.csv", file).send().await.expect(201)
}

fn path_of(import: &Value) -> String {
    format!("{IMPORTS}{}/", import["id"].as_str().expect("an id"))
}

async fn seen(tenant: &Tenant, import: &Value) -> Value {
    tenant.get(&path_of(import)).send().await.expect(200)
}

async fn act(tenant: &Tenant, import: &Value, action: &str, body: Value) -> Answer {
    tenant.post(&format!("{}{action}/", path_of(import))).json(&body).send().await
}

/// Runs the import to its end, like the background job.
async fn work_off(tenant: &Tenant, import: &Value) {
    let id = import["id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
    let mut runner = Runner::new(tenant.company.app(), tenant.company.id(), id);
    while runner.step().await.expect("a step") == Stepped::More {}
}

async fn a_wizard_uploads_tries_starts_and_undoes(acme: Tenant) {
    acme.account(json!({"imported_id": "crm-1", "name": "Acme"})).await;
    let file = "Record ID;Company;Plan\ncrm-1;Acme Inc;pro\ncrm-2;Globex;free\ncrm-3\n";
    let import = uploaded(&acme, file).await;
    assert_eq!(
        members_of(&import),
        [
            "actor",
            "columns",
            "counts",
            "created_at",
            "delimiter",
            "encoding",
            "failures",
            "filename",
            "finished_at",
            "formats",
            "id",
            "mapping",
            "mapping_remembered",
            "mode",
            "preview",
            "progress",
            "started_at",
            "state",
            "status_words",
            "undo",
            "unmatched_promo_codes",
        ]
    );
    assert!(import["id"].as_str().unwrap().starts_with("imp_"));
    assert_eq!((&import["state"], &import["filename"]), (&json!("uploaded"), &json!("accounts.csv")));
    assert_eq!((&import["encoding"], &import["delimiter"]), (&json!("UTF-8"), &json!(";")));
    assert_eq!(import["columns"][2], json!({"name": "Plan", "samples": ["pro", "free"]}));
    assert_eq!(
        import["mapping"],
        json!({"Record ID": "imported_id", "Company": "name", "Plan": "custom_fields.plan"})
    );

    let choice =
        json!({"mapping": {"Record ID": "imported_id", "Company": "name", "Plan": "custom_fields.tier"}});
    let tried = act(&acme, &import, "preview", choice.clone()).await.expect(200);
    assert_eq!(tried["state"], json!("uploaded"));
    let counts = json!({"created": 1, "updated": 1, "unchanged": 0, "skipped": 0, "failed": 1, "promo_codes_unmatched": 0});
    assert_eq!(tried["preview"]["counts"], counts);
    assert_eq!(
        column(tried["preview"]["differences"].as_array().unwrap(), "field"),
        ["custom_fields.tier", "name"]
    );
    assert_eq!(tried["preview"]["errors"][0]["line"], json!(4));
    assert_eq!(tried["progress"]["rows_total"], json!(3));
    assert_eq!(acme.shown("crm-1").await["name"], json!("Acme"), "nothing is changed");

    let started = act(&acme, &import, "start", json!({})).await.expect(202);
    assert_eq!((&started["state"], &started["mapping"]), (&json!("running"), &choice["mapping"]));
    act(&acme, &import, "start", json!({})).await.expect_problem(409, "not_uploaded");
    work_off(&acme, &import).await;
    let done = seen(&acme, &import).await;
    assert_eq!((&done["state"], &done["counts"]), (&json!("finished"), &counts));
    assert_eq!(done["progress"]["bytes_done"], done["progress"]["bytes_total"]);
    assert_eq!(done["actor"]["type"], json!("token"));
    assert_eq!(acme.shown("crm-1").await["custom_fields"], json!({"tier": "pro"}));

    let undoing = act(&acme, &import, "undo", json!({})).await.expect(202);
    assert_eq!((&undoing["state"], &undoing["undo"]["total"]), (&json!("undoing"), &json!(2)));
    work_off(&acme, &import).await;
    let undone = seen(&acme, &import).await;
    assert_eq!((&undone["state"], &undone["undo"]["restored"]), (&json!("undone"), &json!(1)));
    assert_eq!(undone["undo"]["removed"], json!(1));
    assert_eq!(acme.shown("crm-1").await["name"], json!("Acme"));
    act(&acme, &import, "undo", json!({})).await.expect_problem(409, "not_ended");
    let audit = acme.get("/api/audit/").send().await.expect(200);
    let actions = column(audit["items"].as_array().unwrap(), "action");
    assert_eq!(actions[..2], ["import.undone", "import.started"]);
}

async fn an_invalid_import_is_refused(acme: Tenant) {
    acme.post(IMPORTS).json(&json!({})).expect_refused(415, "unsupported_media_type").await;
    uploading(&acme, "", "id\n")
        .header("content-encoding", "gzip")
        .expect_refused(415, "unsupported_encoding")
        .await;
    uploading(&acme, "", "").expect_faults(&[("", "no_header")]).await;
    let wrong = "?filename=a.csv&encoding=klingon&delimiter=ab&more=1";
    uploading(&acme, wrong, "id\n")
        .expect_faults(&[
            ("encoding", "unknown_encoding"),
            ("delimiter", "malformed"),
            ("more", "unknown_parameter"),
        ])
        .await;
    uploading(&acme, "", "id\n").without_credential().expect_refused(401, "unauthenticated").await;
    let import = uploaded(&acme, "id,name\n1,Acme\n").await;
    let path = path_of(&import);
    acme.post(&format!("{path}start/"))
        .json(&json!({"mode": "all", "mapping": [], "x": 1}))
        .expect_faults(&[("/mode", "unknown_mode"), ("/mapping", "wrong_type"), ("/x", "unknown_member")])
        .await;
    acme.post(&format!("{path}preview/"))
        .json(&json!({"mapping": {"id": "nope", "more": "name"}}))
        .expect_faults(&[("/mapping/id", "unknown_field"), ("/mapping/more", "unknown_column")])
        .await;
    acme.post(&format!("{path}start/"))
        .json(&json!({"mapping": {"name": "name"}, "mode": "update"}))
        .expect_faults(&[("/mapping", "incomplete")])
        .await;
    acme.post(&format!("{path}undo/")).expect_refused(409, "not_ended").await;
    for path in ["imp_00000000000000000000000000/", "nonsense/"] {
        acme.get(&format!("{IMPORTS}{path}")).expect_refused(404, "not_found").await;
        acme.get(&format!("{IMPORTS}{path}errors/")).expect_refused(404, "not_found").await;
        acme.post(&format!("{IMPORTS}{path}start/")).expect_refused(404, "not_found").await;
        acme.delete(&format!("{IMPORTS}{path}")).expect_refused(404, "not_found").await;
    }
    acme.neighbour().get(&path).expect_refused(404, "not_found").await;
}

async fn an_upload_may_be_larger_than_any_other_body(engine: Engine) {
    let server = Server::with(engine, |config| config.max_import_bytes = 3 << 20).await;
    let rows = (0..60_000)
        .map(|number| format!("crm-{number},Account number {number}\n"))
        .collect::<Vec<_>>()
        .concat();
    assert!(rows.len() > 1 << 20);
    let import = uploaded(&server, format!("id,name\n{rows}")).await;
    assert_eq!(import["progress"]["bytes_total"], json!(rows.len() + "id,name\n".len()));
    let answer =
        uploading(&server, "", vec![b'x'; (3 << 20) + 1]).expect_refused(413, "body_too_large").await;
    assert_eq!(answer.json()["max_bytes"], json!(3 << 20));
    server.stop().await;
}

async fn imports_are_listed_newest_first(acme: Tenant) {
    let mut made = Vec::new();
    for _ in 0..5 {
        made.push(uploaded(&acme, "id\n").await["id"].clone());
    }
    made.reverse();
    let listed = acme.all_pages(IMPORTS, 2).await;
    assert_eq!(listed.iter().map(|import| import["id"].clone()).collect::<Vec<_>>(), made);
    assert!(acme.neighbour().all_pages(IMPORTS, 2).await.is_empty());
}

async fn members_read_and_admins_act(acme: Tenant) {
    let import = uploaded(&acme, "id\n1\n").await;
    let path = path_of(&import);
    let member = acme.token_of(Role::Member);
    for path in [IMPORTS, &path] {
        acme.get(path).token(&member).send().await.expect(200);
    }
    // The error file has the rows themselves.
    let errors = format!("{path}errors/");
    acme.get(&errors).token(&member).expect_refused(403, "role_required").await;
    assert_eq!(acme.get(&errors).token(&acme.token_of(Role::Admin)).send().await.status, 200);
    uploading(&acme, "", "id\n").token(&member).expect_refused(403, "role_required").await;
    for action in ["preview/", "start/", "undo/"] {
        let call = acme.post(&format!("{path}{action}")).json(&json!({})).token(&member);
        call.expect_refused(403, "role_required").await;
    }
    acme.delete(&path).token(&member).expect_refused(403, "role_required").await;
}

async fn the_error_file_is_a_csv(acme: Tenant) {
    let rows = (0..1_200).map(|number| format!("=cmd-{number},nowhere\n")).collect::<Vec<_>>().concat();
    let query = "?filename=my%20file.csv";
    let import = uploading(&acme, query, format!("id,status\n{rows}")).send().await.expect(201);
    act(&acme, &import, "start", json!({})).await.expect(202);
    work_off(&acme, &import).await;
    let answer = acme.get(&format!("{}errors/", path_of(&import))).send().await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("text/csv; charset=utf-8"));
    assert_eq!(answer.header("content-disposition"), Some("attachment; filename=\"my_file.errors.csv\""));
    let lines: Vec<&str> = answer.text().lines().collect();
    assert_eq!(lines.len(), 1_201);
    assert_eq!(lines[0], "\u{feff}id,status,import_line,import_error");
    assert!(lines[1_200].starts_with("'=cmd-1199,nowhere,1201,\"status: must be one of"), "{}", lines[1_200]);
}

async fn a_running_import_is_cancelled_and_another_removed(acme: Tenant) {
    let import = uploaded(&acme, "id\n1\n").await;
    act(&acme, &import, "start", json!({})).await.expect(202);
    acme.delete(&path_of(&import)).send().await.expect(204);
    assert_eq!(seen(&acme, &import).await["state"], json!("cancelled"));
    acme.delete(&path_of(&import)).send().await.expect(204);
    acme.get(&path_of(&import)).expect_refused(404, "not_found").await;
    assert!(acme.all_pages(IMPORTS, 10).await.is_empty());
}

async fn a_large_dry_run_continues_in_the_background(acme: Tenant) {
    let note = "x".repeat(1_000);
    let rows = (0..2_200).map(|number| format!("crm-{number},{note}\n")).collect::<Vec<_>>().concat();
    let import = uploaded(&acme, format!("id,note\n{rows}")).await;
    let begun = act(&acme, &import, "preview", json!({})).await.expect(202);
    assert_eq!((&begun["state"], &begun["preview"]), (&json!("previewing"), &Value::Null));
    work_off(&acme, &import).await;
    let tried = seen(&acme, &import).await;
    assert_eq!(
        (&tried["state"], &tried["preview"]["counts"]["created"]),
        (&json!("uploaded"), &json!(2_200))
    );
}

async fn numbers_dates_and_words_are_chosen(acme: Tenant) {
    let import = uploaded(&acme, "id;stage;value;snooze\n1;Hot;1.200;03/04/2027\n2;won;7;\n").await;
    let path = path_of(&import);
    acme.post(&format!("{path}preview/"))
        .json(&json!({}))
        .expect_faults(&[("/formats/value", "ambiguous"), ("/formats/snooze", "ambiguous")])
        .await;
    acme.post(&format!("{path}preview/"))
        .json(
            &json!({"formats": {"value": "day_first", "nope": "day_first"}, "status_words": {"Hot": "hot"}}),
        )
        .expect_faults(&[("/status_words/Hot", "unknown_status")])
        .await;
    let choice = json!({"formats": {"value": "decimal_comma", "snooze": "day_first"}});
    let tried = act(&acme, &import, "preview", choice.clone()).await.expect(200);
    assert_eq!(tried["formats"], choice["formats"]);
    let failure = &tried["preview"]["failures"][0];
    assert_eq!(
        (&failure["column"], &failure["code"], &failure["rows"]),
        (&json!("stage"), &json!("unknown_status"), &json!(1))
    );
    assert_eq!(failure["values"], json!([{"value": "Hot", "rows": 1, "line": 2}]));
    let started =
        act(&acme, &import, "start", json!({"status_words": {"Hot": "in_trial"}})).await.expect(202);
    assert_eq!(
        (&started["status_words"], &started["formats"]),
        (&json!({"hot": "in_trial"}), &choice["formats"])
    );
    work_off(&acme, &import).await;
    let done = seen(&acme, &import).await;
    assert_eq!((&done["counts"]["created"], &done["failures"]), (&json!(2), &json!([])));
    let shown = acme.shown("1").await;
    assert_eq!(
        (&shown["captured_value"], &shown["snoozed_until"]),
        (&json!("1200.00"), &json!("2027-04-03"))
    );
    acme.account(json!({"imported_id": "3", "name": "Another"})).await;
    let id = import["id"].as_str().unwrap();
    let list = acme
        .get(&format!("/api/accounts/?import={id}&import_effect=created&sort=name"))
        .send()
        .await
        .expect(200);
    assert_eq!(column(list["items"].as_array().unwrap(), "name"), ["1", "2"]);
    let none =
        acme.get(&format!("/api/accounts/?import={id}&import_effect=changed")).send().await.expect(200);
    assert_eq!(none["items"], json!([]));
    acme.get("/api/accounts/?import_effect=created").expect_faults(&[("import", "required")]).await;
    acme.get("/api/accounts/?import=crm-1").expect_faults(&[("import", "malformed")]).await;
}

//! The import wizard, as used in a browser.

use rapport_app::import::{Runner, Stepped};
use rapport_domain::id::FormId;
use rapport_domain::member::Role;
use rapport_testkit::Engine;
use serde_json::json;

use crate::harness::{Server, Tenant, on_both_engines};
use crate::person::{Person, Seen};

const FILE: &str = "Record ID;Company;Plan\ncrm-1;Acme Inc;pro\ncrm-2;Globex;free\ncrm-3\n";

on_both_engines!(
    a_file_is_uploaded_mapped_tried_imported_and_undone,
    the_mapping_is_remembered,
    a_wrong_mapping_keeps_what_was_chosen,
    an_invalid_file_is_refused_next_to_its_field,
    encoding_and_delimiter_can_be_chosen,
    a_file_may_be_larger_than_any_other_form,
    a_file_is_read_again_with_another_delimiter,
    a_running_import_is_cancelled_and_removed,
    a_form_that_arrives_twice_uploads_once,
    names_and_cells_are_escaped,
    members_see_no_pages_and_no_links,
    older_imports_are_on_later_pages,
    formats_and_stages_are_proposed_and_chosen,
    rows_that_failed_are_fixed_and_retried,
);

/// A form with a file, as browsers send it.
fn form_of(form: FormId, fields: &[(&str, &str)], filename: &str, file: &[u8]) -> Vec<u8> {
    let form = form.to_string();
    let mut body = Vec::new();
    for (name, value) in [("form", form.as_str())].iter().chain(fields) {
        let part = format!("--edge\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        body.extend_from_slice(part.as_bytes());
    }
    let head = format!(
        "--edge\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{filename}\"\r\nContent-Type: text/csv\r\n\r\n"
    );
    body.extend_from_slice(head.as_bytes());
    body.extend_from_slice(file);
    body.extend_from_slice(b"\r\n--edge--\r\n");
    body
}

async fn send(tenant: &Tenant, person: &Person<'_>, body: Vec<u8>) -> Seen {
    let call = tenant.post("/imports").without_credential().header("cookie", &person.cookie).bytes(body);
    let call = call.header("content-type", "multipart/form-data; boundary=edge");
    Seen(call.header("sec-fetch-site", "same-origin").send().await)
}

async fn upload(
    tenant: &Tenant,
    person: &Person<'_>,
    fields: &[(&str, &str)],
    (filename, file): (&str, &[u8]),
) -> Seen {
    send(tenant, person, form_of(person.form(), fields, filename, file)).await
}

/// Uploads a file that must be accepted and returns the path of its import.
async fn uploaded(tenant: &Tenant, person: &Person<'_>, file: &str) -> String {
    upload(tenant, person, &[], ("accounts.csv", file.as_bytes())).await.leads_to("/imports/imp_")
}

/// Runs the import to its end, like the background job.
async fn work_off(tenant: &Tenant, path: &str) {
    let id = path.trim_start_matches("/imports/").parse().expect("an id");
    let mut runner = Runner::new(tenant.company.app(), tenant.company.id(), id);
    while runner.step().await.expect("a step") == Stepped::More {}
}

async fn a_file_is_uploaded_mapped_tried_imported_and_undone(acme: Tenant) {
    acme.account(json!({"imported_id": "crm-1", "name": "Acme"})).await;
    let ana = Person::of(&acme, Role::Admin);
    ana.see("/imports").await.expect(200).says("No imports yet").says("multipart/form-data");
    let path = uploaded(&acme, &ana, FILE).await;
    let columns = ana.see(&path).await.leads_to(&format!("{path}/columns"));
    let page = ana.see(&columns).await.expect(200).says("UTF-8 · semicolon · 3 columns").says("accounts.csv");
    let page = page.says(r#"<option value="imported_id" selected>"#).says(r#"name="key-2" value="plan""#);
    page.says("<bdi>Globex</bdi>").says("<bdi>pro</bdi> · <bdi>free</bdi>").says_not("Remembered");

    let chosen = [
        ("column-0", "imported_id"),
        ("column-1", "name"),
        ("column-2", "custom"),
        ("key-2", "tier"),
        ("mode", "both"),
    ];
    ana.send(&columns, &chosen).await.leads_to(&path);
    let tried = ana.see(&path).await.expect(200).says("Dry run result").says("3 rows");
    let tried = tried.says("<bdi>tier</bdi>").says("<bdi>Acme Inc</bdi>").says("to be created");
    tried.says("Rows with errors").says("line 4").says("Start import");
    assert_eq!(acme.shown("crm-1").await["name"], json!("Acme"), "a dry run changes nothing");

    let form = ana.form();
    ana.send_form(&format!("{path}/start"), form, &[]).await.leads_to(&path);
    ana.send_form(&format!("{path}/start"), form, &[]).await.leads_to(&path);
    ana.see(&path).await.expect(200).says("Importing").says("<progress max=\"100\"").says("Cancel import");
    // Once the import has started, its columns are fixed.
    ana.see(&columns).await.leads_to(&path);
    let late = ana.send(&columns, &chosen).await.expect(422);
    late.says("The import is running").says("Cancel import");
    work_off(&acme, &path).await;
    let done = ana.see(&path).await.expect(200).says("Import finished").says("A admin");
    done.says(&format!("{path}/errors")).says("Undo import");
    assert_eq!(acme.shown("crm-1").await["custom_fields"], json!({"tier": "pro"}));
    let errors = ana.see(&format!("{path}/errors")).await.expect(200).says("import_error").says("crm-3");
    let disposition = errors.0.header("content-disposition");
    assert_eq!(disposition, Some("attachment; filename=\"accounts.errors.csv\""));

    ana.send(&format!("{path}/undo"), &[]).await.leads_to(&path);
    ana.see(&path).await.expect(200).says("Undoing").says("0 of 2 accounts");
    work_off(&acme, &path).await;
    ana.see(&path).await.expect(200).says("Import undone").says("Removed");
    assert_eq!(acme.shown("crm-1").await["name"], json!("Acme"));
    ana.send(&format!("{path}/undo"), &[]).await.expect(422).says("role=\"alert\"");
    ana.see("/imports").await.says("accounts.csv").says("Undone").says_not("No imports yet");
}

async fn the_mapping_is_remembered(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let path = uploaded(&acme, &ana, "id,Company,Plan\n1,Acme,pro\n").await;
    let chosen =
        [("column-0", "imported_id"), ("column-1", "ignore"), ("column-2", "name"), ("mode", "create")];
    ana.send(&format!("{path}/columns"), &chosen).await.leads_to(&path);
    ana.send(&format!("{path}/start"), &[]).await.leads_to(&path);
    work_off(&acme, &path).await;
    assert_eq!(acme.shown("1").await["name"], json!("pro"));
    let again = uploaded(&acme, &ana, "id,Company,Plan\n2,Globex,free\n").await;
    let page = ana.see(&format!("{again}/columns")).await.expect(200).says("Remembered.");
    let text = page.0.text();
    let company = text.split("id=\"column-1\"").nth(1).and_then(|rest| rest.split("</select>").next());
    assert!(company.is_some_and(|options| options.contains("value=\"ignore\" selected")), "{text}");
}

async fn a_wrong_mapping_keeps_what_was_chosen(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let path = uploaded(&acme, &ana, "id,a/b,Plan\n1,Acme,pro\n").await;
    let columns = format!("{path}/columns");
    let chosen = [
        ("column-0", "imported_id"),
        ("column-1", "custom"),
        ("key-1", ""),
        ("column-2", "status"),
        ("mode", "update"),
    ];
    let page = ana.send(&columns, &chosen).await.expect(422).says("Must not be empty.");
    let page = page.says(r#"<option value="status" selected>"#).says(r#"id="column-1-note""#);
    page.says(r#"value="update" checked"#).says_not(r#"id="column-0-note""#);
    let twice = [("column-0", "name"), ("column-1", "name"), ("mode", "both")];
    ana.send(&columns, &twice).await.expect(422).says("Another column is already mapped to this field.");
    let neither = [("column-0", "ignore"), ("column-2", "status"), ("mode", "both")];
    let page = ana.send(&columns, &neither).await.expect(422);
    page.says("The mapping must include imported_id or name.");
    ana.send(&columns, &[("column-0", "imported_id"), ("mode", "all")])
        .await
        .expect(422)
        .says("Mode must be");
    // Nothing was saved.
    ana.see(&columns).await.expect(200).says(r#"name="key-2" value="plan""#);
}

async fn an_invalid_file_is_refused_next_to_its_field(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let fields = [("encoding", "windows-1252"), ("delimiter", "tab")];
    let page = upload(&acme, &ana, &fields, ("a.csv", b"")).await.expect(422).says("has no header row");
    page.says(r#"<option value="windows-1252" selected>"#).says(r#"<option value="tab" selected>"#);
    upload(&acme, &ana, &[], ("", b"")).await.expect(422).says("Choose a file to upload.");
    let wrong = [("encoding", "klingon"), ("delimiter", "ab")];
    let page = upload(&acme, &ana, &wrong, ("a.csv", b"id\n")).await.expect(422);
    page.says("Must be an encoding").says("Must be a single character");
    let mut cut = form_of(ana.form(), &[], "a.csv", b"id\n1\n");
    cut.truncate(cut.len() - 12);
    send(&acme, &ana, cut).await.expect(422).says("The upload was interrupted; try again.");
    send(&acme, &ana, b"no form at all".to_vec()).await.expect(422);
    ana.send("/imports", &[("file", "id")]).await.expect(422).says("Choose a file");
    ana.see("/imports").await.says("No imports yet");
    for path in ["imp_00000000000000000000000000", "nonsense"] {
        ana.see(&format!("/imports/{path}")).await.expect(404);
        ana.see(&format!("/imports/{path}/columns")).await.expect(404);
        ana.see(&format!("/imports/{path}/errors")).await.expect(404);
        ana.send(&format!("/imports/{path}/start"), &[]).await.expect(404);
        ana.send(&format!("/imports/{path}/remove"), &[]).await.expect(404);
    }
}

async fn encoding_and_delimiter_can_be_chosen(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let fields = [("encoding", "windows-1251"), ("delimiter", "|")];
    let path = upload(&acme, &ana, &fields, ("x\\y.csv", b"id|name\n1|\xc0\n")).await.leads_to("/imports/");
    let page = ana.see(&format!("{path}/columns")).await.expect(200).says("windows-1251 · vertical bar");
    page.says("<bdi>А</bdi>").says("<bdi>y.csv</bdi>");
}

async fn a_file_may_be_larger_than_any_other_form(engine: Engine) {
    let server = Server::with(engine, |config| config.max_import_bytes = 6 << 20).await;
    let ana = Person::of(&server, Role::Admin);
    let row = |number: usize| format!("crm-{number},Account number {number}{}\n", "x".repeat(60));
    let rows = (0..60_000).map(row).collect::<Vec<_>>().concat();
    assert!(rows.len() > 4 << 20);
    let path = uploaded(&server, &ana, &format!("id,name\n{rows}")).await;
    // Too large to be tried while someone waits.
    let chosen = [("column-0", "imported_id"), ("column-1", "name"), ("mode", "both")];
    ana.send(&format!("{path}/columns"), &chosen).await.leads_to(&path);
    ana.see(&path).await.expect(200).says("checked. Nothing has changed.").says("<progress");
    work_off(&server, &path).await;
    ana.see(&path).await.expect(200).says("60,000 rows");
    let page = upload(&server, &ana, &[], ("large.csv", &vec![b'x'; (6 << 20) + 1])).await.expect(422);
    page.says("The file must be at most 6 MB.").says_not("large.csv");
    server.stop().await;
}

async fn a_file_is_read_again_with_another_delimiter(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let path = uploaded(&acme, &ana, "id,x;name\n1,2;Acme\n").await;
    let layout = format!("{path}/layout");
    let page = ana.send(&layout, &[("encoding", "klingon"), ("delimiter", ",")]).await.expect(422);
    page.says("Must be an encoding").says("Read file again");
    let read = ana.send(&layout, &[("encoding", "UTF-8"), ("delimiter", ";")]).await;
    let columns = read.leads_to(&format!("{path}/columns"));
    ana.see(&columns).await.expect(200).says("2 columns").says("<bdi>id,x</bdi>").says("semicolon");
}

async fn a_running_import_is_cancelled_and_removed(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let path = uploaded(&acme, &ana, "id\n1\n").await;
    ana.send(&format!("{path}/cancel"), &[]).await.expect(422).says("role=\"alert\"");
    ana.send(&format!("{path}/start"), &[]).await.leads_to(&path);
    let cancelled = ana.send(&format!("{path}/cancel"), &[]).await;
    cancelled.leads_to(&path);
    assert!(cancelled.flash().contains("cancelled"), "{}", cancelled.flash());
    ana.see(&path).await.expect(200).says("Import cancelled");
    // Sending it again removes nothing.
    ana.send(&format!("{path}/cancel"), &[]).await.expect(422).says("is no longer running");
    ana.see(&path).await.expect(200);
    ana.send(&format!("{path}/remove"), &[]).await.leads_to("/imports");
    ana.see(&path).await.expect(404);
    ana.see("/imports").await.says("No imports yet");
}

async fn a_form_that_arrives_twice_uploads_once(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let body = form_of(ana.form(), &[], "once.csv", b"id\n1\n");
    send(&acme, &ana, body.clone()).await.leads_to("/imports/imp_");
    let second = send(&acme, &ana, body).await;
    assert_eq!(second.leads_to("/imports"), "/imports");
    assert!(second.flash().contains("already uploaded"), "{}", second.flash());
    let list = ana.see("/imports").await.expect(200);
    assert_eq!(list.0.text().matches("<bdi>once.csv</bdi>").count(), 1);
    let mut elsewhere = acme.post("/imports").without_credential().header("cookie", &ana.cookie);
    elsewhere = elsewhere.bytes(form_of(ana.form(), &[], "evil.csv", b"id\n1\n"));
    elsewhere = elsewhere.header("content-type", "multipart/form-data; boundary=edge");
    Seen(elsewhere.header("sec-fetch-site", "cross-site").send().await).expect(403);
    ana.see("/imports").await.says_not("evil.csv");
}

async fn names_and_cells_are_escaped(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let file = "id,<b>Name</b>\n1,<script>x</script>\n";
    let path = upload(&acme, &ana, &[], ("<i>\u{202e}x.csv", file.as_bytes())).await.leads_to("/imports/");
    let page = ana.see(&format!("{path}/columns")).await.expect(200);
    let page =
        page.says("&#60;b&#62;Name").says("&#60;script&#62;x").says_not("<script>x").says_not("<b>Name");
    page.says("<bdi>&#60;i&#62;\u{202e}x.csv</bdi>").says_not("<i>");
    ana.see("/imports").await.says("<bdi>&#60;i&#62;\u{202e}x.csv</bdi>").says_not("<i>");
}

async fn members_see_no_pages_and_no_links(acme: Tenant) {
    let (ana, bob) = (Person::of(&acme, Role::Admin), Person::of(&acme, Role::Member));
    let path = uploaded(&acme, &ana, "id\n1\n").await;
    bob.see("/").await.expect(200).says_not("href=\"/imports\"");
    ana.see("/").await.expect(200).says("href=\"/imports\"");
    for page in ["/imports", &path, &format!("{path}/columns"), &format!("{path}/errors")] {
        bob.see(page).await.expect(403);
    }
    for action in ["columns", "layout", "start", "cancel", "undo", "remove"] {
        let fields = [("column-0", "imported_id"), ("mode", "both"), ("delimiter", ";")];
        bob.send(&format!("{path}/{action}"), &fields).await.expect(403);
    }
    upload(&acme, &bob, &[], ("bob.csv", b"id\n1\n")).await.expect(403);
    ana.see("/imports").await.says("accounts.csv").says("Uploaded").says_not("bob.csv");
    // Imports of another company are not found.
    let other = acme.neighbour();
    Person::of(&other, Role::Owner).see(&path).await.expect(404);
}

async fn older_imports_are_on_later_pages(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    for number in 0..51 {
        let name = format!("file-{number:02}.csv");
        let path = upload(&acme, &ana, &[], (&name, b"id\n1\n")).await.leads_to("/imports/");
        ana.send(&format!("{path}/start"), &[]).await.leads_to(&path);
        work_off(&acme, &path).await;
    }
    let first = ana.see("/imports").await.expect(200).says("file-50.csv").says("file-01.csv");
    let first = first.says_not("file-00.csv");
    assert!(first.0.text().len() < 100_000, "{} bytes", first.0.text().len());
    let next = first.0.text().split("href=\"/imports?before=").nth(1).and_then(|rest| rest.split('"').next());
    let next = format!("/imports?before={}", next.expect("a link to older ones"));
    ana.see(&next).await.expect(200).says("file-00.csv").says_not("file-01.csv").says("Newest");
}

async fn formats_and_stages_are_proposed_and_chosen(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let file = "id;Status;Umsatz;Letzter Kontakt\n1;Hot;1.200;03/04/2025\n2;Kunde;12.500;05/06/2025\n";
    let path = uploaded(&acme, &ana, file).await;
    let columns = format!("{path}/columns");
    let page = ana.see(&columns).await.expect(200).says("Choose a format…").says("Choose a stage…");
    let page = page.says("Decimal comma: 1.200 → 1,200.00").says("Decimal point: 1.200 → 1.20");
    page.says("Day first: 03/04/2025 → 3 Apr 2025").says("Month first: 03/04/2025 → 4 Mar 2025");
    let mut chosen = vec![
        ("column-0", "imported_id"),
        ("column-1", "status"),
        ("column-2", "captured_value"),
        ("column-3", "last_contact_at"),
        ("mode", "both"),
    ];
    let refused = ana.send(&columns, &chosen).await.expect(422);
    let refused =
        refused.says("1.200 can be read in two ways. Choose a format.").says(r#"id="format-2-note""#);
    refused.says("03/04/2025 can be read in two ways. Choose a format.").says(r#"aria-invalid="true""#);

    chosen.extend([("format-2", "decimal_comma"), ("format-3", "day_first")]);
    ana.send(&columns, &chosen).await.leads_to(&path);
    let tried = ana.see(&path).await.expect(200).says("Rows with errors").says("“Hot”").says("line 2");
    tried.says(&format!("{columns}#words"));
    let page = ana.see(&columns).await.expect(200).says("<bdi>03/04/2025</bdi> → <bdi>3 Apr 2025</bdi>");
    page.says(r#"name="word-text-0" value="Hot""#).says(r#"<option value="customer" selected>"#);
    chosen.extend([("word-text-0", "Hot"), ("word-0", "in_negotiation")]);
    ana.send(&columns, &chosen).await.leads_to(&path);
    ana.see(&path).await.expect(200).says_not("Rows with errors");
    ana.send(&format!("{path}/start"), &[]).await.leads_to(&path);
    work_off(&acme, &path).await;
    let list = format!("/accounts?import={}&import_effect=created", path.trim_start_matches("/imports/"));
    let done = ana.see(&path).await.expect(200).says("View 2 created accounts").says_not("changed account");
    done.says(&list.replace('&', "&#38;"));
    acme.account(json!({"imported_id": "3", "name": "Not of this import"})).await;
    let page = ana.see(&list).await.expect(200).says("Created by the import").says("2 accounts");
    page.says_not("Not of this import");
    let shown = acme.shown("1").await;
    assert_eq!((&shown["status"], &shown["captured_value"]), (&json!("in_negotiation"), &json!("1200.00")));
    assert_eq!(shown["last_contact_at"], json!("2025-04-03T00:00:00Z"));

    let again = uploaded(&acme, &ana, "id,status\n1,hot\n").await;
    ana.see(&format!("{again}/columns"))
        .await
        .expect(200)
        .says(r#"<option value="in_negotiation" selected>"#);
}

async fn rows_that_failed_are_fixed_and_retried(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let path = uploaded(&acme, &ana, "id,E-Mail\n1,nobody\n2,b@acme.test\n").await;
    let chosen = [("column-0", "imported_id"), ("column-1", "emails"), ("mode", "both")];
    ana.send(&format!("{path}/columns"), &chosen).await.leads_to(&path);
    let tried = ana.see(&path).await.expect(200).says("“nobody”");
    tried.says(&format!("{path}/columns#column-1"));
    ana.send(&format!("{path}/start"), &[]).await.leads_to(&path);
    work_off(&acme, &path).await;
    ana.see(&path).await.expect(200).says("Rows that failed").says("“nobody”").says("and retry");
    let to = ana.send(&format!("{path}/retry"), &[("place", "column-1")]).await.leads_to("/imports/imp_");
    let (columns, place) = to.split_once('#').expect("a place");
    assert_eq!(place, "column-1");
    let page = ana.see(columns).await.expect(200).says("<bdi>nobody</bdi>").says_not("b@acme.test");
    page.says(r#"<option value="emails" selected>"#);
    let ignored = [("column-0", "imported_id"), ("column-1", "ignore"), ("mode", "both")];
    let again = columns.trim_end_matches("/columns").to_owned();
    ana.send(columns, &ignored).await.leads_to(&again);
    ana.send(&format!("{again}/start"), &[]).await.leads_to(&again);
    work_off(&acme, &again).await;
    assert_eq!(acme.shown("1").await["name"], json!("1"));
}

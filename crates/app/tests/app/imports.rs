//! Imports: what a file does, row by row; how it is previewed, and undone afterwards.

use rapport_app::account::{DeleteAccount, PatchAccount};
use rapport_app::contact::RecordContact;
use rapport_app::conversation::StartConversation;
use rapport_app::import::{
    ErrorFile, Purpose, RemoveImport, Runner, Stepped, UndoImport, Upload, UploadOptions, begin,
};
use rapport_app::retention::PruneImports;
use rapport_app::{Access, Error};
use rapport_domain::account::{Account, Patch};
use rapport_domain::contact::{self, NewContact};
use rapport_domain::conversation::Start;
use rapport_domain::event::Kind;
use rapport_domain::history::Actor;
use rapport_domain::id::ImportId;
use rapport_domain::import::charset::Charset;
use rapport_domain::import::mapping::Target;
use rapport_domain::import::{Counts, IDLE_DAYS, Import, MAX_OPEN, Request, State, UNDO_DAYS};
use rapport_domain::member::Role;
use rapport_domain::pipeline::{Source, Status};
use rapport_domain::time::Time;
use rapport_store::account_list::{AccountFilter, ListAccounts, Sort};
use rapport_store::{Query as _, import};
use rapport_testkit::{TestApp, TestCompany, block_on};
use serde_json::{Value, json};

use crate::{kinds, moves, payloads, refusal};

pub async fn try_upload(
    company: &TestCompany,
    access: &Access,
    bytes: &[u8],
    charset: Option<&str>,
) -> Result<Import, Error> {
    let charset = charset.map(|label| Charset::parse(label).expect("an encoding"));
    let options = UploadOptions { filename: "accounts.csv".to_owned(), charset, delimiter: None };
    let mut upload = Upload::begin(company.app(), access, options).await?;
    for piece in bytes.chunks(100_000) {
        upload.take(piece).await?;
    }
    upload.finish().await
}

pub fn upload(company: &TestCompany, text: impl AsRef<[u8]>) -> Import {
    block_on(try_upload(company, company.token(), text.as_ref(), None)).expect("uploaded")
}

pub fn request(body: Value) -> Request {
    Request::parse(body.as_object().expect("an object")).expect("a request")
}

pub fn start(company: &TestCompany, id: ImportId, purpose: Purpose, body: Value) -> Result<Import, Error> {
    block_on(begin(company.app(), company.token(), id, request(body), (purpose, None)))
}

pub fn finish(company: &TestCompany, id: ImportId) -> Import {
    let mut runner = Runner::new(company.app(), company.id(), id);
    while block_on(runner.step()).expect("a step") == Stepped::More {}
    seen(company, id)
}

pub fn seen(company: &TestCompany, id: ImportId) -> Import {
    company.read(move |snapshot| import::get(snapshot, id)).expect("there")
}

/// Uploads a file and imports it.
pub fn imported(company: &TestCompany, text: impl AsRef<[u8]>, body: Value) -> Import {
    let id = upload(company, text).id;
    start(company, id, Purpose::Run, body).expect("started");
    finish(company, id)
}

fn tried(company: &TestCompany, id: ImportId, body: Value) -> Value {
    start(company, id, Purpose::Preview, body).expect("started");
    finish(company, id).preview.expect("a preview")
}

pub fn undone(company: &TestCompany, id: ImportId) -> Import {
    company.write(UndoImport { id, runner: None }).expect("begun");
    finish(company, id)
}

fn counts([created, updated, unchanged, skipped, failed]: [i64; 5]) -> Counts {
    Counts { created, updated, unchanged, skipped, failed, promo_codes_unmatched: 0 }
}

/// All accounts, oldest first, without the time of their last change.
fn accounts(company: &TestCompany) -> Vec<Account> {
    let now = company.app().now();
    let page = company.read(move |snapshot| {
        let (filter, sort) = (AccountFilter::default(), Sort::default());
        ListAccounts { filter, sort, cursor: None, limit: 1_000, now }.run(snapshot)
    });
    let mut accounts = page.items;
    accounts.sort_by_key(|account| account.id);
    accounts.into_iter().map(|account| Account { updated_at: account.created_at, ..account }).collect()
}

fn names(company: &TestCompany) -> Vec<String> {
    accounts(company).into_iter().map(|account| account.name).collect()
}

fn error_file(company: &TestCompany, id: ImportId) -> String {
    block_on(async {
        let mut file = ErrorFile::open(company.app(), company.token(), id).await.expect("opened");
        let mut whole = Vec::new();
        while let Some(part) = file.next().await.expect("a part") {
            whole.extend(part);
        }
        String::from_utf8(whole).expect("UTF-8")
    })
}

#[test]
fn rows_create_and_update_by_the_same_rules_as_any_route() {
    TestApp::on_both(|app| {
        app.channel("Fair", &["SPRING"]);
        let known = app.upsert(json!({
            "imported_id": "crm-1", "name": "Acme", "status": "prospect", "custom_fields": {"seats": 3, "kept": 1},
        }));
        app.upsert(json!({"imported_id": "crm-2", "name": "Globex", "status": "lost"}));
        app.clock().advance_days(1);
        let file = "Record ID;Company;Stage;Promo code;Value;Currency;Seats\n\
                    crm-1;Acme Inc;In trial;spring;1200.50;eur;4\n\
                    crm-2;Globex;LOST;;;;\n\
                    crm-3;Initech;customer;nope;;;7\n\
                    ;No Key;;;;;\n\
                    crm-4;Hooli;nowhere;;1,5;;\n\
                    ;;;;;;\n";
        let uploaded = upload(app, file);
        assert_eq!((uploaded.state, uploaded.delimiter.text().as_str()), (State::Uploaded, ";"));
        assert_eq!(uploaded.mapping.0[6], Target::Field("seats".into()));
        let id = uploaded.id;
        start(app, id, Purpose::Run, json!({})).unwrap();
        let done = finish(app, id);
        assert_eq!(done.counts, Counts { promo_codes_unmatched: 1, ..counts([2, 1, 1, 1, 1]) });
        assert_eq!((done.state, done.rows_done, done.rows_total), (State::Finished, 6, Some(6)));

        let acme = app.account("crm-1");
        assert_eq!((acme.name.as_str(), acme.status), ("Acme Inc", Status::InTrial));
        assert_eq!(acme.promo_code.as_ref().unwrap().as_str(), "SPRING");
        assert_eq!(acme.acquired_at, Some(app.clock().now()));
        assert_eq!(acme.custom_fields.as_json(), r#"{"kept":1,"seats":4}"#);
        assert_eq!(acme.value.unwrap().amount_text(), "1200.50");
        assert_eq!(
            moves(app, known.account.id),
            [
                (None, Status::Prospect, Source::Upsert),
                (Some(Status::Prospect), Status::InTrial, Source::Import),
            ]
        );
        let Actor::Token { name, .. } = &app.history(known.account.id)[1].actor else { panic!("the token") };
        assert_eq!(name, "First token", "the person who started it is the actor");
        assert_eq!(payloads(app, known.account.id)[1]["account"]["name"], json!("Acme Inc"));

        let initech = app.account("crm-3");
        assert_eq!(kinds(app, initech.id), [Kind::AccountCreated]);
        assert_eq!(payloads(app, initech.id)[0]["source"], json!("import"));
        assert_eq!(initech.custom_fields.as_json(), r#"{"seats":"7"}"#);
        assert_eq!(kinds(app, app.account("crm-2").id), [Kind::AccountCreated], "the row changed nothing");
        assert!(names(app).contains(&"No Key".to_owned()));
        assert_eq!(app.find("crm-4"), None);
        let errors = error_file(app, id);
        let lines: Vec<&str> = errors.trim_start_matches('\u{feff}').lines().collect();
        assert_eq!(
            lines[0],
            "Record ID,Company,Stage,Promo code,Value,Currency,Seats,import_line,import_error"
        );
        assert!(lines[1].starts_with("crm-4,Hooli,nowhere,,\"1,5\",,,6,\"Stage: must be one of"), "{errors}");
        assert!(lines[1].contains("Value: must be an amount such as 1,200.50"), "{errors}");
        assert_eq!(lines.len(), 2);
    });
}

#[test]
fn a_renamed_account_is_found_by_its_new_name_only() {
    TestApp::on_both(|app| {
        app.upsert(json!({"imported_id": "crm-1", "name": "Acme"}));
        let found = |word: &str| {
            let filter = AccountFilter { q: Some(word.to_owned()), ..AccountFilter::default() };
            let now = app.app().now();
            let list = ListAccounts { filter, sort: Sort::default(), cursor: None, limit: 10, now };
            app.read(move |snapshot| list.run(snapshot)).items.len()
        };
        let id = imported(app, "id,name\ncrm-1,Globex\n", json!({})).id;
        assert_eq!((found("globex"), found("acme")), (1, 0));
        undone(app, id);
        assert_eq!((found("globex"), found("acme")), (0, 1));
    });
}

#[test]
fn modes_say_what_rows_may_do() {
    let file = "id,name\ncrm-1,New name\ncrm-2,Second\n,Unkeyed\n";
    let table = [
        ("create", counts([2, 0, 0, 1, 0]), "Old name"),
        ("update", counts([0, 1, 0, 2, 0]), "New name"),
        ("both", counts([2, 1, 0, 0, 0]), "New name"),
    ];
    TestApp::on_both(|app| {
        for (mode, expected, name) in table {
            let company = app.company(mode);
            company.upsert(json!({"imported_id": "crm-1", "name": "Old name"}));
            let id = upload(&company, file).id;
            let preview = tried(&company, id, json!({"mode": mode}));
            assert_eq!(preview["counts"], json!(expected), "{mode}");
            start(&company, id, Purpose::Run, json!({"mode": mode})).unwrap();
            assert_eq!(finish(&company, id).counts, expected, "{mode}");
            assert_eq!(company.account("crm-1").name, name, "{mode}");
        }
    });
}

#[test]
fn rows_of_one_key_apply_in_their_order_however_far_apart() {
    TestApp::on_both(|app| {
        let filler =
            (0..1_100).map(|number| format!("other-{number},x,prospect\n")).collect::<Vec<_>>().concat();
        let file = format!(
            "id,name,status\ncrm-1,First,prospect\ncrm-1,Second,contacted\n{filler}crm-1,Third,customer\n"
        );
        let id = upload(app, file).id;
        let preview = tried(app, id, json!({}));
        assert_eq!(preview["counts"], json!(counts([1_101, 2, 0, 0, 0])));
        start(app, id, Purpose::Run, json!({})).unwrap();
        let done = finish(app, id);
        assert_eq!((done.counts, done.accounts), (counts([1_101, 2, 0, 0, 0]), 1_101));
        let account = app.account("crm-1");
        assert_eq!((account.name.as_str(), account.status), ("Third", Status::Customer));
        assert_eq!(
            kinds(app, account.id),
            [Kind::AccountCreated, Kind::AccountStatusChanged, Kind::AccountStatusChanged]
        );
        assert_eq!(undone(app, id).undo.removed, 1_101, "the import created it, whatever came later");
        assert_eq!(app.rows("account"), 0);
    });
}

#[test]
fn a_dry_run_says_what_would_happen_and_changes_nothing() {
    TestApp::on_both(|app| {
        app.upsert(json!({"imported_id": "crm-1", "name": "Acme", "status": "prospect"}));
        let rows = (0..30).map(|number| format!("bad-{number},,nowhere\n")).collect::<Vec<_>>().concat();
        let id = upload(app, format!("id,name,status\ncrm-1,Acme Inc,Lost\nnew,,\n{rows}")).id;
        let before = (accounts(app), app.rows("event"), app.rows("status_history"), app.rows("import_error"));
        let preview = tried(app, id, json!({}));
        assert_eq!(preview["counts"], json!(counts([1, 1, 0, 0, 30])));
        assert_eq!((preview["rows"].clone(), preview["exact"].clone()), (json!(32), json!(true)));
        let differences = preview["differences"].as_array().unwrap();
        let shown: Vec<_> = differences
            .iter()
            .map(|shown| {
                (
                    shown["line"].clone(),
                    shown["field"].clone(),
                    shown["before"].clone(),
                    shown["after"].clone(),
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                (json!(2), json!("name"), json!("Acme"), json!("Acme Inc")),
                (json!(2), json!("status"), json!("prospect"), json!("lost")),
            ]
        );
        assert_eq!(differences[0]["account"]["imported_id"], json!("crm-1"));
        assert_eq!(preview["errors"].as_array().unwrap().len(), 20, "the first ones");
        assert_eq!(
            (&preview["failures"][0]["rows"], &preview["failures"][0]["line"]),
            (&json!(30), &json!(4))
        );
        assert_eq!(preview["errors"][0]["line"], json!(4));
        let after = (accounts(app), app.rows("event"), app.rows("status_history"), app.rows("import_error"));
        assert_eq!(after, before);
        let ready = seen(app, id);
        assert_eq!((ready.state, ready.rows_done, ready.counts), (State::Uploaded, 0, Counts::default()));
        assert_eq!(ready.rows_total, Some(32));
    });
}

#[test]
fn files_in_any_usual_encoding_come_through() {
    let utf16: Vec<u8> = [0xfeff]
        .into_iter()
        .chain("id\tname\ncrm-1\tGröße €\n".encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    let table: [(&str, Vec<u8>, &str); 5] = [
        ("UTF-8", "id,name\ncrm-1,Größe €\n".into(), "UTF-8"),
        ("with a mark", "\u{feff}id,name\r\ncrm-1,Größe €\r\n".into(), "UTF-8"),
        ("Windows-1252", b"id;name\ncrm-1;Gr\xf6\xdfe \x80\n".to_vec(), "windows-1252"),
        ("UTF-16", utf16, "UTF-16LE"),
        ("CR alone", "id,name\rcrm-1,\"Größe €\"".into(), "UTF-8"),
    ];
    TestApp::on_both(|app| {
        for (number, (what, bytes, charset)) in table.iter().enumerate() {
            let company = app.company(&format!("company-{number}"));
            let done = imported(&company, bytes, json!({}));
            assert_eq!((done.charset.name(), done.counts.created), (*charset, 1), "{what}");
            assert_eq!(company.account("crm-1").name, "Größe €", "{what}");
        }
    });
}

#[test]
fn a_wrong_guess_is_put_right_without_another_upload() {
    TestApp::on_both(|app| {
        let id = upload(app, b"id,name\ncrm-1,\xe9t\xe9|x\n").id;
        let retried = json!({"encoding": "iso-8859-2", "delimiter": "|", "mapping": {"id,name": "name"}});
        assert_eq!(
            refusal(start(app, id, Purpose::Preview, json!({"mapping": {"nope": "name"}}))),
            "invalid /mapping/nope unknown_column"
        );
        start(app, id, Purpose::Preview, retried).unwrap();
        let found = finish(app, id);
        assert_eq!((found.column_names(), found.charset.name()), (vec!["id,name"], "ISO-8859-2"));
        assert_eq!(found.preview.unwrap()["counts"]["failed"], json!(1), "two cells, one column");
        start(
            app,
            id,
            Purpose::Run,
            json!({"delimiter": ",", "mapping": {"id": "imported_id", "name": "name"}}),
        )
        .unwrap();
        finish(app, id);
        assert_eq!(app.account("crm-1").name, "été|x");
    });
}

#[test]
fn nothing_to_import_is_fine_and_no_file_is_not() {
    TestApp::on_both(|app| {
        let done = imported(app, "id,name\n", json!({}));
        assert_eq!((done.state, done.counts, done.rows_total), (State::Finished, Counts::default(), Some(0)));
        assert_eq!(undone(app, done.id).state, State::Undone);
        for file in ["", "\n\n"] {
            let refused = block_on(try_upload(app, app.token(), file.as_bytes(), None));
            assert_eq!(refusal(refused), "invalid  no_header");
        }
        let list = app.read(|snapshot| import::list(snapshot, None, 10));
        assert_eq!(list.items.len(), 1, "a refused file leaves nothing to see");
    });
}

#[test]
fn odd_rows_fail_alone_and_formulas_are_guarded() {
    TestApp::on_both(|app| {
        let huge = "x".repeat(300_000);
        let file = format!(
            "id,name,note\n=1+1,@cmd,won\0der\ncrm-1,Acme,fine\nragged\ncrm-2,\"{huge}\",\n\
             crm-3,Hooli,{huge}\n\"+open,Globex,fine\ncrm-4,Initech,fine\n"
        );
        let done = imported(app, file, json!({}));
        assert_eq!(done.counts, counts([2, 0, 0, 0, 5]));
        assert_eq!(names(app), ["Acme", "Initech"]);
        let errors = error_file(app, done.id);
        assert!(
            errors.contains("'=1+1,'@cmd,won\0der,2,note: must not contain the NUL"),
            "{}",
            &errors[..200]
        );
        assert!(errors.contains("has 1 cells, but the header has 3"));
        assert!(errors.contains("name: must be at most 255 characters"));
        assert!(errors.contains("custom_fields must be at most 65536 bytes"));
        assert!(errors.contains("contains a quote that is never closed"));
    });
}

#[test]
fn the_error_file_can_be_corrected_and_imported() {
    TestApp::on_both(|app| {
        let first = imported(app, "id,name,status\ncrm-1,-Acme,nowhere\n", json!({}));
        let corrected = error_file(app, first.id).replace(",nowhere,", ",customer,");
        let second = imported(app, corrected, json!({}));
        assert_eq!(second.counts, counts([1, 0, 0, 0, 0]));
        let account = app.account("crm-1");
        assert_eq!((account.name.as_str(), account.custom_fields.as_json()), ("-Acme", "{}"));
    });
}

#[test]
fn a_mapping_is_remembered_for_the_same_columns() {
    TestApp::on_both(|app| {
        let mapping = json!({"mapping": {"Key": "imported_id", "Title": "name", "Plan": "ignore"}});
        imported(app, "Key,Title,Plan\n1,Acme,x\n", mapping);
        let again = upload(app, "Plan,Key,Title\ny,2,Globex\n");
        assert_eq!(again.mapping.0, [Target::Ignore, Target::ImportedId, Target::Name]);
        assert!(again.remembered);
        let other = upload(app, "Key,Title\n2,Globex\n");
        assert!(!other.remembered);
        assert!(!upload(&app.company("globex"), "Key,Title,Plan\n").remembered);
    });
}

#[test]
fn an_undo_restores_exactly() {
    TestApp::on_both(|app| {
        app.channel("Fair", &["ONE"]);
        app.channel("Web", &["TWO"]);
        app.upsert(json!({
            "imported_id": "crm-1", "name": "Acme", "status": "customer", "promo_code": "ONE",
            "captured_value": "10", "captured_value_currency": "EUR", "custom_fields": {"plan": "pro", "seats": 3},
        }));
        app.upsert(json!({"imported_id": "crm-2", "name": "Globex"}));
        app.upsert(json!({"imported_id": "crm-3", "name": "Initech", "status": "lost"}));
        let before = accounts(app);
        app.clock().advance_days(3);
        let file = "id,name,status,promo_code,value,currency,cadence_days,plan,seats,new\n\
                    crm-1,Acme Inc,lost,two,12.3456,USD,7,max,4,x\n\
                    crm-2,Globex Corp,customer,two,1,,9,a,,b\n\
                    crm-3,Initech,lost,,,,,,,\n\
                    crm-4,Hooli,customer,one,,,,,,\n\
                    crm-1,Acme Ltd,prospect,,,,,,,\n";
        let done = imported(app, file, json!({}));
        assert_eq!(done.counts, counts([1, 3, 1, 0, 0]));
        app.clock().advance_days(1);
        let undo = undone(app, done.id);
        assert_eq!((undo.undo.restored, undo.undo.removed, undo.undo.kept, undo.undo.done), (2, 1, 0, 3));
        assert_eq!(accounts(app), before);
        let acme = app.account("crm-1");
        assert_eq!(acme.updated_at, app.clock().now());
        assert_eq!(
            moves(app, acme.id).last(),
            Some(&(Some(Status::Prospect), Status::Customer, Source::Import))
        );
        assert_eq!(kinds(app, acme.id).last(), Some(&Kind::AccountStatusChanged));
        let again = app.write(UndoImport { id: done.id, runner: None });
        assert_eq!(refusal(again), "conflict not_ended");
    });
}

#[test]
fn an_undo_keeps_what_somebody_touched_since() {
    TestApp::on_both(|app| {
        app.upsert(json!({"imported_id": "old", "name": "Old", "custom_fields": {"a": "1", "b": "1"}}));
        let file = "id,name,a,b\nold,New,2,2\nedited,E,,\nmoved,M,,\nactive,A,,\ncalled,C,,\nwritten,W,,\ndeleted,D,,\n\
             untouched,U,,\n";
        let done = imported(app, file, json!({}));
        app.clock().advance_seconds(60);
        let patch = Patch { name: Some("Edited".to_owned()), ..Patch::default() };
        app.write(PatchAccount { id: app.account("edited").id, patch, promo_code: None }).unwrap();
        app.upsert(json!({"imported_id": "moved", "status": "customer"}));
        app.ingest(json!([{"imported_id": "active", "kind": "app_opened"}]));
        let contact = NewContact { kind: contact::Kind::Call, note: None, occurred_at: Time::from_micros(0) };
        app.write(RecordContact { account: app.account("called").id, contact }).unwrap();
        let request = Start { subject: None, channel: "email".to_owned() };
        app.write(StartConversation { account: app.account("written").id, request }).unwrap();
        app.write(DeleteAccount(app.account("deleted").id)).unwrap();
        app.upsert(json!({"imported_id": "old", "custom_fields": {"a": "mine"}}));
        let undo = undone(app, done.id).undo;
        assert_eq!((undo.restored, undo.removed, undo.kept), (0, 1, 6));
        let mut left: Vec<String> =
            accounts(app).into_iter().filter_map(|account| account.imported_id).collect();
        left.sort_unstable();
        assert_eq!(left, ["active", "called", "edited", "moved", "old", "written"]);
        let old = app.account("old");
        assert_eq!((old.name.as_str(), old.custom_fields.as_json()), ("Old", r#"{"a":"mine","b":"1"}"#));
    });
}

#[test]
fn an_import_belongs_to_its_company_and_its_admins() {
    TestApp::on_both(|app| {
        let globex = app.company("globex");
        let id = imported(&globex, "id\n1\n", json!({})).id;
        assert_eq!(app.read(move |snapshot| import::get(snapshot, id)), None);
        assert_eq!(refusal(app.write(UndoImport { id, runner: None })), "no such import");
        assert_eq!(refusal(app.write(RemoveImport(id))), "no such import");
        assert_eq!(refusal(start(app, id, Purpose::Run, json!({}))), "no such import");
        let member = globex.token_of(Role::Member);
        let refused = block_on(try_upload(&globex, &member, b"id\n", None));
        assert_eq!(refusal(refused), "forbidden role_required");
        let undo = globex.write_as(&member, UndoImport { id, runner: None });
        assert_eq!(refusal(undo), "forbidden role_required");
        assert_eq!(refusal(globex.write_as(&member, RemoveImport(id))), "forbidden role_required");
    });
}

#[test]
fn what_is_past_its_time_is_let_go() {
    TestApp::on_both(|app| {
        let prune = || while app.write_as(&Access::System(app.id()), PruneImports).unwrap() {};
        let done = imported(app, "id,status\n1,\n2,nowhere\n", json!({}));
        let idle = upload(app, "id\n1\n");
        assert_eq!(app.rows("import_chunk"), 2);
        prune();
        assert_eq!(
            (app.rows("import_chunk"), app.rows("import_error"), app.rows("import_change")),
            (1, 1, 1)
        );
        app.clock().advance_days(IDLE_DAYS);
        prune();
        assert_eq!(app.rows("import_chunk"), 1);
        app.clock().advance_seconds(1);
        prune();
        assert_eq!((app.rows("import_chunk"), app.rows("import")), (0, 1));
        assert_eq!(app.read(move |snapshot| import::get(snapshot, idle.id)), None);
        app.clock().advance_days(UNDO_DAYS - IDLE_DAYS);
        prune();
        assert_eq!((app.rows("import_error"), app.rows("import_change")), (0, 0));
        assert_eq!(refusal(app.write(UndoImport { id: done.id, runner: None })), "conflict undo_expired");
        app.write(RemoveImport(done.id)).unwrap();
        prune();
        assert_eq!((app.rows("import"), app.rows("account")), (0, 1));
    });
}

#[test]
fn a_deleted_account_leaves_nothing_in_the_undo() {
    TestApp::on_both(|app| {
        imported(app, "id\n1\n2\n", json!({}));
        assert_eq!(app.rows("import_change"), 2);
        app.write(DeleteAccount(app.account("1").id)).unwrap();
        assert_eq!(app.rows("import_change"), 1);
    });
}

#[test]
fn only_so_many_may_be_open() {
    TestApp::on_both(|app| {
        for _ in 0..MAX_OPEN {
            upload(app, "id\n");
        }
        let refused = block_on(try_upload(app, app.token(), b"id\n", None));
        assert_eq!(refusal(refused), "conflict too_many_imports");
    });
}

//! Everything that is stored about a company or an account, in one file: every row once, nothing of others, and no secret.

use std::collections::{BTreeMap, BTreeSet};

use rapport_app::account::DeleteAccount;
use rapport_app::contact::RecordContact;
use rapport_app::full_export::{Place, Scope, Subject, Writer, named, page, subject};
use rapport_app::spreadsheet::cell;
use rapport_domain::contact::NewContact;
use rapport_domain::file_format::Format;
use rapport_domain::id::AccountId;
use rapport_domain::member::Role;
use rapport_store::Database;
use rapport_store::company_data::{described, exported};
use rapport_testkit::{Archive, TestApp, TestCompany, create_webhook, raw};
use serde_json::{Value, json};

use crate::every_table::{fill, with_column};

/// The bytes of a file, in the parts in which they are sent.
fn parts(company: &TestCompany, scope: &Scope, format: Format) -> Vec<Vec<u8>> {
    let known = company.read(rapport_store::company::get).unwrap();
    let mut writer = Writer::begin(format, scope, &known, company.app().now()).unwrap();
    let (mut next, mut parts) = (Some(Place::FIRST), Vec::new());
    while let Some(place) = next {
        let scope = scope.clone();
        let found = company.read(move |snapshot| page(snapshot, &scope, &place));
        assert!(found.rows.len() <= 100, "a page of {} is bounded", found.table);
        let following = found.next.clone();
        parts.push(writer.write(found).unwrap());
        next = following;
    }
    parts
}

/// The whole file, as its objects.
fn lines(company: &TestCompany, scope: &Scope) -> Vec<Value> {
    let text = String::from_utf8(parts(company, scope, Format::JsonLines).concat()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn export(company: &TestCompany) -> Vec<Value> {
    lines(company, &Scope::Company)
}

fn of(company: &TestCompany, account: AccountId) -> Scope {
    Scope::Account(company.read(move |snapshot| subject(snapshot, account)).expect("known"))
}

fn rows<'a>(file: &'a [Value], table: &str) -> Vec<&'a Value> {
    file.iter().filter(|line| line["table"] == table).map(|line| &line["row"]).collect()
}

/// How many rows each table has that has some.
fn counts(file: &[Value]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for table in file.iter().filter_map(|line| line["table"].as_str()) {
        *counts.entry(table.to_owned()).or_default() += 1;
    }
    counts
}

/// An account with something in most tables.
fn furnished(company: &TestCompany, imported_id: &str, name: &str) -> AccountId {
    let body =
        json!({"imported_id": imported_id, "name": name, "status": "customer", "custom_fields": {"a": 1}});
    let id = company.upsert(body).account.id;
    company.ingest(json!([
        {"imported_id": imported_id, "kind": "feature_used", "feature": "=export"},
        {"imported_id": imported_id, "kind": "app_opened"},
        {"imported_id": imported_id, "kind": "churned"},
        {"imported_id": imported_id, "kind": "unheard_of"},
    ]));
    let contact = json!({"kind": "call", "note": format!("A call with {name}")});
    let contact = NewContact::parse(contact.as_object().unwrap(), company.app().now()).unwrap();
    company.write(RecordContact { account: id, contact }).unwrap();
    id
}

#[test]
fn a_company_finds_all_its_data() {
    TestApp::on_both(|app| {
        app.company("globex").upsert(json!({"imported_id": "theirs", "name": "Of Globex"}));
        app.channel("Fair", &["FAIR"]);
        for number in 0..230 {
            let name = format!("Client {number}");
            let body = json!({
                "imported_id": format!("crm-{number:03}"), "name": name, "status": "customer", "promo_code": "fair",
                "captured_value": "1200.50", "captured_value_currency": "EUR", "custom_fields": {"seats": 1.5},
            });
            app.upsert(body);
        }
        app.ingest(json!([{"imported_id": "crm-000", "kind": "feature_used", "feature": "x"}]));
        app.employ("bo@acme.test", "Bo", Role::Admin);
        let file = export(app);
        assert_eq!(file[0]["format"], "rapport company export");
        assert_eq!((&file[0]["project"], &file[0]["version"]), (&json!("acme"), &json!(1)));
        assert_eq!(file[0]["settings"]["name"], "acme");
        let end = file.last().unwrap();
        assert_eq!((&end["end"], &end["rows"]), (&json!(true), &json!(file.len() - 2)));
        assert_eq!(end["tables"]["account"], json!(230));
        let accounts = rows(&file, "account");
        let ids: BTreeSet<&str> = accounts.iter().map(|row| row["imported_id"].as_str().unwrap()).collect();
        assert_eq!((accounts.len(), ids.len()), (230, 230), "each once");
        let first = accounts.iter().find(|row| row["imported_id"] == "crm-000").unwrap();
        assert_eq!(first["id"], app.account("crm-000").id.to_string());
        assert_eq!((&first["value_amount"], &first["value_currency"]), (&json!("1200.5"), &json!("EUR")));
        assert_eq!(first["custom_fields"].to_string(), r#"{"seats":1.5}"#);
        assert_eq!(rows(&file, "status_history").len(), 230);
        assert_eq!(rows(&file, "activity").len(), 1);
        let members: Vec<&Value> = rows(&file, "member").into_iter().map(|row| &row["email"]).collect();
        assert!(members.contains(&&json!("bo@acme.test")) && members.len() == 2, "{members:?}");
        assert!(!json!(file).to_string().contains("Globex"));
    });
}

#[test]
fn no_secret_and_no_hash_is_in_it() {
    TestApp::on_both(|app| {
        let body = json!({"url": "https://example.com/hook", "events": ["account.created"]});
        let secret = app.write(create_webhook(app.app(), &body)).unwrap().secret;
        let account = furnished(app, "crm-1", "Nordlys");
        fill(app, app.id(), 3);
        for scope in [Scope::Company, of(app, account)] {
            let file = lines(app, &scope);
            let csv: Vec<u8> = parts(app, &scope, Format::Csv).concat();
            let csv = Archive::read(&csv);
            let texts: Vec<&str> = csv.names.iter().map(|name| csv.text(name)).collect();
            for hidden in [app.token_text(), app.ingest_key_text(), &secret, "no password"] {
                assert!(!json!(file).to_string().contains(hidden), "{hidden}");
                assert!(!texts.iter().any(|text| text.contains(hidden)), "{hidden}");
            }
            for line in file {
                let Some(row) = line["row"].as_object() else { continue };
                for name in ["hash", "secret", "password_hash", "content", "excerpt"] {
                    assert!(!row.contains_key(name), "{line}");
                }
            }
        }
    });
}

#[test]
fn every_exported_table_is_in_it() {
    TestApp::on_both(|app| {
        fill(app, app.id(), 150);
        let file = export(app);
        for table in described().into_iter().filter(|table| !table.columns.is_empty()) {
            let found = rows(&file, table.table);
            // People come from another table, which knows none of these. A company has one provider.
            let least = if ["member", "sso"].contains(&table.table) { 1 } else { 150 };
            assert!(found.len() >= least, "{}: {}", table.table, found.len());
            for row in found {
                let names: BTreeSet<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
                assert_eq!(names, table.columns.iter().copied().collect(), "{}", table.table);
            }
        }
    });
}

/// The account of one of the rows that `fill` adds to every table: each has one row of it.
fn filled(app: &TestApp, number: usize) -> Subject {
    let id = AccountId::from_bytes(*format!("{number:016}").as_bytes().first_chunk().unwrap());
    let target = format!("UPDATE audit SET target = '{id}' WHERE target = 'text-{number}'");
    raw::run(app.database(), &target);
    Subject { id, imported_id: Some(format!("text-{number}")) }
}

/// The bytes of such an id, in SQL.
fn bytes(app: &TestApp, id: AccountId) -> String {
    let text = std::str::from_utf8(id.as_bytes()).unwrap();
    match app.database() {
        Database::Sqlite(_) => format!("CAST('{text}' AS BLOB)"),
        Database::Postgres(_) => format!("convert_to('{text}', 'UTF8')"),
    }
}

#[test]
fn an_account_finds_its_row_in_every_table_that_has_one() {
    TestApp::on_both(|app| {
        fill(app, app.id(), 30);
        fill(app, app.company("globex").id(), 30);
        let subject = filled(app, 7);
        let file = lines(app, &Scope::Account(subject.clone()));
        let text = subject.id.to_string();
        assert_eq!(
            (&file[0]["format"], &file[0]["account"]),
            (&json!("rapport account export"), &json!(text))
        );
        let tables = exported(&Scope::Account(subject));
        let expected: BTreeMap<String, usize> =
            tables.iter().map(|(table, _)| ((*table).to_owned(), 1)).collect();
        assert_eq!(counts(&file), expected, "one row of each table, and none of the other company");
        for line in &file[1..file.len() - 1] {
            let (table, row) = (line["table"].as_str().unwrap(), &line["row"]);
            match table {
                "account" => assert_eq!(row["id"], text),
                "audit" => assert_eq!(row["target"], text),
                "ingest_reject" => assert_eq!(row["account"], "text-7"),
                "attempt" => assert_eq!(row["number"], 7),
                _ => assert_eq!(row["account"], text, "{table}"),
            }
        }
        assert!(tables.len() > 15, "{tables:?}");
        // A table about accounts that isn't exported is derived from others.
        let listed = described();
        for table in with_column(app, "account").into_keys() {
            let known = listed.iter().find(|known| known.table == table).expect("listed");
            let is_derived = ["account_change", "account_field", "account_word", "cadence", "mail_reference"]
                .contains(&table.as_str());
            assert_eq!(
                known.is_of_account, !is_derived,
                "say in company_data/tables.rs how {table} belongs to accounts"
            );
        }
    });
}

#[test]
fn an_account_of_any_size_is_read_page_by_page() {
    TestApp::on_both(|app| {
        fill(app, app.id(), 150);
        let subject = filled(app, 7);
        let id = bytes(app, subject.id);
        // These have one row of each account.
        let single = ["account_seen", "account_tombstone", "cadence"];
        for (table, columns) in with_column(app, "account") {
            let is_id = columns
                .iter()
                .any(|(name, kind)| name == "account" && ["blob", "bytea"].contains(&kind.as_str()));
            if is_id && !single.contains(&table.as_str()) {
                raw::run(app.database(), &format!("UPDATE {table} SET account = {id}"));
            }
        }
        raw::run(app.database(), &format!("UPDATE audit SET target = '{}'", subject.id));
        // Many events that were sent nowhere come before those that were.
        raw::run(app.database(), "DELETE FROM delivery WHERE created_at <= 70");
        raw::run(app.database(), "DELETE FROM attempt WHERE number <= 70");
        let file = lines(app, &Scope::Account(subject));
        let found = counts(&file);
        for table in ["account_address", "account_site", "status_history", "contact", "contact_episode"] {
            assert_eq!(found[table], 150, "{table}");
        }
        for table in ["conversation", "message", "activity", "activity_count", "event", "import_change"] {
            assert_eq!(found[table], 150, "{table}");
        }
        assert_eq!((found["delivery"], found["attempt"]), (80, 80));
        assert!(found["audit"] >= 150);
        assert_eq!((found["account"], found["account_seen"], found["account_tombstone"]), (1, 1, 1));
        let all: BTreeSet<String> = file.iter().map(Value::to_string).collect();
        assert_eq!(all.len(), file.len(), "each row once");
    });
}

/// The rows of a company's file that are about an account.
fn about(file: &[Value], id: &str, imported_id: &str) -> BTreeSet<String> {
    let deliveries: BTreeSet<&str> = rows(file, "delivery")
        .into_iter()
        .filter(|row| row["account"] == id)
        .filter_map(|row| row["id"].as_str())
        .collect();
    let is_about = |line: &&Value| {
        let row = &line["row"];
        match line["table"].as_str() {
            None => false,
            Some("account") => row["id"] == id,
            Some("attempt") => row["delivery"].as_str().is_some_and(|id| deliveries.contains(id)),
            Some("audit") => row["target"] == id,
            Some(_) => row["account"] == id || row["account"] == imported_id,
        }
    };
    file.iter().filter(is_about).map(Value::to_string).collect()
}

#[test]
fn an_account_has_what_the_company_has_of_it_and_nothing_of_another() {
    TestApp::on_both(|app| {
        let globex = app.company("globex");
        furnished(&globex, "crm-1", "Of Globex");
        let body = json!({"url": "https://example.com/hook", "events": ["account.created", "account.status_changed"]});
        app.write(create_webhook(app.app(), &body)).unwrap();
        let own = furnished(app, "crm-1", "Nordlys");
        let other = furnished(app, "crm-2", "Of another");
        let company = export(app);
        for (id, imported_id, hidden) in [(own, "crm-1", "Of another"), (other, "crm-2", "Nordlys")] {
            let file = lines(app, &of(app, id));
            let found: BTreeSet<String> = file[1..file.len() - 1].iter().map(Value::to_string).collect();
            assert_eq!(found, about(&company, &id.to_string(), imported_id));
            let text = json!(file).to_string();
            assert!(!text.contains(hidden) && !text.contains("Globex"), "{text}");
            let tables = counts(&file);
            for table in
                ["account", "status_history", "contact", "activity", "event", "delivery", "ingest_reject"]
            {
                assert!(tables.contains_key(table), "{table}: {tables:?}");
            }
        }
        let theirs = globex.account("crm-1").id;
        assert_eq!(app.read(move |snapshot| subject(snapshot, theirs)), None);
        let by_name =
            |name: &'static str| app.read(move |snapshot| named(snapshot, name)).map(|found| found.id);
        assert_eq!((by_name("crm-1"), by_name("crm-9"), by_name("acc_nonsense")), (Some(own), None, None));
        let text = own.to_string();
        assert_eq!(app.read(move |snapshot| named(snapshot, &text)).map(|found| found.id), Some(own));
    });
}

#[test]
fn a_deleted_account_still_has_what_is_kept_of_it() {
    TestApp::on_both(|app| {
        let gone = furnished(app, "crm-1", "Nordlys");
        app.write(DeleteAccount(gone)).unwrap();
        // Another account may have its imported_id by now.
        app.upsert(json!({"imported_id": "crm-1", "name": "New"}));
        let file = lines(app, &of(app, gone));
        let tables: Vec<String> = counts(&file).into_keys().collect();
        assert_eq!(tables, ["account_tombstone", "audit", "event"]);
        assert!(!json!(file).to_string().contains("New"));
    });
}

#[test]
fn both_formats_have_the_same_rows() {
    TestApp::on_both(|app| {
        let account = furnished(app, "crm-1", "=Nordlys");
        fill(app, app.id(), 130);
        for scope in [Scope::Company, of(app, account), Scope::Account(filled(app, 9))] {
            let file = lines(app, &scope);
            let sent = parts(app, &scope, Format::Csv);
            let archive = Archive::read(&sent.concat());
            assert_eq!(archive.json("about.json"), file[0]);
            assert_eq!(&archive.json("manifest.json"), file.last().unwrap());
            assert_eq!(archive.names.last().unwrap(), "manifest.json", "it says that nothing is missing");
            let tables = exported(&scope);
            assert_eq!(archive.tables(), tables.iter().map(|(table, _)| *table).collect::<Vec<_>>());
            for (table, columns) in tables {
                let shown = |row: &Value| -> BTreeMap<String, String> {
                    let cell_of = |column: &&str| ((*column).to_owned(), cell(row[*column].clone()));
                    columns.iter().map(cell_of).collect()
                };
                let expected: Vec<BTreeMap<String, String>> =
                    rows(&file, table).into_iter().map(shown).collect();
                assert_eq!(archive.rows(table), expected, "{table}");
            }
        }
        let archive = Archive::read(&parts(app, &of(app, account), Format::Csv).concat());
        assert_eq!(archive.rows("account")[0]["name"], "'=Nordlys", "no spreadsheet runs it");
    });
}

#[test]
fn an_archive_is_sent_as_it_is_read_and_incomplete_before_its_end() {
    TestApp::on_both(|app| {
        fill(app, app.id(), 2_000);
        let sent = parts(app, &Scope::Company, Format::Csv);
        let whole: usize = sent.iter().map(Vec::len).sum();
        let largest = sent.iter().map(Vec::len).max().unwrap();
        assert!(largest < whole / 4, "a part of {largest} bytes of {whole}");
        let without_end = sent[..sent.len() - 1].concat();
        assert!(std::panic::catch_unwind(|| Archive::read(&without_end)).is_err());
    });
}

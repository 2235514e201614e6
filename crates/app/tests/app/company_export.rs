//! Everything that a company stored, in one file: every row once, and no secret.

use std::collections::BTreeSet;

use rapport_app::company_export::{Place, Rows, end, head, lines, page};
use rapport_domain::member::Role;
use rapport_store::company_data::described;
use rapport_testkit::{TestApp, TestCompany, create_webhook};
use serde_json::{Value, json};

use crate::every_table::fill;

/// The whole file, as its objects.
fn export(company: &TestCompany) -> Vec<Value> {
    let known = company.read(rapport_store::company::get).unwrap();
    let mut text = head(&known, company.app().now());
    let (mut next, mut count) = (Some(Place::FIRST), 0);
    while let Some(place) = next {
        let Rows { table, rows, next: after } = company.read(move |snapshot| page(snapshot, &place));
        assert!(rows.len() <= 100, "a page of {table} is bounded");
        count += rows.len() as u64;
        text.extend(lines(table, rows));
        next = after;
    }
    text.extend(end(count));
    let text = String::from_utf8(text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn rows<'a>(file: &'a [Value], table: &str) -> Vec<&'a Value> {
    file.iter().filter(|line| line["table"] == table).map(|line| &line["row"]).collect()
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
        assert_eq!(file.last().unwrap(), &json!({"end": true, "rows": file.len() - 2}));
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
        fill(app, app.id(), 3);
        let text = json!(export(app)).to_string();
        for hidden in [app.token_text(), app.ingest_key_text(), &secret, "no password"] {
            assert!(!text.contains(hidden), "{hidden}");
        }
        for line in export(app) {
            let Some(row) = line["row"].as_object() else { continue };
            for name in ["hash", "secret", "password_hash", "content"] {
                assert!(!row.contains_key(name), "{line}");
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

//! An erasure, and a deletion, say what they removed and what they kept: the same as was there before.

use std::collections::BTreeMap;

use rapport_app::account::DeleteAccount;
use rapport_app::erasure::erase_payloads;
use rapport_domain::audit::Filter as AuditFilter;
use rapport_domain::delivery_list::Filter;
use rapport_domain::erasure::Erased;
use rapport_domain::id::AccountId;
use rapport_domain::member::Role;
use rapport_testkit::{TestApp, TestCompany, block_on};
use serde_json::{Value, json};

use crate::logged_in;
use crate::webhooks::{list, record, webhook};

/// The details of entries of the audit log with an action, newest first.
fn entries(company: &TestCompany, action: &str) -> Vec<Value> {
    let page =
        company.read(|snapshot| rapport_store::audit::list(snapshot, &AuditFilter::default(), None, 100));
    let found = page.items.into_iter().filter(|entry| entry.action == action);
    found.map(|entry| serde_json::from_str(&entry.detail).unwrap()).collect()
}

fn erase(app: &TestApp, account: AccountId) -> Erased {
    block_on(erase_payloads(app.app(), app.token(), account)).unwrap()
}

#[test]
fn an_erasure_lists_what_was_there() {
    TestApp::on_both(|app| {
        webhook(app);
        let account = app.upsert(json!({"imported_id": "crm-1", "name": "Nordlys"})).account.id;
        let other = app.upsert(json!({"imported_id": "crm-2", "name": "Kept"})).account.id;
        for kind in ["trial_started", "churned", "trial_started"] {
            app.ingest(
                json!([{"imported_id": "crm-1", "kind": kind}, {"imported_id": "crm-2", "kind": kind}]),
            );
        }
        for of in [account, other] {
            let filter = Filter { account: Some(of), ..Filter::default() };
            let delivery = list(app, filter)[0].delivery.id;
            record(app, delivery, 200, None);
        }
        // Written by a person, so that the audit log has values.
        let (_, bo) = logged_in(app, "bo@acme.test", Role::Admin);
        app.write_as(&bo, DeleteAccount(account)).unwrap();
        let count = |sql: &str| app.number(sql).unsigned_abs();
        let own = "(SELECT count(*) FROM account_tombstone t WHERE t.account = event.account) = 1";
        let before = Erased {
            payloads: count(&format!("SELECT count(*) FROM event WHERE payload IS NOT NULL AND {own}")),
            responses: count("SELECT count(*) FROM attempt WHERE excerpt IS NOT NULL") / 2,
            values: 1,
            imported_ids: count("SELECT count(*) FROM account_tombstone WHERE imported_id IS NOT NULL"),
            corrections: 0,
            deliveries: count(&format!("SELECT count(*) FROM delivery event WHERE {own}")),
            attempts: count("SELECT count(*) FROM attempt") / 2,
            accounts: 0,
        };
        assert_eq!((before.payloads, before.responses, before.imported_ids), (4, 1, 1));
        assert!(before.deliveries >= 3 && before.attempts == 1);
        assert_eq!(erase(app, account), before);
        assert_eq!(entries(app, "account.payloads_erased"), [before.to_json()]);
        assert_eq!(count(&format!("SELECT count(*) FROM event WHERE payload IS NOT NULL AND {own}")), 0);
        assert_eq!(count("SELECT count(*) FROM attempt WHERE excerpt IS NOT NULL"), 1, "the other account's");
        assert_eq!(count(&format!("SELECT count(*) FROM delivery event WHERE {own}")), before.deliveries);

        let nothing = Erased::default();
        assert_eq!(erase(app, account), nothing);
        let log = entries(app, "account.payloads_erased");
        assert_eq!(
            log,
            [nothing.to_json(), before.to_json()],
            "the second erasure leaves the first one's numbers"
        );
        let deleted = &entries(app, "account.deleted")[0];
        assert_eq!((&deleted["name"], &deleted["removed"]["account"]), (&json!("erased"), &json!(1)));
        assert_eq!(erase(app, other), Erased { accounts: 1, values: 0, imported_ids: 0, ..before });
    });
}

#[test]
fn an_erasure_in_many_steps_counts_all_of_them() {
    TestApp::on_both(|app| {
        let account = app.upsert(json!({"imported_id": "crm-1"})).account.id;
        for number in 0..230 {
            let kind = if number % 2 == 0 { "churned" } else { "trial_started" };
            app.ingest(json!([{"imported_id": "crm-1", "kind": kind}]));
        }
        let erased = erase(app, account);
        assert_eq!(erased, Erased { payloads: 231, accounts: 1, ..Erased::default() });
        assert_eq!(entries(app, "account.payloads_erased"), [erased.to_json()]);
    });
}

#[test]
fn a_deletion_lists_what_was_there() {
    TestApp::on_both(|app| {
        let account =
            app.upsert(json!({"imported_id": "crm-1", "name": "Nordlys", "status": "customer"})).account.id;
        app.upsert(json!({"imported_id": "crm-2", "name": "Kept"}));
        app.ingest(json!([
            {"imported_id": "crm-1", "kind": "feature_used", "feature": "x"},
            {"imported_id": "crm-1", "kind": "app_opened"},
            {"imported_id": "crm-2", "kind": "app_opened"},
        ]));
        let tables =
            ["account", "status_history", "activity", "activity_count", "account_seen", "message", "contact"];
        let rows = || tables.map(|table| (table, app.rows(table)));
        let before = rows();
        let deleted: BTreeMap<&str, u64> = app.write(DeleteAccount(account)).unwrap().into_iter().collect();
        for ((table, before), (_, after)) in before.into_iter().zip(rows()) {
            assert_eq!(deleted[table], (before - after).unsigned_abs(), "{table}");
        }
        assert_eq!((deleted["activity"], deleted["account"]), (2, 1));
        assert_eq!(entries(app, "account.deleted")[0]["removed"]["activity"], json!(2));
    });
}

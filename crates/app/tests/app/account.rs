//! Accounts as an operator works with them: create, edit, move, delete.

use rapport_app::account::{ChangeStatus, CreateAccount, DeleteAccount, PatchAccount};
use rapport_app::{Answer, Error};
use rapport_domain::account::{Account, Create, Patch, StatusChange};
use rapport_domain::event::Kind;
use rapport_domain::history::Actor;
use rapport_domain::id::AccountId;
use rapport_domain::pipeline::{Source, Status};
use rapport_testkit::{TestApp, TestCompany};
use serde_json::{Value, json};

use crate::{kinds, moves, payloads, refusal};

fn create(company: &TestCompany, body: Value) -> Result<Answer<Account>, Error> {
    company.write(CreateAccount(Create::parse(body.as_object().unwrap())?))
}

fn patch(company: &TestCompany, id: AccountId, body: Value) -> Result<Answer<Account>, Error> {
    let (patch, promo_code) = Patch::parse(body.as_object().unwrap())?;
    company.write(PatchAccount { id, patch, promo_code })
}

fn change(company: &TestCompany, id: AccountId, status: Status, note: Option<&str>) -> Result<bool, Error> {
    let change = StatusChange { status, note: note.map(str::to_owned) };
    company.write(ChangeStatus { id, change }).map(|changed| changed.moved)
}

fn get(company: &TestCompany, id: AccountId) -> Option<Account> {
    company.read(move |snapshot| rapport_store::account::get(snapshot, id))
}

#[test]
fn an_account_made_by_hand_is_stored_as_asked_and_fires_account_created() {
    TestApp::on_both(|app| {
        app.channel("Fair", &["Fair-26"]);
        let asked = json!({
            "name": "Keller & Sohn", "status": "in_trial", "imported_id": "crm-1", "custom_fields": {"a": 1, "b": null},
            "captured_value": "12.3456", "promo_code": "FAIR-26", "cadence_days": 7, "snoozed_until": "2026-02-01",
        });
        let account = create(app, asked).unwrap().reply;
        assert_eq!(get(app, account.id), Some(account.clone()));
        assert_eq!((account.name.as_str(), account.status), ("Keller & Sohn", Status::InTrial));
        assert_eq!(account.custom_fields.as_json(), r#"{"a":1}"#);
        assert_eq!(account.promo_code.as_ref().unwrap().as_str(), "Fair-26");
        assert_eq!(account.value.unwrap().amount_text(), "12.3456");
        assert_eq!((account.cadence_override, account.tracked_since), (Some(7), Some(app.clock().now())));
        assert_eq!(account.snoozed_until.unwrap().to_string(), "2026-02-01");
        assert_eq!(moves(app, account.id), [(None, Status::InTrial, Source::Operator)]);
        assert_eq!(kinds(app, account.id), [Kind::AccountCreated]);
        assert_eq!(payloads(app, account.id)[0]["source"], "operator");
        assert_eq!(app.upsert(json!({"imported_id": "crm-1"})).account.id, account.id);
    });
}

#[test]
fn any_number_of_accounts_may_be_without_an_imported_id() {
    TestApp::on_both(|app| {
        for _ in 0..3 {
            let account = create(app, json!({"name": "Same"})).unwrap().reply;
            assert_eq!((account.imported_id, account.status), (None, Status::Prospect));
            assert_eq!(payloads(app, account.id)[0]["account"]["imported_id"], Value::Null);
        }
        assert_eq!(app.rows("account"), 3);
    });
}

#[test]
fn a_taken_imported_id_is_a_conflict_and_changes_nothing() {
    TestApp::on_both(|app| {
        app.upsert(json!({"imported_id": "crm-1"}));
        let other = app.upsert(json!({"imported_id": "crm-2"})).account;
        let tables = ["account", "account_word", "status_history", "event"];
        let before = tables.map(|table| app.rows(table));
        let taken = "conflict imported_id_taken";
        assert_eq!(refusal(create(app, json!({"name": "New", "imported_id": "crm-1"}))), taken);
        let moved = json!({"imported_id": "crm-1", "status": "lost", "name": "New"});
        assert_eq!(refusal(patch(app, other.id, moved)), taken);
        assert_eq!(tables.map(|table| app.rows(table)), before);
        assert_eq!(get(app, other.id), Some(other));
    });
}

#[test]
fn a_code_named_by_an_operator_must_be_live() {
    TestApp::on_both(|app| {
        let account = app.upsert(json!({"imported_id": "crm-1"})).account;
        let unknown = "invalid /promo_code unknown_promo_code";
        assert_eq!(refusal(create(app, json!({"name": "New", "promo_code": "NONE"}))), unknown);
        assert_eq!(refusal(patch(app, account.id, json!({"promo_code": "NONE"}))), unknown);
        assert_eq!(app.rows("account"), 1);
    });
}

#[test]
fn an_edit_changes_what_it_names_and_clears_what_it_nulls() {
    TestApp::on_both(|app| {
        let channel = app.channel("Fair", &["FAIR"]);
        let created = app.upsert(json!({"imported_id": "crm-1", "custom_fields": {"a": 1}})).account;
        app.clock().advance_seconds(1);
        let edit = json!({
            "name": "New name", "imported_id": "crm-9", "custom_fields": {"b": 2}, "captured_value": "5",
            "captured_value_currency": "EUR", "cadence_days": 14, "snoozed_until": "2026-03-01", "promo_code": "fair",
        });
        let edited = patch(app, created.id, edit).unwrap().reply;
        assert_eq!(get(app, created.id), Some(edited.clone()));
        assert_eq!((edited.name.as_str(), edited.imported_id.as_deref()), ("New name", Some("crm-9")));
        assert_eq!(edited.custom_fields.as_json(), r#"{"a":1,"b":2}"#);
        assert_eq!(edited.channel.as_ref().unwrap().id, channel.id);
        assert_eq!((edited.created_at, edited.updated_at), (created.created_at, app.clock().now()));
        assert_eq!(
            (moves(app, created.id).len(), kinds(app, created.id).len()),
            (1, 1),
            "without a move there is no event"
        );
        assert!(app.upsert(json!({"imported_id": "crm-1"})).created, "its old imported_id is free");

        app.clock().advance_seconds(1);
        let clear = json!({
            "imported_id": null, "captured_value": null, "cadence_days": null, "snoozed_until": null, "promo_code": null,
        });
        let cleared = patch(app, created.id, clear).unwrap().reply;
        let expected = Account {
            imported_id: None,
            value: None,
            cadence_override: None,
            snoozed_until: None,
            promo_code: None,
            channel: None,
            acquired_at: None,
            updated_at: app.clock().now(),
            ..edited
        };
        assert_eq!(get(app, created.id), Some(expected.clone()));
        assert_eq!(cleared, expected);
    });
}

#[test]
fn an_edit_that_changes_nothing_leaves_no_trace() {
    TestApp::on_both(|app| {
        let before = app.upsert(json!({"imported_id": "crm-1", "custom_fields": {"a": 1}})).account;
        app.clock().advance_days(1);
        let same = json!({
            "name": "crm-1", "imported_id": "crm-1", "status": "prospect", "custom_fields": {"a": 1, "z": null},
            "captured_value": null, "cadence_days": null, "promo_code": null,
        });
        assert_eq!(patch(app, before.id, same).unwrap().reply, before);
        assert_eq!(get(app, before.id), Some(before.clone()));
        assert_eq!(app.rows("event"), 1);
    });
}

#[test]
fn a_status_in_an_edit_is_an_operators_move() {
    TestApp::on_both(|app| {
        let id = app.upsert(json!({"imported_id": "crm-1"})).account.id;
        patch(app, id, json!({"status": "customer", "captured_value": "9"})).unwrap();
        assert_eq!(moves(app, id)[1], (Some(Status::Prospect), Status::Customer, Source::Operator));
        let told = &payloads(app, id)[1];
        assert_eq!(
            (&told["source"], &told["account"]["captured_value"]),
            (&json!("operator"), &json!("9.00"))
        );
    });
}

#[test]
fn an_operators_change_moves_from_any_to_any_with_its_note() {
    TestApp::on_both(|app| {
        for from in Status::ALL {
            for to in Status::ALL {
                let imported_id = format!("{from}-{to}");
                let id = app.upsert(json!({"imported_id": imported_id, "status": from.as_str()})).account.id;
                app.clock().advance_seconds(1);
                let moved = change(app, id, to, Some("called them")).unwrap();
                assert_eq!(moved, from != to, "{imported_id}");
                assert_eq!(get(app, id).unwrap().status, to);
                let history = app.history(id);
                assert_eq!(
                    (history.len(), kinds(app, id).len()),
                    if moved { (2, 2) } else { (1, 1) },
                    "{imported_id}"
                );
                if moved {
                    let entry = &history[1];
                    assert_eq!((entry.from, entry.to, entry.source), (Some(from), to, Source::Operator));
                    assert_eq!((entry.note.as_deref(), entry.at), (Some("called them"), app.clock().now()));
                    assert!(matches!(&entry.actor, Actor::Token { name, .. } if name == "First token"));
                    assert_eq!(payloads(app, id)[1]["previous_status"], from.as_str());
                }
            }
        }
    });
}

#[test]
fn tracking_starts_when_a_tracked_stage_is_entered_and_ends_when_it_is_left() {
    TestApp::on_both(|app| {
        let id = app.upsert(json!({"imported_id": "crm-1"})).account.id;
        let started = app.clock().now();
        change(app, id, Status::InTrial, None).unwrap();
        app.clock().advance_days(5);
        change(app, id, Status::Customer, None).unwrap();
        assert_eq!(
            get(app, id).unwrap().tracked_since,
            Some(started),
            "it continues from one tracked stage to the next"
        );
        change(app, id, Status::Lost, None).unwrap();
        assert_eq!(get(app, id).unwrap().tracked_since, None);
        app.ingest(json!([{"imported_id": "crm-1", "kind": "became_customer"}]));
        assert_eq!(get(app, id).unwrap().tracked_since, Some(app.clock().now()));
    });
}

#[test]
fn deleting_removes_activity_history_and_words_frees_the_imported_id_and_keeps_events() {
    TestApp::on_both(|app| {
        let stays = app.upsert(json!({"imported_id": "crm-2", "name": "Other"})).account;
        app.ingest(json!([{"imported_id": "crm-2", "kind": "feature_used", "feature": "f"}]));
        let tables =
            ["account", "account_word", "account_seen", "activity", "activity_count", "status_history"];
        let before = tables.map(|table| app.rows(table));
        let id = app.upsert(json!({"imported_id": "crm-1", "name": "Keller & Sohn"})).account.id;
        app.ingest(json!([
            {"imported_id": "crm-1", "kind": "feature_used", "feature": "f"}, {"imported_id": "crm-1", "kind": "churned"},
        ]));
        let events = app.events(id);
        assert_eq!(events.len(), 2);
        app.write(DeleteAccount(id)).unwrap();
        assert_eq!(
            tables.map(|table| app.rows(table)),
            before,
            "everything of the account is gone, and nothing else"
        );
        assert_eq!(app.events(id), events, "payloads frozen for delivery stay");
        assert_eq!((get(app, id), app.history(id).len()), (None, 0));
        let again = app.upsert(json!({"imported_id": "crm-1"}));
        assert!(again.created && again.account.id != id);
        assert_eq!(again.account.name, "crm-1");
        assert_eq!(app.account("crm-2").id, stays.id);
    });
}

#[test]
fn what_is_not_there_is_not_found() {
    TestApp::on_both(|app| {
        let gone = app.upsert(json!({"imported_id": "crm-1"})).account.id;
        app.write(DeleteAccount(gone)).unwrap();
        for id in [gone, AccountId::from_bytes([0; 16]), AccountId::from_bytes([0xff; 16])] {
            assert_eq!(refusal(patch(app, id, json!({"name": "x"}))), "no such account");
            assert_eq!(refusal(change(app, id, Status::Lost, None)), "no such account");
            assert_eq!(refusal(app.write(DeleteAccount(id))), "no such account");
        }
    });
}

#[test]
fn limits_hold_for_what_an_operator_sends_too() {
    TestApp::on_both(|app| {
        let id = app.upsert(json!({"imported_id": "crm-1"})).account.id;
        let large = json!({"custom_fields": {"a": "x".repeat(70_000)}, "status": "lost"});
        assert_eq!(refusal(patch(app, id, large)), "invalid /custom_fields too_large");
        assert_eq!(get(app, id).unwrap().status, Status::Prospect);
        assert_eq!(refusal(patch(app, id, json!({"colour": 1}))), "invalid /colour unknown_member");
        assert_eq!(
            refusal(create(app, json!({"name": "x", "cadence_days": 0}))),
            "invalid /cadence_days out_of_range"
        );
    });
}

//! Changes of many accounts at once: each account changes the way an operator changes one, and back.

use rapport_app::Access;
use rapport_app::account::DeleteAccount;
use rapport_app::bulk::{ChangeAccounts, Changed, UndoChange, Undone};
use rapport_app::retention::PruneHistory;
use rapport_domain::account::Patch;
use rapport_domain::bulk::{BulkChange, UNDO_DAYS};
use rapport_domain::event::Kind;
use rapport_domain::id::{AccountId, BulkId};
use rapport_domain::member::Role;
use rapport_domain::pipeline::{Source, Status};
use rapport_testkit::TestApp;
use serde_json::{Value, json};

use crate::{kinds, moves};

fn change(accounts: &[AccountId], members: &Value) -> ChangeAccounts {
    let (patch, promo_code) = Patch::parse(members.as_object().unwrap()).unwrap();
    let note = patch.status.map(|_| "why".to_owned());
    ChangeAccounts(BulkChange { accounts: accounts.to_vec(), patch, promo_code, note })
}

fn prune(app: &TestApp) {
    while app.write_as(&Access::System(app.id()), PruneHistory).unwrap() {}
}

#[test]
fn each_account_moves_with_its_history_and_event_and_back() {
    TestApp::on_both(|app| {
        let made =
            |id: &str, status: &str| app.upsert(json!({"imported_id": id, "status": status})).account.id;
        let (a, b, c) = (made("a", "prospect"), made("b", "customer"), made("c", "lost"));
        let gone = AccountId::from_bytes([9; 16]);
        let member = app.token_of(Role::Member);
        let reply = app.write_as(&member, change(&[a, b, c, gone], &json!({"status": "lost"}))).unwrap();
        let bulk = reply.bulk.expect("something changed");
        assert_eq!(reply, Changed { bulk: Some(bulk), changed: 2, same: 1, refused: 0, missed: 1 });
        assert_eq!(moves(app, a).last(), Some(&(Some(Status::Prospect), Status::Lost, Source::Operator)));
        assert_eq!(kinds(app, b), [Kind::AccountCreated, Kind::AccountStatusChanged]);
        assert_eq!(kinds(app, c), [Kind::AccountCreated], "it already had the status");
        assert_eq!(app.history(a).pop().unwrap().note.as_deref(), Some("why"));
        // Back, except for an account that someone moved on.
        app.upsert(json!({"imported_id": "b", "status": "in_trial"}));
        let back = app.write_as(&member, UndoChange(bulk)).unwrap();
        assert_eq!(back, Undone { is_known: true, restored: 1, kept: 1 });
        assert_eq!(app.account("b").status, Status::InTrial);
        assert_eq!(app.account("a").status, Status::Prospect);
        assert_eq!(moves(app, a).last(), Some(&(Some(Status::Lost), Status::Prospect, Source::Operator)));
        assert_eq!(app.write(UndoChange(bulk)).unwrap(), Undone::default(), "once");
    });
}

#[test]
fn every_kind_of_change_is_undone_exactly() {
    TestApp::on_both(|app| {
        app.channel("Fair", &["FAIR"]);
        app.channel("Web", &["WEB"]);
        app.upsert(
            json!({"imported_id": "a", "promo_code": "web", "custom_fields": {"plan": "pro", "n": 1}}),
        );
        app.upsert(json!({"imported_id": "b"}));
        let ids = [app.account("a").id, app.account("b").id];
        app.write(change(&ids[..1], &json!({"cadence_days": 9, "snoozed_until": "2030-01-01"}))).unwrap();
        let before = [app.account("a"), app.account("b")];
        let table = [
            (json!({"promo_code": "FAIR"}), 2),
            (json!({"promo_code": null}), 1),
            (json!({"custom_fields": {"plan": "pro"}}), 1),
            (json!({"custom_fields": {"plan": {"deep": [1]}}}), 2),
            (json!({"custom_fields": {"plan": null}}), 1),
            (json!({"cadence_days": 7}), 2),
            (json!({"cadence_days": null}), 1),
            (json!({"snoozed_until": "2030-02-01"}), 2),
            (json!({"snoozed_until": null}), 1),
            (json!({"status": "customer"}), 2),
        ];
        for (members, changed) in table {
            app.clock().advance_seconds(60);
            let reply = app.write(change(&ids, &members)).unwrap();
            assert_eq!((reply.changed, reply.same), (changed, 2 - changed), "{members}");
            let undone = app.write(UndoChange(reply.bulk.unwrap())).unwrap();
            assert_eq!(undone, Undone { is_known: true, restored: changed, kept: 0 }, "{members}");
            for (before, id) in before.iter().zip(["a", "b"]) {
                let mut after = app.account(id);
                after.updated_at = before.updated_at;
                assert_eq!(after, *before, "{members}");
            }
        }
        assert_eq!(app.rows("bulk_change"), 1, "only what wasn't undone");
    });
}

#[test]
fn an_undo_keeps_what_somebody_changed_since() {
    TestApp::on_both(|app| {
        let ids = ["a", "b", "c"].map(|id| app.upsert(json!({"imported_id": id})).account.id);
        let bulk = app.write(change(&ids, &json!({"custom_fields": {"plan": "pro"}}))).unwrap().bulk.unwrap();
        app.upsert(json!({"imported_id": "a", "custom_fields": {"plan": "max"}}));
        app.upsert(json!({"imported_id": "b", "custom_fields": {"seats": 3}}));
        app.write(DeleteAccount(ids[2])).unwrap();
        let undone = app.write(UndoChange(bulk)).unwrap();
        assert_eq!(undone, Undone { is_known: true, restored: 1, kept: 1 }, "what was deleted is forgotten");
        assert_eq!(app.account("a").custom_fields.to_map(), *json!({"plan": "max"}).as_object().unwrap());
        assert_eq!(app.account("b").custom_fields.to_map(), *json!({"seats": 3}).as_object().unwrap());
    });
}

#[test]
fn nothing_of_another_company_changes() {
    TestApp::on_both(|app| {
        let globex = app.company("globex");
        let theirs = globex.upsert(json!({"imported_id": "a"})).account.id;
        let reply = app.write(change(&[theirs], &json!({"status": "lost"}))).unwrap();
        assert_eq!(reply, Changed { missed: 1, ..Changed::default() });
        let bulk = globex.write(change(&[theirs], &json!({"status": "lost"}))).unwrap().bulk.unwrap();
        assert_eq!(app.write(UndoChange(bulk)).unwrap(), Undone::default());
        assert_eq!(globex.account("a").status, Status::Lost);
        assert_eq!(app.write(UndoChange(BulkId::from_bytes([1; 16]))).unwrap(), Undone::default());
    });
}

#[test]
fn a_promo_code_that_is_not_active_changes_nothing() {
    TestApp::on_both(|app| {
        let id = app.upsert(json!({"imported_id": "a"})).account.id;
        let refused = app.write(change(&[id], &json!({"promo_code": "NONE"}))).unwrap_err();
        assert!(format!("{refused:?}").contains("unknown_promo_code"), "{refused:?}");
        assert_eq!(app.account("a").channel, None);
    });
}

#[test]
fn a_change_can_be_undone_for_a_day() {
    TestApp::on_both(|app| {
        let id = app.upsert(json!({"imported_id": "a"})).account.id;
        let bulk = app.write(change(&[id], &json!({"status": "lost"}))).unwrap().bulk.unwrap();
        app.clock().advance_days(UNDO_DAYS);
        prune(app);
        assert_eq!(app.rows("bulk_change"), 1);
        app.clock().advance_seconds(1);
        prune(app);
        assert_eq!(app.rows("bulk_change"), 0);
        assert_eq!(app.write(UndoChange(bulk)).unwrap(), Undone::default());
    });
}

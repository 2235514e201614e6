//! What those who follow events and accounts get: every event, and every change that someone made to an account.

use rapport_app::account::{ChangeStatus, DeleteAccount, PatchAccount};
use rapport_app::channel::RenameChannel;
use rapport_app::contact::RecordContact;
use rapport_app::erasure::erase_payloads;
use rapport_app::read::feed::{AccountsAfter, EventsAfter, Place, accounts, events, settled};
use rapport_app::retention::{Round, step};
use rapport_app::webhook::TestWebhook;
use rapport_domain::account::{Patch, StatusChange};
use rapport_domain::contact::{self, NewContact};
use rapport_domain::event::Kind;
use rapport_domain::feed::Kinds;
use rapport_domain::pipeline::Status;
use rapport_domain::tombstone::Tombstone;
use rapport_testkit::{TestApp, TestCompany, block_on};
use serde_json::{Value, json};

use crate::webhooks::webhook;

const MANY: i64 = 200;

/// The types of all events after a place, and the next place.
fn types_after(company: &TestCompany, place: Place, kinds: &[Kind]) -> (Vec<String>, Place) {
    let settled = company.read(settled);
    let asked = EventsAfter { place, kinds: Kinds(kinds.to_vec()), limit: MANY };
    let page = company.read(move |snapshot| events(snapshot, &asked, settled));
    let payloads = page.payloads.iter().map(|text| serde_json::from_str::<Value>(text).expect("JSON"));
    (payloads.map(|payload| payload["type"].as_str().expect("a type").to_owned()).collect(), page.next)
}

/// The imported_ids of accounts that changed after a place, those that were deleted, and the next place.
fn changes_after(company: &TestCompany, place: Place) -> (Vec<String>, Vec<Tombstone>, Place) {
    let settled = company.read(settled);
    let asked = AccountsAfter { place: Some(place), updated_after: None, deleted: true, limit: MANY };
    let page = company.read(move |snapshot| accounts(snapshot, &asked, settled));
    let ids = page.accounts.into_iter().filter_map(|account| account.imported_id);
    (ids.collect(), page.deleted, page.next)
}

/// Runs a whole round of the cleanup.
fn prune(company: &TestCompany) {
    let mut round = Round::default();
    while block_on(step(company.app(), company.id(), &mut round)).expect("a step") {}
}

#[test]
fn every_event_is_there_whether_a_webhook_selects_it_or_not() {
    TestApp::on_both(|app| {
        app.upsert(json!({"imported_id": "crm-1"}));
        let (types, place) = types_after(app, Place::START, &[]);
        assert_eq!(types, ["account.created"], "without a webhook");
        let hook = webhook(app);
        app.upsert(json!({"imported_id": "crm-1", "status": "customer"}));
        app.write(TestWebhook(hook)).unwrap();
        let (types, _) = types_after(app, place, &[]);
        assert_eq!(types, ["account.status_changed"], "tests are for their webhook");
        assert_eq!(types_after(app, place, &[Kind::WebhookTest]).0, ["webhook.test"]);
    });
}

#[test]
fn events_and_deletions_go_after_90_days() {
    TestApp::on_both(|app| {
        let gone = app.upsert(json!({"imported_id": "crm-1"})).account.id;
        app.write(DeleteAccount(gone)).unwrap();
        app.clock().advance_days(45);
        app.upsert(json!({"imported_id": "crm-2"}));
        app.clock().advance_days(45);
        prune(app);
        assert_eq!(types_after(app, Place::START, &[]).0.len(), 2, "90 days are kept");
        assert_eq!(changes_after(app, Place::START).1.len(), 1);
        app.clock().advance_seconds(61);
        prune(app);
        assert_eq!(types_after(app, Place::START, &[]).0.len(), 1);
        let (accounts, deleted, _) = changes_after(app, Place::START);
        assert_eq!((accounts, deleted), (vec!["crm-2".to_owned()], vec![]));
    });
}

#[test]
fn a_change_is_what_someone_changes_about_an_account() {
    TestApp::on_both(|app| {
        let channel = app.channel("Fair", &["FAIR"]);
        let account = app.upsert(json!({"imported_id": "crm-1", "promo_code": "FAIR"})).account.id;
        app.upsert(json!({"imported_id": "crm-2"}));
        let patch = |body: Value| {
            let (patch, promo_code) = Patch::parse(body.as_object().unwrap()).unwrap();
            app.write(PatchAccount { id: account, patch, promo_code }).unwrap();
        };
        let contact = |seconds: i64| {
            let occurred_at = app.clock().now().plus_seconds(seconds);
            let contact = NewContact { kind: contact::Kind::Call, note: None, occurred_at };
            app.write(RecordContact { account, contact }).unwrap();
        };
        let ingest = |kind: &str| {
            app.ingest(json!([{"imported_id": "crm-1", "kind": kind, "feature": "f"}]));
        };
        let move_to = |status| {
            app.write(ChangeStatus { id: account, change: StatusChange { status, note: None } }).unwrap();
        };
        type Act<'a> = Box<dyn Fn() + 'a>;
        let acts: Vec<(&str, bool, Act)> = vec![
            ("a name", true, Box::new(|| patch(json!({"name": "Other"})))),
            ("the same name", false, Box::new(|| patch(json!({"name": "Other"})))),
            ("a cadence", true, Box::new(|| patch(json!({"cadence_days": 5})))),
            ("a snooze", true, Box::new(|| patch(json!({"snoozed_until": "2027-01-01"})))),
            (
                "a custom field",
                true,
                Box::new(|| {
                    app.upsert(json!({"imported_id": "crm-1", "custom_fields": {"plan": "pro"}}));
                }),
            ),
            (
                "the same again",
                false,
                Box::new(|| {
                    app.upsert(json!({"imported_id": "crm-1", "custom_fields": {"plan": "pro"}}));
                }),
            ),
            ("a move", true, Box::new(|| move_to(Status::Contacted))),
            ("no move", false, Box::new(|| move_to(Status::Contacted))),
            ("a move by activity", true, Box::new(|| ingest("trial_started"))),
            ("activity", false, Box::new(|| ingest("feature_used"))),
            ("contact", true, Box::new(|| contact(0))),
            ("earlier contact", false, Box::new(|| contact(-60))),
            (
                "the name of its channel",
                false,
                Box::new(|| {
                    app.write(RenameChannel { id: channel.id, name: "Trade fair".to_owned() }).unwrap();
                }),
            ),
        ];
        let (_, _, mut place) = changes_after(app, Place::START);
        for (what, is_change, act) in acts {
            act();
            let (changed, deleted, next) = changes_after(app, place);
            let expected = if is_change { vec!["crm-1".to_owned()] } else { vec![] };
            assert_eq!((changed, deleted), (expected, vec![]), "{what}");
            place = next;
        }
    });
}

#[test]
fn an_erasure_leaves_only_the_id_of_a_deleted_account() {
    TestApp::on_both(|app| {
        let id = app.upsert(json!({"imported_id": "jane@client.test", "name": "Jane"})).account.id;
        app.write(DeleteAccount(id)).unwrap();
        let (accounts, deleted, _) = changes_after(app, Place::START);
        let now = app.clock().now();
        let imported_id = Some("jane@client.test".to_owned());
        assert_eq!((accounts.len(), &deleted), (0, &vec![Tombstone { id, imported_id, deleted_at: now }]));
        block_on(erase_payloads(app.app(), app.token(), id)).unwrap();
        let (_, deleted, _) = changes_after(app, Place::START);
        assert_eq!(deleted, [Tombstone { id, imported_id: None, deleted_at: now }]);
        assert_eq!(types_after(app, Place::START, &[]).0, [""; 0], "its events are gone");
        assert_eq!(app.rows("event"), 1, "but for the fact that there was one");
        app.upsert(json!({"imported_id": "crm-2"}));
        assert_eq!(types_after(app, Place::START, &[]).0.len(), 1, "later ones are found behind it");
    });
}

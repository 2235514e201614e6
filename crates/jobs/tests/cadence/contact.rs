//! The clock: what starts it, what resets it, and how long it runs.

use rapport_domain::pipeline::Status;
use rapport_testkit::create_webhook;
use serde_json::json;

use crate::harness::{Sweeping, account_of};

#[test]
fn a_client_is_due_42_days_after_the_last_contact() {
    Sweeping::on_both(|app| {
        let id = app.customer("crm-1");
        app.clock().advance_days(10);
        app.call(id, 0);
        let called = app.clock().now();
        app.pass(42, -1);
        app.expect(id, 0, "a second before");
        app.pass(0, 1);
        let reminders = app.reminders(id);
        assert_eq!(reminders.len(), 1);
        let said = &reminders[0];
        assert_eq!(said["due_at"], json!(called.plus_days(42)));
        assert_eq!((&said["days_overdue"], &said["cadence_days"]), (&json!(0), &json!(42)));
        assert_eq!(said["account"]["id"], json!(id));
        assert_eq!(said["account"]["last_contact_at"], json!(called));
    });
}

#[test]
fn a_client_never_contacted_is_due_42_days_after_becoming_one() {
    Sweeping::on_both(|app| {
        let id = app.account_in("crm-1", Status::Prospect);
        app.pass(100, 0);
        app.expect(id, 0, "a prospect is not tracked");
        app.ingest(json!([{"imported_id": "crm-1", "kind": "trial_started"}]));
        app.pass(30, 0);
        app.ingest(json!([{"imported_id": "crm-1", "kind": "became_customer"}]));
        app.pass(12, -1);
        app.expect(id, 0, "a second before");
        app.pass(0, 1);
        app.expect(id, 1, "the clock continues from one tracked stage to the next");
    });
}

#[test]
fn an_override_replaces_the_companys_cadence() {
    Sweeping::on_both(|app| {
        let [short, long, cleared] = ["a", "b", "c"].map(|imported_id| app.customer(imported_id));
        app.patch(short, json!({"cadence_days": 7}));
        app.patch(long, json!({"cadence_days": 100}));
        app.patch(cleared, json!({"cadence_days": 100}));
        app.pass(7, -1);
        app.expect(short, 0, "a second before");
        app.pass(0, 1);
        assert_eq!(app.reminders(short)[0]["cadence_days"], json!(7));
        app.patch(cleared, json!({"cadence_days": null}));
        app.pass(35, 0);
        app.expect(cleared, 1, "the company's cadence applies again");
        app.expect(long, 0, "its override is longer");
        app.pass(58, 0);
        app.expect(long, 1, "its override has passed");
    });
}

#[test]
fn a_changed_cadence_takes_effect_at_once_and_writes_nothing_but_the_setting() {
    Sweeping::on_both(|app| {
        let (shorter, own) = (app.customer("a"), app.customer("b"));
        app.patch(own, json!({"cadence_days": 50}));
        app.clock().advance_days(10);
        let written = || app.number("SELECT CAST(sum(at) AS BIGINT) FROM cadence");
        let before = written();
        app.set(json!({"cadence_days": 10}));
        assert_eq!(written(), before);
        app.sweep();
        assert_eq!(app.reminders(shorter)[0]["cadence_days"], json!(10));
        app.expect(own, 0, "it has an override");
        app.set(json!({"cadence_days": 60}));
        app.call(shorter, 0);
        app.pass(59, 0);
        app.expect(shorter, 1, "the longer cadence applies now");
        app.pass(1, 0);
        app.expect(shorter, 2, "the longer cadence has passed");
    });
}

#[test]
fn a_contact_event_resets_the_clock() {
    Sweeping::on_both(|app| {
        let id = app.customer("crm-1");
        app.clock().advance_days(41);
        app.call(id, 0);
        app.pass(41, 0);
        app.expect(id, 0, "41 days after the call");
        app.pass(1, 0);
        app.expect(id, 1, "42 days after the call");
    });
}

#[test]
fn an_earlier_contact_moves_no_clock_but_any_ends_never() {
    Sweeping::on_both(|app| {
        let id = app.customer("crm-1");
        app.clock().advance_days(40);
        app.call(id, 10);
        app.call(id, 20);
        app.pass(31, 0);
        app.expect(id, 0, "the later of the two counts");
        app.pass(1, 0);
        app.expect(id, 1, "42 days after the later of the two");
    });
}

#[test]
fn activity_is_not_contact() {
    Sweeping::on_both(|app| {
        let id = app.customer("crm-1");
        app.clock().advance_days(41);
        app.ingest(json!([{"imported_id": "crm-1", "kind": "app_opened"}]));
        app.pass(1, 0);
        app.expect(id, 1, "they were seen, not contacted");
    });
}

#[test]
fn each_company_has_its_own_cadence_and_hears_of_its_own_clients_only() {
    Sweeping::on_both(|app| {
        let globex = app.company("globex");
        globex.set(json!({"cadence_days": 5}));
        let theirs = account_of(&globex, "crm-1", Status::Customer);
        let ours = app.customer("crm-1");
        app.pass(5, 0);
        assert_eq!(globex.events(theirs).len(), 2, "created, and due");
        app.expect(ours, 0, "ours has 42 days");
        assert_eq!(app.events(theirs).len(), 0, "not ours to see");
    });
}

#[test]
fn a_reminder_is_delivered_to_the_webhooks_that_select_it() {
    Sweeping::on_both(|app| {
        for events in [json!(["client.contact_due"]), json!(["account.created"])] {
            let body = json!({"url": "https://example.com/", "events": events});
            app.write(create_webhook(app.app(), &body)).unwrap();
        }
        let id = app.customer("crm-1");
        app.pass(42, 0);
        app.expect(id, 1, "due");
        assert_eq!(app.rows("delivery"), 2, "one event for each webhook");
        assert_eq!(app.number("SELECT count(*) FROM delivery WHERE kind = 'client.contact_due'"), 1);
    });
}

#[test]
fn a_deleted_client_leaves_no_clock_and_no_contact() {
    Sweeping::on_both(|app| {
        let id = app.customer("crm-1");
        app.call(id, 50);
        app.sweep();
        app.expect(id, 1, "due");
        app.delete(id).expect("deleted");
        for table in ["cadence", "contact_episode", "contact"] {
            assert_eq!(app.rows(table), 0, "{table}");
        }
        app.pass(100, 0);
        assert_eq!(app.all_reminders(), 1);
    });
}

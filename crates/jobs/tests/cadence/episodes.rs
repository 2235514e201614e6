//! Reminders come once per episode, and only contact begins a new episode.

use rapport_domain::pipeline::Status;
use serde_json::json;

use crate::harness::Sweeping;

#[test]
fn a_client_is_reminded_of_once_per_episode_not_once_a_day() {
    Sweeping::on_both(|app| {
        let id = app.customer("crm-1");
        app.pass(42, 0);
        for _ in 0..30 {
            app.pass(1, 0);
        }
        app.expect(id, 1, "a month later");
    });
}

#[test]
fn only_contact_re_arms() {
    Sweeping::on_both(|app| {
        let id = app.customer("crm-1");
        app.pass(42, 0);
        app.expect(id, 1, "due");
        app.set(json!({"cadence_days": 5}));
        app.pass(10, 0);
        app.patch(id, json!({"cadence_days": 1}));
        app.pass(10, 0);
        app.patch(id, json!({"snoozed_until": "2026-04-01", "name": "Renamed"}));
        app.pass(60, 0);
        app.move_to(id, Status::InTrial);
        app.pass(60, 0);
        app.move_to(id, Status::Lost);
        app.pass(60, 0);
        app.move_to(id, Status::Customer);
        app.pass(60, 0);
        app.expect(id, 1, "changing cadence, snooze or stage, and leaving and coming back, re-arm nothing");
        app.call(id, 0);
        app.pass(1, -1);
        app.expect(id, 1, "not due yet");
        app.pass(0, 1);
        app.expect(id, 2, "contact re-arms");
    });
}

#[test]
fn a_contact_of_long_ago_begins_an_episode_that_is_overdue_already() {
    Sweeping::on_both(|app| {
        let id = app.customer("crm-1");
        app.call(id, 100);
        app.sweep();
        app.expect(id, 1, "overdue from the start");
        app.call(id, 60);
        app.sweep();
        app.expect(id, 2, "it moved the clock and so began another episode");
        app.call(id, 70);
        app.sweep();
        app.expect(id, 2, "this contact moved nothing");
    });
}

#[test]
fn a_contact_at_the_epoch_is_not_never() {
    Sweeping::on_both(|app| {
        let id = app.customer("crm-1");
        app.pass(42, 0);
        app.expect(id, 1, "never contacted");
        let epoch = app.clock().now().whole_days_since(rapport_domain::time::Time::from_micros(0));
        app.clock().set(rapport_domain::time::Time::from_micros(0).plus_days(epoch));
        app.call(id, epoch);
        app.sweep();
        app.expect(id, 2, "contacted on the first of January 1970");
    });
}

#[test]
fn contact_ends_an_episode_before_it_is_announced() {
    Sweeping::on_both(|app| {
        let id = app.customer("crm-1");
        app.clock().advance_days(43);
        app.call(id, 0);
        app.sweep();
        app.expect(id, 0, "someone made contact first");
    });
}

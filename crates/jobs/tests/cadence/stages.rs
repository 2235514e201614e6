//! Tracked stages: which they are, what editing them does, and leaving and coming back.

use rapport_domain::pipeline::Status;
use serde_json::json;

use crate::harness::Sweeping;

#[test]
fn only_tracked_stages_are_reminded_of() {
    Sweeping::on_both(|app| {
        let accounts = Status::ALL.map(|status| (status, app.account_in(status.as_str(), status)));
        app.pass(500, 0);
        for (status, id) in accounts {
            let tracked = matches!(status, Status::Customer | Status::InTrial);
            app.expect(id, usize::from(tracked), status.as_str());
        }
    });
}

#[test]
fn a_stage_that_becomes_tracked_counts_from_when_it_was_entered() {
    Sweeping::on_both(|app| {
        let id = app.account_in("crm-1", Status::InNegotiation);
        app.pass(40, 0);
        app.set(json!({"tracked_stages": ["customer", "in_trial", "in_negotiation"]}));
        app.pass(2, -1);
        app.expect(id, 0, "a second before");
        app.pass(0, 1);
        app.expect(id, 1, "42 days in the stage");
    });
}

#[test]
fn a_stage_that_is_tracked_no_more_is_not_reminded_of() {
    Sweeping::on_both(|app| {
        let [trial, customer] =
            [Status::InTrial, Status::Customer].map(|status| app.account_in(status.as_str(), status));
        app.set(json!({"tracked_stages": ["customer"]}));
        app.pass(60, 0);
        app.expect(trial, 0, "trials are not tracked now");
        app.expect(customer, 1, "customers are");
        app.set(json!({"tracked_stages": ["in_trial"]}));
        app.sweep();
        app.expect(trial, 1, "tracked again, and long overdue");
        app.expect(customer, 1, "the same episode");
    });
}

#[test]
fn lost_and_back_starts_the_clock_of_a_client_never_contacted_anew() {
    Sweeping::on_both(|app| {
        let id = app.customer("crm-1");
        app.pass(30, 0);
        app.ingest(json!([{"imported_id": "crm-1", "kind": "churned"}]));
        assert_eq!(app.rows("cadence"), 0, "a lost account has no clock");
        app.pass(30, 0);
        app.expect(id, 0, "there is no reminder for a lost account");
        app.ingest(json!([{"imported_id": "crm-1", "kind": "trial_started"}]));
        app.pass(42, -1);
        app.expect(id, 0, "a second before");
        app.pass(0, 1);
        app.expect(id, 1, "42 days after it came back");
    });
}

#[test]
fn lost_and_back_with_a_contact_of_long_ago_is_due_at_once_and_once() {
    Sweeping::on_both(|app| {
        let id = app.customer("crm-1");
        app.call(id, 0);
        app.move_to(id, Status::Lost);
        app.pass(50, 0);
        app.move_to(id, Status::Customer);
        app.sweep();
        app.expect(id, 1, "the last contact is 50 days ago");
        app.move_to(id, Status::Lost);
        app.move_to(id, Status::InTrial);
        app.pass(10, 0);
        app.expect(id, 1, "the episode is the same");
    });
}

#[test]
fn a_client_that_leaves_while_it_is_due_is_not_reminded_of() {
    Sweeping::on_both(|app| {
        let id = app.customer("crm-1");
        app.clock().advance_days(42);
        app.move_to(id, Status::DoNotContact);
        app.sweep();
        app.expect(id, 0, "it left");
    });
}

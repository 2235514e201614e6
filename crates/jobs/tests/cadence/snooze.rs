//! Snoozed accounts aren't reminded of until the snooze date begins, in the company's time zone.

use serde_json::json;

use crate::harness::Sweeping;

/// Zone, snooze date, and the first instant of that date there. Midnight is at the usual time, an hour
/// earlier in UTC during summer time, or missing where clocks jump from 24:00 to 01:00.
const DATES: [(&str, &str, &str); 6] = [
    ("UTC", "2026-03-03", "2026-03-03T00:00:00Z"),
    ("Europe/Berlin", "2026-03-29", "2026-03-28T23:00:00Z"),
    ("Europe/Berlin", "2026-03-30", "2026-03-29T22:00:00Z"),
    ("America/New_York", "2026-03-08", "2026-03-08T05:00:00Z"),
    ("America/New_York", "2026-03-09", "2026-03-09T04:00:00Z"),
    ("Africa/Cairo", "2026-04-24", "2026-04-23T22:00:00Z"),
];

#[test]
fn a_snooze_ends_at_midnight_in_the_companys_zone_across_summer_time_too() {
    Sweeping::on_both(|app| {
        for (number, (zone, date, begins)) in DATES.into_iter().enumerate() {
            app.set_time("2026-01-05T09:00:00Z");
            app.set(json!({"time_zone": zone}));
            let id = app.customer(&format!("crm-{number}"));
            app.patch(id, json!({"snoozed_until": date}));
            app.set_time(begins);
            app.pass(0, -1);
            app.expect(id, 0, &format!("a second before {date} in {zone}"));
            app.pass(0, 1);
            app.expect(id, 1, &format!("the first instant of {date} in {zone}"));
            app.delete(id).expect("deleted");
        }
    });
}

#[test]
fn a_snooze_that_ends_before_the_client_is_due_changes_nothing() {
    Sweeping::on_both(|app| {
        let id = app.customer("crm-1");
        app.patch(id, json!({"snoozed_until": "2026-01-20"}));
        app.pass(20, 0);
        assert_eq!(
            app.number("SELECT count(*) FROM cadence WHERE snoozed_until IS NULL"),
            1,
            "the snooze has ended"
        );
        app.pass(22, -1);
        app.expect(id, 0, "a second before");
        app.pass(0, 1);
        app.expect(id, 1, "42 days");
    });
}

#[test]
fn a_snooze_of_an_announced_client_does_not_re_arm() {
    Sweeping::on_both(|app| {
        let id = app.customer("crm-1");
        app.pass(42, 0);
        app.patch(id, json!({"snoozed_until": "2026-03-01"}));
        app.pass(100, 0);
        app.expect(id, 1, "the same episode");
    });
}

#[test]
fn a_snooze_taken_back_reminds_at_once() {
    Sweeping::on_both(|app| {
        let id = app.customer("crm-1");
        app.patch(id, json!({"snoozed_until": "2027-01-01", "cadence_days": 7}));
        app.pass(50, 0);
        app.expect(id, 0, "snoozed");
        app.patch(id, json!({"snoozed_until": null}));
        app.sweep();
        assert_eq!(app.reminders(id)[0]["days_overdue"], json!(43));
    });
}

#[test]
fn a_changed_time_zone_moves_the_end_of_a_snooze() {
    Sweeping::on_both(|app| {
        let id = app.customer("crm-1");
        app.set(json!({"time_zone": "Pacific/Auckland"}));
        app.patch(id, json!({"snoozed_until": "2026-05-01"}));
        app.set_time("2026-04-30T11:00:00Z");
        app.sweep();
        app.expect(id, 0, "an hour before the first of May in Auckland");
        app.set(json!({"time_zone": "America/Los_Angeles"}));
        app.pass(0, 7_200);
        app.expect(id, 0, "it isn't the first of May yet in Los Angeles");
        app.pass(0, 18 * 3_600);
        app.expect(id, 1, "now it is");
    });
}

//! Retention: 90 days from creation, whatever the state; and counts that keep their values.

use rapport_app::redelivery::StartRedelivery;
use rapport_app::retention::{Round, step};
use rapport_app::webhook::DeleteWebhook;
use rapport_domain::delivery_list::{Filter, Shown};
use rapport_domain::time::Day;
use rapport_store::activity::{FeatureUse, days, features};
use rapport_testkit::{TestApp, TestCompany, block_on};
use serde_json::json;

use crate::webhooks::{ids, list, record, webhook};

/// Runs a whole round for a company.
fn prune(company: &TestCompany) {
    let mut round = Round::default();
    while block_on(step(company.app(), company.id(), &mut round)).expect("a step") {}
}

#[test]
fn history_goes_after_90_days_and_not_before() {
    TestApp::on_both(|app| {
        let globex = app.company("globex");
        let hook = webhook(app);
        webhook(&globex);
        for number in 0..3 {
            app.upsert(json!({"imported_id": format!("old-{number}")}));
        }
        let old = ids(app, Shown::Pending);
        record(app, old[0], 200, None);
        record(app, old[1], 404, None);
        app.write(StartRedelivery { filter: Filter::default(), total: 3 }).unwrap();
        app.clock().advance_days(45);
        app.upsert(json!({"imported_id": "new"}));
        record(app, ids(app, Shown::Pending)[0], 200, None);
        globex.upsert(json!({"imported_id": "new"}));
        app.clock().advance_days(45);
        let kept = |table| app.rows(table);
        prune(app);
        let at_90_days = ["delivery", "attempt", "event", "redelivery"].map(kept);
        assert_eq!(at_90_days, [5, 3, 5, 1], "90 days are kept");
        app.clock().advance_seconds(61);
        prune(app);
        prune(&globex);
        assert_eq!(["delivery", "attempt", "event", "redelivery"].map(kept), [2, 1, 2, 0]);
        assert_eq!(list(app, Filter::default())[0].shown.state, Shown::Succeeded);

        app.write(DeleteWebhook(hook)).unwrap();
        app.clock().advance_days(2);
        prune(app);
        assert_eq!(app.rows("webhook"), 2, "its history still exists");
        app.clock().advance_days(45);
        prune(app);
        assert_eq!((app.rows("delivery"), app.rows("webhook")), (1, 1), "globex keeps its own data");
        assert_eq!(globex.account("new").imported_id.as_deref(), Some("new"));
    });
}

#[test]
fn a_companys_days_go_when_no_zone_shows_them() {
    TestApp::on_both(|app| {
        app.upsert(json!({"imported_id": "crm-1"}));
        app.ingest(json!([{"imported_id": "crm-1", "kind": "app_opened"}]));
        app.clock().advance_days(92);
        // Old events are counted for their account, but no longer for the company.
        let late = app.clock().now().plus_days(-90).to_string();
        app.ingest(json!([{"imported_id": "crm-1", "kind": "app_opened", "occurred_at": late}]));
        prune(app);
        assert_eq!(app.rows("activity_day"), 1);
        app.clock().advance_days(1);
        prune(app);
        assert_eq!(app.rows("activity_day"), 0);
    });
}

#[test]
fn the_audit_log_is_kept_for_the_days_that_a_company_chooses() {
    TestApp::on_both(|app| {
        let globex = app.company("globex");
        globex.set(json!({"audit_days": 30}));
        // More than one step.
        for days in 1..=450 {
            app.set(json!({"cadence_days": days}));
        }
        let (of_acme, of_globex) = (app.rows("audit") - 2, 2);
        app.clock().advance_days(30);
        prune(&globex);
        assert_eq!(app.rows("audit"), of_acme + of_globex, "30 days are kept");
        app.clock().advance_seconds(1);
        prune(&globex);
        prune(app);
        assert_eq!(app.rows("audit"), of_acme, "acme keeps its own for 730 days");
        app.clock().advance_days(700);
        app.set(json!({"cadence_days": 7}));
        prune(app);
        assert_eq!(app.rows("audit"), 1);
    });
}

#[test]
fn a_long_history_goes_in_small_steps() {
    TestApp::on_both(|app| {
        for _ in 0..10 {
            webhook(app);
        }
        for number in 0..45 {
            app.upsert(json!({"imported_id": format!("crm-{number}")}));
        }
        assert_eq!(app.rows("delivery"), 450);
        app.clock().advance_days(91);
        let mut round = Round::default();
        let mut left = Vec::new();
        for _ in 0..3 {
            assert!(block_on(step(app.app(), app.id(), &mut round)).unwrap());
            left.push(app.rows("delivery"));
        }
        assert_eq!(left, [250, 50, 0]);
        prune(app);
        assert_eq!(app.rows("event"), 0);
    });
}

#[test]
fn only_the_last_change_of_an_account_stays_in_the_log() {
    TestApp::on_both(|app| {
        let globex = app.company("globex");
        for company in [app as &TestCompany, &globex] {
            for seats in 0..5 {
                company.upsert(json!({"imported_id": "crm-1", "custom_fields": {"seats": seats}}));
            }
            company.upsert(json!({"imported_id": "crm-2"}));
        }
        assert_eq!(app.rows("account_change"), 12);
        prune(app);
        assert_eq!(app.rows("account_change"), 8, "the other company's are kept");
        prune(&globex);
        assert_eq!(app.rows("account_change"), 4);
    });
}

#[test]
fn event_ids_are_free_again_after_90_days() {
    TestApp::on_both(|app| {
        app.upsert(json!({"imported_id": "crm-1"}));
        let send = |id: &str| {
            app.ingest(json!([{"imported_id": "crm-1", "kind": "app_opened", "event_id": id}]))
                .duplicates
                .len()
        };
        assert_eq!((send("one"), send("two"), send("one")), (0, 0, 1));
        app.clock().advance_days(50);
        assert_eq!(send("three"), 0);
        app.clock().advance_days(40);
        app.clock().advance_seconds(-1);
        prune(app);
        assert_eq!(app.rows("event_mark"), 3);
        app.clock().advance_seconds(1);
        assert_eq!(send("one"), 0, "taken again, so it is kept");
        prune(app);
        assert_eq!(app.rows("event_mark"), 2);
        assert_eq!((send("one"), send("three"), send("two")), (1, 1, 0));
    });
}

fn counts(company: &TestCompany, imported_id: &str) -> (Vec<(Day, i64)>, Vec<FeatureUse>) {
    let account = company.account(imported_id).id;
    let today = company.app().now().day_in(&jiff::tz::TimeZone::UTC);
    company.read(move |snapshot| Ok((days(snapshot, account, today)?, features(snapshot, account)?)))
}

#[test]
fn folding_old_days_changes_no_total_and_no_shown_day() {
    TestApp::on_both(|app| {
        for account in ["crm-1", "crm-2"] {
            app.upsert(json!({"imported_id": account}));
        }
        let mut sent = 0;
        for day in 0..130 {
            for account in ["crm-1", "crm-2"] {
                let used = |feature: &str| json!({"imported_id": account, "kind": "feature_used", "feature": feature});
                let opened = json!({"imported_id": account, "kind": "app_opened"});
                app.ingest(json!([used("export"), used("export"), used(&format!("f{}", day % 5)), opened]));
                sent += 4;
            }
            app.clock().advance_days(1);
        }
        // Before the first recorded day; it was never folded.
        app.ingest(json!([{"imported_id": "crm-1", "kind": "feature_used", "feature": "export",
                           "occurred_at": "1969-07-20T20:17:00Z"}]));
        sent += 1;
        let before = ["crm-1", "crm-2"].map(|account| counts(app, account));
        let rows = app.rows("activity_count");
        prune(app);
        assert_eq!(["crm-1", "crm-2"].map(|account| counts(app, account)), before);
        assert!(app.rows("activity_count") < rows - 200, "{} of {rows} rows", app.rows("activity_count"));
        assert_eq!(sum(app), sent);
        let folded = app.rows("activity_count");
        prune(app);
        assert_eq!((app.rows("activity_count"), sum(app)), (folded, sent), "folding happens only once");
        app.clock().advance_days(100);
        prune(app);
        let (shown, totals) = counts(app, "crm-2");
        assert_eq!((shown.len(), totals[0].count, sum(app)), (0, 260, sent));
        assert_eq!(totals[0].feature, "export");
        assert_eq!(app.rows("activity_count"), 14, "a total per account and feature");
    });
}

/// The sum of everything ever counted.
fn sum(app: &TestApp) -> i64 {
    app.number("SELECT CAST(sum(count) AS BIGINT) FROM activity_count")
}

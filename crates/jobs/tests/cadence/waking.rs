//! The background sweep: woken by time and by changes, stopped on request.

use std::time::Duration;

use rapport_domain::id::AccountId;
use rapport_testkit::Engine;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::harness::Sweeping;

const PATIENCE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);

/// Runs the sweep during the test, and stops it at the end.
fn running(app: &Sweeping, every: Duration, test: impl FnOnce()) {
    let stop = CancellationToken::new();
    let sweep = app.runtime.spawn(rapport_jobs::cadence::run(app.app().clone(), stop.clone(), every));
    test();
    stop.cancel();
    let ended = app.runtime.block_on(async { tokio::time::timeout(PATIENCE, sweep).await });
    ended.expect("it stops").expect("no panic");
}

fn wait_for_reminder(app: &Sweeping, account: AccountId) {
    let seen = async {
        while app.reminders(account).is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    app.runtime.block_on(async { tokio::time::timeout(PATIENCE, seen).await }).expect("reminded in time");
}

#[test]
fn time_alone_wakes_it() {
    for engine in Engine::BOTH {
        let app = Sweeping::on(engine);
        running(&app, Duration::from_millis(5), || {
            let id = app.customer("crm-1");
            app.clock().advance_days(42);
            wait_for_reminder(&app, id);
        });
    }
}

#[test]
fn a_contact_a_setting_a_snooze_and_a_move_wake_it() {
    for engine in Engine::BOTH {
        let app = Sweeping::on(engine);
        let [contacted, hurried, snoozed, moved] =
            ["a", "b", "c", "d"].map(|imported_id| app.customer(imported_id));
        app.patch(snoozed, json!({"snoozed_until": "2027-01-01", "cadence_days": 1}));
        app.call(moved, 0);
        app.ingest(json!([{"imported_id": "d", "kind": "churned"}]));
        app.clock().advance_days(30);
        app.patch(contacted, json!({"cadence_days": 3_000}));
        running(&app, HOUR, || {
            app.call(contacted, 3_001);
            wait_for_reminder(&app, contacted);
            app.set(json!({"cadence_days": 30}));
            wait_for_reminder(&app, hurried);
            app.patch(snoozed, json!({"snoozed_until": null}));
            wait_for_reminder(&app, snoozed);
            app.ingest(json!([{"imported_id": "d", "kind": "became_customer"}]));
            wait_for_reminder(&app, moved);
        });
        assert_eq!(app.all_reminders(), 4);
    }
}

//! At most one reminder per episode and none forgotten, whatever crashes and however many nodes sweep.

use rapport_app::Access;
use rapport_app::cadence::{Announce, STEP, Stepped, step};
use rapport_domain::id::AccountId;
use rapport_testkit::{all, block_on};
use serde_json::json;

use crate::harness::{Sweeping, sweep};

/// Creates customers that become due at the same instant.
fn customers(app: &Sweeping, count: usize) -> Vec<AccountId> {
    let upserts = (0..count).map(|number| async move {
        let body = json!({"imported_id": format!("crm-{number}"), "status": "customer"});
        app.upsert(body).account.id
    });
    block_on(all(upserts))
}

/// Checks that every account has exactly one reminder.
#[track_caller]
fn expect_one_each(app: &Sweeping, count: usize) {
    let count = i64::try_from(count).expect("a count");
    let of_accounts = "SELECT count(DISTINCT account) FROM event WHERE kind = 'client.contact_due'";
    assert_eq!((app.all_reminders(), app.number(of_accounts)), (count, count));
    assert_eq!(app.number("SELECT count(*) FROM cadence WHERE announced = 0"), 0);
}

#[test]
fn a_restart_in_the_middle_of_a_sweep_forgets_nobody_and_repeats_nobody() {
    Sweeping::on_both(|app| {
        customers(app, 250);
        app.clock().advance_days(42);
        let stepped = block_on(step(app.app(), app.id())).expect("a step");
        let first = usize::try_from(STEP).expect("a step");
        assert_eq!(stepped, Stepped { announced: first, more: true });
        app.sweep_by(&app.another_node());
        expect_one_each(app, 250);
        app.sweep();
        expect_one_each(app, 250);
    });
}

#[test]
fn a_step_run_again_announces_nobody_twice() {
    Sweeping::on_both(|app| {
        let ids = customers(app, 10);
        app.clock().advance_days(42);
        let access = Access::System(app.id());
        let announce = || block_on(app.app().write(&access, Announce(ids.clone()))).expect("announced");
        assert_eq!((announce().events, announce().events), (10, 0));
        expect_one_each(app, 10);
    });
}

#[test]
fn two_nodes_that_sweep_at_once_announce_a_thousand_clients_once_each() {
    Sweeping::on_both(|app| {
        customers(app, 1_000);
        app.clock().advance_days(42);
        let (one, other) = (app.app().clone(), app.another_node());
        let [one, other] = [one, other].map(|node| app.runtime.spawn(async move { sweep(&node).await }));
        app.runtime.block_on(async {
            one.await.expect("no panic");
            other.await.expect("no panic");
        });
        app.sweep();
        expect_one_each(app, 1_000);
    });
}

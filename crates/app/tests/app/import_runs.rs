//! Running imports: crashes, several nodes, cancelling.

use rapport_app::import::{Purpose, RemoveImport, Runner, Stepped, UndoImport};
use rapport_domain::id::ImportId;
use rapport_domain::import::{LEASE_SECONDS, STEP_ROWS, State};
use rapport_testkit::{TestApp, all, block_on};
use serde_json::json;

use crate::imports::{finish, seen, start, upload};
use crate::refusal;

const ROWS: usize = 5 * STEP_ROWS + 7;

/// Rows without a key: one that is applied twice creates two accounts.
fn unkeyed() -> String {
    let rows =
        (0..ROWS).map(|number| format!("\"Account\n{number}\",contacted\n")).collect::<Vec<_>>().concat();
    format!("name,status\n{rows}")
}

fn begun(app: &TestApp) -> ImportId {
    let id = upload(app, unkeyed()).id;
    start(app, id, Purpose::Run, json!({})).expect("started");
    id
}

fn rows(app: &TestApp) -> [i64; 4] {
    ["account", "event", "status_history", "import_change"].map(|table| app.rows(table))
}

fn number(rows: usize) -> i64 {
    i64::try_from(rows).expect("a small number")
}

#[test]
fn after_a_crash_another_node_goes_on_and_each_row_counts_once() {
    TestApp::on_both(|app| {
        let id = begun(app);
        let mut first = Runner::new(app.app(), app.id(), id);
        for _ in 0..2 {
            assert_eq!(block_on(first.step()).unwrap(), Stepped::More);
        }
        // It disappears without releasing its lease.
        drop(first);
        assert_eq!(rows(app), [number(2 * STEP_ROWS); 4]);
        let other = app.another_node();
        let mut second = Runner::new(&other, app.id(), id);
        assert_eq!(block_on(second.step()).unwrap(), Stepped::Elsewhere, "the first may still be alive");
        app.clock().advance_seconds(LEASE_SECONDS);
        let mut steps = 1;
        while block_on(second.step()).unwrap() == Stepped::More {
            steps += 1;
        }
        assert_eq!(steps, 4, "it continued where the first had stopped");
        assert_eq!(rows(app), [number(ROWS); 4]);
        let done = seen(app, id);
        assert_eq!(
            (done.state, done.rows_done, done.counts.created),
            (State::Finished, number(ROWS), number(ROWS))
        );
        let line = done.at.line;
        assert_eq!(line, 2 + 2 * number(ROWS));
    });
}

#[test]
fn two_nodes_that_both_believe_to_run_it_apply_each_row_once() {
    TestApp::on_both(|app| {
        let id = begun(app);
        let other = app.another_node();
        let mut runners = [Runner::new(app.app(), app.id(), id), Runner::new(&other, app.id(), id)];
        loop {
            // Every lease has expired when the next step begins.
            app.clock().advance_seconds(LEASE_SECONDS);
            let [one, two] = &mut runners;
            let steps: [std::pin::Pin<Box<dyn Future<Output = _>>>; 2] =
                [Box::pin(one.step()), Box::pin(two.step())];
            let stepped = block_on(all(steps));
            if stepped.into_iter().all(|stepped| stepped.expect("a step") == Stepped::Ended) {
                break;
            }
        }
        assert_eq!(rows(app), [number(ROWS); 4]);
        assert_eq!(seen(app, id).counts.created, number(ROWS));
    });
}

#[test]
fn a_step_that_fails_leaves_nothing_and_runs_again() {
    TestApp::on_both(|app| {
        let id = begun(app);
        let mut runner = Runner::new(app.app(), app.id(), id);
        assert_eq!(block_on(runner.step()).unwrap(), Stepped::More);
        let steps_of_a_copy = {
            // The same step from the same position: the second finds that the import has moved on.
            let mut twin = Runner::new(app.app(), app.id(), id);
            app.clock().advance_seconds(LEASE_SECONDS);
            assert_eq!(block_on(twin.step()).unwrap(), Stepped::More);
            app.clock().advance_seconds(LEASE_SECONDS);
            block_on(runner.step()).unwrap()
        };
        assert_eq!(steps_of_a_copy, Stepped::More);
        assert_eq!(rows(app), [number(2 * STEP_ROWS); 4], "the stale step did nothing");
        assert_eq!(finish_with(&mut runner), Stepped::Ended);
        assert_eq!(rows(app), [number(ROWS); 4]);
    });
}

fn finish_with(runner: &mut Runner) -> Stepped {
    loop {
        match block_on(runner.step()).expect("a step") {
            Stepped::More => {}
            stepped => return stepped,
        }
    }
}

#[test]
fn cancelling_keeps_what_is_done_and_lets_it_be_undone() {
    TestApp::on_both(|app| {
        let id = begun(app);
        let mut runner = Runner::new(app.app(), app.id(), id);
        block_on(runner.step()).unwrap();
        app.write(RemoveImport(id)).unwrap();
        assert_eq!(finish_with(&mut runner), Stepped::Ended);
        let cancelled = seen(app, id);
        assert_eq!((cancelled.state, cancelled.rows_done), (State::Cancelled, number(STEP_ROWS)));
        assert_eq!(app.rows("account"), number(STEP_ROWS));
        app.write(UndoImport { id, runner: None }).unwrap();
        assert_eq!(refusal(app.write(RemoveImport(id))), "conflict undoing");
        assert_eq!(finish(app, id).undo.removed, number(STEP_ROWS));
        assert_eq!(app.rows("account"), 0);
        app.write(RemoveImport(id)).unwrap();
        assert_eq!(refusal(app.write(RemoveImport(id))), "no such import");
    });
}

#[test]
fn an_undo_goes_on_after_a_crash() {
    TestApp::on_both(|app| {
        app.upsert(json!({"imported_id": "old", "name": "Old"}));
        let keyed = (0..50).map(|number| format!("crm-{number},x\n")).collect::<Vec<_>>().concat();
        let id = upload(app, format!("id,name\nold,New\n{keyed}")).id;
        start(app, id, Purpose::Run, json!({})).unwrap();
        finish(app, id);
        app.write(UndoImport { id, runner: None }).unwrap();
        let mut first = Runner::new(app.app(), app.id(), id);
        for _ in 0..2 {
            assert_eq!(block_on(first.step()).unwrap(), Stepped::More);
        }
        drop(first);
        assert_eq!(app.rows("account"), 31, "one restored, twenty removed");
        app.clock().advance_seconds(LEASE_SECONDS);
        let undo = finish(app, id).undo;
        assert_eq!((undo.restored, undo.removed, undo.kept, undo.done), (1, 50, 0, 51));
        assert_eq!((app.rows("account"), app.account("old").name.as_str()), (1, "Old"));
    });
}

#[test]
fn a_dry_run_that_was_cut_off_begins_anew() {
    TestApp::on_both(|app| {
        let id = upload(app, unkeyed()).id;
        start(app, id, Purpose::Preview, json!({})).unwrap();
        let mut first = Runner::new(app.app(), app.id(), id);
        assert_eq!(block_on(first.step()).unwrap(), Stepped::More);
        drop(first);
        app.clock().advance_seconds(LEASE_SECONDS);
        let preview = finish(app, id).preview.expect("a preview");
        assert_eq!(preview["counts"]["created"], json!(ROWS));
    });
}

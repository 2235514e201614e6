//! Bulk redelivery: a count first, steps that request attempts, progress, cancelling.

use rapport_app::erasure::erase_payloads;
use rapport_app::redelivery::{
    CancelRedelivery, Counted, Progress, StartRedelivery, Stepped, count, progress, step,
};
use rapport_app::webhook::{DeleteWebhook, DisableWebhook};
use rapport_domain::delivery_list::{Filter, Shown};
use rapport_domain::event::Kind;
use rapport_domain::id::RedeliveryId;
use rapport_domain::member::Role;
use rapport_domain::redelivery::{MAX_UNMADE, STEP, State};
use rapport_testkit::{TestApp, TestCompany, all, block_on};
use serde_json::json;

use crate::refusal;
use crate::webhooks::{claim_manual, ids, record, stored, webhook};

fn failed() -> Filter {
    Filter { state: Some(Shown::Failed), ..Filter::default() }
}

fn counted(company: &TestCompany, filter: Filter) -> Counted {
    block_on(count(company.app(), company.token(), filter)).expect("counted")
}

fn start(company: &TestCompany, filter: Filter) -> RedeliveryId {
    let total = counted(company, filter).count;
    company.write(StartRedelivery { filter, total }).expect("started").id
}

fn one_step(company: &TestCompany, id: RedeliveryId) -> Stepped {
    block_on(step(company.app(), company.id(), id)).expect("a step")
}

fn seen(company: &TestCompany, id: RedeliveryId) -> Progress {
    company.read(move |snapshot| progress(snapshot, id)).expect("there")
}

/// Accounts whose first delivery failed for good.
fn fail(company: &TestCompany, accounts: usize) {
    for number in 0..accounts {
        company.upsert(json!({"imported_id": format!("crm-{number}")}));
    }
    for delivery in ids(company, Shown::Pending) {
        record(company, delivery, 404, None);
    }
}

#[test]
fn it_counts_asks_for_every_attempt_and_ends_when_they_are_made() {
    TestApp::on_both(|app| {
        let hook = webhook(app);
        fail(app, 5);
        app.upsert(json!({"imported_id": "open"}));
        assert_eq!(counted(app, failed()), Counted { count: 5, capped: false });
        assert_eq!(counted(app, Filter::default()), Counted { count: 6, capped: false });
        app.write(DisableWebhook(hook)).unwrap();
        let id = start(app, failed());
        // Deliveries that fail from now on aren't included.
        app.upsert(json!({"imported_id": "later"}));
        assert_eq!(one_step(app, id), Stepped::Waiting, "everything fits into one step");
        let Progress { redelivery, unmade, .. } = seen(app, id);
        assert_eq!(
            (redelivery.state(), redelivery.total, redelivery.queued, unmade),
            (State::Running, 5, 5, 5)
        );
        assert_eq!(one_step(app, id), Stepped::Waiting);
        let claimed = claim_manual(app, 100);
        assert_eq!(claimed.len(), 5);
        for (at, (manual, delivery)) in claimed.into_iter().enumerate() {
            record(app, delivery, if at == 0 { 500 } else { 200 }, Some(manual));
        }
        assert_eq!(seen(app, id).unmade, 0);
        assert_eq!(one_step(app, id), Stepped::Ended);
        let Progress { redelivery, .. } = seen(app, id);
        assert_eq!((redelivery.state(), redelivery.finished_at), (State::Finished, Some(app.clock().now())));
        assert_eq!((ids(app, Shown::Succeeded).len(), ids(app, Shown::Failed).len()), (4, 1));
        assert_eq!(one_step(app, id), Stepped::Ended);
    });
}

#[test]
fn what_has_no_webhook_or_payload_any_more_is_skipped_and_counted() {
    TestApp::on_both(|app| {
        let gone = webhook(app);
        fail(app, 3);
        app.write(DeleteWebhook(gone)).unwrap();
        webhook(app);
        let erased = app.upsert(json!({"imported_id": "erased"})).account.id;
        app.upsert(json!({"imported_id": "kept"}));
        block_on(erase_payloads(app.app(), app.token(), erased)).unwrap();
        let id = start(app, Filter::default());
        one_step(app, id);
        let Progress { redelivery, unmade, .. } = seen(app, id);
        assert_eq!((redelivery.total, redelivery.queued, redelivery.skipped, unmade), (5, 1, 4, 1));
        let [(manual, delivery)] = claim_manual(app, 10)[..] else { panic!("one attempt waits") };
        assert_eq!(stored(app, delivery).kind, Kind::AccountCreated);
        record(app, delivery, 200, Some(manual));
        assert_eq!(one_step(app, id), Stepped::Ended);
    });
}

#[test]
fn it_walks_in_steps_and_waits_while_many_are_unmade() {
    TestApp::on_both(|app| {
        for _ in 0..20 {
            webhook(app);
        }
        for number in 0..65 {
            app.upsert(json!({"imported_id": format!("crm-{number}")}));
        }
        let all_of_them = counted(app, Filter::default()).count;
        assert_eq!(all_of_them, 1_300);
        let id = start(app, Filter::default());
        let mut steps = 0;
        while one_step(app, id) == Stepped::More {
            steps += 1;
        }
        let Progress { redelivery, unmade, .. } = seen(app, id);
        assert_eq!((redelivery.queued, unmade), (MAX_UNMADE, MAX_UNMADE));
        assert_eq!(i64::from(steps) * i64::try_from(STEP).unwrap(), MAX_UNMADE);
        for (manual, delivery) in claim_manual(app, 400) {
            record(app, delivery, 200, Some(manual));
        }
        while one_step(app, id) == Stepped::More {}
        assert_eq!((seen(app, id).redelivery.queued, seen(app, id).unmade), (all_of_them, 900));
    });
}

#[test]
fn two_nodes_ask_for_each_attempt_once() {
    TestApp::on_both(|app| {
        webhook(app);
        fail(app, 30);
        let id = start(app, failed());
        let other = app.another_node();
        let steps = [app.app(), &other, app.app(), &other].map(|node| step(node, app.id(), id));
        for stepped in block_on(all(steps)) {
            stepped.expect("a step");
        }
        assert_eq!((app.rows("manual_attempt"), seen(app, id).redelivery.queued), (30, 30));
    });
}

#[test]
fn cancelling_takes_back_what_is_not_begun() {
    TestApp::on_both(|app| {
        webhook(app);
        fail(app, 10);
        let id = start(app, failed());
        one_step(app, id);
        let begun = claim_manual(app, 4);
        app.write(CancelRedelivery(id)).unwrap();
        let Progress { redelivery, unmade, .. } = seen(app, id);
        assert_eq!((redelivery.state(), redelivery.queued, unmade), (State::Cancelled, 4, 4));
        assert_eq!(one_step(app, id), Stepped::Ended);
        for (manual, delivery) in begun {
            record(app, delivery, 200, Some(manual));
        }
        assert_eq!((seen(app, id).unmade, ids(app, Shown::Failed).len()), (0, 6));
        app.write(CancelRedelivery(id)).unwrap();
        assert_eq!(seen(app, id).redelivery.state(), State::Cancelled);
        let nobody = RedeliveryId::from_bytes([9; 16]);
        assert_eq!(refusal(app.write(CancelRedelivery(nobody))), "no such redelivery");
    });
}

#[test]
fn it_belongs_to_its_company_and_its_admins() {
    TestApp::on_both(|app| {
        let globex = app.company("globex");
        webhook(&globex);
        fail(&globex, 2);
        let id = start(&globex, failed());
        assert_eq!(refusal(app.write(CancelRedelivery(id))), "no such redelivery");
        assert_eq!(app.read(move |snapshot| progress(snapshot, id)), None);
        assert_eq!(counted(app, Filter::default()).count, 0);
        assert_eq!(one_step(app, id), Stepped::Ended, "this company has nothing to do");
        assert_eq!(seen(&globex, id).redelivery.state(), State::Running);
        let member = globex.token_of(Role::Member);
        let start = StartRedelivery { filter: failed(), total: 2 };
        assert_eq!(refusal(globex.write_as(&member, start)), "forbidden role_required");
        assert_eq!(refusal(globex.write_as(&member, CancelRedelivery(id))), "forbidden role_required");
        assert_eq!(refusal(block_on(count(globex.app(), &member, failed()))), "forbidden role_required");
    });
}

//! POST /api/accounts/upsert-batch/: many upserts in one transaction, each on its own.

use std::pin::Pin;

use rapport_app::Error;
use rapport_app::upsert::{Upsert, Upserted};
use rapport_app::upsert_batch::UpsertBatch;
use rapport_domain::account;
use rapport_domain::event::Kind;
use rapport_domain::member::Role;
use rapport_domain::pipeline::{Source, Status};
use rapport_domain::upsert_batch::parse;
use rapport_testkit::{TestApp, TestCompany, all, block_on};
use serde_json::{Value, json};

use crate::{kinds, moves, refusal};

type Answers<'a> = Pin<Box<dyn Future<Output = Vec<Result<Upserted, Error>>> + 'a>>;

fn request(company: &TestCompany, accounts: &[Value]) -> UpsertBatch {
    let body = json!({"project": company.slug(), "accounts": accounts});
    let batch = parse(body.as_object().unwrap()).expect("a batch");
    let accounts = batch.accounts.into_iter().map(|account| account.expect("an account")).collect();
    UpsertBatch { project: batch.project, accounts, bytes: 0 }
}

fn send(company: &TestCompany, accounts: &[Value]) -> Vec<Result<Upserted, Error>> {
    company.write(request(company, accounts)).expect("a batch")
}

#[test]
fn a_batch_is_applied_in_order_and_a_refused_account_leaves_nothing_behind() {
    TestApp::on_both(|app| {
        app.channel("Fair", &["FAIR"]);
        let large = "x".repeat(70_000);
        let answers = send(
            app,
            &[
                json!({"imported_id": "a", "name": "First", "status": "contacted", "promo_code": "fair"}),
                json!({"imported_id": "b", "custom_fields": {"text": large}}),
                json!({"imported_id": "a", "status": "customer", "custom_fields": {"text": large}}),
                json!({"imported_id": "a", "status": "in_trial", "name": "Second", "name_policy": "update"}),
                json!({"imported_id": "c", "name": "\u{3164}"}),
                json!({"imported_id": "b", "project": "globex"}),
                json!({"imported_id": "d"}),
            ],
        );
        let outcomes: Vec<String> = answers
            .into_iter()
            .map(|answer| match answer {
                Ok(upserted) if upserted.created => "created".to_owned(),
                Ok(upserted) => upserted.changed.join(" "),
                refused => refusal(refused),
            })
            .collect();
        let expected = [
            "created",
            "invalid /custom_fields too_large",
            "invalid /custom_fields too_large",
            "name status",
            "invalid /name invisible",
            "forbidden foreign_project",
            "created",
        ];
        assert_eq!(outcomes, expected);
        assert_eq!((app.rows("account"), app.rows("event"), app.rows("status_history")), (2, 3, 3));
        let account = app.account("a");
        assert_eq!((account.name.as_str(), account.status), ("Second", Status::InTrial));
        assert_eq!(account.channel.as_ref().unwrap().name, "Fair");
        let expected = [
            (None, Status::Contacted, Source::Upsert),
            (Some(Status::Contacted), Status::InTrial, Source::Upsert),
        ];
        assert_eq!(moves(app, account.id), expected);
        assert_eq!(kinds(app, account.id), [Kind::AccountCreated, Kind::AccountStatusChanged]);
    });
}

#[test]
fn a_batch_needs_a_live_token_of_the_company_that_may_work() {
    TestApp::on_both(|app| {
        let rows = [json!({"imported_id": "a"})];
        assert_eq!(refusal(app.write_as(app.ingest_key(), request(app, &rows))), "unauthenticated");
        let viewer = app.token_of(Role::Viewer);
        assert_eq!(refusal(app.write_as(&viewer, request(app, &rows))), "forbidden role_required");
        let globex = app.company("globex");
        assert_eq!(refusal(globex.write(request(app, &rows))), "forbidden foreign_project");
        assert_eq!((app.rows("account"), app.rows("event")), (0, 0));
    });
}

#[test]
fn batches_and_single_upserts_on_two_nodes_create_each_account_once_and_lose_no_merge() {
    TestApp::on_both(|app| {
        let node = app.another_node();
        let batches = (0..24_usize).map(|n| {
            // In opposite orders, so that their locks would meet halfway.
            let mut rows: Vec<Value> = (0..60)
                .map(|place| json!({"imported_id": format!("crm-{place}"), "custom_fields": {format!("b{n}"): n}}))
                .collect();
            if n % 2 == 0 {
                rows.reverse();
            }
            let sent = if n % 3 == 0 { app.app() } else { &node }.write(app.token(), request(app, &rows));
            let answers: Answers = Box::pin(async move { sent.await.expect("a batch") });
            answers
        });
        let singles = (0..60).map(|n| {
            let body = json!({"project": app.slug(), "imported_id": format!("crm-{n}"), "custom_fields": {"single": n}});
            let request = account::Upsert::parse(body.as_object().unwrap()).unwrap();
            let sent = app.app().write(app.token(), Upsert(request));
            let answers: Answers = Box::pin(async move { vec![sent.await] });
            answers
        });
        let answers = block_on(all(batches.chain(singles))).into_iter().flatten();
        let created = answers.filter(|answer| answer.as_ref().expect("an answer").created).count();
        assert_eq!((created, app.rows("account"), app.rows("event")), (60, 60, 60));
        for n in 0..60 {
            let account = app.account(&format!("crm-{n}"));
            assert_eq!(account.custom_fields.to_map().len(), 25, "no merge was lost");
        }
    });
}

#[test]
fn a_batch_of_500_accounts_is_applied_and_repeated_without_effect() {
    TestApp::on_both(|app| {
        let rows: Vec<Value> =
            (0..500).map(|n| json!({"imported_id": format!("crm-{n}"), "status": "customer"})).collect();
        assert!(send(app, &rows).iter().all(|answer| answer.as_ref().is_ok_and(|upserted| upserted.created)));
        assert_eq!((app.rows("account"), app.rows("event"), app.rows("status_history")), (500, 500, 500));
        let again = send(app, &rows);
        assert!(again.iter().all(|answer| answer.as_ref().is_ok_and(|upserted| upserted.changed.is_empty())));
        assert_eq!(
            (app.rows("event"), app.rows("status_history")),
            (500, 500),
            "a full re-sync adds nothing"
        );
    });
}

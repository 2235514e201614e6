//! Concurrent requests take effect exactly once.

use std::collections::BTreeMap;

use rapport_testkit::all;
use serde_json::{Value, json};

use crate::harness::{Answer, Tenant, column, on_both_engines};

on_both_engines! {
    two_hundred_upserts_of_one_new_imported_id_create_one_account_and_one_event,
    concurrent_upserts_lose_no_custom_field,
    concurrent_ingests_with_the_same_event_ids_count_each_once,
    concurrent_moves_leave_a_history_without_gaps,
    concurrent_changes_to_the_same_status_move_once,
}

fn by_status(answers: &[Answer]) -> BTreeMap<u16, usize> {
    answers.iter().fold(BTreeMap::new(), |mut counts, answer| {
        *counts.entry(answer.status).or_default() += 1;
        counts
    })
}

async fn two_hundred_upserts_of_one_new_imported_id_create_one_account_and_one_event(acme: Tenant) {
    let body = json!({"imported_id": "crm-1", "status": "contacted", "custom_fields": {"n": 1}});
    let answers = all((0..200).map(|_| acme.upsert(body.clone()))).await;
    assert_eq!(by_status(&answers), BTreeMap::from([(200, 199), (201, 1)]));
    let accounts = acme.all_pages("/api/accounts/", 200).await;
    assert_eq!(accounts.len(), 1);
    for answer in &answers {
        assert_eq!(answer.json()["account"], accounts[0]);
        assert_eq!(answer.json()["created"], json!(answer.status == 201));
    }
    assert_eq!(column(&acme.events(&accounts[0]), "type"), ["account.created"]);
    assert_eq!(acme.history(&accounts[0]).await.len(), 1);
}

async fn concurrent_upserts_lose_no_custom_field(acme: Tenant) {
    let upserts =
        (0..100).map(|n| acme.upsert(json!({"imported_id": "a", "custom_fields": {format!("k{n}"): n}})));
    let answers = all(upserts).await;
    assert_eq!(by_status(&answers), BTreeMap::from([(200, 99), (201, 1)]));
    let fields: serde_json::Map<String, Value> = (0..100).map(|n| (format!("k{n}"), json!(n))).collect();
    assert_eq!(acme.shown("a").await["custom_fields"], json!(fields));
}

async fn concurrent_ingests_with_the_same_event_ids_count_each_once(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "a"})).await;
    let mut events: Vec<Value> = (0..10)
        .map(|n| json!({"imported_id": "a", "kind": "feature_used", "feature": "f", "event_id": format!("e-{n}")}))
        .collect();
    events.push(json!({"imported_id": "a", "kind": "became_customer", "event_id": "once"}));
    let answers = all((0..50).map(|_| acme.ingest(json!(events)))).await;
    let sum =
        |member: &str| answers.iter().map(|answer| answer.expect(200)[member].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("received"), sum("accepted"), sum("duplicates")), (550, 11, 539));
    let pulse = acme.get(&format!("/api/accounts/{}/pulse/", account["id"].as_str().unwrap())).send().await;
    assert_eq!(pulse.expect(200)["features"][0]["count"], json!(10));
    assert_eq!(column(&acme.events(&account), "type"), ["account.created", "account.status_changed"]);
    assert_eq!(acme.history(&account).await.len(), 2);
}

async fn concurrent_moves_leave_a_history_without_gaps(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "a"})).await;
    let stages = ["contacted", "in_negotiation", "customer", "lost"];
    let upserts = (0..60).map(|n| acme.upsert(json!({"imported_id": "a", "status": stages[n % 4]})));
    let ingests = (0..20).map(|n| {
        let kind = if n % 2 == 0 { "trial_started" } else { "churned" };
        acme.ingest(json!([{"imported_id": "a", "kind": kind}]))
    });
    let (upserted, ingested) = tokio::join!(all(upserts), all(ingests));
    for answer in upserted.iter().chain(&ingested) {
        answer.expect(200);
    }
    let history = acme.history(&account).await;
    let events = acme.events(&account);
    assert_eq!(events.len(), history.len(), "every move has one history entry and one event");
    let moves: Vec<Value> = events.iter().skip(1).map(|event| event["data"].clone()).collect();
    let mut chain: Vec<(&Value, &Value)> =
        moves.iter().map(|step| (&step["previous_status"], &step["status"])).collect();
    let mut kept: Vec<(&Value, &Value)> =
        history[1..].iter().map(|entry| (&entry["from"], &entry["to"])).collect();
    let key = |step: &(&Value, &Value)| (step.0.to_string(), step.1.to_string());
    chain.sort_by_key(key);
    kept.sort_by_key(key);
    assert_eq!(chain, kept);
    assert!(kept.iter().all(|(from, to)| from != to), "only actual moves");
    let end = acme.shown("a").await["status"].clone();
    let arrivals = |stage: &Value| kept.iter().filter(|(_, to)| *to == stage).count();
    let departures = |stage: &Value| kept.iter().filter(|(from, _)| *from == stage).count();
    for stage in ["prospect", "contacted", "in_negotiation", "in_trial", "customer", "lost"] {
        let stage = json!(stage);
        let entered = arrivals(&stage) + usize::from(stage == "prospect");
        assert_eq!(
            entered - departures(&stage),
            usize::from(stage == end),
            "{stage}: each move starts where the previous one ended"
        );
    }
}

async fn concurrent_changes_to_the_same_status_move_once(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "a"})).await;
    let path = format!("/api/accounts/{}/status/", account["id"].as_str().unwrap());
    let answers = all((0..30).map(|_| acme.post(&path).json(&json!({"status": "customer"})).send())).await;
    let moved = answers.iter().filter(|answer| answer.expect(200)["moved"] == json!(true)).count();
    assert_eq!(moved, 1);
    assert_eq!(acme.history(&account).await.len(), 2);
    assert_eq!(acme.events(&account).len(), 2);
}

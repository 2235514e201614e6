//! States and transitions: every row of the table, through ingest, upsert and the operator's change.

use serde_json::{Value, json};

use crate::harness::{Tenant, column, members_of, on_both_engines, path_of};

on_both_engines! {
    trial_started_moves_any_earlier_stage_to_in_trial,
    trial_started_reopens_a_lost_account_with_its_own_source,
    trial_started_in_trial_stays_without_history_or_event,
    trial_started_never_demotes_a_customer,
    trial_started_never_touches_do_not_contact,
    became_customer_moves_any_stage_to_customer_and_captures_the_value,
    became_customer_for_a_customer_captures_the_value_without_a_move,
    churned_moves_any_stage_to_lost,
    churned_for_a_lost_account_does_not_move_it,
    upsert_with_a_different_status_moves_anywhere,
    upsert_with_the_same_status_is_a_no_op,
    operator_change_moves_anywhere_with_its_note,
    operator_change_to_the_same_status_fires_nothing,
    operator_edit_of_the_status_is_an_operator_change,
    status_changed_fires_only_when_an_account_actually_moves,
    other_kinds_of_activity_trigger_nothing,
    events_in_a_batch_apply_in_array_order_regardless_of_their_time,
    an_account_reactivated_from_do_not_contact_is_excluded_from_campaigns,
}

const STAGES: [&str; 7] =
    ["prospect", "contacted", "in_negotiation", "in_trial", "customer", "lost", "do_not_contact"];

/// An account in this stage.
async fn in_stage(acme: &Tenant, stage: &str) -> Value {
    acme.account(json!({"imported_id": format!("in-{stage}"), "status": stage})).await
}

/// Sends an event of this kind for the account in this stage.
async fn activity(acme: &Tenant, stage: &str, kind: &str) {
    acme.accept(json!({"imported_id": format!("in-{stage}"), "kind": kind})).await;
}

/// Asserts by status, history and events that the account has moved once since its creation.
async fn assert_moved(acme: &Tenant, account: &Value, to: &str, source: &str, actor: &str) -> Value {
    let from = &account["status"];
    let now = acme.get(&path_of(account)).send().await.expect(200);
    assert_eq!(now["status"], json!(to), "from {from}");
    let history = acme.history(account).await;
    assert_eq!(history.len(), 2, "from {from} to {to}: {history:?}");
    let entry = &history[1];
    assert_eq!((&entry["from"], &entry["to"]), (from, &json!(to)));
    assert_eq!((&entry["source"], &entry["actor"]["type"]), (&json!(source), &json!(actor)), "from {from}");
    let events = acme.events(account);
    assert_eq!(column(&events, "type"), ["account.created", "account.status_changed"], "from {from}");
    let data = &events[1]["data"];
    assert_eq!(members_of(data), ["account", "previous_status", "source", "status"]);
    assert_eq!((&data["previous_status"], &data["status"]), (from, &json!(to)));
    assert_eq!((&data["source"], &data["account"]["status"]), (&json!(source), &json!(to)));
    now
}

/// Asserts that the account did not move: no history entry and no event since its creation.
async fn assert_stayed(acme: &Tenant, account: &Value) {
    let now = acme.get(&path_of(account)).send().await.expect(200);
    assert_eq!(now["status"], account["status"]);
    assert_eq!(now["updated_at"], account["updated_at"]);
    assert_eq!(acme.history(account).await.len(), 1, "{}", account["status"]);
    assert_eq!(column(&acme.events(account), "type"), ["account.created"], "{}", account["status"]);
}

async fn trial_started_moves_any_earlier_stage_to_in_trial(acme: Tenant) {
    for stage in ["prospect", "contacted", "in_negotiation"] {
        let account = in_stage(&acme, stage).await;
        activity(&acme, stage, "trial_started").await;
        assert_moved(&acme, &account, "in_trial", "automation", "ingest_key").await;
    }
}

async fn trial_started_reopens_a_lost_account_with_its_own_source(acme: Tenant) {
    let account = in_stage(&acme, "lost").await;
    activity(&acme, "lost", "trial_started").await;
    let now = assert_moved(&acme, &account, "in_trial", "automation", "ingest_key").await;
    let status = json!({"status": "lost"});
    acme.post(&format!("{}status/", path_of(&now))).json(&status).send().await.expect(200);
    let sources = column(&acme.history(&account).await, "source");
    assert_eq!(sources, ["upsert", "automation", "operator"], "a human edit has a different source");
}

async fn trial_started_in_trial_stays_without_history_or_event(acme: Tenant) {
    let account = in_stage(&acme, "in_trial").await;
    activity(&acme, "in_trial", "trial_started").await;
    assert_stayed(&acme, &account).await;
}

async fn trial_started_never_demotes_a_customer(acme: Tenant) {
    let account = in_stage(&acme, "customer").await;
    activity(&acme, "customer", "trial_started").await;
    assert_stayed(&acme, &account).await;
    assert!(acme.shown("in-customer").await["last_seen_at"].is_string(), "the activity still counts");
}

async fn trial_started_never_touches_do_not_contact(acme: Tenant) {
    let account = in_stage(&acme, "do_not_contact").await;
    activity(&acme, "do_not_contact", "trial_started").await;
    assert_stayed(&acme, &account).await;
}

async fn became_customer_moves_any_stage_to_customer_and_captures_the_value(acme: Tenant) {
    for stage in STAGES.into_iter().filter(|stage| *stage != "customer") {
        let account = in_stage(&acme, stage).await;
        let metadata = json!({"captured_value": "240", "captured_value_currency": "EUR"});
        let event =
            json!({"imported_id": format!("in-{stage}"), "kind": "became_customer", "metadata": metadata});
        acme.accept(event).await;
        let now = assert_moved(&acme, &account, "customer", "automation", "ingest_key").await;
        assert_eq!(
            (&now["captured_value"], &now["captured_value_currency"]),
            (&json!("240.00"), &json!("EUR"))
        );
        let payload = &acme.events(&account)[1]["data"]["account"];
        assert_eq!(payload["captured_value"], json!("240.00"), "the payload has the captured value");
        assert!(payload["last_seen_at"].is_string(), "the payload has the time of the activity");
    }
}

async fn became_customer_for_a_customer_captures_the_value_without_a_move(acme: Tenant) {
    let account = in_stage(&acme, "customer").await;
    activity(&acme, "customer", "became_customer").await;
    assert_stayed(&acme, &account).await;
    let metadata = json!({"captured_value": "240"});
    acme.accept(json!({"imported_id": "in-customer", "kind": "became_customer", "metadata": metadata})).await;
    assert_stayed(&acme, &account).await;
    assert_eq!(acme.shown("in-customer").await["captured_value"], json!("240.00"));
}

async fn churned_moves_any_stage_to_lost(acme: Tenant) {
    for stage in STAGES.into_iter().filter(|stage| *stage != "lost") {
        let account = in_stage(&acme, stage).await;
        activity(&acme, stage, "churned").await;
        assert_moved(&acme, &account, "lost", "automation", "ingest_key").await;
    }
}

async fn churned_for_a_lost_account_does_not_move_it(acme: Tenant) {
    let account = in_stage(&acme, "lost").await;
    activity(&acme, "lost", "churned").await;
    assert_stayed(&acme, &account).await;
}

async fn upsert_with_a_different_status_moves_anywhere(acme: Tenant) {
    for from in STAGES {
        for to in STAGES.into_iter().filter(|to| *to != from) {
            let id = format!("{from}-{to}");
            let account = acme.account(json!({"imported_id": id, "status": from})).await;
            let reply = acme.resend(json!({"imported_id": id, "status": to})).await;
            assert_eq!((&reply["account"]["status"], &reply["changed"]), (&json!(to), &json!(["status"])));
            assert_moved(&acme, &account, to, "upsert", "token").await;
        }
    }
}

async fn upsert_with_the_same_status_is_a_no_op(acme: Tenant) {
    for stage in STAGES {
        let account = in_stage(&acme, stage).await;
        let reply = acme.resend(json!({"imported_id": format!("in-{stage}"), "status": stage})).await;
        assert_eq!(reply["changed"], json!([]));
        assert_stayed(&acme, &account).await;
    }
}

async fn operator_change_moves_anywhere_with_its_note(acme: Tenant) {
    for from in STAGES {
        for to in STAGES.into_iter().filter(|to| *to != from) {
            let id = format!("{from}-{to}");
            let account = acme.account(json!({"imported_id": id, "status": from})).await;
            let change = json!({"status": to, "note": format!("{from} no more")});
            let path = format!("{}status/", path_of(&account));
            let moved = acme.post(&path).json(&change).send().await.expect(200);
            assert_eq!((&moved["moved"], &moved["status"]), (&json!(true), &json!(to)));
            assert_moved(&acme, &account, to, "operator", "token").await;
            assert_eq!(acme.history(&account).await[1]["note"], change["note"]);
        }
    }
}

async fn operator_change_to_the_same_status_fires_nothing(acme: Tenant) {
    for stage in STAGES {
        let account = in_stage(&acme, stage).await;
        let change = json!({"status": stage, "note": "as before"});
        let path = format!("{}status/", path_of(&account));
        let reply = acme.post(&path).json(&change).send().await.expect(200);
        assert_eq!(reply["moved"], json!(false));
        assert_stayed(&acme, &account).await;
    }
}

async fn operator_edit_of_the_status_is_an_operator_change(acme: Tenant) {
    let account = in_stage(&acme, "prospect").await;
    let edit = json!({"status": "in_negotiation", "name": "Renamed"});
    let edited = acme.patch(&path_of(&account)).json(&edit).send().await.expect(200);
    assert_eq!((&edited["status"], &edited["name"]), (&json!("in_negotiation"), &json!("Renamed")));
    assert_moved(&acme, &account, "in_negotiation", "operator", "token").await;
    let other = in_stage(&acme, "customer").await;
    acme.patch(&path_of(&other)).json(&json!({"status": "customer"})).send().await.expect(200);
    assert_stayed(&acme, &other).await;
}

async fn status_changed_fires_only_when_an_account_actually_moves(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "a", "status": "contacted"})).await;
    for body in [json!({"status": "contacted"}), json!({"custom_fields": {"n": 1}}), json!({"name": "x"})] {
        let mut body = body;
        body["imported_id"] = json!("a");
        acme.resend(body).await;
    }
    acme.patch(&path_of(&account)).json(&json!({"name": "y", "cadence_days": 5})).send().await.expect(200);
    assert_eq!(column(&acme.events(&account), "type"), ["account.created"]);
    assert_eq!(acme.history(&account).await.len(), 1);
}

async fn other_kinds_of_activity_trigger_nothing(acme: Tenant) {
    for stage in STAGES {
        let account = in_stage(&acme, stage).await;
        let id = format!("in-{stage}");
        let events = json!([
            {"imported_id": id, "kind": "app_opened"},
            {"imported_id": id, "kind": "feature_used", "feature": "churned"},
            {"imported_id": id, "kind": "custom", "feature": "became_customer", "metadata": {"captured_value": "5"}},
            {"imported_id": id, "kind": "custom"},
        ]);
        assert_eq!(acme.ingest(events).await.expect(200)["accepted"], json!(4));
        assert_stayed(&acme, &account).await;
        assert_eq!(acme.shown(&id).await["captured_value"], Value::Null);
    }
}

async fn events_in_a_batch_apply_in_array_order_regardless_of_their_time(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "a"})).await;
    let other = acme.account(json!({"imported_id": "b"})).await;
    let events = json!([
        {"imported_id": "a", "kind": "trial_started", "occurred_at": "2026-01-04T12:00:00Z"},
        {"imported_id": "b", "kind": "became_customer"},
        {"imported_id": "a", "kind": "trial_started", "occurred_at": "2026-01-01T00:00:00Z"},
        {"imported_id": "a", "kind": "became_customer", "occurred_at": "2026-01-03T00:00:00Z"},
        {"imported_id": "a", "kind": "trial_started"},
        {"imported_id": "a", "kind": "churned", "occurred_at": "2026-01-02T00:00:00Z"},
        {"imported_id": "b", "kind": "churned"},
        {"imported_id": "a", "kind": "trial_started", "occurred_at": "2025-01-01T00:00:00Z"},
    ]);
    assert_eq!(acme.ingest(events).await.expect(200)["accepted"], json!(8));
    let path = ["prospect", "in_trial", "customer", "lost", "in_trial"];
    let history = acme.history(&account).await;
    assert_eq!(column(&history, "to"), path);
    assert_eq!(column(&history[1..], "from"), path[..4]);
    let moves: Vec<Value> =
        acme.events(&account).into_iter().skip(1).map(|event| event["data"].clone()).collect();
    assert_eq!(column(&moves, "status"), path[1..]);
    assert_eq!(column(&moves, "previous_status"), path[..4]);
    assert_eq!(column(&acme.history(&other).await, "to"), ["prospect", "customer", "lost"]);
}

async fn an_account_reactivated_from_do_not_contact_is_excluded_from_campaigns(acme: Tenant) {
    let held = |id: &str| acme.company.account(id).campaign_hold;
    let account = in_stage(&acme, "do_not_contact").await;
    activity(&acme, "do_not_contact", "became_customer").await;
    assert!(held("in-do_not_contact"));
    acme.resend(json!({"imported_id": "in-do_not_contact", "status": "lost"})).await;
    assert!(held("in-do_not_contact"), "only a move by an operator ends the exclusion");
    let path = format!("{}status/", path_of(&account));
    acme.post(&path).json(&json!({"status": "prospect"})).send().await.expect(200);
    assert!(!held("in-do_not_contact"));
}

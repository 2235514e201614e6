//! Whether a lifecycle event that is older than the account's latest move still moves it: a setting of the company.

use rapport_domain::member::Role;
use serde_json::{Value, json};

use crate::harness::{Server, Tenant, column, on_both_engines};
use crate::person::Person;

on_both_engines! {
    a_late_event_moves_the_account_by_default,
    a_late_event_does_not_move_the_account_if_the_company_says_so,
    a_move_by_activity_happened_when_its_event_did,
    events_of_one_batch_are_compared_with_each_other,
    the_creation_of_an_account_is_no_move,
    a_sender_whose_clock_is_ahead_does_not_make_others_late,
    a_late_event_still_counts_and_captures_its_value,
    the_setting_is_on_the_ingest_page,
}

const PATH: &str = "/settings/ingest";

fn event(kind: &str, at: &str) -> Value {
    json!({"imported_id": "a", "kind": kind, "occurred_at": at})
}

async fn status(acme: &Tenant) -> Value {
    acme.shown("a").await["status"].clone()
}

fn ignore_late(acme: &Tenant) {
    acme.company.set(json!({"late_events_move": false}));
}

// The clock starts at 09:00 on 5 January 2026.

async fn a_late_event_moves_the_account_by_default(server: Server) {
    server.account(json!({"imported_id": "a"})).await;
    server.resend(json!({"imported_id": "a", "status": "customer"})).await;
    server.accept(event("churned", "2026-01-01")).await;
    assert_eq!(status(&server).await, json!("lost"));
    server.accept(event("trial_started", "2001-01-01")).await;
    assert_eq!(status(&server).await, json!("in_trial"));
}

async fn a_late_event_does_not_move_the_account_if_the_company_says_so(server: Server) {
    ignore_late(&server);
    let account = server.account(json!({"imported_id": "a"})).await;
    server.resend(json!({"imported_id": "a", "status": "contacted"})).await;
    let rows = || (server.app.rows("status_history"), server.app.rows("event"));
    let before = rows();
    for kind in ["trial_started", "became_customer", "churned"] {
        server.accept(event(kind, "2026-01-05T08:59:59Z")).await;
        assert_eq!(status(&server).await, json!("contacted"), "{kind}");
    }
    assert_eq!(rows(), before, "neither history nor an event");
    server.accept(event("trial_started", "2026-01-05T09:00:00Z")).await;
    assert_eq!(status(&server).await, json!("in_trial"), "not older than the move");
    server.app.clock().advance_seconds(60);
    server.accept(json!({"imported_id": "a", "kind": "became_customer"})).await;
    assert_eq!(status(&server).await, json!("customer"), "it happened when it arrived");
    let history = server.history(&account).await;
    assert_eq!(column(&history, "to"), ["prospect", "contacted", "in_trial", "customer"]);
    server.company.set(json!({"late_events_move": true}));
    server.accept(event("churned", "2026-01-01")).await;
    assert_eq!(status(&server).await, json!("lost"), "the setting counts when the event arrives");
}

async fn a_move_by_activity_happened_when_its_event_did(server: Server) {
    ignore_late(&server);
    server.account(json!({"imported_id": "a"})).await;
    server.accept(event("trial_started", "2026-01-03")).await;
    assert_eq!(status(&server).await, json!("in_trial"));
    server.accept(event("became_customer", "2026-01-04")).await;
    assert_eq!(status(&server).await, json!("customer"), "both arrived late, in order");
    server.accept(event("churned", "2026-01-02")).await;
    assert_eq!(status(&server).await, json!("customer"), "this one is older than both");
    server.accept(event("churned", "2026-01-04T00:00:01Z")).await;
    assert_eq!(status(&server).await, json!("lost"));
}

async fn events_of_one_batch_are_compared_with_each_other(acme: Tenant) {
    ignore_late(&acme);
    acme.account(json!({"imported_id": "a"})).await;
    let events = json!([
        event("became_customer", "2026-01-04"),
        event("trial_started", "2026-01-02"),
        event("churned", "2026-01-03"),
    ]);
    let reply = acme.ingest(events).await.expect(200);
    assert_eq!(reply["accepted"], json!(3));
    assert_eq!(status(&acme).await, json!("customer"));
}

async fn the_creation_of_an_account_is_no_move(acme: Tenant) {
    ignore_late(&acme);
    let unmatched = acme.ingest(json!([event("trial_started", "2026-01-01")])).await.expect(200);
    assert_eq!(unmatched["unmatched_indexes"], json!([0]));
    acme.account(json!({"imported_id": "a"})).await;
    acme.accept(event("trial_started", "2026-01-01")).await;
    assert_eq!(
        status(&acme).await,
        json!("in_trial"),
        "the event was sent again once the account was imported"
    );
}

async fn a_sender_whose_clock_is_ahead_does_not_make_others_late(server: Server) {
    ignore_late(&server);
    server.account(json!({"imported_id": "a"})).await;
    server.accept(event("trial_started", "2026-01-05T09:05:00Z")).await;
    server.app.clock().advance_seconds(1);
    server.accept(json!({"imported_id": "a", "kind": "became_customer"})).await;
    assert_eq!(status(&server).await, json!("customer"));
}

async fn a_late_event_still_counts_and_captures_its_value(acme: Tenant) {
    ignore_late(&acme);
    acme.account(json!({"imported_id": "a"})).await;
    acme.resend(json!({"imported_id": "a", "status": "lost"})).await;
    let mut late = event("became_customer", "2026-01-01");
    late["metadata"] = json!({"value": "12.50"});
    acme.accept(late).await;
    let account = acme.shown("a").await;
    assert_eq!((&account["status"], &account["captured_value"]), (&json!("lost"), &json!("12.50")));
    assert_eq!(account["last_seen_at"], json!("2026-01-01T00:00:00Z"));
}

async fn the_setting_is_on_the_ingest_page(acme: Tenant) {
    let admin = Person::of(&acme, Role::Admin);
    let ticked = "name=\"late_events_move\" value=\"yes\" checked";
    let saved = async || acme.get("/api/settings/").send().await.expect(200)["late_events_move"].clone();
    let is_ticked = async || {
        let page = admin.see(PATH).await.expect(200);
        page.0.text().split_whitespace().collect::<Vec<_>>().join(" ").contains(ticked)
    };
    assert!(is_ticked().await);
    admin.send(PATH, &[]).await.leads_to(PATH);
    assert_eq!(saved().await, json!(false));
    assert!(!is_ticked().await);
    admin.send(PATH, &[("late_events_move", "yes")]).await.leads_to(PATH);
    assert_eq!(saved().await, json!(true));
    let changed = acme.get("/api/audit/?action=settings.changed").send().await.expect(200);
    let changes: Vec<&Value> =
        changed["items"].as_array().unwrap().iter().map(|entry| &entry["detail"]).collect();
    let change = |from, to| json!({"late_events_move": {"from": from, "to": to}});
    assert_eq!(changes, [&change(false, true), &change(true, false)]);
    Person::of(&acme, Role::Member).send(PATH, &[]).await.expect(403);
}

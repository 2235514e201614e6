//! What a webhook is sent, over HTTP: filters, headers of its own, and events that it has to ask for.

use serde_json::{Value, json};

use crate::harness::{Tenant, column, on_both_engines};
use crate::webhooks::{WEBHOOKS, create, list, text};

on_both_engines! {
    filters_and_headers_are_returned_without_secrets,
    a_secret_header_keeps_its_value_until_the_host_changes,
    faults_are_named_and_change_nothing,
    opt_in_events_are_selected_like_the_others,
    a_filter_finds_what_the_account_list_finds,
    an_export_has_no_secret_header,
}

const HUSH: &str = "Bearer hush-hush";

fn body(more: &Value) -> Value {
    let mut body = json!({"url": "https://example.com/hook", "events": ["account.created"]});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

async fn make(acme: &Tenant, more: Value) -> Value {
    acme.post(WEBHOOKS).json(&body(&more)).send().await.expect(201)
}

fn own(webhook: &Value) -> String {
    format!("{WEBHOOKS}{}/", text(webhook, "id"))
}

async fn filters_and_headers_are_returned_without_secrets(acme: Tenant) {
    let plain = create(&acme).await;
    assert_eq!((&plain["filters"], &plain["headers"]), (&json!({}), &json!([])));
    let filters = json!({"from": ["in_trial"], "to": ["customer"], "fields": {"plan": "pro"}});
    let given =
        json!([{"name": "Authorization", "value": HUSH}, {"name": "X-Env", "value": "p", "secret": false}]);
    let made = make(&acme, json!({"filters": filters, "headers": given})).await;
    let shown = json!([
        {"name": "Authorization", "value": null, "secret": true}, {"name": "X-Env", "value": "p", "secret": false},
    ]);
    assert_eq!((&made["filters"], &made["headers"]), (&filters, &shown));
    let read = acme.get(&own(&made)).send().await;
    assert!(!read.text().contains("hush"), "{}", read.text());
    let read = read.expect(200);
    assert_eq!((&read["filters"], &read["headers"]), (&filters, &shown));
    let listed = acme.get(WEBHOOKS).send().await;
    assert!(!listed.text().contains("hush"), "{}", listed.text());
    let cleared =
        acme.patch(&own(&made)).json(&json!({"filters": {}, "headers": []})).send().await.expect(200);
    assert_eq!((&cleared["filters"], &cleared["headers"]), (&json!({}), &json!([])));
    let rotated = acme.post(&format!("{}rotate/", own(&made))).send().await.expect(200);
    assert_eq!(rotated["headers"], json!([]));
}

async fn a_secret_header_keeps_its_value_until_the_host_changes(acme: Tenant) {
    let made = make(&acme, json!({"headers": [{"name": "Authorization", "value": HUSH}]})).await;
    let patch = |body: Value| acme.patch(&own(&made)).json(&body);
    let kept =
        json!({"headers": [{"name": "Authorization"}, {"name": "X-Env", "value": "p", "secret": false}]});
    let kept = patch(kept).send().await.expect(200);
    assert_eq!(kept["headers"].as_array().map(Vec::len), Some(2));
    let elsewhere = "https://example.org/hook";
    patch(json!({ "url": elsewhere })).expect_faults(&[("/headers", "required")]).await;
    let kept = json!({"url": elsewhere, "headers": [{"name": "Authorization", "secret": true}]});
    patch(kept).expect_faults(&[("/headers/0/value", "required")]).await;
    let given = json!({"url": elsewhere, "headers": [{"name": "Authorization", "value": "Bearer other"}]});
    assert_eq!(patch(given).send().await.expect(200)["url"], json!(elsewhere));
}

async fn faults_are_named_and_change_nothing(acme: Tenant) {
    let wrong = json!({
        "filters": {"from": "nope", "fields": {"a": null}, "q": "x"},
        "headers": [{"name": "Host", "value": "x"}, {"name": "X-A", "value": "a\nb"}, {"name": "X-B", "secret": false}],
    });
    let faults = [
        ("/filters/from", "unknown_status"),
        ("/filters/fields/a", "unknown_test"),
        ("/filters/q", "unknown_member"),
        ("/headers/0/name", "reserved_name"),
        ("/headers/1/value", "bad_characters"),
        ("/headers/2/value", "required"),
    ];
    acme.post(WEBHOOKS).json(&body(&wrong)).expect_faults(&faults).await;
    let new = json!({"headers": [{"name": "Authorization"}]});
    acme.post(WEBHOOKS).json(&body(&new)).expect_faults(&[("/headers/0/value", "required")]).await;
    assert!(acme.all_pages(WEBHOOKS, 50).await.is_empty());
    let made = make(&acme, json!({"filters": {"to": ["lost"]}})).await;
    acme.patch(&own(&made))
        .json(&json!({"filters": {"to": 1}}))
        .expect_faults(&[("/filters/to", "wrong_type")])
        .await;
    let read = acme.get(&own(&made)).send().await.expect(200);
    assert_eq!(read["filters"], json!({"to": ["lost"]}));
}

async fn opt_in_events_are_selected_like_the_others(acme: Tenant) {
    let events = json!(["account.created", "account.updated", "account.deleted", "contact.logged"]);
    let made = make(&acme, json!({ "events": events })).await;
    assert_eq!(made["events"], events);
    let id = text(&acme.account(json!({"imported_id": "1"})).await, "id");
    acme.patch(&format!("/api/accounts/{id}/")).json(&json!({"name": "Nordlys"})).send().await.expect(200);
    let contact = json!({"kind": "call"});
    acme.post(&format!("/api/accounts/{id}/contacts/")).json(&contact).send().await.expect(201);
    let deleted = acme.delete(&format!("/api/accounts/{id}/")).send().await;
    assert_eq!(deleted.status, 204);
    let mut kinds = column(&list(&acme, "").await, "type");
    kinds.reverse();
    assert_eq!(kinds, ["account.created", "account.updated", "contact.logged", "account.deleted"]);
    assert_eq!(list(&acme, "type=account.updated").await.len(), 1, "the log can be filtered by them");
    acme.post(WEBHOOKS)
        .json(&body(&json!({"events": ["webhook.test"]})))
        .expect_faults(&[("/events", "unknown_event")])
        .await;
}

/// The same condition finds the same accounts in the list and in the events.
async fn a_filter_finds_what_the_account_list_finds(acme: Tenant) {
    let table = [
        (json!({"plan": "pro"}), "field.plan=pro"),
        (json!({"plan": ["free", "pro"]}), "field.plan=free&field.plan=pro"),
        (json!({"seats": 12}), "field.seats=12"),
        (json!({"seats": "1.5"}), "field.seats=1.5"),
        (json!({"vip": true}), "field.vip=true"),
        (json!({"tags": "blue"}), "field.tags=blue"),
        (json!({"tags": {"begins_with": "bl"}}), "field_prefix.tags=bl"),
        (json!({"city": {"begins_with": "berl"}}), "field_prefix.city=berl"),
        (json!({"city": {"exists": true}}), "has_field=city"),
        (json!({"city": {"exists": true}, "tags": {"exists": true}}), "has_field=city&has_field=tags"),
    ];
    let mut webhooks = Vec::new();
    for (fields, query) in table {
        webhooks.push((make(&acme, json!({"filters": {"fields": fields}})).await, query));
    }
    let accounts = [
        ("a", json!({"plan": "Pro", "seats": 12, "vip": true, "tags": ["red", "Blue"], "city": "Berlin"})),
        ("b", json!({"plan": "free", "seats": "12", "vip": false, "tags": [], "city": "Bern"})),
        ("c", json!({"plan": "PRO", "seats": 1.50, "vip": "true", "city": {"name": "Berlin"}})),
        ("d", json!({})),
    ];
    for (id, fields) in &accounts {
        acme.upsert(json!({"imported_id": id, "custom_fields": fields})).await.expect(201);
    }
    for (webhook, query) in webhooks {
        let found = acme.all_pages(&format!("/api/accounts/?sort=created_at&{query}"), 50).await;
        let sent = list(&acme, &format!("webhook={}", text(&webhook, "id"))).await;
        let mut sent = column(&sent, "account_id");
        sent.reverse();
        assert_eq!(sent, column(&found, "id"), "{query}");
        assert!(!sent.is_empty(), "{query}");
    }
}

async fn an_export_has_no_secret_header(acme: Tenant) {
    make(&acme, json!({"headers": [{"name": "Authorization", "value": HUSH}]})).await;
    for path in ["/api/audit/export/?format=jsonl", "/api/audit/export/?format=csv"] {
        let export = acme.get(path).send().await;
        assert!(
            export.text().contains("webhook.created") && !export.text().contains("hush"),
            "{}",
            export.text()
        );
    }
}

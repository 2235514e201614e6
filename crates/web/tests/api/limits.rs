//! Limits: the interface document's table and our own limits. The limits of webhooks (20 consecutive failures, 90 days
//! of history) are enforced by the sender and covered by its own tests.

use rapport_testkit::all;
use serde_json::{Value, json};

use crate::harness::{INGEST, Server, Tenant, UPSERT, on_both_engines, path_of};

on_both_engines! {
    events_per_ingest_request_are_100,
    promo_code_length_is_64_characters,
    default_contact_cadence_is_42_days,
    pulse_shows_90_days_of_activity,
    pulse_shows_the_20_most_used_features,
    a_body_of_exactly_1_mib_is_read,
    a_page_has_50_items_by_default_and_200_at_most,
    a_note_has_at_most_4000_characters,
    names_of_channels_and_tokens_have_at_most_120_characters,
}

async fn events_per_ingest_request_are_100(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    let event = json!({"imported_id": "a", "kind": "app_opened"});
    let reply = acme.ingest(json!(vec![event.clone(); 100])).await.expect(200);
    assert_eq!((&reply["received"], &reply["accepted"]), (&json!(100), &json!(100)));
    let refused = acme.ingesting(json!(vec![event; 101])).expect_refused(413, "batch_too_large").await;
    assert_eq!(refused.json()["max_events"], json!(100));
}

async fn promo_code_length_is_64_characters(acme: Tenant) {
    let longest = "x".repeat(64);
    acme.company.channel("Fair", &[&longest]);
    let matched = acme.upsert(json!({"imported_id": "a", "promo_code": longest})).await.expect(201);
    assert_eq!(matched["promo_code_matched"], json!(true));
    let longer = acme.resend(json!({"imported_id": "a", "promo_code": format!("{longest}x")})).await;
    assert_eq!(longer["promo_code_matched"], json!(false));
}

async fn default_contact_cadence_is_42_days(server: Server) {
    assert_eq!(server.get("/api/settings/").send().await.expect(200)["cadence_days"], json!(42));
    server.account(json!({"imported_id": "a", "status": "customer"})).await;
    server.app.clock().advance_days(42);
    server.app.clock().advance_seconds(-1);
    assert_eq!(server.shown("a").await["overdue"], json!(false));
    server.app.clock().advance_seconds(1);
    let account = server.shown("a").await;
    assert_eq!((&account["overdue"], &account["days_overdue"]), (&json!(true), &json!(0)));
}

async fn pulse_shows_90_days_of_activity(server: Server) {
    let account = server.account(json!({"imported_id": "a"})).await;
    // Today is 5 January, and 89 days earlier is 8 October.
    for at in ["2025-10-07T23:59:59Z", "2025-10-08T00:00:00Z", "2026-01-05T00:00:00Z", "2026-01-05T09:00:00Z"]
    {
        server.accept(json!({"imported_id": "a", "kind": "app_opened", "occurred_at": at})).await;
    }
    let path = format!("{}pulse/", path_of(&account));
    let pulse = server.get(&path).send().await.expect(200);
    let days = pulse["days"].as_array().unwrap();
    assert_eq!(days.len(), 90);
    assert_eq!(days[0], json!({"date": "2025-10-08", "count": 1}));
    assert_eq!(days[1], json!({"date": "2025-10-09", "count": 0}));
    assert_eq!(days[89], json!({"date": "2026-01-05", "count": 2}));
    let counts = |days: &[Value]| days.iter().map(|day| day["count"].as_u64().unwrap()).sum::<u64>();
    assert_eq!(counts(days), 3, "older days are not shown");
    assert_eq!(
        pulse["first_seen_at"],
        json!("2025-10-07T23:59:59Z"),
        "first seen covers the account's lifetime"
    );
    server.app.clock().advance_days(90);
    let later = server.get(&path).send().await.expect(200);
    let days = later["days"].as_array().unwrap();
    assert_eq!((days.len(), counts(days)), (90, 0), "the window moves with the day");
    assert_eq!(days[89]["date"], json!("2026-04-05"));
}

async fn pulse_shows_the_20_most_used_features(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "a"})).await;
    let events: Vec<Value> = (0..25_usize)
        .flat_map(|n| {
            vec![json!({"imported_id": "a", "kind": "custom", "feature": format!("f{n:02}")}); 1 + n / 10]
        })
        .collect();
    assert_eq!(acme.ingest(json!(events)).await.expect(200)["rejected"], json!([]));
    let pulse = acme.get(&format!("{}pulse/", path_of(&account))).send().await.expect(200);
    let features = pulse["features"].as_array().unwrap();
    assert_eq!(features.len(), 20);
    let counts: Vec<u64> = features.iter().map(|used| used["count"].as_u64().unwrap()).collect();
    assert_eq!(counts, [vec![3; 5], vec![2; 10], vec![1; 5]].concat(), "most used first");
    assert_eq!((&features[0]["feature"], &features[19]["feature"]), (&json!("f20"), &json!("f04")));
}

async fn a_body_of_exactly_1_mib_is_read(acme: Tenant) {
    let padded = |text: String| format!("{text}{}", " ".repeat((1 << 20) - text.len()));
    let body = json!({"project": acme.slug(), "imported_id": "a"}).to_string();
    acme.post(UPSERT).text(&padded(body.clone())).send().await.expect(201);
    acme.post(UPSERT).text(&padded(body)).gzipped().send().await.expect(200);
    let events = json!({"events": [{"imported_id": "a", "kind": "app_opened"}]}).to_string();
    acme.post(INGEST).text(&padded(events)).send().await.expect(200);
}

async fn a_page_has_50_items_by_default_and_200_at_most(acme: Tenant) {
    let upserts = (0..205).map(|n| acme.upsert(json!({"imported_id": format!("crm-{n:03}")})));
    for answer in all(upserts).await {
        answer.expect(201);
    }
    for (query, length) in
        [("", 50), ("?limit=1", 1), ("?limit=200", 200), ("?limit=201", 200), ("?limit=99999999999", 200)]
    {
        let page = acme.get(&format!("/api/accounts/{query}")).send().await.expect(200);
        assert_eq!(page["items"].as_array().unwrap().len(), length, "{query}");
        assert!(page["next_cursor"].is_string(), "{query}");
    }
    assert_eq!(acme.all_pages("/api/accounts/", 200).await.len(), 205);
    for limit in ["0", "-1", "ten", "1.5", "1e2", "%00"] {
        let refused = acme.get(&format!("/api/accounts/?limit={limit}")).expect_refused(422, "invalid").await;
        assert_eq!(refused.faults()[0].0, "limit");
    }
}

async fn a_note_has_at_most_4000_characters(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "a"})).await;
    let path = format!("{}status/", path_of(&account));
    let longest = "ü".repeat(4000);
    let longer = json!({"status": "lost", "note": format!("{longest}x")});
    acme.post(&path).json(&longer).expect_faults(&[("/note", "too_long")]).await;
    acme.post(&path).json(&json!({"status": "lost", "note": longest})).send().await.expect(200);
    assert_eq!(acme.history(&account).await[1]["note"], json!(longest));
}

async fn names_of_channels_and_tokens_have_at_most_120_characters(acme: Tenant) {
    let longest = "ü".repeat(120);
    for path in ["/api/channels/", "/api/tokens/"] {
        let longer = format!("{longest}x");
        acme.post(path).json(&json!({ "name": longer })).expect_faults(&[("/name", "too_long")]).await;
        acme.post(path).json(&json!({"name": ""})).expect_faults(&[("/name", "empty")]).await;
        let made = acme.post(path).json(&json!({ "name": longest })).send().await.expect(201);
        assert_eq!(made["name"], json!(longest));
    }
}

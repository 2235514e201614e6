//! Resources → Account: each field of the interface document's table, and the account object.

use rapport_testkit::app::START;
use serde_json::{Value, json};

use crate::harness::{Server, Tenant, column, members_of, on_both_engines, path_of};

on_both_engines! {
    account_id_is_assigned_by_the_service_and_addresses_the_account_in_ingest,
    imported_id_is_the_external_correlation_key_of_upsert_and_ingest,
    imported_id_is_a_member_of_every_payload_even_if_null,
    name_is_accepted_by_upsert,
    status_is_one_of_the_seven_stages,
    custom_fields_are_a_map_merged_per_key_and_carried_in_payloads,
    promo_code_attributes_the_account_to_a_channel,
    captured_value_is_a_decimal_string_by_upsert_and_ingest,
    captured_value_currency_comes_with_captured_value,
    money_is_shown_with_the_minor_digits_of_its_currency,
    acquisition_date_is_stamped_on_attribution_and_only_then,
    last_contact_is_set_by_neither_upsert_nor_activity,
    last_seen_is_set_by_activity_events,
    cadence_override_replaces_the_companys_cadence,
    snooze_date_suppresses_overdue_until_that_day_in_the_companys_zone,
    the_account_object_is_the_same_everywhere,
    updated_at_moves_with_changes_and_stays_without,
}

/// The members of the account in payloads.
const CORE: [&str; 15] = [
    "acquired_at",
    "captured_value",
    "captured_value_currency",
    "channel",
    "created_at",
    "custom_fields",
    "first_seen_at",
    "id",
    "imported_id",
    "last_contact_at",
    "last_seen_at",
    "name",
    "promo_code",
    "status",
    "updated_at",
];
/// The members that the API's account object adds.
const CADENCE: [&str; 6] = ["cadence_days", "days_overdue", "due_at", "overdue", "snoozed_until", "tracked"];

async fn account_id_is_assigned_by_the_service_and_addresses_the_account_in_ingest(acme: Tenant) {
    let one = acme.account(json!({"imported_id": "a", "id": "acc_mine"})).await;
    let other = acme.account(json!({"imported_id": "b"})).await;
    let id = one["id"].as_str().unwrap();
    assert!(id.starts_with("acc_") && id.len() > 20, "{id}");
    assert_eq!(id, id.to_lowercase());
    assert!(id < other["id"].as_str().unwrap(), "ids are time-ordered: {id} {}", other["id"]);
    acme.accept(json!({"account_id": id, "kind": "trial_started"})).await;
    assert_eq!(acme.shown("a").await["status"], json!("in_trial"));
    assert_eq!(acme.shown("b").await["status"], json!("prospect"));
}

async fn imported_id_is_the_external_correlation_key_of_upsert_and_ingest(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "CRM-00418"})).await;
    assert_eq!(account["imported_id"], json!("CRM-00418"));
    let again = acme.resend(json!({"imported_id": "CRM-00418", "status": "contacted"})).await;
    assert_eq!(again["account"]["id"], account["id"]);
    acme.accept(json!({"imported_id": "CRM-00418", "kind": "churned"})).await;
    assert_eq!(acme.shown("CRM-00418").await["status"], json!("lost"));
}

async fn imported_id_is_a_member_of_every_payload_even_if_null(acme: Tenant) {
    let upserted = acme.account(json!({"imported_id": "crm-1"})).await;
    acme.resend(json!({"imported_id": "crm-1", "status": "customer"})).await;
    for payload in acme.events(&upserted) {
        assert_eq!(payload["data"]["account"]["imported_id"], json!("crm-1"));
    }
    let made = acme.post("/api/accounts/").json(&json!({"name": "By hand"})).send().await.expect(201);
    assert_eq!(made["imported_id"], Value::Null);
    acme.post(&format!("{}status/", path_of(&made)))
        .json(&json!({"status": "lost"}))
        .send()
        .await
        .expect(200);
    let events = acme.events(&made);
    assert_eq!(column(&events, "type"), ["account.created", "account.status_changed"]);
    for payload in events {
        let account = payload["data"]["account"].as_object().unwrap();
        assert_eq!(account.get("imported_id"), Some(&Value::Null), "it is present even if null");
    }
}

async fn name_is_accepted_by_upsert(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "a", "name": "Nordlys AS"})).await;
    assert_eq!(account["name"], json!("Nordlys AS"));
    assert_eq!(acme.events(&account)[0]["data"]["account"]["name"], json!("Nordlys AS"));
}

async fn status_is_one_of_the_seven_stages(acme: Tenant) {
    let stages =
        ["prospect", "contacted", "in_negotiation", "in_trial", "customer", "lost", "do_not_contact"];
    for stage in stages {
        let account = acme.account(json!({"imported_id": stage, "status": stage})).await;
        assert_eq!(account["status"], json!(stage));
        assert_eq!(account["tracked"], json!(["in_trial", "customer"].contains(&stage)), "{stage}");
    }
    for word in ["Customer", "In trial", "in-trial", "trial", "won", ""] {
        let faults = acme.upserting(json!({"imported_id": "x", "status": word}));
        faults.expect_faults(&[("/status", "unknown_status")]).await;
    }
}

async fn custom_fields_are_a_map_merged_per_key_and_carried_in_payloads(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "a"})).await;
    assert_eq!(account["custom_fields"], json!({}));
    acme.resend(json!({"imported_id": "a", "custom_fields": {"plan": "pro", "seats": 3}})).await;
    let fields = json!({"seats": null, "tags": ["x"]});
    let body = json!({"imported_id": "a", "custom_fields": fields, "status": "contacted"});
    let merged = acme.resend(body).await["account"]["custom_fields"].clone();
    assert_eq!(merged, json!({"plan": "pro", "tags": ["x"]}));
    let events = acme.events(&account);
    assert_eq!(events[0]["data"]["account"]["custom_fields"], json!({}), "a payload is frozen");
    assert_eq!(events[1]["data"]["account"]["custom_fields"], merged);
}

async fn promo_code_attributes_the_account_to_a_channel(acme: Tenant) {
    let channel = acme.company.channel("Spring fair", &["SPRING_26"]);
    let plain = acme.account(json!({"imported_id": "a"})).await;
    assert_eq!((&plain["promo_code"], &plain["channel"]), (&Value::Null, &Value::Null));
    let account = acme.account(json!({"imported_id": "b", "promo_code": "SPRING_26"})).await;
    assert_eq!(account["promo_code"], json!("SPRING_26"));
    assert_eq!(account["channel"], json!({"id": channel.id.to_string(), "name": "Spring fair"}));
}

async fn captured_value_is_a_decimal_string_by_upsert_and_ingest(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "a", "captured_value": "1200.5"})).await;
    assert_eq!(account["captured_value"], json!("1200.50"));
    let metadata = json!({"captured_value": "99.95"});
    acme.accept(json!({"imported_id": "a", "kind": "became_customer", "metadata": metadata})).await;
    assert_eq!(acme.shown("a").await["captured_value"], json!("99.95"));
    assert_eq!(acme.account(json!({"imported_id": "b"})).await["captured_value"], Value::Null);
}

async fn captured_value_currency_comes_with_captured_value(acme: Tenant) {
    let body = json!({"imported_id": "a", "captured_value": "10", "captured_value_currency": "eur"});
    let account = acme.account(body).await;
    assert_eq!(account["captured_value_currency"], json!("EUR"), "stored in upper case");
    let plain = acme.account(json!({"imported_id": "b"})).await;
    assert_eq!(plain["captured_value_currency"], Value::Null, "no value, no currency");
}

async fn money_is_shown_with_the_minor_digits_of_its_currency(acme: Tenant) {
    let table = [
        ("1200.5", "EUR", "1200.50"),
        ("1200", "USD", "1200.00"),
        ("0", "USD", "0.00"),
        ("1200.505", "EUR", "1200.505"),
        ("0.1", "JPY", "0.1"),
        ("2100000", "JPY", "2100000"),
        ("1", "KWD", "1.000"),
        ("99999999999999.9999", "USD", "99999999999999.9999"),
    ];
    for (number, (amount, currency, shown)) in table.into_iter().enumerate() {
        let id = format!("crm-{number}");
        let body = json!({"imported_id": id, "captured_value": amount, "captured_value_currency": currency});
        assert_eq!(acme.account(body).await["captured_value"], json!(shown), "{amount} {currency}");
        assert_eq!(acme.shown(&id).await["captured_value"], json!(shown), "{amount} {currency}, kept");
    }
}

async fn acquisition_date_is_stamped_on_attribution_and_only_then(server: Server) {
    server.app.channel("Fair", &["FAIR", "FAIR2"]);
    server.app.channel("Podcast", &["POD"]);
    let account = server.account(json!({"imported_id": "a", "promo_code": "nope"})).await;
    assert_eq!(account["acquired_at"], Value::Null);
    server.app.clock().advance_days(1);
    let matched = server.resend(json!({"imported_id": "a", "promo_code": "fair"})).await;
    assert_eq!(matched["account"]["acquired_at"], json!("2026-01-06T09:00:00Z"));
    server.app.clock().advance_days(1);
    for code in ["FAIR", "FAIR2", "nope"] {
        let again = server.resend(json!({"imported_id": "a", "promo_code": code})).await;
        assert_eq!(again["account"]["acquired_at"], json!("2026-01-06T09:00:00Z"), "{code} changes nothing");
        assert_eq!(again["account"]["promo_code"], json!("FAIR"), "{code} changes nothing");
        assert_eq!(again["changed"], json!([]), "{code} changes nothing");
    }
    let moved = server.resend(json!({"imported_id": "a", "promo_code": "POD"})).await;
    assert_eq!(
        moved["account"]["acquired_at"],
        json!("2026-01-07T09:00:00Z"),
        "another channel sets a new date"
    );
}

async fn last_contact_is_set_by_neither_upsert_nor_activity(acme: Tenant) {
    acme.account(json!({"imported_id": "a", "status": "contacted"})).await;
    for kind in ["app_opened", "trial_started", "became_customer", "churned"] {
        acme.accept(json!({"imported_id": "a", "kind": kind})).await;
    }
    acme.resend(json!({"imported_id": "a", "status": "customer"})).await;
    assert_eq!(acme.shown("a").await["last_contact_at"], Value::Null);
}

async fn last_seen_is_set_by_activity_events(server: Server) {
    let account = server.account(json!({"imported_id": "a"})).await;
    assert_eq!((&account["first_seen_at"], &account["last_seen_at"]), (&Value::Null, &Value::Null));
    server.app.clock().advance_seconds(90);
    server.accept(json!({"imported_id": "a", "kind": "app_opened"})).await;
    let seen = server.shown("a").await;
    assert_eq!(seen["last_seen_at"], json!("2026-01-05T09:01:30Z"));
    assert_eq!(seen["first_seen_at"], json!("2026-01-05T09:01:30Z"));
    let late =
        json!({"imported_id": "a", "kind": "app_opened", "occurred_at": "2025-12-24T18:00:00.000001Z"});
    server.accept(late).await;
    let seen = server.shown("a").await;
    assert_eq!(
        seen["last_seen_at"],
        json!("2026-01-05T09:01:30Z"),
        "the latest event, not the last to arrive"
    );
    assert_eq!(seen["first_seen_at"], json!("2025-12-24T18:00:00.000001Z"));
}

async fn cadence_override_replaces_the_companys_cadence(server: Server) {
    let account = server.account(json!({"imported_id": "a", "status": "customer"})).await;
    assert_eq!(account["cadence_days"], Value::Null);
    assert_eq!(account["due_at"], json!("2026-02-16T09:00:00Z"), "42 days after it became tracked");
    let path = path_of(&account);
    let own = server.patch(&path).json(&json!({"cadence_days": 7})).send().await.expect(200);
    assert_eq!((&own["cadence_days"], &own["due_at"]), (&json!(7), &json!("2026-01-12T09:00:00Z")));
    assert_eq!((&own["overdue"], &own["days_overdue"]), (&json!(false), &json!(0)));
    server.app.clock().advance_days(9);
    let due = server.get(&path).send().await.expect(200);
    assert_eq!((&due["overdue"], &due["days_overdue"]), (&json!(true), &json!(2)));
    let back = server.patch(&path).json(&json!({"cadence_days": null})).send().await.expect(200);
    assert_eq!((&back["cadence_days"], &back["overdue"]), (&Value::Null, &json!(false)));
    for days in [json!(0), json!(3651), json!(1.5), json!(-1)] {
        let refused = server.patch(&path).json(&json!({ "cadence_days": days }));
        refused.expect_faults(&[("/cadence_days", "out_of_range")]).await;
    }
    let refused = server.patch(&path).json(&json!({"cadence_days": "7"}));
    refused.expect_faults(&[("/cadence_days", "wrong_type")]).await;
    for days in [1, 3650] {
        server.patch(&path).json(&json!({ "cadence_days": days })).send().await.expect(200);
    }
}

async fn snooze_date_suppresses_overdue_until_that_day_in_the_companys_zone(server: Server) {
    server.app.set(json!({"time_zone": "Pacific/Auckland", "cadence_days": 1}));
    let account = server.account(json!({"imported_id": "a", "status": "in_trial"})).await;
    let path = path_of(&account);
    let snoozed = server.patch(&path).json(&json!({"snoozed_until": "2026-01-10"})).send().await.expect(200);
    assert_eq!(snoozed["snoozed_until"], json!("2026-01-10"));
    // In Auckland, the 10th begins at 11:00 UTC on the 9th. The clock starts at 09:00 on the 5th.
    server.app.clock().advance_days(4);
    server.app.clock().advance_seconds(2 * 3600 - 1);
    assert_eq!(server.get(&path).send().await.expect(200)["overdue"], json!(false));
    server.app.clock().advance_seconds(1);
    let over = server.get(&path).send().await.expect(200);
    assert_eq!((&over["overdue"], &over["days_overdue"]), (&json!(true), &json!(3)));
    let cleared = server.patch(&path).json(&json!({"snoozed_until": null})).send().await.expect(200);
    assert_eq!(cleared["snoozed_until"], Value::Null);
    for date in ["2026-1-10", "10.01.2026", "2026-02-30", "2026-01-10T00:00:00Z", ""] {
        let refused = server.patch(&path).json(&json!({ "snoozed_until": date }));
        refused.expect_faults(&[("/snoozed_until", "malformed")]).await;
    }
}

async fn the_account_object_is_the_same_everywhere(acme: Tenant) {
    let mut whole: Vec<&str> = CORE.into_iter().chain(CADENCE).collect();
    whole.sort_unstable();
    let upserted = acme.account(json!({"imported_id": "a", "custom_fields": {"n": 1}})).await;
    assert_eq!(members_of(&upserted), whole);
    let path = path_of(&upserted);
    assert_eq!(acme.get(&path).send().await.expect(200), upserted);
    assert_eq!(acme.get("/api/accounts/").send().await.expect(200)["items"], json!([upserted]));
    assert_eq!(acme.patch(&path).json(&json!({})).send().await.expect(200), upserted);
    let unmoved = json!({"status": "prospect"});
    let mut status = acme.post(&format!("{path}status/")).json(&unmoved).send().await.expect(200);
    assert_eq!(status.as_object_mut().unwrap().remove("moved"), Some(json!(false)));
    assert_eq!(status, upserted);
    assert_eq!(acme.resend(json!({"imported_id": "a"})).await["account"], upserted);
    let made = acme.post("/api/accounts/").json(&json!({"name": "b"})).send().await.expect(201);
    assert_eq!(members_of(&made), whole);
    let payload = &acme.events(&upserted)[0];
    assert_eq!(members_of(payload), ["created_at", "data", "id", "project", "type"]);
    assert_eq!(members_of(&payload["data"]), ["account", "source"]);
    assert_eq!(members_of(&payload["data"]["account"]), CORE);
    for member in CORE {
        assert_eq!(payload["data"]["account"][member], upserted[member], "{member}");
    }
    assert!(payload["id"].as_str().unwrap().starts_with("evt_"));
    assert_eq!((&payload["project"], &payload["created_at"]), (&json!(acme.slug()), &json!(START)));
}

async fn updated_at_moves_with_changes_and_stays_without(server: Server) {
    let account = server.account(json!({"imported_id": "a", "custom_fields": {"n": 1}})).await;
    assert_eq!((&account["created_at"], &account["updated_at"]), (&json!(START), &json!(START)));
    server.app.clock().advance_days(1);
    let same = json!({"imported_id": "a", "custom_fields": {"n": 1, "m": null}, "status": "prospect"});
    assert_eq!(server.resend(same).await["account"]["updated_at"], json!(START), "nothing changed");
    let changed = server.resend(json!({"imported_id": "a", "custom_fields": {"n": 2}})).await;
    assert_eq!(changed["account"]["updated_at"], json!("2026-01-06T09:00:00Z"));
    assert_eq!(changed["account"]["created_at"], json!(START));
    server.app.clock().advance_days(1);
    server.accept(json!({"imported_id": "a", "kind": "trial_started"})).await;
    assert_eq!(server.shown("a").await["updated_at"], json!("2026-01-07T09:00:00Z"), "a move is a change");
}

//! `null` in a PATCH: it clears what can be empty, and is refused for everything else. Which is which is in the OpenAPI
//! document, and every member of every operation is tried.

use rapport_domain::member::Role;
use serde_json::{Map, Value, json};

use crate::harness::{Tenant, on_both_engines, path_of};
use crate::openapi::{document, operations};
use crate::webhooks;

on_both_engines!(null_clears_or_is_refused_in_every_patch, a_body_of_null_counts_as_none);

/// For each PATCH: something to change, with a value in every member that can be cleared.
async fn subject(acme: &Tenant, path: &str) -> String {
    let id = |of: &Value| of["id"].as_str().expect("an id").to_owned();
    match path {
        "/api/accounts/{id}/" => {
            acme.company.channel("Fair", &["FAIR"]);
            let account = acme.account(json!({"imported_id": "crm-1", "promo_code": "FAIR"})).await;
            let path = path_of(&account);
            let filled = json!({
                "captured_value": "12.50", "captured_value_currency": "EUR", "cadence_days": 7,
                "snoozed_until": "2030-01-01", "custom_fields": {"plan": "pro"},
            });
            acme.patch(&path).json(&filled).send().await.expect(200);
            path
        }
        "/api/accounts/{id}/contacts/{contact}/" => {
            let list = format!("{}contacts/", path_of(&acme.account(json!({"imported_id": "crm-2"})).await));
            let contact = json!({"kind": "call", "note": "Rang"});
            let made = acme.post(&list).json(&contact).send().await.expect(201);
            format!("{list}{}/", id(&made))
        }
        "/api/accounts/{id}/notes/{note}/" => {
            let list = format!("{}notes/", path_of(&acme.account(json!({"imported_id": "crm-3"})).await));
            let made = acme.post(&list).json(&json!({"text": "Likes tea"})).send().await.expect(201);
            format!("{list}{}/", id(&made))
        }
        "/api/conversations/{id}/messages/{message}/" => {
            let account = path_of(&acme.account(json!({"imported_id": "crm-4"})).await);
            let begun =
                acme.post(&format!("{account}conversations/")).json(&json!({})).send().await.expect(201);
            let list = format!("/api/conversations/{}/messages/", id(&begun));
            let message = json!({"direction": "outbound", "body": "Hello", "subject": "Offer"});
            let made = acme.post(&list).json(&message).send().await.expect(201);
            format!("{list}{}/", id(&made))
        }
        "/api/campaigns/{id}/" => {
            let body = json!({
                "name": "Spring", "goal": "acquisition", "include_trials": true, "filters": {"status": ["prospect"]},
            });
            let made = acme.post("/api/campaigns/").json(&body).send().await.expect(201);
            path.replace("{id}", &id(&made))
        }
        "/api/exchange-rates/{id}/" => {
            let rate = json!({"currency": "CHF", "valid_from": "2026-01-01", "rate": "1.05"});
            let made = acme.post("/api/exchange-rates/").json(&rate).send().await.expect(201);
            path.replace("{id}", &id(&made))
        }
        "/api/channels/{id}/" => {
            let made = acme.post("/api/channels/").json(&json!({"name": "Mail"})).send().await.expect(201);
            path.replace("{id}", &id(&made))
        }
        "/api/channels/{id}/codes/{code}/" => {
            let channel = acme.company.channel("Radio", &["RADIO"]);
            path.replace("{id}", &channel.id.to_string()).replace("{code}", "RADIO")
        }
        "/api/members/{id}/" => {
            let member = acme.company.employ("ana@acme.test", "Ana", Role::Member);
            path.replace("{id}", &member.person.to_string())
        }
        "/api/settings/" => path.to_owned(),
        "/api/webhooks/{id}/" => {
            let made = webhooks::create(acme).await;
            let path = path.replace("{id}", &id(&made));
            let filled = json!({
                "description": "CRM", "filters": {"to": ["customer"]},
                "headers": [{"name": "X-Team", "value": "sales", "secret": false}],
            });
            acme.patch(&path).json(&filled).send().await.expect(200);
            path
        }
        other => panic!("PATCH {other} is new: say here what it changes"),
    }
}

/// The member in a response. A promo code is cleared together with the channel.
fn is_cleared(shown: &Value, member: &str) -> bool {
    let value = &shown[member];
    value.is_null() || *value == json!("") || *value == json!({}) || *value == json!([])
}

/// Whether a schema lets a member be null.
fn takes_null(schema: &Value) -> bool {
    let has_null = |value: &Value| *value == json!("null");
    let kind = &schema["type"];
    has_null(kind)
        || kind.as_array().is_some_and(|kinds| kinds.iter().any(has_null))
        || ["oneOf", "anyOf"]
            .iter()
            .any(|keyword| schema[keyword].as_array().is_some_and(|all| all.iter().any(takes_null)))
}

async fn null_clears_or_is_refused_in_every_patch(acme: Tenant) {
    let document = document(&acme).await;
    let (mut cleared, mut refused) = (0, 0);
    for (path, _, operation) in operations(&document).into_iter().filter(|(_, method, _)| *method == "patch")
    {
        let reference = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].as_str();
        let schema = document.pointer(&reference.expect("a schema")[1..]).expect("the schema");
        let subject = subject(&acme, path).await;
        for (member, described) in schema["properties"].as_object().expect("members") {
            let place = format!("{member} of PATCH {path}");
            let call = |body: Map<String, Value>| acme.patch(&subject).json(&Value::Object(body));
            let null = Map::from_iter([(member.clone(), Value::Null)]);
            if !takes_null(described) {
                let answer = call(null).expect_refused(422, "invalid").await;
                let [(pointer, code)] = &answer.faults()[..] else { panic!("{place}: {}", answer.text()) };
                assert_eq!(*pointer, format!("/{member}"), "{place}");
                assert!(["not_clearable", "required"].contains(&code.as_str()), "{place}: {code}");
                refused += 1;
                continue;
            }
            let body = if member == "captured_value_currency" {
                // A value keeps its currency, and both are cleared together.
                let faults = [("/captured_value_currency", "not_clearable")];
                acme.patch(&subject).json(&json!({"captured_value": "1"})).send().await.expect(200);
                call(null.clone()).expect_faults(&faults).await;
                Map::from_iter([("captured_value".to_owned(), Value::Null), (member.clone(), Value::Null)])
            } else {
                null
            };
            let before = acme.get(&subject).send().await.expect(200);
            assert!(!is_cleared(&before, member), "{place} has nothing to clear: {before}");
            let shown = call(body).send().await.expect(200);
            assert!(is_cleared(&shown, member), "{place}: {shown}");
            assert!(is_cleared(&acme.get(&subject).send().await.expect(200), member), "{place}");
            cleared += 1;
        }
    }
    assert!(cleared >= 8 && refused >= 20, "{cleared} cleared, {refused} refused");
}

async fn a_body_of_null_counts_as_none(acme: Tenant) {
    let webhook = webhooks::create(&acme).await;
    let path = |action: &str| format!("/api/webhooks/{}/{action}/", webhook["id"].as_str().expect("an id"));
    for action in ["disable", "enable"] {
        acme.post(&path(action)).text(" null\n").send().await.expect(200);
    }
    acme.post("/api/channels/").text("null").expect_refused(400, "not_an_object").await;
}

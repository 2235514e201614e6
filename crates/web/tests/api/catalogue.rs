//! The event catalogue: its examples are payloads of the real service, its schemas are served, and error codes and the
//! types of problems lead to their descriptions.

use std::collections::{BTreeMap, BTreeSet};
use std::{env, fs};

use rapport_app::cadence;
use rapport_domain::event::Kind;
use rapport_domain::json_layout::indented;
use rapport_testkit::Engine;
use rapport_web::{Config, Rate};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::described;
use crate::harness::{Server, Tenant, id_of, on_both_engines, path_of};
use crate::inbound::{INBOUND, key_of};

on_both_engines! {
    the_examples_are_payloads_of_the_service,
    every_schema_is_served_to_anyone_and_may_be_cached,
    a_schema_names_its_public_address,
    an_unknown_schema_is_not_found,
    the_type_of_a_problem_leads_to_its_description,
    every_header_that_is_sent_is_documented,
}

/// Set it to write the examples instead of comparing them.
const WRITE: &str = "RAPPORT_WRITE_DOCS";
const SCHEMAS: &str = "/api/schemas/events/";
const MAIL: &str = "From: Ana Keller <ana@nordlys.example>\r\nTo: sales@acme.example\r\n\
                    Subject: Offer for the spring\r\nDate: Wed, 07 Jan 2026 09:55:00 +0100\r\n\
                    Message-ID: <1@nordlys.example>\r\n\r\nCan we talk on Monday?\r\n";
/// The id of every example in the documentation.
const EXAMPLE_ID: &str = "01jz3v8m5xqkf0t6b2n9rc7d4e";

async fn the_examples_are_payloads_of_the_service(server: Server) {
    let kinds: Vec<&str> = Kind::OPT_IN.map(Kind::as_str).into();
    let webhook = json!({"url": "https://example.com/hook", "events": kinds});
    let webhook = server.post("/api/webhooks/").json(&webhook).send().await.expect(201);
    let test = format!("/api/webhooks/{}/test/", webhook["id"].as_str().unwrap());
    let test = server.post(&test).send().await.expect(202);
    let test = server.get(&format!("/api/deliveries/{}/", test["id"].as_str().unwrap())).send().await;
    let mut test: BTreeMap<String, Box<RawValue>> = serde_json::from_str(test.text()).unwrap();
    let test = test.remove("payload").expect("a payload");

    let account = make_events(&server).await;
    let events = server.company.events(id_of(&account));
    let mut payloads: Vec<(Kind, String)> =
        events.into_iter().map(|event| (event.kind, event.payload)).collect();
    payloads.push((Kind::WebhookTest, test.get().to_owned()));
    for kind in Kind::ALL {
        let mut found = payloads.iter().filter(|(its, _)| *its == kind).map(|(_, payload)| payload);
        let payload = found.next().unwrap_or_else(|| panic!("make an example of {}", kind.as_str()));
        described::check_payload(kind.as_str(), &serde_json::from_str(payload).unwrap());
        check_example(kind, &format!("{}\n", indented(&with_example_ids(payload))));
    }
}

/// An account that everything happens to.
async fn make_events(server: &Server) -> Value {
    let channel =
        server.post("/api/channels/").json(&json!({"name": "Spring fair"})).send().await.expect(201);
    let codes = format!("/api/channels/{}/codes/", channel["id"].as_str().unwrap());
    server.post(&codes).json(&json!({"code": "SPRING_26"})).send().await.expect(201);
    let account = server
        .account(json!({
            "imported_id": "CRM-00418", "name": "Nordlys AS", "status": "contacted", "promo_code": "spring_26",
            "captured_value": "1200.50", "captured_value_currency": "EUR",
            "custom_fields": {"plan": "pro", "seats": 12},
        }))
        .await;
    let clock = server.app.clock();
    clock.advance_days(1);
    server.accept(json!({"imported_id": "CRM-00418", "kind": "trial_started"})).await;
    clock.advance_days(1);
    let address = json!({"address": "ana@nordlys.example"});
    server.post(&format!("{}addresses/", path_of(&account))).json(&address).send().await.expect(201);
    let key = key_of(&server.company);
    let mail = server.post(INBOUND).bytes(MAIL.into()).header("content-type", "message/rfc822");
    mail.without("authorization").header("x-service-inbound-key", &key).send().await.expect(201);
    clock.advance_days(43);
    let app = server.company.app();
    assert_eq!(cadence::step(app, server.company.id()).await.expect("announced").announced, 1);
    let path = path_of(&account);
    let contact = json!({"kind": "call", "note": "Wants ten more seats"});
    server.post(&format!("{path}contacts/")).json(&contact).send().await.expect(201);
    server.patch(&path).json(&json!({"custom_fields": {"seats": 22}})).send().await.expect(200);
    server.delete(&path).send().await.expect(204);
    account
}

/// A payload with the ids that all examples have, so that they are the same in every run.
fn with_example_ids(payload: &str) -> String {
    let part = |part: &str| match part.split_once('_') {
        Some((prefix, id)) if prefix.len() == 3 && id.len() == 26 && !id.trim_matches('0').is_empty() => {
            format!("{prefix}_{EXAMPLE_ID}")
        }
        _ => part.to_owned(),
    };
    payload.split('"').map(part).collect::<Vec<_>>().join("\"")
}

fn check_example(kind: Kind, made: &str) {
    let file = format!("{}/../../docs/events/{}.json", env!("CARGO_MANIFEST_DIR"), kind.as_str());
    if env::var_os(WRITE).is_some() {
        fs::write(&file, made).expect("written");
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(
        found,
        made,
        "docs/events/{}.json is out of date: run this test with {WRITE}=1",
        kind.as_str()
    );
}

async fn every_schema_is_served_to_anyone_and_may_be_cached(acme: Tenant) {
    let list = acme.get(SCHEMAS).without_credential().send().await;
    assert_eq!(list.header("cache-control"), Some("public, max-age=3600"));
    let listed = list.expect(200);
    let listed = listed["items"].as_array().unwrap();
    assert_eq!(listed.len(), Kind::ALL.len());
    for (kind, item) in Kind::ALL.into_iter().zip(listed) {
        let path = format!("{SCHEMAS}{}.json", kind.as_str());
        assert_eq!(item["type"], json!(kind.as_str()));
        assert!(item["schema"].as_str().unwrap().ends_with(&path), "{item}");
        for path in [path.clone(), format!("{path}/")] {
            let answer = acme.get(&path).without_credential().send().await;
            assert_eq!(answer.header("content-type"), Some("application/schema+json"), "{path}");
            assert_eq!(answer.header("cache-control"), Some("public, max-age=3600"), "{path}");
            let schema = answer.expect(200);
            assert_eq!(schema["properties"]["type"]["enum"], json!([kind.as_str()]));
            assert_eq!(schema["$id"], item["schema"]);
        }
    }
}

async fn a_schema_names_its_public_address(engine: Engine) {
    let server = Server::with_parts(engine, |parts| {
        "https://crm.acme.example".clone_into(&mut parts.outside.base_url);
    });
    let path = format!("{SCHEMAS}account.created.json");
    let schema = server.await.get(&path).without_credential().send().await.expect(200);
    assert_eq!(schema["$id"], json!(format!("https://crm.acme.example{path}")));
}

async fn an_unknown_schema_is_not_found(acme: Tenant) {
    for path in ["account.renamed.json", "account.created", "account.created.txt", ".json"] {
        let answer = acme.get(&format!("{SCHEMAS}{path}")).without_credential().send().await;
        answer.expect_problem(404, "not_found");
    }
}

async fn the_type_of_a_problem_leads_to_its_description(acme: Tenant) {
    let refused = acme.get("/api/accounts/").without_credential().send().await;
    let problem = refused.expect_problem(401, "unauthenticated");
    assert_eq!(refused.header("link"), Some(r#"</api/errors/unauthenticated/>; rel="help""#));
    let by_type = format!("/api/errors/{}/", problem["type"].as_str().unwrap());
    for path in ["/api/errors/unauthenticated/", "/api/errors/unauthenticated", &by_type] {
        let answer = acme.get(path).without_credential().send().await;
        assert_eq!(answer.status, 303, "{path}");
        assert_eq!(answer.header("location"), Some("/api/docs/#error-unauthenticated"), "{path}");
    }
    let page = acme.get("/api/docs/").without_credential().send().await;
    assert!(page.text().contains("id=\"error-unauthenticated\""), "the page has the anchor");
    let field = acme.get("/api/errors/too_long/").without_credential().send().await;
    assert_eq!(field.header("location"), Some("/api/docs/#field-too_long"));
    acme.get("/api/errors/nonsense/").without_credential().send().await.expect_problem(404, "not_found");
}

async fn every_header_that_is_sent_is_documented(engine: Engine) {
    let limit = |config: &mut Config| config.per_credential = Rate { per_second: 1, burst: 4 };
    let server = Server::with(engine, limit).await;
    let answers = [
        (200, server.get("/api/accounts/").send().await),
        (200, server.get("/api/accounts/export/").send().await),
        (405, server.delete("/api/accounts/").send().await),
        (422, server.post("/api/accounts/").json(&json!({})).send().await),
        (429, server.get("/api/accounts/").send().await),
        (401, server.get("/api/accounts/").without_credential().send().await),
        (200, server.get("/api/docs/").without_credential().header("accept-encoding", "gzip").send().await),
        (200, server.get(SCHEMAS).without_credential().send().await),
        (303, server.get("/api/errors/invalid/").without_credential().send().await),
    ];
    let document = include_str!("../../../../docs/api.md");
    let section = document.split("## Headers").nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap();
    let section = section.to_lowercase();
    let mut seen = BTreeSet::new();
    for (status, answer) in answers {
        assert_eq!(answer.status, status, "{answer:?}");
        seen.extend(answer.headers.keys().map(|name| name.as_str().to_owned()));
    }
    for name in ["ratelimit", "ratelimit-policy", "retry-after", "allow", "link", "content-disposition"] {
        assert!(seen.contains(name), "{name} wasn't sent: {seen:?}");
    }
    for name in seen {
        assert!(section.contains(&format!("`{name}`")), "docs/api.md doesn't say what {name} is");
    }
}

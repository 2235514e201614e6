//! The administrative commands while the service runs, on both engines.

use serde_json::Value;

use crate::program::{Place, Service};

fn upsert(service: &Service, token: &str) -> u16 {
    let headers = [("Authorization", &*format!("Bearer {token}")), ("Content-Type", "application/json")];
    let body = r#"{"project": "acme", "imported_id": "crm-1"}"#;
    service.request("POST", "/api/accounts/upsert-by-imported-id/", &headers, body).0
}

fn ingest(service: &Service, key: &str) -> u16 {
    let headers = [("X-Service-Ingest-Key", key), ("Content-Type", "application/json")];
    let body = r#"{"events": [{"imported_id": "crm-1", "kind": "app_opened"}]}"#;
    service.request("POST", "/api/pulse/ingest/", &headers, body).0
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

#[test]
fn commands_and_service_share_the_database() {
    Place::each(|place| {
        let service = place.serve();
        let create = ["company", "create", "acme", "--name", "Acme", "--owner", "you@acme.test", "--json"];
        let created = place.json(&create);
        assert_eq!(upsert(&service, text(&created["api_token"])), 201);
        assert_eq!(ingest(&service, text(&created["ingest_key"])), 200);

        let made = place.json(&["token", "create", "--project", "acme", "--name", "Second", "--json"]);
        assert_eq!(upsert(&service, text(&made["token"])), 200);
        assert_eq!(place.run(&["token", "revoke", text(&made["id"])]).code, Some(0));
        assert_eq!(upsert(&service, text(&made["token"])), 401);

        let rotated = place.json(&["key", "rotate", "ingest", "--project", "acme", "--json"]);
        assert_eq!(ingest(&service, text(&created["ingest_key"])), 401);
        assert_eq!(ingest(&service, text(&rotated["ingest_key"])), 200);

        assert_eq!(place.run(&["migrate"]).code, Some(0));
        assert_eq!(place.run(&["doctor"]).code, Some(0));
        assert_eq!(service.get("/health/ready").0, 200);
    });
}

#[test]
fn a_stopping_service_records_when_tokens_were_used() {
    Place::each(|place| {
        let mut service = place.serve();
        let create = ["company", "create", "acme", "--name", "Acme", "--owner", "you@acme.test", "--json"];
        let created = place.json(&create);
        let last_used =
            || place.json(&["token", "list", "--project", "acme", "--json"])[0]["last_used_at"].clone();
        assert_eq!(last_used(), Value::Null);
        assert_eq!(upsert(&service, text(&created["api_token"])), 201);
        service.signal("TERM");
        assert_eq!(service.wait().code(), Some(0));
        assert!(last_used().is_string());
    });
}

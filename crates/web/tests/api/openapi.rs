//! The OpenAPI document: valid 3.1, complete, and consistent with what is served.

use std::collections::BTreeSet;

use rapport_domain::account::Account;
use rapport_domain::account_change::between;
use rapport_domain::cadence::Reminder;
use rapport_domain::channel::ChannelRef;
use rapport_domain::company::Slug;
use rapport_domain::contact::{self, Contact};
use rapport_domain::conversation::{Conversation, Log, Message, Start};
use rapport_domain::custom_fields::CustomFields;
use rapport_domain::event::{self, Kind, Occasion};
use rapport_domain::history::Actor;
use rapport_domain::id::{AccountId, ChannelId, ContactId, ConversationId, EventId, MessageId, WebhookId};
use rapport_domain::pipeline::{Move, Source, Status};
use rapport_domain::time::Time;
use serde_json::{Value, json};

use crate::described;
use crate::harness::{INGEST, Tenant, UPSERT, column, on_both_engines};

on_both_engines! {
    the_document_is_openapi_3_1_json_without_a_credential,
    both_documented_endpoints_are_in_it,
    every_management_path_is_in_it_with_its_slash,
    every_reference_resolves_and_every_path_parameter_is_described,
    every_operation_it_lists_is_served,
    the_payload_of_every_event_is_described,
}

const METHODS: [&str; 5] = ["get", "post", "patch", "delete", "put"];

/// The paths that anyone may call.
const OPEN: [&str; 3] = ["/api/invitations/accept/", "/api/password-reset/", "/api/password-reset/confirm/"];

/// Paths of the management API with their methods.
const MANAGEMENT: [(&str, &str); 34] = [
    ("/api/accounts/", "get post"),
    ("/api/accounts/{id}/", "delete get patch"),
    ("/api/accounts/{id}/activity/", "get"),
    ("/api/accounts/{id}/contacts/", "get post"),
    ("/api/accounts/{id}/history/", "get"),
    ("/api/accounts/{id}/pulse/", "get"),
    ("/api/accounts/{id}/status/", "post"),
    ("/api/audit/", "get"),
    ("/api/audit/export/", "get"),
    ("/api/channels/", "get post"),
    ("/api/channels/{id}/", "delete get patch"),
    ("/api/channels/{id}/codes/", "get post"),
    ("/api/channels/{id}/codes/{code}/", "delete get patch"),
    ("/api/clients/", "get"),
    ("/api/deliveries/", "get"),
    ("/api/digest/preview/", "get"),
    ("/api/digest/send/", "post"),
    ("/api/digests/", "get"),
    ("/api/digests/{week}/", "get"),
    ("/api/invitations/", "get post"),
    ("/api/invitations/{id}/", "delete"),
    ("/api/invitations/{id}/resend/", "post"),
    ("/api/members/", "get post"),
    ("/api/members/{id}/", "delete get patch"),
    ("/api/members/{id}/factor-reset/", "post"),
    ("/api/settings/", "get patch"),
    ("/api/settings/inbound-key/rotate/", "post"),
    ("/api/settings/ingest-key/rejects/", "get"),
    ("/api/settings/ingest-key/rotate/", "post"),
    ("/api/settings/sso/", "delete get put"),
    ("/api/settings/sso/test/", "post"),
    ("/api/tokens/", "get post"),
    ("/api/tokens/{id}/", "delete"),
    ("/api/webhooks/", "get post"),
];

pub async fn document(acme: &Tenant) -> Value {
    acme.get("/api/openapi.json").without_credential().send().await.expect(200)
}

/// The path, method and operation of everything described.
pub fn operations(document: &Value) -> Vec<(&str, &str, &Value)> {
    let paths = document["paths"].as_object().expect("paths").iter();
    paths
        .flat_map(|(path, item)| {
            let item = item.as_object().expect("a path item").iter();
            item.filter(|(method, _)| METHODS.contains(&method.as_str()))
                .map(move |(method, operation)| (path.as_str(), method.as_str(), operation))
        })
        .collect()
}

async fn the_document_is_openapi_3_1_json_without_a_credential(acme: Tenant) {
    let answer = acme.get("/api/openapi.json").without_credential().send().await;
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let document = answer.expect(200);
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1."), "{}", document["openapi"]);
    assert!(document["info"]["title"].is_string() && document["info"]["version"].is_string());
    let mut ids = BTreeSet::new();
    for (path, method, operation) in operations(&document) {
        let id = operation["operationId"].as_str().unwrap_or_else(|| panic!("{method} {path} has no id"));
        assert!(ids.insert(id), "{id} names two operations");
        let responses = operation["responses"].as_object().expect("responses");
        assert!(responses.keys().any(|status| status.starts_with('2')), "{method} {path}");
        for (status, response) in responses {
            assert!(status.parse::<u16>().is_ok_and(|status| (200..600).contains(&status)), "{status}");
            assert!(response["description"].is_string(), "{method} {path} {status}");
        }
    }
    assert_eq!(document["components"]["securitySchemes"]["token"]["scheme"], json!("bearer"));
    assert_eq!(
        document["components"]["securitySchemes"]["ingest_key"]["name"],
        json!("X-Service-Ingest-Key")
    );
}

async fn both_documented_endpoints_are_in_it(acme: Tenant) {
    let document = document(&acme).await;
    for (path, security) in [(UPSERT, json!({"token": ["work"]})), (INGEST, json!({"ingest_key": []}))] {
        let operation = &document["paths"][path]["post"];
        assert!(operation["requestBody"]["content"]["application/json"]["schema"].is_object(), "{path}");
        assert_eq!(operation["security"], json!([security]), "{path}");
        for status in ["200", "401", "413", "415", "422", "429", "503"] {
            assert!(operation["responses"][status].is_object(), "{path} {status}");
        }
    }
    assert!(document["paths"][UPSERT]["post"]["responses"]["201"].is_object());
    assert!(document["paths"][UPSERT]["post"]["responses"]["403"].is_object());
}

async fn every_management_path_is_in_it_with_its_slash(acme: Tenant) {
    let document = document(&acme).await;
    for (path, methods) in MANAGEMENT {
        let item = document["paths"][path].as_object().unwrap_or_else(|| panic!("{path} is not described"));
        let mut described: Vec<&str> =
            item.keys().map(String::as_str).filter(|name| METHODS.contains(name)).collect();
        described.sort_unstable();
        assert_eq!(described.join(" "), methods, "{path}");
    }
    for path in document["paths"].as_object().unwrap().keys() {
        assert!(path.starts_with("/api/") && path.ends_with('/'), "{path}");
    }
}

async fn every_reference_resolves_and_every_path_parameter_is_described(acme: Tenant) {
    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(Value::as_str));
                members.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }
    let document = document(&acme).await;
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > 20, "{}", found.len());
    for reference in found {
        let pointer =
            reference.strip_prefix('#').unwrap_or_else(|| panic!("{reference} is in another document"));
        assert!(document.pointer(pointer).is_some(), "{reference} does not resolve");
    }
    for (path, method, operation) in operations(&document) {
        let named: BTreeSet<&str> =
            path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
        let parameters = operation["parameters"].as_array().map_or(&[][..], Vec::as_slice).iter();
        let described: BTreeSet<&str> = parameters
            .filter(|parameter| parameter["in"] == json!("path"))
            .map(|parameter| parameter["name"].as_str().expect("a name"))
            .collect();
        assert_eq!(described, named, "{method} {path}");
    }
}

async fn every_operation_it_lists_is_served(acme: Tenant) {
    let document = document(&acme).await;
    let operations = operations(&document);
    assert!(operations.len() > 30, "{}", operations.len());
    for (path, method, _) in operations {
        let is_open = OPEN.contains(&path);
        let path = path.replace("{id}", "x").replace("{code}", "x").replace("{week}", "x");
        for path in [path.as_str(), path.trim_end_matches('/')] {
            if is_open {
                let answer = acme.post(path).without_credential().json(&json!({})).send().await;
                answer.expect_problem(422, "invalid");
                continue;
            }
            let answer = acme.request(&method.to_uppercase(), path).without_credential().send().await;
            answer.expect_problem(401, "unauthenticated");
        }
    }
}

async fn the_payload_of_every_event_is_described(acme: Tenant) {
    let document = document(&acme).await;
    let webhooks = document["webhooks"].as_object().expect("webhooks");
    assert_eq!(webhooks.len(), Kind::ALL.len());
    let now = Time::parse("2026-05-12T08:30:00Z").unwrap();
    let slug = Slug::parse("acme").unwrap();
    let occasion = Occasion { id: EventId::from_bytes([2; 16]), now, project: &slug };
    let mut account = Account::new(AccountId::from_bytes([1; 16]), "Nordlys".into(), Status::Lost, now);
    let before = account.clone();
    account.channel = Some(ChannelRef { id: ChannelId::from_bytes([3; 16]), name: "Spring fair".into() });
    account.custom_fields = CustomFields::from_stored(r#"{"plan":"pro"}"#.to_owned());
    let contact = Contact {
        id: ContactId::from_bytes([7; 16]),
        account: account.id,
        kind: contact::Kind::Call,
        note: None,
        actor: Actor::System,
        occurred_at: now,
        created_at: now,
    };
    let start = Start::parse(json!({"subject": "Offer"}).as_object().unwrap()).unwrap();
    let conversation = Conversation::new(ConversationId::from_bytes([4; 16]), account.id, start, now);
    let log = json!({"direction": "inbound", "body": "Hello"});
    let log = Log::parse(log.as_object().unwrap(), now).unwrap();
    let message = Message::new(MessageId::from_bytes([5; 16]), &conversation, &log, &Actor::System, now);
    let step = Move { from: Status::Lost, to: Status::InTrial };
    let reminder = Reminder { due_at: now, days_overdue: 3, cadence_days: 42 };
    let events = [
        event::account_created(occasion, &account, Source::Upsert),
        event::status_changed(occasion, &account, step, Source::Automation),
        event::message_inbound(occasion, &account, &conversation, &message),
        event::webhook_test(occasion, WebhookId::from_bytes([6; 16])),
        event::contact_due(occasion, &account, reminder),
        event::account_updated(occasion, &account, between(&before, &account), Source::Import),
        event::account_deleted(occasion, &account, Source::Operator),
        event::contact_recorded(occasion, &account, &contact),
    ];
    assert_eq!(events.each_ref().map(|event| event.kind), Kind::ALL);
    for event in events {
        let headers = webhooks[event.kind.as_str()]["post"]["parameters"].as_array().expect("headers");
        assert_eq!(
            column(headers, "name"),
            [
                "X-Service-Signature",
                "X-Service-Event",
                "X-Service-Delivery",
                "X-Service-Attempt",
                "webhook-id",
                "webhook-timestamp",
                "webhook-signature",
            ]
        );
        described::check_payload(event.kind.as_str(), &serde_json::from_str(&event.payload).unwrap());
    }
    let by_message = event::contact_by_message(occasion, &account, &conversation, &message);
    described::check_payload(by_message.kind.as_str(), &serde_json::from_str(&by_message.payload).unwrap());
}

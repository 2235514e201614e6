//! Webhooks and their deliveries over HTTP. Nothing is sent: the tests record the outcomes of attempts themselves.

use rapport_app::Access;
use rapport_app::delivery::RecordAttempt;
use rapport_app::ownership::ClaimManual;
use rapport_app::redelivery::{Stepped, step};
use rapport_domain::delivery::{Attempt, Failure, Outcome, Reason, Timings};
use rapport_domain::id::{DeliveryId, RedeliveryId, WebhookId};
use rapport_domain::member::Role;
use rapport_domain::standard_webhook::library_secret;
use rapport_testkit::Engine;
use serde_json::{Value, json};

use crate::harness::{Answer, Server, Tenant};

pub const WEBHOOKS: &str = "/api/webhooks/";
const DELIVERIES: &str = "/api/deliveries/";
const NODE: i64 = 7;
const REDELIVER: &str = "/api/deliveries/redeliver/";

pub async fn create(server: &Tenant) -> Value {
    let body =
        json!({"url": "https://example.com/hook", "events": ["account.created", "account.status_changed"]});
    server.post(WEBHOOKS).json(&body).send().await.expect(201)
}

fn path(of: &Value) -> String {
    let id = text(of, "id");
    format!("{}{id}/", if id.starts_with("whk_") { WEBHOOKS } else { DELIVERIES })
}

pub fn text(of: &Value, member: &str) -> String {
    of[member].as_str().unwrap_or_else(|| panic!("{member} of {of}")).to_owned()
}

/// The names of an object's members, in alphabetical order.
fn keys(of: &Value) -> String {
    let mut keys: Vec<&str> = of.as_object().expect("an object").keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys.join(" ")
}

async fn send(server: &Server, path: &str) -> Answer {
    server.post(path).send().await
}

pub async fn list(server: &Tenant, query: &str) -> Vec<Value> {
    server.all_pages(&format!("{DELIVERIES}?{query}"), 2).await
}

/// Records the outcome of an attempt.
pub async fn record(server: &Tenant, delivery: &Value, outcome: Outcome, manual: Option<RedeliveryId>) {
    let first_test = delivery["type"] == json!("webhook.test") && delivery["attempt_count"] == json!(0);
    let attempt = Attempt {
        started_at: server.company.app().now(),
        reason: if manual.is_some() && !first_test { Reason::Manual } else { Reason::Automatic },
        outcome,
        error: match outcome {
            Outcome::Answered { code: 200..=299, .. } => None,
            Outcome::Answered { code, .. } => Some(format!("answered {code}")),
            Outcome::BrokenOff { failure, .. } | Outcome::Failed(failure) => {
                Some(failure.as_str().to_owned())
            }
        },
        timings: Timings { dns: Some(250), connect: Some(1_000), total: 12_600, ..Timings::default() },
        address: Some("192.0.2.1:443".to_owned()),
        excerpt: b"so \xff so".to_vec(),
        excerpt_cut: true,
    };
    let webhook: WebhookId = text(delivery, "webhook_id").parse().unwrap();
    let delivery: DeliveryId = text(delivery, "id").parse().unwrap();
    let record = RecordAttempt::new(NODE, webhook, delivery, attempt, manual);
    let access = Access::System(server.company.id());
    server.company.app().write(&access, record).await.expect("recorded");
}

pub fn answered(code: u16) -> Outcome {
    Outcome::Answered { code, retry_after: None }
}

pub async fn claim(server: &Tenant) -> Vec<RedeliveryId> {
    let claim = ClaimManual { node: NODE, limit: 100 };
    let access = Access::System(server.company.id());
    let claimed = server.company.app().write(&access, claim).await.expect("claimed");
    claimed.claimed.into_iter().filter_map(|(found, _)| found.manual).map(|manual| manual.id).collect()
}

#[tokio::test]
async fn a_webhook_is_created_edited_and_deleted_and_shows_its_secret_once() {
    for engine in Engine::BOTH {
        let server = Server::on(engine).await;
        let made = create(&server).await;
        assert!(text(&made, "secret").starts_with("whs_"));
        assert_eq!(text(&made, "standard_secret"), library_secret(&text(&made, "secret")));
        let mut shown = made.clone();
        shown
            .as_object_mut()
            .unwrap()
            .retain(|name, _| !["secret", "standard_secret"].contains(&name.as_str()));
        let members = "auto_disabled_at created_at description enabled events failure_streak filters headers \
                       held_count id last_test secret_prefix updated_at url";
        assert_eq!(keys(&shown), members);
        assert_eq!(
            (&shown["enabled"], &shown["last_test"], &shown["held_count"]),
            (&json!(true), &Value::Null, &json!(0))
        );
        assert_eq!(server.get(&path(&made)).send().await.expect(200), shown);

        let patch = json!({"description": "CRM", "events": ["client.contact_due"]});
        let patched = server.patch(&path(&made)).json(&patch).send().await.expect(200);
        assert_eq!(
            (&patched["description"], &patched["events"]),
            (&json!("CRM"), &json!(["client.contact_due"]))
        );
        let rotated = send(&server, &format!("{}rotate/", path(&made))).await.expect(200);
        assert_ne!(
            (&rotated["secret"], &rotated["secret_prefix"]),
            (&made["secret"], &made["secret_prefix"])
        );
        assert_eq!(text(&rotated, "standard_secret"), library_secret(&text(&rotated, "secret")));
        let others = [create(&server).await, create(&server).await];
        let listed = server.all_pages(WEBHOOKS, 1).await;
        let ids: Vec<String> = listed.iter().map(|webhook| text(webhook, "id")).collect();
        assert_eq!(ids, [text(&others[1], "id"), text(&others[0], "id"), text(&made, "id")]);
        let secrets = ["secret", "standard_secret"];
        assert!(listed.iter().all(|webhook| secrets.iter().all(|name| webhook.get(name).is_none())));
        server.delete(&path(&made)).send().await.expect(204);
        for action in ["", "test/", "rotate/", "enable/", "disable/"] {
            let path = format!("{}{action}", path(&made));
            let answer =
                if action.is_empty() { server.get(&path).send().await } else { send(&server, &path).await };
            answer.expect_problem(404, "not_found");
        }
    }
}

#[tokio::test]
async fn a_destination_is_checked_before_anything_is_stored() {
    for engine in Engine::BOTH {
        let server = Server::on(engine).await;
        let refused = [
            "http://example.com/",
            "https://127.0.0.1/",
            "https://[::1]/",
            "https://10.0.0.8/hook",
            "https://169.254.169.254/latest/",
            "https://user:secret@example.com/",
            "not a url",
            "https://2130706433/",
        ];
        let kept = create(&server).await;
        for url in refused {
            let body = json!({"url": url, "events": ["account.created"]});
            for answer in [
                server.post(WEBHOOKS).json(&body).send().await,
                server.patch(&path(&kept)).json(&json!({"url": url})).send().await,
            ] {
                let faults = answer.faults();
                assert_eq!((faults.len(), faults[0].0.as_str()), (1, "/url"), "{url}: {faults:?}");
            }
        }
        let body =
            json!({"url": 5, "events": ["webhook.test"], "description": "x".repeat(201), "secret": "mine"});
        let faults = server.post(WEBHOOKS).json(&body).send().await.faults();
        let pointers: Vec<&str> = faults.iter().map(|(pointer, _)| pointer.as_str()).collect();
        assert_eq!(pointers, ["/url", "/events", "/description", "/secret"]);
        assert_eq!(server.all_pages(WEBHOOKS, 50).await.len(), 1);
        assert_eq!(server.get(&path(&kept)).send().await.expect(200)["url"], kept["url"]);
        // Callers without the role learn nothing about destinations.
        let member = server.token_of(Role::Member);
        let body = json!({"url": "https://127.0.0.1/", "events": ["account.created"]});
        let answer = server.post(WEBHOOKS).json(&body).token(&member).send().await;
        answer.expect_problem(403, "role_required");
        server
            .post(WEBHOOKS)
            .json(&body)
            .without_credential()
            .send()
            .await
            .expect_problem(401, "unauthenticated");
        for path in [WEBHOOKS, DELIVERIES] {
            server.get(path).token(&member).send().await.expect_problem(403, "role_required");
        }
    }
}

#[tokio::test]
async fn twenty_failures_disable_a_webhook_until_a_test_succeeds() {
    for engine in Engine::BOTH {
        let server = Server::on(engine).await;
        let webhook = create(&server).await;
        for number in 0..3 {
            server.account(json!({"imported_id": format!("crm-{number}")})).await;
        }
        let open = list(&server, "state=pending").await;
        for failure in 0..20 {
            record(&server, &open[failure % 3], answered(500), None).await;
        }
        let now = server.app.clock().now().to_string();
        let shown = server.get(&path(&webhook)).send().await.expect(200);
        assert_eq!((&shown["enabled"], &shown["auto_disabled_at"]), (&json!(false), &json!(now)));
        assert_eq!((&shown["failure_streak"], &shown["held_count"]), (&json!(20), &json!(3)));
        assert_eq!(list(&server, "state=held").await.len(), 3);
        assert!(list(&server, "state=pending").await.is_empty());

        let enable = format!("{}enable/", path(&webhook));
        send(&server, &enable).await.expect_problem(409, "test_required");
        let test = send(&server, &format!("{}test/", path(&webhook))).await.expect(202);
        assert_eq!(
            (&test["type"], &test["state"], &test["account_id"]),
            (&json!("webhook.test"), &json!("pending"), &Value::Null)
        );
        assert_eq!(test["payload"]["data"]["account"]["imported_id"], json!("test"));
        assert_eq!(test["payload"]["data"]["webhook_id"], webhook["id"]);
        let manual = claim(&server).await[0];
        record(&server, &test, answered(204), Some(manual)).await;
        let shown = server.get(&path(&webhook)).send().await.expect(200);
        assert_eq!(shown["last_test"], json!({"at": now, "succeeded": true}));

        let wrong = server.post(&enable).json(&json!({"held": "burn", "x": 1})).send().await;
        let expected = [("/held", "unknown_choice"), ("/x", "unknown_member")];
        assert_eq!(wrong.faults(), expected.map(|(at, code)| (at.to_owned(), code.to_owned())));
        let enabled = send(&server, &enable).await.expect(200);
        assert_eq!((&enabled["enabled"], &enabled["failure_streak"]), (&json!(true), &json!(0)));
        assert_eq!((&enabled["auto_disabled_at"], &enabled["held_count"]), (&Value::Null, &json!(0)));
        assert_eq!(list(&server, "state=pending").await.len(), 3);
    }
}

#[tokio::test]
async fn held_deliveries_can_be_dropped() {
    for engine in Engine::BOTH {
        let server = Server::on(engine).await;
        let webhook = create(&server).await;
        let disabled = send(&server, &format!("{}disable/", path(&webhook))).await.expect(200);
        assert_eq!((&disabled["enabled"], &disabled["auto_disabled_at"]), (&json!(false), &Value::Null));
        server.account(json!({"imported_id": "crm-1"})).await;
        server.app.clock().advance_seconds(1);
        let enable = server.post(&format!("{}enable/", path(&webhook))).json(&json!({"held": "drop"}));
        assert_eq!(enable.send().await.expect(200)["held_count"], json!(0));
        let [dropped] = &list(&server, "state=failed").await[..] else { panic!("one was dropped") };
        assert_eq!((&dropped["error"], &dropped["next_attempt_at"]), (&json!("dropped"), &Value::Null));
        assert!(dropped["finished_at"].is_string());
    }
}

#[tokio::test]
async fn a_delivery_shows_its_payload_and_every_attempt() {
    for engine in Engine::BOTH {
        let server = Server::on(engine).await;
        let webhook = create(&server).await;
        let account = server.account(json!({"imported_id": "crm-1", "captured_value": 12.50})).await;
        let [listed] = &list(&server, "").await[..] else { panic!("one delivery") };
        assert_eq!(listed["next_attempt_at"], listed["created_at"]);
        record(&server, listed, Outcome::Failed(Failure::Timeout), None).await;
        server.app.clock().advance_seconds(10);
        let delivery = server.get(&path(listed)).send().await.expect(200);
        assert_eq!((&delivery["state"], &delivery["attempt_count"]), (&json!("pending"), &json!(1)));
        assert!(delivery["next_attempt_at"].as_str() > delivery["created_at"].as_str());
        let redelivered = send(&server, &format!("{}redeliver/", path(listed))).await.expect(202);
        assert_eq!(redelivered["id"], listed["id"]);
        let manual = claim(&server).await[0];
        record(&server, listed, answered(200), Some(manual)).await;

        let delivery = server.get(&path(listed)).send().await.expect(200);
        let members = "account_id attempt_count attempts created_at error event_id finished_at id \
                       next_attempt_at payload response_code state type webhook_id";
        assert_eq!(keys(&delivery), members);
        assert_eq!((&delivery["webhook_id"], &delivery["account_id"]), (&webhook["id"], &account["id"]));
        assert_eq!((&delivery["state"], &delivery["response_code"]), (&json!("succeeded"), &json!(200)));
        assert_eq!((&delivery["error"], &delivery["next_attempt_at"]), (&Value::Null, &Value::Null));
        assert_eq!(delivery["payload"]["id"], delivery["event_id"]);
        assert_eq!(delivery["payload"]["data"]["account"]["captured_value"], json!("12.50"));
        assert_eq!(
            delivery["attempts"],
            json!([
                {
                    "number": 1, "started_at": listed["created_at"], "duration_ms": 13, "status": "failed",
                    "response_code": null, "error": "timeout", "error_class": "timeout", "manual": false,
                    "timings": {"dns_ms": 0.25, "connect_ms": 1.0, "tls_ms": null, "first_byte_ms": null, "total_ms": 12.6},
                    "address": "192.0.2.1:443", "response_excerpt": "so \u{fffd} so", "response_excerpt_cut": true,
                },
                {
                    "number": 2, "started_at": delivery["finished_at"], "duration_ms": 13, "status": "succeeded",
                    "response_code": 200, "error": null, "error_class": null, "manual": true,
                    "timings": {"dns_ms": 0.25, "connect_ms": 1.0, "tls_ms": null, "first_byte_ms": null, "total_ms": 12.6},
                    "address": "192.0.2.1:443", "response_excerpt": "so \u{fffd} so", "response_excerpt_cut": true,
                },
            ])
        );
    }
}

#[tokio::test]
async fn deliveries_are_filtered_and_paged() {
    for engine in Engine::BOTH {
        let server = Server::on(engine).await;
        let (one, other) = (create(&server).await, create(&server).await);
        let account = server.account(json!({"imported_id": "crm-1"})).await;
        server.app.clock().advance_seconds(60);
        let later = server.app.clock().now();
        server.upsert(json!({"imported_id": "crm-1", "status": "customer"})).await.expect(200);
        server.account(json!({"imported_id": "crm-2"})).await;
        let all = list(&server, "").await;
        assert_eq!(all.len(), 6);
        assert!(all.windows(2).all(|pair| text(&pair[0], "id") > text(&pair[1], "id")), "newest first");
        record(&server, &all[0], answered(404), None).await;
        record(&server, &all[1], answered(200), None).await;
        let account = text(&account, "id");
        let (since, before) = (format!("since={later}"), format!("until={later}"));
        let table: [(&str, usize); 11] = [
            ("state=failed", 1),
            ("state=succeeded", 1),
            ("state=pending", 4),
            ("state=held", 0),
            ("type=account.status_changed", 2),
            (&format!("account={account}"), 4),
            (&format!("account={account}&type=account.created&{before}"), 2),
            (&format!("webhook={}", text(&one, "id")), 3),
            (&format!("webhook={}&state=pending", text(&other, "id")), 2),
            (&since, 4),
            (&before, 2),
        ];
        for (query, count) in table {
            assert_eq!(list(&server, query).await.len(), count, "{query}");
        }
        let answer = server
            .get(&format!("{DELIVERIES}?webhook=x&state=open&type=y&account=z&since=w&sort=id&cursor=c"));
        let mut named: Vec<String> = answer.send().await.faults().into_iter().map(|(name, _)| name).collect();
        named.sort_unstable();
        assert_eq!(named, ["account", "cursor", "since", "sort", "state", "type", "webhook"]);
    }
}

#[tokio::test]
async fn a_bulk_redelivery_is_previewed_started_followed_and_cancelled() {
    for engine in Engine::BOTH {
        let server = Server::on(engine).await;
        create(&server).await;
        for number in 0..3 {
            server.account(json!({"imported_id": format!("crm-{number}")})).await;
        }
        for delivery in list(&server, "").await {
            record(&server, &delivery, answered(410), None).await;
        }
        let body = json!({"state": "failed", "preview": true});
        let preview = server.post(REDELIVER).json(&body).send().await.expect(200);
        assert_eq!(preview, json!({"count": 3, "capped": false}));
        assert_eq!(server.app.rows("redelivery"), 0);
        let started = server.post(REDELIVER).json(&json!({"state": "failed"})).send().await.expect(202);
        assert_eq!(
            (&started["state"], &started["total"], &started["done"]),
            (&json!("running"), &json!(3), &json!(0))
        );
        let own = format!("{REDELIVER}{}/", text(&started, "id"));
        let id: RedeliveryId = text(&started, "id").parse().unwrap();
        assert_eq!(step(server.app.app(), server.app.id(), id).await.unwrap(), Stepped::Waiting);
        let claimed = claim(&server).await;
        for (delivery, manual) in list(&server, "").await.iter().zip(&claimed) {
            record(&server, delivery, answered(200), Some(*manual)).await;
        }
        assert_eq!(step(server.app.app(), server.app.id(), id).await.unwrap(), Stepped::Ended);
        let followed = server.get(&own).send().await.expect(200);
        assert_eq!(
            followed,
            json!({
                "id": started["id"], "state": "finished", "total": 3, "queued": 3, "done": 3, "skipped": 0, "paused": false,
                "created_at": started["created_at"], "finished_at": server.app.clock().now(),
            })
        );
        for everything in [json!({}), json!({"preview": true})] {
            let refused = server.post(REDELIVER).json(&everything).send().await.faults();
            assert_eq!(refused, [(String::new(), "filter_required".to_owned())], "{everything}");
        }
        let second = server.post(REDELIVER).json(&json!({"state": "succeeded"})).send().await.expect(202);
        let own = format!("{REDELIVER}{}/", text(&second, "id"));
        server.delete(&own).send().await.expect(204);
        assert_eq!(server.get(&own).send().await.expect(200)["state"], json!("cancelled"));
        server.delete(&own).send().await.expect(204);
        server.get(&format!("{REDELIVER}rdl_nonsense/")).send().await.expect_problem(404, "not_found");
        let wrong = server.post(REDELIVER).json(&json!({"state": "x", "limit": 5})).send().await.faults();
        assert_eq!(wrong.len(), 2);
        server.get(REDELIVER).send().await.expect_problem(405, "method_not_allowed");
    }
}

#[tokio::test]
async fn erasure_keeps_the_metadata() {
    for engine in Engine::BOTH {
        let server = Server::on(engine).await;
        create(&server).await;
        let account = server.account(json!({"imported_id": "crm-1"})).await;
        let [listed] = &list(&server, "").await[..] else { panic!("one delivery") };
        let erase = format!("/api/accounts/{}/erase-payloads/", text(&account, "id"));
        let rows = |erased: &Value, list: &str| -> Value {
            let list = erased[list].as_array().unwrap().iter();
            list.map(|part| json!([part["table"], part["rows"]])).collect()
        };
        let erased = send(&server, &erase).await.expect(200);
        assert_eq!(erased["erased"], json!(1));
        let removed =
            json!([["event", 1], ["attempt", 0], ["audit", 0], ["account_tombstone", 0], ["correction", 0],]);
        assert_eq!((rows(&erased, "removed"), &erased["removed"][0]["column"]), (removed, &json!("payload")));
        let kept = json!([
            ["account", 1],
            ["event", 1],
            ["delivery", 1],
            ["attempt", 0],
            ["audit", 0],
            ["account_tombstone", 0],
            ["correction", 0],
        ]);
        assert_eq!(rows(&erased, "kept"), kept);
        assert!(erased["kept"][2]["reason"].as_str().unwrap().contains("whether it arrived"));
        let log = server.all_pages("/api/audit/?action=account.payloads_erased", 10).await;
        assert_eq!(log[0]["detail"]["removed"], json!({"event": 1}));
        assert_eq!(send(&server, &erase).await.expect(200)["erased"], json!(0));
        let delivery = server.get(&path(listed)).send().await.expect(200);
        assert_eq!((&delivery["payload"], &delivery["error"]), (&Value::Null, &json!("payload_erased")));
        assert_eq!((&delivery["state"], &delivery["event_id"]), (&json!("failed"), &listed["event_id"]));
        send(&server, &format!("{}redeliver/", path(listed))).await.expect_problem(409, "payload_erased");
        send(&server, "/api/accounts/acc_nonsense/erase-payloads/").await.expect_problem(404, "not_found");
    }
}

#[tokio::test]
async fn nothing_of_another_company_is_reachable() {
    for engine in Engine::BOTH {
        let server = Server::on(engine).await;
        let webhook = create(&server).await;
        let account = server.account(json!({"imported_id": "crm-1"})).await;
        let [delivery] = &list(&server, "").await[..] else { panic!("one delivery") };
        let started = server.post(REDELIVER).json(&json!({"state": "pending"})).send().await.expect(202);
        let redelivery = format!("{REDELIVER}{}/", text(&started, "id"));
        let stranger = server.app.company("globex");
        let erase = format!("/api/accounts/{}/erase-payloads/", text(&account, "id"));
        for path in [path(&webhook), path(delivery), redelivery.clone()] {
            server.get(&path).of_company(&stranger).send().await.expect_problem(404, "not_found");
        }
        let mut posts: Vec<String> = ["test", "rotate", "enable", "disable"]
            .map(|action| format!("{}{action}/", path(&webhook)))
            .into();
        posts.extend([format!("{}redeliver/", path(delivery)), erase]);
        for path in posts {
            server.post(&path).of_company(&stranger).send().await.expect_problem(404, "not_found");
        }
        for path in [path(&webhook), redelivery] {
            server.delete(&path).of_company(&stranger).send().await.expect_problem(404, "not_found");
        }
        for path in [WEBHOOKS, DELIVERIES] {
            let page = server.get(path).of_company(&stranger).send().await.expect(200);
            assert_eq!(page, json!({"items": [], "next_cursor": null}));
        }
        let all = json!({"preview": true, "since": "2000-01-01"});
        let preview = server.post(REDELIVER).json(&all).of_company(&stranger).send().await;
        assert_eq!(preview.expect(200)["count"], json!(0));
        assert_eq!(server.get(&path(&webhook)).send().await.expect(200)["enabled"], json!(true));
    }
}

//! Requests with an `Idempotency-Key`: each is done once, and every repeat gets the same response.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rapport_app::Outside;
use rapport_app::import::{Runner, Stepped};
use rapport_app::lookup::{FetchError, Fetched, HomePages};
use rapport_domain::destination::Destination;
use rapport_domain::member::Role;
use rapport_domain::repeat::MAX_KEY_CHARS;
use rapport_testkit::Engine;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::harness::{Answer, Call, Server, Tenant, on_both_engines, path_of};
use crate::inbound::{INBOUND, MAIL, key_of};
use crate::openapi::{document, operations};
use crate::{lookup, webhooks};

on_both_engines!(
    every_post_that_acts_is_done_once,
    a_key_is_one_request_of_one_credential,
    a_refused_request_may_be_corrected,
    a_malformed_key_is_refused,
    a_repeat_while_the_first_is_in_progress_is_refused,
    a_key_is_forgotten_after_a_day,
    a_large_response_is_not_kept,
    an_upload_is_stored_once,
    ingest_is_counted_once,
    other_methods_ignore_the_key,
);

const ACCOUNTS: &str = "/api/accounts/";

fn keyed<'a>(call: Call<'a>, key: &str) -> Call<'a> {
    call.header("idempotency-key", key)
}

fn is_replay(answer: &Answer) -> bool {
    match answer.header("idempotency-replayed") {
        None => false,
        Some(said) => said == "true" || panic!("{said}"),
    }
}

async fn furnished(engine: Engine) -> Server {
    Server::with_parts(engine, |parts| {
        parts.home_pages = lookup::pages();
        parts.outside = Outside { base_url: "http://crm.acme.test".to_owned(), mail_configured: true };
    })
    .await
}

/// A member who has a second factor is made with pages, so `pages_factors` repeats this one.
const ELSEWHERE: [&str; 1] = ["/api/members/{id}/factor-reset/"];

/// A request of each operation that acts, and whether it has a body.
async fn example<'a>(acme: &'a Server, path: &str) -> Call<'a> {
    let id = |of: &Value| of["id"].as_str().expect("an id").to_owned();
    let with = |of: &Value| acme.post(&path.replace("{id}", &id(of)));
    let json = |body: Value| acme.post(path).json(&body);
    let account = async || acme.account(json!({ "imported_id": path })).await;
    let upload = async |name: &str| {
        let file = format!("name,imported_id\n{name},{name}\n").into_bytes();
        let call = acme.post("/api/imports/").bytes(file).header("content-type", "text/csv");
        call.send().await.expect(201)
    };
    match path {
        "/api/accounts/" => json(json!({"name": "Nordlys"})),
        "/api/accounts/upsert-batch/" => {
            json(json!({"project": "acme", "accounts": [{"imported_id": "of a batch"}]}))
        }
        "/api/accounts/upsert-by-imported-id/" => acme.upserting(json!({"imported_id": "upserted"})),
        "/api/pulse/ingest/" => {
            let account = account().await;
            let event = json!({"account_id": account["id"], "kind": "feature_used", "feature": "f"});
            acme.ingesting(json!([event]))
        }
        "/api/accounts/{id}/status/" => with(&account().await).json(&json!({"status": "contacted"})),
        "/api/accounts/{id}/addresses/" => with(&account().await).json(&json!({"address": "a@nordlys.test"})),
        "/api/accounts/{id}/contacts/" => with(&account().await).json(&json!({"kind": "call"})),
        "/api/accounts/{id}/notes/" => with(&account().await).json(&json!({"text": "Likes tea"})),
        "/api/accounts/{id}/corrections/{correction}/undo/" => {
            let account = path_of(&account().await);
            let contacts = format!("{account}contacts/");
            let made = acme.post(&contacts).json(&json!({"kind": "call"})).send().await.expect(201);
            acme.delete(&format!("{contacts}{}/", id(&made))).send().await.expect(204);
            let made = acme.get(&format!("{account}corrections/")).send().await.expect(200);
            acme.post(&format!("{account}corrections/{}/undo/", id(&made["items"][0])))
        }
        "/api/accounts/{id}/conversations/" => with(&account().await).json(&json!({"subject": "Offer"})),
        "/api/accounts/{id}/erase-payloads/" => with(&account().await),
        "/api/campaigns/" => json(json!({"name": "Spring", "goal": "acquisition"})),
        "/api/channels/" => json(json!({"name": "Fair"})),
        "/api/channels/{id}/codes/" => {
            let channel = acme.company.channel("Radio", &[]);
            acme.post(&path.replace("{id}", &channel.id.to_string())).json(&json!({"code": "RADIO"}))
        }
        "/api/exchange-rates/" => {
            json(json!({"currency": "CHF", "valid_from": "2026-01-01", "rate": "1.05"}))
        }
        "/api/conversations/{id}/messages/" => {
            let start = format!("{}conversations/", path_of(&account().await));
            let begun = acme.post(&start).json(&json!({})).send().await.expect(201);
            with(&begun).json(&json!({"direction": "outbound", "body": "Hello."}))
        }
        "/api/deliveries/{id}/redeliver/" | "/api/deliveries/redeliver/" => {
            let webhook = webhooks::create(acme).await;
            acme.account(json!({ "imported_id": path })).await;
            let made = webhooks::list(acme, &format!("webhook={}", id(&webhook))).await;
            match path {
                "/api/deliveries/redeliver/" => json(json!({"webhook": webhook["id"]})),
                _ => with(&made[0]),
            }
        }
        "/api/digest/send/" => {
            acme.company.employ("eve@acme.test", "Eve", Role::Member);
            json(json!({"to": "everyone"}))
        }
        "/api/imports/" => {
            let file = b"name\nNordlys\n".to_vec();
            acme.post(path).bytes(file).header("content-type", "text/csv")
        }
        "/api/imports/{id}/start/" => with(&upload("started").await).json(&json!({})),
        "/api/imports/{id}/undo/" => {
            let import = upload("undone").await;
            let start = format!("/api/imports/{}/start/", id(&import));
            acme.post(&start).json(&json!({})).send().await.expect(202);
            let number = id(&import).parse().expect("an id");
            let mut runner = Runner::new(acme.company.app(), acme.company.id(), number);
            while runner.step().await.expect("a step") == Stepped::More {}
            with(&import)
        }
        "/api/inbound/email/" => {
            let key = key_of(&acme.company);
            let call =
                acme.post(INBOUND).bytes(MAIL.as_bytes().to_vec()).header("content-type", "message/rfc822");
            call.without("authorization").header("x-service-inbound-key", &key)
        }
        "/api/invitations/" => json(json!({"email": "ana@acme.test", "role": "member"})),
        "/api/members/" => json(json!({"email": "ben@acme.test", "role": "member"})),
        "/api/invitations/{id}/resend/" => {
            let body = json!({"email": "cem@acme.test", "role": "member"});
            with(&acme.post("/api/invitations/").json(&body).send().await.expect(201))
        }
        "/api/members/{id}/password-reset/" => {
            let member = acme.company.employ("dora@acme.test", "Dora", Role::Member);
            acme.post(&path.replace("{id}", &member.person.to_string()))
        }
        "/api/lookup/" => json(json!({"domain": "nordlys.test", "create": true})),
        "/api/settings/ingest-key/rotate/" | "/api/settings/inbound-key/rotate/" => acme.post(path),
        "/api/tokens/" => json(json!({"name": "CRM sync", "role": "member"})),
        "/api/webhooks/" => json(json!({"url": "https://example.com/hook", "events": ["account.created"]})),
        "/api/webhooks/{id}/test/" | "/api/webhooks/{id}/rotate/" | "/api/webhooks/{id}/disable/" => {
            with(&webhooks::create(acme).await)
        }
        "/api/webhooks/{id}/enable/" => {
            let webhook = webhooks::create(acme).await;
            acme.post(&format!("/api/webhooks/{}/disable/", id(&webhook))).send().await.expect(200);
            with(&webhook)
        }
        other => panic!("POST {other} is new: say here what it takes"),
    }
}

async fn every_post_that_acts_is_done_once(engine: Engine) {
    let acme = furnished(engine).await;
    let document = document(&acme).await;
    let (mut done, mut others, mut secrets) = (0, BTreeSet::new(), 0);
    for (path, _, operation) in operations(&document).into_iter().filter(|(_, method, _)| *method == "post") {
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        let takes_key = parameters.iter().any(|parameter| parameter["name"] == json!("Idempotency-Key"));
        if !takes_key {
            others.insert(path);
            continue;
        }
        if ELSEWHERE.contains(&path) {
            continue;
        }
        let call = keyed(example(&acme, path).await, path);
        let first = call.clone().send().await;
        assert!((200..300).contains(&first.status), "POST {path}: {first:?}");
        assert!(!is_replay(&first), "POST {path}");
        for secret in ["token", "secret", "key"].iter().filter_map(|member| secret_in(&first, member)) {
            let clear = format!("SELECT count(*) FROM kept_response WHERE body LIKE '%{secret}%'");
            assert_eq!(acme.app.number(&clear), 0, "POST {path} leaves a secret in the clear");
            secrets += 1;
        }
        let (contents, rows) = (acme.contents(), rows(&acme));
        acme.app.clock().advance_seconds(60);
        let again = call.clone().send().await;
        assert_eq!((again.status, again.text()), (first.status, first.text()), "POST {path}");
        assert_eq!(again.header("content-type"), first.header("content-type"), "POST {path}");
        assert!(is_replay(&again), "POST {path}");
        // The same key with other bytes.
        let other = call.spaced();
        other.expect_refused(422, "idempotency_key_reused").await;
        assert_eq!(
            (acme.contents(), self::rows(&acme)),
            (contents, rows),
            "POST {path}: a repeat does nothing"
        );
        done += 1;
    }
    assert!(done > 30 && secrets == 5, "{done} {secrets}");
    let expected = [
        "/api/campaigns/preview/",
        "/api/imports/{id}/preview/",
        "/api/invitations/accept/",
        "/api/password-reset/",
        "/api/password-reset/confirm/",
        "/api/settings/sso/test/",
    ];
    assert_eq!(others, BTreeSet::from(expected), "these do nothing, or have no credential");
}

/// A secret that a response shows.
fn secret_in(answer: &Answer, member: &str) -> Option<String> {
    let text = answer.text();
    let shown: Option<Value> = serde_json::from_str(text).ok();
    Some(shown?[member].as_str()?.to_owned())
}

/// How many rows there are of what actions leave behind.
fn rows(acme: &Server) -> Vec<i64> {
    let tables = [
        "account",
        "activity",
        "audit",
        "contact",
        "correction",
        "delivery",
        "exchange_rate",
        "import",
        "mail",
        "manual_attempt",
        "message",
        "note",
    ];
    tables.into_iter().map(|table| acme.app.rows(table)).collect()
}

async fn a_key_is_one_request_of_one_credential(acme: Tenant) {
    let create = |name: &str| keyed(acme.post(ACCOUNTS).json(&json!({ "name": name })), "key-1");
    let first = create("Nordlys").send().await;
    let account = first.expect(201);
    for key in ["key-1", "\"key-1\""] {
        let again = keyed(create("Nordlys"), key).send().await;
        assert_eq!((again.expect(201), is_replay(&again)), (account.clone(), true));
    }
    create("Globus").expect_refused(422, "idempotency_key_reused").await;
    let elsewhere = keyed(acme.post("/api/channels/").json(&json!({"name": "Nordlys"})), "key-1");
    elsewhere.expect_refused(422, "idempotency_key_reused").await;
    let slashless = keyed(acme.post("/api/accounts").json(&json!({"name": "Nordlys"})), "key-1");
    assert!(is_replay(&slashless.send().await), "it is the same path");
    let gzipped = create("Nordlys").gzipped().send().await;
    assert!(is_replay(&gzipped), "however it is sent");

    let other = create("Nordlys").token(&acme.token_of(Role::Member)).send().await;
    assert_ne!(other.expect(201)["id"], account["id"], "another token has its own keys");
    create("Nordlys").token(&acme.token_of(Role::Viewer)).expect_refused(403, "role_required").await;
    create("Nordlys").without_credential().expect_refused(401, "unauthenticated").await;
    let neighbour = acme.neighbour();
    let theirs = keyed(neighbour.post(ACCOUNTS).json(&json!({"name": "Nordlys"})), "key-1").send().await;
    assert!(theirs.status == 201 && !is_replay(&theirs));

    // The response is the one of then, whatever happened since.
    acme.patch(&path_of(&account)).json(&json!({"name": "Renamed"})).send().await.expect(200);
    assert_eq!(create("Nordlys").send().await.expect(201), account);
    acme.delete(&path_of(&account)).send().await.expect(204);
    assert_eq!(create("Nordlys").send().await.expect(201), account);
}

async fn a_refused_request_may_be_corrected(acme: Tenant) {
    let create = |body: Value| keyed(acme.post(ACCOUNTS).json(&body), "key-1");
    create(json!({"name": ""})).expect_faults(&[("/name", "empty")]).await;
    acme.account(json!({"imported_id": "crm-1"})).await;
    create(json!({"name": "a", "imported_id": "crm-1"})).expect_refused(409, "imported_id_taken").await;
    let made = create(json!({"name": "a", "imported_id": "crm-2"})).send().await;
    assert!(made.status == 201 && !is_replay(&made), "nothing was kept for the refused requests");
    // A request that can't be read is refused like any other.
    let broken = keyed(acme.post(ACCOUNTS).text("{"), "key-2");
    broken.expect_refused(400, "not_json").await;
}

async fn a_malformed_key_is_refused(acme: Tenant) {
    let long = "k".repeat(MAX_KEY_CHARS + 1);
    for key in ["", " ", "\"\"", "\"a", "a b", long.as_str()] {
        let call = keyed(acme.post(ACCOUNTS).json(&json!({"name": "Nordlys"})), key);
        let answer = call.clone().expect_refused(400, "bad_idempotency_key").await;
        assert!(answer.json()["detail"].as_str().unwrap().contains("Idempotency-Key"), "{}", answer.text());
        call.without_credential().expect_refused(401, "unauthenticated").await;
    }
    let longest = "k".repeat(MAX_KEY_CHARS);
    keyed(acme.post(ACCOUNTS).json(&json!({"name": "Nordlys"})), &longest).send().await.expect(201);
}

/// A home page that is fetched only when the test lets it.
struct Held {
    fetches: AtomicUsize,
    permits: Semaphore,
}

impl HomePages for Held {
    fn fetch<'a>(
        &'a self,
        page: &'a Destination,
    ) -> Pin<Box<dyn Future<Output = Result<Fetched, FetchError>> + Send + 'a>> {
        Box::pin(async move {
            self.fetches.fetch_add(1, Ordering::SeqCst);
            self.permits.acquire().await.expect("open").forget();
            Ok(Fetched {
                at: page.clone(),
                content_type: Some("text/html".to_owned()),
                body: b"<p>x".to_vec(),
            })
        })
    }
}

async fn a_repeat_while_the_first_is_in_progress_is_refused(engine: Engine) {
    let held = Arc::new(Held { fetches: AtomicUsize::new(0), permits: Semaphore::new(0) });
    let pages = Arc::clone(&held);
    let acme = Server::with_parts(engine, move |parts| parts.home_pages = Arc::clone(&pages) as _).await;
    let create =
        keyed(acme.post("/api/lookup/").json(&json!({"domain": "plain.test", "create": true})), "key-1");
    let repeated = async {
        while held.fetches.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        let refused = create.clone().expect_refused(409, "request_in_progress").await;
        assert!(refused.header("retry-after").is_some());
        held.permits.add_permits(1);
    };
    let (first, ()) = tokio::join!(create.clone().send(), repeated);
    let again = create.send().await;
    assert_eq!((again.expect(201), is_replay(&again)), (first.expect(201), true));
    assert_eq!(held.fetches.load(Ordering::SeqCst), 1, "the page is not fetched again");
}

async fn a_key_is_forgotten_after_a_day(server: Server) {
    let create = || keyed(server.post(ACCOUNTS).json(&json!({"name": "Nordlys"})), "key-1").send();
    let first = create().await.expect(201);
    server.app.clock().advance_seconds(24 * 3_600 - 1);
    assert_eq!(create().await.expect(201)["id"], first["id"]);
    server.app.clock().advance_seconds(1);
    assert_ne!(create().await.expect(201)["id"], first["id"]);
}

async fn a_large_response_is_not_kept(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "crm-1"})).await;
    let start = format!("{}conversations/", path_of(&account));
    let conversation = acme.post(&start).json(&json!({})).send().await.expect(201);
    let path = format!("/api/conversations/{}/messages/", conversation["id"].as_str().expect("an id"));
    // A character of three bytes: the longest body is larger than what is kept.
    let body = "€".repeat(200_000);
    let log = || keyed(acme.post(&path).json(&json!({"direction": "inbound", "body": body})), "key-1");
    log().send().await.expect(201);
    log().expect_refused(409, "response_not_kept").await;
    assert_eq!(acme.all_pages(&path, 50).await.len(), 1);
}

async fn an_upload_is_stored_once(acme: Tenant) {
    let upload = |file: &str| {
        let call = acme.post("/api/imports/?filename=a.csv").bytes(file.as_bytes().to_vec());
        keyed(call.header("content-type", "text/csv"), "key-1")
    };
    let first = upload("name\nNordlys\n").send().await;
    let again = upload("name\nNordlys\n").send().await;
    assert_eq!((again.expect(201), is_replay(&again)), (first.expect(201), true));
    upload("name\nGlobus\n").expect_refused(422, "idempotency_key_reused").await;
    let renamed = acme.post("/api/imports/?filename=b.csv").bytes(b"name\nNordlys\n".to_vec());
    let renamed = keyed(renamed.header("content-type", "text/csv"), "key-1");
    renamed.expect_refused(422, "idempotency_key_reused").await;
    assert_eq!(acme.all_pages("/api/imports/", 50).await.len(), 1, "nothing else is left behind");
}

async fn ingest_is_counted_once(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "crm-1"})).await;
    // Without an event_id, a second request would count again.
    let events = json!([
        {"imported_id": "crm-1", "kind": "feature_used", "feature": "f"},
        {"imported_id": "nobody", "kind": "feature_used", "feature": "f"},
    ]);
    let send = || keyed(acme.ingesting(events.clone()), "key-1").send();
    let first = send().await;
    assert_eq!(
        (&first.expect(200)["accepted"], &first.json()["unmatched"][0]["imported_id"]),
        (&json!(1), &json!("nobody"))
    );
    let again = send().await;
    assert_eq!((again.expect(200), is_replay(&again)), (first.json(), true));
    let activity = acme.all_pages(&format!("{}activity/", path_of(&account)), 50).await;
    assert_eq!(activity.len(), 1);
    // A batch that is refused as a whole changes nothing and is not remembered.
    let invalid = keyed(acme.ingesting(json!([{"kind": "nonsense"}])), "key-2");
    invalid.expect_refused(422, "all_rejected").await;
    let corrected = keyed(
        acme.ingesting(json!([{"imported_id": "crm-1", "kind": "feature_used", "feature": "f"}])),
        "key-2",
    );
    assert!(!is_replay(&corrected.send().await));
    let strict = json!({"strict": true, "events": [{"imported_id": "new", "kind": "app_opened"}]});
    let strict = || keyed(acme.ingesting(json!([])).json(&strict), "key-3");
    let refused = strict().expect_refused(422, "batch_refused").await;
    assert_eq!(refused.header("link"), Some("</api/errors/batch_refused/>; rel=\"help\""));
    acme.account(json!({"imported_id": "new"})).await;
    let stored = strict().send().await;
    assert_eq!((&stored.expect(200)["accepted"], is_replay(&stored)), (&json!(1), false));
    assert!(is_replay(&strict().send().await));
}

async fn other_methods_ignore_the_key(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "crm-1"})).await;
    for name in ["One", "Two"] {
        let call = acme.patch(&path_of(&account)).json(&json!({ "name": name }));
        assert_eq!(keyed(call, "a key that is none").send().await.expect(200)["name"], json!(name));
    }
}

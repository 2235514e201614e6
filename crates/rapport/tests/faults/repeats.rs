//! Requests with an `Idempotency-Key` while processes are killed: several clients send each of them at the same moment, to
//! different nodes, until each client has a response. Every action happens once, and all clients get the same response.

use std::sync::{Arc, Barrier};
use std::thread::{self, JoinHandle};

use rapport_testkit::{Chance, raw};
use serde_json::{Value, json};

use crate::check::Findings;
use crate::client::{Client, Nodes, PATIENCE, Request};
use crate::kills::life;
use crate::program::{Place, Service};
use crate::report::Run;
use crate::scene::{Credentials, Scene};
use crate::size::REPEATS;

/// How many clients send each request.
const CLIENTS: usize = 8;
/// Requests per database.
const PART: usize = 4_000;
const SHOWN_PROBLEMS: usize = 5;

/// What the requests do, in turn, and what the database counts when one is done: without the key, a repeat would do it
/// again, or be refused because it was done.
const ACTIONS: [(Action, &str); 15] = [
    (Action::CreateAccount, "account WHERE name LIKE 'created-%'"),
    (Action::Upsert, "status_history WHERE source = 'upsert' AND to_status = 'lost'"),
    (Action::UpsertBatch, "account WHERE imported_id LIKE 'batch-%'"),
    (Action::Move, "status_history WHERE note LIKE 'key-%'"),
    (Action::LogContact, "contact"),
    (Action::StartConversation, "conversation WHERE subject LIKE 'key-%'"),
    (Action::LogMessage, "message"),
    (Action::Ingest, "activity"),
    (Action::CreateChannel, "channel"),
    (Action::CreateCampaign, "campaign"),
    (Action::CreateWebhook, "webhook WHERE description LIKE 'key-%'"),
    (Action::CreateToken, "credential WHERE name LIKE 'key-%'"),
    (Action::RotateSecret, "audit WHERE action = 'webhook.secret_rotated'"),
    (Action::TestWebhook, "audit WHERE action = 'webhook.tested' AND request_id LIKE 'key-%'"),
    (Action::Redeliver, "audit WHERE action = 'delivery.redelivered'"),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    CreateAccount,
    Upsert,
    UpsertBatch,
    Move,
    LogContact,
    StartConversation,
    LogMessage,
    Ingest,
    CreateChannel,
    CreateCampaign,
    CreateWebhook,
    CreateToken,
    RotateSecret,
    TestWebhook,
    Redeliver,
}

#[test]
fn every_action_happens_once_on_sqlite() {
    repeats("repeats with kills on SQLite", Place::sqlite, 1);
}

#[test]
fn every_action_happens_once_on_two_nodes() {
    repeats("repeats with kills of two nodes", Place::postgres, 2);
}

fn repeats(name: &'static str, place: fn() -> Place, nodes: usize) {
    let chance = Chance::new(5);
    for requests in REPEATS.in_parts(PART) {
        let mut run = Run::start(name);
        repeat_and_kill(&mut run, requests.div_ceil(CLIENTS), nodes, &chance, &Scene::new(place()));
        run.end();
    }
}

fn repeat_and_kill(run: &mut Run, keys: usize, nodes: usize, chance: &Chance, scene: &Scene) {
    let beside: Vec<Place> = (1..nodes).map(|_| scene.place.beside()).collect();
    let places: Vec<&Place> = std::iter::once(&scene.place).chain(&beside).collect();
    let mut services: Vec<Service> = places.iter().map(|place| scene.serve_at(place)).collect();
    let subjects = Arc::new(Subjects::create(scene, &services[0]));
    let addresses = Nodes::at(services.iter().map(|service| service.address.as_str()));
    let together = Arc::new(Barrier::new(CLIENTS));
    let clients: Vec<JoinHandle<Vec<String>>> = (0..CLIENTS)
        .map(|number| {
            let mut client = Repeater {
                client: Client::new(addresses.one(number)),
                credentials: scene.credentials.clone(),
                subjects: Arc::clone(&subjects),
            };
            let together = Arc::clone(&together);
            let send = move |key| {
                together.wait();
                client.send(key)
            };
            thread::spawn(move || (0..keys).map(send).collect())
        })
        .collect();
    while !clients.iter().all(JoinHandle::is_finished) {
        thread::sleep(life(chance));
        let victim = chance.below(nodes);
        services[victim].signal("KILL");
        services[victim].wait();
        run.faults += 1;
        services[victim] = scene.serve_again_at(places[victim]);
        addresses.redirect(victim, &services[victim].address);
    }
    let responses: Vec<Vec<String>> = clients.into_iter().map(|client| client.join().unwrap()).collect();
    drop(services);
    assert!(run.faults > 0, "something was killed");
    run.acknowledged = keys * CLIENTS;
    run.findings = verify(&scene.place, keys, &responses);
}

/// What the requests are about.
struct Subjects {
    receiver: String,
    account: String,
    conversation: String,
    webhook: String,
    delivery: String,
}

impl Subjects {
    fn create(scene: &Scene, service: &Service) -> Self {
        let id = |of: Value| of["id"].as_str().unwrap().to_owned();
        let account = id(scene.post(service, "/api/accounts/", &json!({"name": "Subject"})));
        let conversations = format!("/api/accounts/{account}/conversations/");
        // An event that nothing here causes: deliveries are not what is counted.
        let webhook = scene.create_webhook_for(service, &["client.contact_due"]);
        let test = format!("/api/webhooks/{webhook}/test/");
        Self {
            receiver: scene.receiver.url("/other"),
            conversation: id(scene.post(service, &conversations, &json!({"subject": "Subject"}))),
            delivery: id(scene.post(service, &test, &json!({}))),
            account,
            webhook,
        }
    }
}

struct Repeater {
    client: Client,
    credentials: Credentials,
    subjects: Arc<Subjects>,
}

impl Repeater {
    /// Sends the request of a key; returns the response, or what kept it from getting one.
    fn send(&mut self, key: usize) -> String {
        let (action, _) = ACTIONS[key % ACTIONS.len()];
        let (path, body) = self.subjects.request(action, key);
        let credential = match action {
            Action::Ingest => self.credentials.ingest(),
            _ => self.credentials.bearer(),
        };
        let headers = format!("{credential}\r\nIdempotency-Key: key-{key}\r\nX-Request-Id: key-{key}");
        let request = Request { method: "POST", path: &path, headers: &headers, body: Some(&body) };
        // Busy, or another client's request with this key is in progress.
        let answer = self.client.send_until(&request, |status, _| !matches!(status, 409 | 429 | 503));
        match answer {
            Ok((200..300, answer)) => answer,
            Ok((status, answer)) => format!("{REFUSED}{status} {answer}"),
            Err(_) => format!("{REFUSED}no response for {PATIENCE:?}"),
        }
    }
}

/// How a response begins that says that nothing was done.
const REFUSED: &str = "refused: ";

impl Subjects {
    /// The path and the body of the request of a key.
    fn request(&self, action: Action, key: usize) -> (String, Value) {
        let Self { receiver, account, conversation, webhook, delivery } = self;
        let name = format!("key-{key}");
        let of_account = |path: &str| format!("/api/accounts/{account}/{path}/");
        let of_webhook = |path: &str| format!("/api/webhooks/{webhook}/{path}/");
        let api = |path: &str| format!("/api/{path}/");
        let round = key / ACTIONS.len();
        match action {
            Action::CreateAccount => (api("accounts"), json!({"name": format!("created-{key}")})),
            Action::Upsert => {
                let body = json!({"project": "acme", "imported_id": name, "status": "lost"});
                (api("accounts/upsert-by-imported-id"), body)
            }
            Action::UpsertBatch => {
                let account = json!({"imported_id": format!("batch-{key}")});
                (api("accounts/upsert-batch"), json!({"project": "acme", "accounts": [account]}))
            }
            Action::Move => {
                let status = if round.is_multiple_of(2) { "contacted" } else { "prospect" };
                (of_account("status"), json!({"status": status, "note": name}))
            }
            Action::LogContact => (of_account("contacts"), json!({"kind": "call"})),
            Action::StartConversation => (of_account("conversations"), json!({"subject": name})),
            Action::LogMessage => {
                let path = api(&format!("conversations/{conversation}/messages"));
                (path, json!({"direction": "outbound", "body": name}))
            }
            Action::Ingest => {
                let event = json!({"account_id": account, "kind": "app_opened"});
                (api("pulse/ingest"), json!({"events": [event]}))
            }
            Action::CreateChannel => (api("channels"), json!({"name": name})),
            Action::CreateCampaign => (api("campaigns"), json!({"name": name, "goal": "acquisition"})),
            Action::CreateWebhook => {
                let body = json!({"url": receiver, "events": ["client.contact_due"], "description": name});
                (api("webhooks"), body)
            }
            Action::CreateToken => (api("tokens"), json!({"name": name})),
            Action::RotateSecret => (of_webhook("rotate"), json!({})),
            Action::TestWebhook => (of_webhook("test"), json!({})),
            Action::Redeliver => (api(&format!("deliveries/{delivery}/redeliver")), json!({})),
        }
    }
}

/// Each action happened once, and each client was told the same about it.
fn verify(place: &Place, keys: usize, responses: &[Vec<String>]) -> Findings {
    let mut findings = Findings::default();
    let database = place.database();
    let mut count = |what: &str, expected: usize| {
        let found = raw::ask(&database, &format!("SELECT count(*) FROM {what}"));
        findings.expect(found == expected.to_string(), || format!("{what}: {found} instead of {expected}"));
    };
    for (turn, (_, what)) in ACTIONS.iter().enumerate() {
        count(what, (turn..keys).step_by(ACTIONS.len()).count());
    }
    count("kept_response", keys);
    for key in 0..keys {
        let first = &responses[0][key];
        if first.starts_with(REFUSED) {
            findings.lose(1, format!("key-{key}: {first}"));
        }
        let others = responses.iter().map(|client| &client[key]).filter(|other| *other != first);
        findings.problems.extend(others.map(|other| format!("key-{key}: {first} and {other}")));
    }
    findings.problems.truncate(SHOWN_PROBLEMS);
    findings
}

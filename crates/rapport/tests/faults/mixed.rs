//! A mixed load: clients that do to accounts what programs and people do, each on accounts of its own and all on some that
//! they share. It causes events of every kind.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use rapport_testkit::Chance;
use serde_json::{Value, json};

use crate::client::{Client, GaveUp, Nodes, PATIENCE, PAUSE, Request};
use crate::load::{WRITERS, note};
use crate::scene::Credentials;

/// How many accounts all clients work on.
const SHARED: usize = 8;
/// How many records each client upserts, again and again.
const OWN: usize = 10;
/// A client deletes the oldest of the accounts that it created when it has more than this.
const KEPT: usize = 3;
/// One in so many rounds deletes a shared account, which the next upsert creates again.
const DELETES_SHARED: usize = 6;
/// One in so many rounds tests the webhook.
const TESTS_WEBHOOK: usize = 5;
const STATUSES: [&str; 5] = ["prospect", "contacted", "in_negotiation", "in_trial", "lost"];
const LIFECYCLE: [&str; 3] = ["trial_started", "became_customer", "churned"];
/// Clients whom nobody has contacted since are overdue.
const LONG_AGO: &str = "2020-01-01T00:00:00Z";

/// What became of a client's requests.
#[derive(Debug, Default)]
pub struct Done {
    pub acknowledged: usize,
    /// Answers that a client should never get.
    pub surprises: Vec<String>,
}

pub struct Mixed {
    stop: Arc<AtomicBool>,
    hold: Arc<AtomicBool>,
    clients: Vec<JoinHandle<Done>>,
}

impl Mixed {
    /// Starts the clients, spread over the nodes.
    pub fn start(credentials: &Credentials, nodes: &Nodes, webhook: &str) -> Self {
        let (stop, hold) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let clients = (0..WRITERS).map(|number| {
            let client = Mixer {
                number,
                chance: Chance::new(number.try_into().unwrap()),
                client: Client::new(nodes.one(number)),
                stop: Arc::clone(&stop),
                hold: Arc::clone(&hold),
                credentials: credentials.clone(),
                webhook: webhook.to_owned(),
                created: VecDeque::new(),
                done: Done::default(),
            };
            thread::spawn(move || client.run())
        });
        Self { clients: clients.collect(), stop, hold }
    }

    /// Lets the clients rest while the consumers are too far behind: they need not be as fast as the service.
    pub fn hold(&self, hold: bool) {
        self.hold.store(hold, Ordering::Relaxed);
    }

    /// Stops when every request in progress is acknowledged.
    pub fn finish(self) -> Vec<Done> {
        self.stop.store(true, Ordering::Relaxed);
        self.clients.into_iter().map(|client| client.join().unwrap()).collect()
    }
}

struct Mixer {
    number: usize,
    chance: Chance,
    client: Client,
    stop: Arc<AtomicBool>,
    hold: Arc<AtomicBool>,
    credentials: Credentials,
    webhook: String,
    /// The accounts that it created by hand, oldest first.
    created: VecDeque<String>,
    done: Done,
}

impl Mixer {
    fn run(mut self) -> Done {
        let mut round = 0;
        while !self.stop.load(Ordering::Relaxed) {
            if self.hold.load(Ordering::Relaxed) {
                thread::sleep(PAUSE);
                continue;
            }
            if self.round(round).is_err() {
                self.done.surprises.push(format!("client {}: no answer for {PATIENCE:?}", self.number));
                break;
            }
            round += 1;
        }
        self.done
    }

    /// What programs send, then what people do.
    fn round(&mut self, round: usize) -> Result<(), GaveUp> {
        let imported_id = format!("own-{}-{}", self.number, round % OWN);
        let upsert = json!({
            "project": "acme", "imported_id": imported_id, "status": self.status(), "custom_fields": {"n": round},
        });
        self.post("/api/accounts/upsert-by-imported-id/", &upsert)?;
        let shared = self.upsert_shared(round)?;
        self.ingest()?;
        if let Some(id) = shared {
            self.post(
                &format!("/api/accounts/{id}/status/"),
                &json!({"status": self.status(), "note": "A call"}),
            )?;
            if self.chance.below(DELETES_SHARED) == 0 {
                self.send("DELETE", &format!("/api/accounts/{id}/"), None)?;
            }
        }
        self.work_by_hand(round)?;
        if round.is_multiple_of(TESTS_WEBHOOK) {
            self.post(&format!("/api/webhooks/{}/test/", self.webhook), &json!({}))?;
        }
        Ok(())
    }

    /// Upserts the shared accounts, in another order than the other clients; returns the id of one of them.
    fn upsert_shared(&mut self, round: usize) -> Result<Option<String>, GaveUp> {
        let first = self.chance.below(SHARED);
        let accounts: Vec<Value> = (0..SHARED)
            .map(|place| {
                let fields = json!({"by": self.number, "n": round});
                json!({"imported_id": shared(first + place), "status": self.status(), "custom_fields": fields})
            })
            .collect();
        let body = json!({"project": "acme", "accounts": accounts});
        let answer = self.post("/api/accounts/upsert-batch/", &body)?;
        Ok(answer["results"][0]["reply"]["account"]["id"].as_str().map(str::to_owned))
    }

    fn ingest(&mut self) -> Result<(), GaveUp> {
        let events: Vec<Value> = (0..SHARED)
            .map(|_| {
                let kind = LIFECYCLE[self.chance.below(LIFECYCLE.len())];
                json!({"imported_id": shared(self.chance.below(SHARED)), "kind": kind})
            })
            .collect();
        let headers = self.credentials.ingest();
        self.settle("POST", "/api/pulse/ingest/", &headers, Some(&json!({ "events": events }))).map(drop)
    }

    fn work_by_hand(&mut self, round: usize) -> Result<(), GaveUp> {
        let created = self.post("/api/accounts/", &json!({"name": format!("By hand {round}")}))?;
        let Some(id) = created["id"].as_str().map(str::to_owned) else { return Ok(()) };
        let path = format!("/api/accounts/{id}/");
        self.created.push_back(id);
        self.post(&format!("{path}status/"), &json!({"status": "customer"}))?;
        self.post(&format!("{path}contacts/"), &json!({"kind": "call", "occurred_at": LONG_AGO}))?;
        let patch = json!({"name": format!("Renamed {round}"), "custom_fields": {"n": round}});
        self.send("PATCH", &path, Some(&patch))?;
        let conversation = self.post(&format!("{path}conversations/"), &json!({"subject": "Offer"}))?;
        if let Some(id) = conversation["id"].as_str() {
            let message = json!({"direction": "inbound", "body": "Please send an offer."});
            self.post(&format!("/api/conversations/{id}/messages/"), &message)?;
        }
        if self.created.len() > KEPT
            && let Some(oldest) = self.created.pop_front()
        {
            self.send("DELETE", &format!("/api/accounts/{oldest}/"), None)?;
        }
        Ok(())
    }

    fn status(&self) -> &'static str {
        STATUSES[self.chance.below(STATUSES.len())]
    }

    fn post(&mut self, path: &str, body: &Value) -> Result<Value, GaveUp> {
        self.send("POST", path, Some(body))
    }

    fn send(&mut self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, GaveUp> {
        let headers = self.credentials.bearer();
        self.settle(method, path, &headers, body)
    }

    /// Sends a request until it is done, or there is nothing left to do it to.
    fn settle(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: Option<&Value>,
    ) -> Result<Value, GaveUp> {
        let request = Request { method, path, headers, body };
        let (status, answer) = self.client.send_until(&request, |status, _| !matches!(status, 429 | 503))?;
        match status {
            200..300 => self.done.acknowledged += 1,
            // Deleted by another client, or by an earlier try whose answer never arrived.
            404 => {}
            _ => note(&mut self.done.surprises, format!("{method} {path}: {status} {answer}")),
        }
        Ok(serde_json::from_str(&answer).unwrap_or_default())
    }
}

fn shared(number: usize) -> String {
    format!("shared-{}", number % SHARED)
}

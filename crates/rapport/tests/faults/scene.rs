//! The start of every run: a company, a receiver, and a webhook that selects what the load causes.

use std::process::Command;

use rapport_testkit::Receiver;
use serde_json::{Value, json};

use crate::client::{Line, Request};
use crate::program::{Place, Service};

const STARTS: usize = 5;

pub struct Scene {
    pub place: Place,
    pub receiver: Receiver,
    pub credentials: Credentials,
}

#[derive(Clone)]
pub struct Credentials {
    pub token: String,
    pub key: String,
}

impl Scene {
    pub fn new(place: Place) -> Self {
        let company =
            place.json(&["company", "create", "acme", "--name", "Acme", "--owner", "a@acme.test", "--json"]);
        let secret = |name: &str| company[name].as_str().unwrap().to_owned();
        let credentials = Credentials { token: secret("api_token"), key: secret("ingest_key") };
        Self { place, receiver: Receiver::start(), credentials }
    }

    pub fn serve(&self) -> Service {
        self.serve_at(&self.place)
    }

    /// A node with its own place.
    pub fn serve_at(&self, place: &Place) -> Service {
        place.start(&mut self.command(place))
    }

    /// Starts a node again as a supervisor would: the database of a busy machine may not answer it in time at first.
    pub fn serve_again_at(&self, place: &Place) -> Service {
        let tried = (1..STARTS).find_map(|_| place.try_start(&mut self.command(place)).ok());
        tried.unwrap_or_else(|| self.serve_at(place))
    }

    pub fn command(&self, place: &Place) -> Command {
        let mut command = place.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.arg("--extra-ca").arg(self.receiver.ca_file());
        command.args(["--allow-destination", "127.0.0.0/8"]);
        command
    }

    pub fn create_webhook(&self, service: &Service) {
        self.create_webhook_for(service, &["account.created", "account.status_changed"]);
    }

    /// Creates a webhook that selects these events; returns its id.
    pub fn create_webhook_for(&self, service: &Service, events: &[&str]) -> String {
        let body = json!({"url": self.receiver.url("/hook"), "events": events});
        let created = self.post(service, "/api/webhooks/", &body);
        created["id"].as_str().unwrap().to_owned()
    }

    /// Sends a request that must succeed.
    pub fn post(&self, service: &Service, path: &str, body: &Value) -> Value {
        let headers = self.credentials.bearer();
        let request = Request { method: "POST", path, headers: &headers, body: Some(body) };
        let (status, answer) = Line::open(&service.address).unwrap().send(&request).unwrap();
        assert!((200..300).contains(&status), "{path}: {status} {answer}");
        serde_json::from_str(&answer).unwrap()
    }
}

impl Credentials {
    /// The header of a request by the token.
    pub fn bearer(&self) -> String {
        format!("Authorization: Bearer {}", self.token)
    }

    /// The header of a request by the ingest key.
    pub fn ingest(&self) -> String {
        format!("X-Service-Ingest-Key: {}", self.key)
    }
}

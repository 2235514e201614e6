//! The start of every run: a company, a receiver, and a webhook that selects what the load causes.

use std::process::Command;

use rapport_testkit::Receiver;
use serde_json::json;

use crate::load::Line;
use crate::program::{Place, Service};

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

    pub fn command(&self, place: &Place) -> Command {
        let mut command = place.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.arg("--extra-ca").arg(self.receiver.ca_file());
        command.args(["--allow-destination", "127.0.0.0/8"]);
        command
    }

    pub fn create_webhook(&self, service: &Service) {
        let url = self.receiver.url("/hook");
        let body = json!({"url": url, "events": ["account.created", "account.status_changed"]});
        let bearer = format!("Authorization: Bearer {}", self.credentials.token);
        let mut line = Line::open(&service.address).unwrap();
        let (status, answer) = line.post("/api/webhooks/", &bearer, &body).unwrap();
        assert_eq!(status, 201, "{answer}");
    }
}

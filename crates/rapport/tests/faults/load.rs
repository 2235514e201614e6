//! The load of a run: clients that each have their own account, send one request after another, and repeat each one
//! until it is acknowledged.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

use crate::client::{Client, GaveUp, Nodes, PATIENCE, Request};
use crate::scene::Credentials;

pub const WRITERS: usize = 4;
pub const EVENTS_PER_BATCH: i64 = 10;
const SHOWN_SURPRISES: usize = 5;

/// What was acknowledged to a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    pub imported_id: String,
    pub upserts: usize,
    pub events: i64,
    /// Answers that a client should never get, whatever happens to the database.
    pub surprises: Vec<String>,
}

impl Written {
    pub fn acknowledged(&self) -> usize {
        self.upserts + usize::try_from(self.events / EVENTS_PER_BATCH).unwrap()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    BeforeRequest,
    Acknowledged,
}

/// Called with what was acknowledged to a client, before and after each request.
pub type Listener = Arc<dyn Fn(Moment, &Written) + Send + Sync>;

pub struct Load {
    stop: Arc<AtomicBool>,
    nodes: Nodes,
    writers: Vec<JoinHandle<Written>>,
}

impl Load {
    /// Starts the clients, spread over the nodes.
    pub fn start(credentials: &Credentials, nodes: &[&str]) -> Self {
        Self::start_heard(credentials, nodes, WRITERS, Arc::new(|_, _| ()))
    }

    pub fn start_heard(
        credentials: &Credentials,
        nodes: &[&str],
        clients: usize,
        listener: Listener,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let nodes = Nodes::at(nodes.iter().copied());
        let writers = (0..clients).map(|n| {
            let writer = Writer {
                n,
                client: Client::new(nodes.one(n)),
                stop: Arc::clone(&stop),
                credentials: credentials.clone(),
                listener: Arc::clone(&listener),
                surprises: Vec::new(),
            };
            thread::spawn(move || writer.run())
        });
        Self { writers: writers.collect(), stop, nodes }
    }

    /// Sends the node's clients to its new address.
    pub fn redirect(&self, node: usize, address: &str) {
        self.nodes.redirect(node, address);
    }

    /// Stops when every request in progress is acknowledged.
    pub fn finish(self) -> Vec<Written> {
        self.stop.store(true, Ordering::Relaxed);
        self.writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    }
}

struct Writer {
    n: usize,
    client: Client,
    stop: Arc<AtomicBool>,
    credentials: Credentials,
    listener: Listener,
    surprises: Vec<String>,
}

impl Writer {
    fn run(mut self) -> Written {
        let imported_id = format!("crm-{}", self.n);
        let mut written = Written { imported_id, ..Written::default() };
        if self.write(&mut written).is_err() {
            self.surprises.push(format!("{}: no acknowledgement for {PATIENCE:?}", written.imported_id));
        }
        Written { surprises: self.surprises, ..written }
    }

    fn write(&mut self, written: &mut Written) -> Result<(), GaveUp> {
        let bearer = self.credentials.bearer();
        let key = self.credentials.ingest();
        while !self.stop.load(Ordering::Relaxed) {
            let status = if written.upserts.is_multiple_of(2) { "prospect" } else { "contacted" };
            let upsert = json!({
                "project": "acme", "imported_id": written.imported_id, "status": status,
                "custom_fields": {"n": written.upserts},
            });
            (self.listener)(Moment::BeforeRequest, written);
            self.until_acknowledged("/api/accounts/upsert-by-imported-id/", &bearer, &upsert)?;
            written.upserts += 1;
            (self.listener)(Moment::Acknowledged, written);
            let events: Vec<Value> = (0..EVENTS_PER_BATCH)
                .map(|place| {
                    let id = format!("{}-{}-{place}", self.n, written.upserts);
                    json!({
                        "imported_id": written.imported_id, "kind": "feature_used", "feature": "f", "event_id": id,
                    })
                })
                .collect();
            (self.listener)(Moment::BeforeRequest, written);
            self.until_acknowledged("/api/pulse/ingest/", &key, &json!({ "events": events }))?;
            written.events += EVENTS_PER_BATCH;
            (self.listener)(Moment::Acknowledged, written);
        }
        Ok(())
    }

    fn until_acknowledged(&mut self, path: &str, headers: &str, body: &Value) -> Result<(), GaveUp> {
        let surprises = &mut self.surprises;
        let request = Request { method: "POST", path, headers, body: Some(body) };
        let answered = self.client.send_until(&request, |status, answer| {
            if !matches!(status, 200 | 201 | 503) {
                note(surprises, format!("{path}: {status} {answer}"));
            }
            matches!(status, 200 | 201)
        });
        answered.map(drop)
    }
}

/// Notes an answer that nobody should get, unless enough are known.
pub fn note(surprises: &mut Vec<String>, answer: String) {
    if surprises.len() < SHOWN_SURPRISES && !surprises.contains(&answer) {
        surprises.push(answer);
    }
}

//! Requests with an `Idempotency-Key` while processes are killed: several clients send each of them at the same time, to
//! different nodes, until each client has a response. Every action happens once, and all clients get the same response.

use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rapport_testkit::{Chance, raw};
use serde_json::json;

use crate::check::Findings;
use crate::kills::life;
use crate::load::Line;
use crate::program::{Place, Service};
use crate::report::Run;
use crate::scene::Scene;
use crate::size::REPEATS;

/// How many clients send each request.
const CLIENTS: usize = 8;
/// Requests per database.
const PART: usize = 4_000;
/// A client whose request has no response within this time gives up, and the run has failed.
const PATIENCE: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(2);
const SHOWN_PROBLEMS: usize = 5;

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
    let addresses: Vec<_> =
        services.iter().map(|service| Arc::new(Mutex::new(service.address.clone()))).collect();
    let clients: Vec<JoinHandle<Vec<String>>> = (0..CLIENTS)
        .map(|number| {
            let address = Arc::clone(&addresses[number % nodes]);
            let client = Client { address, token: scene.credentials.token.clone() };
            thread::spawn(move || (0..keys).map(|key| client.create(key)).collect())
        })
        .collect();
    while !clients.iter().all(JoinHandle::is_finished) {
        thread::sleep(life(chance));
        let victim = chance.below(nodes);
        services[victim].signal("KILL");
        services[victim].wait();
        run.faults += 1;
        services[victim] = scene.serve_at(places[victim]);
        services[victim].address.clone_into(&mut addresses[victim].lock().unwrap());
    }
    let responses: Vec<Vec<String>> = clients.into_iter().map(|client| client.join().unwrap()).collect();
    drop(services);
    assert!(run.faults > 0, "something was killed");
    run.acknowledged = keys * CLIENTS;
    run.findings = verify(&scene.place, keys, &responses);
}

struct Client {
    address: Arc<Mutex<String>>,
    token: String,
}

impl Client {
    /// Creates the account of a key; returns the response, or what kept it from getting one.
    fn create(&self, key: usize) -> String {
        let headers = format!("Authorization: Bearer {}\r\nIdempotency-Key: key-{key}", self.token);
        let body = json!({ "name": name(key), "status": "contacted" });
        let deadline = Instant::now() + PATIENCE;
        let mut line = None;
        while Instant::now() < deadline {
            if line.is_none() {
                line = Line::open(&self.address.lock().unwrap().clone()).ok();
            }
            match line.as_mut().map(|line| line.post("/api/accounts/", &headers, &body)) {
                Some(Ok((201, answer))) => return answer,
                // Busy, or another client's request with this key is in progress.
                Some(Ok((503 | 409 | 429, _))) => {}
                Some(Ok((status, answer))) => return format!("{status} {answer}"),
                Some(Err(_)) | None => line = None,
            }
            thread::sleep(PAUSE);
        }
        format!("no response for {PATIENCE:?}")
    }
}

fn name(key: usize) -> String {
    format!("account-{key}")
}

/// Each account exists once, with one event, and each client was told so.
fn verify(place: &Place, keys: usize, responses: &[Vec<String>]) -> Findings {
    let mut findings = Findings::default();
    let database = place.database();
    for what in [
        "count(*) FROM account",
        "count(DISTINCT name) FROM account",
        "count(*) FROM status_history",
        "count(*) FROM event WHERE kind = 'account.created'",
        "count(*) FROM kept_response",
    ] {
        let found = raw::ask(&database, &format!("SELECT {what}"));
        findings.expect(found == keys.to_string(), || format!("{what}: {found} instead of {keys}"));
    }
    for key in 0..keys {
        let first = &responses[0][key];
        if !first.contains(&format!("\"name\":\"{}\"", name(key))) {
            findings.lose(1, format!("key-{key}: {first}"));
        }
        let others = responses.iter().map(|client| &client[key]).filter(|other| *other != first);
        findings.problems.extend(others.map(|other| format!("key-{key}: {first} and {other}")));
    }
    findings.problems.truncate(SHOWN_PROBLEMS);
    findings
}

//! `kill -9` under load: what was acknowledged is there, exactly once where it carried an `event_id`,
//! nothing is half-applied, and every committed event reaches its receiver.
//!
//! `RAPPORT_CRASH_ROUNDS` sets how often the service is killed on each engine; the default is small.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rapport_domain::delivery_list::{Filter, Shown};
use rapport_domain::event::Kind;
use rapport_domain::id::CompanyId;
use rapport_store::delivery_list::{self, Bounds};
use rapport_store::{Config, Store};
use rapport_testkit::{Behaviour, Receiver};
use serde_json::{Value, json};

use crate::program::{Place, wait_until};

const WRITERS: usize = 4;
/// How long the service lives in a round.
const LIFE: Duration = Duration::from_millis(700);
/// After a restart everything committed must be on its way within this.
const ARRIVES_WITHIN: Duration = Duration::from_secs(15);

const EVERYTHING: Bounds = Bounds { items: usize::MAX, rows: usize::MAX };

fn rounds() -> usize {
    std::env::var("RAPPORT_CRASH_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3)
}

#[test]
fn nothing_acknowledged_is_lost_on_sqlite() {
    crash(&Place::sqlite());
}

#[test]
fn nothing_acknowledged_is_lost_on_postgres() {
    crash(&Place::postgres());
}

fn crash(place: &Place) {
    let receiver = Receiver::start();
    let company =
        place.json(&["company", "create", "acme", "--name", "Acme", "--owner", "a@acme.test", "--json"]);
    let (token, key) = (company["api_token"].as_str().unwrap(), company["ingest_key"].as_str().unwrap());
    let authority = receiver.ca_file().display().to_string();
    let options = ["--extra-ca", authority.as_str(), "--allow-destination", "127.0.0.0/8"];
    let mut service = place.serve_with(&options);
    create_webhook(&service.address, token, &receiver.url("/hook"));

    let address = Arc::new(Mutex::new(service.address.clone()));
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..WRITERS)
        .map(|n| {
            let writer = Writer {
                n,
                address: Arc::clone(&address),
                stop: Arc::clone(&stop),
                token: token.to_owned(),
                key: key.to_owned(),
            };
            thread::spawn(move || writer.run())
        })
        .collect();
    let mut unrecorded: HashMap<String, usize> = HashMap::new();
    for _ in 0..rounds() {
        thread::sleep(LIFE);
        service.signal("KILL");
        service.wait();
        for event in events_with_open_deliveries(place) {
            *unrecorded.entry(event).or_default() += 1;
        }
        service = place.serve_with(&options);
        address.lock().unwrap().clone_from(&service.address);
    }
    let restarted = Instant::now();
    stop.store(true, Ordering::Relaxed);
    let written: Vec<Written> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
    assert!(written.iter().all(|written| written.upserts > 0 && written.events > 0), "the load ran");

    let expected = committed_events(place);
    wait_until("every committed event to reach the receiver", || {
        let received: HashSet<String> = received_ids(&receiver);
        expected.keys().all(|id| received.contains(id))
    });
    assert!(restarted.elapsed() < ARRIVES_WITHIN, "it took {:?}", restarted.elapsed());
    drop(service);
    verify(place, &written, &expected);
    refuse_needless_duplicates(&receiver, &unrecorded);
    let requests = receiver.requests().len();
    println!("{} events, {requests} requests, {} kills", expected.len(), rounds());
}

#[test]
fn of_two_nodes_the_other_takes_over_what_a_killed_one_had() {
    let (place, receiver) = (Place::postgres(), Receiver::start());
    let company =
        place.json(&["company", "create", "acme", "--name", "Acme", "--owner", "a@acme.test", "--json"]);
    let (token, key) = (company["api_token"].as_str().unwrap(), company["ingest_key"].as_str().unwrap());
    let authority = receiver.ca_file().display().to_string();
    let options = ["--extra-ca", authority.as_str(), "--allow-destination", "127.0.0.0/8"];
    let mut doomed = place.serve_with(&options);
    let beside = place.beside();
    let other = beside.serve_with(&options);
    create_webhook(&doomed.address, token, &receiver.url("/hook"));

    let addresses = [&doomed, &other].map(|node| Arc::new(Mutex::new(node.address.clone())));
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..WRITERS)
        .map(|n| {
            let (address, stop) = (Arc::clone(&addresses[n % 2]), Arc::clone(&stop));
            let writer = Writer { n, address, stop, token: token.to_owned(), key: key.to_owned() };
            thread::spawn(move || writer.run())
        })
        .collect();
    thread::sleep(LIFE);
    // Some of its requests are under way when it dies.
    receiver.answer(Behaviour::Delay(LIFE, Box::new(Behaviour::Status(200))));
    thread::sleep(LIFE);
    doomed.signal("KILL");
    doomed.wait();
    let killed = Instant::now();
    receiver.answer(Behaviour::Status(200));
    addresses[0].lock().unwrap().clone_from(&other.address);
    stop.store(true, Ordering::Relaxed);
    let written: Vec<Written> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();

    let open = events_with_open_deliveries(&place).len();
    assert!(open > 0, "the killed node left nothing to take over");
    wait_until("everything to be delivered and recorded by the other node", || {
        events_with_open_deliveries(&place).is_empty()
    });
    assert!(killed.elapsed() < ARRIVES_WITHIN, "it took {:?}", killed.elapsed());
    println!("{open} open at the kill, none {:?} later", killed.elapsed());
    let (expected, received) = (committed_events(&place), received_ids(&receiver));
    assert!(expected.keys().all(|id| received.contains(id)), "an event was lost");
    drop(other);
    verify(&place, &written, &expected);
}

/// An event may reach its receiver again only after a kill at which its outcome was not recorded.
fn refuse_needless_duplicates(receiver: &Receiver, unrecorded: &HashMap<String, usize>) {
    let mut arrivals: HashMap<String, usize> = HashMap::new();
    for id in received_in_order(receiver) {
        *arrivals.entry(id).or_default() += 1;
    }
    for (event, times) in arrivals {
        let reasons = unrecorded.get(&event).copied().unwrap_or_default();
        assert!(times <= 1 + reasons, "{event} came {times} times, with {reasons} kills while it was open");
    }
}

/// The events whose delivery is not recorded as done.
fn events_with_open_deliveries(place: &Place) -> Vec<String> {
    let filter = Filter { state: Some(Shown::Pending), ..Filter::default() };
    look(place, move |snapshot| {
        let found = delivery_list::scan(snapshot, &filter, None, EVERYTHING)?.found;
        Ok(found.into_iter().map(|listed| listed.delivery.event.to_string()).collect())
    })
}

fn create_webhook(address: &str, token: &str, url: &str) {
    let body = json!({"url": url, "events": ["account.created", "account.status_changed"]});
    let mut line = Line::open(address).unwrap();
    let (status, answer) =
        line.post("/api/webhooks/", &format!("Authorization: Bearer {token}"), &body).unwrap();
    assert_eq!(status, 201, "{answer}");
}

fn received_ids(receiver: &Receiver) -> HashSet<String> {
    received_in_order(receiver).into_iter().collect()
}

fn received_in_order(receiver: &Receiver) -> Vec<String> {
    let bodies = receiver.requests().into_iter();
    bodies
        .map(|request| {
            serde_json::from_slice::<Value>(&request.body).unwrap()["id"].as_str().unwrap().to_owned()
        })
        .collect()
}

/// One client: its own account, requests one after the other, each repeated until it is acknowledged.
struct Writer {
    n: usize,
    address: Arc<Mutex<String>>,
    stop: Arc<AtomicBool>,
    token: String,
    key: String,
}

/// What a client had acknowledged.
struct Written {
    imported_id: String,
    upserts: usize,
    events: i64,
}

impl Writer {
    fn run(self) -> Written {
        let imported_id = format!("crm-{}", self.n);
        let mut written = Written { imported_id: imported_id.clone(), upserts: 0, events: 0 };
        let bearer = format!("Authorization: Bearer {}", self.token);
        let key = format!("X-Service-Ingest-Key: {}", self.key);
        let mut line = None;
        while !self.stop.load(Ordering::Relaxed) {
            let status = if written.upserts.is_multiple_of(2) { "prospect" } else { "contacted" };
            let upsert = json!({
                "project": "acme", "imported_id": imported_id, "status": status,
                "custom_fields": {"n": written.upserts},
            });
            self.until_acknowledged(&mut line, "/api/accounts/upsert-by-imported-id/", &bearer, &upsert);
            written.upserts += 1;
            let events: Vec<Value> = (0..10)
                .map(|place| {
                    let id = format!("{}-{}-{place}", self.n, written.upserts);
                    json!({"imported_id": imported_id, "kind": "feature_used", "feature": "f", "event_id": id})
                })
                .collect();
            self.until_acknowledged(&mut line, "/api/pulse/ingest/", &key, &json!({ "events": events }));
            written.events += 10;
        }
        written
    }

    fn until_acknowledged(&self, line: &mut Option<Line>, path: &str, credential: &str, body: &Value) {
        loop {
            if line.is_none() {
                *line = Line::open(&self.address.lock().unwrap().clone()).ok();
            }
            match line.as_mut().map(|line| line.post(path, credential, body)) {
                Some(Ok((200 | 201, _))) => return,
                Some(Ok((503, _))) => {}
                Some(Ok((status, answer))) => panic!("{path}: {status} {answer}"),
                Some(Err(_)) | None => {
                    *line = None;
                    thread::yield_now();
                }
            }
        }
    }
}

/// A kept connection.
struct Line(BufReader<TcpStream>);

impl Line {
    fn open(address: &str) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    fn post(&mut self, path: &str, credential: &str, body: &Value) -> std::io::Result<(u16, String)> {
        let body = body.to_string();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: rapport\r\n{credential}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.0.get_mut().write_all(request.as_bytes())?;
        let (mut status, mut length) = (0, 0);
        loop {
            let mut head = String::new();
            if self.0.read_line(&mut head)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            let head = head.trim_end().to_ascii_lowercase();
            if head.is_empty() {
                break;
            }
            if let Some(rest) = head.strip_prefix("http/1.1 ") {
                status = rest[..3].parse().unwrap_or(0);
            } else if let Some(rest) = head.strip_prefix("content-length:") {
                length = rest.trim().parse().unwrap_or(0);
            }
        }
        let mut answer = vec![0; length];
        self.0.read_exact(&mut answer)?;
        Ok((status, String::from_utf8_lossy(&answer).into_owned()))
    }
}

fn look<T: Send + 'static>(
    place: &Place,
    read: impl FnOnce(&mut rapport_store::Snapshot) -> Result<T, rapport_store::Error> + Send + 'static,
) -> T {
    let store = Store::open(&Config::new(place.database())).unwrap();
    store.read(CompanyId(1), read).blocking_recv().unwrap().unwrap()
}

/// The ids and kinds of all committed events.
fn committed_events(place: &Place) -> HashMap<String, Kind> {
    look(place, |snapshot| {
        let accounts: Vec<String> = (0..WRITERS).map(|n| format!("crm-{n}")).collect();
        let keys: Vec<&str> = accounts.iter().map(String::as_str).collect();
        let mut events = HashMap::new();
        for (_, account) in rapport_store::account::ids_by_imported_id(snapshot, &keys)? {
            for event in rapport_store::event::of_account(snapshot, account)? {
                events.insert(event.id.to_string(), event.kind);
            }
        }
        Ok(events)
    })
}

fn verify(place: &Place, written: &[Written], events: &HashMap<String, Kind>) {
    let mut entries = 0;
    for Written { imported_id, upserts, events, .. } in written {
        let key = imported_id.clone();
        let (account, history, features) = look(place, move |snapshot| {
            let (_, id) = rapport_store::account::ids_by_imported_id(snapshot, &[&key])?.pop().unwrap();
            let account = rapport_store::account::get(snapshot, id)?.unwrap();
            let history = rapport_store::history::of_account(snapshot, id, None, i64::from(i32::MAX))?;
            Ok((account, history.items, rapport_store::activity::features(snapshot, id)?))
        });
        // The last acknowledged upsert is the state; each one moved the account, so none was applied twice.
        assert_eq!(account.custom_fields.as_json(), format!(r#"{{"n":{}}}"#, upserts - 1), "{imported_id}");
        assert_eq!(history.len(), *upserts, "{imported_id}: a history entry for the creation and each move");
        assert_eq!(features[0].count, *events, "{imported_id}: every event counted exactly once");
        entries += history.len();
    }
    assert_eq!(events.len(), entries, "a history row for each event row, and the other way round");
    assert_eq!(events.values().filter(|kind| **kind == Kind::AccountCreated).count(), WRITERS);
}

//! The load of a run: clients that each have their own account, send one request after another, and repeat each one
//! until it is acknowledged.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::scene::Credentials;

pub const WRITERS: usize = 4;
pub const EVENTS_PER_BATCH: i64 = 10;
/// A client whose request is not acknowledged within this time gives up, and the run has failed.
const PATIENCE: Duration = Duration::from_mins(1);
const READ_LIMIT: Duration = Duration::from_secs(10);
/// The pause between two tries of a request, so that refused clients leave the processor to what is recovering.
const PAUSE: Duration = Duration::from_millis(2);
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
    addresses: Vec<Arc<Mutex<String>>>,
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
        let addresses: Vec<_> = nodes.iter().map(|node| Arc::new(Mutex::new((*node).to_owned()))).collect();
        let writers = (0..clients).map(|n| {
            let writer = Writer {
                n,
                address: Arc::clone(&addresses[n % nodes.len()]),
                stop: Arc::clone(&stop),
                credentials: credentials.clone(),
                listener: Arc::clone(&listener),
                surprises: Vec::new(),
            };
            thread::spawn(move || writer.run())
        });
        Self { writers: writers.collect(), stop, addresses }
    }

    /// Sends the node's clients to its new address.
    pub fn redirect(&self, node: usize, address: &str) {
        address.clone_into(&mut self.addresses[node].lock().unwrap());
    }

    /// Stops when every request in progress is acknowledged.
    pub fn finish(self) -> Vec<Written> {
        self.stop.store(true, Ordering::Relaxed);
        self.writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    }
}

struct Writer {
    n: usize,
    address: Arc<Mutex<String>>,
    stop: Arc<AtomicBool>,
    credentials: Credentials,
    listener: Listener,
    surprises: Vec<String>,
}

/// The request was not acknowledged in time.
struct GaveUp;

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
        let bearer = format!("Authorization: Bearer {}", self.credentials.token);
        let key = format!("X-Service-Ingest-Key: {}", self.credentials.key);
        let mut line = None;
        while !self.stop.load(Ordering::Relaxed) {
            let status = if written.upserts.is_multiple_of(2) { "prospect" } else { "contacted" };
            let upsert = json!({
                "project": "acme", "imported_id": written.imported_id, "status": status,
                "custom_fields": {"n": written.upserts},
            });
            (self.listener)(Moment::BeforeRequest, written);
            self.until_acknowledged(&mut line, "/api/accounts/upsert-by-imported-id/", &bearer, &upsert)?;
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
            self.until_acknowledged(&mut line, "/api/pulse/ingest/", &key, &json!({ "events": events }))?;
            written.events += EVENTS_PER_BATCH;
            (self.listener)(Moment::Acknowledged, written);
        }
        Ok(())
    }

    fn note_surprise(&mut self, answer: String) {
        if self.surprises.len() < SHOWN_SURPRISES && !self.surprises.contains(&answer) {
            self.surprises.push(answer);
        }
    }

    fn until_acknowledged(
        &mut self,
        line: &mut Option<Line>,
        path: &str,
        credential: &str,
        body: &Value,
    ) -> Result<(), GaveUp> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if line.is_none() {
                *line = Line::open(&self.address.lock().unwrap().clone()).ok();
            }
            match line.as_mut().map(|line| line.post(path, credential, body)) {
                Some(Ok((200 | 201, _))) => return Ok(()),
                Some(Ok((503, _))) => {}
                Some(Ok((status, answer))) => self.note_surprise(format!("{path}: {status} {answer}")),
                Some(Err(_)) | None => *line = None,
            }
            thread::sleep(PAUSE);
        }
        Err(GaveUp)
    }
}

/// A connection that is kept open.
pub struct Line(BufReader<TcpStream>);

impl Line {
    pub fn open(address: &str) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(READ_LIMIT))?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    pub fn post(&mut self, path: &str, credential: &str, body: &Value) -> std::io::Result<(u16, String)> {
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

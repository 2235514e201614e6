//! Request bodies, written by hand into a buffer: creating load must cost almost nothing.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

use crate::chance::Chance;
use crate::drive::Requests;
use crate::http::{Answer, Endpoint};
use crate::service::Credentials;

pub const EVENTS_PER_BATCH: usize = 100;
pub const FEATURES: [&str; 8] = [
    "app.reports.export",
    "app.reports.view",
    "app.search",
    "app.invite",
    "app.billing.view",
    "api.sync",
    "api.webhook",
    "mobile.scan",
];
/// The stages that moves by upsert cycle through.
const STAGES: [&str; 5] = ["prospect", "contacted", "in_negotiation", "in_trial", "customer"];
/// From any stage of the cycle, each of these moves to the next: in trial, customer, lost.
const MOVING_KINDS: [&str; 3] = ["trial_started", "became_customer", "churned"];

fn put(buffer: &mut Vec<u8>, text: &str) {
    buffer.extend_from_slice(text.as_bytes());
}

/// `crm-` and eight digits, as `dataset::imported_id` formats it.
fn put_imported_id(buffer: &mut Vec<u8>, number: usize) {
    let mut digits = *b"crm-00000000";
    let mut rest = number;
    for digit in digits[4..].iter_mut().rev() {
        *digit = b"0123456789"[rest % 10];
        rest /= 10;
    }
    buffer.extend_from_slice(&digits);
}

fn ingest_endpoint(credentials: &Credentials) -> Endpoint {
    Endpoint::post("/api/pulse/ingest/", &format!("x-service-ingest-key: {}", credentials.ingest_key))
}

fn upsert_endpoint(credentials: &Credentials) -> Endpoint {
    let authorization = format!("authorization: Bearer {}", credentials.api_token);
    Endpoint::post("/api/accounts/upsert-by-imported-id/", &authorization)
}

/// How many events were accepted, according to an ingest answer.
fn accepted(answer: &Answer) -> u64 {
    let name = b"\"accepted\":";
    let found = answer.body.windows(name.len()).position(|window| window == name);
    let digits = found.map_or(&[][..], |at| &answer.body[at + name.len()..]);
    let digits = digits.iter().take_while(|digit| digit.is_ascii_digit());
    digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
}

/// Batches of activity, spread evenly over the accounts: the events alternate between opening the app and using
/// one of eight features.
pub struct IngestBatches {
    endpoint: Endpoint,
    chance: Chance,
    accounts: usize,
    with_event_id: bool,
    body: Vec<u8>,
}

impl IngestBatches {
    /// One for each connection.
    pub fn many(
        credentials: &Credentials,
        accounts: usize,
        with_event_id: bool,
        connections: usize,
        seed: u64,
    ) -> Vec<Self> {
        let one = |number: usize| Self {
            endpoint: ingest_endpoint(credentials),
            chance: Chance::new(seed ^ (number as u64) << 32),
            accounts,
            with_event_id,
            body: Vec::new(),
        };
        (0..connections).map(one).collect()
    }
}

impl Requests for IngestBatches {
    fn write_next(&mut self, request: &mut Vec<u8>) {
        let body = &mut self.body;
        body.clear();
        put(body, r#"{"events":["#);
        for event in 0..EVENTS_PER_BATCH {
            put(body, if event == 0 { r#"{"imported_id":""# } else { r#",{"imported_id":""# });
            put_imported_id(body, self.chance.below(self.accounts));
            let chance = self.chance.next();
            if chance & 1 == 0 {
                put(body, r#"","kind":"app_opened""#);
            } else {
                put(body, r#"","kind":"feature_used","feature":""#);
                put(body, FEATURES[(chance >> 1) as usize % FEATURES.len()]);
                put(body, "\"");
            }
            if self.with_event_id {
                let _ = write!(body, r#","event_id":"{:016x}""#, self.chance.next());
            }
            put(body, "}");
        }
        put(body, "]}");
        self.endpoint.write(request, body);
    }

    fn done(&mut self, answer: &Answer, _: Instant) -> u64 {
        accepted(answer)
    }
}

/// The stage of each account, so that every move really moves.
#[derive(Debug)]
pub struct Stages(Vec<AtomicU8>);

impl Stages {
    pub fn new(accounts: usize) -> Arc<Self> {
        Arc::new(Self((0..accounts).map(|_| AtomicU8::new(0)).collect()))
    }

    fn advance(&self, number: usize, round: usize) -> usize {
        let before = self.0[number].load(Ordering::Relaxed);
        let next = (usize::from(before) + 1) % round;
        self.0[number].store(u8::try_from(next).unwrap_or(0), Ordering::Relaxed);
        next
    }
}

/// Upserts: of four, one creates an account, one moves one, and two change a custom field.
pub struct UpsertMix {
    endpoint: Endpoint,
    project: String,
    chance: Chance,
    stages: Arc<Stages>,
    created: Arc<AtomicUsize>,
    turn: usize,
    body: Vec<u8>,
}

impl UpsertMix {
    pub fn many(credentials: &Credentials, accounts: usize, connections: usize) -> Vec<Self> {
        Self::going_on(credentials, &Stages::new(accounts), &Arc::default(), connections)
    }

    /// Goes on where an earlier run with the same stages and the same count of created accounts ended.
    pub fn going_on(
        credentials: &Credentials,
        stages: &Arc<Stages>,
        created: &Arc<AtomicUsize>,
        connections: usize,
    ) -> Vec<Self> {
        let one = |number: usize| Self {
            endpoint: upsert_endpoint(credentials),
            project: credentials.project.clone(),
            chance: Chance::new(0x00b5_e47d ^ (number as u64) << 32),
            stages: Arc::clone(stages),
            created: Arc::clone(created),
            turn: number,
            body: Vec::new(),
        };
        (0..connections).map(one).collect()
    }
}

impl Requests for UpsertMix {
    fn write_next(&mut self, request: &mut Vec<u8>) {
        let accounts = self.stages.0.len();
        let body = &mut self.body;
        body.clear();
        put(body, r#"{"project":""#);
        put(body, &self.project);
        put(body, r#"","imported_id":""#);
        self.turn += 1;
        match self.turn % 4 {
            0 => {
                let number = accounts + self.created.fetch_add(1, Ordering::Relaxed);
                put_imported_id(body, number);
                let (name, fields) = (crate::dataset::name(number), crate::dataset::fields(7));
                let _ = write!(body, r#"","name":"{name}","custom_fields":{fields}}}"#);
            }
            1 => {
                let number = self.chance.below(accounts);
                put_imported_id(body, number);
                let stage = STAGES[self.stages.advance(number, STAGES.len())];
                let _ = write!(body, r#"","status":"{stage}"}}"#);
            }
            _ => {
                put_imported_id(body, self.chance.below(accounts));
                let seats = self.chance.below(100_000);
                let _ = write!(body, r#"","custom_fields":{{"seats":{seats}}}}}"#);
            }
        }
        self.endpoint.write(request, body);
    }

    fn done(&mut self, _: &Answer, _: Instant) -> u64 {
        1
    }
}

/// Holds changes back while too many of their deliveries are in progress.
#[derive(Debug, Clone)]
pub struct Gate {
    /// Deliveries that have arrived.
    pub arrived: Arc<AtomicU64>,
    /// Deliveries that were caused, counted from where `arrived` began.
    pub caused: Arc<AtomicU64>,
    /// Deliveries that each change causes.
    pub per_change: u64,
    pub most_under_way: u64,
}

impl Gate {
    fn is_open(&self) -> bool {
        let arrived = self.arrived.load(Ordering::Relaxed);
        self.caused.load(Ordering::Relaxed) < arrived + self.most_under_way
    }

    fn cause(&self, changes: usize) {
        self.caused.fetch_add(changes as u64 * self.per_change, Ordering::Relaxed);
    }
}

/// Batches of activity in which every event moves its account. Each connection has its own accounts, so that
/// moves apply in the order they were made.
pub struct MovingBatches {
    endpoint: Endpoint,
    stages: Arc<Stages>,
    gate: Gate,
    events: usize,
    step: usize,
    next: usize,
    body: Vec<u8>,
}

impl MovingBatches {
    pub fn many(
        credentials: &Credentials,
        stages: &Arc<Stages>,
        gate: &Gate,
        events: usize,
        connections: usize,
    ) -> Vec<Self> {
        let one = |number: usize| Self {
            endpoint: ingest_endpoint(credentials),
            stages: Arc::clone(stages),
            gate: gate.clone(),
            events,
            step: connections,
            next: number,
            body: Vec::new(),
        };
        (0..connections).map(one).collect()
    }

    fn advance(&mut self) -> usize {
        let number = self.next;
        self.next += self.step;
        if self.next >= self.stages.0.len() {
            self.next = number % self.step;
        }
        number
    }
}

impl Requests for MovingBatches {
    fn may_send(&self) -> bool {
        self.gate.is_open()
    }

    fn write_next(&mut self, request: &mut Vec<u8>) {
        self.body.clear();
        put(&mut self.body, r#"{"events":["#);
        for event in 0..self.events {
            let number = self.advance();
            let body = &mut self.body;
            put(body, if event == 0 { r#"{"imported_id":""# } else { r#",{"imported_id":""# });
            put_imported_id(body, number);
            put(body, r#"","kind":""#);
            // The first event of an account starts its trial.
            let kind = self.stages.advance(number, MOVING_KINDS.len());
            put(body, MOVING_KINDS[(kind + 2) % MOVING_KINDS.len()]);
            put(body, r#""}"#);
        }
        put(&mut self.body, "]}");
        self.gate.cause(self.events);
        self.endpoint.write(request, &self.body);
    }

    fn done(&mut self, answer: &Answer, _: Instant) -> u64 {
        accepted(answer)
    }
}

/// When the change of each account was answered; arrivals are measured from then.
pub type Answered = Arc<Mutex<Vec<(usize, Instant)>>>;

/// Upserts that each move another account.
pub struct MovingUpserts {
    endpoint: Endpoint,
    project: String,
    stages: Arc<Stages>,
    gate: Option<Gate>,
    next: Arc<AtomicUsize>,
    number: usize,
    answered: Answered,
    body: Vec<u8>,
}

impl MovingUpserts {
    pub fn many(
        credentials: &Credentials,
        stages: &Arc<Stages>,
        gate: Option<&Gate>,
        connections: usize,
    ) -> (Vec<Self>, Answered) {
        let (next, answered) = (Arc::new(AtomicUsize::new(0)), Answered::default());
        let one = |_| Self {
            endpoint: upsert_endpoint(credentials),
            project: credentials.project.clone(),
            stages: Arc::clone(stages),
            gate: gate.cloned(),
            next: Arc::clone(&next),
            number: 0,
            answered: Arc::clone(&answered),
            body: Vec::new(),
        };
        ((0..connections).map(one).collect(), answered)
    }
}

impl Requests for MovingUpserts {
    fn may_send(&self) -> bool {
        self.gate.as_ref().is_none_or(Gate::is_open)
    }

    fn write_next(&mut self, request: &mut Vec<u8>) {
        self.number = self.next.fetch_add(1, Ordering::Relaxed) % self.stages.0.len();
        let stage = STAGES[self.stages.advance(self.number, STAGES.len())];
        let body = &mut self.body;
        body.clear();
        let _ = write!(body, r#"{{"project":"{}","imported_id":""#, self.project);
        put_imported_id(body, self.number);
        let _ = write!(body, r#"","status":"{stage}"}}"#);
        if let Some(gate) = &self.gate {
            gate.cause(1);
        }
        self.endpoint.write(request, body);
    }

    fn done(&mut self, _: &Answer, at: Instant) -> u64 {
        self.answered.lock().push((self.number, at));
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rapport_domain::pipeline::{Status, Trigger, apply};
    use serde_json::Value;

    fn credentials() -> Credentials {
        Credentials {
            project: "acme".into(),
            api_token: "t".into(),
            ingest_key: "k".into(),
            invitation: None,
        }
    }

    fn body_of(request: &[u8]) -> Value {
        let text = std::str::from_utf8(request).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with(&format!("content-length: {}", body.len())), "{head}");
        serde_json::from_str(body).unwrap()
    }

    #[test]
    fn a_batch_is_valid_activity_of_known_accounts() {
        let mut request = Vec::new();
        for with_event_id in [false, true] {
            let mut batches = IngestBatches::many(&credentials(), 50, with_event_id, 2, 7);
            batches[1].write_next(&mut request);
            let body = body_of(&request);
            let members = body.as_object().unwrap();
            let batch = rapport_domain::activity::parse_batch(members, crate::measure::now()).unwrap();
            assert_eq!((batch.valid.len(), batch.rejected.len()), (EVENTS_PER_BATCH, 0));
            assert!(batch.valid.iter().all(|event| event.mark.is_some() == with_event_id));
            let known: Vec<String> = (0..50).map(crate::dataset::imported_id).collect();
            assert!(batch.valid.iter().all(|event| known.contains(event.imported_id.as_ref().unwrap())));
        }
    }

    #[test]
    fn the_mix_creates_once_in_four() {
        let mut request = Vec::new();
        let mut mix = UpsertMix::many(&credentials(), 100, 1);
        let mut created = 0;
        for _ in 0..40 {
            mix[0].write_next(&mut request);
            let body = body_of(&request);
            let request = rapport_domain::account::Upsert::parse(body.as_object().unwrap()).unwrap();
            created += usize::from(request.name.is_some());
        }
        assert_eq!(created, 10);
    }

    #[test]
    fn every_event_of_a_moving_batch_moves_its_account() {
        let gate =
            Gate { arrived: Arc::default(), caused: Arc::default(), per_change: 3, most_under_way: 1_000 };
        let stages = Stages::new(40);
        let mut batches = MovingBatches::many(&credentials(), &stages, &gate, 100, 2);
        let mut request = Vec::new();
        let mut status = [Status::Prospect; 40];
        for batch in &mut batches {
            batch.write_next(&mut request);
            let body = body_of(&request);
            for event in body["events"].as_array().unwrap() {
                let number: usize = event["imported_id"].as_str().unwrap()[4..].parse().unwrap();
                let trigger = match event["kind"].as_str().unwrap() {
                    "trial_started" => Trigger::TrialStarted,
                    "became_customer" => Trigger::BecameCustomer,
                    _ => Trigger::Churned,
                };
                status[number] = apply(status[number], trigger).expect("a move").to;
            }
        }
        assert_eq!(gate.caused.load(Ordering::Relaxed), 600);
        assert!(gate.is_open());
        batches[0].write_next(&mut request);
        batches[0].write_next(&mut request);
        assert!(!gate.is_open());
    }

    #[test]
    fn the_number_of_accepted_events_is_read_from_the_answer() {
        let answer = Answer { status: 200, body: br#"{"received":100,"accepted":98,"duplicates":2}"# };
        assert_eq!(accepted(&answer), 98);
        assert_eq!(accepted(&Answer { status: 200, body: b"{}" }), 0);
    }
}

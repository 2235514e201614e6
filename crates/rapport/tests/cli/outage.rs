//! Outages of the database: it goes silent, refuses, or cannot write. Requests are answered in limited time, signals
//! work, readiness tells the truth, and the log says it once.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rapport_testkit::{PostgresProxy, PostgresServer, signal};
use serde_json::{Value, json};

use crate::program::{Place, Service, end_of, wait_until};

/// A request may wait for a place in the queue, for a connection to be given up, and for a new one; a loaded machine
/// adds its share. Without deadlines it would be the 30 seconds of the time limit for requests.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// From SIGTERM to the end is ten seconds; starting `kill` on a loaded machine takes a moment too.
const STOP_LIMIT: Duration = Duration::from_secs(14);
const LOAD_THREADS: usize = 4;
/// Enough for every kind of log line that an outage could repeat.
const MANY_REFUSALS: usize = 400;
const UPSERT: &str = "/api/accounts/upsert-by-imported-id/";

/// A place whose database is reached through a proxy, with a company in it.
fn through_proxy() -> (PostgresProxy, Place, Company) {
    let proxy = PostgresProxy::start(&PostgresServer::shared().fresh_database());
    let place = Place::on(proxy.url().to_owned());
    let company = Company::create(&place);
    (proxy, place, company)
}

struct Company {
    token: String,
}

impl Company {
    fn create(place: &Place) -> Self {
        let made =
            place.json(&["company", "create", "acme", "--name", "Acme", "--owner", "a@acme.test", "--json"]);
        Self { token: made["api_token"].as_str().unwrap().to_owned() }
    }

    /// The status and the problem code that an upsert is answered with.
    fn upsert(&self, service: &Service, id: &str) -> (u16, String) {
        let authorization = format!("Bearer {}", self.token);
        let headers = [("Authorization", authorization.as_str()), ("Content-Type", "application/json")];
        let (status, body) = service.request("POST", UPSERT, &headers, &Self::body(id));
        let code =
            serde_json::from_str::<Value>(&body).unwrap_or_default()["code"].as_str().map(str::to_owned);
        (status, code.unwrap_or_default())
    }

    /// The same request as text.
    fn upsert_request(&self, id: &str) -> String {
        let (token, body) = (&self.token, Self::body(id));
        format!(
            "POST {UPSERT} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    }

    fn body(id: &str) -> String {
        json!({ "project": "acme", "imported_id": id }).to_string()
    }
}

fn log_of(place: &Place) -> String {
    fs::read_to_string(place.path().join("service.log")).unwrap()
}

/// The log lines that would alert an operator.
fn alarms(place: &Place) -> Vec<String> {
    let log = log_of(place);
    log.lines()
        .filter(|line| line.contains(" WARN ") || line.contains(" ERROR "))
        .map(str::to_owned)
        .collect()
}

/// Upserts from several threads while `during` runs. Every answer is 2xx or 503; `during` is told how many were 503.
fn under_load(service: &Service, company: &Company, during: impl FnOnce(&AtomicUsize)) {
    let (stop, refused) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for n in 0..LOAD_THREADS {
            let (stop, refused) = (&stop, &refused);
            scope.spawn(move || {
                for number in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let (status, code) = company.upsert(service, &format!("crm-{n}-{number}"));
                    if status == 503 {
                        refused.fetch_add(1, Ordering::Relaxed);
                    } else {
                        assert!((200..300).contains(&status), "{status} {code}");
                    }
                }
            });
        }
        // Also if it panics, because the scope waits for its threads.
        let _stops = StopsAtTheEnd(&stop);
        during(&refused);
    });
}

struct StopsAtTheEnd<'a>(&'a AtomicBool);

impl Drop for StopsAtTheEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn connections_that_went_silent_are_replaced() {
    let (proxy, place, company) = through_proxy();
    let service = place.serve();
    assert_eq!(company.upsert(&service, "crm-1").0, 201);
    proxy.silence_open();
    let silent_since = Instant::now();
    loop {
        let asked = Instant::now();
        let (status, code) = company.upsert(&service, "crm-2");
        assert!(asked.elapsed() < ANSWER_LIMIT, "an answer took {:?}", asked.elapsed());
        // 200 if an earlier attempt with an unknown outcome had been stored.
        if matches!(status, 200 | 201) {
            break;
        }
        assert_eq!(status, 503, "{code}");
        assert!(silent_since.elapsed() < ANSWER_LIMIT, "not recovered");
    }
    wait_until("the service to be ready", || service.get("/health/ready").0 == 200);
}

#[test]
fn a_database_that_never_answers_is_503_in_limited_time() {
    let (proxy, place, company) = through_proxy();
    let service = place.serve();
    proxy.silence();
    let authorization = format!("Bearer {}", company.token);
    let asks: [(&str, &dyn Fn() -> u16); 3] = [
        ("the readiness check", &|| service.get("/health/ready").0),
        ("a read", &|| {
            let headers = [("Authorization", authorization.as_str())];
            service.request("GET", "/api/accounts/", &headers, "").0
        }),
        ("a write", &|| company.upsert(&service, "crm-1").0),
    ];
    for (what, ask) in asks {
        let asked = Instant::now();
        assert_eq!(ask(), 503, "{what}");
        assert!(asked.elapsed() < ANSWER_LIMIT, "{what} took {:?}", asked.elapsed());
    }
    assert_eq!(service.get("/health/live").0, 200);
    proxy.heal();
    wait_until("the service to be ready", || service.get("/health/ready").0 == 200);
    assert!(matches!(company.upsert(&service, "crm-1").0, 200 | 201));
}

#[test]
fn sigterm_ends_it_in_time_whatever_the_database_does() {
    let (proxy, place, company) = through_proxy();
    let mut service = place.serve();
    proxy.silence();
    // Both are in progress when the signal comes: a later request is answered.
    let requests = [company.upsert_request("crm-1"), "GET /login HTTP/1.1\r\nHost: x\r\n\r\n".to_owned()];
    let _waiting = requests.map(|request| {
        let mut stream = service.connect();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    });
    assert_eq!(service.get("/health/live").0, 200);
    let asked = Instant::now();
    service.signal("TERM");
    let code = service.wait().code();
    assert!(asked.elapsed() < STOP_LIMIT, "it took {:?}", asked.elapsed());
    assert!(matches!(code, Some(0 | 1)), "{code:?}");
}

#[test]
fn a_second_signal_ends_it_at_once_whatever_the_database_does() {
    let (proxy, place, _) = through_proxy();
    let mut service = place.serve();
    // A request that never ends keeps the service waiting, and then the database does.
    let mut stream = service.connect();
    stream.write_all(b"POST /api/pulse/ingest/ HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{").unwrap();
    assert_eq!(service.get("/health/live").0, 200);
    proxy.silence();
    service.signal("TERM");
    wait_until("the service to begin to stop", || log_of(&place).contains("stopping"));
    service.signal("TERM");
    assert_eq!(service.wait().code(), Some(130));
}

#[test]
fn a_signal_ends_a_start_that_waits_for_the_database() {
    let (proxy, place, _) = through_proxy();
    // Those of the command that made the company, which has ended.
    wait_until("its connections to close", || proxy.open_connections() == 0);
    proxy.silence();
    let log = fs::File::create(place.path().join("service.log")).unwrap();
    let mut command = place.command(&["serve", "--listen", "127.0.0.1:0"]);
    let mut child = command.stdout(Stdio::null()).stderr(log).spawn().unwrap();
    wait_until("it to connect", || proxy.open_connections() > 0);
    signal(child.id(), "TERM");
    // A start that gave up by itself would exit with 1.
    assert_eq!(end_of(&mut child).code(), Some(0), "{}", log_of(&place));
}

#[test]
fn an_outage_is_logged_once_when_it_begins_and_once_when_it_ends() {
    let (proxy, place, company) = through_proxy();
    let service = place.serve();
    under_load(&service, &company, |refused| {
        proxy.refuse();
        wait_until("the service to be not ready", || service.get("/health/ready").0 == 503);
        let head = service.head_of("/health/ready");
        assert!(head.to_ascii_lowercase().contains("retry-after: "), "{head}");
        wait_until("many refusals", || refused.load(Ordering::Relaxed) > MANY_REFUSALS);
        proxy.heal();
        wait_until("the service to be ready", || service.get("/health/ready").0 == 200);
    });
    let alarms = alarms(&place);
    assert_eq!(alarms.len(), 1, "{alarms:#?}");
    assert!(alarms[0].contains("the database is not available"), "{alarms:#?}");
    let log = log_of(&place);
    let ends: Vec<&str> =
        log.lines().filter(|line| line.contains("the database is available again")).collect();
    assert_eq!(ends.len(), 1, "{ends:#?}");
    assert!(ends[0].contains("turned_away="), "{ends:#?}");
}

#[test]
fn a_read_only_database_is_503_and_not_ready() {
    let database = PostgresServer::shared().fresh_database();
    let place = Place::on(database.clone());
    let company = Company::create(&place);
    let service = place.serve();
    let name = database.rsplit('/').next().unwrap();
    let mut raw = postgres::Client::connect(&database, postgres::NoTls).unwrap();
    let mut switch = |setting: &str| {
        raw.batch_execute(&format!(
            "SET default_transaction_read_only = off; \
             ALTER DATABASE {name} SET default_transaction_read_only = {setting}; \
             SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE datname = current_database() AND application_name = 'rapport'"
        ))
        .unwrap();
    };
    switch("on");
    let (status, code) = company.upsert(&service, "crm-1");
    assert_eq!((status, code.as_str()), (503, "unavailable"));
    assert_eq!(service.get("/health/ready").0, 503);
    switch("off");
    wait_until("the service to be ready", || service.get("/health/ready").0 == 200);
    assert_eq!(company.upsert(&service, "crm-1").0, 201);
}

#[test]
fn a_full_disk_under_an_embedded_database_is_one_outage() {
    let place = Place::sqlite();
    let company = Company::create(&place);
    // A limit on file sizes simulates a full disk. By default its signal would end the process.
    let service = place.serve_within("trap '' XFSZ");
    assert_eq!(company.upsert(&service, "crm-1").0, 201);
    limit_file_size(service.id(), "65536");
    under_load(&service, &company, |refused| {
        wait_until("the service to be not ready", || service.get("/health/ready").0 == 503);
        wait_until("many refusals", || refused.load(Ordering::Relaxed) > MANY_REFUSALS);
        limit_file_size(service.id(), "unlimited");
        wait_until("the service to be ready", || service.get("/health/ready").0 == 200);
    });
    let alarms = alarms(&place);
    let outages = alarms.iter().filter(|line| line.contains("health: the database is not available")).count();
    let checkpoints = alarms.iter().filter(|line| line.contains("checkpoints fail")).count();
    assert!(outages == 1 && checkpoints <= 2 && alarms.len() == outages + checkpoints, "{alarms:#?}");
    assert_eq!(log_of(&place).matches("the database is available again").count(), 1);
}

fn limit_file_size(process: u32, bytes: &str) {
    let limit = format!("--fsize={bytes}:unlimited");
    let done = Command::new("prlimit").args(["--pid", &process.to_string(), &limit]).status();
    assert!(done.expect("prlimit of util-linux").success());
}

//! Runs the service over real HTTP on either engine, with a client that reads like the interface document.
//!
//! ```ignore
//! let acme = Tenant::on(Engine::Sqlite).await;
//! let answer = acme.upsert(json!({"imported_id": "crm-1"})).await;
//! answer.expect(201);
//! acme.get("/api/accounts/").without_credential().expect_refused(401, "unauthenticated").await;
//! ```
//!
//! A `Tenant` is a new company on a service that tests share. A test that moves the clock or needs its own limits
//! uses a `Server`. `on_both_engines!` turns each rule of a module into two tests: `rule::sqlite` and
//! `rule::postgres`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rapport_app::Parts;
use rapport_app::credential::CreateToken;
use rapport_domain::audit::{Action, Filter};
use rapport_domain::credential::{Kind, TokenRequest};
use rapport_domain::id::AccountId;
use rapport_domain::member::Role;
use rapport_store::account_list::{AccountFilter, ListAccounts, Sort};
use rapport_store::page::MAX_LIMIT;
use rapport_store::{
    Query as _, account_address, activity, audit, channel, company, conversation, credential, event, history,
    member, timeline,
};
use rapport_testkit::{Engine, TestApp, TestCompany};
use rapport_web::{Config, Rate};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::described;

pub const UPSERT: &str = "/api/accounts/upsert-by-imported-id/";
pub const INGEST: &str = "/api/pulse/ingest/";

/// How long a client waits before a test counts as stuck.
const PATIENCE: Duration = Duration::from_mins(1);
const BUSY: u16 = 503;
const BUSY_PAUSE: Duration = Duration::from_millis(10);
/// The clock of a test doesn't move, so a bucket is never refilled. It holds enough for any test.
const PLENTY: Rate = Rate { per_second: 1_000_000, burst: 1_000_000 };

/// Turns each rule into a test on each engine. A rule takes a `Tenant`, a `Server` or an `Engine`.
macro_rules! on_both_engines {
    ($($rule:ident),* $(,)?) => { $(
        mod $rule {
            #[tokio::test]
            async fn sqlite() {
                super::$rule($crate::harness::given(rapport_testkit::Engine::Sqlite).await).await;
            }

            #[tokio::test]
            async fn postgres() {
                super::$rule($crate::harness::given(rapport_testkit::Engine::Postgres).await).await;
            }
        }
    )* };
}
pub(crate) use on_both_engines;

/// The argument of a rule.
pub trait Given {
    async fn on(engine: Engine) -> Self;
}

pub async fn given<G: Given>(engine: Engine) -> G {
    G::on(engine).await
}

impl Given for Engine {
    async fn on(engine: Engine) -> Self {
        engine
    }
}

impl Given for Tenant {
    async fn on(engine: Engine) -> Self {
        Self::on(engine)
    }
}

impl Given for Server {
    async fn on(engine: Engine) -> Self {
        Self::on(engine).await
    }
}

/// The services that tests share; each test has its own company. They stop after the last test that uses one, so
/// that their files are removed: a static would never be dropped.
#[derive(Default)]
struct House {
    sqlite: OnceLock<SharedService>,
    postgres: OnceLock<SharedService>,
}

impl House {
    fn open() -> Arc<Self> {
        static OPEN: Mutex<Weak<House>> = Mutex::new(Weak::new());
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.upgrade().unwrap_or_else(|| {
            let house = Arc::new(Self::default());
            *open = Arc::downgrade(&house);
            house
        })
    }

    fn service(&self, engine: Engine) -> &SharedService {
        let place = match engine {
            Engine::Sqlite => &self.sqlite,
            Engine::Postgres => &self.postgres,
        };
        place.get_or_init(|| SharedService::start(engine))
    }
}

struct SharedService {
    app: TestApp,
    address: SocketAddr,
    companies: AtomicU32,
    shutdown: CancellationToken,
    thread: Option<thread::JoinHandle<()>>,
}

impl SharedService {
    /// Starts it on its own thread, because it outlives the runtime of the first test that uses it.
    fn start(engine: Engine) -> Self {
        let app = TestApp::on(engine);
        let config = test_config();
        let router = rapport_web::router(app.app().clone(), &config);
        let shutdown = CancellationToken::new();
        let stop = shutdown.clone();
        let (said, address) = mpsc::channel();
        let thread = thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
                said.send(listener.local_addr().expect("an address")).expect("a receiver");
                rapport_web::serve(listener, router, &config, stop).await;
            });
        });
        let address = address.recv().expect("the service starts");
        Self { app, address, companies: AtomicU32::new(0), shutdown, thread: Some(thread) }
    }
}

impl Drop for SharedService {
    fn drop(&mut self) {
        self.shutdown.cancel();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking(), "the service panicked");
        }
    }
}

fn test_config() -> Config {
    Config {
        per_credential: PLENTY,
        per_address: PLENTY,
        per_stranger: PLENTY,
        // A loaded machine may take long between two requests on a connection.
        header_timeout: PATIENCE,
        ..Config::default()
    }
}

/// A company on a running service. Requests use its credentials by default.
pub struct Tenant {
    pub company: TestCompany,
    pub address: SocketAddr,
    engine: Engine,
    client: Client<HttpConnector, Full<Bytes>>,
    /// Keeps the shared service running.
    _house: Option<Arc<House>>,
}

impl Tenant {
    /// A new company on the shared service.
    pub fn on(engine: Engine) -> Self {
        let house = House::open();
        let service = house.service(engine);
        let number = service.companies.fetch_add(1, Ordering::Relaxed) + 1;
        let company = service.app.company(&format!("acme-{number}"));
        let address = service.address;
        Self { company, address, engine, client: new_client(), _house: Some(house) }
    }

    /// Another company on the shared service.
    pub fn neighbour(&self) -> Self {
        Self::on(self.engine)
    }

    pub fn slug(&self) -> &str {
        self.company.slug()
    }

    pub fn get(&self, path: &str) -> Call<'_> {
        Call::new(self, Method::GET, path)
    }

    pub fn post(&self, path: &str) -> Call<'_> {
        Call::new(self, Method::POST, path)
    }

    pub fn patch(&self, path: &str) -> Call<'_> {
        Call::new(self, Method::PATCH, path)
    }

    pub fn delete(&self, path: &str) -> Call<'_> {
        Call::new(self, Method::DELETE, path)
    }

    pub fn request(&self, method: &str, path: &str) -> Call<'_> {
        Call::new(self, method.parse().expect("a method"), path)
    }

    /// An upsert to be sent. `project` is added if it is missing.
    pub fn upserting(&self, body: Value) -> Call<'_> {
        let mut body = body;
        if let Some(members) = body.as_object_mut() {
            members.entry("project").or_insert_with(|| json!(self.slug()));
        }
        self.post(UPSERT).json(&body)
    }

    pub async fn upsert(&self, body: Value) -> Answer {
        self.upserting(body).send().await
    }

    /// Upserts an account that must be new and returns it.
    pub async fn account(&self, body: Value) -> Value {
        self.upsert(body).await.expect(201)["account"].clone()
    }

    /// Upserts an account that must exist and returns the reply.
    pub async fn resend(&self, body: Value) -> Value {
        self.upsert(body).await.expect(200)
    }

    pub fn ingesting(&self, events: Value) -> Call<'_> {
        self.post(INGEST).json(&json!({ "events": events }))
    }

    /// Ingests these events.
    pub async fn ingest(&self, events: Value) -> Answer {
        self.ingesting(events).send().await
    }

    /// Ingests an event that must be accepted.
    pub async fn accept(&self, event: Value) {
        let reply = self.ingest(json!([event])).await.expect(200);
        assert_eq!(reply["accepted"], json!(1), "{event}: {reply}");
    }

    /// The account with this imported_id, as the list shows it.
    pub async fn shown(&self, imported_id: &str) -> Value {
        let found = self.company.account(imported_id);
        self.get(&format!("/api/accounts/{}/", found.id)).send().await.expect(200)
    }

    /// An account's status history over HTTP, oldest first.
    pub async fn history(&self, account: &Value) -> Vec<Value> {
        let mut entries = self.all_pages(&format!("{}history/", path_of(account)), 200).await;
        entries.reverse();
        entries
    }

    /// The payloads of an account's events in the outbox, oldest first.
    pub fn events(&self, account: &Value) -> Vec<Value> {
        let events = self.company.events(id_of(account)).into_iter();
        events
            .map(|event| {
                let payload: Value = serde_json::from_str(&event.payload).expect("a payload is JSON");
                assert_eq!(payload["id"], json!(event.id.to_string()));
                assert_eq!(payload["type"], json!(event.kind.as_str()));
                described::check_payload(event.kind.as_str(), &payload);
                payload
            })
            .collect()
    }

    /// A new token with a role.
    pub fn token_of(&self, role: Role) -> String {
        let request = TokenRequest::of_company(format!("a {} token", role.as_str()), role);
        self.company.write(CreateToken(request)).expect("a token").text
    }

    /// Every item of a list, from all its pages.
    pub async fn all_pages(&self, path: &str, limit: usize) -> Vec<Value> {
        let mut items = Vec::new();
        let joint = if path.contains('?') { '&' } else { '?' };
        let mut next = format!("{path}{joint}limit={limit}");
        loop {
            let page = self.get(&next).send().await.expect(200);
            let found = page["items"].as_array().expect("items");
            assert!(found.len() <= limit, "a page has {} of {limit}", found.len());
            items.extend(found.iter().cloned());
            match page["next_cursor"].as_str() {
                Some(cursor) => next = format!("{path}{joint}limit={limit}&cursor={cursor}"),
                None => return items,
            }
        }
    }

    /// Everything the company has, as text: accounts with their history, events, activity and conversations, channels
    /// and codes, settings, credentials, members, the audit log.
    pub fn contents(&self) -> String {
        let now = self.company.app().now();
        self.company.read(move |snapshot| {
            let (filter, sort) = (AccountFilter::default(), Sort::default());
            let accounts =
                ListAccounts { filter, sort, cursor: None, limit: MAX_LIMIT, now }.run(snapshot)?;
            let mut text = String::new();
            for account in accounts.items {
                let id = account.id;
                let entries = history::of_account(snapshot, id, None, MAX_LIMIT)?.items;
                let events = event::of_account(snapshot, id)?;
                let activity = activity::list(snapshot, id, None, MAX_LIMIT)?.items;
                let talk = conversation::of_account(snapshot, id, None, MAX_LIMIT)?.items;
                let timeline = timeline::of_account(snapshot, id, timeline::Place::START, MAX_LIMIT)?.0;
                let addresses = account_address::of_account(snapshot, id, MAX_LIMIT)?;
                let _ = writeln!(text, "{account:?}\n  {entries:?}\n  {events:?}\n  {activity:?}");
                let _ = writeln!(text, "  {talk:?}\n  {timeline:?}\n  {addresses:?}");
            }
            let _ = writeln!(text, "{:?}", channel::list(snapshot)?);
            let _ = writeln!(text, "{:?}", channel::all_codes(snapshot)?);
            let _ = writeln!(text, "{:?}", company::get(snapshot)?);
            for kind in [Kind::ApiToken, Kind::IngestKey, Kind::InboundKey] {
                let kept = credential::list(snapshot, kind)?;
                let kept: Vec<_> = kept.into_iter().map(|kept| (kept.id, kept.name, kept.role)).collect();
                let _ = writeln!(text, "{kept:?}");
            }
            let _ = writeln!(text, "{:?}", member::list(snapshot)?);
            // The log of a refused request grows by the refusal itself.
            let mut log = audit::list(snapshot, &Filter::default(), None, MAX_LIMIT)?.items;
            log.retain(|entry| entry.action != Action::RequestRefused.as_str());
            let _ = writeln!(text, "{log:?}");
            Ok(text)
        })
    }
}

fn new_client() -> Client<HttpConnector, Full<Bytes>> {
    Client::builder(TokioExecutor::new()).build_http()
}

pub fn id_of(account: &Value) -> AccountId {
    account["id"].as_str().and_then(|id| id.parse().ok()).unwrap_or_else(|| panic!("no account: {account}"))
}

pub fn path_of(account: &Value) -> String {
    format!("/api/accounts/{}/", id_of(account))
}

/// One member of every item.
pub fn column(items: &[Value], member: &str) -> Vec<String> {
    let word = |item: &Value| item[member].as_str().map_or_else(|| item[member].to_string(), str::to_owned);
    items.iter().map(word).collect()
}

/// The names of an object's members, in order.
pub fn members_of(object: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = object.as_object().expect("an object").keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

/// A separate service with the company `acme`, for tests that move the clock or set limits.
pub struct Server {
    pub app: TestApp,
    tenant: Tenant,
    shutdown: CancellationToken,
    serving: Option<JoinHandle<()>>,
}

impl Deref for Server {
    type Target = Tenant;

    fn deref(&self) -> &Tenant {
        &self.tenant
    }
}

impl Server {
    pub async fn on(engine: Engine) -> Self {
        Self::with(engine, |_| {}).await
    }

    /// With its own limits.
    pub async fn with(engine: Engine, adjust: impl FnOnce(&mut Config)) -> Self {
        let mut config = test_config();
        adjust(&mut config);
        Self::start(TestApp::on(engine), config).await
    }

    /// With other parts than usual, such as mail.
    pub async fn with_parts(engine: Engine, furnish: impl Fn(&mut Parts) + Send + Sync + 'static) -> Self {
        Self::start(TestApp::with(engine, furnish), test_config()).await
    }

    async fn start(app: TestApp, config: Config) -> Self {
        let engine = app.engine();
        eprintln!("on {engine}");
        let router = rapport_web::router(app.app().clone(), &config);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let shutdown = CancellationToken::new();
        let stop = shutdown.clone();
        let serving = tokio::spawn(async move { rapport_web::serve(listener, router, &config, stop).await });
        let company = TestCompany::clone(&app);
        let tenant = Tenant { company, address, engine, client: new_client(), _house: None };
        Self { app, tenant, shutdown, serving: Some(serving) }
    }

    /// Stops accepting requests and waits until the running ones have finished.
    pub async fn stop(mut self) {
        self.shutdown.cancel();
        if let Some(serving) = self.serving.take() {
            serving.await.expect("the server does not panic");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

/// A request to be sent.
#[derive(Clone)]
pub struct Call<'a> {
    tenant: &'a Tenant,
    method: Method,
    path: String,
    headers: HeaderMap,
    body: Bytes,
}

impl<'a> Call<'a> {
    fn new(tenant: &'a Tenant, method: Method, path: &str) -> Self {
        let call =
            Self { tenant, method, path: path.to_owned(), headers: HeaderMap::new(), body: Bytes::new() };
        call.of_company(&tenant.company)
    }

    /// With another company's credentials.
    pub fn of_company(self, company: &TestCompany) -> Self {
        self.token(company.token_text()).header("x-service-ingest-key", company.ingest_key_text())
    }

    pub fn token(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    pub fn without_credential(self) -> Self {
        self.without("authorization").without("x-service-ingest-key")
    }

    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        let value = HeaderValue::from_str(value).expect("a header value");
        self.headers.insert(HeaderName::from_static(name), value);
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        self.headers.remove(name);
        self
    }

    pub fn json(self, body: &Value) -> Self {
        self.text(&body.to_string())
    }

    /// A literal body, sent as JSON unless the content type is set afterwards.
    pub fn text(self, body: &str) -> Self {
        self.bytes(body.as_bytes().to_vec())
    }

    pub fn bytes(mut self, body: Vec<u8>) -> Self {
        self.body = Bytes::from(body);
        self.header("content-type", "application/json")
    }

    /// The same request with more white space at its end, or with an empty object where it had no body.
    pub fn spaced(mut self) -> Self {
        let more: &[u8] = if self.body.is_empty() { b"{}" } else { b"\r\n" };
        self.body = Bytes::from([&self.body, more].concat());
        let is_typed = self.headers.contains_key("content-type");
        if is_typed { self } else { self.header("content-type", "application/json") }
    }

    /// The body so far, compressed.
    pub fn gzipped(mut self) -> Self {
        self.body = Bytes::from(gzip(&self.body));
        self.header("content-encoding", "gzip")
    }

    /// Sends a request that must be refused with this status and code, and must not change anything.
    pub async fn expect_refused(self, status: u16, code: &str) -> Answer {
        let tenant = self.tenant;
        let before = tenant.contents();
        let answer = if status == BUSY { self.send_once().await } else { self.send().await };
        answer.expect_problem(status, code);
        assert_eq!(tenant.contents(), before, "{}: nothing of a refused request is applied", answer.said);
        answer
    }

    /// Sends a request that must be refused for exactly these fields, each with its code.
    pub async fn expect_faults(self, faults: &[(&str, &str)]) -> Answer {
        let answer = self.expect_refused(422, "invalid").await;
        let mut found = answer.faults();
        let mut expected: Vec<(String, String)> =
            faults.iter().map(|(pointer, code)| ((*pointer).to_owned(), (*code).to_owned())).collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{}: {}", answer.said, answer.text());
        answer
    }

    /// Sends the request, and sends it again while the service is busy. Nothing is saved then, and a loaded machine
    /// can be busy for a while.
    pub async fn send(self) -> Answer {
        let since = Instant::now();
        loop {
            let answer = self.clone().send_once().await;
            if !answer.is_busy() || since.elapsed() > PATIENCE {
                return answer;
            }
            tokio::time::sleep(BUSY_PAUSE).await;
        }
    }

    /// Sends the request and returns the beginning of its response, without the body, which may never end.
    pub async fn begin(self) -> Answer {
        let since = Instant::now();
        loop {
            let (said, response) = self.clone().respond().await;
            let (parts, _) = response.into_parts();
            let status = parts.status.as_u16();
            if status != BUSY || since.elapsed() > PATIENCE {
                return Answer { said, status, headers: parts.headers, body: Bytes::new() };
            }
            tokio::time::sleep(BUSY_PAUSE).await;
        }
    }

    async fn respond(self) -> (String, Response<Incoming>) {
        let said = format!("{} {}", self.method, self.path);
        let mut request = Request::builder()
            .method(self.method)
            .uri(format!("http://{}{}", self.tenant.address, self.path))
            .body(Full::new(self.body))
            .expect("a request");
        *request.headers_mut() = self.headers;
        let sent = tokio::time::timeout(PATIENCE, self.tenant.client.request(request)).await;
        let response = sent.unwrap_or_else(|_| panic!("{said}: timed out"));
        let response = response.unwrap_or_else(|error| panic!("{said}: {error:?}"));
        (said, response)
    }

    async fn send_once(self) -> Answer {
        let (method, path) = (self.method.clone(), self.path.clone());
        let (said, response) = self.respond().await;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap_or_else(|error| panic!("{said}: {error:?}")).to_bytes();
        let answer = Answer { said, status: parts.status.as_u16(), headers: parts.headers, body };
        described::check(&method, &path, &answer);
        answer
    }
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("compressing");
    encoder.finish().expect("compressing")
}

fn unzip(bytes: &[u8]) -> Vec<u8> {
    let mut decoder = flate2::write::GzDecoder::new(Vec::new());
    decoder.write_all(bytes).expect("decompressing");
    decoder.finish().expect("decompressing")
}

/// A response.
#[derive(Debug)]
pub struct Answer {
    said: String,
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    fn is_busy(&self) -> bool {
        self.status == BUSY && String::from_utf8_lossy(&self.body).contains("is busy and nothing was saved")
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("a plain header"))
    }

    pub fn text(&self) -> &str {
        str::from_utf8(&self.body).expect("UTF-8")
    }

    pub fn json(&self) -> Value {
        let body = match self.header("content-encoding") {
            Some("gzip") => unzip(&self.body),
            _ => self.body.to_vec(),
        };
        serde_json::from_slice(&body)
            .unwrap_or_else(|error| panic!("{} {}: {error}: {:?}", self.said, self.status, self.body))
    }

    /// The body of a response that must have this status. Empty bodies are null.
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}: {}", self.said, String::from_utf8_lossy(&self.body));
        if self.body.is_empty() { Value::Null } else { self.json() }
    }

    /// The body of a problem. Checks its format.
    pub fn expect_problem(&self, status: u16, code: &str) -> Map<String, Value> {
        let body = self.expect(status);
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{}", self.said);
        assert_eq!(body["code"], json!(code), "{}: {body}", self.said);
        assert_eq!(body["status"], json!(status), "{}: {body}", self.said);
        assert_eq!(body["type"], json!(format!("urn:rapport:problem:{code}")), "{}: {body}", self.said);
        for member in ["title", "detail"] {
            assert!(body[member].is_string(), "{}: {body}", self.said);
        }
        body.as_object().expect("an object").clone()
    }

    /// The errors of a 422, as pointer and code.
    pub fn faults(&self) -> Vec<(String, String)> {
        let body = self.expect(422);
        let errors = body["errors"].as_array().unwrap_or_else(|| panic!("{}: no errors: {body}", self.said));
        let word = |value: &Value| value.as_str().expect("a text").to_owned();
        errors.iter().map(|error| (word(&error["pointer"]), word(&error["code"]))).collect()
    }
}

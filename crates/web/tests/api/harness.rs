//! The service over real HTTP on either engine, and a client that reads like the interface document.
//!
//! ```ignore
//! let server = Server::on(Engine::Sqlite).await;
//! let answer = server.upsert(json!({"imported_id": "crm-1"})).await;
//! answer.expect(201);
//! server.app.clock().advance_days(1);
//! let problem = server.get("/api/accounts/").without_credential().send().await.expect_problem(401, "unauthenticated");
//! ```

use std::io::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rapport_app::credential::CreateToken;
use rapport_domain::member::Role;
use rapport_testkit::{Engine, TestApp, TestCompany};
use rapport_web::{Config, Rate};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub const UPSERT: &str = "/api/accounts/upsert-by-imported-id/";
pub const INGEST: &str = "/api/pulse/ingest/";

/// How long a client waits before a test counts as stuck.
const PATIENCE: Duration = Duration::from_mins(1);
/// The clock of a test stands still, so a bucket never fills again: it holds enough for any test.
const PLENTY: Rate = Rate { per_second: 1_000_000, burst: 1_000_000 };

/// A running service with the company `acme`, whose credentials requests carry unless they say otherwise.
pub struct Server {
    pub app: TestApp,
    pub address: SocketAddr,
    client: Client<HttpConnector, Full<Bytes>>,
    shutdown: CancellationToken,
    serving: Option<JoinHandle<()>>,
}

impl Server {
    pub async fn on(engine: Engine) -> Self {
        Self::with(engine, |_| {}).await
    }

    /// With limits of its own.
    pub async fn with(engine: Engine, adjust: impl FnOnce(&mut Config)) -> Self {
        eprintln!("on {engine}");
        let app = TestApp::on(engine);
        let mut config = Config { per_credential: PLENTY, per_address: PLENTY, ..Config::default() };
        adjust(&mut config);
        let router = rapport_web::router(app.app().clone(), &config);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let shutdown = CancellationToken::new();
        let stop = shutdown.clone();
        let serving = tokio::spawn(async move { rapport_web::serve(listener, router, &config, stop).await });
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self { app, address, client, shutdown, serving: Some(serving) }
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

    /// An upsert; `project` need not be said.
    pub async fn upsert(&self, body: Value) -> Answer {
        let mut body = body;
        if let Some(members) = body.as_object_mut() {
            members.entry("project").or_insert_with(|| json!(self.app.slug()));
        }
        self.post(UPSERT).json(&body).send().await
    }

    /// Upserts an account that must be new, and answers it.
    pub async fn account(&self, body: Value) -> Value {
        self.upsert(body).await.expect(201)["account"].clone()
    }

    /// An ingest of these events.
    pub async fn ingest(&self, events: Value) -> Answer {
        self.post(INGEST).json(&json!({ "events": events })).send().await
    }

    /// A fresh token of a role.
    pub fn token_of(&self, role: Role) -> String {
        self.app
            .write(CreateToken { name: format!("a {} token", role.as_str()), role })
            .expect("a token")
            .text
    }

    /// Every item of a list, over all its pages.
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

    /// Stops accepting, lets requests under way finish, and waits for it.
    pub async fn stop(mut self) {
        self.shutdown.cancel();
        if let Some(serving) = self.serving.take() {
            serving.await.expect("the server ends without a panic");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

/// A request in the making.
pub struct Call<'a> {
    server: &'a Server,
    method: Method,
    path: String,
    headers: HeaderMap,
    body: Bytes,
}

impl<'a> Call<'a> {
    fn new(server: &'a Server, method: Method, path: &str) -> Self {
        let call =
            Self { server, method, path: path.to_owned(), headers: HeaderMap::new(), body: Bytes::new() };
        call.of_company(&server.app)
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

    /// A body as it stands, sent as JSON unless the content type is set afterwards.
    pub fn text(self, body: &str) -> Self {
        self.bytes(body.as_bytes().to_vec())
    }

    pub fn bytes(mut self, body: Vec<u8>) -> Self {
        self.body = Bytes::from(body);
        self.header("content-type", "application/json")
    }

    /// The body so far, compressed.
    pub fn gzipped(mut self) -> Self {
        self.body = Bytes::from(gzip(&self.body));
        self.header("content-encoding", "gzip")
    }

    pub async fn send(self) -> Answer {
        let said = format!("{} {}", self.method, self.path);
        let mut request = Request::builder()
            .method(self.method)
            .uri(format!("http://{}{}", self.server.address, self.path))
            .body(Full::new(self.body))
            .expect("a request");
        *request.headers_mut() = self.headers;
        let sent = tokio::time::timeout(PATIENCE, self.server.client.request(request)).await;
        let response = sent.unwrap_or_else(|_| panic!("{said}: no answer in time"));
        let response = response.unwrap_or_else(|error| panic!("{said}: {error:?}"));
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap_or_else(|error| panic!("{said}: {error:?}")).to_bytes();
        Answer { said, status: parts.status.as_u16(), headers: parts.headers, body }
    }
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("compressing");
    encoder.finish().expect("compressing")
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    said: String,
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("a plain header"))
    }

    pub fn text(&self) -> &str {
        str::from_utf8(&self.body).expect("UTF-8")
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{} {}: {error}: {:?}", self.said, self.status, self.body))
    }

    /// The body of an answer with this status; empty bodies are null.
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}: {}", self.said, String::from_utf8_lossy(&self.body));
        if self.body.is_empty() { Value::Null } else { self.json() }
    }

    /// The body of a problem, whose form is checked.
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

    /// The faults of a 422: pointer and code of each.
    pub fn faults(&self) -> Vec<(String, String)> {
        let body = self.expect(422);
        let errors = body["errors"].as_array().unwrap_or_else(|| panic!("{}: no errors: {body}", self.said));
        let word = |value: &Value| value.as_str().expect("a text").to_owned();
        errors.iter().map(|error| (word(&error["pointer"]), word(&error["code"]))).collect()
    }
}

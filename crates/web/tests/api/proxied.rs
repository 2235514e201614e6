//! Behind a proxy: who a client is, what is said about caches, compression and https, and how the service stops.

use std::io::Read as _;
use std::net::Ipv4Addr;
use std::time::Duration;

use flate2::read::GzDecoder;
use rapport_app::Outside;
use rapport_domain::member::Role;
use rapport_testkit::Engine;
use rapport_web::{Config, Drain, Rate, TrustedProxies};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::harness::{Server, Tenant, UPSERT, on_both_engines};
use crate::person::Person;

on_both_engines! {
    the_audit_log_has_the_address_that_a_trusted_proxy_names,
}

const PROXY: Ipv4Addr = Ipv4Addr::LOCALHOST;
const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const LOOK: &str = "GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n";

fn behind_proxy(config: &mut Config) {
    config.trusted_proxies = TrustedProxies::new(vec!["127.0.0.1/32".parse().unwrap()]);
}

/// Sends a text from an address and returns what comes back until the connection ends.
async fn exchange(server: &Tenant, from: Ipv4Addr, text: &str) -> String {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((from, 0).into()).unwrap();
    let mut stream = socket.connect(server.address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

async fn the_audit_log_has_the_address_that_a_trusted_proxy_names(engine: Engine) {
    let server = Server::with(engine, behind_proxy).await;
    let create = |name: &str| server.post("/api/tokens/").json(&json!({"name": name, "role": "member"}));
    create("one").header("x-forwarded-for", "9.9.9.9, 192.0.2.7").send().await.expect(201);
    create("two").header("forwarded", r#"for="[2001:db8::7]:4711""#).send().await.expect(201);
    create("three").header("x-forwarded-for", "nonsense").send().await.expect(201);
    let body = json!({"name": "four", "role": "member"}).to_string();
    let direct = format!(
        "POST /api/tokens/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Forwarded-For: 192.0.2.7\r\n\
         Authorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        server.app.token_text(),
        body.len()
    );
    let answer = exchange(&server, STRANGER, &direct).await;
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    let entries = server.get("/api/audit/").send().await.expect(200);
    let addresses: Vec<_> =
        entries["items"].as_array().unwrap().iter().map(|entry| &entry["address"]).collect();
    let expected = json!(["127.0.0.2", "127.0.0.1", "2001:db8::7", "192.0.2.7"]);
    assert_eq!(json!(addresses[..4]), expected, "newest first");
}

#[tokio::test]
async fn limits_count_clients_and_not_their_proxy() {
    let limits = |config: &mut Config| {
        behind_proxy(config);
        config.per_address = Rate { per_second: 1, burst: 1 };
        config.per_stranger = Rate { per_second: 1, burst: 1 };
    };
    let server = Server::with(Engine::Sqlite, limits).await;
    let look = async |from: &str| {
        let call = server.get("/api/accounts/").without_credential().header("x-forwarded-for", from);
        call.send().await.status
    };
    assert_eq!((look("192.0.2.7").await, look("192.0.2.7").await), (401, 429));
    assert_eq!(look("192.0.2.8").await, 401, "another client of the same proxy");
    let log_in = async |from: &str| {
        let call = server.post("/login").without_credential().text("email=a%40acme.test&password=x");
        let call = call.header("content-type", "application/x-www-form-urlencoded");
        let call = call.header("sec-fetch-site", "same-origin").header("x-forwarded-for", from);
        call.send().await.status
    };
    assert_ne!(log_in("192.0.2.7").await, 429);
    assert_eq!(log_in("192.0.2.7").await, 429);
    assert_ne!(log_in("192.0.2.8").await, 429, "another client of the same proxy");
}

#[tokio::test]
async fn a_trusted_proxy_may_have_any_number_of_connections() {
    let few = |config: &mut Config| {
        behind_proxy(config);
        config.max_connections = 4;
    };
    let server = Server::with(Engine::Sqlite, few).await;
    let mut open = Vec::new();
    for _ in 0..4 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(LOOK.as_bytes()).await.unwrap();
        let mut begin = [0; 12];
        stream.read_exact(&mut begin).await.unwrap();
        assert_eq!(&begin, b"HTTP/1.1 200");
        open.push(stream);
    }
}

#[tokio::test]
async fn a_request_names_exactly_one_host() {
    let server = Server::on(Engine::Sqlite).await;
    let table = [
        ("GET /api/accounts/ HTTP/1.1\r\n", "application/problem+json"),
        ("GET /api/accounts/ HTTP/1.0\r\n", "application/problem+json"),
        ("GET /login HTTP/1.1\r\nHost: a\r\nHost: a\r\n", "text/html"),
        ("GET /health/live HTTP/1.1\r\nHost:\r\n", "text/html"),
    ];
    for (head, media_type) in table {
        let answer = exchange(&server, PROXY, &format!("{head}Connection: close\r\n\r\n")).await;
        assert!(answer.contains(" 400 Bad Request\r\n"), "{head}: {answer}");
        assert!(answer.contains(&format!("content-type: {media_type}")), "{head}: {answer}");
        assert!(answer.contains("x-request-id: "), "{head}: {answer}");
        assert!(answer.contains("Host header"), "{head}: {answer}");
    }
    for head in [
        "GET /health/live HTTP/1.1\r\nHost: x\r\n",
        "GET http://x/health/live HTTP/1.1\r\nHost: x\r\n",
        "GET http://x/health/live HTTP/1.0\r\n",
    ] {
        let answer = exchange(&server, PROXY, &format!("{head}Connection: close\r\n\r\n")).await;
        assert!(answer.contains(" 200 OK\r\n"), "{head}: {answer}");
    }
}

#[tokio::test]
async fn https_is_required_for_a_year_if_it_is_the_base_url() {
    let secure = |parts: &mut rapport_app::Parts| {
        parts.outside = Outside { base_url: "https://crm.acme.test".to_owned(), mail_configured: false };
    };
    let server = Server::with_parts(Engine::Sqlite, secure).await;
    for path in ["/login", "/api/accounts/", "/assets/nothing", "/health/live"] {
        let answer = server.get(path).send().await;
        assert_eq!(answer.header("strict-transport-security"), Some("max-age=31536000"), "{path}");
    }
    let plain = Server::on(Engine::Sqlite).await;
    assert_eq!(plain.get("/login").send().await.header("strict-transport-security"), None);
}

#[tokio::test]
async fn everything_private_is_kept_out_of_caches() {
    let server = Server::on(Engine::Sqlite).await;
    let ana = Person::of(&server, Role::Admin);
    let private =
        ["/", "/accounts", "/accounts/export", "/settings/tokens", "/nothing", "/api/accounts/", "/live/"];
    for path in private {
        let answer = server.get(path).header("cookie", &ana.cookie).send().await;
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path} {}", answer.status);
    }
    let stranger = server.get("/accounts").without_credential().send().await;
    assert_eq!(
        (stranger.status, stranger.header("cache-control")),
        (303, Some("no-store")),
        "a redirect too"
    );
    let page = server.get("/login").without_credential().send().await;
    let style = page.text().split('"').find(|text| text.starts_with("/assets/") && text.contains(".css"));
    let style = server.get(style.expect("a stylesheet")).send().await;
    assert_eq!(style.header("cache-control"), Some("public, max-age=31536000, immutable"));
    assert_eq!(
        server.get("/favicon.svg").send().await.header("cache-control"),
        Some("public, max-age=86400")
    );
}

#[tokio::test]
async fn large_text_is_compressed_for_who_can_read_it() {
    let server = Server::on(Engine::Sqlite).await;
    for number in 0..20 {
        server.account(json!({"imported_id": format!("crm-{number}")})).await;
    }
    let ana = Person::of(&server, Role::Admin);
    let ask = async |path: &str, accepted: &str| {
        let call = server.get(path).header("cookie", &ana.cookie);
        call.header("accept-encoding", accepted).send().await
    };
    let paths = ["/pipeline", "/accounts", "/api/accounts/", "/api/openapi.json", "/accounts/export"];
    for path in paths {
        let plain = ask(path, "gzip;q=0").await;
        assert_eq!((plain.status, plain.header("content-encoding")), (200, None), "{path}");
        assert_eq!(plain.header("vary"), Some("accept-encoding"), "{path}");
        let small = ask(path, "br, gzip").await;
        assert_eq!(small.header("content-encoding"), Some("gzip"), "{path}");
        assert_eq!(small.header("vary"), Some("accept-encoding"), "{path}");
        assert!(
            small.body.len() * 2 < plain.body.len(),
            "{path}: {} of {}",
            small.body.len(),
            plain.body.len()
        );
        let mut text = String::new();
        GzDecoder::new(small.body.as_ref()).read_to_string(&mut text).unwrap();
        // Forms have new ids and times go on, so two pages are never quite the same.
        assert!(text.len().abs_diff(plain.body.len()) < 100, "{path}");
    }
    let linked = server.get("/accounts").header("cookie", &ana.cookie).header("accept-encoding", "gzip");
    let linked = linked.header("sec-fetch-site", "cross-site").send().await;
    assert_eq!(linked.header("content-encoding"), None, "another site cannot measure a page");
    let short = server.post(UPSERT).json(&json!({"project": server.slug(), "imported_id": "crm-1"}));
    let short = short.header("accept-encoding", "gzip").send().await;
    assert_eq!((short.status, short.header("content-encoding"), short.header("vary")), (200, None, None));
}

#[tokio::test]
async fn behind_a_proxy_it_stops_step_by_step() {
    let accepting = Duration::from_secs(2);
    let slowly = move |config: &mut Config| {
        behind_proxy(config);
        config.drain = Drain { accepting, idle: Duration::from_secs(4) };
        config.shutdown_timeout = Duration::from_mins(1);
    };
    let server = Server::with(Engine::Sqlite, slowly).await;
    let address = server.address;
    let mut kept = TcpStream::connect(address).await.unwrap();
    let mut idle = TcpStream::connect(address).await.unwrap();
    for stream in [&mut kept, &mut idle] {
        stream.write_all(LOOK.as_bytes()).await.unwrap();
        let mut answer = [0; 1_000];
        let length = stream.read(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
        assert!(answer.starts_with("HTTP/1.1 200") && !answer.contains("connection: close"), "{answer}");
    }
    let stopping = tokio::spawn(server.stop());
    let waiting = tokio::time::Instant::now();
    tokio::task::yield_now().await;
    // The next request on a kept connection is answered, and the answer is the last one.
    kept.write_all(LOOK.as_bytes()).await.unwrap();
    let mut answer = String::new();
    kept.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("connection: close"), "{answer}");
    if waiting.elapsed() < accepting / 2 {
        let mut new = TcpStream::connect(address).await.expect("new connections are accepted for a while");
        new.write_all(LOOK.as_bytes()).await.unwrap();
        let mut answer = String::new();
        new.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("connection: close"), "{answer}");
    }
    let mut nothing = Vec::new();
    idle.read_to_end(&mut nothing).await.unwrap();
    assert!(nothing.is_empty(), "an idle connection is closed in the end");
    assert!(waiting.elapsed() >= Duration::from_secs(4), "but not before the proxy had time to close it");
    stopping.await.unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "nothing is listening any more");
}

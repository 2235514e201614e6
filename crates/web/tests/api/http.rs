//! Behaviour common to all responses: slashes, methods, headers, limits, health, the document and shutdown.

use std::time::Duration;

use rapport_testkit::Engine;
use rapport_web::Rate;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{Server, UPSERT};

#[tokio::test]
async fn a_path_is_served_with_and_without_its_slash_and_never_redirected() {
    let server = Server::on(Engine::Sqlite).await;
    for path in ["/api/accounts", "/api/accounts/", "/api/accounts?limit=1", "/api/settings"] {
        server.get(path).send().await.expect(200);
    }
    let body = json!({"project": "acme", "imported_id": "a"});
    server.post(UPSERT.trim_end_matches('/')).json(&body).send().await.expect(201);
    for path in ["/api/openapi.json", "/api/openapi.json/", "/api/docs", "/api/docs/", "/api/docs/style.css"]
    {
        let answer = server.get(path).without_credential().send().await;
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.header("x-ratelimit-limit").is_some(), "{path}");
    }
}

#[tokio::test]
async fn unknown_paths_and_methods_are_problems() {
    let server = Server::on(Engine::Sqlite).await;
    for path in ["/api", "/api/", "/api/nothing/", "/api/accounts//"] {
        server.get(path).send().await.expect_problem(404, "not_found");
    }
    let answer = server.delete(UPSERT).send().await;
    answer.expect_problem(405, "method_not_allowed");
    assert_eq!(answer.header("allow"), Some("POST"));
    let answer = server.request("PUT", "/api/accounts").send().await;
    answer.expect_problem(405, "method_not_allowed");
    assert_eq!(answer.header("allow"), Some("GET,HEAD,POST"));
    let answer = server.request("OPTIONS", "/api/accounts/").send().await;
    assert_eq!((answer.status, answer.header("allow")), (204, Some("GET,HEAD,POST")));
    let answer = server.request("HEAD", "/api/accounts/").send().await;
    assert_eq!((answer.status, answer.body.len()), (200, 0));
}

#[tokio::test]
async fn unreadable_bodies_are_refused_by_kind() {
    let server = Server::on(Engine::Sqlite).await;
    let sent = r#"{"project": "acme", "imported_id": "a"}"#;
    let call = || server.post(UPSERT).text(sent);
    call().text(&"x".repeat(3 << 20)).send().await.expect_problem(413, "body_too_large");
    call().text(&" ".repeat(3 << 20)).gzipped().send().await.expect_problem(413, "body_too_large");
    call().header("content-type", "text/plain").send().await.expect_problem(415, "unsupported_media_type");
    call().without("content-type").send().await.expect_problem(415, "unsupported_media_type");
    call().header("content-encoding", "br").send().await.expect_problem(415, "unsupported_encoding");
    call().header("content-encoding", "gzip").send().await.expect_problem(400, "broken_gzip");
    call().text("{\"a\": 1, \"a\": 1}").send().await.expect_problem(400, "duplicate_member");
    assert!(server.app.find("a").is_none(), "a refused request changes nothing");
    call().gzipped().send().await.expect(201);
}

#[tokio::test]
async fn every_response_has_the_common_headers() {
    let server = Server::on(Engine::Sqlite).await;
    for (path, api) in [("/api/accounts/", true), ("/api/nothing/", true), ("/health/live", false)] {
        let answer = server.get(path).header("x-request-id", "abc-1").send().await;
        assert_eq!(answer.header("x-request-id"), Some("abc-1"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert!(answer.header("content-security-policy").is_some());
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
        for name in ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"] {
            assert_eq!(answer.header(name).is_some(), api, "{path} {name}");
        }
    }
    let odd = server.get("/api/accounts/").header("x-request-id", "a b<c>").send().await;
    let id = odd.header("x-request-id").unwrap();
    assert!(!id.contains('<') && id.len() > 8, "{id}");
}

#[tokio::test]
async fn a_credential_is_limited_and_sees_its_limit() {
    let limits = |config: &mut rapport_web::Config| {
        config.per_credential = Rate { per_second: 3, burst: 3 };
        config.per_address = Rate { per_second: 2, burst: 2 };
    };
    let server = Server::with(Engine::Sqlite, limits).await;
    for left in ["2", "1", "0"] {
        let answer = server.get("/api/accounts/").send().await;
        assert_eq!((answer.status, answer.header("x-ratelimit-remaining")), (200, Some(left)));
        assert_eq!(answer.header("x-ratelimit-limit"), Some("3"));
    }
    let refused = server.upsert(json!({"imported_id": "a"})).await;
    refused.expect_problem(429, "rate_limited");
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert!(server.app.find("a").is_none(), "a refused request changes nothing");
    for status in [401, 401, 429] {
        let answer = server.get("/api/accounts/").without_credential().send().await;
        assert_eq!(answer.status, status);
    }
    server.get("/health/live").send().await.expect(200);
    server.app.clock().advance_seconds(1);
    server.get("/api/accounts/").send().await.expect(200);
    server.get("/api/accounts/").without_credential().send().await.expect_problem(401, "unauthenticated");
}

#[tokio::test]
async fn health_and_metrics_need_no_credential() {
    for engine in Engine::BOTH {
        let figures = |config: &mut rapport_web::Config| {
            config.metrics = Some(std::sync::Arc::new(|| "figures 1\n".to_owned()));
        };
        let server = Server::with(engine, figures).await;
        for path in ["/health/live", "/health/ready"] {
            server.get(path).without_credential().send().await.expect(200);
        }
        let answer = server.get("/metrics").without_credential().send().await;
        assert_eq!((answer.status, answer.text()), (200, "figures 1\n"));
        server.app.app().store().close();
        server.get("/health/live").send().await.expect(200);
        server.get("/health/ready").send().await.expect_problem(503, "not_ready");
        let refused = server.upsert(json!({"imported_id": "a"})).await;
        refused.expect_problem(503, "stopping");
        assert!(refused.header("retry-after").is_some());
    }
}

#[tokio::test]
async fn the_docs_are_self_contained() {
    let server = Server::on(Engine::Sqlite).await;
    let document = server.get("/api/openapi.json").send().await.expect(200);
    assert_eq!(document["openapi"], json!("3.1.0"));
    let page = server.get("/api/docs/").send().await;
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(
        page.header("content-security-policy").unwrap().starts_with("default-src 'none'; style-src 'self'")
    );
    assert!(page.text().contains("/api/accounts/upsert-by-imported-id/"));
    assert_eq!(
        server.get("/api/docs/style.css").send().await.header("content-type"),
        Some("text/css; charset=utf-8")
    );
}

#[tokio::test]
async fn an_incomplete_body_or_head_times_out() {
    let hasty = |config: &mut rapport_web::Config| {
        config.body_timeout = Duration::from_millis(50);
        // A busy machine may be slow to send a head.
        config.header_timeout = Duration::from_secs(3);
    };
    let server = Server::with(Engine::Sqlite, hasty).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let token = server.app.token_text();
    let head = format!(
        "POST {UPSERT} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{{\"project\""
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");

    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET /health/live HTTP/1.1\r\nHos").await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert!(!answer.starts_with(b"HTTP/1.1 200"), "an incomplete head is not served");
}

#[tokio::test]
async fn shutdown_lets_running_requests_finish() {
    let server = Server::on(Engine::Sqlite).await;
    let address = server.address;
    let mut idle = TcpStream::connect(address).await.unwrap();
    let mut busy = TcpStream::connect(address).await.unwrap();
    let body = r#"{"project": "acme", "imported_id": "a"}"#;
    let head = format!(
        "POST {UPSERT} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nExpect: 100-continue\r\n\r\n",
        server.app.token_text(),
        body.len()
    );
    busy.write_all(head.as_bytes()).await.unwrap();
    // The service asks for the body, so the request is running from here on.
    let mut asked = [0; 25];
    busy.read_exact(&mut asked).await.unwrap();
    assert_eq!(&asked, b"HTTP/1.1 100 Continue\r\n\r\n");
    let stopping = tokio::spawn(server.stop());
    let mut nothing = Vec::new();
    idle.read_to_end(&mut nothing).await.unwrap();
    assert!(nothing.is_empty(), "an idle connection is closed");
    busy.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    busy.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    stopping.await.unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "nothing is listening any more");
}

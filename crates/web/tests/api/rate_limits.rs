//! Rate limits: per credential, reported on every API response, lifted only by time.

use rapport_domain::member::Role;
use rapport_testkit::Engine;
use rapport_web::{Config, Rate};
use serde_json::json;

use crate::harness::{Answer, INGEST, Server, Tenant, UPSERT, on_both_engines, path_of};

on_both_engines! {
    every_api_response_has_the_three_headers,
    the_ietf_headers_say_the_same,
    callers_without_a_valid_credential_are_told_the_limit_of_their_network,
    a_token_with_its_own_limit_is_held_to_it,
    a_limit_of_a_token_counts_from_its_first_request,
    a_limit_above_the_servers_changes_nothing,
    health_checks_have_no_headers_and_are_never_limited,
    a_credential_over_its_limit_is_429_with_retry_after,
    nothing_of_a_limited_request_is_applied,
    the_limit_is_lifted_by_time,
    credentials_are_limited_one_by_one,
    callers_without_a_credential_are_limited_far_lower_by_address,
    made_up_credentials_are_limited_by_address,
    two_thousand_requests_a_second_are_the_default,
}

/// A rate with this burst that regains one request per second.
fn slow(requests: u32) -> impl FnOnce(&mut Config) {
    move |config: &mut Config| config.per_credential = Rate { per_second: 1, burst: requests }
}

fn standing(answer: &Answer) -> Option<(u64, u64, u64)> {
    let number = |name| answer.header(name).map(|value| value.parse().expect("a whole number"));
    Some((number("x-ratelimit-limit")?, number("x-ratelimit-remaining")?, number("x-ratelimit-reset")?))
}

async fn every_api_response_has_the_three_headers(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "a"})).await;
    let path = path_of(&account);
    let answers = [
        (200, acme.upsert(json!({"imported_id": "a"})).await),
        (201, acme.upsert(json!({"imported_id": "b"})).await),
        (200, acme.ingest(json!([{"imported_id": "a", "kind": "app_opened"}])).await),
        (200, acme.get("/api/accounts/").send().await),
        (400, acme.post(UPSERT).text("{").send().await),
        (401, acme.get("/api/accounts/").without_credential().send().await),
        (401, acme.post(INGEST).text("{}").without_credential().send().await),
        (403, acme.upsert(json!({"project": "other", "imported_id": "a"})).await),
        (404, acme.get("/api/nothing/").send().await),
        (405, acme.delete(UPSERT).send().await),
        (409, acme.post("/api/accounts/").json(&json!({"name": "x", "imported_id": "a"})).send().await),
        (413, acme.ingest(json!(vec![json!({}); 101])).await),
        (415, acme.upserting(json!({})).header("content-type", "text/plain").send().await),
        (422, acme.upsert(json!({})).await),
        (200, acme.get("/api/openapi.json").without_credential().send().await),
        (204, acme.delete(&path).send().await),
    ];
    for (status, answer) in answers {
        assert_eq!(answer.status, status, "{answer:?}");
        let (limit, remaining, _) = standing(&answer).unwrap_or_else(|| panic!("{status} has no headers"));
        assert!(remaining < limit, "{status}: {remaining} of {limit}");
    }
}

/// `RateLimit-Policy` and `RateLimit`.
fn ietf(answer: &Answer) -> (&str, &str) {
    let header = |name| answer.header(name).unwrap_or_else(|| panic!("no {name}: {answer:?}"));
    (header("ratelimit-policy"), header("ratelimit"))
}

async fn the_ietf_headers_say_the_same(engine: Engine) {
    let server = Server::with(engine, |config| {
        config.per_credential = Rate { per_second: 2, burst: 4 };
        config.per_stranger = Rate { per_second: 1, burst: 3 };
    })
    .await;
    let answer = server.get("/api/accounts/").send().await;
    assert_eq!(ietf(&answer), (r#""default";q=4;w=2"#, r#""default";r=3;t=1"#));
    assert_eq!(standing(&answer), Some((2, 3, 1)));
    let answer = server.get("/api/accounts/").send().await;
    assert_eq!(ietf(&answer), (r#""default";q=4;w=2"#, r#""default";r=2;t=1"#));
    for _ in 0..2 {
        server.get("/api/accounts/").send().await.expect(200);
    }
    let refused = server.get("/api/accounts/").send().await;
    refused.expect_problem(429, "rate_limited");
    assert_eq!(ietf(&refused), (r#""default";q=4;w=2"#, r#""default";r=0;t=2"#));
    let reset = json!({"email": "nobody@acme.test"});
    let answer = server.post("/api/password-reset/").without_credential().json(&reset).send().await;
    assert_eq!(ietf(&answer), (r#""public";q=3;w=3"#, r#""public";r=2;t=1"#));
    // A credential is ignored there.
    let answer = server.post("/api/password-reset/").json(&reset).send().await;
    assert_eq!(ietf(&answer), (r#""public";q=3;w=3"#, r#""public";r=1;t=2"#));
}

async fn callers_without_a_valid_credential_are_told_the_limit_of_their_network(engine: Engine) {
    use rapport_domain::credential::{Kind, issue};
    let server = Server::with(engine, |config| config.per_address = Rate { per_second: 2, burst: 4 }).await;
    let policy = r#""network";q=4;w=2"#;
    let answer = server.get("/api/accounts/").without_credential().send().await;
    assert_eq!((answer.status, standing(&answer)), (401, Some((2, 3, 1))));
    assert_eq!(ietf(&answer), (policy, r#""network";r=3;t=1"#));
    let unknown = issue(Kind::ApiToken, server.company.id(), [9; 20]).text;
    let answer = server.get("/api/accounts/").token(&unknown).send().await;
    assert_eq!((answer.status, standing(&answer)), (401, Some((2, 2, 1))));
    assert_eq!(ietf(&answer), (policy, r#""network";r=2;t=1"#));
    let answer = server.get("/api/accounts/").header("authorization", "Bearer nonsense").send().await;
    assert_eq!(ietf(&answer), (policy, r#""network";r=1;t=2"#));
    server.get("/api/openapi.json").without_credential().send().await.expect(200);
    let refused = server.get("/api/accounts/").token(&unknown).send().await;
    assert_eq!((refused.status, ietf(&refused)), (429, (policy, r#""network";r=0;t=2"#)));
    let valid = server.get("/api/accounts/").send().await;
    assert_eq!(valid.status, 429, "it wasn't verified yet, so the network's limit applies");
    server.app.clock().advance_seconds(1);
    let valid = server.get("/api/accounts/").send().await;
    assert_eq!((valid.status, ietf(&valid).1.starts_with(r#""default""#)), (200, true));
}

/// A token with its own limit.
async fn limited_token(server: &Server, per_second: u32) -> String {
    let body = json!({"name": "Nightly", "role": "member", "rate_limit": per_second});
    let made = server.post("/api/tokens/").json(&body).send().await.expect(201);
    assert_eq!(made["rate_limit"], json!(per_second));
    made["token"].as_str().expect("a token").to_owned()
}

async fn a_token_with_its_own_limit_is_held_to_it(engine: Engine) {
    let server = Server::on(engine).await;
    let token = limited_token(&server, 2).await;
    let asking = || server.get("/api/accounts/").token(&token);
    let first = asking().send().await;
    assert_eq!((first.status, standing(&first)), (200, Some((2, 1, 1))), "also in the first response");
    assert_eq!(ietf(&first), (r#""default";q=2;w=1"#, r#""default";r=1;t=1"#));
    asking().send().await.expect(200);
    let refused = asking().send().await;
    refused.expect_problem(429, "rate_limited");
    assert_eq!((refused.header("retry-after"), standing(&refused)), (Some("1"), Some((2, 0, 1))));
    server.get("/api/accounts/").send().await.expect(200);
    let body = json!({"project": "acme", "imported_id": "a"});
    server.post(UPSERT).token(&token).json(&body).expect_refused(429, "rate_limited").await;
    server.app.clock().advance_seconds(3600);
    let statuses = [asking().send().await.status, asking().send().await.status, asking().send().await.status];
    assert_eq!(statuses, [200, 200, 429]);
}

async fn a_limit_of_a_token_counts_from_its_first_request(engine: Engine) {
    // A write learns the limit too, and so does a request that is refused for another reason.
    let server = Server::on(engine).await;
    let token = limited_token(&server, 1).await;
    let body = json!({"project": "acme", "imported_id": "a"});
    server.post(UPSERT).token(&token).json(&body).send().await.expect(201);
    server.post(UPSERT).token(&token).json(&body).expect_refused(429, "rate_limited").await;
    let token = limited_token(&server, 1).await;
    server.get("/api/audit/").token(&token).send().await.expect_problem(403, "role_required");
    server.get("/api/accounts/").token(&token).send().await.expect_problem(429, "rate_limited");
}

async fn a_limit_above_the_servers_changes_nothing(engine: Engine) {
    let server = Server::with(engine, slow(5)).await;
    let token = limited_token(&server, 500).await;
    let answer = server.get("/api/accounts/").token(&token).send().await;
    assert_eq!((answer.status, standing(&answer)), (200, Some((1, 4, 1))));
}

async fn health_checks_have_no_headers_and_are_never_limited(engine: Engine) {
    let server = Server::with(engine, |config| config.per_address = Rate { per_second: 1, burst: 1 }).await;
    for _ in 0..5 {
        for path in ["/health/live", "/health/ready"] {
            let answer = server.get(path).without_credential().send().await;
            assert_eq!((answer.status, standing(&answer)), (200, None));
        }
    }
}

async fn a_credential_over_its_limit_is_429_with_retry_after(engine: Engine) {
    let server = Server::with(engine, slow(3)).await;
    for left in [2, 1, 0] {
        let answer = server.get("/api/accounts/").send().await;
        assert_eq!((answer.status, standing(&answer)), (200, Some((1, left, 3 - left))));
    }
    for _ in 0..3 {
        let refused = server.get("/api/accounts/").send().await;
        refused.expect_problem(429, "rate_limited");
        assert_eq!(refused.header("retry-after"), Some("1"));
        assert_eq!(standing(&refused), Some((1, 0, 3)), "a refused request doesn't count");
    }
}

async fn nothing_of_a_limited_request_is_applied(engine: Engine) {
    let server = Server::with(engine, slow(1)).await;
    server.account(json!({"imported_id": "a"})).await;
    server.upserting(json!({"imported_id": "a", "status": "lost"})).expect_refused(429, "rate_limited").await;
    server.upserting(json!({"imported_id": "b"})).expect_refused(429, "rate_limited").await;
    let event = json!([{"imported_id": "a", "kind": "churned", "event_id": "e-1"}]);
    assert_eq!(server.ingest(json!([{"imported_id": "a", "kind": "custom"}])).await.status, 200);
    server.ingesting(event.clone()).expect_refused(429, "rate_limited").await;
    server.app.clock().advance_seconds(1);
    assert_eq!(
        server.ingest(event).await.expect(200)["accepted"],
        json!(1),
        "its event_id can still be used"
    );
}

async fn the_limit_is_lifted_by_time(engine: Engine) {
    let server = Server::with(engine, slow(2)).await;
    let status = async || server.get("/api/accounts/").send().await.status;
    assert_eq!([status().await, status().await, status().await], [200, 200, 429]);
    server.app.clock().advance_seconds(1);
    assert_eq!([status().await, status().await], [200, 429], "one request is regained per second");
    server.app.clock().advance_seconds(3600);
    assert_eq!(
        [status().await, status().await, status().await],
        [200, 200, 429],
        "never more than the burst"
    );
}

async fn credentials_are_limited_one_by_one(engine: Engine) {
    let server = Server::with(engine, slow(1)).await;
    let other = server.token_of(Role::Member);
    server.get("/api/accounts/").send().await.expect(200);
    server.get("/api/accounts/").expect_refused(429, "rate_limited").await;
    server.get("/api/accounts/").token(&other).send().await.expect(200);
    assert_eq!(server.ingest(json!([{"imported_id": "a", "kind": "custom"}])).await.status, 200);
}

async fn callers_without_a_credential_are_limited_far_lower_by_address(engine: Engine) {
    let limits = Config::default();
    assert!(limits.per_address.per_second * 10 <= limits.per_credential.per_second, "far lower by default");
    let server = Server::with(engine, |config| config.per_address = Rate { per_second: 1, burst: 2 }).await;
    for status in [401, 401, 429] {
        let answer = server.get("/api/accounts/").without_credential().send().await;
        assert_eq!(answer.status, status);
        assert!(standing(&answer).is_some());
    }
    server.get("/api/openapi.json").without_credential().send().await.expect_problem(429, "rate_limited");
    server.app.clock().advance_seconds(1);
    server.get("/api/accounts/").without_credential().send().await.expect_problem(401, "unauthenticated");
}

async fn made_up_credentials_are_limited_by_address(engine: Engine) {
    use rapport_domain::credential::{Kind, issue};
    let server = Server::with(engine, |config| config.per_address = Rate { per_second: 1, burst: 3 }).await;
    server.get("/api/accounts/").send().await.expect(200);
    for (number, status) in (0..).zip([401, 401, 401, 429, 429]) {
        let guess = issue(Kind::ApiToken, server.company.id(), [number; 20]).text;
        assert_eq!(server.get("/api/accounts/").token(&guess).send().await.status, status, "guess {number}");
    }
    server.get("/api/accounts/").send().await.expect(200);
}

async fn two_thousand_requests_a_second_are_the_default(engine: Engine) {
    let server =
        Server::with(engine, |config| config.per_credential = Config::default().per_credential).await;
    let answer = server.get("/api/accounts/").send().await;
    assert_eq!(standing(&answer), Some((2000, 1999, 1)));
}

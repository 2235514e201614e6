//! `--egress-proxy`: webhooks go through the proxy, and the guard still decides where.

use rapport_testkit::{Receiver, TestEgressProxy};
use serde_json::{Value, json};

use crate::program::{Place, wait_until};

const MOST_TRIES: usize = 60;

#[test]
fn webhooks_go_through_the_proxy_that_the_operator_names() {
    Place::each(|place| {
        let made =
            place.json(&["company", "create", "acme", "--name", "A", "--owner", "a@acme.test", "--json"]);
        let token = made["api_token"].as_str().expect("a token").to_owned();
        let receiver = Receiver::start();
        let proxy = TestEgressProxy::to(receiver.address());
        let url = format!("http://rapport:pw@{}", proxy.address());
        let authority = receiver.ca_file().to_str().expect("a path").to_owned();
        let options =
            ["--extra-ca", &authority, "--allow-destination", "127.0.0.0/8", "--egress-proxy", &url];
        let service = place.serve_with(&options);
        let authorization = format!("Bearer {token}");
        let post = |path: &str, body: &Value| {
            let headers = [("Authorization", authorization.as_str()), ("Content-Type", "application/json")];
            // On a loaded machine the service may be busy, and says so.
            let tries = (0..MOST_TRIES).map(|_| service.request("POST", path, &headers, &body.to_string()));
            let (status, answer) = tries.into_iter().find(|(status, _)| *status != 503).expect("an answer");
            (status, serde_json::from_str::<Value>(&answer).expect("JSON"))
        };
        let webhook = json!({ "url": receiver.url("/hook"), "events": ["account.created"] });
        let (status, made) = post("/api/webhooks/", &webhook);
        assert_eq!(status, 201, "{made}");
        let id = made["id"].as_str().expect("an id");
        assert_eq!(post(&format!("/api/webhooks/{id}/test/"), &json!({})).0, 202);
        wait_until("the test to arrive", || !receiver.requests().is_empty());
        let asked = proxy.asked();
        assert_eq!(asked[0].target, receiver.address().to_string());
        assert_eq!(asked[0].authorization.as_deref(), Some("Basic cmFwcG9ydDpwdw=="));
        let private = json!({ "url": "https://10.0.0.1/", "events": ["account.created"] });
        let (status, refused) = post("/api/webhooks/", &private);
        assert_eq!((status, &refused["errors"][0]["code"]), (422, &json!("forbidden_address")));
    });
}

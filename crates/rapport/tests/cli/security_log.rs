//! The service's log about security, without the access log: who was refused what, and what was recorded.

use std::fs;

use serde_json::{Value, json};

use crate::program::{Place, Service};

/// A company with its service, which logs as JSON, and the header with the company's token.
fn started() -> (Place, Service, String) {
    let place = Place::sqlite();
    let created = ["company", "create", "acme", "--name", "Acme", "--owner", "you@acme.test", "--json"];
    let token = format!("Bearer {}", place.json(&created)["api_token"].as_str().expect("a token"));
    let service = place.serve_with(&["--log-format", "json"]);
    (place, service, token)
}

/// The lines with this message.
fn lines(place: &Place, message: &str) -> Vec<Value> {
    let log = fs::read_to_string(place.path().join("service.log")).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    lines.filter(|line| line["fields"]["message"] == message).collect()
}

#[test]
fn every_refused_request_and_every_entry_of_the_audit_log_is_a_line() {
    let (place, service, owner) = started();
    let post = [("Authorization", owner.as_str()), ("Content-Type", "application/json")];
    let body = json!({"name": "hidden name", "role": "viewer"}).to_string();
    let (status, made) = service.request("POST", "/api/tokens/", &post, &body);
    assert_eq!(status, 201, "{made}");
    let made: Value = serde_json::from_str(&made).unwrap();
    let viewer = format!("Bearer {}", made["token"].as_str().expect("a token"));
    for request_id in ["abc-1", "abc-2", "abc-3"] {
        let headers = [("Authorization", viewer.as_str()), ("X-Request-Id", request_id)];
        assert_eq!(service.request("GET", "/api/audit/", &headers, "").0, 403);
    }

    let refused = lines(&place, "request refused");
    let fields: Vec<&Value> = refused.iter().map(|line| &line["fields"]).collect();
    let expected = ["abc-1", "abc-2", "abc-3"].map(|request_id| {
        json!({
            "message": "request refused", "company": 1, "client": "127.0.0.1", "request_id": request_id,
            "request": "GET /api/audit/", "reason": "only admins and owners can see and export the audit log",
        })
    });
    assert_eq!(fields, expected.iter().collect::<Vec<_>>());
    assert!(refused.iter().all(|line| line["level"] == "INFO"), "{refused:?}");

    let recorded = lines(&place, "recorded");
    let actions: Vec<&Value> = recorded.iter().map(|line| &line["fields"]["action"]).collect();
    assert_eq!(actions, ["token.created", "request.refused"], "a refusal is recorded once a minute");
    assert!(recorded.iter().all(|line| line["target"] == "audit"), "{recorded:?}");
    assert_eq!(recorded[0]["fields"]["target_id"], made["id"]);
    let log = fs::read_to_string(place.path().join("service.log")).unwrap();
    assert!(!log.contains("hidden name") && !log.contains(&viewer[7..]), "{log}");
}

#[test]
fn what_a_check_turns_away_is_a_line_a_minute_for_each_check() {
    let (place, service, token) = started();
    let secret = "rap_hunter2hunter2";
    for wrong in [format!("Bearer {secret}"), secret.to_owned(), format!("{token}x")] {
        let headers = [("Authorization", wrong.as_str()), ("X-Request-Id", "abc-1")];
        assert_eq!(service.request("GET", "/api/accounts/", &headers, "").0, 401);
    }
    assert_eq!(service.get("/api/accounts/").0, 401);
    for site in ["cross-site", "same-site"] {
        let headers = [("Sec-Fetch-Site", site), ("Content-Type", "application/x-www-form-urlencoded")];
        assert_eq!(service.request("POST", "/login", &headers, "email=a&password=hunter2").0, 403);
    }
    let post = [("Authorization", token.as_str()), ("Content-Type", "application/json")];
    for body in ["{}", "{", r#"{"name": 5}"#] {
        let status = service.request("POST", "/api/channels/", &post, body).0;
        assert!([400, 422].contains(&status), "{status}");
    }
    let reset = || {
        let headers = [("Content-Type", "application/json")];
        service.request("POST", "/api/password-reset/", &headers, r#"{"email": "a@b.test"}"#).0
    };
    assert!((0..60).any(|_| reset() == 429), "the limit of strangers");
    reset();

    let messages = [
        "credential refused",
        "form from another site refused",
        "invalid input refused",
        "request over a limit refused",
    ];
    for message in messages {
        let lines = lines(&place, message);
        assert_eq!(lines.len(), 1, "{message}: {lines:?}");
        assert_eq!(lines[0]["fields"], json!({"message": message, "client": "127.0.0.1", "count": 1}));
        assert!(lines[0]["span"]["id"].is_string(), "{lines:?}");
    }
    assert_eq!(lines(&place, messages[0])[0]["span"]["id"], "abc-1");
    let log = fs::read_to_string(place.path().join("service.log")).unwrap();
    assert!(!log.contains("hunter2"), "{log}");
}

//! The access log: one line for each request, with who asked and without secrets.

use std::fs;

use serde_json::{Value, json};

use crate::program::{Place, wait_until};

const SECRET: &str = "hunter2hunter2";

/// The lines of the access log, once there are this many.
fn lines(place: &Place, count: usize) -> Vec<Value> {
    let log = place.path().join("service.log");
    let read = || {
        let text = fs::read_to_string(&log).unwrap();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.filter(|line| line["target"] == "access").collect::<Vec<_>>()
    };
    wait_until("the access log", || read().len() >= count);
    read()
}

#[test]
fn every_request_is_a_line_with_its_id_and_its_caller() {
    let place = Place::sqlite();
    let created = ["company", "create", "acme", "--name", "Acme", "--owner", "you@acme.test", "--json"];
    let created = place.json(&created);
    let token = format!("Bearer {}", created["api_token"].as_str().unwrap_or_else(|| panic!("{created}")));
    let service = place.serve_with(&["--access-log", "--log-format", "json"]);
    let headers = [("Authorization", token.as_str()), ("X-Request-Id", "abc-1")];
    let (status, body) = service.request("GET", "/api/accounts/?q=someone@acme.test", &headers, "");
    assert_eq!(status, 200);
    service.get("/nowhere");

    let lines = lines(&place, 2);
    assert_eq!(lines.len(), 2, "{lines:?}");
    let mut fields = lines[0]["fields"].clone();
    let seconds = fields["seconds"].take();
    assert!(seconds.as_f64().is_some_and(|seconds| seconds > 0.0), "{seconds}");
    assert_eq!(
        fields,
        json!({
            "message": "request",
            "method": "GET",
            "path": "/api/accounts/",
            "status": 200,
            "seconds": null,
            "bytes": body.len(),
            "address": "127.0.0.1",
            "request_id": "abc-1",
            "company": 1,
        })
    );
    assert_eq!(lines[0]["level"], "INFO");
    let stranger = &lines[1]["fields"];
    assert_eq!((&stranger["path"], &stranger["status"]), (&json!("/nowhere"), &json!(404)));
    assert!(stranger.get("company").is_none() && stranger["request_id"].is_string(), "{stranger}");
}

#[test]
fn links_with_secrets_are_logged_without_them() {
    let place = Place::sqlite();
    let service = place.serve_with(&["--access-log", "--log-format", "json", "--log", "debug"]);
    let paths = ["invitation", "password-reset", "setup"].map(|link| format!("/{link}/{SECRET}"));
    for path in &paths {
        service.get(path);
        service.get(&format!("{path}/"));
        service.get(&format!("/login?next={path}"));
    }
    lines(&place, 3 * paths.len());
    let log = fs::read_to_string(place.path().join("service.log")).unwrap();
    assert!(log.contains("/invitation/{token}") && log.contains("/setup/…"), "{log}");
    assert!(!log.contains(SECRET), "{log}");
}

#[test]
fn failed_logins_are_in_the_log_with_their_client_and_without_the_password() {
    let place = Place::sqlite();
    place.json(&["company", "create", "acme", "--name", "Acme", "--owner", "you@acme.test", "--json"]);
    let service = place.serve_with(&["--log-format", "json"]);
    let headers = [
        ("Content-Type", "application/x-www-form-urlencoded"),
        ("Sec-Fetch-Site", "same-origin"),
        ("X-Request-Id", "abc-1"),
    ];
    // Someone else's address, an unknown one, and a password in the wrong field.
    for typed in ["you%40acme.test", "nobody%40acme.test", SECRET] {
        let body = format!("email={typed}&password={SECRET}");
        let (status, _) = service.request("POST", "/login", &headers, &body);
        assert_eq!(status, 422);
    }
    let log = fs::read_to_string(place.path().join("service.log")).unwrap();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let lines: Vec<Value> = lines.filter(|line| line["fields"]["message"] == "login failed").collect();
    let addresses: Vec<&Value> = lines.iter().map(|line| &line["fields"]["email"]).collect();
    assert_eq!(addresses, [&json!("you@acme.test"), &json!("nobody@acme.test"), &Value::Null]);
    for line in &lines {
        assert_eq!(
            (&line["level"], &line["fields"]["client"]),
            (&json!("INFO"), &json!("127.0.0.1")),
            "{line}"
        );
        assert_eq!(line["span"]["id"], "abc-1", "{line}");
    }
    assert!(!log.contains(SECRET), "{log}");
}

#[test]
fn it_is_off_unless_asked_for_and_can_be_turned_off_again() {
    let place = Place::sqlite();
    for options in [&["--log-format", "json"][..], &["--log-format", "json", "--access-log=false"]] {
        let mut service = place.serve_with(options);
        service.get("/health/live");
        service.signal("TERM");
        service.wait();
        let log = fs::read_to_string(place.path().join("service.log")).unwrap();
        assert!(log.contains("stopped") && !log.contains("\"access\""), "{log}");
    }
}

//! `rapport copy`: moves a company between engines, next to the service, and refuses what it must.

use std::fs;

use serde_json::Value;

use crate::program::{Place, Service, program, run};

fn company(place: &Place) -> String {
    let create = ["company", "create", "acme", "--name", "Acme", "--owner", "you@acme.test", "--json"];
    place.json(&create)["api_token"].as_str().unwrap().to_owned()
}

fn upsert(service: &Service, token: &str, id: &str) -> u16 {
    let headers = [("Authorization", &*format!("Bearer {token}")), ("Content-Type", "application/json")];
    let body = format!(r#"{{"project": "acme", "imported_id": "{id}", "name": "Nordlys"}}"#);
    service.request("POST", "/api/accounts/upsert-by-imported-id/", &headers, &body).0
}

fn accounts(service: &Service, token: &str) -> usize {
    let headers = [("Authorization", &*format!("Bearer {token}"))];
    let (status, body) = service.request("GET", "/api/accounts/", &headers, "");
    assert_eq!(status, 200, "{body}");
    serde_json::from_str::<Value>(&body).unwrap()["items"].as_array().unwrap().len()
}

fn address(place: &Place) -> String {
    match place.database() {
        rapport_store::Database::Sqlite(_) => place.path().display().to_string(),
        rapport_store::Database::Postgres(url) => url,
    }
}

#[test]
fn a_company_moves_to_the_other_engine_and_back_while_it_is_served() {
    let (first, second, third) = (Place::sqlite(), Place::postgres(), Place::sqlite());
    let token = company(&first);
    for (n, (from, to)) in [(&first, &second), (&second, &third)].into_iter().enumerate() {
        let service = from.serve();
        assert_eq!(upsert(&service, &token, &format!("crm-{n}")), 201);
        let copied = run(&mut program(&["copy", &address(from), &address(to)]));
        assert_eq!(copied.code, Some(0), "{}", copied.stderr);
        assert!(copied.stdout.contains("Counts and checksums are equal."), "{}", copied.stdout);
        assert!(copied.stderr.contains("copied"), "progress is shown: {}", copied.stderr);
        assert_eq!(upsert(&service, &token, "later"), 201, "the source goes on");
        fs::copy(from.path().join("secret.key"), to.path().join("secret.key")).unwrap();
        drop(service);
        let service = to.serve();
        assert_eq!(accounts(&service, &token), n + 1);
        let refused = run(&mut program(&["copy", &address(from), &address(to)]));
        assert_eq!(refused.code, Some(1), "{}", refused.stdout);
        assert_eq!(accounts(&service, &token), n + 1);
    }
}

#[test]
fn nothing_starts_on_an_interrupted_copy() {
    let (file, server) = (Place::sqlite(), Place::postgres());
    fs::write(file.path().join("rapport.db.part"), "half a database").unwrap();
    rapport_testkit::raw::run(&server.database(), "CREATE TABLE copy_incomplete (since TIMESTAMPTZ)");
    for place in [&file, &server] {
        for command in
            [&["serve", "--listen", "127.0.0.1:0"][..], &["migrate"], &["company", "list"], &["doctor"]]
        {
            let ended = place.run(command);
            assert_eq!(ended.code, Some(1), "{command:?}: {}", ended.stdout);
            let said = format!("{}{}", ended.stdout, ended.stderr);
            assert!(said.contains("was interrupted"), "{command:?}: {said}");
        }
    }
    assert!(!file.path().join("rapport.db").exists());
}

#[test]
fn a_copy_names_what_is_wrong_with_its_places() {
    let (source, target, empty) = (Place::sqlite(), Place::sqlite(), Place::sqlite());
    company(&source);
    let _running = target.serve();
    let table = [
        ("/nowhere/rapport.db".to_owned(), address(&empty), "/nowhere/rapport.db does not exist"),
        (address(&source), address(&target), "another rapport"),
        (
            address(&source),
            "postgres://u:hunter2@127.0.0.1:1/none".to_owned(),
            "was not copied to postgres://u:****@",
        ),
    ];
    for (from, to, expected) in table {
        let refused = run(&mut program(&["copy", &from, &to]));
        assert_eq!(refused.code, Some(1), "{from} to {to}");
        assert!(refused.stderr.contains(expected), "{}", refused.stderr);
        assert!(!refused.stderr.contains("hunter2"), "{}", refused.stderr);
    }
}

//! `rapport company`, `rapport token` and `rapport key`: what they print.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::program::{Place, run, within};

const CREATE: [&str; 7] = ["company", "create", "acme", "--name", "Acme", "--owner", "You@acme.test"];

fn members(value: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

#[test]
fn creating_a_company_prints_one_json_object() {
    Place::each(|place| {
        let created = place.json(&[&CREATE[..], &["--json"]].concat());
        assert_eq!(members(&created), ["api_token", "ingest_key", "owner", "project"]);
        assert_eq!(members(&created["owner"]), ["email", "link", "mailed"]);
        assert_eq!(created["project"], "acme");
        assert_eq!(created["owner"]["email"], "you@acme.test");
        assert!(created["api_token"].as_str().unwrap().starts_with("rap_"));
        assert!(created["ingest_key"].as_str().unwrap().starts_with("rik_"));
        assert_eq!(created["owner"]["mailed"], false);
        assert!(created["owner"]["link"].as_str().unwrap().contains("/invitation/rjn_"), "{created}");

        let listed = place.json(&["company", "list", "--json"]);
        assert_eq!(listed.as_array().unwrap().len(), 1);
        assert_eq!((&listed[0]["project"], &listed[0]["name"]), (&json!("acme"), &json!("Acme")));
    });
}

#[test]
fn creating_a_company_says_nothing_about_its_owner() {
    let place = Place::sqlite();
    place.json(&[&CREATE[..], &["--json"]].concat());
    let arguments = ["company", "create", "other", "--name", "Other", "--owner", "you@acme.test", "--json"];
    let owner = place.json(&arguments)["owner"].clone();
    assert_eq!(members(&owner), ["email", "link", "mailed"], "the same as for an unknown address");
}

#[test]
fn a_taken_project_is_an_error_even_with_json() {
    let place = Place::sqlite();
    assert_eq!(place.run(&CREATE).code, Some(0));
    let again = place.run(&[&CREATE[..], &["--json"]].concat());
    assert_eq!((again.code, again.stdout.as_str()), (Some(1), ""));
    assert_eq!(again.stderr, "rapport: the company acme already exists\n");
}

#[test]
fn without_json_the_output_is_for_people() {
    let place = Place::sqlite();
    let printed = place.run(&CREATE).stdout;
    for part in ["acme", "rap_", "rik_", "you@acme.test", "/invitation/rjn_", "shown only once"] {
        assert!(printed.contains(part), "{part} is missing in:\n{printed}");
    }
    assert!(place.run(&["company", "list"]).stdout.contains("Acme"));
}

#[test]
fn tokens_are_created_listed_and_revoked() {
    let place = Place::sqlite();
    place.run(&CREATE);
    let arguments = ["token", "create", "--project", "acme", "--name", "CRM", "--role", "admin", "--json"];
    let made = place.json(&arguments);
    assert!(made["token"].as_str().unwrap().starts_with("rap_"));
    assert_eq!((&made["role"], &made["name"]), (&json!("admin"), &json!("CRM")));

    let list = || place.json(&["token", "list", "--project", "acme", "--json"]);
    let names = |listed: &Value| -> Vec<String> {
        listed.as_array().unwrap().iter().map(|token| token["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&list()), ["CRM", "First token"]);
    let revoked = place.run(&["token", "revoke", made["id"].as_str().unwrap()]);
    assert_eq!(revoked.code, Some(0), "{}", revoked.stderr);
    assert_eq!(names(&list()), ["First token"]);
    let again = place.run(&["token", "revoke", made["id"].as_str().unwrap()]);
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains("no such token: crd_"), "{}", again.stderr);
}

#[test]
fn keys_are_rotated() {
    let place = Place::sqlite();
    let created = place.json(&[&CREATE[..], &["--json"]].concat());
    let rotate = |kind: &str| place.json(&["key", "rotate", kind, "--project", "acme", "--json"]);
    let ingest = rotate("ingest");
    assert!(ingest["ingest_key"].as_str().unwrap().starts_with("rik_"));
    assert_ne!(ingest["ingest_key"], created["ingest_key"]);
    assert!(rotate("inbound")["inbound_key"].as_str().unwrap().starts_with("rin_"));
    let unknown = place.run(&["key", "rotate", "ingest", "--project", "nobody"]);
    assert_eq!((unknown.code, unknown.stderr.as_str()), (Some(1), "rapport: no such company: nobody\n"));
}

#[test]
fn files_are_private_to_their_owner() {
    let place = Place::sqlite();
    let data_dir = place.path().join("new");
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let create = ["company", "create", "acme", "--name", "Acme", "--owner", "you@acme.test"];
    let mut command = place.command(&create);
    command.env("RAPPORT_DATA_DIR", &data_dir);
    let ended = run(&mut within("umask 000", &command));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(mode(&data_dir), 0o700);
    let _service =
        place.serve_within(&format!("umask 000 && export RAPPORT_DATA_DIR='{}'", data_dir.display()));
    let names =
        fs::read_dir(&data_dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    let expected =
        ["rapport.db", "rapport.db-shm", "rapport.db-wal", "rapport.db.lock", "rapport.lock", "secret.key"];
    assert_eq!(names, expected);
    for name in names {
        assert_eq!(mode(&data_dir.join(&name)), 0o600, "{name}");
    }
}

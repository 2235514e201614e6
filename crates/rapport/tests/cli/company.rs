//! `rapport company`, `rapport token` and `rapport key`: what they print.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use rapport_testkit::Archive;
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
fn a_domain_is_one_companys_until_it_is_released() {
    Place::each(|place| {
        place.json(&[&CREATE[..], &["--json"]].concat());
        place.json(&["company", "create", "other", "--name", "Other", "--owner", "you@other.test", "--json"]);
        let run = |arguments: &[&str]| {
            let ended = place.run(arguments);
            (ended.code, ended.stdout, ended.stderr)
        };
        let domains = |project: &str| {
            let listed = place.json(&["company", "domains", project, "--json"]);
            let names =
                listed.as_array().unwrap().iter().map(|item| item["domain"].as_str().unwrap().to_owned());
            names.collect::<Vec<_>>()
        };
        assert_eq!(run(&["company", "domains", "acme"]).1, "No confirmed domains yet.\n");
        let claimed = run(&["company", "claim-domain", "acme", "Acme.Test"]);
        assert_eq!(claimed.0, Some(0), "{}", claimed.2);
        assert!(claimed.1.contains("acme.test is confirmed as a domain of Acme"), "{}", claimed.1);
        assert_eq!(
            run(&["company", "claim-domain", "acme", "acme.test"]).0,
            Some(0),
            "again changes nothing"
        );
        let (code, _, error) = run(&["company", "claim-domain", "other", "acme.test"]);
        let expected = "rapport: acme.test is a domain of the company acme; release it there first\n";
        assert_eq!((code, error.as_str()), (Some(1), expected));
        assert_eq!((domains("acme"), domains("other").len()), (vec!["acme.test".to_owned()], 0));
        let (code, _, error) = run(&["company", "release-domain", "other", "acme.test"]);
        assert_eq!((code, error.as_str()), (Some(1), "rapport: no such confirmed domain of this company\n"));
        assert_eq!(run(&["company", "release-domain", "acme", "acme.test"]).0, Some(0));
        assert_eq!(run(&["company", "claim-domain", "other", "acme.test"]).0, Some(0));
        assert_eq!(run(&["company", "claim-domain", "nobody", "b.test"]).0, Some(1));
    });
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
fn a_company_is_exported_into_a_private_file() {
    Place::each(|place| {
        place.run(&CREATE);
        let file = place.path().join("acme.jsonl");
        let path = file.to_str().unwrap();
        let ended = place.run(&["company", "export", "acme", path]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let text = fs::read_to_string(&file).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((&lines[0]["project"], &lines[0]["settings"]["name"]), (&json!("acme"), &json!("Acme")));
        let end = lines.last().unwrap();
        assert_eq!((&end["end"], &end["rows"]), (&json!(true), &json!(lines.len() - 2)));
        assert!(lines.iter().any(|line| line["row"]["email"] == "you@acme.test"), "{text}");
        let again = place.run(&["company", "export", "acme", path]);
        assert_eq!(again.code, Some(1), "it overwrites nothing");
        assert!(again.stderr.contains(path), "{}", again.stderr);
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
        let file = place.path().join("acme.zip");
        let ended = place.run(&["company", "export", "acme", file.to_str().unwrap(), "--format", "csv"]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let archive = Archive::read(&fs::read(&file).unwrap());
        assert_eq!(archive.json("about.json")["settings"]["name"], json!("Acme"));
        assert_eq!(archive.rows("invitation")[0]["email"], "you@acme.test");
        assert_eq!(place.run(&["company", "export", "acme", path, "--format", "xml"]).code, Some(2));
    });
}

#[test]
fn an_account_is_exported_by_its_id_or_imported_id() {
    Place::each(|place| {
        let created = place.json(&[&CREATE[..], &["--json"]].concat());
        let token = format!("Bearer {}", created["api_token"].as_str().unwrap());
        let service = place.serve();
        let body = json!({"imported_id": "crm-1", "name": "Nordlys", "status": "customer"});
        let headers = [("Authorization", token.as_str()), ("Content-Type", "application/json")];
        let (status, answer) = service.request("POST", "/api/accounts/", &headers, &body.to_string());
        assert_eq!(status, 201, "{answer}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let id = answer["id"].as_str().unwrap();
        let export = |name: &str, file: &str, options: &[&str]| {
            let path = place.path().join(file);
            let arguments = ["account", "export", "acme", name, path.to_str().unwrap()];
            (place.run(&[&arguments[..], options].concat()), path)
        };
        let (ended, file) = export("crm-1", "one.jsonl", &[]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(ended.stdout.contains(&format!("rows about {id} to ")), "{}", ended.stdout);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let text = fs::read_to_string(&file).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(
            (&lines[0]["account"], &lines[0]["format"]),
            (&json!(id), &json!("rapport account export"))
        );
        assert!(lines.iter().any(|line| line["table"] == "status_history"), "{text}");
        assert_eq!(lines.last().unwrap()["tables"]["account"], json!(1));
        let (ended, file) = export(id, "one.zip", &["--format", "csv"]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert_eq!(Archive::read(&fs::read(file).unwrap()).rows("account")[0]["name"], "Nordlys");
        let (unknown, file) = export("crm-9", "none.jsonl", &[]);
        assert_eq!((unknown.code, unknown.stderr.as_str()), (Some(1), "rapport: no such account: crm-9\n"));
        assert!(!file.exists());
    });
}

#[test]
fn a_company_is_deleted_after_a_while_or_at_once_or_kept() {
    Place::each(|place| {
        place.run(&CREATE);
        let other =
            ["company", "create", "globex", "--name", "Globex", "--owner", "you@globex.test", "--json"];
        let globex = place.json(&other);
        let delete = |options: &[&str]| place.run(&[&["company", "delete", "acme"], options].concat());
        let projects = || -> Vec<String> {
            let listed = place.json(&["company", "list", "--json"]);
            listed.as_array().unwrap().iter().map(|one| one["project"].as_str().unwrap().to_owned()).collect()
        };
        for options in [&[][..], &["--now"]] {
            let asked = delete(options);
            assert_eq!((asked.code, asked.stdout.as_str()), (Some(1), ""));
            assert!(asked.stderr.contains("rapport company export acme") && asked.stderr.contains("--yes"));
        }
        let scheduled = delete(&["--yes"]);
        assert_eq!(scheduled.code, Some(0), "{}", scheduled.stderr);
        assert!(scheduled.stdout.contains("acme will be deleted on"), "{}", scheduled.stdout);
        assert_eq!(delete(&["--yes"]).stderr, "rapport: the company is waiting to be deleted already\n");
        assert_eq!(delete(&["--cancel"]).stdout, "acme won't be deleted.\n");
        assert_eq!(delete(&["--cancel"]).stderr, "rapport: no such deletion\n");
        assert_eq!(delete(&["--cancel", "--now"]).code, Some(2));
        assert_eq!(projects(), ["acme", "globex"]);

        // Next to a running service, whose other companies notice nothing.
        let service = place.serve();
        let ended = delete(&["--yes", "--now"]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(ended.stdout.starts_with("Deleted acme with "), "{}", ended.stdout);
        assert_eq!(projects(), ["globex"]);
        let token = format!("Bearer {}", globex["api_token"].as_str().unwrap());
        let (status, _) = service.request("GET", "/api/settings/", &[("Authorization", &token)], "");
        assert_eq!(status, 200);
        assert_eq!(delete(&["--yes"]).stderr, "rapport: no such company: acme\n");
    });
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
fn a_token_expires_and_belongs_to_a_member() {
    let place = Place::sqlite();
    let created = place.json(&[&CREATE[..], &["--json"]].concat());
    let service = place.serve();
    service.accept(&created, "kestrel over 7 bridges");
    let create = ["token", "create", "--project", "acme", "--name", "CRM", "--role", "member"];
    let with = |options: &[&str]| place.run(&[&create[..], options].concat());
    let owner = created["owner"]["email"].as_str().unwrap();
    let made = place.json(
        &[
            &create[..],
            &[
                "--owner",
                owner,
                "--expires",
                "2031-01-31T12:00:00+01:00",
                "--requests-per-second",
                "20",
                "--json",
            ],
        ]
        .concat(),
    );
    assert!(made["owner"].as_str().unwrap().starts_with("per_"), "{made}");
    assert_eq!(made["expires_at"], json!("2031-01-31T11:00:00Z"));
    assert_eq!(made["rate_limit"], json!(20));
    let bearer = format!("Bearer {}", made["token"].as_str().unwrap());
    assert_eq!(service.request("GET", "/api/accounts/", &[("Authorization", &bearer)], "").0, 200);
    let listed = place.run(&["token", "list", "--project", "acme"]).stdout;
    assert!(listed.contains(", expires 2031-01-31T11:00:00Z, 20 requests/s"), "{listed}");

    let table: [(&[&str], i32, &str); 4] = [
        (&["--requests-per-second", "0"], 2, "--requests-per-second"),
        (&["--owner", "nobody@acme.test"], 1, "no active member of acme has the address nobody@acme.test"),
        (&["--expires", "2020-01-31"], 1, "expires_at must be in the future"),
        (&["--expires", "soon"], 2, "--expires"),
    ];
    for (options, code, words) in table {
        let ended = with(options);
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
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

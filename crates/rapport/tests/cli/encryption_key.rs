//! The key that encrypts secrets: a database refuses every key but its own, and its key can be changed while the
//! service runs.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use rapport_domain::id::WebhookId;
use rapport_store::Database;
use rapport_testkit::Receiver;
use serde_json::{Value, json};

use crate::program::{Ended, Place, Service, wait_until};

const SERVE: [&str; 3] = ["serve", "--listen", "127.0.0.1:0"];
const TOKEN: [&str; 7] = ["token", "create", "--project", "acme", "--name", "Second", "--json"];
/// Longer than anything takes on a busy machine.
const LIMIT: Duration = Duration::from_mins(1);
const OTHER_KEY: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn create_company(place: &Place) -> Value {
    place.json(&["company", "create", "acme", "--name", "Acme", "--owner", "you@acme.test", "--json"])
}

fn post(service: &Service, path: &str, token: &str, body: &str) -> (u16, Value) {
    let headers = [("Authorization", &*format!("Bearer {token}")), ("Content-Type", "application/json")];
    let (status, body) = service.request("POST", path, &headers, body);
    (status, serde_json::from_str(&body).unwrap_or(Value::Null))
}

/// A place whose database contains a webhook's secret.
fn with_secret(place: &Place) {
    let service = place.serve();
    let created = create_company(place);
    let body = r#"{"url": "https://192.0.2.1/hooks", "events": ["account.created"]}"#;
    let (status, answer) = post(&service, "/api/webhooks/", text(&created["api_token"]), body);
    assert_eq!(status, 422, "a documentation address is not public");
    assert!(answer.to_string().contains("--allow-destination 192.0.2.1"), "{answer}");
    let body = r#"{"url": "https://8.8.8.8/hooks", "events": ["account.created"]}"#;
    let (status, answer) = post(&service, "/api/webhooks/", text(&created["api_token"]), body);
    assert_eq!(status, 201, "{answer}");
}

fn refused(ended: &Ended, parts: &[&str]) {
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    for part in parts {
        assert!(ended.stderr.contains(part), "{part} is missing in: {}", ended.stderr);
    }
}

#[test]
fn a_missing_key_next_to_a_filled_database_is_refused_and_not_replaced() {
    Place::each(|place| {
        with_secret(place);
        let key = place.path().join("secret.key");
        let aside = fs::read(&key).unwrap();
        fs::remove_file(&key).unwrap();
        refused(&place.run(&SERVE), &["secret.key is missing", "put that key back"]);
        assert!(!key.exists(), "a new key was created");
        let ended = place.run(&["doctor", "--listen", "127.0.0.1:0"]);
        assert_eq!(ended.code, Some(1), "{}", ended.stdout);
        assert!(ended.stdout.lines().any(|line| line.starts_with("fail") && line.contains("secret.key")));
        fs::write(&key, aside).unwrap();
        assert_eq!(place.serve().get("/health/ready").0, 200);
    });
}

#[test]
fn another_key_is_refused_by_every_command() {
    Place::each(|place| {
        with_secret(place);
        let shown = place.run(&["key"]);
        assert_eq!(shown.code, Some(0), "{}", shown.stderr);
        let own = fingerprint_in(&shown.stdout, "key   ");
        assert_eq!(fingerprint_in(&shown.stdout, "database"), own);
        fs::write(place.path().join("secret.key"), OTHER_KEY).unwrap();
        let commands: [&[&str]; 4] = [&SERVE, &["company", "list"], &["key", "re-encrypt"], &["key"]];
        for command in commands {
            refused(&place.run(command), &["has the key", &own, "put that key back", "rapport key reset"]);
        }
        let ended = place.run(&["doctor", "--listen", "127.0.0.1:0"]);
        assert_eq!(ended.code, Some(1), "{}", ended.stdout);
        assert!(ended.stdout.lines().any(|line| line.starts_with("fail") && line.contains(&own)));
    });
}

#[test]
fn a_second_node_needs_the_key_of_the_first() {
    let first = Place::postgres();
    let _service = first.serve();
    let second = first.beside();
    let key = second.path().join("secret.key");
    fs::remove_file(&key).unwrap();
    refused(&second.run(&SERVE), &["secret.key is missing", "from another node"]);
    assert!(!key.exists(), "a new key was created");
    fs::write(&key, OTHER_KEY).unwrap();
    refused(&second.run(&SERVE), &["has the key"]);
    fs::copy(first.path().join("secret.key"), &key).unwrap();
    assert_eq!(second.serve().get("/health/ready").0, 200);
}

#[test]
fn an_upgraded_database_adopts_only_a_key_that_decrypts_it() {
    Place::each(|place| {
        with_secret(place);
        let own = fingerprint_in(&place.run(&["key"]).stdout, "database");
        // As a database from before fingerprints is right after its upgrade.
        execute(place, "DELETE FROM encryption_key");
        let key = place.path().join("secret.key");
        let aside = fs::read(&key).unwrap();
        fs::write(&key, OTHER_KEY).unwrap();
        refused(&place.run(&SERVE), &["encrypted with another key"]);
        fs::remove_file(&key).unwrap();
        refused(&place.run(&SERVE), &["secret.key is missing", "encrypted with another key"]);
        assert!(!key.exists(), "a new key was created");
        fs::write(&key, aside).unwrap();
        assert_eq!(place.run(&["doctor", "--listen", "127.0.0.1:0"]).code, Some(0));
        drop(place.serve());
        assert_eq!(fingerprint_in(&place.run(&["key"]).stdout, "database"), own);
    });
}

#[test]
fn a_lost_key_can_be_given_up() {
    Place::each(|place| {
        with_secret(place);
        let key = place.path().join("secret.key");
        refused(&place.run(&["key", "reset", "--yes"]), &["nothing to reset"]);
        fs::remove_file(&key).unwrap();
        refused(&place.run(&["key", "reset"]), &["gives up these secrets", "https://8.8.8.8/hooks"]);
        assert!(!key.exists(), "only --yes changes anything");
        let ended = place.run(&["key", "reset", "--yes"]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(ended.stdout.contains("https://8.8.8.8/hooks"), "{}", ended.stdout);
        let service = place.serve();
        let (token, webhook) = (place.json(&TOKEN), one(place, "webhook"));
        let path = format!("/api/webhooks/{webhook}/rotate/");
        assert_eq!(post(&service, &path, text(&token["token"]), "{}").0, 200);
        assert_eq!(place.run(&["key", "re-encrypt"]).code, Some(0), "the new secret is readable");
    });
}

/// The webhooks of two companies, so that a change of the key can stop between them.
struct Scene<'a> {
    place: &'a Place,
    receiver: Receiver,
    companies: Vec<(String, String, String)>,
}

impl<'a> Scene<'a> {
    fn new(place: &'a Place) -> (Self, Service) {
        let receiver = Receiver::start();
        let ca = receiver.ca_file().to_str().unwrap();
        let service = place.serve_with(&["--extra-ca", ca, "--allow-destination", "127.0.0.1"]);
        let mut companies = Vec::new();
        for slug in ["first", "second"] {
            let owner = format!("you@{slug}.test");
            let create = ["company", "create", slug, "--name", slug, "--owner", &owner, "--json"];
            let token = text(&place.json(&create)["api_token"]).to_owned();
            let body = json!({"url": receiver.url("/hook"), "events": ["account.created"]}).to_string();
            let (status, made) = post(&service, "/api/webhooks/", &token, &body);
            assert_eq!(status, 201, "{made}");
            companies.push((slug.to_owned(), token, text(&made["secret"]).to_owned()));
        }
        (Self { place, receiver, companies }, service)
    }

    /// Creates an account in each company, and checks that each webhook arrives with the right signature.
    fn deliver(&self, service: &Service, name: &str) {
        for (slug, token, secret) in &self.companies {
            let before = self.receiver.requests().len();
            let body = json!({"project": slug, "imported_id": name}).to_string();
            assert_eq!(post(service, "/api/accounts/upsert-by-imported-id/", token, &body).0, 201);
            let requests = self.receiver.wait_for(before + 1, LIMIT);
            let request = requests.last().unwrap();
            let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret.as_bytes());
            let tag = data_encoding::HEXLOWER.encode(ring::hmac::sign(&key, &request.body).as_ref());
            assert_eq!(request.header("x-service-signature"), format!("sha256={tag}"), "{slug}, {name}");
        }
    }

    fn secrets(&self) -> Vec<Vec<u8>> {
        bytes(self.place, "SELECT secret FROM webhook ORDER BY company")
    }
}

#[test]
fn the_key_changes_while_the_service_runs_even_if_the_change_is_killed() {
    Place::each(|place| {
        let (scene, service) = Scene::new(place);
        scene.deliver(&service, "before");
        let (old, before) = (fingerprint_in(&place.run(&["key"]).stdout, "database"), scene.secrets());

        let obstacle = Obstacle::at_second_company(place);
        let mut change = place.command(&["key", "re-encrypt"]).stdout(Stdio::null()).spawn().unwrap();
        wait_until("the first company's secret to be re-encrypted", || scene.secrets()[0] != before[0]);
        change.kill().unwrap();
        change.wait().unwrap();
        drop(obstacle);
        assert_eq!(scene.secrets()[1], before[1], "the change was killed before the second company");
        assert_eq!(fs::read_to_string(place.path().join("secret.key")).unwrap().lines().count(), 2);
        scene.deliver(&service, "halfway");

        let ended = place.run(&["key", "re-encrypt"]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(ended.stdout.contains("under the new key: 1\n"), "{}", ended.stdout);
        assert_ne!(scene.secrets()[1], before[1]);
        scene.deliver(&service, "after");
        let shown = place.run(&["key"]).stdout;
        let new = fingerprint_in(&shown, "key   ");
        assert_eq!(fingerprint_in(&shown, "database"), new);
        assert_ne!(new, old);
        let kept = place.path().join(format!("secret.key.{old}"));
        assert!(kept.exists(), "backups made before need it");

        drop(service);
        let ca = scene.receiver.ca_file().to_str().unwrap();
        let service = place.serve_with(&["--extra-ca", ca, "--allow-destination", "127.0.0.1"]);
        scene.deliver(&service, "restarted");
    });
}

#[test]
fn a_prepared_key_is_used_by_nodes_with_files_of_their_own() {
    let first = Place::postgres();
    let (scene, service) = Scene::new(&first);
    scene.deliver(&service, "before");
    let second = first.beside();
    let ended = first.run(&["key", "re-encrypt", "--prepare"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("Copy the file to every node"), "{}", ended.stdout);
    fs::copy(first.path().join("secret.key"), second.path().join("secret.key")).unwrap();
    let ended = second.run(&["key", "re-encrypt"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("under the new key: 2\n"), "{}", ended.stdout);
    scene.deliver(&service, "after");
    let ended = first.run(&["key", "re-encrypt"]);
    assert!(ended.stdout.contains("already encrypted under the new key"), "{}", ended.stdout);
    let keys = |place: &Place| fs::read_to_string(place.path().join("secret.key")).unwrap();
    assert_eq!(keys(&first), keys(&second));
    assert_eq!(keys(&first).lines().count(), 1);
}

/// The fingerprint on the line that begins with this.
fn fingerprint_in(shown: &str, line: &str) -> String {
    let found = shown.lines().find_map(|text| text.strip_prefix(line));
    found.unwrap_or_else(|| panic!("{line} is missing in:\n{shown}")).trim().to_owned()
}

fn execute(place: &Place, sql: &str) {
    match place.database() {
        Database::Sqlite(path) => rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap(),
        Database::Postgres(url) => {
            postgres::Client::connect(&url, postgres::NoTls).unwrap().batch_execute(sql).unwrap();
        }
    }
}

fn bytes(place: &Place, sql: &str) -> Vec<Vec<u8>> {
    match place.database() {
        Database::Sqlite(path) => {
            let connection = rusqlite::Connection::open(path).unwrap();
            let mut statement = connection.prepare(sql).unwrap();
            statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
        }
        Database::Postgres(url) => {
            let mut client = postgres::Client::connect(&url, postgres::NoTls).unwrap();
            client.query(sql, &[]).unwrap().iter().map(|row| row.get(0)).collect()
        }
    }
}

/// The id of the only webhook.
fn one(place: &Place, table: &str) -> WebhookId {
    let id = bytes(place, &format!("SELECT id FROM {table}")).pop().unwrap();
    WebhookId::from_bytes(id.try_into().unwrap())
}

/// Keeps the second company's secret from being re-encrypted until it is dropped.
enum Obstacle<'a> {
    /// A trigger that never ends: the process hangs in the middle of its transaction.
    Sqlite(&'a Place),
    /// A lock on the row.
    Postgres(#[expect(dead_code, reason = "dropping it releases the lock")] Box<postgres::Client>),
}

impl<'a> Obstacle<'a> {
    fn at_second_company(place: &'a Place) -> Self {
        let second = "(SELECT max(company) FROM webhook)";
        match place.database() {
            Database::Sqlite(_) => {
                let endless =
                    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n";
                execute(
                    place,
                    &format!(
                        "CREATE TRIGGER obstacle BEFORE UPDATE OF secret ON webhook \
                         WHEN NEW.company = {second} BEGIN SELECT ({endless}); END"
                    ),
                );
                Self::Sqlite(place)
            }
            Database::Postgres(url) => {
                let mut client = postgres::Client::connect(&url, postgres::NoTls).unwrap();
                let lock = format!("BEGIN; SELECT 1 FROM webhook WHERE company = {second} FOR UPDATE");
                client.batch_execute(&lock).unwrap();
                Self::Postgres(Box::new(client))
            }
        }
    }
}

impl Drop for Obstacle<'_> {
    fn drop(&mut self) {
        if let Self::Sqlite(place) = self {
            execute(place, "DROP TRIGGER obstacle");
        }
    }
}

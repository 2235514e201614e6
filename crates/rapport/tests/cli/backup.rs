//! `rapport backup` and `rapport restore`, next to the service and without it, and backups on a schedule.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::program::{Place, Service, wait_until};

const OWNER: &str = "you@acme.test";

fn company(place: &Place) -> String {
    let create = ["company", "create", "acme", "--name", "Acme", "--owner", OWNER, "--json"];
    place.json(&create)["api_token"].as_str().unwrap().to_owned()
}

fn webhooks(service: &Service, method: &str, token: &str, body: &str) -> String {
    let headers = [("Authorization", &*format!("Bearer {token}")), ("Content-Type", "application/json")];
    let (status, body) = service.request(method, "/api/webhooks/", &headers, body);
    assert!(status < 300, "{body}");
    body
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A backup of a served company with a webhook, and the company's token.
fn backed_up(place: &Place, options: &[&str]) -> (PathBuf, String) {
    let service = place.serve_with(&["--allow-destination", "127.0.0.0/8"]);
    let token = company(place);
    let webhook = r#"{"url": "https://127.0.0.1:9443/hooks", "events": ["account.created"]}"#;
    webhooks(&service, "POST", &token, webhook);
    let file = place.path().join("made.backup");
    let made = place.run(&[&["backup", text(&file)], options].concat());
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    (file, token)
}

#[test]
fn a_backup_restores_with_its_key() {
    Place::each(|place| {
        let (file, token) = backed_up(place, &[]);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let key = fs::read_to_string(place.path().join("secret.key")).unwrap();
        let bytes = fs::read(&file).unwrap();
        assert!(!bytes.windows(64).any(|part| part == key.trim().as_bytes()), "the key is not in the file");
        for restored in [Place::sqlite(), Place::postgres()] {
            fs::write(restored.path().join("secret.key"), "0".repeat(64)).unwrap();
            let refused = restored.run(&["restore", text(&file)]);
            assert_eq!(refused.code, Some(1), "{}", refused.stdout);
            assert!(refused.stderr.contains("needs the key with fingerprint"), "{}", refused.stderr);
            fs::write(restored.path().join("secret.key"), &key).unwrap();
            let ended = restored.run(&["restore", text(&file)]);
            assert_eq!(ended.code, Some(0), "{}", ended.stderr);
            let service = restored.serve();
            assert!(webhooks(&service, "GET", &token, "").contains("127.0.0.1:9443"));
            let refused = restored.run(&["restore", text(&file)]);
            assert_eq!(refused.code, Some(1), "{}", refused.stdout);
        }
    });
}

#[test]
fn a_backup_with_the_key_is_all_it_takes() {
    let place = Place::sqlite();
    let (file, token) = backed_up(&place, &["--with-key"]);
    let again = place.run(&["backup", text(&file), "--with-key"]);
    assert!(
        again.stderr.contains("sign webhooks in your name"),
        "the consequences are explained: {}",
        again.stderr
    );
    assert!(again.stderr.contains("already exists"), "{}", again.stderr);
    let restored = Place::sqlite();
    let ended = restored.run(&["restore", text(&file)]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let key = restored.path().join("secret.key");
    assert_eq!(fs::read(&key).unwrap(), fs::read(place.path().join("secret.key")).unwrap());
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(webhooks(&restored.serve(), "GET", &token, "").contains("127.0.0.1:9443"));
}

#[test]
fn a_backup_without_its_key_says_which_one_it_needs() {
    let place = Place::sqlite();
    let (file, _) = backed_up(&place, &[]);
    let verified = place.run(&["backup", "--verify", text(&file)]);
    assert_eq!(verified.code, Some(0), "{}", verified.stderr);
    assert!(verified.stdout.contains("is complete and intact"), "{}", verified.stdout);
    let fingerprint = verified.stdout.lines().find_map(|line| line.strip_prefix("key")).unwrap().trim();
    let (fingerprint, _) = fingerprint.split_once(',').unwrap();
    assert_eq!(fingerprint.len(), 16);
    let restored = Place::sqlite();
    let ended = restored.run(&["restore", text(&file)]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains(&format!("key with fingerprint {fingerprint}")), "{}", ended.stdout);
    assert!(!restored.path().join("secret.key").exists());
}

#[test]
fn a_damaged_backup_is_refused_by_name() {
    let place = Place::sqlite();
    let (file, _) = backed_up(&place, &[]);
    let mut bytes = fs::read(&file).unwrap();
    let row =
        bytes.windows(OWNER.len()).position(|part| part == OWNER.as_bytes()).expect("the owner's address");
    bytes[row] ^= 1;
    fs::write(&file, &bytes).unwrap();
    let restored = Place::sqlite();
    for command in [["backup", "--verify", text(&file)].as_slice(), &["restore", text(&file)]] {
        let refused = restored.run(command);
        assert_eq!(refused.code, Some(1), "{command:?}: {}", refused.stdout);
        assert!(refused.stderr.contains("made.backup is damaged"), "{}", refused.stderr);
    }
    assert!(!restored.path().join("rapport.db").exists());
    assert_eq!(place.run(&["backup", "--verify"]).code, Some(2), "a file must be named");
}

#[test]
fn the_service_makes_backups_on_its_schedule() {
    Place::each(|place| {
        let directory = place.path().join("backups");
        let options = ["--backup-dir", text(&directory), "--backup-every", "1s", "--backup-keep", "2"];
        let doctor = || place.run(&[&["doctor", "--listen", "127.0.0.1:0"], &options[..]].concat()).stdout;
        assert!(doctor().contains("warn  backups: none in"), "{}", doctor());
        let service = place.serve_with(&options);
        let made = || {
            let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
            let mut names: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
            names.retain(|path| path.extension().is_some_and(|extension| extension == "backup"));
            names.sort();
            names
        };
        wait_until("a backup", || !made().is_empty());
        let first = made().remove(0);
        wait_until("the first one to be deleted", || !first.exists());
        wait_until("the metrics", || {
            service.get("/metrics").1.contains("\nrapport_backup_last_success_timestamp_seconds 1")
        });
        let metrics = service.get("/metrics").1;
        for name in ["rapport_backup_last_success_timestamp_seconds", "rapport_backup_bytes"] {
            let line = metrics.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
            assert!(line.unwrap().parse::<f64>().unwrap() > 0.0, "{name}");
        }
        drop(service);
        assert!(doctor().contains("backups: the latest is rapport-auto-"), "{}", doctor());
        assert!(made().len() <= 3);
        let last = made().pop().unwrap();
        let verified = place.run(&["backup", "--verify", text(&last)]);
        assert_eq!(verified.code, Some(0), "{}", verified.stderr);
    });
}

#[test]
fn a_failing_backup_never_stops_the_service() {
    let place = Place::sqlite();
    let occupied = place.path().join("occupied");
    fs::write(&occupied, "a file").unwrap();
    let service = place.serve_with(&["--backup-dir", text(&occupied)]);
    wait_until("the failure to be logged", || {
        let log = fs::read_to_string(place.path().join("service.log")).unwrap();
        log.contains("--backup-dir") && log.contains("Backup")
    });
    assert_eq!(service.get("/health/ready").0, 200);
}

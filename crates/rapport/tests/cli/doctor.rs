//! `rapport doctor`: what it finds.

use std::fs;

use rapport_testkit::PostgresServer;

use crate::program::Place;

#[test]
fn an_unused_place_is_not_a_failure_and_stays_unused() {
    let place = Place::sqlite();
    let ended = place.run(&["doctor", "--listen", "127.0.0.1:0"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stdout);
    assert!(ended.stdout.contains("does not exist yet; the service creates it"), "{}", ended.stdout);
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn a_whole_database_is_ok() {
    Place::each(|place| {
        assert_eq!(place.run(&["migrate"]).code, Some(0));
        let ended = place.run(&["doctor", "--listen", "127.0.0.1:0"]);
        assert_eq!(ended.code, Some(0), "{}", ended.stdout);
        assert!(ended.stdout.contains(": schema version "), "{}", ended.stdout);
        assert!(!ended.stdout.contains("fail"), "{}", ended.stdout);
    });
}

#[test]
fn a_postgres_that_may_lose_commits_gets_a_warning() {
    // The server the tests share is not durable.
    let url = PostgresServer::shared().fresh_database();
    let ended = Place::sqlite().run(&["doctor", "--listen", "127.0.0.1:0", "--database", &url]);
    assert_eq!(ended.code, Some(0), "{}", ended.stdout);
    for part in ["fsync = off", "synchronous_commit = off"] {
        let line = ended.stdout.lines().find(|line| line.contains(part));
        assert!(line.is_some_and(|line| line.starts_with("warn")), "{part} is missing in:\n{}", ended.stdout);
    }
}

#[test]
fn damage_is_a_failure() {
    let place = Place::sqlite();
    assert_eq!(place.run(&["migrate"]).code, Some(0));
    let path = place.path().join("rapport.db");
    let mut bytes = fs::read(&path).unwrap();
    // The first page holds the schema and stays; the others lose their contents.
    bytes[4096..].fill(0x5a);
    fs::write(&path, bytes).unwrap();
    let ended = place.run(&["doctor", "--listen", "127.0.0.1:0"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    assert!(ended.stdout.lines().any(|line| line.starts_with("fail")), "{}", ended.stdout);
}

#[test]
fn an_unreachable_database_is_a_failure_with_its_cause() {
    let arguments = ["doctor", "--listen", "127.0.0.1:0", "--database", "postgres://u:hunter2@127.0.0.1:1/x"];
    let ended = Place::sqlite().run(&arguments);
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    assert!(ended.stdout.contains("Connection refused"), "{}", ended.stdout);
    assert!(!ended.stdout.contains("hunter2"), "{}", ended.stdout);
}

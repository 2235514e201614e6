//! The service from start to end: what it prints, what may run next to it, and how signals stop it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use crate::program::{Place, run, wait_until};

/// More than the 10 seconds a stop may take: a busy machine is slow to report the end.
const STOP_LIMIT: Duration = Duration::from_secs(20);

fn wait_until_stopping(place: &Place) {
    let log = place.path().join("service.log");
    wait_until("the service to begin to stop", || fs::read_to_string(&log).unwrap().contains("stopping"));
}

#[test]
fn it_is_ready_when_it_says_so_and_ends_with_0_on_sigterm() {
    Place::each(|place| {
        let mut service = place.serve();
        assert_eq!(service.get("/health/live").0, 200);
        assert_eq!(service.get("/health/ready").0, 200);
        service.signal("TERM");
        assert_eq!(service.wait().code(), Some(0));
    });
}

#[test]
fn sigint_ends_it_too() {
    let mut service = Place::sqlite().serve();
    service.signal("INT");
    assert_eq!(service.wait().code(), Some(0));
}

#[test]
fn the_first_run_says_what_to_do_next() {
    let place = Place::sqlite();
    let mut service = place.serve();
    let link = service.line_that_contains("/setup/");
    assert!(link.starts_with(&format!("http://{}/setup/", service.address)), "{link}");
    service.signal("TERM");
    let said = service.rest_of_output();
    let next = format!(
        "{} company create acme --name \"Acme\" --owner you@acme.test",
        env!("CARGO_BIN_EXE_rapport")
    );
    assert!(said.contains(&next), "{said}");
    service.wait();

    place.run(&["company", "create", "acme", "--name", "Acme", "--owner", "you@acme.test"]);
    let mut service = place.serve();
    service.signal("TERM");
    assert_eq!(service.rest_of_output(), "");
}

#[test]
fn figures_are_served() {
    let service = Place::sqlite().serve();
    let (status, figures) = service.get("/metrics");
    assert_eq!(status, 200);
    for name in [
        "rapport_build_info{version=",
        "rapport_store_queue_depth 0",
        "rapport_store_log_bytes ",
        "rapport_store_blocked_checkpoints_total 0",
        "rapport_store_failed_checkpoints_total 0",
    ] {
        assert!(figures.contains(name), "{name} is missing in:\n{figures}");
    }
}

#[test]
fn a_second_service_on_the_same_data_directory_is_refused() {
    let place = Place::sqlite();
    let mut first = place.serve();
    let second = place.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(second.code, Some(1));
    assert!(second.stderr.contains("another rapport (process "), "{}", second.stderr);
    assert!(second.stderr.contains("--data-dir"), "{}", second.stderr);
    assert_eq!(second.stderr.lines().count(), 1, "{}", second.stderr);
    assert!(first.is_running());
    assert_eq!(first.get("/health/ready").0, 200);
}

#[test]
fn a_second_service_on_the_same_embedded_database_is_refused() {
    let place = Place::sqlite();
    let _first = place.serve();
    let database = format!("sqlite:{}", place.path().join("rapport.db").display());
    let elsewhere = Place::sqlite();
    let second = run(elsewhere.command(&["--listen", "127.0.0.1:0"]).env("RAPPORT_DATABASE", database));
    assert_eq!(second.code, Some(1));
    assert!(second.stderr.contains("is running on this database"), "{}", second.stderr);
}

#[test]
fn a_killed_service_leaves_no_lock_behind() {
    let place = Place::sqlite();
    drop(place.serve());
    assert_eq!(place.serve().get("/health/ready").0, 200);
}

#[test]
fn several_services_share_a_postgres_database() {
    let place = Place::postgres();
    let (first, second) = (place.serve(), place.serve());
    assert_eq!((first.get("/health/ready").0, second.get("/health/ready").0), (200, 200));
}

#[test]
fn a_request_under_way_is_answered_before_the_end() {
    let place = Place::sqlite();
    let mut service = place.serve();
    let mut stream = service.connect();
    stream.write_all(b"GET /health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n").unwrap();
    // Another answer means that the first connection was accepted before it.
    assert_eq!(service.get("/health/live").0, 200);
    service.signal("TERM");
    wait_until_stopping(&place);
    stream.write_all(b"\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(service.wait().code(), Some(0));
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let place = Place::sqlite();
    let mut service = place.serve();
    // A request that never ends keeps the service waiting.
    let mut stream = service.connect();
    stream.write_all(b"POST /api/pulse/ingest/ HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{").unwrap();
    assert_eq!(service.get("/health/live").0, 200);
    service.signal("TERM");
    wait_until_stopping(&place);
    service.signal("TERM");
    assert_eq!(service.wait().code(), Some(130));
}

#[test]
fn it_ends_in_time_whatever_clients_do() {
    let mut service = Place::sqlite().serve();
    let mut stream = service.connect();
    stream.write_all(b"GET /health/live HTTP/1.1\r\nHost: x\r\n").unwrap();
    assert_eq!(service.get("/health/live").0, 200);
    let asked_at = Instant::now();
    service.signal("TERM");
    assert_eq!(service.wait().code(), Some(0));
    assert!(asked_at.elapsed() < STOP_LIMIT, "it took {:?}", asked_at.elapsed());
}

#[test]
fn it_listens_on_a_name_or_a_port_alone() {
    for listen in ["localhost:0", ":0"] {
        let place = Place::sqlite();
        let service = place.start(&mut place.command(&["serve", "--listen", listen]));
        assert_eq!(service.get("/health/ready").0, 200, "{listen}");
    }
    let ended = Place::sqlite().run(&["serve", "--listen", "no-such-host.invalid:0"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("cannot listen on no-such-host.invalid:0 (--listen)"), "{}", ended.stderr);
}

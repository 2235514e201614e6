//! Open files: the service raises its limit as far as it may, and warns if that is too low.

use std::fs;

use crate::program::{Place, run, within};

const WARNING: &str = "files may be open";

#[test]
fn the_soft_limit_is_raised_to_the_hard_one() {
    let place = Place::sqlite();
    let service = place.serve_within("ulimit -S -n 256");
    let (soft, hard) = service.file_limits();
    assert!(hard > 256, "the machine's own limit is too low for this test");
    assert_eq!(soft, hard);
    assert_eq!(service.get("/health/ready").0, 200);
}

#[test]
fn a_hard_limit_that_is_too_low_gets_a_warning() {
    let place = Place::sqlite();
    let service = place.serve_within("ulimit -n 300");
    assert_eq!(service.file_limits(), (300, 300));
    let log = fs::read_to_string(place.path().join("service.log")).unwrap();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains(WARNING)).collect();
    assert_eq!(lines.len(), 1, "{log}");
    assert!(lines[0].contains("WARN") && lines[0].contains("only 300 files"), "{}", lines[0]);
    assert!(lines[0].contains("LimitNOFILE"), "it says what to do: {}", lines[0]);
    assert_eq!(service.get("/health/ready").0, 200, "it still serves");
}

#[test]
fn a_limit_that_is_enough_is_not_mentioned() {
    let place = Place::sqlite();
    let service = place.serve_within("ulimit -S -n 256");
    if service.file_limits().1 >= 10_000 {
        let log = fs::read_to_string(place.path().join("service.log")).unwrap();
        assert!(!log.contains(WARNING), "{log}");
    }
}

#[test]
fn doctor_looks_at_the_limit() {
    let place = Place::sqlite();
    let doctor = place.command(&["doctor", "--listen", "127.0.0.1:0"]);
    let ended = run(&mut within("ulimit -n 300", &doctor));
    assert_eq!(ended.code, Some(0), "{}", ended.stdout);
    let line = ended.stdout.lines().find(|line| line.contains("open files: ")).expect("a finding");
    assert!(line.starts_with("warn") && line.contains("only 300 files may be open"), "{line}");
}

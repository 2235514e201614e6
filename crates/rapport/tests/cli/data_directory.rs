//! The data directory: only commands that start something create it.

use crate::program::Place;

#[test]
fn only_the_service_and_a_first_company_create_it() {
    let place = Place::sqlite();
    let missing = place.path().join("missing");
    let data_dir = missing.to_str().unwrap();
    let commands: [&[&str]; 10] = [
        &["company", "list"],
        &["token", "list", "--project", "acme"],
        &["key", "rotate", "ingest", "--project", "acme"],
        &["key", "re-encrypt"],
        &["key", "reset", "--yes"],
        &["person", "reset-link", "you@acme.test"],
        &["person", "reset-factors", "you@acme.test"],
        &["import", "undo", "imp_00000000000000000000000000"],
        &["migrate"],
        &["listen", "--port", "0"],
    ];
    for command in commands {
        let ended = place.run(&[command, &["--data-dir", data_dir]].concat());
        assert_eq!(ended.code, Some(1), "{command:?}: {}", ended.stderr);
        assert!(
            ended.stderr.contains("missing does not exist (--data-dir)"),
            "{command:?}: {}",
            ended.stderr
        );
        assert!(!missing.exists(), "{command:?} created it");
    }
    let create = ["company", "create", "acme", "--name", "Acme", "--owner", "you@acme.test"];
    let ended = place.run(&[&create[..], &["--data-dir", data_dir]].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(missing.is_dir());
    let other = place.path().join("other");
    let service = place.serve_with(&["--data-dir", other.to_str().unwrap()]);
    assert_eq!(service.get("/health/ready").0, 200);
    assert!(other.is_dir());
}

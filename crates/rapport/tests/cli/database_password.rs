//! The password of the database appears nowhere, however the address is written.

use std::fs;

use rapport_testkit::PostgresServer;

use crate::program::{Ended, Place, program, run};

const PASSWORD: &str = "hunter2";

/// Addresses of a server that is there, with characters in the password that divide a URL, and with mistakes.
fn addresses() -> Vec<String> {
    let server = format!("127.0.0.1:{}", PostgresServer::shared().port());
    let table = [
        "postgres://postgres:hunter2@{}/postgres",
        "postgres://postgres:x@hunter2@{}/postgres",
        "postgres://postgres:hunter2@{}/hunter2@{}/postgres",
        "postgres://postgres:x@{}?hunter2=1@{}/postgres",
        "postgres://postgres:hunter2?x@{}/postgres",
        "postgres://postgres:1?hunter2=x@{}/postgres",
        "postgres://postgres:1?sslmode=hunter2@{}/postgres",
        "postgres://postgres:hunter2#x@{}/postgres",
        "postgres://postgres:hunter2%@{}/postgres",
        "postgres://postgres:hunter2",
        "postgres://postgres:hunter2@{}:x/postgres",
        "postgres://postgres:hunter2@{}/nowhere",
        "postgres://postgres:hunter2@{}/postgres?sslmod=require",
        "postgres://postgres:hunter2@{}/postgres?sslmode=required",
        "postgres://{}/postgres?user=postgres&password=hunter2",
        "postgres://{}/postgres?user=postgres&password=x&hunter2",
        "postgres://{}/postgres?user=postgres&password=x&hunter2=y@z",
        "postgres://{}/postgres?user=postgres&sslpassword=hunter2",
        "postgres//postgres:hunter2@{}/postgres",
        "postgre://postgres:hunter2@{}/postgres",
        "mysql://postgres:hunter2@{}/postgres",
        "user=postgres password=hunter2",
    ];
    table.iter().map(|address| address.replace("{}", &server)).collect()
}

fn hides(ended: &Ended, address: &str, how: &str) {
    for text in [&ended.stdout, &ended.stderr] {
        assert!(!text.contains(PASSWORD), "{address} {how}: {text}");
    }
    let hidden = ended.stdout.contains("****");
    assert!(ended.code != Some(0) || hidden, "{address} {how}: neither refused nor hidden: {}", ended.stdout);
}

#[test]
fn no_message_contains_a_part_of_the_password() {
    for address in addresses() {
        for command in ["config", "doctor"] {
            let place = Place::sqlite();
            let arguments = [command, "--listen", "127.0.0.1:0", "--log", "trace"];
            let given = [&arguments[..], &["--database", &address]].concat();
            hides(&place.run(&given), &address, "on the command line");
            let ended = run(place.command(&arguments).env("RAPPORT_DATABASE", &address));
            hides(&ended, &address, "in the environment");
            fs::write(place.path().join("rapport.toml"), format!("database = '{address}'\n")).unwrap();
            hides(&place.run(&arguments), &address, "in the file");
        }
    }
}

#[test]
fn an_at_sign_in_the_password_is_explained() {
    let ended = run(&mut program(&["config", "--database", "postgres://u:x@hunter2@db.acme.test/crm"]));
    assert_eq!(ended.code, Some(2));
    for part in ["--database", "%40"] {
        assert!(ended.stderr.contains(part), "{}", ended.stderr);
    }
}

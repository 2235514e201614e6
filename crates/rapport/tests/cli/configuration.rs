//! `rapport config`: which source wins, where it says values came from, and what it hides.

use std::fs;

use crate::program::{Place, program, run};

/// The line of a setting: its value and its origin.
fn line<'a>(printed: &'a str, name: &str) -> (&'a str, &'a str) {
    let line = printed.lines().find(|line| line.starts_with(&format!("{name} = ")));
    let line = line.unwrap_or_else(|| panic!("{name} is missing in:\n{printed}"));
    let (value, origin) = line.split_once("  # ").unwrap();
    (value.split_once(" = ").unwrap().1, origin)
}

#[test]
fn the_command_line_wins_over_the_environment_over_the_file() {
    let place = Place::sqlite();
    let path = place.path().join("rapport.toml");
    fs::write(&path, "listen = '127.0.0.1:1'\nrate_limit = 1\nlog = 'debug'\n").unwrap();
    let mut command = place.command(&["config", "--listen", "127.0.0.1:3"]);
    let ended = run(command.env("RAPPORT_LISTEN", "127.0.0.1:2").env("RAPPORT_RATE_LIMIT", "2"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(line(&ended.stdout, "listen"), ("\"127.0.0.1:3\"", "command line (--listen)"));
    assert_eq!(line(&ended.stdout, "base_url"), ("\"http://127.0.0.1:3\"", "default"));
    assert_eq!(line(&ended.stdout, "rate_limit"), ("2", "environment (RAPPORT_RATE_LIMIT)"));
    assert_eq!(line(&ended.stdout, "log"), ("\"debug\"", format!("file {}", path.display()).as_str()));
    assert_eq!(line(&ended.stdout, "database_readers"), ("3", "default"));
}

#[test]
fn a_file_elsewhere_is_named_by_option_or_variable() {
    let place = Place::sqlite();
    let path = place.path().join("other.toml");
    fs::write(&path, "data_dir = '/srv/rapport'\nallow_destination = ['10.0.0.0/8']\n").unwrap();
    let path = path.to_str().unwrap();
    let by_option = run(&mut program(&["config", "--config", path]));
    let by_variable = run(program(&["config"]).env("RAPPORT_CONFIG", path));
    assert_eq!(by_option.stdout, by_variable.stdout);
    assert_eq!(line(&by_option.stdout, "data_dir").0, "\"/srv/rapport\"");
    assert_eq!(line(&by_option.stdout, "database").0, "\"sqlite:/srv/rapport/rapport.db\"");
    assert_eq!(line(&by_option.stdout, "allow_destination").0, "[\"10.0.0.0/8\"]");
}

#[test]
fn several_values_come_by_repetition_or_with_commas() {
    let by_option = run(&mut program(&[
        "--allow-destination",
        "10.0.0.0/8",
        "config",
        "--extra-ca",
        "a.pem",
        "--extra-ca",
        "b.pem",
    ]));
    assert_eq!(line(&by_option.stdout, "allow_destination").0, "[\"10.0.0.0/8\"]");
    assert_eq!(line(&by_option.stdout, "extra_ca").0, "[\"a.pem\", \"b.pem\"]");
    let by_variable = run(program(&["config"]).env("RAPPORT_ALLOW_DESTINATION", "127.0.0.1, ::1"));
    assert_eq!(line(&by_variable.stdout, "allow_destination").0, "[\"127.0.0.1/32\", \"::1/128\"]");
}

#[test]
fn the_password_of_the_database_is_hidden() {
    let url = "postgres://rapport:hunter2@db.acme.test:5432/rapport?sslmode=disable";
    for ended in [
        run(&mut program(&["config", "--database", url])),
        run(program(&["config"]).env("RAPPORT_DATABASE", url)),
    ] {
        let shown = "\"postgres://rapport:****@db.acme.test:5432/rapport?sslmode=disable\"";
        assert_eq!(line(&ended.stdout, "database").0, shown);
        assert!(!format!("{}{}", ended.stdout, ended.stderr).contains("hunter2"));
    }
}

#[test]
fn the_password_of_the_egress_proxy_is_hidden() {
    let url = "http://rapport:hunter2@proxy.acme.test:3128";
    for ended in [
        run(&mut program(&["config", "--egress-proxy", url])),
        run(program(&["config"]).env("RAPPORT_EGRESS_PROXY", url)),
        run(&mut program(&["config", "--egress-proxy", "http://rapport:hunter2@proxy.acme.test/path"])),
    ] {
        assert!(!format!("{}{}", ended.stdout, ended.stderr).contains("hunter2"), "{}", ended.stderr);
        if ended.code == Some(0) {
            assert_eq!(line(&ended.stdout, "egress_proxy").0, "\"http://rapport:****@proxy.acme.test:3128\"");
        }
    }
}

#[test]
fn an_unknown_variable_is_named_with_the_one_that_was_meant() {
    let place = Place::sqlite();
    let ended = run(place.command(&["config"]).env("RAPPORT_LISTN", "127.0.0.1:1").env("RAPPORT_HOME", "x"));
    assert_eq!(ended.code, Some(0));
    for part in
        ["RAPPORT_LISTN is unknown and ignored; did you mean RAPPORT_LISTEN?", "RAPPORT_HOME is unknown"]
    {
        assert!(ended.stderr.contains(part), "{part} is missing in: {}", ended.stderr);
    }
    assert_eq!(run(&mut place.command(&["config"])).stderr, "");
    let mut serve = place.command(&["serve", "--listen", "127.0.0.1:0"]);
    let _service = place.start(serve.env("RAPPORT_SMTP_URI", "smtp://x"));
    let log = fs::read_to_string(place.path().join("service.log")).unwrap();
    assert!(log.contains("did you mean RAPPORT_SMTP_URL?"), "{log}");
}

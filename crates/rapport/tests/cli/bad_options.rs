//! An error is one line that names what to change. Bad usage exits with 2, failure with 1.

use std::fs;
use std::net::TcpListener;

use crate::program::{Place, program, run};

#[test]
fn bad_values_end_with_2_and_name_the_option() {
    let table: [(&[&str], &str); 16] = [
        (&["--listen", "8080"], "--listen"),
        (&["--database", "mysql://h/db"], "--database"),
        (&["config", "--allow-destination", "10.0.0.0/40"], "--allow-destination"),
        (&["config", "--allow-lookup", "acme.test"], "--allow-lookup"),
        (&["config", "--allow-sso", "login.acme.test"], "--allow-sso"),
        (&["company", "claim-domain", "acme", "acme"], "DOMAIN"),
        (&["config", "--trusted-mail-relay", "mx.acme.test; dkim=pass"], "--trusted-mail-relay"),
        (&["config", "--base-url", "crm.acme.test"], "--base-url"),
        (&["config", "--egress-proxy", "socks5://proxy.acme.test"], "--egress-proxy"),
        (&["config", "--trusted-proxy", "nginx"], "--trusted-proxy"),
        (&["config", "--tls-cert", "cert.pem"], "--tls-key: required with --tls-cert"),
        (&["config", "--tls-key", "key.pem"], "--tls-cert: required with --tls-key"),
        (&["config", "--log", "loud"], "--log"),
        (&["config", "--rate-limit", "0"], "--rate-limit"),
        (&["company", "create", "Acme!", "--name", "A", "--owner", "a@b.test"], "PROJECT"),
        (&["--no-such-option"], "--no-such-option"),
    ];
    for (arguments, named) in table {
        let ended = run(&mut program(arguments));
        assert_eq!(ended.code, Some(2), "{arguments:?}");
        assert!(ended.stderr.contains(named), "{arguments:?}: {}", ended.stderr);
        assert_eq!(ended.stdout, "");
    }
}

#[test]
fn a_bad_value_that_may_contain_a_password_is_not_repeated() {
    let table: [(&[&str], &str); 4] = [
        (&["config", "--database", "mysql://u:hunter2@h"], "--database"),
        (&["config", "--database", "u:hunter2"], "--database"),
        (&["config", "--smtp-url", "smtpx://u:hunter2@h"], "--smtp-url"),
        (&["postgres://u:hunter2@h/db"], "unrecognized subcommand"),
    ];
    for (arguments, named) in table {
        let ended = run(&mut program(arguments));
        assert_eq!(ended.code, Some(2));
        assert!(ended.stderr.contains(named) && !ended.stderr.contains("hunter2"), "{}", ended.stderr);
    }
}

#[test]
fn a_bad_variable_is_named() {
    let ended = run(program(&["config"]).env("RAPPORT_PAGE_CACHE_MB", "much"));
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.starts_with("rapport: RAPPORT_PAGE_CACHE_MB: "), "{}", ended.stderr);
}

#[test]
fn an_unknown_key_of_the_file_is_named() {
    let place = Place::sqlite();
    fs::write(place.path().join("rapport.toml"), "listen = '127.0.0.1:0'\nlisten_on = 1\n").unwrap();
    let ended = place.run(&["serve"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("line 2: unknown field `listen_on`"), "{}", ended.stderr);
}

#[test]
fn a_failure_to_start_is_one_line_that_names_the_option() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let place = Place::sqlite();
    let file = place.path().join("file");
    fs::write(&file, "no key, no certificate").unwrap();
    let file = file.to_str().unwrap();
    let under_a_file = format!("{file}/data");
    let table: [(&[&str], &str); 7] = [
        (&["--listen", &taken], "--listen"),
        (&["--data-dir", &under_a_file], "--data-dir"),
        (&["--database", "sqlite:/no/such/directory/x.db"], "--database"),
        (&["--database", "postgres://nobody@127.0.0.1:1/x"], "--database"),
        (&["--extra-ca", file], "--extra-ca"),
        (&["--secret-key-file", file], "--secret-key-file"),
        (&["--secret-key-file", "/no/such/file"], "--secret-key-file"),
    ];
    for (arguments, named) in table {
        let listen = if named == "--listen" { "" } else { "127.0.0.1:0" };
        let ended = run(place.command(arguments).env("RAPPORT_LISTEN", listen));
        assert_eq!(ended.code, Some(1), "{arguments:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(&format!("({named})")), "{arguments:?}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{arguments:?}: {}", ended.stderr);
        assert_eq!(ended.stdout, "");
    }
}

//! Connecting to PostgreSQL over TLS: what each `sslmode` accepts, client certificates, channel binding.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::OnceLock;
use std::time::Instant;

use rapport_store::Database;
use rapport_store::doctor::{Level, examine};
use rapport_testkit::postgres::plain;
use rapport_testkit::receiver::PemFiles;
use rapport_testkit::{Identity, PostgresInterceptor, PostgresServer};

use crate::support::{LONG, fresh_postgres, raw};

const PASSWORD: &str = "hunter2";
const RULES: [&str; 4] = [
    "hostssl all with_certificate 127.0.0.1/32 cert",
    "host all with_password 127.0.0.1/32 scram-sha-256",
    "hostssl all without_tls 127.0.0.1/32 reject",
    "hostnossl all without_tls 127.0.0.1/32 trust",
];

/// A server where people log in differently.
fn server() -> &'static PostgresServer {
    static SERVER: OnceLock<PostgresServer> = OnceLock::new();
    SERVER.get_or_init(|| {
        let server = PostgresServer::start_over_tls(&RULES);
        let roles = format!(
            "CREATE ROLE with_certificate LOGIN SUPERUSER; CREATE ROLE without_tls LOGIN SUPERUSER; \
             CREATE ROLE with_password LOGIN SUPERUSER PASSWORD '{PASSWORD}'"
        );
        raw(&server.fresh_database()).batch_execute(&roles).expect("created");
        server
    })
}

/// How the connection is encrypted, or why it failed. A server on a loaded machine gets more time to answer.
fn connect(url: &str) -> Result<String, String> {
    let since = Instant::now();
    loop {
        match try_to_connect(url) {
            Err(problem) if problem.contains("not responding") && since.elapsed() < LONG => {}
            outcome => return outcome,
        }
    }
}

fn try_to_connect(url: &str) -> Result<String, String> {
    let findings = examine(&Database::Postgres(url.to_owned()));
    let found = |wanted: &dyn Fn(&Level, &str) -> bool| {
        findings
            .iter()
            .find(|finding| wanted(&finding.level, &finding.text))
            .map(|finding| finding.text.clone())
    };
    match found(&|level, _| *level == Level::Fail) {
        Some(problem) => Err(problem),
        None => Ok(found(&|_, text| text.starts_with("the connection is")).expect("a word about encryption")),
    }
}

#[track_caller]
fn refused(url: &str, because: &str) {
    match connect(url) {
        Ok(how) => panic!("{url} was accepted: {how}"),
        Err(problem) => {
            assert!(problem.contains(because), "{url}: {problem}");
            assert!(!problem.contains(PASSWORD), "{problem}");
        }
    }
}

#[track_caller]
fn accepted(url: &str, how: &str) {
    let found = connect(url).unwrap_or_else(|problem| panic!("{url}: {problem}"));
    assert!(found.starts_with(&format!("the connection is {how}")), "{url}: {found}");
}

/// A URL of the server for this user, with these parameters.
fn url_of(login: &str, parameters: &str) -> String {
    format!("postgres://{login}@127.0.0.1:{}/postgres?{parameters}", server().port())
}

#[test]
fn each_mode_accepts_what_it_says() {
    const OK: &str = "";
    let no_tls = "the server doesn't offer TLS";
    let unknown = "the server's certificate was issued by an unknown authority";
    let other_host = "the server's certificate is for db.example.org, not for 127.0.0.1";
    let expired = "the server's certificate expired on 2020-01-01";
    let nameless = "the server's certificate names no host";
    let servers = [
        Some(Identity::Trusted),
        None,
        Some(Identity::UnknownAuthority),
        Some(Identity::ForNames(&["db.example.org"])),
        Some(Identity::Expired),
        Some(Identity::SelfSigned),
        Some(Identity::ForNobody),
        Some(Identity::Tls12Only),
    ];
    let authority = PostgresServer::shared_over_tls().authority_file();
    let with = |mode: &str| format!("sslmode={mode}&sslrootcert={}", authority.display());
    let table = [
        ("sslmode=disable".to_owned(), [OK, OK, OK, OK, OK, OK, OK, OK]),
        (String::new(), [OK, OK, OK, OK, OK, OK, OK, OK]),
        ("sslmode=prefer".to_owned(), [OK, OK, OK, OK, OK, OK, OK, OK]),
        (with("prefer"), [OK, OK, unknown, OK, expired, unknown, OK, OK]),
        ("sslmode=require".to_owned(), [OK, no_tls, OK, OK, OK, OK, OK, OK]),
        (with("require"), [OK, no_tls, unknown, OK, expired, unknown, OK, OK]),
        (with("verify-ca"), [OK, no_tls, unknown, OK, expired, unknown, OK, OK]),
        (with("verify-full"), [OK, no_tls, unknown, other_host, expired, unknown, nameless, OK]),
    ];
    let database = PostgresServer::shared().fresh_database();
    for (n, identity) in servers.into_iter().enumerate() {
        let front = PostgresInterceptor::start(&database, identity, false);
        for (parameters, expected) in &table {
            let url = format!("{}?{parameters}", front.url());
            let outcome = connect(&url);
            match (outcome, expected[n]) {
                (Ok(_), OK) => {}
                (Err(problem), expected) if expected != OK && problem.contains(expected) => {}
                (outcome, expected) => panic!("{identity:?} {parameters}: {outcome:?}, not {expected:?}"),
            }
        }
    }
}

#[test]
fn tls_is_used_if_the_server_offers_it() {
    let url = fresh_postgres();
    accepted(&url, "encrypted with TLS");
    let url = plain(&url);
    accepted(url, "encrypted with TLS");
    accepted(&format!("{url}?sslmode=require"), "encrypted with TLS");
    accepted(&format!("{url}?sslmode=disable"), "not encrypted");
    accepted(&PostgresServer::shared().fresh_database(), "not encrypted");
}

#[test]
fn prefer_goes_on_without_tls_if_the_servers_rules_ask_for_it() {
    accepted(&url_of("without_tls", "sslmode=prefer"), "not encrypted");
    refused(&url_of("without_tls", "sslmode=require"), "pg_hba.conf rejects connection");
    refused(
        &url_of("without_tls", "sslmode=prefer&channel_binding=require"),
        "pg_hba.conf rejects connection",
    );
}

#[test]
fn a_server_that_asks_for_a_client_certificate_gets_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let with = |files: &PemFiles, name: &str| {
        let (certificate, key) =
            (directory.path().join(format!("{name}.pem")), directory.path().join(format!("{name}.key")));
        for (path, text) in [(&certificate, &files.certificate), (&key, &files.key)] {
            fs::write(path, text).expect("written");
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("set");
        }
        format!("sslmode=require&sslcert={}&sslkey={}", certificate.display(), key.display())
    };
    let own = with(&PemFiles::of_client("with_certificate"), "own");
    accepted(&url_of("with_certificate", &own), "encrypted with TLS");
    refused(
        &url_of("with_certificate", "sslmode=require"),
        "the server asks for a client certificate: name one",
    );
    let anothers = with(&PemFiles::of_client("somebody"), "anothers");
    refused(&url_of("with_certificate", &anothers), "certificate authentication failed");
    let untrusted = with(&PemFiles::of_untrusted_client("with_certificate"), "untrusted");
    refused(&url_of("with_certificate", &untrusted), "the server refused the client certificate");

    let key = directory.path().join("own.key");
    refused(&url_of("with_certificate", &own.replace("own.key", "anothers.key")), "cannot be used");
    refused(&url_of("with_certificate", &own.replace("own.key", "own.pem")), "contains no private key");
    refused(&url_of("with_certificate", &own.replace("own.key", "missing.key")), "(sslkey)");
    refused(
        &url_of("with_certificate", &own.replace("own.pem", "own.key")),
        "contains no PEM certificate (sslcert)",
    );
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).expect("set");
    refused(&url_of("with_certificate", &own), "run chmod 600");
}

#[test]
fn channel_binding_notices_an_interceptor() {
    let login = format!("with_password:{PASSWORD}");
    accepted(&url_of(&login, "sslmode=require&channel_binding=require"), "encrypted with TLS");
    let no_binding = "the server doesn't offer channel binding";
    refused(&url_of(&login, "sslmode=disable&channel_binding=require"), no_binding);
    refused(&url_of("postgres", "sslmode=require&channel_binding=require"), no_binding);

    // It has a valid certificate for this host, but not the server's.
    let front = PostgresInterceptor::start(&url_of(&login, ""), Some(Identity::Trusted), true);
    let verified = format!("sslmode=verify-full&sslrootcert={}", server().authority_file().display());
    for binding in ["require", "prefer"] {
        let url = format!("{}?{verified}&channel_binding={binding}", front.url());
        refused(&url, "something intercepts the connection");
    }
    accepted(&format!("{}?{verified}&channel_binding=disable", front.url()), "encrypted with TLS");
}

#[test]
fn a_wrong_or_missing_password_is_named_but_not_shown() {
    refused(
        &url_of(&format!("with_password:not-{PASSWORD}"), "sslmode=require"),
        "password authentication failed",
    );
    // No password file either, whatever this machine has.
    refused(&url_of("with_password", "sslmode=require&passfile=/dev/null"), "the server asks for a password");
}

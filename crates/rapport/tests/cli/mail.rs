//! Mail as an operator configures it: tested by a command, sent by the service, and its password never shown.

use std::time::Duration;

use rapport_testkit::{MailSecurity, MailServer};
use serde_json::{Value, json};

use crate::program::{Place, program, run};

const PATIENCE: Duration = Duration::from_mins(1);
/// The test server's user and password, as a URL spells them.
const LOGIN: &str = "rapport:p%3Ass%2Fw%40rd%25";
const FROM: &str = "Rapport <rapport@acme.test>";

fn url(server: &MailServer, scheme: &str) -> String {
    format!("{scheme}://{LOGIN}@127.0.0.1:{}", server.port())
}

fn options<'a>(url: &'a str, authority: &'a str) -> [&'a str; 6] {
    ["--smtp-url", url, "--mail-from", FROM, "--extra-ca", authority]
}

#[test]
fn a_test_mail_says_how_it_went() {
    for (security, scheme) in [(MailSecurity::StartTls, "smtp"), (MailSecurity::Tls, "smtps")] {
        let server = MailServer::start(security);
        let (url, authority) = (url(&server, scheme), server.ca_file());
        let authority = authority.to_str().unwrap();
        let mut command = program(&["mail", "test", "you@acme.test"]);
        let ended = run(command.args(options(&url, authority)));
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(ended.stdout.contains("accepted the mail for you@acme.test"), "{}", ended.stdout);
        let mail = server.received().remove(0);
        assert!(mail.encrypted && mail.authenticated);
        assert_eq!((mail.header("From"), mail.header("Subject")), (FROM, "Test mail from Rapport"));
        server.refuse(Some("550 5.1.1 no such mailbox"));
        let ended = run(program(&["mail", "test", "you@acme.test"]).args(options(&url, authority)));
        assert_eq!(ended.code, Some(1));
        assert!(ended.stderr.contains("no such mailbox"), "{}", ended.stderr);
        for text in [&ended.stdout, &ended.stderr] {
            assert!(!text.contains("p%3Ass") && !text.contains("p:ss"), "{text}");
        }
    }
    let ended = run(&mut program(&["mail", "test", "you@acme.test"]));
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("--smtp-url"), "{}", ended.stderr);
}

#[test]
fn the_password_of_the_mail_server_is_hidden() {
    let url = "smtps://rapport:hunter2@mail.acme.test";
    for ended in [
        run(&mut program(&["config", "--smtp-url", url, "--mail-from", FROM])),
        run(program(&["config"]).env("RAPPORT_SMTP_URL", url).env("RAPPORT_MAIL_FROM", FROM)),
    ] {
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(
            ended.stdout.contains("smtp_url = \"smtps://rapport:****@mail.acme.test:465\""),
            "{}",
            ended.stdout
        );
        assert!(!format!("{}{}", ended.stdout, ended.stderr).contains("hunter2"));
    }
    let ended = run(&mut program(&["config", "--smtp-url", "smtps://rapport:hunter2@"]));
    assert_eq!(ended.code, Some(2));
}

#[test]
fn the_service_sends_what_it_is_asked_to() {
    Place::each(|place| {
        let server = MailServer::start(MailSecurity::StartTls);
        let (url, authority) = (url(&server, "smtp"), server.ca_file());
        let created = place.json(&[
            "company",
            "create",
            "acme",
            "--name",
            "Acme",
            "--owner",
            "you@acme.test",
            "--json",
        ]);
        let mut service = place.serve_with(&options(&url, authority.to_str().unwrap()));
        service.accept(&created, "a good password");
        let token = format!("Bearer {}", created["api_token"].as_str().unwrap());
        let headers = [("Authorization", token.as_str()), ("Content-Type", "application/json")];
        let body = json!({"email": "ana@acme.test", "role": "member"}).to_string();
        let (status, answer) = service.request("POST", "/api/invitations/", &headers, &body);
        assert_eq!(status, 201, "{answer}");
        let mail = server.wait_for(1, PATIENCE).remove(0);
        assert_eq!(mail.to, ["ana@acme.test"]);
        let link = format!("http://{}/invitation/", service.address);
        assert!(mail.plain.contains(&link), "{} is not in {}", link, mail.plain);
        let body = json!({"email": "you@acme.test"}).to_string();
        let (status, _) = service.request("POST", "/api/password-reset/", &headers[1..], &body);
        assert_eq!(status, 202);
        let mail = server.wait_for(2, PATIENCE).remove(1);
        assert_eq!(
            (mail.to[0].as_str(), mail.header("Subject")),
            ("you@acme.test", "Choose a new password for Rapport")
        );
        let (_, settings) = service.request("GET", "/api/settings/", &headers[..1], "");
        let settings: Value = serde_json::from_str(&settings).unwrap();
        assert_eq!(settings["mail_configured"], json!(true));
        service.signal("TERM");
        assert_eq!(service.wait().code(), Some(0));
    });
}

//! One mail over SMTP: encrypted and authenticated as configured, and never less than that.

use rapport_domain::id::MailId;
use rapport_domain::mail::Failure;
use rapport_domain::time::Time;
use rapport_jobs::mailer::Letter;
use rapport_jobs::{MailServer as Configured, Mailer, Security};
use rapport_testkit::{MailSecurity, MailServer};

use crate::harness::{FROM, configured, mailer, trusted};

const ID: MailId = MailId::from_bytes([7; 16]);

fn now() -> Time {
    Time::parse("2026-01-05T09:00:00Z").unwrap()
}

async fn try_test(configured: &Configured, server: &MailServer) -> Result<(), Failure> {
    let mailer = Mailer::new(configured, FROM, &[trusted(server)]).unwrap();
    mailer.send_test(ID, "ana@acme.test", now()).await
}

#[tokio::test]
async fn a_mail_arrives_by_each_way_of_encrypting() {
    for security in [MailSecurity::StartTls, MailSecurity::Tls, MailSecurity::Plain] {
        let server = MailServer::start(security);
        mailer(&server).send_test(ID, "ana@acme.test", now()).await.unwrap();
        let mail = server.received().remove(0);
        let is_private = security != MailSecurity::Plain;
        assert_eq!((mail.encrypted, mail.authenticated), (is_private, is_private), "{security:?}");
        assert_eq!(
            (mail.from.as_str(), mail.to),
            ("rapport@crm.acme.test", vec!["ana@acme.test".to_owned()])
        );
    }
}

#[tokio::test]
async fn starttls_is_required_not_tried() {
    let server = MailServer::start(MailSecurity::Plain);
    let wanted = Configured { security: Security::StartTls, ..configured(&server) };
    let failure = try_test(&wanted, &server).await.unwrap_err();
    assert!(!failure.permanent, "{failure:?}");
    assert!(server.received().is_empty(), "nothing goes out unencrypted");
}

#[tokio::test]
async fn a_wrong_password_is_no_fault_of_the_mail() {
    let server = MailServer::start(MailSecurity::StartTls);
    let login = Some(("rapport".to_owned(), "wrong".to_owned()));
    let failure = try_test(&Configured { login, ..configured(&server) }, &server).await.unwrap_err();
    assert!(!failure.permanent && failure.error.contains("535"), "{failure:?}");
    assert!(!failure.error.contains("wrong"), "{failure:?}");
}

#[tokio::test]
async fn a_server_nobody_vouches_for_gets_nothing() {
    for security in [MailSecurity::StartTls, MailSecurity::Tls] {
        let (server, other) = (MailServer::start(security), MailServer::start(security));
        let failure = try_test(&configured(&server), &other).await.unwrap_err();
        assert!(!failure.permanent, "{failure:?}");
        assert!(server.received().is_empty());
    }
}

#[tokio::test]
async fn what_the_server_says_decides_and_is_kept() {
    let server = MailServer::start(MailSecurity::Plain);
    for (answer, permanent) in [
        ("550 5.1.1 no such mailbox", true),
        ("553 5.1.3 bad address", true),
        ("451 4.3.0 try later", false),
        ("530 5.7.0 log in first", false),
    ] {
        server.refuse(Some(answer));
        let failure = try_test(&configured(&server), &server).await.unwrap_err();
        assert_eq!(failure.permanent, permanent, "{failure:?}");
        assert!(failure.error.contains(&answer[4..]), "{failure:?}");
    }
    server.refuse(None);
    assert!(try_test(&configured(&server), &server).await.is_ok());
}

#[tokio::test]
async fn a_server_that_is_away_is_a_temporary_failure() {
    let mut server = MailServer::start(MailSecurity::Tls);
    let wanted = configured(&server);
    server.stop();
    assert!(!try_test(&wanted, &server).await.unwrap_err().permanent);
}

#[tokio::test]
async fn headers_hold_what_they_should_and_nothing_can_be_smuggled_in() {
    let server = MailServer::start(MailSecurity::Plain);
    let letter = Letter {
        id: "mai_1",
        recipient: "ana@acme.test",
        subject: "Grüße 🎉\r\nBcc: all@acme.test\nX-Evil: 1",
        plain: "Zeile eins\nשלום\n.\nnach dem Punkt\n",
        html: "<p>Zeile eins</p>",
        date: now(),
    };
    mailer(&server).send(letter).await.unwrap();
    let mail = server.received().remove(0);
    assert_eq!(mail.header("Subject"), "Grüße 🎉 Bcc: all@acme.test X-Evil: 1");
    assert_eq!(mail.header("From"), FROM);
    assert_eq!(mail.header("To"), "ana@acme.test");
    assert_eq!(mail.header("Message-ID"), "<mai_1@crm.acme.test>");
    assert_eq!(mail.header("Auto-Submitted"), "auto-generated");
    assert!(
        mail.header("Date").contains("5 Jan 2026 09:00:00")
            || mail.header("Date").contains("05 Jan 2026 09:00:00")
    );
    assert_eq!(mail.content_type, "multipart/alternative");
    let names: Vec<&str> = mail.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert!(!names.iter().any(|name| ["Bcc", "X-Evil"].contains(name)), "{names:?}");
    assert_eq!(mail.to, ["ana@acme.test"]);
    assert_eq!(mail.plain.replace("\r\n", "\n").trim_end(), letter.plain.trim_end());
    assert_eq!(mail.html.trim_end(), letter.html);
    assert!(mail.raw.is_ascii(), "it passes servers without 8-bit support");
}

#[tokio::test]
async fn an_address_no_server_would_take_is_ended_without_one() {
    let server = MailServer::start(MailSecurity::Plain);
    let failure = mailer(&server).send_test(ID, "not an address", now()).await.unwrap_err();
    assert!(failure.permanent, "{failure:?}");
}

#[test]
fn a_sender_must_be_an_address() {
    let server =
        Configured { host: "localhost".to_owned(), port: 25, security: Security::Plain, login: None };
    assert!(Mailer::new(&server, "nobody", &[]).is_err());
}

//! Notices: people are told when something about their login changes, with what, when, from where and what to do.

use std::net::IpAddr;

use rapport_app::credential::CreateToken;
use rapport_app::mail::Outgoing;
use rapport_app::password_reset::{OpenReset, SendReset};
use rapport_app::person::ChangePassword;
use rapport_app::session::{EndOneSession, EndOtherSessions, Proven, read_cookie};
use rapport_app::{Access, Command, Error, Origin, password};
use rapport_domain::credential::{Presented, TokenRequest};
use rapport_domain::device::Device;
use rapport_domain::id::PersonId;
use rapport_domain::mail::Kind;
use rapport_domain::member::{Email, Role};
use rapport_domain::password::Known;
use rapport_domain::request_id::RequestId;
use rapport_testkit::app::Hire;
use rapport_testkit::{TestApp, TestCompany, block_on};
use serde_json::json;

use crate::mail::{BASE_URL, mails, on_both_with_mail, take};

const OLD: &str = "kestrel over 7 bridges";
const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

fn origin() -> Origin {
    let address: IpAddr = [192, 0, 2, 7].into();
    Origin { address, request: RequestId::numbered(1, 1), device: Device::of(FIREFOX) }
}

fn write<C: Command>(company: &TestCompany, access: &Access, command: C) -> Result<C::Reply, Error> {
    block_on(company.app().write_from(access, Some(origin()), command))
}

fn ana(company: &TestCompany) -> PersonId {
    let hire = Hire {
        email: Email::parse("ana@alpha.test").unwrap(),
        name: "Ana".to_owned(),
        role: Role::Owner,
        password_hash: password::hash(company.app().services(), OLD).unwrap(),
        is_proven: false,
    };
    block_on(company.app().write(&Access::System(company.id()), hire)).unwrap().person
}

fn log_in(company: &TestCompany, person: PersonId, is_new_browser: bool) -> Presented {
    let proven = Proven { person, company: company.id() };
    let begin = proven.begin(Some(FIREFOX)).announced(is_new_browser);
    read_cookie(&write(company, &proven.access(), begin).unwrap()).unwrap()
}

/// The only mail that waits: it has the facts that every notice has.
fn notice(company: &TestCompany) -> Outgoing {
    let mut waiting = take(company);
    assert_eq!(waiting.len(), 1);
    let mail = waiting.remove(0);
    assert_eq!(mail.recipient.as_str(), "ana@alpha.test");
    assert!(mails(company).iter().any(|kept| kept.id == mail.id && kept.kind == Kind::Notice));
    for text in [&mail.plain, &mail.html] {
        for fact in ["Ana", "acme", "5 Jan 2026, 10:00 CET", "192.0.2.7, Firefox on Linux", BASE_URL] {
            assert!(text.contains(fact), "{fact}: {text}");
        }
    }
    mail
}

fn says(mail: &Outgoing, subject: &str, parts: &[&str]) {
    assert_eq!(mail.subject, subject);
    for part in parts {
        assert!(mail.plain.contains(part), "{part}: {}", mail.plain);
    }
}

fn in_berlin(rule: impl Fn(&TestApp)) {
    on_both_with_mail(|app| {
        app.set(json!({"time_zone": "Europe/Berlin"}));
        rule(app);
    });
}

#[test]
fn a_changed_password_is_told() {
    in_berlin(|app| {
        let person = ana(app);
        let session = log_in(app, person, false);
        let login = app.read(move |snapshot| rapport_store::member::login(snapshot, person)).unwrap();
        let email = Email::parse("ana@alpha.test").unwrap();
        let known = Known { email: &email, name: "Ana", company: "acme" };
        let passwords = (OLD, "harbour lights in June");
        let change = ChangePassword::check(app.app().services(), &login, &known, passwords, session).unwrap();
        write(app, &Access::Credential(session), change).unwrap();
        let mail = notice(app);
        says(&mail, "Your password was changed on Rapport", &["If this wasn't you", "/forgotten"]);
        assert!(!mail.plain.contains("harbour"), "never a password");
    });
}

#[test]
fn a_password_that_was_reset_is_told_and_that_it_proved_the_address() {
    in_berlin(|app| {
        let person = ana(app);
        for proves in [true, false] {
            app.write(SendReset(person)).unwrap();
            let link = take(app).remove(0).plain;
            let token = link.split("/password-reset/").nth(1).unwrap().split_whitespace().next().unwrap();
            let open = block_on(OpenReset::look(app.app(), token)).unwrap();
            let access = open.access();
            write(app, &access, open.confirm("a hash".to_owned())).unwrap();
            let mail = notice(app);
            says(&mail, "Your password was reset on Rapport", &["secure your mailbox"]);
            assert_eq!(mail.plain.contains("confirmed that this address is yours"), proves);
        }
    });
}

#[test]
fn a_token_in_their_name_is_told() {
    in_berlin(|app| {
        let person = ana(app);
        let name = "CRM\r\nBcc: all@acme.test";
        let request = TokenRequest { person: Some(person), ..TokenRequest::of_company(name, Role::Admin) };
        let made = write(app, app.token(), CreateToken(request)).unwrap();
        let mail = notice(app);
        let parts = ["First token created the API token “CRM Bcc: all@acme.test” in your name", "role admin"];
        says(&mail, "An API token was created in your name on Rapport", &parts);
        assert!(!mail.plain.contains(&made.text[8..]), "never the token");
        write(app, app.token(), CreateToken(TokenRequest::of_company("CRM", Role::Member))).unwrap();
        assert!(take(app).is_empty(), "a token of the company is nobody's");
    });
}

#[test]
fn a_login_with_a_new_browser_is_told() {
    in_berlin(|app| {
        let person = ana(app);
        log_in(app, person, true);
        says(&notice(app), "New login on Rapport", &["a browser that we didn't know", "/forgotten"]);
        log_in(app, person, false);
        assert!(take(app).is_empty());
    });
}

#[test]
fn ended_sessions_are_told() {
    in_berlin(|app| {
        let person = ana(app);
        let (here, _) = (log_in(app, person, false), log_in(app, person, false));
        let others = app.read(move |snapshot| rapport_store::session::of_person(snapshot, person));
        let other = others.into_iter().find(|listed| !listed.hash.matches(&here.hash)).unwrap().id;
        write(app, &Access::Credential(here), EndOneSession(other)).unwrap();
        let subject = "You were logged out elsewhere on Rapport";
        says(&notice(app), subject, &["One of your sessions was logged out.", "/profile"]);
        write(app, &Access::Credential(here), EndOtherSessions(here)).unwrap();
        says(&notice(app), subject, &["All your sessions but one were logged out."]);
    });
}

#[test]
fn without_mail_nothing_is_kept() {
    TestApp::on_both(|app| {
        let person = ana(app);
        log_in(app, person, true);
        assert_eq!((app.rows("mail"), app.rows("mail_content")), (0, 0));
    });
}

#[test]
fn somebody_who_left_is_still_told() {
    in_berlin(|app| {
        let person = ana(app);
        log_in(app, person, true);
        app.write(rapport_app::member::RemoveMember(person)).unwrap();
        says(&notice(app), "New login on Rapport", &[]);
    });
}

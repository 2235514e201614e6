//! Forgotten passwords: anyone can ask, only the person gets the answer, usable once within an hour.

use rapport_app::member::ChangeMember;
use rapport_app::password_reset::{OpenReset, RequestReset, SendReset, answer_requests};
use rapport_app::{Access, Error, password};
use rapport_domain::id::PersonId;
use rapport_domain::member::{Email, Role};
use rapport_testkit::{TestApp, TestCompany, all, block_on};

use crate::mail::{BASE_URL, member, on_both_with_mail, take};
use crate::refusal;

const INVALID: &str = "invalid /token invalid_token";

fn ask(app: &TestApp, email: &str) {
    let command = RequestReset(Email::parse(email).unwrap());
    block_on(app.app().write(&Access::NO_COMPANY, command)).unwrap();
    block_on(answer_requests(app.app())).unwrap();
}

fn token_in(text: &str) -> String {
    let start = text.find("rpw_").unwrap_or_else(|| panic!("no link in {text}"));
    text[start..].split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap().to_owned()
}

fn confirm(company: &TestCompany, token: &str, chosen: &str) -> Result<(), Error> {
    let open = block_on(OpenReset::look(company.app(), token))?;
    let access = open.access();
    let hash = password::hash(company.app().services(), chosen)?;
    block_on(company.app().write(&access, open.confirm(hash)))
}

fn logs_in(company: &TestCompany, email: &str, tried: &str) -> bool {
    let email = Email::parse(email).unwrap();
    let login = company.read(move |snapshot| {
        let found = rapport_store::member::by_email(snapshot, &[&email])?.remove(0);
        rapport_store::member::login(snapshot, found.person)
    });
    password::verify(tried, &login.expect("the person").password_hash)
}

fn deactivate(company: &TestCompany, person: PersonId) {
    company.write(ChangeMember { person, role: None, active: Some(false) }).unwrap();
}

#[test]
fn the_link_comes_by_mail_and_changes_the_password_once() {
    on_both_with_mail(|app| {
        member(app, "ana@acme.test", Role::Member);
        ask(app, "ANA@acme.test");
        let sent = take(app).remove(0);
        assert_eq!(sent.recipient.as_str(), "ana@acme.test");
        let token = token_in(&sent.plain);
        assert!(sent.html.contains(&format!("{BASE_URL}/password-reset/{token}")), "{}", sent.html);
        confirm(app, &token, "a new password").unwrap();
        assert!(logs_in(app, "ana@acme.test", "a new password"));
        assert_eq!(refusal(confirm(app, &token, "another password")), INVALID);
        assert!(logs_in(app, "ana@acme.test", "a new password"));
    });
}

#[test]
fn who_is_not_there_gets_nothing_and_nothing_stays() {
    on_both_with_mail(|app| {
        let away = member(app, "away@acme.test", Role::Member);
        deactivate(app, away);
        for email in ["nobody@acme.test", "away@acme.test"] {
            ask(app, email);
        }
        assert_eq!(["reset_request", "password_reset", "mail"].map(|table| app.rows(table)), [0, 0, 0]);
    });
}

#[test]
fn it_holds_for_an_hour() {
    on_both_with_mail(|app| {
        ask(app, "owner@acme.test");
        let token = token_in(&take(app)[0].plain);
        app.clock().advance_seconds(3_599);
        assert!(block_on(OpenReset::look(app.app(), &token)).is_ok());
        app.clock().advance_seconds(1);
        assert_eq!(refusal(confirm(app, &token, "a new password")), INVALID);
    });
}

#[test]
fn using_one_takes_the_others_away() {
    on_both_with_mail(|app| {
        ask(app, "owner@acme.test");
        let first = token_in(&take(app)[0].plain);
        app.clock().advance_seconds(60);
        ask(app, "owner@acme.test");
        let second = token_in(&take(app)[0].plain);
        confirm(app, &first, "a new password").unwrap();
        assert_eq!(refusal(confirm(app, &second, "another password")), INVALID);
    });
}

#[test]
fn a_person_is_mailed_three_times_an_hour_at_most() {
    on_both_with_mail(|app| {
        for _ in 0..6 {
            ask(app, "owner@acme.test");
        }
        assert_eq!(app.rows("mail"), 3);
        app.clock().advance_seconds(3_601);
        ask(app, "owner@acme.test");
        assert_eq!(app.rows("mail"), 4);
    });
}

#[test]
fn two_nodes_answer_a_request_once() {
    on_both_with_mail(|app| {
        let other = app.another_node();
        let command = RequestReset(Email::parse("owner@acme.test").unwrap());
        block_on(app.app().write(&Access::NO_COMPANY, command)).unwrap();
        for answered in block_on(all([app.app(), &other].map(answer_requests))) {
            answered.unwrap();
        }
        assert_eq!((app.rows("mail"), app.rows("reset_request")), (1, 0));
    });
}

#[test]
fn two_who_use_it_at_once_set_one_password() {
    on_both_with_mail(|app| {
        ask(app, "owner@acme.test");
        let token = token_in(&take(app)[0].plain);
        let opened: Vec<_> = (0..4).map(|_| block_on(OpenReset::look(app.app(), &token)).unwrap()).collect();
        let access = opened[0].access();
        let commands =
            opened.into_iter().zip(0..).map(|(open, number)| open.confirm(format!("hash {number}")));
        let answers = block_on(all(commands.map(|command| app.app().write(&access, command))));
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1, "{answers:?}");
    });
}

#[test]
fn without_mail_an_admin_hands_the_link_over() {
    TestApp::on_both(|app| {
        ask(app, "owner@acme.test");
        assert_eq!(
            (app.rows("reset_request"), app.rows("password_reset")),
            (0, 0),
            "there is no way to send it"
        );
        let ana = member(app, "ana@acme.test", Role::Member);
        let link = app.write(SendReset(ana)).unwrap().expect("a link");
        confirm(app, &token_in(&link), "a new password").unwrap();
        assert!(logs_in(app, "ana@acme.test", "a new password"));
    });
}

#[test]
fn with_mail_an_admin_never_sees_the_link() {
    on_both_with_mail(|app| {
        let ana = member(app, "ana@acme.test", Role::Member);
        assert_eq!(app.write(SendReset(ana)).unwrap(), None);
        assert_eq!(take(app)[0].recipient.as_str(), "ana@acme.test");
        let owner = app.read(rapport_store::member::list).remove(0).person;
        let admin = app.token_of(Role::Admin);
        assert_eq!(refusal(app.write_as(&admin, SendReset(owner))), "forbidden role_required");
        deactivate(app, ana);
        assert_eq!(refusal(app.write(SendReset(ana))), "conflict member_inactive");
    });
}

#[test]
fn no_usable_secret_is_kept() {
    on_both_with_mail(|app| {
        ask(app, "owner@acme.test");
        let kept =
            |condition: &str| app.number(&format!("SELECT count(*) FROM mail_content WHERE {condition}"));
        assert_eq!(kept("plain LIKE '%rpw!_%' ESCAPE '!' OR html LIKE '%rpw!_%' ESCAPE '!'"), 0);
        let sent = take(app).remove(0);
        let failure = rapport_domain::mail::Failure { permanent: true, error: "no".to_owned() };
        block_on(rapport_app::mail::record(app.app(), app.id(), &sent, Err(failure))).unwrap();
        assert_eq!(kept("secret IS NOT NULL"), 0, "removed with the mail that failed");
    });
}

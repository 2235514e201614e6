//! Limits on mail that people cause: for each address over all companies, and for each company. They hold for all nodes
//! together.

use rapport_app::company::{CreateCompany, OwnerLogin};
use rapport_app::digest::send_now;
use rapport_app::invitation::{Invite, Invited, ResendInvitation};
use rapport_app::mail_test::SendTestMail;
use rapport_app::password_reset::{RequestReset, SendReset, answer_requests};
use rapport_app::retention::{Round, step};
use rapport_app::session::{Proven, read_cookie};
use rapport_app::{Access, Error};
use rapport_domain::company::Slug;
use rapport_domain::digest::Audience;
use rapport_domain::mail::Kind;
use rapport_domain::member::{Email, Role};
use rapport_testkit::{TestApp, TestCompany, all, block_on};

use crate::mail::{mails, on_both_with_mail};
use crate::refusal;

const ANA: &str = "ana@alpha.test";
const TOO_MANY: &str = "too many too_many_mails";

fn email(text: &str) -> Email {
    Email::parse(text).unwrap()
}

fn invite(company: &TestCompany, address: &str) -> Result<Invited, Error> {
    company.write(Invite { email: email(address), name: None, role: Role::Member })
}

fn seconds<T>(refused: Result<T, Error>) -> u64 {
    match refused {
        Err(Error::TooMany { seconds, .. }) => seconds,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it was sent"),
    }
}

#[test]
fn a_company_mails_an_address_three_times_an_hour() {
    on_both_with_mail(|app| {
        let invitation = invite(app, ANA).unwrap().invitation.id;
        for _ in 0..2 {
            app.clock().advance_seconds(60);
            app.write(ResendInvitation(invitation)).unwrap();
        }
        let before = app.read(rapport_store::invitation::list);
        app.clock().advance_seconds(60);
        assert_eq!(seconds(app.write(ResendInvitation(invitation))), 3_600 - 180);
        assert_eq!(mails(app).len(), 3);
        assert_eq!(app.read(rapport_store::invitation::list), before, "its link still works");
        // Another address, and another kind of mail, have limits of their own.
        invite(app, "bo@alpha.test").unwrap();
        app.clock().advance_seconds(3_600 - 180);
        app.write(ResendInvitation(invitation)).unwrap();
    });
}

#[test]
fn an_address_gets_five_mails_of_a_kind_an_hour_from_all_companies() {
    on_both_with_mail(|app| {
        let companies: Vec<TestCompany> = (0..6).map(|number| app.company(&format!("c{number}"))).collect();
        for company in &companies[..5] {
            invite(company, ANA).unwrap();
        }
        assert_eq!(refusal(invite(&companies[5], ANA)), TOO_MANY);
        assert!(companies[5].read(rapport_store::invitation::list).is_empty());
        // Invitations don't keep anyone from a new password.
        let login = companies[5].employ(ANA, "Ana", Role::Member);
        companies[5].write(SendReset(login.person)).unwrap();
        app.clock().advance_seconds(3_600);
        invite(app, ANA).unwrap();
    });
}

#[test]
fn a_limit_holds_for_all_nodes_at_once() {
    on_both_with_mail(|app| {
        let other = app.another_node();
        let companies: Vec<TestCompany> = (0..12).map(|number| app.company(&format!("c{number}"))).collect();
        let invitations = companies.iter().enumerate().map(|(number, company)| {
            let node = if number % 2 == 0 { app.app() } else { &other };
            let command = Invite { email: email(ANA), name: None, role: Role::Member };
            node.write(company.token(), command)
        });
        let sent = block_on(all(invitations)).into_iter().flatten().count();
        assert_eq!((sent, app.rows("mail")), (5, 5));
    });
}

#[test]
fn a_company_causes_a_hundred_mails_an_hour() {
    on_both_with_mail(|app| {
        let globex = app.company("globex");
        for number in 0..100 {
            invite(app, &format!("p{number}@alpha.test")).unwrap();
        }
        assert_eq!(refusal(invite(app, ANA)), TOO_MANY);
        invite(&globex, ANA).unwrap();
        // Who forgot their password doesn't count against the company, and still gets a mail.
        let login = app.employ("bo@acme.test", "Bo", Role::Member);
        app.write(SendReset(login.person)).unwrap();
        app.clock().advance_seconds(3_600);
        invite(app, "cy@alpha.test").unwrap();
    });
}

#[test]
fn a_forgotten_password_gets_the_same_answer_and_no_mail() {
    on_both_with_mail(|app| {
        let companies: Vec<TestCompany> = (0..4).map(|number| app.company(&format!("c{number}"))).collect();
        for company in &companies {
            company.employ(ANA, "Ana", Role::Member);
        }
        for _ in 0..2 {
            block_on(app.app().write(&Access::NO_COMPANY, RequestReset(email(ANA)))).unwrap();
            block_on(answer_requests(app.app())).unwrap();
        }
        assert_eq!((app.rows("mail"), app.rows("password_reset"), app.rows("reset_request")), (5, 5, 0));
    });
}

#[test]
fn tests_and_digests_on_request_are_limited_too() {
    on_both_with_mail(|app| {
        let owner = app.read(rapport_store::member::list).remove(0).person;
        let proven = Proven { person: owner, company: app.id() };
        let cookie = block_on(app.app().write(&proven.access(), proven.begin(None))).unwrap();
        let session = Access::Credential(read_cookie(&cookie).unwrap());
        let digest = || block_on(send_now(app.app(), app.token(), None, Audience::Everyone));
        for _ in 0..10 {
            app.write_as(&session, SendTestMail).unwrap();
            digest().unwrap();
        }
        assert_eq!(refusal(app.write_as(&session, SendTestMail)), TOO_MANY);
        assert_eq!(refusal(digest()), TOO_MANY);
        let kinds = |kind: Kind| mails(app).iter().filter(|mail| mail.kind == kind).count();
        assert_eq!((kinds(Kind::Test), kinds(Kind::Digest)), (10, 10));
    });
}

#[test]
fn the_servers_administrator_has_no_limit() {
    on_both_with_mail(|app| {
        for number in 0..7 {
            let create = CreateCompany {
                slug: Slug::parse(&format!("c{number}")).unwrap(),
                name: "C".to_owned(),
                owner: email(ANA),
                owner_name: "Ana".to_owned(),
                owner_login: OwnerLogin::Invited,
            };
            block_on(app.app().write(&Access::NO_COMPANY, create)).unwrap();
        }
        assert_eq!(app.rows("mail"), 7);
    });
}

#[test]
fn without_mail_links_are_handed_over_without_a_limit() {
    TestApp::on_both(|app| {
        let invitation = invite(app, ANA).unwrap().invitation.id;
        for _ in 0..10 {
            assert!(app.write(ResendInvitation(invitation)).unwrap().link.is_some());
        }
        assert_eq!(app.rows("mail_budget"), 0);
    });
}

#[test]
fn what_was_counted_is_forgotten_after_a_day() {
    on_both_with_mail(|app| {
        invite(app, ANA).unwrap();
        let stored = app.number("SELECT count(*) FROM mail_budget WHERE sent LIKE '%ana%'");
        assert_eq!((app.rows("mail_budget"), stored), (1, 0), "it names nobody");
        app.clock().advance_days(2);
        let mut round = Round::default();
        while block_on(step(app.app(), app.id(), &mut round)).unwrap() {}
        assert_eq!(app.rows("mail_budget"), 0);
    });
}

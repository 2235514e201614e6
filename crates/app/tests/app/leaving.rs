//! Leaving a company, and what becomes of a login that belongs to none.

use std::collections::BTreeSet;

use data_encoding::HEXLOWER;
use rapport_app::account::ChangeStatus;
use rapport_app::departed::step;
use rapport_app::invitation::{Invite, Offer};
use rapport_app::member::{LeaveCompany, RemoveMember};
use rapport_app::session::{LogIn, Proven, read_cookie};
use rapport_app::{Access, Needs, password};
use rapport_domain::account::StatusChange;
use rapport_domain::audit::Filter;
use rapport_domain::history::Actor;
use rapport_domain::id::PersonId;
use rapport_domain::invitation::Acceptance;
use rapport_domain::member::{Email, Role};
use rapport_domain::pipeline::Status;
use rapport_domain::right::Right;
use rapport_testkit::app::Hire;
use rapport_testkit::{TestApp, TestCompany, block_on, raw};
use serde_json::json;

use crate::every_table::with_column;
use crate::mail::{on_both_with_mail, take};
use crate::refusal;

const ANA: &str = "ana@alpha.test";
const PASSWORD: &str = "only Ana knows this one";

fn hire(company: &TestCompany, role: Role) -> PersonId {
    let password_hash = password::hash(company.app().services(), PASSWORD).unwrap();
    let email = Email::parse(ANA).unwrap();
    let hire = Hire { email, name: "Ana".to_owned(), role, password_hash, is_proven: true };
    company.write_as(&Access::System(company.id()), hire).unwrap().person
}

fn session(company: &TestCompany, person: PersonId) -> Access {
    let proven = Proven { person, company: company.id() };
    let cookie = block_on(company.app().write(&proven.access(), proven.begin(None))).unwrap();
    Access::Credential(read_cookie(&cookie).unwrap())
}

fn is_alive(company: &TestCompany, session: &Access) -> bool {
    block_on(company.app().read(session, Needs::Right(Right::Read), |_, _| Ok(()))).is_ok()
}

/// Looks at every login, as the job does.
fn look(app: &TestApp) {
    let mut after = None;
    loop {
        after = block_on(step(app.app(), after)).unwrap();
        if after.is_none() {
            return;
        }
    }
}

fn exists(app: &TestApp) -> bool {
    app.number(&format!("SELECT count(*) FROM person WHERE email = '{ANA}'")) == 1
}

#[test]
fn who_leaves_is_out_of_this_company_only_and_stays_in_its_history() {
    TestApp::on_both(|app| {
        let globex = app.company("globex");
        let ana = hire(app, Role::Member);
        assert_eq!(hire(&globex, Role::Member), ana);
        let (here, also_here, there) = (session(app, ana), session(app, ana), session(&globex, ana));
        let account = app.upsert(json!({"imported_id": "crm-1"})).account.id;
        let change = StatusChange { status: Status::Lost, note: None };
        app.write_as(&here, ChangeStatus { id: account, change }).unwrap();

        app.write_as(&here, LeaveCompany).unwrap();
        assert!(!is_alive(app, &here) && !is_alive(app, &also_here));
        assert!(is_alive(&globex, &there), "their session in the other company stays");
        let by = Actor::Person { id: ana, name: "Ana".to_owned() };
        assert_eq!(app.history(account).last().unwrap().actor, by);
        let page = app.read(|snapshot| rapport_store::audit::list(snapshot, &Filter::default(), None, 1));
        assert_eq!((page.items[0].action.as_str(), &page.items[0].actor), ("member.left", &by));
        assert_eq!(refusal(app.write(RemoveMember(ana))), "no such member");
    });
}

#[test]
fn the_last_owner_stays() {
    TestApp::on_both(|app| {
        let owner = app.read(rapport_store::member::list).remove(0).person;
        let theirs = session(app, owner);
        assert_eq!(refusal(app.write_as(&theirs, LeaveCompany)), "conflict last_owner");
        assert!(is_alive(app, &theirs), "nothing has happened");
        hire(app, Role::Owner);
        app.write_as(&theirs, LeaveCompany).unwrap();
        assert_eq!(refusal(app.write(LeaveCompany)), "unauthenticated", "a token can't leave");
    });
}

#[test]
fn a_login_without_a_company_is_kept_for_a_month() {
    TestApp::on_both(|app| {
        let ana = hire(app, Role::Member);
        app.write_as(&session(app, ana), LeaveCompany).unwrap();
        look(app);
        app.clock().advance_days(29);
        look(app);
        assert!(exists(app));
        app.clock().advance_days(1);
        look(app);
        assert!(!exists(app));
        assert_eq!(app.rows("person"), 1, "the owner stays");
    });
}

#[test]
fn who_comes_back_within_the_month_keeps_their_login() {
    on_both_with_mail(|app| {
        let ana = hire(app, Role::Member);
        app.write_as(&session(app, ana), LeaveCompany).unwrap();
        look(app);
        app.clock().advance_days(29);
        app.write(Invite { email: Email::parse(ANA).unwrap(), name: None, role: Role::Member }).unwrap();
        let mail = take(app).remove(0).plain;
        let start = mail.find("rjn_").unwrap();
        let token = mail[start..].split_whitespace().next().unwrap().to_owned();
        let offer = block_on(Offer::look(app.app(), &token)).unwrap();
        let acceptance = Acceptance { token, name: None, password: PASSWORD.to_owned(), login: None };
        let (access, accept) = (offer.access(), offer.answer(app.app().services(), acceptance).unwrap());
        assert_eq!(block_on(app.app().write(&access, accept)).unwrap().person, ana);
        app.clock().advance_days(5);
        look(app);
        let looked = block_on(LogIn::look(app.app(), Email::parse(ANA).unwrap(), None)).unwrap();
        assert!(looked.check(PASSWORD).is_some());
        // Leaving again begins a new month.
        app.write_as(&session(app, ana), LeaveCompany).unwrap();
        look(app);
        app.clock().advance_days(29);
        look(app);
        assert!(exists(app));
    });
}

#[test]
fn nothing_of_a_person_is_left_when_their_login_ends() {
    TestApp::on_both(|app| {
        let ana = hire(app, Role::Member);
        app.write_as(&session(app, ana), LeaveCompany).unwrap();
        look(app);
        // Whatever else knows the person by their id.
        let tables = with_column(app, "person");
        let about_people: BTreeSet<&str> = tables.keys().map(String::as_str).collect();
        let expected = [
            "address_change",
            "credential",
            "mail",
            "member",
            "passkey",
            "password_reset",
            "recovery_code",
            "session",
            "sso_identity",
            "totp",
        ];
        assert_eq!(about_people, BTreeSet::from(expected));
        let hex = HEXLOWER.encode(ana.as_bytes());
        let id = match app.database() {
            rapport_store::Database::Sqlite(_) => format!("x'{hex}'"),
            rapport_store::Database::Postgres(_) => format!("'\\x{hex}'::bytea"),
        };
        let insert = format!(
            "INSERT INTO password_reset (hash, person, created_at, expires_at, by_mail) VALUES ({id}, {id}, 0, 0, 0); \
             INSERT INTO address_change (hash, person, email, created_at, expires_at) VALUES ({id}, {id}, 'x', 0, 0); \
             INSERT INTO passkey (person, id, credential, public_key, name, created_at) \
             VALUES ({id}, {id}, {id}, 'x', 'x', 0); \
             INSERT INTO totp (person, secret, created_at) VALUES ({id}, {id}, 0); \
             INSERT INTO recovery_code (person, hash, created_at) VALUES ({id}, {id}, 0); \
             INSERT INTO sso_identity (company, issuer, subject, person, email, created_at, last_login_at) \
             VALUES ({}, 'https://login.test', 'ana', {id}, '{ANA}', 0, 0)",
            app.id().0
        );
        raw::run(app.database(), &insert);
        app.clock().advance_days(30);
        look(app);
        for table in about_people {
            assert_eq!(
                app.number(&format!("SELECT count(*) FROM {table} WHERE person = {id}")),
                0,
                "{table}"
            );
        }
        // Nor by their address, except where history says who did something.
        let emails = with_column(app, "email");
        for table in emails.keys() {
            assert_eq!(
                app.number(&format!("SELECT count(*) FROM {table} WHERE email = '{ANA}'")),
                0,
                "{table}"
            );
        }
    });
}

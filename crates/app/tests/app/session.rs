//! Sessions: how long they last, who ends them, and when they ask again who is there.

use rapport_app::account::DeleteAccount;
use rapport_app::channel::CreateChannel;
use rapport_app::credential::{CreateToken, Key, RevokeToken, RotateKey};
use rapport_app::erasure::ErasePayloads;
use rapport_app::invitation::{Invite, ResendInvitation, RevokeInvitation};
use rapport_app::member::{ChangeMember, RemoveMember};
use rapport_app::password_reset::SendReset;
use rapport_app::person::{ChangePassword, Rename};
use rapport_app::proof::ProveAgain;
use rapport_app::read::profile;
use rapport_app::retention::{Round, step};
use rapport_app::session::{
    BeginSession, EndOneSession, EndOtherSessions, EndReplaced, EndSession, NoteSessions, Proven, read_cookie,
};
use rapport_app::settings::PatchSettings;
use rapport_app::webhook::RotateSecret;
use rapport_app::{Access, Command, Error, Needs, password};
use rapport_domain::audit::Filter;
use rapport_domain::credential::{Presented, SecretHash, TokenRequest};
use rapport_domain::id::{PersonId, SessionId};
use rapport_domain::member::{Email, Role};
use rapport_domain::password::Known;
use rapport_domain::right::Right;
use rapport_testkit::app::Hire;
use rapport_testkit::{TestApp, TestCompany, block_on, create_webhook};
use serde_json::{Value, json};

use crate::refusal;

const MEMBER: Needs = Needs::Right(Right::Read);
const HERS: &str = "only Ana knows this one";
const REFUSED: &str = "forbidden proof_required";

fn log_in(company: &TestCompany, person: PersonId) -> Access {
    let proven = Proven { person, company: company.id() };
    begun(company, &proven, proven.begin(Some("Firefox/140.0 (X11; Linux)")))
}

fn begun(company: &TestCompany, proven: &Proven, begin: BeginSession) -> Access {
    let cookie = block_on(company.app().write(&proven.access(), begin)).expect("a session");
    Access::Credential(read_cookie(&cookie).expect("a cookie"))
}

fn presented(session: &Access) -> Presented {
    let Access::Credential(presented) = session else { panic!("a session") };
    *presented
}

/// Uses the session, and notes that it was used as the service does now and then.
fn is_alive(company: &TestCompany, session: &Access) -> bool {
    let is_alive = block_on(company.app().read(session, MEMBER, |_, _| Ok(()))).is_ok();
    for (company_id, id, at) in company.app().services().drain_sessions() {
        let note = NoteSessions(vec![(id, at)]);
        block_on(company.app().write(&Access::System(company_id), note)).expect("noted");
    }
    is_alive
}

fn limit(company: &TestCompany, idle_minutes: i64, max_minutes: i64) {
    company.set(json!({"session_idle_minutes": idle_minutes, "session_max_minutes": max_minutes}));
}

fn advance_minutes(app: &TestApp, minutes: i64) {
    app.clock().advance_seconds(60 * minutes);
}

/// Ana, whose password is known here, in a company.
fn ana(company: &TestCompany, role: Role) -> PersonId {
    let hire = Hire {
        email: Email::parse("ana@alpha.test").unwrap(),
        name: "Ana".to_owned(),
        role,
        password_hash: password::hash(company.app().services(), HERS).unwrap(),
        is_proven: true,
    };
    block_on(company.app().write(&Access::System(company.id()), hire)).unwrap().person
}

/// The ids of a person's sessions, as their profile page lists them.
fn listed(company: &TestCompany, session: &Access) -> Vec<SessionId> {
    let found = block_on(company.app().read(session, MEMBER, profile::page)).expect("their profile");
    found.reply.expect("a person").sessions.into_iter().map(|listed| listed.id).collect()
}

/// The person's session in a company.
fn session_in(company: &TestCompany, person: PersonId) -> SessionId {
    let name = company.slug().to_owned();
    let sessions = company.read(move |snapshot| rapport_store::session::of_person(snapshot, person));
    sessions.into_iter().find(|listed| listed.company == name).expect("a session").id
}

/// The newest entry of the audit log.
fn newest(company: &TestCompany) -> (String, Value) {
    let page = company.read(|snapshot| rapport_store::audit::list(snapshot, &Filter::default(), None, 1));
    let entry = page.items.into_iter().next().expect("an entry");
    (entry.action, serde_json::from_str(&entry.detail).unwrap())
}

#[test]
fn a_session_lasts_as_long_as_its_company_says() {
    TestApp::on_both(|app| {
        limit(app, 30, 60);
        let session = log_in(app, ana(app, Role::Member));
        for minutes in [29, 29] {
            advance_minutes(app, minutes);
            assert!(is_alive(app, &session), "it was used {minutes} minutes ago");
        }
        advance_minutes(app, 2);
        assert!(!is_alive(app, &session), "it began an hour ago");
        let unused = log_in(app, app.read(rapport_store::member::list)[0].person);
        advance_minutes(app, 30);
        assert!(!is_alive(app, &unused), "nobody used it for half an hour");
    });
}

#[test]
fn a_shorter_limit_ends_old_sessions_at_once_and_only_there() {
    TestApp::on_both(|app| {
        let b = app.company("b");
        let (here, there) = (ana(app, Role::Member), ana(&b, Role::Member));
        let (here, there) = (log_in(app, here), log_in(&b, there));
        advance_minutes(app, 61);
        limit(app, 60, 600);
        assert!(!is_alive(app, &here));
        assert!(is_alive(&b, &there), "another company's limits stay as they are");
        let round = &mut Round::default();
        while block_on(step(app.app(), app.id(), round)).unwrap() {}
        assert_eq!(app.rows("session"), 1, "those that are over are deleted");
    });
}

#[test]
fn going_to_another_company_is_no_login() {
    TestApp::on_both(|app| {
        let b = app.company("b");
        let person = ana(app, Role::Owner);
        assert_eq!(ana(&b, Role::Owner), person, "one person in both companies");
        limit(&b, 120, 120);
        let here = log_in(app, person);
        advance_minutes(app, 100);
        let proven = Proven { person, company: b.id() };
        let there = begun(&b, &proven, proven.begin(None).replacing(presented(&here)));
        assert!(is_alive(&b, &there));
        assert_eq!(
            refusal(b.write_as(&there, RotateKey(Key::Ingest))),
            REFUSED,
            "the password was typed long ago"
        );
        advance_minutes(app, 20);
        assert!(!is_alive(&b, &there), "it is as old as the session before");
        let nobodys = Presented { hash: SecretHash::from_bytes([9; 32]), ..presented(&there) };
        let forged = proven.begin(None).replacing(nobodys);
        let refused = block_on(b.app().write(&proven.access(), forged));
        assert_eq!(refusal(refused), "unauthenticated", "it continues no session of this person");
    });
}

#[test]
fn people_see_and_end_their_own_sessions_and_nobody_elses() {
    TestApp::on_both(|app| {
        let b = app.company("b");
        let person = ana(app, Role::Member);
        ana(&b, Role::Member);
        let bo = app.employ("bo@acme.test", "Bo", Role::Owner).person;
        let (here, there, theirs) = (log_in(app, person), log_in(&b, person), log_in(app, bo));
        assert_eq!(listed(app, &here).len(), 2, "in all companies");
        let [bos] = listed(app, &theirs)[..] else { panic!("one session") };
        assert_eq!(refusal(app.write_as(&here, EndOneSession(bos))), "no such session");

        let id = session_in(&b, person);
        app.write_as(&here, EndOneSession(id)).unwrap();
        assert!(!is_alive(&b, &there) && is_alive(app, &here) && is_alive(app, &theirs));
        assert_eq!(newest(app), ("session.ended".to_owned(), json!({})), "nothing about another company");
        assert_eq!(refusal(app.write_as(&here, EndOneSession(id))), "no such session");
        log_in(app, person);
        let [_, second] = listed(app, &here)[..] else { panic!("two sessions") };
        app.write_as(&here, EndOneSession(second)).unwrap();
        let (action, detail) = newest(app);
        assert_eq!((action.as_str(), &detail["browser"]), ("session.ended", &json!("Firefox on Linux")));
        assert_eq!(refusal(app.write(EndOneSession(bos))), "unauthenticated", "a token has no sessions");

        let another = log_in(&b, person);
        app.write_as(&here, EndOtherSessions(presented(&here))).unwrap();
        assert!(!is_alive(&b, &another) && is_alive(app, &here) && is_alive(app, &theirs));
    });
}

/// Runs a command in a session, and says how it ended.
fn outcome<C: Command>(app: &TestApp, session: &Access, command: C) -> String {
    match app.write_as(session, command) {
        Ok(_) => "done".to_owned(),
        Err(error) => refusal(Err::<(), _>(error)),
    }
}

#[test]
fn a_session_that_was_left_open_does_nothing_sensitive() {
    TestApp::on_both(|app| {
        let session = log_in(app, ana(app, Role::Owner));
        let bo = app.employ("bo@acme.test", "Bo", Role::Member).person;
        let account = app.upsert(json!({"imported_id": "crm-1"})).account.id;
        let webhook = json!({"url": "https://hooks.acme.test/", "events": ["account.created"]});
        let webhook = app.write(create_webhook(app.app(), &webhook)).unwrap().webhook.id;
        let token = app.write(CreateToken(TokenRequest::of_company("CRM", Role::Member))).unwrap();
        let invite =
            |email: &str| Invite { email: Email::parse(email).unwrap(), name: None, role: Role::Member };
        let invitation = app.write(invite("cy@acme.test")).unwrap().invitation.id;
        let settings = |body: Value| PatchSettings(body.as_object().unwrap().clone());
        let request = || TokenRequest::of_company("x", Role::Member);
        let change = ChangeMember { person: bo, role: Some(Role::Admin), active: None };

        advance_minutes(app, 14);
        assert_eq!(outcome(app, &session, CreateToken(request())), "done", "the login was a proof");
        advance_minutes(app, 1);
        let refused = [
            outcome(app, &session, CreateToken(request())),
            outcome(app, &session, RevokeToken(token.credential.id)),
            outcome(app, &session, RotateKey(Key::Ingest)),
            outcome(app, &session, RotateKey(Key::Inbound)),
            outcome(app, &session, RotateSecret(webhook)),
            outcome(app, &session, change),
            outcome(app, &session, RemoveMember(bo)),
            outcome(app, &session, SendReset(bo)),
            outcome(app, &session, invite("di@acme.test")),
            outcome(app, &session, ResendInvitation(invitation)),
            outcome(app, &session, RevokeInvitation(invitation)),
            outcome(app, &session, settings(json!({"session_max_minutes": 525_600}))),
            outcome(app, &session, settings(json!({"audit_days": 30}))),
            outcome(app, &session, DeleteAccount(account)),
            outcome(app, &session, ErasePayloads { account, after: None }),
        ];
        assert_eq!(refused, [REFUSED; 15]);
        let everyday = [
            outcome(app, &session, settings(json!({"cadence_days": 7, "audit_days": 730}))),
            outcome(app, &session, CreateChannel { name: "Fair".to_owned() }),
            outcome(app, &session, Rename("Ana B".to_owned())),
            outcome(app, &session, EndOtherSessions(presented(&session))),
        ];
        assert_eq!(everyday, ["done"; 4]);
        assert_eq!(outcome(app, app.token(), RotateKey(Key::Ingest)), "done", "a token is its own proof");
    });
}

fn prove(app: &TestApp, session: &Access, person: PersonId, typed: &str) -> Result<(), Error> {
    let login = app.read(move |snapshot| rapport_store::member::login(snapshot, person)).unwrap();
    let proof = ProveAgain::check(&login, typed, presented(session))?;
    app.write_as(session, proof)
}

#[test]
fn the_password_proves_again_who_is_there_in_one_session() {
    TestApp::on_both(|app| {
        let person = ana(app, Role::Owner);
        let (session, other) = (log_in(app, person), log_in(app, person));
        advance_minutes(app, 60);
        assert_eq!(refusal(prove(app, &session, person, "a wrong one")), "invalid /password wrong_password");
        assert_eq!(outcome(app, &session, RotateKey(Key::Ingest)), REFUSED);
        prove(app, &session, person, HERS).unwrap();
        assert_eq!(newest(app).0, "session.proved");
        assert_eq!(outcome(app, &session, RotateKey(Key::Ingest)), "done");
        assert_eq!(outcome(app, &other, RotateKey(Key::Ingest)), REFUSED, "another browser");
        advance_minutes(app, 15);
        assert_eq!(outcome(app, &session, RotateKey(Key::Ingest)), REFUSED);
    });
}

#[test]
fn logging_out_is_recorded_and_going_to_another_company_is_not() {
    TestApp::on_both(|app| {
        let person = ana(app, Role::Member);
        let (gone, session) = (log_in(app, person), log_in(app, person));
        app.write_as(&gone, EndReplaced(presented(&gone))).unwrap();
        assert!(!is_alive(app, &gone) && is_alive(app, &session));
        assert_eq!(newest(app).0, "session.begun");
        app.write_as(&session, EndSession(presented(&session))).unwrap();
        assert!(!is_alive(app, &session));
        assert_eq!(newest(app), ("session.logged_out".to_owned(), json!({})));
        assert_eq!(refusal(app.write_as(&session, EndSession(presented(&session)))), "unauthenticated");
    });
}

#[test]
fn a_new_password_ends_all_other_sessions() {
    TestApp::on_both(|app| {
        let b = app.company("b");
        let person = ana(app, Role::Member);
        assert_eq!(ana(&b, Role::Member), person);
        let (kept, other, elsewhere) = (log_in(app, person), log_in(app, person), log_in(&b, person));
        let login = app.read(move |snapshot| rapport_store::member::login(snapshot, person)).unwrap();
        let email = Email::parse("ana@alpha.test").unwrap();
        let known = Known { email: &email, name: "Ana", company: "acme" };
        let passwords = (HERS, "harbour lights in June");
        let services = app.app().services();
        let change = ChangePassword::check(services, &login, &known, passwords, presented(&kept)).unwrap();
        app.write_as(&kept, change).unwrap();
        assert!(is_alive(app, &kept));
        assert!(!is_alive(app, &other) && !is_alive(&b, &elsewhere));
    });
}

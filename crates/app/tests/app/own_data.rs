//! What is stored about a person, for that person: their login, and what the company they are in recorded of them.

use std::collections::BTreeMap;

use rapport_app::account::ChangeStatus;
use rapport_app::contact::RecordContact;
use rapport_app::invitation::Invite;
use rapport_app::member::ChangeMember;
use rapport_app::read::own_data::{Place, login, records};
use rapport_app::session::{Proven, read_cookie};
use rapport_app::totp::{ConfirmApp, SetUpApp};
use rapport_app::{Access, Needs};
use rapport_domain::account::StatusChange;
use rapport_domain::member::{Email, Member, Role};
use rapport_domain::pipeline::Status;
use rapport_domain::right::Right;
use rapport_domain::totp::TotpSecret;
use rapport_testkit::app::Hire;
use rapport_testkit::{TestApp, TestCompany, block_on};
use serde_json::{Value, json};

const ANA: &str = "ana@alpha.test";

fn hire(company: &TestCompany, is_proven: bool) -> Member {
    let hire = Hire {
        email: Email::parse(ANA).unwrap(),
        name: "Ana".to_owned(),
        role: Role::Member,
        password_hash: "a hash".to_owned(),
        is_proven,
    };
    company.write_as(&Access::System(company.id()), hire).unwrap()
}

fn session(company: &TestCompany, member: &Member) -> Access {
    let proven = Proven { person: member.person, company: company.id() };
    let cookie = block_on(company.app().write(&proven.access(), proven.begin(Some("A browser")))).unwrap();
    Access::Credential(read_cookie(&cookie).unwrap())
}

/// Everything that a person downloads.
fn download(company: &TestCompany, access: &Access) -> Value {
    let needs = Needs::Right(Right::Read);
    let mut whole = block_on(company.app().read(access, needs, login)).unwrap().reply.expect("a person");
    let (mut items, mut next) = (Vec::new(), Some(Place::FIRST));
    while let Some(place) = next {
        let read =
            company.app().read(access, needs, move |snapshot, viewer| records(snapshot, viewer, place));
        let page = block_on(read).unwrap().reply;
        items.extend(page.items);
        next = page.next;
    }
    whole.insert("records".to_owned(), Value::Array(items));
    Value::Object(whole)
}

fn per_table(download: &Value) -> BTreeMap<String, usize> {
    let mut tables = BTreeMap::new();
    for record in download["records"].as_array().unwrap() {
        *tables.entry(record["table"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    tables
}

/// Logs a contact and moves an account, as a person.
fn work(company: &TestCompany, access: &Access, note: &str) {
    let account = company.upsert(json!({"imported_id": "crm-1"})).account.id;
    let contact = json!({"kind": "call", "note": note});
    let now = company.app().now();
    let contact = rapport_domain::contact::NewContact::parse(contact.as_object().unwrap(), now).unwrap();
    company.write_as(access, RecordContact { account, contact }).unwrap();
    let change = StatusChange { status: Status::Lost, note: Some(note.to_owned()) };
    company.write_as(access, ChangeStatus { id: account, change }).unwrap();
}

#[test]
fn a_person_gets_what_is_stored_about_them_and_nothing_else() {
    TestApp::on_both(|app| {
        let globex = app.company("globex");
        let ana = hire(app, true);
        hire(&globex, true);
        let (here, there) = (session(app, &ana), session(&globex, &ana));
        work(app, &here, "by Ana at Acme");
        work(&globex, &there, "by Ana at Globex");
        let bo = app.employ("bo@acme.test", "Bo", Role::Member);
        work(app, &session(app, &bo), "by Bo");
        app.write(ChangeMember { person: ana.person, role: Some(Role::Admin), active: None }).unwrap();
        let initech = app.company("initech");
        initech.write(Invite { email: Email::parse(ANA).unwrap(), name: None, role: Role::Owner }).unwrap();

        let got = download(app, &here);
        assert_eq!(got["login"]["id"], json!(ana.person.to_string()));
        assert_eq!((&got["login"]["email"], &got["login"]["name"]), (&json!(ANA), &json!("Ana")));
        let companies: Vec<&Value> =
            got["companies"].as_array().unwrap().iter().map(|one| &one["project"]).collect();
        assert_eq!(companies, [&json!("acme"), &json!("globex")]);
        assert_eq!(got["sessions"].as_array().unwrap().len(), 2);
        assert_eq!(got["invitations"][0]["company"], "initech");
        let tables = per_table(&got);
        let count = |table: &str| tables.get(table).copied().unwrap_or(0);
        assert_eq!((count("contact"), count("member"), count("status_history")), (1, 1, 1), "{tables:?}");
        let text = got.to_string();
        assert!(text.contains("by Ana at Acme") && text.contains("member.changed"), "{text}");
        for other in ["by Ana at Globex", "by Bo", "bo@acme.test", "a hash", "First token"] {
            assert!(!text.contains(other), "{other} in {text}");
        }
        assert!(download(&globex, &there).to_string().contains("by Ana at Globex"));
    });
}

#[test]
fn second_factors_are_told_without_what_they_are_checked_with() {
    TestApp::on_both(|app| {
        let ana = hire(app, true);
        let here = session(app, &ana);
        let nothing = json!({"passkeys": [], "authenticator_app": null, "unused_recovery_codes": 0});
        assert_eq!(download(app, &here)["second_factors"], nothing);
        let Access::Credential(presented) = here else { panic!("a session") };
        let secret = app.write_as(&here, SetUpApp).unwrap().secret;
        let typed = TotpSecret::parse(&secret).unwrap().code_at(app.clock().now());
        let confirmed = app.write_as(&here, ConfirmApp { typed, session: presented }).unwrap();
        let got = download(app, &here);
        let now = app.clock().now().to_string();
        let expected = json!({
            "passkeys": [],
            "authenticator_app": {"confirmed_at": now, "last_used_at": null},
            "unused_recovery_codes": 10,
        });
        assert_eq!(got["second_factors"], expected);
        assert_eq!(got["sessions"][0]["second_factor_at"], json!(now));
        let text = got.to_string();
        let codes = confirmed.recovery_codes.expect("ten codes");
        assert!(codes.iter().chain([&secret]).all(|secret| !text.contains(secret.as_str())), "{text}");
    });
}

#[test]
fn many_records_are_read_page_by_page() {
    TestApp::on_both(|app| {
        let ana = hire(app, true);
        let here = session(app, &ana);
        for number in 0..130 {
            let account = app.upsert(json!({"imported_id": format!("crm-{number}")})).account.id;
            let change = StatusChange { status: Status::Lost, note: None };
            app.write_as(&here, ChangeStatus { id: account, change }).unwrap();
        }
        for role in [Role::Admin, Role::Member].into_iter().cycle().take(110) {
            app.write(ChangeMember { person: ana.person, role: Some(role), active: None }).unwrap();
        }
        let got = download(app, &here);
        let tables = per_table(&got);
        // 130 changes of accounts and a login by her, and 110 changes of her role.
        assert_eq!((tables["status_history"], tables["audit"]), (130, 130 + 1 + 110));
        let mut ids: Vec<&str> = got["records"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|record| record["row"]["id"].as_str())
            .collect();
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all, "each once");
    });
}

/// Somebody else may own the address of a login that was handed over.
#[test]
fn an_address_that_was_never_proven_shows_nobodys_invitations() {
    TestApp::on_both(|app| {
        let globex = app.company("globex");
        globex.write(Invite { email: Email::parse(ANA).unwrap(), name: None, role: Role::Owner }).unwrap();
        let squatter = hire(app, false);
        let got = download(app, &session(app, &squatter));
        assert_eq!(got["invitations"], json!([]));
        assert!(!got.to_string().contains("globex"));
    });
}

#[test]
fn a_token_is_no_person() {
    TestApp::on_both(|app| {
        let needs = Needs::Right(Right::Read);
        assert!(block_on(app.app().read(app.token(), needs, login)).unwrap().reply.is_none());
        let read =
            app.app().read(app.token(), needs, |snapshot, viewer| records(snapshot, viewer, Place::FIRST));
        assert!(block_on(read).unwrap().reply.items.is_empty());
    });
}

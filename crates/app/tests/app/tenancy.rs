//! Nothing of another company is reachable: ids of one company find nothing with the credentials of another.

use rapport_app::account::{ChangeStatus, CreateAccount, DeleteAccount, PatchAccount};
use rapport_app::channel::{AddCode, ArchiveCode, DeleteChannel, DeleteCode, RenameChannel};
use rapport_app::credential::{Key, RevokeToken, RotateKey};
use rapport_app::member::{ChangeMember, RemoveMember};
use rapport_domain::account::{Create, Patch, StatusChange};
use rapport_domain::audit::Filter;
use rapport_domain::channel::{Channel, PromoCode};
use rapport_domain::credential::{Credential, Kind};
use rapport_domain::event::Event;
use rapport_domain::history::HistoryEntry;
use rapport_domain::id::PersonId;
use rapport_domain::member::{Member, Role};
use rapport_domain::pipeline::Status;
use rapport_testkit::{TestApp, TestCompany};
use serde_json::json;

use crate::refusal;

/// Everything a company can see of itself.
#[derive(Debug, PartialEq)]
struct Everything {
    accounts: Vec<Option<rapport_domain::account::Account>>,
    history: Vec<HistoryEntry>,
    events: Vec<Event>,
    channels: Vec<Channel>,
    codes: usize,
    members: Vec<Member>,
    tokens: Vec<Credential>,
    audit: usize,
    activity: usize,
}

fn everything(company: &TestCompany) -> Everything {
    let account = company.account("crm-1").id;
    Everything {
        accounts: ["crm-1", "crm-2"].map(|id| company.find(id)).into(),
        history: company.history(account),
        events: company.events(account),
        channels: company.read(rapport_store::channel::list),
        codes: company.read(rapport_store::channel::all_codes).len(),
        members: company.read(rapport_store::member::list),
        tokens: company.read(|snapshot| rapport_store::credential::list(snapshot, Kind::ApiToken)),
        audit: company
            .read(|snapshot| rapport_store::audit::list(snapshot, &Filter::default(), None, 1000))
            .items
            .len(),
        activity: company
            .read(move |snapshot| rapport_store::activity::list(snapshot, account, None, 9))
            .items
            .len(),
    }
}

fn furnished(company: &TestCompany, code: &str) {
    company.channel("Fair", &[code]);
    company.upsert(json!({"imported_id": "crm-1", "name": "Nordlys", "promo_code": code}));
    company.ingest(json!([{"imported_id": "crm-1", "kind": "trial_started"}]));
}

fn code(text: &str) -> PromoCode {
    PromoCode::parse(text).unwrap()
}

#[test]
fn ids_of_another_company_are_not_found_by_any_command() {
    TestApp::on_both(|app| {
        let globex = app.company("globex");
        furnished(app, "ACME");
        furnished(&globex, "GLOBEX");
        let before = everything(&globex);
        let account = globex.account("crm-1").id;
        let channel = before.channels[0].id;

        let (patch, promo_code) = Patch::parse(json!({"name": "Taken over"}).as_object().unwrap()).unwrap();
        assert_eq!(refusal(app.write(PatchAccount { id: account, patch, promo_code })), "no such account");
        let change = StatusChange { status: Status::Lost, note: None };
        assert_eq!(refusal(app.write(ChangeStatus { id: account, change })), "no such account");
        assert_eq!(refusal(app.write(DeleteAccount(account))), "no such account");

        let renamed = RenameChannel { id: channel, name: "Ours".to_owned() };
        assert_eq!(refusal(app.write(renamed)), "no such channel");
        assert_eq!(refusal(app.write(DeleteChannel(channel))), "no such channel");
        assert_eq!(
            refusal(app.write(AddCode { channel, code: code("NEW"), archived: false })),
            "no such channel"
        );
        let archive = ArchiveCode { channel, code: code("GLOBEX"), archived: true };
        assert_eq!(refusal(app.write(archive)), "no such channel");
        assert_eq!(refusal(app.write(DeleteCode { channel, code: code("GLOBEX") })), "no such promo code");

        assert_eq!(refusal(app.write(RevokeToken(before.tokens[0].id))), "no such token");
        let person: PersonId = before.members[0].person;
        let demote = ChangeMember { person, role: Some(Role::Member), active: None };
        assert_eq!(refusal(app.write(demote)), "no such member");
        assert_eq!(refusal(app.write(RemoveMember(person))), "no such member");

        assert_eq!(everything(&globex), before);
    });
}

#[test]
fn accounts_and_codes_of_another_company_never_match() {
    TestApp::on_both(|app| {
        let globex = app.company("globex");
        furnished(&globex, "GLOBEX");
        let before = everything(&globex);
        let foreign = globex.account("crm-1").id.to_string();
        let own = app.upsert(json!({"imported_id": "crm-2"})).account;
        let answer = app.ingest(json!([
            {"imported_id": "crm-1", "kind": "churned"},
            {"account_id": foreign, "kind": "churned"},
            {"imported_id": "crm-2", "account_id": foreign, "kind": "churned"},
            {"imported_id": "crm-1", "account_id": foreign, "kind": "churned"},
        ]));
        assert_eq!((answer.unmatched, answer.accepted), (vec![0, 1, 2, 3], 0));
        let upserted = app.upsert(json!({"imported_id": "crm-1", "promo_code": "GLOBEX", "status": "lost"}));
        assert!(upserted.created && !upserted.promo_code_matched);
        let create =
            Create::parse(json!({"name": "x", "promo_code": "GLOBEX"}).as_object().unwrap()).unwrap();
        assert_eq!(refusal(app.write(CreateAccount(create))), "invalid /promo_code unknown_promo_code");
        app.write(RotateKey(Key::Ingest)).unwrap();
        app.write(DeleteAccount(own.id)).unwrap();
        app.set(json!({"cadence_days": 1}));
        assert_eq!(everything(&globex), before);
        assert_eq!(globex.ingest(json!([{"imported_id": "crm-1", "kind": "app_opened"}])).accepted, 1);
    });
}

#[test]
fn reads_with_one_companys_token_show_nothing_of_another() {
    TestApp::on_both(|app| {
        let globex = app.company("globex");
        furnished(&globex, "GLOBEX");
        let account = globex.account("crm-1").id;
        let event = globex.events(account)[0].id;
        assert_eq!(app.find("crm-1"), None);
        assert_eq!(app.read(move |snapshot| rapport_store::account::get(snapshot, account)), None);
        assert_eq!(app.read(move |snapshot| rapport_store::event::get(snapshot, event)), None);
        assert_eq!((app.history(account).len(), app.events(account).len()), (0, 0));
        assert_eq!(app.read(move |snapshot| rapport_store::activity::seen(snapshot, account)), None);
        assert!(app.read(rapport_store::channel::list).is_empty());
        assert!(app.read(rapport_store::channel::all_codes).is_empty());
        assert_eq!(app.read(rapport_store::member::list).len(), 1);
    });
}

#[test]
fn both_companies_may_use_the_same_names_for_everything() {
    TestApp::on_both(|app| {
        let globex = app.company("globex");
        for company in [&**app, &globex] {
            furnished(company, "SAME");
            assert_eq!(company.account("crm-1").status, Status::InTrial, "{}", company.slug());
        }
        globex.write(DeleteAccount(globex.account("crm-1").id)).unwrap();
        assert_eq!(app.account("crm-1").promo_code.unwrap().as_str(), "SAME");
        assert_eq!(app.history(app.account("crm-1").id).len(), 2);
    });
}

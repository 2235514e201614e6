//! What the roles may do, beyond the table in `domain`: viewers change nothing but what is their own, and members
//! export and delete only where the company grants it.

use rapport_app::account::{ChangeStatus, CreateAccount, DeleteAccount, PatchAccount};
use rapport_app::bulk::{ChangeAccounts, UndoChange};
use rapport_app::contact::RecordContact;
use rapport_app::credential::CreateToken;
use rapport_app::erasure::erase_payloads;
use rapport_app::export::{Exported, RecordExport};
use rapport_app::import::ErrorFile;
use rapport_app::member::ChangeMember;
use rapport_app::person::Rename;
use rapport_app::saved_view::{DeleteView, RenameView, SaveView};
use rapport_app::upsert::Upsert;
use rapport_app::{Access, Error, Needs};
use rapport_domain::account::{self, Create, Patch, StatusChange};
use rapport_domain::audit::Filter;
use rapport_domain::bulk::BulkChange;
use rapport_domain::contact::NewContact;
use rapport_domain::credential::TokenRequest;
use rapport_domain::id::{AccountId, BulkId, CampaignId, ImportId};
use rapport_domain::member::Role;
use rapport_domain::pipeline::Status;
use rapport_domain::right::Right;
use rapport_domain::saved_view::Save;
use rapport_testkit::{TestApp, TestCompany, block_on};
use serde_json::{Map, Value, json};

use crate::{logged_in, refusal};

const FORBIDDEN: &str = "forbidden role_required";

fn object(body: Value) -> Map<String, Value> {
    body.as_object().cloned().unwrap_or_default()
}

fn reads(company: &TestCompany, access: &Access) -> bool {
    block_on(company.app().read(access, Needs::Right(Right::Read), |_, _| Ok(()))).is_ok()
}

#[test]
fn a_viewer_reads_and_does_not_work_with_accounts() {
    TestApp::on_both(|app| {
        let id = app.upsert(json!({"imported_id": "crm-1"})).account.id;
        let (_, session) = logged_in(app, "bo@acme.test", Role::Viewer);
        for viewer in [app.token_of(Role::Viewer), session] {
            assert!(reads(app, &viewer));
            let before = app.rows("audit");
            let create = Create::parse(&object(json!({"name": "x"}))).unwrap();
            assert_eq!(refusal(app.write_as(&viewer, CreateAccount(create))), FORBIDDEN);
            let (patch, promo_code) = Patch::parse(&object(json!({"name": "x"}))).unwrap();
            assert_eq!(refusal(app.write_as(&viewer, PatchAccount { id, patch, promo_code })), FORBIDDEN);
            let change = StatusChange { status: Status::Lost, note: None };
            assert_eq!(refusal(app.write_as(&viewer, ChangeStatus { id, change })), FORBIDDEN);
            let patch = Patch { status: Some(Status::Lost), ..Patch::default() };
            let bulk = BulkChange { accounts: vec![id], patch, promo_code: None, note: None };
            assert_eq!(refusal(app.write_as(&viewer, ChangeAccounts(bulk))), FORBIDDEN);
            let undo = UndoChange(BulkId::from_bytes([1; 16]));
            assert_eq!(refusal(app.write_as(&viewer, undo)), FORBIDDEN);
            let contact = NewContact::parse(&object(json!({"kind": "call"})), app.clock().now()).unwrap();
            assert_eq!(refusal(app.write_as(&viewer, RecordContact { account: id, contact })), FORBIDDEN);
            let upsert = json!({"project": app.slug(), "imported_id": "crm-1", "status": "lost"});
            let upsert = account::Upsert::parse(&object(upsert)).unwrap();
            assert_eq!(refusal(app.write_as(&viewer, Upsert(upsert))), FORBIDDEN);
            assert_eq!(app.rows("audit"), before);
        }
        assert_eq!(app.account("crm-1").status, Status::Prospect);
    });
}

/// Everything that needs one of the two rights that a company grants.
fn try_granted(company: &TestCompany, access: &Access, id: AccountId) -> [(&'static str, bool); 5] {
    let is_refused = |answer: Result<(), Error>| match answer {
        Ok(()) | Err(Error::NotFound(_)) => false,
        refused => {
            assert_eq!(refusal(refused), FORBIDDEN);
            true
        }
    };
    let record = |what| RecordExport { what, format: "csv", filter: String::new() };
    let campaign = Exported::Campaign(CampaignId::from_bytes([1; 16]));
    let file = block_on(ErrorFile::open(company.app(), access, ImportId::from_bytes([1; 16])));
    let erased = block_on(erase_payloads(company.app(), access, id));
    let delete = DeleteAccount(AccountId::from_bytes([1; 16]));
    [
        ("export accounts", is_refused(company.write_as(access, record(Exported::Accounts)))),
        ("export a campaign", is_refused(company.write_as(access, record(campaign)))),
        ("an error file", is_refused(file.map(|_| ()))),
        ("delete", is_refused(company.write_as(access, delete).map(drop))),
        ("erase", is_refused(erased.map(|_| ()))),
    ]
}

#[test]
fn members_export_and_delete_where_the_company_grants_it() {
    TestApp::on_both(|app| {
        let id = app.upsert(json!({"imported_id": "crm-1"})).account.id;
        let globex = app.company("globex");
        globex.set(json!({"export_role": "member", "delete_role": "member"}));
        let tokens = [Role::Viewer, Role::Member, Role::Admin].map(|role| app.token_of(role));
        let table = [
            (json!({}), (true, true)),
            (json!({"export_role": "member"}), (false, true)),
            (json!({"export_role": "admin", "delete_role": "member"}), (true, false)),
            (json!({"export_role": "member"}), (false, false)),
            (json!({"export_role": "admin", "delete_role": "admin"}), (true, true)),
        ];
        for (change, (no_export, no_delete)) in table {
            app.set(change.clone());
            let expected = |[one, two, three]: [bool; 3], [four, five]: [bool; 2]| {
                ["export accounts", "export a campaign", "an error file", "delete", "erase"]
                    .into_iter()
                    .zip([one, two, three, four, five])
                    .collect::<Vec<_>>()
            };
            let [viewer, member, admin] = tokens.each_ref().map(|token| try_granted(app, token, id).to_vec());
            assert_eq!(viewer, expected([true; 3], [true; 2]), "{change}");
            assert_eq!(member, expected([no_export; 3], [no_delete; 2]), "{change}");
            assert_eq!(admin, expected([false; 3], [false; 2]), "{change}");
        }
    });
}

#[test]
fn the_audit_log_is_exported_by_admins_whatever_is_granted() {
    TestApp::on_both(|app| {
        app.set(json!({"export_role": "member"}));
        let record = || RecordExport { what: Exported::Audit, format: "csv", filter: String::new() };
        assert_eq!(refusal(app.write_as(&app.token_of(Role::Member), record())), FORBIDDEN);
        app.write_as(&app.token_of(Role::Admin), record()).unwrap();
    });
}

#[test]
fn a_grant_is_recorded_with_its_old_and_new_value() {
    TestApp::on_both(|app| {
        app.set(json!({"delete_role": "member"}));
        app.set(json!({"delete_role": "member"}));
        app.set(json!({"delete_role": "admin", "export_role": "member"}));
        let log = app.read(|snapshot| {
            rapport_store::audit::list(snapshot, &Filter::default(), None, 10).map(|page| page.items)
        });
        let changes: Vec<Value> = log
            .iter()
            .rev()
            .filter(|entry| entry.action == "settings.changed")
            .map(|entry| serde_json::from_str(&entry.detail).unwrap())
            .collect();
        let expected = json!([
            {"delete_role": {"from": "admin", "to": "member"}},
            {"delete_role": {"from": "member", "to": "admin"}, "export_role": {"from": "admin", "to": "member"}},
        ]);
        assert_eq!(Value::Array(changes), expected);
    });
}

#[test]
fn a_viewer_changes_their_own_profile_and_views_only() {
    TestApp::on_both(|app| {
        let (person, viewer) = logged_in(app, "bo@acme.test", Role::Viewer);
        let (_, other) = logged_in(app, "cy@acme.test", Role::Viewer);
        let (_, member) = logged_in(app, "di@acme.test", Role::Member);
        app.write_as(&viewer, Rename("Bea".to_owned())).unwrap();
        let save = |name: &str, query: &str, replace| {
            SaveView(Save { name: name.to_owned(), query: query.to_owned(), replace })
        };
        let rename = |from: &str, to: &str| RenameView { from: from.to_owned(), to: to.to_owned() };
        app.write_as(&viewer, save("Mine", "q=a", false)).unwrap();
        app.write_as(&member, save("Ours", "q=b", false)).unwrap();
        app.write(save("By a program", "q=c", false)).unwrap();
        for name in ["Ours", "By a program"] {
            assert_eq!(refusal(app.write_as(&viewer, save(name, "q=x", true))), FORBIDDEN, "{name}");
            assert_eq!(refusal(app.write_as(&viewer, rename(name, "Taken"))), FORBIDDEN, "{name}");
            assert_eq!(refusal(app.write_as(&viewer, DeleteView(name.to_owned()))), FORBIDDEN, "{name}");
        }
        assert_eq!(refusal(app.write_as(&other, DeleteView("Mine".to_owned()))), FORBIDDEN);
        app.write_as(&viewer, save("Mine", "q=d", true)).unwrap();
        app.write_as(&viewer, rename("Mine", "Still mine")).unwrap();
        app.write_as(&member, rename("Still mine", "Renamed")).unwrap();
        let views = app.read(rapport_store::saved_view::list);
        let shown: Vec<_> = views
            .iter()
            .map(|view| (view.name.as_str(), view.query.as_str(), view.created_by == Some(person)))
            .collect();
        assert_eq!(shown, [("By a program", "q=c", false), ("Ours", "q=b", false), ("Renamed", "q=d", true)]);
        app.write_as(&viewer, DeleteView("Renamed".to_owned())).unwrap();
    });
}

#[test]
fn a_change_of_role_applies_to_open_sessions() {
    TestApp::on_both(|app| {
        let (person, bo) = logged_in(app, "bo@acme.test", Role::Member);
        let create = || CreateAccount(Create::parse(&object(json!({"name": "x"}))).unwrap());
        app.write_as(&bo, create()).unwrap();
        app.write(ChangeMember { person, role: Some(Role::Viewer), active: None }).unwrap();
        assert_eq!(refusal(app.write_as(&bo, create())), FORBIDDEN);
        assert!(reads(app, &bo));
    });
}

#[test]
fn viewers_and_members_make_no_tokens_not_even_for_viewers() {
    TestApp::on_both(|app| {
        let token = || CreateToken(TokenRequest::of_company("x", Role::Viewer));
        for role in [Role::Viewer, Role::Member] {
            assert_eq!(refusal(app.write_as(&app.token_of(role), token())), FORBIDDEN);
        }
        app.write_as(&app.token_of(Role::Admin), token()).unwrap();
    });
}

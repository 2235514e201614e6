//! Sample data: added once while there is nothing else, told to nobody, and removed without a trace.

use std::collections::BTreeMap;
use std::thread;

use rapport_app::account::{ChangeStatus, DeleteAccount, PatchAccount};
use rapport_app::cadence;
use rapport_app::channel::RenameChannel;
use rapport_app::contact::RecordContact;
use rapport_app::digest::preview;
use rapport_app::note::AddNote;
use rapport_app::read::dashboard::figures;
use rapport_app::read::feed::{AccountsAfter, Changes, Place, accounts, settled};
use rapport_app::sample::{AddSampleData, Added, RemoveSampleData, Removed};
use rapport_domain::account::{Account, Patch, StatusChange};
use rapport_domain::audit::Filter;
use rapport_domain::contact::{Kind, NewContact};
use rapport_domain::id::AccountId;
use rapport_domain::member::Role;
use rapport_domain::note::NewNote;
use rapport_domain::pipeline::Status;
use rapport_domain::sample::{CHANNELS, COUNT};
use rapport_store::sample as marks;
use rapport_testkit::{TestApp, TestCompany, block_on};
use serde_json::{Value, json};

use crate::every_table::count;
use crate::refusal;
use crate::webhooks::webhook;

const ADDED: Added = Added::Accounts(COUNT);

fn samples(company: &TestCompany) -> Vec<Account> {
    let load = |snapshot: &mut rapport_store::Snapshot| {
        let ids: Vec<AccountId> = marks::accounts(snapshot)?;
        ids.into_iter().filter_map(|id| rapport_store::account::get(snapshot, id).transpose()).collect()
    };
    company.read(load)
}

fn sample_in(company: &TestCompany, status: Status) -> Account {
    samples(company).into_iter().find(|account| account.status == status).expect("a sample in every stage")
}

/// The rows of each table, but for the audit log, which keeps what happened, and the log of changes, which retention
/// clears.
fn rows(app: &TestApp) -> BTreeMap<String, i64> {
    let mut rows = count(app, app.id());
    rows.remove("audit");
    rows.remove("account_change");
    rows
}

fn patch(body: &Value) -> Patch {
    Patch::parse(body.as_object().expect("an object")).expect("a patch").0
}

fn followed(company: &TestCompany, place: Place) -> Changes {
    let settled = company.read(settled);
    let asked = AccountsAfter { place: Some(place), updated_after: None, deleted: true, limit: 200 };
    company.read(move |snapshot| accounts(snapshot, &asked, settled))
}

/// Works with the samples as people do who try things out.
fn try_out(company: &TestCompany) {
    let (prospect, customer) = (sample_in(company, Status::Prospect), sample_in(company, Status::Customer));
    let change = StatusChange { status: Status::Lost, note: None };
    company.write(ChangeStatus { id: prospect.id, change }).expect("moved");
    let renamed = patch(&json!({"name": "Mine now", "custom_fields": {"plan": "gold"}}));
    let edit = PatchAccount { id: customer.id, patch: renamed, promo_code: None };
    company.write(edit).expect("renamed");
    let contact = NewContact { kind: Kind::Call, note: None, occurred_at: company.app().now() };
    company.write(RecordContact { account: customer.id, contact }).expect("recorded");
    let note = NewNote { text: "Try this".to_owned(), pinned: true };
    company.write(AddNote { account: customer.id, note }).expect("added");
    while block_on(cadence::step(company.app(), company.id())).expect("a step").more {}
}

#[test]
fn it_is_added_once_and_removed_without_a_trace() {
    TestApp::on_both(|app| {
        webhook(app);
        let before = rows(app);
        assert_eq!(app.write(AddSampleData).expect("added"), ADDED);
        assert_eq!(app.write(AddSampleData).expect("asked again"), Added::Before);
        assert_eq!(samples(app).len(), COUNT);
        for table in ["account", "contact", "message", "note", "activity_count", "account_address", "channel"]
        {
            assert!(app.rows(table) > 0, "{table} has something to show");
        }
        try_out(app);
        let removed = app.write(RemoveSampleData).expect("removed");
        assert_eq!(removed, Removed { accounts: COUNT, kept_channels: 0 });
        assert_eq!(rows(app), before);
        assert_eq!(app.write(RemoveSampleData).expect("asked again"), Removed::default());
        assert_eq!(app.write(AddSampleData).expect("once more"), ADDED);
    });
}

#[test]
fn two_people_at_once_add_it_once() {
    TestApp::on_both(|app| {
        let mut added = thread::scope(|scope| {
            let both = [(); 2].map(|()| scope.spawn(|| app.write(AddSampleData).expect("an answer")));
            both.map(|one| one.join().expect("an answer"))
        });
        added.sort_by_key(|added| *added == Added::Before);
        assert_eq!(added, [ADDED, Added::Before]);
        assert_eq!(samples(app).len(), COUNT);
    });
}

#[test]
fn it_is_not_mixed_with_accounts_of_the_company() {
    TestApp::on_both(|app| {
        let own = app.upsert(json!({"imported_id": "crm-1"})).account.id;
        assert_eq!(app.write(AddSampleData).expect("an answer"), Added::HasAccounts);
        assert_eq!(app.rows("account"), 1);
        app.write(DeleteAccount(own)).expect("deleted");
        assert_eq!(app.write(AddSampleData).expect("an answer"), ADDED);
        assert_eq!(app.company("globex").write(AddSampleData).expect("each for itself"), ADDED);
    });
}

#[test]
fn nothing_but_the_samples_is_removed() {
    TestApp::on_both(|app| {
        app.channel("Fair", &["FAIR"]);
        app.write(AddSampleData).expect("added");
        let other = app.company("globex");
        other.write(AddSampleData).expect("added");
        // Two accounts of their own, one of them through a sample channel, which somebody renamed.
        let code = CHANNELS[0].code;
        app.upsert(json!({"imported_id": "crm-1", "promo_code": code, "status": "customer"}));
        app.upsert(json!({"imported_id": "crm-2", "promo_code": "FAIR"}));
        app.ingest(json!([{"imported_id": "crm-1", "kind": "app_opened"}]));
        let channel = app.account("crm-1").channel.expect("a channel").id;
        app.write(RenameChannel { id: channel, name: "Ours".to_owned() }).expect("renamed");
        let before = [app.account("crm-1"), app.account("crm-2")];
        let removed = app.write(RemoveSampleData).expect("removed");
        assert_eq!(removed, Removed { accounts: COUNT, kept_channels: 1 });
        let after = [app.account("crm-1"), app.account("crm-2")];
        assert_eq!(after, before);
        let left = app.read(rapport_store::channel::list);
        let names: Vec<&str> = left.iter().map(|channel| channel.name.as_str()).collect();
        assert_eq!(names, ["Ours", "Fair"]);
        assert_eq!(app.read(marks::channels), [], "it is theirs now");
        let days = app.number(&format!(
            "SELECT CAST(sum(count) AS BIGINT) FROM activity_day WHERE company = {}",
            app.id().0
        ));
        assert_eq!(days, 1, "only what their product reported");
        assert_eq!(samples(&other).len(), COUNT);
    });
}

#[test]
fn a_taken_channel_is_left_alone() {
    TestApp::on_both(|app| {
        app.channel(CHANNELS[0].name, &[]);
        app.channel("Own", &[CHANNELS[1].code]);
        app.write(AddSampleData).expect("added");
        assert_eq!(app.read(marks::channels).len(), CHANNELS.len() - 2);
        app.write(RemoveSampleData).expect("removed");
        assert_eq!(app.rows("channel"), 2);
        assert_eq!(app.rows("promo_code"), 1);
    });
}

#[test]
fn other_systems_never_hear_of_it() {
    TestApp::on_both(|app| {
        webhook(app);
        app.write(AddSampleData).expect("added");
        try_out(app);
        let page = followed(app, Place::START);
        assert_eq!((page.accounts.len(), page.deleted.len(), page.more), (0, 0, false));
        app.upsert(json!({"imported_id": "crm-1"}));
        let heard = followed(app, page.next);
        assert_eq!(heard.accounts.len(), 1, "others are followed");
        app.write(DeleteAccount(samples(app)[0].id)).expect("deleted by hand");
        app.write(RemoveSampleData).expect("removed");
        assert_eq!(followed(app, heard.next).deleted, []);
        assert_eq!((app.rows("event"), app.rows("delivery")), (1, 1), "those of crm-1");
    });
}

#[test]
fn it_is_no_step_and_no_news() {
    TestApp::on_both(|app| {
        let steps = || app.view(figures).first_steps;
        app.write(AddSampleData).expect("added");
        assert_eq!((steps().has_accounts, steps().is_connected), (false, false));
        let digest = |app: &TestApp| block_on(preview(app.app(), app.token())).expect("a digest").overdue;
        assert!(app.view(figures).overdue.count >= 5, "the pages look alive");
        assert_eq!(digest(app), 0);
        app.upsert(json!({"imported_id": "crm-1", "name": "Real one", "status": "customer"}));
        app.clock().advance_days(60);
        let rendered = block_on(preview(app.app(), app.token())).expect("a digest");
        assert!(
            rendered.plain.contains("Real one") && !rendered.plain.contains("Cedar"),
            "{}",
            rendered.plain
        );
        assert_eq!((rendered.overdue, steps().has_accounts), (1, true));
        app.ingest(json!([{"imported_id": "crm-1", "kind": "app_opened"}]));
        assert!(steps().is_connected);
    });
}

#[test]
fn a_sample_account_gets_no_id_of_another_system() {
    TestApp::on_both(|app| {
        app.write(AddSampleData).expect("added");
        let id = sample_in(app, Status::Customer).id;
        let edit = |body: Value| PatchAccount { id, patch: patch(&body), promo_code: None };
        let linked = app.write(edit(json!({"imported_id": "crm-1"})));
        assert_eq!(refusal(linked), "invalid /imported_id sample_account");
        app.write(edit(json!({"imported_id": null}))).expect("it has none");
    });
}

#[test]
fn admins_add_and_remove_it_and_the_audit_log_says_so() {
    TestApp::on_both(|app| {
        let (member, admin) = (app.token_of(Role::Member), app.token_of(Role::Admin));
        assert_eq!(refusal(app.write_as(&member, AddSampleData)), "forbidden role_required");
        app.write_as(&admin, AddSampleData).expect("added");
        assert_eq!(refusal(app.write_as(&member, RemoveSampleData)), "forbidden role_required");
        app.write_as(&admin, RemoveSampleData).expect("removed");
        let entries =
            app.read(|snapshot| rapport_store::audit::list(snapshot, &Filter::default(), None, 2)).items;
        let [removed, added] = entries.as_slice() else { panic!("{entries:?}") };
        assert_eq!(
            (removed.action.as_str(), added.action.as_str()),
            ("sample_data.removed", "sample_data.added")
        );
        let detail: Value = serde_json::from_str(&removed.detail).expect("JSON");
        assert_eq!((&detail["accounts"], &detail["removed"]["account"]), (&json!(COUNT), &json!(COUNT)));
    });
}

//! The last contact that an import names: the clock falls back to it when contacts that were logged later are deleted.

use rapport_app::contact::RecordContact;
use rapport_app::correction::{DeleteEntry, EditEntry, Target, UndoCorrection};
use rapport_domain::contact::{Contact, Kind, NewContact};
use rapport_domain::correction::edit::Edit;
use rapport_domain::id::ImportId;
use rapport_domain::time::Time;
use rapport_testkit::TestApp;
use serde_json::json;

use crate::imports::{imported, undone};

const IMPORTED: &str = "2025-11-30T00:00:00Z";

fn time(text: &str) -> Time {
    Time::parse(text).expect("a time")
}

fn import(app: &TestApp, day: &str) -> ImportId {
    let done = imported(app, format!("id,last contact\ncrm-1,{day}\n"), json!({}));
    assert_eq!(done.counts.failed, 0);
    done.id
}

fn call(app: &TestApp, at: &str) -> Contact {
    let contact = NewContact { kind: Kind::Call, note: None, occurred_at: time(at) };
    app.write(RecordContact { account: app.account("crm-1").id, contact }).expect("recorded")
}

fn delete(app: &TestApp, contact: &Contact) -> UndoCorrection {
    let target = Target::from((contact.account, contact.id));
    let deleted = app.write(DeleteEntry(target)).expect("deleted");
    UndoCorrection { account: contact.account, id: deleted.id }
}

fn last_contact(app: &TestApp) -> Option<String> {
    app.account("crm-1").last_contact_at.map(|at| at.to_string())
}

#[test]
fn the_clock_falls_back_to_the_imported_contact() {
    TestApp::on_both(|app| {
        app.upsert(json!({"imported_id": "crm-1", "status": "customer"}));
        let early = call(app, "2025-10-01T09:00:00Z");
        import(app, "2025-11-30");
        let late = call(app, "2025-12-24T09:00:00Z");
        let undo = delete(app, &late);
        assert_eq!(last_contact(app).as_deref(), Some(IMPORTED));
        app.write(undo).expect("restored");
        assert_eq!(last_contact(app).as_deref(), Some("2025-12-24T09:00:00Z"));
        // It turns out to have been before the imported one.
        let body = json!({"occurred_at": "2025-11-01T09:00:00Z"});
        let edit =
            Edit::of_contact(body.as_object().expect("an object"), app.clock().now()).expect("an edit");
        app.write(EditEntry { target: (late.account, late.id).into(), edit }).expect("edited");
        assert_eq!(last_contact(app).as_deref(), Some(IMPORTED));
        delete(app, &early);
        assert_eq!(last_contact(app).as_deref(), Some(IMPORTED));
    });
}

#[test]
fn an_account_from_a_file_keeps_its_contact() {
    TestApp::on_both(|app| {
        imported(app, "id,name,status,last contact\ncrm-1,Acme,customer,2025-11-30\n", json!({}));
        assert_eq!(last_contact(app).as_deref(), Some(IMPORTED));
        let late = call(app, "2025-12-24T09:00:00Z");
        delete(app, &late);
        assert_eq!(last_contact(app).as_deref(), Some(IMPORTED));
        // A file with an earlier date changes nothing, and one with a later date replaces it.
        import(app, "2025-11-01");
        assert_eq!(last_contact(app).as_deref(), Some(IMPORTED));
        import(app, "2025-12-01");
        delete(app, &call(app, "2025-12-24T09:00:00Z"));
        assert_eq!(last_contact(app).as_deref(), Some("2025-12-01T00:00:00Z"));
    });
}

#[test]
fn an_undone_import_is_forgotten() {
    TestApp::on_both(|app| {
        app.upsert(json!({"imported_id": "crm-1", "status": "customer"}));
        let (first, second) = (import(app, "2025-11-01"), import(app, "2025-11-30"));
        let late = call(app, "2025-12-24T09:00:00Z");
        // The contact that was logged since stays, and the undo says so.
        let undo = undone(app, second).undo;
        assert_eq!((undo.restored, undo.kept), (0, 1));
        assert_eq!(last_contact(app).as_deref(), Some("2025-12-24T09:00:00Z"));
        delete(app, &late);
        assert_eq!(last_contact(app).as_deref(), Some("2025-11-01T00:00:00Z"), "the first import");
        let undo = undone(app, first).undo;
        assert_eq!((undo.restored, undo.kept, last_contact(app)), (1, 0, None));
        delete(app, &call(app, "2025-12-24T09:00:00Z"));
        assert_eq!(last_contact(app), None);
    });
}

//! Corrections: who may edit, delete and restore what was logged, and what follows.

use rapport_app::account::DeleteAccount;
use rapport_app::contact::RecordContact;
use rapport_app::conversation::StartWithMessage;
use rapport_app::correction::{Corrected, DeleteEntry, EditEntry, Target, UndoCorrection};
use rapport_app::erasure::erase_payloads;
use rapport_app::note::AddNote;
use rapport_app::read::correction::{corrections, entry};
use rapport_app::retention::{Round, step};
use rapport_app::{Access, Error};
use rapport_domain::audit::Filter;
use rapport_domain::contact::{Contact, NewContact};
use rapport_domain::conversation::{Log, Message, Start};
use rapport_domain::correction::edit::Edit;
use rapport_domain::correction::logged::Logged;
use rapport_domain::correction::{Correction, Entry, UNDO_DAYS};
use rapport_domain::id::AccountId;
use rapport_domain::member::Role;
use rapport_domain::note::{NewNote, Note};
use rapport_domain::time::Time;
use rapport_store::{audit, conversation, note as stored};
use rapport_testkit::{TestApp, TestCompany, block_on};
use serde_json::{Map, Value, json};

use crate::{logged_in, refusal};

const FORBIDDEN: &str = "forbidden role_required";

fn object(body: Value) -> Map<String, Value> {
    body.as_object().cloned().expect("an object")
}

fn customer(app: &TestApp) -> AccountId {
    app.upsert(json!({"imported_id": "crm-1", "status": "customer"})).account.id
}

/// Records a call made this many days ago.
fn call(app: &TestApp, access: &Access, account: AccountId, days_ago: i64) -> Contact {
    let occurred_at = app.clock().now().plus_days(-days_ago).to_string();
    let body = json!({"kind": "call", "note": "Rang twice", "occurred_at": occurred_at});
    let contact = NewContact::parse(&object(body), app.clock().now()).expect("a contact");
    app.write_as(access, RecordContact { account, contact }).expect("recorded")
}

fn write_to(app: &TestApp, access: &Access, account: AccountId, body: &Value) -> Message {
    let log = Log::parse(&object(body.clone()), app.clock().now()).expect("a message");
    let request = Start { subject: Some("Offer".to_owned()), channel: "email".to_owned() };
    app.write_as(access, StartWithMessage { account, request, log }).expect("logged")
}

fn note(app: &TestApp, access: &Access, account: AccountId, text: &str) -> Note {
    let note = NewNote { text: text.to_owned(), pinned: false };
    app.write_as(access, AddNote { account, note }).expect("added")
}

fn edit_contact(
    app: &TestApp,
    access: &Access,
    target: impl Into<Target>,
    body: Value,
) -> Result<Corrected, Error> {
    let edit = Edit::of_contact(&object(body), app.clock().now()).expect("an edit");
    app.write_as(access, EditEntry { target: target.into(), edit })
}

fn last_contact(app: &TestApp) -> Option<Time> {
    app.account("crm-1").last_contact_at
}

fn all(company: &TestCompany, account: AccountId) -> Vec<Correction> {
    let read = company.read(move |snapshot| corrections(snapshot, account, None, 50));
    read.expect("the account").items
}

/// The audit log's words, newest first.
fn actions(app: &TestApp) -> Vec<(String, Value)> {
    let entries = app.read(|snapshot| audit::list(snapshot, &Filter::default(), None, 50));
    let detail = |text: &str| serde_json::from_str(text).expect("JSON");
    entries.items.iter().map(|entry| (entry.action.clone(), detail(&entry.detail))).collect()
}

#[test]
fn the_author_and_admins_correct_and_others_dont() {
    TestApp::on_both(|app| {
        let account = customer(app);
        let (_, ada) = logged_in(app, "ada@acme.test", Role::Member);
        let (_, bo) = logged_in(app, "bo@acme.test", Role::Member);
        let (_, admin) = logged_in(app, "cy@acme.test", Role::Admin);
        let (viewer, token) = (app.token_of(Role::Viewer), app.token_of(Role::Member));
        let made = call(app, &ada, account, 3);
        let target = Target::from((account, made.id));
        let before = app.rows("audit");
        for other in [&bo, &viewer, &token] {
            assert_eq!(refusal(edit_contact(app, other, target, json!({"kind": "email"}))), FORBIDDEN);
            assert_eq!(refusal(app.write_as(other, DeleteEntry(target))), FORBIDDEN);
        }
        assert_eq!((app.rows("correction"), app.rows("contact")), (0, 1));
        assert_eq!(app.rows("audit"), before, "a refused correction changes nothing");
        let edited = edit_contact(app, &ada, target, json!({"kind": "email"})).expect("her own");
        let deleted = app.write_as(&admin, DeleteEntry(target)).expect("an admin");
        let undo = |id| UndoCorrection { account, id };
        assert_eq!(refusal(app.write_as(&bo, undo(deleted.id))), FORBIDDEN);
        app.write_as(&ada, undo(deleted.id)).expect("she logged it");
        app.write_as(&admin, undo(edited.correction.expect("a correction"))).expect("an admin");
        let (found, mark) = app.read(move |snapshot| entry(snapshot, target)).expect("restored");
        assert_eq!((found, mark), (Logged::Contact(made), None), "as it was, and not edited any more");
    });
}

#[test]
fn a_token_corrects_what_it_logged_itself() {
    TestApp::on_both(|app| {
        let account = customer(app);
        let (own, other) = (app.token_of(Role::Member), app.token_of(Role::Member));
        let target = Target::from((account, call(app, &own, account, 3).id));
        assert_eq!(refusal(app.write_as(&other, DeleteEntry(target))), FORBIDDEN);
        app.write_as(&own, DeleteEntry(target)).expect("its own");
        let target = Target::from((account, call(app, &own, account, 3).id));
        app.write_as(&app.token_of(Role::Admin), DeleteEntry(target)).expect("an admin's token");
    });
}

#[test]
fn the_clock_follows_contacts_and_messages() {
    TestApp::on_both(|app| {
        let (account, token) = (customer(app), app.token().clone());
        app.clock().advance_days(100);
        let now = app.clock().now();
        let (early, late) = (call(app, &token, account, 30), call(app, &token, account, 10));
        let at = |days: i64| Some(now.plus_days(-days));
        assert_eq!(last_contact(app), at(10));
        let moved = json!({"occurred_at": now.plus_days(-20).to_string()});
        let edited = edit_contact(app, &token, (account, late.id), moved).expect("edited");
        assert_eq!(last_contact(app), at(20));
        let words = edit_contact(app, &token, (account, late.id), json!({"note": "Twice"})).expect("edited");
        assert_eq!(last_contact(app), at(20), "words aren't contact");
        let same =
            edit_contact(app, &token, (account, late.id), json!({"note": "Twice"})).expect("nothing to do");
        assert_eq!((same.correction, same.edited), (None, words.edited));
        let deleted = app.write(DeleteEntry((account, late.id).into())).expect("deleted");
        assert_eq!(last_contact(app), at(30));
        let undo = |id| app.write(UndoCorrection { account, id });
        assert_eq!(refusal(undo(edited.correction.expect("one"))), "conflict changed_since", "it is deleted");
        undo(deleted.id).expect("restored");
        assert_eq!(last_contact(app), at(20));
        undo(edited.correction.expect("one")).expect("the words stay");
        assert_eq!(last_contact(app), at(10));
        assert_eq!(refusal(undo(deleted.id)), "conflict already_undone");
        for id in [early.id, late.id] {
            app.write(DeleteEntry((account, id).into())).expect("deleted");
        }
        assert_eq!(last_contact(app), None, "nobody made contact");
    });
}

#[test]
fn a_message_takes_its_conversation_along() {
    TestApp::on_both(|app| {
        let (account, token) = (customer(app), app.token().clone());
        app.clock().advance_days(100);
        let now = app.clock().now();
        let at = |days: i64| now.plus_days(-days).to_string();
        let body = json!({"direction": "outbound", "body": "Hello", "occurred_at": at(10)});
        let message = write_to(app, &token, account, &body);
        let target = Target::from((message.conversation, message.id));
        let edit = |body: Value| {
            let edit = Edit::of_message(&object(body), now).expect("an edit");
            app.write(EditEntry { target, edit }).expect("edited")
        };
        let conversation = || {
            let id = message.conversation;
            let found = app.read(move |snapshot| conversation::get(snapshot, id)).expect("there");
            (found.message_count, found.last_message_at)
        };
        assert_eq!(conversation(), (1, now.plus_days(-10)));
        edit(json!({"body": "Hello again", "subject": "Second"}));
        assert_eq!(
            last_contact(app),
            Some(now.plus_days(-10)),
            "an edit of the words doesn't move the clock"
        );
        let inbound = edit(json!({"direction": "inbound", "occurred_at": at(12)}));
        assert_eq!((last_contact(app), conversation()), (None, (1, now.plus_days(-12))));
        app.write(UndoCorrection { account, id: inbound.correction.expect("one") }).expect("undone");
        assert_eq!(last_contact(app), Some(now.plus_days(-10)));
        let deleted = app.write(DeleteEntry(target)).expect("deleted");
        let created = message.created_at;
        assert_eq!((last_contact(app), conversation()), (None, (0, created)));
        app.write(UndoCorrection { account, id: deleted.id }).expect("restored");
        assert_eq!((last_contact(app), conversation()), (Some(now.plus_days(-10)), (1, now.plus_days(-10))));
        let (found, _) = app.read(move |snapshot| entry(snapshot, target)).expect("restored");
        let Logged::Message(found) = found else { panic!("a message") };
        let expected =
            Message { body: "Hello again".to_owned(), subject: Some("Second".to_owned()), ..message };
        assert_eq!(found, expected);
    });
}

#[test]
fn a_note_is_no_contact_and_can_be_pinned() {
    TestApp::on_both(|app| {
        let (account, token) = (customer(app), app.token().clone());
        let (updated_at, overdue) = (app.account("crm-1").updated_at, app.rows("contact_episode"));
        app.clock().advance_days(1);
        let added = note(app, &token, account, "Likes tea");
        let target = Target::from((account, added.id));
        let pin = Edit::of_note(&object(json!({"pinned": true}))).expect("an edit");
        let pinned = app.write(EditEntry { target, edit: pin }).expect("pinned");
        assert_eq!(pinned.logged, Logged::Note(Note { pinned: true, ..added.clone() }));
        let shown = app.read(move |snapshot| stored::pinned(snapshot, account, 10));
        assert_eq!(shown, [Note { pinned: true, ..added }]);
        let deleted = app.write(DeleteEntry(target)).expect("deleted");
        assert_eq!(app.rows("note"), 0);
        app.write(UndoCorrection { account, id: deleted.id }).expect("restored");
        assert_eq!(app.read(move |snapshot| stored::pinned(snapshot, account, 10)).len(), 1);
        assert_eq!(last_contact(app), None);
        assert_eq!((app.account("crm-1").updated_at, app.rows("contact_episode")), (updated_at, overdue));
    });
}

#[test]
fn every_correction_is_in_the_history_and_in_the_audit_log_without_its_words() {
    TestApp::on_both(|app| {
        let account = customer(app);
        let (_, ada) = logged_in(app, "ada@acme.test", Role::Member);
        let made = call(app, &ada, account, 3);
        let target = Target::from((account, made.id));
        edit_contact(app, &ada, target, json!({"kind": "email", "note": "Secret plans"})).expect("edited");
        let deleted = app.write_as(&ada, DeleteEntry(target)).expect("deleted");
        app.write_as(&ada, UndoCorrection { account, id: deleted.id }).expect("restored");
        note(app, &ada, account, "Secret tea");
        let log = actions(app);
        let words: Vec<&str> = log.iter().map(|(action, _)| action.as_str()).collect();
        assert_eq!(words[..4], ["note.created", "contact.restored", "contact.deleted", "contact.edited"]);
        let id = made.id.to_string();
        let expected = json!({
            "contact": id, "changed": ["kind", "note"], "kind": {"from": "call", "to": "email"},
        });
        assert_eq!(log[3].1, expected);
        assert_eq!(log[2].1, json!({"contact": id, "occurred_at": made.occurred_at.to_string()}));
        assert!(log.iter().all(|(_, detail)| !detail.to_string().contains("Secret")), "{log:?}");
        let targets =
            format!("SELECT count(*) FROM audit WHERE target = '{account}' AND action LIKE 'contact.%'");
        assert_eq!(app.number(&targets), 3);
        let history = all(app, account);
        let [deletion, edit] = &history[..] else { panic!("{history:?}") };
        assert!(deletion.undone.is_some() && deletion.kept.is_none(), "an undone correction keeps nothing");
        let kept = edit.kept.as_ref().expect("kept");
        assert_eq!(kept.was, object(json!({"kind": "call", "note": "Rang twice"})));
        assert_eq!(kept.became, object(json!({"kind": "email", "note": "Secret plans"})));
    });
}

/// Runs the rounds of the cleanup until there is nothing left to do.
fn clean_up(app: &TestApp) {
    let mut round = Round::default();
    while block_on(step(app.app(), app.id(), &mut round)).expect("a step") {}
}

#[test]
fn what_was_deleted_is_gone_for_good_after_a_while() {
    TestApp::on_both(|app| {
        let (account, token) = (customer(app), app.token().clone());
        let made = call(app, &token, account, 3);
        let deleted = app.write(DeleteEntry((account, made.id).into())).expect("deleted");
        let kept = || app.number("SELECT count(*) FROM correction WHERE was IS NOT NULL");
        app.clock().advance_days(UNDO_DAYS - 1);
        clean_up(app);
        assert_eq!(kept(), 1, "it can be restored until then");
        app.clock().advance_days(1);
        let undo = || app.write(UndoCorrection { account, id: deleted.id });
        assert_eq!(refusal(undo()), "conflict undo_expired", "even before the cleanup");
        app.clock().advance_seconds(1);
        clean_up(app);
        assert_eq!(kept(), 0);
        assert_eq!(refusal(undo()), "conflict undo_expired");
        assert_eq!(all(app, account).len(), 1, "who did it stays");
    });
}

#[test]
fn an_erasure_and_the_end_of_the_account_take_corrections_along() {
    TestApp::on_both(|app| {
        let (account, token) = (customer(app), app.token().clone());
        let made = call(app, &token, account, 3);
        note(app, &token, account, "Likes tea");
        app.write(DeleteEntry((account, made.id).into())).expect("deleted");
        let erased = block_on(erase_payloads(app.app(), app.token(), account)).expect("erased");
        assert_eq!(erased.corrections, 1);
        assert!(all(app, account)[0].kept.is_none());
        app.write(DeleteAccount(account)).expect("deleted");
        assert_eq!((app.rows("note"), app.rows("correction")), (0, 0));
    });
}

#[test]
fn entries_of_others_are_not_found() {
    TestApp::on_both(|app| {
        let (account, token) = (customer(app), app.token().clone());
        let other = app.upsert(json!({"imported_id": "crm-2"})).account.id;
        let made = call(app, &token, account, 3);
        let message = write_to(app, &token, account, &json!({"direction": "outbound", "body": "Hello"}));
        let globex = app.company("globex");
        let contact = Target::from((account, made.id));
        for target in [Target::from((other, made.id)), Target::OfAccount(other, Entry::Message(message.id))] {
            assert!(matches!(app.write(DeleteEntry(target)), Err(Error::NotFound(_))), "{target:?}");
        }
        assert!(matches!(globex.write(DeleteEntry(contact)), Err(Error::NotFound(_))));
        let deleted = app.write(DeleteEntry(contact)).expect("deleted");
        for (company, account) in [(&**app, other), (&globex, account)] {
            let undo = UndoCorrection { account, id: deleted.id };
            assert!(matches!(company.write(undo), Err(Error::NotFound(_))));
        }
    });
}

//! Corrections: the clock follows, an episode that is open again is announced at most once.

use rapport_app::correction::{DeleteEntry, EditEntry, UndoCorrection};
use rapport_domain::company::Settings;
use rapport_domain::correction::Entry;
use rapport_domain::correction::edit::Edit;
use rapport_domain::id::{AccountId, ContactId, CorrectionId};
use rapport_store::contact;
use serde_json::json;

use crate::harness::Sweeping;

/// The contact with the latest time.
fn last(app: &Sweeping, account: AccountId) -> ContactId {
    let page = app.read(move |snapshot| contact::of_account(snapshot, account, None, 1));
    page.items.first().expect("a contact").id
}

fn delete(app: &Sweeping, account: AccountId) -> CorrectionId {
    let target = (account, last(app, account)).into();
    app.write(DeleteEntry(target)).expect("deleted").id
}

fn undo(app: &Sweeping, account: AccountId, id: CorrectionId) {
    app.write(UndoCorrection { account, id }).expect("undone");
}

/// Says that the last contact was really this many days ago.
fn move_to(app: &Sweeping, account: AccountId, days_ago: i64) {
    let now = app.clock().now();
    let body = json!({"occurred_at": now.plus_days(-days_ago).to_string()});
    let edit = Edit::of_contact(body.as_object().expect("an object"), now).expect("an edit");
    let target = (account, Entry::Contact(last(app, account))).into();
    app.write(EditEntry { target, edit }).expect("edited");
}

#[test]
fn a_reopened_episode_that_was_announced_is_not_announced_again() {
    Sweeping::on_both(|app| {
        let id = app.customer("crm-1");
        app.call(id, 0);
        app.pass(42, 0);
        app.expect(id, 1, "42 days after the call");
        app.pass(8, 0);
        app.call(id, 0);
        app.pass(1, 0);
        delete(app, id);
        app.sweep();
        app.pass(30, 0);
        app.expect(id, 1, "the first episode is open again, and was announced");
        assert!(app.account("crm-1").due(&Settings::default(), app.clock().now()).overdue);
    });
}

#[test]
fn a_reopened_episode_that_was_not_announced_is_announced_once() {
    Sweeping::on_both(|app| {
        let id = app.customer("crm-1");
        app.call(id, 0);
        app.pass(40, 0);
        app.call(id, 0);
        app.pass(10, 0);
        app.expect(id, 0, "the second call was in time");
        delete(app, id);
        app.sweep();
        app.expect(id, 1, "it wasn't made, so the client is overdue since 8 days");
        assert_eq!(app.reminders(id)[0]["days_overdue"], json!(8));
        app.pass(10, 0);
        app.expect(id, 1, "only once");
    });
}

#[test]
fn the_only_contact_leads_back_to_never() {
    Sweeping::on_both(|app| {
        let id = app.customer("crm-1");
        app.pass(42, 0);
        app.expect(id, 1, "never contacted");
        app.call(id, 0);
        app.pass(5, 0);
        let deleted = delete(app, id);
        app.pass(20, 0);
        app.expect(id, 1, "announced before the call");
        undo(app, id, deleted);
        app.pass(16, 0);
        app.expect(id, 1, "the call counts again, 41 days ago");
        app.pass(1, 0);
        app.expect(id, 2, "a new episode");
    });
}

#[test]
fn a_client_who_stays_overdue_is_not_announced_again() {
    Sweeping::on_both(|app| {
        let id = app.customer("crm-1");
        app.call(id, 0);
        app.pass(30, 0);
        app.call(id, 0);
        app.pass(42, 0);
        app.expect(id, 1, "42 days after the second call");
        app.pass(3, 0);
        move_to(app, id, 44);
        app.sweep();
        app.expect(id, 1, "an hour or a day earlier or later, it is the same reminder");
        delete(app, id);
        app.sweep();
        app.expect(id, 1, "overdue for longer, but nobody made contact since the reminder");
        assert_eq!(app.number("SELECT count(*) FROM cadence WHERE announced = 1"), 1);
    });
}

#[test]
fn a_client_who_is_not_overdue_after_all_is_announced_when_it_is() {
    Sweeping::on_both(|app| {
        let id = app.customer("crm-1");
        app.call(id, 0);
        app.pass(43, 0);
        app.expect(id, 1, "overdue");
        move_to(app, id, 10);
        app.pass(31, 0);
        app.expect(id, 1, "the call was 41 days ago");
        app.pass(1, 0);
        app.expect(id, 2, "the first reminder was a mistake");
    });
}

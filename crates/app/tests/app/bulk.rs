//! Bulk moves: each account moves the way an operator moves one.

use rapport_app::bulk::{MoveAccounts, Moved};
use rapport_domain::bulk::{BulkMove, Wanted};
use rapport_domain::event::Kind;
use rapport_domain::id::AccountId;
use rapport_domain::member::Role;
use rapport_domain::pipeline::{Source, Status};
use rapport_testkit::TestApp;
use serde_json::json;

use crate::{kinds, moves};

fn all_to(ids: &[AccountId], to: Status, only_from: Option<Status>) -> MoveAccounts {
    let moves = ids.iter().map(|account| Wanted { account: *account, to, only_from }).collect();
    MoveAccounts(BulkMove { moves, note: Some("why".to_owned()) })
}

#[test]
fn each_account_moves_with_its_history_and_event_and_back() {
    TestApp::on_both(|app| {
        let made =
            |id: &str, status: &str| app.upsert(json!({"imported_id": id, "status": status})).account.id;
        let (a, b, c) = (made("a", "prospect"), made("b", "customer"), made("c", "lost"));
        let gone = AccountId::from_bytes([9; 16]);
        let member = app.token_of(Role::Member);
        let reply = app.write_as(&member, all_to(&[a, b, c, gone], Status::Lost, None)).unwrap();
        let mut moved = reply.moved.clone();
        moved.sort_by_key(|(id, _)| *id);
        assert_eq!(moved, [(a, Status::Prospect), (b, Status::Customer)]);
        assert_eq!((reply.stayed, reply.missed), (1, 1));
        assert_eq!(moves(app, a).last(), Some(&(Some(Status::Prospect), Status::Lost, Source::Operator)));
        assert_eq!(kinds(app, b), [Kind::AccountCreated, Kind::AccountStatusChanged]);
        assert_eq!(kinds(app, c), [Kind::AccountCreated], "it already had the status");
        assert_eq!(app.history(a).pop().unwrap().note.as_deref(), Some("why"));
        // Move back, except for an account that someone moved on.
        app.upsert(json!({"imported_id": "b", "status": "in_trial"}));
        let back = app.write(all_to(&[a, b], Status::Prospect, Some(Status::Lost))).unwrap();
        assert_eq!(back, Moved { moved: vec![(a, Status::Lost)], stayed: 0, missed: 1 });
        assert_eq!(app.account("b").status, Status::InTrial);
        assert_eq!(app.account("a").status, Status::Prospect);
    });
}

#[test]
fn accounts_of_another_company_do_not_move() {
    TestApp::on_both(|app| {
        let theirs = app.company("globex").upsert(json!({"imported_id": "a"})).account.id;
        let reply = app.write(all_to(&[theirs], Status::Lost, None)).unwrap();
        assert_eq!(reply, Moved { moved: Vec::new(), stayed: 0, missed: 1 });
    });
}

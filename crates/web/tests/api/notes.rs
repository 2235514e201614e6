//! `accounts/{id}/notes/`: notes on accounts, which aren't contact.

use rapport_domain::member::Role;
use serde_json::{Value, json};

use crate::harness::{Server, Tenant, column, members_of, on_both_engines, path_of};

on_both_engines! {
    a_note_is_added_edited_pinned_deleted_and_restored,
    a_note_is_not_contact,
    notes_are_listed_newest_first_in_pages,
    errors_are_named_and_nothing_is_written,
}

fn list(account: &Value) -> String {
    format!("{}notes/", path_of(account))
}

fn one(account: &Value, note: &Value) -> String {
    format!("{}{}/", list(account), note["id"].as_str().expect("an id"))
}

async fn a_note_is_added_edited_pinned_deleted_and_restored(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "crm-1"})).await;
    let added = acme.post(&list(&account)).json(&json!({"text": "Likes tea"})).send().await.expect(201);
    assert_eq!(members_of(&added).join(" "), "author created_at edited_at edited_by id pinned text");
    assert_eq!((&added["text"], &added["pinned"]), (&json!("Likes tea"), &json!(false)));
    assert!(added["id"].as_str().expect("an id").starts_with("nte_"), "{added}");
    let path = one(&account, &added);
    assert_eq!(acme.get(&path).send().await.expect(200), added);
    let body = json!({"text": "Likes coffee", "pinned": true});
    let edited = acme.patch(&path).json(&body).send().await.expect(200);
    assert_eq!((&edited["text"], &edited["pinned"]), (&json!("Likes coffee"), &json!(true)));
    assert!(edited["edited_at"].is_string(), "{edited}");
    assert_eq!(acme.all_pages(&list(&account), 50).await, std::slice::from_ref(&edited));
    acme.delete(&path).send().await.expect(204);
    acme.get(&path).expect_refused(404, "not_found").await;
    let corrections = format!("{}corrections/", path_of(&account));
    let deletion = acme.all_pages(&corrections, 50).await.remove(0);
    let undo = format!("{corrections}{}/undo/", deletion["id"].as_str().expect("an id"));
    acme.post(&undo).send().await.expect(200);
    assert_eq!(acme.get(&path).send().await.expect(200), edited);
}

async fn a_note_is_not_contact(server: Server) {
    let account = server.account(json!({"imported_id": "crm-1", "status": "customer"})).await;
    server.app.clock().advance_days(50);
    server.post(&list(&account)).json(&json!({"text": "Likes tea", "pinned": true})).send().await.expect(201);
    let shown = server.shown("crm-1").await;
    assert_eq!((&shown["overdue"], &shown["last_contact_at"]), (&json!(true), &Value::Null));
    let timeline = server.all_pages(&format!("{}timeline/", path_of(&account)), 50).await;
    assert_eq!(column(&timeline, "type"), ["note", "created"]);
    assert_eq!(members_of(&timeline[0]).join(" "), "actor at id pinned text type");
    assert_eq!(timeline[0]["text"], json!("Likes tea"));
}

async fn notes_are_listed_newest_first_in_pages(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "crm-1"})).await;
    for text in ["one", "two", "three", "four", "five"] {
        acme.post(&list(&account)).json(&json!({ "text": text })).send().await.expect(201);
    }
    for limit in [1, 2, 50] {
        let found = acme.all_pages(&list(&account), limit).await;
        assert_eq!(column(&found, "text"), ["five", "four", "three", "two", "one"], "by {limit}");
    }
    let other = acme.account(json!({"imported_id": "crm-2"})).await;
    assert_eq!(acme.all_pages(&list(&other), 50).await.len(), 0);
}

async fn errors_are_named_and_nothing_is_written(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "crm-1"})).await;
    let long = "x".repeat(20_001);
    let refused: [(Value, &[(&str, &str)]); 3] = [
        (json!({}), &[("/text", "required")]),
        (json!({ "text": long }), &[("/text", "too_long")]),
        (
            json!({"text": "", "pinned": 1, "kind": "call"}),
            &[("/text", "empty"), ("/pinned", "wrong_type"), ("/kind", "unknown_member")],
        ),
    ];
    for (body, faults) in refused {
        acme.post(&list(&account)).json(&body).expect_faults(faults).await;
    }
    let note = json!({"text": "Likes tea"});
    acme.post(&list(&account))
        .token(&acme.token_of(Role::Viewer))
        .json(&note)
        .expect_refused(403, "role_required")
        .await;
    acme.neighbour().post(&list(&account)).json(&note).expect_refused(404, "not_found").await;
    acme.neighbour().get(&list(&account)).expect_refused(404, "not_found").await;
    assert_eq!(acme.all_pages(&list(&account), 50).await.len(), 0);
}

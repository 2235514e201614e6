//! The timeline: everything that happened to an account, in the same order for any page size.

use serde_json::{Value, json};

use crate::harness::{Server, Tenant, column, members_of, on_both_engines, path_of};

on_both_engines! {
    everything_is_listed_newest_first,
    pages_of_any_size_show_the_same_items,
    it_belongs_to_its_account,
}

/// An account with a move, a message, an earlier message that was logged late, a contact and a note.
async fn eventful(acme: &Server) -> Value {
    let account = acme.account(json!({"imported_id": "crm-1"})).await;
    acme.app.clock().advance_days(1);
    acme.post(&format!("{}status/", path_of(&account)))
        .json(&json!({"status": "in_trial", "note": "wants it"}))
        .send()
        .await
        .expect(200);
    acme.app.clock().advance_days(1);
    let list = format!("{}conversations/", path_of(&account));
    let conversation = acme.post(&list).json(&json!({"subject": "Offer"})).send().await.expect(201);
    let messages = format!("/api/conversations/{}/messages/", conversation["id"].as_str().unwrap());
    let long = "ä".repeat(600);
    for body in [
        json!({"direction": "outbound", "body": long}),
        json!({"direction": "inbound", "body": "before it all", "occurred_at": "2025-06-01T00:00:00Z"}),
    ] {
        acme.post(&messages).json(&body).send().await.expect(201);
    }
    let contact = json!({"kind": "call", "note": "rang twice", "occurred_at": "2026-01-06T12:00:00Z"});
    acme.post(&format!("{}contacts/", path_of(&account))).json(&contact).send().await.expect(201);
    acme.app.clock().advance_days(1);
    let note = json!({"text": "likes tea"});
    acme.post(&format!("{}notes/", path_of(&account))).json(&note).send().await.expect(201);
    account
}

fn timeline(account: &Value) -> String {
    format!("{}timeline/", path_of(account))
}

async fn everything_is_listed_newest_first(acme: Server) {
    let account = eventful(&acme).await;
    let mut items = acme.all_pages(&timeline(&account), 50).await;
    assert_eq!(
        column(&items, "type"),
        ["note", "message", "contact", "status_changed", "created", "message"]
    );
    let mut times = column(&items, "at");
    assert_eq!(times[5], "2025-06-01T00:00:00Z");
    times.reverse();
    assert!(times.is_sorted());
    assert_eq!(items.remove(0)["text"], json!("likes tea"));
    assert_eq!(
        members_of(&items[0]).join(" "),
        "actor at automatic channel conversation_id direction excerpt id sender subject type"
    );
    assert_eq!(items[0]["excerpt"].as_str().unwrap().chars().count(), 500);
    assert_eq!(members_of(&items[1]).join(" "), "actor at id kind note type");
    assert_eq!((&items[1]["kind"], &items[1]["note"]), (&json!("call"), &json!("rang twice")));
    assert_eq!(members_of(&items[2]).join(" "), "actor at from id note source to type");
    assert_eq!(
        (&items[2]["from"], &items[2]["to"], &items[2]["note"]),
        (&json!("prospect"), &json!("in_trial"), &json!("wants it"))
    );
    assert_eq!(members_of(&items[3]).join(" "), "actor at id note source to type");
    assert_eq!(items[3]["source"], json!("upsert"));
}

async fn pages_of_any_size_show_the_same_items(acme: Server) {
    let account = eventful(&acme).await;
    for status in ["customer", "lost", "contacted", "customer"] {
        acme.app.clock().advance_seconds(1);
        acme.resend(json!({"imported_id": "crm-1", "status": status})).await;
    }
    let whole = acme.all_pages(&timeline(&account), 200).await;
    assert_eq!(whole.len(), 10);
    for limit in 1..10 {
        assert_eq!(acme.all_pages(&timeline(&account), limit).await, whole, "{limit} items per page");
    }
    acme.get(&format!("{}?cursor=00", timeline(&account)))
        .expect_faults(&[("cursor", "invalid_cursor")])
        .await;
}

async fn it_belongs_to_its_account(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "crm-1"})).await;
    acme.account(json!({"imported_id": "crm-2"})).await;
    assert_eq!(acme.all_pages(&timeline(&account), 50).await.len(), 1);
    acme.neighbour().get(&timeline(&account)).send().await.expect_problem(404, "not_found");
}

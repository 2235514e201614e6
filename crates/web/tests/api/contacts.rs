//! `accounts/{id}/contacts/`: contacts recorded on accounts.

use rapport_domain::member::Role;
use serde_json::{Value, json};

use crate::harness::{Server, Tenant, column, members_of, on_both_engines, path_of};

on_both_engines! {
    contact_is_recorded_with_its_kind_note_time_and_actor,
    contact_resets_the_clock_and_an_earlier_one_does_not,
    contacts_are_listed_latest_first_in_pages,
    errors_are_named_and_nothing_is_recorded,
    contact_may_be_recorded_for_any_account_of_the_company_by_any_member,
    contacts_are_deleted_with_their_account,
}

fn path(account: &Value) -> String {
    format!("{}contacts/", path_of(account))
}

async fn contact_is_recorded_with_its_kind_note_time_and_actor(server: Server) {
    let account = server.account(json!({"imported_id": "crm-1", "status": "customer"})).await;
    for kind in ["call", "meeting", "email", "other"] {
        let made = server.post(&path(&account)).json(&json!({"kind": kind})).send().await.expect(201);
        assert_eq!(
            members_of(&made),
            ["actor", "created_at", "edited_at", "edited_by", "id", "kind", "note", "occurred_at",]
        );
        assert_eq!((&made["kind"], &made["note"]), (&json!(kind), &json!(null)));
        assert_eq!(made["occurred_at"], json!(server.app.clock().now()));
        assert!(made["id"].as_str().unwrap().starts_with("ctc_"), "{made}");
        assert_eq!(made["actor"]["type"], json!("token"));
    }
    let said =
        json!({"kind": "call", "note": "Asked for a quote", "occurred_at": "2025-12-24T10:00:00+01:00"});
    let made = server.post(&path(&account)).json(&said).send().await.expect(201);
    assert_eq!(made["note"], json!("Asked for a quote"));
    assert_eq!(made["occurred_at"], json!("2025-12-24T09:00:00Z"));
    assert_eq!(made["created_at"], json!(server.app.clock().now()));
}

async fn contact_resets_the_clock_and_an_earlier_one_does_not(server: Server) {
    let account = server.account(json!({"imported_id": "crm-1", "status": "customer"})).await;
    server.app.clock().advance_days(50);
    assert_eq!(server.shown("crm-1").await["overdue"], json!(true));
    let now = server.app.clock().now();
    server.post(&path(&account)).json(&json!({"kind": "call"})).send().await.expect(201);
    let earlier = json!({"kind": "call", "occurred_at": now.plus_days(-60).to_string()});
    server.post(&path(&account)).json(&earlier).send().await.expect(201);
    let shown = server.shown("crm-1").await;
    assert_eq!((&shown["overdue"], &shown["last_contact_at"]), (&json!(false), &json!(now)));
    assert_eq!(shown["due_at"], json!(now.plus_days(42)));
}

async fn contacts_are_listed_latest_first_in_pages(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "crm-1"})).await;
    let other = acme.account(json!({"imported_id": "crm-2"})).await;
    // Two of them are at the same instant.
    for day in ["03", "01", "05", "03", "02", "04"] {
        let body = json!({"kind": "call", "occurred_at": format!("2020-01-{day}")});
        acme.post(&path(&account)).json(&body).send().await.expect(201);
    }
    acme.post(&path(&other)).json(&json!({"kind": "email"})).send().await.expect(201);
    let days = ["05", "04", "03", "03", "02", "01"].map(|day| format!("2020-01-{day}T00:00:00Z"));
    let mut listed = Vec::new();
    for limit in [1, 2, 50] {
        let items = acme.all_pages(&path(&account), limit).await;
        assert_eq!(column(&items, "occurred_at"), days, "by {limit}");
        listed.push(column(&items, "id"));
    }
    assert!(listed.iter().all(|ids| *ids == listed[0]), "{listed:?}");
    acme.get(&format!("{}?cursor=zz&more=1", path(&account)))
        .expect_faults(&[("cursor", "invalid_cursor"), ("more", "unknown_parameter")])
        .await;
}

async fn errors_are_named_and_nothing_is_recorded(server: Server) {
    let account = server.account(json!({"imported_id": "crm-1"})).await;
    let ahead = |seconds: i64| server.app.clock().now().plus_seconds(seconds).to_string();
    let refused: [(Value, &[(&str, &str)]); 4] = [
        (json!({}), &[("/kind", "required")]),
        (json!({"kind": "call", "occurred_at": ahead(301)}), &[("/occurred_at", "in_the_future")]),
        (
            json!({"kind": "fax", "note": 5, "occurred_at": "soon", "who": "me"}),
            &[
                ("/kind", "unknown_kind"),
                ("/note", "wrong_type"),
                ("/occurred_at", "malformed"),
                ("/who", "unknown_member"),
            ],
        ),
        (json!({"kind": "call", "note": "x".repeat(4001)}), &[("/note", "too_long")]),
    ];
    for (body, faults) in refused {
        server.post(&path(&account)).json(&body).expect_faults(faults).await;
    }
    server.post(&path(&account)).json(&json!({"kind": "call", "note": "a\u{0}b"})).send().await.expect(422);
    assert_eq!(server.app.rows("contact"), 0);
    let body = json!({"kind": "call", "occurred_at": ahead(300)});
    server.post(&path(&account)).json(&body).send().await.expect(201);
}

async fn contact_may_be_recorded_for_any_account_of_the_company_by_any_member(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "crm-1", "status": "do_not_contact"})).await;
    let body = json!({"kind": "meeting"});
    let member = acme.token_of(Role::Member);
    acme.post(&path(&account)).token(&member).json(&body).send().await.expect(201);
    acme.get(&path(&account)).token(&member).send().await.expect(200);
    let neighbour = acme.neighbour();
    neighbour.post(&path(&account)).json(&body).expect_refused(404, "not_found").await;
    neighbour.get(&path(&account)).expect_refused(404, "not_found").await;
    acme.post(&path(&account)).without_credential().json(&body).expect_refused(401, "unauthenticated").await;
}

async fn contacts_are_deleted_with_their_account(server: Server) {
    let account = server.account(json!({"imported_id": "crm-1", "status": "customer"})).await;
    server.post(&path(&account)).json(&json!({"kind": "call"})).send().await.expect(201);
    server.delete(&path_of(&account)).send().await.expect(204);
    assert_eq!((server.app.rows("contact"), server.app.rows("cadence")), (0, 0));
    server.get(&path(&account)).expect_refused(404, "not_found").await;
}

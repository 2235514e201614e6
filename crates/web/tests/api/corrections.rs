//! Edits and deletions of contacts and messages, and how they are undone.

use rapport_domain::member::Role;
use serde_json::{Value, json};

use crate::harness::{Server, Tenant, column, members_of, on_both_engines, path_of};
use crate::person::Person;

on_both_engines! {
    a_contact_is_edited_and_the_clock_follows,
    a_contact_is_deleted_and_restored,
    a_message_is_edited_deleted_and_restored,
    errors_are_named_and_nothing_is_changed,
    only_who_logged_it_and_admins_correct_it,
    corrections_are_listed_newest_first_in_pages,
    what_was_changed_is_shown_to_those_who_may_correct_it,
    a_correction_that_does_not_apply_any_more_is_a_conflict,
    pages_offer_corrections_to_those_who_may_make_them,
}

async fn customer(acme: &Tenant) -> Value {
    acme.account(json!({"imported_id": "crm-1", "status": "customer"})).await
}

/// Records a contact; returns it and its path.
async fn contact(acme: &Tenant, account: &Value, body: &Value) -> (Value, String) {
    let list = format!("{}contacts/", path_of(account));
    let made = acme.post(&list).json(body).send().await.expect(201);
    let path = format!("{list}{}/", made["id"].as_str().expect("an id"));
    (made, path)
}

async fn message(acme: &Tenant, account: &Value, body: &Value) -> (Value, String) {
    let list = format!("{}conversations/", path_of(account));
    let begun = acme.post(&list).json(&json!({"subject": "Offer"})).send().await.expect(201);
    let list = format!("/api/conversations/{}/messages/", begun["id"].as_str().expect("an id"));
    let logged = acme.post(&list).json(body).send().await.expect(201);
    let path = format!("{list}{}/", logged["id"].as_str().expect("an id"));
    (logged, path)
}

fn corrections(account: &Value) -> String {
    format!("{}corrections/", path_of(account))
}

fn undo_of(account: &Value, correction: &Value) -> String {
    format!("{}{}/undo/", corrections(account), correction["id"].as_str().expect("an id"))
}

async fn a_contact_is_edited_and_the_clock_follows(acme: Tenant) {
    let account = customer(&acme).await;
    let (made, path) = contact(&acme, &account, &json!({"kind": "call", "note": "Rang twice"})).await;
    assert_eq!(acme.get(&path).send().await.expect(200), made);
    assert_eq!((&made["edited_at"], &made["edited_by"]), (&Value::Null, &Value::Null));
    let body = json!({"kind": "meeting", "occurred_at": "2020-02-03T10:00:00+01:00"});
    let edited = acme.patch(&path).json(&body).send().await.expect(200);
    assert_eq!((&edited["kind"], &edited["note"]), (&json!("meeting"), &json!("Rang twice")));
    assert_eq!(edited["occurred_at"], json!("2020-02-03T09:00:00Z"));
    assert_eq!(edited["edited_by"]["type"], json!("token"));
    assert!(edited["edited_at"].is_string() && edited["created_at"] == made["created_at"], "{edited}");
    assert_eq!(acme.shown("crm-1").await["last_contact_at"], json!("2020-02-03T09:00:00Z"));
    assert_eq!(acme.get(&path).send().await.expect(200), edited);
    let listed = acme.all_pages(&format!("{}contacts/", path_of(&account)), 50).await;
    assert_eq!(listed, [edited]);
    // Nothing to change is no correction.
    acme.patch(&path).json(&body).send().await.expect(200);
    acme.patch(&path).json(&json!({})).send().await.expect(200);
    assert_eq!(acme.all_pages(&corrections(&account), 50).await.len(), 1);
}

async fn a_contact_is_deleted_and_restored(acme: Tenant) {
    let account = customer(&acme).await;
    let first = json!({"kind": "call", "occurred_at": "2020-01-01T00:00:00Z"});
    contact(&acme, &account, &first).await;
    let (made, path) = contact(&acme, &account, &json!({"kind": "call", "note": "Rang twice"})).await;
    acme.delete(&path).send().await.expect(204);
    acme.get(&path).expect_refused(404, "not_found").await;
    acme.delete(&path).expect_refused(404, "not_found").await;
    assert_eq!(acme.shown("crm-1").await["last_contact_at"], json!("2020-01-01T00:00:00Z"));
    let listed = acme.all_pages(&corrections(&account), 50).await;
    let [deletion] = &listed[..] else { panic!("{listed:?}") };
    assert_eq!(
        members_of(deletion).join(" "),
        "account_id act actor after at author before can_undo entry_id entry_type fields id undone_at undone_by"
    );
    assert_eq!((&deletion["act"], &deletion["entry_type"]), (&json!("deleted"), &json!("contact")));
    assert_eq!((&deletion["entry_id"], &deletion["before"]["note"]), (&made["id"], &json!("Rang twice")));
    assert_eq!(deletion["can_undo"], json!(true));
    let undone = acme.post(&undo_of(&account, deletion)).send().await.expect(200);
    assert_eq!((&undone["id"], &undone["can_undo"]), (&deletion["id"], &json!(false)));
    assert!(undone["undone_at"].is_string() && undone["undone_by"]["type"] == json!("token"), "{undone}");
    assert_eq!(acme.get(&path).send().await.expect(200), made);
    assert_eq!(acme.shown("crm-1").await["last_contact_at"], made["occurred_at"]);
    acme.post(&undo_of(&account, deletion)).expect_refused(409, "already_undone").await;
}

async fn a_message_is_edited_deleted_and_restored(acme: Tenant) {
    let account = customer(&acme).await;
    let body = json!({"direction": "outbound", "body": "Hello", "occurred_at": "2020-01-01T00:00:00Z"});
    let (_, path) = message(&acme, &account, &body).await;
    let last_contact = async || acme.shown("crm-1").await["last_contact_at"].clone();
    let edited =
        acme.patch(&path).json(&json!({"body": "Hello again", "subject": "Hi"})).send().await.expect(200);
    assert_eq!((&edited["body"], &edited["subject"]), (&json!("Hello again"), &json!("Hi")));
    assert_eq!(last_contact().await, json!("2020-01-01T00:00:00Z"));
    acme.patch(&path).json(&json!({"occurred_at": "2020-01-02T00:00:00Z"})).send().await.expect(200);
    assert_eq!(last_contact().await, json!("2020-01-02T00:00:00Z"));
    acme.patch(&path).json(&json!({"direction": "inbound"})).send().await.expect(200);
    assert_eq!(last_contact().await, Value::Null);
    let conversation = path.split("messages/").next().expect("a path").to_owned();
    acme.delete(&path).send().await.expect(204);
    let shown = acme.get(&conversation).send().await.expect(200);
    assert_eq!((&shown["message_count"], &shown["last_message_at"]), (&json!(0), &Value::Null));
    let deletion = acme.all_pages(&corrections(&account), 50).await.remove(0);
    acme.post(&undo_of(&account, &deletion)).send().await.expect(200);
    let restored = acme.get(&path).send().await.expect(200);
    assert_eq!((&restored["body"], &restored["direction"]), (&json!("Hello again"), &json!("inbound")));
    assert_eq!(acme.get(&conversation).send().await.expect(200)["message_count"], json!(1));
    let kinds: Vec<Value> = acme.events(&account).iter().map(|event| event["type"].clone()).collect();
    assert_eq!(kinds, [json!("account.created")], "a correction is no news");
}

async fn errors_are_named_and_nothing_is_changed(acme: Tenant) {
    let account = customer(&acme).await;
    let (made, path) = contact(&acme, &account, &json!({"kind": "call"})).await;
    let refused: [(Value, &[(&str, &str)]); 3] = [
        (json!({"kind": "fax", "who": 1}), &[("/kind", "unknown_kind"), ("/who", "unknown_member")]),
        (
            json!({"kind": null, "occurred_at": null}),
            &[("/kind", "not_clearable"), ("/occurred_at", "not_clearable")],
        ),
        (
            json!({"occurred_at": "2099-01-01", "note": 5}),
            &[("/note", "wrong_type"), ("/occurred_at", "in_the_future")],
        ),
    ];
    for (body, faults) in refused {
        acme.patch(&path).json(&body).expect_faults(faults).await;
    }
    assert_eq!(acme.get(&path).send().await.expect(200), made);
    assert_eq!(acme.all_pages(&corrections(&account), 50).await.len(), 0);
    let other = acme.account(json!({"imported_id": "crm-2"})).await;
    let id = made["id"].as_str().expect("an id");
    let elsewhere = format!("{}contacts/{id}/", path_of(&other));
    let malformed = format!("{}contacts/msg_01jz3v8m5xqkf0t6b2n9rc7d4e/", path_of(&account));
    for wrong in [&elsewhere, &malformed] {
        acme.get(wrong).expect_refused(404, "not_found").await;
        acme.patch(wrong).json(&json!({"kind": "email"})).expect_refused(404, "not_found").await;
        acme.delete(wrong).expect_refused(404, "not_found").await;
    }
    let neighbour = acme.neighbour();
    neighbour.get(&path).expect_refused(404, "not_found").await;
    neighbour.delete(&path).expect_refused(404, "not_found").await;
    neighbour.get(&corrections(&account)).expect_refused(404, "not_found").await;
    acme.post(&format!("{}cor_01jz3v8m5xqkf0t6b2n9rc7d4e/undo/", corrections(&account)))
        .expect_refused(404, "not_found")
        .await;
}

async fn only_who_logged_it_and_admins_correct_it(acme: Tenant) {
    let account = customer(&acme).await;
    let list = format!("{}contacts/", path_of(&account));
    let (own, other, viewer) =
        (acme.token_of(Role::Member), acme.token_of(Role::Member), acme.token_of(Role::Viewer));
    let made = acme.post(&list).token(&own).json(&json!({"kind": "call"})).send().await.expect(201);
    let path = format!("{list}{}/", made["id"].as_str().expect("an id"));
    let edit = |token: &str| acme.patch(&path).token(token).json(&json!({"kind": "email"}));
    let refused = edit(&other).expect_refused(403, "role_required").await;
    let detail = "only admins and owners can edit and delete what others logged";
    assert_eq!(refused.json()["detail"], json!(detail));
    acme.delete(&path).token(&other).expect_refused(403, "role_required").await;
    edit(&viewer).expect_refused(403, "role_required").await;
    edit(&own).send().await.expect(200);
    acme.delete(&path).token(&acme.token_of(Role::Admin)).send().await.expect(204);
    let deletion = acme.all_pages(&corrections(&account), 50).await.remove(0);
    let undo = |token: &str| acme.post(&undo_of(&account, &deletion)).token(token);
    undo(&other).expect_refused(403, "role_required").await;
    undo(&viewer).expect_refused(403, "role_required").await;
    undo(&own).send().await.expect(200);
}

async fn corrections_are_listed_newest_first_in_pages(server: Server) {
    let account = customer(&server).await;
    let (_, path) = contact(&server, &account, &json!({"kind": "call"})).await;
    for kind in ["email", "meeting", "other", "call", "email"] {
        server.app.clock().advance_seconds(1);
        server.patch(&path).json(&json!({ "kind": kind })).send().await.expect(200);
    }
    let whole = server.all_pages(&corrections(&account), 200).await;
    let became: Vec<&Value> = whole.iter().map(|one| &one["after"]["kind"]).collect();
    assert_eq!(became, ["email", "call", "other", "meeting", "email"]);
    assert_eq!(whole[0]["fields"], json!(["kind"]));
    let mut times = column(&whole, "at");
    times.reverse();
    assert!(times.is_sorted());
    for limit in 1..5 {
        assert_eq!(server.all_pages(&corrections(&account), limit).await, whole, "{limit} per page");
    }
    server
        .get(&format!("{}?cursor=zz", corrections(&account)))
        .expect_faults(&[("cursor", "invalid_cursor")])
        .await;
}

async fn what_was_changed_is_shown_to_those_who_may_correct_it(acme: Tenant) {
    let account = customer(&acme).await;
    let (_, path) = contact(&acme, &account, &json!({"kind": "call", "note": "Rang twice"})).await;
    acme.delete(&path).send().await.expect(204);
    for (role, is_shown) in [(Role::Viewer, false), (Role::Member, false), (Role::Admin, true)] {
        let shown = acme.get(&corrections(&account)).token(&acme.token_of(role)).send().await.expect(200);
        let deletion = &shown["items"][0];
        assert_eq!(deletion["before"].is_object(), is_shown, "{role:?}");
        assert_eq!(deletion["can_undo"], json!(is_shown), "{role:?}");
        assert_eq!(deletion["act"], json!("deleted"));
    }
}

async fn a_correction_that_does_not_apply_any_more_is_a_conflict(server: Server) {
    let account = customer(&server).await;
    let (_, path) = contact(&server, &account, &json!({"kind": "call"})).await;
    for kind in ["email", "meeting"] {
        server.app.clock().advance_seconds(1);
        server.patch(&path).json(&json!({ "kind": kind })).send().await.expect(200);
    }
    let listed = server.all_pages(&corrections(&account), 50).await;
    let [second, first] = &listed[..] else { panic!("{listed:?}") };
    server.post(&undo_of(&account, first)).expect_refused(409, "changed_since").await;
    server.post(&undo_of(&account, second)).send().await.expect(200);
    server.app.clock().advance_days(30);
    server.post(&undo_of(&account, first)).expect_refused(409, "undo_expired").await;
    assert_eq!(server.get(&path).send().await.expect(200)["kind"], json!("email"));
}

async fn pages_offer_corrections_to_those_who_may_make_them(acme: Tenant) {
    let account = customer(&acme).await;
    let page = path_of(&account).trim_start_matches("/api").trim_end_matches('/').to_owned();
    let (member, other, admin) =
        (Person::of(&acme, Role::Member), Person::of(&acme, Role::Member), Person::of(&acme, Role::Admin));
    member.send(&format!("{page}/contacts"), &[("kind", "call"), ("note", "Rang")]).await.leads_to(&page);
    let listed = acme.all_pages(&format!("{}contacts/", path_of(&account)), 50).await;
    let id = listed[0]["id"].as_str().expect("an id").to_owned();
    let form = format!("{page}/entries/{id}/delete");
    let edit = format!("{page}?edit=entry&entry={id}");
    for (person, is_offered) in [(&member, true), (&other, false), (&admin, true)] {
        let shown = person.see(&page).await.expect(200);
        assert_eq!(shown.0.text().contains(&form), is_offered);
        let shown = person.see(&edit).await.expect(200);
        assert_eq!(shown.0.text().contains("id=\"edit-entry\""), is_offered);
    }
    let refused = other.send(&form, &[]).await;
    assert_eq!(refused.0.status, 403);
    assert_eq!(acme.all_pages(&format!("{}contacts/", path_of(&account)), 50).await, listed);
    member.send(&form, &[]).await.leads_to(&page);
    assert!(other.see(&page).await.expect(200).0.text().contains("Contact deleted"));
}

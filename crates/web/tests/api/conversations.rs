//! Conversations and messages: what is stored, what counts as contact, what fires an event.

use serde_json::{Value, json};

use crate::harness::{Server, Tenant, column, id_of, members_of, on_both_engines, path_of};

on_both_engines! {
    a_conversation_is_started_and_shown,
    an_invalid_conversation_is_refused,
    a_message_is_kept_as_logged,
    an_invalid_message_is_refused,
    an_outbound_message_is_contact_and_an_inbound_one_is_not,
    only_a_later_message_moves_last_contact,
    an_inbound_message_fires_message_inbound_and_an_outbound_one_does_not,
    a_webhook_that_selects_it_gets_message_inbound,
    conversations_are_listed_by_their_latest_message,
    messages_are_listed_latest_first_and_paged,
    deleting_an_account_removes_its_conversations,
    another_company_sees_nothing,
}

async fn start(acme: &Tenant, account: &Value, body: Value) -> Value {
    let path = format!("{}conversations/", path_of(account));
    acme.post(&path).json(&body).send().await.expect(201)
}

fn path(conversation: &Value) -> String {
    format!("/api/conversations/{}/", conversation["id"].as_str().expect("an id"))
}

async fn log(acme: &Tenant, conversation: &Value, body: Value) -> Value {
    acme.post(&format!("{}messages/", path(conversation))).json(&body).send().await.expect(201)
}

async fn account_with_conversation(acme: &Tenant) -> (Value, Value) {
    let account = acme.account(json!({"imported_id": "crm-1", "status": "customer"})).await;
    let conversation = start(acme, &account, json!({"subject": "Offer"})).await;
    (account, conversation)
}

async fn a_conversation_is_started_and_shown(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "crm-1"})).await;
    let plain = start(&acme, &account, json!({})).await;
    assert_eq!(
        members_of(&plain),
        ["account_id", "channel", "created_at", "id", "last_message_at", "message_count", "subject"]
    );
    assert!(plain["id"].as_str().unwrap().starts_with("cnv_"));
    assert_eq!(plain["account_id"], account["id"]);
    assert_eq!((&plain["subject"], &plain["channel"]), (&Value::Null, &json!("email")));
    assert_eq!((&plain["message_count"], &plain["last_message_at"]), (&json!(0), &Value::Null));
    let asked = json!({"subject": "Offer für Nordlys", "channel": "phone"});
    let started = start(&acme, &account, asked).await;
    assert_eq!((&started["subject"], &started["channel"]), (&json!("Offer für Nordlys"), &json!("phone")));
    assert_eq!(acme.get(&path(&started)).send().await.expect(200), started);
}

async fn an_invalid_conversation_is_refused(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "crm-1"})).await;
    let list = format!("{}conversations/", path_of(&account));
    let wrong = json!({"subject": "a\u{0}b", "channel": "", "title": "x"});
    let faults = [("/subject", "nul_character"), ("/channel", "empty"), ("/title", "unknown_member")];
    acme.post(&list).json(&wrong).expect_faults(&faults).await;
    let long = json!({"subject": "x".repeat(999), "channel": "y".repeat(65)});
    acme.post(&list).json(&long).expect_faults(&[("/subject", "too_long"), ("/channel", "too_long")]).await;
    for id in ["acc_00000000000000000000000000", "nonsense"] {
        let path = format!("/api/accounts/{id}/conversations/");
        acme.post(&path).json(&json!({})).expect_refused(404, "not_found").await;
        acme.get(&path).expect_refused(404, "not_found").await;
    }
    acme.get("/api/conversations/cnv_00000000000000000000000000/").expect_refused(404, "not_found").await;
}

async fn a_message_is_kept_as_logged(acme: Tenant) {
    let (account, conversation) = account_with_conversation(&acme).await;
    let body = json!({
        "direction": "outbound", "body": "Hello — wie geht's?\r\n> quoted\n", "channel": "sms", "subject": "Hi",
        "occurred_at": "2025-12-24T18:00:00+01:00",
    });
    let message = log(&acme, &conversation, body.clone()).await;
    assert_eq!(
        members_of(&message).join(" "),
        "account_id attachments author automatic body body_truncated channel conversation_id created_at direction \
         edited_at edited_by id occurred_at sender sender_check subject"
    );
    for member in ["direction", "body", "channel", "subject"] {
        assert_eq!(message[member], body[member]);
    }
    assert_eq!(message["occurred_at"], json!("2025-12-24T17:00:00Z"));
    assert_eq!((&message["account_id"], &message["conversation_id"]), (&account["id"], &conversation["id"]));
    assert_eq!(message["author"]["type"], json!("token"));
    assert_eq!((&message["automatic"], &message["attachments"]), (&json!(false), &json!([])));
    let short = log(&acme, &conversation, json!({"direction": "inbound", "body": "Hi"})).await;
    assert_eq!((&short["channel"], &short["subject"]), (&json!("email"), &Value::Null));
    assert_eq!(short["occurred_at"], short["created_at"], "defaults to now");
    let shown = acme.get(&path(&conversation)).send().await.expect(200);
    assert_eq!((&shown["message_count"], &shown["last_message_at"]), (&json!(2), &short["occurred_at"]));
}

async fn an_invalid_message_is_refused(acme: Tenant) {
    let (_, conversation) = account_with_conversation(&acme).await;
    let list = format!("{}messages/", path(&conversation));
    let missing = [("/direction", "required"), ("/body", "required")];
    acme.post(&list).json(&json!({})).expect_faults(&missing).await;
    let wrong = json!({
        "direction": "both", "body": "a\u{0}", "channel": "", "subject": 5, "occurred_at": "tomorrow", "x": 1,
    });
    let faults = [
        ("/direction", "unknown_direction"),
        ("/body", "nul_character"),
        ("/channel", "empty"),
        ("/subject", "wrong_type"),
        ("/occurred_at", "malformed"),
        ("/x", "unknown_member"),
    ];
    acme.post(&list).json(&wrong).expect_faults(&faults).await;
    let now = acme.company.app().now();
    let ahead = |seconds: i64| json!({"direction": "outbound", "body": "x", "occurred_at": now.plus_seconds(seconds).to_string()});
    acme.post(&list).json(&ahead(301)).expect_faults(&[("/occurred_at", "in_the_future")]).await;
    acme.post(&list).json(&ahead(300)).send().await.expect(201);
    let nowhere = "/api/conversations/cnv_00000000000000000000000000/messages/";
    let fine = json!({"direction": "inbound", "body": "x"});
    acme.post(nowhere).json(&fine).expect_refused(404, "not_found").await;
    acme.get(nowhere).expect_refused(404, "not_found").await;
    acme.post(&list).json(&fine).without_credential().expect_refused(401, "unauthenticated").await;
}

async fn an_outbound_message_is_contact_and_an_inbound_one_is_not(acme: Server) {
    let (account, conversation) = account_with_conversation(&acme).await;
    acme.app.clock().advance_days(50);
    assert_eq!(acme.shown("crm-1").await["overdue"], json!(true));
    log(&acme, &conversation, json!({"direction": "inbound", "body": "Where are you?"})).await;
    let after = acme.shown("crm-1").await;
    assert_eq!((&after["last_contact_at"], &after["overdue"]), (&Value::Null, &json!(true)));
    assert_eq!(after["updated_at"], account["updated_at"]);
    let sent = log(&acme, &conversation, json!({"direction": "outbound", "body": "Here I am."})).await;
    let after = acme.shown("crm-1").await;
    assert_eq!((&after["last_contact_at"], &after["overdue"]), (&sent["occurred_at"], &json!(false)));
}

async fn only_a_later_message_moves_last_contact(acme: Tenant) {
    let (_, conversation) = account_with_conversation(&acme).await;
    let table = [
        ("2025-11-01T00:00:00Z", "2025-11-01T00:00:00Z"),
        ("2025-10-01T00:00:00Z", "2025-11-01T00:00:00Z"),
        ("2025-12-01T00:00:00Z", "2025-12-01T00:00:00Z"),
    ];
    for (occurred_at, last_contact_at) in table {
        let body = json!({"direction": "outbound", "body": "x", "occurred_at": occurred_at});
        log(&acme, &conversation, body).await;
        assert_eq!(acme.shown("crm-1").await["last_contact_at"], json!(last_contact_at), "{occurred_at}");
    }
}

async fn an_inbound_message_fires_message_inbound_and_an_outbound_one_does_not(acme: Tenant) {
    let (account, conversation) = account_with_conversation(&acme).await;
    log(&acme, &conversation, json!({"direction": "outbound", "body": "Hello"})).await;
    assert_eq!(column(&acme.events(&account), "type"), ["account.created"]);
    let mut message =
        log(&acme, &conversation, json!({"direction": "inbound", "body": "Hello yourself"})).await;
    for member in ["edited_at", "edited_by"] {
        message.as_object_mut().unwrap().remove(member).expect("only in the API");
    }
    let events = acme.events(&account);
    assert_eq!(column(&events, "type"), ["account.created", "message.inbound"]);
    let data = &events[1]["data"];
    assert_eq!(members_of(data), ["account", "conversation", "message"]);
    assert_eq!((&data["account"]["id"], &data["account"]["imported_id"]), (&account["id"], &json!("crm-1")));
    assert_eq!(data["message"], message);
    assert_eq!(data["conversation"], acme.get(&path(&conversation)).send().await.expect(200));
}

async fn a_webhook_that_selects_it_gets_message_inbound(acme: Tenant) {
    let hook = |event: &str| json!({"url": "https://example.com/hook", "events": [event]});
    let chosen = acme.post("/api/webhooks/").json(&hook("message.inbound")).send().await.expect(201);
    acme.post("/api/webhooks/").json(&hook("client.contact_due")).send().await.expect(201);
    let (_, conversation) = account_with_conversation(&acme).await;
    log(&acme, &conversation, json!({"direction": "inbound", "body": "Hello"})).await;
    let deliveries = acme.all_pages("/api/deliveries/", 50).await;
    assert_eq!(column(&deliveries, "type"), ["message.inbound"]);
    assert_eq!(deliveries[0]["webhook_id"], chosen["id"]);
}

async fn conversations_are_listed_by_their_latest_message(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "crm-1"})).await;
    let mut started = Vec::new();
    for subject in ["a", "b", "c", "d"] {
        started.push(start(&acme, &account, json!({ "subject": subject })).await);
    }
    // The clock doesn't move, so the one with a message from last year comes last.
    let late = json!({"direction": "inbound", "body": "x", "occurred_at": "2025-01-01"});
    log(&acme, &started[2], late).await;
    for limit in [1, 3, 50] {
        let listed = acme.all_pages(&format!("{}conversations/", path_of(&account)), limit).await;
        assert_eq!(column(&listed, "subject"), ["d", "b", "a", "c"]);
    }
    let cursor = format!("{}conversations/?cursor=nonsense", path_of(&account));
    acme.get(&cursor).expect_faults(&[("cursor", "invalid_cursor")]).await;
}

async fn messages_are_listed_latest_first_and_paged(acme: Tenant) {
    let (_, conversation) = account_with_conversation(&acme).await;
    for (day, body) in [(3, "third"), (1, "first"), (2, "second"), (3, "third again")] {
        let at = format!("2025-12-0{day}");
        log(&acme, &conversation, json!({"direction": "inbound", "body": body, "occurred_at": at})).await;
    }
    for limit in [1, 2, 200] {
        let listed = acme.all_pages(&format!("{}messages/", path(&conversation)), limit).await;
        assert_eq!(column(&listed, "body"), ["third again", "third", "second", "first"]);
    }
    // With long messages a page has fewer items than requested, but none is lost.
    let long = "ü".repeat(200_000);
    for _ in 0..12 {
        log(&acme, &conversation, json!({"direction": "inbound", "body": long})).await;
    }
    let path = format!("{}messages/?limit=200", path(&conversation));
    let page = acme.get(&path).send().await.expect(200);
    assert!(page["items"].as_array().unwrap().len() < 12 && page["next_cursor"].is_string());
    assert_eq!(acme.all_pages(path.split('?').next().unwrap(), 200).await.len(), 16);
}

async fn deleting_an_account_removes_its_conversations(acme: Server) {
    let (account, conversation) = account_with_conversation(&acme).await;
    log(&acme, &conversation, json!({"direction": "inbound", "body": "Hello"})).await;
    let other = acme.account(json!({"imported_id": "crm-2"})).await;
    let kept = start(&acme, &other, json!({})).await;
    log(&acme, &kept, json!({"direction": "inbound", "body": "Hello"})).await;
    acme.delete(&path_of(&account)).send().await.expect(204);
    acme.get(&path(&conversation)).send().await.expect_problem(404, "not_found");
    for table in ["conversation", "message"] {
        assert_eq!(acme.app.rows(table), 1, "{table}");
    }
    acme.get(&path(&kept)).send().await.expect(200);
}

async fn another_company_sees_nothing(acme: Tenant) {
    let (account, conversation) = account_with_conversation(&acme).await;
    let globex = acme.neighbour();
    let foreign = format!("/api/accounts/{}/conversations/", id_of(&account));
    globex.get(&foreign).send().await.expect_problem(404, "not_found");
    globex.get(&path(&conversation)).send().await.expect_problem(404, "not_found");
    let messages = format!("{}messages/", path(&conversation));
    globex.get(&messages).send().await.expect_problem(404, "not_found");
    let message = json!({"direction": "outbound", "body": "x"});
    globex.post(&messages).json(&message).send().await.expect_problem(404, "not_found");
    assert_eq!(acme.shown("crm-1").await["last_contact_at"], Value::Null);
}

//! Following events and accounts with a cursor.

use std::time::{Duration, Instant};

use rapport_testkit::{PATIENCE, all};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::harness::{Server, Tenant, column, on_both_engines, path_of};

on_both_engines! {
    events_are_the_payloads_that_webhooks_send,
    a_reader_continues_where_it_stopped,
    a_reader_chooses_kinds,
    a_waiting_reader_gets_events_of_this_and_of_other_nodes,
    an_empty_answer_comes_after_the_wait_and_when_the_service_stops,
    a_company_has_a_limited_number_of_waiting_readers,
    bad_parameters_are_named,
    a_cursor_expires_with_what_it_has_yet_to_show,
    accounts_are_listed_in_the_order_of_their_changes,
    deleted_accounts_are_listed_on_request,
    a_list_by_change_takes_no_other_filters,
    every_change_of_many_clients_reaches_a_reader,
}

const EVENTS: &str = "/api/events/";
const CHANGES: &str = "/api/accounts/?sort=updated_at";

/// Everything from a cursor on, and the next cursor.
async fn follow(acme: &Tenant, path: &str, cursor: Option<String>) -> (Vec<Value>, String) {
    let joint = if path.contains('?') { '&' } else { '?' };
    let (mut items, mut cursor) = (Vec::new(), cursor);
    loop {
        let place = cursor.map_or_else(String::new, |cursor| format!("&cursor={cursor}"));
        let page = acme.get(&format!("{path}{joint}limit=2{place}")).send().await.expect(200);
        let found = page["items"].as_array().expect("items");
        assert!(found.len() <= 2);
        items.extend(found.iter().cloned());
        let next = page["next_cursor"].as_str().expect("a cursor").to_owned();
        if !page["has_more"].as_bool().expect("a flag") {
            return (items, next);
        }
        cursor = Some(next);
    }
}

async fn events_are_the_payloads_that_webhooks_send(acme: Tenant) {
    let first = acme.account(json!({"imported_id": "a", "custom_fields": {"n": 1.50}})).await;
    acme.resend(json!({"imported_id": "a", "status": "customer"})).await;
    let second = acme.account(json!({"imported_id": "b"})).await;
    acme.neighbour().account(json!({"imported_id": "c"})).await;
    let expected = [acme.events(&first), acme.events(&second)].concat();
    let answer = acme.get(EVENTS).send().await;
    let page = answer.expect(200);
    assert_eq!(page["items"], json!(expected), "though no webhook selects them");
    assert_eq!((&page["has_more"], page["next_cursor"].is_string()), (&json!(false), true));
    for event in acme.company.events(crate::harness::id_of(&first)) {
        assert!(answer.text().contains(&event.payload), "byte for byte: {}", event.payload);
    }
    let viewer = acme.token_of(rapport_domain::member::Role::Viewer);
    assert_eq!(acme.get(EVENTS).token(&viewer).send().await.expect(200)["items"], page["items"]);
    acme.get(EVENTS).without_credential().expect_refused(401, "unauthenticated").await;
}

async fn a_reader_continues_where_it_stopped(acme: Tenant) {
    let (none, start) = follow(&acme, EVENTS, None).await;
    assert!(none.is_empty());
    for number in 0..5 {
        acme.account(json!({"imported_id": format!("crm-{number}")})).await;
    }
    let (five, cursor) = follow(&acme, EVENTS, Some(start)).await;
    let names = |items: &[Value]| {
        let names = items.iter().map(|item| item["data"]["account"]["imported_id"].as_str().expect("a text"));
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(names(&five), ["crm-0", "crm-1", "crm-2", "crm-3", "crm-4"]);
    let (nothing, same) = follow(&acme, EVENTS, Some(cursor)).await;
    assert!(nothing.is_empty());
    acme.account(json!({"imported_id": "crm-5"})).await;
    assert_eq!(names(&follow(&acme, EVENTS, Some(same)).await.0), ["crm-5"]);
    assert_eq!(follow(&acme, EVENTS, None).await.0.len(), 6, "another reader begins with the oldest");
}

async fn a_reader_chooses_kinds(acme: Tenant) {
    for number in 0..3 {
        acme.account(json!({"imported_id": format!("crm-{number}")})).await;
        acme.resend(json!({"imported_id": format!("crm-{number}"), "status": "lost"})).await;
    }
    for (kinds, expected) in [
        ("type=account.created", vec!["account.created"; 3]),
        ("type=account.status_changed&type=message.inbound", vec!["account.status_changed"; 3]),
        ("type=webhook.test,client.contact_due", vec![]),
    ] {
        let (items, _) = follow(&acme, &format!("{EVENTS}?{kinds}"), None).await;
        assert_eq!(column(&items, "type"), expected, "{kinds}");
    }
}

async fn a_waiting_reader_gets_events_of_this_and_of_other_nodes(server: Server) {
    let other = server.app.another_node();
    let (_, mut cursor) = follow(&server, EVENTS, None).await;
    for number in 0..4 {
        let wait = format!("{EVENTS}?wait=25&cursor={cursor}");
        let reading = server.get(&wait);
        let act = async {
            // Other requests come and go while the reader waits.
            for _ in 0..5 {
                server.get("/api/settings/").send().await.expect(200);
            }
            let body = json!({"project": "acme", "imported_id": format!("crm-{number}")});
            if number % 2 == 0 {
                server.upsert(body).await.expect(201);
            } else {
                let request = rapport_domain::account::Upsert::parse(body.as_object().unwrap()).unwrap();
                other.write(server.company.token(), rapport_app::upsert::Upsert(request)).await.unwrap();
            }
        };
        let (answer, ()) = tokio::join!(reading.send(), act);
        let page = answer.expect(200);
        let items = page["items"].as_array().expect("items");
        assert_eq!(items.len(), 1, "{page}");
        assert_eq!(items[0]["data"]["account"]["imported_id"], json!(format!("crm-{number}")));
        page["next_cursor"].as_str().expect("a cursor").clone_into(&mut cursor);
    }
}

async fn an_empty_answer_comes_after_the_wait_and_when_the_service_stops(engine: rapport_testkit::Engine) {
    let mut stopping = None;
    let server = Server::with(engine, |config| stopping = Some(config.stopping.clone())).await;
    let page = server.get(&format!("{EVENTS}?wait=1")).send().await.expect(200);
    assert_eq!((&page["items"], &page["has_more"]), (&json!([]), &json!(false)));
    let begun = Instant::now();
    let path = format!("{EVENTS}?wait=25");
    let (answer, ()) = tokio::join!(server.get(&path).send(), async {
        server.get("/api/settings/").send().await.expect(200);
        stopping.expect("a token").cancel();
    });
    assert_eq!(answer.expect(200)["items"], json!([]));
    assert!(begun.elapsed() < Duration::from_secs(20), "it doesn't wait to the end");
}

async fn a_company_has_a_limited_number_of_waiting_readers(acme: Tenant) {
    let path = format!("{EVENTS}?wait=25");
    let (refused, mut refusals) = mpsc::unbounded_channel();
    let readers = (0..33).map(|_| async {
        let answer = acme.get(&path).send().await;
        if answer.status == 429 {
            answer.expect_problem(429, "too_many_waiting");
            assert!(answer.header("retry-after").is_some());
            refused.send(()).expect("a receiver");
            return 0;
        }
        answer.expect(200)["items"].as_array().expect("items").len()
    });
    let act = async {
        refusals.recv().await.expect("one reader too many");
        acme.account(json!({"imported_id": "crm-1"})).await;
    };
    let (read, ()) = tokio::join!(all(readers), act);
    assert_eq!(read.iter().sum::<usize>(), 32, "the others get the event: {read:?}");
}

async fn bad_parameters_are_named(acme: Tenant) {
    let accounts = follow(&acme, CHANGES, None).await.1;
    acme.get(&format!("{EVENTS}?wait=soon&type=nope&limit=0&cursor=x&colour=1"))
        .expect_faults(&[
            ("wait", "wrong_type"),
            ("type", "unknown_event"),
            ("limit", "out_of_range"),
            ("cursor", "invalid_cursor"),
            ("colour", "unknown_parameter"),
        ])
        .await;
    let foreign = acme.get(&format!("{EVENTS}?cursor={accounts}"));
    foreign.expect_faults(&[("cursor", "invalid_cursor")]).await;
}

async fn a_cursor_expires_with_what_it_has_yet_to_show(server: Server) {
    for number in 0..3 {
        server.account(json!({"imported_id": format!("crm-{number}")})).await;
    }
    server.app.clock().advance_days(60);
    let page = server.get(&format!("{EVENTS}?limit=1")).send().await.expect(200);
    let halfway = page["next_cursor"].as_str().expect("a cursor").to_owned();
    let (_, events) = follow(&server, EVENTS, None).await;
    let (_, accounts) = follow(&server, CHANGES, None).await;
    server.app.clock().advance_days(31);
    let expired = server.get(&format!("{EVENTS}?cursor={halfway}"));
    expired.expect_faults(&[("cursor", "cursor_expired")]).await;
    assert!(follow(&server, EVENTS, Some(events.clone())).await.0.is_empty(), "this one had seen everything");
    server.app.clock().advance_days(60);
    for (path, cursor) in [(EVENTS, events), (CHANGES, accounts)] {
        let joint = if path.contains('?') { '&' } else { '?' };
        let expired = server.get(&format!("{path}{joint}cursor={cursor}"));
        expired.expect_faults(&[("cursor", "cursor_expired")]).await;
    }
    assert_eq!(follow(&server, CHANGES, None).await.0.len(), 3);
}

async fn accounts_are_listed_in_the_order_of_their_changes(server: Server) {
    let first = server.account(json!({"imported_id": "crm-1"})).await;
    for number in 2..=5 {
        server.account(json!({"imported_id": format!("crm-{number}")})).await;
    }
    let (all, cursor) = follow(&server, CHANGES, None).await;
    assert_eq!(column(&all, "imported_id"), ["crm-1", "crm-2", "crm-3", "crm-4", "crm-5"]);
    let time = server.app.clock().now();
    server.app.clock().advance_days(1);
    server.patch(&path_of(&first)).json(&json!({"name": "Renamed"})).send().await.expect(200);
    server.resend(json!({"imported_id": "crm-4", "custom_fields": {"a": 1}})).await;
    server.resend(json!({"imported_id": "crm-2"})).await;
    server.accept(json!({"imported_id": "crm-3", "kind": "app_opened"})).await;
    server.accept(json!({"imported_id": "crm-5", "kind": "churned"})).await;
    let (changed, cursor) = follow(&server, CHANGES, Some(cursor)).await;
    assert_eq!(column(&changed, "imported_id"), ["crm-1", "crm-4", "crm-5"], "being seen is no change");
    assert_eq!(changed[0], server.shown("crm-1").await);
    let (since, _) = follow(&server, &format!("/api/accounts/?updated_after={time}"), None).await;
    assert_eq!(since, changed);
    assert!(follow(&server, CHANGES, Some(cursor)).await.0.is_empty());
}

async fn deleted_accounts_are_listed_on_request(server: Server) {
    let accounts = [
        server.account(json!({"imported_id": "crm-1"})).await,
        server.account(json!({"imported_id": "crm-2"})).await,
    ];
    let path = format!("{CHANGES}&deleted=true");
    let page = server.get(&path).send().await.expect(200);
    assert_eq!((page["items"].as_array().unwrap().len(), &page["deleted"]), (2, &json!([])));
    let cursor = page["next_cursor"].as_str().unwrap();
    server.delete(&path_of(&accounts[0])).send().await.expect(204);
    let page = server.get(&format!("{path}&cursor={cursor}")).send().await.expect(200);
    let deleted_at = server.app.clock().now().to_string();
    let tombstone = json!(
        {"id": accounts[0]["id"], "imported_id": "crm-1", "deleted": true, "deleted_at": deleted_at}
    );
    assert_eq!((&page["items"], &page["deleted"]), (&json!([]), &json!([tombstone])));
    let page = server.get(&format!("{CHANGES}&cursor={cursor}")).send().await.expect(200);
    assert_eq!((&page["items"], page.get("deleted")), (&json!([]), None));

    server.post(&format!("{}erase-payloads/", path_of(&accounts[0]))).send().await.expect(200);
    let page = server.get(&format!("{path}&cursor={cursor}")).send().await.expect(200);
    assert_eq!(page["deleted"][0]["imported_id"], Value::Null, "an erasure removes it");
}

async fn a_list_by_change_takes_no_other_filters(acme: Tenant) {
    let odd = acme.get(&format!("{CHANGES}&status=customer&q=x&updated_after=yesterday&deleted=maybe"));
    odd.expect_faults(&[
        ("status", "unknown_parameter"),
        ("q", "unknown_parameter"),
        ("updated_after", "malformed"),
        ("deleted", "wrong_type"),
    ])
    .await;
    let odd = acme.get("/api/accounts/?sort=name&updated_after=2026-01-01&deleted=true");
    odd.expect_faults(&[("updated_after", "only_with_sort"), ("deleted", "only_with_sort")]).await;
    let odd = acme.get("/api/accounts/?sort=colour").expect_refused(422, "invalid").await;
    assert!(odd.text().contains("updated_at"), "{}", odd.text());
}

async fn every_change_of_many_clients_reaches_a_reader(acme: Tenant) {
    const CLIENTS: usize = 120;
    let sender = &acme;
    let upserts = (0..CLIENTS).map(|number| async move {
        sender.account(json!({"imported_id": format!("crm-{number}")})).await;
        sender.resend(json!({"imported_id": format!("crm-{number}"), "status": "customer"})).await;
    });
    let reader = async {
        let (mut events, mut accounts, mut cursors) = (Vec::new(), Vec::new(), (None, None));
        let deadline = Instant::now() + PATIENCE;
        while events.len() < 2 * CLIENTS {
            let (read, all) = (events.len(), 2 * CLIENTS);
            assert!(Instant::now() < deadline, "{read} of {all} events were read within {PATIENCE:?}");
            let (read, next) = follow(&acme, EVENTS, cursors.0).await;
            events.extend(read);
            let (changed, after) = follow(&acme, CHANGES, cursors.1).await;
            accounts.extend(changed);
            cursors = (Some(next), Some(after));
        }
        accounts.extend(follow(&acme, CHANGES, cursors.1).await.0);
        (events, accounts)
    };
    let (_, (events, accounts)) = tokio::join!(all(upserts), reader);
    let mut ids = column(&events, "id");
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 2 * CLIENTS, "each event once");
    let customers = accounts.iter().filter(|account| account["status"] == json!("customer"));
    let mut customers: Vec<&str> = customers.map(|account| account["id"].as_str().unwrap()).collect();
    customers.sort_unstable();
    customers.dedup();
    assert_eq!(customers.len(), CLIENTS, "and every account as it ended");
}

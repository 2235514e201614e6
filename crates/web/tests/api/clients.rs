//! `clients/`: the clients to keep in touch with.

use serde_json::{Value, json};

use crate::harness::{Server, Tenant, column, members_of, on_both_engines, path_of};

on_both_engines! {
    overdue_clients_come_most_overdue_first_with_an_explanation,
    each_tab_has_its_clients_in_its_order,
    every_tab_is_counted_with_every_page,
    pages_cover_a_tab,
    a_cursor_is_only_valid_in_its_own_tab,
    errors_are_named,
}

/// An account: its imported_id, status, days since the last contact, cadence and snooze.
type Client = (&'static str, &'static str, i64, Option<i64>, Option<&'static str>);

const CLIENTS: [Client; 9] = [
    ("late", "customer", 50, None, None),
    ("later", "in_trial", 60, None, None),
    ("own", "customer", 20, Some(5), None),
    ("soon", "customer", 40, None, None),
    ("sooner", "customer", 41, None, None),
    ("calm", "customer", 1, None, None),
    ("asleep", "customer", 70, None, Some("2026-03-01")),
    ("dozing", "in_trial", 1, None, Some("2026-02-01")),
    ("negotiating", "in_negotiation", 90, None, None),
];

async fn fill(server: &Server) {
    for (imported_id, status, contacted, cadence, snooze) in CLIENTS {
        let account = server.account(json!({"imported_id": imported_id, "status": status})).await;
        let body = json!({"cadence_days": cadence, "snoozed_until": snooze});
        server.patch(&path_of(&account)).json(&body).send().await.expect(200);
        let at = server.app.clock().now().plus_days(-contacted).to_string();
        let body = json!({"kind": "call", "occurred_at": at});
        server.post(&format!("{}contacts/", path_of(&account))).json(&body).send().await.expect(201);
    }
}

/// The imported_ids of a tab.
async fn tab(server: &Server, query: &str) -> Vec<String> {
    let items = server.all_pages(&format!("/api/clients/{query}"), 2).await;
    let accounts: Vec<Value> = items.into_iter().map(|mut item| item["account"].take()).collect();
    column(&accounts, "imported_id")
}

async fn overdue_clients_come_most_overdue_first_with_an_explanation(server: Server) {
    fill(&server).await;
    let page = server.get("/api/clients/?tab=overdue").send().await.expect(200);
    assert_eq!(members_of(&page), ["counts", "items", "next_cursor"]);
    let items = page["items"].as_array().unwrap();
    assert_eq!(column(items, "days_overdue"), ["18", "15", "8"]);
    let now = server.app.clock().now();
    let first = &items[0];
    assert_eq!(members_of(first), ["account", "days_overdue", "due_at", "why"]);
    assert_eq!(first["due_at"], json!(now.plus_days(-18)));
    assert_eq!(first["account"], server.shown("later").await, "the same account object as everywhere");
    let lines = [
        "last contact: call by a colleague, 6 November 2025; every 42 days",
        "last contact: call by a colleague, 16 December 2025; every 5 days (own cadence)",
        "last contact: call by a colleague, 16 November 2025; every 42 days",
    ];
    assert_eq!(column(items, "why"), lines);
}

async fn each_tab_has_its_clients_in_its_order(server: Server) {
    fill(&server).await;
    assert_eq!(tab(&server, "").await, ["later", "own", "late"], "the default tab is overdue");
    assert_eq!(tab(&server, "?tab=due_soon").await, ["sooner", "soon"]);
    assert_eq!(tab(&server, "?tab=snoozed").await, ["dozing", "asleep"]);
    let all = ["asleep", "later", "own", "late", "sooner", "soon"];
    let tracked = tab(&server, "?tab=tracked").await;
    assert_eq!(tracked[..6], all, "by due date, regardless of snooze");
    assert_eq!(tracked.len(), 8, "accounts in negotiation are not tracked");
    server.app.set(json!({"tracked_stages": ["in_negotiation"], "cadence_days": 100}));
    assert_eq!(tab(&server, "?tab=tracked").await, ["negotiating"]);
    assert_eq!(tab(&server, "?tab=overdue").await, Vec::<String>::new());
    server.app.clock().advance_days(10);
    assert_eq!(tab(&server, "?tab=overdue").await, ["negotiating"]);
}

async fn every_tab_is_counted_with_every_page(server: Server) {
    fill(&server).await;
    let exactly = |count: i64| json!({"count": count, "capped": false});
    for query in ["", "?tab=snoozed", "?tab=tracked&limit=1"] {
        let page = server.get(&format!("/api/clients/{query}")).send().await.expect(200);
        let expected = json!({
            "overdue": exactly(3), "due_soon": exactly(2), "snoozed": exactly(2), "tracked": exactly(8),
        });
        assert_eq!(page["counts"], expected, "{query}");
    }
}

async fn pages_cover_a_tab(acme: Tenant) {
    // All of them are due at the same instant, so they are ordered by id.
    for number in 0..7 {
        acme.account(json!({"imported_id": format!("crm-{number}"), "status": "customer"})).await;
    }
    let whole = acme.all_pages("/api/clients/?tab=tracked", 200).await;
    assert_eq!(whole.len(), 7);
    for limit in [1, 2, 3, 7] {
        assert_eq!(acme.all_pages("/api/clients/?tab=tracked", limit).await, whole, "by {limit}");
    }
}

async fn a_cursor_is_only_valid_in_its_own_tab(server: Server) {
    fill(&server).await;
    let page = server.get("/api/clients/?tab=tracked&limit=1").send().await.expect(200);
    let cursor = page["next_cursor"].as_str().unwrap();
    server
        .get(&format!("/api/clients/?tab=snoozed&cursor={cursor}"))
        .expect_faults(&[("cursor", "invalid_cursor")])
        .await;
}

async fn errors_are_named(acme: Tenant) {
    acme.get("/api/clients/?tab=late&limit=none&sort=name")
        .expect_faults(&[("tab", "unknown_tab"), ("limit", "wrong_type"), ("sort", "unknown_parameter")])
        .await;
    acme.get("/api/clients/").without_credential().expect_refused(401, "unauthenticated").await;
}

//! The pages of keys, tokens and rejected events.

use rapport_domain::member::Role;
use serde_json::{Value, json};

use crate::harness::{Server, Tenant, column, on_both_engines};
use crate::person::{Person, Seen};

on_both_engines!(
    rotating_the_ingest_key_shows_the_new_one_once,
    the_inbound_key_is_created_on_request,
    rejects_are_shown_with_their_reason,
    rejects_are_limited_per_batch_and_in_total,
    a_batch_refused_as_a_whole_leaves_no_rejects,
    rejects_of_another_company_are_not_shown,
    rejects_expire,
    a_token_is_shown_once_and_works,
    a_refused_token_keeps_what_was_typed,
    a_token_is_revoked,
);

const PATH: &str = "/settings/ingest";
const REJECTS: &str = "/api/settings/ingest-key/rejects/";

fn shown(page: &Seen, id: &str) -> String {
    let text = page.0.text();
    let rest =
        text.split(&format!("<code id=\"{id}\">")).nth(1).unwrap_or_else(|| panic!("no {id}:\n{text}"));
    rest.split('<').next().unwrap().to_owned()
}

async fn rotating_the_ingest_key_shows_the_new_one_once(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let page = ana.see(PATH).await.expect(200).says("rik_…").says("aria-current=\"page\">Ingest");
    page.says("/api/pulse/ingest/").says("&#60;your ingest key&#62;");
    let form = ana.form();
    let made =
        ana.send_form("/settings/ingest/key", form, &[]).await.expect(200).says("You won’t see it again");
    let key = shown(&made, "ingest-key");
    assert!(
        key.starts_with("rik_") && made.0.text().matches(key.as_str()).count() == 2,
        "it is in the command too"
    );
    assert_eq!(shown(&ana.send_form("/settings/ingest/key", form, &[]).await, "ingest-key"), key);
    ana.see(PATH).await.says_not(&key);
    ana.see("/settings/ingest/key").await.leads_to(PATH);
    // The old key is refused and the new one is accepted.
    let events = json!([{"imported_id": "a", "kind": "app_opened"}]);
    acme.ingest(events.clone()).await.expect_problem(401, "unauthenticated");
    let call = acme.ingesting(events).without_credential().header("x-service-ingest-key", &key);
    assert_eq!(call.send().await.expect(200)["unmatched"].as_array().map(Vec::len), Some(1));
}

async fn the_inbound_key_is_created_on_request(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    ana.see(PATH).await.says("No key yet.").says("Create inbound key").says("/api/inbound/email/");
    let made = ana.send("/settings/ingest/inbound-key", &[]).await.expect(200);
    assert!(shown(&made, "inbound-key").starts_with("rin_"));
    ana.see(PATH).await.says("Rotate inbound key").says("rin_…");
    let audit = acme.all_pages("/api/audit/", 50).await;
    assert!(column(&audit, "action").contains(&"inbound_key.rotated".to_owned()), "{audit:?}");
}

async fn rejects_are_shown_with_their_reason(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    ana.see(PATH).await.says("No rejected events");
    let account = acme.account(json!({"imported_id": "a"})).await;
    acme.account(json!({"imported_id": "b"})).await;
    let reply = acme
        .ingest(json!([
            {"imported_id": "a", "kind": "app_opened"},
            {"imported_id": "<b>&\u{202e}", "kind": "feature_used"},
            {"account_id": "acc_x", "kind": "opened\u{0}"},
            {"imported_id": "b", "account_id": account["id"], "kind": "churned"},
            7,
        ]))
        .await
        .expect(200);
    assert_eq!(reply["rejected"].as_array().map(Vec::len), Some(4));
    assert_eq!(
        reply["rejected"][0].as_object().map(serde_json::Map::len),
        Some(4),
        "the response to the sender is the same as before"
    );
    let items = acme.all_pages(REJECTS, 3).await;
    let told = |one: &Value| {
        [&one["account"], &one["kind"], &one["code"], &one["field"], &one["index"]].map(Value::clone)
    };
    let told: Vec<_> = items.iter().map(told).collect();
    let expected = [
        [json!(null), json!(null), json!("wrong_type"), json!(""), json!(4)],
        [json!("b"), json!("churned"), json!("account_mismatch"), json!("account_id"), json!(3)],
        [json!("acc_x"), json!("opened"), json!("unknown_kind"), json!("kind"), json!(2)],
        [json!("<b>&\u{202e}"), json!("feature_used"), json!("required"), json!("feature"), json!(1)],
    ];
    assert_eq!(told, expected);
    let page = ana.see(PATH).await.says("Is required when kind is feature_used.").says("account_mismatch");
    page.says("&#60;b&#62;&#38;").says_not("<b>&");
    let member = acme.token_of(Role::Member);
    acme.get(REJECTS).token(&member).send().await.expect_problem(403, "role_required");
}

async fn rejects_are_limited_per_batch_and_in_total(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    for batch in 0..12 {
        let mut events = vec![json!({"imported_id": "a", "kind": "app_opened"})];
        events.extend(
            (0..30).map(|number| json!({"imported_id": format!("x{batch}-{number}"), "kind": "none"})),
        );
        acme.ingest(json!(events)).await.expect(200);
    }
    let items = acme.all_pages(REJECTS, 50).await;
    assert_eq!(items.len(), 200);
    let accounts = column(&items, "account");
    assert_eq!((accounts[0].as_str(), accounts[199].as_str()), ("x11-19", "x2-0"));
    let page = ana.see(PATH).await.expect(200).says("x11-19").says_not("x2-0<").0.text().to_owned();
    assert!(page.len() < 100_000, "{} bytes", page.len());
    let next = page.split("href=\"/settings/ingest?before=").nth(1).and_then(|rest| rest.split('"').next());
    ana.see(&format!("{PATH}?before={}", next.expect("older ones"))).await.expect(200).says_not("x11-19");
}

async fn a_batch_refused_as_a_whole_leaves_no_rejects(acme: Tenant) {
    let one = acme.account(json!({"imported_id": "a"})).await;
    acme.account(json!({"imported_id": "b"})).await;
    acme.ingest(json!([{"imported_id": "a", "kind": "none"}])).await.expect_problem(422, "all_rejected");
    // Valid on its own, and refused once its accounts are known.
    let mismatch = json!([{"imported_id": "b", "account_id": one["id"], "kind": "app_opened"}]);
    acme.ingest(mismatch).await.expect_problem(422, "all_rejected");
    assert_eq!(acme.all_pages(REJECTS, 50).await.len(), 0);
}

async fn rejects_of_another_company_are_not_shown(acme: Tenant) {
    let other = acme.neighbour();
    let events =
        json!([{"imported_id": "a", "kind": "app_opened"}, {"imported_id": "secret", "kind": "none"}]);
    other.ingest(events).await.expect(200);
    assert_eq!(acme.all_pages(REJECTS, 50).await.len(), 0);
    Person::of(&acme, Role::Admin).see(PATH).await.says_not("secret");
    assert_eq!(other.all_pages(REJECTS, 50).await.len(), 1);
}

async fn rejects_expire(server: Server) {
    let events = json!([{"imported_id": "a", "kind": "app_opened"}, {"imported_id": "b", "kind": "none"}]);
    server.ingest(events).await.expect(200);
    let prune = || {
        server
            .app
            .write_as(&rapport_app::Access::System(server.app.id()), rapport_app::retention::PruneHistory)
    };
    server.app.clock().advance_days(89);
    prune().expect("pruned");
    assert_eq!(server.all_pages(REJECTS, 50).await.len(), 1);
    server.app.clock().advance_days(2);
    prune().expect("pruned");
    assert_eq!(server.all_pages(REJECTS, 50).await.len(), 0);
}

async fn a_token_is_shown_once_and_works(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let form = ana.form();
    let fields = [("name", "CRM <sync>"), ("role", "member")];
    let made =
        ana.send_form("/settings/tokens", form, &fields).await.expect(200).says("You won’t see it again");
    let made = made.says("CRM &#60;sync&#62;").says("curl -H").says("/api/accounts/");
    let token = shown(&made, "token");
    assert!(token.starts_with("rap_"), "{token}");
    assert_eq!(shown(&ana.send_form("/settings/tokens", form, &fields).await, "token"), token);
    acme.get("/api/accounts/").token(&token).send().await.expect(200);
    acme.get("/api/tokens/").token(&token).send().await.expect_problem(403, "role_required");
    let page = ana.see("/settings/tokens").await.says_not(&token).says("CRM &#60;sync&#62;").says("rap_…");
    assert_eq!(page.0.text().matches("CRM &#60;sync&#62;</bdi></b>").count(), 1, "created once");
}

async fn a_refused_token_keeps_what_was_typed(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let before = acme.all_pages("/api/tokens/", 50).await.len();
    let page = ana.send("/settings/tokens", &[("name", ""), ("role", "admin")]).await.expect(422);
    page.says("Is required.").says("<option value=\"admin\" selected>").says_not("value=\"owner\"");
    let page = ana.send("/settings/tokens", &[("name", "x"), ("role", "owner")]).await.expect(403);
    page.says("have a higher role than its creator.");
    assert_eq!(acme.all_pages("/api/tokens/", 50).await.len(), before);
}

async fn a_token_is_revoked(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let token = shown(&ana.send("/settings/tokens", &[("name", "x"), ("role", "member")]).await, "token");
    let listed = acme.all_pages("/api/tokens/", 50).await;
    let id = listed.iter().find(|one| one["name"] == json!("x")).unwrap()["id"].as_str().unwrap();
    let path = format!("/settings/tokens/{id}/revoke");
    ana.see(&path).await.leads_to("/settings/tokens");
    acme.get("/api/accounts/").token(&token).send().await.expect(200);
    ana.send(&path, &[]).await.leads_to("/settings/tokens");
    acme.get("/api/accounts/").token(&token).send().await.expect_problem(401, "unauthenticated");
    ana.send(&path, &[]).await.expect(404);
    ana.send("/settings/tokens/x/revoke", &[]).await.expect(404);
}

//! The weekly digest over HTTP: preview it, send it on request, read it afterwards.

use rapport_app::Outside;
use rapport_app::digest::{Made, make_due};
use rapport_domain::member::Role;
use rapport_testkit::Engine;
use serde_json::{Value, json};

use crate::harness::{Server, Tenant, column, on_both_engines};

on_both_engines! {
    the_preview_names_overdue_clients,
    it_is_sent_on_request_to_everyone_or_to_one,
    without_mail_it_is_only_stored,
    digests_are_listed_latest_week_first,
    errors_are_named,
}

async fn with_mail(engine: Engine) -> Server {
    let outside = Outside { base_url: "https://crm.acme.test".to_owned(), mail_configured: true };
    Server::with_parts(engine, move |parts| parts.outside = outside.clone()).await
}

async fn the_preview_names_overdue_clients(engine: Engine) {
    let server = with_mail(engine).await;
    let account =
        server.account(json!({"imported_id": "a", "name": "<b>Nordlys</b>", "status": "customer"})).await;
    let nobody = server.get("/api/digest/preview/").send().await.expect(200);
    assert_eq!(nobody["overdue"], json!(0));
    assert!(nobody["text"].as_str().unwrap().contains("Nobody is overdue for contact."));
    server.app.clock().advance_days(50);
    let member = server.token_of(Role::Member);
    let preview = server.get("/api/digest/preview/").token(&member).send().await.expect(200);
    assert_eq!(preview["subject"], json!("acme: 1 client is overdue for contact"));
    let (text, html) = (preview["text"].as_str().unwrap(), preview["html"].as_str().unwrap());
    let link = format!("https://crm.acme.test/accounts/{}", account["id"].as_str().unwrap());
    assert!(text.contains("<b>Nordlys</b>: 8 days overdue") && text.contains(&link), "{text}");
    assert!(!html.contains("<b>") && html.contains("Nordlys") && html.contains(&link), "{html}");
}

async fn it_is_sent_on_request_to_everyone_or_to_one(engine: Engine) {
    let server = with_mail(engine).await;
    let ana = server.company.employ("ana@acme.test", "Ana", Role::Member).person.to_string();
    let send = |body: Value| server.post("/api/digest/send/").json(&body);
    assert_eq!(send(json!({"to": ana})).send().await.expect(202), json!({"mails": 1}));
    assert_eq!(send(json!({"to": "everyone"})).send().await.expect(202), json!({"mails": 2}));
    let plain = server.post("/api/digest/send/").send().await.expect(202);
    assert_eq!(plain, json!({"mails": 2}));
    server.patch(&format!("/api/members/{ana}/")).json(&json!({"active": false})).send().await;
    send(json!({"to": ana})).send().await.expect_problem(404, "not_found");
    let mails = server.all_pages("/api/mails/", 2).await;
    assert_eq!(mails.len(), 5);
    assert!(column(&mails, "kind").iter().all(|kind| kind == "digest"));
}

async fn without_mail_it_is_only_stored(server: Server) {
    server.post("/api/digest/send/").send().await.expect_problem(409, "mail_not_configured");
    server.app.clock().advance_days(7);
    make_due(server.app.app(), &mut Made::new()).await.unwrap();
    let member = server.token_of(Role::Member);
    let list = server.get("/api/digests/").token(&member).send().await.expect(200);
    let digest = &list["items"][0];
    assert_eq!((&digest["week"], &digest["overdue"]), (&json!("2026-W03"), &json!(0)));
    assert_eq!(digest["mails"], json!({"waiting": 0, "sent": 0, "failed": 0}));
    let whole = server.get("/api/digests/2026-W03/").token(&member).send().await.expect(200);
    assert!(whole["text"].as_str().unwrap().contains("Nobody is overdue"));
    assert!(whole["html"].as_str().unwrap().starts_with("<!DOCTYPE html>"));
    for week in ["2026-W04", "2026-W99", "x"] {
        server.get(&format!("/api/digests/{week}/")).send().await.expect_problem(404, "not_found");
    }
}

async fn digests_are_listed_latest_week_first(engine: Engine) {
    let server = with_mail(engine).await;
    for _ in 0..5 {
        server.app.clock().advance_days(7);
        make_due(server.app.app(), &mut Made::new()).await.unwrap();
    }
    let items = server.all_pages("/api/digests/", 2).await;
    assert_eq!(column(&items, "week"), ["2026-W07", "2026-W06", "2026-W05", "2026-W04", "2026-W03"]);
    assert_eq!(items[0]["mails"], json!({"waiting": 1, "sent": 0, "failed": 0}));
    server.get("/api/digests/?cursor=x").send().await.expect_problem(422, "invalid");
}

async fn errors_are_named(acme: Tenant) {
    acme.post("/api/digest/send/")
        .json(&json!({"to": "me", "more": 1}))
        .expect_faults(&[("/to", "unknown_audience"), ("/more", "unknown_member")])
        .await;
}

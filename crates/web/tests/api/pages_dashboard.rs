//! The dashboard: what needs attention, the company's figures, and the first steps.

use rapport_app::{Access, Command, Context, Error, Needs};
use rapport_domain::id::{MailId, WebhookId};
use rapport_domain::mail::Kind;
use rapport_domain::member::{Email, Role};
use rapport_store::mail::{self, Content, NewMail, Settled};
use rapport_store::subscription::Selects;
use rapport_store::{Tx, webhook};
use serde_json::json;

use crate::harness::{Server, Tenant, on_both_engines, path_of};
use crate::person::Person;

on_both_engines!(
    a_company_without_accounts_sees_what_to_do_next,
    the_first_steps_follow_what_happens_and_disappear,
    overdue_clients_are_counted_and_the_most_overdue_named,
    stages_have_counts_and_values_that_are_summed_only_with_a_rate,
    this_week_counts_and_links_new_accounts_and_moves,
    activity_of_all_accounts_is_charted_over_ninety_days,
    admins_see_failing_webhooks_and_mails,
    names_are_escaped,
);

async fn a_company_without_accounts_sees_what_to_do_next(acme: Tenant) {
    let page = Person::of(&acme, Role::Admin).see("/").await.expect(200);
    let curl = "curl -X POST http://127.0.0.1:8080/api/accounts/upsert-by-imported-id/";
    let project = format!("{{&#34;project&#34;: &#34;{}&#34;", acme.slug());
    page.says(curl)
        .says("api/pulse/ingest/")
        .says("href=\"/imports\"")
        .says("href=\"/settings/ingest\"")
        .says(&project.replace("{&#34;project&#34;: ", "").replace("&#34;", ""));
    let member = Person::of(&acme, Role::Member).see("/").await.expect(200);
    member.says("Send accounts by API").says_not("/imports").says_not("/settings");
    acme.account(json!({"imported_id": "crm-1"})).await;
    Person::of(&acme, Role::Member).see("/").await.says_not("curl").says("Pipeline by stage");
}

async fn the_first_steps_follow_what_happens_and_disappear(acme: Tenant) {
    const STEPS: &str = "Three steps to get started";
    let ana = Person::of(&acme, Role::Admin);
    // The tenant has an owner already, so Ana isn't alone.
    let page = ana.see("/").await.expect(200).says(STEPS).says("1 of 3 done");
    // Nothing to hide as long as there is nothing else to see.
    page.says("href=\"/accounts/new\"").says("href=\"/settings/members\"").says_not("Hide steps");
    acme.account(json!({"imported_id": "crm-1", "status": "in_trial"})).await;
    ana.see("/").await.says(STEPS).says("2 of 3 done").says("Hide steps").says("Pipeline by stage");
    acme.accept(json!({"imported_id": "crm-1", "kind": "app_opened"})).await;
    ana.see("/").await.says_not(STEPS).says("Pipeline by stage");
}

async fn overdue_clients_are_counted_and_the_most_overdue_named(server: Server) {
    let ana = Person::of(&server, Role::Member);
    let mut accounts = Vec::new();
    for n in 1..=6 {
        let body =
            json!({"imported_id": format!("crm-{n}"), "name": format!("Client {n}"), "status": "customer"});
        accounts.push(server.account(body).await);
        server.app.clock().advance_days(1);
    }
    ana.see("/").await.says("Nobody is overdue for contact.");
    server.app.clock().advance_days(42);
    let again = Person::of(&server, Role::Member);
    let page = again.see("/").await.expect(200);
    page.says("<a class=\"big\" href=\"/clients\">6</a>")
        .says("Client 1")
        .says("6 days")
        .says("Client 5")
        .says_not("Client 6");
    let contact = json!({"kind": "call"});
    server.post(&format!("{}contacts/", path_of(&accounts[0]))).json(&contact).send().await.expect(201);
    again.see("/").await.says("href=\"/clients\">5</a>").says_not("Client 1").says("Client 6");
}

async fn stages_have_counts_and_values_that_are_summed_only_with_a_rate(acme: Tenant) {
    for (n, amount, currency) in [(1, "1200.50", "EUR"), (2, "300", "EUR"), (3, "7000", "JPY")] {
        let value = json!({"imported_id": format!("crm-{n}"), "status": "customer",
                           "captured_value": amount, "captured_value_currency": currency});
        acme.account(value).await;
    }
    acme.account(json!({"imported_id": "crm-4", "status": "lost"})).await;
    let page = Person::of(&acme, Role::Member).see("/").await.expect(200);
    page.says("€1,500.50")
        .says("¥7,000")
        .says("aria-label=\"3 accounts, Customer\">3</a>")
        .says("href=\"/accounts?status=customer\"")
        .says("role=\"img\" aria-label=\"Lost: 1\"")
        .says("<span class=\"others\">+ ¥7,000</span>")
        .says_not("8,500")
        .says_not("as of");
    acme.patch("/api/settings/").json(&json!({"default_currency": "EUR"})).send().await.expect(200);
    let rate = json!({"currency": "JPY", "valid_from": "2026-01-01", "rate": "0.0061"});
    acme.post("/api/exchange-rates/").json(&rate).send().await.expect(201);
    let page = Person::of(&acme, Role::Member).see("/").await.expect(200);
    page.says("aria-describedby=\"worth-customer\">€1,543.20</button>").says("¥7,000 = €42.70");
}

async fn this_week_counts_and_links_new_accounts_and_moves(server: Server) {
    server.account(json!({"imported_id": "old", "name": "Old one"})).await;
    server.app.clock().advance_days(8);
    let moved = server.account(json!({"imported_id": "new", "name": "New one"})).await;
    server.account(json!({"imported_id": "other"})).await;
    let change = json!({"status": "contacted", "note": "Met at the fair"});
    server.post(&format!("{}status/", path_of(&moved))).json(&change).send().await.expect(200);
    server.accept(json!({"imported_id": "old", "kind": "trial_started"})).await;
    let ana = Person::of(&server, Role::Member);
    let page = ana.see("/").await.expect(200);
    page.says("aria-label=\"New accounts this week: 2\"").says("aria-label=\"Moves this week: 2\"");
    let moves = ana.see("/pipeline/moves").await.expect(200);
    moves.says("New one").says("Met at the fair").says("Old one").says("Product activity").says_not("Older");
    server.app.clock().advance_days(8);
    let page = Person::of(&server, Role::Member).see("/").await;
    page.says("aria-label=\"New accounts this week: 0\"").says("aria-label=\"Moves this week: 0\"");
}

async fn activity_of_all_accounts_is_charted_over_ninety_days(server: Server) {
    for n in 1..=2 {
        server.account(json!({"imported_id": format!("crm-{n}")})).await;
    }
    let ana = Person::of(&server, Role::Member);
    ana.see("/").await.says("No activity yet.");
    let at = |days: i64| server.app.clock().now().plus_days(-days).to_string();
    server
        .ingest(json!([
            {"imported_id": "crm-1", "kind": "app_opened"},
            {"imported_id": "crm-2", "kind": "feature_used", "feature": "export", "event_id": "once"},
            {"imported_id": "crm-2", "kind": "app_opened", "occurred_at": at(89)},
            {"imported_id": "crm-2", "kind": "app_opened", "occurred_at": at(90)},
            {"imported_id": "nobody", "kind": "app_opened"},
        ]))
        .await
        .expect(200);
    // Sending it again has no effect.
    server
        .ingest(json!([{"imported_id": "crm-2", "kind": "feature_used", "feature": "export", "event_id": "once"}]))
        .await
        .expect(200);
    ana.see("/").await.says("Activity per day: 3 events in 90 days, 2 today");
}

/// Makes a webhook fail this many times.
struct Fail {
    webhook: WebhookId,
    times: usize,
}

impl Command for Fail {
    type Reply = ();
    const NEEDS: Needs = Needs::Server;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let mut found = webhook::lock(tx, &[self.webhook])?;
        for _ in 0..self.times {
            found[0].record(false, cx.now);
        }
        Ok(webhook::update(tx, &[&found[0]], Selects::Anew(cx.now))?)
    }
}

/// A mail that has failed.
struct LoseMail;

impl Command for LoseMail {
    type Reply = ();
    const NEEDS: Needs = Needs::Server;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let id: MailId = cx.id();
        let content =
            Content { id, subject: String::new(), plain: String::new(), html: String::new(), secret: None };
        mail::insert_content(tx, &content)?;
        let recipient = Email::parse("ana@acme.test").expect("an address");
        let new = NewMail {
            id,
            kind: Kind::Digest,
            person: None,
            recipient,
            content: id,
            not_after: cx.now,
            created_at: cx.now,
        };
        mail::insert(tx, &[new])?;
        mail::settle(tx, id, 0, Settled::Failed { error: "refused" }, cx.now)?;
        Ok(())
    }
}

async fn admins_see_failing_webhooks_and_mails(acme: Tenant) {
    acme.account(json!({"imported_id": "crm-1"})).await;
    let ana = Person::of(&acme, Role::Admin);
    ana.see("/").await.says("No webhooks yet.").says("Mail isn’t set up");
    let system = Access::System(acme.company.id());
    for (name, times) in [("The dead one", 20), ("The shaky one", 3), ("The fine one", 0)] {
        let body = json!({"url": "https://example.com/", "events": ["account.created"], "description": name});
        let created = acme.post("/api/webhooks/").json(&body).send().await.expect(201);
        let webhook = created["id"].as_str().expect("an id").parse().expect("an id");
        acme.company.write_as(&system, Fail { webhook, times }).expect("failed");
    }
    acme.company.write_as(&system, LoseMail).expect("lost");
    ana.see("/")
        .await
        .says("The dead one")
        .says("Auto-disabled after repeated failures")
        .says("The shaky one")
        .says("3 of 20 failures in a row")
        .says_not("The fine one")
        .says("Nothing was delivered in the last 7 days.")
        .says("1 mail</a> failed in the last 7 days");
    let member = Person::of(&acme, Role::Member).see("/").await.expect(200);
    member.says("This week").says_not("The dead one").says_not("/webhooks").says_not("/settings/mail");
}

async fn names_are_escaped(server: Server) {
    let name = "<script>alert(1)</script> & \u{202e}sons";
    server.account(json!({"imported_id": "crm-1", "name": name, "status": "customer"})).await;
    server.app.clock().advance_days(50);
    let ana = Person::of(&server, Role::Admin);
    let page = ana.see("/").await.expect(200);
    page.says("&#60;script&#62;alert(1)&#60;/script&#62; &#38; \u{202e}sons").says_not("<script>alert");
    let board = ana.see("/pipeline").await.expect(200);
    board.says("<bdi>&#60;script&#62;alert(1)").says_not("<script>alert");
}

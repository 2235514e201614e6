//! The campaign pages: a form with a live count, members and an export.

use rapport_domain::member::Role;
use serde_json::{Value, json};

use crate::harness::{Tenant, on_both_engines};
use crate::person::Person;

on_both_engines!(
    a_campaign_is_created_shown_and_exported,
    the_form_counts_without_saving,
    a_refused_form_keeps_its_values,
    an_edit_keeps_what_the_api_set,
    a_campaign_is_deleted,
    members_come_in_pages,
    campaigns_of_other_companies_are_not_found,
);

async fn fill(acme: &Tenant) {
    for (n, status) in ["prospect", "lost", "customer", "in_trial", "do_not_contact"].iter().enumerate() {
        let fields = json!({"plan": if n % 2 == 0 { "Pro" } else { "Free" }});
        let body = json!({"imported_id": format!("crm-{n}"), "name": format!("Account {status}"), "status": status,
                          "custom_fields": fields});
        acme.account(body).await;
    }
}

async fn campaigns(acme: &Tenant) -> Vec<Value> {
    acme.all_pages("/api/campaigns/", 50).await
}

async fn a_campaign_is_created_shown_and_exported(acme: Tenant) {
    fill(&acme).await;
    let ana = Person::of(&acme, Role::Admin);
    ana.see("/campaigns").await.expect(200).says("No campaigns yet").says("href=\"/campaigns/new\"");
    let fields = [
        ("name", "Spring <fair>"),
        ("goal", "acquisition"),
        ("include_trials", "on"),
        ("status", "prospect"),
        ("status", "in_trial"),
        ("status", "customer"),
        ("seen", "false"),
        ("field", "plan"),
        ("test", "is"),
        ("value", "pro"),
        ("field", "plan"),
        ("test", "is"),
        ("value", "free"),
        ("field", ""),
        ("test", "is"),
        ("value", ""),
    ];
    let made = ana.send("/campaigns/new", &fields).await;
    let path = made.leads_to("/campaigns/cmp_");
    let found = campaigns(&acme).await;
    assert_eq!(found.len(), 1);
    let filters = json!({"status": ["prospect", "in_trial", "customer"], "seen": false, "fields": {"plan": ["pro", "free"]}});
    assert_eq!((&found[0]["filters"], &found[0]["include_trials"]), (&filters, &json!(true)));
    let page = ana.see(&path).await.expect(200);
    page.says("Spring &#60;fair&#62;")
        .says("Account prospect")
        .says("Account in_trial")
        .says_not("Account customer")
        .says("accounts included")
        .says("plan is pro or free")
        .says("Last seen</dt><dd><bdi>never");
    ana.see("/campaigns")
        .await
        .says("Spring &#60;fair&#62;")
        .says("includes trials")
        .says("last seen: never");
    let export = ana.see(&format!("{path}/export")).await.expect(200).0;
    assert!(export.header("content-type").is_some_and(|kind| kind.starts_with("text/csv")));
    assert!(export.header("content-disposition").is_some_and(|name| name.contains("campaign-spring-fair-")));
    let rows: Vec<&str> = export.text().lines().collect();
    assert_eq!(rows.len(), 3, "{rows:?}");
}

async fn the_form_counts_without_saving(acme: Tenant) {
    fill(&acme).await;
    let ana = Person::of(&acme, Role::Member);
    // Of 5 accounts, the goal excludes the customer, the trial and the one in Do not contact.
    let page = ana.see("/campaigns/new").await.expect(200);
    page.says(">2</a></span> <span class=\"muted\">accounts included")
        .says("Do not contact")
        .says("formmethod=\"get\"");
    let typed =
        "/campaigns/new?name=Half+typed&goal=acquisition&include_trials=on&field=plan&test=is&value=free";
    let page = ana.see(typed).await.expect(200);
    page.says("value=\"Half typed\"")
        .says(">2</a></span> <span class=\"muted\">accounts included")
        .says("value=\"free\"")
        .says("name=\"include_trials\" value=\"on\" checked");
    let page = ana.see("/campaigns/new?goal=expansion&status=customer").await.expect(200);
    page.says(">1</a></span> <span class=\"muted\">account included");
    ana.see("/campaigns/new?goal=expansion&seen_after=then")
        .await
        .expect(422)
        .says("Fix the highlighted fields");
    assert!(campaigns(&acme).await.is_empty());
}

async fn a_refused_form_keeps_its_values(acme: Tenant) {
    fill(&acme).await;
    let ana = Person::of(&acme, Role::Member);
    let fields =
        [("name", ""), ("goal", "expansion"), ("q", "nord"), ("status", "lost"), ("contacted_after", "soon")];
    let refused = ana.send("/campaigns/new", &fields).await.expect(422);
    refused
        .says("id=\"name-note\">Is required.")
        .says("value=\"nord\"")
        .says("value=\"lost\" checked")
        .says("value=\"expansion\" checked")
        .says("value=\"soon\" aria-invalid=\"true\"");
    assert!(campaigns(&acme).await.is_empty());
    let good = [("name", "Spring"), ("goal", "expansion")];
    ana.send("/campaigns/new", &good).await.leads_to("/campaigns/cmp_");
    let taken = ana.send("/campaigns/new", &[("name", "spring"), ("goal", "announcement")]).await.expect(422);
    taken.says("id=\"name-note\">Another campaign already has this name.");
    let clash = [
        ("name", "Clash"),
        ("goal", "expansion"),
        ("field", "plan"),
        ("test", "is"),
        ("value", "a"),
        ("field", "plan"),
        ("test", "exists"),
        ("value", ""),
    ];
    ana.send("/campaigns/new", &clash).await.expect(422).says("Use plan in one row");
    assert_eq!(campaigns(&acme).await.len(), 1);
}

async fn an_edit_keeps_what_the_api_set(acme: Tenant) {
    fill(&acme).await;
    let ana = Person::of(&acme, Role::Member);
    let channel = acme.company.channel("Partners", &[]);
    let filters = json!({"channel": [channel.id.to_string()], "imported_id": "crm-1", "campaign_hold": false,
                         "seen_after": "2026-01-01T08:30:00Z", "fields": {"vat/id": {"exists": true}}});
    let body = json!({"name": "From the API", "goal": "announcement", "filters": filters});
    let made = acme.post("/api/campaigns/").json(&body).send().await.expect(201);
    let path = format!("/campaigns/{}", made["id"].as_str().expect("an id"));
    let page = ana.see(&format!("{path}/edit")).await.expect(200);
    page.says("value=\"From the API\"")
        .says("Partners")
        .says("value=\"vat/id\"")
        .says("2026-01-01T08:30:00Z");
    let channel = channel.id.to_string();
    let fields = [
        ("name", "Renamed"),
        ("goal", "announcement"),
        ("channel", channel.as_str()),
        ("imported_id", "crm-1"),
        ("campaign_hold", "false"),
        ("seen_after", "2026-01-01T08:30:00Z"),
        ("field", "vat/id"),
        ("test", "exists"),
        ("value", ""),
    ];
    ana.send(&format!("{path}/edit"), &fields).await.leads_to(&path);
    let found = campaigns(&acme).await;
    assert_eq!((&found[0]["name"], &found[0]["filters"]), (&json!("Renamed"), &filters));
}

async fn a_campaign_is_deleted(acme: Tenant) {
    let ana = Person::of(&acme, Role::Member);
    let made = ana.send("/campaigns/new", &[("name", "Spring"), ("goal", "expansion")]).await;
    let path = made.leads_to("/campaigns/cmp_");
    ana.see(&path).await.expect(200).says("No members").says("Delete campaign");
    ana.send(&format!("{path}/delete"), &[]).await.leads_to("/campaigns");
    assert!(campaigns(&acme).await.is_empty());
    ana.see(&path).await.expect(404);
}

async fn members_come_in_pages(acme: Tenant) {
    for n in 0..52 {
        acme.account(json!({"imported_id": format!("crm-{n}"), "name": format!("Member {n:02}")})).await;
    }
    let ana = Person::of(&acme, Role::Member);
    let made = ana.send("/campaigns/new", &[("name", "Everybody"), ("goal", "announcement")]).await;
    let path = made.leads_to("/campaigns/cmp_");
    let page = ana.see(&path).await.expect(200).says("Member 51").says("Member 02").says_not("Member 01");
    let text = page.0.text();
    assert!(text.len() < 100_000, "{} bytes", text.len());
    let next =
        text.split("href=\"").find(|rest| rest.starts_with(&format!("{path}?cursor="))).expect("a next page");
    let next = next.split('"').next().expect("an address");
    ana.see(next)
        .await
        .expect(200)
        .says("Member 01")
        .says("Member 00")
        .says_not("Member 02")
        .says(">First</a>");
}

async fn campaigns_of_other_companies_are_not_found(acme: Tenant) {
    let made = Person::of(&acme, Role::Member);
    let path =
        made.send("/campaigns/new", &[("name", "Ours"), ("goal", "expansion")]).await.leads_to("/campaigns/");
    let globex = acme.neighbour();
    let eve = Person::of(&globex, Role::Owner);
    for path in [path.clone(), format!("{path}/edit"), format!("{path}/export"), "/campaigns/x".to_owned()] {
        eve.see(&path).await.expect(404);
    }
    eve.send(&format!("{path}/delete"), &[]).await.expect(404);
    eve.send(&format!("{path}/edit"), &[("name", "Theirs"), ("goal", "expansion")]).await.expect(404);
    assert_eq!(campaigns(&acme).await[0]["name"], json!("Ours"));
}

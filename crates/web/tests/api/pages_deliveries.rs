//! The delivery pages: the log with its filters, a delivery with its attempts, and redeliveries.

use rapport_app::redelivery::step;
use rapport_app::signature::SigningKey;
use rapport_domain::delivery::{Failure, Outcome};
use rapport_domain::id::RedeliveryId;
use rapport_domain::member::Role;
use serde_json::json;

use crate::harness::{Server, Tenant, on_both_engines};
use crate::person::Person;
use crate::webhooks::{answered, claim, create, list, record, text};

on_both_engines!(
    the_empty_log_says_what_to_do,
    the_log_is_filtered_by_its_address,
    the_log_is_paged_and_stays_small,
    a_delivery_shows_payload_signature_and_attempts,
    a_delivery_is_redelivered_by_hand,
    an_erased_payload_is_marked,
    a_bulk_redelivery_is_counted_confirmed_followed_and_cancelled,
    members_see_no_deliveries,
    deliveries_of_another_company_are_not_found,
    attempts_come_before_the_payload_with_the_real_headers,
    the_log_is_filtered_by_the_name_of_an_account,
);

async fn the_empty_log_says_what_to_do(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    ana.see("/deliveries").await.expect(200).says("No deliveries yet").says("href=\"/webhooks\"");
    ana.see("/deliveries?state=failed").await.expect(200).says("No deliveries match");
    ana.see("/redeliveries").await.expect(200).says("No bulk redeliveries yet");
    ana.see("/redeliveries/new").await.expect(200).says("Nothing to redeliver");
}

async fn the_log_is_filtered_by_its_address(acme: Server) {
    let ana = Person::of(&acme, Role::Admin);
    let (one, other) = (create(&acme).await, create(&acme).await);
    let account = acme.account(json!({"imported_id": "crm-1", "name": "Nordlys"})).await;
    acme.app.clock().advance_seconds(60);
    let later = acme.company.app().now();
    acme.upsert(json!({"imported_id": "crm-1", "status": "customer"})).await.expect(200);
    acme.account(json!({"imported_id": "crm-2", "name": "Fjell"})).await;
    let all = list(&acme, "").await;
    record(&acme, &all[0], answered(404), None).await;
    record(&acme, &all[1], answered(200), None).await;
    let zone = acme.get("/api/settings/").send().await.expect(200)["time_zone"].clone();
    let zone = jiff::tz::TimeZone::get(zone.as_str().unwrap_or("UTC")).expect("a zone");
    let local = jiff::Zoned::new(later.to_timestamp(), zone).strftime("%Y-%m-%dT%H:%M:%S").to_string();
    let table = [
        (String::new(), 6),
        ("state=failed".to_owned(), 1),
        ("state=succeeded&type=".to_owned(), 1),
        ("state=pending".to_owned(), 4),
        ("type=account.status_changed".to_owned(), 2),
        (format!("account={}", text(&account, "id")), 4),
        ("account=crm-1".to_owned(), 4),
        (format!("webhook={}", text(&one, "id")), 3),
        (format!("webhook={}&state=pending", text(&other, "id")), 2),
        (format!("since={later}"), 4),
        (format!("since={local}"), 4),
        (format!("until={local}"), 2),
    ];
    for (query, count) in table {
        let page = ana.see(&format!("/deliveries?{query}")).await.expect(200);
        let rows = page.0.text().matches("<tr data-href=\"/deliveries/").count();
        assert_eq!(rows, count, "{query}");
    }
    let page = ana.see("/deliveries?state=failed&account=crm-2").await.expect(200);
    let page = page.says("value=\"failed\" selected").says("value=\"crm-2\"").says("Fjell").says("404");
    page.says_not("Nordlys").says("data-live").says("/redeliveries/new?state=failed&#38;account=acc_");
    let page = ana.see("/deliveries?state=open&since=soon&account=nobody").await.expect(422);
    let page = page.says("State must").says("Since must").says("Account must").says("value=\"nobody\"");
    // Without a filter it would redeliver everything.
    page.says_not("Bulk redeliver<");
}

async fn the_log_is_paged_and_stays_small(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    create(&acme).await;
    for number in 0..60 {
        let name = format!("An account with quite a long name, number {number}");
        acme.account(json!({"imported_id": format!("crm-{number}"), "name": name})).await;
    }
    let first = ana.see("/deliveries?type=account.created").await.expect(200);
    assert!(first.0.text().len() < 100_000, "{}", first.0.text().len());
    assert_eq!(first.0.text().matches("<tr data-href").count(), 50);
    let next = first.0.text().split("rel=\"next\" href=\"").nth(1).and_then(|rest| rest.split('"').next());
    let next = next.expect("a next page").replace("&#38;", "&");
    assert!(next.starts_with("/deliveries?type=account.created&before=dlv_"), "{next}");
    let second = ana.see(&next).await.expect(200).says_not("rel=\"next\"").says_not("data-live");
    assert_eq!(second.0.text().matches("<tr data-href").count(), 10);
    second.says("number 0<").says("/deliveries?type=account.created\"");
}

async fn a_delivery_shows_payload_signature_and_attempts(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let webhook = create(&acme).await;
    acme.account(json!({"imported_id": "crm-1", "name": "<i>Nordlys</i>", "captured_value": 12.50})).await;
    let listed = list(&acme, "").await.remove(0);
    let own = format!("/deliveries/{}", text(&listed, "id"));
    let page = ana.see(&own).await.expect(200).says("No attempts have finished yet").says("Pending");
    page.says("Next attempt");
    record(&acme, &listed, Outcome::Failed(Failure::Timeout), None).await;
    let body = ana.see(&format!("{own}/payload.json")).await.expect(200).0.text().to_owned();
    let key = SigningKey::new(&text(&webhook, "secret"));
    let page = ana.see(&own).await.expect(200).says(&key.sign(body.as_bytes()).to_string());
    let (event, timestamp) = (text(&listed, "event_id"), acme.company.app().now().unix_seconds());
    let standard = key.sign_standard(event.parse().unwrap(), timestamp, body.as_bytes());
    let page = page.says("<dt>webhook-id</dt>").says(&event);
    let page = page.says(&format!("<dt>webhook-timestamp</dt><dd class=\"mono\">{timestamp}</dd>"));
    let page = page.says("<dt>webhook-signature</dt>").says(&standard.to_string());
    let page = page.says(&format!("{} bytes", body.len())).says("&#34;captured_value&#34;: &#34;12.50&#34;");
    let page = page.says("&#60;i&#62;Nordlys&#60;/i&#62;").says_not("<i>Nordlys");
    let page = page.says("<b>#1</b>").says("timed out").says("automatic").says("192.0.2.1:443");
    let page = page.says("DNS 0.2 ms").says("Connect 1.0 ms").says("total 13 ms").says("class=\"phases\"");
    page.says("so \u{fffd} so").says("Response, truncated").says_not(&text(&webhook, "secret"));
    ana.see("/deliveries/dlv_nonsense").await.expect(404);
}

async fn attempts_come_before_the_payload_with_the_real_headers(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let webhook = create(&acme).await;
    let headers = json!([{"name": "X-Environment", "value": "test", "secret": false},
                         {"name": "Authorization", "value": "Bearer very-secret-value"}]);
    let path = format!("/api/webhooks/{}/", text(&webhook, "id"));
    acme.patch(&path).json(&json!({ "headers": headers })).send().await.expect(200);
    acme.account(json!({"imported_id": "crm-1"})).await;
    let listed = list(&acme, "").await.remove(0);
    let own = format!("/deliveries/{}", text(&listed, "id"));
    let page = ana.see(&own).await.expect(200).says("<dt>X-Service-Attempt</dt><dd class=\"mono\">1</dd>");
    page.says("An attempt adds webhook-timestamp and webhook-signature when it");
    record(&acme, &listed, answered(500), None).await;
    let page = ana.see(&own).await.expect(200).says("of attempt #1");
    let page = page.says("<dt>X-Environment</dt><dd class=\"mono\">test</dd>");
    let page = page.says("<dt>Authorization</dt><dd class=\"mono\">****</dd>").says_not("very-secret-value");
    let html = page.0.text();
    let place = |id: &str| html.find(id).unwrap_or_else(|| panic!("{id} is missing"));
    assert!(place("id=\"attempts\"") < place("id=\"payload\""));
}

async fn the_log_is_filtered_by_the_name_of_an_account(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    create(&acme).await;
    for (n, name) in [(1, "Nordlys Bank"), (2, "Fjell"), (3, "Nordlys Invest")] {
        acme.account(json!({"imported_id": format!("crm-{n}"), "name": name})).await;
    }
    let page =
        ana.see("/deliveries?account=fjell").await.expect(200).says("Deliveries for the account <bdi>Fjell");
    page.says_not("Nordlys").says("/redeliveries/new?account=acc_").says("value=\"fjell\"");
    // Several accounts have that name.
    let page = ana.see("/deliveries?state=pending&account=Nordlys").await.expect(200).says("Which account?");
    let page = page.says("<bdi>Nordlys Bank</bdi>").says("<bdi>Nordlys Invest</bdi>").says_not("Fjell");
    let page = page.says_not("Bulk redeliver<").says("/deliveries?account=acc_");
    let start = page.0.text().find("/deliveries?account=acc_").expect("a link");
    let link = page.0.text()[start..].split('"').next().expect("its end").replace("&#38;", "&");
    assert!(link.ends_with("&state=pending"), "{link}");
    ana.see(&link).await.expect(200).says("Deliveries for the account <bdi>Nordlys");
    let page = ana.see("/deliveries?account=Nobody").await.expect(422);
    page.says("Account must be the name or the id of an account").says_not("Which account?");
}

async fn a_delivery_is_redelivered_by_hand(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    create(&acme).await;
    acme.account(json!({"imported_id": "crm-1"})).await;
    let listed = list(&acme, "").await.remove(0);
    record(&acme, &listed, answered(410), None).await;
    let own = format!("/deliveries/{}", text(&listed, "id"));
    ana.see("/deliveries").await.expect(200).says(&format!("action=\"{own}/redeliver\""));
    let form = ana.form();
    for _ in 0..2 {
        ana.send_form(&format!("{own}/redeliver"), form, &[]).await.leads_to(&own);
    }
    let asked = claim(&acme).await;
    assert_eq!(asked.len(), 1, "a second click requests nothing more");
    record(&acme, &listed, answered(200), Some(asked[0])).await;
    ana.see(&own).await.expect(200).says("<b>#2</b>").says("manual").says("Succeeded");
}

async fn an_erased_payload_is_marked(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    create(&acme).await;
    let account = acme.account(json!({"imported_id": "crm-1"})).await;
    let own = format!("/deliveries/{}", text(&list(&acme, "").await[0], "id"));
    let erase = format!("/api/accounts/{}/erase-payloads/", text(&account, "id"));
    acme.post(&erase).send().await.expect(200);
    let page =
        ana.see(&own).await.expect(200).says("the payload was erased").says("This payload was erased.");
    page.says_not("Redeliver</button>");
    ana.see(&format!("{own}/payload.json")).await.expect(404);
    let refused = ana.send(&format!("{own}/redeliver"), &[]).await.expect(422);
    refused.says("role=\"alert\"").says("The payload of this delivery was erased.");
}

async fn a_bulk_redelivery_is_counted_confirmed_followed_and_cancelled(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    create(&acme).await;
    for number in 0..3 {
        acme.account(json!({"imported_id": format!("crm-{number}")})).await;
    }
    for delivery in list(&acme, "").await {
        record(&acme, &delivery, answered(410), None).await;
    }
    let page = ana.see("/redeliveries/new?state=failed").await.expect(200).says("Redeliver 3 deliveries");
    page.says("name=\"state\" value=\"failed\"").says("<dt>State</dt><dd><bdi>Failed</bdi></dd>");
    ana.see("/redeliveries").await.expect(200).says("No bulk redeliveries yet");
    let form = ana.form();
    let first = ana.send_form("/redeliveries", form, &[("state", "failed")]).await;
    let own = first.leads_to("/redeliveries/rdl_");
    let second = ana.send_form("/redeliveries", form, &[("state", "failed")]).await;
    assert_eq!(second.leads_to("/redeliveries/rdl_"), own);
    ana.see(&own)
        .await
        .expect(200)
        .says("Running")
        .says("of 3 attempts made")
        .says("data-live")
        .says("Cancel");
    let id: RedeliveryId = own.trim_start_matches("/redeliveries/").parse().expect("an id");
    step(acme.company.app(), acme.company.id(), id).await.expect("a step");
    for (delivery, manual) in list(&acme, "").await.iter().zip(claim(&acme).await) {
        record(&acme, delivery, answered(200), Some(manual)).await;
    }
    step(acme.company.app(), acme.company.id(), id).await.expect("a step");
    ana.see(&own).await.expect(200).says("Finished").says("3 <span").says_not("Cancel</button>");
    ana.send("/redeliveries", &[]).await.expect(422);
    ana.see("/redeliveries/new").await.expect(200).says("name=\"state\" value=\"failed\"");
    let other = ana.send("/redeliveries", &[("state", "succeeded")]).await.leads_to("/redeliveries/rdl_");
    ana.send(&format!("{other}/cancel"), &[]).await.leads_to(&other);
    ana.see(&other).await.expect(200).says("Cancelled").says("Succeeded");
    let page = ana.see("/redeliveries").await.expect(200).says("Finished").says("Cancelled");
    page.says(&own).says(&other);
    ana.send("/redeliveries", &[("state", "x")]).await.expect(422);
    ana.see("/redeliveries/rdl_nonsense").await.expect(404);
}

async fn members_see_no_deliveries(acme: Tenant) {
    create(&acme).await;
    acme.account(json!({"imported_id": "crm-1"})).await;
    let own = format!("/deliveries/{}", text(&list(&acme, "").await[0], "id"));
    let bea = Person::of(&acme, Role::Member);
    for path in ["/deliveries", "/redeliveries", "/redeliveries/new", &own, &format!("{own}/payload.json")] {
        bea.see(path).await.expect(403);
    }
    for path in [&format!("{own}/redeliver"), "/redeliveries"] {
        bea.send(path, &[]).await.expect(403);
    }
    assert!(claim(&acme).await.is_empty());
}

async fn deliveries_of_another_company_are_not_found(acme: Tenant) {
    create(&acme).await;
    acme.account(json!({"imported_id": "crm-1"})).await;
    let own = format!("/deliveries/{}", text(&list(&acme, "").await[0], "id"));
    let globex = acme.neighbour();
    let eve = Person::of(&globex, Role::Owner);
    eve.see("/deliveries").await.expect(200).says("No deliveries yet");
    eve.see(&own).await.expect(404);
    eve.see(&format!("{own}/payload.json")).await.expect(404);
    eve.send(&format!("{own}/redeliver"), &[]).await.expect(404);
}

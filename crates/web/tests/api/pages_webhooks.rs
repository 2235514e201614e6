//! The webhook pages: create, edit, test, enable and disable a webhook, rotate its secret and check a signature.

use rapport_app::signature::SigningKey;
use rapport_domain::event::Kind;
use rapport_domain::id::EventId;
use rapport_domain::member::Role;
use rapport_domain::standard_webhook::library_secret;
use serde_json::json;

use crate::harness::{Server, Tenant, on_both_engines};
use crate::person::{Person, Seen};
use crate::webhooks::{WEBHOOKS, answered, claim, create, list, record, text};

on_both_engines!(
    the_empty_list_explains_webhooks,
    a_webhook_is_created_and_its_secret_shown_once,
    a_refused_webhook_keeps_what_was_typed,
    a_webhook_is_edited,
    filters_headers_and_more_events_are_chosen_on_the_form,
    a_preview_says_what_would_be_sent_and_saves_nothing,
    a_secret_header_is_never_shown,
    a_secret_is_rotated_and_the_new_one_shown_once,
    an_auto_disabled_webhook_shows_why_and_how_to_enable_it,
    held_deliveries_can_be_dropped_on_enabling,
    disabling_can_be_undone,
    a_deleted_webhook_is_gone,
    the_chart_counts_succeeded_and_failed_deliveries,
    a_signature_check_does_not_echo_the_secret,
    a_standard_signature_is_checked_with_its_id_and_timestamp,
    descriptions_and_errors_are_escaped,
    members_see_no_links_and_no_pages,
    webhooks_of_another_company_are_not_found,
);

const URL: &str = "https://example.com/hook";

/// The secret shown on a page.
fn secret_on(page: &Seen) -> String {
    let text = page.0.text();
    let secret = text.split("<code id=\"secret\">").nth(1).and_then(|rest| rest.split('<').next());
    secret.expect("a secret").to_owned()
}

async fn the_empty_list_explains_webhooks(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let page = ana.see("/webhooks").await.expect(200).says("No webhooks yet");
    page.says("href=\"/webhooks/new\"").says("href=\"/webhooks/receiving\"");
    let page = ana.see("/webhooks/receiving").await.expect(200).says("def is_genuine(");
    page.says("hmac.Equal")
        .says("timingSafeEqual")
        .says("5 s, 5 min, 30 min")
        .says("href=\"/webhooks/events\"");
    let page = ana.see("/webhooks/events").await.expect(200).says("Activity never creates accounts.");
    let page = page.says("data.account.imported_id").says("string or null");
    assert!(page.0.text().len() < 100_000, "{} bytes", page.0.text().len());
    for kind in Kind::ALL {
        let schema = format!("href=\"/api/schemas/events/{}.json\"", kind.as_str());
        assert!(page.0.text().contains(&schema), "{schema}");
    }
}

async fn a_webhook_is_created_and_its_secret_shown_once(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    ana.see("/webhooks/new").await.expect(200).says("account.status_changed").says("All events");
    let fields = [("url", URL), ("description", "CRM"), ("which", "some"), ("events", "account.created")];
    let form = ana.form();
    let first = ana.send_form("/webhooks", form, &fields).await.expect(200);
    let secret = secret_on(&first);
    assert!(secret.starts_with("whs_"), "{secret}");
    let first = first.says("data-copy=\"secret\"").says("def is_genuine(").says("You won’t see it again");
    let library = library_secret(&secret);
    let first = first.says(&format!("<code id=\"library-secret\">{library}</code>"));
    // A second click shows the same secret and doesn't create another webhook.
    let second = ana.send_form("/webhooks", form, &fields).await.expect(200);
    assert_eq!(secret_on(&second), secret);
    let made = acme.all_pages(WEBHOOKS, 50).await;
    assert_eq!(made.len(), 1);
    assert_eq!((&made[0]["url"], &made[0]["description"]), (&json!(URL), &json!("CRM")));
    assert_eq!(made[0]["events"], json!(["account.created"]));
    let own = format!("/webhooks/{}", text(&made[0], "id"));
    first.says(&own);
    for path in ["/webhooks", &own, &format!("{own}/edit")] {
        ana.see(path).await.expect(200).says("CRM").says_not(&secret);
    }
}

async fn a_refused_webhook_keeps_what_was_typed(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let typed = [("url", "http://example.com/hook"), ("description", "CRM <b>"), ("which", "some")];
    let page = ana.send("/webhooks", &typed).await.expect(422);
    let page = page.says("value=\"http://example.com/hook\"").says("value=\"CRM &#60;b&#62;\"");
    page.says("aria-invalid=\"true\"").says("Must include at least one event.").says("https");
    // A forbidden address is refused, as it would be at each attempt.
    let page = ana.send("/webhooks", &[("url", "https://127.0.0.1/"), ("which", "all")]).await;
    page.expect(422).says("value=\"https://127.0.0.1/\"").says("aria-invalid");
    assert!(acme.all_pages(WEBHOOKS, 50).await.is_empty());
}

async fn a_webhook_is_edited(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let id = text(&create(&acme).await, "id");
    let edit = format!("/webhooks/{id}/edit");
    ana.see(&edit).await.expect(200).says(URL).says("value=\"account.created\" checked");
    let fields = [("url", "https://example.org/other"), ("description", ""), ("which", "all")];
    ana.send(&edit, &fields).await.leads_to(&format!("/webhooks/{id}"));
    let shown = acme.get(&format!("{WEBHOOKS}{id}/")).send().await.expect(200);
    assert_eq!(shown["url"], json!("https://example.org/other"));
    assert_eq!(shown["events"].as_array().map(Vec::len), Some(4));
    let page = ana.send(&edit, &[("url", ""), ("which", "all")]).await;
    page.expect(422).says("aria-invalid=\"true\"");
    let page = ana.send(&edit, &[("url", "ftp://example.org/"), ("which", "all")]).await;
    page.expect(422).says("value=\"ftp://example.org/\"");
    let shown = acme.get(&format!("{WEBHOOKS}{id}/")).send().await.expect(200);
    assert_eq!(shown["url"], json!("https://example.org/other"));
    ana.see("/webhooks/whk_nonsense/edit").await.expect(404);
}

async fn filters_headers_and_more_events_are_chosen_on_the_form(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let fair = acme.company.channel("Fair", &["FAIR"]).id.to_string();
    ana.see("/webhooks/new").await.expect(200).says("More events").says("account.updated").says("Fair");
    let fields = [
        ("url", URL),
        ("which", "all"),
        ("more", "account.updated"),
        ("from", "in_trial"),
        ("to", "customer"),
        ("channel", &fair),
        ("field", "plan"),
        ("test", "is"),
        ("value", "pro"),
        ("header", "X-Env"),
        ("header_kind", "visible"),
        ("header_value", "prod"),
        ("header", ""),
        ("header_kind", "secret"),
        ("header_value", ""),
    ];
    ana.send("/webhooks", &fields).await.expect(200);
    let made = acme.all_pages(WEBHOOKS, 50).await.remove(0);
    assert_eq!(made["events"].as_array().map(Vec::len), Some(5));
    let filters =
        json!({"from": ["in_trial"], "to": ["customer"], "channel": [fair], "fields": {"plan": "pro"}});
    assert_eq!(made["filters"], filters);
    assert_eq!(made["headers"], json!([{"name": "X-Env", "value": "prod", "secret": false}]));
    let own = format!("/webhooks/{}", text(&made, "id"));
    ana.see("/webhooks").await.expect(200).says("All events, account.updated");
    let page = ana.see(&own).await.expect(200).says("From stage").says("In trial").says("plan is pro");
    page.says("X-Env: prod").says("account.updated");
    let edit = format!("{own}/edit");
    let page = ana.see(&edit).await.expect(200).says("value=\"account.updated\" checked");
    let page = page.says("name=\"from\" value=\"in_trial\" checked").says("value=\"X-Env\"");
    page.says("value=\"all\" checked").says("value=\"pro\"");
    let wrong = [
        ("url", URL),
        ("which", "all"),
        ("field", ""),
        ("test", "is"),
        ("value", "x"),
        ("header", "Host"),
        ("header_kind", "visible"),
        ("header_value", "v"),
    ];
    ana.send(&edit, &wrong).await.expect(422).says("A value needs a field.").says("value=\"Host\"");
    let wrong = [
        ("url", URL),
        ("which", "all"),
        ("header", "Host"),
        ("header_kind", "visible"),
        ("header_value", "v"),
    ];
    ana.send(&edit, &wrong).await.expect(422).says("Host is set by HTTP or by this service.");
    ana.send(&edit, &[("url", URL), ("which", "all")]).await.leads_to(&own);
    let cleared = acme.get(&format!("{WEBHOOKS}{}/", text(&made, "id"))).send().await.expect(200);
    assert_eq!((&cleared["filters"], &cleared["headers"]), (&json!({}), &json!([])));
    assert_eq!(cleared["events"].as_array().map(Vec::len), Some(4));
}

async fn a_preview_says_what_would_be_sent_and_saves_nothing(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    acme.account(json!({"imported_id": "1", "name": "Nordlys <b>"})).await;
    acme.account(json!({"imported_id": "2", "name": "Globex", "status": "lost"})).await;
    let typed = [("url", "nonsense"), ("description", "Half done"), ("which", "all"), ("to", "lost")];
    let page = ana.send("/webhooks/preview", &typed).await.expect(200);
    let page = page
        .says("Nothing was saved.")
        .says("Not")
        .says("The stage is Prospect.")
        .says("Nordlys &#60;b&#62;");
    page.says("value=\"Half done\"").says("value=\"nonsense\"");
    assert!(acme.all_pages(WEBHOOKS, 50).await.is_empty());
    let wrong = [("which", "some"), ("from", "nope")];
    ana.send("/webhooks/preview", &wrong).await.expect(422).says("Must include at least one event.");

    let own = format!("/webhooks/{}", text(&create(&acme).await, "id"));
    ana.see(&own).await.expect(200).says("Preview").says("Globex").says_not("The stage is Prospect.");
    let preview = format!("{own}/preview");
    let page = ana.send(&preview, &[("which", "some"), ("events", "message.inbound")]).await;
    page.expect(200).says("This event isn’t selected.");
    let shown = acme.all_pages(WEBHOOKS, 50).await.remove(0);
    assert_eq!(
        (&shown["url"], &shown["events"]),
        (&json!(URL), &json!(["account.created", "account.status_changed"]))
    );
    ana.send("/webhooks/whk_nonsense/preview", &[("which", "all")]).await.expect(404);
}

async fn a_secret_header_is_never_shown(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let header = [("header", "Authorization"), ("header_kind", "secret"), ("header_value", "Bearer hush")];
    let fields = [&[("url", URL), ("which", "all")][..], &header].concat();
    ana.send("/webhooks", &fields).await.expect(200).says_not("hush");
    let id = text(&acme.all_pages(WEBHOOKS, 50).await[0], "id");
    let own = format!("/webhooks/{id}");
    ana.see(&own).await.expect(200).says("Authorization: ****").says_not("hush");
    let edit = format!("{own}/edit");
    ana.see(&edit).await.expect(200).says("Leave empty to keep").says_not("hush");
    let preview = format!("{own}/preview");
    ana.send(&preview, &fields).await.expect(200).says("value=\"Authorization\"").says_not("hush");
    let kept = [("header", "Authorization"), ("header_kind", "secret"), ("header_value", "")];
    let moved = [&[("url", "https://example.org/"), ("which", "all")][..], &kept].concat();
    ana.send(&edit, &moved).await.expect(422).says("Is required for Authorization").says_not("hush");
    let same = [&[("url", URL), ("which", "all")][..], &kept].concat();
    ana.send(&edit, &same).await.leads_to(&own);
    let shown = acme.get(&format!("{WEBHOOKS}{id}/")).send().await.expect(200);
    assert_eq!(shown["headers"], json!([{"name": "Authorization", "value": null, "secret": true}]));
}

async fn a_secret_is_rotated_and_the_new_one_shown_once(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let made = create(&acme).await;
    let own = format!("/webhooks/{}", text(&made, "id"));
    ana.see(&own).await.expect(200).says("Rotate secret now");
    let page = ana.send(&format!("{own}/rotate"), &[]).await.expect(200).says("Secret rotated");
    let secret = secret_on(&page);
    assert_ne!(secret, text(&made, "secret"));
    ana.see(&own).await.expect(200).says_not(&secret);
}

/// Makes a webhook with three open deliveries fail twenty times.
async fn let_it_fail(server: &Server) {
    for number in 0..3 {
        server.account(json!({"imported_id": format!("crm-{number}")})).await;
    }
    let open = list(server, "state=pending").await;
    for failure in 0..20 {
        record(server, &open[failure % 3], answered(503), None).await;
    }
}

async fn an_auto_disabled_webhook_shows_why_and_how_to_enable_it(acme: Server) {
    let ana = Person::of(&acme, Role::Admin);
    let id = text(&create(&acme).await, "id");
    let own = format!("/webhooks/{id}");
    ana.see(&own).await.expect(200).says("Enabled").says_not("Disabled after");
    let_it_fail(&acme).await;
    let page = ana.see("/webhooks").await.expect(200).says("Auto-disabled").says("1 off");
    page.says("after 20 failures in a row");
    let page = ana.see(&own).await.expect(200).says("Disabled after 20 failures in a row");
    let page = page.says(">503").says("3 deliveries").says("Send a test. Once it succeeds");
    page.says("disabled>Enable after a test").says_not("name=\"held\"");
    // Enabling without a test is refused with an explanation.
    let refused = ana.send(&format!("{own}/enable"), &[("held", "send")]).await.expect(422);
    refused.says("role=\"alert\"").says("nable it after a successful test");
    let sent = ana.send(&format!("{own}/test"), &[]).await;
    sent.leads_to(&own);
    assert!(sent.flash().contains("/deliveries/dlv_"), "{}", sent.flash());
    let test = list(&acme, "type=webhook.test").await.remove(0);
    let manual = claim(&acme).await[0];
    record(&acme, &test, answered(200), Some(manual)).await;
    let page = ana.see(&own).await.expect(200).says("A test succeeded").says("Enable and send 3");
    page.says("Succeeded</a>").says("Enable and drop 3");
    ana.send(&format!("{own}/enable"), &[("held", "send")]).await.leads_to(&own);
    assert_eq!(list(&acme, "state=pending").await.len(), 3);
    ana.see(&own).await.expect(200).says("0 of 20 failures").says_not("Disabled after");
    ana.see("/webhooks").await.expect(200).says_not("1 off");
}

async fn held_deliveries_can_be_dropped_on_enabling(acme: Server) {
    let ana = Person::of(&acme, Role::Admin);
    let own = format!("/webhooks/{}", text(&create(&acme).await, "id"));
    ana.send(&format!("{own}/disable"), &[]).await.leads_to(&own);
    acme.account(json!({"imported_id": "crm-1"})).await;
    ana.see(&own).await.expect(200).says("Disabled by hand").says("1 delivery</a> is held");
    acme.app.clock().advance_seconds(1);
    ana.send(&format!("{own}/enable"), &[("held", "drop")]).await.leads_to(&own);
    ana.see(&own).await.expect(200).says("dropped when the webhook was enabled");
    assert!(list(&acme, "state=pending").await.is_empty());
}

async fn disabling_can_be_undone(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let own = format!("/webhooks/{}", text(&create(&acme).await, "id"));
    let disabled = ana.send(&format!("{own}/disable"), &[]).await;
    disabled.leads_to(&own);
    assert!(disabled.flash().contains(&format!("{own}/enable")), "{}", disabled.flash());
    assert_eq!(acme.all_pages(WEBHOOKS, 50).await[0]["enabled"], json!(false));
    ana.send(&format!("{own}/enable"), &[("held", "send")]).await.leads_to(&own);
    assert_eq!(acme.all_pages(WEBHOOKS, 50).await[0]["enabled"], json!(true));
}

async fn a_deleted_webhook_is_gone(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let own = format!("/webhooks/{}", text(&create(&acme).await, "id"));
    acme.account(json!({"imported_id": "crm-1"})).await;
    ana.see(&own).await.expect(200).says("Delete webhook");
    ana.send(&format!("{own}/delete"), &[]).await.leads_to("/webhooks");
    ana.see(&own).await.expect(404);
    assert!(acme.all_pages(WEBHOOKS, 50).await.is_empty());
    ana.see("/deliveries").await.expect(200).says("the webhook was deleted").says_not("Redeliver</button>");
}

async fn the_chart_counts_succeeded_and_failed_deliveries(acme: Server) {
    let ana = Person::of(&acme, Role::Admin);
    let own = format!("/webhooks/{}", text(&create(&acme).await, "id"));
    ana.see(&own).await.expect(200).says("No deliveries in this period");
    for number in 0..4 {
        acme.account(json!({"imported_id": format!("crm-{number}")})).await;
    }
    let open = list(&acme, "").await;
    for (delivery, code) in open.iter().zip([200, 204, 404]) {
        record(&acme, delivery, answered(code), None).await;
    }
    let page = ana.see(&own).await.expect(200);
    let page = page.says("Deliveries in 14 days: 2 succeeded, 1 failed, 1 pending").says("<b>66%</b>");
    page.says("role=\"img\"").says("Show as table");
    ana.see("/webhooks").await.expect(200).says("66%</a> <span class=\"faint\">of 3</span>");
    acme.app.clock().advance_days(13);
    let ana = Person::of(&acme, Role::Admin);
    ana.see(&own).await.expect(200).says("2 succeeded, 1 failed, 1 pending");
    acme.app.clock().advance_days(2);
    let ana = Person::of(&acme, Role::Admin);
    ana.see(&own).await.expect(200).says("No deliveries in this period");
}

async fn a_signature_check_does_not_echo_the_secret(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let (made, other) = (create(&acme).await, create(&acme).await);
    let (secret, id) = (text(&made, "secret"), text(&made, "id"));
    acme.account(json!({"imported_id": "crm-1", "name": "Ana & Söhne"})).await;
    let delivery = list(&acme, &format!("webhook={id}")).await.remove(0);
    let path = format!("/deliveries/{}/payload.json", text(&delivery, "id"));
    let body = ana.see(&path).await.expect(200).0.text().to_owned();
    let good = SigningKey::new(&secret).sign(body.as_bytes()).to_string();
    let spaced = body.replacen(':', ": ", 1);
    let changed = body.replace("crm-1", "crm-2");
    let unknown = "{\"id\":\"evt_x\"}".to_owned();
    let kept = ("webhook", id.as_str());
    let typed = ("secret", secret.as_str());
    let blank = format!(" {secret}");
    let cut = secret.trim_start_matches("whs_").to_owned();
    let other_id = text(&other, "id");
    let header = format!("X-Service-Signature: {good}");
    let library = library_secret(&secret);
    let upper = format!("sha256={}", good[7..].to_uppercase());
    let table = [
        (kept, &good, &body, "Valid signature"),
        (typed, &header, &body, "Valid signature"),
        (typed, &good, &format!("{body}\n"), "line breaks at the start or end"),
        (kept, &good, &spaced, "parsed and serialized again"),
        (kept, &good, &changed, "isn’t the body that was sent"),
        (("secret", blank.as_str()), &good, &body, "It has spaces around it"),
        (("secret", cut.as_str()), &good, &body, "The prefix “whs_”"),
        (("webhook", other_id.as_str()), &good, &body, "secret of another webhook"),
        (
            ("secret", "whs_nonsense"),
            &format!("sha256={}", "0".repeat(64)),
            &body,
            "signed with a different secret",
        ),
        (("secret", "whs_nonsense"), &good, &unknown, "Invalid signature"),
        (typed, &good[..20].to_owned(), &body, "Was it cut off?"),
        (typed, &upper, &body, "lower case"),
        (typed, &good[7..].to_owned(), &body, "must start with “sha256=”"),
        (("secret", library.as_str()), &good, &body, "This is the form for Standard Webhooks libraries"),
    ];
    for ((name, value), signature, body, expected) in table {
        let fields = [(name, value), ("signature", signature.as_str()), ("body", body.as_str())];
        let page = ana.send("/webhooks/check", &fields).await.expect(200);
        page.says(expected).says_not(&secret).says_not(value_unless_id(value));
    }
}

async fn a_standard_signature_is_checked_with_its_id_and_timestamp(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let (made, other) = (create(&acme).await, create(&acme).await);
    let (secret, id) = (text(&made, "secret"), text(&made, "id"));
    acme.account(json!({"imported_id": "crm-1", "name": "Ana & Söhne"})).await;
    let delivery = list(&acme, &format!("webhook={id}")).await.remove(0);
    let path = format!("/deliveries/{}/payload.json", text(&delivery, "id"));
    let body = ana.see(&path).await.expect(200).0.text().to_owned();
    let event: EventId = text(&delivery, "event_id").parse().unwrap();
    let now = acme.company.app().now().unix_seconds();
    let signed =
        |timestamp| SigningKey::new(&secret).sign_standard(event, timestamp, body.as_bytes()).to_string();
    let good = signed(now);
    let library = library_secret(&secret);
    let (fresh, named) = (now.to_string(), format!("webhook-timestamp: {now}"));
    let (kept, typed) = (("webhook", id.as_str()), ("secret", library.as_str()));
    let other_id = text(&other, "id");
    let (event, delivery_id) = (event.to_string(), text(&delivery, "id"));
    let spaced = body.replacen(':', ": ", 1);
    let changed = body.replace("crm-1", "crm-2");
    let cases: [((&str, &str), [&str; 5]); 14] = [
        (kept, [&good, "", &fresh, &body, "Valid signature"]),
        (typed, [&good, &event, &named, &body, "Valid signature"]),
        (("secret", secret.as_str()), [&format!("v1a,abc {good}"), "", &fresh, &body, "Valid signature"]),
        (kept, [&signed(now - 720), "", &(now - 720).to_string(), &body, "12 minutes old"]),
        (kept, [&signed(now + 720), "", &(now + 720).to_string(), &body, "12 minutes in the future"]),
        (kept, [&good, &delivery_id, &fresh, &body, "another webhook-id was signed"]),
        (kept, [&good, "", &(now - 1).to_string(), &body, "webhook-timestamp is from another attempt"]),
        (kept, [&good, "", "", &body, "value of webhook-timestamp is missing"]),
        (kept, [&good, "", &format!("{now}000"), &body, "looks like milliseconds"]),
        (kept, [&good[..20], "", &fresh, &body, "44 characters of base64"]),
        (kept, [&good, &event, &fresh, &spaced, "parsed and serialized again"]),
        (kept, [&good, "", &fresh, &changed, "isn’t the body that was sent"]),
        (("webhook", other_id.as_str()), [&good, "", &fresh, &body, "secret of another webhook"]),
        (("secret", "whs_nonsense"), [&good, "evt_x", &fresh, "{}", "Invalid signature"]),
    ];
    for ((name, value), [signature, id, timestamp, body, expected]) in cases {
        let fields =
            [(name, value), ("signature", signature), ("id", id), ("timestamp", timestamp), ("body", body)];
        let page = ana.send("/webhooks/check", &fields).await.expect(200);
        let page = page.says(expected).says("(<span class=\"mono\">webhook-signature</span>)");
        page.says_not(&secret).says_not(&library).says_not(value_unless_id(value));
    }
}

/// An id may appear in the page again, since it is an option of the form.
fn value_unless_id(value: &str) -> &str {
    if value.starts_with("whk_") { "\u{0}" } else { value.trim() }
}

async fn descriptions_and_errors_are_escaped(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let hostile = "<script>alert(1)</script>\u{202e}=HYPERLINK(\"x\")";
    let body = json!({"url": URL, "events": ["account.created"], "description": hostile});
    let made = acme.post(WEBHOOKS).json(&body).send().await.expect(201);
    acme.account(json!({"imported_id": "crm-1", "name": hostile})).await;
    let own = format!("/webhooks/{}", text(&made, "id"));
    for path in ["/webhooks", "/deliveries", &own, &format!("{own}/edit"), "/webhooks/check"] {
        let page = ana.see(path).await.expect(200).says_not("<script>alert");
        if path != "/webhooks/check" {
            page.says("&#60;script&#62;alert(1)");
        }
    }
}

async fn members_see_no_links_and_no_pages(acme: Tenant) {
    let (ana, bea) = (Person::of(&acme, Role::Admin), Person::of(&acme, Role::Member));
    let own = format!("/webhooks/{}", text(&create(&acme).await, "id"));
    ana.see("/").await.expect(200).says("href=\"/webhooks\"");
    bea.see("/").await.expect(200).says_not("href=\"/webhooks\"");
    for path in
        ["/webhooks", "/webhooks/new", "/webhooks/check", "/webhooks/receiving", "/webhooks/events", &own]
    {
        bea.see(path).await.expect(403).says("Your role doesn’t allow this");
    }
    bea.see(&format!("{own}/edit")).await.expect(403);
    let fields = [("url", URL), ("which", "all")];
    bea.send("/webhooks", &fields).await.expect(403);
    bea.send("/webhooks/check", &[("signature", "sha256=")]).await.expect(403);
    for action in ["test", "rotate", "enable", "disable", "delete", "edit"] {
        bea.send(&format!("{own}/{action}"), &fields).await.expect(403);
    }
    assert_eq!(acme.all_pages(WEBHOOKS, 50).await.len(), 1);
}

async fn webhooks_of_another_company_are_not_found(acme: Tenant) {
    let own = format!("/webhooks/{}", text(&create(&acme).await, "id"));
    let globex = acme.neighbour();
    let eve = Person::of(&globex, Role::Owner);
    eve.see("/webhooks").await.expect(200).says("No webhooks yet");
    eve.see(&own).await.expect(404);
    for action in ["test", "rotate", "enable", "disable", "delete"] {
        eve.send(&format!("{own}/{action}"), &[]).await.expect(404);
    }
    let id = own.trim_start_matches("/webhooks/");
    let fields = [("webhook", id), ("signature", &format!("sha256={}", "0".repeat(64))), ("body", "{}")];
    eve.send("/webhooks/check", &fields).await.expect(200).says("No secret to check with");
}

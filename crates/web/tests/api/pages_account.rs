//! The account page and its forms.

use rapport_app::import::{Runner, Stepped};
use rapport_domain::member::Role;
use serde_json::{Value, json};

use crate::harness::{Server, Tenant, column, id_of, on_both_engines, path_of};
use crate::person::Person;

on_both_engines!(
    the_page_shows_the_account,
    text_from_outside_is_escaped,
    details_are_edited_in_place,
    unedited_fields_are_not_overwritten,
    refused_details_keep_what_was_typed,
    custom_fields_are_added_changed_and_removed,
    addresses_are_added_and_removed,
    contact_is_logged_for_now_and_for_earlier,
    refused_contact_changes_nothing,
    a_snooze_begins_ends_and_is_undone,
    an_account_may_have_its_own_cadence,
    a_move_is_in_the_history_and_can_be_undone,
    a_message_is_logged_in_a_conversation,
    the_timeline_shows_every_kind,
    the_timeline_has_older_pages,
    consecutive_days_of_use_are_combined,
    imports_are_shown_with_their_changes,
    the_pulse_card_shows_what_was_seen,
    never_seen_is_not_nothing_connected,
    forms_only_redirect_to_our_own_pages,
    deleting_is_permanent,
    payloads_are_erased_by_those_who_may_delete,
    accounts_of_other_companies_are_not_found,
);

fn page(account: &Value) -> String {
    format!("/accounts/{}", id_of(account))
}

async fn shown(acme: &Tenant, account: &Value) -> Value {
    acme.get(&path_of(account)).send().await.expect(200)
}

async fn the_page_shows_the_account(acme: Server) {
    acme.post("/api/channels/").json(&json!({"name": "Partners"})).send().await.expect(201);
    let channels = acme.all_pages("/api/channels/", 50).await;
    let codes = format!("/api/channels/{}/codes/", channels[0]["id"].as_str().unwrap());
    acme.post(&codes).json(&json!({"code": "SPRING_26"})).send().await.expect(201);
    let account = acme
        .account(json!({
            "imported_id": "crm-00418", "name": "Nordlys Bank", "status": "customer", "promo_code": "spring_26",
            "captured_value": "48000", "captured_value_currency": "EUR", "custom_fields": {"plan": "enterprise"},
        }))
        .await;
    acme.app.clock().advance_days(45);
    let ana = Person::of(&acme, Role::Member);
    ana.see(&page(&account))
        .await
        .expect(200)
        .says("<h1><bdi>Nordlys Bank</bdi></h1>")
        .says("crm-00418")
        .says("€48,000.00")
        .says("Partners")
        .says("SPRING_26")
        .says("every 42 days")
        .says("3 days overdue")
        .says("Never contacted; client since")
        .says("<bdi>plan</bdi>")
        .says("enterprise")
        .says("Account created")
        .says("By upsert, token")
        .says_not("Erase payloads");
    let lost = acme.account(json!({"imported_id": "gone", "status": "lost"})).await;
    ana.see(&page(&lost))
        .await
        .says("not tracked")
        .says("Contact isn’t tracked in Lost, only in Customer and In trial.")
        .says_not("days overdue");
}

async fn text_from_outside_is_escaped(acme: Tenant) {
    let name = "<script>alert(1)</script> \u{202e}evil \u{1f600}";
    let account = acme
        .account(json!({
            "imported_id": "<b>x</b>", "name": name,
            "custom_fields": {"<i>key</i>": "=cmd|' /C calc'!A0", "nested": {"<u>": ["</pre><script>"]}},
        }))
        .await;
    let event = json!({
        "imported_id": "<b>x</b>", "kind": "feature_used", "feature": "<s>f</s>",
        "metadata": {"a": "</pre><script>"},
    });
    acme.accept(event).await;
    let ana = Person::of(&acme, Role::Member);
    let path = page(&account);
    ana.send(
        &format!("{path}/messages"),
        &[("direction", "inbound"), ("subject", "<h1>s"), ("body", "</p><hr>")],
    )
    .await
    .leads_to(&path);
    for query in ["", "?show=events", "?show=messages", "?edit=details", "?edit=field&key=nested"] {
        let seen = ana.see(&format!("{path}{query}")).await.expect(200);
        for markup in ["<script>alert", "<b>x", "<i>key", "<u>", "<s>f", "<h1>s", "<hr>", "</pre><script>"] {
            assert!(!seen.0.text().contains(markup), "{query} contains {markup}");
        }
    }
    ana.see(&path).await.says("&#60;script&#62;alert(1)").says("\u{1f600}");
}

async fn details_are_edited_in_place(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "crm-1", "name": "Old"})).await;
    let ana = Person::of(&acme, Role::Member);
    ana.see(&page(&account)).await.says("?edit=details").says_not("name=\"captured_value\"");
    ana.see(&format!("{}?edit=details", page(&account)))
        .await
        .says("name=\"captured_value\"")
        .says("value=\"Old\"");
    let sent = ana
        .send(
            &format!("{}/details", page(&account)),
            &[
                ("name", " New "),
                ("was_name", "Old"),
                ("imported_id", ""),
                ("was_imported_id", "crm-1"),
                ("captured_value", "1200.5"),
                ("was_captured_value", ""),
                ("captured_value_currency", "eur"),
                ("was_captured_value_currency", "USD"),
            ],
        )
        .await;
    sent.leads_to(&page(&account));
    let after = shown(&acme, &account).await;
    assert_eq!((&after["name"], &after["imported_id"]), (&json!("New"), &Value::Null));
    assert_eq!(
        (&after["captured_value"], &after["captured_value_currency"]),
        (&json!("1200.50"), &json!("EUR"))
    );
}

async fn unedited_fields_are_not_overwritten(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "crm-1", "name": "Old", "captured_value": "5"})).await;
    let ana = Person::of(&acme, Role::Member);
    // Someone else changes the value after the form is shown.
    acme.resend(json!({"imported_id": "crm-1", "captured_value": "7"})).await;
    let fields =
        [("name", "New"), ("was_name", "Old"), ("captured_value", "5.00"), ("was_captured_value", "5.00")];
    ana.send(&format!("{}/details", page(&account)), &fields).await.leads_to(&page(&account));
    let after = shown(&acme, &account).await;
    assert_eq!((&after["name"], &after["captured_value"]), (&json!("New"), &json!("7.00")));
}

async fn refused_details_keep_what_was_typed(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "crm-1", "name": "Old"})).await;
    acme.account(json!({"imported_id": "crm-2"})).await;
    let ana = Person::of(&acme, Role::Member);
    let before = acme.contents();
    let path = format!("{}/details", page(&account));
    ana.send(&path, &[("name", ""), ("was_name", "Old"), ("captured_value", "lots"), ("promo_code", "NONE")])
        .await
        .expect(422)
        .says("Must not be empty.")
        .says("value=\"lots\"")
        .says("Must be a decimal amount")
        .says("value=\"NONE\"")
        .says("aria-invalid");
    ana.send(&path, &[("name", "Old"), ("was_name", "Old"), ("promo_code", "NONE")])
        .await
        .expect(422)
        .says("No active promo code matches.");
    ana.send(&path, &[("name", "Old"), ("was_name", "Old"), ("imported_id", "crm-2")])
        .await
        .expect(422)
        .says("Another account has this imported_id.")
        .says("value=\"crm-2\"");
    assert_eq!(acme.contents(), before, "nothing changed");
}

async fn custom_fields_are_added_changed_and_removed(acme: Tenant) {
    let account =
        acme.account(json!({"imported_id": "crm-1", "custom_fields": {"plan": "basic", "a&b": 1}})).await;
    let ana = Person::of(&acme, Role::Member);
    let path = page(&account);
    let fields = format!("{path}/fields");
    ana.see(&path).await.says("?edit=field&#38;key=a%26b#fields");
    ana.send(&fields, &[("new", "yes"), ("key", "team"), ("value", "{\"size\": 3, \"lead\": \"Ida\"}")])
        .await
        .leads_to(&path);
    ana.send(&fields, &[("key", "a&b"), ("value", "\"7\"")]).await.leads_to(&path);
    let expected = json!({"a&b": "7", "plan": "basic", "team": {"size": 3, "lead": "Ida"}});
    assert_eq!(shown(&acme, &account).await["custom_fields"], expected);
    ana.see(&format!("{path}?edit=field&key=a%26b")).await.says("&#34;7&#34;</textarea>");
    ana.see(&format!("{path}?edit=field&key=team")).await.says("&#34;size&#34;: 3");
    ana.send(&fields, &[("new", "yes"), ("key", "plan"), ("value", "gold")])
        .await
        .expect(422)
        .says("Already exists")
        .says("value=\"plan\"")
        .says("gold</textarea>");
    ana.send(&fields, &[("key", "plan"), ("value", "{\"broken\":")])
        .await
        .expect(422)
        .says("Looks like JSON but is invalid")
        .says("{&#34;broken&#34;:</textarea>");
    assert_eq!(shown(&acme, &account).await["custom_fields"], expected, "nothing changed");
    ana.send(&format!("{path}/fields/remove"), &[("key", "a&b")]).await.leads_to(&path);
    assert_eq!(shown(&acme, &account).await["custom_fields"]["a&b"], Value::Null);
}

async fn addresses_are_added_and_removed(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "crm-1"})).await;
    let ana = Person::of(&acme, Role::Member);
    let path = page(&account);
    ana.send(&format!("{path}/addresses"), &[("address", "Ida@Nordlys.test")]).await.leads_to(&path);
    ana.see(&path).await.says("ida@nordlys.test");
    ana.send(&format!("{path}/addresses"), &[("address", "nobody")])
        .await
        .expect(422)
        .says("value=\"nobody\"")
        .says("id=\"add-address\"");
    let gone = ana.send(&format!("{path}/addresses/remove"), &[("address", "ida@nordlys.test")]).await;
    gone.leads_to(&path);
    assert!(gone.flash().contains("undo"), "{}", gone.flash());
    ana.see(&path).await.says("No email addresses yet");
}

async fn contact_is_logged_for_now_and_for_earlier(acme: Server) {
    acme.app.set(json!({"time_zone": "Europe/Berlin"}));
    let account =
        acme.account(json!({"imported_id": "crm-1", "name": "Nordlys", "status": "customer"})).await;
    let ana = Person::of(&acme, Role::Member);
    let path = page(&account);
    let logged = ana
        .send(
            &format!("{path}/contacts"),
            &[("kind", "call"), ("note", "They want SSO"), ("occurred_at", "2025-12-01T09:30")],
        )
        .await;
    logged.leads_to(&path);
    assert!(
        logged.flash().contains("Contact with Nordlys logged; the next one is due 12 Jan 2026"),
        "{}",
        logged.flash()
    );
    let contacts = acme.all_pages(&format!("{}contacts/", path_of(&account)), 50).await;
    assert_eq!(contacts[0]["occurred_at"], json!("2025-12-01T08:30:00Z"), "the company's time");
    assert_eq!((&contacts[0]["kind"], &contacts[0]["note"]), (&json!("call"), &json!("They want SSO")));
    ana.see(&path)
        .await
        .says("They want SSO")
        .says("Last contact: call by A member, 1 December 2025; every 42 days.");
    ana.send(&format!("{path}/contacts"), &[("kind", "meeting"), ("occurred_at", "")]).await.leads_to(&path);
    assert_eq!(shown(&acme, &account).await["last_contact_at"], json!(acme.app.clock().now()));
}

async fn refused_contact_changes_nothing(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "crm-1", "status": "customer"})).await;
    let ana = Person::of(&acme, Role::Member);
    let before = acme.contents();
    let fields =
        [("kind", "fax"), ("note", "Hello"), ("occurred_at", "2999-01-01T10:00"), ("next", "/clients")];
    ana.send(&format!("{}/contacts", page(&account)), &fields)
        .await
        .expect(422)
        .says("<details class=\"menu left\" open id=\"log-contact\">")
        .says("Must be one of: call, meeting, email, other.")
        .says("Must not be more than 5 minutes in the future.")
        .says("Hello</textarea>")
        .says("value=\"2999-01-01T10:00\"")
        .says("name=\"next\" value=\"/clients\"");
    assert_eq!(acme.contents(), before);
}

async fn a_snooze_begins_ends_and_is_undone(acme: Server) {
    let account = acme.account(json!({"imported_id": "crm-1", "status": "customer"})).await;
    acme.app.clock().advance_days(50);
    let ana = Person::of(&acme, Role::Member);
    let (path, snooze) = (page(&account), format!("{}/snooze", page(&account)));
    let snoozed = ana.send(&snooze, &[("snoozed_until", "2026-06-01"), ("next", "")]).await;
    snoozed.leads_to(&path);
    let flash: Value = serde_json::from_str(&snoozed.flash()).unwrap();
    assert_eq!(flash["undo"]["action"], json!(snooze));
    assert_eq!(flash["undo"]["fields"][0], json!(["end", "yes"]));
    ana.see(&path).await.says("Snoozed until 1 Jun 2026").says("End snooze").says_not("days overdue");
    ana.send(&snooze, &[("snoozed_until", ""), ("preset", "2026-07-01")]).await.leads_to(&path);
    assert_eq!(shown(&acme, &account).await["snoozed_until"], json!("2026-07-01"));
    ana.send(&snooze, &[("snoozed_until", "")]).await.expect(422).says("Is required.");
    ana.send(&snooze, &[("snoozed_until", "soon")])
        .await
        .expect(422)
        .says("Must be a date")
        .says("value=\"soon\"");
    assert_eq!(shown(&acme, &account).await["snoozed_until"], json!("2026-07-01"));
    ana.send(&snooze, &[("end", "yes")]).await.leads_to(&path);
    assert_eq!(shown(&acme, &account).await["snoozed_until"], Value::Null);
    ana.see(&path).await.says("8 days overdue").says_not("End snooze");
}

async fn an_account_may_have_its_own_cadence(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "crm-1", "status": "customer"})).await;
    let ana = Person::of(&acme, Role::Member);
    let (path, cadence) = (page(&account), format!("{}/cadence", page(&account)));
    ana.see(&path).await.says("42 days <span class=\"faint\">company default</span>");
    ana.send(&cadence, &[("cadence_days", "14")]).await.leads_to(&path);
    ana.see(&path)
        .await
        .says("14 days <span class=\"faint\">this account only</span>")
        .says("Use the company’s 42 days");
    ana.send(&cadence, &[("cadence_days", "0")])
        .await
        .expect(422)
        .says("Must be a whole number from 1 to 3650.");
    assert_eq!(shown(&acme, &account).await["cadence_days"], json!(14));
    ana.send(&cadence, &[("company", "yes")]).await.leads_to(&path);
    ana.see(&path).await.says("42 days <span class=\"faint\">company default</span>");
}

async fn a_move_is_in_the_history_and_can_be_undone(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "crm-1", "name": "Nordlys", "status": "lost"})).await;
    let ana = Person::of(&acme, Role::Member);
    let (path, to) = (page(&account), format!("{}/move", page(&account)));
    let moved =
        ana.send(&to, &[("status", "in_trial"), ("note", "They came back"), ("next", "/pipeline")]).await;
    moved.leads_to("/pipeline");
    let flash: Value = serde_json::from_str(&moved.flash()).unwrap();
    assert_eq!(flash["text"], json!("Nordlys moved to In trial."));
    assert_eq!(flash["undo"], json!({"action": to, "fields": [["status", "lost"], ["next", "/pipeline"]]}));
    let history = acme.history(&account).await;
    assert_eq!(column(&history, "source"), ["upsert", "operator"]);
    assert_eq!(
        (&history[1]["actor"]["name"], &history[1]["note"]),
        (&json!("A member"), &json!("They came back"))
    );
    ana.see(&path)
        .await
        .says("Moved to In trial")
        .says("reopened from Lost")
        .says("By A member")
        .says("They came back");
    let again = ana.send(&to, &[("status", "in_trial")]).await;
    assert!(again.flash().contains("already") && !again.flash().contains("\"action\""), "{}", again.flash());
    ana.send(&to, &[("status", "won"), ("note", "x")])
        .await
        .expect(422)
        .says("Must be one of: prospect")
        .says("x</textarea>");
    assert_eq!(acme.history(&account).await.len(), 2);
}

async fn a_message_is_logged_in_a_conversation(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "crm-1", "status": "customer"})).await;
    let other = acme.account(json!({"imported_id": "crm-2"})).await;
    let ana = Person::of(&acme, Role::Member);
    let (path, messages) = (page(&account), format!("{}/messages", page(&account)));
    let first =
        [("direction", "outbound"), ("subject", "The DPA"), ("body", "Here it is"), ("conversation", "")];
    ana.send(&messages, &first).await.leads_to(&path);
    let talk = acme.all_pages(&format!("{}conversations/", path_of(&account)), 50).await;
    assert_eq!(
        (talk.len(), &talk[0]["subject"], &talk[0]["message_count"]),
        (1, &json!("The DPA"), &json!(1))
    );
    assert!(shown(&acme, &account).await["last_contact_at"].is_string(), "an outbound message is contact");
    let id = talk[0]["id"].as_str().unwrap();
    ana.send(&messages, &[("direction", "inbound"), ("body", "Thanks"), ("conversation", id)])
        .await
        .leads_to(&path);
    let conversation = format!("{path}/conversations/{id}");
    ana.see(&path).await.says(&conversation).says("The DPA").says("2 messages");
    ana.send(&conversation, &[("direction", "inbound"), ("body", "And one more")])
        .await
        .leads_to(&conversation);
    ana.see(&conversation)
        .await
        .says("The DPA")
        .says("Here it is")
        .says("Thanks")
        .says("And one more")
        .says("3 messages");
    ana.send(&conversation, &[("direction", "sideways"), ("body", "Kept")])
        .await
        .expect(422)
        .says("Must be one of: inbound, outbound.")
        .says("Kept</textarea>");
    let before = acme.contents();
    ana.send(&messages, &[("direction", "inbound"), ("subject", "Kept subject"), ("body", "")])
        .await
        .expect(422)
        .says("Is required.")
        .says("value=\"Kept subject\"")
        .says("<details class=\"card fold\" open id=\"log-message\">");
    // A conversation of another account is not found here.
    ana.send(
        &format!("{}/messages", page(&other)),
        &[("direction", "inbound"), ("body", "x"), ("conversation", id)],
    )
    .await
    .expect(422)
    .says("Is not a conversation of this account.");
    ana.see(&format!("{}/conversations/{id}", page(&other))).await.expect(404);
    assert_eq!(acme.contents(), before, "nothing was logged");
}

async fn the_timeline_shows_every_kind(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "crm-1", "status": "lost"})).await;
    let ana = Person::of(&acme, Role::Member);
    let path = page(&account);
    ana.send(&format!("{path}/contacts"), &[("kind", "meeting"), ("note", "Went well")])
        .await
        .leads_to(&path);
    let long = format!("Dear all, {} the end", "x".repeat(400));
    ana.send(&format!("{path}/messages"), &[("direction", "inbound"), ("body", &long)]).await.leads_to(&path);
    acme.accept(json!({"imported_id": "crm-1", "kind": "trial_started"})).await;
    acme.accept(json!({"imported_id": "crm-1", "kind": "feature_used", "feature": "app.export", "metadata": {"rows": 7}})).await;
    let all = ana
        .see(&path)
        .await
        .says("Used the product")
        .says("2 events")
        .says("By product activity")
        .says("Went well");
    all.says("the end").says("Open conversation");
    let only = |query: &'static str, has: &'static [&'static str], has_not: &'static [&'static str]| {
        (query, has, has_not)
    };
    let table = [
        only(
            "moves",
            &["Moved to In trial", "Account created"],
            &["Went well", "Used the product", "Dear all"],
        ),
        only("contacts", &["Went well", "Meeting"], &["Moved to", "Dear all"]),
        only("messages", &["Dear all", "Message received"], &["Went well", "Moved to"]),
        only(
            "events",
            &["Used app.export", "Started a trial", "&#34;rows&#34;:7"],
            &["Went well", "Moved to"],
        ),
        only("imports", &["No import has changed this account"], &["Went well", "Moved to"]),
    ];
    for (show, has, has_not) in table {
        let mut seen = ana.see(&format!("{path}?show={show}")).await.expect(200);
        for text in has {
            seen = seen.says(text);
        }
        for text in has_not {
            seen = seen.says_not(text);
        }
    }
}

async fn the_timeline_has_older_pages(acme: Server) {
    let account = acme.account(json!({"imported_id": "crm-1", "status": "prospect"})).await;
    let ana = Person::of(&acme, Role::Member);
    let path = page(&account);
    for number in 0..30 {
        let at = acme.app.clock().now().plus_days(number - 30).to_string();
        let note = format!("remark-{number:02}.");
        let fields = [("kind", "call"), ("note", note.as_str()), ("occurred_at", at.as_str())];
        ana.send(&format!("{path}/contacts"), &fields).await.leads_to(&path);
        acme.accept(json!({"imported_id": "crm-1", "kind": "app_opened", "occurred_at": at})).await;
    }
    let (mut next, mut told, mut active) = (path.clone(), Vec::new(), 0);
    loop {
        let seen = ana.see(&next).await.expect(200);
        let text = seen.0.text();
        told.extend(text.split("remark-").skip(1).map(|rest| rest[..2].parse::<u32>().unwrap()));
        active += text.matches("Used the product").count();
        let older =
            text.split("href=\"").find(|rest| rest.contains("&#38;before=") && rest.contains(">Older<"));
        let Some(older) = older else { break };
        let rest = older.split("&#38;before=").nth(1).unwrap().split(['#', '"']).next().unwrap();
        next = format!("{path}?show=all&before={rest}");
    }
    assert_eq!(told, (0..30).rev().collect::<Vec<u32>>(), "each once, newest first");
    assert_eq!(active, 30, "days with something in between are shown separately");
}

async fn consecutive_days_of_use_are_combined(acme: Server) {
    let account = acme.account(json!({"imported_id": "crm-1", "status": "prospect"})).await;
    let now = acme.app.clock().now();
    let at = |days: i64| now.plus_days(-days).to_string();
    for days in [1, 2, 3, 20, 21] {
        acme.accept(json!({"imported_id": "crm-1", "kind": "app_opened", "occurred_at": at(days)})).await;
    }
    let ana = Person::of(&acme, Role::Member);
    let path = page(&account);
    let fields = [("kind", "call"), ("occurred_at", &at(10))];
    ana.send(&format!("{path}/contacts"), &fields).await.leads_to(&path);
    let seen = ana.see(&path).await.says("3 events on 3 days since").says("2 events on 2 days since");
    assert_eq!(seen.0.text().matches("Used the product").count(), 2);
}

async fn imports_are_shown_with_their_changes(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "crm-1", "name": "Acme"})).await;
    let file = "Record ID;Company;Plan\ncrm-1;Acme Inc;pro\n".as_bytes().to_vec();
    let upload = acme.post("/api/imports/?filename=march.csv").bytes(file).header("content-type", "text/csv");
    let import = upload.send().await.expect(201);
    let id = import["id"].as_str().unwrap();
    acme.post(&format!("/api/imports/{id}/start/")).json(&json!({})).send().await.expect(202);
    let mut runner = Runner::new(acme.company.app(), acme.company.id(), id.parse().unwrap());
    while runner.step().await.expect("a step") == Stepped::More {}
    let ana = Person::of(&acme, Role::Member);
    for show in ["all", "imports"] {
        ana.see(&format!("{}?show={show}", page(&account)))
            .await
            .says("Changed by an import")
            .says("from march.csv")
            .says("Changed: custom_fields.plan, name");
    }
}

async fn the_pulse_card_shows_what_was_seen(acme: Server) {
    let account = acme.account(json!({"imported_id": "crm-1", "status": "customer"})).await;
    let now = acme.app.clock().now();
    for (days, times) in [(100, 2), (20, 3), (1, 4)] {
        let at = now.plus_days(-days).to_string();
        let event = json!({"imported_id": "crm-1", "kind": "feature_used", "feature": "app.export", "occurred_at": at});
        acme.ingest(Value::from(vec![event; times])).await.expect(200);
    }
    acme.accept(json!({"imported_id": "crm-1", "kind": "custom", "feature": "beta.summary"})).await;
    let seen = Person::of(&acme, Role::Member).see(&page(&account)).await.expect(200);
    let text = seen.0.text();
    let card = text.split("id=\"pulse\" data-live").nth(1).unwrap().split("</section>").next().unwrap();
    for part in ["First seen", "Last seen", "Activity over the last 90 days", "Most-used features"] {
        assert!(card.contains(part), "no {part} in {card}");
    }
    assert!(card.contains(">10</a>"), "events over the account's lifetime: {card}");
    assert_eq!(card.matches("<title>").count(), 90, "one bar per day");
    assert!(
        card.contains(
            "aria-label=\"Activity per day over 90 days: 8 events, rising from none to less than one"
        ),
        "{card}"
    );
    let places =
        ["app.export", ">9<", "beta.summary", ">1<"].map(|text| card.find(text).unwrap_or(usize::MAX));
    assert!(places.is_sorted() && places[3] < usize::MAX, "most used first: {places:?}");
}

async fn never_seen_is_not_nothing_connected(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "crm-1"})).await;
    acme.account(json!({"imported_id": "crm-2"})).await;
    let (ana, admin) = (Person::of(&acme, Role::Member), Person::of(&acme, Role::Admin));
    let path = page(&account);
    ana.see(&path)
        .await
        .says("Nothing connected")
        .says_not("Never seen")
        .says_not("href=\"/settings/ingest\"");
    admin
        .see(&path)
        .await
        .says("Nothing connected")
        .says("<a href=\"/settings/ingest\">Connect your product</a>");
    acme.accept(json!({"imported_id": "crm-2", "kind": "app_opened"})).await;
    ana.see(&path).await.says("Never seen").says("<code>crm-1</code>").says_not("Nothing connected");
}

async fn forms_only_redirect_to_our_own_pages(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "crm-1"})).await;
    let ana = Person::of(&acme, Role::Member);
    let contacts = format!("{}/contacts", page(&account));
    let there = |next: &'static str| [("kind", "call"), ("next", next)];
    ana.send(&contacts, &there("/clients?tab=due_soon")).await.leads_to("/clients?tab=due_soon");
    let elsewhere = ana.send(&contacts, &there("https://evil.test/")).await;
    assert_eq!(elsewhere.leads_to("/"), "/");
}

async fn deleting_is_permanent(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "crm-1", "name": "Nordlys"})).await;
    let (bo, ana) = (Person::of(&acme, Role::Member), Person::of(&acme, Role::Admin));
    bo.see(&page(&account)).await.expect(200).says_not("Delete this account");
    bo.send(&format!("{}/delete", page(&account)), &[]).await.expect(403);
    ana.see(&page(&account)).await.says("Delete this account").says("You can’t undo this.");
    let deleted = ana.send(&format!("{}/delete", page(&account)), &[]).await;
    deleted.leads_to("/accounts");
    assert!(deleted.flash().contains("Nordlys deleted."));
    ana.see(&page(&account)).await.expect(404);
    ana.send(&format!("{}/delete", page(&account)), &[]).await.expect(404);
    acme.get(&path_of(&account)).send().await.expect_problem(404, "not_found");
}

async fn payloads_are_erased_by_those_who_may_delete(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "crm-1"})).await;
    let (ana, admin) = (Person::of(&acme, Role::Member), Person::of(&acme, Role::Admin));
    let erase = format!("{}/erase-payloads", page(&account));
    ana.send(&erase, &[]).await.expect(403);
    ana.see(&page(&account)).await.says_not("Erase payloads");
    assert_eq!(acme.company.events(id_of(&account)).len(), 1);
    admin.see(&page(&account)).await.says("Erase payloads");
    let erased = admin.send(&erase, &[]).await;
    erased.leads_to(&page(&account));
    assert!(erased.flash().contains("1 payload erased"), "{}", erased.flash());
}

async fn accounts_of_other_companies_are_not_found(acme: Tenant) {
    let other = acme.neighbour();
    let account = other.account(json!({"imported_id": "crm-1"})).await;
    let ana = Person::of(&acme, Role::Admin);
    let before = other.contents();
    ana.see(&page(&account)).await.expect(404);
    ana.see("/accounts/acc_nonsense").await.expect(404);
    for form in
        ["contacts", "move", "details", "snooze", "cadence", "fields", "delete", "messages", "erase-payloads"]
    {
        let fields = [
            ("kind", "call"),
            ("status", "lost"),
            ("name", "x"),
            ("end", "yes"),
            ("key", "k"),
            ("value", "v"),
        ];
        ana.send(&format!("{}/{form}", page(&account)), &fields).await.expect(404);
    }
    assert_eq!(other.contents(), before);
}

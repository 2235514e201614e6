//! The account pages: the list with its filters, views, moves and export, and new accounts by hand and by domain.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use rapport_app::lookup::{FetchError, Fetched, HomePages};
use rapport_domain::destination::Destination;
use rapport_domain::id::AccountId;
use rapport_domain::member::Role;
use rapport_domain::pipeline::{Source, Status};
use rapport_domain::time::Time;
use rapport_testkit::Engine;
use serde_json::json;

use crate::export::read_csv;
use crate::harness::{Server, Tenant, id_of, on_both_engines};
use crate::person::{Person, Seen};

on_both_engines!(
    an_empty_company_sees_what_to_do_next,
    the_list_shows_accounts_and_the_active_filters,
    filters_that_match_nothing_can_be_cleared,
    addresses_have_one_spelling,
    errors_in_an_address_are_named,
    dates_are_days_in_the_companys_time_zone,
    columns_are_chosen_in_the_address,
    the_week_on_the_dashboard_leads_to_its_accounts,
    orders_and_pages_keep_the_filters,
    every_column_sorts_both_ways,
    values_are_sorted_within_their_currency,
    a_full_page_stays_small,
    text_from_outside_is_escaped,
    views_are_saved_renamed_and_deleted,
    views_are_the_companys_own,
    accounts_are_moved_together_and_back,
    an_undo_keeps_later_changes,
    accounts_get_a_channel_a_field_a_cadence_and_a_snooze_together,
    accounts_are_deleted_together_by_those_who_may,
    a_change_without_accounts_or_status_is_refused,
    a_whole_page_is_changed_without_a_script,
    the_export_has_the_listed_accounts,
    an_account_is_created_by_hand,
    a_refused_account_keeps_what_was_typed,
    a_domain_is_looked_up_and_an_account_created,
    a_failed_lookup_shows_why,
);

/// The ids of the accounts on a page, in order.
fn listed(page: &Seen) -> Vec<String> {
    let rows = page.0.text().split("<tr data-href=\"/accounts/").skip(1);
    rows.map(|row| row.split('"').next().unwrap().to_owned()).collect()
}

fn id(acme: &Tenant, imported_id: &str) -> String {
    acme.company.account(imported_id).id.to_string()
}

async fn made(acme: &Tenant, count: usize, status: &str) -> Vec<String> {
    let mut ids = Vec::new();
    for n in 0..count {
        let imported_id = format!("{status}-{n:03}");
        acme.account(json!({"imported_id": imported_id, "name": format!("Name {n:03}"), "status": status}))
            .await;
        ids.push(id(acme, &imported_id));
    }
    ids
}

async fn an_empty_company_sees_what_to_do_next(acme: Tenant) {
    let page = Person::of(&acme, Role::Admin).see("/accounts").await.expect(200);
    let page = page.says("No accounts yet").says("href=\"/accounts/new\"").says("href=\"/imports\"");
    page.says("href=\"/api/docs\"").says_not("<table");
    let content = Person::of(&acme, Role::Member).see("/accounts").await.expect(200);
    content.says("No accounts yet").says_not("Import a CSV file");
}

async fn the_list_shows_accounts_and_the_active_filters(acme: Tenant) {
    acme.company.channel("Spring fair", &["SPRING"]);
    let keller = json!({
        "imported_id": "crm-1", "name": "Keller & Sohn", "status": "customer", "promo_code": "spring",
        "captured_value": "48000", "captured_value_currency": "EUR", "custom_fields": {"plan": "Pro"},
    });
    acme.account(keller).await;
    acme.account(json!({"imported_id": "crm-2", "name": "Nordlys", "status": "lost"})).await;
    acme.accept(json!({"imported_id": "crm-2", "kind": "app_opened"})).await;
    let ana = Person::of(&acme, Role::Member);
    let page = ana.see("/accounts").await.expect(200);
    assert_eq!(listed(&page), [id(&acme, "crm-2"), id(&acme, "crm-1")], "newest first");
    let page = page.says("2 accounts").says("Keller &#38; Sohn").says("crm-1").says("€48,000.00");
    let page =
        page.says("<span class=\"pill customer\">Customer</span>").says("Spring fair").says("never seen");
    page.says("aria-label=\"Select Nordlys\"").says_not("class=\"chip\"");
    let channel = acme.company.account("crm-1").channel.unwrap().id;
    for (query, words) in [
        ("q=keller", "“keller”"),
        ("status=customer", "Customer</bdi>"),
        ("status=customer&status=prospect", "Prospect</bdi>"),
        (&format!("channel={channel}"), "Channel: Spring fair"),
        ("seen=false", "Never seen"),
        ("field.plan=pro", "plan is “pro”"),
        ("has_field=plan", "Has plan"),
    ] {
        let page = ana.see(&format!("/accounts?{query}")).await.expect(200);
        assert_eq!(listed(&page), [id(&acme, "crm-1")], "{query}");
        page.says("1 account<").says(words).says("Remove filter");
    }
    let overdue = ana.see("/accounts?overdue=true").await.expect(200);
    overdue.says("No matches");
}

async fn filters_that_match_nothing_can_be_cleared(acme: Tenant) {
    made(&acme, 1, "prospect").await;
    let page = Person::of(&acme, Role::Member).see("/accounts?q=nobody&sort=name").await.expect(200);
    page.says("No matches").says("href=\"/accounts?sort=name\">Clear filters").says_not("No accounts yet");
}

async fn addresses_have_one_spelling(acme: Tenant) {
    let ana = Person::of(&acme, Role::Member);
    for (sent, spelled) in [
        ("/accounts?q=&status=", "/accounts"),
        ("/accounts?q=+a+&field_key=plan&field_value=pro", "/accounts?q=a&field.plan=pro"),
        ("/accounts?status=lost,customer&utm=1", "/accounts?status=lost&status=customer"),
    ] {
        assert_eq!(ana.see(sent).await.leads_to("/accounts"), spelled);
        ana.see(spelled).await.expect(200);
    }
}

async fn errors_in_an_address_are_named(acme: Tenant) {
    made(&acme, 1, "prospect").await;
    let ana = Person::of(&acme, Role::Member);
    for (query, name, words) in [
        ("status=nope", "Status", "Must be one of"),
        ("seen_after=soon", "Last seen since", "ISO 8601"),
        ("overdue=maybe", "Overdue", "Must be true or false."),
        ("channel=x", "Channel", "Must be a channel id."),
        ("field.plan=%00", "Custom field plan", "NUL"),
    ] {
        // The page itself has its filters, a link to clear them, and no accounts.
        let page = ana.see(&format!("/accounts?q=name&{query}&sort=name")).await.expect(422);
        assert_eq!(listed(&page), [""; 0], "{query}");
        page.says(&format!("<b>{name}</b>: "))
            .says(words)
            .says("<h1>Accounts</h1>")
            .says("name=\"q\" value=\"name\"")
            .says("Remove filter")
            .says("href=\"/accounts?sort=name\">Clear filters")
            .says_not("Save view")
            .says_not("/accounts/export")
            .says_not("0 accounts");
    }
    let page = ana.see("/accounts?status=nope&status=lost&seen=false").await.expect(422);
    page.says("value=\"lost\" checked")
        .says("<bdi>nope</bdi>")
        .says("<option value=\"false\" selected>Never seen");
    // An invalid cursor, with and without a filter.
    let page = ana.see("/accounts?cursor=zzz").await.expect(422);
    page.says("<b>Page</b>: This link doesn’t lead to a page of this list.")
        .says("href=\"/accounts\">First page");
    let page = ana.see("/accounts?status=nope&cursor=zzz").await.expect(422);
    page.says("<b>Status</b>").says("<b>Page</b>").says_not("No accounts yet");
    // A form sent from such a page is refused on that page.
    let refused = ana.send("/accounts/bulk", &[("next", "/accounts?status=nope")]).await.expect(422);
    refused.says("<b>Status</b>").says("<h1>Accounts</h1>");
}

async fn dates_are_days_in_the_companys_time_zone(acme: Server) {
    acme.app.set(json!({"time_zone": "Asia/Tokyo"}));
    made(&acme, 1, "customer").await;
    // Midnight in Tokyo is three in the afternoon, the day before, in London.
    let event =
        json!({"imported_id": "customer-000", "kind": "app_opened", "occurred_at": "2026-01-04T15:30:00Z"});
    acme.accept(event).await;
    let ana = Person::of(&acme, Role::Member);
    ana.see("/accounts?seen_after=2026-01-05").await.says("customer-000").says("Last seen since 5 Jan 2026");
    ana.see("/accounts?seen_before=2026-01-05").await.says("No matches");
}

async fn columns_are_chosen_in_the_address(acme: Tenant) {
    let fields = json!({"plan": "Pro", "seats": 12, "long": "x".repeat(500)});
    acme.account(json!({"imported_id": "crm-1", "custom_fields": fields})).await;
    let ana = Person::of(&acme, Role::Member);
    let page =
        ana.see("/accounts?columns=acquired&columns=field.plan&columns=field.seats&columns=field.long").await;
    let page = page
        .expect(200)
        .says("<bdi>Pro</bdi>")
        .says("<bdi>12</bdi>")
        .says("\">Acquired</a></th>")
        .says("<bdi>plan</bdi></th>");
    page.says(&format!("{}…", "x".repeat(120)))
        .says_not(&"x".repeat(121))
        .says_not("class=\"pill prospect\"");
    // Custom fields in use are offered.
    ana.see("/accounts")
        .await
        .says("value=\"field.plan\"")
        .says("class=\"pill prospect\"")
        .says_not("<bdi>Pro</bdi>");
}

async fn orders_and_pages_keep_the_filters(acme: Tenant) {
    let ids = made(&acme, 60, "lost").await;
    made(&acme, 1, "prospect").await;
    let ana = Person::of(&acme, Role::Member);
    let first = ana.see("/accounts?status=lost&sort=name").await.expect(200);
    assert_eq!(listed(&first), ids[..50], "by name");
    let first =
        first.says("60 accounts").says("aria-sort=\"ascending\"").says("sort=-name").says_not("First page");
    let next = first.0.text().split("href=\"").find(|part| part.contains("cursor=")).unwrap();
    let next = next.split('"').next().unwrap().replace("&#38;", "&").replace("&amp;", "&");
    assert!(next.starts_with("/accounts?status=lost&sort=name&cursor="), "{next}");
    let second = ana.see(&next).await.expect(200);
    assert_eq!(listed(&second), ids[50..]);
    second.says("60 accounts").says("First page").says_not("Next page");
}

async fn the_week_on_the_dashboard_leads_to_its_accounts(acme: Server) {
    acme.app.set(json!({"time_zone": "Asia/Tokyo"}));
    // The last second of a Sunday in Tokyo, the first instant of Monday, and Tuesday.
    for (number, at) in
        [(1, "2026-03-01T14:59:59Z"), (2, "2026-03-01T15:00:00Z"), (3, "2026-03-03T02:00:00Z")]
    {
        acme.app.clock().set(Time::parse(at).unwrap());
        acme.account(json!({"imported_id": format!("crm-{number}")})).await;
    }
    let ana = Person::of(&acme, Role::Member);
    ana.see("/").await.says("href=\"/accounts?created_since=2026-03-02\"").says("New accounts this week: 2");
    let page = ana.see("/accounts?created_since=2026-03-02").await.expect(200);
    assert_eq!(listed(&page), [id(&acme, "crm-3"), id(&acme, "crm-2")]);
    page.says("2 accounts").says("Created since 2 Mar 2026").says("value=\"2026-03-02\"");
    let before = ana.see("/accounts?created_before=2026-03-02").await.expect(200);
    assert_eq!(listed(&before), [id(&acme, "crm-1")]);
    let both = ana.see("/accounts?created_since=2026-03-02&created_before=2026-03-03&sort=name").await;
    assert_eq!(listed(&both), [id(&acme, "crm-2")]);
    // The API takes the same filters.
    let found = acme.get("/api/accounts/?created_since=2026-03-01T15:00:00Z").send().await.expect(200);
    assert_eq!(found["items"].as_array().unwrap().len(), 2);
    let refused = acme.get("/api/accounts/?created_since=soon");
    refused.expect_faults(&[("created_since", "malformed")]).await;
}

async fn every_column_sorts_both_ways(acme: Server) {
    acme.company.channel("Fair", &["FAIR"]);
    acme.company.channel("Web", &["WEB"]);
    // The second has more of everything, and the third has nothing.
    let bodies = [
        json!({"imported_id": "crm-1", "name": "A", "status": "prospect", "promo_code": "fair", "captured_value": "1"}),
        json!({"imported_id": "crm-2", "name": "B", "status": "customer", "promo_code": "web", "captured_value": "2"}),
        json!({"imported_id": "crm-3", "name": "C", "status": "lost"}),
    ];
    for body in bodies {
        let imported_id = body["imported_id"].as_str().unwrap().to_owned();
        let path = format!("/api/accounts/{}/contacts/", id_of(&acme.account(body).await));
        if imported_id != "crm-3" {
            acme.accept(json!({"imported_id": imported_id, "kind": "app_opened"})).await;
            acme.post(&path).json(&json!({"kind": "call"})).send().await.expect(201);
        }
        acme.app.clock().advance_seconds(3600);
    }
    let ana = Person::of(&acme, Role::Member);
    let columns =
        "status value channel promo_code last_seen first_seen last_contact acquired created updated";
    let columns: Vec<String> = columns.split(' ').map(|column| format!("&columns={column}")).collect();
    let columns = columns.concat();
    let [a, b, c] = ["crm-1", "crm-2", "crm-3"].map(|imported_id| id(&acme, imported_id));
    let whole = ["name", "status", "created_at", "updated_at"];
    let lacking = [
        "captured_value",
        "channel",
        "promo_code",
        "last_seen_at",
        "first_seen_at",
        "last_contact_at",
        "acquired_at",
    ];
    for word in whole.into_iter().chain(lacking) {
        let rising = ana.see(&format!("/accounts?sort={word}{columns}")).await.expect(200);
        assert_eq!(listed(&rising), [a.clone(), b.clone(), c.clone()], "{word}");
        let rising = rising.says("aria-sort=\"ascending\"");
        if word != "created_at" {
            rising.says(&format!("sort=-{word}"));
        }
        // `created_at` descending is the order without a parameter.
        let falling = ana.see(&spelled(&format!("/accounts?sort=-{word}{columns}"))).await.expect(200);
        let last_first = if lacking.contains(&word) { [&b, &a, &c] } else { [&c, &b, &a] };
        let last_first = last_first.map(String::clone);
        assert_eq!(listed(&falling), last_first, "-{word}");
        falling.says("aria-sort=\"descending\"").says(&format!("sort={word}"));
    }
}

/// The address of the newest accounts has no order.
fn spelled(path: &str) -> String {
    path.replace("sort=-created_at&", "")
}

async fn values_are_sorted_within_their_currency(acme: Tenant) {
    for (number, value) in [("1", "10 USD"), ("2", "9 USD"), ("3", "500 EUR"), ("4", "70 CHF"), ("5", "")] {
        let mut body = json!({"imported_id": format!("crm-{number}")});
        if let Some((amount, currency)) = value.split_once(' ') {
            body["captured_value"] = json!(amount);
            body["captured_value_currency"] = json!(currency);
        }
        acme.account(body).await;
    }
    for (sort, expected) in
        [("captured_value", ["2", "1", "4", "3", "5"]), ("-captured_value", ["1", "2", "4", "3", "5"])]
    {
        // One by one, so that every page begins after another kind of place.
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let path = format!("/api/accounts/?sort={sort}&limit=1{cursor}");
            let page = acme.get(&path).send().await.expect(200);
            found.push(page["items"][0]["imported_id"].as_str().unwrap().to_owned());
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(found, expected.map(|number| format!("crm-{number}")), "{sort}");
    }
}

async fn a_full_page_stays_small(acme: Tenant) {
    acme.company.channel("A channel with a rather long name for a channel", &["SPRING"]);
    for n in 0..50 {
        let name = format!("An account with a rather long name & number {n}");
        let fields = json!({"plan": "professional", "city": "Kopenhagen", "seats": n});
        acme.account(json!({
            "imported_id": format!("0035g00000abcdefAA{n}"), "name": name, "promo_code": "spring",
            "captured_value": "123456.78", "custom_fields": fields, "status": "in_negotiation",
        }))
        .await;
        acme.accept(json!({"imported_id": format!("0035g00000abcdefAA{n}"), "kind": "app_opened"})).await;
    }
    let page = Person::of(&acme, Role::Admin).see("/accounts").await.expect(200);
    assert_eq!(listed(&page).len(), 50);
    let bytes = page.0.text().len();
    assert!(bytes < 100_000, "{bytes} bytes");
}

async fn text_from_outside_is_escaped(acme: Tenant) {
    let evil = "<script>alert(1)</script>\"'\u{202e}=1+1 😀";
    acme.company.channel("<b>channel</b>", &["SPRING"]);
    let body = json!({"imported_id": "<i>1</i>", "name": evil, "promo_code": "spring", "custom_fields": {"<u>k": "<u>v"}});
    acme.account(body).await;
    let ana = Person::of(&acme, Role::Member);
    let query = "columns=channel&columns=field.%3Cu%3Ek";
    ana.send("/accounts/views", &[("name", "<em>view"), ("query", query)]).await.leads_to("/accounts");
    let page = ana.see(&format!("/accounts?{query}")).await.expect(200);
    let page = page.says("&#60;script&#62;alert(1)").says("😀");
    for markup in ["<script>alert", "<b>channel", "<i>1", "<u>", "<em>"] {
        assert!(!page.0.text().contains(markup), "{markup}");
    }
}

async fn views_are_saved_renamed_and_deleted(acme: Tenant) {
    made(&acme, 1, "lost").await;
    let (ana, ben) = (Person::of(&acme, Role::Member), Person::of(&acme, Role::Member));
    ana.see("/accounts").await.says_not("Save view");
    ana.see("/accounts?status=lost").await.says("Save view");
    let saved = ana.send("/accounts/views", &[("name", "Lost & found"), ("query", "status=lost&q=")]).await;
    assert_eq!(saved.leads_to("/accounts"), "/accounts?status=lost");
    assert!(saved.flash().contains("Lost & found"));
    let page = ben.see("/accounts?status=lost").await;
    page.says("href=\"/accounts?status=lost\" aria-current=\"page\"><bdi>Lost &#38; found").says("Edit view");
    // A name can be used once, unless the view is to be replaced.
    let taken = [("name", "lost & FOUND"), ("query", "status=customer")];
    let refused = ben.send("/accounts/views", &taken).await.expect(422);
    refused.says("view already has this name").says("lost &#38; FOUND");
    ben.see("/accounts").await.says("/accounts?status=lost\"").says_not("/accounts?status=customer\"");
    let replaced = [&taken[..], &[("replace", "yes")]].concat();
    ben.send("/accounts/views", &replaced).await.leads_to("/accounts?status=customer");
    ben.see("/accounts").await.says("/accounts?status=customer\"").says_not("/accounts?status=lost\"");
    ben.send("/accounts/views", &[("name", " "), ("query", "q=a")]).await.expect(422).says("Is required.");
    // It can be renamed, but not to another view's name.
    ben.send("/accounts/views", &[("name", "Second"), ("query", "q=a")]).await.leads_to("/accounts?q=a");
    let rename = |to| [("view", "Second"), ("name", to), ("query", "q=a")];
    let refused = ben.send("/accounts/views/rename", &rename("Lost & found")).await.expect(422);
    refused.says("view already has this name");
    ben.send("/accounts/views/rename", &rename("Third")).await.leads_to("/accounts?q=a");
    ben.see("/accounts").await.says("<bdi>Third</bdi>").says_not("<bdi>Second</bdi>");
    // Deleted, with an undo.
    let deleted = ben.send("/accounts/views/delete", &[("view", "Third")]).await;
    deleted.leads_to("/accounts");
    assert!(deleted.flash().contains("\"action\":\"/accounts/views\""), "{}", deleted.flash());
    ben.see("/accounts").await.says_not("Third");
    ben.send("/accounts/views", &[("name", "Third"), ("query", "q=a")]).await.leads_to("/accounts?q=a");
    ben.send("/accounts/views/delete", &[("view", "Nothing")]).await.expect(404);
}

async fn views_are_the_companys_own(acme: Tenant) {
    let ana = Person::of(&acme, Role::Member);
    ana.send("/accounts/views", &[("name", "Ours"), ("query", "q=a")]).await.leads_to("/accounts?q=a");
    let globex = acme.neighbour();
    let eve = Person::of(&globex, Role::Owner);
    eve.see("/accounts").await.expect(200).says_not("Ours");
    eve.send("/accounts/views/delete", &[("view", "Ours")]).await.expect(404);
    ana.see("/accounts").await.says("<bdi>Ours</bdi>");
}

/// The bar's form, as the page with the preview sends it again.
fn fields<'a>(ids: &'a [String], change: &'a [(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    ids.iter().map(|id| ("account", id.as_str())).chain(change.iter().copied()).collect()
}

/// Sends the undo of a flash, which must be there.
async fn undo(ana: &Person<'_>, flash: &str) -> Seen {
    let flash: serde_json::Value = serde_json::from_str(flash).unwrap();
    assert_eq!(flash["undo"]["action"], "/accounts/bulk/undo", "{flash}");
    let back: Vec<(String, String)> = serde_json::from_value(flash["undo"]["fields"].clone()).unwrap();
    let back: Vec<(&str, &str)> = back.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    ana.send("/accounts/bulk/undo", &back).await
}

async fn accounts_are_moved_together_and_back(acme: Tenant) {
    let prospects = made(&acme, 2, "prospect").await;
    let customers = made(&acme, 1, "customer").await;
    let lost = made(&acme, 1, "lost").await;
    let gone = vec!["acc_00000000000000000000000000".to_owned()];
    let ana = Person::of(&acme, Role::Member);
    let all = [&prospects[..], &customers, &lost, &gone].concat();
    let change =
        [("change", "move"), ("status", "lost"), ("note", "Closed"), ("next", "/accounts?sort=name")];
    let before = acme.contents();
    let preview = ana.send("/accounts/bulk", &fields(&all, &change)).await.expect(200);
    let preview = preview.says("Move to Lost").says("3 accounts will change.").says("Move 3 accounts");
    let preview = preview.says("1 account won’t, because nothing is different.");
    preview.says("1 account can’t, because already deleted.").says("value=\"Closed\"");
    assert_eq!(acme.contents(), before, "a preview changes nothing");
    let moved = ana.send("/accounts/bulk/apply", &fields(&all, &change)).await;
    assert_eq!(moved.leads_to("/accounts"), "/accounts?sort=name");
    let text = "3 accounts moved to Lost. 1 already there. Not changed because deleted meanwhile: 1 account.";
    assert!(moved.flash().contains(text), "{}", moved.flash());
    let account = acme.company.account("prospect-000");
    assert_eq!(account.status, Status::Lost);
    let entry = acme.company.history(account.id).pop().unwrap();
    assert_eq!((entry.source, entry.note.as_deref()), (Source::Operator, Some("Closed")));
    assert_eq!(acme.company.events(account.id).len(), 2, "created and moved");
    let undone = undo(&ana, &moved.flash()).await;
    assert_eq!(undone.leads_to("/accounts"), "/accounts?sort=name");
    assert!(undone.flash().contains("3 accounts restored."), "{}", undone.flash());
    let status = |imported_id| acme.company.account(imported_id).status;
    assert_eq!((status("prospect-000"), status("customer-000")), (Status::Prospect, Status::Customer));
    assert_eq!(status("lost-000"), Status::Lost);
    let again = undo(&ana, &moved.flash()).await;
    assert!(again.flash().contains("This was undone already"), "{}", again.flash());
}

async fn an_undo_keeps_later_changes(acme: Tenant) {
    let ids = made(&acme, 2, "prospect").await;
    let ana = Person::of(&acme, Role::Member);
    let change = [("change", "move"), ("status", "contacted")];
    let moved = ana.send("/accounts/bulk/apply", &fields(&ids, &change)).await;
    acme.resend(json!({"imported_id": "prospect-001", "status": "customer"})).await;
    let undone = undo(&ana, &moved.flash()).await;
    assert!(
        undone.flash().contains("1 account restored. Not restored because changed since: 1 account."),
        "{}",
        undone.flash()
    );
    let status = |imported_id| acme.company.account(imported_id).status;
    assert_eq!((status("prospect-000"), status("prospect-001")), (Status::Prospect, Status::Customer));
}

async fn accounts_get_a_channel_a_field_a_cadence_and_a_snooze_together(acme: Tenant) {
    acme.company.channel("Fair", &["FAIR"]);
    let ids = made(&acme, 2, "customer").await;
    let ana = Person::of(&acme, Role::Member);
    ana.see("/accounts").await.says("Fair (FAIR)").says_not("Delete…");
    type Case = (&'static [(&'static str, &'static str)], &'static str, &'static str);
    let table: [Case; 4] = [
        (&[("change", "channel"), ("promo_code", "FAIR")], "Assign to the channel of FAIR", "Fair (FAIR)"),
        (&[("change", "field"), ("key", "plan"), ("value", "pro")], "Set plan to pro", "<bdi>pro</bdi>"),
        (&[("change", "cadence"), ("cadence_days", "7")], "Set the cadence to 7 days", "<bdi>7 days</bdi>"),
        (
            &[("change", "snooze"), ("snoozed_until", "2030-01-31")],
            "Snooze until 31 Jan 2030",
            "<bdi>31 Jan 2030</bdi>",
        ),
    ];
    for (change, heading, after) in table {
        let before = acme.company.account("customer-000");
        let preview = ana.send("/accounts/bulk", &fields(&ids, change)).await.expect(200);
        preview.says(heading).says(after).says("Change 2 accounts");
        assert_eq!(acme.company.account("customer-000"), before);
        let changed = ana.send("/accounts/bulk/apply", &fields(&ids, change)).await;
        assert!(changed.flash().contains("2 accounts changed."), "{}", changed.flash());
        assert_ne!(acme.company.account("customer-000"), before, "{heading}");
        let again = ana.send("/accounts/bulk", &fields(&ids, change)).await.expect(200);
        again.says("2 accounts won’t, because nothing is different.").says("Back to the list");
        let undone = undo(&ana, &changed.flash()).await;
        assert!(undone.flash().contains("2 accounts restored."), "{}", undone.flash());
        let restored = acme.company.account("customer-000");
        assert_eq!(rapport_domain::account::Account { updated_at: before.updated_at, ..restored }, before);
    }
    for (change, fault) in [
        ([("change", "channel"), ("promo_code", "")], "Promo code is required."),
        ([("change", "channel"), ("promo_code", "NONE")], "Promo code is not an active one."),
        ([("change", "field"), ("key", "")], "Key is required."),
        ([("change", "cadence"), ("cadence_days", "0")], "Cadence days must be"),
        ([("change", "snooze"), ("snoozed_until", "soon")], "Snoozed until must be a date"),
    ] {
        let refused = ana.send("/accounts/bulk", &fields(&ids, &change)).await.expect(422);
        refused.says(fault).says("class=\"bulk shown\"");
    }
}

async fn accounts_are_deleted_together_by_those_who_may(acme: Tenant) {
    let ids = made(&acme, 3, "prospect").await;
    let gone = vec!["acc_00000000000000000000000000".to_owned()];
    let some = [&ids[..2], &gone].concat();
    let ana = Person::of(&acme, Role::Member);
    ana.send("/accounts/bulk/delete", &fields(&some, &[("confirmed", "yes")])).await.expect(403);
    let olga = Person::of(&acme, Role::Owner);
    olga.see("/accounts").await.says("Delete…");
    let before = acme.contents();
    let preview = olga.send("/accounts/bulk/delete", &fields(&some, &[])).await.expect(200);
    let preview = preview.says("2 accounts will be deleted.").says("You can’t undo this.");
    preview.says("Delete 2 accounts").says("1 account won’t, because already deleted.");
    assert_eq!(acme.contents(), before, "a preview deletes nothing");
    let deleted = olga.send("/accounts/bulk/delete", &fields(&some, &[("confirmed", "yes")])).await;
    assert_eq!(deleted.leads_to("/accounts"), "/accounts");
    let flash = deleted.flash();
    assert!(flash.contains("2 accounts deleted. Deleted by somebody else meanwhile: 1 account."), "{flash}");
    let left: Vec<bool> = (0..3).map(|n| acme.company.find(&format!("prospect-{n:03}")).is_some()).collect();
    assert_eq!(left, [false, false, true]);
}

async fn a_change_without_accounts_or_status_is_refused(acme: Tenant) {
    let ids = made(&acme, 2, "prospect").await;
    let ana = Person::of(&acme, Role::Member);
    let before = acme.contents();
    let (next, to_lost) = (("next", "/accounts?status=prospect"), ("status", "lost"));
    for path in ["/accounts/bulk", "/accounts/bulk/apply"] {
        let none = [next, ("change", "move"), to_lost, ("note", "Why <b>")];
        let none = ana.send(path, &none).await.expect(422);
        none.says("Select at least one account.").says("Why &#60;b&#62;").says("class=\"bulk shown\"");
        let untold = ana.send(path, &fields(&ids[..1], &[next, ("change", "move")])).await.expect(422);
        let ticked = format!("value=\"{}\" aria-label=\"Select Name 000\" checked", ids[0]);
        untold.says("Choose a status.").says(&ticked).says("1 selected");
        let many: Vec<String> = (0..51).map(|n| AccountId::from_bytes([n; 16]).to_string()).collect();
        let to_lost_all = [("change", "move"), to_lost];
        ana.send(path, &fields(&many, &to_lost_all)).await.expect(422).says("at most 50 accounts");
        ana.send(path, &fields(&ids, &[to_lost]))
            .await
            .expect(422)
            .says("Change must be one of the buttons.");
    }
    assert_eq!(acme.contents(), before);
    // It redirects only to the list.
    let away = [("change", "move"), to_lost, ("next", "//evil.test/")];
    assert_eq!(
        ana.send("/accounts/bulk/apply", &fields(&ids[..1], &away)).await.leads_to("/accounts"),
        "/accounts"
    );
}

async fn a_whole_page_is_changed_without_a_script(acme: Tenant) {
    let ids = made(&acme, 3, "prospect").await;
    let shown = ids[..2].join(" ");
    let ana = Person::of(&acme, Role::Member);
    let page = ana.see("/accounts").await;
    let reversed: Vec<String> = ids.iter().rev().cloned().collect();
    page.says(&format!("name=\"shown\" value=\"{}\"", reversed.join(" ")));
    let change = [("all", "yes"), ("shown", shown.as_str()), ("change", "move"), ("status", "lost")];
    let preview = ana.send("/accounts/bulk", &change).await.expect(200);
    preview.says("2 accounts will change.").says(&ids[0]).says(&ids[1]).says_not(&ids[2]);
}

async fn the_export_has_the_listed_accounts(acme: Tenant) {
    acme.company.channel("Fair", &["FAIR"]);
    for n in 0..3 {
        let fields = json!({"plan": "=cmd()", "seats": n});
        let body = json!({
            "imported_id": format!("crm-{n}"), "name": "-1+2", "promo_code": "fair", "captured_value": "5.50",
            "custom_fields": fields, "status": if n == 0 { "lost" } else { "customer" },
        });
        acme.account(body).await;
    }
    let ana = Person::of(&acme, Role::Admin);
    let page = ana.see("/accounts?status=customer&columns=value&columns=field.plan").await.expect(200);
    let href = "/accounts/export?status=customer&columns=value&columns=field.plan";
    page.says(&href.replace('&', "&#38;"));
    let file = ana.see(href).await.expect(200).0;
    let header = file.text().trim_start_matches('\u{feff}').lines().next().unwrap().to_owned();
    assert_eq!(header, "name,imported_id,captured_value,captured_value_currency,custom_fields.plan");
    let rows = read_csv(&file);
    let shown: Vec<(&str, &str, &str)> = rows
        .iter()
        .map(|row| (row["imported_id"].as_str(), row["name"].as_str(), row["custom_fields.plan"].as_str()))
        .collect();
    assert_eq!(
        shown,
        [("crm-2", "'-1+2", "'=cmd()"), ("crm-1", "'-1+2", "'=cmd()")],
        "as shown, newest first"
    );
    assert!(file.header("content-disposition").unwrap().starts_with("attachment; filename=\"accounts-"));
    ana.see("/accounts/export?status=nope").await.expect(422);
    let stranger = acme.get("/accounts/export").without_credential().send().await;
    assert_eq!(stranger.status, 303);
}

async fn an_account_is_created_by_hand(acme: Tenant) {
    acme.company.channel("Fair", &["Fair-26"]);
    let ana = Person::of(&acme, Role::Member);
    ana.see("/accounts/new").await.expect(200).says("<h1>New account</h1>").says("Fair-26");
    let fields = [
        ("name", "Keller & Sohn"),
        ("imported_id", "crm-1"),
        ("status", "in_trial"),
        ("captured_value", "1200.50"),
        ("captured_value_currency", "eur"),
        ("promo_code", "FAIR-26"),
        ("key1", "plan"),
        ("value1", "Pro"),
        ("key2", ""),
        ("value2", ""),
        ("key3", "empty"),
        ("value3", ""),
    ];
    let made = ana.send("/accounts/new", &fields).await;
    let account = acme.company.account("crm-1");
    assert_eq!(made.leads_to("/accounts/"), format!("/accounts/{}", account.id));
    assert!(made.flash().contains("“Keller & Sohn” created."), "{}", made.flash());
    assert_eq!((account.status, account.custom_fields.as_json()), (Status::InTrial, r#"{"plan":"Pro"}"#));
    let value = account.value.unwrap();
    assert_eq!((value.amount_text().as_str(), value.currency.code()), ("1200.50", "EUR"));
    assert_eq!(account.promo_code.unwrap().as_str(), "Fair-26");
    assert_eq!(acme.company.history(account.id)[0].source, Source::Operator);
    assert_eq!(acme.company.events(account.id).len(), 1);
}

async fn a_refused_account_keeps_what_was_typed(acme: Tenant) {
    made(&acme, 1, "prospect").await;
    let ana = Person::of(&acme, Role::Member);
    let before = acme.contents();
    let fields = [
        ("name", "<Keller>"),
        ("imported_id", "prospect-000"),
        ("status", "lost"),
        ("captured_value", "12,50"),
        ("captured_value_currency", "XXY"),
        ("key1", "plan"),
        ("value1", "Pro"),
    ];
    let refused = ana.send("/accounts/new", &fields).await.expect(422);
    let refused = refused.says("value=\"&#60;Keller&#62;\"").says("value=\"12,50\"").says("value=\"Pro\"");
    refused.says("Must be a decimal amount").says("ISO 4217").says("<option value=\"lost\" selected>");
    let taken = ana.send("/accounts/new", &[("name", "A"), ("imported_id", "prospect-000")]).await;
    taken.expect(422).says("id=\"imported_id-note\">Another account has this imported_id.");
    let unknown = ana.send("/accounts/new", &[("name", "A"), ("promo_code", "NOPE")]).await;
    unknown.expect(422).says("No active promo code matches");
    let unnamed = ana.send("/accounts/new", &[("name", "A"), ("key1", ""), ("value1", "x")]).await;
    unnamed.expect(422).says("Every value needs a field name.");
    assert_eq!(acme.contents(), before);
}

struct OnePage(HashMap<&'static str, &'static str>);

impl HomePages for OnePage {
    fn fetch<'a>(
        &'a self,
        page: &'a Destination,
    ) -> Pin<Box<dyn Future<Output = Result<Fetched, FetchError>> + Send + 'a>> {
        let html = self.0.get(page.authority()).map(|html| html.as_bytes().to_vec());
        let at = page.clone();
        Box::pin(async move {
            let body = html.ok_or_else(|| FetchError::Unreachable("no address".to_owned()))?;
            Ok(Fetched { at, content_type: Some("text/html".to_owned()), body })
        })
    }
}

async fn with_a_page(engine: Engine) -> Server {
    let html = "<title>Pumps | Nordlys</title><meta name=description content=\"Pumps &amp; <b>filters\">";
    let pages = Arc::new(OnePage(HashMap::from([("nordlys.test", html)])));
    Server::with_parts(engine, move |parts| parts.home_pages = Arc::clone(&pages) as _).await
}

async fn a_domain_is_looked_up_and_an_account_created(engine: Engine) {
    let acme = with_a_page(engine).await;
    let ana = Person::of(&acme, Role::Member);
    ana.see("/accounts/lookup").await.expect(200).says("<h1>Look up a domain</h1>");
    let before = acme.contents();
    let shown = ana.send("/accounts/lookup", &[("domain", "https://Nordlys.test/about")]).await.expect(200);
    let shown = shown.says("Details from nordlys.test").says("Pumps &#38; &#60;b&#62;filters");
    shown.says("name=\"name\" type=\"text\" value=\"Nordlys\"");
    assert_eq!(acme.contents(), before, "nothing is stored yet");
    let fields = [("domain", "nordlys.test"), ("name", "Nordlys AS"), ("status", "contacted")];
    let made = ana.send("/accounts/lookup/create", &fields).await;
    let path = made.leads_to("/accounts/acc_");
    let account = acme.get(&format!("/api{path}/")).send().await.expect(200);
    assert_eq!((&account["name"], &account["status"]), (&json!("Nordlys AS"), &json!("contacted")));
    assert_eq!(account["custom_fields"]["website"], "https://nordlys.test/");
    // No second account is created.
    let again = ana.send("/accounts/lookup", &[("domain", "nordlys.test")]).await.expect(200);
    again.says("This domain already has an account.").says(&format!("href=\"{path}\""));
    let twice = ana.send("/accounts/lookup/create", &fields).await.expect(422);
    twice.says("This domain already has an account").says("value=\"Nordlys AS\"");
}

async fn a_failed_lookup_shows_why(engine: Engine) {
    let acme = with_a_page(engine).await;
    let ana = Person::of(&acme, Role::Member);
    let unknown = ana.send("/accounts/lookup", &[("domain", "nowhere.test")]).await.expect(422);
    unknown.says("load a page from this domain;").says("value=\"nowhere.test\"");
    ana.send("/accounts/lookup", &[("domain", "nonsense")]).await.expect(422).says("Must be a domain");
    ana.send("/accounts/lookup", &[("domain", "")]).await.expect(422).says("Is required.");
}

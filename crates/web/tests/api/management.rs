//! The management API: lists and their filters, accounts by hand, settings, tokens, members, channels, audit.

use rapport_domain::credential::{Kind, issue};
use rapport_domain::member::Role;
use rapport_domain::time::Time;
use rapport_testkit::app::START;
use serde_json::{Value, json};

use crate::harness::{Server, Tenant, column, members_of, on_both_engines, path_of};

on_both_engines! {
    every_path_is_served_with_and_without_its_slash,
    unknown_members_are_refused_by_name_everywhere,
    unknown_query_parameters_are_refused_by_name_on_every_list,
    every_list_returns_items_and_next_cursor,
    accounts_come_newest_first_and_by_each_sort,
    accounts_are_paged_by_cursor_in_every_sort_without_gap_or_repeat,
    a_cursor_belongs_to_its_list_and_sort,
    accounts_are_filtered_by_status,
    accounts_are_filtered_by_words_of_the_name_and_by_the_imported_id,
    accounts_are_filtered_by_channel,
    accounts_are_filtered_by_tracked_and_overdue,
    accounts_are_filtered_by_when_they_were_seen,
    accounts_must_match_all_filters,
    an_invalid_filter_is_refused,
    an_account_is_created_by_hand_with_every_member,
    an_account_created_by_hand_only_needs_a_name,
    an_account_is_edited_member_by_member,
    an_edit_clears_by_null,
    deleting_an_account_deletes_its_data_and_frees_its_imported_id,
    the_operators_status_change_returns_the_account_and_whether_it_moved,
    history_items_have_the_decided_members_newest_first,
    activity_items_have_the_decided_members_latest_first,
    pulse_has_the_decided_members_and_ends_today_in_the_companys_zone,
    settings_of_a_new_company_are_the_decided_defaults,
    settings_change_member_by_member,
    invalid_settings_are_refused,
    tracked_stages_decide_who_is_tracked,
    keys_are_shown_once_and_rotate_immediately,
    tokens_are_shown_once_listed_and_revoked,
    a_token_expires_and_belongs_to_a_member,
    members_are_invited_changed_and_removed,
    a_company_keeps_an_owner,
    channels_are_listed_renamed_and_deleted_unless_in_use,
    the_audit_log_says_who_changed_what_and_never_a_secret,
}

/// Every list in this part of the API, for an account and a channel of the company.
async fn lists(acme: &Tenant) -> Vec<String> {
    let account = acme.account(json!({"imported_id": "listed"})).await;
    let channel = acme.company.channel("Listed", &["L1", "L2", "L3"]);
    let path = path_of(&account);
    vec![
        "/api/accounts/".to_owned(),
        format!("{path}history/"),
        format!("{path}activity/"),
        "/api/channels/".to_owned(),
        format!("/api/channels/{}/codes/", channel.id),
        "/api/tokens/".to_owned(),
        "/api/members/".to_owned(),
        "/api/audit/".to_owned(),
    ]
}

async fn names(acme: &Tenant, query: &str) -> Vec<String> {
    column(&acme.all_pages(&format!("/api/accounts/{query}"), 200).await, "name")
}

async fn every_path_is_served_with_and_without_its_slash(acme: Tenant) {
    let mut paths = lists(&acme).await;
    let account = acme.shown("listed").await;
    paths.extend(["/api/settings/".to_owned(), path_of(&account), format!("{}pulse/", path_of(&account))]);
    for path in paths {
        let with = acme.get(&path).send().await;
        let without = acme.get(path.trim_end_matches('/')).send().await;
        assert_eq!(with.expect(200), without.expect(200), "{path}");
        let query = acme.get(&format!("{}?", path.trim_end_matches('/'))).send().await;
        assert_eq!(query.expect(200), with.json(), "{path}?");
    }
    let status = path_of(&account) + "status";
    acme.post(&status).json(&json!({"status": "lost"})).send().await.expect(200);
    acme.patch(path_of(&account).trim_end_matches('/')).json(&json!({"name": "x"})).send().await.expect(200);
    acme.delete(path_of(&account).trim_end_matches('/')).send().await.expect(204);
}

async fn unknown_members_are_refused_by_name_everywhere(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "a"})).await;
    let channel = format!("/api/channels/{}/", acme.company.channel("Fair", &["X"]).id);
    let member = acme.all_pages("/api/members/", 5).await[0]["id"].as_str().unwrap().to_owned();
    let table = [
        ("POST", "/api/accounts/".to_owned(), json!({"name": "x"})),
        ("PATCH", path_of(&account), json!({})),
        ("POST", path_of(&account) + "status/", json!({"status": "lost"})),
        ("POST", "/api/channels/".to_owned(), json!({"name": "x"})),
        ("PATCH", channel.clone(), json!({"name": "x"})),
        ("POST", format!("{channel}codes/"), json!({"code": "new"})),
        ("PATCH", format!("{channel}codes/X/"), json!({"archived": true})),
        ("PATCH", "/api/settings/".to_owned(), json!({"cadence_days": 5})),
        ("POST", "/api/settings/ingest-key/rotate/".to_owned(), json!({})),
        ("POST", "/api/settings/inbound-key/rotate/".to_owned(), json!({})),
        ("POST", "/api/tokens/".to_owned(), json!({"name": "x"})),
        ("POST", "/api/members/".to_owned(), json!({"email": "a@b.test", "role": "member"})),
        ("PATCH", format!("/api/members/{member}/"), json!({"role": "owner"})),
    ];
    for (method, path, body) in table {
        let mut body = body;
        body["nmae"] = json!("x");
        body["a/b~c"] = Value::Null;
        let faults = [("/nmae", "unknown_member"), ("/a~1b~0c", "unknown_member")];
        acme.request(method, &path).json(&body).expect_faults(&faults).await;
    }
}

async fn unknown_query_parameters_are_refused_by_name_on_every_list(acme: Tenant) {
    for path in lists(&acme).await {
        let call = acme.get(&format!("{path}?colour=red&limit=5&page=2&colour=blue&Limit=3"));
        let faults =
            [("colour", "unknown_parameter"), ("page", "unknown_parameter"), ("Limit", "unknown_parameter")];
        call.expect_faults(&faults).await;
        acme.get(&format!("{path}?limit=0")).expect_faults(&[("limit", "out_of_range")]).await;
        acme.get(&format!("{path}?cursor=nonsense")).expect_faults(&[("cursor", "invalid_cursor")]).await;
        acme.get(&format!("{path}?limit=1&limit=2")).expect_faults(&[("limit", "repeated")]).await;
    }
}

async fn every_list_returns_items_and_next_cursor(acme: Tenant) {
    let paths = lists(&acme).await;
    acme.account(json!({"imported_id": "b"})).await;
    acme.resend(json!({"imported_id": "listed", "status": "lost"})).await;
    for _ in 0..3 {
        acme.accept(json!({"imported_id": "listed", "kind": "app_opened"})).await;
    }
    acme.company.channel("Another", &[]);
    acme.token_of(Role::Member);
    for email in ["a@b.test", "b@b.test"] {
        acme.company.employ(email, email, Role::Member);
    }
    for path in paths {
        let whole = acme.get(&path).send().await.expect(200);
        assert_eq!(members_of(&whole), ["items", "next_cursor"], "{path}");
        assert_eq!(whole["next_cursor"], Value::Null, "{path}");
        let items = whole["items"].as_array().unwrap();
        assert!(items.len() >= 2, "{path}: {items:?}");
        for limit in [1, 2] {
            assert_eq!(&acme.all_pages(&path, limit).await, items, "{path} by {limit}");
        }
        let times: Vec<&str> = items
            .iter()
            .filter_map(|item| item.get("created_at").or_else(|| item.get("at"))?.as_str())
            .collect();
        assert!(times.is_sorted_by(|a, b| a >= b), "{path} is not newest first");
    }
}

async fn accounts_come_newest_first_and_by_each_sort(server: Server) {
    for (id, name) in [("1", "Beta"), ("2", "alpha"), ("3", "Gamma"), ("4", "émile")] {
        server.account(json!({"imported_id": id, "name": name})).await;
        server.app.clock().advance_seconds(60);
    }
    for (id, at) in [("1", "2026-01-02"), ("3", "2026-01-04")] {
        server.accept(json!({"imported_id": id, "kind": "app_opened", "occurred_at": at})).await;
    }
    let table = [
        ("", ["émile", "Gamma", "alpha", "Beta"]),
        ("?sort=-created_at", ["émile", "Gamma", "alpha", "Beta"]),
        ("?sort=created_at", ["Beta", "alpha", "Gamma", "émile"]),
        ("?sort=name", ["alpha", "Beta", "Gamma", "émile"]),
        ("?sort=-name", ["émile", "Gamma", "Beta", "alpha"]),
    ];
    for (query, expected) in table {
        assert_eq!(names(&server, query).await, expected, "{query}");
    }
    let seen = names(&server, "?sort=-last_seen_at").await;
    assert_eq!(seen[..2], ["Gamma", "Beta"], "the most recently seen first");
    assert_eq!(seen.len(), 4, "accounts never seen come last: {seen:?}");
    let longest_ago = names(&server, "?sort=last_seen_at").await;
    assert_eq!(longest_ago[..2], ["Beta", "Gamma"], "those never seen come last here too");
    for sort in ["size", "Name", "+last_seen_at", "name,created_at"] {
        server.get(&format!("/api/accounts/?sort={sort}")).expect_faults(&[("sort", "unknown_sort")]).await;
    }
}

async fn accounts_are_paged_by_cursor_in_every_sort_without_gap_or_repeat(acme: Tenant) {
    for n in 0..23 {
        // Names repeat, so that an order by name has ties.
        acme.account(json!({"imported_id": format!("crm-{n}"), "name": format!("Name {}", n % 4)})).await;
        if n % 3 == 0 {
            let at = format!("2026-01-0{}T00:00:00Z", 1 + n % 4);
            acme.accept(json!({"imported_id": format!("crm-{n}"), "kind": "app_opened", "occurred_at": at}))
                .await;
        }
    }
    for sort in ["-created_at", "created_at", "name", "-name", "-last_seen_at"] {
        let path = format!("/api/accounts/?sort={sort}");
        let whole = column(&acme.all_pages(&path, 200).await, "id");
        assert_eq!(whole.len(), 23);
        for limit in [1, 4, 22, 23] {
            assert_eq!(column(&acme.all_pages(&path, limit).await, "id"), whole, "{sort} by {limit}");
        }
    }
    let first = acme.get("/api/accounts/?limit=5").send().await.expect(200);
    acme.account(json!({"imported_id": "new"})).await;
    let next = format!("/api/accounts/?limit=5&cursor={}", first["next_cursor"].as_str().unwrap());
    let second = acme.get(&next).send().await.expect(200);
    let whole = column(&acme.all_pages("/api/accounts/", 200).await, "id");
    assert_eq!(
        column(second["items"].as_array().unwrap(), "id"),
        whole[6..11],
        "new accounts don't shift a page"
    );
}

async fn a_cursor_belongs_to_its_list_and_sort(acme: Tenant) {
    for n in 0..3 {
        acme.account(json!({"imported_id": format!("crm-{n}")})).await;
        acme.company.channel(&format!("Channel {n}"), &[]);
    }
    let cursor = async |path: &str| {
        let page = acme.get(&format!("{path}limit=1")).send().await.expect(200);
        page["next_cursor"].as_str().unwrap().to_owned()
    };
    let by_name = cursor("/api/accounts/?sort=name&").await;
    let channels = cursor("/api/channels/?").await;
    acme.get(&format!("/api/accounts/?sort=name&cursor={by_name}")).send().await.expect(200);
    for (path, cursor) in
        [("/api/accounts/?", &by_name), ("/api/accounts/?", &channels), ("/api/audit/?", &channels)]
    {
        acme.get(&format!("{path}cursor={cursor}")).expect_faults(&[("cursor", "invalid_cursor")]).await;
    }
}

async fn accounts_are_filtered_by_status(acme: Tenant) {
    for stage in ["prospect", "customer", "in_trial", "lost"] {
        acme.account(json!({"imported_id": stage, "status": stage})).await;
    }
    let table: [(&str, &[&str]); 6] = [
        ("?status=customer", &["customer"]),
        ("?status=customer,lost", &["lost", "customer"]),
        ("?status=customer&status=lost", &["lost", "customer"]),
        ("?status=do_not_contact", &[]),
        ("?status=", &["lost", "in_trial", "customer", "prospect"]),
        ("?status=lost,lost", &["lost"]),
    ];
    for (query, expected) in table {
        assert_eq!(names(&acme, query).await, expected, "{query}");
    }
    let call = acme.get("/api/accounts/?status=customer,won,Lost");
    call.expect_faults(&[("status", "unknown_status"), ("status", "unknown_status")]).await;
}

async fn accounts_are_filtered_by_words_of_the_name_and_by_the_imported_id(acme: Tenant) {
    let accounts = [
        ("CRM-00418", "Nordlys Energi AS"),
        ("crm-9", "Keller & Sohn"),
        ("x_%", "Łódź Ōkubo"),
        ("solo", "100% Organic_Food"),
    ];
    for (id, name) in accounts {
        acme.account(json!({"imported_id": id, "name": name})).await;
    }
    let table: [(&str, &[&str]); 15] = [
        ("?q=nordlys", &["Nordlys Energi AS"]),
        ("?q=NORD", &["Nordlys Energi AS"]),
        ("?q=energi+nord", &["Nordlys Energi AS"]),
        ("?q=lys", &[]),
        ("?q=nordlys+keller", &[]),
        ("?q=keller%20sohn", &["Keller & Sohn"]),
        ("?q=crm-0", &["Nordlys Energi AS"]),
        ("?q=CRM-00418", &["Nordlys Energi AS"]),
        ("?q=%C5%82%C3%B3d%C5%BA", &["Łódź Ōkubo"]),
        ("?q=organic", &["100% Organic_Food"]),
        ("?q=nobody", &[]),
        ("?imported_id=crm-9", &["Keller & Sohn"]),
        ("?imported_id=CRM-9", &[]),
        ("?imported_id=crm", &[]),
        ("?imported_id=x_%25", &["Łódź Ōkubo"]),
    ];
    for (query, expected) in table {
        assert_eq!(names(&acme, query).await, expected, "{query}");
    }
    acme.patch(&path_of(&acme.shown("crm-9").await))
        .json(&json!({"name": "Renamed"}))
        .send()
        .await
        .expect(200);
    assert_eq!(names(&acme, "?q=keller").await, [""; 0]);
    assert_eq!(names(&acme, "?q=ren").await, ["Renamed"]);
}

async fn accounts_are_filtered_by_channel(acme: Tenant) {
    let fair = acme.company.channel("Fair", &["FAIR"]);
    let other = acme.company.channel("Other", &["OTHER"]);
    acme.account(json!({"imported_id": "a", "promo_code": "fair"})).await;
    acme.account(json!({"imported_id": "b", "promo_code": "other"})).await;
    acme.account(json!({"imported_id": "c"})).await;
    assert_eq!(names(&acme, &format!("?channel={}", fair.id)).await, ["a"]);
    assert_eq!(names(&acme, &format!("?channel={}", other.id)).await, ["b"]);
    let unknown = rapport_domain::id::ChannelId::from_bytes([1; 16]);
    assert_eq!(names(&acme, &format!("?channel={unknown}")).await, [""; 0]);
    acme.get("/api/accounts/?channel=Fair").expect_faults(&[("channel", "malformed")]).await;
}

async fn accounts_are_filtered_by_tracked_and_overdue(server: Server) {
    for stage in ["prospect", "in_negotiation", "in_trial", "customer"] {
        server.account(json!({"imported_id": stage, "status": stage})).await;
    }
    assert_eq!(names(&server, "?tracked=true").await, ["customer", "in_trial"]);
    assert_eq!(names(&server, "?tracked=false").await, ["in_negotiation", "prospect"]);
    assert_eq!(names(&server, "?overdue=true").await, [""; 0]);
    let trial = path_of(&server.shown("in_trial").await);
    server.patch(&trial).json(&json!({"cadence_days": 60})).send().await.expect(200);
    server.app.clock().advance_days(42);
    assert_eq!(names(&server, "?overdue=true").await, ["customer"]);
    assert_eq!(names(&server, "?overdue=false").await, ["in_trial", "in_negotiation", "prospect"]);
    assert_eq!(names(&server, "?overdue=false&tracked=true").await, ["in_trial"]);
    let customer = path_of(&server.shown("customer").await);
    server.patch(&customer).json(&json!({"snoozed_until": "2026-03-01"})).send().await.expect(200);
    assert_eq!(names(&server, "?overdue=true").await, [""; 0], "a snoozed account is not overdue");
    for item in server.all_pages("/api/accounts/", 200).await {
        assert_eq!(item["overdue"], json!(false), "the list and its items agree");
    }
    for parameter in ["tracked", "overdue"] {
        for word in ["1", "yes", "True"] {
            let call = server.get(&format!("/api/accounts/?{parameter}={word}"));
            call.expect_faults(&[(parameter, "wrong_type")]).await;
        }
    }
}

async fn accounts_are_filtered_by_when_they_were_seen(acme: Tenant) {
    for (id, at) in
        [("a", "2026-01-02T10:00:00Z"), ("b", "2026-01-03T10:00:00Z"), ("c", "2026-01-04T10:00:00Z")]
    {
        acme.account(json!({ "imported_id": id })).await;
        acme.accept(json!({"imported_id": id, "kind": "app_opened", "occurred_at": at})).await;
    }
    acme.account(json!({"imported_id": "never"})).await;
    let table: [(&str, &[&str]); 7] = [
        ("?seen_after=2026-01-03", &["c", "b"]),
        ("?seen_before=2026-01-03", &["a"]),
        ("?seen_after=2026-01-02T11:00:00Z&seen_before=2026-01-04T09:59:59Z", &["b"]),
        ("?seen_after=2026-01-04T11:00:00%2B02:00", &["c"]),
        ("?seen_after=2026-01-04T11:00:00+02:00", &["c"]),
        ("?seen_before=2020-01-01", &[]),
        ("?seen_after=2026-01-02&sort=-last_seen_at", &["c", "b", "a"]),
    ];
    for (query, expected) in table {
        assert_eq!(names(&acme, query).await, expected, "{query}");
    }
    let call = acme.get("/api/accounts/?seen_after=soon&seen_before=2026-13-01");
    call.expect_faults(&[("seen_after", "malformed"), ("seen_before", "malformed")]).await;
}

async fn accounts_must_match_all_filters(acme: Tenant) {
    let fair = acme.company.channel("Fair", &["FAIR"]);
    for n in 0..8 {
        let mut body = json!({"imported_id": format!("crm-{n}"), "name": format!("Firm {n}")});
        body["status"] = json!(if n % 2 == 0 { "customer" } else { "lost" });
        if n % 4 < 2 {
            body["promo_code"] = json!("FAIR");
        }
        acme.account(body).await;
        acme.accept(json!({"imported_id": format!("crm-{n}"), "kind": "custom", "occurred_at": format!("2026-01-0{}", 1 + n % 5)})).await;
    }
    let both = names(&acme, &format!("?channel={}&status=customer", fair.id)).await;
    assert_eq!(both, ["Firm 4", "Firm 0"]);
    let three =
        names(&acme, &format!("?channel={}&status=customer&seen_after=2026-01-04T12:00:00Z", fair.id)).await;
    assert_eq!(three, ["Firm 4"]);
    let four =
        format!("?channel={}&status=customer&tracked=true&overdue=false&q=firm+4&imported_id=crm-4", fair.id);
    assert_eq!(names(&acme, &four).await, ["Firm 4"]);
    assert_eq!(names(&acme, &format!("{four}&seen_before=2026-01-01")).await, [""; 0]);
}

async fn an_invalid_filter_is_refused(acme: Tenant) {
    let query = "limit=ten&cursor=zz&colour=red&status=nope&sort=size&seen_after=x&tracked=1&channel=y&q=%00";
    let faults = [
        ("limit", "wrong_type"),
        ("cursor", "invalid_cursor"),
        ("colour", "unknown_parameter"),
        ("status", "unknown_status"),
        ("sort", "unknown_sort"),
        ("seen_after", "malformed"),
        ("tracked", "wrong_type"),
        ("channel", "malformed"),
        ("q", "nul_character"),
    ];
    acme.get(&format!("/api/accounts/?{query}")).expect_faults(&faults).await;
    let long = "x".repeat(256);
    for parameter in ["q", "imported_id"] {
        acme.get(&format!("/api/accounts/?{parameter}={long}"))
            .expect_faults(&[(parameter, "too_long")])
            .await;
        acme.get(&format!("/api/accounts/?{parameter}=a&{parameter}=b"))
            .expect_faults(&[(parameter, "repeated")])
            .await;
    }
}

async fn an_account_is_created_by_hand_with_every_member(acme: Tenant) {
    acme.company.channel("Fair", &["FAIR"]);
    let body = json!({
        "name": "Keller", "status": "customer", "imported_id": "k", "custom_fields": {"n": 1, "gone": null},
        "promo_code": "fair", "captured_value": "5", "captured_value_currency": "eur", "cadence_days": 7,
        "snoozed_until": "2026-02-01",
    });
    let made = acme.post("/api/accounts/").json(&body).send().await.expect(201);
    let expected = json!({
        "id": made["id"], "name": "Keller", "status": "customer", "imported_id": "k", "custom_fields": {"n": 1},
        "promo_code": "FAIR", "channel": made["channel"], "captured_value": "5.00", "captured_value_currency": "EUR",
        "cadence_days": 7, "snoozed_until": "2026-02-01", "acquired_at": START, "created_at": START,
        "updated_at": START, "first_seen_at": null, "last_seen_at": null, "last_contact_at": null, "tracked": true,
        "overdue": false, "days_overdue": 0, "due_at": "2026-01-12T09:00:00Z",
    });
    assert_eq!(made, expected);
    assert_eq!(acme.get(&path_of(&made)).send().await.expect(200), made);
    let events = acme.events(&made);
    assert_eq!(column(&events, "type"), ["account.created"]);
    assert_eq!(events[0]["data"]["source"], json!("operator"));
    let history = acme.history(&made).await;
    assert_eq!((history.len(), &history[0]["source"]), (1, &json!("operator")));
}

async fn an_account_created_by_hand_only_needs_a_name(acme: Tenant) {
    let made = acme.post("/api/accounts/").json(&json!({"name": "Keller"})).send().await.expect(201);
    assert_eq!((&made["status"], &made["imported_id"]), (&json!("prospect"), &Value::Null));
    let other =
        acme.post("/api/accounts/").json(&json!({"name": "Keller", "imported_id": null})).send().await;
    assert_ne!(other.expect(201)["id"], made["id"], "names need not be unique, nor missing imported_ids");
    acme.post("/api/accounts/").json(&json!({})).expect_faults(&[("/name", "required")]).await;
    acme.post("/api/accounts/").json(&json!({"name": null})).expect_faults(&[("/name", "required")]).await;
}

async fn an_account_is_edited_member_by_member(server: Server) {
    server.app.channel("Fair", &["FAIR"]);
    let mut current = server.account(json!({"imported_id": "a", "custom_fields": {"n": 1, "m": 2}})).await;
    let path = path_of(&current);
    server.app.clock().advance_days(1);
    let edits = [
        (json!({"name": "New"}), json!({"name": "New"})),
        (json!({"imported_id": "b"}), json!({"imported_id": "b"})),
        (json!({"custom_fields": {"n": null, "o": 3}}), json!({"custom_fields": {"m": 2, "o": 3}})),
        (json!({"captured_value": "5"}), json!({"captured_value": "5.00", "captured_value_currency": "USD"})),
        (json!({"captured_value_currency": "EUR"}), json!({"captured_value_currency": "EUR"})),
        (json!({"cadence_days": 9}), json!({"cadence_days": 9})),
        (json!({"snoozed_until": "2026-02-01"}), json!({"snoozed_until": "2026-02-01"})),
        (
            json!({"promo_code": "fair"}),
            json!({"promo_code": "FAIR", "channel": null, "acquired_at": "2026-01-06T09:00:00Z"}),
        ),
        (json!({"status": "contacted"}), json!({"status": "contacted"})),
    ];
    for (edit, changed) in edits {
        let edited = server.patch(&path).json(&edit).send().await.expect(200);
        for (member, value) in current.as_object().unwrap() {
            let expected = match changed.get(member) {
                Some(expected) if member != "channel" => expected,
                Some(_) => &edited["channel"],
                None if member == "updated_at" => &json!("2026-01-06T09:00:00Z"),
                None => value,
            };
            assert_eq!(&edited[member], expected, "{edit}: {member}");
        }
        assert_eq!(server.get(&path).send().await.expect(200), edited);
        current = edited;
    }
    let nulls = server.patch(&path).json(&json!({"name": null, "status": null, "custom_fields": null}));
    let refused = ["/name", "/status", "/custom_fields"].map(|member| (member, "not_clearable"));
    nulls.expect_faults(&refused).await;
    assert_eq!(current["channel"]["name"], json!("Fair"));
    assert!(server.app.find("a").is_none(), "the old imported_id is free");
    server.account(json!({"imported_id": "a"})).await;
}

async fn an_edit_clears_by_null(acme: Tenant) {
    acme.company.channel("Fair", &["FAIR"]);
    let body = json!({
        "name": "Keller", "imported_id": "k", "promo_code": "fair", "captured_value": "5", "cadence_days": 7,
        "snoozed_until": "2026-02-01",
    });
    let made = acme.post("/api/accounts/").json(&body).send().await.expect(201);
    let null = json!({"imported_id": null, "promo_code": null, "captured_value": null, "cadence_days": null, "snoozed_until": null});
    let cleared = acme.patch(&path_of(&made)).json(&null).send().await.expect(200);
    let members = [
        "imported_id",
        "promo_code",
        "channel",
        "acquired_at",
        "captured_value",
        "captured_value_currency",
        "cadence_days",
        "snoozed_until",
    ];
    for member in members {
        assert_eq!(cleared[member], Value::Null, "{member}");
    }
    assert_eq!(cleared["name"], json!("Keller"));
}

async fn deleting_an_account_deletes_its_data_and_frees_its_imported_id(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "a", "status": "customer"})).await;
    acme.accept(json!({"imported_id": "a", "kind": "feature_used", "feature": "f"})).await;
    let path = path_of(&account);
    let deleted = acme.delete(&path).send().await;
    assert_eq!((deleted.status, deleted.body.len()), (204, 0));
    acme.delete(&path).expect_refused(404, "not_found").await;
    for part in ["", "history/", "activity/", "pulse/"] {
        acme.get(&format!("{path}{part}")).expect_refused(404, "not_found").await;
    }
    assert_eq!(names(&acme, "").await, [""; 0]);
    assert_eq!(names(&acme, "?q=a").await, [""; 0]);
    assert_eq!(
        column(&acme.events(&account), "type"),
        ["account.created"],
        "frozen events are still delivered"
    );
    let event = json!([{"imported_id": "a", "kind": "app_opened"}]);
    assert_eq!(acme.ingest(event).await.expect(200)["accepted"], json!(0), "it no longer matches");
    let again = acme.account(json!({"imported_id": "a"})).await;
    assert_ne!(again["id"], account["id"]);
    assert_eq!((&again["last_seen_at"], &again["status"]), (&Value::Null, &json!("prospect")));
    assert_eq!(acme.history(&again).await.len(), 1);
}

async fn the_operators_status_change_returns_the_account_and_whether_it_moved(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "a"})).await;
    let path = format!("{}status/", path_of(&account));
    let moved =
        acme.post(&path).json(&json!({"status": "customer", "note": "signed"})).send().await.expect(200);
    let mut shown = acme.shown("a").await;
    shown["moved"] = json!(true);
    assert_eq!(moved, shown);
    let again = acme.post(&path).json(&json!({"status": "customer"})).send().await.expect(200);
    assert_eq!(again["moved"], json!(false));
    for note in [json!(null), json!("")] {
        let body = json!({"status": "lost", "note": note});
        acme.post(&path).json(&body).send().await.expect(200);
    }
    let notes: Vec<Value> = acme.history(&account).await.iter().map(|entry| entry["note"].clone()).collect();
    assert_eq!(json!(notes), json!([null, "signed", null]));
    acme.post(&path).json(&json!({})).expect_faults(&[("/status", "required")]).await;
    acme.post(&path).json(&json!({"status": null})).expect_faults(&[("/status", "required")]).await;
    let body = json!({"status": "won", "note": 5});
    acme.post(&path)
        .json(&body)
        .expect_faults(&[("/status", "unknown_status"), ("/note", "wrong_type")])
        .await;
}

async fn history_items_have_the_decided_members_newest_first(server: Server) {
    let account = server.account(json!({"imported_id": "a"})).await;
    let path = path_of(&account);
    server.app.clock().advance_seconds(60);
    server.accept(json!({"imported_id": "a", "kind": "trial_started"})).await;
    server.app.clock().advance_seconds(60);
    let change = json!({"status": "lost", "note": "no budget"});
    server.post(&format!("{path}status/")).json(&change).send().await.expect(200);
    let page = server.get(&format!("{path}history/")).send().await.expect(200);
    let items = page["items"].as_array().unwrap();
    for item in items {
        assert_eq!(members_of(item), ["actor", "at", "from", "id", "note", "source", "to"]);
        assert_eq!(members_of(&item["actor"]), ["id", "name", "type"]);
    }
    assert_eq!(column(items, "to"), ["lost", "in_trial", "prospect"]);
    assert_eq!(column(items, "from"), ["in_trial", "prospect", "null"]);
    assert_eq!(column(items, "source"), ["operator", "automation", "upsert"]);
    assert_eq!(column(items, "at"), ["2026-01-05T09:02:00Z", "2026-01-05T09:01:00Z", START]);
    assert_eq!(column(items, "note"), ["no budget", "null", "null"]);
    let actors: Vec<Value> = items.iter().map(|item| item["actor"].clone()).collect();
    assert_eq!(column(&actors, "type"), ["token", "ingest_key", "token"]);
}

async fn activity_items_have_the_decided_members_latest_first(server: Server) {
    let account = server.account(json!({"imported_id": "a"})).await;
    let events = json!([
        {"imported_id": "a", "kind": "feature_used", "feature": "f", "occurred_at": "2026-01-02T00:00:00Z", "metadata": {"n": 1}},
        {"imported_id": "a", "kind": "app_opened", "occurred_at": "2026-01-04T00:00:00Z"},
        {"imported_id": "a", "kind": "custom", "occurred_at": "2026-01-03T00:00:00Z"},
    ]);
    server.app.clock().advance_seconds(5);
    assert_eq!(server.ingest(events).await.expect(200)["accepted"], json!(3));
    let items = server.all_pages(&format!("{}activity/", path_of(&account)), 2).await;
    assert_eq!(column(&items, "kind"), ["app_opened", "custom", "feature_used"]);
    let expected = json!({
        "kind": "feature_used", "feature": "f", "occurred_at": "2026-01-02T00:00:00Z",
        "received_at": "2026-01-05T09:00:05Z", "metadata": {"n": 1},
    });
    assert_eq!(items[2], expected);
}

async fn pulse_has_the_decided_members_and_ends_today_in_the_companys_zone(acme: Tenant) {
    acme.company.set(json!({"time_zone": "Pacific/Kiritimati"}));
    let account = acme.account(json!({"imported_id": "a"})).await;
    let path = format!("{}pulse/", path_of(&account));
    let empty = acme.get(&path).send().await.expect(200);
    assert_eq!(members_of(&empty), ["days", "features", "first_seen_at", "last_seen_at"]);
    assert_eq!((&empty["first_seen_at"], &empty["features"]), (&Value::Null, &json!([])));
    let days = empty["days"].as_array().unwrap();
    assert_eq!(days.len(), 90);
    // 09:00 in UTC is 23:00 on the same day, fourteen hours ahead.
    assert_eq!(days[89], json!({"date": "2026-01-05", "count": 0}));
    assert!(column(days, "date").is_sorted(), "oldest first");
    acme.accept(
        json!({"imported_id": "a", "kind": "custom", "feature": "f", "occurred_at": "2026-01-04T10:00:00Z"}),
    )
    .await;
    acme.accept(json!({"imported_id": "a", "kind": "app_opened", "occurred_at": "2026-01-04T09:59:59Z"}))
        .await;
    let pulse = acme.get(&path).send().await.expect(200);
    assert_eq!(pulse["days"][89], json!({"date": "2026-01-05", "count": 1}), "10:00 is midnight there");
    assert_eq!(pulse["days"][88], json!({"date": "2026-01-04", "count": 1}));
    assert_eq!(
        pulse["features"],
        json!([{"feature": "f", "count": 1, "last_used_at": "2026-01-04T10:00:00Z"}])
    );
}

async fn settings_of_a_new_company_are_the_decided_defaults(acme: Tenant) {
    let settings = acme.get("/api/settings/").send().await.expect(200);
    let expected = json!({
        "project": acme.slug(), "name": acme.slug(), "cadence_days": 42, "tracked_stages": ["customer", "in_trial"],
        "digest_enabled": true, "digest_weekday": "monday", "time_zone": "UTC", "default_currency": "USD",
        "audit_days": 730, "export_role": "admin", "delete_role": "admin", "session_idle_minutes": 20_160, "session_max_minutes": 129_600, "second_factor_required": false,
        "late_events_move": true,
        "ingest_key": settings["ingest_key"], "inbound_key": settings["inbound_key"], "mail_configured": false,
        "deletion": null,
    });
    assert_eq!(settings, expected);
    let key = &settings["ingest_key"];
    assert_eq!(members_of(key), ["created_at", "last_used_at", "prefix"]);
    assert!(
        key["prefix"].as_str().unwrap().starts_with("rik_"),
        "the ingest key is created with the company"
    );
    assert!(!acme.get("/api/settings/").send().await.text().contains(acme.company.ingest_key_text()));
    let member = acme.token_of(Role::Member);
    acme.get("/api/settings/").token(&member).send().await.expect(200);
}

async fn settings_change_member_by_member(acme: Tenant) {
    let mut current = acme.get("/api/settings/").send().await.expect(200);
    let changes = [
        json!({"name": "Acme & Sons"}),
        json!({"cadence_days": 14}),
        json!({"tracked_stages": ["customer", "in_trial", "in_negotiation"]}),
        json!({"digest_enabled": false}),
        json!({"digest_weekday": "sunday"}),
        json!({"time_zone": "Europe/Berlin"}),
        json!({"default_currency": "EUR"}),
        json!({"export_role": "member"}),
        json!({"delete_role": "member", "export_role": "admin"}),
        json!({"session_idle_minutes": 30}),
        json!({"session_max_minutes": 60}),
        json!({"late_events_move": false}),
        json!({"session_idle_minutes": 129_600, "session_max_minutes": 525_600}),
        json!({"cadence_days": 1, "time_zone": "UTC"}),
        json!({}),
    ];
    for change in changes {
        let changed = acme.patch("/api/settings/").json(&change).send().await.expect(200);
        for (member, value) in current.as_object().unwrap() {
            assert_eq!(&changed[member], change.get(member).unwrap_or(value), "{change}: {member}");
        }
        assert_eq!(acme.get("/api/settings/").send().await.expect(200), changed);
        current = changed;
    }
    let lower = acme.patch("/api/settings/").json(&json!({"default_currency": "jpy"})).send().await;
    assert_eq!(lower.expect(200)["default_currency"], json!("JPY"));
}

async fn invalid_settings_are_refused(acme: Tenant) {
    let table = [
        (json!({"cadence_days": 0}), "/cadence_days", "out_of_range"),
        (json!({"cadence_days": 3651}), "/cadence_days", "out_of_range"),
        (json!({"cadence_days": "42"}), "/cadence_days", "wrong_type"),
        (json!({"tracked_stages": []}), "/tracked_stages", "empty"),
        (json!({"tracked_stages": ["lost"]}), "/tracked_stages", "not_trackable"),
        (json!({"tracked_stages": ["won"]}), "/tracked_stages", "unknown_status"),
        (json!({"tracked_stages": "customer"}), "/tracked_stages", "wrong_type"),
        (json!({"digest_enabled": "yes"}), "/digest_enabled", "wrong_type"),
        (json!({"export_role": "viewer"}), "/export_role", "unknown_role"),
        (json!({"delete_role": "owner"}), "/delete_role", "unknown_role"),
        (json!({"delete_role": true}), "/delete_role", "wrong_type"),
        (json!({"digest_weekday": "Monday"}), "/digest_weekday", "unknown_weekday"),
        (json!({"digest_weekday": 1}), "/digest_weekday", "wrong_type"),
        (json!({"time_zone": "Mars/Olympus"}), "/time_zone", "unknown_time_zone"),
        (json!({"time_zone": ""}), "/time_zone", "unknown_time_zone"),
        (json!({"default_currency": "XYZ"}), "/default_currency", "unknown_currency"),
        (json!({"session_idle_minutes": 14}), "/session_idle_minutes", "out_of_range"),
        (json!({"session_idle_minutes": "long"}), "/session_idle_minutes", "wrong_type"),
        (json!({"session_max_minutes": 525_601}), "/session_max_minutes", "out_of_range"),
        (json!({"session_max_minutes": 20_159}), "/session_max_minutes", "out_of_range"),
        (json!({"late_events_move": "no"}), "/late_events_move", "wrong_type"),
        (json!({"project": "other"}), "/project", "unknown_member"),
        (json!({"ingest_key": null}), "/ingest_key", "unknown_member"),
    ];
    for (body, pointer, code) in table {
        acme.patch("/api/settings/").json(&body).expect_faults(&[(pointer, code)]).await;
    }
    let mixed = json!({"cadence_days": 7, "time_zone": "Mars/Olympus"});
    acme.patch("/api/settings/").json(&mixed).expect_faults(&[("/time_zone", "unknown_time_zone")]).await;
}

async fn tracked_stages_decide_who_is_tracked(acme: Tenant) {
    for stage in ["in_negotiation", "in_trial", "customer"] {
        acme.account(json!({"imported_id": stage, "status": stage})).await;
    }
    acme.company.set(json!({"tracked_stages": ["in_negotiation"]}));
    assert_eq!(names(&acme, "?tracked=true").await, ["in_negotiation"]);
    assert_eq!(acme.shown("customer").await["tracked"], json!(false));
    assert_eq!(acme.shown("customer").await["due_at"], Value::Null);
    assert_eq!(acme.shown("in_negotiation").await["tracked"], json!(true));
}

async fn keys_are_shown_once_and_rotate_immediately(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    for (path, member, prefix) in [
        ("/api/settings/ingest-key/rotate/", "ingest_key", "rik_"),
        ("/api/settings/inbound-key/rotate/", "inbound_key", "rin_"),
    ] {
        let first = acme.post(path).send().await.expect(200);
        let second = acme.post(path).json(&json!({})).send().await.expect(200);
        let key = second[member].as_str().unwrap();
        assert!(key.starts_with(prefix) && key.len() >= prefix.len() + 32, "at least 160 bits: {key}");
        assert_eq!(second["key"], second[member]);
        assert_ne!(first["key"], second["key"]);
        let settings = acme.get("/api/settings/").send().await;
        assert!(!settings.text().contains(key), "shown once");
        assert_eq!(settings.json()[member]["prefix"], second["prefix"]);
    }
    let event = json!([{"imported_id": "a", "kind": "app_opened"}]);
    acme.ingesting(event).expect_refused(401, "unauthenticated").await;
}

async fn tokens_are_shown_once_listed_and_revoked(acme: Tenant) {
    let made = acme.post("/api/tokens/").json(&json!({"name": "CRM"})).send().await.expect(201);
    let members = "created_at expires_at id last_used_at name owner prefix rate_limit role token";
    assert_eq!(members_of(&made).join(" "), members);
    for member in ["expires_at", "owner", "rate_limit"] {
        assert_eq!(made[member], Value::Null, "the company's, without an end or a limit of its own");
    }
    assert_eq!(made["role"], json!("admin"), "the default role");
    let token = made["token"].as_str().unwrap();
    assert!(token.starts_with("rap_") && token.len() >= 36, "{token}");
    acme.get("/api/accounts/").token(token).send().await.expect(200);
    let listed = acme.get("/api/tokens/").send().await;
    assert!(!listed.text().contains(token), "shown once");
    assert_eq!(listed.expect(200)["items"].as_array().unwrap().len(), 2);
    assert_eq!(listed.json()["items"][0]["name"], json!("CRM"), "newest first");
    let path = format!("/api/tokens/{}/", made["id"].as_str().unwrap());
    acme.delete(&path).send().await.expect(204);
    acme.get("/api/accounts/").token(token).expect_refused(401, "unauthenticated").await;
    acme.delete(&path).expect_refused(404, "not_found").await;
    let body = json!({"role": "king"});
    acme.post("/api/tokens/")
        .json(&body)
        .expect_faults(&[("/name", "required"), ("/role", "unknown_role")])
        .await;
}

async fn a_token_expires_and_belongs_to_a_member(server: Server) {
    let ana = server.company.employ("ana@acme.test", "Ana", Role::Admin).person.to_string();
    let tokens = || server.post("/api/tokens/");
    let body =
        json!({"name": "CRM", "role": "admin", "owner": ana, "expires_at": "2026-02-01T00:00:00+01:00"});
    let made = tokens().json(&body).send().await.expect(201);
    assert_eq!((&made["owner"], &made["expires_at"]), (&json!(ana), &json!("2026-01-31T23:00:00Z")));
    let token = made["token"].as_str().unwrap();
    let channel = |name: &str| server.post("/api/channels/").token(token).json(&json!({"name": name}));
    channel("Fair").send().await.expect(201);
    let path = format!("/api/members/{ana}/");
    server.patch(&path).json(&json!({"role": "member"})).send().await.expect(200);
    channel("Partners").expect_refused(403, "role_required").await;
    server.get("/api/accounts/").token(token).send().await.expect(200);

    let admin = server.token_of(Role::Admin);
    let listed = server.get("/api/tokens/").token(&admin).send().await.expect(200);
    let names: Vec<String> = column(listed["items"].as_array().unwrap(), "name");
    assert_eq!(names, ["a admin token", "CRM"], "not the owner's");
    let owners = server.all_pages("/api/tokens/", 50).await;
    assert_eq!(column(&owners, "name"), ["a admin token", "CRM", "First token"]);
    let first = format!("/api/tokens/{}/", owners[2]["id"].as_str().unwrap());
    server.delete(&first).token(&admin).expect_refused(403, "role_required").await;

    server.app.clock().set(Time::parse("2026-01-31T23:00:00Z").unwrap());
    let expired = server.get("/api/accounts/").token(token).send().await;
    let unknown = server.get("/api/accounts/").token(&unknown_token(&server)).send().await;
    assert_eq!(
        expired.expect_problem(401, "unauthenticated"),
        unknown.expect_problem(401, "unauthenticated")
    );

    let fresh = tokens().json(&json!({"name": "x", "role": "member", "owner": ana})).send().await.expect(201);
    let fresh = fresh["token"].as_str().unwrap();
    server.get("/api/accounts/").token(fresh).send().await.expect(200);
    server.delete(&path).send().await.expect(204);
    server.get("/api/accounts/").token(fresh).expect_refused(401, "unauthenticated").await;
    let limited = tokens().json(&json!({"name": "x", "rate_limit": 20})).send().await.expect(201);
    assert_eq!(limited["rate_limit"], json!(20));
    assert_eq!(server.all_pages("/api/tokens/", 50).await[0]["rate_limit"], json!(20));
    let log = server.all_pages("/api/audit/?action=token.created", 1).await;
    assert_eq!(log[0]["detail"]["rate_limit"], json!(20));
    let faults: [(Value, &str, &str); 7] = [
        (json!({"name": "x", "rate_limit": 0}), "/rate_limit", "out_of_range"),
        (json!({"name": "x", "rate_limit": "20"}), "/rate_limit", "wrong_type"),
        (json!({"name": "x", "expires_at": "2026-01-01"}), "/expires_at", "in_the_past"),
        (json!({"name": "x", "expires_at": "2036-02-01"}), "/expires_at", "out_of_range"),
        (json!({"name": "x", "expires_at": "never"}), "/expires_at", "malformed"),
        (json!({"name": "x", "owner": ana}), "/owner", "unknown_person"),
        (json!({"name": "x", "owner": "ana"}), "/owner", "malformed"),
    ];
    for (body, pointer, code) in faults {
        tokens().json(&body).expect_faults(&[(pointer, code)]).await;
    }
}

/// A well-formed token of the company that was never created.
fn unknown_token(tenant: &Tenant) -> String {
    issue(Kind::ApiToken, tenant.company.id(), [7; 20]).text
}

async fn members_are_invited_changed_and_removed(acme: Tenant) {
    let body = json!({"email": format!("Ana@{}.test", acme.slug()), "name": "Ana", "role": "admin"});
    let invited = acme.post("/api/members/").json(&body).send().await.expect(201);
    assert_eq!(invited["email"], json!(format!("ana@{}.test", acme.slug())), "email addresses ignore case");
    let expected =
        ["created_at", "email", "expired", "expires_at", "id", "invited_by", "link", "mailed", "role"];
    assert_eq!(members_of(&invited), expected, "nothing about a person");
    assert_eq!(acme.all_pages("/api/members/", 50).await.len(), 1, "they have not accepted");
    acme.post("/api/members/").json(&body).expect_refused(409, "already_invited").await;
    let bo = acme.company.employ("bo@acme.test", "Bo", Role::Admin);
    let path = format!("/api/members/{}/", bo.person);
    let shown = acme.get(&path).send().await.expect(200);
    assert_eq!(members_of(&shown), ["active", "created_at", "deactivated_at", "email", "id", "name", "role"]);
    let again = json!({"email": "bo@acme.test", "role": "member"});
    acme.post("/api/members/").json(&again).expect_refused(409, "already_a_member").await;
    let changed =
        acme.patch(&path).json(&json!({"role": "member", "active": false})).send().await.expect(200);
    assert_eq!((&changed["role"], &changed["active"]), (&json!("member"), &json!(false)));
    assert_eq!(changed["deactivated_at"], json!(START));
    let back = acme.patch(&path).json(&json!({"active": true})).send().await.expect(200);
    assert_eq!((&back["active"], &back["deactivated_at"]), (&json!(true), &Value::Null));
    acme.delete(&path).send().await.expect(204);
    acme.get(&path).expect_refused(404, "not_found").await;
    let nobody = json!({"email": "no address", "role": "king", "name": ""});
    let faults = [("/email", "malformed"), ("/role", "unknown_role"), ("/name", "empty")];
    acme.post("/api/members/").json(&nobody).expect_faults(&faults).await;
    acme.post("/api/members/")
        .json(&json!({}))
        .expect_faults(&[("/email", "required"), ("/role", "required")])
        .await;
}

async fn a_company_keeps_an_owner(acme: Tenant) {
    let owner = acme.all_pages("/api/members/", 5).await[0].clone();
    assert_eq!(owner["role"], json!("owner"));
    let path = format!("/api/members/{}/", owner["id"].as_str().unwrap());
    acme.delete(&path).expect_refused(409, "last_owner").await;
    for change in [json!({"role": "admin"}), json!({"active": false})] {
        acme.patch(&path).json(&change).expect_refused(409, "last_owner").await;
    }
    let admin = acme.token_of(Role::Admin);
    acme.patch(&path)
        .json(&json!({"role": "admin"}))
        .token(&admin)
        .expect_refused(403, "role_required")
        .await;
    acme.delete(&path).token(&admin).expect_refused(403, "role_required").await;
    acme.company.employ("second@acme.test", "Second", Role::Owner);
    acme.delete(&path).send().await.expect(204);
}

async fn channels_are_listed_renamed_and_deleted_unless_in_use(acme: Tenant) {
    let made = acme.post("/api/channels/").json(&json!({"name": "Fair"})).send().await.expect(201);
    assert_eq!(members_of(&made), ["codes", "created_at", "id", "name"]);
    let path = format!("/api/channels/{}/", made["id"].as_str().unwrap());
    assert_eq!(acme.get(&path).send().await.expect(200), made);
    let code = acme.post(&format!("{path}codes/")).json(&json!({"code": "FAIR"})).send().await.expect(201);
    assert_eq!(code, json!({"code": "FAIR", "archived": false, "archived_at": null, "created_at": START}));
    assert_eq!(acme.get(&path).send().await.expect(200)["codes"], json!([code]));
    assert_eq!(acme.get(&format!("{path}codes/fair/")).send().await.expect(200), code, "found in any case");
    for name in ["Fair", "fair", "FAIR"] {
        acme.post("/api/channels/").json(&json!({ "name": name })).expect_refused(409, "name_taken").await;
    }
    let other = acme.post("/api/channels/").json(&json!({"name": "Other"})).send().await.expect(201);
    acme.patch(&path).json(&json!({"name": "other"})).expect_refused(409, "name_taken").await;
    let renamed = acme.patch(&path).json(&json!({"name": "Big fair"})).send().await.expect(200);
    assert_eq!(renamed["name"], json!("Big fair"));
    acme.account(json!({"imported_id": "a", "promo_code": "FAIR"})).await;
    assert_eq!(acme.shown("a").await["channel"]["name"], json!("Big fair"));
    acme.delete(&path).expect_refused(409, "channel_in_use").await;
    acme.delete(&path_of(&acme.shown("a").await)).send().await.expect(204);
    acme.delete(&path).send().await.expect(204);
    acme.delete(&path).expect_refused(404, "not_found").await;
    assert_eq!(column(&acme.all_pages("/api/channels/", 5).await, "id"), [other["id"].as_str().unwrap()]);
    acme.post("/api/channels/").json(&json!({"name": "Big fair"})).send().await.expect(201);
}

async fn the_audit_log_says_who_changed_what_and_never_a_secret(acme: Tenant) {
    let token = acme.post("/api/tokens/").json(&json!({"name": "CRM"})).send().await.expect(201);
    acme.delete(&format!("/api/tokens/{}/", token["id"].as_str().unwrap())).send().await.expect(204);
    acme.patch("/api/settings/").json(&json!({"cadence_days": 7})).send().await.expect(200);
    acme.patch("/api/settings/").json(&json!({"cadence_days": 7})).send().await.expect(200);
    let key = acme.post("/api/settings/ingest-key/rotate/").send().await.expect(200);
    let channel = acme.post("/api/channels/").json(&json!({"name": "Fair"})).send().await.expect(201);
    let path = format!("/api/channels/{}/", channel["id"].as_str().unwrap());
    acme.post(&format!("{path}codes/")).json(&json!({"code": "X"})).send().await.expect(201);
    acme.patch(&format!("{path}codes/X/")).json(&json!({"archived": true})).send().await.expect(200);
    acme.delete(&format!("{path}codes/X/")).send().await.expect(204);
    acme.patch(&path).json(&json!({"name": "Other"})).send().await.expect(200);
    acme.delete(&path).send().await.expect(204);
    acme.patch("/api/settings/").json(&json!({"cadence_days": 0})).expect_refused(422, "invalid").await;
    let log = acme.get("/api/audit/").send().await;
    for secret in [token["token"].as_str().unwrap(), key["key"].as_str().unwrap(), acme.company.token_text()]
    {
        assert!(!log.text().contains(secret));
    }
    let items = log.expect(200)["items"].as_array().unwrap().clone();
    let actions = [
        "channel.deleted",
        "channel.renamed",
        "promo_code.deleted",
        "promo_code.archived",
        "promo_code.created",
        "channel.created",
        "ingest_key.rotated",
        "settings.changed",
        "token.revoked",
        "token.created",
        "company.created",
    ];
    assert_eq!(column(&items, "action"), actions);
    for item in &items {
        let members = ["action", "actor", "address", "at", "detail", "id", "request_id", "target"];
        assert_eq!(members_of(item), members);
    }
    assert_eq!((&items[0]["actor"]["type"], &items[0]["target"]), (&json!("token"), &channel["id"]));
    assert_eq!(items[7]["detail"], json!({"cadence_days": {"from": 42, "to": 7}}));
}

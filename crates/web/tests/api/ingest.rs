//! POST /api/pulse/ingest/: the activity event's fields, the effects by kind, the reply.

use serde_json::{Value, json};

use crate::harness::{Answer, INGEST, Server, Tenant, column, members_of, on_both_engines, path_of};

on_both_engines! {
    imported_id_identifies_the_account,
    account_id_may_be_given_instead,
    account_id_and_imported_id_of_the_same_account_match_it,
    account_id_and_imported_id_of_different_accounts_are_rejected,
    account_id_and_imported_id_are_unmatched_if_one_is_unknown,
    an_event_that_names_no_account_is_rejected,
    an_account_id_that_is_not_a_string_is_rejected,
    any_string_that_matches_nothing_is_unmatched,
    an_account_of_another_company_is_unmatched,
    kind_is_required_and_one_of_six,
    feature_is_required_when_kind_is_feature_used,
    feature_has_at_most_128_characters,
    feature_is_optional_for_custom,
    feature_is_counted_for_feature_used_and_custom_only,
    occurred_at_defaults_to_the_arrival,
    occurred_at_is_read_as_iso_8601,
    occurred_at_that_is_not_a_time_is_rejected,
    occurred_at_may_be_five_minutes_ahead_and_not_more,
    occurred_at_may_be_long_ago,
    metadata_is_kept_as_sent,
    metadata_must_be_an_object_of_at_most_8_kib,
    event_id_makes_an_event_safe_to_send_again,
    event_id_counts_once_within_a_batch,
    event_id_is_remembered_for_90_days,
    event_id_is_remembered_for_accepted_events_only,
    event_id_is_per_company_exact_and_at_most_100_characters,
    an_event_without_event_id_counts_every_time,
    null_members_count_as_not_sent,
    unknown_members_of_events_and_of_the_request_are_ignored,
    app_opened_updates_last_seen,
    feature_used_updates_last_seen_and_the_features_counter,
    trial_started_moves_to_in_trial,
    became_customer_moves_and_captures_the_value_by_its_long_and_short_names,
    became_customer_without_a_value_keeps_the_accounts,
    became_customer_with_an_invalid_value_is_rejected,
    churned_moves_to_lost,
    custom_is_counted_like_a_feature_and_triggers_nothing,
    every_kind_sets_first_and_last_seen,
    the_reply_has_the_decided_members,
    unmatched_events_are_listed_as_sent_with_their_index,
    unmatched_events_do_not_fail_the_batch_and_match_once_imported,
    rejected_events_are_listed_by_index_code_field_and_detail,
    received_is_the_sum_of_the_rest,
    a_batch_with_only_invalid_events_is_refused_with_the_same_members,
    a_batch_of_unmatched_and_rejected_events_succeeds,
    events_are_required_and_not_empty,
    a_batch_takes_100_events_and_no_more,
    gzip_bodies_are_accepted,
    the_ingest_key_decides_the_company,
}

/// The outcome of the only event in this batch: accepted, duplicate, unmatched, or the field and code of its rejection.
fn sorted(answer: &Answer) -> String {
    let reply = answer.json();
    if let Some(rejected) = reply["rejected"].get(0) {
        let word = |member: &str| rejected[member].as_str().expect("a text").to_owned();
        return format!("{} {}", word("field"), word("code"));
    }
    assert_eq!((answer.status, &reply["received"]), (200, &json!(1)), "{reply}");
    match (reply["accepted"].as_u64(), reply["duplicates"].as_u64(), reply["unmatched"].as_array()) {
        (Some(1), Some(0), Some(unmatched)) if unmatched.is_empty() => "accepted".to_owned(),
        (Some(0), Some(1), Some(unmatched)) if unmatched.is_empty() => "duplicate".to_owned(),
        (Some(0), Some(0), Some(unmatched)) if unmatched.len() == 1 => "unmatched".to_owned(),
        _ => panic!("{reply}"),
    }
}

/// Sends one event and returns its outcome. Unless it is accepted, it must not change anything.
async fn send(acme: &Tenant, event: Value) -> String {
    let before = acme.contents();
    let outcome = sorted(&acme.ingest(json!([event])).await);
    if outcome != "accepted" {
        assert_eq!(acme.contents(), before, "{event} is {outcome} and must change nothing");
    }
    outcome
}

/// An `app_opened` event for account `a` with these extra members.
fn opened(more: Value) -> Value {
    let mut event = json!({"imported_id": "a", "kind": "app_opened"});
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    event
}

async fn pulse(acme: &Tenant, imported_id: &str) -> Value {
    let account = acme.company.account(imported_id);
    acme.get(&format!("/api/accounts/{}/pulse/", account.id)).send().await.expect(200)
}

/// The features of the Pulse card with their counts.
async fn features(acme: &Tenant, imported_id: &str) -> Vec<(String, u64)> {
    let pulse = pulse(acme, imported_id).await;
    let features = pulse["features"].as_array().unwrap().iter();
    features
        .map(|used| (used["feature"].as_str().unwrap().to_owned(), used["count"].as_u64().unwrap()))
        .collect()
}

/// How many events the days of the Pulse card count.
async fn counted(acme: &Tenant, imported_id: &str) -> u64 {
    let pulse = pulse(acme, imported_id).await;
    pulse["days"].as_array().unwrap().iter().map(|day| day["count"].as_u64().unwrap()).sum()
}

async fn activity(acme: &Tenant, imported_id: &str) -> Vec<Value> {
    let account = acme.company.account(imported_id);
    acme.all_pages(&format!("/api/accounts/{}/activity/", account.id), 200).await
}

async fn imported_id_identifies_the_account(acme: Tenant) {
    for id in ["a", "A", "b"] {
        acme.account(json!({ "imported_id": id })).await;
    }
    assert_eq!(send(&acme, json!({"imported_id": "A", "kind": "app_opened"})).await, "accepted");
    let seen: Vec<bool> = vec![
        acme.shown("a").await["last_seen_at"].is_string(),
        acme.shown("A").await["last_seen_at"].is_string(),
        acme.shown("b").await["last_seen_at"].is_string(),
    ];
    assert_eq!(seen, [false, true, false]);
}

async fn account_id_may_be_given_instead(acme: Tenant) {
    let made = acme.post("/api/accounts/").json(&json!({"name": "By hand"})).send().await.expect(201);
    assert_eq!(send(&acme, json!({"account_id": made["id"], "kind": "churned"})).await, "accepted");
    assert_eq!(acme.get(&path_of(&made)).send().await.expect(200)["status"], json!("lost"));
}

async fn account_id_and_imported_id_of_the_same_account_match_it(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "a"})).await;
    assert_eq!(send(&acme, opened(json!({"account_id": account["id"]}))).await, "accepted");
    assert_eq!(counted(&acme, "a").await, 1);
}

async fn account_id_and_imported_id_of_different_accounts_are_rejected(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    let other = acme.account(json!({"imported_id": "b"})).await;
    let outcome = send(&acme, opened(json!({"account_id": other["id"]}))).await;
    assert_eq!(outcome, "account_id account_mismatch");
}

async fn account_id_and_imported_id_are_unmatched_if_one_is_unknown(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "a"})).await;
    let other = json!({"imported_id": "nobody", "account_id": account["id"], "kind": "app_opened"});
    assert_eq!(send(&acme, other).await, "unmatched");
    assert_eq!(send(&acme, opened(json!({"account_id": "acc_nobody"}))).await, "unmatched");
}

async fn an_event_that_names_no_account_is_rejected(acme: Tenant) {
    for event in
        [json!({"kind": "app_opened"}), json!({"imported_id": null, "account_id": null, "kind": "churned"})]
    {
        assert_eq!(send(&acme, event).await, "imported_id required");
    }
    for event in [json!(1), json!("a"), json!(null), json!(true), json!([])] {
        assert_eq!(send(&acme, event).await, " wrong_type");
    }
}

async fn an_account_id_that_is_not_a_string_is_rejected(acme: Tenant) {
    acme.account(json!({"imported_id": "7"})).await;
    for id in [json!(7), json!(true), json!(["7"]), json!({})] {
        assert_eq!(
            send(&acme, json!({"imported_id": id, "kind": "app_opened"})).await,
            "imported_id wrong_type"
        );
        let event = json!({"imported_id": "7", "account_id": id, "kind": "app_opened"});
        assert_eq!(send(&acme, event).await, "account_id wrong_type");
    }
}

async fn any_string_that_matches_nothing_is_unmatched(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    let long = "x".repeat(10_000);
    for id in ["", " ", "A", "a ", "nobody", long.as_str(), "acc_", "🦊"] {
        assert_eq!(send(&acme, json!({"imported_id": id, "kind": "app_opened"})).await, "unmatched", "{id}");
        assert_eq!(send(&acme, json!({"account_id": id, "kind": "app_opened"})).await, "unmatched", "{id}");
    }
}

async fn an_account_of_another_company_is_unmatched(acme: Tenant) {
    let theirs = acme.neighbour();
    let account = theirs.account(json!({"imported_id": "a"})).await;
    assert_eq!(send(&acme, opened(json!({}))).await, "unmatched");
    assert_eq!(send(&acme, json!({"account_id": account["id"], "kind": "churned"})).await, "unmatched");
    assert_eq!(theirs.shown("a").await, account);
}

async fn kind_is_required_and_one_of_six(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    for kind in ["app_opened", "feature_used", "trial_started", "became_customer", "churned", "custom"] {
        let event = json!({"imported_id": "a", "kind": kind, "feature": "f"});
        assert_eq!(send(&acme, event).await, "accepted", "{kind}");
    }
    for event in [json!({"imported_id": "a"}), json!({"imported_id": "a", "kind": null})] {
        assert_eq!(send(&acme, event).await, "kind required");
    }
    for kind in ["", "App_opened", "opened", "contact", "kind"] {
        assert_eq!(
            send(&acme, json!({"imported_id": "a", "kind": kind})).await,
            "kind unknown_kind",
            "{kind}"
        );
    }
    for kind in [json!(1), json!(["custom"]), json!({})] {
        assert_eq!(send(&acme, json!({"imported_id": "a", "kind": kind})).await, "kind wrong_type");
    }
    assert_eq!(
        send(&acme, json!({"imported_id": "nobody", "kind": "x"})).await,
        "kind unknown_kind",
        "validated before matching"
    );
}

async fn feature_is_required_when_kind_is_feature_used(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    let table = [
        (json!({}), "feature required"),
        (json!({"feature": null}), "feature required"),
        (json!({"feature": ""}), "feature empty"),
        (json!({"feature": 5}), "feature wrong_type"),
        (json!({"feature": ["x"]}), "feature wrong_type"),
        (json!({"feature": "crm.reports.export"}), "accepted"),
    ];
    for (more, outcome) in table {
        let mut event = opened(more);
        event["kind"] = json!("feature_used");
        assert_eq!(send(&acme, event.clone()).await, outcome, "{event}");
    }
}

async fn feature_has_at_most_128_characters(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    let longest = "ü".repeat(128);
    for kind in ["feature_used", "custom"] {
        let event = json!({"imported_id": "a", "kind": kind, "feature": longest});
        assert_eq!(send(&acme, event).await, "accepted");
        let event = json!({"imported_id": "a", "kind": kind, "feature": format!("{longest}x")});
        assert_eq!(send(&acme, event).await, "feature too_long");
    }
    assert_eq!(features(&acme, "a").await, [(longest, 2)]);
}

async fn feature_is_optional_for_custom(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    assert_eq!(send(&acme, json!({"imported_id": "a", "kind": "custom"})).await, "accepted");
    assert_eq!(features(&acme, "a").await, []);
    assert_eq!(counted(&acme, "a").await, 1, "it counts as activity only");
}

async fn feature_is_counted_for_feature_used_and_custom_only(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    for kind in ["app_opened", "feature_used", "trial_started", "became_customer", "churned", "custom"] {
        acme.accept(json!({"imported_id": "a", "kind": kind, "feature": "reports"})).await;
    }
    assert_eq!(features(&acme, "a").await, [("reports".to_owned(), 2)]);
    assert_eq!(counted(&acme, "a").await, 6);
}

async fn occurred_at_defaults_to_the_arrival(server: Server) {
    server.account(json!({"imported_id": "a"})).await;
    server.app.clock().advance_seconds(61);
    for event in [opened(json!({})), opened(json!({"occurred_at": null}))] {
        server.accept(event).await;
    }
    for item in activity(&server, "a").await {
        assert_eq!(item["occurred_at"], json!("2026-01-05T09:01:01Z"));
        assert_eq!(item["received_at"], json!("2026-01-05T09:01:01Z"));
    }
}

async fn occurred_at_is_read_as_iso_8601(acme: Tenant) {
    let table = [
        ("2026-01-02T08:30:00Z", "2026-01-02T08:30:00Z"),
        ("2026-01-02T08:30:00z", "2026-01-02T08:30:00Z"),
        ("2026-01-02T08:30:00+02:00", "2026-01-02T06:30:00Z"),
        ("2026-01-02T08:30:00+0200", "2026-01-02T06:30:00Z"),
        ("2026-01-02T08:30:00-05:30", "2026-01-02T14:00:00Z"),
        ("2026-01-02T08:30:00", "2026-01-02T08:30:00Z"),
        ("2026-01-02T08:30", "2026-01-02T08:30:00Z"),
        ("2026-01-02", "2026-01-02T00:00:00Z"),
        ("2026-01-02T08:30:00.5Z", "2026-01-02T08:30:00.5Z"),
        ("2026-01-02T08:30:00.123456Z", "2026-01-02T08:30:00.123456Z"),
        ("2026-01-02T08:30:00.123456789Z", "2026-01-02T08:30:00.123456Z"),
        ("20260102T083000Z", "2026-01-02T08:30:00Z"),
    ];
    for (number, (sent, shown)) in table.into_iter().enumerate() {
        let id = format!("crm-{number}");
        acme.account(json!({ "imported_id": id })).await;
        acme.accept(json!({"imported_id": id, "kind": "app_opened", "occurred_at": sent})).await;
        assert_eq!(acme.shown(&id).await["last_seen_at"], json!(shown), "{sent}");
        assert_eq!(activity(&acme, &id).await[0]["occurred_at"], json!(shown), "{sent}");
    }
}

async fn occurred_at_that_is_not_a_time_is_rejected(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    let words = [
        "",
        "now",
        "yesterday",
        "1767600000",
        "12:30",
        "2026-13-01",
        "2026-02-30",
        "05.01.2026",
        "2026-01-02T25:00:00Z",
        "10000-01-01T00:00:00Z",
        "2026-01-02T08:30:00 UTC",
    ];
    for word in words {
        assert_eq!(
            send(&acme, opened(json!({ "occurred_at": word }))).await,
            "occurred_at malformed",
            "{word}"
        );
    }
    for value in [json!(1_767_600_000), json!(true), json!([]), json!({})] {
        assert_eq!(send(&acme, opened(json!({ "occurred_at": value }))).await, "occurred_at wrong_type");
    }
}

async fn occurred_at_may_be_five_minutes_ahead_and_not_more(server: Server) {
    server.account(json!({"imported_id": "a"})).await;
    // The clock starts at 09:00.
    let early = opened(json!({"occurred_at": "2026-01-05T09:05:00Z"}));
    assert_eq!(send(&server, early).await, "accepted");
    let event = opened(json!({"occurred_at": "2026-01-05T09:05:00.000001Z"}));
    assert_eq!(send(&server, event.clone()).await, "occurred_at in_the_future");
    server.app.clock().advance_seconds(1);
    assert_eq!(send(&server, event).await, "accepted", "a second later it is within the tolerance");
    let zoned = opened(json!({"occurred_at": "2026-01-05T11:05:02+02:00"}));
    assert_eq!(send(&server, zoned).await, "occurred_at in_the_future");
}

async fn occurred_at_may_be_long_ago(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    for at in ["2001-02-03", "1970-01-01T00:00:00Z", "1815-12-10T00:00:00Z", "0001-01-01T00:00:00Z"] {
        assert_eq!(send(&acme, opened(json!({ "occurred_at": at }))).await, "accepted", "{at}");
    }
    let account = acme.shown("a").await;
    assert_eq!(account["first_seen_at"], json!("0001-01-01T00:00:00Z"));
    assert_eq!(account["last_seen_at"], json!("2001-02-03T00:00:00Z"));
}

async fn metadata_is_kept_as_sent(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    let text = r#"{"amount": 1.50, "big": 123456789012345678901234567890, "list": [1, {"x": null}], "text": "ü\u202e"}"#;
    let body = format!(
        r#"{{"events": [{{"imported_id": "a", "kind": "custom", "feature": "f", "metadata": {text}}}]}}"#
    );
    assert_eq!(acme.post(INGEST).text(&body).send().await.expect(200)["accepted"], json!(1));
    let kept = activity(&acme, "a").await;
    assert_eq!(kept[0]["metadata"], serde_json::from_str::<Value>(text).unwrap());
    acme.accept(opened(json!({"metadata": {}}))).await;
    acme.accept(opened(json!({}))).await;
    let kept = activity(&acme, "a").await;
    assert_eq!((&kept[1]["metadata"], &kept[0]["metadata"]), (&json!({}), &Value::Null));
}

async fn metadata_must_be_an_object_of_at_most_8_kib(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    // {"k":"…"} has eight bytes around the text.
    let longest = "x".repeat(8 * 1024 - 8);
    assert_eq!(send(&acme, opened(json!({"metadata": {"k": longest}}))).await, "accepted");
    let longer = opened(json!({"metadata": {"k": format!("{longest}x")}}));
    assert_eq!(send(&acme, longer).await, "metadata too_large");
    for metadata in [json!([]), json!("{}"), json!(1), json!(false)] {
        assert_eq!(send(&acme, opened(json!({ "metadata": metadata }))).await, "metadata wrong_type");
    }
}

async fn event_id_makes_an_event_safe_to_send_again(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    let event = json!({"imported_id": "a", "kind": "feature_used", "feature": "f", "event_id": "e-1"});
    assert_eq!(send(&acme, event.clone()).await, "accepted");
    for _ in 0..2 {
        assert_eq!(send(&acme, event.clone()).await, "duplicate");
    }
    assert_eq!(features(&acme, "a").await, [("f".to_owned(), 1)]);
    let other = json!({"imported_id": "a", "kind": "churned", "event_id": "e-1"});
    assert_eq!(send(&acme, other).await, "duplicate", "only the id counts, not the rest of the event");
    assert_eq!(acme.shown("a").await["status"], json!("prospect"));
}

async fn event_id_counts_once_within_a_batch(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    let event = |id: &str, feature: &str| json!({"imported_id": "a", "kind": "custom", "feature": feature, "event_id": id});
    let events = json!([event("1", "first"), event("2", "x"), event("1", "second"), event("1", "third")]);
    let reply = acme.ingest(events).await.expect(200);
    assert_eq!((&reply["accepted"], &reply["duplicates"]), (&json!(2), &json!(2)));
    let names: Vec<String> = features(&acme, "a").await.into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["first", "x"], "the first one counts");
}

async fn event_id_is_remembered_for_90_days(server: Server) {
    server.account(json!({"imported_id": "a"})).await;
    let event = opened(json!({"event_id": "e-1"}));
    assert_eq!(send(&server, event.clone()).await, "accepted");
    server.app.clock().advance_days(90);
    server.app.clock().advance_seconds(-1);
    assert_eq!(send(&server, event.clone()).await, "duplicate");
    server.app.clock().advance_seconds(1);
    assert_eq!(send(&server, event.clone()).await, "accepted", "90 days are over");
    assert_eq!(send(&server, event.clone()).await, "duplicate", "it is remembered again");
    server.app.clock().advance_days(89);
    assert_eq!(send(&server, event).await, "duplicate");
}

async fn event_id_is_remembered_for_accepted_events_only(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    let unmatched = json!({"imported_id": "nobody", "kind": "app_opened", "event_id": "e-1"});
    assert_eq!(send(&acme, unmatched.clone()).await, "unmatched");
    let rejected = opened(json!({"event_id": "e-1", "occurred_at": "never"}));
    assert_eq!(send(&acme, rejected).await, "occurred_at malformed");
    let batch = json!([unmatched, opened(json!({"event_id": "e-1"}))]);
    let reply = acme.ingest(batch).await.expect(200);
    assert_eq!((&reply["accepted"], &reply["duplicates"]), (&json!(1), &json!(0)));
    assert_eq!(send(&acme, unmatched).await, "unmatched", "matching comes before the id");
    assert_eq!(send(&acme, opened(json!({"event_id": "e-1"}))).await, "duplicate");
}

async fn event_id_is_per_company_exact_and_at_most_100_characters(acme: Tenant) {
    let theirs = acme.neighbour();
    let longest = "ü".repeat(100);
    for company in [&acme, &theirs] {
        company.account(json!({"imported_id": "a"})).await;
        for id in ["e-1", "E-1", " e-1", longest.as_str()] {
            assert_eq!(send(company, opened(json!({ "event_id": id }))).await, "accepted", "{id}");
            assert_eq!(send(company, opened(json!({ "event_id": id }))).await, "duplicate", "{id}");
        }
    }
    let longer = format!("{longest}x");
    assert_eq!(send(&acme, opened(json!({ "event_id": longer }))).await, "event_id too_long");
    for id in [json!(1), json!(true), json!([]), json!({})] {
        assert_eq!(send(&acme, opened(json!({ "event_id": id }))).await, "event_id wrong_type");
    }
}

async fn an_event_without_event_id_counts_every_time(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    for _ in 0..3 {
        acme.accept(opened(json!({}))).await;
    }
    acme.accept(opened(json!({"event_id": null}))).await;
    assert_eq!(counted(&acme, "a").await, 4);
}

async fn null_members_count_as_not_sent(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    let nothing =
        json!({"account_id": null, "feature": null, "occurred_at": null, "metadata": null, "event_id": null});
    for _ in 0..2 {
        assert_eq!(send(&acme, opened(nothing.clone())).await, "accepted");
    }
}

async fn unknown_members_of_events_and_of_the_request_are_ignored(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    let event = opened(json!({"status": "lost", "index": 9, "user": {"id": 5}, "": null}));
    let body = json!({"events": [event], "project": "other", "source": 1});
    assert_eq!(acme.post(INGEST).json(&body).send().await.expect(200)["accepted"], json!(1));
    assert_eq!(acme.shown("a").await["status"], json!("prospect"));
}

async fn app_opened_updates_last_seen(server: Server) {
    server.account(json!({"imported_id": "a"})).await;
    server.app.clock().advance_days(2);
    server.accept(opened(json!({}))).await;
    let account = server.shown("a").await;
    assert_eq!(account["last_seen_at"], json!("2026-01-07T09:00:00Z"));
    assert_eq!(account["status"], json!("prospect"));
    assert_eq!(features(&server, "a").await, []);
    assert_eq!(counted(&server, "a").await, 1);
}

async fn feature_used_updates_last_seen_and_the_features_counter(server: Server) {
    server.account(json!({"imported_id": "a"})).await;
    let used = |feature: &str, at: &str| json!({"imported_id": "a", "kind": "feature_used", "feature": feature, "occurred_at": at});
    let events = json!([
        used("crm.export", "2026-01-03T10:00:00Z"),
        used("crm.import", "2026-01-04T10:00:00Z"),
        used("crm.export", "2026-01-02T10:00:00Z"),
        used("Crm.Export", "2026-01-01T10:00:00Z"),
    ]);
    assert_eq!(server.ingest(events).await.expect(200)["accepted"], json!(4));
    server.accept(used("crm.export", "2026-01-05T08:00:00Z")).await;
    assert_eq!(server.shown("a").await["last_seen_at"], json!("2026-01-05T08:00:00Z"));
    let pulse = pulse(&server, "a").await;
    let expected = json!([
        {"feature": "crm.export", "count": 3, "last_used_at": "2026-01-05T08:00:00Z"},
        {"feature": "Crm.Export", "count": 1, "last_used_at": "2026-01-01T10:00:00Z"},
        {"feature": "crm.import", "count": 1, "last_used_at": "2026-01-04T10:00:00Z"},
    ]);
    assert_eq!(pulse["features"], expected);
}

async fn trial_started_moves_to_in_trial(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    acme.accept(json!({"imported_id": "a", "kind": "trial_started"})).await;
    assert_eq!(acme.shown("a").await["status"], json!("in_trial"));
}

async fn became_customer_moves_and_captures_the_value_by_its_long_and_short_names(acme: Tenant) {
    let table = [
        (json!({"captured_value": "99.5", "captured_value_currency": "eur"}), "99.50", "EUR"),
        (json!({"value": "99.5", "currency": "EUR"}), "99.50", "EUR"),
        (json!({"value": 1200, "plan": "pro"}), "1200.00", "USD"),
        (json!({"captured_value": "7", "value": "8", "currency": "JPY"}), "7", "JPY"),
        (json!({"captured_value": null, "value": "8"}), "8.00", "USD"),
    ];
    for (number, (metadata, value, currency)) in table.into_iter().enumerate() {
        let id = format!("crm-{number}");
        acme.account(json!({ "imported_id": id })).await;
        acme.accept(json!({"imported_id": id, "kind": "became_customer", "metadata": metadata})).await;
        let account = acme.shown(&id).await;
        assert_eq!(account["status"], json!("customer"), "{metadata}");
        assert_eq!(account["captured_value"], json!(value), "{metadata}");
        assert_eq!(account["captured_value_currency"], json!(currency), "{metadata}");
    }
}

async fn became_customer_without_a_value_keeps_the_accounts(acme: Tenant) {
    let body = json!({"imported_id": "a", "captured_value": "5", "captured_value_currency": "EUR"});
    acme.account(body).await;
    let silent = [
        json!(null),
        json!({}),
        json!({"plan": "pro"}),
        json!({"value": null, "captured_value_currency": null}),
    ];
    for metadata in silent {
        acme.accept(json!({"imported_id": "a", "kind": "became_customer", "metadata": metadata})).await;
        let account = acme.shown("a").await;
        let value = (&account["captured_value"], &account["captured_value_currency"]);
        assert_eq!(value, (&json!("5.00"), &json!("EUR")), "{metadata}");
    }
    let metadata = json!({"captured_value": "6"});
    acme.accept(json!({"imported_id": "a", "kind": "became_customer", "metadata": metadata})).await;
    let account = acme.shown("a").await;
    let value = (&account["captured_value"], &account["captured_value_currency"]);
    assert_eq!(value, (&json!("6.00"), &json!("EUR")), "a value alone keeps the account's currency");
}

async fn became_customer_with_an_invalid_value_is_rejected(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    let table = [
        (json!({"captured_value": "-5"}), "metadata.captured_value negative"),
        (json!({"value": "1e3"}), "metadata.captured_value malformed"),
        (json!({"captured_value": true}), "metadata.captured_value wrong_type"),
        (json!({"captured_value": "0.00001"}), "metadata.captured_value out_of_range"),
        (
            json!({"captured_value": "5", "captured_value_currency": "XYZ"}),
            "metadata.captured_value_currency unknown_currency",
        ),
        (json!({"value": "5", "currency": 5}), "metadata.captured_value_currency wrong_type"),
    ];
    for (metadata, outcome) in table {
        let event = json!({"imported_id": "a", "kind": "became_customer", "metadata": metadata});
        assert_eq!(send(&acme, event).await, outcome, "{metadata}");
        let other = json!({"imported_id": "a", "kind": "custom", "metadata": metadata});
        assert_eq!(send(&acme, other).await, "accepted", "only became_customer reads a value: {metadata}");
    }
    assert_eq!(acme.shown("a").await["captured_value"], Value::Null);
}

async fn churned_moves_to_lost(acme: Tenant) {
    acme.account(json!({"imported_id": "a", "status": "customer"})).await;
    acme.accept(json!({"imported_id": "a", "kind": "churned"})).await;
    assert_eq!(acme.shown("a").await["status"], json!("lost"));
}

async fn custom_is_counted_like_a_feature_and_triggers_nothing(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "a"})).await;
    for _ in 0..2 {
        acme.accept(json!({"imported_id": "a", "kind": "custom", "feature": "nps.answered"})).await;
    }
    assert_eq!(features(&acme, "a").await, [("nps.answered".to_owned(), 2)]);
    assert_eq!(column(&acme.events(&account), "type"), ["account.created"]);
    assert_eq!(column(&activity(&acme, "a").await, "kind"), ["custom", "custom"]);
}

async fn every_kind_sets_first_and_last_seen(acme: Tenant) {
    for kind in ["app_opened", "feature_used", "trial_started", "became_customer", "churned", "custom"] {
        acme.account(json!({"imported_id": kind, "status": "customer"})).await;
        let event = |at: &str| json!({"imported_id": kind, "kind": kind, "feature": "f", "occurred_at": at});
        let events =
            json!([event("2026-01-02"), event("2026-01-04"), event("2026-01-03"), event("2026-01-01")]);
        assert_eq!(acme.ingest(events).await.expect(200)["accepted"], json!(4));
        let account = acme.shown(kind).await;
        let seen = (&account["first_seen_at"], &account["last_seen_at"]);
        assert_eq!(seen, (&json!("2026-01-01T00:00:00Z"), &json!("2026-01-04T00:00:00Z")), "{kind}");
        let pulse = pulse(&acme, kind).await;
        assert_eq!((&pulse["first_seen_at"], &pulse["last_seen_at"]), seen, "{kind}");
    }
}

async fn the_reply_has_the_decided_members(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    let answer = acme.ingest(json!([opened(json!({}))])).await;
    let expected = json!({"received": 1, "accepted": 1, "duplicates": 0, "unmatched": [], "rejected": []});
    assert_eq!(answer.expect(200), expected);
    assert_eq!(answer.header("content-type"), Some("application/json"));
}

async fn unmatched_events_are_listed_as_sent_with_their_index(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    let text = r#"{"imported_id": "nobody", "kind": "custom", "n": 1.50, "metadata": {"x": [null]}, "later": {"y": 1e400}}"#;
    let body = format!(r#"{{"events": [{{"imported_id": "a", "kind": "app_opened"}}, {text}, {text}]}}"#);
    let answer = acme.post(INGEST).text(&body).send().await;
    let unmatched = answer.expect(200)["unmatched"].clone();
    for (place, index) in [(0, 1), (1, 2)] {
        let mut sent: Value = serde_json::from_str(text).unwrap();
        sent["index"] = json!(index);
        assert_eq!(unmatched[place], sent);
    }
}

async fn unmatched_events_do_not_fail_the_batch_and_match_once_imported(acme: Tenant) {
    let event = opened(json!({"event_id": "e-1"}));
    let reply = acme.ingest(json!([event])).await.expect(200);
    assert_eq!((&reply["accepted"], reply["unmatched"].as_array().unwrap().len()), (&json!(0), 1));
    acme.account(json!({"imported_id": "a"})).await;
    assert_eq!(send(&acme, event).await, "accepted");
}

async fn rejected_events_are_listed_by_index_code_field_and_detail(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    let events =
        json!([7, opened(json!({})), {"imported_id": "a", "kind": "feature_used"}, {"kind": "custom"}]);
    let reply = acme.ingest(events).await.expect(200);
    let rejected = reply["rejected"].as_array().unwrap();
    for rejection in rejected {
        assert_eq!(members_of(rejection), ["code", "detail", "field", "index"]);
        assert!(!rejection["detail"].as_str().unwrap().is_empty());
    }
    assert_eq!(column(rejected, "index"), ["0", "2", "3"]);
    assert_eq!(column(rejected, "field"), ["", "feature", "imported_id"]);
    assert_eq!(column(rejected, "code"), ["wrong_type", "required", "required"]);
    assert_eq!(reply["accepted"], json!(1), "the others are applied");
}

async fn received_is_the_sum_of_the_rest(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    let other = acme.account(json!({"imported_id": "b"})).await;
    let mixed = |round: usize| {
        let events: Vec<Value> = (0..60_usize)
            .map(|n| match n % 6 {
                0 => opened(json!({})),
                1 => opened(json!({"event_id": format!("{}", n % 4)})),
                2 => json!({"imported_id": "nobody", "kind": "app_opened", "event_id": "0"}),
                3 => json!({"imported_id": "a", "kind": "nope"}),
                4 => opened(json!({"account_id": other["id"]})),
                _ => opened(json!({"event_id": format!("{round}-{n}")})),
            })
            .collect();
        json!(events)
    };
    for round in 0..2 {
        let reply = acme.ingest(mixed(round)).await.expect(200);
        let (accepted, duplicates) =
            (reply["accepted"].as_u64().unwrap(), reply["duplicates"].as_u64().unwrap());
        assert_eq!(reply["unmatched"].as_array().unwrap().len(), 10);
        assert_eq!(reply["rejected"].as_array().unwrap().len(), 20);
        assert_eq!((&reply["received"], accepted + duplicates), (&json!(60), 30));
        // Event ids 1 and 3 are sent five times each: each is new once in the first round and never in the second.
        assert_eq!(duplicates, if round == 0 { 8 } else { 10 });
    }
    assert_eq!(counted(&acme, "a").await, 42);
}

async fn a_batch_with_only_invalid_events_is_refused_with_the_same_members(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    let other = acme.account(json!({"imported_id": "b"})).await;
    let mismatch = opened(json!({"account_id": other["id"], "event_id": "e-1"}));
    for events in [
        json!([7, {"kind": "custom"}, {"imported_id": "a"}]),
        json!([7, mismatch, {}]),
        json!([mismatch, 7, 8]),
    ] {
        let answer = acme.ingesting(events).expect_refused(422, "all_rejected").await;
        let problem = answer.json();
        assert_eq!((&problem["received"], &problem["accepted"]), (&json!(3), &json!(0)));
        assert_eq!((&problem["duplicates"], &problem["unmatched"]), (&json!(0), &json!([])));
        assert_eq!(column(problem["rejected"].as_array().unwrap(), "index"), ["0", "1", "2"]);
        assert_eq!(answer.faults().len(), 3, "`errors` points at each of them");
        assert!(answer.faults()[0].0.starts_with("/events/0"));
    }
    assert_eq!(send(&acme, opened(json!({"event_id": "e-1"}))).await, "accepted", "no id was remembered");
}

async fn a_batch_of_unmatched_and_rejected_events_succeeds(acme: Tenant) {
    let reply = acme.ingest(json!([7, opened(json!({}))])).await.expect(200);
    assert_eq!((&reply["received"], &reply["accepted"]), (&json!(2), &json!(0)));
}

async fn events_are_required_and_not_empty(acme: Tenant) {
    let table = [
        (json!({}), "required"),
        (json!({"events": null}), "required"),
        (json!({"event": []}), "required"),
        (json!({"events": []}), "empty"),
        (json!({"events": {}}), "wrong_type"),
        (json!({"events": "x"}), "wrong_type"),
        (json!({"events": 1}), "wrong_type"),
    ];
    for (body, code) in table {
        acme.post(INGEST).json(&body).expect_faults(&[("/events", code)]).await;
    }
}

async fn a_batch_takes_100_events_and_no_more(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    let many = |count: usize| json!(vec![opened(json!({})); count]);
    assert_eq!(acme.ingest(many(100)).await.expect(200)["accepted"], json!(100));
    for count in [101, 250] {
        let answer = acme.ingesting(many(count)).expect_refused(413, "batch_too_large").await;
        let problem = answer.json();
        assert_eq!((&problem["max_events"], &problem["received"]), (&json!(100), &json!(count)));
    }
    assert_eq!(counted(&acme, "a").await, 100);
}

async fn gzip_bodies_are_accepted(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    let events = json!(vec![opened(json!({"metadata": {"text": "x".repeat(1000)}})); 100]);
    let reply = acme.ingesting(events).gzipped().send().await.expect(200);
    assert_eq!(reply["accepted"], json!(100));
}

async fn the_ingest_key_decides_the_company(acme: Tenant) {
    let theirs = acme.neighbour();
    for company in [&acme, &theirs] {
        company.account(json!({"imported_id": "a"})).await;
    }
    let as_they =
        acme.ingesting(json!([{"imported_id": "a", "kind": "churned"}])).of_company(&theirs.company);
    assert_eq!(as_they.send().await.expect(200)["accepted"], json!(1));
    assert_eq!(theirs.shown("a").await["status"], json!("lost"));
    assert_eq!(acme.shown("a").await["status"], json!("prospect"));
}

//! What an ingest says about each event, and batches that are stored whole or not at all.

use serde_json::{Value, json};

use crate::harness::{Call, INGEST, Tenant, column, members_of, on_both_engines};

on_both_engines! {
    duplicates_are_reported_by_index,
    unmatched_events_are_reported_by_index,
    an_event_keeps_its_own_index,
    a_strict_batch_without_a_fault_is_stored,
    a_strict_batch_with_an_unmatched_event_is_refused_and_stores_nothing,
    a_strict_batch_names_each_event_that_is_unmatched_or_invalid,
    a_strict_batch_of_invalid_events_only_is_refused_as_any_other,
    a_strict_batch_may_have_duplicates_and_marks_nothing_if_it_is_refused,
    a_strict_batch_does_not_affect_batches_that_run_with_it,
    strict_must_be_a_boolean,
}

fn opened(more: Value) -> Value {
    let mut event = json!({"imported_id": "a", "kind": "app_opened"});
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    event
}

fn stranger() -> Value {
    json!({"imported_id": "nobody", "kind": "app_opened"})
}

fn strictly(acme: &Tenant, events: Value) -> Call<'_> {
    acme.post(INGEST).json(&json!({"strict": true, "events": events}))
}

async fn duplicates_are_reported_by_index(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    let one = opened(json!({"event_id": "1"}));
    let first = acme.ingest(json!([one, opened(json!({}))])).await.expect(200);
    assert_eq!(first.get("duplicate_indexes"), None, "none to report");
    let events =
        json!([stranger(), one, opened(json!({"event_id": "2"})), 7, opened(json!({"event_id": "2"})), one]);
    let reply = acme.ingest(events).await.expect(200);
    assert_eq!((&reply["duplicates"], &reply["duplicate_indexes"]), (&json!(3), &json!([1, 4, 5])));
    assert_eq!((&reply["accepted"], &reply["unmatched_indexes"]), (&json!(1), &json!([0])));
}

async fn unmatched_events_are_reported_by_index(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    let matched = acme.ingest(json!([opened(json!({}))])).await.expect(200);
    assert_eq!(matched.get("unmatched_indexes"), None, "none to report");
    let reply = acme.ingest(json!([opened(json!({})), stranger(), 7, stranger()])).await.expect(200);
    assert_eq!(reply["unmatched_indexes"], json!([1, 3]));
    assert_eq!(column(reply["unmatched"].as_array().unwrap(), "index"), ["1", "3"]);
}

async fn an_event_keeps_its_own_index(acme: Tenant) {
    let own = [json!("row 7"), json!(99), json!(null), json!({"page": 2}), json!([1])];
    let events: Vec<Value> = own
        .iter()
        .map(|index| json!({"imported_id": "nobody", "kind": "app_opened", "index": index}))
        .collect();
    let reply = acme.ingest(json!(events)).await.expect(200);
    assert_eq!(reply["unmatched"], json!(events), "each as it was sent");
    assert_eq!(reply["unmatched_indexes"], json!([0, 1, 2, 3, 4]));
    let refused = strictly(&acme, json!(events)).expect_refused(422, "batch_refused").await.json();
    assert_eq!(
        (&refused["unmatched"], &refused["unmatched_indexes"]),
        (&json!(events), &json!([0, 1, 2, 3, 4]))
    );
}

async fn a_strict_batch_without_a_fault_is_stored(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    let reply =
        strictly(&acme, json!([opened(json!({})), {"imported_id": "a", "kind": "churned"}])).send().await;
    let expected = json!({"received": 2, "accepted": 2, "duplicates": 0, "unmatched": [], "rejected": []});
    assert_eq!(reply.expect(200), expected);
    assert_eq!(acme.shown("a").await["status"], json!("lost"));
}

async fn a_strict_batch_with_an_unmatched_event_is_refused_and_stores_nothing(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    let events = json!([
        {"imported_id": "a", "kind": "became_customer", "metadata": {"value": "5"}},
        {"imported_id": "a", "kind": "feature_used", "feature": "f"},
        stranger(),
    ]);
    let answer = strictly(&acme, events.clone()).expect_refused(422, "batch_refused").await;
    assert_eq!(answer.faults(), [("/events/2".to_owned(), "unmatched".to_owned())]);
    for strict in [json!(false), json!(null)] {
        let lenient = acme.post(INGEST).json(&json!({"strict": strict, "events": events})).send().await;
        assert_eq!(lenient.expect(200)["accepted"], json!(2), "{strict}");
    }
}

async fn a_strict_batch_names_each_event_that_is_unmatched_or_invalid(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    let other = acme.account(json!({"imported_id": "b"})).await;
    let events = json!([
        opened(json!({})),
        {"imported_id": "a", "kind": "feature_used"},
        stranger(),
        opened(json!({"account_id": other["id"]})),
        {"imported_id": "a", "kind": "became_customer", "metadata": {"value": "-5"}},
        opened(json!({})),
        7,
    ]);
    let answer = strictly(&acme, events.clone()).expect_refused(422, "batch_refused").await;
    let expected = [
        ("/events/1/feature", "required"),
        ("/events/2", "unmatched"),
        ("/events/3/account_id", "account_mismatch"),
        ("/events/4/metadata/captured_value", "negative"),
        ("/events/6", "wrong_type"),
    ];
    let expected = expected.map(|(pointer, code)| (pointer.to_owned(), code.to_owned()));
    assert_eq!(answer.faults(), expected, "in the order of the request");
    let problem = answer.json();
    assert_eq!((&problem["received"], &problem["accepted"]), (&json!(7), &json!(0)));
    assert_eq!((&problem["duplicates"], &problem["unmatched_indexes"]), (&json!(0), &json!([2])));
    assert_eq!(column(problem["rejected"].as_array().unwrap(), "index"), ["1", "3", "4", "6"]);
    let mut sent = events[2].clone();
    sent["index"] = json!(2);
    assert_eq!(problem["unmatched"], json!([sent]));
    let rejects = acme.all_pages("/api/settings/ingest-key/rejects/", 50).await;
    assert!(rejects.is_empty(), "its sender has the error: {rejects:?}");
}

async fn a_strict_batch_of_invalid_events_only_is_refused_as_any_other(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    let other = acme.account(json!({"imported_id": "b"})).await;
    for events in [json!([7, {}]), json!([opened(json!({"account_id": other["id"]})), 7])] {
        strictly(&acme, events).expect_refused(422, "all_rejected").await;
    }
}

async fn a_strict_batch_may_have_duplicates_and_marks_nothing_if_it_is_refused(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    let (one, two) = (opened(json!({"event_id": "1"})), opened(json!({"event_id": "2"})));
    strictly(&acme, json!([one, two, stranger()])).expect_refused(422, "batch_refused").await;
    let reply = strictly(&acme, json!([one, two, one])).send().await.expect(200);
    assert_eq!((&reply["accepted"], &reply["duplicate_indexes"]), (&json!(2), &json!([2])));
    let again = strictly(&acme, json!([one, two])).send().await.expect(200);
    assert_eq!((&again["accepted"], &again["duplicate_indexes"]), (&json!(0), &json!([0, 1])));
}

async fn a_strict_batch_does_not_affect_batches_that_run_with_it(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    let batches = (0..60).map(|n| {
        let used =
            json!({"imported_id": "a", "kind": "feature_used", "feature": "f", "event_id": format!("{n}")});
        let events = json!([used, stranger()]);
        if n % 2 == 0 { strictly(&acme, events).send() } else { acme.ingesting(events).send() }
    });
    for (n, answer) in rapport_testkit::all(batches).await.into_iter().enumerate() {
        if n % 2 == 0 {
            answer.expect_problem(422, "batch_refused");
        } else {
            assert_eq!(answer.expect(200)["accepted"], json!(1), "{n}");
        }
    }
    let account = acme.company.account("a");
    let pulse = acme.get(&format!("/api/accounts/{}/pulse/", account.id)).send().await.expect(200);
    assert_eq!(pulse["features"][0]["count"], json!(30));
}

async fn strict_must_be_a_boolean(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    for strict in [json!("true"), json!(1), json!([]), json!({})] {
        let body = json!({"strict": strict, "events": [opened(json!({}))]});
        acme.post(INGEST).json(&body).expect_faults(&[("/strict", "wrong_type")]).await;
    }
    let both = json!({"strict": 1, "events": []});
    acme.post(INGEST).json(&both).expect_faults(&[("/strict", "wrong_type"), ("/events", "empty")]).await;
    let reply = acme.ingest(json!([opened(json!({}))])).await.expect(200);
    assert_eq!(members_of(&reply), ["accepted", "duplicates", "received", "rejected", "unmatched"]);
}

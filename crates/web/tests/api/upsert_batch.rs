//! POST /api/accounts/upsert-batch/: one result for each account, as if it had been sent alone.

use rapport_domain::member::Role;
use rapport_testkit::Engine;
use rapport_web::{Config, Rate};
use serde_json::{Value, json};

use crate::harness::{Call, Server, Tenant, UPSERT, column, members_of, on_both_engines};

on_both_engines! {
    each_account_has_a_result_in_order,
    a_bad_account_does_not_fail_the_others,
    a_batch_of_bad_accounts_only_has_its_results,
    accounts_of_one_imported_id_are_applied_in_order,
    the_results_are_those_of_single_upserts,
    policies_apply_to_every_account_that_has_none_of_its_own,
    the_request_itself_is_checked_whole,
    project_must_be_the_tokens_company,
    a_batch_takes_500_accounts_and_no_more,
    a_body_over_1_mib_is_refused,
    a_batch_counts_as_one_request,
    the_caller_is_checked_first,
    batches_and_single_upserts_of_the_same_accounts_create_each_once,
    gzip_bodies_are_accepted,
}

const BATCH: &str = "/api/accounts/upsert-batch/";

fn batching(acme: &Tenant, accounts: Value) -> Call<'_> {
    acme.post(BATCH).json(&json!({"project": acme.slug(), "accounts": accounts}))
}

async fn batch(acme: &Tenant, accounts: Value) -> Value {
    batching(acme, accounts).send().await.expect(200)
}

fn results(reply: &Value) -> &Vec<Value> {
    let results = reply["results"].as_array().expect("results");
    assert_eq!(reply["received"], json!(results.len()));
    assert_eq!(column(results, "index"), (0..results.len()).map(|n| n.to_string()).collect::<Vec<_>>());
    let failed = results.iter().filter(|result| result.get("error").is_some()).count();
    assert_eq!((&reply["failed"], &reply["succeeded"]), (&json!(failed), &json!(results.len() - failed)));
    results
}

async fn each_account_has_a_result_in_order(acme: Tenant) {
    acme.company.channel("Fair", &["FAIR"]);
    acme.account(json!({"imported_id": "b", "name": "Known"})).await;
    let reply = batch(
        &acme,
        json!([
            {"imported_id": "a", "name": "Nordlys", "status": "contacted", "promo_code": "fair"},
            {"imported_id": "b", "name": "Other", "status": "customer", "captured_value": "12.5"},
            {"imported_id": "c", "custom_fields": {"plan": "pro"}, "unknown": 1},
            {"imported_id": "b"},
        ]),
    )
    .await;
    assert_eq!(members_of(&reply), ["failed", "received", "results", "succeeded"]);
    let results = results(&reply);
    assert_eq!(column(results, "status"), ["201", "200", "201", "200"]);
    for result in results {
        assert_eq!(members_of(result), ["index", "reply", "status"]);
        let members = ["account", "changed", "created", "ignored", "promo_code_matched"];
        assert_eq!(members_of(&result["reply"]), members);
    }
    let replies: Vec<&Value> = results.iter().map(|result| &result["reply"]).collect();
    assert_eq!(replies[0]["promo_code_matched"], json!(true));
    assert_eq!(replies[0]["account"]["channel"]["name"], json!("Fair"));
    assert_eq!(replies[1]["changed"], json!(["status", "captured_value", "captured_value_currency"]));
    assert_eq!(replies[1]["ignored"], json!(["name"]));
    assert_eq!(replies[2]["account"]["custom_fields"], json!({"plan": "pro"}));
    assert_eq!(replies[3]["changed"], json!([]));
    for (place, id) in [(0, "a"), (2, "c"), (3, "b")] {
        assert_eq!(acme.shown(id).await, replies[place]["account"]);
    }
    let history = acme.history(&replies[1]["account"]).await;
    assert_eq!((history.len(), &history[1]["source"]), (2, &json!("upsert")));
    let events = acme.events(&replies[1]["account"]);
    assert_eq!(column(&events, "type"), ["account.created", "account.status_changed"]);
}

async fn a_bad_account_does_not_fail_the_others(acme: Tenant) {
    acme.account(json!({"imported_id": "full", "custom_fields": {"a": "x".repeat(60_000)}})).await;
    let reply = batch(
        &acme,
        json!([
            {"imported_id": "a"},
            7,
            {"imported_id": "", "status": "won", "custom_fields": {"x/y": "\u{0}"}},
            {"imported_id": "full", "status": "lost", "custom_fields": {"b": "x".repeat(10_000)}},
            {"imported_id": "blank", "name": "\u{3164}"},
            {"imported_id": "foreign", "project": "globex"},
            {"imported_id": "b"},
        ]),
    )
    .await;
    let results = results(&reply);
    assert_eq!(column(results, "status"), ["201", "422", "422", "422", "422", "403", "201"]);
    let faults = |place: usize| -> Vec<(String, String)> {
        assert_eq!(members_of(&results[place]), ["error", "index", "status"]);
        let error = &results[place]["error"];
        assert_eq!((&error["code"], &error["status"]), (&json!("invalid"), &json!(422)));
        let word = |value: &Value| value.as_str().expect("a text").to_owned();
        let errors = error["errors"].as_array().expect("errors").iter();
        errors.map(|error| (word(&error["pointer"]), word(&error["code"]))).collect()
    };
    let expected = |faults: &[(&str, &str)]| -> Vec<(String, String)> {
        faults.iter().map(|(pointer, code)| ((*pointer).to_owned(), (*code).to_owned())).collect()
    };
    assert_eq!(faults(1), expected(&[("/accounts/1", "wrong_type")]));
    let three = [
        ("/accounts/2/imported_id", "empty"),
        ("/accounts/2/status", "unknown_status"),
        ("/accounts/2/custom_fields/x~1y", "nul_character"),
    ];
    assert_eq!(faults(2), expected(&three));
    assert_eq!(faults(3), expected(&[("/accounts/3/custom_fields", "too_large")]));
    assert_eq!(faults(4), expected(&[("/accounts/4/name", "invisible")]));
    assert_eq!(results[5]["error"]["code"], json!("foreign_project"));
    assert_eq!(
        acme.shown("full").await["status"],
        json!("prospect"),
        "a refused account isn't changed at all"
    );
    let stored = acme.all_pages("/api/accounts/", 200).await;
    let mut ids = column(&stored, "imported_id");
    ids.sort_unstable();
    assert_eq!(ids, ["a", "b", "full"]);
}

async fn a_batch_of_bad_accounts_only_has_its_results(acme: Tenant) {
    let before = acme.contents();
    let reply = batch(&acme, json!([{}, {"imported_id": 5}])).await;
    assert_eq!(column(results(&reply), "status"), ["422", "422"]);
    assert_eq!(acme.contents(), before);
    let foreign = json!({"project": acme.neighbour().slug(), "accounts": [{}]});
    acme.post(BATCH).json(&foreign).expect_refused(403, "foreign_project").await;
}

async fn accounts_of_one_imported_id_are_applied_in_order(acme: Tenant) {
    let reply = batch(
        &acme,
        json!([
            {"imported_id": "a", "name": "First", "status": "contacted", "custom_fields": {"n": 1, "gone": true}},
            {"imported_id": "a", "status": "won"},
            {"imported_id": "a", "name": "Second", "status": "customer", "custom_fields": {"n": 2, "gone": null}},
            {"imported_id": "a", "status": "customer", "custom_fields": {"n": 2}},
            {"imported_id": "a", "name": "Last", "name_policy": "update", "status": "lost"},
        ]),
    )
    .await;
    let results = results(&reply);
    assert_eq!(column(results, "status"), ["201", "422", "200", "200", "200"]);
    assert_eq!(results[2]["reply"]["changed"], json!(["status", "custom_fields"]));
    assert_eq!(results[2]["reply"]["account"]["status"], json!("customer"), "as it was after this one");
    assert_eq!(results[3]["reply"]["changed"], json!([]));
    let account = acme.shown("a").await;
    assert_eq!(account, results[4]["reply"]["account"]);
    assert_eq!((&account["name"], &account["status"]), (&json!("Last"), &json!("lost")));
    assert_eq!(account["custom_fields"], json!({"n": 2}));
    assert_eq!(column(&acme.history(&account).await, "to"), ["contacted", "customer", "lost"]);
    let types = ["account.created", "account.status_changed", "account.status_changed"];
    assert_eq!(column(&acme.events(&account), "type"), types);
    let found = acme.get("/api/accounts/?q=last").send().await.expect(200);
    assert_eq!(found["items"].as_array().unwrap().len(), 1);
}

async fn the_results_are_those_of_single_upserts(acme: Tenant) {
    let other = acme.neighbour();
    let rows = [
        json!({"imported_id": "a", "name": "A", "status": "in_trial", "captured_value": "5"}),
        json!({"imported_id": "a", "name": "B", "status": "prospect", "status_policy": "forward"}),
        json!({"imported_id": "b", "captured_value_currency": "EUR"}),
        json!({"imported_id": "b", "captured_value": "-1", "name": 5}),
        json!({"imported_id": "c", "promo_code": {"any": "value"}}),
    ];
    let reply = batch(&acme, json!(rows)).await;
    for (row, result) in rows.iter().zip(results(&reply)) {
        let single = other.upsert(row.clone()).await;
        assert_eq!(json!(single.status), result["status"], "{row}");
        let (single, mut batched) = (single.json(), result.get("reply").unwrap_or(&result["error"]).clone());
        if single.get("errors").is_some() {
            let base = format!("/accounts/{}", result["index"]);
            for error in batched["errors"].as_array_mut().unwrap() {
                let pointer = error["pointer"].as_str().and_then(|pointer| pointer.strip_prefix(&base));
                error["pointer"] = json!(pointer.expect("a pointer to the account"));
            }
            assert_eq!(batched, single, "{row}");
            continue;
        }
        for member in
            ["created", "changed", "ignored", "promo_code_matched", "status_outcome", "name_outcome"]
        {
            assert_eq!(batched.get(member), single.get(member), "{row}: {member}");
        }
        for member in ["imported_id", "name", "status", "captured_value", "captured_value_currency"] {
            assert_eq!(batched["account"][member], single["account"][member], "{row}: {member}");
        }
    }
}

async fn policies_apply_to_every_account_that_has_none_of_its_own(acme: Tenant) {
    for id in ["a", "b"] {
        acme.account(json!({"imported_id": id, "name": "Old", "status": "customer"})).await;
    }
    let row = |id: &str| json!({"imported_id": id, "name": "New", "status": "contacted"});
    let mut own = row("b");
    own["name_policy"] = json!("create");
    own["status_policy"] = json!("set");
    let body = json!({
        "project": acme.slug(), "name_policy": "update", "status_policy": "forward", "accounts": [row("a"), own],
    });
    let reply = acme.post(BATCH).json(&body).send().await.expect(200);
    let outcomes: Vec<(Value, Value)> = results(&reply)
        .iter()
        .map(|result| (result["reply"]["name_outcome"].clone(), result["reply"]["status_outcome"].clone()))
        .collect();
    assert_eq!(outcomes, [(json!("set"), json!("kept")), (json!("kept"), json!("set"))]);
    let (a, b) = (acme.shown("a").await, acme.shown("b").await);
    assert_eq!((&a["name"], &a["status"]), (&json!("New"), &json!("customer")));
    assert_eq!((&b["name"], &b["status"]), (&json!("Old"), &json!("contacted")));
}

async fn the_request_itself_is_checked_whole(acme: Tenant) {
    let project = acme.slug();
    let table = [
        (json!({}), vec![("/project", "required"), ("/accounts", "required")]),
        (json!({"project": project, "accounts": []}), vec![("/accounts", "empty")]),
        (json!({"project": project, "accounts": {"imported_id": "a"}}), vec![("/accounts", "wrong_type")]),
        (
            json!({"project": project, "accounts": [{"imported_id": "a"}], "status_policy": "back", "more": 1}),
            vec![("/status_policy", "unknown_policy"), ("/more", "unknown_member")],
        ),
    ];
    for (body, faults) in table {
        acme.post(BATCH).json(&body).expect_faults(&faults).await;
    }
    acme.post(BATCH).text("[]").expect_refused(400, "not_an_object").await;
}

async fn project_must_be_the_tokens_company(acme: Tenant) {
    let globex = acme.neighbour();
    for project in [globex.slug(), "no-such-company"] {
        let body = json!({"project": project, "accounts": [{"imported_id": "a"}]});
        acme.post(BATCH).json(&body).expect_refused(403, "foreign_project").await;
        let invalid = json!({"project": project, "accounts": []});
        acme.post(BATCH).json(&invalid).expect_refused(403, "foreign_project").await;
    }
    assert!(globex.company.find("a").is_none());
}

async fn a_batch_takes_500_accounts_and_no_more(acme: Tenant) {
    let rows = |count: usize| -> Value {
        (0..count).map(|n| json!({"imported_id": format!("crm-{n}"), "status": "in_trial"})).collect()
    };
    let answer = batching(&acme, rows(501)).expect_refused(413, "batch_too_large").await;
    let problem = answer.json();
    assert_eq!((&problem["max_accounts"], &problem["received"]), (&json!(500), &json!(501)));
    let reply = batch(&acme, rows(500)).await;
    assert!(column(results(&reply), "status").iter().all(|status| status == "201"));
    assert_eq!(acme.all_pages("/api/accounts/", 200).await.len(), 500);
    let before = acme.contents();
    let again = batch(&acme, rows(500)).await;
    assert!(column(results(&again), "status").iter().all(|status| status == "200"));
    assert_eq!(acme.contents(), before, "a full re-sync changes nothing");
}

async fn a_body_over_1_mib_is_refused(acme: Tenant) {
    let rows: Value = (0..30)
        .map(|n| json!({"imported_id": format!("crm-{n}"), "custom_fields": {"text": "x".repeat(40_000)}}))
        .collect();
    let answer = batching(&acme, rows.clone()).expect_refused(413, "body_too_large").await;
    assert_eq!(answer.json()["max_bytes"], json!(1 << 20));
    batching(&acme, rows).gzipped().expect_refused(413, "body_too_large").await;
}

async fn a_batch_counts_as_one_request(engine: Engine) {
    let few = |config: &mut Config| config.per_credential = Rate { per_second: 1, burst: 3 };
    let server = Server::with(engine, few).await;
    let rows: Value = (0..500).map(|n| json!({"imported_id": format!("crm-{n}")})).collect();
    for remaining in ["2", "1", "0"] {
        let answer = batching(&server, rows.clone()).send().await;
        answer.expect(200);
        assert_eq!(answer.header("x-ratelimit-remaining"), Some(remaining));
    }
    batching(&server, rows).send().await.expect_problem(429, "rate_limited");
}

async fn the_caller_is_checked_first(acme: Tenant) {
    let rows = json!([{"imported_id": "a"}]);
    batching(&acme, rows.clone()).without_credential().expect_refused(401, "unauthenticated").await;
    let viewer = acme.token_of(Role::Viewer);
    for rows in [rows.clone(), json!([{}]), json!([])] {
        batching(&acme, rows).token(&viewer).expect_refused(403, "role_required").await;
    }
    let member = acme.token_of(Role::Member);
    batching(&acme, rows).token(&member).send().await.expect(200);
    let entry = &acme.history(&acme.shown("a").await).await[0];
    assert_eq!((&entry["source"], &entry["actor"]["name"]), (&json!("upsert"), &json!("a member token")));
}

async fn batches_and_single_upserts_of_the_same_accounts_create_each_once(acme: Tenant) {
    let rows: Value = (0..40)
        .map(|n| json!({"imported_id": format!("crm-{}", n % 20), "custom_fields": {format!("k{n}"): n}}))
        .collect();
    let batches = (0..6).map(|_| batching(&acme, rows.clone()).send());
    let singles = (0..20).map(|n| acme.post(UPSERT).json(&single(&acme, n)).send());
    let (batches, singles) = tokio::join!(rapport_testkit::all(batches), rapport_testkit::all(singles));
    let mut created = 0;
    for reply in batches {
        let reply = reply.expect(200);
        created += results(&reply).iter().filter(|result| result["status"] == json!(201)).count();
    }
    created += singles.iter().filter(|answer| answer.status == 201).count();
    assert_eq!(created, 20, "each account is created once");
    for n in 0..20 {
        let account = acme.shown(&format!("crm-{n}")).await;
        let fields = account["custom_fields"].as_object().unwrap();
        assert_eq!(fields.len(), 3, "no merge was lost: {account}");
        assert_eq!(column(&acme.events(&account), "type"), ["account.created"]);
    }
}

fn single(acme: &Tenant, n: usize) -> Value {
    json!({"project": acme.slug(), "imported_id": format!("crm-{n}"), "custom_fields": {"single": true}})
}

async fn gzip_bodies_are_accepted(acme: Tenant) {
    let rows: Value = (0..100).map(|n| json!({"imported_id": format!("crm-{n}")})).collect();
    let reply = batching(&acme, rows).gzipped().send().await.expect(200);
    assert_eq!(reply["succeeded"], json!(100));
}

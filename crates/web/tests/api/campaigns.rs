//! Campaigns: goals, filters, counts, members and exports must all agree.

use std::collections::BTreeMap;

use rapport_domain::campaign::{Goal, exclusion};
use rapport_domain::member::Role;
use rapport_domain::pipeline::Status;
use serde_json::{Value, json};

use crate::export::read_csv;
use crate::harness::{Tenant, column, members_of, on_both_engines};

const CAMPAIGNS: &str = "/api/campaigns/";
const PREVIEW: &str = "/api/campaigns/preview/";

on_both_engines! {
    count_members_and_export_agree_with_the_rule_for_every_goal_status_and_override,
    a_campaign_is_created_changed_and_deleted,
    a_name_is_unique_in_the_company_ignoring_case,
    every_error_of_a_request_is_named,
    members_are_paged_and_sorted,
    filters_and_goal_apply_together,
    a_campaign_reflects_changes_of_its_accounts,
    a_campaign_belongs_to_its_company,
    members_of_a_company_work_with_campaigns,
    changes_to_campaigns_are_in_the_audit_log,
}

async fn create(acme: &Tenant, body: Value) -> Value {
    acme.post(CAMPAIGNS).json(&body).send().await.expect(201)
}

fn path_of(campaign: &Value) -> String {
    format!("{CAMPAIGNS}{}/", campaign["id"].as_str().unwrap_or_else(|| panic!("no campaign: {campaign}")))
}

/// An account with this status. If held, it was reactivated from Do not contact by activity and then moved by an
/// upsert.
async fn account(acme: &Tenant, status: Status, hold: bool) -> String {
    let id = format!("{status}-{hold}");
    if hold {
        acme.upsert(json!({"imported_id": id, "status": "do_not_contact"})).await.expect(201);
        acme.accept(json!({"imported_id": id, "kind": "became_customer"})).await;
    }
    acme.upsert(json!({"imported_id": id, "status": status, "custom_fields": {"plan": "pro"}})).await;
    let kept = acme.company.account(&id);
    assert_eq!((kept.status, kept.campaign_hold), (status, hold), "{id}");
    id
}

async fn count_members_and_export_agree_with_the_rule_for_every_goal_status_and_override(acme: Tenant) {
    let mut accounts: Vec<(String, Status, bool)> = Vec::new();
    for status in Status::ALL {
        for hold in [false, true] {
            accounts.push((account(&acme, status, hold).await, status, hold));
        }
    }
    acme.upsert(json!({"imported_id": "elsewhere", "custom_fields": {"plan": "free"}})).await.expect(201);
    for goal in Goal::ALL {
        for include_trials in [false, true] {
            let shown = format!("{} {include_trials}", goal.as_str());
            let mut aim = json!({
                "goal": goal.as_str(), "include_trials": include_trials, "filters": {"fields": {"plan": "pro"}},
            });
            let mut members = Vec::new();
            let mut excluded: BTreeMap<&str, i64> = BTreeMap::new();
            for (id, status, hold) in &accounts {
                match exclusion(goal, include_trials, *status, *hold) {
                    None => members.push(id.clone()),
                    Some(rule) => *excluded.entry(rule.as_str()).or_default() += 1,
                }
            }
            members.sort_unstable();
            let check = |what: &str, found: &Value| {
                assert_eq!(found["count"], json!(members.len()), "{what} of {shown}");
                assert_eq!(found["capped"], json!(false), "{what} of {shown}");
                assert_eq!(found["excluded"], json!(excluded), "{what} of {shown}");
                assert_eq!(found["excluded_capped"], json!([]), "{what} of {shown}");
            };
            check("preview", &acme.post(PREVIEW).json(&aim).send().await.expect(200));
            aim["name"] = json!(shown);
            let campaign = create(&acme, aim).await;
            check("answer", &campaign);
            let path = path_of(&campaign);
            check("campaign", &acme.get(&path).send().await.expect(200));
            let page = acme.get(&format!("{path}members/?limit=3")).send().await.expect(200);
            check("members", &page);
            let listed = acme.all_pages(&format!("{path}members/"), 3).await;
            let mut listed = column(&listed, "imported_id");
            listed.sort_unstable();
            assert_eq!(listed, members, "members of {shown}");
            let export = acme.get(&format!("{path}export/")).send().await;
            let mut exported: Vec<String> =
                read_csv(&export).into_iter().map(|row| row["imported_id"].clone()).collect();
            exported.sort_unstable();
            assert_eq!(exported, members, "export of {shown}");
        }
    }
}

async fn a_campaign_is_created_changed_and_deleted(acme: Tenant) {
    let made = create(&acme, json!({"name": "Spring", "goal": "acquisition"})).await;
    let expected = [
        "capped",
        "count",
        "created_at",
        "excluded",
        "excluded_capped",
        "filters",
        "goal",
        "id",
        "include_trials",
        "name",
        "updated_at",
    ];
    assert_eq!(members_of(&made), expected);
    assert!(made["id"].as_str().unwrap().starts_with("cmp_"), "{made}");
    assert_eq!((&made["include_trials"], &made["filters"]), (&json!(false), &json!({})));
    let path = path_of(&made);
    let filters = json!({
        "q": "nord", "status": ["prospect", "lost"], "seen": false, "contacted_before": "2026-01-01T00:00:00Z",
        "fields": {"plan": ["pro", "free"], "vat": {"exists": true}, "city": {"begins_with": "Ber"}},
    });
    let patch = json!({"name": "Summer", "goal": "reactivation", "include_trials": true, "filters": filters});
    let changed = acme.patch(&path).json(&patch).send().await.expect(200);
    for member in ["name", "goal", "include_trials", "filters"] {
        assert_eq!(changed[member], patch[member]);
    }
    let kept = acme.patch(&path).json(&json!({"name": "Autumn"})).send().await.expect(200);
    assert_eq!((&kept["name"], &kept["filters"]), (&json!("Autumn"), &filters));
    create(&acme, json!({"name": "Second", "goal": "announcement"})).await;
    let listed = acme.all_pages(CAMPAIGNS, 1).await;
    assert_eq!(column(&listed, "name"), ["Second", "Autumn"]);
    assert!(listed[0].get("count").is_none(), "lists have no counts");
    acme.delete(&path).send().await.expect(204);
    for path in [path.clone(), format!("{path}members/"), format!("{path}export/")] {
        acme.get(&path).expect_refused(404, "not_found").await;
    }
    acme.delete(&path).expect_refused(404, "not_found").await;
    acme.patch(&path).json(&json!({})).expect_refused(404, "not_found").await;
}

async fn a_name_is_unique_in_the_company_ignoring_case(acme: Tenant) {
    let body = |name: &str| json!({"name": name, "goal": "announcement"});
    let made = create(&acme, body("Ärzte")).await;
    let other = create(&acme, body("Other")).await;
    acme.post(CAMPAIGNS).json(&body("ÄRZTE")).expect_refused(409, "name_taken").await;
    acme.patch(&path_of(&other)).json(&json!({"name": "ärzte"})).expect_refused(409, "name_taken").await;
    acme.patch(&path_of(&made)).json(&json!({"name": "ärzte"})).send().await.expect(200);
    create(&acme.neighbour(), body("Ärzte")).await;
}

async fn every_error_of_a_request_is_named(acme: Tenant) {
    let faults = [("/name", "required"), ("/goal", "required")];
    acme.post(CAMPAIGNS).json(&json!({})).expect_faults(&faults).await;
    let body = json!({
        "name": "a\u{0}", "goal": "fame", "include_trials": "yes", "colour": 1,
        "filters": {"status": "x", "channel": ["y"], "seen_after": "z", "sort": "name", "fields": {"k": null}},
    });
    let faults = [
        ("/name", "nul_character"),
        ("/goal", "unknown_goal"),
        ("/include_trials", "wrong_type"),
        ("/filters/status", "unknown_status"),
        ("/filters/channel", "malformed"),
        ("/filters/seen_after", "malformed"),
        ("/filters/fields/k", "unknown_test"),
        ("/filters/sort", "unknown_member"),
        ("/colour", "unknown_member"),
    ];
    acme.post(CAMPAIGNS).json(&body).expect_faults(&faults).await;
    acme.post(PREVIEW)
        .json(&json!({"name": "x"}))
        .expect_faults(&[("/goal", "required"), ("/name", "unknown_member")])
        .await;
    let made = create(&acme, json!({"name": "Spring", "goal": "acquisition"})).await;
    let path = path_of(&made);
    acme.patch(&path).json(&json!({"goal": 7})).expect_faults(&[("/goal", "wrong_type")]).await;
    let odd = acme.get(&format!("{path}members/?colour=1&sort=x"));
    odd.expect_faults(&[("sort", "unknown_sort"), ("colour", "unknown_parameter")]).await;
    acme.get(&format!("{path}export/?limit=1")).expect_faults(&[("limit", "unknown_parameter")]).await;
}

async fn members_are_paged_and_sorted(acme: Tenant) {
    for name in ["b", "c", "a"] {
        acme.upsert(json!({"imported_id": name, "name": name})).await.expect(201);
    }
    let made = create(&acme, json!({"name": "All", "goal": "announcement"})).await;
    let path = format!("{}members/", path_of(&made));
    assert_eq!(column(&acme.all_pages(&path, 2).await, "name"), ["a", "c", "b"], "newest first");
    assert_eq!(column(&acme.all_pages(&format!("{path}?sort=name"), 1).await, "name"), ["a", "b", "c"]);
    let page = acme.get(&path).send().await.expect(200);
    let account = acme.shown("b").await;
    assert_eq!(page["items"][2], account, "the same account object as everywhere");
}

async fn filters_and_goal_apply_together(acme: Tenant) {
    for (id, status) in [("p", "prospect"), ("t", "in_trial"), ("c", "customer"), ("l", "lost")] {
        let fields = json!({"country": "DE"});
        acme.upsert(json!({"imported_id": id, "status": status, "custom_fields": fields})).await.expect(201);
    }
    let preview = async |body: Value| acme.post(PREVIEW).json(&body).send().await.expect(200);
    let customers = json!({"goal": "acquisition", "filters": {"status": "customer"}});
    let found = preview(customers).await;
    assert_eq!((&found["count"], &found["excluded"]["customers"]), (&json!(0), &json!(1)));
    assert_eq!(
        found["excluded"]["trials"],
        json!(0),
        "accounts that don't match the filters don't count as excluded"
    );
    let expansion =
        json!({"goal": "expansion", "include_trials": true, "filters": {"fields": {"country": "de"}}});
    let found = preview(expansion).await;
    assert_eq!((&found["count"], &found["excluded"]["not_customers"]), (&json!(1), &json!(3)));
    let none =
        json!({"goal": "announcement", "filters": {"contacted": false, "contacted_after": "2020-01-01"}});
    assert_eq!(preview(none).await["count"], json!(0), "nobody is both never seen and seen after a time");
}

async fn a_campaign_reflects_changes_of_its_accounts(acme: Tenant) {
    acme.upsert(json!({"imported_id": "a", "custom_fields": {"plan": "pro"}})).await.expect(201);
    let body = json!({"name": "Pro", "goal": "acquisition", "filters": {"fields": {"plan": "pro"}}});
    let path = path_of(&create(&acme, body).await);
    let count = async || acme.get(&path).send().await.expect(200)["count"].clone();
    assert_eq!(count().await, json!(1));
    acme.resend(json!({"imported_id": "a", "custom_fields": {"plan": "free"}})).await;
    assert_eq!(count().await, json!(0));
    acme.resend(json!({"imported_id": "a", "custom_fields": {"plan": "PRO"}})).await;
    assert_eq!(count().await, json!(1));
    acme.resend(json!({"imported_id": "a", "status": "customer"})).await;
    let found = acme.get(&path).send().await.expect(200);
    assert_eq!((&found["count"], &found["excluded"]["customers"]), (&json!(0), &json!(1)));
    let account = acme.shown("a").await;
    acme.delete(&crate::harness::path_of(&account)).send().await.expect(204);
    assert_eq!(acme.get(&path).send().await.expect(200)["excluded"]["customers"], json!(0));
}

async fn a_campaign_belongs_to_its_company(acme: Tenant) {
    let globex = acme.neighbour();
    globex.upsert(json!({"imported_id": "theirs"})).await.expect(201);
    let path = path_of(&create(&globex, json!({"name": "Theirs", "goal": "announcement"})).await);
    for path in [path.clone(), format!("{path}members/"), format!("{path}export/")] {
        acme.get(&path).expect_refused(404, "not_found").await;
    }
    acme.patch(&path).json(&json!({"name": "Ours"})).expect_refused(404, "not_found").await;
    acme.delete(&path).expect_refused(404, "not_found").await;
    assert_eq!(acme.all_pages(CAMPAIGNS, 50).await, Vec::<Value>::new());
    assert_eq!(globex.get(&path).send().await.expect(200)["count"], json!(1));
}

async fn members_of_a_company_work_with_campaigns(acme: Tenant) {
    let token = acme.token_of(Role::Member);
    let body = json!({"name": "Spring", "goal": "announcement"});
    let made = acme.post(CAMPAIGNS).token(&token).json(&body).send().await.expect(201);
    acme.delete(&path_of(&made)).token(&token).send().await.expect(204);
}

async fn changes_to_campaigns_are_in_the_audit_log(acme: Tenant) {
    let made = create(&acme, json!({"name": "Spring", "goal": "announcement"})).await;
    let path = path_of(&made);
    acme.patch(&path).json(&json!({"name": "Spring"})).send().await.expect(200);
    acme.patch(&path).json(&json!({"goal": "expansion"})).send().await.expect(200);
    acme.delete(&path).send().await.expect(204);
    let log = acme.all_pages("/api/audit/", 50).await;
    let actions = column(&log, "action");
    assert_eq!(actions[..3], ["campaign.deleted", "campaign.changed", "campaign.created"]);
    assert_eq!(log[1]["detail"], json!({"goal": {"from": "announcement", "to": "expansion"}}));
}

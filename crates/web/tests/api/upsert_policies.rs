//! The policies of an upsert: when a name is used, and where a status moves an account.

use rapport_domain::pipeline::Status;
use serde_json::{Value, json};

use crate::harness::{Tenant, column, members_of, on_both_engines};

on_both_engines! {
    a_policy_that_is_unknown_is_refused_naming_what_is_allowed,
    a_request_without_a_policy_gets_the_reply_of_the_contract,
    name_policy_update_renames_an_account_and_it_is_found_by_the_new_name,
    name_policy_create_is_the_default,
    status_policy_set_is_the_default,
    status_policy_forward_moves_as_the_table_says,
    status_policy_forward_does_not_matter_at_creation,
    a_nightly_resync_does_not_undo_what_activity_did,
}

const CONTRACT: [&str; 5] = ["account", "changed", "created", "ignored", "promo_code_matched"];

async fn a_policy_that_is_unknown_is_refused_naming_what_is_allowed(acme: Tenant) {
    acme.account(json!({"imported_id": "a"})).await;
    let table = [
        (json!({"name_policy": "always"}), "/name_policy", "unknown_policy", "create, update"),
        (json!({"name_policy": "Update"}), "/name_policy", "unknown_policy", "create, update"),
        (json!({"name_policy": true}), "/name_policy", "wrong_type", "string"),
        (json!({"status_policy": "backward"}), "/status_policy", "unknown_policy", "set, forward"),
        (json!({"status_policy": ["set"]}), "/status_policy", "wrong_type", "string"),
    ];
    for (mut body, pointer, code, said) in table {
        for id in ["a", "new"] {
            body["imported_id"] = json!(id);
            let answer = acme.upserting(body.clone()).expect_faults(&[(pointer, code)]).await;
            assert!(answer.text().contains(said), "{}", answer.text());
        }
    }
}

async fn a_request_without_a_policy_gets_the_reply_of_the_contract(acme: Tenant) {
    let created = acme.upsert(json!({"imported_id": "a", "name": "A", "status": "lost"})).await.expect(201);
    assert_eq!(members_of(&created), CONTRACT);
    for body in [
        json!({"imported_id": "a", "name": "B", "status": "contacted"}),
        json!({"imported_id": "a", "name": "B", "status": "contacted", "name_policy": null, "status_policy": null}),
    ] {
        assert_eq!(members_of(&acme.resend(body).await), CONTRACT);
    }
    let explained = acme.resend(json!({"imported_id": "a", "status_policy": "set"})).await;
    assert_eq!(members_of(&explained), CONTRACT, "neither a name nor a status was sent");
    let explained = json!({"imported_id": "a", "name": "C", "status": "contacted", "status_policy": "set"});
    let explained = acme.resend(explained).await;
    assert_eq!(
        (&explained["name_outcome"], &explained["status_outcome"]),
        (&json!("kept"), &json!("unchanged"))
    );
}

async fn name_policy_update_renames_an_account_and_it_is_found_by_the_new_name(acme: Tenant) {
    let body = |name: &str| json!({"imported_id": "a", "name": name, "name_policy": "update"});
    let created = acme.upsert(body("Nordlys")).await.expect(201);
    assert_eq!((&created["account"]["name"], &created["name_outcome"]), (&json!("Nordlys"), &json!("set")));
    let renamed = acme.resend(body("Fjordkraft Bank")).await;
    assert_eq!(
        (&renamed["account"]["name"], &renamed["name_outcome"]),
        (&json!("Fjordkraft Bank"), &json!("set"))
    );
    assert_eq!((&renamed["changed"], &renamed["ignored"]), (&json!(["name"]), &json!([])));
    let before = acme.contents();
    let again = acme.resend(body("Fjordkraft Bank")).await;
    assert_eq!((&again["changed"], &again["name_outcome"]), (&json!([]), &json!("unchanged")));
    assert_eq!(acme.contents(), before, "a full re-sync changes nothing");
    for (words, count) in [("fjordkraft", 1), ("bank", 1), ("nordlys", 0)] {
        let found = acme.get(&format!("/api/accounts/?q={words}")).send().await.expect(200);
        assert_eq!(found["items"].as_array().unwrap().len(), count, "{words}");
    }
    assert_eq!(column(&acme.events(&created["account"]), "type"), ["account.created"], "a name is no move");
}

async fn name_policy_create_is_the_default(acme: Tenant) {
    acme.account(json!({"imported_id": "a", "name": "Nordlys"})).await;
    for policy in [json!(null), json!("create")] {
        let kept = acme.resend(json!({"imported_id": "a", "name": "Other", "name_policy": policy})).await;
        assert_eq!(
            (&kept["account"]["name"], &kept["ignored"]),
            (&json!("Nordlys"), &json!(["name"])),
            "{policy}"
        );
    }
}

async fn status_policy_set_is_the_default(acme: Tenant) {
    acme.account(json!({"imported_id": "a", "status": "customer"})).await;
    for (policy, status) in [(json!(null), "contacted"), (json!("set"), "prospect")] {
        let moved = acme.resend(json!({"imported_id": "a", "status": status, "status_policy": policy})).await;
        assert_eq!(
            (&moved["account"]["status"], &moved["changed"]),
            (&json!(status), &json!(["status"])),
            "{policy}"
        );
    }
}

/// Where a re-sync moves an account, as the documentation shows it.
const FORWARD: [(&str, &[&str]); 7] = [
    ("prospect", &["contacted", "in_negotiation", "in_trial", "customer", "lost", "do_not_contact"]),
    ("contacted", &["in_negotiation", "in_trial", "customer", "lost", "do_not_contact"]),
    ("in_negotiation", &["in_trial", "customer", "lost", "do_not_contact"]),
    ("in_trial", &["customer", "do_not_contact"]),
    ("customer", &[]),
    ("lost", &["do_not_contact"]),
    ("do_not_contact", &[]),
];

async fn status_policy_forward_moves_as_the_table_says(acme: Tenant) {
    for (from, reached) in FORWARD {
        for to in Status::ALL.map(Status::as_str) {
            let id = format!("{from}-{to}");
            let account = acme.account(json!({"imported_id": id, "status": from})).await;
            let reply =
                acme.resend(json!({"imported_id": id, "status": to, "status_policy": "forward"})).await;
            let (outcome, status, moves) = match to {
                to if reached.contains(&to) => ("set", to, 1),
                to if to == from => ("unchanged", from, 0),
                _ => ("kept", from, 0),
            };
            assert_eq!(reply["status_outcome"], json!(outcome), "{id}");
            assert_eq!(reply["account"]["status"], json!(status), "{id}");
            let listed = |applies: bool| if applies { json!(["status"]) } else { json!([]) };
            assert_eq!(reply["changed"], listed(outcome == "set"), "{id}");
            assert_eq!(reply["ignored"], listed(outcome == "kept"), "{id}");
            assert_eq!(acme.history(&account).await.len(), 1 + moves, "{id}");
            assert_eq!(acme.events(&account).len(), 1 + moves, "{id}");
        }
    }
}

async fn status_policy_forward_does_not_matter_at_creation(acme: Tenant) {
    for status in Status::ALL.map(Status::as_str) {
        let body = json!({"imported_id": status, "status": status, "status_policy": "forward"});
        let created = acme.upsert(body).await.expect(201);
        assert_eq!(
            (&created["account"]["status"], &created["status_outcome"]),
            (&json!(status), &json!("set"))
        );
    }
}

async fn a_nightly_resync_does_not_undo_what_activity_did(acme: Tenant) {
    let row = |status: &str| json!({"imported_id": "a", "status": status, "status_policy": "forward"});
    let account = acme.account(row("contacted")).await;
    // What the record says each night, what the product says before that, and where the account is afterwards.
    let nights = [
        (None, "contacted", "contacted"),
        (Some("trial_started"), "contacted", "in_trial"),
        (None, "in_negotiation", "in_trial"),
        (Some("became_customer"), "in_negotiation", "customer"),
        (None, "lost", "customer"),
        (Some("churned"), "customer", "lost"),
        (None, "prospect", "lost"),
        (Some("trial_started"), "lost", "in_trial"),
        (None, "customer", "customer"),
    ];
    for (kind, said, status) in nights {
        if let Some(kind) = kind {
            acme.accept(json!({"imported_id": "a", "kind": kind})).await;
        }
        let reply = acme.resend(row(said)).await;
        assert_eq!(reply["account"]["status"], json!(status), "{kind:?} {said}");
    }
    let history = acme.history(&account).await;
    let moves: Vec<(Value, Value)> =
        history.iter().map(|entry| (entry["to"].clone(), entry["source"].clone())).collect();
    let expected = [
        ("contacted", "upsert"),
        ("in_trial", "automation"),
        ("customer", "automation"),
        ("lost", "automation"),
        ("in_trial", "automation"),
        ("customer", "upsert"),
    ];
    assert_eq!(moves, expected.map(|(to, source)| (json!(to), json!(source))));
}

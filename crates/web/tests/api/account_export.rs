//! Everything about an account, as a file: by token and on its page.

use rapport_domain::member::Role;
use rapport_testkit::Archive;
use serde_json::{Value, json};

use crate::harness::{Answer, Tenant, id_of, on_both_engines};
use crate::person::Person;

on_both_engines! {
    an_account_is_exported_in_both_formats,
    the_export_of_an_account_is_for_admins_and_of_this_company,
    a_deleted_account_is_exported_until_it_is_forgotten,
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

async fn an_account_is_exported_in_both_formats(acme: Tenant) {
    let account =
        acme.account(json!({"imported_id": "crm-1", "name": "Nordlys", "status": "customer"})).await;
    acme.account(json!({"imported_id": "crm-2", "name": "Of another"})).await;
    let id = id_of(&account);
    let path = format!("/api/accounts/{id}/");
    let started = acme.post(&format!("{path}conversations/")).json(&json!({"subject": "Offer"})).send().await;
    let conversation = started.expect(201)["id"].as_str().expect("an id").to_owned();
    let message = json!({"direction": "inbound", "body": "=1+1"});
    let messages = format!("/api/conversations/{conversation}/messages/");
    acme.post(&messages).json(&message).send().await.expect(201);
    let contact = json!({"kind": "call", "occurred_at": "2020-01-01T00:00:00Z"});
    acme.post(&format!("{path}contacts/")).json(&contact).send().await.expect(201);

    let ana = Person::of(&acme, Role::Admin);
    ana.see(&format!("/accounts/{id}"))
        .await
        .says("Export everything")
        .says(&format!("/accounts/{id}/export"));
    let (own, export) = (format!("/accounts/{id}/export"), format!("{path}export/"));
    let name = format!("attachment; filename=\"{}-{}-", acme.slug(), id.to_string().replace('_', "-"));
    let is_named = |file: &Answer, end: &str| {
        let named = file.header("content-disposition").expect("a name");
        assert!(named.starts_with(&name) && named.ends_with(end), "{named}");
    };
    let mut rows = Vec::new();
    for file in [ana.see(&own).await.expect(200).0, acme.get(&export).send().await] {
        assert_eq!(file.header("content-type"), Some("application/jsonl"));
        is_named(&file, ".jsonl\"");
        let lines = lines(file.text());
        assert_eq!(
            (&lines[0]["account"], &lines[0]["imported_id"]),
            (&json!(id.to_string()), &json!("crm-1"))
        );
        assert_eq!(lines.last().expect("an end")["end"], json!(true));
        for table in ["account", "status_history", "contact", "conversation", "message", "event"] {
            assert!(lines.iter().any(|line| line["table"] == table), "{table}");
        }
        assert!(!file.text().contains("Of another"));
        rows.push(lines.iter().filter(|line| line["table"] == "message").count());
    }
    assert_eq!(rows, [1, 1]);
    for path in [format!("{own}?format=csv"), format!("{export}?format=csv")] {
        let file = if path.starts_with("/api/") {
            acme.get(&path).send().await
        } else {
            ana.see(&path).await.expect(200).0
        };
        assert_eq!(file.header("content-type"), Some("application/zip"));
        is_named(&file, ".zip\"");
        let archive = Archive::read(&file.body);
        assert_eq!(archive.rows("account").len(), 1);
        assert_eq!(archive.rows("message")[0]["body"], "'=1+1", "no spreadsheet runs it");
    }
    let log = acme.all_pages("/api/audit/?action=account.data_exported", 10).await;
    let shown: Vec<Value> =
        log.iter().map(|entry| json!([entry["target"], entry["detail"]["format"]])).collect();
    let formats = ["csv", "csv", "jsonl", "jsonl"];
    assert_eq!(shown, formats.map(|format| json!([id.to_string(), format])), "each is recorded");
}

async fn the_export_of_an_account_is_for_admins_and_of_this_company(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "crm-1", "name": "Nordlys"})).await;
    let theirs = acme.neighbour().account(json!({"imported_id": "crm-1", "name": "Of Globex"})).await;
    let export = format!("/api/accounts/{}/export/", id_of(&account));
    // Its deliveries and audit entries are for admins, whoever may export accounts.
    acme.company.set(json!({"export_role": "member"}));
    acme.get(&export).token(&acme.token_of(Role::Member)).expect_refused(403, "role_required").await;
    let member = Person::of(&acme, Role::Member);
    member.see(&format!("/accounts/{}", id_of(&account))).await.expect(200).says_not("Export everything");
    member.see(&format!("/accounts/{}/export", id_of(&account))).await.expect(403);
    for unknown in
        [format!("/api/accounts/{}/export/", id_of(&theirs)), "/api/accounts/acc_x/export/".to_owned()]
    {
        acme.get(&unknown).send().await.expect_problem(404, "not_found");
    }
    let ana = Person::of(&acme, Role::Admin);
    ana.see(&format!("/accounts/{}/export", id_of(&theirs))).await.expect(404);
    let wrong = acme.get(&format!("{export}?format=zip&x=1")).send().await.faults();
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    assert!(acme.all_pages("/api/audit/?action=account.data_exported", 10).await.is_empty());
}

async fn a_deleted_account_is_exported_until_it_is_forgotten(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "crm-1", "name": "Nordlys"})).await;
    let path = format!("/api/accounts/{}/", id_of(&account));
    acme.delete(&path).send().await.expect(204);
    let file = acme.get(&format!("{path}export/")).send().await;
    assert_eq!(file.status, 200);
    let lines = lines(file.text());
    assert!(lines.iter().any(|line| line["table"] == "account_tombstone"));
    assert!(!lines.iter().any(|line| line["table"] == "account"));
}

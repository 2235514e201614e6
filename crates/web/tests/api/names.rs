//! An account's name has something to see, whatever creates or renames the account.

use rapport_app::credential::{Key, RotateKey};
use rapport_app::import::{Runner, Stepped};
use rapport_domain::member::Role;
use serde_json::{Value, json};

use crate::harness::{Tenant, on_both_engines, path_of};
use crate::person::Person;

on_both_engines! {
    the_management_api_refuses_a_name_that_nobody_can_see,
    an_upsert_refuses_a_name_that_nobody_can_see,
    a_page_refuses_a_name_that_nobody_can_see,
    a_lookup_refuses_a_name_that_nobody_can_see,
    an_import_fails_the_row_of_a_name_that_nobody_can_see,
    a_mail_names_its_account_by_something_visible,
    an_imported_id_that_nobody_can_see_is_no_name,
}

const UNSEEN: [&str; 7] =
    [" ", "\t\n", "\u{a0}\u{3000}", "\u{200b}", "\u{3164}", "\u{feff}\u{2060}", "\u{7f}\u{e0020}"];

async fn the_management_api_refuses_a_name_that_nobody_can_see(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "a"})).await;
    for name in UNSEEN {
        let body = json!({ "name": name });
        acme.post("/api/accounts/").json(&body).expect_faults(&[("/name", "invisible")]).await;
        acme.patch(&path_of(&account)).json(&body).expect_faults(&[("/name", "invisible")]).await;
    }
    let padded = json!({"name": " \u{200b}Nordlys "});
    let made = acme.post("/api/accounts/").json(&padded).send().await.expect(201);
    assert_eq!(made["name"], padded["name"], "as it was sent");
}

async fn an_upsert_refuses_a_name_that_nobody_can_see(acme: Tenant) {
    for name in UNSEEN {
        let body = json!({"imported_id": "new", "name": name});
        acme.upserting(body.clone()).expect_faults(&[("/name", "invisible")]).await;
        let batch = json!({"project": acme.slug(), "accounts": [body]});
        let reply = acme.post("/api/accounts/upsert-batch/").json(&batch).send().await.expect(200);
        let error = &reply["results"][0]["error"]["errors"][0];
        assert_eq!((&error["pointer"], &error["code"]), (&json!("/accounts/0/name"), &json!("invisible")));
    }
    assert!(acme.company.find("new").is_none());
}

async fn a_page_refuses_a_name_that_nobody_can_see(acme: Tenant) {
    let ana = Person::of(&acme, Role::Member);
    for name in ["\u{200b}", "\u{3164}"] {
        let fields = [("name", name), ("status", "prospect")];
        ana.send("/accounts/new", &fields)
            .await
            .expect(422)
            .says("Must contain at least one visible character");
    }
    assert!(acme.all_pages("/api/accounts/", 50).await.is_empty());
}

async fn a_lookup_refuses_a_name_that_nobody_can_see(acme: Tenant) {
    let body = json!({"domain": "nordlys.test", "create": true, "name": "\u{3164}"});
    acme.post("/api/lookup/").json(&body).expect_faults(&[("/name", "invisible")]).await;
}

async fn an_import_fails_the_row_of_a_name_that_nobody_can_see(acme: Tenant) {
    let file = "imported_id,name\ncrm-1,Nordlys\ncrm-2,\u{3164}\ncrm-3,\u{a0}\n";
    let call = acme.post("/api/imports/?filename=accounts.csv").bytes(file.into());
    let import = call.header("content-type", "text/csv").send().await.expect(201);
    let path = format!("/api/imports/{}/", import["id"].as_str().expect("an id"));
    acme.post(&format!("{path}start/")).json(&json!({})).send().await.expect(202);
    let id = import["id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
    let mut runner = Runner::new(acme.company.app(), acme.company.id(), id);
    while runner.step().await.expect("a step") == Stepped::More {}
    let counts = acme.get(&path).send().await.expect(200)["counts"].clone();
    assert_eq!((&counts["created"], &counts["failed"]), (&json!(2), &json!(1)));
    let errors = acme.get(&format!("{path}errors/")).send().await;
    assert!(errors.text().contains("name: must contain at least one visible character"), "{}", errors.text());
    assert!(acme.company.find("crm-2").is_none());
    assert_eq!(acme.shown("crm-3").await["name"], json!("crm-3"), "an empty cell is no name");
}

async fn a_mail_names_its_account_by_something_visible(acme: Tenant) {
    let key = acme.company.write(RotateKey(Key::Inbound)).expect("a key").text;
    let mail = "From: \"\u{3164}\u{200b}\" <ana@nordlys.test>\r\nTo: sales@acme.test\r\nSubject: Offer\r\n\
                Message-ID: <1@nordlys.test>\r\n\r\nHello.\r\n";
    let call = acme.post("/api/inbound/email/").bytes(mail.into()).header("content-type", "message/rfc822");
    let reply = call.without("authorization").header("x-service-inbound-key", &key).send().await.expect(201);
    let path = format!("/api/accounts/{}/", reply["account_id"].as_str().expect("an id"));
    assert_eq!(acme.get(&path).send().await.expect(200)["name"], json!("nordlys.test"));
}

async fn an_imported_id_that_nobody_can_see_is_no_name(acme: Tenant) {
    for imported_id in [" ", "\u{200b}", "\u{3164}"] {
        let account: Value = acme.account(json!({ "imported_id": imported_id })).await;
        assert_eq!((&account["imported_id"], &account["name"]), (&json!(imported_id), &account["id"]));
        let named = acme.account(json!({"imported_id": format!("{imported_id}x"), "name": "Nordlys"})).await;
        assert_eq!(named["name"], json!("Nordlys"));
    }
}

//! Account filters by custom field, channel, last seen and last contact, and the list of field names.

use rapport_testkit::TestCompany;
use serde_json::{Value, json};

use crate::harness::{Server, Tenant, column, on_both_engines};

on_both_engines! {
    accounts_are_found_by_their_custom_fields,
    a_changed_field_is_found_by_its_current_value,
    accounts_are_found_by_several_channels,
    accounts_are_found_by_last_seen_and_never_seen,
    accounts_are_found_by_last_contact_and_never_contacted,
    held_accounts_are_found,
    errors_in_filters_are_named,
    the_names_of_fields_are_listed,
}

/// The imported_ids that a query finds, oldest first.
async fn found(acme: &Tenant, query: &str) -> Vec<String> {
    column(&acme.all_pages(&format!("/api/accounts/?sort=created_at&{query}"), 2).await, "imported_id")
}

async fn accounts_are_found_by_their_custom_fields(acme: Tenant) {
    let accounts = [
        ("a", json!({"plan": "Pro", "seats": 12, "vip": true, "tags": ["red", "Blue"], "city": "Berlin"})),
        (
            "b",
            json!({"plan": "free", "seats": "12", "vip": false, "tags": [], "city": "Bern", "a b,c": "x y"}),
        ),
        ("c", json!({"plan": "PRO", "seats": 1.50, "vip": "true", "city": {"name": "Berlin"}, "größe": "L"})),
        ("d", json!({})),
    ];
    for (id, fields) in &accounts {
        acme.upsert(json!({"imported_id": id, "custom_fields": fields})).await.expect(201);
    }
    let table: [(&str, &[&str]); 22] = [
        ("field.plan=pro", &["a", "c"]),
        ("field.plan=PRO", &["a", "c"]),
        ("field.plan=pr", &[]),
        ("field.plan=free&field.plan=pro", &["a", "b", "c"]),
        ("field.Plan=pro", &[]),
        ("field.seats=12", &["a", "b"]),
        ("field.seats=12.0", &["a"]),
        ("field.seats=1.5", &["c"]),
        ("field.vip=true", &["a", "c"]),
        ("field.vip=false", &["b"]),
        ("field.tags=blue", &["a"]),
        ("field.city=Berlin", &["a"]),
        ("field.a%20b%2Cc=X+Y", &["b"]),
        ("field.gr%C3%B6%C3%9Fe=l", &["c"]),
        ("has_field=city", &["a", "b", "c"]),
        ("has_field=tags&has_field=city", &["a", "b"]),
        ("has_field=none", &[]),
        ("field_prefix.city=ber", &["a", "b"]),
        ("field_prefix.city=berl", &["a"]),
        ("field_prefix.tags=bl", &["a"]),
        ("field.plan=pro&field.vip=true&has_field=tags", &["a"]),
        ("field.plan=", &["a", "b", "c", "d"]),
    ];
    for (query, expected) in table {
        assert_eq!(found(&acme, query).await, expected, "{query}");
        for sort in ["name", "-last_seen_at"] {
            let path = format!("/api/accounts/?sort={sort}&{query}");
            assert_eq!(acme.all_pages(&path, 2).await.len(), expected.len(), "{query} by {sort}");
        }
    }
}

async fn a_changed_field_is_found_by_its_current_value(acme: Tenant) {
    let account =
        acme.account(json!({"imported_id": "a", "custom_fields": {"plan": "pro", "tags": ["x"]}})).await;
    let path = crate::harness::path_of(&account);
    acme.patch(&path).json(&json!({"custom_fields": {"plan": "max", "tags": null}})).send().await.expect(200);
    assert_eq!(found(&acme, "field.plan=max").await, ["a"]);
    for gone in ["field.plan=pro", "has_field=tags", "field.tags=x"] {
        assert_eq!(found(&acme, gone).await, Vec::<String>::new(), "{gone}");
    }
    acme.delete(&path).send().await.expect(204);
    assert_eq!(found(&acme, "field.plan=max").await, Vec::<String>::new());
    acme.account(json!({"imported_id": "a"})).await;
    assert_eq!(
        found(&acme, "field.plan=max").await,
        Vec::<String>::new(),
        "a new account with the same imported_id starts without fields"
    );
}

async fn accounts_are_found_by_several_channels(acme: Tenant) {
    let mut ids = Vec::new();
    for (name, code) in [("Fair", "FAIR"), ("Web", "WEB"), ("Other", "OTHER")] {
        ids.push(acme.company.channel(name, &[code]).id);
        acme.upsert(json!({"imported_id": name, "promo_code": code, "status": "lost"})).await.expect(201);
    }
    acme.upsert(json!({"imported_id": "none"})).await.expect(201);
    let [fair, web, _] = ids[..] else { panic!("three channels") };
    for query in [format!("channel={fair},{web}"), format!("channel={web}&channel={fair}&channel={web}")] {
        assert_eq!(found(&acme, &query).await, ["Fair", "Web"], "{query}");
        assert_eq!(found(&acme, &format!("{query}&status=lost,customer")).await, ["Fair", "Web"]);
        assert_eq!(found(&acme, &format!("{query}&status=customer")).await, Vec::<String>::new());
    }
}

async fn accounts_are_found_by_last_seen_and_never_seen(server: Server) {
    for id in ["a", "b", "c"] {
        server.upsert(json!({"imported_id": id})).await.expect(201);
    }
    server.accept(json!({"imported_id": "a", "kind": "app_opened", "occurred_at": "2025-12-01"})).await;
    server.accept(json!({"imported_id": "b", "kind": "app_opened", "occurred_at": "2026-01-02"})).await;
    for (query, expected) in [
        ("seen=true", ["a", "b"].as_slice()),
        ("seen=false", &["c"]),
        ("seen_before=2025-12-15", &["a"]),
        ("seen=true&seen_after=2025-12-15", &["b"]),
        ("seen=false&seen_after=2025-12-15", &[]),
    ] {
        assert_eq!(found(&server, query).await, expected, "{query}");
        let by_last_seen = server.all_pages(&format!("/api/accounts/?sort=-last_seen_at&{query}"), 1).await;
        assert_eq!(by_last_seen.len(), expected.len(), "{query}");
    }
}

/// Sets the last contact of an account.
fn contact(company: &TestCompany, imported_id: &str, at: &str) {
    let found = company.account(imported_id);
    company
        .write(NoteContact { id: found.id, at: rapport_domain::time::Time::parse(at).expect("a time") })
        .expect("written");
}

/// Sets the last contact like recording one does.
struct NoteContact {
    id: rapport_domain::id::AccountId,
    at: rapport_domain::time::Time,
}

impl rapport_app::Command for NoteContact {
    type Reply = ();
    const NEEDS: rapport_app::Needs = rapport_app::Needs::Right(rapport_domain::right::Right::Read);

    fn run(&self, tx: &mut rapport_store::Tx, cx: &rapport_app::Context) -> Result<(), rapport_app::Error> {
        let before = rapport_store::account::lock(tx, &[self.id])?.remove(0);
        let mut account = before.clone();
        assert!(account.contact(self.at, cx.now));
        let edit = rapport_store::account::Edit { before: &before, after: &account };
        Ok(rapport_store::account::update(tx, &[edit])?)
    }
}

async fn accounts_are_found_by_last_contact_and_never_contacted(acme: Tenant) {
    for id in ["a", "b", "c"] {
        acme.upsert(json!({"imported_id": id})).await.expect(201);
    }
    contact(&acme.company, "a", "2025-12-01");
    contact(&acme.company, "b", "2026-01-02T00:00:00Z");
    for (query, expected) in [
        ("contacted=true", ["a", "b"].as_slice()),
        ("contacted=false", &["c"]),
        ("contacted_before=2026-01-02", &["a"]),
        ("contacted_after=2025-12-01", &["b"]),
        ("contacted_after=2025-11-30&contacted_before=2026-02-01", &["a", "b"]),
        ("contacted=false&contacted_after=2025-12-01", &[]),
    ] {
        assert_eq!(found(&acme, query).await, expected, "{query}");
        for sort in ["name", "-last_seen_at"] {
            let path = format!("/api/accounts/?sort={sort}&{query}");
            assert_eq!(acme.all_pages(&path, 2).await.len(), expected.len(), "{query} by {sort}");
        }
    }
}

async fn held_accounts_are_found(acme: Tenant) {
    for id in ["a", "b"] {
        acme.upsert(json!({"imported_id": id, "status": "do_not_contact"})).await.expect(201);
    }
    acme.accept(json!({"imported_id": "b", "kind": "became_customer"})).await;
    assert_eq!(found(&acme, "campaign_hold=true").await, ["b"]);
    assert_eq!(found(&acme, "campaign_hold=false").await, ["a"]);
    let moved = acme.post(&format!("/api/accounts/{}/status/", acme.company.account("b").id));
    moved.json(&json!({"status": "lost"})).send().await.expect(200);
    assert_eq!(found(&acme, "campaign_hold=true").await, Vec::<String>::new());
}

async fn errors_in_filters_are_named(acme: Tenant) {
    let long = "x".repeat(129);
    let query = format!(
        "channel=x&seen=maybe&contacted_before=then&campaign_hold=1&field.={0}&field.{long}=1&field.k=%00&fields.a=1&\
         has_field=%00",
        "v"
    );
    let faults = [
        ("channel", "malformed"),
        ("seen", "wrong_type"),
        ("contacted_before", "malformed"),
        ("campaign_hold", "wrong_type"),
        ("field.", "empty"),
        (&format!("field.{long}"), "too_long"),
        ("field.k", "nul_character"),
        ("has_field", "nul_character"),
        ("fields.a", "unknown_parameter"),
    ];
    acme.get(&format!("/api/accounts/?{query}")).expect_faults(&faults).await;
    let many: Vec<String> = (0..11).map(|n| format!("field.k{n}=1")).collect();
    acme.get(&format!("/api/accounts/?{}", many.join("&"))).expect_faults(&[("field", "too_many")]).await;
}

async fn the_names_of_fields_are_listed(acme: Tenant) {
    assert_eq!(acme.all_pages("/api/fields/", 50).await, Vec::<Value>::new());
    for n in 0..5 {
        let fields = json!({"plan": n, "seats": n, format!("only-{n}"): null, "Größe": [], "a/b c": {}});
        acme.upsert(json!({"imported_id": format!("crm-{n}"), "custom_fields": fields})).await.expect(201);
    }
    acme.neighbour().upsert(json!({"imported_id": "x", "custom_fields": {"theirs": 1}})).await.expect(201);
    for limit in [1, 2, 50] {
        let names = column(&acme.all_pages("/api/fields/", limit).await, "name");
        assert_eq!(names, ["Größe", "a/b c", "plan", "seats"]);
    }
    acme.get("/api/fields/?cursor=x&q=1")
        .expect_faults(&[("cursor", "invalid_cursor"), ("q", "unknown_parameter")])
        .await;
}

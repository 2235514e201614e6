//! Accounts as CSV.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::harness::{Answer, Server, Tenant, column, on_both_engines};

const EXPORT: &str = "/api/accounts/export/";

on_both_engines! {
    accounts_are_exported_with_a_column_for_every_custom_field,
    no_cell_is_a_formula,
    an_export_matches_the_list,
    a_long_export_is_complete,
    the_file_has_a_plain_name,
    invalid_and_unauthenticated_requests_are_refused_before_anything_is_sent,
}

/// The rows of an export, each by column name.
pub fn read_csv(answer: &Answer) -> Vec<BTreeMap<String, String>> {
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    assert_eq!(answer.header("content-type"), Some("text/csv; charset=utf-8; header=present"));
    let text = answer.text().strip_prefix('\u{feff}').expect("a byte order mark");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let names = reader.headers().expect("a header").clone();
    let row = |record: csv::StringRecord| -> BTreeMap<String, String> {
        names.iter().map(str::to_owned).zip(record.iter().map(str::to_owned)).collect()
    };
    reader.records().map(|record| row(record.expect("a record"))).collect()
}

async fn export(acme: &Tenant, query: &str) -> Vec<BTreeMap<String, String>> {
    read_csv(&acme.get(&format!("{EXPORT}{query}")).send().await)
}

async fn accounts_are_exported_with_a_column_for_every_custom_field(acme: Tenant) {
    acme.company.channel("Spring, fair", &["SPRING"]);
    acme.upsert(json!({
        "imported_id": "crm-1", "name": "Keller \"&\" Sohn,\r\n株式会社", "status": "in_trial", "promo_code": "spring",
        "captured_value": "1200.5", "captured_value_currency": "EUR",
        "custom_fields": {"plan": "pro", "seats": 12, "vip": true, "tags": ["a", 1], "of": {"x": 1}},
    }))
    .await
    .expect(201);
    acme.accept(json!({"imported_id": "crm-1", "kind": "app_opened"})).await;
    acme.post("/api/accounts/")
        .json(&json!({"name": "Plain", "custom_fields": {"seats": -5}}))
        .send()
        .await
        .expect(201);
    let answer = acme.get(EXPORT).send().await;
    let header = answer.text().trim_start_matches('\u{feff}').lines().next().unwrap().to_owned();
    let expected = "id,imported_id,name,status,captured_value,captured_value_currency,channel,promo_code,acquired_at,\
                    last_contact_at,first_seen_at,last_seen_at,created_at,updated_at,custom_fields.of,\
                    custom_fields.plan,custom_fields.seats,custom_fields.tags,custom_fields.vip,other_fields";
    assert_eq!(header, expected);
    let rows = read_csv(&answer);
    let shown = acme.shown("crm-1").await;
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    for member in [
        "id",
        "imported_id",
        "name",
        "status",
        "captured_value",
        "captured_value_currency",
        "promo_code",
        "acquired_at",
        "first_seen_at",
        "last_seen_at",
        "created_at",
        "updated_at",
    ] {
        assert_eq!(rows[0][member], text(&shown[member]), "{member}");
    }
    assert_eq!(rows[0]["channel"], "Spring, fair");
    assert_eq!(rows[0]["last_contact_at"], "");
    let fields =
        ["of", "plan", "seats", "tags", "vip"].map(|key| rows[0][&format!("custom_fields.{key}")].as_str());
    assert_eq!(fields, [r#"{"x":1}"#, "pro", "12", r#"["a",1]"#, "true"]);
    assert_eq!((rows[1]["imported_id"].as_str(), rows[1]["custom_fields.plan"].as_str()), ("", ""));
    assert_eq!(rows[1]["custom_fields.seats"], "-5", "a negative number is not a formula");
}

async fn no_cell_is_a_formula(acme: Tenant) {
    for (n, bad) in ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "\n=x"].into_iter().enumerate() {
        let body = json!({"imported_id": format!("{bad}{n}"), "name": bad, "custom_fields": {"=key": bad, "safe": "a=b"}});
        acme.upsert(body).await.expect(201);
        let rows = export(&acme, "").await;
        for member in ["name", "custom_fields.=key"] {
            assert_eq!(rows[n][member], format!("'{bad}"), "{member}");
        }
        assert_eq!(rows[n]["imported_id"], format!("'{bad}{n}"));
        assert_eq!(rows[n]["custom_fields.safe"], "a=b");
    }
}

async fn an_export_matches_the_list(acme: Tenant) {
    for n in 0..6 {
        let status = if n % 2 == 0 { "customer" } else { "lost" };
        let body =
            json!({"imported_id": format!("crm-{n}"), "status": status, "custom_fields": {"n": n % 3}});
        acme.upsert(body).await.expect(201);
    }
    for query in
        ["", "?status=customer", "?status=lost&field.n=1", "?q=crm-4", "?has_field=none", "?seen=true"]
    {
        let mut listed = column(&acme.all_pages(&format!("/api/accounts/{query}"), 4).await, "imported_id");
        listed.reverse();
        let exported: Vec<String> =
            export(&acme, query).await.into_iter().map(|row| row["imported_id"].clone()).collect();
        assert_eq!(exported, listed, "{query}");
    }
}

async fn a_long_export_is_complete(acme: Tenant) {
    let ids: Vec<String> = (0..450).map(|n| format!("crm-{n:03}")).collect();
    for id in &ids {
        acme.company.upsert(json!({"imported_id": id, "custom_fields": {"plan": "pro"}}));
    }
    let answer = acme.get(EXPORT).send().await;
    assert_eq!(answer.header("transfer-encoding"), Some("chunked"), "its length is not known in advance");
    let exported: Vec<String> = read_csv(&answer).into_iter().map(|row| row["imported_id"].clone()).collect();
    assert_eq!(exported, ids, "each once, oldest first");
}

async fn the_file_has_a_plain_name(server: Server) {
    let answer = server.get(EXPORT).send().await;
    assert_eq!(
        answer.header("content-disposition"),
        Some("attachment; filename=\"accounts-2026-01-05.csv\"")
    );
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let body = json!({"name": "Spring \"fair\"; 株/..\\\r\nX-Evil: 1", "goal": "announcement"});
    let made = server.post("/api/campaigns/").json(&body).send().await.expect(201);
    let path = format!("/api/campaigns/{}/export/", made["id"].as_str().unwrap());
    let answer = server.get(&path).send().await;
    let expected = "attachment; filename=\"campaign-spring-fair-x-evil-1-2026-01-05.csv\"";
    assert_eq!(answer.header("content-disposition"), Some(expected));
    assert_eq!(answer.header("x-evil"), None);
}

async fn invalid_and_unauthenticated_requests_are_refused_before_anything_is_sent(acme: Tenant) {
    acme.get(EXPORT).without_credential().expect_refused(401, "unauthenticated").await;
    let odd = acme.get(&format!("{EXPORT}?status=x&limit=5&sort=name"));
    odd.expect_faults(&[
        ("status", "unknown_status"),
        ("limit", "unknown_parameter"),
        ("sort", "unknown_parameter"),
    ])
    .await;
    let globex = acme.neighbour();
    globex.upsert(json!({"imported_id": "theirs", "custom_fields": {"their_field": 1}})).await.expect(201);
    let answer = acme.get(EXPORT).send().await;
    assert!(read_csv(&answer).is_empty() && !answer.text().contains("their"), "{}", answer.text());
}

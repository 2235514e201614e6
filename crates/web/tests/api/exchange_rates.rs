//! `exchange-rates/`: what other currencies are worth in the default currency, from a day on.

use rapport_domain::member::Role;
use serde_json::{Value, json};

use crate::harness::{Tenant, column, members_of, on_both_engines};

on_both_engines! {
    a_rate_is_added_changed_and_deleted,
    rates_are_listed_by_currency_with_the_latest_first_in_pages,
    rates_belong_to_the_default_currency_they_were_added_for,
    errors_are_named_and_nothing_is_written,
    rates_are_read_by_everyone_and_changed_by_admins,
}

const LIST: &str = "/api/exchange-rates/";

async fn add(acme: &Tenant, currency: &str, valid_from: &str, rate: &str) -> Value {
    let body = json!({"currency": currency, "valid_from": valid_from, "rate": rate});
    acme.post(LIST).json(&body).send().await.expect(201)
}

fn one(rate: &Value) -> String {
    format!("{LIST}{}/", rate["id"].as_str().expect("an id"))
}

async fn a_rate_is_added_changed_and_deleted(acme: Tenant) {
    let added = add(&acme, "chf", "2026-01-01", "1.10").await;
    assert_eq!(members_of(&added).join(" "), "base_currency created_at currency id rate valid_from");
    assert!(added["id"].as_str().expect("an id").starts_with("rat_"), "{added}");
    assert_eq!((&added["currency"], &added["base_currency"]), (&json!("CHF"), &json!("USD")));
    assert_eq!((&added["valid_from"], &added["rate"]), (&json!("2026-01-01"), &json!("1.1")));
    let path = one(&added);
    assert_eq!(acme.get(&path).send().await.expect(200), added);
    // A number is read by its digits.
    let changed = acme.patch(&path).text(r#"{"rate": 0.0061234567}"#).send().await.expect(200);
    assert_eq!((&changed["rate"], &changed["valid_from"]), (&json!("0.0061234567"), &added["valid_from"]));
    let moved = acme.patch(&path).json(&json!({"valid_from": "2026-02-01"})).send().await.expect(200);
    assert_eq!((&moved["rate"], &moved["valid_from"]), (&changed["rate"], &json!("2026-02-01")));
    acme.delete(&path).send().await.expect(204);
    acme.get(&path).expect_refused(404, "not_found").await;
    acme.delete(&path).expect_refused(404, "not_found").await;
    acme.patch(&path).json(&json!({"rate": "1"})).expect_refused(404, "not_found").await;
}

async fn rates_are_listed_by_currency_with_the_latest_first_in_pages(acme: Tenant) {
    for (currency, day) in
        [("SEK", "2026-01-01"), ("CHF", "2026-01-01"), ("CHF", "2026-03-01"), ("CHF", "2026-02-01")]
    {
        add(&acme, currency, day, "1.5").await;
    }
    for limit in [1, 2, 50] {
        let found = acme.all_pages(LIST, limit).await;
        assert_eq!(column(&found, "currency"), ["CHF", "CHF", "CHF", "SEK"], "by {limit}");
        let days = ["2026-03-01", "2026-02-01", "2026-01-01", "2026-01-01"];
        assert_eq!(column(&found, "valid_from"), days, "by {limit}");
        let found = acme.all_pages(&format!("{LIST}?currency=chf"), limit).await;
        assert_eq!(column(&found, "valid_from"), days[..3], "by {limit}");
    }
    let page = acme.get(&format!("{LIST}?limit=1")).send().await.expect(200);
    let cursor = page["next_cursor"].as_str().expect("a cursor");
    let of_another = format!("{LIST}?currency=SEK&cursor={cursor}");
    acme.get(&of_another).expect_faults(&[("cursor", "invalid_cursor")]).await;
    let faults =
        [("base_currency", "unknown_currency"), ("currency", "unknown_currency"), ("x", "unknown_parameter")];
    acme.get(&format!("{LIST}?currency=XXY&base_currency=1&x=1")).expect_faults(&faults).await;
}

async fn rates_belong_to_the_default_currency_they_were_added_for(acme: Tenant) {
    let to_usd = add(&acme, "CHF", "2026-01-01", "1.10").await;
    acme.patch("/api/settings/").json(&json!({"default_currency": "EUR"})).send().await.expect(200);
    assert_eq!(acme.all_pages(LIST, 50).await.len(), 0);
    let to_eur = add(&acme, "CHF", "2026-01-01", "1.05").await;
    assert_eq!(to_eur["base_currency"], json!("EUR"));
    assert_eq!(acme.all_pages(LIST, 50).await, [to_eur]);
    assert_eq!(acme.all_pages(&format!("{LIST}?base_currency=usd"), 50).await, std::slice::from_ref(&to_usd));
    assert_eq!(acme.get(&one(&to_usd)).send().await.expect(200), to_usd);
    let body = json!({"currency": "EUR", "valid_from": "2026-01-01", "rate": "1"});
    acme.post(LIST).json(&body).expect_faults(&[("/currency", "default_currency")]).await;
}

async fn errors_are_named_and_nothing_is_written(acme: Tenant) {
    let known = add(&acme, "CHF", "2026-01-01", "1.10").await;
    let body = |currency: &str, day: &str, rate: Value| json!({"currency": currency, "valid_from": day, "rate": rate});
    let refused: [(Value, &[(&str, &str)]); 5] = [
        (json!({}), &[("/currency", "required"), ("/valid_from", "required"), ("/rate", "required")]),
        (body("CHF", "2026-02-30", json!("0")), &[("/valid_from", "malformed"), ("/rate", "out_of_range")]),
        (
            body("XXY", "1970-12-31", json!("-1")),
            &[("/currency", "unknown_currency"), ("/valid_from", "out_of_range"), ("/rate", "negative")],
        ),
        (body("CHF", "2026-03-01", json!("1.00000000001")), &[("/rate", "out_of_range")]),
        (
            json!({"currency": "CHF", "valid_from": "2026-03-01", "rate": "1", "base_currency": "EUR"}),
            &[("/base_currency", "unknown_member")],
        ),
    ];
    for (body, faults) in refused {
        acme.post(LIST).json(&body).expect_faults(faults).await;
    }
    acme.post(LIST).json(&body("CHF", "2026-01-01", json!("2"))).expect_refused(409, "rate_taken").await;
    let other = add(&acme, "CHF", "2026-02-01", "1.20").await;
    let taken = acme.patch(&one(&other)).json(&json!({"valid_from": "2026-01-01"}));
    taken.expect_refused(409, "rate_taken").await;
    acme.patch(&one(&other))
        .json(&json!({"currency": "SEK"}))
        .expect_faults(&[("/currency", "unknown_member")])
        .await;
    assert_eq!(acme.all_pages(LIST, 50).await, [other, known]);
}

async fn rates_are_read_by_everyone_and_changed_by_admins(acme: Tenant) {
    let known = add(&acme, "CHF", "2026-01-01", "1.10").await;
    let (viewer, member) = (acme.token_of(Role::Viewer), acme.token_of(Role::Member));
    assert_eq!(acme.get(&one(&known)).token(&viewer).send().await.expect(200), known);
    let body = json!({"currency": "SEK", "valid_from": "2026-01-01", "rate": "1"});
    for token in [&viewer, &member] {
        acme.post(LIST).json(&body).token(token).expect_refused(403, "role_required").await;
        let change = acme.patch(&one(&known)).json(&json!({"rate": "2"}));
        change.token(token).expect_refused(403, "role_required").await;
        acme.delete(&one(&known)).token(token).expect_refused(403, "role_required").await;
    }
    let neighbour = acme.neighbour();
    neighbour.get(&one(&known)).expect_refused(404, "not_found").await;
    neighbour.patch(&one(&known)).json(&json!({"rate": "2"})).expect_refused(404, "not_found").await;
    neighbour.delete(&one(&known)).expect_refused(404, "not_found").await;
    assert_eq!(neighbour.all_pages(LIST, 50).await.len(), 0);
    assert_eq!(acme.all_pages(LIST, 50).await, [known]);
}

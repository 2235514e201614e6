//! Promo code (channel): allowed characters, uniqueness and matching.

use rapport_domain::id::ChannelId;
use serde_json::{Value, json};

use crate::harness::{Tenant, on_both_engines};

on_both_engines! {
    a_code_has_letters_digits_hyphens_and_underscores,
    a_code_has_at_most_64_characters,
    any_other_character_is_refused,
    a_code_is_unique_per_company_ignoring_case,
    two_companies_may_have_the_same_code,
    a_code_of_another_company_does_not_match,
    matching_on_upsert_is_case_insensitive,
    a_channel_may_have_several_codes,
    an_archived_code_never_matches_and_what_it_attributed_stays,
    an_archived_codes_name_stays_taken_and_a_restored_one_matches_again,
    a_deleted_code_never_matches_what_it_attributed_stays_and_its_name_is_free,
    a_management_request_needs_an_active_code,
}

/// The path of a new channel's codes.
async fn channel(acme: &Tenant, name: &str) -> String {
    let made = acme.post("/api/channels/").json(&json!({ "name": name })).send().await.expect(201);
    let id: ChannelId = made["id"].as_str().unwrap().parse().unwrap();
    format!("/api/channels/{id}/codes/")
}

async fn add(acme: &Tenant, codes: &str, code: &str) -> Value {
    acme.post(codes).json(&json!({ "code": code })).send().await.expect(201)
}

async fn matched(acme: &Tenant, imported_id: &str, code: &str) -> bool {
    let reply = acme.upsert(json!({"imported_id": imported_id, "promo_code": code})).await.json();
    reply["promo_code_matched"].as_bool().unwrap_or_else(|| panic!("no promo_code_matched: {reply}"))
}

async fn a_code_has_letters_digits_hyphens_and_underscores(acme: Tenant) {
    let codes = channel(&acme, "Fair").await;
    for code in ["SPRING", "spring_26", "x-1", "0", "-", "_", "aZ09-_"] {
        assert_eq!(add(&acme, &codes, code).await["code"], json!(code));
        assert!(matched(&acme, "a", code).await, "{code}");
    }
}

async fn a_code_has_at_most_64_characters(acme: Tenant) {
    let codes = channel(&acme, "Fair").await;
    let longest = "x".repeat(64);
    add(&acme, &codes, &longest).await;
    assert!(matched(&acme, "a", &longest).await);
    let longer = "x".repeat(65);
    let refused = acme.post(&codes).json(&json!({ "code": longer }));
    refused.expect_faults(&[("/code", "too_long")]).await;
    assert!(!matched(&acme, "b", &longer).await, "in an upsert it never fails the request");
}

async fn any_other_character_is_refused(acme: Tenant) {
    let codes = channel(&acme, "Fair").await;
    for code in ["has space", " x", "a.b", "a/b", "ümlaut", "a\u{0}", "a\n", "ＡＢＣ", "x\u{202e}"] {
        let refused = acme.post(&codes).json(&json!({ "code": code }));
        refused.expect_faults(&[("/code", "bad_characters")]).await;
    }
    acme.post(&codes).json(&json!({"code": ""})).expect_faults(&[("/code", "empty")]).await;
    for code in [json!(7), json!(["x"]), json!({})] {
        acme.post(&codes).json(&json!({ "code": code })).expect_faults(&[("/code", "wrong_type")]).await;
    }
    for body in [json!({}), json!({"code": null})] {
        acme.post(&codes).json(&body).expect_faults(&[("/code", "required")]).await;
    }
}

async fn a_code_is_unique_per_company_ignoring_case(acme: Tenant) {
    let (fair, podcast) = (channel(&acme, "Fair").await, channel(&acme, "Podcast").await);
    add(&acme, &fair, "Spring_26").await;
    for code in ["Spring_26", "SPRING_26", "spring_26"] {
        for codes in [&fair, &podcast] {
            acme.post(codes).json(&json!({ "code": code })).expect_refused(409, "code_taken").await;
        }
    }
    add(&acme, &podcast, "Spring-26").await;
}

async fn two_companies_may_have_the_same_code(acme: Tenant) {
    let globex = acme.neighbour();
    for company in [&acme, &globex] {
        let codes = channel(company, "Fair").await;
        add(company, &codes, "SPRING").await;
        assert!(matched(company, "a", "SPRING").await);
    }
    assert_ne!(acme.shown("a").await["channel"]["id"], globex.shown("a").await["channel"]["id"]);
}

async fn a_code_of_another_company_does_not_match(acme: Tenant) {
    acme.neighbour().company.channel("Fair", &["THEIRS"]);
    assert!(!matched(&acme, "a", "THEIRS").await);
    assert_eq!(acme.shown("a").await["channel"], Value::Null);
}

async fn matching_on_upsert_is_case_insensitive(acme: Tenant) {
    acme.company.channel("Fair", &["Spring_26"]);
    for (number, code) in ["Spring_26", "SPRING_26", "spring_26", "sPrInG_26"].into_iter().enumerate() {
        let id = format!("crm-{number}");
        assert!(matched(&acme, &id, code).await, "{code}");
        assert_eq!(acme.shown(&id).await["promo_code"], json!("Spring_26"), "as the company spells it");
    }
}

async fn a_channel_may_have_several_codes(acme: Tenant) {
    acme.company.channel("Fair", &["ONE", "TWO"]);
    assert!(matched(&acme, "a", "one").await && matched(&acme, "b", "two").await);
    let (a, b) = (acme.shown("a").await, acme.shown("b").await);
    assert_eq!(a["channel"], b["channel"]);
    assert_eq!((&a["promo_code"], &b["promo_code"]), (&json!("ONE"), &json!("TWO")));
}

async fn an_archived_code_never_matches_and_what_it_attributed_stays(acme: Tenant) {
    let codes = channel(&acme, "Fair").await;
    add(&acme, &codes, "SPRING").await;
    assert!(matched(&acme, "before", "SPRING").await);
    let before = acme.shown("before").await;
    let archived = acme.patch(&format!("{codes}SPRING/")).json(&json!({"archived": true})).send().await;
    assert_eq!(archived.expect(200)["archived"], json!(true));
    assert!(!matched(&acme, "after", "SPRING").await);
    assert_eq!(acme.shown("after").await["channel"], Value::Null);
    assert!(!matched(&acme, "before", "spring").await);
    assert_eq!(acme.shown("before").await, before);
}

async fn an_archived_codes_name_stays_taken_and_a_restored_one_matches_again(acme: Tenant) {
    let codes = channel(&acme, "Fair").await;
    add(&acme, &codes, "SPRING").await;
    let path = format!("{codes}spring/");
    acme.patch(&path).json(&json!({"archived": true})).send().await.expect(200);
    acme.post(&codes).json(&json!({"code": "Spring"})).expect_refused(409, "code_taken").await;
    acme.patch(&path).json(&json!({"archived": false})).send().await.expect(200);
    assert!(matched(&acme, "a", "SPRING").await);
}

async fn a_deleted_code_never_matches_what_it_attributed_stays_and_its_name_is_free(acme: Tenant) {
    let codes = channel(&acme, "Fair").await;
    add(&acme, &codes, "SPRING").await;
    assert!(matched(&acme, "before", "SPRING").await);
    let before = acme.shown("before").await;
    acme.delete(&format!("{codes}spring/")).send().await.expect(204);
    assert!(!matched(&acme, "after", "SPRING").await);
    assert_eq!(acme.shown("before").await, before);
    add(&acme, &channel(&acme, "Podcast").await, "spring").await;
    assert!(matched(&acme, "after", "SPRING").await);
    assert_eq!(acme.shown("after").await["channel"]["name"], json!("Podcast"));
}

async fn a_management_request_needs_an_active_code(acme: Tenant) {
    let codes = channel(&acme, "Fair").await;
    add(&acme, &codes, "OLD").await;
    add(&acme, &codes, "LIVE").await;
    acme.patch(&format!("{codes}OLD/")).json(&json!({"archived": true})).send().await.expect(200);
    for code in ["OLD", "never"] {
        let refused = acme.post("/api/accounts/").json(&json!({"name": "A", "promo_code": code}));
        refused.expect_faults(&[("/promo_code", "unknown_promo_code")]).await;
    }
    let refused = acme.post("/api/accounts/").json(&json!({"name": "A", "promo_code": "a b"}));
    refused.expect_faults(&[("/promo_code", "bad_characters")]).await;
    let made = acme.post("/api/accounts/").json(&json!({"name": "A", "promo_code": "live"})).send().await;
    let made = made.expect(201);
    assert_eq!((&made["promo_code"], &made["channel"]["name"]), (&json!("LIVE"), &json!("Fair")));
    let path = format!("/api/accounts/{}/", made["id"].as_str().unwrap());
    let refused = acme.patch(&path).json(&json!({"promo_code": "OLD"}));
    refused.expect_faults(&[("/promo_code", "unknown_promo_code")]).await;
    let off = acme.patch(&path).json(&json!({"promo_code": null})).send().await.expect(200);
    for member in ["promo_code", "channel", "acquired_at"] {
        assert_eq!(off[member], Value::Null, "{member}");
    }
}

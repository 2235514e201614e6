//! POST /api/accounts/upsert-by-imported-id/: the request body's table, the rules, the reply.

use serde_json::{Value, json};

use crate::harness::{Tenant, UPSERT, column, members_of, on_both_engines};

on_both_engines! {
    project_is_required_and_a_string,
    project_must_be_the_tokens_company,
    imported_id_is_required_and_a_string_of_1_to_255_characters,
    imported_id_is_exact_and_case_sensitive,
    imported_id_is_unique_per_company,
    status_is_optional_and_prospect_at_creation,
    status_given_at_creation_is_where_the_account_starts,
    status_null_counts_as_not_sent,
    status_unknown_is_refused_naming_what_is_allowed,
    custom_fields_are_merged_per_key_and_keys_not_sent_stay,
    custom_fields_null_deletes_the_key,
    custom_fields_nested_values_replace_whole,
    custom_fields_take_any_json_value,
    custom_fields_must_be_an_object_and_null_counts_as_not_sent,
    custom_fields_limits_hold_after_the_merge,
    name_is_used_when_the_account_is_created_else_the_imported_id,
    name_on_an_existing_account_is_left_and_listed_under_ignored,
    name_null_counts_as_not_sent,
    name_is_a_string_of_1_to_255_characters_where_it_is_used,
    name_that_is_ignored_never_fails_the_request,
    name_that_is_not_used_is_named_with_the_other_faults,
    promo_code_of_any_kind_never_fails_the_request,
    captured_value_is_a_string_or_a_number_by_its_literal_text,
    captured_value_null_clears_value_and_currency,
    captured_value_without_currency_keeps_the_accounts_else_the_companys,
    captured_value_that_is_not_an_amount_is_refused,
    captured_value_currency_is_read_in_any_case_and_an_unknown_one_refused,
    captured_value_currency_alone_applies_to_the_existing_value,
    captured_value_currency_alone_without_a_value_is_ignored,
    rule_1_only_the_fields_sent_are_patched,
    rule_2_the_account_is_created_when_none_matches,
    rule_3_a_matching_promo_code_places_the_account_on_its_channel,
    rule_4_an_unknown_promo_code_never_fails_and_the_channel_stays,
    rule_5_the_reply_says_whether_a_code_matched,
    rule_6_a_full_resync_adds_no_history_and_no_event,
    the_reply_has_the_decided_members,
    changed_lists_the_accounts_members_that_changed,
    unknown_members_are_ignored,
    creation_writes_a_first_history_entry_and_fires_account_created_only,
    a_move_is_in_the_history_with_source_upsert_and_the_token_as_actor,
    a_refused_upsert_of_an_existing_account_does_not_change_it,
    a_member_token_may_upsert,
    gzip_bodies_are_accepted,
}

async fn project_is_required_and_a_string(acme: Tenant) {
    for body in [json!({"imported_id": "a"}), json!({"imported_id": "a", "project": null})] {
        acme.post(UPSERT).json(&body).expect_faults(&[("/project", "required")]).await;
    }
    for project in [json!(5), json!(true), json!(["acme"]), json!({"slug": "acme"})] {
        let body = json!({"imported_id": "a", "project": project});
        acme.post(UPSERT).json(&body).expect_faults(&[("/project", "wrong_type")]).await;
    }
}

async fn project_must_be_the_tokens_company(acme: Tenant) {
    let globex = acme.neighbour();
    let upper = acme.slug().to_uppercase();
    for project in [globex.slug(), "no-such-company", upper.as_str(), "*", " "] {
        let body = json!({"imported_id": "a", "project": project});
        acme.post(UPSERT).json(&body).expect_refused(403, "foreign_project").await;
    }
    assert!(globex.company.find("a").is_none());
}

async fn imported_id_is_required_and_a_string_of_1_to_255_characters(acme: Tenant) {
    for body in [json!({}), json!({"imported_id": null})] {
        acme.upserting(body).expect_faults(&[("/imported_id", "required")]).await;
    }
    for id in [json!(7), json!(false), json!(["a"]), json!({})] {
        acme.upserting(json!({ "imported_id": id })).expect_faults(&[("/imported_id", "wrong_type")]).await;
    }
    acme.upserting(json!({"imported_id": ""})).expect_faults(&[("/imported_id", "empty")]).await;
    for longest in ["x".repeat(255), "ü".repeat(255), "🦊".repeat(255)] {
        let account = acme.account(json!({ "imported_id": longest })).await;
        assert_eq!(account["imported_id"], json!(longest));
        let longer = format!("{longest}x");
        acme.upserting(json!({ "imported_id": longer })).expect_faults(&[("/imported_id", "too_long")]).await;
    }
}

async fn imported_id_is_exact_and_case_sensitive(acme: Tenant) {
    let ids =
        ["crm-1", "CRM-1", "Crm-1", " crm-1", "crm-1 ", "crm\u{2011}1", "é", "e\u{301}", "0", "00", "%", "_"];
    for id in ids {
        acme.account(json!({ "imported_id": id })).await;
    }
    for id in ids {
        let again = acme.resend(json!({ "imported_id": id })).await;
        assert_eq!(again["account"]["imported_id"], json!(id));
    }
    assert_eq!(acme.all_pages("/api/accounts/", 200).await.len(), ids.len());
}

async fn imported_id_is_unique_per_company(acme: Tenant) {
    let globex = acme.neighbour();
    let ours = acme.account(json!({"imported_id": "crm-1", "name": "Ours"})).await;
    let theirs = globex.account(json!({"imported_id": "crm-1", "name": "Theirs"})).await;
    assert_ne!(ours["id"], theirs["id"]);
    acme.resend(json!({"imported_id": "crm-1", "status": "lost"})).await;
    assert_eq!(globex.shown("crm-1").await, theirs);
    let taken = acme.post("/api/accounts/").json(&json!({"name": "x", "imported_id": "crm-1"}));
    taken.expect_refused(409, "imported_id_taken").await;
}

async fn status_is_optional_and_prospect_at_creation(acme: Tenant) {
    assert_eq!(acme.account(json!({"imported_id": "a"})).await["status"], json!("prospect"));
}

async fn status_given_at_creation_is_where_the_account_starts(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "a", "status": "do_not_contact"})).await;
    assert_eq!(account["status"], json!("do_not_contact"));
    let history = acme.history(&account).await;
    assert_eq!(history.len(), 1);
    assert_eq!((&history[0]["from"], &history[0]["to"]), (&Value::Null, &json!("do_not_contact")));
}

async fn status_null_counts_as_not_sent(acme: Tenant) {
    let body = json!({"imported_id": "a", "status": null});
    assert_eq!(acme.account(body.clone()).await["status"], json!("prospect"));
    acme.resend(json!({"imported_id": "a", "status": "customer"})).await;
    let again = acme.resend(body).await;
    assert_eq!((&again["account"]["status"], &again["changed"]), (&json!("customer"), &json!([])));
}

async fn status_unknown_is_refused_naming_what_is_allowed(acme: Tenant) {
    let refused = acme.upserting(json!({"imported_id": "a", "status": "won"}));
    let answer = refused.expect_faults(&[("/status", "unknown_status")]).await;
    let detail = answer.json()["errors"][0]["detail"].as_str().unwrap().to_owned();
    for word in ["prospect", "contacted", "in_negotiation", "in_trial", "customer", "lost", "do_not_contact"]
    {
        assert!(detail.contains(word), "{detail}");
    }
    for status in [json!(1), json!(["lost"]), json!({}), json!(true)] {
        let refused = acme.upserting(json!({"imported_id": "a", "status": status}));
        refused.expect_faults(&[("/status", "wrong_type")]).await;
    }
}

async fn custom_fields_are_merged_per_key_and_keys_not_sent_stay(acme: Tenant) {
    acme.account(json!({"imported_id": "a", "custom_fields": {"plan": "pro", "seats": 3}})).await;
    let merged = acme.resend(json!({"imported_id": "a", "custom_fields": {"seats": 4, "new": true}})).await;
    assert_eq!(merged["account"]["custom_fields"], json!({"plan": "pro", "seats": 4, "new": true}));
    let untouched = acme.resend(json!({"imported_id": "a", "custom_fields": {}})).await;
    assert_eq!(untouched["account"]["custom_fields"], merged["account"]["custom_fields"]);
    assert_eq!(untouched["changed"], json!([]));
}

async fn custom_fields_null_deletes_the_key(acme: Tenant) {
    let created =
        acme.account(json!({"imported_id": "a", "custom_fields": {"plan": "pro", "gone": null}})).await;
    assert_eq!(created["custom_fields"], json!({"plan": "pro"}), "nothing to delete at creation");
    let deleted = acme.resend(json!({"imported_id": "a", "custom_fields": {"plan": null}})).await;
    assert_eq!(deleted["account"]["custom_fields"], json!({}));
    assert_eq!(deleted["changed"], json!(["custom_fields"]));
    let again = acme.resend(json!({"imported_id": "a", "custom_fields": {"plan": null}})).await;
    assert_eq!(again["changed"], json!([]));
}

async fn custom_fields_nested_values_replace_whole(acme: Tenant) {
    let fields = json!({"address": {"city": "Oslo", "zip": "0150"}, "tags": ["a", "b"]});
    acme.account(json!({"imported_id": "a", "custom_fields": fields})).await;
    let fields = json!({"address": {"city": null, "street": "Kirkegata"}, "tags": ["c"]});
    let replaced = acme.resend(json!({"imported_id": "a", "custom_fields": fields})).await;
    assert_eq!(replaced["account"]["custom_fields"], fields, "a nested null is an ordinary value");
}

async fn custom_fields_take_any_json_value(acme: Tenant) {
    let text = r#"{"array":[1,[2,{"x":null}]],"big":123456789012345678901234567890,"bool":false,"empty":"",
        "exp":1.5E+400,"frac":0.10,"neg":-0,"object":{"a":{"b":[]}},"text":"ü \u0022 \n 🦊","with space/~":1}"#;
    let fields: Value = serde_json::from_str(text).unwrap();
    let sent = format!(r#"{{"project": "{}", "imported_id": "a", "custom_fields": {text}}}"#, acme.slug());
    let answer = acme.post(UPSERT).text(&sent).send().await;
    assert_eq!(answer.expect(201)["account"]["custom_fields"], fields);
    assert_eq!(acme.shown("a").await["custom_fields"], fields);
    for literal in ["123456789012345678901234567890", "0.10", "-0"] {
        assert!(answer.text().contains(literal), "{literal} is kept literally: {}", answer.text());
    }
}

async fn custom_fields_must_be_an_object_and_null_counts_as_not_sent(acme: Tenant) {
    acme.account(json!({"imported_id": "a", "custom_fields": {"n": 1}})).await;
    let null = acme.resend(json!({"imported_id": "a", "custom_fields": null})).await;
    assert_eq!((&null["account"]["custom_fields"], &null["changed"]), (&json!({"n": 1}), &json!([])));
    for fields in [json!([]), json!("x"), json!(1), json!(false)] {
        let refused = acme.upserting(json!({"imported_id": "a", "custom_fields": fields}));
        refused.expect_faults(&[("/custom_fields", "wrong_type")]).await;
    }
}

async fn custom_fields_limits_hold_after_the_merge(acme: Tenant) {
    let many: serde_json::Map<String, Value> = (0..200).map(|n| (format!("k{n:03}"), json!(n))).collect();
    let body = json!({"imported_id": "many", "custom_fields": many});
    assert_eq!(acme.account(body).await["custom_fields"].as_object().unwrap().len(), 200);
    let refused = acme.upserting(json!({"imported_id": "many", "custom_fields": {"more": 1}}));
    refused.expect_faults(&[("/custom_fields", "too_many_keys")]).await;
    acme.resend(json!({"imported_id": "many", "custom_fields": {"more": 1, "k000": null}})).await;

    let key = "ü".repeat(128);
    acme.account(json!({"imported_id": "key", "custom_fields": {key.clone(): 1}})).await;
    let refused = acme.upserting(json!({"imported_id": "key", "custom_fields": {format!("{key}x"): 1}}));
    refused.expect_faults(&[(format!("/custom_fields/{key}").as_str(), "too_long")]).await;
    let refused = acme.upserting(json!({"imported_id": "key", "custom_fields": {"": 1}}));
    refused.expect_faults(&[("/custom_fields/", "empty")]).await;

    // {"k":"…"} has eight bytes around the text.
    let full = "x".repeat(64 * 1024 - 8);
    acme.account(json!({"imported_id": "size", "custom_fields": {"k": full}})).await;
    let refused = acme.upserting(json!({"imported_id": "size", "custom_fields": {"k": format!("{full}x")}}));
    refused.expect_faults(&[("/custom_fields", "too_large")]).await;
    let refused = acme.upserting(json!({"imported_id": "size", "custom_fields": {"more": 1}}));
    refused.expect_faults(&[("/custom_fields", "too_large")]).await;
    acme.resend(json!({"imported_id": "size", "custom_fields": {"more": 1, "k": null}})).await;
}

async fn name_is_used_when_the_account_is_created_else_the_imported_id(acme: Tenant) {
    assert_eq!(acme.account(json!({"imported_id": "a", "name": "Nordlys"})).await["name"], json!("Nordlys"));
    assert_eq!(acme.account(json!({"imported_id": "crm-9"})).await["name"], json!("crm-9"));
}

async fn name_on_an_existing_account_is_left_and_listed_under_ignored(acme: Tenant) {
    acme.account(json!({"imported_id": "a", "name": "Nordlys"})).await;
    for name in ["Other", "Nordlys"] {
        let again = acme.resend(json!({"imported_id": "a", "name": name})).await;
        assert_eq!(again["account"]["name"], json!("Nordlys"));
        assert_eq!((&again["ignored"], &again["changed"]), (&json!(["name"]), &json!([])));
    }
}

async fn name_null_counts_as_not_sent(acme: Tenant) {
    assert_eq!(acme.account(json!({"imported_id": "a", "name": null})).await["name"], json!("a"));
    assert_eq!(acme.resend(json!({"imported_id": "a", "name": null})).await["ignored"], json!([]));
}

async fn name_is_a_string_of_1_to_255_characters_where_it_is_used(acme: Tenant) {
    let longest = "ü".repeat(255);
    assert_eq!(acme.account(json!({"imported_id": "a", "name": longest})).await["name"], json!(longest));
    let table = [
        (json!(format!("{longest}x")), "too_long"),
        (json!(""), "empty"),
        (json!(5), "wrong_type"),
        (json!([]), "wrong_type"),
        (json!("a\u{0}b"), "nul_character"),
        (json!(" \t\u{a0}"), "invisible"),
        (json!("\u{200b}\u{3164}"), "invisible"),
    ];
    for (name, code) in table {
        let refused = acme.upserting(json!({"imported_id": "new", "name": name}));
        refused.expect_faults(&[("/name", code)]).await;
        let refused = acme.upserting(json!({"imported_id": "a", "name": name, "name_policy": "update"}));
        refused.expect_faults(&[("/name", code)]).await;
    }
}

async fn name_that_is_ignored_never_fails_the_request(acme: Tenant) {
    acme.account(json!({"imported_id": "a", "name": "Nordlys"})).await;
    let long = "x".repeat(5000);
    let names = [
        json!(""),
        json!(" "),
        json!("\u{3164}"),
        json!("a\u{0}b"),
        json!(long),
        json!(5),
        json!(1.5),
        json!(true),
        json!([]),
        json!({"first": "Ana"}),
    ];
    for name in names {
        let reply = acme.resend(json!({"imported_id": "a", "name": name})).await;
        assert_eq!(
            (&reply["account"]["name"], &reply["ignored"]),
            (&json!("Nordlys"), &json!(["name"])),
            "{name}"
        );
        let explained = acme.resend(json!({"imported_id": "a", "name": name, "name_policy": "create"})).await;
        assert_eq!(
            (&explained["name_outcome"], &explained["changed"]),
            (&json!("kept"), &json!([])),
            "{name}"
        );
    }
}

async fn name_that_is_not_used_is_named_with_the_other_faults(acme: Tenant) {
    acme.account(json!({"imported_id": "a", "name": "Nordlys"})).await;
    for id in ["a", "new"] {
        let refused = acme.upserting(json!({"imported_id": id, "name": 5, "status": "won"}));
        refused.expect_faults(&[("/name", "wrong_type"), ("/status", "unknown_status")]).await;
    }
}

async fn promo_code_of_any_kind_never_fails_the_request(acme: Tenant) {
    acme.company.channel("Fair", &["1", "true", "null", "X"]);
    let long = "x".repeat(5000);
    let codes = [
        json!(null),
        json!(1),
        json!(1.5),
        json!(true),
        json!(["X"]),
        json!({"code": "X"}),
        json!(""),
        json!(" X"),
        json!("X "),
        json!("a\u{0}b"),
        json!("Ｘ"),
        json!(long),
        json!("unknown"),
    ];
    for (number, code) in codes.into_iter().enumerate() {
        let id = format!("crm-{number}");
        let created = acme.upsert(json!({"imported_id": id, "promo_code": code})).await.expect(201);
        assert_eq!(created["promo_code_matched"], json!(false), "{code}");
        assert_eq!(created["account"]["channel"], Value::Null, "{code}");
        assert_eq!(created["account"]["promo_code"], Value::Null, "{code}");
        let again = acme.resend(json!({"imported_id": id, "promo_code": code})).await;
        assert_eq!((&again["promo_code_matched"], &again["changed"]), (&json!(false), &json!([])), "{code}");
    }
}

async fn captured_value_is_a_string_or_a_number_by_its_literal_text(acme: Tenant) {
    let table = [
        (r#""1200.50""#, "1200.50"),
        ("1200.50", "1200.50"),
        ("12", "12.00"),
        ("0", "0.00"),
        (r#""007""#, "7.00"),
        // These would change if they were parsed as floats.
        ("0.1", "0.10"),
        ("1.005", "1.005"),
        ("99999999999999.9999", "99999999999999.9999"),
        (r#""99999999999999.9999""#, "99999999999999.9999"),
        ("9007199254740.9931", "9007199254740.9931"),
    ];
    for (number, (literal, shown)) in table.into_iter().enumerate() {
        let body = format!(
            r#"{{"project": "{}", "imported_id": "crm-{number}", "captured_value": {literal}}}"#,
            acme.slug()
        );
        let created = acme.post(UPSERT).text(&body).send().await.expect(201);
        assert_eq!(created["account"]["captured_value"], json!(shown), "{literal}");
    }
}

async fn captured_value_null_clears_value_and_currency(acme: Tenant) {
    let body = json!({"imported_id": "a", "captured_value": "5", "captured_value_currency": "EUR"});
    acme.account(body).await;
    let cleared = acme.resend(json!({"imported_id": "a", "captured_value": null})).await;
    assert_eq!(cleared["account"]["captured_value"], Value::Null);
    assert_eq!(cleared["account"]["captured_value_currency"], Value::Null);
    assert_eq!(cleared["changed"], json!(["captured_value", "captured_value_currency"]));
    let again = acme.resend(json!({"imported_id": "a", "captured_value": null})).await;
    assert_eq!(again["changed"], json!([]));
    acme.account(json!({"imported_id": "b", "captured_value": null})).await;
}

async fn captured_value_without_currency_keeps_the_accounts_else_the_companys(acme: Tenant) {
    let fresh = acme.account(json!({"imported_id": "a", "captured_value": "5"})).await;
    assert_eq!(fresh["captured_value_currency"], json!("USD"), "the company's currency, USD by default");
    acme.company.set(json!({"default_currency": "JPY"}));
    let company = acme.account(json!({"imported_id": "b", "captured_value": "5"})).await;
    assert_eq!(
        (&company["captured_value_currency"], &company["captured_value"]),
        (&json!("JPY"), &json!("5"))
    );
    let kept = acme.resend(json!({"imported_id": "a", "captured_value": "6"})).await;
    assert_eq!(kept["account"]["captured_value_currency"], json!("USD"), "the account keeps its currency");
    assert_eq!(kept["changed"], json!(["captured_value"]));
    let null = json!({"imported_id": "a", "captured_value": "7", "captured_value_currency": null});
    assert_eq!(acme.resend(null).await["account"]["captured_value_currency"], json!("USD"));
}

async fn captured_value_that_is_not_an_amount_is_refused(acme: Tenant) {
    let table = [
        ("-1", "negative"),
        (r#""-0.01""#, "negative"),
        ("1e3", "malformed"),
        ("1E3", "malformed"),
        ("1.5e-2", "malformed"),
        (r#""1e3""#, "malformed"),
        (r#""1,000.00""#, "malformed"),
        (r#""1 000""#, "malformed"),
        (r#""$5""#, "malformed"),
        (r#""5 EUR""#, "malformed"),
        (r#""""#, "malformed"),
        (r#"" 5""#, "malformed"),
        (r#""+5""#, "malformed"),
        (r#"".5""#, "malformed"),
        (r#""5.""#, "malformed"),
        (r#""NaN""#, "malformed"),
        (r#""Infinity""#, "malformed"),
        (r#""0x10""#, "malformed"),
        (r#""٣""#, "malformed"),
        ("100000000000000", "out_of_range"),
        (r#""100000000000000""#, "out_of_range"),
        ("0.00001", "out_of_range"),
        (r#""1.00000""#, "out_of_range"),
        ("true", "wrong_type"),
        ("[]", "wrong_type"),
        ("{}", "wrong_type"),
    ];
    for (literal, code) in table {
        let body =
            format!(r#"{{"project": "{}", "imported_id": "a", "captured_value": {literal}}}"#, acme.slug());
        acme.post(UPSERT).text(&body).expect_faults(&[("/captured_value", code)]).await;
    }
}

async fn captured_value_currency_is_read_in_any_case_and_an_unknown_one_refused(acme: Tenant) {
    for (number, code) in ["eur", "EUR", "Eur", "eUr"].into_iter().enumerate() {
        let id = format!("crm-{number}");
        let body = json!({"imported_id": id, "captured_value": "1", "captured_value_currency": code});
        assert_eq!(acme.account(body).await["captured_value_currency"], json!("EUR"), "{code}");
    }
    for code in ["EURO", "E", "", "XYZ", "€", " EUR", "978"] {
        let body = json!({"imported_id": "a", "captured_value": "1", "captured_value_currency": code});
        let refused = acme.upserting(body);
        let answer = refused.expect_faults(&[("/captured_value_currency", "unknown_currency")]).await;
        assert!(answer.text().contains("ISO 4217"), "{}", answer.text());
    }
    let body = json!({"imported_id": "a", "captured_value": "1", "captured_value_currency": 978});
    acme.upserting(body).expect_faults(&[("/captured_value_currency", "wrong_type")]).await;
}

async fn captured_value_currency_alone_applies_to_the_existing_value(acme: Tenant) {
    acme.account(json!({"imported_id": "a", "captured_value": "5.5"})).await;
    let changed = acme.resend(json!({"imported_id": "a", "captured_value_currency": "EUR"})).await;
    assert_eq!(changed["changed"], json!(["captured_value_currency"]));
    assert_eq!(changed["account"]["captured_value"], json!("5.50"));
    assert_eq!(changed["account"]["captured_value_currency"], json!("EUR"));
    assert_eq!(changed["ignored"], json!([]));
}

async fn captured_value_currency_alone_without_a_value_is_ignored(acme: Tenant) {
    let body = json!({"imported_id": "a", "captured_value_currency": "EUR"});
    let created = acme.upsert(body.clone()).await.expect(201);
    assert_eq!(created["ignored"], json!(["captured_value_currency"]));
    assert_eq!(created["account"]["captured_value_currency"], Value::Null);
    let again = acme.resend(body).await;
    assert_eq!((&again["ignored"], &again["changed"]), (&json!(["captured_value_currency"]), &json!([])));
    acme.resend(json!({"imported_id": "a", "captured_value": "5"})).await;
    let both = json!({"imported_id": "a", "captured_value": null, "captured_value_currency": "EUR"});
    let cleared = acme.resend(both).await;
    assert_eq!(cleared["account"]["captured_value_currency"], Value::Null, "null clears both");
}

async fn rule_1_only_the_fields_sent_are_patched(acme: Tenant) {
    acme.company.channel("Fair", &["FAIR"]);
    let body = json!({
        "imported_id": "a", "name": "Nordlys", "status": "contacted", "custom_fields": {"n": 1},
        "promo_code": "FAIR", "captured_value": "5", "captured_value_currency": "EUR",
    });
    let before = acme.account(body).await;
    let patches = [
        (json!({}), None),
        (json!({"status": "lost"}), Some("status")),
        (json!({"custom_fields": {"n": 2}}), Some("custom_fields")),
        (json!({"captured_value": "6"}), Some("captured_value")),
        (json!({"captured_value_currency": "USD"}), Some("captured_value_currency")),
    ];
    let mut current = before;
    for (patch, changed) in patches {
        let mut body = patch.clone();
        body["imported_id"] = json!("a");
        let reply = acme.resend(body).await;
        assert_eq!(reply["changed"], json!(Vec::from_iter(changed)), "{patch}");
        for (member, value) in current.as_object().unwrap() {
            if Some(member.as_str()) != changed {
                assert_eq!(&reply["account"][member], value, "{patch} must not change {member}");
            }
        }
        current = reply["account"].clone();
    }
}

async fn rule_2_the_account_is_created_when_none_matches(acme: Tenant) {
    let created = acme.upsert(json!({"imported_id": "a"})).await.expect(201);
    assert_eq!(created["created"], json!(true));
    assert_eq!(acme.get("/api/accounts/").send().await.expect(200)["items"], json!([created["account"]]));
    let again = acme.resend(json!({"imported_id": "a"})).await;
    assert_eq!((&again["created"], &again["account"]), (&json!(false), &created["account"]));
}

async fn rule_3_a_matching_promo_code_places_the_account_on_its_channel(acme: Tenant) {
    acme.company.channel("Fair", &["FAIR"]);
    acme.company.channel("Podcast", &["POD"]);
    let created = acme.upsert(json!({"imported_id": "a", "promo_code": "fair"})).await.expect(201);
    assert_eq!(created["account"]["channel"]["name"], json!("Fair"));
    assert_eq!(created["account"]["acquired_at"], created["account"]["created_at"]);
    let moved = acme.resend(json!({"imported_id": "a", "promo_code": "pod"})).await;
    assert_eq!(moved["account"]["channel"]["name"], json!("Podcast"));
    assert_eq!(moved["account"]["promo_code"], json!("POD"));
    assert_eq!(moved["changed"], json!(["promo_code", "channel", "acquired_at"]));
}

async fn rule_4_an_unknown_promo_code_never_fails_and_the_channel_stays(acme: Tenant) {
    acme.company.channel("Fair", &["FAIR"]);
    let created = acme.upsert(json!({"imported_id": "a", "promo_code": "FAIR"})).await.expect(201);
    let body = json!({"imported_id": "a", "promo_code": "nope", "status": "contacted"});
    let reply = acme.resend(body).await;
    assert_eq!(reply["promo_code_matched"], json!(false));
    assert_eq!(reply["changed"], json!(["status"]), "the other fields of the request are applied");
    for member in ["channel", "promo_code", "acquired_at"] {
        assert_eq!(reply["account"][member], created["account"][member]);
    }
}

async fn rule_5_the_reply_says_whether_a_code_matched(acme: Tenant) {
    acme.company.channel("Fair", &["FAIR"]);
    let table =
        [(json!({}), false), (json!({"promo_code": "FAIR"}), true), (json!({"promo_code": "nope"}), false)];
    for id in ["a", "b"] {
        for (body, matched) in &table {
            let mut body = body.clone();
            body["imported_id"] = json!(id);
            let reply = acme.upsert(body).await.json();
            assert_eq!(reply["promo_code_matched"], json!(matched), "{reply}");
        }
    }
    let again = acme.resend(json!({"imported_id": "a", "promo_code": "FAIR"})).await;
    assert_eq!(again["promo_code_matched"], json!(true), "true even if the account already has the code");
}

async fn rule_6_a_full_resync_adds_no_history_and_no_event(acme: Tenant) {
    acme.company.channel("Fair", &["FAIR"]);
    let body = json!({
        "imported_id": "a", "name": "Nordlys", "status": "in_trial", "custom_fields": {"plan": "pro", "gone": null},
        "promo_code": "FAIR", "captured_value": "1200.50", "captured_value_currency": "EUR",
    });
    let created = acme.account(body.clone()).await;
    let before = acme.contents();
    for _ in 0..3 {
        let reply = acme.resend(body.clone()).await;
        assert_eq!((&reply["created"], &reply["changed"]), (&json!(false), &json!([])));
        assert_eq!(reply["account"], created);
    }
    assert_eq!(acme.contents(), before);
}

async fn the_reply_has_the_decided_members(acme: Tenant) {
    let members = ["account", "changed", "created", "ignored", "promo_code_matched"];
    let created = acme.upsert(json!({"imported_id": "a"})).await;
    assert_eq!(members_of(&created.expect(201)), members);
    assert_eq!(created.header("content-type"), Some("application/json"));
    let patched = acme.upsert(json!({"imported_id": "a"})).await;
    assert_eq!(members_of(&patched.expect(200)), members);
}

async fn changed_lists_the_accounts_members_that_changed(acme: Tenant) {
    acme.company.channel("Fair", &["FAIR"]);
    let body = json!({
        "imported_id": "a", "status": "customer", "custom_fields": {"n": 1}, "promo_code": "FAIR",
        "captured_value": "5",
    });
    let all = [
        "acquired_at",
        "captured_value",
        "captured_value_currency",
        "channel",
        "custom_fields",
        "promo_code",
        "status",
    ];
    acme.account(json!({"imported_id": "a"})).await;
    let reply = acme.resend(body).await;
    let mut changed: Vec<&str> =
        reply["changed"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    changed.sort_unstable();
    assert_eq!(changed, all);
    for member in changed {
        assert!(reply["account"].get(member).is_some(), "{member} is a member of the account");
    }
}

async fn unknown_members_are_ignored(acme: Tenant) {
    let body = json!({
        "imported_id": "a", "id": "x", "created_at": 5, "cadence_days": "no", "channel": {}, "Status": "lost", "": null,
    });
    let created = acme.upsert(body).await.expect(201);
    assert_eq!(created["ignored"], json!([]), "only known members are listed");
    assert_eq!(created["account"]["cadence_days"], Value::Null);
    assert_eq!(created["account"]["status"], json!("prospect"));
}

async fn creation_writes_a_first_history_entry_and_fires_account_created_only(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "a", "status": "customer"})).await;
    let history = acme.history(&account).await;
    assert_eq!(history.len(), 1);
    assert_eq!((&history[0]["from"], &history[0]["to"]), (&Value::Null, &json!("customer")));
    assert_eq!(history[0]["source"], json!("upsert"));
    let events = acme.events(&account);
    assert_eq!(column(&events, "type"), ["account.created"]);
    assert_eq!(events[0]["data"]["source"], json!("upsert"));
    assert_eq!(events[0]["data"]["account"]["status"], json!("customer"));
}

async fn a_move_is_in_the_history_with_source_upsert_and_the_token_as_actor(acme: Tenant) {
    let made = acme.post("/api/tokens/").json(&json!({"name": "CRM sync", "role": "member"})).send().await;
    let made = made.expect(201);
    let account = acme.account(json!({"imported_id": "a"})).await;
    let moving = acme.upserting(json!({"imported_id": "a", "status": "lost"}));
    moving.token(made["token"].as_str().unwrap()).send().await.expect(200);
    let entry = acme.history(&account).await.pop().unwrap();
    assert_eq!(members_of(&entry), ["actor", "at", "from", "id", "note", "source", "to"]);
    assert_eq!((&entry["from"], &entry["to"]), (&json!("prospect"), &json!("lost")));
    assert_eq!(entry["source"], json!("upsert"));
    assert_eq!(entry["actor"], json!({"type": "token", "id": made["id"], "name": "CRM sync"}));
}

async fn a_refused_upsert_of_an_existing_account_does_not_change_it(acme: Tenant) {
    acme.account(json!({"imported_id": "a", "custom_fields": {"n": 1}})).await;
    let body = json!({
        "imported_id": "a", "status": "customer", "custom_fields": {"n": 2}, "captured_value": "5",
        "captured_value_currency": "XYZ",
    });
    acme.upserting(body).expect_faults(&[("/captured_value_currency", "unknown_currency")]).await;
    let body =
        json!({"imported_id": "a", "status": "customer", "custom_fields": {"big": "x".repeat(70_000)}});
    acme.upserting(body).expect_faults(&[("/custom_fields", "too_large")]).await;
}

async fn a_member_token_may_upsert(acme: Tenant) {
    let token = acme.token_of(rapport_domain::member::Role::Member);
    acme.upserting(json!({"imported_id": "a"})).token(&token).send().await.expect(201);
    let other =
        acme.upserting(json!({"imported_id": "a"})).header("authorization", &format!("Token {token}"));
    other.send().await.expect(200);
}

async fn gzip_bodies_are_accepted(acme: Tenant) {
    let body = json!({"imported_id": "a", "custom_fields": {"text": "x".repeat(50_000)}});
    acme.upserting(body.clone()).gzipped().send().await.expect(201);
    acme.upserting(body).gzipped().header("content-encoding", "x-gzip").send().await.expect(200);
}

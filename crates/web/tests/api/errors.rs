//! Errors: the interface document's table and all other kinds of refusals. After each refused request, the company's
//! contents must be the same as before.

use rapport_domain::credential::{Kind, issue};
use rapport_domain::id::CompanyId;
use rapport_domain::member::Role;
use serde_json::{Value, json};

use crate::harness::{Answer, INGEST, Tenant, UPSERT, column, gzip, members_of, on_both_engines, path_of};

on_both_engines! {
    the_comparison_of_contents_sees_every_kind_of_change,
    upsert_with_unknown_promo_code_succeeds_unmatched,
    upsert_with_no_matching_imported_id_creates,
    upsert_with_unchanged_status_is_a_no_op_for_status,
    ingest_event_matching_no_account_still_succeeds,
    a_problem_has_the_members_of_rfc_9457,
    a_body_that_is_not_json_is_400,
    a_body_that_is_not_utf_8_is_400,
    duplicate_members_are_400_at_any_depth,
    nesting_over_64_levels_is_400,
    a_top_level_other_than_an_object_is_400,
    a_broken_or_truncated_gzip_body_is_400,
    a_body_over_1_mib_is_413,
    a_gzip_body_that_grows_over_1_mib_is_413,
    more_than_100_events_are_413_with_max_events_and_received,
    a_wrong_or_missing_content_type_is_415,
    an_unknown_content_encoding_is_415,
    json_content_types_with_parameters_are_served,
    a_wrong_method_is_405_with_allow,
    an_unknown_path_or_resource_is_404,
    a_missing_credential_is_401_with_www_authenticate,
    a_malformed_credential_is_401,
    an_unknown_credential_is_401,
    a_revoked_token_is_401,
    a_rotated_ingest_key_is_401,
    a_credential_of_the_wrong_kind_is_401,
    a_foreign_project_and_an_unknown_one_are_the_same_403,
    a_token_of_another_company_reaches_nothing,
    a_role_too_low_is_403,
    a_taken_imported_id_is_409,
    missing_and_wrong_members_are_422_all_at_once_with_pointers,
    all_errors_of_a_management_request_are_reported_at_once,
    nul_in_any_text_of_an_upsert_is_422,
    nul_in_any_text_of_an_ingest_event_is_rejected,
    nul_in_any_text_of_a_management_request_is_422,
    bidi_and_other_odd_characters_are_accepted_and_kept,
    huge_numbers_are_kept_literally_in_custom_fields,
    huge_and_exponent_amounts_are_refused,
    reserved_member_names_are_422,
    every_refusal_on_the_ingest_path_leaves_the_batch_unapplied,
}

/// A small valid body for either documented endpoint.
fn valid(acme: &Tenant, path: &str) -> String {
    if path == UPSERT {
        json!({"project": acme.slug(), "imported_id": "a", "status": "customer"}).to_string()
    } else {
        json!({"events": [{"imported_id": "a", "kind": "churned", "event_id": "e-1"}]}).to_string()
    }
}

/// A company with an account that refused requests must not change.
async fn with_account(acme: &Tenant) -> Value {
    acme.account(json!({"imported_id": "a", "custom_fields": {"n": 1}})).await
}

async fn the_comparison_of_contents_sees_every_kind_of_change(acme: Tenant) {
    let mut seen = vec![acme.contents()];
    let mut assert_new = |what: &str| {
        let now = acme.contents();
        assert!(!seen.contains(&now), "{what} is not noticed");
        seen.push(now);
    };
    let account = with_account(&acme).await;
    assert_new("an account");
    acme.resend(json!({"imported_id": "a", "custom_fields": {"n": 2}})).await;
    assert_new("a changed field");
    acme.accept(json!({"imported_id": "a", "kind": "app_opened"})).await;
    assert_new("an activity");
    acme.accept(json!({"imported_id": "a", "kind": "churned"})).await;
    assert_new("a move");
    acme.company.channel("Fair", &["X"]);
    assert_new("a channel");
    acme.patch("/api/settings/").json(&json!({"cadence_days": 7})).send().await.expect(200);
    assert_new("a setting");
    acme.token_of(Role::Member);
    assert_new("a token");
    acme.delete(&path_of(&account)).send().await.expect(204);
    assert_new("a deletion");
}

async fn upsert_with_unknown_promo_code_succeeds_unmatched(acme: Tenant) {
    let created = acme.upsert(json!({"imported_id": "a", "promo_code": "nope"})).await.expect(201);
    assert_eq!(created["promo_code_matched"], json!(false));
    assert_eq!(
        acme.resend(json!({"imported_id": "a", "promo_code": "nope"})).await["promo_code_matched"],
        json!(false)
    );
}

async fn upsert_with_no_matching_imported_id_creates(acme: Tenant) {
    assert_eq!(acme.upsert(json!({"imported_id": "a"})).await.expect(201)["created"], json!(true));
}

async fn upsert_with_unchanged_status_is_a_no_op_for_status(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "a", "status": "contacted"})).await;
    let body = json!({"imported_id": "a", "status": "contacted", "custom_fields": {"n": 1}});
    assert_eq!(acme.resend(body).await["changed"], json!(["custom_fields"]));
    assert_eq!(acme.history(&account).await.len(), 1);
    assert_eq!(column(&acme.events(&account), "type"), ["account.created"]);
}

async fn ingest_event_matching_no_account_still_succeeds(acme: Tenant) {
    let reply = acme.ingest(json!([{"imported_id": "nobody", "kind": "churned"}])).await.expect(200);
    assert_eq!(reply["unmatched"], json!([{"imported_id": "nobody", "kind": "churned", "index": 0}]));
}

async fn a_problem_has_the_members_of_rfc_9457(acme: Tenant) {
    let answer = acme.post(UPSERT).text("{").expect_refused(400, "not_json").await;
    assert_eq!(members_of(&answer.json()), ["code", "detail", "status", "title", "type"]);
    let answer = acme.upserting(json!({})).expect_faults(&[("/imported_id", "required")]).await;
    let problem = answer.json();
    assert_eq!(members_of(&problem), ["code", "detail", "errors", "status", "title", "type"]);
    assert_eq!(members_of(&problem["errors"][0]), ["code", "detail", "pointer"]);
}

async fn a_body_that_is_not_json_is_400(acme: Tenant) {
    with_account(&acme).await;
    let slug = acme.slug();
    let upserts = [
        String::new(),
        " ".to_owned(),
        "{".to_owned(),
        "not json".to_owned(),
        format!(r#"{{"project": "{slug}", "imported_id": "a", "status": "lost""#),
        format!(r#"{{"project": "{slug}", "imported_id": "a", "status": "lost"}}}}"#),
        format!(r#"{{"project": "{slug}", "imported_id": "a", "status": "lost"}} {{}}"#),
        format!(r#"{{"project": "{slug}", "imported_id": "a", "status": "lost",}}"#),
        format!("{{'project': '{slug}', 'imported_id': 'a'}}"),
        format!("{{project: \"{slug}\", imported_id: \"a\"}}"),
        format!(r#"{{"project": "{slug}", "imported_id": "a", "captured_value": NaN}}"#),
        format!(r#"{{"project": "{slug}", "imported_id": "a", "captured_value": 01}}"#),
        format!(r#"{{"project": "{slug}", "imported_id": "a", "captured_value": +1}}"#),
        format!(r#"{{"project": "{slug}", "imported_id": "a", "captured_value": .5}}"#),
        format!(r#"{{"project": "{slug}", "imported_id": "a", "name": "{}"}}"#, '\u{1}'),
        format!(r#"{{"project": "{slug}", "imported_id": "\ud800"}}"#),
        format!(r#"{{"project": "{slug}", "imported_id": "\x41"}}"#),
        format!(r#"{{"project": "{slug}", /* no */ "imported_id": "a"}}"#),
        "project=acme&imported_id=a".to_owned(),
    ];
    for body in upserts {
        for path in [UPSERT, INGEST, "/api/accounts/"] {
            acme.post(path).text(&body).expect_refused(400, "not_json").await;
        }
    }
}

async fn a_body_that_is_not_utf_8_is_400(acme: Tenant) {
    with_account(&acme).await;
    for path in [UPSERT, INGEST] {
        let text = valid(&acme, path);
        let broken = text.replace('a', "\u{1}").into_bytes();
        let broken: Vec<u8> = broken.into_iter().map(|byte| if byte == 1 { 0xff } else { byte }).collect();
        acme.post(path).bytes(broken).expect_refused(400, "not_json").await;
        let marked = format!("\u{feff}{text}");
        acme.post(path).text(&marked).expect_refused(400, "not_json").await;
        let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        acme.post(path).bytes(wide).expect_refused(400, "not_json").await;
    }
}

async fn duplicate_members_are_400_at_any_depth(acme: Tenant) {
    with_account(&acme).await;
    let slug = acme.slug();
    let upserts = [
        format!(r#"{{"project": "{slug}", "imported_id": "a", "imported_id": "a"}}"#),
        format!(r#"{{"project": "{slug}", "imported_id": "a", "status": "lost", "status": "customer"}}"#),
        format!(r#"{{"project": "{slug}", "imported_id": "a", "im\u0070orted_id": "b"}}"#),
        format!(r#"{{"project": "{slug}", "imported_id": "a", "custom_fields": {{"x": 1, "x": 2}}}}"#),
        format!(
            r#"{{"project": "{slug}", "imported_id": "a", "custom_fields": {{"x": [{{"y": {{"z": 1, "z": 1}}}}]}}}}"#
        ),
        format!(r#"{{"project": "{slug}", "imported_id": "a", "ignored": {{"x": 1, "x": 1}}}}"#),
    ];
    for body in upserts {
        acme.post(UPSERT).text(&body).expect_refused(400, "duplicate_member").await;
    }
    let ingests = [
        r#"{"events": [{"imported_id": "a", "kind": "churned"}], "events": []}"#,
        r#"{"events": [{"imported_id": "a", "kind": "churned", "kind": "app_opened"}]}"#,
        r#"{"events": [{"imported_id": "a", "kind": "churned"}, {"imported_id": "a", "kind": "custom", "metadata": {"a": 1, "a": 1}}]}"#,
    ];
    for body in ingests {
        acme.post(INGEST).text(body).expect_refused(400, "duplicate_member").await;
    }
}

async fn nesting_over_64_levels_is_400(acme: Tenant) {
    with_account(&acme).await;
    let slug = acme.slug();
    // The body and custom_fields are two levels, in addition to the nesting in a field.
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let upsert = |value: &str| {
        format!(r#"{{"project": "{slug}", "imported_id": "deep", "custom_fields": {{"x": {value}}}}}"#)
    };
    for levels in [63, 64, 500, 100_000] {
        acme.post(UPSERT).text(&upsert(&nested(levels))).expect_refused(400, "too_deep").await;
        let objects = format!("{}1{}", r#"{"x":"#.repeat(levels.min(1000)), "}".repeat(levels.min(1000)));
        acme.post(UPSERT).text(&upsert(&objects)).expect_refused(400, "too_deep").await;
        let body = format!(r#"{{"events": [], "x": {}}}"#, nested(levels + 1));
        acme.post(INGEST).text(&body).expect_refused(400, "too_deep").await;
    }
    acme.post(UPSERT).text(&"[".repeat(500_000)).expect_refused(400, "too_deep").await;
    acme.post(UPSERT).text(&upsert(&nested(62))).send().await.expect(201);
}

async fn a_top_level_other_than_an_object_is_400(acme: Tenant) {
    with_account(&acme).await;
    let event = r#"[{"imported_id": "a", "kind": "churned"}]"#;
    for body in ["[]", "null", "true", "1", "1.5", r#""text""#, "[{}]", event] {
        for path in [UPSERT, INGEST, "/api/accounts/", "/api/channels/", "/api/tokens/"] {
            acme.post(path).text(body).expect_refused(400, "not_an_object").await;
        }
        acme.patch("/api/settings/").text(body).expect_refused(400, "not_an_object").await;
    }
}

async fn a_broken_or_truncated_gzip_body_is_400(acme: Tenant) {
    with_account(&acme).await;
    for path in [UPSERT, INGEST] {
        let plain = valid(&acme, path);
        let whole = gzip(plain.as_bytes());
        let mut damaged = whole.clone();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 0xff;
        let mut wrong_sum = whole.clone();
        let last = wrong_sum.len() - 5;
        wrong_sum[last] ^= 0xff;
        let trailing = [whole.as_slice(), b"more"].concat();
        let cut = whole.len();
        let broken = [
            plain.clone().into_bytes(),
            whole[..cut - 1].to_vec(),
            whole[..cut - 8].to_vec(),
            whole[..cut / 2].to_vec(),
            whole[..10].to_vec(),
            whole[..2].to_vec(),
            damaged,
            wrong_sum,
            trailing,
        ];
        for body in broken {
            let call = acme.post(path).bytes(body).header("content-encoding", "gzip");
            call.expect_refused(400, "broken_gzip").await;
        }
        let twice = gzip(&whole);
        acme.post(path).bytes(twice).header("content-encoding", "gzip").expect_refused(400, "not_json").await;
    }
}

async fn a_body_over_1_mib_is_413(acme: Tenant) {
    with_account(&acme).await;
    for path in [UPSERT, INGEST, "/api/accounts/"] {
        for size in [(1 << 20) + 1, 3 << 20] {
            let text = valid(&acme, path);
            let padded = format!("{text}{}", " ".repeat(size - text.len()));
            let answer = acme.post(path).text(&padded).expect_refused(413, "body_too_large").await;
            assert_eq!(answer.json()["max_bytes"], json!(1 << 20));
        }
    }
}

async fn a_gzip_body_that_grows_over_1_mib_is_413(acme: Tenant) {
    with_account(&acme).await;
    for path in [UPSERT, INGEST] {
        let text = valid(&acme, path);
        let padded = format!("{text}{}", " ".repeat((1 << 20) + 1 - text.len()));
        acme.post(path).text(&padded).gzipped().expect_refused(413, "body_too_large").await;
        // Sixty-four megabytes in some sixty kilobytes.
        let bomb = gzip(&vec![b' '; 64 << 20]);
        assert!(bomb.len() < 512 << 10, "{}", bomb.len());
        let call = acme.post(path).bytes(bomb).header("content-encoding", "gzip");
        call.expect_refused(413, "body_too_large").await;
    }
}

async fn more_than_100_events_are_413_with_max_events_and_received(acme: Tenant) {
    with_account(&acme).await;
    let event = json!({"imported_id": "a", "kind": "churned"});
    for (events, received) in
        [(vec![event.clone(); 101], 101), (vec![json!(7); 101], 101), (vec![event; 1000], 1000)]
    {
        let answer = acme.ingesting(json!(events)).expect_refused(413, "batch_too_large").await;
        let problem = answer.json();
        assert_eq!((&problem["max_events"], &problem["received"]), (&json!(100), &json!(received)));
        assert_eq!(
            members_of(&problem),
            ["code", "detail", "max_events", "received", "status", "title", "type"]
        );
    }
}

async fn a_wrong_or_missing_content_type_is_415(acme: Tenant) {
    with_account(&acme).await;
    for path in [UPSERT, INGEST, "/api/accounts/"] {
        let text = valid(&acme, path);
        let types = [
            "text/plain",
            "text/json",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "application/xml",
            "application/jsonp",
            "application",
            "json",
            "*/*",
            "",
        ];
        for content_type in types {
            let call = acme.post(path).text(&text).header("content-type", content_type);
            call.expect_refused(415, "unsupported_media_type").await;
        }
        let call = acme.post(path).text(&text).without("content-type");
        call.expect_refused(415, "unsupported_media_type").await;
    }
}

async fn an_unknown_content_encoding_is_415(acme: Tenant) {
    with_account(&acme).await;
    for path in [UPSERT, INGEST] {
        for encoding in
            ["br", "deflate", "zstd", "compress", "gzip, gzip", "gzip, br", "aes128gcm", "utf-8", ""]
        {
            let call = acme.post(path).text(&valid(&acme, path)).header("content-encoding", encoding);
            let answer = call.expect_refused(415, "unsupported_encoding").await;
            assert_eq!(answer.header("accept-encoding"), Some("gzip"), "the supported encoding");
        }
    }
}

async fn json_content_types_with_parameters_are_served(acme: Tenant) {
    let types = [
        "application/json; charset=utf-8",
        "APPLICATION/JSON",
        "application/json;charset=UTF-8",
        "application/vnd.acme+json",
    ];
    for (number, content_type) in types.into_iter().enumerate() {
        let call = acme.upserting(json!({"imported_id": format!("crm-{number}")}));
        call.header("content-type", content_type).send().await.expect(201);
    }
    let identity = acme.upserting(json!({"imported_id": "plain"})).header("content-encoding", "identity");
    identity.send().await.expect(201);
}

async fn a_wrong_method_is_405_with_allow(acme: Tenant) {
    let account = with_account(&acme).await;
    let path = path_of(&account);
    let status = format!("{path}status/");
    let history = format!("{path}history/");
    let table = [
        ("GET", UPSERT, "POST"),
        ("PUT", UPSERT, "POST"),
        ("PATCH", UPSERT, "POST"),
        ("DELETE", UPSERT, "POST"),
        ("GET", INGEST, "POST"),
        ("HEAD", INGEST, "POST"),
        ("DELETE", INGEST, "POST"),
        ("DELETE", "/api/accounts/", "GET,HEAD,POST"),
        ("PUT", path.as_str(), "DELETE,GET,HEAD,PATCH"),
        ("POST", path.as_str(), "DELETE,GET,HEAD,PATCH"),
        ("GET", status.as_str(), "POST"),
        ("DELETE", history.as_str(), "GET,HEAD"),
        ("POST", "/api/settings/", "GET,HEAD,PATCH"),
        ("DELETE", "/api/settings/", "GET,HEAD,PATCH"),
        ("GET", "/api/settings/ingest-key/rotate/", "POST"),
        ("POST", "/api/audit/", "GET,HEAD"),
        ("BREW", "/api/accounts/", "GET,HEAD,POST"),
    ];
    for (method, path, allowed) in table {
        let before = acme.contents();
        let answer = acme.request(method, path).json(&json!({"status": "lost"})).send().await;
        assert_eq!(answer.status, 405, "{method} {path}");
        if method != "HEAD" {
            answer.expect_problem(405, "method_not_allowed");
        }
        let mut allow: Vec<&str> = answer.header("allow").expect("Allow").split(',').map(str::trim).collect();
        allow.sort_unstable();
        assert_eq!(allow.join(","), allowed, "{method} {path}");
        assert_eq!(acme.contents(), before, "{method} {path}");
    }
}

async fn an_unknown_path_or_resource_is_404(acme: Tenant) {
    with_account(&acme).await;
    let nobody = "acc_00000000000000000000000000";
    for path in ["/api", "/api/", "/api/nothing/", "/api/accounts/a/b/c/", "/api/pulse/", "/api/ACCOUNTS/"] {
        acme.get(path).expect_refused(404, "not_found").await;
        acme.post(path).json(&json!({})).expect_refused(404, "not_found").await;
    }
    for id in [nobody, "a", "acc_", "acc_nonsense", "%00", "%ff", "evt_00000000000000000000000000", "..%2f"] {
        let path = format!("/api/accounts/{id}/");
        acme.get(&path).expect_refused(404, "not_found").await;
        acme.patch(&path).json(&json!({"name": "x"})).expect_refused(404, "not_found").await;
        acme.delete(&path).expect_refused(404, "not_found").await;
        acme.post(&format!("{path}status/"))
            .json(&json!({"status": "lost"}))
            .expect_refused(404, "not_found")
            .await;
        for part in ["history", "activity", "pulse"] {
            acme.get(&format!("{path}{part}/")).expect_refused(404, "not_found").await;
        }
    }
    for path in ["/api/channels/chn_x/", "/api/channels/chn_x/codes/", "/api/members/per_x/"] {
        acme.get(path).expect_refused(404, "not_found").await;
    }
    acme.delete("/api/tokens/crd_x/").expect_refused(404, "not_found").await;
}

/// Every kind of endpoint, with its challenge to a caller without a credential.
const WAYS_IN: [(&str, &str, &str); 5] = [
    ("POST", UPSERT, r#"Bearer realm="rapport""#),
    ("POST", INGEST, r#"X-Service-Ingest-Key realm="rapport""#),
    ("GET", "/api/accounts/", r#"Bearer realm="rapport""#),
    ("POST", "/api/accounts/", r#"Bearer realm="rapport""#),
    ("PATCH", "/api/settings/", r#"Bearer realm="rapport""#),
];

/// Sends a valid request to each kind of endpoint with these headers, which must not authenticate there.
async fn assert_unauthenticated(acme: &Tenant, headers: &[(&'static str, &str)]) {
    for (method, path, challenge) in WAYS_IN {
        let mut call = acme.request(method, path).without_credential();
        if method != "GET" {
            call = call.text(&valid(acme, path));
        }
        for (name, value) in headers {
            call = call.header(name, value);
        }
        let answer = call.expect_refused(401, "unauthenticated").await;
        assert_eq!(answer.header("www-authenticate"), Some(challenge), "{method} {path} {headers:?}");
    }
}

async fn a_missing_credential_is_401_with_www_authenticate(acme: Tenant) {
    with_account(&acme).await;
    assert_unauthenticated(&acme, &[]).await;
    assert_unauthenticated(&acme, &[("cookie", "session=1")]).await;
    let query = format!("{UPSERT}?token={}", acme.company.token_text());
    let call = acme.post(&query).text(&valid(&acme, UPSERT)).without_credential();
    call.expect_refused(401, "unauthenticated").await;
}

async fn a_malformed_credential_is_401(acme: Tenant) {
    with_account(&acme).await;
    let token = acme.company.token_text().to_owned();
    let key = acme.company.ingest_key_text().to_owned();
    let mistyped = |text: &str| {
        let last = text.chars().last().unwrap();
        format!("{}{}", &text[..text.len() - 1], if last == '0' { '1' } else { '0' })
    };
    let values = [
        (String::new(), String::new()),
        (token.clone(), "x".to_owned()),
        ("Bearer".to_owned(), format!("Bearer {key}")),
        (format!("Basic {token}"), format!("{key} {key}")),
        (format!("Bearer {}", &token[1..]), key[1..].to_owned()),
        (format!("Bearer {}", mistyped(&token)), mistyped(&key)),
        (format!("Bearer {}", token.to_uppercase()), key.to_uppercase()),
        (format!("Bearer {token}, Bearer {token}"), format!("{key},{key}")),
        (format!("Bearer \"{token}\""), format!("\"{key}\"")),
    ];
    for (authorization, ingest_key) in &values {
        assert_unauthenticated(
            &acme,
            &[("authorization", authorization), ("x-service-ingest-key", ingest_key)],
        )
        .await;
    }
}

async fn an_unknown_credential_is_401(acme: Tenant) {
    with_account(&acme).await;
    for company in [acme.company.id(), CompanyId(999_999), CompanyId(0), CompanyId(-1), CompanyId(i64::MAX)] {
        let token = format!("Bearer {}", issue(Kind::ApiToken, company, [9; 20]).text);
        let key = issue(Kind::IngestKey, company, [9; 20]).text;
        assert_unauthenticated(&acme, &[("authorization", &token), ("x-service-ingest-key", &key)]).await;
    }
}

async fn a_revoked_token_is_401(acme: Tenant) {
    with_account(&acme).await;
    let made = acme.post("/api/tokens/").json(&json!({"name": "CRM"})).send().await.expect(201);
    let token = made["token"].as_str().unwrap();
    acme.upserting(json!({"imported_id": "a"})).token(token).send().await.expect(200);
    acme.delete(&format!("/api/tokens/{}/", made["id"].as_str().unwrap())).send().await.expect(204);
    let bearer = format!("Bearer {token}");
    assert_unauthenticated(&acme, &[("authorization", &bearer)]).await;
    // Errors in the body are not revealed without a credential.
    for body in ["{", "[]", "{}"] {
        acme.post(UPSERT).text(body).token(token).expect_refused(401, "unauthenticated").await;
    }
}

async fn a_rotated_ingest_key_is_401(acme: Tenant) {
    with_account(&acme).await;
    let rotated = acme.post("/api/settings/ingest-key/rotate/").send().await.expect(200);
    let body = valid(&acme, INGEST);
    acme.post(INGEST).text(&body).expect_refused(401, "unauthenticated").await;
    let call = acme.post(INGEST).text(&body).header("x-service-ingest-key", rotated["key"].as_str().unwrap());
    assert_eq!(call.send().await.expect(200)["accepted"], json!(1));
}

async fn a_credential_of_the_wrong_kind_is_401(acme: Tenant) {
    with_account(&acme).await;
    let inbound = acme.post("/api/settings/inbound-key/rotate/").send().await.expect(200);
    let inbound = inbound["key"].as_str().unwrap();
    let (token, key) = (acme.company.token_text(), acme.company.ingest_key_text());
    for wrong in [key, inbound] {
        let bearer = format!("Bearer {wrong}");
        assert_unauthenticated(&acme, &[("authorization", &bearer), ("x-service-ingest-key", token)]).await;
    }
    assert_unauthenticated(&acme, &[("x-service-ingest-key", inbound)]).await;
    let only_token = acme.post(INGEST).text(&valid(&acme, INGEST)).without("x-service-ingest-key");
    only_token.expect_refused(401, "unauthenticated").await;
    let only_key = acme.post(UPSERT).text(&valid(&acme, UPSERT)).without("authorization");
    only_key.expect_refused(401, "unauthenticated").await;
}

async fn a_foreign_project_and_an_unknown_one_are_the_same_403(acme: Tenant) {
    with_account(&acme).await;
    let globex = acme.neighbour();
    let refused = |answer: Answer| (answer.status, answer.body);
    let mut answers = Vec::new();
    for project in [globex.slug(), "no-such-company", "ACME", "a b"] {
        for more in [json!({"imported_id": "a", "status": "lost"}), json!({}), json!({"imported_id": 5})] {
            let mut body = more;
            body["project"] = json!(project);
            answers.push(refused(acme.post(UPSERT).json(&body).expect_refused(403, "foreign_project").await));
        }
    }
    let as_stranger = acme.upserting(json!({"imported_id": "a"})).of_company(&globex.company);
    answers.push(refused(as_stranger.expect_refused(403, "foreign_project").await));
    answers.dedup();
    assert_eq!(answers.len(), 1, "the response must not reveal whether a project exists");
    assert!(globex.company.find("a").is_none());
}

async fn a_token_of_another_company_reaches_nothing(acme: Tenant) {
    let account = with_account(&acme).await;
    let globex = acme.neighbour();
    let path = path_of(&account);
    let as_stranger = |method: &str, path: &str| acme.request(method, path).of_company(&globex.company);
    as_stranger("GET", &path).expect_refused(404, "not_found").await;
    as_stranger("PATCH", &path).json(&json!({"name": "x"})).expect_refused(404, "not_found").await;
    as_stranger("DELETE", &path).expect_refused(404, "not_found").await;
    let status = format!("{path}status/");
    as_stranger("POST", &status).json(&json!({"status": "lost"})).expect_refused(404, "not_found").await;
    for part in ["history", "activity", "pulse"] {
        as_stranger("GET", &format!("{path}{part}/")).expect_refused(404, "not_found").await;
    }
    let items = as_stranger("GET", "/api/accounts/?imported_id=a").send().await.expect(200)["items"].clone();
    assert_eq!(items, json!([]));
}

async fn a_role_too_low_is_403(acme: Tenant) {
    with_account(&acme).await;
    let member = acme.token_of(Role::Member);
    let admin = acme.token_of(Role::Admin);
    let refused = [
        ("POST", "/api/channels/", json!({"name": "x"})),
        ("POST", "/api/tokens/", json!({"name": "x"})),
        ("POST", "/api/members/", json!({"email": "a@b.test", "role": "member"})),
        ("PATCH", "/api/settings/", json!({"cadence_days": 5})),
        ("POST", "/api/settings/ingest-key/rotate/", json!({})),
        ("POST", "/api/settings/inbound-key/rotate/", json!({})),
        // Also if the body is invalid.
        ("POST", "/api/channels/", json!({})),
    ];
    for (method, path, body) in refused {
        acme.request(method, path).json(&body).token(&member).expect_refused(403, "role_required").await;
    }
    for path in ["/api/tokens/", "/api/audit/"] {
        acme.get(path).token(&member).expect_refused(403, "role_required").await;
    }
    let owner = json!({"email": "boss@b.test", "role": "owner"});
    acme.post("/api/members/").json(&owner).token(&admin).expect_refused(403, "role_required").await;
    let above = json!({"name": "x", "role": "owner"});
    acme.post("/api/tokens/").json(&above).token(&admin).expect_refused(403, "role_required").await;
}

async fn a_taken_imported_id_is_409(acme: Tenant) {
    with_account(&acme).await;
    let other = acme.account(json!({"imported_id": "b"})).await;
    let body = json!({"name": "x", "imported_id": "a"});
    acme.post("/api/accounts/").json(&body).expect_refused(409, "imported_id_taken").await;
    let edit = json!({"imported_id": "a", "name": "renamed"});
    acme.patch(&path_of(&other)).json(&edit).expect_refused(409, "imported_id_taken").await;
    acme.patch(&path_of(&other)).json(&json!({"imported_id": "b"})).send().await.expect(200);
}

async fn missing_and_wrong_members_are_422_all_at_once_with_pointers(acme: Tenant) {
    with_account(&acme).await;
    let body = json!({
        "status": "won", "name": 5, "custom_fields": {"a~b/c": "\u{0}", "fine": 1, "": 2},
        "captured_value": "-1", "captured_value_currency": "XYZ", "promo_code": {}, "unknown": 1,
    });
    let faults = [
        ("/project", "required"),
        ("/imported_id", "required"),
        ("/status", "unknown_status"),
        ("/name", "wrong_type"),
        ("/custom_fields/a~0b~1c", "nul_character"),
        ("/custom_fields/", "empty"),
        ("/captured_value", "negative"),
        ("/captured_value_currency", "unknown_currency"),
    ];
    acme.post(UPSERT).json(&body).expect_faults(&faults).await;
    acme.post(UPSERT)
        .text("{}")
        .expect_faults(&[("/project", "required"), ("/imported_id", "required")])
        .await;
}

async fn all_errors_of_a_management_request_are_reported_at_once(acme: Tenant) {
    let body = json!({
        "name": "", "status": 1, "imported_id": ["x"], "promo_code": "a b", "cadence_days": 0,
        "snoozed_until": "soon", "custom_fields": [], "captured_value": true, "captured_value_currency": "Q",
        "colour": "red", "id": "acc_1",
    });
    let faults = [
        ("/name", "empty"),
        ("/status", "wrong_type"),
        ("/imported_id", "wrong_type"),
        ("/promo_code", "bad_characters"),
        ("/cadence_days", "out_of_range"),
        ("/snoozed_until", "malformed"),
        ("/custom_fields", "wrong_type"),
        ("/captured_value", "wrong_type"),
        ("/captured_value_currency", "unknown_currency"),
        ("/colour", "unknown_member"),
        ("/id", "unknown_member"),
    ];
    acme.post("/api/accounts/").json(&body).expect_faults(&faults).await;
}

async fn nul_in_any_text_of_an_upsert_is_422(acme: Tenant) {
    with_account(&acme).await;
    let table = [
        (json!({"project": format!("{}\u{0}", acme.slug())}), "/project", "nul_character"),
        (json!({"imported_id": "a\u{0}"}), "/imported_id", "nul_character"),
        (json!({"imported_id": "\u{0}"}), "/imported_id", "nul_character"),
        (json!({"imported_id": "new", "name": "a\u{0}b"}), "/name", "nul_character"),
        (json!({"name": "a\u{0}b", "name_policy": "update"}), "/name", "nul_character"),
        (json!({"name_policy": "create\u{0}"}), "/name_policy", "unknown_policy"),
        (json!({"status_policy": "set\u{0}"}), "/status_policy", "unknown_policy"),
        (json!({"status": "lost\u{0}"}), "/status", "unknown_status"),
        (json!({"custom_fields": {"k": "\u{0}"}}), "/custom_fields/k", "nul_character"),
        (json!({"custom_fields": {"k": ["x", {"y": "z\u{0}"}]}}), "/custom_fields/k", "nul_character"),
        (json!({"custom_fields": {"k": {"y\u{0}": 1}}}), "/custom_fields/k", "nul_character"),
        (json!({"custom_fields": {"k\u{0}": 1}}), "/custom_fields/k", "nul_character"),
        (json!({"captured_value": "5\u{0}"}), "/captured_value", "malformed"),
        (json!({"captured_value_currency": "EU\u{0}"}), "/captured_value_currency", "unknown_currency"),
    ];
    for (more, pointer, code) in table {
        let mut body = json!({"project": acme.slug(), "imported_id": "a"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        acme.post(UPSERT).json(&body).expect_faults(&[(pointer, code)]).await;
    }
    let spared = acme.resend(json!({"imported_id": "a", "promo_code": "a\u{0}", "unknown": "\u{0}"})).await;
    assert_eq!(spared["promo_code_matched"], json!(false), "promo_code is an exception");
    let ignored = acme.resend(json!({"imported_id": "a", "name": "a\u{0}b"})).await;
    assert_eq!(ignored["ignored"], json!(["name"]), "and so is a name that is ignored");
}

async fn nul_in_any_text_of_an_ingest_event_is_rejected(acme: Tenant) {
    let account = with_account(&acme).await;
    let id = account["id"].as_str().unwrap();
    let table = [
        (json!({"imported_id": "a\u{0}"}), "imported_id", "nul_character"),
        (json!({"imported_id": null, "account_id": format!("{id}\u{0}")}), "account_id", "nul_character"),
        (json!({"kind": "custom\u{0}"}), "kind", "unknown_kind"),
        (json!({"feature": "f\u{0}"}), "feature", "nul_character"),
        (json!({"kind": "app_opened", "feature": "f\u{0}"}), "feature", "nul_character"),
        (json!({"occurred_at": "2026-01-01\u{0}"}), "occurred_at", "malformed"),
        (json!({"metadata": {"k": "\u{0}"}}), "metadata", "nul_character"),
        (json!({"metadata": {"k\u{0}": 1}}), "metadata", "nul_character"),
        (json!({"metadata": {"k": [{"x\u{0}": 1}]}}), "metadata", "nul_character"),
        (json!({"event_id": "e\u{0}"}), "event_id", "nul_character"),
    ];
    for (more, field, code) in table {
        let mut event = json!({"imported_id": "a", "kind": "custom"});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = acme.ingesting(json!([event])).expect_refused(422, "all_rejected").await;
        let rejected = &answer.json()["rejected"][0];
        assert_eq!((&rejected["field"], &rejected["code"]), (&json!(field), &json!(code)), "{event}");
    }
}

async fn nul_in_any_text_of_a_management_request_is_422(acme: Tenant) {
    let account = with_account(&acme).await;
    let path = path_of(&account);
    let status = format!("{path}status/");
    let channel = acme.company.channel("Fair", &["X"]);
    let channel = format!("/api/channels/{}/", channel.id);
    let codes = format!("{channel}codes/");
    let nul = "a\u{0}b";
    let table = [
        ("POST", "/api/accounts/", json!({"name": nul}), "/name", "nul_character"),
        ("POST", "/api/accounts/", json!({"name": "x", "imported_id": nul}), "/imported_id", "nul_character"),
        (
            "POST",
            "/api/accounts/",
            json!({"name": "x", "custom_fields": {"k": nul}}),
            "/custom_fields/k",
            "nul_character",
        ),
        ("POST", "/api/accounts/", json!({"name": "x", "promo_code": nul}), "/promo_code", "bad_characters"),
        ("PATCH", path.as_str(), json!({"name": nul}), "/name", "nul_character"),
        ("PATCH", path.as_str(), json!({"imported_id": nul}), "/imported_id", "nul_character"),
        ("POST", status.as_str(), json!({"status": "lost", "note": nul}), "/note", "nul_character"),
        ("POST", "/api/channels/", json!({"name": nul}), "/name", "nul_character"),
        ("PATCH", channel.as_str(), json!({"name": nul}), "/name", "nul_character"),
        ("POST", codes.as_str(), json!({"code": nul}), "/code", "bad_characters"),
        ("POST", "/api/tokens/", json!({"name": nul}), "/name", "nul_character"),
        (
            "POST",
            "/api/members/",
            json!({"email": "a\u{0}@b.test", "role": "member"}),
            "/email",
            "nul_character",
        ),
        (
            "POST",
            "/api/members/",
            json!({"email": "a@b.test", "role": "member", "name": nul}),
            "/name",
            "nul_character",
        ),
        ("PATCH", "/api/settings/", json!({"time_zone": "UTC\u{0}"}), "/time_zone", "unknown_time_zone"),
        (
            "PATCH",
            "/api/settings/",
            json!({"default_currency": "US\u{0}"}),
            "/default_currency",
            "unknown_currency",
        ),
    ];
    for (method, path, body, pointer, code) in table {
        acme.request(method, path).json(&body).expect_faults(&[(pointer, code)]).await;
    }
    for parameter in ["q", "imported_id"] {
        let call = acme.get(&format!("/api/accounts/?{parameter}=a%00b"));
        call.expect_faults(&[(parameter, "nul_character")]).await;
    }
}

async fn bidi_and_other_odd_characters_are_accepted_and_kept(acme: Tenant) {
    let odd = [
        "\u{202e}evil\u{202c}",
        "\u{2066}isolated\u{2069}",
        "مرحبا עולם",
        "\u{feff}marked",
        "zero\u{200b}width\u{200d}",
        "e\u{301} is not é",
        "\u{7f}\u{80}\u{1b}[31m",
        "tab\tand\nline",
        "'; DROP TABLE account; --",
        "<script>alert(1)</script>",
        "\u{fffd}\u{ffff}\u{10ffff}",
        "👩‍👩‍👧‍👦",
        "\\u0000",
    ];
    for text in odd {
        let fields = json!({text: text, "nested": {text: [text]}});
        let body = json!({"imported_id": text, "name": text, "custom_fields": fields});
        let account = acme.account(body).await;
        let shown = acme.shown(text).await;
        for view in [&account, &shown, &acme.events(&account)[0]["data"]["account"]] {
            assert_eq!((&view["imported_id"], &view["name"]), (&json!(text), &json!(text)));
            assert_eq!(view["custom_fields"], fields, "{text:?}");
        }
        let event = json!({"imported_id": text, "kind": "feature_used", "feature": text, "metadata": {text: text}, "event_id": text});
        acme.accept(event.clone()).await;
        assert_eq!(acme.ingest(json!([event])).await.expect(200)["duplicates"], json!(1), "{text:?}");
        let pulse = acme.get(&format!("{}pulse/", path_of(&account))).send().await.expect(200);
        assert_eq!(pulse["features"][0]["feature"], json!(text));
    }
}

async fn huge_numbers_are_kept_literally_in_custom_fields(acme: Tenant) {
    let digits = "9".repeat(400);
    // An exponent is kept and always shown with its sign. It is the same number.
    let table = [
        ("18446744073709551616", "18446744073709551616"),
        ("-9223372036854775809", "-9223372036854775809"),
        ("12345678901234567890.12345678901234567890", "12345678901234567890.12345678901234567890"),
        ("0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827"),
        ("1.0", "1.0"),
        ("100.00", "100.00"),
        ("-0", "-0"),
        ("-0.0", "-0.0"),
        (digits.as_str(), digits.as_str()),
        ("1.50e400", "1.50e+400"),
        ("1E+400", "1e+400"),
        ("-1e-400", "-1e-400"),
    ];
    let fields = |literals: Vec<&str>| {
        let members = literals.iter().enumerate().map(|(n, literal)| format!(r#""n{n:02}":{literal}"#));
        format!("{{{}}}", members.collect::<Vec<String>>().join(","))
    };
    let sent = fields(table.iter().map(|(sent, _)| *sent).collect());
    let kept = fields(table.iter().map(|(_, kept)| *kept).collect());
    let body = format!(r#"{{"project":"{}","imported_id":"a","custom_fields":{sent}}}"#, acme.slug());
    let created = acme.post(UPSERT).text(&body).send().await;
    created.expect(201);
    let shown = acme.get(&path_of(&created.json()["account"])).send().await;
    let listed = acme.get("/api/accounts/").send().await;
    let again = acme.post(UPSERT).text(&body).send().await;
    assert_eq!(again.expect(200)["changed"], json!([]), "nothing changes when it is sent again");
    for answer in [created, shown, listed, again] {
        assert!(answer.text().contains(&kept), "{kept} in {}", answer.text());
    }
    let payload = &acme.company.events(acme.company.account("a").id)[0].payload;
    assert!(payload.contains(&kept), "{kept} in {payload}");
}

async fn huge_and_exponent_amounts_are_refused(acme: Tenant) {
    with_account(&acme).await;
    let digits = "9".repeat(400);
    let table = [
        ("1e3", "malformed"),
        ("1E+2", "malformed"),
        ("1e400", "malformed"),
        ("1.5e1", "malformed"),
        ("123456789012345", "out_of_range"),
        ("0.12345", "out_of_range"),
        (digits.as_str(), "out_of_range"),
        ("-1", "negative"),
        ("-0.5", "negative"),
    ];
    for (literal, code) in table {
        for written in [literal.to_owned(), format!("\"{literal}\"")] {
            let body = format!(
                r#"{{"project": "{}", "imported_id": "a", "captured_value": {written}}}"#,
                acme.slug()
            );
            acme.post(UPSERT).text(&body).expect_faults(&[("/captured_value", code)]).await;
        }
    }
    for number in ["1e3", "42.5", "18446744073709551616", "-1"] {
        let body = format!(r#"{{"cadence_days": {number}}}"#);
        acme.patch("/api/settings/").text(&body).expect_faults(&[("/cadence_days", "out_of_range")]).await;
    }
}

async fn reserved_member_names_are_422(acme: Tenant) {
    with_account(&acme).await;
    for name in ["$serde_json::private::Number", "$serde_json::private::RawValue"] {
        let body = json!({"project": acme.slug(), "imported_id": "a", "custom_fields": {"x": {name: "1"}}});
        let answer = acme.post(UPSERT).json(&body).expect_refused(422, "invalid").await;
        assert_eq!(answer.faults()[0].1, "reserved_name");
    }
}

async fn every_refusal_on_the_ingest_path_leaves_the_batch_unapplied(acme: Tenant) {
    with_account(&acme).await;
    let good = json!({"imported_id": "a", "kind": "churned", "event_id": "e-1"});
    let whole = json!({"events": [good]}).to_string();
    acme.post(INGEST).text(&whole[..whole.len() - 1]).expect_refused(400, "not_json").await;
    acme.post(INGEST)
        .text(&whole)
        .header("content-type", "text/plain")
        .expect_refused(415, "unsupported_media_type")
        .await;
    acme.post(INGEST)
        .text(&whole)
        .header("content-encoding", "br")
        .expect_refused(415, "unsupported_encoding")
        .await;
    acme.post(INGEST).text(&whole).without_credential().expect_refused(401, "unauthenticated").await;
    acme.ingesting(json!(vec![good.clone(); 101])).expect_refused(413, "batch_too_large").await;
    let reply = acme.ingest(json!([good])).await.expect(200);
    assert_eq!(reply["accepted"], json!(1), "its event_id can still be used");
}

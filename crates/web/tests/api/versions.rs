//! Versions of what is shown: `ETag`, `If-None-Match` and `If-Match`.

use std::collections::BTreeSet;

use rapport_domain::member::Role;
use rapport_testkit::all;
use serde_json::{Value, json};

use crate::harness::{Answer, Call, Server, Tenant, on_both_engines, path_of};
use crate::openapi::{document, operations};
use crate::webhooks;

on_both_engines!(
    a_version_names_what_is_shown,
    a_change_to_another_version_is_refused,
    a_deletion_of_another_version_is_refused,
    a_version_changes_with_everything_that_is_shown,
    a_condition_that_cannot_be_read_is_refused,
    of_concurrent_changes_to_one_version_one_is_made,
    the_document_describes_versions,
);

/// Something with a version, and a change to it.
struct Subject {
    path: String,
    change: Value,
    deletable: bool,
}

async fn subjects(acme: &Tenant) -> Vec<Subject> {
    // Large enough to be compressed if it had no version.
    let fields = json!({"notes": "x".repeat(2_000)});
    let account = json!({"imported_id": "crm-1", "name": "Nordlys", "custom_fields": fields});
    let account = acme.account(account).await;
    let webhook = webhooks::create(acme).await;
    let campaign = json!({"name": "Spring", "goal": "acquisition"});
    let campaign = acme.post("/api/campaigns/").json(&campaign).send().await.expect(201);
    let contacts = format!("{}contacts/", path_of(&account));
    let contact = acme.post(&contacts).json(&json!({"kind": "call"})).send().await.expect(201);
    let notes = format!("{}notes/", path_of(&account));
    let note = acme.post(&notes).json(&json!({"text": "Likes tea"})).send().await.expect(201);
    let begun = format!("{}conversations/", path_of(&account));
    let begun = acme.post(&begun).json(&json!({})).send().await.expect(201);
    let messages = format!("/api/conversations/{}/messages/", begun["id"].as_str().expect("an id"));
    let message = json!({"direction": "outbound", "body": "Hello"});
    let message = acme.post(&messages).json(&message).send().await.expect(201);
    let rate = json!({"currency": "CHF", "valid_from": "2026-01-01", "rate": "1.05"});
    let rate = acme.post("/api/exchange-rates/").json(&rate).send().await.expect(201);
    let at = |list: &str, of: &Value| format!("{list}{}/", of["id"].as_str().expect("an id"));
    vec![
        Subject { path: at("/api/exchange-rates/", &rate), change: json!({"rate": "2"}), deletable: true },
        Subject { path: at(&contacts, &contact), change: json!({"note": "Changed"}), deletable: true },
        Subject { path: at(&notes, &note), change: json!({"text": "Changed"}), deletable: true },
        Subject { path: at(&messages, &message), change: json!({"body": "Changed"}), deletable: true },
        Subject { path: path_of(&account), change: json!({"name": "Changed"}), deletable: true },
        Subject {
            path: at("/api/webhooks/", &webhook),
            change: json!({"description": "Changed"}),
            deletable: true,
        },
        Subject {
            path: at("/api/campaigns/", &campaign),
            change: json!({"name": "Changed"}),
            deletable: true,
        },
        Subject { path: "/api/settings/".to_owned(), change: json!({"name": "Changed"}), deletable: false },
    ]
}

fn etag(answer: &Answer) -> String {
    let etag = answer.header("etag").unwrap_or_else(|| panic!("no version: {answer:?}"));
    assert!(etag.starts_with('"') && etag.ends_with('"') && etag.len() == 34, "{etag}");
    etag.to_owned()
}

fn if_match<'a>(call: Call<'a>, etag: &str) -> Call<'a> {
    call.header("if-match", etag)
}

async fn a_version_names_what_is_shown(acme: Tenant) {
    for Subject { path, change, .. } in subjects(&acme).await {
        let shown = acme.get(&path).send().await;
        let first = etag(&shown);
        assert_eq!(etag(&acme.get(&path).send().await), first, "{path}: nothing has changed");
        for known in [first.clone(), format!("W/{first}"), format!("\"x\", {first}"), "*".to_owned()] {
            let unchanged = acme.get(&path).header("if-none-match", &known).send().await;
            assert_eq!((unchanged.status, unchanged.body.len()), (304, 0), "{path} {known}");
            assert_eq!(etag(&unchanged), first);
        }
        let other = acme.get(&path).header("if-none-match", "\"x\"").send().await;
        assert_eq!(other.expect(200), shown.expect(200));
        let gzipped = acme.get(&path).header("accept-encoding", "gzip").send().await;
        assert_eq!(
            (etag(&gzipped), &gzipped.body),
            (first.clone(), &shown.body),
            "the version is of these bytes"
        );

        let changed = acme.patch(&path).json(&change).send().await;
        changed.expect(200);
        assert_ne!(etag(&changed), first, "{path}");
        let reread = acme.get(&path).send().await;
        assert_eq!((etag(&reread), &reread.body), (etag(&changed), &changed.body), "{path}");
        assert_eq!(acme.get(&path).header("if-none-match", &first).send().await.status, 200);
    }
}

async fn a_change_to_another_version_is_refused(acme: Tenant) {
    for Subject { path, change, .. } in subjects(&acme).await {
        let current = etag(&acme.get(&path).send().await);
        for stale in ["\"x\"".to_owned(), format!("W/{current}"), "\"x\", \"y\"".to_owned()] {
            let call = if_match(acme.patch(&path).json(&change), &stale);
            let answer = call.expect_refused(412, "precondition_failed").await;
            assert_eq!(answer.expect(412)["current_etag"], json!(current), "{path}");
            assert_eq!(etag(&answer), current);
        }
        // Whoever may not change it doesn't learn its version.
        let viewer = acme.token_of(Role::Viewer);
        let call = if_match(acme.patch(&path).json(&change), "\"x\"").token(&viewer);
        assert_eq!(call.expect_refused(403, "role_required").await.header("etag"), None);
        let faulty = if_match(acme.patch(&path).json(&json!({"nonsense": 1})), "\"x\"");
        if path != "/api/settings/" {
            faulty.expect_faults(&[("/nonsense", "unknown_member")]).await;
        }

        let changed = if_match(acme.patch(&path).json(&change), &format!("\"x\", {current}")).send().await;
        changed.expect(200);
        let again =
            if_match(acme.patch(&path).json(&change), &current).expect_refused(412, "precondition_failed");
        assert_eq!(etag(&again.await), etag(&changed));
        if_match(acme.patch(&path).json(&change), "*").send().await.expect(200);
    }
}

async fn a_deletion_of_another_version_is_refused(acme: Tenant) {
    let missing = "/api/campaigns/cmp_00000000000000000000000000/";
    if_match(acme.delete(missing), "*").expect_refused(404, "not_found").await;
    for Subject { path, change, .. } in subjects(&acme).await.into_iter().filter(|subject| subject.deletable)
    {
        let stale = etag(&acme.get(&path).send().await);
        acme.patch(&path).json(&change).send().await.expect(200);
        if_match(acme.delete(&path), &stale).expect_refused(412, "precondition_failed").await;
        let current = etag(&acme.get(&path).send().await);
        if_match(acme.delete(&path), &current).send().await.expect(204);
        acme.get(&path).send().await.expect_problem(404, "not_found");
    }
}

async fn a_version_changes_with_everything_that_is_shown(acme: Tenant) {
    let account = acme.account(json!({"imported_id": "crm-1"})).await;
    let (account, settings) = (path_of(&account), "/api/settings/");
    let webhook = webhooks::create(&acme).await;
    let webhook = format!("/api/webhooks/{}/", webhook["id"].as_str().expect("an id"));
    let campaign = json!({"name": "Spring", "goal": "acquisition"});
    let campaign = acme.post("/api/campaigns/").json(&campaign).send().await.expect(201);
    let campaign = format!("/api/campaigns/{}/", campaign["id"].as_str().expect("an id"));
    let seen = json!([{"imported_id": "crm-1", "kind": "feature_used", "feature": "f"}]);
    // What is done, and to what it makes a difference.
    let acts: [(Call, &str); 8] = [
        (acme.ingesting(seen), &account),
        (acme.upserting(json!({"imported_id": "crm-1", "status": "contacted"})), &account),
        (acme.post(&format!("{account}contacts/")).json(&json!({"kind": "call"})), &account),
        (acme.patch(settings).json(&json!({"tracked_stages": ["in_trial"]})), settings),
        (acme.post("/api/settings/inbound-key/rotate/"), settings),
        (acme.upserting(json!({"imported_id": "crm-2"})), &campaign),
        (acme.post(&format!("{webhook}disable/")), &webhook),
        (acme.post(&format!("{webhook}rotate/")), &webhook),
    ];
    for (act, subject) in acts {
        let before = etag(&acme.get(subject).send().await);
        assert!((200..300).contains(&act.send().await.status));
        assert_ne!(etag(&acme.get(subject).send().await), before, "{subject}");
    }
}

async fn a_condition_that_cannot_be_read_is_refused(acme: Tenant) {
    for Subject { path, change, .. } in subjects(&acme).await {
        for wrong in ["", "x", "\"x", "*, \"x\""] {
            if_match(acme.patch(&path).json(&change), wrong).expect_refused(400, "bad_precondition").await;
            let get = acme.get(&path).header("if-none-match", wrong);
            get.send().await.expect_problem(400, "bad_precondition");
        }
        let stranger = if_match(acme.patch(&path).json(&change), "x").without_credential();
        stranger.expect_refused(401, "unauthenticated").await;
    }
}

async fn of_concurrent_changes_to_one_version_one_is_made(server: Server) {
    const WRITERS: usize = 8;
    let acme: &Tenant = &server;
    for Subject { path, change, .. } in subjects(acme).await {
        let current = etag(&acme.get(&path).send().await);
        let member = change.as_object().and_then(|change| change.keys().next()).expect("a member");
        let changes = (0..WRITERS).map(|writer| {
            // Anything that the member can be, different for each.
            let value = if member == "rate" { (writer + 3).to_string() } else { format!("by {writer}") };
            let body = json!({ member: value });
            if_match(acme.patch(&path).json(&body), &current).send()
        });
        let mut statuses: Vec<u16> = all(changes).await.iter().map(|answer| answer.status).collect();
        statuses.sort_unstable();
        let mut expected = vec![200];
        expected.extend([412; WRITERS - 1]);
        assert_eq!(statuses, expected, "{path}");
    }
}

async fn the_document_describes_versions(acme: Tenant) {
    let document = document(&acme).await;
    let named = |operation: &Value, header: &str| {
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        parameters.iter().any(|parameter| parameter["name"] == json!(header))
    };
    let mut versioned = BTreeSet::new();
    for (path, method, operation) in operations(&document) {
        if named(operation, "If-Match") || named(operation, "If-None-Match") {
            let status = if method == "get" { "304" } else { "412" };
            assert!(operation["responses"][status]["headers"]["ETag"].is_object(), "{method} {path}");
            versioned.insert(format!("{method} {path}"));
        }
    }
    let expected = [
        ("/api/accounts/{id}/", "get patch delete"),
        ("/api/accounts/{id}/contacts/{contact}/", "get patch delete"),
        ("/api/accounts/{id}/notes/{note}/", "get patch delete"),
        ("/api/campaigns/{id}/", "get patch delete"),
        ("/api/conversations/{id}/messages/{message}/", "get patch delete"),
        ("/api/exchange-rates/{id}/", "get patch delete"),
        ("/api/settings/", "get patch"),
        ("/api/webhooks/{id}/", "get patch delete"),
    ];
    let expected = expected
        .iter()
        .flat_map(|(path, methods)| methods.split(' ').map(move |method| format!("{method} {path}")));
    assert_eq!(versioned, expected.collect());
}

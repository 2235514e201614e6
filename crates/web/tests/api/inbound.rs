//! Inbound mail over HTTP: the key, the media type, the limits and the responses.

use rapport_app::credential::{Key, RotateKey};
use rapport_domain::member::Role;
use rapport_testkit::{Engine, TestCompany};
use serde_json::{Value, json};

use crate::harness::{Call, Server, Tenant, column, members_of, on_both_engines, path_of};
use crate::person::Person;

on_both_engines! {
    a_mail_is_logged_and_the_response_says_where,
    the_same_mail_twice_is_a_duplicate,
    a_mail_from_a_member_is_logged_as_outbound,
    an_ignored_mail_says_why,
    an_attachment_is_listed_and_not_kept,
    a_mail_may_be_compressed_and_large,
    a_mail_that_is_too_large_is_refused,
    a_body_that_is_not_a_mail_is_refused,
    only_the_inbound_key_may_post,
    a_webhook_gets_a_mail_but_not_an_out_of_office_reply,
    addresses_are_attached_listed_and_removed,
    a_message_says_whether_its_sender_was_verified,
}

pub const INBOUND: &str = "/api/inbound/email/";
pub const MAIL: &str = "From: Ana Keller <ana@nordlys.test>\r\nTo: sales@acme.test\r\nSubject: Offer\r\n\
                    Date: Mon, 05 Jan 2026 09:15:00 +0100\r\nMessage-ID: <1@nordlys.test>\r\n\r\nHello.\r\n";

fn key(acme: &Tenant) -> String {
    key_of(&acme.company)
}

/// A new inbound key of a company.
pub fn key_of(company: &TestCompany) -> String {
    company.write(RotateKey(Key::Inbound)).expect("a key").text
}

fn posting<'a>(acme: &'a Tenant, key: &str, mail: impl Into<Vec<u8>>) -> Call<'a> {
    let call = acme.post(INBOUND).bytes(mail.into()).header("content-type", "message/rfc822");
    call.without("authorization").header("x-service-inbound-key", key)
}

async fn account(acme: &Tenant, reply: &Value) -> Value {
    acme.get(&format!("/api/accounts/{}/", reply["account_id"].as_str().unwrap())).send().await.expect(200)
}

async fn messages(acme: &Tenant, reply: &Value) -> Vec<Value> {
    let conversation = reply["conversation_id"].as_str().expect("a conversation");
    acme.all_pages(&format!("/api/conversations/{conversation}/messages/"), 50).await
}

async fn a_mail_is_logged_and_the_response_says_where(acme: Tenant) {
    let key = key(&acme);
    let reply = posting(&acme, &key, MAIL).send().await.expect(201);
    assert_eq!(
        members_of(&reply).join(" "),
        "account_id automatic conversation_id copies created_account direction duplicate ignored logged message_id"
    );
    assert_eq!(
        (&reply["logged"], &reply["created_account"], &reply["direction"]),
        (&json!(true), &json!(true), &json!("inbound"))
    );
    let account = account(&acme, &reply).await;
    assert_eq!((&account["name"], &account["status"]), (&json!("Ana Keller"), &json!("prospect")));
    assert_eq!(acme.history(&account).await[0]["source"], json!("inbound"));
    let logged = messages(&acme, &reply).await;
    assert_eq!((logged.len(), &logged[0]["id"]), (1, &reply["message_id"]));
    assert_eq!((&logged[0]["body"], &logged[0]["subject"]), (&json!("Hello."), &json!("Offer")));
    assert_eq!(logged[0]["occurred_at"], json!("2026-01-05T08:15:00Z"));
    assert_eq!(logged[0]["sender"], json!({"address": "ana@nordlys.test", "name": "Ana Keller"}));
    assert_eq!(logged[0]["author"]["type"], json!("inbound_key"));
    let timeline = acme.all_pages(&format!("{}timeline/", path_of(&account)), 50).await;
    assert_eq!(column(&timeline, "type"), ["created", "message"]);
}

async fn the_same_mail_twice_is_a_duplicate(acme: Tenant) {
    let key = key(&acme);
    let first = posting(&acme, &key, MAIL).send().await.expect(201);
    let second = posting(&acme, &key, MAIL).send().await.expect(200);
    assert_eq!((&second["logged"], &second["duplicate"]), (&json!(false), &json!(true)));
    for member in ["account_id", "conversation_id", "message_id"] {
        assert_eq!(first[member], second[member]);
    }
    assert_eq!(messages(&acme, &first).await.len(), 1);
}

async fn a_mail_from_a_member_is_logged_as_outbound(acme: Tenant) {
    let key = key(&acme);
    let received = posting(&acme, &key, MAIL).send().await.expect(201);
    let owner = format!("owner@{}.test", acme.slug());
    let mail = format!(
        "From: {owner}\r\nTo: ana@nordlys.test\r\nIn-Reply-To: <1@nordlys.test>\r\nMessage-ID: <2@x>\r\n\r\nHere.\r\n"
    );
    let sent = posting(&acme, &key, mail).send().await.expect(201);
    assert_eq!((&sent["direction"], &sent["created_account"]), (&json!("outbound"), &json!(false)));
    assert_eq!(sent["conversation_id"], received["conversation_id"]);
    assert!(account(&acme, &sent).await["last_contact_at"].is_string());
    let newest = &messages(&acme, &sent).await[0];
    assert_eq!((&newest["author"]["type"], &newest["direction"]), (&json!("person"), &json!("outbound")));
}

async fn an_ignored_mail_says_why(acme: Tenant) {
    let key = key(&acme);
    let owner = format!("owner@{}.test", acme.slug());
    let table = [
        (format!("From: {owner}\r\nTo: {owner}\r\n\r\nx"), "members_only"),
        ("From: a@b.test\r\nAuto-Submitted: auto-replied\r\n\r\nx".to_owned(), "automatic"),
        ("Subject: nobody\r\n\r\nx".to_owned(), "no_sender"),
    ];
    for (mail, why) in table {
        let before = acme.contents();
        let reply = posting(&acme, &key, mail).send().await.expect(200);
        assert_eq!((&reply["logged"], &reply["ignored"]), (&json!(false), &json!(why)));
        assert_eq!(reply["account_id"], Value::Null);
        assert_eq!(acme.contents(), before, "{why}");
    }
}

async fn an_attachment_is_listed_and_not_kept(acme: Tenant) {
    let key = key(&acme);
    let mail = "From: ana@nordlys.test\r\nMessage-ID: <a@x>\r\nMIME-Version: 1.0\r\n\
                Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nSee it.\r\n\
                --b\r\nContent-Type: application/pdf; name=offer.pdf\r\nContent-Transfer-Encoding: base64\r\n\
                Content-Disposition: attachment; filename=offer.pdf\r\n\r\nJVBERi0xLjc=\r\n--b--\r\n";
    let reply = posting(&acme, &key, mail).send().await.expect(201);
    let logged = messages(&acme, &reply).await;
    assert_eq!(logged[0]["body"], json!("See it."));
    assert_eq!(
        logged[0]["attachments"],
        json!([{"name": "offer.pdf", "type": "application/pdf", "size": 8}])
    );
}

async fn a_mail_may_be_compressed_and_large(acme: Tenant) {
    let key = key(&acme);
    let large = format!("From: ana@nordlys.test\r\nMessage-ID: <l@x>\r\n\r\n{}", "word ".repeat(600_000));
    let call = posting(&acme, &key, large).gzipped();
    let reply = call.send().await.expect(201);
    let logged = messages(&acme, &reply).await;
    assert_eq!(logged[0]["body"].as_str().unwrap().chars().count(), 200_000);
    assert_eq!(logged[0]["body_truncated"], json!(true));
    let account = account(&acme, &reply).await;
    let payload = &acme.events(&account)[1]["data"]["message"];
    assert_eq!(payload["body"].as_str().unwrap().chars().count(), 20_000);
}

async fn a_mail_that_is_too_large_is_refused(acme: Tenant) {
    let key = key(&acme);
    let mut mail = MAIL.as_bytes().to_vec();
    mail.resize((25 << 20) + 1, b'x');
    posting(&acme, &key, mail.clone()).expect_refused(413, "body_too_large").await;
    posting(&acme, &key, mail.clone()).gzipped().expect_refused(413, "body_too_large").await;
    mail.truncate(25 << 20);
    posting(&acme, &key, mail).send().await.expect(201);
}

async fn a_body_that_is_not_a_mail_is_refused(acme: Tenant) {
    let key = key(&acme);
    posting(&acme, &key, "").expect_refused(422, "not_a_mail").await;
    for media_type in ["application/json", "text/plain", "message/rfc822x", ""] {
        let call = posting(&acme, &key, MAIL).header("content-type", media_type);
        call.expect_refused(415, "unsupported_media_type").await;
    }
    let call = posting(&acme, &key, MAIL).header("content-encoding", "br");
    call.expect_refused(415, "unsupported_encoding").await;
    let call = posting(&acme, &key, MAIL).header("content-encoding", "gzip");
    call.expect_refused(400, "broken_gzip").await;
    acme.get(INBOUND).send().await.expect_problem(405, "method_not_allowed");
    let spelled = posting(&acme, &key, MAIL).header("content-type", "Message/RFC822; charset=utf-8");
    spelled.send().await.expect(201);
}

async fn only_the_inbound_key_may_post(acme: Tenant) {
    let old = key(&acme);
    let live = key(&acme);
    let other = key(&acme.neighbour());
    let refused = posting(&acme, &old, MAIL).expect_refused(401, "unauthenticated").await;
    assert_eq!(refused.header("www-authenticate"), Some(r#"X-Service-Inbound-Key realm="rapport""#));
    for wrong in ["", "rin_nonsense", acme.company.token_text(), acme.company.ingest_key_text()] {
        posting(&acme, wrong, MAIL).expect_refused(401, "unauthenticated").await;
    }
    let call = posting(&acme, &live, MAIL).without("x-service-inbound-key");
    call.token(acme.company.token_text()).expect_refused(401, "unauthenticated").await;
    // A key works only for its own company and no other endpoint.
    let before = acme.contents();
    posting(&acme, &other, MAIL).send().await.expect(201);
    assert_eq!(acme.contents(), before);
    acme.get("/api/accounts/").token(&live).expect_refused(401, "unauthenticated").await;
    posting(&acme, &live, MAIL).send().await.expect(201);
}

async fn a_webhook_gets_a_mail_but_not_an_out_of_office_reply(acme: Tenant) {
    let key = key(&acme);
    let hook = json!({"url": "https://example.com/hook", "events": ["message.inbound"]});
    acme.post("/api/webhooks/").json(&hook).send().await.expect(201);
    posting(&acme, &key, MAIL).send().await.expect(201);
    let away =
        "From: ana@nordlys.test\r\nSubject: Out of office\r\nMessage-ID: <2@nordlys.test>\r\n\r\nAway.";
    let reply = posting(&acme, &key, away).send().await.expect(201);
    assert_eq!(reply["automatic"], json!(true));
    assert_eq!(acme.all_pages("/api/deliveries/", 50).await.len(), 1);
}

async fn addresses_are_attached_listed_and_removed(acme: Tenant) {
    let known = acme.account(json!({"imported_id": "crm-1"})).await;
    let list = format!("{}addresses/", path_of(&known));
    let added = acme.post(&list).json(&json!({"address": "Ana@Nordlys.test"})).send().await.expect(201);
    assert_eq!(added["address"], json!("ana@nordlys.test"));
    let again = acme.post(&list).json(&json!({"address": "ana@nordlys.test"})).send().await.expect(201);
    assert_eq!(added, again);
    acme.post(&list).json(&json!({"address": "bo@nordlys.test"})).send().await.expect(201);
    for limit in [1, 50] {
        let listed = acme.all_pages(&list, limit).await;
        assert_eq!(column(&listed, "address"), ["bo@nordlys.test", "ana@nordlys.test"]);
    }
    let faults = [("/address", "malformed"), ("/more", "unknown_member")];
    acme.post(&list).json(&json!({"address": "nobody", "more": 1})).expect_faults(&faults).await;
    acme.post(&list).json(&json!({})).expect_faults(&[("/address", "required")]).await;
    let other = acme.account(json!({"imported_id": "crm-2"})).await;
    let theirs = format!("{}addresses/", path_of(&other));
    acme.post(&theirs)
        .json(&json!({"address": "ana@nordlys.test"}))
        .expect_refused(409, "address_taken")
        .await;
    let reply = posting(&acme, &key(&acme), MAIL).send().await.expect(201);
    assert_eq!((&reply["account_id"], &reply["created_account"]), (&known["id"], &json!(false)));
    acme.delete(&format!("{theirs}ana@nordlys.test/")).expect_refused(404, "not_found").await;
    acme.delete(&format!("{list}ANA@nordlys.test/")).send().await.expect(204);
    acme.delete(&format!("{list}ana@nordlys.test/")).expect_refused(404, "not_found").await;
    acme.post(&theirs).json(&json!({"address": "ana@nordlys.test"})).send().await.expect(201);
    acme.get("/api/accounts/acc_00000000000000000000000000/addresses/")
        .expect_refused(404, "not_found")
        .await;
}

async fn a_message_says_whether_its_sender_was_verified(engine: Engine) {
    let acme = Server::with_parts(engine, |parts| parts.trusted_relay = "mx.acme.test".parse().ok()).await;
    let (key, ana) = (key(&acme), Person::of(&acme, Role::Member));
    let signed = format!("Authentication-Results: mx.acme.test; dkim=pass header.d=nordlys.test\r\n{MAIL}");
    for (mail, check, words) in [
        (signed, json!({"relay": "mx.acme.test", "method": "dkim"}), "Verified by DKIM from mx.acme.test"),
        (MAIL.to_owned(), json!({"relay": "mx.acme.test", "method": null}), "Sender not verified"),
    ] {
        let reply = posting(&acme, &key, mail).send().await.expect(201);
        assert_eq!(messages(&acme, &reply).await[0]["sender_check"], check);
        let [account, conversation] = ["account_id", "conversation_id"].map(|id| reply[id].as_str().unwrap());
        let path = format!("/accounts/{account}/conversations/{conversation}");
        ana.see(&path).await.expect(200).says(words);
    }
}

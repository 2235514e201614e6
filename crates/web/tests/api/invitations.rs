//! Invitations and password resets over HTTP: the open endpoints, their limits, and what admins see.

use rapport_app::password_reset::answer_requests;
use rapport_app::{Access, Outside, password};
use rapport_domain::member::{Email, Role};
use rapport_testkit::Engine;
use rapport_testkit::app::Hire;
use rapport_web::Rate;
use serde_json::{Value, json};

use crate::harness::{Server, Tenant, column, members_of, on_both_engines};

on_both_engines! {
    an_invited_person_joins_by_the_link,
    an_invitation_is_used_once_and_can_be_revoked_and_sent_again,
    all_errors_of_an_invitation_are_reported_at_once,
    the_owner_of_an_address_joins_with_their_existing_password,
    a_handed_over_link_does_not_tell_who_has_a_login,
    guesses_with_an_invitation_are_limited_like_logins,
    only_admins_see_and_create_invitations,
    invitations_are_listed_in_pages,
    with_mail_the_link_is_not_in_the_response,
    password_reset_requests_look_the_same_for_every_address,
    a_password_reset_works_once,
    callers_without_a_credential_have_a_far_lower_limit,
    changes_are_in_the_audit_log_with_their_address,
    settings_say_whether_mail_is_configured,
}

const ACCEPT: &str = "/api/invitations/accept/";
const RESET: &str = "/api/password-reset/";
const CONFIRM: &str = "/api/password-reset/confirm/";

async fn invite(acme: &Tenant, email: &str, role: &str) -> Value {
    acme.post("/api/invitations/").json(&json!({"email": email, "role": role})).send().await.expect(201)
}

fn token_of(made: &Value) -> String {
    let link = made["link"].as_str().unwrap_or_else(|| panic!("no link: {made}"));
    link.rsplit('/').next().unwrap().to_owned()
}

/// An address that only this test uses, because all companies of a service share people.
fn address(acme: &Tenant, name: &str) -> String {
    format!("{name}@{}.test", acme.slug())
}

async fn an_invited_person_joins_by_the_link(acme: Tenant) {
    let email = address(&acme, "ana");
    let made = invite(&acme, &email, "admin").await;
    let expected =
        ["created_at", "email", "expired", "expires_at", "id", "invited_by", "link", "mailed", "role"];
    assert_eq!(members_of(&made), expected);
    assert_eq!((&made["mailed"], &made["expired"]), (&json!(false), &json!(false)));
    assert!(made["link"].as_str().unwrap().contains("/invitation/rjn_"), "{made}");
    let body = json!({"token": token_of(&made), "name": "Ana", "password": "a good password"});
    let joined = acme.post(ACCEPT).without_credential().json(&body).send().await.expect(201);
    assert_eq!(joined["member"]["email"], json!(email));
    assert_eq!((&joined["member"]["name"], &joined["member"]["role"]), (&json!("Ana"), &json!("admin")));
    let id = joined["member"]["id"].as_str().unwrap();
    let member = acme.get(&format!("/api/members/{id}/")).send().await.expect(200);
    assert_eq!(member, joined["member"]);
    let left = acme.get("/api/invitations/").send().await.expect(200);
    assert_eq!(left["items"], json!([]));
}

async fn an_invitation_is_used_once_and_can_be_revoked_and_sent_again(acme: Tenant) {
    let accept = async |token: &str| {
        let body = json!({"token": token, "password": "a good password"});
        acme.post(ACCEPT).without_credential().json(&body).send().await
    };
    let invalid = vec![("/token".to_owned(), "invalid_token".to_owned())];
    let made = invite(&acme, &address(&acme, "ana"), "member").await;
    let path = format!("/api/invitations/{}/", made["id"].as_str().unwrap());
    let resent = acme.post(&format!("{path}resend/")).send().await.expect(200);
    assert_eq!(accept(&token_of(&made)).await.faults(), invalid, "replaced");
    accept(&token_of(&resent)).await.expect(201);
    assert_eq!(accept(&token_of(&resent)).await.faults(), invalid, "used");
    acme.delete(&path).send().await.expect_problem(404, "not_found");
    let made = invite(&acme, &address(&acme, "bo"), "member").await;
    acme.delete(&format!("/api/invitations/{}/", made["id"].as_str().unwrap())).send().await.expect(204);
    assert_eq!(accept(&token_of(&made)).await.faults(), invalid, "revoked");
}

async fn all_errors_of_an_invitation_are_reported_at_once(acme: Tenant) {
    let invite = |body: Value| acme.post("/api/invitations/").json(&body);
    invite(json!({"email": "nobody", "role": "king", "more": 1}))
        .expect_faults(&[("/email", "malformed"), ("/role", "unknown_role"), ("/more", "unknown_member")])
        .await;
    invite(json!({})).expect_faults(&[("/email", "required"), ("/role", "required")]).await;
    let email = address(&acme, "ana");
    invite(json!({"email": email, "role": "member"})).send().await.expect(201);
    invite(json!({"email": email, "role": "member"})).expect_refused(409, "already_invited").await;
    let accept = |body: Value| acme.post(ACCEPT).without_credential().json(&body);
    accept(json!({"name": "", "login": "old", "more": 1}))
        .expect_faults(&[
            ("/token", "required"),
            ("/password", "required"),
            ("/name", "empty"),
            ("/login", "unknown_login"),
            ("/more", "unknown_member"),
        ])
        .await;
    accept(json!({"token": "rjn_x", "password": "a\0good password"}))
        .expect_faults(&[("/token", "invalid_token")])
        .await;
    acme.post(ACCEPT).without_credential().text("{").expect_refused(400, "not_json").await;
}

async fn the_owner_of_an_address_joins_with_their_existing_password(acme: Tenant) {
    let (other, email) = (acme.neighbour(), address(&acme, "ana"));
    let services = acme.company.app().services();
    let hire = Hire {
        email: Email::parse(&email).unwrap(),
        name: "Ana".to_owned(),
        role: Role::Owner,
        password_hash: password::hash(services, "their own password").unwrap(),
        is_proven: true,
    };
    let known = other.company.write_as(&Access::System(other.company.id()), hire).unwrap();
    let token = token_of(&invite(&acme, &email, "member").await);
    let join = async |password: &str| {
        let body = json!({"token": token, "name": "Another", "password": password, "login": "existing"});
        acme.post(ACCEPT).without_credential().json(&body).send().await
    };
    let wrong = join("a wrong password").await;
    assert_eq!(wrong.faults(), [("/password".to_owned(), "wrong_password".to_owned())]);
    let joined = join("their own password").await.expect(201);
    assert_eq!((&joined["member"]["id"], &joined["member"]["name"]), (&json!(known.person), &json!("Ana")));
}

/// The holder of a link may be anybody, such as the admin who made it.
async fn a_handed_over_link_does_not_tell_who_has_a_login(engine: Engine) {
    let server = Server::on(engine).await;
    let mut answers = Vec::new();
    for (email, has_login) in [("ana@acme.test", true), ("bo@acme.test", false)] {
        let is_proven = true;
        let hire = Hire {
            email: Email::parse(email).unwrap(),
            name: "Somebody".to_owned(),
            role: Role::Member,
            password_hash: "none".to_owned(),
            is_proven,
        };
        let globex = server.app.company(if has_login { "globex" } else { "initech" });
        if has_login {
            globex.write_as(&Access::System(globex.id()), hire).unwrap();
        }
        let made = invite(&server, email, "member").await;
        let page = server.get(&format!("/invitation/{}", token_of(&made))).without_credential().send().await;
        let wrong = json!({"token": token_of(&made), "password": "a wrong password", "login": "existing"});
        let guess = server.post(ACCEPT).without_credential().json(&wrong).send().await;
        let new = json!({"token": token_of(&made), "password": "a good password"});
        let joined = server.post(ACCEPT).without_credential().json(&new).send().await.expect(201);
        let shape = (members_of(&made).join(" "), members_of(&joined["member"]).join(" "));
        let text = page.text().replace(email, "").replace(&token_of(&made), "");
        let without_form: Vec<&str> = text.lines().filter(|line| !line.contains("name=\"form\"")).collect();
        answers.push((
            shape,
            guess.faults(),
            joined["member"]["name"].clone() == json!(email),
            without_form.join("\n"),
        ));
    }
    assert_eq!(answers[0], answers[1]);
}

async fn guesses_with_an_invitation_are_limited_like_logins(acme: Tenant) {
    let email = address(&acme, "ana");
    let hire = Hire {
        email: Email::parse(&email).unwrap(),
        name: "Ana".to_owned(),
        role: Role::Owner,
        password_hash: "none".to_owned(),
        is_proven: true,
    };
    let other = acme.neighbour();
    other.company.write_as(&Access::System(other.company.id()), hire).unwrap();
    let token = token_of(&invite(&acme, &email, "member").await);
    let body = json!({"token": token, "password": "a wrong password", "login": "existing"});
    let mut refused = None;
    for guess in 0..30 {
        let answer = acme.post(ACCEPT).without_credential().json(&body).send().await;
        if answer.status == 429 {
            refused = Some(guess);
            break;
        }
    }
    assert!(refused.is_some(), "thirty guesses at a password were answered");
}

async fn only_admins_see_and_create_invitations(acme: Tenant) {
    let member = acme.token_of(Role::Member);
    let made = invite(&acme, &address(&acme, "ana"), "member").await;
    let path = format!("/api/invitations/{}/", made["id"].as_str().unwrap());
    let calls = [
        acme.get("/api/invitations/"),
        acme.post("/api/invitations/").json(&json!({"email": "x@y.test", "role": "member"})),
        acme.post(&format!("{path}resend/")),
        acme.delete(&path),
        acme.get("/api/mails/"),
        acme.post("/api/digest/send/"),
    ];
    for call in calls {
        call.token(&member).expect_refused(403, "role_required").await;
    }
    let admin = acme.token_of(Role::Admin);
    let owner = json!({"email": address(&acme, "bo"), "role": "owner"});
    acme.post("/api/invitations/").token(&admin).json(&owner).expect_refused(403, "role_required").await;
    // Invitations of another company are not found.
    acme.neighbour().delete(&path).send().await.expect_problem(404, "not_found");
}

async fn invitations_are_listed_in_pages(acme: Tenant) {
    for number in 0..5 {
        invite(&acme, &address(&acme, &format!("m{number}")), "member").await;
    }
    let items = acme.all_pages("/api/invitations/", 2).await;
    let expected: Vec<String> = (0..5).rev().map(|number| address(&acme, &format!("m{number}"))).collect();
    assert_eq!(column(&items, "email"), expected);
    assert!(items.iter().all(|item| item.get("link").is_none()), "it was shown once");
}

async fn with_mail(engine: Engine) -> Server {
    let outside = Outside { base_url: "https://crm.acme.test".to_owned(), mail_configured: true };
    Server::with_parts(engine, move |parts| parts.outside = outside.clone()).await
}

async fn with_mail_the_link_is_not_in_the_response(engine: Engine) {
    let server = with_mail(engine).await;
    let made = invite(&server, "ana@acme.test", "member").await;
    assert_eq!((made.get("link"), &made["mailed"]), (None, &json!(true)));
    let mails = server.get("/api/mails/").send().await.expect(200);
    let mail = &mails["items"][0];
    assert_eq!((&mail["kind"], &mail["state"]), (&json!("invitation"), &json!("waiting")));
    assert_eq!((&mail["recipient"], &mail["attempts"]), (&json!("ana@acme.test"), &json!(0)));
    assert!(!mails.to_string().contains("rjn_"));
}

async fn password_reset_requests_look_the_same_for_every_address(engine: Engine) {
    let server = with_mail(engine).await;
    let mut answers = Vec::new();
    for email in ["owner@acme.test", "nobody@acme.test"] {
        let answer = server.post(RESET).without_credential().json(&json!({"email": email})).send().await;
        assert_eq!((answer.status, answer.body.len()), (202, 0), "{email}");
        let names: Vec<String> = answer.headers.keys().map(ToString::to_string).collect();
        answers.push(names);
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(server.app.rows("reset_request"), 2, "the person is looked up afterwards");
    answer_requests(server.app.app()).await.unwrap();
    assert_eq!((server.app.rows("reset_request"), server.app.rows("mail")), (0, 1));
    server
        .post(RESET)
        .without_credential()
        .json(&json!({"email": "nobody", "more": 1}))
        .expect_faults(&[("/email", "malformed"), ("/more", "unknown_member")])
        .await;
}

async fn a_password_reset_works_once(acme: Tenant) {
    let made = invite(&acme, &address(&acme, "ana"), "member").await;
    let accept = json!({"token": token_of(&made), "password": "the first password"});
    let joined = acme.post(ACCEPT).without_credential().json(&accept).send().await.expect(201);
    let path = format!("/api/members/{}/password-reset/", joined["member"]["id"].as_str().unwrap());
    let sent = acme.post(&path).send().await.expect(200);
    let token = token_of(&sent);
    let confirm = |password: &str| {
        acme.post(CONFIRM).without_credential().json(&json!({"token": token, "password": password}))
    };
    confirm("short").expect_faults(&[("/password", "too_short")]).await;
    confirm("the second password").send().await.expect(204);
    confirm("the third password").expect_faults(&[("/token", "invalid_token")]).await;
    acme.post(&path).token(&acme.token_of(Role::Member)).send().await.expect_problem(403, "role_required");
}

async fn callers_without_a_credential_have_a_far_lower_limit(engine: Engine) {
    let server = Server::with(engine, |config| {
        config.per_stranger = Rate { per_second: 1, burst: 3 };
    })
    .await;
    let ask = || server.post(RESET).without_credential().json(&json!({"email": "x@y.test"}));
    for _ in 0..3 {
        ask().send().await.expect(202);
    }
    let refused = ask().send().await;
    refused.expect_problem(429, "rate_limited");
    assert_eq!(refused.header("retry-after"), Some("1"));
    // A credential doesn't help. The other open paths share the limit, and nothing else does.
    let with_token = server.post(RESET).json(&json!({"email": "x@y.test"})).send().await;
    with_token.expect_problem(429, "rate_limited");
    let body = json!({"token": "x", "password": "a good password"});
    server.post(ACCEPT).without_credential().json(&body).send().await.expect_problem(429, "rate_limited");
    server.get("/api/settings/").send().await.expect(200);
    server.app.clock().advance_seconds(1);
    ask().send().await.expect(202);
    assert_eq!(rapport_web::Config::default().per_stranger, Rate { per_second: 1, burst: 10 });
}

async fn changes_are_in_the_audit_log_with_their_address(acme: Tenant) {
    let patch = acme.patch("/api/settings/").json(&json!({"cadence_days": 7}));
    patch.header("x-request-id", "abc-1").send().await.expect(200);
    let made = invite(&acme, &address(&acme, "ana"), "member").await;
    let body = json!({"token": token_of(&made), "name": "Ana", "password": "a good password"});
    acme.post(ACCEPT).without_credential().json(&body).send().await.expect(201);
    acme.company.write_as(&Access::CommandLine(acme.company.id()), rotate()).unwrap();
    let log = acme.all_pages("/api/audit/", 100).await;
    let rows: Vec<(&str, &Value, &Value)> = log[..4]
        .iter()
        .map(|entry| (entry["action"].as_str().unwrap(), &entry["address"], &entry["actor"]["type"]))
        .collect();
    let (here, nowhere) = (json!("127.0.0.1"), Value::Null);
    let kinds = [json!("command_line"), json!("person"), json!("token")];
    let expected = [
        ("ingest_key.rotated", &nowhere, &kinds[0]),
        ("invitation.accepted", &here, &kinds[1]),
        ("invitation.created", &here, &kinds[2]),
        ("settings.changed", &here, &kinds[2]),
    ];
    assert_eq!(rows, expected);
    assert_eq!((&log[0]["request_id"], &log[3]["request_id"]), (&nowhere, &json!("abc-1")));
    assert!(log[1]["request_id"].as_str().is_some_and(|id| id.len() > 8), "{}", log[1]);
    assert_eq!(log[3]["detail"], json!({"cadence_days": {"from": 42, "to": 7}}));
    let text = json!(log).to_string();
    assert!(!text.contains("a good password") && !text.contains(&token_of(&made)[8..]), "{text}");
}

fn rotate() -> rapport_app::credential::RotateKey {
    rapport_app::credential::RotateKey(rapport_app::credential::Key::Ingest)
}

async fn settings_say_whether_mail_is_configured(engine: Engine) {
    let server = with_mail(engine).await;
    let settings = server.get("/api/settings/").send().await.expect(200);
    assert_eq!(settings["mail_configured"], json!(true));
    let without = Tenant::on(server.app.engine());
    let settings = without.get("/api/settings/").send().await.expect(200);
    assert_eq!(settings["mail_configured"], json!(false));
}

//! A quick test of every endpoint.

use rapport_domain::member::Role;
use rapport_testkit::Engine;
use serde_json::{Value, json};

use crate::harness::{INGEST, Server, UPSERT};

#[tokio::test]
async fn an_upsert_creates_then_patches() {
    for engine in Engine::BOTH {
        let server = Server::on(engine).await;
        let created =
            server.upsert(json!({"imported_id": "crm-1", "name": "Nordlys", "extra": 1})).await.expect(201);
        assert_eq!(created["created"], json!(true));
        assert_eq!(created["promo_code_matched"], json!(false));
        assert_eq!(created["account"]["status"], json!("prospect"));
        assert_eq!(created["account"].as_object().unwrap().len(), 21);
        let patch =
            json!({"imported_id": "crm-1", "name": "Other", "status": "customer", "captured_value": 12.50});
        let patched = server.upsert(patch).await.expect(200);
        assert_eq!(patched["changed"], json!(["status", "captured_value", "captured_value_currency"]));
        assert_eq!(patched["ignored"], json!(["name"]));
        assert_eq!(patched["account"]["captured_value"], json!("12.50"));
        assert_eq!(patched["account"]["name"], json!("Nordlys"));
    }
}

#[tokio::test]
async fn an_ingest_sorts_its_events() {
    for engine in Engine::BOTH {
        let server = Server::on(engine).await;
        server.account(json!({"imported_id": "crm-1"})).await;
        let known = json!({"imported_id": "crm-1", "kind": "trial_started", "event_id": "e1"});
        let unknown = json!({"imported_id": "nobody", "kind": "app_opened", "note": {"n": 1.50}});
        let faulty = json!({"imported_id": "crm-1", "kind": "feature_used"});
        let call = server.post(INGEST).json(&json!({"events": [known, unknown, known, faulty]})).gzipped();
        let reply = call.send().await.expect(200);
        let mut sent_back = unknown.clone();
        sent_back["index"] = json!(1);
        assert_eq!(reply["unmatched"], json!([sent_back]));
        assert_eq!(reply["rejected"][0]["index"], json!(3));
        assert_eq!(reply["rejected"][0]["code"], json!("required"));
        assert_eq!(
            (&reply["received"], &reply["accepted"], &reply["duplicates"]),
            (&json!(4), &json!(1), &json!(1))
        );
        assert_eq!(server.app.account("crm-1").status.as_str(), "in_trial");
    }
}

#[tokio::test]
async fn a_batch_without_valid_events_is_refused_with_the_members_of_the_reply() {
    let server = Server::on(Engine::Sqlite).await;
    let answer = server.ingest(json!([{"kind": "app_opened"}, 7])).await;
    let problem = answer.expect_problem(422, "all_rejected");
    assert_eq!(problem["received"], json!(2));
    assert_eq!(problem["rejected"].as_array().unwrap().len(), 2);
    assert_eq!((&problem["accepted"], &problem["unmatched"]), (&json!(0), &json!([])));
    assert_eq!(answer.faults()[0].0, "/events/0/imported_id");
    let many: Vec<Value> = vec![json!({"imported_id": "x", "kind": "app_opened"}); 101];
    let problem = server.ingest(json!(many)).await.expect_problem(413, "batch_too_large");
    assert_eq!((&problem["max_events"], &problem["received"]), (&json!(100), &json!(101)));
    assert_eq!(server.ingest(json!([])).await.faults(), [("/events".to_owned(), "empty".to_owned())]);
}

#[tokio::test]
async fn the_credential_is_checked_before_the_body() {
    for engine in Engine::BOTH {
        let server = Server::on(engine).await;
        let stranger = server.app.company("globex");
        let revoked = server.token_of(Role::Member);
        let id = server.get("/api/tokens/").send().await.expect(200)["items"][0]["id"]
            .as_str()
            .unwrap()
            .to_owned();
        server.delete(&format!("/api/tokens/{id}/")).send().await.expect(204);
        for body in ["{", "[]", r#"{"project": "acme"}"#, &"x".repeat(2 << 20)] {
            for path in [UPSERT, "/api/accounts/", "/api/channels/"] {
                let answer = server.post(path).text(body).token(&revoked).send().await;
                answer.expect_problem(401, "unauthenticated");
                assert_eq!(answer.header("www-authenticate"), Some(r#"Bearer realm="rapport""#));
                let none = server.post(path).text(body).without_credential().send().await;
                none.expect_problem(401, "unauthenticated");
            }
            let answer =
                server.post(INGEST).text(body).header("x-service-ingest-key", "rik_wrong").send().await;
            answer.expect_problem(401, "unauthenticated");
            assert_eq!(answer.header("www-authenticate"), Some(r#"X-Service-Ingest-Key realm="rapport""#));
        }
        let foreign = json!({"project": "acme", "imported_id": 5});
        let answer = server.post(UPSERT).json(&foreign).of_company(&stranger).send().await;
        answer.expect_problem(403, "foreign_project");
        let unknown = json!({"project": "no such", "imported_id": "a"});
        let other = server.post(UPSERT).json(&unknown).send().await;
        other.expect_problem(403, "foreign_project");
        assert_eq!(answer.body, other.body, "the same whether the project exists or not");
        let faults = server.post(UPSERT).json(&json!({"project": 5, "status": "x"})).send().await.faults();
        let pointers: Vec<&str> = faults.iter().map(|(pointer, _)| pointer.as_str()).collect();
        assert_eq!(pointers, ["/project", "/imported_id", "/status"]);
    }
}

#[tokio::test]
async fn accounts_are_managed() {
    for engine in Engine::BOTH {
        let server = Server::on(engine).await;
        let made =
            server.post("/api/accounts/").json(&json!({"name": "Keller", "imported_id": "k"})).send().await;
        let made = made.expect(201);
        let path = format!("/api/accounts/{}/", made["id"].as_str().unwrap());
        assert_eq!(server.get(&path).send().await.expect(200), made);
        let patched =
            server.patch(&path).json(&json!({"cadence_days": 7, "snoozed_until": "2026-02-01"})).send().await;
        let patched = patched.expect(200);
        assert_eq!((&patched["cadence_days"], &patched["snoozed_until"]), (&json!(7), &json!("2026-02-01")));
        let status = json!({"status": "customer", "note": "signed"});
        let moved = server.post(&format!("{path}status/")).json(&status).send().await.expect(200);
        assert_eq!((&moved["moved"], &moved["tracked"]), (&json!(true), &json!(true)));
        let again = server.post(&format!("{path}status/")).json(&status).send().await.expect(200);
        assert_eq!(again["moved"], json!(false));
        let history = server.all_pages(&format!("{path}history/"), 1).await;
        assert_eq!(history.len(), 2);
        assert_eq!((&history[0]["from"], &history[0]["to"]), (&json!("prospect"), &json!("customer")));
        assert_eq!((&history[0]["source"], &history[0]["note"]), (&json!("operator"), &json!("signed")));
        assert_eq!(history[1]["from"], Value::Null);
        server.delete(&path).send().await.expect(204);
        for path in
            [path.clone(), format!("{path}history/"), format!("{path}pulse/"), format!("{path}activity/")]
        {
            server.get(&path).send().await.expect_problem(404, "not_found");
        }
        server.get("/api/accounts/acc_nonsense/").send().await.expect_problem(404, "not_found");
        server.get("/api/accounts/%ff/").send().await.expect_problem(404, "not_found");
        let refused = server.patch(&path).json(&json!({"nmae": 1})).send().await;
        assert_eq!(refused.faults(), [("/nmae".to_owned(), "unknown_member".to_owned())]);
    }
}

#[tokio::test]
async fn accounts_are_listed_filtered_and_paged() {
    for engine in Engine::BOTH {
        let server = Server::on(engine).await;
        for (number, status) in
            ["prospect", "customer", "in_trial", "lost", "customer"].into_iter().enumerate()
        {
            let body = json!({"imported_id": format!("crm-{number}"), "name": format!("N{number}"), "status": status});
            server.account(body).await;
        }
        let names = |items: Vec<Value>| -> Vec<String> {
            items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(names(server.all_pages("/api/accounts/", 2).await), ["N4", "N3", "N2", "N1", "N0"]);
        assert_eq!(
            names(server.all_pages("/api/accounts/?sort=name", 2).await),
            ["N0", "N1", "N2", "N3", "N4"]
        );
        assert_eq!(
            names(server.all_pages("/api/accounts/?status=customer,lost", 9).await),
            ["N4", "N3", "N1"]
        );
        assert_eq!(
            names(server.all_pages("/api/accounts/?status=lost&status=in_trial", 9).await),
            ["N3", "N2"]
        );
        assert_eq!(names(server.all_pages("/api/accounts/?tracked=true&q=n1", 9).await), ["N1"]);
        let path =
            "/api/accounts/?limit=ten&cursor=zz&colour=red&status=nope&sort=size&seen_after=x&tracked=1";
        let faults = server.get(path).send().await.faults();
        let mut pointers: Vec<&str> = faults.iter().map(|(pointer, _)| pointer.as_str()).collect();
        pointers.sort_unstable();
        assert_eq!(pointers, ["colour", "cursor", "limit", "seen_after", "sort", "status", "tracked"]);
    }
}

#[tokio::test]
async fn activity_and_pulse_show_what_was_ingested() {
    for engine in Engine::BOTH {
        let server = Server::on(engine).await;
        server.app.set(json!({"time_zone": "Pacific/Auckland"}));
        let account = server.account(json!({"imported_id": "crm-1"})).await;
        let path = format!("/api/accounts/{}/", account["id"].as_str().unwrap());
        let events = json!([
            {"imported_id": "crm-1", "kind": "feature_used", "feature": "a", "occurred_at": "2026-01-04T12:00:00Z"},
            {"imported_id": "crm-1", "kind": "feature_used", "feature": "b", "metadata": {"n": 1.50}},
            {"account_id": account["id"], "kind": "custom", "feature": "b"},
        ]);
        assert_eq!(server.ingest(events).await.expect(200)["accepted"], json!(3));
        let activity = server.all_pages(&format!("{path}activity/"), 1).await;
        let features: Vec<&str> = activity.iter().map(|item| item["feature"].as_str().unwrap()).collect();
        assert_eq!(features, ["b", "b", "a"]);
        assert_eq!(activity[1]["metadata"], json!({"n": 1.50}));
        let pulse = server.get(&format!("{path}pulse/")).send().await.expect(200);
        assert_eq!(pulse["first_seen_at"], json!("2026-01-04T12:00:00Z"));
        assert_eq!(pulse["last_seen_at"], json!("2026-01-05T09:00:00Z"));
        let days = pulse["days"].as_array().unwrap();
        assert_eq!(days.len(), 90);
        // Noon on the 4th in UTC is already the 5th in Auckland. So is the clock's 09:00 on the 5th.
        assert_eq!(days[89], json!({"date": "2026-01-05", "count": 3}));
        assert_eq!(days[88], json!({"date": "2026-01-04", "count": 0}));
        assert_eq!(pulse["features"][0]["feature"], json!("b"));
        assert_eq!(pulse["features"][0]["count"], json!(2));
    }
}

#[tokio::test]
async fn channels_and_codes_are_managed() {
    for engine in Engine::BOTH {
        let server = Server::on(engine).await;
        let made = server.post("/api/channels/").json(&json!({"name": "Fair"})).send().await.expect(201);
        assert_eq!(made["codes"], json!([]));
        let path = format!("/api/channels/{}/", made["id"].as_str().unwrap());
        server
            .post("/api/channels/")
            .json(&json!({"name": "fair"}))
            .send()
            .await
            .expect_problem(409, "name_taken");
        let codes = format!("{path}codes/");
        for code in ["SPRING", "Summer", "x-1"] {
            let added = server.post(&codes).json(&json!({ "code": code })).send().await.expect(201);
            assert_eq!((&added["code"], &added["archived"]), (&json!(code), &json!(false)));
        }
        server.post(&codes).json(&json!({"code": "spring"})).send().await.expect_problem(409, "code_taken");
        assert_eq!(server.all_pages(&codes, 2).await.len(), 3);
        let archived = server.patch(&format!("{codes}spring")).json(&json!({"archived": true})).send().await;
        assert_eq!(archived.expect(200)["archived"], json!(true));
        assert_eq!(server.get(&format!("{codes}SPRING/")).send().await.expect(200)["archived"], json!(true));
        let upserted = server.upsert(json!({"imported_id": "a", "promo_code": "SUMMER"})).await.expect(201);
        assert_eq!(upserted["promo_code_matched"], json!(true));
        assert_eq!(upserted["account"]["channel"]["name"], json!("Fair"));
        server.delete(&path).send().await.expect_problem(409, "channel_in_use");
        server.delete(&format!("{codes}x-1/")).send().await.expect(204);
        server.delete(&format!("{codes}x-1/")).send().await.expect_problem(404, "not_found");
        server.get(&format!("{codes}no.code/")).send().await.expect_problem(404, "not_found");
        let renamed = server.patch(&path).json(&json!({"name": "Big fair"})).send().await.expect(200);
        assert_eq!((&renamed["name"], renamed["codes"].as_array().unwrap().len()), (&json!("Big fair"), 2));
        let listed = server.get("/api/channels/").send().await.expect(200);
        assert_eq!(listed["items"], json!([renamed]));
        let faults =
            server.post("/api/channels/").json(&json!({"name": "a\u{0}", "colour": 1})).send().await.faults();
        assert_eq!(faults.len(), 2);
    }
}

#[tokio::test]
async fn settings_change_and_keys_rotate_immediately() {
    for engine in Engine::BOTH {
        let server = Server::on(engine).await;
        let settings = server.get("/api/settings/").send().await.expect(200);
        assert_eq!((&settings["project"], &settings["cadence_days"]), (&json!("acme"), &json!(42)));
        assert!(settings["ingest_key"]["prefix"].as_str().unwrap().starts_with("rik_"));
        assert_eq!(settings["inbound_key"], Value::Null);
        let change =
            json!({"cadence_days": 14, "time_zone": "Europe/Berlin", "tracked_stages": ["customer"]});
        let changed = server.patch("/api/settings/").json(&change).send().await.expect(200);
        assert_eq!((&changed["cadence_days"], &changed["time_zone"]), (&json!(14), &json!("Europe/Berlin")));
        assert_eq!(changed["ingest_key"], settings["ingest_key"]);
        let faults =
            server.patch("/api/settings/").json(&json!({"cadence_days": 0, "x": 1})).send().await.faults();
        assert_eq!(faults.len(), 2);
        let rotated = server.post("/api/settings/ingest-key/rotate/").send().await.expect(200);
        assert_eq!(rotated["key"], rotated["ingest_key"]);
        server.ingest(json!([{"imported_id": "a", "kind": "app_opened"}])).await.expect(401);
        let events = json!({"events": [{"imported_id": "a", "kind": "app_opened"}]});
        let with_new = server
            .post(INGEST)
            .json(&events)
            .header("x-service-ingest-key", rotated["key"].as_str().unwrap());
        with_new.send().await.expect(200);
        let inbound =
            server.post("/api/settings/inbound-key/rotate/").json(&json!({})).send().await.expect(200);
        assert!(inbound["inbound_key"].as_str().unwrap().starts_with("rin_"));
        let refused =
            server.post("/api/settings/inbound-key/rotate/").json(&json!({"now": true})).send().await;
        assert_eq!(refused.faults()[0].1, "unknown_member");
        let member = server.token_of(Role::Member);
        for path in ["/api/settings/ingest-key/rotate/", "/api/tokens/", "/api/members/", "/api/channels/"] {
            let refused = server.post(path).json(&json!({})).token(&member).send().await;
            refused.expect_problem(403, "role_required");
        }
    }
}

#[tokio::test]
async fn tokens_members_and_the_audit_log() {
    for engine in Engine::BOTH {
        let server = Server::on(engine).await;
        let made = server
            .post("/api/tokens/")
            .json(&json!({"name": "CRM", "role": "member"}))
            .send()
            .await
            .expect(201);
        let token = made["token"].as_str().unwrap();
        server.get("/api/accounts/").token(token).send().await.expect(200);
        let listed = server.all_pages("/api/tokens/", 1).await;
        assert_eq!(listed.len(), 2);
        assert!(listed.iter().all(|item| item.get("token").is_none()), "a token is shown once");
        server.delete(&format!("/api/tokens/{}/", made["id"].as_str().unwrap())).send().await.expect(204);
        server.get("/api/accounts/").token(token).send().await.expect_problem(401, "unauthenticated");

        let ana = json!({"email": "Ana@acme.test", "name": "Ana", "role": "admin"});
        let invited = server.post("/api/members/").json(&ana).send().await.expect(201);
        assert_eq!((&invited["email"], &invited["mailed"]), (&json!("ana@acme.test"), &json!(false)));
        server.post("/api/members/").json(&ana).send().await.expect_problem(409, "already_invited");
        let token = invited["link"].as_str().unwrap().rsplit('/').next().unwrap();
        let accept = json!({"token": token, "password": "a good password"});
        let accept = server.post("/api/invitations/accept/").without_credential().json(&accept);
        let added = accept.send().await.expect(201)["member"].clone();
        assert_eq!((&added["name"], &added["active"]), (&json!("Ana"), &json!(true)));
        server.post("/api/members/").json(&ana).send().await.expect_problem(409, "already_a_member");
        let path = format!("/api/members/{}/", added["id"].as_str().unwrap());
        let changed =
            server.patch(&path).json(&json!({"role": "member", "active": false})).send().await.expect(200);
        assert_eq!((&changed["role"], &changed["active"]), (&json!("member"), &json!(false)));
        assert_eq!(server.get(&path).send().await.expect(200), changed);
        assert_eq!(server.all_pages("/api/members/", 1).await.len(), 2);
        server.delete(&path).send().await.expect(204);
        let owner = server.all_pages("/api/members/", 5).await[0]["id"].as_str().unwrap().to_owned();
        server.delete(&format!("/api/members/{owner}/")).send().await.expect_problem(409, "last_owner");
        let faults =
            server.post("/api/members/").json(&json!({"email": "no", "role": "king"})).send().await.faults();
        assert_eq!(faults.len(), 2);

        let actions: Vec<Value> = server
            .all_pages("/api/audit/", 2)
            .await
            .into_iter()
            .map(|entry| entry["action"].clone())
            .collect();
        let expected = json!([
            "member.removed",
            "member.changed",
            "invitation.accepted",
            "invitation.created",
            "token.revoked",
            "token.created",
            "company.created",
        ]);
        assert_eq!(json!(actions), expected);
    }
}

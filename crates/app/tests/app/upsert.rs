//! POST /api/accounts/upsert-by-imported-id/: the rules of the interface document and of the decisions.

use rapport_app::channel::{ArchiveCode, DeleteCode};
use rapport_app::credential::RevokeToken;
use rapport_app::upsert::Upsert;
use rapport_domain::account::{self, Account};
use rapport_domain::channel::PromoCode;
use rapport_domain::credential::Kind as CredentialKind;
use rapport_domain::event::Kind;
use rapport_domain::history::Actor;
use rapport_domain::member::Role;
use rapport_domain::pipeline::{Source, Status};
use rapport_domain::policy::{Outcome, Outcomes};
use rapport_testkit::{TestApp, TestCompany, all, block_on};
use serde_json::{Map, Value, json};

use crate::{kinds, moves, payloads, refusal};

fn request(company: &TestCompany, body: &Value) -> Upsert {
    let mut body = body.as_object().expect("an object").clone();
    body.entry("project").or_insert_with(|| json!(company.slug()));
    Upsert(account::Upsert::parse(&body).expect("a valid upsert"))
}

fn value_of(account: &Account) -> Option<(String, &'static str)> {
    account.value.map(|money| (money.amount_text(), money.currency.code()))
}

fn code(text: &str) -> PromoCode {
    PromoCode::parse(text).unwrap()
}

#[test]
fn an_unknown_imported_id_creates_the_account() {
    TestApp::on_both(|app| {
        let reply = app.upsert(json!({"imported_id": "crm-1"}));
        assert!(reply.created && reply.ignored.is_empty() && !reply.promo_code_matched);
        assert_eq!(reply.changed, ["imported_id", "name", "status"]);
        let account = app.account("crm-1");
        assert_eq!(reply.account, account, "the reply is what was stored");
        assert_eq!((account.name.as_str(), account.status), ("crm-1", Status::Prospect));
        assert_eq!((account.created_at, account.updated_at), (app.clock().now(), app.clock().now()));
    });
}

#[test]
fn a_creation_writes_one_history_entry_and_fires_account_created_only() {
    TestApp::on_both(|app| {
        let sent =
            json!({"imported_id": "crm-1", "name": "Nordlys", "status": "customer", "captured_value": "10"});
        let account = app.upsert(sent).account;
        assert_eq!((account.name.as_str(), account.status), ("Nordlys", Status::Customer));
        assert_eq!(moves(app, account.id), [(None, Status::Customer, Source::Upsert)]);
        assert_eq!(kinds(app, account.id), [Kind::AccountCreated]);
        let data = &payloads(app, account.id)[0];
        assert_eq!(data["source"], "upsert");
        assert_eq!(data["account"]["imported_id"], "crm-1");
        assert_eq!(data["account"]["status"], "customer");
        assert_eq!(data["account"]["captured_value"], "10.00");
        assert_eq!(data["account"]["id"], json!(account.id.to_string()));
    });
}

#[test]
fn only_the_fields_sent_are_patched() {
    TestApp::on_both(|app| {
        let all = json!({
            "imported_id": "crm-1", "name": "Nordlys", "status": "contacted", "captured_value": "5",
            "custom_fields": {"plan": "pro", "seats": 3},
        });
        let before = app.upsert(all).account;
        app.clock().advance_seconds(60);
        let reply = app.upsert(json!({"imported_id": "crm-1", "custom_fields": {"seats": 4}}));
        assert_eq!((reply.created, reply.changed), (false, vec!["custom_fields"]));
        let after = app.account("crm-1");
        assert_eq!(after.custom_fields.as_json(), r#"{"plan":"pro","seats":4}"#);
        assert_eq!(after.updated_at, app.clock().now());
        let rest =
            Account { custom_fields: before.custom_fields.clone(), updated_at: before.updated_at, ..after };
        assert_eq!(rest, before);
    });
}

#[test]
fn a_name_is_left_as_it_is_and_listed_as_ignored() {
    TestApp::on_both(|app| {
        app.upsert(json!({"imported_id": "crm-1", "name": "First"}));
        let reply = app.upsert(json!({"imported_id": "crm-1", "name": "Second"}));
        assert_eq!((reply.ignored, reply.changed.len()), (vec!["name"], 0));
        assert_eq!(app.account("crm-1").name, "First");
    });
}

#[test]
fn a_name_that_is_ignored_cannot_fail_the_request() {
    TestApp::on_both(|app| {
        app.upsert(json!({"imported_id": "crm-1", "name": "First"}));
        for name in [
            json!(""),
            json!(" "),
            json!("\u{3164}"),
            json!("a\0"),
            json!("x".repeat(256)),
            json!(5),
            json!([]),
        ] {
            let reply = app.upsert(json!({"imported_id": "crm-1", "name": name}));
            assert_eq!((reply.ignored, reply.account.name.as_str()), (vec!["name"], "First"), "{name}");
            let refused = app.try_upsert(json!({"imported_id": "crm-2", "name": name}));
            assert!(refusal(refused).starts_with("invalid /name "), "{name}");
        }
        assert_eq!(app.rows("account"), 1);
    });
}

#[test]
fn a_name_is_updated_with_its_search_words_if_the_policy_says_so() {
    TestApp::on_both(|app| {
        let found =
            |word: &str| app.number(&format!("SELECT count(*) FROM account_word WHERE word = '{word}'"));
        app.upsert(json!({"imported_id": "crm-1", "name": "Nordlys Bank"}));
        app.clock().advance_seconds(60);
        let reply =
            app.upsert(json!({"imported_id": "crm-1", "name": "Fjord Bank", "name_policy": "update"}));
        assert_eq!((reply.changed, reply.outcomes.name), (vec!["name"], Some(Outcome::Set)));
        let account = app.account("crm-1");
        assert_eq!((account.name.as_str(), account.updated_at), ("Fjord Bank", app.clock().now()));
        assert_eq!((found("fjord"), found("bank"), found("nordlys")), (1, 1, 0));
        app.clock().advance_seconds(60);
        let again =
            app.upsert(json!({"imported_id": "crm-1", "name": "Fjord Bank", "name_policy": "update"}));
        assert_eq!((again.changed.len(), again.outcomes.name), (0, Some(Outcome::Unchanged)));
        assert_eq!(app.account("crm-1"), account);
        assert_eq!((moves(app, account.id).len(), kinds(app, account.id).len()), (1, 1), "a name is no move");
    });
}

#[test]
fn a_resync_forward_keeps_what_activity_did() {
    TestApp::on_both(|app| {
        let resync = |status: &str| {
            app.upsert(json!({"imported_id": "crm-1", "status": status, "status_policy": "forward"}))
        };
        let id = resync("contacted").account.id;
        app.ingest(json!([{"imported_id": "crm-1", "kind": "trial_started"}]));
        let kept = resync("contacted");
        assert_eq!((kept.outcomes.status, kept.ignored), (Some(Outcome::Kept), vec!["status"]));
        app.ingest(json!([{"imported_id": "crm-1", "kind": "churned"}]));
        assert_eq!(
            resync("customer").outcomes.status,
            Some(Outcome::Kept),
            "Lost is not won back by a re-sync"
        );
        assert_eq!(resync("do_not_contact").outcomes.status, Some(Outcome::Set));
        assert_eq!(resync("prospect").outcomes.status, Some(Outcome::Kept));
        let expected = [
            (None, Status::Contacted, Source::Upsert),
            (Some(Status::Contacted), Status::InTrial, Source::Automation),
            (Some(Status::InTrial), Status::Lost, Source::Automation),
            (Some(Status::Lost), Status::DoNotContact, Source::Upsert),
        ];
        assert_eq!(moves(app, id), expected);
        let set = app.upsert(json!({"imported_id": "crm-1", "status": "prospect"}));
        assert_eq!((set.changed, set.outcomes), (vec!["status"], Outcomes::default()));
    });
}

#[test]
fn an_imported_id_is_exact_and_case_sensitive() {
    TestApp::on_both(|app| {
        let longest = "ü".repeat(255);
        let ids = ["a", "A", " a", "a ", "é", "e\u{301}", "a\u{202e}b", "'; --", "%", "_", longest.as_str()];
        for id in ids {
            assert!(app.upsert(json!({ "imported_id": id })).created, "{id:?}");
        }
        for id in ids {
            assert!(!app.upsert(json!({ "imported_id": id })).created, "{id:?}");
            assert_eq!(app.account(id).imported_id.as_deref(), Some(id));
        }
        assert_eq!(app.rows("account"), 11);
    });
}

#[test]
fn null_counts_as_not_sent_and_inside_custom_fields_it_deletes() {
    TestApp::on_both(|app| {
        let fields = json!({"a": 1, "b": {"x": 1, "y": 2}, "c": [1]});
        let sent = json!({"imported_id": "crm-1", "status": "contacted", "custom_fields": fields});
        let before = app.upsert(sent).account;
        let nulls = json!({"imported_id": "crm-1", "status": null, "name": null, "custom_fields": null});
        let reply = app.upsert(nulls);
        assert!(reply.changed.is_empty() && reply.ignored.is_empty());
        assert_eq!(reply.account, before);
        app.upsert(
            json!({"imported_id": "crm-1", "custom_fields": {"a": null, "b": {"x": 3}, "unknown": null}}),
        );
        assert_eq!(app.account("crm-1").custom_fields.as_json(), r#"{"b":{"x":3},"c":[1]}"#);
    });
}

#[test]
fn custom_fields_come_back_as_they_were_sent() {
    TestApp::on_both(|app| {
        let text = r#"{"imported_id":"crm-1","custom_fields":{"big":123456789012345678901234567890.10,"deep":{"a":[null,true,"ß\u202e"]},"e":1e400}}"#;
        app.upsert(serde_json::from_str(text).unwrap());
        let kept = app.account("crm-1").custom_fields;
        assert_eq!(
            kept.as_json(),
            "{\"big\":123456789012345678901234567890.10,\"deep\":{\"a\":[null,true,\"ß\u{202e}\"]},\"e\":1e+400}"
        );
    });
}

#[test]
fn value_and_currency_follow_the_decided_table() {
    TestApp::on_both(|app| {
        app.set(json!({"default_currency": "CHF"}));
        // What is sent in turn, the value it leaves, what it changed, and what was ignored.
        type Row =
            (Value, Option<(&'static str, &'static str)>, &'static [&'static str], &'static [&'static str]);
        let (value, currency) = ("captured_value", "captured_value_currency");
        let both: &[&str] = &["captured_value", "captured_value_currency"];
        let (value_only, currency_only): (&[&str], &[&str]) =
            (&["captured_value"], &["captured_value_currency"]);
        let table: Vec<Row> = vec![
            (json!({ currency: "eur" }), None, &[], currency_only),
            (json!({ value: "12.5" }), Some(("12.50", "CHF")), both, &[]),
            (json!({ value: "12.50" }), Some(("12.50", "CHF")), &[], &[]),
            (json!({ currency: "eur" }), Some(("12.50", "EUR")), currency_only, &[]),
            (json!({ value: 7 }), Some(("7.00", "EUR")), value_only, &[]),
            (json!({ currency: null }), Some(("7.00", "EUR")), &[], &[]),
            (json!({ value: "2100000", currency: "JPY" }), Some(("2100000", "JPY")), both, &[]),
            (json!({}), Some(("2100000", "JPY")), &[], &[]),
            (json!({ value: null }), None, both, &[]),
            (json!({ value: null }), None, &[], &[]),
            (json!({ value: "1" }), Some(("1.00", "CHF")), both, &[]),
        ];
        app.upsert(json!({"imported_id": "crm-1"}));
        for (mut sent, left, changed, ignored) in table {
            sent["imported_id"] = json!("crm-1");
            let reply = app.upsert(sent.clone());
            assert_eq!((&*reply.changed, &*reply.ignored), (changed, ignored), "{sent}");
            let left = left.map(|(amount, currency)| (amount.to_owned(), currency));
            assert_eq!(value_of(&app.account("crm-1")), left, "{sent}");
        }
    });
}

#[test]
fn a_matching_code_places_the_account_on_its_channel_and_stamps_the_date() {
    TestApp::on_both(|app| {
        let spring = app.channel("Spring fair", &["Spring_26", "spring-two"]);
        let partner = app.channel("Partners", &["PARTNER"]);
        app.upsert(json!({"imported_id": "crm-1"}));
        app.clock().advance_seconds(5);
        let stamped = app.clock().now();
        let reply = app.upsert(json!({"imported_id": "crm-1", "promo_code": "sPRING_26"}));
        assert!(reply.promo_code_matched);
        assert_eq!(reply.changed, ["promo_code", "channel", "acquired_at"]);
        let account = app.account("crm-1");
        assert_eq!(account.promo_code.as_ref().unwrap().as_str(), "Spring_26", "as the company spells it");
        assert_eq!(account.channel.as_ref().unwrap().id, spring.id);
        assert_eq!(account.acquired_at, Some(stamped));

        app.clock().advance_seconds(5);
        let same_channel = app.upsert(json!({"imported_id": "crm-1", "promo_code": "SPRING-TWO"}));
        assert!(same_channel.promo_code_matched && same_channel.changed.is_empty());
        assert_eq!(app.account("crm-1"), account, "a code of the channel it has changes nothing");

        let other = app.upsert(json!({"imported_id": "crm-1", "promo_code": "partner"}));
        assert!(other.promo_code_matched);
        let account = app.account("crm-1");
        assert_eq!(account.channel.unwrap().id, partner.id);
        assert_eq!(account.acquired_at, Some(app.clock().now()));
        assert!(app.upsert(json!({"imported_id": "crm-2", "promo_code": "PARTNER"})).promo_code_matched);
        assert_eq!(app.account("crm-2").channel.unwrap().name, "Partners");
    });
}

#[test]
fn a_code_that_matches_nothing_never_fails_the_request() {
    TestApp::on_both(|app| {
        let channel = app.channel("Fair", &["LIVE", "OLD", "GONE"]);
        app.upsert(json!({"imported_id": "crm-1", "promo_code": "LIVE"}));
        app.write(ArchiveCode { channel: channel.id, code: code("old"), archived: true }).unwrap();
        app.write(DeleteCode { channel: channel.id, code: code("gone") }).unwrap();
        let before = app.account("crm-1");
        let none: [Value; 11] = [
            json!("UNKNOWN"),
            json!("OLD"),
            json!("GONE"),
            json!(""),
            json!(null),
            json!(7),
            json!({"a": 1}),
            json!("has space"),
            json!("x".repeat(65)),
            json!("nul\0"),
            json!("ＬＩＶＥ"),
        ];
        for sent in none {
            let reply = app.upsert(json!({"imported_id": "crm-1", "promo_code": sent}));
            assert!(!reply.promo_code_matched && reply.changed.is_empty(), "{sent}");
            assert_eq!(app.account("crm-1"), before, "{sent}");
        }
        assert!(!app.upsert(json!({"imported_id": "crm-2"})).promo_code_matched);
    });
}

#[test]
fn what_an_archived_or_deleted_code_attributed_stays_and_a_restored_one_matches_again() {
    TestApp::on_both(|app| {
        let channel = app.channel("Fair", &["ONE", "TWO"]);
        for (id, sent) in [("crm-1", "ONE"), ("crm-2", "TWO")] {
            app.upsert(json!({"imported_id": id, "promo_code": sent}));
        }
        app.write(ArchiveCode { channel: channel.id, code: code("ONE"), archived: true }).unwrap();
        app.write(DeleteCode { channel: channel.id, code: code("TWO") }).unwrap();
        for (id, kept) in [("crm-1", "ONE"), ("crm-2", "TWO")] {
            let account = app.account(id);
            assert_eq!(account.promo_code.unwrap().as_str(), kept);
            assert_eq!(account.channel.unwrap().id, channel.id);
        }
        app.write(ArchiveCode { channel: channel.id, code: code("one"), archived: false }).unwrap();
        assert!(app.upsert(json!({"imported_id": "crm-3", "promo_code": "one"})).promo_code_matched);
    });
}

#[test]
fn a_given_status_that_differs_moves_the_account_from_any_to_any() {
    TestApp::on_both(|app| {
        for from in Status::ALL {
            for to in Status::ALL.into_iter().filter(|to| *to != from) {
                let id = format!("{from}-{to}");
                app.upsert(json!({"imported_id": id, "status": from.as_str()}));
                let reply = app.upsert(json!({"imported_id": id, "status": to.as_str()}));
                assert_eq!(reply.changed, ["status"], "{id}");
                let account = app.account(&id);
                assert_eq!(account.status, to);
                let expected = [(None, from, Source::Upsert), (Some(from), to, Source::Upsert)];
                assert_eq!(moves(app, account.id), expected, "{id}");
                assert_eq!(
                    kinds(app, account.id),
                    [Kind::AccountCreated, Kind::AccountStatusChanged],
                    "{id}"
                );
                let data = &payloads(app, account.id)[1];
                assert_eq!(data["previous_status"], from.as_str());
                assert_eq!(
                    (&data["status"], &data["account"]["status"]),
                    (&json!(to.as_str()), &json!(to.as_str()))
                );
                assert_eq!(data["source"], "upsert");
            }
        }
    });
}

#[test]
fn a_given_status_that_is_the_current_one_adds_no_history_and_no_event() {
    TestApp::on_both(|app| {
        for status in Status::ALL {
            let sent = json!({"imported_id": status.as_str(), "status": status.as_str()});
            let before = app.upsert(sent.clone()).account;
            for _ in 0..3 {
                app.clock().advance_days(1);
                assert!(app.upsert(sent.clone()).changed.is_empty());
            }
            assert_eq!(app.account(status.as_str()), before);
            assert_eq!(moves(app, before.id).len(), 1, "{status}");
            assert_eq!(kinds(app, before.id), [Kind::AccountCreated], "{status}");
        }
    });
}

#[test]
fn a_move_stands_in_the_history_with_the_token_as_its_actor() {
    TestApp::on_both(|app| {
        let token = app.token_of(Role::Member);
        let (record, _) = app.read(move |snapshot| {
            let mut tokens = rapport_store::credential::list(snapshot, CredentialKind::ApiToken)?;
            Ok((tokens.remove(0), tokens))
        });
        app.upsert(json!({"imported_id": "crm-1"}));
        app.clock().advance_seconds(9);
        app.write_as(&token, request(app, &json!({"imported_id": "crm-1", "status": "lost"}))).unwrap();
        let entry = app.history(app.account("crm-1").id).pop().unwrap();
        assert_eq!((entry.source, entry.at), (Source::Upsert, app.clock().now()));
        assert_eq!(entry.actor, Actor::Token { id: record.id, name: "member token".to_owned() });
    });
}

#[test]
fn limits_hold_after_the_merge_and_a_refused_upsert_changes_nothing() {
    TestApp::on_both(|app| {
        let many: Map<String, Value> = (0..200).map(|n| (format!("k{n}"), json!(n))).collect();
        app.upsert(json!({"imported_id": "full", "custom_fields": many}));
        let large = json!({"imported_id": "large", "custom_fields": {"text": "x".repeat(40_000)}});
        app.upsert(large);
        let tables = ["account", "account_word", "status_history", "event"];
        let before = (app.account("full"), app.account("large"), tables.map(|table| app.rows(table)));
        let refused = [
            (json!({"imported_id": "full", "status": "lost", "custom_fields": {"more": 1}}), "too_many_keys"),
            (
                json!({"imported_id": "large", "status": "lost", "custom_fields": {"b": "x".repeat(30_000)}}),
                "too_large",
            ),
            (json!({"imported_id": "new", "custom_fields": {"b": "x".repeat(70_000)}}), "too_large"),
        ];
        for (sent, expected) in refused {
            assert_eq!(refusal(app.try_upsert(sent)), format!("invalid /custom_fields {expected}"));
        }
        assert_eq!((app.account("full"), app.account("large"), tables.map(|table| app.rows(table))), before);
        assert_eq!(app.find("new"), None);
        let swapped = json!({"imported_id": "full", "custom_fields": {"k0": null, "more": 1}});
        assert_eq!(app.upsert(swapped).changed, ["custom_fields"]);
    });
}

#[test]
fn a_foreign_project_is_refused_alike_whether_it_exists_or_not() {
    TestApp::on_both(|app| {
        app.company("globex");
        let refused =
            |project: &str| match app.try_upsert(json!({"project": project, "imported_id": "crm-1"})) {
                Err(rapport_app::Error::Forbidden { code, detail }) => (code, detail),
                other => panic!("{project}: {other:?}"),
            };
        assert_eq!(refused("globex"), refused("nobody"));
        assert_eq!(refused("ACME").0, "foreign_project");
        assert_eq!((app.rows("account"), app.rows("event")), (0, 0));
    });
}

#[test]
fn an_upsert_needs_a_live_token_of_the_company() {
    TestApp::on_both(|app| {
        let body = json!({"imported_id": "crm-1"});
        assert_eq!(refusal(app.write_as(app.ingest_key(), request(app, &body))), "unauthenticated");
        let globex = app.company("globex");
        assert_eq!(
            refusal(globex.write_as(globex.token(), request(app, &body))),
            "forbidden foreign_project"
        );
        assert_eq!(app.rows("account"), 0);
    });
}

#[test]
fn two_hundred_concurrent_upserts_of_one_new_imported_id_create_one_account() {
    TestApp::on_both(|app| {
        let node = app.another_node();
        let upserts = (0..200).map(|n| {
            let body = json!({"imported_id": "crm-1", "name": format!("Name {n}"), "custom_fields": {format!("k{n}"): n}});
            let node = if n % 2 == 0 { app.app() } else { &node };
            node.write(app.token(), request(app, &body))
        });
        let answers = block_on(all(upserts));
        let created = answers.iter().filter(|answer| answer.as_ref().expect("an answer").created).count();
        assert_eq!((created, app.rows("account")), (1, 1));
        let account = app.account("crm-1");
        assert_eq!(moves(app, account.id), [(None, Status::Prospect, Source::Upsert)]);
        assert_eq!(kinds(app, account.id), [Kind::AccountCreated]);
        assert_eq!(account.custom_fields.to_map().len(), 200, "no merge was lost");
    });
}

#[test]
fn concurrent_moves_of_one_account_form_one_chain() {
    TestApp::on_both(|app| {
        let id = app.upsert(json!({"imported_id": "crm-1"})).account.id;
        let upserts = (0..100).map(|n| {
            let status = Status::ALL[n * 5 % 7].as_str();
            app.app().write(app.token(), request(app, &json!({"imported_id": "crm-1", "status": status})))
        });
        let answers = block_on(all(upserts));
        let moved =
            answers.into_iter().filter(|answer| !answer.as_ref().expect("an answer").changed.is_empty());
        let history = moves(app, id);
        assert_eq!(history.len(), 1 + moved.count(), "the history contains moves and nothing else");
        assert!(history.windows(2).all(|pair| pair[1].0 == Some(pair[0].1)), "{history:?}");
        assert_eq!(app.account("crm-1").status, history.last().unwrap().1);
        let told: Vec<Value> =
            payloads(app, id).into_iter().skip(1).map(|data| data["status"].clone()).collect();
        let kept: Vec<Value> = history.iter().skip(1).map(|entry| json!(entry.1.as_str())).collect();
        assert_eq!(told, kept, "an event for each move, in the order of the moves");
    });
}

#[test]
fn refused_upserts_do_not_hurt_those_that_run_with_them() {
    TestApp::on_both(|app| {
        let revoked = app.token_of(Role::Member);
        let record = app
            .read(|snapshot| rapport_store::credential::list(snapshot, CredentialKind::ApiToken))
            .remove(0);
        app.write(RevokeToken(record.id)).unwrap();
        let upserts = (0..120).map(|n| {
            let body = match n % 4 {
                0 => json!({"imported_id": format!("bad-{n}"), "custom_fields": {"a": "x".repeat(70_000)}}),
                1 => json!({"imported_id": format!("bad-{n}"), "project": "globex"}),
                _ => json!({"imported_id": format!("good-{n}"), "status": "contacted"}),
            };
            let token = if n % 4 == 2 { &revoked } else { app.token() };
            app.app().write(token, request(app, &body))
        });
        for (n, answer) in block_on(all(upserts)).into_iter().enumerate() {
            match n % 4 {
                0 => assert_eq!(refusal(answer), "invalid /custom_fields too_large"),
                1 => assert_eq!(refusal(answer), "forbidden foreign_project"),
                2 => assert_eq!(refusal(answer), "unauthenticated"),
                _ => assert!(answer.unwrap().created, "{n}"),
            }
        }
        assert_eq!((app.rows("account"), app.rows("event"), app.rows("status_history")), (30, 30, 30));
    });
}

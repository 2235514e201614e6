//! POST /api/pulse/ingest/: matching, effects by kind, duplicates and the answer's sums.

use std::thread;

use rapport_app::account::{ChangeStatus, DeleteAccount};
use rapport_app::ingest::{Ingest, Ingested};
use rapport_domain::account::{Account, StatusChange};
use rapport_domain::activity::{EVENT_ID_DAYS, parse_batch};
use rapport_domain::event::Kind;
use rapport_domain::history::Actor;
use rapport_domain::id::AccountId;
use rapport_domain::pipeline::{Source, Status};
use rapport_domain::time::Time;
use rapport_store::activity::{FeatureUse, KeptActivity};
use rapport_testkit::{TestApp, TestCompany, all, block_on};
use serde_json::{Value, json};

use crate::{kinds, moves, payloads, refusal};

fn time(text: &str) -> Time {
    Time::parse(text).unwrap()
}

/// Events per day as the Pulse card counts them, without empty days.
fn days(company: &TestCompany, account: AccountId) -> Vec<(String, i64)> {
    let now = company.app().now();
    let found = company.read(move |snapshot| {
        let zone = rapport_store::company::get(snapshot)?.expect("a company").settings.time_zone;
        rapport_store::activity::days(snapshot, account, now.day_in(&zone))
    });
    found.into_iter().map(|(day, count)| (day.to_string(), count)).collect()
}

fn features(company: &TestCompany, account: AccountId) -> Vec<(String, i64)> {
    let found = company.read(move |snapshot| rapport_store::activity::features(snapshot, account));
    found.into_iter().map(|FeatureUse { feature, count, .. }| (feature, count)).collect()
}

/// An account's stored events, latest first.
fn kept(company: &TestCompany, account: AccountId) -> Vec<KeptActivity> {
    company.read(move |snapshot| rapport_store::activity::list(snapshot, account, None, 1000)).items
}

fn seen(account: &Account) -> (Option<String>, Option<String>) {
    let text = |time: Option<Time>| time.map(|time| time.to_string());
    (text(account.first_seen_at), text(account.last_seen_at))
}

fn value_of(account: &Account) -> Option<(String, &'static str)> {
    account.value.map(|money| (money.amount_text(), money.currency.code()))
}

fn request(company: &TestCompany, events: Value) -> Ingest {
    let body = json!({ "events": events });
    let now = company.app().now();
    let batch = parse_batch(body.as_object().unwrap(), now).expect("a batch");
    Ingest { batch, received_at: now, bytes: 0 }
}

/// The counts of the answer: accepted, duplicates, unmatched, rejected. They always add up.
fn counts(answer: &Ingested) -> (usize, usize, usize, usize) {
    let Ingested { received, accepted, duplicates, unmatched, rejected, refused } = answer;
    let sum = accepted + duplicates.len() + unmatched.len() + rejected.len();
    assert!(*refused || *received == sum, "{answer:?}");
    (*accepted, duplicates.len(), unmatched.len(), rejected.len())
}

#[test]
fn app_opened_updates_last_seen_and_nothing_else_of_the_account() {
    TestApp::on_both(|app| {
        let before = app.upsert(json!({"imported_id": "crm-1"})).account;
        app.clock().advance_seconds(90);
        app.ingest(json!([{"imported_id": "crm-1", "kind": "app_opened"}]));
        let after = app.account("crm-1");
        let now = Some(app.clock().now());
        assert_eq!((after.first_seen_at, after.last_seen_at), (now, now));
        assert_eq!(Account { first_seen_at: None, last_seen_at: None, ..after }, before);
        assert_eq!((moves(app, before.id).len(), kinds(app, before.id).len()), (1, 1));
        assert_eq!(features(app, before.id), []);
    });
}

#[test]
fn last_seen_is_the_latest_and_first_seen_the_earliest_of_any_kind_however_late() {
    TestApp::on_both(|app| {
        app.upsert(json!({"imported_id": "crm-1"}));
        let event = |kind: &str, at: &str| json!({"imported_id": "crm-1", "kind": kind, "occurred_at": at, "feature": "f"});
        let table = [
            ("custom", "2026-01-04T10:00:00Z", "2026-01-04T10:00:00Z", "2026-01-04T10:00:00Z"),
            ("churned", "2026-01-02", "2026-01-02T00:00:00Z", "2026-01-04T10:00:00Z"),
            ("trial_started", "2026-01-03T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-04T10:00:00Z"),
            ("became_customer", "2026-01-05T09:04:59+00:00", "2026-01-02T00:00:00Z", "2026-01-05T09:04:59Z"),
            ("feature_used", "1999-12-31T23:59:59.5-0100", "2000-01-01T00:59:59.5Z", "2026-01-05T09:04:59Z"),
            ("app_opened", "0001-01-01", "0001-01-01T00:00:00Z", "2026-01-05T09:04:59Z"),
        ];
        for (kind, at, first, last) in table {
            assert_eq!(counts(&app.ingest(json!([event(kind, at)]))), (1, 0, 0, 0));
            assert_eq!(
                seen(&app.account("crm-1")),
                (Some(first.to_owned()), Some(last.to_owned())),
                "{kind} {at}"
            );
        }
    });
}

#[test]
fn an_event_more_than_five_minutes_ahead_is_rejected() {
    TestApp::on_both(|app| {
        app.upsert(json!({"imported_id": "crm-1"}));
        let event =
            |at: Time| json!({"imported_id": "crm-1", "kind": "churned", "occurred_at": at.to_string()});
        let now = app.clock().now();
        let answer = app.ingest(json!([event(now.plus_seconds(301)), event(now.plus_seconds(300))]));
        assert_eq!(counts(&answer), (1, 0, 0, 1));
        let rejection = &answer.rejected[0];
        assert_eq!((rejection.index, rejection.field, rejection.code), (0, "occurred_at", "in_the_future"));
        assert_eq!(app.account("crm-1").last_seen_at, Some(now.plus_seconds(300)));
    });
}

#[test]
fn days_are_counted_in_the_companys_zone() {
    TestApp::on_both(|app| {
        app.set(json!({"time_zone": "Pacific/Auckland"}));
        let id = app.upsert(json!({"imported_id": "crm-1"})).account.id;
        let at = |at: &str| json!({"imported_id": "crm-1", "kind": "app_opened", "occurred_at": at});
        // Auckland is thirteen hours ahead in January.
        app.ingest(json!([
            at("2026-01-04T10:59:59Z"),
            at("2026-01-04T11:00:00Z"),
            at("2026-01-05T08:00:00Z")
        ]));
        assert_eq!(days(app, id), [("2026-01-04".to_owned(), 1), ("2026-01-05".to_owned(), 2)]);
    });
}

#[test]
fn the_pulse_shows_ninety_days_and_counts_features_over_the_accounts_life() {
    TestApp::on_both(|app| {
        let id = app.upsert(json!({"imported_id": "crm-1"})).account.id;
        let at = |at: &str| json!({"imported_id": "crm-1", "kind": "feature_used", "feature": "f", "occurred_at": at});
        // With 5 January as the ninetieth day, 8 October is the first.
        app.ingest(json!([
            at("2025-10-07T23:59:59Z"),
            at("2025-10-08T00:00:00Z"),
            at("2026-01-05T01:00:00Z")
        ]));
        assert_eq!(days(app, id), [("2025-10-08".to_owned(), 1), ("2026-01-05".to_owned(), 1)]);
        assert_eq!(features(app, id), [("f".to_owned(), 3)]);
        app.clock().advance_days(1);
        assert_eq!(days(app, id), [("2026-01-05".to_owned(), 1)]);
    });
}

#[test]
fn feature_used_and_named_custom_events_count_per_feature() {
    TestApp::on_both(|app| {
        let id = app.upsert(json!({"imported_id": "crm-1"})).account.id;
        let event =
            |kind: &str, feature: Value| json!({"imported_id": "crm-1", "kind": kind, "feature": feature});
        app.ingest(json!([
            event("feature_used", json!("app.export")),
            event("custom", json!("app.export")),
            event("feature_used", json!("App.export")),
            event("custom", json!(null)),
            event("app_opened", json!("no")),
            event("churned", json!("no")),
            event("feature_used", json!("ünï")),
        ]));
        app.ingest(json!([event("feature_used", json!("app.export"))]));
        let expected =
            [("app.export", 3), ("App.export", 1), ("ünï", 1)].map(|(name, n)| (name.to_owned(), n));
        assert_eq!(features(app, id), expected);
        assert_eq!(days(app, id), [("2026-01-05".to_owned(), 8)], "every event is activity");
    });
}

#[test]
fn the_twenty_most_used_features_are_shown_with_their_last_use() {
    TestApp::on_both(|app| {
        let id = app.upsert(json!({"imported_id": "crm-1"})).account.id;
        for n in 1..=25 {
            let events: Vec<Value> = (0..n)
                .map(|day| {
                    json!({
                        "imported_id": "crm-1", "kind": "feature_used", "feature": format!("f{n:02}"),
                        "occurred_at": format!("2025-12-{:02}", 31 - day),
                    })
                })
                .collect();
            app.ingest(json!(events));
        }
        let found = app.read(move |snapshot| rapport_store::activity::features(snapshot, id));
        let expected: Vec<(String, i64)> = (6..=25).rev().map(|n| (format!("f{n:02}"), n)).collect();
        assert_eq!(
            found.iter().map(|found| (found.feature.clone(), found.count)).collect::<Vec<_>>(),
            expected
        );
        assert!(
            found.iter().all(|found| found.last_used_at == time("2025-12-31")),
            "an event that arrives late isn't the last use"
        );
    });
}

#[test]
fn each_kind_moves_an_account_as_the_table_says_and_no_move_leaves_no_trace() {
    use Status::{Contacted, Customer, DoNotContact, InNegotiation, InTrial, Lost, Prospect};
    TestApp::on_both(|app| {
        let stays = |from: Status| from;
        let trial = |from: Status| match from {
            Prospect | Contacted | InNegotiation | InTrial | Lost => InTrial,
            Customer | DoNotContact => from,
        };
        let table: [(&str, &dyn Fn(Status) -> Status); 6] = [
            ("app_opened", &stays),
            ("feature_used", &stays),
            ("custom", &stays),
            ("trial_started", &trial),
            ("became_customer", &|_| Customer),
            ("churned", &|_| Lost),
        ];
        for (kind, leads) in table {
            for from in Status::ALL {
                let imported_id = format!("{kind}-{from}");
                let id = app.upsert(json!({"imported_id": imported_id, "status": from.as_str()})).account.id;
                let event = json!({"imported_id": imported_id, "kind": kind, "feature": "f"});
                app.ingest(json!([event]));
                let to = leads(from);
                assert_eq!(app.account(&imported_id).status, to, "{kind} from {from}");
                let history: Vec<_> = moves(app, id).into_iter().skip(1).collect();
                let told: Vec<Value> = payloads(app, id).into_iter().skip(1).collect();
                if from == to {
                    assert_eq!((history.len(), told.len()), (0, 0), "{kind} from {from}");
                } else {
                    assert_eq!(history, [(Some(from), to, Source::Automation)], "{kind} from {from}");
                    assert_eq!(kinds(app, id), [Kind::AccountCreated, Kind::AccountStatusChanged]);
                    assert_eq!(told[0]["previous_status"], from.as_str(), "{kind} from {from}");
                    assert_eq!(told[0]["status"], to.as_str());
                    assert_eq!(told[0]["source"], "automation");
                }
            }
        }
    });
}

#[test]
fn a_move_by_activity_has_the_ingest_key_as_its_actor() {
    TestApp::on_both(|app| {
        let id = app.upsert(json!({"imported_id": "crm-1", "status": "lost"})).account.id;
        app.ingest(json!([{"imported_id": "crm-1", "kind": "trial_started"}]));
        let entry = app.history(id).pop().unwrap();
        assert!(matches!(entry.actor, Actor::IngestKey { .. }), "{:?}", entry.actor);
        assert_eq!(
            (entry.from, entry.to, entry.at),
            (Some(Status::Lost), Status::InTrial, app.clock().now())
        );
    });
}

#[test]
fn events_apply_in_array_order_and_each_payload_shows_its_moment() {
    TestApp::on_both(|app| {
        let id = app.upsert(json!({"imported_id": "crm-1"})).account.id;
        let answer = app.ingest(json!([
            {"imported_id": "crm-1", "kind": "trial_started", "occurred_at": "2026-01-05T08:00:00Z"},
            {"imported_id": "crm-1", "kind": "app_opened", "occurred_at": "2026-01-05T08:30:00Z"},
            {"imported_id": "crm-1", "kind": "became_customer", "occurred_at": "2026-01-05T07:00:00Z",
             "metadata": {"captured_value": "99.5", "captured_value_currency": "eur"}},
            {"imported_id": "crm-1", "kind": "churned", "occurred_at": "2026-01-01"},
        ]));
        assert_eq!(counts(&answer), (4, 0, 0, 0));
        let expected = [
            (None, Status::Prospect, Source::Upsert),
            (Some(Status::Prospect), Status::InTrial, Source::Automation),
            (Some(Status::InTrial), Status::Customer, Source::Automation),
            (Some(Status::Customer), Status::Lost, Source::Automation),
        ];
        assert_eq!(moves(app, id), expected);
        let told = payloads(app, id);
        let moment = |data: &Value| {
            let account = &data["account"];
            let members =
                ["status", "captured_value", "captured_value_currency", "first_seen_at", "last_seen_at"];
            members.map(|member| account[member].clone())
        };
        let trial = json!(["in_trial", null, null, "2026-01-05T08:00:00Z", "2026-01-05T08:00:00Z"]);
        let customer = json!(["customer", "99.50", "EUR", "2026-01-05T07:00:00Z", "2026-01-05T08:30:00Z"]);
        let lost = json!(["lost", "99.50", "EUR", "2026-01-01T00:00:00Z", "2026-01-05T08:30:00Z"]);
        for (data, expected) in told[1..].iter().zip([trial, customer, lost]) {
            assert_eq!(json!(moment(data)), expected);
        }
    });
}

#[test]
fn became_customer_captures_its_value_also_on_an_existing_customer() {
    TestApp::on_both(|app| {
        app.set(json!({"default_currency": "SEK"}));
        let id = app.upsert(json!({"imported_id": "crm-1", "status": "in_trial"})).account.id;
        // The metadata of consecutive events, and the value each leaves.
        let table = [
            (json!({"plan": "pro"}), None),
            (json!({"currency": "EUR"}), None),
            (json!({"captured_value": "100"}), Some(("100.00", "SEK"))),
            (json!({"value": 120.5, "currency": "usd"}), Some(("120.50", "USD"))),
            (json!({"captured_value": "130"}), Some(("130.00", "USD"))),
            (json!({"captured_value_currency": "JPY"}), Some(("130", "JPY"))),
            (json!({}), Some(("130", "JPY"))),
            (json!({"captured_value": null, "value": "140"}), Some(("140", "JPY"))),
        ];
        for (metadata, left) in table {
            app.clock().advance_seconds(1);
            let before = app.account("crm-1");
            app.ingest(json!([{"imported_id": "crm-1", "kind": "became_customer", "metadata": metadata}]));
            let account = app.account("crm-1");
            let left = left.map(|(amount, currency)| (amount.to_owned(), currency));
            assert_eq!(value_of(&account), left, "{metadata}");
            let touched = value_of(&before) != left || before.status != account.status;
            assert_eq!(account.updated_at == app.clock().now(), touched, "{metadata}");
        }
        assert_eq!(moves(app, id).len(), 2, "it became a customer once");
        assert_eq!(kinds(app, id).len(), 2);
    });
}

#[test]
fn an_invalid_value_rejects_the_event_and_other_kinds_capture_nothing() {
    TestApp::on_both(|app| {
        app.upsert(json!({"imported_id": "crm-1"}));
        let event =
            |kind: &str, metadata: Value| json!({"imported_id": "crm-1", "kind": kind, "metadata": metadata});
        let answer = app.ingest(json!([
            event("became_customer", json!({"value": "-1"})),
            event("became_customer", json!({"currency": "XQQ"})),
            event("became_customer", json!({"captured_value": "1e3"})),
            event("became_customer", json!([])),
            event("trial_started", json!({"captured_value": "50"})),
        ]));
        assert_eq!(counts(&answer), (1, 0, 0, 4));
        let account = app.account("crm-1");
        assert_eq!((account.status, value_of(&account)), (Status::InTrial, None));
    });
}

#[test]
fn leaving_do_not_contact_by_activity_holds_campaigns_until_an_operator_moves_it() {
    TestApp::on_both(|app| {
        let id = app.upsert(json!({"imported_id": "crm-1", "status": "do_not_contact"})).account.id;
        app.ingest(json!([{"imported_id": "crm-1", "kind": "trial_started"}]));
        let account = app.account("crm-1");
        assert_eq!(
            (account.status, account.campaign_hold),
            (Status::DoNotContact, false),
            "trial_started never touches it"
        );
        app.ingest(json!([{"imported_id": "crm-1", "kind": "became_customer"}]));
        assert!(app.account("crm-1").campaign_hold);
        app.upsert(json!({"imported_id": "crm-1", "status": "lost"}));
        app.ingest(json!([{"imported_id": "crm-1", "kind": "trial_started"}]));
        assert!(app.account("crm-1").campaign_hold, "neither an upsert nor activity ends the hold");
        let change = StatusChange { status: Status::Contacted, note: None };
        app.write(ChangeStatus { id, change }).unwrap();
        assert!(!app.account("crm-1").campaign_hold);
    });
}

#[test]
fn an_account_is_addressed_by_imported_id_by_account_id_or_by_both_agreeing() {
    TestApp::on_both(|app| {
        let one = app.upsert(json!({"imported_id": "crm-1"})).account.id.to_string();
        let two = app.upsert(json!({"imported_id": "crm-2"})).account.id.to_string();
        let unknown = AccountId::from_bytes([7; 16]).to_string();
        // The two members, and whether the event is accepted, unmatched or rejected.
        let table = [
            (json!("crm-1"), json!(null), "accepted"),
            (json!(null), json!(one), "accepted"),
            (json!("crm-1"), json!(one), "accepted"),
            (json!("crm-1"), json!(two), "rejected"),
            (json!("crm-1"), json!(unknown), "unmatched"),
            (json!("nobody"), json!(one), "unmatched"),
            (json!("nobody"), json!(null), "unmatched"),
            (json!(null), json!(unknown), "unmatched"),
            (json!(null), json!("crm-1"), "unmatched"),
            (json!(null), json!("acc_\0"), "rejected"),
            (json!(""), json!(null), "unmatched"),
            (json!("x".repeat(5000)), json!(null), "unmatched"),
            (json!("CRM-1"), json!(null), "unmatched"),
            (json!(null), json!(null), "rejected"),
            (json!(5), json!(one), "rejected"),
        ];
        let event = |(imported_id, account_id, _): &(Value, Value, &str)| json!({"imported_id": imported_id, "account_id": account_id, "kind": "app_opened"});
        let places = |became: &str| -> Vec<usize> {
            (0..table.len()).filter(|place| table[*place].2 == became).collect()
        };
        let answer = app.ingest(json!(table.iter().map(event).collect::<Vec<_>>()));
        assert_eq!(answer.unmatched, places("unmatched"));
        assert_eq!(answer.rejected.iter().map(|one| one.index).collect::<Vec<_>>(), places("rejected"));
        assert_eq!(counts(&answer).0, places("accepted").len());
        let mismatch = &answer.rejected[0];
        assert_eq!((mismatch.code, mismatch.field), ("account_mismatch", "account_id"));
        assert_eq!(app.rows("activity"), 3);
    });
}

#[test]
fn a_mixed_batch_sums_up_and_its_good_events_count() {
    TestApp::on_both(|app| {
        let id = app.upsert(json!({"imported_id": "crm-1"})).account.id;
        let good = json!({"imported_id": "crm-1", "kind": "feature_used", "feature": "f", "event_id": "e1"});
        let answer = app.ingest(json!([
            good, 5, {"imported_id": "nobody", "kind": "churned"}, good, {"imported_id": "crm-1"},
            {"imported_id": "crm-1", "kind": "feature_used"}, {"imported_id": "crm-1", "kind": "trial_started"},
            null, {"kind": "app_opened"},
        ]));
        assert_eq!((answer.received, counts(&answer)), (9, (2, 1, 1, 5)));
        assert_eq!(answer.unmatched, [2]);
        assert_eq!(answer.rejected.iter().map(|one| one.index).collect::<Vec<_>>(), [1, 4, 5, 7, 8]);
        assert_eq!(features(app, id), [("f".to_owned(), 1)]);
        assert_eq!(app.account("crm-1").status, Status::InTrial);
    });
}

#[test]
fn a_batch_that_matches_nothing_leaves_nothing() {
    TestApp::on_both(|app| {
        app.upsert(json!({"imported_id": "crm-1"}));
        let tables = ["activity", "activity_count", "account_seen", "event_mark", "status_history", "event"];
        let before = tables.map(|table| app.rows(table));
        let answer = app.ingest(json!([
            {"imported_id": "nobody", "kind": "churned", "event_id": "e1"},
            {"imported_id": "crm-1", "kind": "nonsense", "event_id": "e2"},
        ]));
        assert_eq!(counts(&answer), (0, 0, 1, 1));
        assert_eq!(tables.map(|table| app.rows(table)), before);
    });
}

#[test]
fn an_event_id_counts_once_in_a_batch_and_across_batches() {
    TestApp::on_both(|app| {
        let id = app.upsert(json!({"imported_id": "crm-1"})).account.id;
        let event = |event_id: &str| json!({"imported_id": "crm-1", "kind": "feature_used", "feature": "f", "event_id": event_id});
        assert_eq!(counts(&app.ingest(json!([event("a"), event("a"), event("b")]))), (2, 1, 0, 0));
        assert_eq!(
            counts(&app.ingest(json!([event("b"), event("c"), event("A"), event("a")]))),
            (2, 2, 0, 0)
        );
        assert_eq!(features(app, id), [("f".to_owned(), 4)]);
        assert_eq!(app.rows("activity"), 4);
        // The id identifies the event, whatever the second copy contains.
        let again = json!([{"imported_id": "crm-1", "kind": "churned", "event_id": "a"}]);
        assert_eq!(counts(&app.ingest(again)), (0, 1, 0, 0));
        assert_eq!(app.account("crm-1").status, Status::Prospect);
    });
}

#[test]
fn a_duplicate_has_no_effect_on_last_seen_moves_or_value() {
    TestApp::on_both(|app| {
        let id = app.upsert(json!({"imported_id": "crm-1"})).account.id;
        let event = json!({"imported_id": "crm-1", "kind": "became_customer", "event_id": "e", "metadata": {"value": "5"}});
        app.ingest(json!([event]));
        app.upsert(json!({"imported_id": "crm-1", "status": "lost", "captured_value": null}));
        let before = app.account("crm-1");
        app.clock().advance_days(3);
        assert_eq!(counts(&app.ingest(json!([event]))), (0, 1, 0, 0));
        assert_eq!(app.account("crm-1"), before);
        assert_eq!((moves(app, id).len(), kinds(app, id).len()), (3, 3));
    });
}

#[test]
fn an_event_id_is_free_again_after_ninety_days() {
    TestApp::on_both(|app| {
        app.upsert(json!({"imported_id": "crm-1"}));
        let event = json!([{"imported_id": "crm-1", "kind": "app_opened", "event_id": "e"}]);
        assert_eq!(counts(&app.ingest(event.clone())), (1, 0, 0, 0));
        app.clock().advance_days(EVENT_ID_DAYS - 1);
        app.clock().advance_seconds(86_399);
        assert_eq!(counts(&app.ingest(event.clone())), (0, 1, 0, 0), "a second before");
        app.clock().advance_seconds(1);
        assert_eq!(counts(&app.ingest(event.clone())), (1, 0, 0, 0), "a duplicate does not prolong it");
        assert_eq!(counts(&app.ingest(event)), (0, 1, 0, 0), "the id is taken again");
    });
}

#[test]
fn unmatched_and_rejected_events_do_not_take_their_id() {
    TestApp::on_both(|app| {
        let two = app.upsert(json!({"imported_id": "crm-2"})).account.id.to_string();
        app.upsert(json!({"imported_id": "crm-3"}));
        let early = json!({"imported_id": "crm-1", "kind": "app_opened", "event_id": "early"});
        let mismatch =
            json!({"imported_id": "crm-3", "account_id": two, "kind": "app_opened", "event_id": "mismatch"});
        let broken = json!({"imported_id": "crm-3", "kind": "feature_used", "event_id": "broken"});
        assert_eq!(counts(&app.ingest(json!([early, mismatch, broken]))), (0, 0, 1, 2));
        app.upsert(json!({"imported_id": "crm-1"}));
        let mended =
            json!({"imported_id": "crm-3", "kind": "feature_used", "feature": "f", "event_id": "broken"});
        let alone = json!({"imported_id": "crm-3", "kind": "app_opened", "event_id": "mismatch"});
        assert_eq!(counts(&app.ingest(json!([early, alone, mended]))), (3, 0, 0, 0));
    });
}

#[test]
fn an_event_id_belongs_to_its_company() {
    TestApp::on_both(|app| {
        let globex = app.company("globex");
        for company in [&**app, &globex] {
            company.upsert(json!({"imported_id": "crm-1"}));
            let answer =
                company.ingest(json!([{"imported_id": "crm-1", "kind": "app_opened", "event_id": "e"}]));
            assert_eq!(counts(&answer), (1, 0, 0, 0), "{}", company.slug());
        }
    });
}

#[test]
fn an_event_id_is_accepted_once_among_concurrent_requests() {
    TestApp::on_both(|app| {
        let id = app.upsert(json!({"imported_id": "crm-1"})).account.id;
        let node = app.another_node();
        let batches = (0..120).map(|n| {
            let event = |id: usize| json!({"imported_id": "crm-1", "kind": "feature_used", "feature": "f", "event_id": format!("e{id}")});
            let node = if n % 2 == 0 { app.app() } else { &node };
            node.write(app.ingest_key(), request(app, json!([event(n % 7), event((n + 3) % 7)])))
        });
        let answers = block_on(all(batches));
        let accepted: usize =
            answers.iter().map(|answer| counts(answer.as_ref().expect("an answer")).0).sum();
        assert_eq!((accepted, app.rows("activity"), app.rows("event_mark")), (7, 7, 7));
        assert_eq!(features(app, id), [("f".to_owned(), 7)]);
    });
}

#[test]
fn concurrent_batches_lose_no_count_and_form_one_chain_of_moves() {
    TestApp::on_both(|app| {
        let ids: Vec<AccountId> =
            (0..5).map(|n| app.upsert(json!({"imported_id": format!("crm-{n}")})).account.id).collect();
        let kinds_sent = ["trial_started", "became_customer", "churned"];
        let batches = (0..100).map(|n: usize| {
            let events: Vec<Value> = (0..5)
                .flat_map(|account| {
                    let imported_id = format!("crm-{}", (account + n) % 5);
                    [
                        json!({"imported_id": imported_id, "kind": "feature_used", "feature": format!("f{}", n % 3)}),
                        json!({"imported_id": imported_id, "kind": kinds_sent[(n + account) % 3]}),
                    ]
                })
                .collect();
            app.app().write(app.ingest_key(), request(app, json!(events)))
        });
        for answer in block_on(all(batches)) {
            assert_eq!(counts(&answer.expect("an answer")), (10, 0, 0, 0));
        }
        for (n, id) in ids.into_iter().enumerate() {
            let used: i64 = features(app, id).into_iter().map(|(_, count)| count).sum();
            assert_eq!((used, days(app, id)[0].1), (100, 200));
            let history = moves(app, id);
            assert!(history.windows(2).all(|pair| pair[1].0 == Some(pair[0].1)), "{history:?}");
            assert_eq!(history.last().unwrap().1, app.account(&format!("crm-{n}")).status);
            assert_eq!(kinds(app, id).len(), history.len());
        }
    });
}

#[test]
fn events_are_kept_with_their_metadata_and_times() {
    TestApp::on_both(|app| {
        let id = app.upsert(json!({"imported_id": "crm-1"})).account.id;
        app.ingest(json!([
            {"imported_id": "crm-1", "kind": "custom", "feature": "billing.invoice", "metadata": {"total": "1.10", "a": [1]}},
            {"imported_id": "crm-1", "kind": "app_opened", "occurred_at": "2026-01-04T08:00:00+02:00"},
        ]));
        let events = kept(app, id);
        let now = app.clock().now();
        let summary: Vec<_> =
            events.iter().map(|one| (one.kind.as_str(), one.occurred_at, one.received_at)).collect();
        assert_eq!(summary, [("custom", now, now), ("app_opened", time("2026-01-04T06:00:00Z"), now)]);
        assert_eq!(events[0].feature.as_deref(), Some("billing.invoice"));
        assert_eq!(events[0].metadata.as_deref(), Some(r#"{"a":[1],"total":"1.10"}"#));
        assert_eq!((&events[1].feature, &events[1].metadata), (&None, &None));
    });
}

#[test]
fn only_the_companys_ingest_key_may_ingest() {
    TestApp::on_both(|app| {
        app.upsert(json!({"imported_id": "crm-1"}));
        let event = json!([{"imported_id": "crm-1", "kind": "churned"}]);
        assert_eq!(refusal(app.write_as(app.token(), request(app, event))), "unauthenticated");
        assert_eq!(app.account("crm-1").status, Status::Prospect);
    });
}

#[test]
fn a_deleted_account_matches_no_more_and_its_successor_starts_unseen() {
    TestApp::on_both(|app| {
        let event = json!([{"imported_id": "crm-1", "kind": "feature_used", "feature": "f"}]);
        let old = app.upsert(json!({"imported_id": "crm-1"})).account.id;
        app.ingest(event.clone());
        app.write(DeleteAccount(old)).unwrap();
        assert_eq!(counts(&app.ingest(event.clone())), (0, 0, 1, 0));
        let by_id = json!([{"account_id": old.to_string(), "kind": "app_opened"}]);
        assert_eq!(counts(&app.ingest(by_id)), (0, 0, 1, 0));
        let new = app.upsert(json!({"imported_id": "crm-1"})).account;
        assert_eq!((new.first_seen_at, features(app, new.id)), (None, vec![]));
        app.ingest(event);
        assert_eq!(features(app, new.id), [("f".to_owned(), 1)]);
    });
}

#[test]
fn deleting_an_account_under_ingest_leaves_nothing_of_it_behind() {
    TestApp::on_both(|app| {
        let node = app.another_node();
        for round in 0..5 {
            let id = app.upsert(json!({"imported_id": "crm-1"})).account.id;
            let batches = (0..40).map(|n| {
                let node = if n % 2 == 0 { app.app() } else { &node };
                let event =
                    json!({"imported_id": "crm-1", "kind": "feature_used", "feature": format!("f{n}")});
                node.write(
                    app.ingest_key(),
                    request(app, json!([event, {"imported_id": "crm-1", "kind": "churned"}])),
                )
            });
            thread::scope(|scope| {
                let deleting = scope.spawn(|| app.write(DeleteAccount(id)));
                for answer in block_on(all(batches)) {
                    let (accepted, _, unmatched, _) = counts(&answer.expect("an answer"));
                    assert!(
                        matches!((accepted, unmatched), (2, 0) | (0, 2)),
                        "a batch applies completely or not at all"
                    );
                }
                deleting.join().unwrap().unwrap();
            });
            let tables =
                ["account", "account_seen", "activity", "activity_count", "status_history", "account_word"];
            assert_eq!(tables.map(|table| app.rows(table)), [0; 6], "round {round}");
        }
    });
}

/// A strict batch of these events.
fn strict(company: &TestCompany, events: Value) -> Ingest {
    let mut ingest = request(company, events);
    ingest.batch.strict = true;
    ingest
}

#[test]
fn duplicates_are_named_by_their_index() {
    TestApp::on_both(|app| {
        app.upsert(json!({"imported_id": "crm-1"}));
        let event = |id: &str| json!({"imported_id": "crm-1", "kind": "app_opened", "event_id": id});
        assert_eq!(app.ingest(json!([event("a")])).duplicates, [0_usize; 0]);
        let nobody = json!({"imported_id": "nobody", "kind": "app_opened"});
        let answer = app.ingest(json!([event("b"), nobody, event("a"), 7, event("b"), event("c")]));
        assert_eq!(counts(&answer), (2, 2, 1, 1));
        assert_eq!((answer.duplicates, answer.unmatched), (vec![2, 4], vec![1]));
    });
}

#[test]
fn a_strict_batch_is_stored_whole_or_not_at_all() {
    TestApp::on_both(|app| {
        let id = app.upsert(json!({"imported_id": "crm-1"})).account.id;
        let good = json!({"imported_id": "crm-1", "kind": "became_customer", "event_id": "a"});
        let tables = [
            "activity",
            "activity_count",
            "account_seen",
            "event_mark",
            "status_history",
            "event",
            "ingest_reject",
        ];
        let before = tables.map(|table| app.rows(table));
        let bad = [
            json!({"imported_id": "nobody", "kind": "churned"}),
            json!({"imported_id": "crm-1", "kind": "nope"}),
        ];
        for bad in bad {
            let answer = app.write_as(app.ingest_key(), strict(app, json!([good, bad]))).unwrap();
            assert!(answer.refused && answer.accepted == 0, "{answer:?}");
            assert_eq!(answer.unmatched.len() + answer.rejected.len(), 1);
            assert_eq!(tables.map(|table| app.rows(table)), before, "{bad}");
        }
        let answer = app.write_as(app.ingest_key(), strict(app, json!([good, good]))).unwrap();
        assert_eq!((answer.refused, counts(&answer)), (false, (1, 1, 0, 0)), "a duplicate is no fault");
        assert_eq!(app.account("crm-1").status, Status::Customer);
        assert_eq!(moves(app, id).len(), 2);
    });
}

#[test]
fn strict_batches_do_not_affect_the_batches_that_run_with_them() {
    TestApp::on_both(|app| {
        let id = app.upsert(json!({"imported_id": "crm-1"})).account.id;
        let batches = (0..80_usize).map(|n| {
            let used = json!({"imported_id": "crm-1", "kind": "feature_used", "feature": "f", "event_id": format!("{n}")});
            let nobody = json!({"imported_id": "nobody", "kind": "app_opened"});
            let ingest = match n % 4 {
                0 => strict(app, json!([used, nobody])),
                1 => strict(app, json!([used])),
                _ => request(app, json!([nobody, used])),
            };
            app.app().write(app.ingest_key(), ingest)
        });
        for (n, answer) in block_on(all(batches)).into_iter().enumerate() {
            let answer = answer.unwrap();
            assert_eq!((answer.refused, answer.accepted), (n % 4 == 0, usize::from(n % 4 != 0)), "{n}");
        }
        assert_eq!(features(app, id), [("f".to_owned(), 60)]);
    });
}

#[test]
fn a_late_event_moves_the_account_unless_the_company_says_otherwise() {
    TestApp::on_both(|app| {
        // Whether late events move, what moved the account before, the late event, and where the account is then.
        let late = |kind: &str, at: &str| json!({"imported_id": "crm-1", "kind": kind, "occurred_at": at});
        let table = [
            (true, "2026-01-01", Status::Lost),
            (false, "2026-01-01", Status::Customer),
            (false, "2026-01-05T08:59:59.999999Z", Status::Customer),
            (false, "2026-01-05T09:00:00Z", Status::Lost),
        ];
        for (place, (moves_late, at, expected)) in table.into_iter().enumerate() {
            app.set(json!({ "late_events_move": moves_late }));
            let id = format!("crm-{place}");
            app.upsert(json!({ "imported_id": id }));
            app.upsert(json!({"imported_id": id, "status": "customer"}));
            let mut event = late("churned", at);
            event["imported_id"] = json!(id);
            assert_eq!(counts(&app.ingest(json!([event]))), (1, 0, 0, 0), "{at}");
            assert_eq!(app.account(&id).status, expected, "{moves_late} {at}");
        }
    });
}

#[test]
fn a_move_by_activity_happened_when_its_event_did() {
    TestApp::on_both(|app| {
        app.set(json!({"late_events_move": false}));
        let id = app.upsert(json!({"imported_id": "crm-1"})).account.id;
        let event = |kind: &str, at: &str| json!({"imported_id": "crm-1", "kind": kind, "occurred_at": at});
        app.ingest(json!([event("trial_started", "2026-01-02"), event("churned", "2026-01-01")]));
        assert_eq!(app.account("crm-1").status, Status::InTrial, "events of one batch are compared too");
        app.ingest(json!([event("became_customer", "2026-01-03")]));
        app.ingest(json!([event("churned", "2026-01-02T12:00:00Z")]));
        assert_eq!(app.account("crm-1").status, Status::Customer);
        let happened: Vec<Option<String>> =
            app.history(id).into_iter().map(|entry| entry.happened_at.map(|at| at.to_string())).collect();
        let expected = [None, Some("2026-01-02T00:00:00Z"), Some("2026-01-03T00:00:00Z")];
        assert_eq!(happened, expected.map(|at| at.map(str::to_owned)));
        assert!(
            app.history(id).iter().all(|entry| entry.at == app.clock().now()),
            "recorded when it arrived"
        );
    });
}

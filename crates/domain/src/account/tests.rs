use super::*;
use crate::id::ChannelId;
use crate::policy::{Outcome, Outcomes};
use serde_json::json;

const NOW: Time = Time::from_micros(1_800_000_000_000_000);
const LATER: Time = Time::from_micros(1_800_000_100_000_000);

fn parse(body: Value) -> Upsert {
    let Value::Object(mut body) = body else { panic!("an object") };
    body.entry("project").or_insert(json!("acme"));
    body.entry("imported_id").or_insert(json!("crm-1"));
    Upsert::parse(&body).unwrap()
}

fn created(body: Value) -> Account {
    let id = AccountId::from_bytes([1; 16]);
    Account::from_upsert(id, &parse(body), None, &Settings::default(), NOW).unwrap().0
}

fn attribution(channel: u8, code: &str) -> Attribution {
    let channel = ChannelRef { id: ChannelId::from_bytes([channel; 16]), name: format!("Channel {channel}") };
    Attribution { code: PromoCode::parse(code).unwrap(), channel }
}

fn codes(body: Value) -> Vec<(String, &'static str)> {
    let invalid = Upsert::parse(body.as_object().unwrap()).unwrap_err();
    invalid.0.into_iter().map(|error| (error.pointer, error.code)).collect()
}

#[test]
fn creation_uses_the_name_or_the_imported_id() {
    assert_eq!(created(json!({})).name, "crm-1");
    assert_eq!(created(json!({"name": "Nordlys"})).name, "Nordlys");
    assert_eq!(created(json!({})).status, Status::Prospect);
}

#[test]
fn only_the_fields_sent_are_patched() {
    let mut account =
        created(json!({"status": "contacted", "custom_fields": {"a": 1}, "captured_value": "5"}));
    let before = account.clone();
    let change = account.upsert(&parse(json!({})), None, &Settings::default(), LATER).unwrap();
    assert_eq!((&change, &account), (&Change::default(), &before));
    let change =
        account.upsert(&parse(json!({"custom_fields": {"b": 2}})), None, &Settings::default(), LATER);
    assert_eq!(change.unwrap().changed, ["custom_fields"]);
    assert_eq!((account.status, account.value), (before.status, before.value));
}

#[test]
fn an_unchanged_status_is_not_a_move() {
    let mut account = created(json!({"status": "contacted"}));
    let change =
        account.upsert(&parse(json!({"status": "contacted"})), None, &Settings::default(), LATER).unwrap();
    assert_eq!(change, Change::default());
    assert_eq!(account.updated_at, NOW);
}

#[test]
fn a_name_is_ignored_on_an_existing_account() {
    let mut account = created(json!({"name": "First"}));
    let change =
        account.upsert(&parse(json!({"name": "Second"})), None, &Settings::default(), LATER).unwrap();
    assert_eq!((change.ignored, account.name.as_str()), (vec!["name"], "First"));
}

#[test]
fn a_name_that_is_ignored_is_not_judged() {
    let mut account = created(json!({"name": "First"}));
    let names =
        [json!(5), json!(""), json!(" "), json!("a\0"), json!("x".repeat(256)), json!([1]), json!({"a": 1})];
    for name in names {
        let request = parse(json!({ "name": name }));
        let change = account.upsert(&request, None, &Settings::default(), LATER).unwrap();
        assert_eq!((change.ignored, account.name.as_str()), (vec!["name"], "First"), "{name}");
        let id = AccountId::from_bytes([2; 16]);
        let refused = Account::from_upsert(id, &request, None, &Settings::default(), NOW).unwrap_err();
        assert_eq!(refused.0.len(), 1, "{name}");
        assert_eq!(refused.0[0].pointer, "/name", "{name}: a name that is used is judged");
        let mut updating = json!({"project": "acme", "imported_id": "crm-1", "name_policy": "update"});
        updating["name"] = name.clone();
        assert_eq!(codes(updating), [("/name".to_owned(), refused.0[0].code)], "{name}");
    }
}

#[test]
fn a_new_account_with_faults_names_all_of_them() {
    let large = json!({"name": "\u{3164}", "custom_fields": {"a": "x".repeat(70_000)}});
    let id = AccountId::from_bytes([2; 16]);
    let refused = Account::from_upsert(id, &parse(large), None, &Settings::default(), NOW).unwrap_err();
    let found: Vec<(&str, &str)> =
        refused.0.iter().map(|error| (error.pointer.as_str(), error.code)).collect();
    assert_eq!(found, [("/name", "invisible"), ("/custom_fields", "too_large")]);
}

#[test]
fn every_name_is_judged_by_one_rule() {
    let table = [
        ("Nordlys", None),
        (" Nordlys ", None),
        ("", Some("empty")),
        (" \t\u{a0}", Some("invisible")),
        ("\u{200b}\u{3164}", Some("invisible")),
        ("a\0", Some("nul_character")),
    ];
    for (name, code) in table {
        let body = json!({ "name": name });
        let body = body.as_object().unwrap();
        let first = |invalid: Invalid| invalid.0[0].code;
        assert_eq!(check_name(name).err().map(|fault| fault.code), code, "{name:?}");
        assert_eq!(Create::parse(body).err().map(first), code, "{name:?}");
        assert_eq!(Patch::parse(body).err().map(first), code, "{name:?}");
        let id = AccountId::from_bytes([1; 16]);
        let upsert =
            Account::from_upsert(id, &parse(json!({ "name": name })), None, &Settings::default(), NOW);
        assert_eq!(upsert.err().map(first), code, "{name:?}");
    }
}

#[test]
fn an_account_is_never_named_by_an_id_that_nobody_can_see() {
    assert_eq!(created(json!({"imported_id": " 7 "})).name, " 7 ");
    for imported_id in [" ", "\u{200b}", "\u{3164}"] {
        let account = created(json!({ "imported_id": imported_id }));
        assert_eq!(
            (account.name, account.imported_id.as_deref()),
            (account.id.to_string(), Some(imported_id))
        );
    }
}

#[test]
fn a_name_is_updated_if_the_policy_says_so() {
    let mut account = created(json!({"name": "First"}));
    let table = [
        (json!({"name": "Second", "name_policy": "create"}), "First", "ignored", Some(Outcome::Kept)),
        (json!({"name": "Second", "name_policy": "update"}), "Second", "changed", Some(Outcome::Set)),
        (json!({"name": "Second", "name_policy": "update"}), "Second", "", Some(Outcome::Unchanged)),
        (json!({"name": null, "name_policy": "update"}), "Second", "", None),
        (json!({"name": "Third"}), "Second", "ignored", None),
        (json!({"name": "Third", "name_policy": null}), "Second", "ignored", None),
    ];
    for (sent, name, listed, outcome) in table {
        let request = parse(sent.clone());
        let change = account.upsert(&request, None, &Settings::default(), LATER).unwrap();
        let found = match (change.changed.as_slice(), change.ignored.as_slice()) {
            (["name"], []) => "changed",
            ([], ["name"]) => "ignored",
            ([], []) => "",
            other => panic!("{other:?}"),
        };
        assert_eq!((account.name.as_str(), found), (name, listed), "{sent}");
        assert_eq!(
            Outcomes::of(&request, false, &change),
            Outcomes { name: outcome, status: None },
            "{sent}"
        );
    }
}

#[test]
fn a_status_moves_as_the_policy_says() {
    let table = [
        ("contacted", json!({"status": "prospect"}), "prospect", "changed", None),
        (
            "contacted",
            json!({"status": "prospect", "status_policy": "set"}),
            "prospect",
            "changed",
            Some(Outcome::Set),
        ),
        (
            "contacted",
            json!({"status": "prospect", "status_policy": "forward"}),
            "contacted",
            "ignored",
            Some(Outcome::Kept),
        ),
        (
            "contacted",
            json!({"status": "contacted", "status_policy": "forward"}),
            "contacted",
            "",
            Some(Outcome::Unchanged),
        ),
        (
            "contacted",
            json!({"status": "in_trial", "status_policy": "forward"}),
            "in_trial",
            "changed",
            Some(Outcome::Set),
        ),
        ("contacted", json!({"status_policy": "forward"}), "contacted", "", None),
    ];
    for (from, sent, to, listed, outcome) in table {
        let mut account = created(json!({ "status": from }));
        let request = parse(sent.clone());
        let change = account.upsert(&request, None, &Settings::default(), LATER).unwrap();
        let found = match (change.changed.as_slice(), change.ignored.as_slice()) {
            (["status"], []) => "changed",
            ([], ["status"]) => "ignored",
            ([], []) => "",
            other => panic!("{other:?}"),
        };
        assert_eq!((account.status.as_str(), found), (to, listed), "{sent}");
        assert_eq!(change.moved.is_some(), listed == "changed", "{sent}");
        assert_eq!(
            Outcomes::of(&request, false, &change),
            Outcomes { name: None, status: outcome },
            "{sent}"
        );
    }
}

#[test]
fn null_counts_as_not_sent_except_where_it_clears() {
    let mut account =
        created(json!({"status": "contacted", "captured_value": "5", "custom_fields": {"a": 1}}));
    let sent = json!({"status": null, "name": null, "custom_fields": null});
    assert_eq!(account.upsert(&parse(sent), None, &Settings::default(), LATER).unwrap(), Change::default());
    let cleared = account.upsert(&parse(json!({"captured_value": null})), None, &Settings::default(), LATER);
    assert_eq!(cleared.unwrap().changed, ["captured_value", "captured_value_currency"]);
    assert_eq!(account.value, None);
}

#[test]
fn a_currency_alone_is_ignored_without_a_value() {
    let mut account = created(json!({}));
    let sent = parse(json!({"captured_value_currency": "eur"}));
    let change = account.upsert(&sent, None, &Settings::default(), LATER).unwrap();
    assert_eq!((change.ignored, change.changed.is_empty()), (vec!["captured_value_currency"], true));
}

#[test]
fn a_matching_code_places_the_account_and_stamps_the_date_once() {
    let mut account = created(json!({}));
    let mut change = Change::default();
    account.attribute(&attribution(1, "SPRING"), NOW, &mut change);
    assert_eq!(change.changed, ["promo_code", "channel", "acquired_at"]);
    let mut same = Change::default();
    account.attribute(&attribution(1, "AUTUMN"), LATER, &mut same);
    assert!(same.changed.is_empty());
    assert_eq!((account.acquired_at, account.promo_code.as_ref().unwrap().as_str()), (Some(NOW), "SPRING"));
    account.attribute(&attribution(2, "OTHER"), LATER, &mut same);
    assert_eq!(account.acquired_at, Some(LATER));
}

#[test]
fn all_faults_are_named_at_once() {
    let body = json!({
        "imported_id": "", "status": "won", "name": 5, "captured_value": "-1",
        "captured_value_currency": "XXQ", "custom_fields": {"a": "\0"}, "name_policy": "always", "status_policy": 1,
    });
    let expected = [
        ("/project", "required"),
        ("/imported_id", "empty"),
        ("/status", "unknown_status"),
        ("/name_policy", "unknown_policy"),
        ("/status_policy", "wrong_type"),
        ("/name", "wrong_type"),
        ("/custom_fields/a", "nul_character"),
        ("/captured_value", "negative"),
        ("/captured_value_currency", "unknown_currency"),
    ];
    assert_eq!(codes(body), expected.map(|(pointer, code)| (pointer.to_owned(), code)));
}

#[test]
fn any_promo_code_is_accepted() {
    for code in
        [json!(5), json!(null), json!({"a": 1}), json!("has space"), json!("x".repeat(65)), json!("a\u{0}")]
    {
        assert_eq!(parse(json!({ "promo_code": code })).promo_code, None, "{code}");
    }
    assert!(parse(json!({"promo_code": "Spring"})).promo_code.is_some());
}

#[test]
fn tracking_starts_when_a_tracked_stage_is_entered() {
    let mut account = created(json!({}));
    let settings = Settings::default();
    assert_eq!(account.tracked_since, None);
    account.trigger(Trigger::TrialStarted, Mover::Activity, &settings, NOW);
    account.trigger(Trigger::BecameCustomer, Mover::Activity, &settings, LATER);
    assert_eq!(account.tracked_since, Some(NOW), "the clock keeps running between tracked stages");
    account.trigger(Trigger::Churned, Mover::Activity, &settings, LATER);
    assert_eq!(account.tracked_since, None);
}

#[test]
fn the_clock_runs_in_a_stage_that_may_be_tracked_before_it_is() {
    let mut account = created(json!({"status": "in_negotiation"}));
    let settings = Settings::default();
    assert_eq!(account.tracked_since, Some(NOW));
    let tracked = TrackedStages::from_statuses(&[Status::InNegotiation]).unwrap();
    let edited = Settings { tracked_stages: tracked, ..settings.clone() };
    assert_eq!(
        account.due(&edited, LATER).due_at,
        Some(NOW.plus_days(42)),
        "the clock started when it entered the stage"
    );
    account.trigger(Trigger::TrialStarted, Mover::Activity, &settings, LATER);
    assert_eq!(account.tracked_since, Some(LATER), "it comes from an untracked stage");
    account.trigger(Trigger::Set(Status::InNegotiation), Mover::Operator, &settings, NOW);
    assert_eq!(account.tracked_since, Some(NOW), "it goes to an untracked stage");
}

#[test]
fn any_contact_ends_never_and_then_only_a_later_one_moves_the_clock() {
    let mut account = created(json!({}));
    let early = Time::from_micros(5);
    assert!(account.contact(early, LATER));
    assert!(!account.contact(early, LATER) && !account.contact(Time::from_micros(4), LATER));
    assert!(account.contact(NOW, LATER));
    assert_eq!((account.last_contact_at, account.updated_at), (Some(NOW), LATER));
}

#[test]
fn leaving_do_not_contact_by_activity_holds_campaigns_until_an_operator_moves_it() {
    let mut account = created(json!({"status": "do_not_contact"}));
    let settings = Settings::default();
    account.trigger(Trigger::BecameCustomer, Mover::Activity, &settings, NOW);
    assert!(account.campaign_hold);
    account.trigger(Trigger::Set(Status::Lost), Mover::Record, &settings, NOW);
    assert!(account.campaign_hold);
    account.trigger(Trigger::Set(Status::Customer), Mover::Operator, &settings, NOW);
    assert!(!account.campaign_hold);
}

#[test]
fn the_account_object_has_the_decided_members() {
    let account = created(json!({"captured_value": 1200.5, "captured_value_currency": "eur"}));
    let shown = serde_json::to_value(account.view(&Settings::default(), NOW)).unwrap();
    let mut members: Vec<&str> = shown.as_object().unwrap().keys().map(String::as_str).collect();
    let mut decided = [
        "id",
        "imported_id",
        "name",
        "status",
        "custom_fields",
        "captured_value",
        "captured_value_currency",
        "promo_code",
        "channel",
        "acquired_at",
        "last_contact_at",
        "first_seen_at",
        "last_seen_at",
        "created_at",
        "updated_at",
        "cadence_days",
        "snoozed_until",
        "tracked",
        "overdue",
        "due_at",
        "days_overdue",
    ];
    members.sort_unstable();
    decided.sort_unstable();
    assert_eq!(members, decided);
    assert_eq!(
        (&shown["captured_value"], &shown["captured_value_currency"]),
        (&json!("1200.50"), &json!("EUR"))
    );
    assert_eq!(shown["imported_id"], json!("crm-1"));
}

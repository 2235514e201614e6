//! Runs random sequences of operations on SQLite, on PostgreSQL and on a plain model in memory. Compares
//! every answer, and at the end everything that each of them stores.
//!
//! The sequences are the same in every run. `RAPPORT_MODEL_CASES=1000` runs more of them.

mod plain;
mod real;

use std::cell::Cell;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use rapport_domain::id::AccountId;
use rapport_domain::pipeline::Status;
use rapport_domain::time::Time;
use rapport_testkit::{Engine, TestApp, TestClock, app::START};
use serde_json::{Map, Value, json};

use plain::Plain;
use real::Real;

const CASES: u32 = 24;
/// The average length of a sequence.
const OPERATIONS: usize = 60;
const DAY: i64 = 86_400;

/// Accounts and channels are named by the order of their creation; a number too high names nothing.
#[derive(Debug, Clone)]
enum Operation {
    Upsert(Value),
    Ingest(Vec<Event>),
    Create(Value),
    Patch(usize, Value),
    ChangeStatus(usize, Status, Option<String>),
    Delete(usize),
    /// A contact made this many seconds ago.
    Contact(usize, i64),
    /// Announces everyone who is overdue.
    Remind,
    CreateChannel(String),
    RenameChannel(usize, String),
    DeleteChannel(usize),
    AddCode(usize, String),
    ArchiveCode(usize, String, bool),
    DeleteCode(usize, String),
    Settings(Value),
    Advance(i64),
}

/// The content of an event; the account and the time are filled in when it is sent.
#[derive(Debug, Clone)]
struct Event {
    imported_id: Option<Value>,
    account: Option<usize>,
    seconds_ago: Option<i64>,
    rest: Value,
}

impl Event {
    fn to_json(&self, ids: &[AccountId], now: Time) -> Value {
        let mut event = self.rest.clone();
        if let Some(imported_id) = &self.imported_id {
            event["imported_id"] = imported_id.clone();
        }
        if let Some(account) = self.account {
            event["account_id"] = json!(named(ids, account, AccountId::from_bytes([0xee; 16])).to_string());
        }
        if let Some(seconds) = self.seconds_ago {
            event["occurred_at"] = json!(now.plus_seconds(-seconds).to_string());
        }
        event
    }
}

/// The id created as number `place`, or one that names nothing.
fn named<T: Copy>(ids: &[T], place: usize, nothing: T) -> T {
    ids.get(place).copied().unwrap_or(nothing)
}

/// Runs operations, and reports everything it stores. Ids are shown as `account-3`, `channel-0`.
trait Subject {
    fn run(&mut self, operation: &Operation) -> Value;
    fn everything(&self) -> Vec<Value>;
}

#[test]
fn both_engines_answer_as_the_plain_model_does() {
    let cases = std::env::var("RAPPORT_MODEL_CASES").map_or(CASES, |text| text.parse().expect("a number"));
    let clock = TestClock::default();
    let apps = Engine::BOTH.map(|engine| TestApp::with_clock(engine, clock.clone()));
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 400, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let number = Cell::new(0);
    let sequences = proptest::collection::vec(operation(), 0..=2 * OPERATIONS).prop_map(furnished);
    let held = runner.run(&sequences, |sequence| {
        number.set(number.get() + 1);
        clock.set(Time::parse(START).unwrap());
        let project = format!("case-{}", number.get());
        let mut plain = Plain::new(&project, clock.clone());
        // Every sequence has its own company, in databases that fill up.
        let mut real = apps.each_ref().map(|app| Real::new(app.company(&project), clock.clone()));
        for (place, operation) in sequence.iter().enumerate() {
            if let Operation::Advance(seconds) = operation {
                clock.advance_seconds(*seconds);
            }
            let expected = plain.run(operation);
            for (engine, real) in Engine::BOTH.into_iter().zip(&mut real) {
                prop_assert_eq!(
                    real.run(operation),
                    expected.clone(),
                    "{}: {}: {:?}",
                    engine,
                    place,
                    operation
                );
            }
        }
        let expected = plain.everything();
        for (engine, real) in Engine::BOTH.into_iter().zip(&real) {
            let found = real.everything();
            prop_assert_eq!(found.len(), expected.len(), "{} in the end", engine);
            for (found, expected) in found.iter().zip(&expected) {
                prop_assert_eq!(found, expected, "{} in the end", engine);
            }
        }
        Ok(())
    });
    held.unwrap_or_else(|failure| panic!("{failure}"));
}

/// The start of every sequence, so that the rest has something to work on.
fn furnished(sequence: Vec<Operation>) -> Vec<Operation> {
    let mut furnished = vec![
        Operation::CreateChannel("Fair".to_owned()),
        Operation::AddCode(0, "FAIR".to_owned()),
        Operation::CreateChannel("Online".to_owned()),
        Operation::AddCode(1, "Spring_1".to_owned()),
        Operation::Upsert(json!({"imported_id": "crm-0"})),
        Operation::Upsert(json!({"imported_id": "crm-1", "status": "do_not_contact", "promo_code": "fair"})),
        Operation::Create(json!({"name": "By hand", "status": "in_trial"})),
    ];
    furnished.extend(sequence);
    furnished
}

type Member = BoxedStrategy<Option<(String, Value)>>;

/// A member present in one of three requests, with one of these values.
fn member(name: &'static str, values: impl IntoIterator<Item = Value>) -> Member {
    let values: Vec<Value> = values.into_iter().collect();
    let given = select(values).prop_map(move |value| Some((name.to_owned(), value)));
    prop_oneof![2 => Just(None), 1 => given].boxed()
}

fn always(name: &'static str, values: impl IntoIterator<Item = Value>) -> Member {
    let values: Vec<Value> = values.into_iter().collect();
    select(values).prop_map(move |value| Some((name.to_owned(), value))).boxed()
}

fn object(members: Vec<Member>) -> BoxedStrategy<Value> {
    members.prop_map(|members| Value::Object(members.into_iter().flatten().collect::<Map<_, _>>())).boxed()
}

fn imported_ids() -> [Value; 5] {
    ["crm-0", "crm-1", "crm-2", "CRM-2", "crm-3"].map(Value::from)
}

fn statuses() -> Vec<Value> {
    let words = Status::ALL.map(|status| json!(status.as_str()));
    words.into_iter().chain([json!(null), json!("won")]).collect()
}

fn custom_fields() -> Member {
    let value = || [json!(1), json!("x"), json!(null), json!({"n": [1, null]}), json!(null), json!(2)];
    // Three of the large ones exceed the limit.
    let large = || [json!("x".repeat(25_000)), json!(null)];
    let fields = object(vec![
        member("a", value()),
        member("b", value()),
        member("c", value()),
        member("l1", large()),
        member("l2", large()),
        member("l3", large()),
    ]);
    let given = prop_oneof![8 => fields, 1 => Just(json!(null)), 1 => Just(json!({}))];
    prop_oneof![2 => Just(None), 1 => given.prop_map(|fields| Some(("custom_fields".to_owned(), fields)))]
        .boxed()
}

fn money() -> [Member; 2] {
    let amounts = [json!("10"), json!("12.5"), json!(7), json!("0.0001"), json!(null), json!("-1")];
    let currencies = [json!("EUR"), json!("jpy"), json!("USD"), json!(null), json!("QQQ")];
    [member("captured_value", amounts), member("captured_value_currency", currencies)]
}

fn cadence() -> [Member; 2] {
    let dates = [json!("2026-01-20"), json!("2026-06-01"), json!(null)];
    [member("cadence_days", [json!(1), json!(30), json!(null)]), member("snoozed_until", dates)]
}

fn codes() -> BoxedStrategy<String> {
    select(["fair", "FAIR", "Spring_1", "spring_1", "other-x"].map(str::to_owned).to_vec()).boxed()
}

fn promo_code() -> Member {
    let sent = ["Fair", "fair", "SPRING_1", "Other-X", "unknown"].map(Value::from);
    member("promo_code", sent.into_iter().chain([json!(null)]))
}

fn upsert() -> BoxedStrategy<Operation> {
    let names = member("name", [json!("Nordlys"), json!("Keller & Sohn"), json!(null)]);
    let mut members = vec![always("imported_id", imported_ids()), member("status", statuses()), names];
    members.extend([custom_fields(), promo_code(), member("promo_code", [json!(5), json!("no code")])]);
    members.extend([
        member("name_policy", ["create", "update"].map(Value::from)),
        member("status_policy", ["set", "forward"].map(Value::from)),
    ]);
    members.extend(money());
    object(members).prop_map(Operation::Upsert).boxed()
}

fn create() -> BoxedStrategy<Operation> {
    let mut members =
        vec![always("name", [json!("By hand"), json!("Nordlys")]), member("status", statuses())];
    members.extend([member("imported_id", imported_ids()), custom_fields(), promo_code()]);
    members.extend(money().into_iter().chain(cadence()));
    object(members).prop_map(Operation::Create).boxed()
}

fn patch() -> BoxedStrategy<Operation> {
    let mut members = vec![member("name", [json!("Renamed"), json!("Nordlys"), json!(null)])];
    let ids = imported_ids().into_iter().chain([json!(null)]);
    members.extend([member("status", statuses()), member("imported_id", ids), custom_fields(), promo_code()]);
    members.extend(money().into_iter().chain(cadence()));
    (account(), object(members)).prop_map(|(account, body)| Operation::Patch(account, body)).boxed()
}

fn account() -> std::ops::Range<usize> {
    0..6
}

fn channel() -> std::ops::Range<usize> {
    0..3
}

fn event() -> BoxedStrategy<Event> {
    let kinds =
        ["app_opened", "feature_used", "trial_started", "became_customer", "churned", "custom", "nonsense"];
    let value = json!({"captured_value": "99.5"});
    let metadata =
        [value, json!({"value": 3, "currency": "eur"}), json!({"currency": "chf"}), json!({"plan": "x"})];
    let event_ids = ["e1", "e2", "e3", "E3", "e4", "e5"].map(Value::from);
    let rest = object(vec![
        always("kind", kinds.map(Value::from)),
        member("feature", ["f1", "F1", "f2", "ö"].map(Value::from)),
        member("metadata", metadata.into_iter().chain([json!([]), json!({"value": "x"}), json!(null)])),
        member("event_id", event_ids),
    ]);
    let known = select(imported_ids().to_vec()).prop_map(Some);
    let imported_id =
        prop_oneof![6 => known, 2 => Just(None), 1 => Just(Some(json!("nobody"))), 1 => Just(Some(json!(5)))];
    let account = prop_oneof![3 => Just(None), 1 => account().prop_map(Some)];
    let seconds_ago = select(vec![
        None,
        None,
        Some(0),
        Some(3600),
        Some(30 * DAY),
        Some(400 * DAY),
        Some(-200),
        Some(-400),
    ]);
    let event = (imported_id, account, seconds_ago, rest);
    event
        .prop_map(|(imported_id, account, seconds_ago, rest)| Event {
            imported_id,
            account,
            seconds_ago,
            rest,
        })
        .boxed()
}

fn settings() -> BoxedStrategy<Operation> {
    let stages = [
        json!(["customer"]),
        json!(["in_negotiation", "in_trial"]),
        json!([]),
        json!(["customer", "in_trial"]),
    ];
    let zones = ["Pacific/Auckland", "America/Los_Angeles", "UTC", "Mars"].map(Value::from);
    let members = vec![
        member("cadence_days", [json!(7), json!(42), json!(0)]),
        member("tracked_stages", stages),
        member("time_zone", zones),
        member("default_currency", ["EUR", "JPY", "usd"].map(Value::from)),
    ];
    object(members).prop_map(Operation::Settings).boxed()
}

fn operation() -> BoxedStrategy<Operation> {
    let name = || select(["Fair", "FAIR", "Online", "Partners"].map(str::to_owned).to_vec());
    let note = prop_oneof![Just(None), Just(Some("called".to_owned()))];
    let status = (account(), select(Status::ALL.to_vec()), note);
    let contacts = select(vec![0, 3600, 20 * DAY, 100 * DAY]);
    prop_oneof![
        24 => upsert(),
        24 => proptest::collection::vec(event(), 1..8).prop_map(Operation::Ingest),
        6 => create(),
        8 => patch(),
        6 => status.prop_map(|(account, status, note)| Operation::ChangeStatus(account, status, note)),
        3 => account().prop_map(Operation::Delete),
        5 => (account(), contacts).prop_map(|(account, ago)| Operation::Contact(account, ago)),
        6 => Just(Operation::Remind),
        4 => name().prop_map(Operation::CreateChannel),
        1 => (channel(), name()).prop_map(|(channel, name)| Operation::RenameChannel(channel, name)),
        2 => channel().prop_map(Operation::DeleteChannel),
        6 => (channel(), codes()).prop_map(|(channel, code)| Operation::AddCode(channel, code)),
        3 => (channel(), codes(), any::<bool>()).prop_map(|(channel, code, on)| Operation::ArchiveCode(channel, code, on)),
        1 => (channel(), codes()).prop_map(|(channel, code)| Operation::DeleteCode(channel, code)),
        3 => settings(),
        6 => select(vec![1, 3600, DAY, 40 * DAY, 90 * DAY]).prop_map(Operation::Advance),
    ]
    .boxed()
}

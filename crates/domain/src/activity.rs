//! Client activity: what an ingest batch may contain, and what each kind of event does.

use ring::digest::{SHA256, digest};
use serde_json::{Map, Value};

use crate::id::AccountId;
use crate::invalid::{Fault, Invalid, Members, as_array, as_bool, as_object, as_str};
use crate::money::{Amount, Capture, Currency};
use crate::pipeline::Trigger;
use crate::schema::words;
use crate::text::{Length, refuse_nul, refuse_nul_within};
use crate::time::Time;

pub const MAX_EVENTS: usize = 100;
pub const MAX_FEATURE: Length = Length::up_to(128);
pub const MAX_EVENT_ID: Length = Length::up_to(100);
pub const MAX_METADATA_BYTES: usize = 8 * 1024;
/// How far ahead of our clock a sender's clock may be.
pub const MAX_AHEAD_SECONDS: i64 = 5 * 60;
/// How long an `event_id` is remembered.
pub const EVENT_ID_DAYS: i64 = 90;
/// How many days the Pulse card shows.
pub const PULSE_DAYS: i64 = 90;
/// Rejected events can be looked up later: this many are kept per batch, and this many per company.
pub const MAX_REJECTS_OF_BATCH: usize = 20;
pub const MAX_REJECTS_KEPT: usize = 200;
/// How long a rejected event is kept.
pub const REJECT_DAYS: i64 = 90;
/// How much of a rejected event's account and kind is kept, in characters.
const MAX_SHOWN_ACCOUNT: usize = 255;
const MAX_SHOWN_KIND: usize = 64;
/// How many features the Pulse card shows.
pub const PULSE_FEATURES: i64 = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    AppOpened,
    FeatureUsed,
    TrialStarted,
    BecameCustomer,
    Churned,
    Custom,
}

impl Kind {
    pub const ALL: [Self; 6] = [
        Self::AppOpened,
        Self::FeatureUsed,
        Self::TrialStarted,
        Self::BecameCustomer,
        Self::Churned,
        Self::Custom,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AppOpened => "app_opened",
            Self::FeatureUsed => "feature_used",
            Self::TrialStarted => "trial_started",
            Self::BecameCustomer => "became_customer",
            Self::Churned => "churned",
            Self::Custom => "custom",
        }
    }

    pub fn parse(text: &str) -> Result<Self, Fault> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| Fault::not_one_of("unknown_kind", Self::ALL.map(Self::as_str)))
    }

    /// The pipeline trigger of this kind. `Custom` triggers nothing.
    pub const fn trigger(self) -> Option<Trigger> {
        match self {
            Self::TrialStarted => Some(Trigger::TrialStarted),
            Self::BecameCustomer => Some(Trigger::BecameCustomer),
            Self::Churned => Some(Trigger::Churned),
            Self::AppOpened | Self::FeatureUsed | Self::Custom => None,
        }
    }

    /// Whether `feature` is counted for this kind.
    const fn counts_feature(self) -> bool {
        matches!(self, Self::FeatureUsed | Self::Custom)
    }
}

words!(
    Kind,
    "ActivityKind",
    "The kind of an event. `feature_used` and `custom` are counted per feature. `trial_started`, `became_customer` and \
     `churned` can move the account."
);

/// One valid event, not yet matched to an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// Its place in the request.
    pub index: usize,
    pub imported_id: Option<String>,
    /// The service's own id. Text that isn't a valid id becomes the nil id, which no account has.
    pub account_id: Option<AccountId>,
    pub kind: Kind,
    /// Set and counted only for `feature_used` and `custom`.
    pub feature: Option<String>,
    pub occurred_at: Time,
    /// Compact JSON text of the object as sent.
    pub metadata: Option<String>,
    /// The hash that its `event_id` is remembered by.
    pub mark: Option<EventMark>,
    /// The value that a `became_customer` event carries.
    pub capture: Capture,
}

/// Half of the SHA-256 of an `event_id`: long enough that two ids of one company never share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventMark([u8; 16]);

impl EventMark {
    pub fn of(event_id: &str) -> Self {
        let mut mark = [0; 16];
        mark.copy_from_slice(&digest(&SHA256, event_id.as_bytes()).as_ref()[..16]);
        Self(mark)
    }

    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// An event that breaks a rule: named in the response and never applied.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
#[schema(as = RejectedEvent)]
pub struct Rejection {
    /// Its index in the request.
    pub index: usize,
    #[schema(schema_with = Fault::code_schema)]
    pub code: &'static str,
    #[schema(example = "kind")]
    pub field: &'static str,
    pub detail: String,
    /// Helps people find the event; the sender already has it.
    #[serde(skip)]
    pub about: About,
}

/// A short description of an event that could be anything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct About {
    /// The id that the event gives for its account.
    pub account: Option<String>,
    pub kind: Option<String>,
}

impl About {
    /// Takes the members as sent if they are strings, truncated and without characters that storage can't
    /// keep.
    fn sent(event: &Value) -> Self {
        let text = |name: &str, most: usize| {
            let sent = event.get(name).and_then(Value::as_str);
            sent.map(|text| text.chars().filter(|letter| *letter != '\0').take(most).collect())
        };
        let account =
            text("imported_id", MAX_SHOWN_ACCOUNT).or_else(|| text("account_id", MAX_SHOWN_ACCOUNT));
        Self { account, kind: text("kind", MAX_SHOWN_KIND) }
    }

    /// Describes an event that is valid on its own.
    pub fn valid(activity: &Activity) -> Self {
        let account = activity.imported_id.clone().or_else(|| activity.account_id.map(|id| id.to_string()));
        Self { account, kind: Some(activity.kind.as_str().to_owned()) }
    }
}

/// A batch after validation, before matching.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// Whether one event that is unmatched or rejected fails all of them.
    pub strict: bool,
    pub received: usize,
    pub valid: Vec<Activity>,
    pub rejected: Vec<Rejection>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchError {
    Invalid(Invalid),
    TooLarge { received: usize },
}

/// Whether a lifecycle event moves its account. One that happened before the account's latest move is late, and the
/// company decides whether it still does. The creation of an account is no move: events from before it are welcome.
pub fn may_move(occurred_at: Time, latest_move: Option<Time>, late_events_move: bool) -> bool {
    late_events_move || latest_move.is_none_or(|moved| occurred_at >= moved)
}

/// Parses each of a request's `events`; `now` is the arrival time.
pub fn parse_batch(body: &Map<String, Value>, now: Time) -> Result<Batch, BatchError> {
    let mut members = Members::of(body);
    let strict = members.optional("strict", as_bool).unwrap_or(false);
    let events = members.required("events", as_array);
    if events.is_some_and(Vec::is_empty) {
        members.fault("events", Fault::new("empty", "must contain at least one event"));
    }
    let events = members.build(|| events).map_err(BatchError::Invalid)?;
    if events.len() > MAX_EVENTS {
        return Err(BatchError::TooLarge { received: events.len() });
    }
    let mut batch = Batch { strict, received: events.len(), ..Batch::default() };
    for (index, event) in events.iter().enumerate() {
        match parse(index, event, now) {
            Ok(activity) => batch.valid.push(activity),
            Err((field, Fault { code, detail })) => {
                batch.rejected.push(Rejection { index, code, field, detail, about: About::sent(event) });
            }
        }
    }
    Ok(batch)
}

type Faulty = (&'static str, Fault);

fn parse(index: usize, event: &Value, now: Time) -> Result<Activity, Faulty> {
    let event = as_object(event).map_err(|fault| ("", fault))?;
    let text = |name: &'static str| optional(event, name, as_str);
    let imported_id = text("imported_id")?;
    let account_id = text("account_id")?;
    if imported_id.is_none() && account_id.is_none() {
        let detail = "either imported_id or account_id is required";
        return Err(("imported_id", Fault::new("required", detail)));
    }
    for (name, id) in [("imported_id", imported_id), ("account_id", account_id)] {
        id.map_or(Ok(()), refuse_nul).map_err(|fault| (name, fault))?;
    }
    let kind = text("kind")?.ok_or_else(|| ("kind", Fault::new("required", "is required")))?;
    let kind = Kind::parse(kind).map_err(|fault| ("kind", fault))?;
    let feature = feature(event, kind)?;
    let occurred_at = occurred_at(event, now)?;
    let metadata = optional(event, "metadata", as_object)?;
    let capture = match (kind, metadata) {
        (Kind::BecameCustomer, Some(metadata)) => capture(metadata)?,
        _ => Capture::Keep,
    };
    let event_id = text("event_id")?;
    if let Some(id) = event_id {
        MAX_EVENT_ID.check(id).map_err(|fault| ("event_id", fault))?;
    }
    Ok(Activity {
        index,
        imported_id: imported_id.map(str::to_owned),
        account_id: account_id.map(|id| id.parse().unwrap_or(AccountId::from_bytes([0; 16]))),
        kind,
        feature,
        occurred_at,
        metadata: metadata.map(kept_metadata).transpose()?,
        mark: event_id.map(EventMark::of),
        capture,
    })
}

/// A member that may be absent or `null`.
fn optional<'a, T>(
    event: &'a Map<String, Value>,
    name: &'static str,
    parse: impl FnOnce(&'a Value) -> Result<T, Fault>,
) -> Result<Option<T>, Faulty> {
    match event.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => parse(value).map(Some).map_err(|fault| (name, fault)),
    }
}

fn feature(event: &Map<String, Value>, kind: Kind) -> Result<Option<String>, Faulty> {
    let feature = optional(event, "feature", |value| {
        let text = as_str(value)?;
        MAX_FEATURE.check(text)?;
        Ok(text.to_owned())
    })?;
    if kind == Kind::FeatureUsed && feature.is_none() {
        return Err(("feature", Fault::new("required", "is required when kind is feature_used")));
    }
    Ok(feature.filter(|_| kind.counts_feature()))
}

fn occurred_at(event: &Map<String, Value>, now: Time) -> Result<Time, Faulty> {
    let sent = optional(event, "occurred_at", |value| {
        Time::parse(as_str(value)?).map_err(|error| Fault::new("malformed", error.to_string()))
    })?;
    let at = sent.unwrap_or(now);
    if at > now.plus_seconds(MAX_AHEAD_SECONDS) {
        let detail = format!("must not be more than {} minutes in the future", MAX_AHEAD_SECONDS / 60);
        return Err(("occurred_at", Fault::new("in_the_future", detail)));
    }
    Ok(at)
}

fn kept_metadata(metadata: &Map<String, Value>) -> Result<String, Faulty> {
    let fault = |fault| ("metadata", fault);
    for (key, value) in metadata {
        refuse_nul(key).and_then(|()| refuse_nul_within(value)).map_err(fault)?;
    }
    let text = serde_json::to_string(metadata).unwrap_or_default();
    if text.len() > MAX_METADATA_BYTES {
        return Err(fault(Fault::new(
            "too_large",
            format!("must be at most {MAX_METADATA_BYTES} bytes of JSON"),
        )));
    }
    Ok(text)
}

/// The value in the metadata of a `became_customer`, under its long or its short name.
fn capture(metadata: &Map<String, Value>) -> Result<Capture, Faulty> {
    let pick = |long: &str, short: &str| {
        [long, short].into_iter().filter_map(|name| metadata.get(name)).find(|value| !value.is_null())
    };
    let amount = pick("captured_value", "value").map(Amount::from_json).transpose();
    let amount = amount.map_err(|fault| ("metadata.captured_value", fault))?;
    let currency = pick("captured_value_currency", "currency").map(Currency::from_json).transpose();
    let currency = currency.map_err(|fault| ("metadata.captured_value_currency", fault))?;
    Ok(Capture::from_parts(amount, currency))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::Trigger;
    use proptest::prelude::*;
    use serde_json::json;

    const NOW: Time = Time::from_micros(1_800_000_000_000_000);

    fn batch(events: Value) -> Result<Batch, BatchError> {
        parse_batch(json!({ "events": events }).as_object().unwrap(), NOW)
    }

    fn rejection(event: Value) -> (&'static str, &'static str) {
        let batch = batch(json!([event])).unwrap();
        let rejected = batch.rejected.first().unwrap_or_else(|| panic!("accepted: {batch:?}"));
        (rejected.field, rejected.code)
    }

    fn accepted(event: Value) -> Activity {
        let batch = batch(json!([event])).unwrap();
        batch.valid.into_iter().next().unwrap_or_else(|| panic!("rejected: {:?}", batch.rejected))
    }

    #[test]
    fn kinds_and_their_effects_are_the_documents_table() {
        let table = [
            ("app_opened", None),
            ("feature_used", None),
            ("trial_started", Some(Trigger::TrialStarted)),
            ("became_customer", Some(Trigger::BecameCustomer)),
            ("churned", Some(Trigger::Churned)),
            ("custom", None),
        ];
        for (word, trigger) in table {
            assert_eq!(Kind::parse(word).unwrap().trigger(), trigger, "{word}");
        }
        assert_eq!(Kind::ALL.map(Kind::as_str), table.map(|(word, _)| word));
    }

    #[test]
    fn each_rule_of_an_event_rejects_it_by_field() {
        let event = |more: Value| {
            let mut event = json!({"imported_id": "a", "kind": "feature_used", "feature": "f"});
            event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            event
        };
        let table = [
            (json!(5), ("", "wrong_type")),
            (json!({"kind": "app_opened"}), ("imported_id", "required")),
            (event(json!({"imported_id": 5})), ("imported_id", "wrong_type")),
            (event(json!({"account_id": 5})), ("account_id", "wrong_type")),
            (event(json!({"imported_id": "a\0"})), ("imported_id", "nul_character")),
            (event(json!({"account_id": "acc_\0"})), ("account_id", "nul_character")),
            (json!({"imported_id": "a"}), ("kind", "required")),
            (event(json!({"kind": "opened"})), ("kind", "unknown_kind")),
            (event(json!({"kind": 1})), ("kind", "wrong_type")),
            (event(json!({"feature": null})), ("feature", "required")),
            (event(json!({"feature": ""})), ("feature", "empty")),
            (event(json!({"feature": "x".repeat(129)})), ("feature", "too_long")),
            (event(json!({"feature": ["x"]})), ("feature", "wrong_type")),
            (event(json!({"occurred_at": "soon"})), ("occurred_at", "malformed")),
            (event(json!({"occurred_at": 17})), ("occurred_at", "wrong_type")),
            (
                event(json!({"occurred_at": NOW.plus_seconds(301).to_string()})),
                ("occurred_at", "in_the_future"),
            ),
            (event(json!({"metadata": []})), ("metadata", "wrong_type")),
            (event(json!({"metadata": {"a": "\0"}})), ("metadata", "nul_character")),
            (event(json!({"metadata": {"a": "x".repeat(9000)}})), ("metadata", "too_large")),
            (event(json!({"event_id": 1})), ("event_id", "wrong_type")),
            (event(json!({"event_id": "x".repeat(101)})), ("event_id", "too_long")),
            (
                json!({"imported_id": "a", "kind": "became_customer", "metadata": {"value": "-5"}}),
                ("metadata.captured_value", "negative"),
            ),
            (
                json!({"imported_id": "a", "kind": "became_customer", "metadata": {"currency": "Q"}}),
                ("metadata.captured_value_currency", "unknown_currency"),
            ),
        ];
        for (event, expected) in table {
            assert_eq!(rejection(event.clone()), expected, "{event}");
        }
    }

    #[test]
    fn defaults_and_tolerances() {
        assert_eq!(accepted(json!({"imported_id": "a", "kind": "app_opened"})).occurred_at, NOW);
        let ahead = NOW.plus_seconds(MAX_AHEAD_SECONDS);
        let event = json!({"imported_id": "a", "kind": "app_opened", "occurred_at": ahead.to_string()});
        assert_eq!(accepted(event).occurred_at, ahead);
        let late = json!({"imported_id": "a", "kind": "app_opened", "occurred_at": "2001-02-03"});
        assert_eq!(accepted(late).occurred_at.to_string(), "2001-02-03T00:00:00Z");
        assert_eq!(accepted(json!({"imported_id": "a", "kind": "custom"})).feature, None);
        let opened = json!({"imported_id": "a", "kind": "app_opened", "feature": "x"});
        assert_eq!(accepted(opened).feature, None, "only feature_used and custom count a feature");
        assert_eq!(accepted(json!({"imported_id": "", "kind": "churned"})).imported_id.as_deref(), Some(""));
        let unknown = accepted(json!({"account_id": "nonsense", "kind": "churned"}));
        assert_eq!(unknown.account_id, Some(AccountId::from_bytes([0; 16])));
    }

    #[test]
    fn became_customer_carries_its_value() {
        let of = |metadata: Value| {
            accepted(json!({"imported_id": "a", "kind": "became_customer", "metadata": metadata})).capture
        };
        let amount = Amount::parse("99.5").unwrap();
        let eur = Currency::parse("EUR").unwrap();
        let both = Capture::Set { amount, currency: Some(eur) };
        assert_eq!(of(json!({"captured_value": "99.50", "captured_value_currency": "eur"})), both);
        assert_eq!(of(json!({"value": 99.5, "currency": "EUR"})), both);
        assert_eq!(of(json!({"captured_value": null})), Capture::Keep);
        assert_eq!(of(json!({})), Capture::Keep);
        let other = accepted(json!({"imported_id": "a", "kind": "churned", "metadata": {"value": "-"}}));
        assert_eq!(other.capture, Capture::Keep, "only became_customer captures");
    }

    #[test]
    fn a_late_event_moves_its_account_unless_the_company_says_otherwise() {
        let (before, moved, after) = (NOW.plus_seconds(-1), NOW, NOW.plus_seconds(1));
        let table = [
            (before, None, true, true),
            (before, Some(moved), true, true),
            (after, Some(moved), true, true),
            (before, None, false, true),
            (before, Some(moved), false, false),
            (moved, Some(moved), false, true),
            (after, Some(moved), false, true),
        ];
        for (occurred_at, latest_move, late_events_move, moves) in table {
            let found = may_move(occurred_at, latest_move, late_events_move);
            assert_eq!(found, moves, "{occurred_at} {latest_move:?} {late_events_move}");
        }
    }

    #[test]
    fn strict_is_a_boolean_and_off_by_default() {
        let events = json!([{"imported_id": "a", "kind": "app_opened"}]);
        let parse = |strict: Value| {
            parse_batch(json!({"strict": strict, "events": events}).as_object().unwrap(), NOW)
        };
        assert!(!batch(events.clone()).unwrap().strict);
        for (value, strict) in [(json!(null), false), (json!(false), false), (json!(true), true)] {
            assert_eq!(parse(value.clone()).unwrap().strict, strict, "{value}");
        }
        for value in [json!("true"), json!(1), json!([])] {
            let Err(BatchError::Invalid(invalid)) = parse(value.clone()) else {
                panic!("{value} is not refused")
            };
            assert_eq!((invalid.0[0].pointer.as_str(), invalid.0[0].code), ("/strict", "wrong_type"));
        }
    }

    #[test]
    fn batches_have_bounds() {
        let event = json!({"imported_id": "a", "kind": "app_opened"});
        assert_eq!(batch(json!(vec![event.clone(); 100])).unwrap().valid.len(), 100);
        assert_eq!(batch(json!(vec![event; 101])), Err(BatchError::TooLarge { received: 101 }));
        for bad in [json!([]), json!(null), json!({}), json!("x")] {
            assert!(matches!(batch(bad), Err(BatchError::Invalid(_))));
        }
    }

    proptest! {
        #[test]
        fn every_event_is_valid_or_rejected(words in proptest::collection::vec("[a-z_]{0,12}", 1..20)) {
            let events: Vec<Value> = words.iter().map(|word| json!({"imported_id": word, "kind": word})).collect();
            let batch = batch(json!(events)).unwrap();
            prop_assert_eq!(batch.received, batch.valid.len() + batch.rejected.len());
        }
    }
}

//! Which of the selected events a webhook receives: a filter by stage, channel and custom field, in the words of the account
//! filter.
//!
//! A filter is judged by the event's payload, which has everything it asks about. So the transaction that emits an event
//! and a preview of past events give the same answer, and a company without filters pays for nothing.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::audience::{FieldFilter, as_channels, fields_to_json, read_fields, several, without_nulls};
use crate::event::Kind;
use crate::id::ChannelId;
use crate::invalid::{Invalid, Members};
use crate::pipeline::Status;
use crate::webhook::Selection;

/// A filter matches an event that meets every condition given. Absent conditions match everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// The stage that the account left, any of these. Only moves leave a stage, so nothing else matches.
    pub from: Vec<Status>,
    /// The stage of the account when the event happened, any of these. For a move, the stage it moved to.
    pub to: Vec<Status>,
    /// The account's channel, any of these.
    pub channels: Vec<ChannelId>,
    /// The account's custom fields.
    pub fields: Vec<FieldFilter>,
}

/// The condition that an event doesn't meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mismatch {
    /// It left another stage.
    From(Status),
    /// It isn't a move, so it left no stage.
    NotAMove,
    /// The account is in another stage.
    To(Status),
    /// The account is on another channel, or on none.
    Channel,
    /// This custom field of the account has another value, or none.
    Field(String),
}

/// Whether a webhook would have received an event, and if not, why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    Sent,
    NotSelected,
    Filtered(Mismatch),
    /// The payload was erased, so nobody can tell.
    Erased,
}

impl EventFilter {
    /// Reads a JSON object; the pointers of errors begin with `base`.
    pub fn parse(map: &Map<String, Value>, base: &str) -> Result<Self, Invalid> {
        let mut members = Members::under(map, base.to_owned());
        let statuses = |value: &Value| several(value, Status::from_json);
        let filter = Self {
            from: members.optional("from", statuses).unwrap_or_default(),
            to: members.optional("to", statuses).unwrap_or_default(),
            channels: members.optional("channel", as_channels).unwrap_or_default(),
            fields: read_fields(&mut members, base),
        };
        members.refuse_unknown();
        members.finish().map(|()| filter)
    }

    /// The same members again, without the absent ones.
    pub fn to_json(&self) -> Value {
        let list = |empty: bool, value: Value| if empty { Value::Null } else { value };
        without_nulls(json!({
            "from": list(self.from.is_empty(), json!(self.from)),
            "to": list(self.to.is_empty(), json!(self.to)),
            "channel": list(self.channels.is_empty(), json!(self.channels)),
            "fields": list(self.fields.is_empty(), fields_to_json(&self.fields)),
        }))
    }

    /// Whether it matches every event.
    pub fn is_empty(&self) -> bool {
        self.from.is_empty() && self.to.is_empty() && self.channels.is_empty() && self.fields.is_empty()
    }

    /// The stored form: empty without conditions, so that reading it costs nothing.
    pub fn to_stored(&self) -> String {
        if self.is_empty() { String::new() } else { self.to_json().to_string() }
    }

    /// From text that `to_stored` produced.
    pub fn from_stored(text: &str) -> Self {
        if text.is_empty() {
            return Self::default();
        }
        let map: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
        Self::parse(&map, "").unwrap_or_default()
    }

    /// The first condition that the event doesn't meet; `None` if it meets all.
    pub fn mismatch(&self, facts: &Facts) -> Option<Mismatch> {
        if !self.from.is_empty() {
            match facts.from {
                None => return Some(Mismatch::NotAMove),
                Some(from) if !self.from.contains(&from) => return Some(Mismatch::From(from)),
                Some(_) => {}
            }
        }
        if !self.to.is_empty() && !self.to.contains(&facts.to) {
            return Some(Mismatch::To(facts.to));
        }
        if !self.channels.is_empty() && !facts.channel.is_some_and(|channel| self.channels.contains(&channel))
        {
            return Some(Mismatch::Channel);
        }
        let fails = |field: &&FieldFilter| {
            !facts.fields.get(&field.key).is_some_and(|value| field.test.matches(value))
        };
        self.fields.iter().find(fails).map(|field| Mismatch::Field(field.key.clone()))
    }
}

/// Judges an event as the transaction that emitted it would now. An erased payload is empty.
pub fn judge(selection: &Selection, filter: &EventFilter, kind: Kind, payload: &str) -> Judgement {
    if !selection.includes(kind) {
        return Judgement::NotSelected;
    }
    if filter.is_empty() {
        return Judgement::Sent;
    }
    match Facts::of(payload) {
        None => Judgement::Erased,
        Some(facts) => filter.mismatch(&facts).map_or(Judgement::Sent, Judgement::Filtered),
    }
}

/// What a filter asks of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    from: Option<Status>,
    to: Status,
    channel: Option<ChannelId>,
    fields: Map<String, Value>,
}

#[derive(Deserialize)]
struct Payload {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    account: AccountPart,
    previous_status: Option<String>,
}

#[derive(Deserialize)]
struct AccountPart {
    status: String,
    custom_fields: Map<String, Value>,
    channel: Option<ChannelPart>,
}

#[derive(Deserialize)]
struct ChannelPart {
    id: String,
}

impl Facts {
    /// Reads a payload that this service made; `None` if it was erased.
    pub fn of(payload: &str) -> Option<Self> {
        let Payload { data: Data { account, previous_status } } = serde_json::from_str(payload).ok()?;
        Some(Self {
            from: previous_status.and_then(|status| Status::parse(&status).ok()),
            to: Status::parse(&account.status).ok()?,
            channel: account.channel.and_then(|channel| channel.id.parse().ok()),
            fields: account.custom_fields,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Account;
    use crate::channel::ChannelRef;
    use crate::company::Slug;
    use crate::custom_fields::CustomFields;
    use crate::event::{self, Event, Occasion};
    use crate::id::{AccountId, EventId, WebhookId};
    use crate::pipeline::{Move, Source};
    use crate::time::Time;

    const FAIR: ChannelId = ChannelId::from_bytes([3; 16]);

    fn filter(value: &Value) -> EventFilter {
        EventFilter::parse(value.as_object().unwrap(), "/filters").unwrap()
    }

    fn account() -> Account {
        let (id, now) = (AccountId::from_bytes([1; 16]), Time::from_micros(0));
        let mut account = Account::new(id, "Nordlys".to_owned(), Status::Customer, now);
        account.custom_fields = CustomFields::from_stored(r#"{"plan":"Pro","seats":12}"#.to_owned());
        account.channel = Some(ChannelRef { id: FAIR, name: "Fair".to_owned() });
        account
    }

    fn occasion(slug: &Slug) -> Occasion<'_> {
        Occasion { id: EventId::from_bytes([2; 16]), now: Time::from_micros(0), project: slug }
    }

    /// A move from In trial to Customer, and the creation of the same account.
    fn moved_and_created() -> [Event; 2] {
        let slug = Slug::parse("acme").unwrap();
        let step = Move { from: Status::InTrial, to: Status::Customer };
        [
            event::status_changed(occasion(&slug), &account(), step, Source::Upsert),
            event::account_created(occasion(&slug), &account(), Source::Upsert),
        ]
    }

    #[test]
    fn every_condition_must_be_met() {
        let (fair, other) = (FAIR.to_string(), ChannelId::from_bytes([4; 16]).to_string());
        let field = |key: &str| Some(Mismatch::Field(key.to_owned()));
        let table = [
            (json!({}), None, None),
            (json!({"from": "in_trial"}), None, Some(Mismatch::NotAMove)),
            (json!({"from": ["lost", "in_trial"]}), None, Some(Mismatch::NotAMove)),
            (json!({"from": "lost"}), Some(Mismatch::From(Status::InTrial)), Some(Mismatch::NotAMove)),
            (json!({"to": "customer"}), None, None),
            (
                json!({"to": ["lost", "in_trial"]}),
                Some(Mismatch::To(Status::Customer)),
                Some(Mismatch::To(Status::Customer)),
            ),
            (json!({"channel": [fair, other]}), None, None),
            (json!({"channel": other}), Some(Mismatch::Channel), Some(Mismatch::Channel)),
            (json!({"fields": {"plan": "pro", "seats": {"exists": true}}}), None, None),
            (json!({"fields": {"plan": ["basic", "free"]}}), field("plan"), field("plan")),
            (json!({"fields": {"country": {"exists": true}}}), field("country"), field("country")),
            (
                json!({"from": "in_trial", "to": "customer", "channel": fair, "fields": {"seats": 12}}),
                None,
                Some(Mismatch::NotAMove),
            ),
        ];
        let [moved, created] = moved_and_created().map(|event| Facts::of(&event.payload).unwrap());
        for (given, of_move, of_creation) in table {
            let filter = filter(&given);
            assert_eq!(filter.mismatch(&moved), of_move, "{given} of a move");
            assert_eq!(filter.mismatch(&created), of_creation, "{given} of a creation");
            assert_eq!(EventFilter::from_stored(&filter.to_stored()), filter, "{given} stored");
            assert_eq!(EventFilter::parse(filter.to_json().as_object().unwrap(), ""), Ok(filter));
        }
    }

    #[test]
    fn an_account_without_a_channel_is_on_none_of_them() {
        let slug = Slug::parse("acme").unwrap();
        let mut account = account();
        account.channel = None;
        let created = event::account_created(occasion(&slug), &account, Source::Operator);
        let facts = Facts::of(&created.payload).unwrap();
        assert_eq!(filter(&json!({"channel": FAIR.to_string()})).mismatch(&facts), Some(Mismatch::Channel));
    }

    #[test]
    fn the_selection_comes_first_and_an_erased_payload_says_nothing() {
        let selection = |kinds: &[Kind]| {
            Selection::from_json(&json!(kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>())).unwrap()
        };
        let [moved, _] = moved_and_created();
        let (all, moves) = (selection(&Kind::OPT_IN), selection(&[Kind::AccountStatusChanged]));
        let (any, lost) = (EventFilter::default(), filter(&json!({"to": "lost"})));
        let mismatch = Judgement::Filtered(Mismatch::To(Status::Customer));
        let table = [
            (&all, &lost, moved.payload.as_str(), Judgement::NotSelected),
            (&moves, &lost, moved.payload.as_str(), mismatch),
            (&moves, &any, moved.payload.as_str(), Judgement::Sent),
            (&moves, &any, "", Judgement::Sent),
            (&moves, &lost, "", Judgement::Erased),
        ];
        for (selection, filter, payload, expected) in table {
            assert_eq!(judge(selection, filter, Kind::AccountStatusChanged, payload), expected);
        }
    }

    #[test]
    fn every_payload_can_be_judged() {
        let slug = Slug::parse("acme").unwrap();
        let test = event::webhook_test(occasion(&slug), WebhookId::from_bytes([1; 16]));
        for event in moved_and_created().into_iter().chain([test]) {
            assert!(Facts::of(&event.payload).is_some(), "{}", event.payload);
        }
        assert_eq!(Facts::of(""), None);
    }

    #[test]
    fn every_fault_has_its_place() {
        let given = json!({"from": "nope", "to": 1, "channel": "x", "fields": {"a": null}, "status": "lost"});
        let faults = EventFilter::parse(given.as_object().unwrap(), "/filters").unwrap_err().0;
        let found: Vec<(&str, &str)> =
            faults.iter().map(|fault| (fault.pointer.as_str(), fault.code)).collect();
        let expected = [
            ("/filters/from", "unknown_status"),
            ("/filters/to", "wrong_type"),
            ("/filters/channel", "malformed"),
            ("/filters/fields/a", "unknown_test"),
            ("/filters/status", "unknown_member"),
        ];
        assert_eq!(found, expected);
    }
}

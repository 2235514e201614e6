//! What may be edited in an entry, and which members an edit really changes.

use serde_json::{Map, Value};

use super::{Content, Kept};
use crate::account::MAX_NOTE;
use crate::contact;
use crate::conversation::{Direction, MAX_BODY, MAX_CHANNEL, MAX_SUBJECT, past_time};
use crate::invalid::{Invalid, Members, as_bool, as_str, as_text};
use crate::note::MAX_TEXT;
use crate::time::Time;

/// New values for some members of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit(Content);

impl Edit {
    pub fn of_contact(body: &Map<String, Value>, now: Time) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let kind = members.replaceable("kind", |value| contact::Kind::parse(as_str(value)?));
        let note = members.clearable("note", |value| as_text(value, MAX_NOTE.or_empty()));
        let occurred_at = members.replaceable("occurred_at", |value| past_time(value, now));
        members.refuse_unknown();
        members.finish()?;
        Ok(Self::new([
            ("kind", kind.map(|kind| kind.as_str().into())),
            ("note", note.map(|note| filled(note).into())),
            ("occurred_at", occurred_at.map(|at| at.to_string().into())),
        ]))
    }

    pub fn of_message(body: &Map<String, Value>, now: Time) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let direction = members.replaceable("direction", |value| Direction::parse(as_str(value)?));
        let text = members.replaceable("body", |value| as_text(value, MAX_BODY));
        let channel = members.replaceable("channel", |value| as_text(value, MAX_CHANNEL));
        let subject = members.clearable("subject", |value| as_text(value, MAX_SUBJECT.or_empty()));
        let occurred_at = members.replaceable("occurred_at", |value| past_time(value, now));
        members.refuse_unknown();
        members.finish()?;
        Ok(Self::new([
            ("direction", direction.map(|direction| direction.as_str().into())),
            ("body", text.map(Value::from)),
            ("channel", channel.map(Value::from)),
            ("subject", subject.map(|subject| filled(subject).into())),
            ("occurred_at", occurred_at.map(|at| at.to_string().into())),
        ]))
    }

    pub fn of_note(body: &Map<String, Value>) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let text = members.replaceable("text", |value| as_text(value, MAX_TEXT));
        let pinned = members.replaceable("pinned", as_bool);
        members.refuse_unknown();
        members.finish()?;
        Ok(Self::new([("text", text.map(Value::from)), ("pinned", pinned.map(Value::from))]))
    }

    fn new<const N: usize>(members: [(&str, Option<Value>); N]) -> Self {
        let given = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Self(given.collect())
    }

    /// The members that differ from the entry's, before and after; `None` if none does.
    pub fn changes(&self, current: &Content) -> Option<Kept> {
        let changed = self.0.iter().filter(|(name, value)| current.get(*name) != Some(value));
        let mut kept = Kept::default();
        for (name, value) in changed {
            kept.was.insert(name.clone(), current.get(name).cloned().unwrap_or_default());
            kept.became.insert(name.clone(), value.clone());
        }
        (!kept.became.is_empty()).then_some(kept)
    }
}

/// An empty text counts as none.
fn filled(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NOW: Time = Time::from_micros(1_800_000_000_000_000);

    type Faults = Vec<(String, &'static str)>;

    fn faults(invalid: Invalid) -> Faults {
        invalid.0.into_iter().map(|error| (error.pointer, error.code)).collect()
    }

    fn members(body: Value) -> Content {
        let Value::Object(body) = body else { panic!("an object") };
        body
    }

    #[test]
    fn only_members_that_differ_are_changed() {
        let current = members(json!({"kind": "call", "note": "Rang", "occurred_at": "2026-05-01T00:00:00Z"}));
        let changes = |body: Value| Edit::of_contact(&members(body), NOW).expect("valid").changes(&current);
        assert_eq!(changes(json!({})), None);
        assert_eq!(changes(json!({"kind": "call", "note": "Rang", "occurred_at": "2026-05-01"})), None);
        let kept = changes(json!({"kind": "meeting", "note": "Rang"})).expect("a change");
        assert_eq!(
            (kept.was, kept.became),
            (members(json!({"kind": "call"})), members(json!({"kind": "meeting"})))
        );
        for none in [json!(null), json!("")] {
            let kept = changes(json!({ "note": none })).expect("a change");
            assert_eq!(
                (kept.was, kept.became),
                (members(json!({"note": "Rang"})), members(json!({"note": null})))
            );
        }
    }

    #[test]
    fn what_is_not_allowed_is_named() {
        let one = |pointer: &str, code: &'static str| (pointer.to_owned(), code);
        let soon = NOW.plus_seconds(301).to_string();
        let contact = |body: Value| Edit::of_contact(&members(body), NOW).map_err(faults);
        let message = |body: Value| Edit::of_message(&members(body), NOW).map_err(faults);
        let note = |body: Value| Edit::of_note(&members(body)).map_err(faults);
        let table = [
            (contact(json!({"kind": null})), vec![one("/kind", "not_clearable")]),
            (
                contact(json!({"kind": "fax", "who": 1})),
                vec![one("/kind", "unknown_kind"), one("/who", "unknown_member")],
            ),
            (contact(json!({ "occurred_at": soon })), vec![one("/occurred_at", "in_the_future")]),
            (message(json!({"body": ""})), vec![one("/body", "empty")]),
            (
                message(json!({"body": null, "direction": "up"})),
                vec![one("/direction", "unknown_direction"), one("/body", "not_clearable")],
            ),
            (
                note(json!({"text": null, "pinned": null})),
                vec![one("/text", "not_clearable"), one("/pinned", "not_clearable")],
            ),
        ];
        for (found, expected) in table {
            assert_eq!(found, Err(expected));
        }
    }
}

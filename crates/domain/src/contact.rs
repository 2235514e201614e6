//! Contact recorded on an account: a call, a meeting, an email sent elsewhere. It resets the account's clock.

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::account::MAX_NOTE;
use crate::conversation::past_time;
use crate::history::Actor;
use crate::id::{AccountId, ContactId};
use crate::invalid::{Fault, Invalid, Members, as_str, as_text};
use crate::schema::words;
use crate::time::Time;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Call,
    Meeting,
    Email,
    Other,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::Call, Self::Meeting, Self::Email, Self::Other];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Meeting => "meeting",
            Self::Email => "email",
            Self::Other => "other",
        }
    }

    pub fn parse(text: &str) -> Result<Self, Fault> {
        let unknown = || Fault::not_one_of("unknown_kind", Self::ALL.map(Self::as_str));
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(unknown)
    }
}

words!(Kind, "ContactKind", "How contact was made.");

impl Serialize for Kind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A contact made with an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Contact {
    /// The contact's id.
    #[schema(value_type = String, example = "ctc_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    pub id: ContactId,
    #[serde(skip)]
    pub account: AccountId,
    /// How the contact was made.
    pub kind: Kind,
    /// What was noted about it. Null if nothing was.
    #[schema(required = true)]
    pub note: Option<String>,
    /// Who recorded it.
    pub actor: Actor,
    /// When the contact was made.
    #[schema(value_type = String, format = DateTime)]
    pub occurred_at: Time,
    /// When it was recorded.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Time,
}

/// A request to record contact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewContact {
    pub kind: Kind,
    pub note: Option<String>,
    /// The arrival time if the request doesn't give one.
    pub occurred_at: Time,
}

impl NewContact {
    pub fn parse(body: &Map<String, Value>, now: Time) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let kind = members.required("kind", |value| Kind::parse(as_str(value)?));
        let note = members.optional("note", |value| as_text(value, MAX_NOTE.or_empty()));
        let occurred_at = members.optional("occurred_at", |value| past_time(value, now));
        members.refuse_unknown();
        let note = note.filter(|note| !note.is_empty());
        members.build(|| Some(Self { kind: kind?, note, occurred_at: occurred_at.unwrap_or(now) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NOW: Time = Time::from_micros(1_800_000_000_000_000);

    fn parse(body: Value) -> Result<NewContact, Vec<(String, &'static str)>> {
        let Value::Object(body) = body else { panic!("an object") };
        let faults =
            |invalid: Invalid| invalid.0.into_iter().map(|error| (error.pointer, error.code)).collect();
        NewContact::parse(&body, NOW).map_err(faults)
    }

    #[test]
    fn contact_has_a_kind_and_happened_now_unless_said() {
        for kind in Kind::ALL {
            let contact = parse(json!({"kind": kind.as_str(), "note": ""})).unwrap();
            assert_eq!(contact, NewContact { kind, note: None, occurred_at: NOW });
        }
        let earlier = parse(json!({"kind": "call", "note": "hello", "occurred_at": "2020-02-03"})).unwrap();
        assert_eq!(earlier.occurred_at.to_string(), "2020-02-03T00:00:00Z");
        assert_eq!(earlier.note.as_deref(), Some("hello"));
    }

    #[test]
    fn contact_may_be_five_minutes_ahead_and_no_more() {
        let at = |seconds: i64| json!({"kind": "call", "occurred_at": NOW.plus_seconds(seconds).to_string()});
        assert_eq!(parse(at(300)).unwrap().occurred_at, NOW.plus_seconds(300));
        assert_eq!(parse(at(301)).unwrap_err(), [("/occurred_at".to_owned(), "in_the_future")]);
    }

    #[test]
    fn all_faults_are_named_at_once() {
        let body = json!({"kind": "fax", "note": "a\0", "occurred_at": "yesterday", "who": "me"});
        let expected = [
            ("/kind", "unknown_kind"),
            ("/note", "nul_character"),
            ("/occurred_at", "malformed"),
            ("/who", "unknown_member"),
        ];
        assert_eq!(parse(body).unwrap_err(), expected.map(|(pointer, code)| (pointer.to_owned(), code)));
        assert_eq!(parse(json!({})).unwrap_err(), [("/kind".to_owned(), "required")]);
    }
}

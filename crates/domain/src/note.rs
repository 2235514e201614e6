//! Notes on an account: plain text that isn't contact, so it doesn't touch the account's clock. A pinned one is shown
//! above the timeline.

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::history::Actor;
use crate::id::{AccountId, NoteId};
use crate::invalid::{Invalid, Members, as_bool, as_text};
use crate::text::Length;
use crate::time::Time;

pub const MAX_TEXT: Length = Length::up_to(20_000);
/// How many pinned notes an account's page shows.
pub const MAX_PINNED: i64 = 10;

/// A note on an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Note {
    /// The note's id.
    #[schema(value_type = String, example = "nte_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    pub id: NoteId,
    #[serde(skip)]
    pub account: AccountId,
    /// The plain text.
    pub text: String,
    /// Whether it is shown above the timeline.
    pub pinned: bool,
    /// Who wrote it.
    pub author: Actor,
    /// When it was written.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Time,
}

/// A request to add a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewNote {
    pub text: String,
    pub pinned: bool,
}

impl NewNote {
    pub fn parse(body: &Map<String, Value>) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let text = members.required("text", |value| as_text(value, MAX_TEXT));
        let pinned = members.optional("pinned", as_bool);
        members.refuse_unknown();
        members.build(|| Some(Self { text: text?, pinned: pinned.unwrap_or(false) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(body: Value) -> Result<NewNote, Vec<(String, &'static str)>> {
        let Value::Object(body) = body else { panic!("an object") };
        let faults =
            |invalid: Invalid| invalid.0.into_iter().map(|error| (error.pointer, error.code)).collect();
        NewNote::parse(&body).map_err(faults)
    }

    #[test]
    fn a_note_has_a_text_and_is_pinned_only_if_said() {
        let note = |text: &str, pinned: bool| Ok(NewNote { text: text.to_owned(), pinned });
        assert_eq!(parse(json!({"text": "Likes tea"})), note("Likes tea", false));
        assert_eq!(parse(json!({"text": "Likes tea", "pinned": true})), note("Likes tea", true));
        assert_eq!(parse(json!({"text": "Likes tea", "pinned": null})), note("Likes tea", false));
    }

    #[test]
    fn all_faults_are_named_at_once() {
        let one = |pointer: &str, code: &'static str| (pointer.to_owned(), code);
        let long = "x".repeat(MAX_TEXT.max + 1);
        let table = [
            (json!({}), vec![one("/text", "required")]),
            (json!({"text": ""}), vec![one("/text", "empty")]),
            (json!({"text": long}), vec![one("/text", "too_long")]),
            (
                json!({"text": "a\0", "pinned": "yes", "kind": "call"}),
                vec![
                    one("/text", "nul_character"),
                    one("/pinned", "wrong_type"),
                    one("/kind", "unknown_member"),
                ],
            ),
        ];
        for (body, expected) in table {
            assert_eq!(parse(body), Err(expected));
        }
    }
}

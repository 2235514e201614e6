//! Saved views: filters, order and columns of the account list, under a name shared within the company.

use serde_json::{Map, Value};

use crate::id::PersonId;
use crate::invalid::{Invalid, Members, as_bool, as_text};
use crate::text::Length;
use crate::time::Time;

/// They are shown as links above the list.
pub const MAX_VIEWS: usize = 50;
pub const MAX_NAME: Length = Length::up_to(60);
/// The query string of the page's URL; empty means the whole list.
pub const MAX_QUERY: Length = Length::up_to(4_000).or_empty();

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedView {
    pub name: String,
    pub query: String,
    pub created_at: Time,
    /// `None` if a program saved it, or an older release.
    pub created_by: Option<PersonId>,
}

impl SavedView {
    /// Whether it belongs to this person, who may then change it without the right to work.
    pub fn is_of(&self, person: Option<PersonId>) -> bool {
        self.created_by.is_some() && self.created_by == person
    }
}

/// A request to save a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Save {
    pub name: String,
    pub query: String,
    /// Replace an existing view with this name.
    pub replace: bool,
}

impl Save {
    pub fn parse(body: &Map<String, Value>) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let name = members.required("name", |value| as_text(value, MAX_NAME));
        let query = members.optional("query", |value| as_text(value, MAX_QUERY));
        let replace = members.optional("replace", as_bool).unwrap_or(false);
        members.refuse_unknown();
        members.build(|| Some(Self { name: name?, query: query.unwrap_or_default(), replace }))
    }
}

/// Parses the new name of a view.
pub fn parse_name(body: &Map<String, Value>) -> Result<String, Invalid> {
    let mut members = Members::of(body);
    let name = members.required("name", |value| as_text(value, MAX_NAME));
    members.refuse_unknown();
    members.build(|| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_view_belongs_to_the_person_who_saved_it() {
        let [ana, bo] = [1, 2].map(|byte| Some(PersonId::from_bytes([byte; 16])));
        let view = |created_by| SavedView {
            name: "Lost".to_owned(),
            query: String::new(),
            created_at: Time::from_micros(0),
            created_by,
        };
        assert!(view(ana).is_of(ana));
        assert!(!view(ana).is_of(bo) && !view(ana).is_of(None));
        assert!(!view(None).is_of(ana) && !view(None).is_of(None), "nobody's own");
    }

    #[test]
    fn a_view_has_a_name_of_some_length_and_perhaps_a_query() {
        let parse = |body: Value| Save::parse(body.as_object().unwrap());
        let saved = parse(json!({"name": "Lost in May", "query": "status=lost", "replace": true})).unwrap();
        assert_eq!((saved.query.as_str(), saved.replace), ("status=lost", true));
        assert_eq!(parse(json!({"name": "All"})).unwrap().query, "");
        for (body, code) in [
            (json!({"name": "x".repeat(61)}), "too_long"),
            (json!({"query": "a=b"}), "required"),
            (json!({"name": "x", "query": "q=".repeat(2_001)}), "too_long"),
        ] {
            assert_eq!(parse(body).unwrap_err().0[0].code, code);
        }
    }
}

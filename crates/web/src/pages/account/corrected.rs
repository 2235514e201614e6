//! What a visitor may correct on an account's pages, and how corrections are told.

use rapport_app::read::correction::Edits;
use rapport_domain::correction::{Act, Content, Correction, Entry as Logged, Kept, Kind, may_correct};
use rapport_domain::history::Actor;
use rapport_domain::right::Right;
use rapport_domain::time::Time;
use serde_json::Value;

use super::words::{contact_label, who};
use crate::pages::kit::frame::Frame;
use crate::pages::words::when;

/// The visitor, as far as corrections are concerned.
pub struct Corrector<'a> {
    pub frame: &'a Frame,
    pub edits: &'a Edits,
}

/// An entry that the visitor may correct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handle {
    pub id: String,
    /// `contact`, `message` or `note`.
    pub what: &'static str,
    /// Whether a note is pinned; `None` for other entries.
    pub pinned: Option<bool>,
}

/// Who last edited an entry, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    pub by: String,
    pub at: Time,
}

impl Corrector<'_> {
    pub fn may(&self, author: &Actor) -> bool {
        let Frame { person, name, .. } = self.frame;
        let visitor = Actor::Person { id: *person, name: name.clone() };
        self.frame.may_work() && may_correct(author, &visitor, self.frame.may(Right::Correct))
    }

    /// The entry, if the visitor may correct it.
    pub fn handle(&self, logged: Logged, author: &Actor, pinned: Option<bool>) -> Option<Handle> {
        let handle = || Handle { id: logged.id_text(), what: logged.kind().as_str(), pinned };
        self.may(author).then(handle)
    }

    pub fn edited(&self, logged: Logged) -> Option<Edited> {
        self.edits.get(logged.id_bytes()).map(|mark| Edited { by: who(&mark.by), at: mark.at })
    }

    /// What a correction changed or removed, for those who may correct the entry.
    pub fn told(&self, correction: &Correction) -> Option<String> {
        let kept = correction.kept.as_ref().filter(|_| self.may(&correction.author))?;
        let text = match correction.act {
            Act::Edited => self.changes(kept),
            Act::Deleted => words_of(&kept.was).to_owned(),
        };
        (!text.is_empty()).then_some(text)
    }

    fn changes(&self, Kept { was, became }: &Kept) -> String {
        let line = |(name, to): (&String, &Value)| {
            let from = was.get(name).unwrap_or(&Value::Null);
            format!("{}: {} → {}", field(name), self.shown(name, from), self.shown(name, to))
        };
        became.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    fn shown(&self, name: &str, value: &Value) -> String {
        match (name, value) {
            ("occurred_at", Value::String(text)) => {
                Time::parse(text).map_or_else(|_| text.clone(), |at| when::exact(at, self.frame.zone()))
            }
            ("kind", Value::String(text)) => rapport_domain::contact::Kind::parse(text)
                .map_or_else(|_| text.clone(), |kind| contact_label(kind).to_owned()),
            (_, Value::String(text)) => format!("“{text}”"),
            (_, Value::Bool(true)) => "yes".to_owned(),
            (_, Value::Bool(false)) => "no".to_owned(),
            _ => "none".to_owned(),
        }
    }
}

/// `Call edited`, `Message deleted`.
pub fn title(correction: &Correction) -> String {
    let what = match correction.entry.kind() {
        Kind::Contact => "Contact",
        Kind::Message => "Message",
        Kind::Note => "Note",
    };
    let act = match (correction.act, correction.fields.as_slice()) {
        (Act::Edited, [field]) if field == "pinned" => "pinned or unpinned",
        (act, _) => act.as_str(),
    };
    format!("{what} {act}")
}

/// Who corrected whose entry, and whether that was undone.
pub fn rest(correction: &Correction) -> String {
    let by = who(&correction.done.by);
    let whose = if correction.author.is_same(&correction.done.by) {
        String::new()
    } else {
        format!(", logged by {}", who(&correction.author))
    };
    let undone = correction.undone.as_ref().map(|mark| format!("; undone by {}", who(&mark.by)));
    format!("by {by}{whose}{}", undone.unwrap_or_default())
}

/// The words of a deleted entry.
fn words_of(content: &Content) -> &str {
    ["body", "text", "note"].iter().find_map(|name| content.get(*name)?.as_str()).unwrap_or_default()
}

fn field(name: &str) -> &'static str {
    match name {
        "kind" => "Kind",
        "note" => "Note",
        "occurred_at" => "When",
        "direction" => "Direction",
        "channel" => "Channel",
        "subject" => "Subject",
        "body" => "Message",
        "pinned" => "Pinned",
        _ => "Text",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rapport_domain::correction::Mark;
    use rapport_domain::id::{AccountId, ContactId, CorrectionId, PersonId};

    fn person(number: u8, name: &str) -> Actor {
        Actor::Person { id: PersonId::from_bytes([number; 16]), name: name.to_owned() }
    }

    #[test]
    fn a_correction_says_who_did_what_to_whose_entry() {
        let at = Time::from_micros(0);
        let edit = Correction {
            id: CorrectionId::from_bytes([1; 16]),
            account: AccountId::from_bytes([2; 16]),
            entry: Logged::Contact(ContactId::from_bytes([3; 16])),
            act: Act::Edited,
            author: person(1, "Ada"),
            done: Mark { at, by: person(1, "Ada") },
            fields: vec!["note".to_owned()],
            kept: None,
            undone: None,
        };
        assert_eq!((title(&edit).as_str(), rest(&edit).as_str()), ("Contact edited", "by Ada"));
        let by_bo = Correction { done: Mark { at, by: person(2, "Bo") }, act: Act::Deleted, ..edit };
        assert_eq!(rest(&by_bo), "by Bo, logged by Ada");
        let undone = Correction { undone: Some(Mark { at, by: person(1, "Ada") }), ..by_bo };
        assert_eq!(title(&undone), "Contact deleted");
        assert_eq!(rest(&undone), "by Bo, logged by Ada; undone by Ada");
    }
}

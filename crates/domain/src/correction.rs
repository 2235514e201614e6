//! Corrections: a contact, message or note that was logged wrongly is edited or deleted, and that can be undone.
//!
//! A deleted entry is taken out of its table and kept here, so that nothing else has to know about it. What is kept is
//! forgotten after a while; the fact that somebody corrected something stays. `content` says what an entry consists of,
//! `edit` what may be changed, and `clock` what follows for the cadence.

pub mod clock;
pub mod content;
pub mod edit;
pub mod logged;

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::history::Actor;
use crate::id::{AccountId, ContactId, CorrectionId, MessageId, NoteId};
use crate::schema::words;
use crate::time::Time;

/// A correction can be undone for so many days. Then what it removed is gone for good.
pub const UNDO_DAYS: i64 = 30;

/// An entry that somebody logged and that can be corrected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Entry {
    Contact(ContactId),
    Message(MessageId),
    Note(NoteId),
}

impl Entry {
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Contact(_) => Kind::Contact,
            Self::Message(_) => Kind::Message,
            Self::Note(_) => Kind::Note,
        }
    }

    pub const fn id_bytes(&self) -> &[u8; 16] {
        match self {
            Self::Contact(id) => id.as_bytes(),
            Self::Message(id) => id.as_bytes(),
            Self::Note(id) => id.as_bytes(),
        }
    }

    /// The id as the wire spells it.
    pub fn id_text(&self) -> String {
        match self {
            Self::Contact(id) => id.to_string(),
            Self::Message(id) => id.to_string(),
            Self::Note(id) => id.to_string(),
        }
    }

    /// Reads an id of any kind of entry.
    pub fn parse(text: &str) -> Option<Self> {
        let contact = text.parse().map(Self::Contact);
        contact.or_else(|_| text.parse().map(Self::Message)).or_else(|_| text.parse().map(Self::Note)).ok()
    }

    /// From the two parts that storage keeps.
    pub const fn from_parts(kind: Kind, id: [u8; 16]) -> Self {
        match kind {
            Kind::Contact => Self::Contact(ContactId::from_bytes(id)),
            Kind::Message => Self::Message(MessageId::from_bytes(id)),
            Kind::Note => Self::Note(NoteId::from_bytes(id)),
        }
    }
}

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Contact,
    Message,
    Note,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Contact, Self::Message, Self::Note];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Contact => "contact",
            Self::Message => "message",
            Self::Note => "note",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

words!(Kind, "CorrectedKind", "What was corrected.");

impl Serialize for Kind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// What was done to an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    Edited,
    Deleted,
}

impl Act {
    pub const ALL: [Self; 2] = [Self::Edited, Self::Deleted];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Edited => "edited",
            Self::Deleted => "deleted",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|act| act.as_str() == text)
    }
}

words!(Act, "CorrectionAct", "What was done to the entry.");

impl Serialize for Act {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Members of an entry with their values.
pub type Content = Map<String, Value>;

/// What is kept to undo a correction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kept {
    /// The changed members before an edit, or everything that was deleted.
    pub was: Content,
    /// The changed members after an edit. Empty after a deletion.
    pub became: Content,
}

/// When and by whom something was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    pub at: Time,
    pub by: Actor,
}

/// An edit or a deletion of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correction {
    pub id: CorrectionId,
    pub account: AccountId,
    pub entry: Entry,
    pub act: Act,
    /// Who logged the entry.
    pub author: Actor,
    /// Who corrected it, and when.
    pub done: Mark,
    /// The members that were changed. Empty for a deletion.
    pub fields: Vec<String>,
    /// `None` once it is too old to be undone.
    pub kept: Option<Kept>,
    pub undone: Option<Mark>,
}

/// Why a correction can't be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    Undone,
    Expired,
    /// The entry was changed or deleted since.
    Changed,
}

impl Correction {
    /// What undoing it restores. `current` is the entry's content now; `None` if the entry is deleted.
    pub fn undo(&self, current: Option<&Content>, now: Time) -> Result<&Kept, Refused> {
        if self.undone.is_some() {
            return Err(Refused::Undone);
        }
        let kept = self.kept.as_ref().filter(|_| now < self.done.at.plus_days(UNDO_DAYS));
        let kept = kept.ok_or(Refused::Expired)?;
        let is_as_left = match (self.act, current) {
            (Act::Edited, Some(current)) => {
                kept.became.iter().all(|(name, value)| current.get(name) == Some(value))
            }
            (Act::Deleted, None) => true,
            (Act::Edited, None) | (Act::Deleted, Some(_)) => false,
        };
        if is_as_left { Ok(kept) } else { Err(Refused::Changed) }
    }

    /// Whether it may still be undone, as far as it can be known without the entry.
    pub fn is_open(&self, now: Time) -> bool {
        self.undone.is_none() && self.kept.is_some() && now < self.done.at.plus_days(UNDO_DAYS)
    }

    /// As others see it. What was changed is shown only to those who may correct the entry.
    pub fn view(&self, may_correct: bool, now: Time) -> CorrectionView<'_> {
        let kept = self.kept.as_ref().filter(|_| may_correct);
        CorrectionView {
            id: self.id,
            entry_type: self.entry.kind(),
            entry_id: self.entry.id_text(),
            account_id: self.account,
            act: self.act,
            fields: &self.fields,
            author: &self.author,
            actor: &self.done.by,
            at: self.done.at,
            before: kept.map(|kept| &kept.was),
            after: kept.filter(|_| self.act == Act::Edited).map(|kept| &kept.became),
            can_undo: may_correct && self.is_open(now),
            undone_at: self.undone.as_ref().map(|mark| mark.at),
            undone_by: self.undone.as_ref().map(|mark| &mark.by),
        }
    }
}

/// Whether somebody may correct an entry: who logged it may, and everyone whose role has the right to.
pub fn may_correct(author: &Actor, caller: &Actor, has_right: bool) -> bool {
    has_right || author.is_same(caller)
}

/// An edit or a deletion of a contact, message or note.
#[derive(Serialize, ToSchema)]
#[schema(as = Correction)]
pub struct CorrectionView<'a> {
    /// The correction's id.
    #[schema(value_type = String, example = "cor_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    id: CorrectionId,
    entry_type: Kind,
    /// The id of the contact, message or note.
    #[schema(example = "ctc_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    entry_id: String,
    /// The account that it belongs to.
    #[schema(value_type = String, example = "acc_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    account_id: AccountId,
    act: Act,
    /// The members that were edited. Empty for a deletion.
    fields: &'a [String],
    /// Who logged the entry.
    author: &'a Actor,
    /// Who corrected it.
    actor: &'a Actor,
    /// When it was corrected.
    #[schema(value_type = String, format = DateTime)]
    at: Time,
    /// The edited members as they were, or everything that was deleted. Null after 30 days, and for callers who may not
    /// correct the entry.
    #[schema(required = true, value_type = Option<Object>)]
    before: Option<&'a Content>,
    /// The edited members as they became. Null for a deletion, and wherever `before` is null.
    #[schema(required = true, value_type = Option<Object>)]
    after: Option<&'a Content>,
    /// False for callers who may not correct the entry, after 30 days, and once it was undone. An entry that was edited
    /// again since can refuse it nevertheless.
    can_undo: bool,
    /// When it was undone. Null if it wasn't.
    #[schema(required = true, value_type = Option<String>, format = DateTime)]
    undone_at: Option<Time>,
    /// Who undid it. Null if nobody did.
    #[schema(required = true)]
    undone_by: Option<&'a Actor>,
}

#[cfg(test)]
mod tests;

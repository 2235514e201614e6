//! Any entry that can be corrected.

use super::content::Correctable;
use super::{Content, Correction, Entry, Kind};
use crate::contact::Contact;
use crate::conversation::Message;
use crate::history::Actor;
use crate::id::AccountId;
use crate::note::Note;
use crate::time::Time;

/// A contact, message or note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Logged {
    Contact(Contact),
    Message(Message),
    Note(Note),
}

/// Asks the entry itself, whatever it is.
macro_rules! ask {
    ($logged:expr, $entry:ident => $answer:expr) => {
        match $logged {
            Logged::Contact($entry) => $answer,
            Logged::Message($entry) => $answer,
            Logged::Note($entry) => $answer,
        }
    };
}

impl Correctable for Logged {
    fn entry(&self) -> Entry {
        ask!(self, entry => entry.entry())
    }

    fn account(&self) -> AccountId {
        ask!(self, entry => entry.account())
    }

    fn author(&self) -> &Actor {
        ask!(self, entry => entry.author())
    }

    fn contact_at(&self) -> Option<Time> {
        ask!(self, entry => entry.contact_at())
    }

    fn content(&self) -> Content {
        ask!(self, entry => entry.content())
    }

    fn put(&mut self, content: &Content) -> Option<()> {
        ask!(self, entry => entry.put(content))
    }

    fn kept(&self) -> Content {
        ask!(self, entry => entry.kept())
    }

    fn restored(correction: &Correction, kept: &Content) -> Option<Self> {
        match correction.entry.kind() {
            Kind::Contact => Contact::restored(correction, kept).map(Self::Contact),
            Kind::Message => Message::restored(correction, kept).map(Self::Message),
            Kind::Note => Note::restored(correction, kept).map(Self::Note),
        }
    }
}

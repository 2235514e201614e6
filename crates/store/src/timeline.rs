//! Everything that happened to an account, in one list: stages, contacts, notes and messages.
//!
//! Each kind is read from its own index starting where the last page ended, and the kinds are merged. A
//! position in the list has one position per kind, so that they don't need a common order.

use rapport_domain::contact::Contact;
use rapport_domain::conversation::{Direction, Sender};
use rapport_domain::history::{Actor, HistoryEntry};
use rapport_domain::id::{AccountId, ContactId, ConversationId, HistoryId, MessageId, NoteId};
use rapport_domain::note::Note;
use rapport_domain::time::Time;

use crate::error::Error;
use crate::page::Page;
use crate::statement::statements;
use crate::tx::Snapshot;
use crate::value::Row;
use crate::{contact, history, message, note, values};

statements! {
    company MESSAGES = "SELECT id, conversation, direction, channel, subject, substr(body, 1, 500), author_kind, \
                        author_id, author_name, sender_address, sender_name, automatic, occurred_at FROM message \
                        /*INDEXED BY message_by_account*/ WHERE company = $1 AND account = $2 \
                        AND (occurred_at, id) < ($3, $4) ORDER BY occurred_at DESC, id DESC LIMIT $5";
}

/// How much of a message an item shows, in characters; the statement truncates it to this.
pub const EXCERPT_CHARS: usize = 500;

/// A message, with the beginning of its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    pub id: MessageId,
    pub conversation: ConversationId,
    pub direction: Direction,
    pub channel: String,
    pub subject: Option<String>,
    pub excerpt: String,
    pub author: Actor,
    pub sender: Option<Sender>,
    pub automatic: bool,
    pub at: Time,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    Stage(HistoryEntry),
    Contact(Contact),
    Note(Note),
    Message(Said),
}

impl Item {
    pub fn at(&self) -> Time {
        match self {
            Self::Stage(entry) => entry.at,
            Self::Contact(contact) => contact.occurred_at,
            Self::Note(note) => note.created_at,
            Self::Message(said) => said.at,
        }
    }
}

/// Where a page ended: the last item shown of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub stage: HistoryId,
    pub contact: (Time, ContactId),
    pub note: NoteId,
    pub message: (Time, MessageId),
}

impl Place {
    /// Before the first item.
    pub const START: Self = Self {
        stage: HistoryId::from_bytes([0xff; 16]),
        contact: (Time::from_micros(i64::MAX), ContactId::from_bytes([0xff; 16])),
        note: NoteId::from_bytes([0xff; 16]),
        message: (Time::from_micros(i64::MAX), MessageId::from_bytes([0xff; 16])),
    };

    #[must_use]
    pub(crate) fn after(mut self, item: &Item) -> Self {
        match item {
            Item::Stage(entry) => self.stage = entry.id,
            Item::Contact(contact) => self.contact = (contact.occurred_at, contact.id),
            Item::Note(note) => self.note = note.id,
            Item::Message(said) => self.message = (said.at, said.id),
        }
        self
    }
}

/// A page of an account's timeline, newest first, and where the next one begins.
pub fn of_account(
    snapshot: &mut Snapshot,
    account: AccountId,
    from: Place,
    limit: i64,
) -> Result<(Vec<Item>, Option<Place>), Error> {
    let stages = history::of_account(snapshot, account, Some(from.stage), limit)?;
    let contacts = contact::of_account(snapshot, account, Some(from.contact), limit)?;
    let notes = note::of_account(snapshot, account, Some(from.note), limit)?;
    let messages = messages(snapshot, account, from.message, limit)?;
    let more = stages.more || contacts.more || notes.more || messages.more;
    let mut lanes = [
        stages.items.into_iter().map(Item::Stage).collect::<Vec<_>>(),
        contacts.items.into_iter().map(Item::Contact).collect(),
        notes.items.into_iter().map(Item::Note).collect(),
        messages.items.into_iter().map(Item::Message).collect(),
    ];
    lanes.iter_mut().for_each(|lane| lane.reverse());
    let limit = usize::try_from(limit).unwrap_or(0);
    let (mut items, mut place) = (Vec::with_capacity(limit), from);
    while items.len() < limit
        && let Some(item) = newest(&mut lanes)
    {
        place = place.after(&item);
        items.push(item);
    }
    let more = more || lanes.iter().any(|lane| !lane.is_empty());
    Ok((items, more.then_some(place)))
}

/// An account's messages, newest first, before a given position.
pub(crate) fn messages(
    snapshot: &mut Snapshot,
    account: AccountId,
    before: (Time, MessageId),
    limit: i64,
) -> Result<Page<Said>, Error> {
    let (at, id) = before;
    let rows = snapshot.query(&MESSAGES, values![&account, at, &id, limit + 1])?;
    let messages = rows.into_iter().map(read_said).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::from_one_more(messages, limit))
}

/// Takes the newest item from its lane; at the same time, a message comes before the account it created.
fn newest(lanes: &mut [Vec<Item>]) -> Option<Item> {
    let waiting = lanes.iter_mut().filter(|lane| !lane.is_empty());
    waiting.max_by_key(|lane| lane.last().map(Item::at))?.pop()
}

fn read_said(mut row: Row) -> Result<Said, Error> {
    let row = &mut row;
    Ok(Said {
        id: row.take()?,
        conversation: row.take()?,
        direction: message::direction(&row.take::<String>()?)?,
        channel: row.take()?,
        subject: row.take()?,
        excerpt: row.take()?,
        author: Actor::from_parts(&row.take::<String>()?, row.take()?, row.take()?),
        sender: match (row.take::<Option<String>>()?, row.take()?) {
            (Some(address), name) => Some(Sender { address, name }),
            (None, _) => None,
        },
        automatic: row.take()?,
        at: row.take()?,
    })
}

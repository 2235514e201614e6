//! The timeline on an account's page.

use rapport_app::read::timeline::{
    self, Active, Item, KeptActivity, Part, Place, Said, Stretch, Told, ToldPlace, Touch,
};
use rapport_domain::contact::Contact;
use rapport_domain::conversation::{Direction, EMAIL};
use rapport_domain::correction::{Correction, Entry as Logged};
use rapport_domain::history::{Actor, HistoryEntry};
use rapport_domain::id::{AccountId, ContactId, CorrectionId, HistoryId, ImportId, MessageId, NoteId};
use rapport_domain::note::Note;
use rapport_domain::pipeline::Status;
use rapport_domain::time::{Day, Time};

use super::corrected::{self, Corrector, Edited, Handle};
use super::words::{by, contact_label, cut, happened, who};
use crate::pages::words::{number, when};
use crate::shared::parameters::{read_cursor, write_cursor};

/// How much of a text is shown before it is folded.
const SHOWN_CHARS: usize = 280;
const STORY: u8 = b'Y';
const EVENTS: u8 = b'E';

/// Which entries are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Show {
    Story(timeline::Show),
    /// Every product event.
    Events,
}

/// The filters: the word in the address, its label, and the entries it shows.
pub const SHOWS: [(&str, &str, Show); 8] = [
    ("all", "All", Show::Story(timeline::Show::All)),
    ("moves", "Moves", Show::Story(timeline::Show::Moves)),
    ("messages", "Messages", Show::Story(timeline::Show::Messages)),
    ("contacts", "Contacts", Show::Story(timeline::Show::Contacts)),
    ("notes", "Notes", Show::Story(timeline::Show::Notes)),
    ("events", "Events", Show::Events),
    ("imports", "Imports", Show::Story(timeline::Show::Imports)),
    ("corrections", "Corrections", Show::Story(timeline::Show::Corrections)),
];

/// The part of the timeline that the query asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    pub word: &'static str,
    pub part: Part,
}

impl Default for Wanted {
    fn default() -> Self {
        Self::read("", "")
    }
}

impl Wanted {
    /// An unknown filter or position leads to the beginning.
    pub fn read(show: &str, before: &str) -> Self {
        let (word, _, show) = SHOWS.into_iter().find(|(word, ..)| *word == show).unwrap_or(SHOWS[0]);
        let part = match show {
            Show::Story(show) => Part::Story(show, read_place(before).unwrap_or(Place::START)),
            Show::Events => Part::Events(read_event(before)),
        };
        Self { word, part }
    }

    pub fn is_beginning(&self) -> bool {
        matches!(self.part, Part::Story(_, Place::START) | Part::Events(None))
    }
}

pub struct Timeline {
    pub wanted: Wanted,
    pub entries: Vec<Entry>,
    /// The position of the older entries.
    pub older: Option<String>,
}

/// One entry.
#[derive(Debug)]
pub struct Entry {
    pub icon: &'static str,
    pub title: String,
    /// The text after the title.
    pub rest: String,
    pub pill: Option<Status>,
    /// Who did it, and how.
    pub by: String,
    pub subject: Option<String>,
    /// A text from outside: its beginning and the rest.
    pub text: Option<(String, String)>,
    pub link: Option<(&'static str, String)>,
    /// Structured data, as JSON.
    pub data: Option<String>,
    /// Set if the visitor may correct it.
    pub handle: Option<Handle>,
    pub edited: Option<Edited>,
    /// A correction that the visitor can undo.
    pub undo: Option<CorrectionId>,
    pub at: Time,
}

impl Entry {
    fn new(icon: &'static str, title: impl Into<String>, at: Time) -> Self {
        Self {
            icon,
            title: title.into(),
            rest: String::new(),
            pill: None,
            by: String::new(),
            subject: None,
            text: None,
            link: None,
            data: None,
            handle: None,
            edited: None,
            undo: None,
            at,
        }
    }

    fn says(self, text: Option<&str>) -> Self {
        let text = text.map(|text| {
            let (head, tail) = cut(text, SHOWN_CHARS);
            (head.to_owned(), tail.to_owned())
        });
        Self { text, ..self }
    }
}

impl Timeline {
    pub fn new(account: AccountId, wanted: Wanted, stretch: Stretch, corrector: &Corrector) -> Self {
        let (entries, older) = match stretch {
            Stretch::Story(items, older) => {
                (items.iter().map(|item| entry(account, item, corrector)).collect(), older.map(write_place))
            }
            Stretch::Events(page) => {
                let last = page.items.last().filter(|_| page.more).map(write_event);
                (page.items.iter().map(event).collect(), last)
            }
        };
        Self { wanted, entries, older }
    }
}

fn entry(account: AccountId, item: &Item, corrector: &Corrector) -> Entry {
    let logged = |entry: Entry, logged: Logged, author: &Actor, pinned: Option<bool>| Entry {
        handle: corrector.handle(logged, author, pinned),
        edited: corrector.edited(logged),
        ..entry
    };
    match item {
        Item::Told(Told::Stage(stage)) => moved(stage),
        Item::Told(Told::Contact(contact)) => {
            logged(contacted(contact), Logged::Contact(contact.id), &contact.actor, None)
        }
        Item::Told(Told::Note(note)) => {
            logged(noted(note), Logged::Note(note.id), &note.author, Some(note.pinned))
        }
        Item::Told(Told::Message(said)) => {
            logged(message(account, said), Logged::Message(said.id), &said.author, None)
        }
        Item::Correction(correction) => correction_entry(correction, corrector),
        Item::Active(span) => active(account, span),
        Item::Import(touch) => imported(touch),
    }
}

fn moved(HistoryEntry { from, to, source, actor, note, at, .. }: &HistoryEntry) -> Entry {
    let entry = match from {
        None => Entry { pill: Some(*to), ..Entry::new("+", "Account created", *at) },
        Some(from) => {
            let verb = if *from == Status::Lost && *to < Status::Lost { "reopened from" } else { "from" };
            let rest = format!("{verb} {}", from.label());
            Entry { rest, pill: Some(*to), ..Entry::new("↗", format!("Moved to {}", to.label()), *at) }
        }
    };
    Entry { by: by(*source, actor), ..entry }.says(note.as_deref())
}

fn contacted(Contact { kind, note, actor, occurred_at, .. }: &Contact) -> Entry {
    let entry = Entry::new("☎", contact_label(*kind), *occurred_at);
    Entry { rest: format!("by {}", who(actor)), ..entry }.says(note.as_deref())
}

fn noted(Note { text, pinned, author, created_at, .. }: &Note) -> Entry {
    let title = if *pinned { "Pinned note" } else { "Note" };
    let entry = Entry::new("✎", title, *created_at);
    Entry { rest: format!("by {}", who(author)), ..entry }.says(Some(text))
}

fn correction_entry(correction: &Correction, corrector: &Corrector) -> Entry {
    let entry = Entry::new("↺", corrected::title(correction), correction.done.at);
    let can_undo = corrector.may(&correction.author) && correction.is_open(corrector.frame.now);
    Entry { rest: corrected::rest(correction), undo: can_undo.then_some(correction.id), ..entry }
        .says(corrector.told(correction).as_deref())
}

fn message(account: AccountId, said: &Said) -> Entry {
    let sender = said.sender.as_ref().map(|sender| sender.name.as_deref().unwrap_or(&sender.address));
    let title = match (said.direction, sender) {
        (Direction::Inbound, Some(sender)) => format!("Message from {sender}"),
        (Direction::Inbound, None) => "Message received".to_owned(),
        (Direction::Outbound, _) => "Message sent".to_owned(),
    };
    let mut rest = match (said.direction, sender) {
        (Direction::Inbound, Some(_)) => String::new(),
        (Direction::Inbound, None) => format!("logged by {}", who(&said.author)),
        (Direction::Outbound, _) => format!("by {}", who(&said.author)),
    };
    if said.channel != EMAIL {
        rest = format!("{rest} ({})", said.channel);
    }
    if said.automatic {
        rest.push_str(" (automatic)");
    }
    let link = format!("/accounts/{account}/conversations/{}", said.conversation);
    let entry = Entry::new("✉", title, said.at);
    let (rest, subject) = (rest.trim_start().to_owned(), said.subject.clone());
    Entry { rest, subject, link: Some(("Open conversation", link)), ..entry }
        .says(Some(&dense(&said.excerpt)))
}

/// Removes empty lines.
fn dense(text: &str) -> String {
    let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

fn active(account: AccountId, span: &Active) -> Entry {
    let events = number::counted(span.events, "event", "events");
    let rest = match span.days {
        1 => events,
        days => format!("{events} on {} days since {}", number::grouped(days), when::date(span.since.date())),
    };
    let link = Some(("View events", format!("/accounts/{account}?show=events#timeline")));
    Entry { rest, link, ..Entry::new("◎", "Used the product", span.last_at) }
}

fn imported(touch: &Touch) -> Entry {
    let title = if touch.created { "Created by an import" } else { "Changed by an import" };
    let undone = if touch.undone_at.is_some() { ", since undone" } else { "" };
    let fields: Vec<String> = touch.differences.shown().into_iter().map(|shown| shown.field).collect();
    let text = (!touch.created && !fields.is_empty()).then(|| format!("Changed: {}", fields.join(", ")));
    let entry = Entry::new("⇩", title, touch.at);
    let rest = format!("from {}{undone}", touch.filename);
    Entry { rest, by: format!("By {}", who(&touch.actor)), ..entry }.says(text.as_deref())
}

fn event(kept: &KeptActivity) -> Entry {
    let title = happened(&kept.kind, kept.feature.as_deref());
    Entry { data: kept.metadata.clone(), ..Entry::new("◎", title, kept.occurred_at) }
}

fn write_event(last: &KeptActivity) -> String {
    write_cursor(EVENTS, [last.occurred_at.as_micros().to_be_bytes(), last.seq.to_be_bytes()].as_flattened())
}

fn read_event(text: &str) -> Option<(Time, i64)> {
    let place: [u8; 16] = read_cursor(EVENTS, text)?;
    Some((Time::from_micros(number(&place, 0)?), number(&place, 8)?))
}

fn write_place(Place { told, day, import, correction }: Place) -> String {
    let times = [told.contact.0.as_micros(), told.message.0.as_micros(), day.number()].map(i64::to_be_bytes);
    let ids = [
        told.stage.as_bytes(),
        told.contact.1.as_bytes(),
        told.message.1.as_bytes(),
        import.as_bytes(),
        told.note.as_bytes(),
        correction.as_bytes(),
    ];
    write_cursor(STORY, &[times.as_flattened(), ids.map(|id| *id).as_flattened()].concat())
}

fn read_place(text: &str) -> Option<Place> {
    let place: [u8; 120] = read_cursor(STORY, text)?;
    let time = |at: usize| number(&place, at).map(Time::from_micros);
    let id = |at: usize| -> Option<[u8; 16]> { place.get(at..at + 16)?.try_into().ok() };
    Some(Place {
        told: ToldPlace {
            stage: HistoryId::from_bytes(id(24)?),
            contact: (time(0)?, ContactId::from_bytes(id(40)?)),
            note: NoteId::from_bytes(id(88)?),
            message: (time(8)?, MessageId::from_bytes(id(56)?)),
        },
        day: Day::from_number(number(&place, 16)?),
        import: ImportId::from_bytes(id(72)?),
        correction: CorrectionId::from_bytes(id(104)?),
    })
}

fn number(bytes: &[u8], at: usize) -> Option<i64> {
    Some(i64::from_be_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_back() {
        let told = ToldPlace {
            stage: HistoryId::from_bytes([1; 16]),
            contact: (Time::from_micros(-5), ContactId::from_bytes([2; 16])),
            note: NoteId::from_bytes([5; 16]),
            message: (Time::from_micros(7), MessageId::from_bytes([3; 16])),
        };
        let (import, correction) = (ImportId::from_bytes([4; 16]), CorrectionId::from_bytes([6; 16]));
        let place = Place { told, day: Day::from_number(9), import, correction };
        for place in [place, Place::START] {
            assert_eq!(read_place(&write_place(place)), Some(place));
        }
        assert_eq!(read_place("zzz"), None);
    }

    #[test]
    fn what_is_no_part_of_the_timeline_leads_to_its_beginning() {
        let all = Wanted::read("", "");
        assert!(all.is_beginning() && all.word == "all");
        assert_eq!(Wanted::read("everything", "x"), all);
        assert!(Wanted::read("events", "x").is_beginning());
    }
}

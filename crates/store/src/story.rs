//! The history on an account's page: the items of `timeline`, plus the days on which the account used the
//! product, the imports that changed it and the corrections of what was logged. All of it, or one kind.
//!
//! As in `timeline`, each kind is read from its own index starting where the last page ended, and the results
//! are merged.

use rapport_domain::activity::PULSE_DAYS;
use rapport_domain::correction::Correction;
use rapport_domain::id::{AccountId, CorrectionId, ImportId};
use rapport_domain::time::{Day, Time};

use crate::activity::{self, ActiveDay};
use crate::error::Error;
use crate::import_data::{self, Touch};
use crate::page::Page;
use crate::tx::Snapshot;
use crate::{contact, correction, history, note, timeline};

/// Which items to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Show {
    #[default]
    All,
    Moves,
    Messages,
    Contacts,
    Notes,
    Imports,
    Corrections,
}

impl Show {
    fn has(self, kind: Self) -> bool {
        self == kind || self == Self::All
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    Told(timeline::Item),
    /// Use of the product; shown only together with everything else.
    Active(Active),
    Import(Touch),
    Correction(Correction),
}

/// Days on which the account used the product, with nothing else in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Active {
    pub since: Day,
    pub days: i64,
    pub events: i64,
    pub last_at: Time,
}

impl Active {
    fn on(ActiveDay { day, events, last_at }: ActiveDay) -> Self {
        Self { since: day, days: 1, events, last_at }
    }

    fn and(self, earlier: Self) -> Self {
        Self {
            since: earlier.since,
            days: self.days + earlier.days,
            events: self.events + earlier.events,
            ..self
        }
    }
}

impl Item {
    pub fn at(&self) -> Time {
        match self {
            Self::Told(item) => item.at(),
            Self::Active(active) => active.last_at,
            Self::Import(touch) => touch.at,
            Self::Correction(correction) => correction.done.at,
        }
    }
}

/// Where a page ended: the last item shown of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub told: timeline::Place,
    pub day: Day,
    pub import: ImportId,
    pub correction: CorrectionId,
}

impl Place {
    /// Before the first item.
    pub const START: Self = Self {
        told: timeline::Place::START,
        day: Day::from_number(i64::MAX),
        import: ImportId::from_bytes([0xff; 16]),
        correction: CorrectionId::from_bytes([0xff; 16]),
    };

    fn after(mut self, item: &Item) -> Self {
        match item {
            Item::Told(item) => self.told = self.told.after(item),
            Item::Active(active) => self.day = active.since,
            Item::Import(touch) => self.import = touch.import,
            Item::Correction(correction) => self.correction = correction.id,
        }
        self
    }
}

/// A page of an account's history, newest first, and where the next one begins.
pub fn of_account(
    snapshot: &mut Snapshot,
    account: AccountId,
    show: Show,
    from: Place,
    limit: i64,
) -> Result<(Vec<Item>, Option<Place>), Error> {
    let mut lanes = Lanes::default();
    if show.has(Show::Moves) {
        let moves = history::of_account(snapshot, account, Some(from.told.stage), limit)?;
        lanes.add(moves, |entry| Item::Told(timeline::Item::Stage(entry)));
    }
    if show.has(Show::Contacts) {
        let contacts = contact::of_account(snapshot, account, Some(from.told.contact), limit)?;
        lanes.add(contacts, |contact| Item::Told(timeline::Item::Contact(contact)));
    }
    if show.has(Show::Notes) {
        let notes = note::of_account(snapshot, account, Some(from.told.note), limit)?;
        lanes.add(notes, |note| Item::Told(timeline::Item::Note(note)));
    }
    if show.has(Show::Imports) {
        lanes.add(import_data::of_account(snapshot, account, from.import, limit)?, Item::Import);
    }
    if show == Show::All {
        let days = activity::active_days(snapshot, account, from.day, PULSE_DAYS)?;
        lanes.add(days, |day| Item::Active(Active::on(day)));
    }
    if show.has(Show::Messages) {
        let messages = timeline::messages(snapshot, account, from.told.message, limit)?;
        lanes.add(messages, |said| Item::Told(timeline::Item::Message(said)));
    }
    if show.has(Show::Corrections) {
        let corrections = correction::of_account(snapshot, account, Some(from.correction), limit)?;
        lanes.add(corrections, Item::Correction);
    }
    let limit = usize::try_from(limit).unwrap_or(0);
    let (mut items, mut place) = (Vec::with_capacity(limit), from);
    while let Some(item) = lanes.newest() {
        let is_full = items.len() >= limit;
        match (items.last_mut(), item) {
            (Some(Item::Active(later)), Item::Active(earlier)) => {
                place.day = earlier.since;
                *later = later.and(earlier);
            }
            // This one is for the next page.
            _ if is_full => {
                lanes.more = true;
                break;
            }
            (_, item) => {
                place = place.after(&item);
                items.push(item);
            }
        }
    }
    Ok((items, lanes.have_more().then_some(place)))
}

/// The items read of each kind, newest last.
#[derive(Default)]
struct Lanes {
    waiting: Vec<Vec<Item>>,
    more: bool,
}

impl Lanes {
    fn add<T>(&mut self, page: Page<T>, item: impl Fn(T) -> Item) {
        self.more |= page.more;
        self.waiting.push(page.items.into_iter().rev().map(item).collect());
    }

    /// Takes the newest item from its lane. If two have the same time, the later lane wins: its item followed
    /// from the other.
    fn newest(&mut self) -> Option<Item> {
        let waiting = self.waiting.iter_mut().filter(|lane| !lane.is_empty());
        waiting.max_by_key(|lane| lane.last().map(Item::at))?.pop()
    }

    fn have_more(&self) -> bool {
        self.more || self.waiting.iter().any(|lane| !lane.is_empty())
    }
}

//! The timeline of an account: on its page with activity, imports and corrections, in the API without.

use rapport_domain::correction::Entry;
use rapport_domain::id::AccountId;
use rapport_domain::time::Time;
use rapport_store::{Error, Snapshot, activity, story, timeline};

use crate::read::Page;
use crate::read::account::of_existing;

pub use rapport_store::activity::KeptActivity;
pub use rapport_store::import_data::Touch;
pub use rapport_store::story::{Active, Item, Place, Show};
pub use rapport_store::timeline::{Item as Told, Place as ToldPlace, Said};

/// Which entries of an account's page are shown, and from where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Story(Show, Place),
    /// Every product event, before this one.
    Events(Option<(Time, i64)>),
}

/// A stretch of the timeline, newest first.
pub enum Stretch {
    /// The entries, and the place of the older ones.
    Story(Vec<Item>, Option<Place>),
    Events(Page<KeptActivity>),
}

impl Stretch {
    /// The entries in it that can be corrected.
    pub(super) fn entries(&self) -> Vec<Entry> {
        let Self::Story(items, _) = self else { return Vec::new() };
        let entry = |item: &Item| match item {
            Item::Told(Told::Contact(contact)) => Some(Entry::Contact(contact.id)),
            Item::Told(Told::Message(said)) => Some(Entry::Message(said.id)),
            Item::Told(Told::Note(note)) => Some(Entry::Note(note.id)),
            Item::Told(Told::Stage(_)) | Item::Active(_) | Item::Import(_) | Item::Correction(_) => None,
        };
        items.iter().filter_map(entry).collect()
    }
}

pub(super) fn stretch(
    snapshot: &mut Snapshot,
    account: AccountId,
    part: Part,
    limit: i64,
) -> Result<Stretch, Error> {
    match part {
        Part::Story(show, place) => {
            let (items, older) = story::of_account(snapshot, account, show, place, limit)?;
            Ok(Stretch::Story(items, older))
        }
        Part::Events(before) => activity::list(snapshot, account, before, limit).map(Stretch::Events),
    }
}

/// Moves, contacts, notes and messages, and the place of the older ones.
pub type ToldPart = (Vec<Told>, Option<ToldPlace>);

/// What happened to an account, newest first, from a place on.
pub fn told(
    snapshot: &mut Snapshot,
    account: AccountId,
    from: ToldPlace,
    limit: i64,
) -> Result<Option<ToldPart>, Error> {
    of_existing(snapshot, account, |snapshot| timeline::of_account(snapshot, account, from, limit))
}

/// Product events before one, newest first.
pub fn events(
    snapshot: &mut Snapshot,
    account: AccountId,
    before: Option<(Time, i64)>,
    limit: i64,
) -> Result<Option<Page<KeptActivity>>, Error> {
    of_existing(snapshot, account, |snapshot| activity::list(snapshot, account, before, limit))
}

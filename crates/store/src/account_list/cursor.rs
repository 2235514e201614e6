//! Where a page ended, as an opaque text: the sort, the account's id and its sort key.

use std::fmt;

use rapport_domain::id::{AccountId, base32};
use rapport_domain::text::refuse_nul;

use super::Sort;
use crate::error::Error;

const ID_BYTES: usize = 16;

/// A position in a list with a given sort.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    sort: Sort,
    place: Place,
}

/// A text that isn't a cursor, or one for another sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a cursor for this list and sort")]
pub struct NotACursor;

/// An account's position in an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub id: AccountId,
    pub key: Key,
}

/// The sort key that comes before the id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Key {
    Id,
    /// Folded.
    Name(String),
    /// Both are `keys::NEVER` for an account that was never seen.
    Seen {
        day: i64,
        at: i64,
    },
}

impl Cursor {
    pub(super) fn new(sort: Sort, place: Place) -> Self {
        Self { sort, place }
    }

    /// Parses a cursor that was issued for this sort.
    pub fn parse(text: &str, sort: Sort) -> Result<Self, NotACursor> {
        let bytes = base32().decode(text.as_bytes()).map_err(|_| NotACursor)?;
        let (tag, rest) = bytes.split_first().ok_or(NotACursor)?;
        let (id, key) = rest.split_first_chunk::<ID_BYTES>().ok_or(NotACursor)?;
        if *tag != tag_of(sort) {
            return Err(NotACursor);
        }
        let key = match sort {
            Sort::Newest | Sort::Oldest => key.is_empty().then_some(Key::Id),
            Sort::Name | Sort::NameDescending => name(key),
            Sort::LastSeen => seen(key),
        };
        let place = Place { id: AccountId::from_bytes(*id), key: key.ok_or(NotACursor)? };
        Ok(Self { sort, place })
    }

    pub(super) fn place(&self, sort: Sort) -> Result<&Place, Error> {
        if self.sort == sort {
            Ok(&self.place)
        } else {
            Err(Error::fault("the cursor belongs to another sort"))
        }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = vec![tag_of(self.sort)];
        bytes.extend_from_slice(self.place.id.as_bytes());
        match &self.place.key {
            Key::Id => {}
            Key::Name(name) => bytes.extend_from_slice(name.as_bytes()),
            Key::Seen { day, at } => {
                bytes.extend_from_slice(&day.to_be_bytes());
                bytes.extend_from_slice(&at.to_be_bytes());
            }
        }
        f.write_str(&base32().encode(&bytes))
    }
}

/// These never change: cursors outlive the process that issued them.
const fn tag_of(sort: Sort) -> u8 {
    match sort {
        Sort::Newest => 1,
        Sort::Oldest => 2,
        Sort::Name => 3,
        Sort::NameDescending => 4,
        Sort::LastSeen => 5,
    }
}

fn name(bytes: &[u8]) -> Option<Key> {
    let name = str::from_utf8(bytes).ok()?;
    refuse_nul(name).ok()?;
    Some(Key::Name(name.to_owned()))
}

fn seen(bytes: &[u8]) -> Option<Key> {
    let (day, at) = bytes.split_first_chunk::<8>()?;
    let at = at.try_into().ok()?;
    Some(Key::Seen { day: i64::from_be_bytes(*day), at: i64::from_be_bytes(at) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn place(sort: Sort) -> Place {
        let key = match sort {
            Sort::Newest | Sort::Oldest => Key::Id,
            Sort::Name | Sort::NameDescending => Key::Name("łódź & söhne".to_owned()),
            Sort::LastSeen => Key::Seen { day: 20_000, at: -5 },
        };
        Place { id: AccountId::from_bytes([7; 16]), key }
    }

    #[test]
    fn a_cursor_reads_back_in_its_own_sort_only() {
        for sort in Sort::ALL {
            let cursor = Cursor::new(sort, place(sort));
            let text = cursor.to_string();
            for other in Sort::ALL {
                let read = Cursor::parse(&text, other);
                assert_eq!(read, if other == sort { Ok(cursor.clone()) } else { Err(NotACursor) });
            }
            assert!(cursor.place(sort).is_ok());
        }
    }

    #[test]
    fn what_was_not_given_out_is_refused() {
        let cursor = Cursor::new(Sort::LastSeen, place(Sort::LastSeen)).to_string();
        let with_nul = Place { key: Key::Name("a\0b".to_owned()), ..place(Sort::Name) };
        let with_nul = Cursor::new(Sort::Name, with_nul).to_string();
        for (text, sort) in [
            ("", Sort::Newest),
            ("acc_", Sort::Newest),
            (&cursor[..cursor.len() - 2], Sort::LastSeen),
            (&cursor.to_uppercase(), Sort::LastSeen),
            (&with_nul, Sort::Name),
        ] {
            assert_eq!(Cursor::parse(text, sort), Err(NotACursor), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_parses_or_is_refused(text in "[0-9a-z]{0,80}", place in 0_usize..5) {
            if let Ok(cursor) = Cursor::parse(&text, Sort::ALL[place]) {
                prop_assert_eq!(cursor.to_string(), text);
            }
        }
    }
}

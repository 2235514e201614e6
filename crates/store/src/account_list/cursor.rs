//! Where a page ended, as an opaque text: the sort, the account's id and its sort key.

use std::fmt;

use rapport_domain::id::{AccountId, base32};
use rapport_domain::text::refuse_nul;

use super::sort::{By, Sort};
use super::sql::Sql;
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
    /// Both are `Order::never` for an account that was never seen.
    Seen {
        /// The minute that `at` is in.
        minute: i64,
        at: i64,
    },
    /// A time, the number of a change, or of a stage.
    Number(i64),
    /// A promo code, or the folded name of a channel.
    Text(String),
    Value {
        currency: String,
        amount: i64,
    },
    /// The account lacks what the list is ordered by.
    Missing,
}

impl Key {
    /// Binds the value of the column that a page is ordered by.
    pub fn bind<'a>(&'a self, sql: &mut Sql<'a>) {
        match self {
            Self::Number(number) | Self::Value { amount: number, .. } => sql.bind(*number),
            Self::Name(text) | Self::Text(text) => sql.bind(text),
            Self::Seen { at, .. } => sql.bind(*at),
            Self::Id | Self::Missing => sql.push("NULL"),
        };
    }
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
        let key = match sort.by {
            By::Created => key.is_empty().then_some(Key::Id),
            By::Name => name(key),
            By::LastSeen => seen(key),
            by => match key {
                [MISSING] => Some(Key::Missing),
                [PRESENT, key @ ..] => present(by, key),
                _ => None,
            },
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
            Key::Seen { minute, at } => {
                bytes.extend_from_slice(&minute.to_be_bytes());
                bytes.extend_from_slice(&at.to_be_bytes());
            }
            Key::Number(number) => {
                bytes.push(PRESENT);
                bytes.extend_from_slice(&number.to_be_bytes());
            }
            Key::Text(text) => {
                bytes.push(PRESENT);
                bytes.extend_from_slice(text.as_bytes());
            }
            Key::Value { currency, amount } => {
                bytes.push(PRESENT);
                bytes.extend_from_slice(&amount.to_be_bytes());
                bytes.extend_from_slice(currency.as_bytes());
            }
            Key::Missing => bytes.push(MISSING),
        }
        f.write_str(&base32().encode(&bytes))
    }
}

/// These never change: cursors outlive the process that issued them. Those with 5 and 6 were of days.
const fn tag_of(sort: Sort) -> u8 {
    match (sort.by, sort.descending) {
        (By::Created, true) => 1,
        (By::Created, false) => 2,
        (By::Name, false) => 3,
        (By::Name, true) => 4,
        (By::LastSeen, true) => 23,
        (By::LastSeen, false) => 24,
        (By::Status, false) => 7,
        (By::Status, true) => 8,
        (By::Value, false) => 9,
        (By::Value, true) => 10,
        (By::Channel, false) => 11,
        (By::Channel, true) => 12,
        (By::PromoCode, false) => 13,
        (By::PromoCode, true) => 14,
        (By::FirstSeen, false) => 15,
        (By::FirstSeen, true) => 16,
        (By::LastContact, false) => 17,
        (By::LastContact, true) => 18,
        (By::Acquired, false) => 19,
        (By::Acquired, true) => 20,
        (By::Updated, false) => 21,
        (By::Updated, true) => 22,
    }
}

/// Whether an account has what the list is ordered by.
const MISSING: u8 = 0;
const PRESENT: u8 = 1;

fn present(by: By, bytes: &[u8]) -> Option<Key> {
    match by {
        By::PromoCode | By::Channel => text(bytes).map(Key::Text),
        By::Value => {
            let (amount, currency) = bytes.split_first_chunk::<8>()?;
            Some(Key::Value { currency: text(currency)?, amount: i64::from_be_bytes(*amount) })
        }
        _ => Some(Key::Number(i64::from_be_bytes(bytes.try_into().ok()?))),
    }
}

fn name(bytes: &[u8]) -> Option<Key> {
    text(bytes).map(Key::Name)
}

fn text(bytes: &[u8]) -> Option<String> {
    let text = str::from_utf8(bytes).ok()?;
    refuse_nul(text).ok()?;
    Some(text.to_owned())
}

fn seen(bytes: &[u8]) -> Option<Key> {
    let (minute, at) = bytes.split_first_chunk::<8>()?;
    let at = at.try_into().ok()?;
    Some(Key::Seen { minute: i64::from_be_bytes(*minute), at: i64::from_be_bytes(at) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn place(sort: Sort) -> Place {
        let key = match sort.by {
            By::Created => Key::Id,
            By::Name => Key::Name("łódź & söhne".to_owned()),
            By::LastSeen => Key::Seen { minute: 20_000, at: -5 },
            By::Channel | By::PromoCode => Key::Text("messe köln".to_owned()),
            By::Value => Key::Value { currency: "EUR".to_owned(), amount: -12 },
            By::Acquired if sort.descending => Key::Missing,
            _ => Key::Number(-7),
        };
        Place { id: AccountId::from_bytes([7; 16]), key }
    }

    #[test]
    fn a_cursor_reads_back_in_its_own_sort_only() {
        for sort in Sort::all() {
            let cursor = Cursor::new(sort, place(sort));
            let text = cursor.to_string();
            for other in Sort::all() {
                let read = Cursor::parse(&text, other);
                assert_eq!(read, if other == sort { Ok(cursor.clone()) } else { Err(NotACursor) });
            }
            assert!(cursor.place(sort).is_ok());
        }
    }

    #[test]
    fn what_was_not_given_out_is_refused() {
        let (by_seen, by_name) = (By::LastSeen.descending(), By::Name.ascending());
        let cursor = Cursor::new(by_seen, place(by_seen)).to_string();
        let with_nul = Place { key: Key::Name("a\0b".to_owned()), ..place(by_name) };
        let with_nul = Cursor::new(by_name, with_nul).to_string();
        for (text, sort) in [
            ("", Sort::NEWEST),
            ("acc_", Sort::NEWEST),
            (&cursor[..cursor.len() - 2], by_seen),
            (&cursor.to_uppercase(), by_seen),
            (&with_nul, by_name),
        ] {
            assert_eq!(Cursor::parse(text, sort), Err(NotACursor), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_parses_or_is_refused(text in "[0-9a-z]{0,80}", place in 0_usize..22) {
            let sort = Sort::all().nth(place).unwrap();
            if let Ok(cursor) = Cursor::parse(&text, sort) {
                prop_assert_eq!(cursor.to_string(), text);
            }
        }
    }
}

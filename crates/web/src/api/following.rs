//! Cursors of lists that can be followed. Such a list never ends, so that its reader can always continue.

use rapport_app::read::feed::Place;
use rapport_domain::feed::has_expired;
use rapport_domain::invalid::Fault;
use rapport_domain::time::Time;

use crate::shared::parameters::{Parameters, read_cursor, write_cursor};

const TIME_BYTES: usize = 8;

/// Where a reader is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    pub place: Place,
    /// The reader has seen everything up to this time.
    pub complete_at: Time,
}

impl Cursor {
    /// Reads the cursor of a request for this list.
    pub fn of(parameters: &mut Parameters, list: u8, now: Time) -> Option<Self> {
        parameters.optional("cursor", |text| {
            let cursor = Self::parse(list, text)
                .ok_or_else(|| Fault::new("invalid_cursor", "is not a valid cursor for this list"))?;
            if has_expired(cursor.complete_at, now) {
                let detail = "is too old: what came after it may be gone; start again without a cursor";
                return Err(Fault::new("cursor_expired", detail));
            }
            Ok(cursor)
        })
    }

    fn parse(list: u8, text: &str) -> Option<Self> {
        let bytes: [u8; Place::BYTES + TIME_BYTES] = read_cursor(list, text)?;
        let (place, time) = bytes.split_first_chunk()?;
        let time = i64::from_be_bytes(time.try_into().ok()?);
        Some(Self { place: Place::from_bytes(*place), complete_at: Time::from_micros(time) })
    }

    pub fn write(self, list: u8) -> String {
        let time = self.complete_at.as_micros().to_be_bytes();
        write_cursor(list, &[self.place.to_bytes().as_slice(), &time].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_back_in_its_own_list_only() {
        let cursor =
            Cursor { place: Place { change: 7, id: [9; 16] }, complete_at: Time::from_micros(1_000) };
        let text = cursor.write(b'e');
        assert_eq!(Cursor::parse(b'e', &text), Some(cursor));
        assert_eq!(Cursor::parse(b'u', &text), None);
        assert_eq!(Cursor::parse(b'e', &text[2..]), None);
    }
}

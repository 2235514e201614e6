//! The order of changes, for readers that follow a table with a cursor and must not miss a row.
//!
//! A row of `account`, `account_tombstone` or `event` has the number of the change that wrote it last, in `change`. A
//! reader gets rows in the order of that number and of the id, and continues after the last one. Numbers are given
//! before the commit. On SQLite there is one writer at a time, and each continues after the newest number, so they are in
//! the order of the commits. On PostgreSQL they are not, so a row could appear behind a reader. Such a reader therefore
//! goes only up to [`Settled`], below which no row can appear any more.
//!
//! - A write takes no further lock and no further statement: the number is a value of the row itself. Events and deleted
//!   accounts have an index of it. Accounts change again and again, so they have a log instead, which a write only adds to
//!   (`account_changes.rs`): in an index of the account itself, another number would make each update write every index of
//!   the account on PostgreSQL, and a page far from all others on SQLite.
//! - Numbers only grow, also when a database is copied, restored from a backup or dump, or replaced by its standby: a new
//!   process (SQLite) or server (PostgreSQL) counts from the clock, in microseconds, which is above all numbers that
//!   were given before. So a cursor stays valid, and shows every change from then on.
//! - Rows from before there were numbers have 0.
//!
//! The alternative was a job that gives each row a position after its commit. It needs no numbers of transactions, but
//! writes every row twice, and readers wait for the job.

use crate::error::Error;
use crate::tx::Snapshot;

const ID_BYTES: usize = 16;
const NUMBER_BYTES: usize = 8;

/// A place in the order: after the row with this number and id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub change: i64,
    pub id: [u8; ID_BYTES],
}

impl Place {
    pub const BYTES: usize = NUMBER_BYTES + ID_BYTES;
    /// Before the first row.
    pub const START: Self = Self::before(0);

    /// Before the rows with this number.
    pub const fn before(change: i64) -> Self {
        Self { change: change - 1, id: [0xff; ID_BYTES] }
    }

    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..NUMBER_BYTES].copy_from_slice(&self.change.to_be_bytes());
        bytes[NUMBER_BYTES..].copy_from_slice(&self.id);
        bytes
    }

    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let (mut change, mut id) = ([0; NUMBER_BYTES], [0; ID_BYTES]);
        change.copy_from_slice(&bytes[..NUMBER_BYTES]);
        id.copy_from_slice(&bytes[NUMBER_BYTES..]);
        Self { change: i64::from_be_bytes(change), id }
    }
}

/// A number below which every change of the company is there, if it will ever be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settled(pub(crate) i64);

/// How far a reader may go in snapshots that are opened from now on. In this one, changes may be missing that were
/// committed between its beginning and this question.
pub fn settled(snapshot: &mut Snapshot) -> Result<Settled, Error> {
    snapshot.settled().map(Settled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_back_and_ordered_as_rows_are() {
        let places = [
            Place::START,
            Place { change: 0, id: [1; 16] },
            Place::before(1),
            Place { change: 1, id: [0xff; 16] },
            Place::before(i64::MAX),
        ];
        for place in places {
            assert_eq!(Place::from_bytes(place.to_bytes()), place);
        }
        assert!(places.windows(2).all(|pair| pair[0] < pair[1]));
    }
}

//! How changes are numbered on PostgreSQL, and up to which number all of them are there.
//!
//! A change has the number of its transaction, plus a shift. Transactions get their numbers in no particular order of
//! their commits, so a reader stops below the lowest number that belongs to a running transaction of its company. Which
//! ones run is known from the company's lock: a transaction takes it before it gets its number, and gives it back after
//! its rows can be seen.
//!
//! Transactions that change the same row follow each other, because they lock it, but not always in the order of their
//! numbers: one may have its number from a row that it locked before, and wait for this one. It would then be shown before
//! the change that it followed. So an update leaves out rows with a higher number than its own, and such a transaction runs
//! again, with a new number. The changes of a row, and the events that they cause, are therefore numbered in the order in
//! which they happened.
//!
//! Another server counts its transactions from elsewhere: one that a dump was restored on, or one that took over. A
//! server is known by when it started. The first connection to a new one chooses a higher shift: from the clock, which
//! moves faster than transactions are counted, and above every number there is.

use crate::dialect;
use crate::engine::Link;
use crate::error::Error;
use crate::value::Row;

/// Prepares a new connection. Nothing may be written before that.
pub fn begin(link: &mut Link) -> Result<(), Error> {
    for _ in 0..2 {
        if link.last_text(dialect::POSTGRES_NUMBER_CHANGES)?.is_some() {
            return Ok(());
        }
        // If another connection was faster, it changes nothing.
        link.batch(dialect::POSTGRES_SHIFT).map_err(|error| match error {
            Error::Again => {
                Error::Unavailable("another session holds the tables of numbered changes".to_owned())
            }
            other => other,
        })?;
    }
    Err(Error::fault("the table change_clock has lost its row"))
}

/// The number below which every change of a company is there, if it will ever be. It is for snapshots that are taken
/// from now on: transactions may have ended since that of these rows, which say who runs.
pub fn settled(rows: Vec<Row>) -> Result<i64, Error> {
    let mut settled = i64::MAX;
    for mut row in rows {
        let (shift, ended, running): (i64, i64, Option<i64>) = (row.take()?, row.take()?, row.take()?);
        let running = running.map_or(ended, |running| whole(running, ended));
        settled = settled.min(shift + running.min(ended));
    }
    Ok(settled)
}

/// A transaction's number in full: the server shows the lower 32 bits of it. No transaction is 2^31 older or newer than
/// another one.
fn whole(lower: i64, near: i64) -> i64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "only these bits are known")]
    let distance = (lower as u32).wrapping_sub(near as u32).cast_signed();
    near + i64::from(distance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Cell;

    #[test]
    fn a_number_is_completed_from_one_nearby() {
        const WRAP: i64 = 1 << 32;
        for (near, number) in [
            (5, 3),
            (5, 9),
            (WRAP + 5, WRAP - 2),
            (WRAP + 5, WRAP + 1),
            (WRAP - 2, WRAP + 1),
            (7 * WRAP, 7 * WRAP),
        ] {
            assert_eq!(whole(number % WRAP, near), number, "{number} near {near}");
        }
    }

    #[test]
    fn the_oldest_running_transaction_is_the_limit() {
        let row = |running: Option<i64>| {
            let running = running.map_or(Cell::Null, Cell::Int);
            let cells = [Cell::Int(1_000), Cell::Int(50), running];
            Row::read(cells.len(), |n| Ok::<_, Error>(cells[n].clone())).unwrap()
        };
        for (running, expected) in [
            (vec![None], 1_050),
            (vec![Some(48), Some(40)], 1_040),
            // It has its number since the snapshot.
            (vec![Some(53)], 1_050),
        ] {
            let found = settled(running.iter().map(|number| row(*number)).collect()).unwrap();
            assert_eq!(found, expected, "{running:?}");
        }
    }
}

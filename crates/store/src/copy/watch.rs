//! The caller of a copy: sees how far it is, may stop it, and says how much of the machine it may take.

use std::thread;
use std::time::{Duration, Instant};

use super::Error;

/// Longer rests would only make a copy that waited for something else wait twice.
const LONGEST_REST: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Pages of a file; the progress counts pages.
    Pages,
    /// Rows of a table.
    Copying,
    /// Rows of a table that are read again.
    Checking,
}

#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    pub step: Step,
    /// The table; empty for pages.
    pub table: &'a str,
    pub done: u64,
    /// How many there are, if that is known.
    pub total: Option<u64>,
    /// Whether this was the last of the table or of the pages.
    pub is_last: bool,
}

/// How fast a copy goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// As fast as it can.
    Full,
    /// Rests as long as it works, for the sake of a service on the same machine.
    Gentle,
}

pub struct Watch<'a> {
    /// Returns whether to go on.
    tell: Box<dyn FnMut(Progress) -> bool + Send + 'a>,
    pace: Pace,
    rested_at: Instant,
}

impl<'a> Watch<'a> {
    pub fn new(pace: Pace, tell: impl FnMut(Progress) -> bool + Send + 'a) -> Self {
        Self { tell: Box::new(tell), pace, rested_at: Instant::now() }
    }

    /// Nobody watches.
    pub fn nobody() -> Self {
        Self::new(Pace::Full, |_| true)
    }

    pub(super) fn is_gentle(&self) -> bool {
        self.pace == Pace::Gentle
    }

    pub(super) fn pages(&mut self, done: u64, total: u64) -> Result<(), Error> {
        let is_last = done >= total;
        self.note(Progress { step: Step::Pages, table: "", done, total: Some(total), is_last })
    }

    pub(super) fn step(&mut self, step: Step, table: &str, done: u64) -> Result<(), Error> {
        self.note(Progress { step, table, done, total: None, is_last: false })
    }

    pub(super) fn table_done(&mut self, step: Step, table: &str, rows: u64) -> Result<(), Error> {
        self.note(Progress { step, table, done: rows, total: Some(rows), is_last: true })
    }

    fn note(&mut self, progress: Progress) -> Result<(), Error> {
        if !(self.tell)(progress) {
            return Err(Error::Stopped);
        }
        if self.is_gentle() {
            thread::sleep(self.rested_at.elapsed().min(LONGEST_REST));
            self.rested_at = Instant::now();
        }
        Ok(())
    }
}

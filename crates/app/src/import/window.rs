//! The part of a file being read, filled from storage piece by piece.

use rapport_domain::import::Import;
use rapport_domain::import::reading::{self, Batch, Position};
use rapport_store::import_data::{self, CHUNK_BYTES};

use crate::App;
use crate::access::{Access, Needs};
use crate::error::Error;

/// Bytes of the file, from `start` on.
#[derive(Debug, Default)]
pub struct Window {
    start: i64,
    bytes: Vec<u8>,
}

impl Window {
    /// The next records from `at` on.
    pub async fn read(
        &mut self,
        (app, access): (&App, &Access),
        import: &Import,
        at: Position,
        most: usize,
    ) -> Result<Batch, Error> {
        self.begin_at(at.offset);
        loop {
            let skip = usize::try_from(at.offset - self.start).unwrap_or(0).min(self.bytes.len());
            let end = self.end();
            let window = reading::Window { bytes: &self.bytes[skip..], at, is_end: end >= import.bytes };
            if let Some(batch) = reading::read(window, import.layout(), most) {
                return Ok(batch);
            }
            let size = i64::try_from(CHUNK_BYTES).unwrap_or(i64::MAX);
            let number = end / size;
            let id = import.id;
            let read =
                app.read(access, Needs::Server, move |snapshot, _| import_data::chunk(snapshot, id, number));
            let Some(chunk) = read.await?.reply else {
                return Err(Error::Internal(format!("piece {number} of the file of {id} is missing")));
            };
            // A window that starts in the middle of a piece has only the rest of it.
            let known = usize::try_from(end % size).unwrap_or(0).min(chunk.len());
            self.bytes.extend_from_slice(&chunk[known..]);
        }
    }

    fn end(&self) -> i64 {
        self.start + i64::try_from(self.bytes.len()).unwrap_or(0)
    }

    /// Discards everything before `offset`, a piece at a time; starts over if it lies outside the window.
    fn begin_at(&mut self, offset: i64) {
        if offset < self.start || offset > self.end() {
            (self.start, self.bytes) = (offset, Vec::new());
        }
        let passed = usize::try_from(offset - self.start).unwrap_or(0);
        if passed >= CHUNK_BYTES {
            self.bytes.drain(..passed);
            self.start = offset;
        }
    }
}

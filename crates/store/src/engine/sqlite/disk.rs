//! The database file, open for syncing it beside SQLite.
//!
//! Closing any descriptor of a file drops the locks that SQLite holds on that file in this process. So every engine of
//! the process on one file shares one descriptor, and each thread that has a connection keeps it until its connection
//! is closed.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::error::Error;

/// A file's device and inode.
type Identity = (u64, u64);

/// The descriptors in use.
static OPEN: Mutex<Vec<(Identity, Weak<File>)>> = Mutex::new(Vec::new());

#[derive(Clone)]
pub struct Disk {
    file: Arc<File>,
    durable: bool,
}

impl Disk {
    /// The file at this path. Unless it is to be durable, it is never synced.
    pub fn of(path: &Path, durable: bool) -> Result<Self, Error> {
        let failed = |error| Error::Unavailable(format!("{} cannot be opened: {error}", path.display()));
        let metadata = std::fs::metadata(path).map_err(failed)?;
        let identity = (metadata.dev(), metadata.ino());
        let mut open = OPEN.lock();
        open.retain(|(_, file)| file.strong_count() > 0);
        let known = open.iter().find(|(other, _)| *other == identity);
        if let Some(file) = known.and_then(|(_, file)| file.upgrade()) {
            return Ok(Self { file, durable });
        }
        let file = Arc::new(File::open(path).map_err(failed)?);
        open.push((identity, Arc::downgrade(&file)));
        Ok(Self { file, durable })
    }

    /// Waits until what was written to the file has reached the disk.
    pub fn sync(&self) -> Result<(), Error> {
        let synced = if self.durable { self.file.sync_data() } else { Ok(()) };
        synced.map_err(|error| Error::Unavailable(format!("the database file cannot be synced: {error}")))
    }
}

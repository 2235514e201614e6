//! The database file, open for syncing it beside SQLite.
//!
//! Closing any descriptor of a file drops the locks that SQLite holds on that file in this process. So every engine of
//! the process on one file shares one descriptor, and each thread that has a connection keeps it until its connection
//! is closed.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::error::Error;

/// The descriptors in use, by device and inode.
static OPEN: Mutex<Option<HashMap<(u64, u64), Weak<File>>>> = Mutex::new(None);

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
        let mut open = OPEN.lock();
        let open = open.get_or_insert_default();
        open.retain(|_, file| file.strong_count() > 0);
        let key = (metadata.dev(), metadata.ino());
        if let Some(file) = open.get(&key).and_then(Weak::upgrade) {
            return Ok(Self { file, durable });
        }
        let file = Arc::new(File::open(path).map_err(failed)?);
        open.insert(key, Arc::downgrade(&file));
        Ok(Self { file, durable })
    }

    /// Waits until what was written to the file has reached the disk.
    pub fn sync(&self) -> Result<(), Error> {
        let synced = if self.durable { self.file.sync_data() } else { Ok(()) };
        synced.map_err(|error| Error::Unavailable(format!("the database file cannot be synced: {error}")))
    }
}

//! Notices when the database's files are deleted or replaced while they are in use.
//!
//! SQLite keeps writing to a file without a name, and everything written there is lost with the process. So a
//! commit is acknowledged only while the names still refer to the files that were opened. The check never
//! opens a file: closing it again would drop the locks that SQLite holds on it.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::log_of;
use crate::error::Error;
use crate::health::Health;

/// The database and its log as they were when they were opened.
#[derive(Clone)]
pub struct Files {
    files: Vec<File>,
    health: Arc<Health>,
}

#[derive(Clone)]
struct File {
    what: &'static str,
    path: PathBuf,
    identity: (u64, u64),
}

impl Files {
    /// Call this while a connection is open: the log exists only as long as there is one.
    pub fn watch(path: &Path, health: Arc<Health>) -> Result<Self, Error> {
        let file = |what, path: PathBuf| match identity(&path) {
            Ok(identity) => Ok(File { what, path, identity }),
            Err(error) => Err(Error::Unavailable(format!("{what} {}: {error}", path.display()))),
        };
        let files =
            vec![file("the database file", path.to_owned())?, file("the write-ahead log", log_of(path))?];
        Ok(Self { files, health })
    }

    /// Checks whether the files are still there, and updates the store's health.
    pub fn check(&self) -> Result<(), Error> {
        self.health.set_fault(self.files.iter().find_map(File::fault));
        self.health.check_fault()
    }
}

impl File {
    fn fault(&self) -> Option<String> {
        let what = format!("{} {}", self.what, self.path.display());
        match identity(&self.path) {
            Ok(identity) if identity == self.identity => None,
            Ok(_) => Some(format!("{what} was replaced while in use: put the original back, or restart")),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Some(format!("{what} was deleted or moved while in use: put it back, or restart"))
            }
            Err(error) => Some(format!("{what} cannot be found: {error}")),
        }
    }
}

fn identity(path: &Path) -> std::io::Result<(u64, u64)> {
    let metadata = fs::metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

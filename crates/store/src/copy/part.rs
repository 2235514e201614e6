//! A file under a temporary name, which gets its real name once it is complete and on the disk.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::{Error, Watch};

const OWNER_ONLY: u32 = 0o600;
const SUFFIX: &str = ".part";

/// What a copy that fails leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leftover {
    /// An empty file, so that no service takes the place for a new one and starts there without its data.
    Mark,
    Nothing,
}

pub struct Part {
    target: PathBuf,
    path: PathBuf,
    /// Open until the end: closing it would drop the locks that SQLite holds on the file.
    file: File,
    leftover: Leftover,
    is_gentle: bool,
    is_finished: bool,
}

impl Part {
    /// Only its owner can read the file from the start.
    pub fn create(target: &Path, leftover: Leftover, watch: &Watch) -> Result<Self, Error> {
        let path = part_of(target);
        let failed = |error: io::Error| Error::File(format!("{} cannot be written: {error}", path.display()));
        let create = || -> io::Result<File> {
            // Left behind by a copy that was killed.
            remove_with_logs(&path)?;
            OpenOptions::new().read(true).write(true).create_new(true).mode(OWNER_ONLY).open(&path)
        };
        let file = create().map_err(failed)?;
        Ok(Self {
            target: target.to_owned(),
            path,
            file,
            leftover,
            is_gentle: watch.is_gentle(),
            is_finished: false,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Called after every little that is written: a gentle copy syncs it, so that no commit of a service on the
    /// same disk has to wait for all of it at the end.
    pub fn sync_some(&self) -> Result<(), Error> {
        if self.is_gentle { self.sync() } else { Ok(()) }
    }

    fn sync(&self) -> Result<(), Error> {
        self.file.sync_data().map_err(|error| {
            Error::File(format!("{} cannot be written to the disk: {error}", self.path.display()))
        })
    }

    /// Gives the file its name. No connection may be open on it any more.
    pub fn finish(mut self) -> Result<(), Error> {
        self.sync()?;
        let directory = self.target.parent().filter(|directory| !directory.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        // An old log would be applied to the new file.
        let named = remove_with_logs(&self.target)
            .and_then(|()| fs::rename(&self.path, &self.target))
            .and_then(|()| File::open(directory)?.sync_all());
        named
            .map_err(|error| Error::File(format!("{} cannot be written: {error}", self.target.display())))?;
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        // It frees the disk, which may be full.
        let _ = self.file.set_len(0);
        let _ = match self.leftover {
            Leftover::Mark => remove_logs(&self.path),
            Leftover::Nothing => remove_with_logs(&self.path),
        };
    }
}

/// The temporary name of a file.
pub fn part_of(target: &Path) -> PathBuf {
    with_suffix(target, SUFFIX)
}

fn remove_with_logs(path: &Path) -> io::Result<()> {
    remove(path)?;
    remove_logs(path)
}

fn remove_logs(path: &Path) -> io::Result<()> {
    ["-wal", "-shm", "-journal"].iter().try_for_each(|suffix| remove(&with_suffix(path, suffix)))
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

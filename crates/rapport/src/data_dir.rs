//! The data directory, and the locks that keep two services off one embedded database.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use rapport_store::Database;

use crate::config::Config;

const LOCK_FILE: &str = "rapport.lock";
/// Locked by the node that runs from a data directory, if the database is PostgreSQL.
const NODE_LOCK_FILE: &str = "node.lock";
/// Changes with every boot of the kernel.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const OWNER_ONLY_DIR: u32 = 0o700;
const OWNER_ONLY_FILE: u32 = 0o600;

/// Creates the directory if it is missing, and checks that it is writable.
pub fn prepare(config: &Config) -> anyhow::Result<()> {
    let path = &config.data_dir.value;
    let unusable = || format!("the data directory {} cannot be used (--data-dir)", path.display());
    create(path).with_context(unusable)?;
    tempfile::tempfile_in(path).with_context(unusable)?;
    Ok(())
}

/// Creates a directory that only its owner can read, unless it exists.
pub fn create(path: &Path) -> std::io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(OWNER_ONLY_DIR).create(path)
}

/// Proof that no service uses an embedded database, for a command that writes it anew. Held until dropped.
pub fn lock_database(database: &Path, flag: &str) -> anyhow::Result<File> {
    lock(&beside(database), "database", flag)
}

/// Checks that the directory exists, for commands that work on what a service made there.
pub fn require(config: &Config) -> anyhow::Result<()> {
    let path = &config.data_dir.value;
    let is_needed = config.database.value.is_sqlite() || config.secret_key_file.is_default();
    if is_needed && !path.is_dir() {
        bail!(
            "the data directory {} does not exist (--data-dir): rapport serve or rapport company create creates it",
            path.display()
        );
    }
    Ok(())
}

/// Proof that no other service uses the data directory or its embedded database. Held until dropped; the
/// operating system releases the locks however the process ends.
pub struct Locks {
    _files: Vec<File>,
    identity: Option<String>,
}

impl Locks {
    /// Takes the locks. On PostgreSQL any number of nodes may run, even from one directory; the first one there
    /// gets the directory's lock.
    pub fn take(config: &Config) -> anyhow::Result<Self> {
        let Database::Sqlite(database) = &config.database.value.0 else {
            let locked = lock_place(&config.data_dir.value.join(NODE_LOCK_FILE));
            let (file, identity) = locked.unzip();
            return Ok(Self { _files: file.into_iter().collect(), identity });
        };
        let data_dir = lock(&config.data_dir.value.join(LOCK_FILE), "data directory", "--data-dir")?;
        // A service with its own data directory may still have been given the same database.
        let database = lock(&beside(database), "database", "--database")?;
        Ok(Self { _files: vec![data_dir, database], identity: None })
    }

    /// The name of the place that only this process holds. The process that held it before is dead.
    pub fn identity(&self) -> Option<&str> {
        self.identity.as_deref()
    }
}

/// Locks a file, and names it so that nobody else can hold a lock with that name: the name identifies the file
/// and the running kernel. A copy of the directory has another inode, a copy of the machine another boot id.
/// After a reboot the name is new too, and the former node counts as dead after a while of silence, like any other.
fn lock_place(path: &Path) -> Option<(File, String)> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(OWNER_ONLY_FILE);
    let file = options.open(path).ok()?;
    file.try_lock().ok()?;
    let boot = fs::read_to_string(BOOT_ID).ok()?;
    let metadata = file.metadata().ok()?;
    // If the file was deleted and recreated between opening and locking, the path belongs to someone else now.
    let there = fs::metadata(path).ok()?;
    let same = (there.dev(), there.ino()) == (metadata.dev(), metadata.ino());
    same.then(|| (file, format!("{}/{:x}/{:x}", boot.trim(), metadata.dev(), metadata.ino())))
}

/// The database's lock file. Never the database itself: closing it would drop the locks SQLite holds on it.
fn beside(database: &Path) -> PathBuf {
    let mut name = OsString::from(database);
    name.push(".lock");
    PathBuf::from(name)
}

fn lock(path: &Path, what: &str, flag: &str) -> anyhow::Result<File> {
    let cannot = || format!("the lock file {} cannot be used ({flag})", path.display());
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(OWNER_ONLY_FILE);
    let mut file = options.open(path).with_context(cannot)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut owner = String::new();
            let _ = file.read_to_string(&mut owner);
            bail!(
                "another rapport (process {}) is running on this {what}, {}: stop it, or choose another with {flag}",
                owner.trim(),
                path.parent().filter(|_| what == "data directory").unwrap_or(path).display()
            );
        }
        Err(TryLockError::Error(error)) => return Err(error).with_context(cannot),
    }
    // Only for people who look into the file; what counts is the lock.
    file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).with_context(cannot)?;
    Ok(file)
}

/// Whether users other than the owner can access the directory.
pub fn is_open_to_others(path: &Path) -> std::io::Result<bool> {
    use std::os::unix::fs::PermissionsExt as _;
    Ok(fs::metadata(path)?.permissions().mode() & 0o077 != 0)
}

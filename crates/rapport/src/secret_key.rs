//! The file with the key that encrypts the secrets in the database. It lives outside the database, so that a
//! backup alone does not reveal webhook secrets.
//!
//! The file has one key per line: normally one, and two while the key is changed. The first key is the one that a
//! new database gets.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use rapport_app::vault::{KEY_BYTES, Key, fingerprint};
use rapport_app::{Random, Vault};
use tempfile::NamedTempFile;

use crate::config::Config;

pub struct SecretKey {
    path: PathBuf,
    keys: Vec<Key>,
    /// Whether the keys are in the file. A new key is saved once the database is known to have no other.
    is_saved: bool,
}

impl SecretKey {
    /// Reads the key file. If the default one, in the data directory, is missing, makes a key for a new database.
    pub fn load(config: &Config, random: &dyn Random) -> anyhow::Result<Self> {
        let path = &config.secret_key_file.value;
        if config.secret_key_file.is_default() && !path.exists() {
            return Ok(Self { path: path.clone(), keys: vec![new_key(random)], is_saved: false });
        }
        Self::read(path)
    }

    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let keys = read_keys(path)?;
        Ok(Self { path: path.to_owned(), keys, is_saved: true })
    }

    /// Saves a new key. If another process was faster, its key stays; returns what is in the file.
    pub fn save(&self) -> anyhow::Result<Self> {
        let cannot = || format!("the key file {} cannot be created (--data-dir)", self.path.display());
        if !self.is_saved {
            create(&self.path, &self.keys).with_context(cannot)?;
        }
        Self::read(&self.path)
    }

    pub fn is_saved(&self) -> bool {
        self.is_saved
    }

    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    pub fn fingerprints(&self) -> Vec<String> {
        self.keys.iter().map(fingerprint).collect()
    }

    /// A vault that reads the file again when a key is missing.
    pub fn vault(&self) -> Vault {
        let path = self.path.clone();
        Vault::reading(&self.keys, move || {
            if path.exists() {
                read_keys(&path).map_err(|error| format!("{error:#}"))
            } else {
                Ok(Vec::new())
            }
        })
    }

    /// As the key file holds them.
    pub fn to_hex(&self) -> String {
        self.keys.iter().map(|key| HEXLOWER.encode(key)).collect::<Vec<_>>().join("\n")
    }

    /// Writes the keys from a backup to a file that doesn't exist yet.
    pub fn install(path: &Path, hex: &str) -> anyhow::Result<()> {
        let keys: Option<Vec<Key>> = hex.lines().map(from_hex).collect();
        let Some(keys) = keys.filter(|keys| !keys.is_empty()) else {
            bail!("the backup contains no valid key")
        };
        Ok(create(path, &keys)?)
    }
}

pub fn new_key(random: &dyn Random) -> Key {
    let mut key = [0; KEY_BYTES];
    random.fill(&mut key);
    key
}

fn read_keys(path: &Path) -> anyhow::Result<Vec<Key>> {
    let text = fs::read_to_string(path)
        .with_context(|| format!("the key file {} cannot be read (--secret-key-file)", path.display()))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let keys: Option<Vec<Key>> = lines.map(from_hex).collect();
    match keys {
        Some(keys) if !keys.is_empty() => Ok(keys),
        _ => bail!(
            "the key file {} must contain {} hexadecimal digits (--secret-key-file)",
            path.display(),
            KEY_BYTES * 2
        ),
    }
}

/// Creates a key file that nobody ever reads half of. If it exists already, it stays.
pub fn create(path: &Path, keys: &[Key]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    match written(directory, keys)?.persist_noclobber(path) {
        Ok(_) => File::open(directory)?.sync_all(),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error.error),
    }
}

/// Replaces the keys in a file at once. The file keeps its owner and permissions, so that everyone who could read it
/// still can.
pub fn replace(path: &Path, keys: &[Key]) -> io::Result<()> {
    let path = fs::canonicalize(path)?;
    let directory = path.parent().unwrap_or(Path::new("/"));
    let file = written(directory, keys)?;
    let before = fs::metadata(&path)?;
    let made = file.as_file().metadata()?;
    if (before.uid(), before.gid()) != (made.uid(), made.gid()) {
        chown(file.path(), Some(before.uid()), Some(before.gid()))?;
    }
    file.as_file().set_permissions(before.permissions())?;
    file.as_file().sync_all()?;
    file.persist(&path).map_err(|error| error.error)?;
    File::open(directory)?.sync_all()
}

fn written(directory: &Path, keys: &[Key]) -> io::Result<NamedTempFile> {
    // A temporary file is private to its owner from the start.
    let mut file = NamedTempFile::new_in(directory)?;
    for key in keys {
        writeln!(file, "{}", HEXLOWER.encode(key))?;
    }
    file.as_file().sync_all()?;
    Ok(file)
}

fn from_hex(text: &str) -> Option<Key> {
    HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_key_is_created_once_and_only_for_its_owner() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret.key");
        create(&path, &[[1; KEY_BYTES]]).unwrap();
        create(&path, &[[2; KEY_BYTES]]).unwrap();
        assert_eq!(SecretKey::read(&path).unwrap().keys, [[1; KEY_BYTES]]);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "a temporary file was left behind");
    }

    #[test]
    fn replacing_keys_keeps_a_link_and_the_permissions() {
        let directory = tempfile::tempdir().unwrap();
        let (path, link) = (directory.path().join("real.key"), directory.path().join("secret.key"));
        create(&path, &[[1; KEY_BYTES]]).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        replace(&link, &[[1; KEY_BYTES], [2; KEY_BYTES]]).unwrap();
        assert_eq!(SecretKey::read(&path).unwrap().keys, [[1; KEY_BYTES], [2; KEY_BYTES]]);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn invalid_keys_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        let half = format!("{}\nabc\n", "a".repeat(64));
        for bad in ["", "\n", "abc", &"g".repeat(64), &"a".repeat(66), &"é".repeat(32), &half] {
            fs::write(&path, bad).unwrap();
            assert!(SecretKey::read(&path).is_err(), "{bad}");
        }
        fs::write(&path, format!("{}\n", "aB".repeat(32))).unwrap();
        assert_eq!(SecretKey::read(&path).unwrap().keys, [[0xab; KEY_BYTES]]);
    }
}

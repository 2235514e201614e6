//! The key that encrypts the secrets in the database. It lives outside the database, so that a backup
//! alone does not reveal webhook secrets.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use anyhow::{Context as _, bail};
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use rapport_app::{Random, Vault};
use ring::digest::{SHA256, digest};

use crate::config::Config;

const KEY_BYTES: usize = 32;

pub struct SecretKey([u8; KEY_BYTES]);

impl SecretKey {
    /// Reads the key file. The default one, in the data directory, is created if it is missing.
    pub fn load(config: &Config, random: &dyn Random) -> anyhow::Result<Self> {
        let path = &config.secret_key_file.value;
        if config.secret_key_file.is_default() && !path.exists() {
            let made = create(path, random);
            made.with_context(|| format!("the key file {} cannot be created (--data-dir)", path.display()))?;
        }
        Self::read(path)
    }

    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(path)
            .with_context(|| format!("the key file {} cannot be read (--secret-key-file)", path.display()))?;
        let Some(bytes) = from_hex(text.trim()) else {
            bail!(
                "the key file {} must contain {} hexadecimal digits (--secret-key-file)",
                path.display(),
                KEY_BYTES * 2
            );
        };
        Ok(Self(bytes))
    }

    pub fn vault(&self) -> Vault {
        Vault::new(&self.0)
    }

    /// Tells keys apart without revealing them: all nodes of one database must show the same fingerprint.
    pub fn fingerprint(&self) -> String {
        HEXLOWER.encode(&digest(&SHA256, &self.0).as_ref()[..4])
    }
}

/// Writes a temporary file and then gives it its name, so that nobody ever reads half a key. If another
/// process was faster, its key stays.
fn create(path: &Path, random: &dyn Random) -> io::Result<()> {
    let mut bytes = [0; KEY_BYTES];
    random.fill(&mut bytes);
    let directory = path.parent().unwrap_or(Path::new("."));
    // A temporary file is private to its owner from the start.
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    writeln!(file, "{}", HEXLOWER.encode(&bytes))?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        Ok(_) => fs::File::open(directory)?.sync_all(),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error.error),
    }
}

fn from_hex(text: &str) -> Option<[u8; KEY_BYTES]> {
    HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::clock::OsRandom;

    #[test]
    fn a_key_is_created_once_and_only_for_its_owner() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret.key");
        let random = OsRandom::new();
        create(&path, &random).unwrap();
        let first = SecretKey::read(&path).unwrap();
        create(&path, &random).unwrap();
        assert_eq!(SecretKey::read(&path).unwrap().0, first.0);
        assert_ne!(first.0, [0; KEY_BYTES]);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "a temporary file was left behind");
    }

    #[test]
    fn invalid_keys_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        for bad in ["", "abc", &"g".repeat(64), &"a".repeat(66), &"é".repeat(32)] {
            fs::write(&path, bad).unwrap();
            assert!(SecretKey::read(&path).is_err(), "{bad}");
        }
        fs::write(&path, format!("{}\n", "aB".repeat(32))).unwrap();
        assert_eq!(SecretKey::read(&path).unwrap().0, [0xab; KEY_BYTES]);
    }
}

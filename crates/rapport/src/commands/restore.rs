//! `rapport restore`: puts a backup into an empty data directory or an empty PostgreSQL database.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use rapport_store::Database;
use rapport_store::copy::Pace;
use rapport_store::copy::backup::{About, about, restore, verify};

use super::{backup, print, progress};
use crate::cli;
use crate::config::Config;
use crate::data_dir;
use crate::secret_key::SecretKey;

pub fn run(config: &Config, arguments: &cli::Restore) -> anyhow::Result<ExitCode> {
    let (file, to) = (arguments.file.as_path(), &config.database.value);
    refuse_other_key(config, file, &about(file)?)?;
    let verified = verify(file, &mut progress::shown(Pace::Full))?;
    data_dir::prepare(config)?;
    let _lock = match &to.0 {
        Database::Sqlite(path) => Some(data_dir::lock_database(path, "--database")?),
        Database::Postgres(_) => None,
    };
    // Before the data: if this is interrupted, it can be run again.
    let key = install_key(config, &verified.about)?;
    let restored = restore(file, &verified, &to.0, &mut progress::shown(Pace::Full));
    restored.with_context(|| format!("{} was not restored to {to}", file.display()))?;
    let mut text = backup::describe(file, &verified);
    let _ = writeln!(text, "Restored to {to}.\n{key}");
    print(&text)
}

/// A service with another key could not decrypt the secrets in the backup.
fn refuse_other_key(config: &Config, file: &Path, about: &About) -> anyhow::Result<()> {
    let path = &config.secret_key_file.value;
    let (true, Some(needed)) = (path.exists(), &about.fingerprint) else { return Ok(()) };
    let key = SecretKey::read(path)?;
    let found = key.fingerprints();
    if !found.contains(needed) {
        let found = found.join(" and ");
        bail!(
            "{} needs the key with fingerprint {needed}, but {} has {found} (--secret-key-file): put the right key \
             there, or move that one away",
            file.display(),
            path.display()
        );
    }
    Ok(())
}

/// Writes the backup's key, if it has one, unless a key file exists. Returns what to tell the operator.
fn install_key(config: &Config, about: &About) -> anyhow::Result<String> {
    let path = &config.secret_key_file.value;
    let shown = path.display();
    if path.exists() {
        return Ok(format!("The key in {shown} stays."));
    }
    let Some(key) = &about.key else {
        let needed = about.fingerprint.as_deref().unwrap_or("unknown");
        return Ok(format!(
            "The encryption key is not in the backup: put the key with fingerprint {needed} into {shown} before you \
             start the service."
        ));
    };
    let installed = SecretKey::install(path, key);
    installed.with_context(|| format!("the key file {shown} cannot be written (--secret-key-file)"))?;
    Ok(format!("The key from the backup is in {shown}."))
}

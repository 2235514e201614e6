//! Makes sure that the key file and the database belong together, before anything is encrypted or decrypted.

use anyhow::{Context as _, bail};
use rapport_app::encryption_key::{self, Fit};
use rapport_app::{App, patiently_blocking};

use crate::commands::explained;
use crate::config::Config;
use crate::secret_key::SecretKey;

/// Checks that the file has the database's key, and returns the fingerprint. A database without a key gets the one
/// in the file, which is created if it is missing.
pub fn agree(config: &Config, app: &App, key: &SecretKey) -> anyhow::Result<String> {
    let mut fit = patiently_blocking(|| encryption_key::examine(app)).map_err(explained)?;
    if let Fit::Unclaimed { fingerprint, unreadable } = fit {
        // The file comes first: a database that names a key which nobody kept could not be used.
        let saved = key.save()?;
        app.services().vault().refresh();
        let first = || saved.fingerprints().into_iter().next();
        let fingerprint = fingerprint.filter(|_| key.is_saved()).or_else(first);
        if unreadable > 0 {
            tracing::warn!(secrets = unreadable, "some secrets were encrypted with a lost key");
        }
        let fingerprint = fingerprint.context("the key file is empty")?;
        patiently_blocking(|| encryption_key::adopt(app, fingerprint.clone())).map_err(explained)?;
        fit = patiently_blocking(|| encryption_key::examine(app)).map_err(explained)?;
    }
    match fit {
        Fit::Known(noted) => Ok(noted.fingerprint),
        other => bail!(refusal(config, Some(key).filter(|key| key.is_saved()), &other)),
    }
}

/// Why the keys in the file, or the missing file, can't be used with the database, and what to do.
pub fn refusal(config: &Config, key: Option<&SecretKey>, fit: &Fit) -> String {
    let path = config.secret_key_file.value.display();
    let held = match key {
        Some(key) => {
            let fingerprints = key.fingerprints();
            let keys = if fingerprints.len() == 1 { "key" } else { "keys" };
            format!("the key file {path} has the {keys} {}", fingerprints.join(" and "))
        }
        None => format!("the key file {path} is missing"),
    };
    let needed = match fit {
        Fit::Missing(needed) => {
            format!("the database's secrets are encrypted with the key {}", needed.join(" and "))
        }
        Fit::Unreadable(secrets) => {
            format!("the database has secrets ({secrets}) that were encrypted with another key")
        }
        Fit::Known(_) | Fit::Unclaimed { .. } => "the database accepts it".to_owned(),
    };
    format!(
        "{held}, but {needed}: put that key back, from a backup or from another node, or name its file with \
         --secret-key-file. If it is lost, run rapport key reset"
    )
}

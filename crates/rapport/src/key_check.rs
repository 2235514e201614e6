//! Compares the key file with the database without changing either, for `rapport doctor` and `rapport key`.

use rapport_app::Vault;
use rapport_app::encryption_key::{Fit, Noted, Opened};
use rapport_store::doctor;

use crate::config::Config;
use crate::key_agreement::refusal;
use crate::secret_key::SecretKey;

pub struct KeyCheck {
    /// Nothing if the default file does not exist.
    pub key: Option<SecretKey>,
    pub noted: Option<Noted>,
    fit: Fit,
}

/// Why the key could not be compared.
pub enum Unchecked {
    KeyFile(anyhow::Error),
    Database(String),
}

impl KeyCheck {
    pub fn make(config: &Config) -> Result<Self, Unchecked> {
        let path = &config.secret_key_file.value;
        let is_missing = config.secret_key_file.is_default() && !path.exists();
        let key = if is_missing { None } else { Some(SecretKey::read(path).map_err(Unchecked::KeyFile)?) };
        let vault = key.as_ref().map_or_else(|| Vault::reading(&[], || Ok(Vec::new())), SecretKey::vault);
        let found = doctor::encryption(&config.database.value.0).map_err(Unchecked::Database)?;
        let mut opened = Opened::default();
        for (owner, secret) in &found.some_secrets {
            opened.add(&vault, *owner, secret);
        }
        let fit = Fit::of(&vault, found.noted.clone(), &opened);
        Ok(Self { key, noted: found.noted, fit })
    }

    /// Why the service would refuse to start with this key.
    pub fn problem(&self, config: &Config) -> Option<String> {
        match &self.fit {
            Fit::Known(_) | Fit::Unclaimed { .. } => None,
            fit => Some(refusal(config, self.key.as_ref(), fit)),
        }
    }
}

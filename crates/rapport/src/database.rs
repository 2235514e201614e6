//! Opening the database, with messages that say which setting to change.

use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use rapport_app::{App, Clock, Random};
use rapport_store::{Error, Store};

use crate::clock::SystemClock;
use crate::commands::explained;
use crate::config::Config;
use crate::secret_key::SecretKey;

/// Opens the database. `store` sets the threads, which differ between the service and the commands.
pub fn open(
    config: &Config,
    store: &rapport_store::Config,
    random: Arc<dyn Random>,
    secret_key: &SecretKey,
) -> anyhow::Result<App> {
    let app = open_at(config, store, Arc::new(SystemClock::new()), random, secret_key)?;
    // Before anything is written with this machine's own time.
    app.follow_database_clock_blocking().map_err(explained).with_context(|| unusable(config))?;
    Ok(app)
}

/// The same with another clock.
pub fn open_at(
    config: &Config,
    store: &rapport_store::Config,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    secret_key: &SecretKey,
) -> anyhow::Result<App> {
    let opened = Store::open(store).map_err(|error| anyhow!(detail(error)));
    let store = opened.with_context(|| unusable(config))?;
    Ok(App::new(store, clock, random, secret_key.vault()))
}

/// Brings the schema up to date, and returns its version.
pub fn migrate(config: &Config) -> anyhow::Result<i64> {
    let migrated = rapport_store::migrate_only(&config.database.value.0);
    migrated.map_err(|error| anyhow!(detail(error))).with_context(|| unusable(config))
}

/// The error's message, without the store's own prefix.
pub fn detail(error: Error) -> String {
    match error {
        Error::Unavailable(detail) | Error::Fault(detail) => detail,
        other => other.to_string(),
    }
}

fn unusable(config: &Config) -> String {
    format!("the database {} cannot be used (--database)", config.database.value)
}

//! Opening the database, with messages that say which setting to change.

use anyhow::{Context as _, anyhow};
use rapport_app::{App, Parts, patiently_blocking};
use rapport_store::{Error, Progress, Store};

use crate::commands::explained;
use crate::config::Config;

/// Opens the database. `store` sets the threads, which differ between the service and the commands.
pub fn open(config: &Config, store: &rapport_store::Config, parts: Parts) -> anyhow::Result<App> {
    let app = open_alone(config, store, parts)?;
    // Before anything is written with this machine's own time.
    let followed = patiently_blocking(|| app.follow_database_clock_blocking());
    followed.map_err(explained).with_context(|| unusable(config))?;
    Ok(app)
}

/// The same for a process that shares the database with no other one, so its clock follows nothing.
pub fn open_alone(config: &Config, store: &rapport_store::Config, parts: Parts) -> anyhow::Result<App> {
    let opened = Store::open(store).map_err(|error| anyhow!(detail(error)));
    let store = opened.with_context(|| unusable(config))?;
    Ok(App::new(store, parts))
}

/// Brings the schema up to date, saying how far it is, and returns its version.
pub fn migrate(config: &Config, tell: &mut dyn FnMut(&Progress)) -> anyhow::Result<i64> {
    let migrated = rapport_store::migrate_and_tell(&config.database.value.0, tell);
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

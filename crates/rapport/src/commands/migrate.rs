//! `rapport migrate`: brings the schema up to date without starting the service.

use std::process::ExitCode;

use super::print;
use crate::config::Config;
use crate::{data_dir, database};

pub fn run(config: &Config) -> anyhow::Result<ExitCode> {
    if config.database.value.is_sqlite() {
        data_dir::prepare(config)?;
    }
    let version = database::migrate(config)?;
    print(&format!("{} is at schema version {version}.\n", config.database.value))
}

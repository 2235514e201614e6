//! `rapport migrate`: brings the schema up to date without serving.

use std::process::ExitCode;

use super::print;
use crate::config::Config;
use crate::{data_dir, database};

pub fn run(config: &Config) -> anyhow::Result<ExitCode> {
    if config.database.value.is_sqlite() {
        data_dir::prepare(config)?;
    }
    let version = database::migrate(config)?;
    print(&format!("{} has schema version {version}.\n", config.database.value))
}

//! `rapport migrate`: brings the schema up to date without starting the service.

use std::io::Write as _;
use std::process::ExitCode;

use rapport_store::Progress;

use super::print;
use crate::config::Config;
use crate::{data_dir, database};

pub fn run(config: &Config) -> anyhow::Result<ExitCode> {
    if config.database.value.is_sqlite() {
        data_dir::require(config)?;
    }
    // Not part of the result, and not worth failing for if the terminal is gone.
    let mut tell = |progress: &Progress| {
        let _ = writeln!(std::io::stderr(), "{progress}");
    };
    let version = database::migrate(config, &mut tell)?;
    print(&format!("{} is at schema version {version}.\n", config.database.value))
}

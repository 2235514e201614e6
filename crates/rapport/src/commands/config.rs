//! `rapport config`: the effective configuration, each value with its origin.

use std::process::ExitCode;

use super::print;
use crate::config::Config;

pub fn run(config: &Config) -> anyhow::Result<ExitCode> {
    print(&config.to_toml())
}

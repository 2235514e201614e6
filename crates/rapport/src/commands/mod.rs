//! The commands, one file each. All but `serve` may run next to a running service.

mod backup;
mod company;
mod company_deletion;
mod config;
mod copy;
mod doctor;
mod encryption_key;
mod export;
mod health;
mod import;
mod key;
mod mail;
mod migrate;
mod person;
mod progress;
pub mod reference;
mod restore;
mod token;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use rapport_app::{Access, App, Command as UseCase, Error, Parts, patiently_blocking};
use rapport_domain::company::{Company, Slug};
use rapport_domain::invalid::FieldError;
use serde_json::Value;

use crate::cli::{AccountCommand, Command};
use crate::clock::{OsRandom, SystemClock};
use crate::config::Config;
use crate::secret_key::SecretKey;
use crate::{data_dir, database, demo, key_agreement, listen, mailing, serve, telemetry, unknown_variables};

pub fn run(command: Option<Command>, config: &Config) -> anyhow::Result<ExitCode> {
    match command {
        None | Some(Command::Serve) => serve::run(config),
        Some(command) => {
            telemetry::log_of_command(config);
            unknown_variables::warn();
            match command {
                Command::Serve | Command::Completions { .. } | Command::Man { .. } => {
                    unreachable!("run before this")
                }
                Command::Config => config::run(config),
                Command::Company(command) => company::run(config, command),
                Command::Account(AccountCommand::Export(arguments)) => export::account(config, &arguments),
                Command::Token(command) => token::run(config, command),
                Command::Key(arguments) => key::run(config, arguments.command),
                Command::Person(command) => person::run(config, &command),
                Command::Mail(command) => mail::run(config, &command),
                Command::Import(arguments) => import::run(config, &arguments),
                Command::Migrate => migrate::run(config),
                Command::Backup(arguments) => backup::run(config, &arguments),
                Command::Restore(arguments) => restore::run(config, &arguments),
                Command::Copy(arguments) => copy::run(&arguments),
                Command::Doctor => doctor::run(config),
                Command::Health => health::run(config),
                Command::Listen(options) => listen::run(config, &options),
                Command::Demo(options) => demo::run(config, &options),
            }
        }
    }
}

/// Opens the database next to a service that may be running.
fn open_beside(config: &Config) -> anyhow::Result<App> {
    let (app, key) = open_whatever_key(config)?;
    key_agreement::agree(config, &app, &key)?;
    Ok(app)
}

/// The same although the key file may not be the database's.
fn open_whatever_key(config: &Config) -> anyhow::Result<(App, SecretKey)> {
    data_dir::require(config)?;
    let random = Arc::new(OsRandom::new());
    let key = SecretKey::load(config, random.as_ref())?;
    let parts = Parts {
        outside: mailing::outside(config, &config.base_url.value),
        ..Parts::new(Arc::new(SystemClock::new()), random, key.vault())
    };
    Ok((database::open(config, &config.store_beside(), parts)?, key))
}

fn find_company(app: &App, slug: &Slug) -> anyhow::Result<Company> {
    let wanted = slug.as_str().to_owned();
    let found = app.read_across_blocking(move |across| rapport_store::company::by_slug(across, &wanted));
    found.map_err(explained)?.ok_or_else(|| anyhow!("no such company: {}", slug.as_str()))
}

/// Makes a change as the server's administrator.
fn write<C: UseCase>(app: &App, access: &Access, command: impl Fn() -> C) -> anyhow::Result<C::Reply> {
    patiently_blocking(|| app.write_blocking(access, command())).map_err(explained)
}

/// The error with the detail that the API hides but an administrator needs.
pub fn explained(error: Error) -> anyhow::Error {
    match error {
        Error::Unavailable(detail) => anyhow!("the database is not available: {detail}"),
        Error::Internal(detail) => anyhow!("internal error: {detail}"),
        Error::Invalid(invalid) => {
            let fault =
                |fault: &FieldError| format!("{} {}", fault.pointer.trim_start_matches('/'), fault.detail);
            anyhow!(invalid.0.iter().map(fault).collect::<Vec<_>>().join("; "))
        }
        other => anyhow!("{other}"),
    }
}

pub fn print(text: &str) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .context("failed to write to standard output")?;
    Ok(ExitCode::SUCCESS)
}

fn print_json(value: &Value) -> anyhow::Result<ExitCode> {
    print(&format!("{value:#}\n"))
}

//! The program: reads the command line and the configuration, and runs the requested command.

mod background;
mod backup_option;
mod backups;
mod cli;
mod clock;
mod commands;
mod config;
mod data_dir;
mod database;
mod demo;
mod egress_option;
mod extra_ca;
mod file_limit;
mod key_agreement;
mod key_check;
mod listen;
mod listen_address;
mod listener;
mod log_line;
mod mail_option;
mod mailing;
mod option_value;
mod options;
mod outbound;
mod own_certificate;
mod process;
mod secret_key;
mod sending;
mod serve;
mod stop;
mod telemetry;
mod tls;
mod unknown_variables;
mod welcome;

use std::process::ExitCode;

use config::Config;

/// The system's allocator took a fifth of the time of an upsert, mostly waiting for locks between threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The exit code that clap itself uses for a bad command line.
const BAD_USAGE: u8 = 2;

fn main() -> ExitCode {
    let cli = cli::parse();
    if let Some(command) = &cli.command
        && let Some(ended) = commands::reference::run(command)
    {
        return exit(ended);
    }
    let config = match Config::load(cli.options, &|name| std::env::var_os(name)) {
        Ok(config) => config,
        Err(error) => {
            eprintln!("rapport: {error}");
            return ExitCode::from(BAD_USAGE);
        }
    };
    exit(commands::run(cli.command, &config))
}

fn exit(ended: anyhow::Result<ExitCode>) -> ExitCode {
    ended.unwrap_or_else(|error| {
        eprintln!("rapport: {error:#}");
        ExitCode::FAILURE
    })
}

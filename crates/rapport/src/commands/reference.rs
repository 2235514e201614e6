//! `rapport completions` and `rapport man`: describe the command line to shells and to `man`. Neither reads the
//! configuration, because packages and shells run them before anything is configured.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::print;
use crate::cli::{self, Command};

const NAME: &str = "rapport";
const SECTION: &str = "1";

/// The sections that end the first page: a heading, and paragraphs with what each is about.
const MORE: [(&str, &[(&str, &str)]); 2] = [
    (
        "FILES",
        &[
            ("rapport.toml", "The configuration file, in the data directory unless --config names another."),
            ("rapport.db", "The SQLite database, in the data directory unless --database names another."),
            ("secret.key", "The key that encrypts secrets in the database. Keep a copy of it."),
        ],
    ),
    (
        "EXIT STATUS",
        &[
            ("0", "The command succeeded, or the service was asked to stop and stopped."),
            ("1", "The command failed. A line on standard error says why."),
            ("2", "The command line or the configuration is invalid."),
        ],
    ),
];

/// Runs a command that needs no configuration, if this is one.
pub fn run(command: &Command) -> Option<anyhow::Result<ExitCode>> {
    match command {
        Command::Completions { shell } => Some(completions(*shell)),
        Command::Man { directory } => Some(man(directory)),
        _ => None,
    }
}

fn completions(shell: Shell) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut visible(), NAME, &mut script);
    print(&String::from_utf8(script).context("the script is not valid UTF-8")?)
}

/// Writes one page for the program and one for each command.
fn man(directory: &Path) -> anyhow::Result<ExitCode> {
    let cannot = || format!("failed to write the man pages to {}", directory.display());
    fs::create_dir_all(directory).with_context(cannot)?;
    let mut program = visible().disable_help_subcommand(true);
    program.build();
    for command in with_nested(&program) {
        let (name, page) = page(command).with_context(cannot)?;
        fs::write(directory.join(name), page).with_context(cannot)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The command line without the hidden commands, which neither crate leaves out.
fn visible() -> clap::Command {
    let all = cli::definition();
    let command = clap::Command::new(NAME)
        .version(env!("CARGO_PKG_VERSION"))
        .args(all.get_arguments().cloned())
        .subcommands(all.get_subcommands().filter(|command| !command.is_hide_set()).cloned());
    let command = all.get_about().cloned().into_iter().fold(command, clap::Command::about);
    all.get_long_about().cloned().into_iter().fold(command, clap::Command::long_about)
}

fn with_nested(command: &clap::Command) -> Vec<clap::Command> {
    let nested = command.get_subcommands().flat_map(with_nested);
    std::iter::once(command.clone()).chain(nested).collect()
}

fn page(command: clap::Command) -> io::Result<(String, Vec<u8>)> {
    let is_program = command.get_display_name().is_none_or(|name| name == NAME);
    let command = if is_program {
        command.override_usage(format!("{NAME} [SETTINGS] [COMMAND]"))
    } else {
        // The settings are the same everywhere and would hide what is special about a command.
        command.mut_args(|arg| if arg.is_global_set() { arg.hide(true) } else { arg })
    };
    let has_commands = command.has_subcommands();
    let name = command.get_display_name().unwrap_or(NAME).to_owned();
    let man = Man::new(command).section(SECTION);
    let mut page = Vec::new();
    // There is no date, so that the same source gives the same page. `Man` would drop it and shift what follows.
    let version = env!("CARGO_PKG_VERSION");
    writeln!(page, ".TH {name} {SECTION} \"\" \"{NAME} {version}\" \"Rapport manual\"")?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if has_commands {
        man.render_subcommands_section(&mut page)?;
    }
    page.write_all(end(is_program).to_roff().as_bytes())?;
    Ok((man.get_filename(), page))
}

fn end(is_program: bool) -> Roff {
    let mut roff = Roff::new();
    if is_program {
        for (heading, items) in MORE {
            roff.control("SH", [heading]);
            for (what, text) in items {
                roff.control("TP", []);
                roff.text([bold(*what)]);
                roff.text([roman(*text)]);
            }
        }
    } else {
        roff.control("SH", ["SETTINGS"]);
        roff.text([
            roman("Every setting of "),
            bold(NAME),
            roman("(1), such as "),
            bold("--data-dir"),
            roman(" or "),
            bold("--config"),
            roman(", can be given here too."),
        ]);
        roff.control("SH", ["SEE ALSO"]);
        roff.text([bold(NAME), roman("(1)")]);
    }
    roff
}

//! `rapport person`: helps people who cannot log in.

use std::process::ExitCode;

use anyhow::bail;
use rapport_app::Access;
use rapport_app::password_reset::MakeResetLink;
use rapport_store::password_reset;
use serde_json::json;

use super::{explained, open_beside, print, print_json, write};
use crate::cli::{PersonCommand, ResetLink};
use crate::config::Config;

pub fn run(config: &Config, command: &PersonCommand) -> anyhow::Result<ExitCode> {
    match command {
        PersonCommand::ResetLink(arguments) => reset_link(config, arguments),
    }
}

fn reset_link(config: &Config, arguments: &ResetLink) -> anyhow::Result<ExitCode> {
    let app = open_beside(config)?;
    let (email, address) = (arguments.email.clone(), arguments.email.as_str());
    let found = app.read_across_blocking(move |across| password_reset::membership(across, &email));
    let Some(member) = found.map_err(explained)? else {
        bail!("no active member of any company has the address {address}")
    };
    let link = write(&app, &Access::CommandLine(member.company), || MakeResetLink(member.person))?;
    if arguments.output.json {
        return print_json(&json!({ "email": address, "link": link }));
    }
    print(&format!("{link}\n\nGive this link to {address}: it sets a new password, once, within an hour.\n"))
}

//! `rapport person`: helps people who cannot log in.

use std::process::ExitCode;

use anyhow::bail;
use rapport_app::password_reset::MakeResetLink;
use rapport_app::second_factor;
use rapport_app::{Access, App};
use rapport_store::password_reset::{self, Membership};
use serde_json::json;

use super::{explained, open_beside, print, print_json, write};
use crate::cli::{Login, PersonCommand, ResetFactors, ResetLink};
use crate::config::Config;

pub fn run(config: &Config, command: &PersonCommand) -> anyhow::Result<ExitCode> {
    match command {
        PersonCommand::ResetLink(arguments) => reset_link(config, arguments),
        PersonCommand::ResetFactors(arguments) => reset_factors(config, arguments),
    }
}

fn reset_link(config: &Config, arguments: &ResetLink) -> anyhow::Result<ExitCode> {
    let app = open_beside(config)?;
    let address = arguments.login.email.as_str();
    let member = find(&app, &arguments.login)?;
    let link = write(&app, &Access::CommandLine(member.company), || MakeResetLink(member.person))?;
    if arguments.output.json {
        return print_json(&json!({ "email": address, "link": link }));
    }
    print(&format!("{link}\n\nGive this link to {address}: it sets a new password, once, within an hour.\n"))
}

fn reset_factors(config: &Config, arguments: &ResetFactors) -> anyhow::Result<ExitCode> {
    let app = open_beside(config)?;
    let address = arguments.login.email.as_str();
    let member = find(&app, &arguments.login)?;
    let access = Access::CommandLine(member.company);
    write(&app, &access, || second_factor::ResetFactors(member.person))?;
    print(&format!("{address} has no second factor any more and is logged out everywhere.\n"))
}

/// The login that is meant, in one of its companies.
fn find(app: &App, login: &Login) -> anyhow::Result<Membership> {
    let (email, address) = (login.email.clone(), login.email.as_str());
    let found = app.read_across_blocking(move |across| password_reset::memberships(across, &email));
    let mut found = found.map_err(explained)?;
    if let Some(project) = &login.project {
        found.retain(|member| member.slug == project.as_str());
    }
    let Some(member) = found.first() else {
        bail!(
            "no active member of {} has the address {address}",
            login.project.as_ref().map_or("any company", |project| project.as_str())
        )
    };
    if found.iter().any(|other| other.person != member.person) {
        bail!("several logins have the address {address}: name the company of the one you mean (--project)");
    }
    // A link for a new password is of no use where single sign-on is required.
    Ok(found.iter().find(|member| !member.needs_sso).unwrap_or(member).clone())
}

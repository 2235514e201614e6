//! `rapport key`: shows or changes the encryption key, and rotates a company's ingest or inbound key.

use std::process::ExitCode;

use rapport_app::credential::Key;
use rapport_app::{Access, credential};
use serde_json::json;

use super::{encryption_key, find_company, open_beside, print, print_json, write};
use crate::cli::{KeyCommand, KeyKind, RotateKey};
use crate::config::Config;

pub fn run(config: &Config, command: Option<KeyCommand>) -> anyhow::Result<ExitCode> {
    match command {
        None => encryption_key::show(config),
        Some(KeyCommand::Rotate(arguments)) => rotate(config, &arguments),
        Some(KeyCommand::ReEncrypt(arguments)) => encryption_key::reencrypt(config, &arguments),
        Some(KeyCommand::Reset(arguments)) => encryption_key::reset(config, &arguments),
    }
}

fn rotate(config: &Config, arguments: &RotateKey) -> anyhow::Result<ExitCode> {
    let (key, member) = match arguments.key {
        KeyKind::Ingest => (Key::Ingest, "ingest_key"),
        KeyKind::Inbound => (Key::Inbound, "inbound_key"),
    };
    let app = open_beside(config)?;
    let company = find_company(&app, &arguments.project)?;
    let made = write(&app, &Access::CommandLine(company.id), || credential::RotateKey(key))?;
    if arguments.output.json {
        return print_json(&json!({ "project": company.slug.as_str(), member: made.text }));
    }
    let project = company.slug.as_str();
    print(&format!(
        "{}\n\nCopy this key for {project} now: it is shown only once. The old key no longer works.\n",
        made.text
    ))
}

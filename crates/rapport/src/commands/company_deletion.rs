//! `rapport company delete`: removes everything that a company stored.

use std::process::ExitCode;

use anyhow::bail;
use rapport_app::company_deletion::{CancelDeletion, Erasing, ScheduleDeletion, step};
use rapport_app::{Access, App, Error};
use rapport_domain::company::Company;
use rapport_domain::company_deletion::WAITING_DAYS;

use super::export::{PAUSE, runtime};
use super::{explained, find_company, open_beside, print, write};
use crate::cli::DeleteCompany;
use crate::config::Config;

pub fn delete(config: &Config, arguments: &DeleteCompany) -> anyhow::Result<ExitCode> {
    let app = open_beside(config)?;
    let company = find_company(&app, &arguments.project)?;
    let (access, project) = (Access::CommandLine(company.id), company.slug.as_str());
    if arguments.cancel {
        write(&app, &access, || CancelDeletion)?;
        return print(&format!("{project} won't be deleted.\n"));
    }
    if !arguments.yes {
        let when = if arguments.now { "now".to_owned() } else { format!("in {WAITING_DAYS} days") };
        bail!(
            "this deletes {project} ({}) and all its data {when}; export it first (rapport company export {project} FILE), \
             then repeat the command with --yes",
            company.name
        );
    }
    let deletion = write(&app, &access, || ScheduleDeletion { is_now: arguments.now })?;
    if !arguments.now {
        return print(&format!(
            "{project} will be deleted on {}. Until then, keep it with: rapport company delete {project} --cancel\n",
            deletion.at
        ));
    }
    let rows = runtime()?.block_on(erase(&app, &company))?;
    print(&format!("Deleted {project} with {rows} rows.\n"))
}

async fn erase(app: &App, company: &Company) -> anyhow::Result<usize> {
    let mut erasing = Erasing::default();
    loop {
        match step(app, company.id, &mut erasing).await {
            Ok(true) => {}
            Ok(false) => return Ok(erasing.rows),
            // The service next to this command deleted the rest.
            Err(error) if error.is_deleted_company() => return Ok(erasing.rows),
            Err(Error::Busy) => tokio::time::sleep(PAUSE).await,
            Err(error) => return Err(explained(error)),
        }
    }
}

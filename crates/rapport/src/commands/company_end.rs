//! `rapport company export` and `rapport company delete`: takes everything that a company stored, and removes it.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use rapport_app::company_deletion::{CancelDeletion, Erasing, ScheduleDeletion, step};
use rapport_app::company_export::{Place, end, head, lines, page};
use rapport_app::{Access, App, Error, Needs};
use rapport_domain::company::Company;
use rapport_domain::company_deletion::WAITING_DAYS;

use super::{explained, find_company, open_beside, print, write};
use crate::cli::{DeleteCompany, ExportCompany};
use crate::config::Config;

/// The file holds everything that the company knows.
const OWNER_ONLY: u32 = 0o600;
/// The pause before the next try when a service next to this command keeps the database busy.
const PAUSE: Duration = Duration::from_millis(100);

pub fn export(config: &Config, arguments: &ExportCompany) -> anyhow::Result<ExitCode> {
    let app = open_beside(config)?;
    let company = find_company(&app, &arguments.project)?;
    let path = arguments.file.as_path();
    let failed = || format!("failed to write {}", path.display());
    let file =
        OpenOptions::new().write(true).create_new(true).mode(OWNER_ONLY).open(path).with_context(failed)?;
    let written = runtime()?.block_on(write_all(&app, &company, BufWriter::new(file)));
    let rows = written.inspect_err(|_| drop(std::fs::remove_file(path))).with_context(failed)?;
    print(&format!("Exported {} rows of {} to {}.\n", rows, company.slug.as_str(), path.display()))
}

async fn write_all(app: &App, company: &Company, mut file: BufWriter<File>) -> anyhow::Result<u64> {
    file.write_all(&head(company, app.now()))?;
    let (access, mut rows) = (Access::CommandLine(company.id), 0);
    let mut next = Some(Place::FIRST);
    while let Some(place) = next.clone() {
        let found = app.read(&access, Needs::Server, move |snapshot, _| page(snapshot, &place)).await;
        let found = match found {
            Err(Error::Busy) => {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            found => found.map_err(explained)?.reply,
        };
        rows += found.rows.len() as u64;
        file.write_all(&lines(found.table, found.rows))?;
        next = found.next;
    }
    file.write_all(&end(rows))?;
    file.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()?;
    Ok(rows)
}

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

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("failed to start")
}

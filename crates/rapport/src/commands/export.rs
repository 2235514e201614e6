//! `rapport company export` and `rapport account export`: everything about a company or an account, as one file.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use rapport_app::full_export::{Place, Scope, Writer, named, page};
use rapport_app::{Access, App, Error, Needs};
use rapport_domain::company::Company;
use rapport_domain::file_format::Format;
use rapport_store::Snapshot;

use super::{explained, find_company, open_beside, print};
use crate::cli::{ExportAccount, ExportCompany};
use crate::config::Config;

/// The file holds everything that the company or the account knows.
const OWNER_ONLY: u32 = 0o600;
/// The pause before the next try when a service next to this command keeps the database busy.
pub const PAUSE: Duration = Duration::from_millis(100);

pub fn company(config: &Config, arguments: &ExportCompany) -> anyhow::Result<ExitCode> {
    let app = open_beside(config)?;
    let company = find_company(&app, &arguments.project)?;
    let source = Source { app: &app, company: &company, scope: Scope::Company };
    let rows = runtime()?.block_on(source.write_to(&arguments.file, arguments.format))?;
    let (project, path) = (company.slug.as_str(), arguments.file.display());
    print(&format!("Exported {rows} rows of {project} to {path}.\n"))
}

pub fn account(config: &Config, arguments: &ExportAccount) -> anyhow::Result<ExitCode> {
    let app = open_beside(config)?;
    let company = find_company(&app, &arguments.project)?;
    let (runtime, name) = (runtime()?, arguments.id.clone());
    let found = runtime.block_on(read(&app, &company, move |snapshot| named(snapshot, &name)))?;
    let subject = found.ok_or_else(|| anyhow!("no such account: {}", arguments.id))?;
    let id = subject.id;
    let source = Source { app: &app, company: &company, scope: Scope::Account(subject) };
    let rows = runtime.block_on(source.write_to(&arguments.file, arguments.format))?;
    print(&format!("Exported {rows} rows about {id} to {}.\n", arguments.file.display()))
}

struct Source<'a> {
    app: &'a App,
    company: &'a Company,
    scope: Scope,
}

impl Source<'_> {
    /// Writes a new file; returns the number of rows in it. If that fails, there is no file.
    async fn write_to(&self, path: &Path, format: Format) -> anyhow::Result<u64> {
        let failed = || format!("failed to write {}", path.display());
        let file = OpenOptions::new().write(true).create_new(true).mode(OWNER_ONLY).open(path);
        let written = self.write_all(BufWriter::new(file.with_context(failed)?), format).await;
        written.inspect_err(|_| drop(std::fs::remove_file(path))).with_context(failed)
    }

    async fn write_all(&self, mut file: BufWriter<File>, format: Format) -> anyhow::Result<u64> {
        let Self { app, company, scope } = self;
        let mut writer = Writer::begin(format, scope, company, app.now()).map_err(explained)?;
        let mut next = Some(Place::FIRST);
        while let Some(place) = next {
            let scope = scope.clone();
            let found = read(app, company, move |snapshot| page(snapshot, &scope, &place)).await?;
            let following = found.next.clone();
            file.write_all(&writer.write(found).map_err(explained)?)?;
            next = following;
        }
        file.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()?;
        Ok(writer.rows())
    }
}

/// Reads in one snapshot, and tries again while the database is busy.
async fn read<T: Send + 'static>(
    app: &App,
    company: &Company,
    read: impl Fn(&mut Snapshot) -> Result<T, rapport_store::Error> + Clone + Send + 'static,
) -> anyhow::Result<T> {
    let access = Access::CommandLine(company.id);
    loop {
        let once = read.clone();
        match app.read(&access, Needs::Server, move |snapshot, _| once(snapshot)).await {
            Err(Error::Busy) => tokio::time::sleep(PAUSE).await,
            found => return Ok(found.map_err(explained)?.reply),
        }
    }
}

pub fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("failed to start")
}

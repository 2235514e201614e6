//! `rapport import`: imports a CSV file, or undoes an import. The file goes through the database like an
//! upload, and this process runs the import itself; if it dies, a running service continues the import.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use indicatif::{ProgressBar, ProgressStyle};
use rapport_app::import::{
    ErrorFile, Purpose, RemoveImport, Runner, Stepped, UndoImport, Upload, UploadOptions, begin,
};
use rapport_app::{Access, App, Error};
use rapport_domain::id::ImportId;
use rapport_domain::import::mapping::{Mapping, Target};
use rapport_domain::import::status_word::StatusWords;
use rapport_domain::import::{Counts, Import, Request, State, UNDO_DAYS};
use serde_json::{Map, Value};
use tokio::runtime::Runtime;

use super::{explained, find_company, open_beside, print, write};
use crate::cli::{self, ImportCommand};
use crate::config::Config;

const READ_BYTES: usize = 64 << 10;
/// How often to look at an import that the service has taken over.
const LOOK_EVERY: Duration = Duration::from_millis(500);
const BUSY_TRIES: usize = 6;
/// How many values of a reason are printed.
const SHOWN_VALUES: usize = 5;

pub fn run(config: &Config, arguments: &cli::Import) -> anyhow::Result<ExitCode> {
    if let Some(ImportCommand::Undo(undo)) = &arguments.command {
        return run_undo(config, undo.id);
    }
    let Some(path) = &arguments.file else {
        bail!("name the CSV file to import, or give `undo` and an import's id")
    };
    let Some(company) = &arguments.company else { bail!("name the company with --company") };
    if !arguments.yes && !arguments.dry_run && !io::stdin().is_terminal() {
        bail!("cannot ask for confirmation here: add --yes to import, or --dry-run to only check the file");
    }
    let file = File::open(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let app = open_beside(config)?;
    let company = find_company(&app, company)?;
    let session =
        Session { access: Access::CommandLine(company.id), company: company.id, app, runtime: runtime()? };
    let import = session.upload(path, file, arguments)?;
    session.import(&import, path, arguments)
}

fn runtime() -> anyhow::Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().build().context("the import cannot be started")
}

struct Session {
    app: App,
    access: Access,
    company: rapport_domain::id::CompanyId,
    runtime: Runtime,
}

impl Session {
    fn upload(&self, path: &Path, mut file: File, arguments: &cli::Import) -> anyhow::Result<Import> {
        let filename =
            path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().chars().take(255).collect();
        let options = UploadOptions { filename, charset: arguments.encoding, delimiter: arguments.delimiter };
        let size = file.metadata().map_or(0, |metadata| metadata.len());
        let bar = bytes_bar("reading", size);
        let ended = self.runtime.block_on(async {
            let mut upload = Upload::begin(&self.app, &self.access, options).await.map_err(refused)?;
            let mut buffer = vec![0; READ_BYTES];
            loop {
                let read =
                    file.read(&mut buffer).with_context(|| format!("{} cannot be read", path.display()));
                let taken = match read {
                    Ok(0) => return upload.finish().await.map_err(refused),
                    Ok(read) => upload.take(&buffer[..read]).await.map_err(explained).map(|()| read),
                    Err(error) => Err(error),
                };
                match taken {
                    Ok(read) => bar.inc(read as u64),
                    Err(error) => {
                        upload.abandon().await;
                        return Err(error);
                    }
                }
            }
        });
        bar.finish_and_clear();
        ended
    }

    fn import(&self, import: &Import, path: &Path, arguments: &cli::Import) -> anyhow::Result<ExitCode> {
        match self.tried(import, arguments) {
            Ok((request, tried)) => {
                print(&described(&tried))?;
                if arguments.dry_run || !confirmed(arguments)? {
                    self.forget(import.id);
                    return print("Nothing was imported.\n");
                }
                let begun = self.begin(import.id, request, Purpose::Run)?;
                let ended = self.follow(begun, "importing")?;
                self.report(&ended, path, arguments)
            }
            Err(error) => {
                self.forget(import.id);
                Err(error)
            }
        }
    }

    /// Does a dry run with the mapping given by the column names and the arguments.
    fn tried(&self, import: &Import, arguments: &cli::Import) -> anyhow::Result<(Request, Import)> {
        let chosen = |pairs: &[(String, String)]| {
            pairs
                .iter()
                .map(|(name, word)| (name.clone(), word.clone().into()))
                .collect::<Map<String, Value>>()
        };
        let words =
            StatusWords::parse(&chosen(&arguments.status_word)).map_err(|invalid| invalid_text(&invalid))?;
        let request = Request {
            mapping: Some(mapping(import, arguments)?),
            formats: Some(chosen(&arguments.format)),
            words,
            mode: Some(arguments.mode),
            ..Request::default()
        };
        let begun = self.begin(import.id, request.clone(), Purpose::Preview)?;
        Ok((request, self.follow(begun, "checking")?))
    }

    fn begin(&self, id: ImportId, request: Request, purpose: Purpose) -> anyhow::Result<(Runner, Import)> {
        let runner = Runner::new(&self.app, self.company, id);
        let begun = begin(&self.app, &self.access, id, request, (purpose, Some(runner.id())));
        let import = self.runtime.block_on(begun).map_err(refused)?;
        Ok((runner, import))
    }

    /// Runs the import to its end and shows its progress.
    fn follow(&self, (mut runner, begun): (Runner, Import), what: &str) -> anyhow::Result<Import> {
        let id = begun.id;
        let bar = steps_bar(what, &begun);
        let ended = self.runtime.block_on(async {
            let mut busy = 0;
            loop {
                match runner.step().await {
                    Ok(Stepped::Ended) => return self.look(id).await,
                    Ok(Stepped::More) => busy = 0,
                    Ok(Stepped::Elsewhere) => tokio::time::sleep(LOOK_EVERY).await,
                    Err(Error::Busy) if busy < BUSY_TRIES => busy += 1,
                    Err(error) => return Err(explained(error)),
                }
                match runner.known() {
                    Some(known) => show(&bar, known),
                    None => show(&bar, &self.look(id).await?),
                }
            }
        });
        bar.finish_and_clear();
        ended
    }

    async fn look(&self, id: ImportId) -> anyhow::Result<Import> {
        let found = self.app.read(&self.access, rapport_app::Needs::Server, move |snapshot, _| {
            rapport_store::import::get(snapshot, id)
        });
        let found = found.await.map_err(explained)?;
        found.reply.ok_or_else(|| anyhow!("the import {id} was removed"))
    }

    fn forget(&self, id: ImportId) {
        if let Err(error) = write(&self.app, &self.access, || RemoveImport(id)) {
            eprintln!("rapport: failed to remove the uploaded file: {error:#}");
        }
    }

    fn report(&self, import: &Import, path: &Path, arguments: &cli::Import) -> anyhow::Result<ExitCode> {
        let mut text = format!(
            "{} {} rows of {}.\n{}",
            if import.state == State::Cancelled { "Cancelled after" } else { "Imported" },
            import.rows_done,
            import.filename,
            in_words(import.counts),
        );
        if import.counts.failed > 0 {
            let errors = arguments.errors.clone().unwrap_or_else(|| beside(path));
            self.write_errors(import.id, &errors)?;
            let failed = import.counts.failed;
            let _ = writeln!(text, "Rows that failed: {failed}. They are in {}.", errors.display());
        }
        let _ = writeln!(text, "To undo it within {UNDO_DAYS} days, run rapport import undo {}", import.id);
        print(&text)?;
        Ok(if import.counts.failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    fn write_errors(&self, id: ImportId, path: &Path) -> anyhow::Result<()> {
        let cannot = || format!("{} cannot be written", path.display());
        let mut out = File::create(path).with_context(cannot)?;
        self.runtime.block_on(async {
            let mut file = ErrorFile::open(&self.app, &self.access, id).await.map_err(explained)?;
            while let Some(part) = file.next().await.map_err(explained)? {
                out.write_all(&part).with_context(cannot)?;
            }
            Ok(())
        })
    }
}

fn run_undo(config: &Config, id: ImportId) -> anyhow::Result<ExitCode> {
    let app = open_beside(config)?;
    // The id alone does not say which company it belongs to.
    let company = app.read_across_blocking(move |across| rapport_store::import::company_of(across, id));
    let Some(company) = company.map_err(explained)? else { bail!("no such import: {id}") };
    let session = Session { access: Access::CommandLine(company), company, app, runtime: runtime()? };
    let runner = Runner::new(&session.app, company, id);
    let undo = || UndoImport { id, runner: Some(runner.id()) };
    let begun = write(&session.app, &session.access, undo)?;
    let undone = session.follow((runner, begun), "undoing")?.undo;
    print(&format!(
        "Undone: {} accounts restored, {} removed, {} kept because they were edited since.\n",
        undone.restored, undone.removed, undone.kept
    ))
}

/// The guessed mapping, overridden by the arguments.
fn mapping(import: &Import, arguments: &cli::Import) -> anyhow::Result<Map<String, Value>> {
    let columns = import.column_names();
    let mut mapping = import.mapping.to_json(&columns);
    for (name, field) in &arguments.map {
        if !columns.contains(&name.as_str()) {
            bail!("no such column: {name}; the file has: {}", columns.join(", "));
        }
        // A field has only one column: the one from the arguments.
        for target in mapping.values_mut() {
            if target == field {
                *target = Target::Ignore.as_text().into();
            }
        }
        mapping.insert(name.clone(), field.clone().into());
    }
    Mapping::parse(&mapping, &columns)
        .and_then(|read| read.check(arguments.mode))
        .map_err(|invalid| invalid_text(&invalid))?;
    Ok(mapping)
}

fn refused(error: Error) -> anyhow::Error {
    match error {
        Error::Invalid(invalid) => invalid_text(&invalid),
        other => explained(other),
    }
}

fn invalid_text(invalid: &rapport_domain::invalid::Invalid) -> anyhow::Error {
    let one = |error: &rapport_domain::invalid::FieldError| {
        format!("{} {}", error.pointer.trim_start_matches('/'), error.detail).trim().to_owned()
    };
    anyhow!("{}", invalid.0.iter().map(one).collect::<Vec<_>>().join("; "))
}

/// Describes the result of a dry run.
fn described(import: &Import) -> String {
    let separated = match import.delimiter.text().as_str() {
        "\t" => "separated by tabs".to_owned(),
        delimiter => format!("separated by {delimiter}"),
    };
    let mut text = format!("{}: {}, {separated}. Columns:\n", import.filename, import.charset.name());
    for (number, (column, target)) in import.column_names().iter().zip(&import.mapping.0).enumerate() {
        let format = import.formats.get(number).copied().flatten();
        let format = format.map_or_else(String::new, |format| format!(" ({})", format.as_str()));
        let _ = writeln!(text, "  {column} -> {}{format}", target.as_text());
    }
    let preview = import.preview.clone().unwrap_or_default();
    let count = |name: &str| preview["counts"][name].as_i64().unwrap_or(0);
    let counts = Counts {
        created: count("created"),
        updated: count("updated"),
        unchanged: count("unchanged"),
        skipped: count("skipped"),
        failed: count("failed"),
        promo_codes_unmatched: count("promo_codes_unmatched"),
    };
    let _ = write!(text, "{} rows:\n{}", preview["rows"], in_words(counts));
    for difference in preview["differences"].as_array().into_iter().flatten() {
        let account = difference["account"]["name"].as_str().unwrap_or_default();
        let field = difference["field"].as_str().unwrap_or_default();
        let _ = writeln!(text, "  {account}: {field} {} -> {}", difference["before"], difference["after"]);
    }
    for group in preview["failures"].as_array().into_iter().flatten() {
        let _ = writeln!(text, "  {}", failed(group));
    }
    text
}

/// A reason why rows fail, with the first values and lines.
fn failed(group: &Value) -> String {
    let rows = group["rows"].as_i64().unwrap_or(0);
    let column = group["column"].as_str().map_or_else(String::new, |column| format!("{column}: "));
    let reason = group["reason"].as_str().unwrap_or_default();
    let values = group["values"].as_array().into_iter().flatten();
    let value = |value: &Value| format!("{} (line {})", value["value"], value["line"]);
    let values: Vec<String> = values.take(SHOWN_VALUES).map(value).collect();
    let shown = if values.is_empty() { format!("line {}", group["line"]) } else { values.join(", ") };
    format!("{rows} {} {column}{reason}: {shown}", if rows == 1 { "row:" } else { "rows:" })
}

fn in_words(counts: Counts) -> String {
    let Counts { created, updated, unchanged, skipped, failed, promo_codes_unmatched } = counts;
    let mut text = format!(
        "  {created} created, {updated} updated, {unchanged} unchanged, {skipped} skipped, {failed} failed\n"
    );
    if promo_codes_unmatched > 0 {
        let _ = writeln!(text, "  {promo_codes_unmatched} promo codes match no active code of the company");
    }
    text
}

fn confirmed(arguments: &cli::Import) -> anyhow::Result<bool> {
    if arguments.yes {
        return Ok(true);
    }
    print("Import? [y/N] ")?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).context("failed to read the answer")?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn beside(path: &Path) -> PathBuf {
    path.with_extension("errors.csv")
}

fn bytes_bar(what: &str, size: u64) -> ProgressBar {
    let bar = ProgressBar::new(size);
    styled(&bar, what, "{bytes}/{total_bytes}");
    bar
}

fn steps_bar(what: &str, import: &Import) -> ProgressBar {
    let total = match import.state {
        State::Undoing => import.accounts,
        _ => import.bytes,
    };
    let bar = ProgressBar::new(u64::try_from(total).unwrap_or(0));
    let unit = if import.state == State::Undoing { "{pos}/{len} accounts" } else { "{msg} rows" };
    styled(&bar, what, unit);
    bar
}

fn styled(bar: &ProgressBar, what: &str, unit: &str) {
    let template = format!("{{prefix}} [{{wide_bar}}] {unit}, {{eta}} left");
    let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style.progress_chars("=> "));
    bar.set_prefix(what.to_owned());
}

fn show(bar: &ProgressBar, import: &Import) {
    let done = match import.state {
        State::Undoing | State::Undone => import.undo.done,
        _ => import.at.offset,
    };
    bar.set_message(import.rows_done.to_string());
    bar.set_position(u64::try_from(done).unwrap_or(0));
}

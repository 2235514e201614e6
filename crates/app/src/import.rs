//! Imports of CSV files: upload, preview, start, cancel, undo, remove.
//!
//! A `Runner` works through an import in small steps. Each is one transaction that writes its rows together
//! with the file position where the next step begins, so a row is applied exactly once whatever happens in
//! between. Reading and parsing happen before, outside of any transaction.

mod addresses;
mod error_file;
mod preview;
mod retry;
mod run;
mod undo;
mod upload;
mod window;
mod work;

use rapport_domain::audit::Action;
use rapport_domain::id::{CompanyId, ImportId};
use rapport_domain::import::charset::Charset;
use rapport_domain::import::head::Head;
use rapport_domain::import::mapping::{Mapping, columns_mark};
use rapport_domain::import::{Import, NotNow, Plan, Request, State};
use rapport_domain::right::Right;
use rapport_store::{Tx, import, import_data};
use serde_json::{Value, json};

use crate::access::{Access, Needs};
use crate::command::{Command, Context};
use crate::error::Error;
use crate::read::import::with_beginning;
use crate::{App, audit};

pub use error_file::ErrorFile;
pub use retry::retry;
pub use run::{Release, Runner, Stepped};
pub use upload::{Upload, UploadOptions};

const NEEDS: Needs = Needs::Right(Right::Import);
/// How often a change is retried when storage is busy: each try already waits some time.
const TRIES: usize = 12;

/// Files up to this size are previewed within the request; larger ones in the background.
const TRIED_AT_ONCE_BYTES: i64 = 2 << 20;

/// What to do with a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A dry run: counts and differences, without changes.
    Preview,
    Run,
}

/// Checks a request against the file and begins the requested work. A given `runner` continues it at once;
/// otherwise the first free runner does.
pub async fn begin(
    app: &App,
    access: &Access,
    id: ImportId,
    request: Request,
    (purpose, runner): (Purpose, Option<i64>),
) -> Result<Import, Error> {
    let command = plan(app, access, id, request, (purpose, runner)).await?;
    app.write(access, command).await
}

/// Checks a request against the file, and returns the command that begins the work.
pub async fn plan(
    app: &App,
    access: &Access,
    id: ImportId,
    request: Request,
    (purpose, runner): (Purpose, Option<i64>),
) -> Result<Begin, Error> {
    let (found, first) = beginning(app, access, id).await?;
    let plan = request.plan(&found, &first)?;
    Ok(Begin { id, plan, purpose, runner })
}

/// The import, and the first piece of its file.
async fn beginning(app: &App, access: &Access, id: ImportId) -> Result<(Import, Vec<u8>), Error> {
    let read = app.read(access, NEEDS, move |snapshot, _| with_beginning(snapshot, id));
    read.await?.reply.ok_or(Error::NotFound("import"))
}

/// Reads a file's columns again with the encoding and delimiter that a request names. Nothing is previewed
/// yet.
pub async fn read_again(app: &App, access: &Access, id: ImportId, request: Request) -> Result<Import, Error> {
    let (found, first) = beginning(app, access, id).await?;
    let (charset, head) = request.layout(&found, &first)?;
    app.write(access, ReadAgain { id, charset, head }).await
}

struct ReadAgain {
    id: ImportId,
    charset: Charset,
    head: Head,
}

impl Command for ReadAgain {
    type Reply = Import;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, _: &Context) -> Result<Import, Error> {
        let mut import = lock(tx, self.id)?;
        import.read_again(self.charset, self.head.clone()).map_err(conflict)?;
        recall(tx, &mut import)?;
        import::update(tx, &import)?;
        Ok(import)
    }
}

/// Uses the mapping these columns had last time, if any, and the stages that were chosen for words.
fn recall(tx: &mut Tx, import: &mut Import) -> Result<(), Error> {
    import.words = import_data::words(tx)?;
    let columns = import.column_names();
    if let Some(remembered) = import_data::remembered(tx, &columns_mark(columns.iter().copied()))? {
        let sent = serde_json::from_str(&remembered).unwrap_or_default();
        // Names are remembered in any case; a mapping that doesn't fit them exactly is guessed again.
        if let Ok(mapping) = Mapping::parse(&sent, &columns) {
            import.mapping = mapping;
            import.remembered = true;
        }
    }
    Ok(())
}

/// Previews an import: completely if the file is small, otherwise it begins and continues in the background.
pub async fn preview(
    app: &App,
    (access, company): (&Access, CompanyId),
    id: ImportId,
    request: Request,
) -> Result<Import, Error> {
    let mut runner = Runner::new(app, company, id);
    let import = begin(app, access, id, request, (Purpose::Preview, Some(runner.id()))).await?;
    if import.bytes > TRIED_AT_ONCE_BYTES {
        runner.release().await;
        return Ok(import);
    }
    while runner.step().await? == Stepped::More {}
    runner.known().cloned().ok_or(Error::NotFound("import"))
}

/// Begins to work on an import, as it is planned.
pub struct Begin {
    id: ImportId,
    plan: Plan,
    purpose: Purpose,
    runner: Option<i64>,
}

impl Command for Begin {
    type Reply = Import;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Import, Error> {
        let mut import = lock(tx, self.id)?;
        import.plan(self.plan.clone()).map_err(conflict)?;
        match self.purpose {
            Purpose::Preview => import.begin_preview(),
            Purpose::Run => {
                import.begin_run(cx.actor().clone(), cx.now);
                let columns = import.column_names();
                let mapping = Value::Object(import.mapping.to_json(&columns));
                import_data::remember(tx, &columns_mark(columns), &mapping.to_string(), cx.now)?;
                import_data::remember_words(tx, &import.words, cx.now)?;
                let detail = json!({
                    "filename": import.filename, "mapping": mapping, "mode": import.mode.as_str(),
                });
                audit::record(tx, cx, Action::ImportStarted, Some(self.id.to_string()), &detail)?;
            }
        }
        if let Some(runner) = self.runner {
            import.take(runner, cx.now);
        }
        import::update(tx, &import)?;
        Ok(import)
    }
}

/// Undoes an import, in steps that follow.
pub struct UndoImport {
    pub id: ImportId,
    pub runner: Option<i64>,
}

impl Command for UndoImport {
    type Reply = Import;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Import, Error> {
        let mut import = lock(tx, self.id)?;
        import.begin_undo(cx.now).map_err(conflict)?;
        // The undo acts on behalf of the person who asked for it.
        import.actor = cx.actor().clone();
        if let Some(runner) = self.runner {
            import.take(runner, cx.now);
        }
        import::update(tx, &import)?;
        let detail = json!({ "filename": import.filename });
        audit::record(tx, cx, Action::ImportUndone, Some(self.id.to_string()), &detail)?;
        Ok(import)
    }
}

/// Stops a running import; rows already imported stay.
pub struct CancelImport(pub ImportId);

impl Command for CancelImport {
    type Reply = ();
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let mut import = lock(tx, self.0)?;
        if import.state != State::Running {
            return Err(Error::conflict("not_running", "the import is no longer running"));
        }
        import.cancel(cx.now);
        import::update_progress(tx, &import)?;
        let detail = json!({ "filename": import.filename });
        Ok(audit::record(tx, cx, Action::ImportCancelled, Some(self.0.to_string()), &detail)?)
    }
}

/// Cancels a running import; deletes any other, with its file, its errors and its undo data.
pub struct RemoveImport(pub ImportId);

impl Command for RemoveImport {
    type Reply = ();
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let import = lock(tx, self.0)?;
        match import.state {
            State::Undoing => {
                return Err(Error::conflict(
                    "undoing",
                    "the import is being undone; wait until that finishes",
                ));
            }
            State::Running => return CancelImport(self.0).run(tx, cx),
            _ => import::delete(tx, self.0, cx.now)?,
        }
        // A file that was never started changed nothing, so there is nothing to record.
        if import.started_at.is_some() {
            let detail = json!({ "filename": import.filename });
            audit::record(tx, cx, Action::ImportRemoved, Some(self.0.to_string()), &detail)?;
        }
        Ok(())
    }
}

fn lock(tx: &mut Tx, id: ImportId) -> Result<Import, Error> {
    import::lock(tx, id)?.ok_or(Error::NotFound("import"))
}

fn conflict(not_now: NotNow) -> Error {
    Error::conflict(not_now.code, not_now.detail)
}

/// Retries a command while storage is busy: a background step can wait, and its file must not be lost.
async fn patiently<C: Command + Clone>(app: &App, access: &Access, command: C) -> Result<C::Reply, Error> {
    for _ in 1..TRIES {
        match app.write(access, command.clone()).await {
            Err(Error::Busy) => {}
            answer => return answer,
        }
    }
    app.write(access, command).await
}

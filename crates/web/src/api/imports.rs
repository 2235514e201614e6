//! Imports of CSV files: try, start, follow and undo them. The upload is in `upload`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use rapport_app::import::{ErrorFile, Purpose, RemoveImport, UndoImport, plan, preview};
use rapport_app::read::import;
use rapport_domain::history::Actor;
use rapport_domain::id::ImportId;
use rapport_domain::import::failure::Group;
use rapport_domain::import::format::Format;
use rapport_domain::import::preview::Preview;
use rapport_domain::import::{Counts, Import, Mode, Request, SHOWN};
use rapport_domain::time::Time;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::{Caller, Id, OptionalCall, PlainCall};
use crate::api::{Api, EXPORT, IMPORT, READ, requests, upload};
use crate::edge::json;
use crate::edge::problem::Problem;
use crate::shared::error_file;
use crate::shared::paging::Page;
use crate::shared::parameters::{Parameters, read_cursor, write_cursor};

const LIST: u8 = b'i';

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(list_imports, upload::upload_import))
        .routes(routes!(get_import, remove_import))
        .routes(routes!(preview_import))
        .routes(routes!(start_import))
        .routes(routes!(undo_import))
        .routes(routes!(import_errors))
}

/// A CSV file of accounts to import.
#[derive(Serialize, ToSchema)]
#[schema(as = Import)]
pub struct ImportView {
    #[schema(value_type = String, example = "imp_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    id: ImportId,
    #[schema(example = "accounts.csv")]
    filename: String,
    #[schema(value_type = rapport_domain::import::State)]
    state: &'static str,
    /// Detected, or chosen by the caller.
    #[schema(example = "UTF-8")]
    encoding: &'static str,
    #[schema(example = ";")]
    delimiter: String,
    columns: Vec<ColumnView>,
    /// The field for each column: guessed, reused from the last import with these columns, or chosen.
    #[schema(value_type = HashMap<String, Value>)]
    mapping: Map<String, Value>,
    /// The mapping was reused from the last import with these columns.
    mapping_remembered: bool,
    /// How the numbers or dates of each column are written, for the columns that have a format.
    #[schema(value_type = HashMap<String, Format>)]
    formats: Map<String, Value>,
    /// The stages that were chosen for words, in this import or an earlier one.
    #[schema(value_type = HashMap<String, String>)]
    status_words: Map<String, Value>,
    #[schema(value_type = Mode)]
    mode: &'static str,
    progress: ProgressView,
    counts: Counts,
    /// The rows that the import could not take by reason, those of most rows first.
    failures: Vec<Group>,
    /// The first 20 promo codes of the import that match no active code, in lower case.
    unmatched_promo_codes: Vec<String>,
    /// The result of the last dry run.
    #[schema(required = true, value_type = Option<Preview>)]
    preview: Option<Value>,
    /// The progress of its undo. Null if no undo was requested.
    #[schema(required = true)]
    undo: Option<UndoView>,
    /// Who started or undid the import. Before it is started, who uploaded the file.
    actor: Actor,
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    #[schema(required = true, value_type = Option<String>, format = DateTime)]
    started_at: Option<Time>,
    #[schema(required = true, value_type = Option<String>, format = DateTime)]
    finished_at: Option<Time>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ImportColumn)]
struct ColumnView {
    name: String,
    /// Up to three values.
    samples: Vec<String>,
}

/// The progress of a dry run or an import.
#[derive(Serialize, ToSchema)]
#[schema(as = ImportProgress)]
struct ProgressView {
    rows_done: i64,
    /// Null until a dry run has counted the rows.
    #[schema(required = true)]
    rows_total: Option<i64>,
    bytes_done: i64,
    bytes_total: i64,
}

/// The progress of an undo, in accounts.
#[derive(Serialize, ToSchema)]
#[schema(as = ImportUndo)]
struct UndoView {
    done: i64,
    total: i64,
    /// Accounts with all fields restored.
    restored: i64,
    /// Accounts that the import created and nobody has edited since.
    removed: i64,
    /// Accounts kept in whole or in part because they were edited since.
    kept: i64,
    #[schema(required = true, value_type = Option<String>, format = DateTime)]
    undone_at: Option<Time>,
}

impl From<Import> for ImportView {
    fn from(import: Import) -> Self {
        use rapport_domain::import::State;
        let mapping = import.mapping.to_json(&import.column_names());
        let formatted = import.columns.iter().zip(&import.formats);
        let formats =
            formatted.filter_map(|(column, format)| Some((column.name.clone(), (*format)?.as_str().into())));
        let formats = formats.collect();
        let undo = matches!(import.state, State::Undoing | State::Undone).then(|| UndoView {
            done: import.undo.done,
            total: import.accounts.max(import.undo.done),
            restored: import.undo.restored,
            removed: import.undo.removed,
            kept: import.undo.kept,
            undone_at: import.undone_at,
        });
        let columns = import.columns.into_iter();
        Self {
            id: import.id,
            state: import.state.as_str(),
            encoding: import.charset.name(),
            delimiter: import.delimiter.text(),
            columns: columns
                .map(|column| ColumnView { name: column.name, samples: column.samples })
                .collect(),
            mapping,
            mapping_remembered: import.remembered,
            formats,
            status_words: import.words.to_json(),
            mode: import.mode.as_str(),
            progress: ProgressView {
                rows_done: import.rows_done,
                rows_total: import.rows_total,
                bytes_done: import.at.offset,
                bytes_total: import.bytes,
            },
            counts: import.counts,
            failures: import.findings.by_rows().into_iter().cloned().collect(),
            unmatched_promo_codes: import.findings.unmatched_codes.iter().take(SHOWN).cloned().collect(),
            preview: import.preview,
            undo,
            filename: import.filename,
            actor: import.actor,
            created_at: import.created_at,
            started_at: import.started_at,
            finished_at: import.finished_at,
        }
    }
}

/// List imports
///
/// Newest first.
#[utoipa::path(
    get,
    path = "/api/imports/",
    tag = "Imports",
    params(requests::PageParameters),
    responses((status = 200, description = "A page of imports, newest first.", body = Page<ImportView>)),
    security(("token" = ["read"])),
)]
async fn list_imports(
    State(api): State<Api>,
    caller: Caller,
    mut parameters: Parameters,
) -> Result<Response, Problem> {
    let before = parameters.cursor(|text| read_cursor(LIST, text).map(ImportId::from_bytes));
    let limit = parameters.limit();
    let found = api.read(&caller, READ, parameters.finish(), move |snapshot, _, ()| {
        import::list(snapshot, before, limit)
    });
    let page = found.await?.reply;
    let next_cursor =
        page.items.last().filter(|_| page.more).map(|last| write_cursor(LIST, last.id.as_bytes()));
    let items: Vec<ImportView> = page.items.into_iter().map(ImportView::from).collect();
    Ok(json::respond(StatusCode::OK, &Page { items, next_cursor }))
}

/// Follow an import
///
/// Its state, its counts and how far it is.
#[utoipa::path(
    get,
    path = "/api/imports/{id}/",
    tag = "Imports",
    params(("id" = String, Path, description = "The import's id.")),
    responses((status = 200, description = "The import and its progress.", body = ImportView)),
    security(("token" = ["read"])),
)]
async fn get_import(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id<ImportId>,
) -> Result<Response, Problem> {
    let found = api.read(&caller, READ, id, |snapshot, _, id| import::one(snapshot, id));
    let found = found.await?.reply.ok_or_else(|| Problem::not_found("import"))?;
    Ok(json::respond(StatusCode::OK, &ImportView::from(found)))
}

/// Cancel or remove an import
///
/// A running import is cancelled: rows already imported stay, and you can undo them. Any other import is removed with
/// its file, its errors and the data needed to undo it. Requires the admin role.
#[utoipa::path(
    delete,
    path = "/api/imports/{id}/",
    tag = "Imports",
    params(("id" = String, Path, description = "The import's id.")),
    responses(
        (status = 204, description = "Cancelled or removed."),
        (status = 409, description = "It is being undone."),
    ),
    security(("token" = ["import"])),
)]
async fn remove_import(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id<ImportId>,
) -> Result<Response, Problem> {
    api.write(&caller, id.map(RemoveImport)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Try an import
///
/// Does a dry run over the whole file and reports counts, the first differences and the first errors. Nothing is
/// changed. Files up to 2 MiB are tried immediately, larger ones in the background: follow the import until it is
/// `uploaded` again. Requires the admin role.
#[utoipa::path(
    post,
    path = "/api/imports/{id}/preview/",
    tag = "Imports",
    params(("id" = String, Path, description = "The import's id.")),
    request_body(content = Option<requests::ImportRequest>),
    responses(
        (status = 200, description = "The result is in `preview`.", body = ImportView),
        (status = 202, description = "Started.", body = ImportView),
        (status = 409, description = "It is running or has ended."),
    ),
    security(("token" = ["import"])),
)]
async fn preview_import(
    State(api): State<Api>,
    Id(id): Id<ImportId>,
    call: OptionalCall,
) -> Result<Response, Problem> {
    let (caller, request) = call.parse(Request::parse);
    let (id, request) = api.wanted(&caller, id, request).await?;
    let company = caller.presented.company;
    let tried = preview(api.app(), (&caller.access(), company), id, request).await;
    let import = api.settle(&caller, tried)?;
    let status = if import.state.is_active() { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok(json::respond(status, &ImportView::from(import)))
}

/// Start an import
///
/// Imports the rows in the background, in small steps, and resumes after a restart. The same rules apply as for any
/// other change; history and events have the source `import`. Requires the admin role.
#[utoipa::path(
    post,
    path = "/api/imports/{id}/start/",
    tag = "Imports",
    params(("id" = String, Path, description = "The import's id.")),
    request_body(content = Option<requests::ImportRequest>),
    responses(
        (status = 202, description = "Started.", body = ImportView),
        (status = 409, description = "It is running or has ended."),
    ),
    security(("token" = ["import"])),
)]
async fn start_import(
    State(api): State<Api>,
    Id(id): Id<ImportId>,
    call: OptionalCall,
) -> Result<Response, Problem> {
    let (caller, request) = call.parse(Request::parse);
    let (id, request) = api.wanted(&caller, id, request).await?;
    if let Some(response) = api.recalled(&caller, IMPORT).await? {
        return Ok(response);
    }
    let planned = plan(api.app(), &caller.access(), id, request, (Purpose::Run, None)).await;
    let command = api.settle(&caller, planned)?;
    let render = |import| json::render(StatusCode::ACCEPTED, &ImportView::from(import));
    api.act(&caller, Ok(command), render).await
}

/// Undo an import
///
/// Runs in the background. Updated fields get their old value back if they still have the value from the import.
/// Created accounts are deleted unless someone has edited them since. Possible for 30 days. Requires the admin role.
#[utoipa::path(
    post,
    path = "/api/imports/{id}/undo/",
    tag = "Imports",
    params(("id" = String, Path, description = "The import's id.")),
    responses(
        (status = 202, description = "Started.", body = ImportView),
        (status = 409, description = "It has not ended, was already undone, or ended too long ago."),
    ),
    security(("token" = ["import"])),
)]
async fn undo_import(
    State(api): State<Api>,
    Id(id): Id<ImportId>,
    call: PlainCall,
) -> Result<Response, Problem> {
    let (caller, ready) = call.command(());
    let command = id.and_then(|id| ready.map(|()| UndoImport { id, runner: None }));
    let render = |undoing| json::render(StatusCode::ACCEPTED, &ImportView::from(undoing));
    api.act(&caller, command, render).await
}

impl Api {
    /// Returns the import's id and the request. If they are invalid, verifies the caller before reporting it.
    async fn wanted(
        &self,
        caller: &Caller,
        id: Result<ImportId, Problem>,
        request: Result<Request, Problem>,
    ) -> Result<(ImportId, Request), Problem> {
        match id.and_then(|id| Ok((id, request?))) {
            Ok(wanted) => Ok(wanted),
            Err(problem) => {
                self.verify(caller, IMPORT).await?;
                Err(problem)
            }
        }
    }
}

/// Get an import's error file
///
/// The rows with errors, with their original cells plus `import_line` and `import_error`, in UTF-8 with commas. Cells
/// that a spreadsheet would treat as a formula begin with an apostrophe. You can correct the file and import it again.
/// It has at most the first 100,000 rows and is kept for 30 days.
#[utoipa::path(
    get,
    path = "/api/imports/{id}/errors/",
    tag = "Imports",
    params(("id" = String, Path, description = "The import's id.")),
    responses((status = 200, description = "The file.", body = String, content_type = "text/csv")),
    security(("token" = ["export"])),
)]
async fn import_errors(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id<ImportId>,
) -> Result<Response, Problem> {
    let id = match id {
        Ok(id) => id,
        Err(problem) => {
            api.verify(&caller, EXPORT).await?;
            return Err(problem);
        }
    };
    let opened = ErrorFile::open(api.app(), &caller.access(), id).await;
    Ok(error_file::respond(api.settle(&caller, opened)?))
}

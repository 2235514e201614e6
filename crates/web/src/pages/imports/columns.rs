//! The columns step: a sample of the file, and a field for each column. The dry run follows.

use askama::Template;
use axum::response::{IntoResponse as _, Redirect, Response};
use rapport_app::read::import::with_beginning;
use rapport_app::{Error, import as imports};
use rapport_domain::id::ImportId;
use rapport_domain::import::mapping::Target;
use rapport_domain::import::{Import, Mode, Request, State as Stage};
use rapport_domain::invalid::Invalid;
use serde_json::{Map, Value, json};

use super::words::{self, CUSTOM, Step};
use super::{find, path_of, settle};
use crate::pages::IMPORT;
use crate::pages::kit::action::Action;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit};

const SHOWN_ROWS: usize = 5;
/// How many columns of the first rows are shown. All columns can be mapped.
const SHOWN_COLUMNS: usize = 12;
const MAX_CELL_CHARS: usize = 80;

#[derive(Template)]
#[template(path = "imports/columns.html")]
pub struct ColumnsPage {
    frame: Frame,
    step: Step,
    import: Import,
    /// The first rows of the file.
    rows: Vec<Vec<String>>,
    columns: Vec<Column>,
    /// The names of the fields that show their faults themselves.
    shown: String,
    /// The field of each column.
    draft: Draft,
    /// The encoding and delimiter.
    layout: Draft,
    encodings: Vec<(&'static str, &'static str)>,
    delimiters: Vec<(&'static str, &'static str)>,
}
framed!("imports": ColumnsPage);

/// A column, with the names of its two form fields.
struct Column {
    name: String,
    samples: Vec<String>,
    target: String,
    key: String,
}

impl Load<ImportId> for ColumnsPage {
    async fn load(visit: &Visit<ImportId>) -> Result<Self, Refusal> {
        let id = visit.id;
        let read = visit.read(IMPORT, move |snapshot, _| with_beginning(snapshot, id));
        let Shown { frame, reply } = read.await?;
        let (import, first) = reply.ok_or_else(|| Refusal::not_found("import"))?;
        let rows = import.first_rows(&first, SHOWN_ROWS).into_iter();
        let shown = |cells: Vec<String>| {
            let cells = cells.into_iter().take(SHOWN_COLUMNS);
            cells.map(|cell| cell.chars().take(MAX_CELL_CHARS).collect()).collect()
        };
        Ok(Self::of(frame, rows.map(|row| shown(row.cells)).collect(), import))
    }
}

impl ColumnsPage {
    const MODES: [(Mode, &'static str); 3] = [
        (Mode::Both, "Create new accounts and update existing ones"),
        (Mode::Create, "Only create new accounts"),
        (Mode::Update, "Only update existing accounts"),
    ];

    fn of(frame: Frame, rows: Vec<Vec<String>>, import: Import) -> Self {
        let columns = import.columns.iter().enumerate().map(|(number, column)| Column {
            name: column.name.clone(),
            samples: column.samples.clone(),
            target: target_field(number),
            key: key_field(number),
        });
        let columns: Vec<Column> = columns.collect();
        let encoding = import.charset.name();
        let delimiter = words::delimiter_value(import.delimiter);
        let kept = words::ENCODINGS
            .into_iter()
            .filter(|(name, _)| rapport_domain::import::charset::Charset::from_stored(name).is_kept());
        let mut encodings: Vec<_> = if import.charset.is_kept() { kept.collect() } else { Vec::new() };
        if !encodings.iter().any(|(name, _)| *name == encoding) {
            encodings.push((encoding, encoding));
        }
        Self {
            shown: columns.iter().map(|column| column.target.as_str()).collect::<Vec<_>>().join(" "),
            columns,
            step: Step::Columns,
            draft: chosen(&import),
            layout: Draft::new([("encoding", encoding.to_owned()), ("delimiter", delimiter)]),
            encodings,
            delimiters: words::DELIMITERS.to_vec(),
            frame,
            rows,
            import,
        }
    }

    fn column_count(&self) -> i64 {
        i64::try_from(self.columns.len()).unwrap_or(i64::MAX)
    }

    fn hidden_columns(&self) -> i64 {
        i64::try_from(self.columns.len().saturating_sub(SHOWN_COLUMNS)).unwrap_or(0)
    }
}

fn target_field(number: usize) -> String {
    format!("column-{number}")
}

fn key_field(number: usize) -> String {
    format!("key-{number}")
}

/// The mapping as form fields.
fn chosen(import: &Import) -> Draft {
    let fields = import.mapping.0.iter().enumerate().flat_map(|(number, target)| {
        let (word, key) = match target {
            Target::Field(key) => (CUSTOM.to_owned(), key.clone()),
            other => (other.as_text(), String::new()),
        };
        [(target_field(number), word), (key_field(number), key)]
    });
    let fields: Vec<(String, String)> =
        fields.chain([("mode".to_owned(), import.mode.as_str().to_owned())]).collect();
    Draft::new(fields.iter().map(|(name, value)| (name.as_str(), value.clone())))
}

pub async fn show(visit: Visit<ImportId>) -> Result<Response, Refusal> {
    let page = ColumnsPage::load(&visit).await?;
    // Once the import has started, the columns are fixed.
    if page.import.state != Stage::Uploaded {
        return Ok(Redirect::to(&path_of(page.import.id)).into_response());
    }
    Ok(page.respond())
}

/// Starts the dry run.
pub async fn try_out(action: Action<ImportId>) -> Result<Response, Refusal> {
    let import = find(&action).await?.reply;
    let tried = try_with(&action, &import).await;
    settle(&action, tried, |page, draft| page.draft = draft).await?;
    Ok(Redirect::to(&path_of(action.id)).into_response())
}

async fn try_with(action: &Action<ImportId>, import: &Import) -> Result<(), Error> {
    let beside = |invalid| Error::from(beside_the_columns(invalid, import));
    let request = request(&action.form, import).map_err(beside)?;
    let (access, company) = (action.visitor.access(), action.visitor.session.company);
    let tried = imports::preview(action.pages.app(), (&access, company), import.id, request).await;
    match tried {
        Ok(_) => Ok(()),
        Err(Error::Invalid(invalid)) => Err(beside(invalid)),
        Err(error) => Err(error),
    }
}

/// Reads the file again with another encoding or delimiter.
pub async fn read_again(action: Action<ImportId>) -> Result<Response, Refusal> {
    let read = try_to_read(&action).await;
    settle(&action, read, |page, draft| page.layout = draft).await?;
    action.done(&format!("{}/columns", path_of(action.id)), "File read again. Check the columns.")
}

async fn try_to_read(action: &Action<ImportId>) -> Result<(), Error> {
    let request = Request::parse(&action.form.members(&[("encoding", As::Text), ("delimiter", As::Text)]))?;
    imports::read_again(action.pages.app(), &action.visitor.access(), action.id, request).await?;
    Ok(())
}

/// The mapping as the API takes it.
fn request(form: &Form, import: &Import) -> Result<Request, Invalid> {
    let mapping = import.columns.iter().enumerate().filter_map(|(number, column)| {
        let word = match form.text(&target_field(number)) {
            CUSTOM => Target::Field(form.text(&key_field(number)).trim().to_owned()).as_text(),
            word => word.to_owned(),
        };
        (!word.is_empty()).then(|| (column.name.clone(), Value::from(word)))
    });
    let mapping: Map<String, Value> = mapping.collect();
    let mut members = form.members(&[("mode", As::Text)]);
    members.insert("mapping".to_owned(), json!(mapping));
    Request::parse(&members)
}

/// Moves faults from the names of columns to the numbered fields of the form.
fn beside_the_columns(mut invalid: Invalid, import: &Import) -> Invalid {
    for fault in &mut invalid.0 {
        let Some(rest) = fault.pointer.strip_prefix("/mapping") else { continue };
        let name = rest.trim_start_matches('/').replace("~1", "/").replace("~0", "~");
        if let Some(number) = import.columns.iter().position(|column| column.name == name) {
            fault.pointer = format!("/{}", target_field(number));
        } else {
            fault.pointer.clear();
            fault.detail = format!("the mapping {}", fault.detail);
        }
    }
    invalid
}

//! The columns step: a sample of the file, and a field for each column. The dry run follows.

use askama::Template;
use axum::response::{IntoResponse as _, Redirect, Response};
use rapport_app::read::import::with_beginning;
use rapport_app::{Error, import as imports};
use rapport_domain::id::ImportId;
use rapport_domain::import::format::{Format, Shape};
use rapport_domain::import::mapping::Target;
use rapport_domain::import::{Import, Mode, Request, State as Stage};
use rapport_domain::invalid::Invalid;
use serde_json::{Map, Value, json};

use super::format_choice::FormatChoice;
use super::word_choice::{self, WordChoice};
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
    /// The words in the status column.
    stages: Vec<WordChoice>,
    meanings: Vec<(&'static str, &'static str)>,
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

/// A column, with the names of its form fields.
struct Column {
    name: String,
    samples: Vec<Sample>,
    target: String,
    key: String,
    format: String,
    /// For numbers and dates.
    choice: Option<FormatChoice>,
}

/// A value, and how it is read.
struct Sample {
    text: String,
    read: Option<String>,
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
        let values = import.first_values(&first);
        Ok(Self::of(frame, rows.map(|row| shown(row.cells)).collect(), &values, import))
    }
}

impl ColumnsPage {
    const MODES: [(Mode, &'static str); 3] = [
        (Mode::Both, "Create new accounts and update existing ones"),
        (Mode::Create, "Only create new accounts"),
        (Mode::Update, "Only update existing accounts"),
    ];

    fn of(frame: Frame, rows: Vec<Vec<String>>, values: &[Vec<String>], import: Import) -> Self {
        let columns: Vec<Column> =
            (0..import.columns.len()).map(|number| column(&import, number, &values[number])).collect();
        let stages = word_choice::words(&import, values);
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
            shown: shown_fields(&columns, &stages),
            draft: chosen(&import, &columns, &stages),
            columns,
            stages,
            meanings: word_choice::options(),
            step: Step::Columns,
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

fn format_field(number: usize) -> String {
    format!("format-{number}")
}

fn column(import: &Import, number: usize, values: &[String]) -> Column {
    let head = &import.columns[number];
    let choice = FormatChoice::of(import, number, values);
    let sample = |text: &String| Sample {
        read: choice.as_ref().and_then(|choice| choice.read(text)),
        text: text.clone(),
    };
    Column {
        name: head.name.clone(),
        samples: head.samples.iter().map(sample).collect(),
        target: target_field(number),
        key: key_field(number),
        format: format_field(number),
        choice,
    }
}

/// The fields that show their faults themselves.
fn shown_fields(columns: &[Column], stages: &[WordChoice]) -> String {
    let of_columns = columns.iter().flat_map(|column| {
        let format = column.choice.as_ref().map(|_| column.format.as_str());
        [Some(column.target.as_str()), format].into_iter().flatten()
    });
    of_columns.chain(stages.iter().map(|word| word.field.as_str())).collect::<Vec<_>>().join(" ")
}

/// The mapping as form fields.
fn chosen(import: &Import, columns: &[Column], stages: &[WordChoice]) -> Draft {
    let fields = import.mapping.0.iter().enumerate().flat_map(|(number, target)| {
        let (word, key) = match target {
            Target::Field(key) => (CUSTOM.to_owned(), key.clone()),
            other => (other.as_text(), String::new()),
        };
        [(target_field(number), word), (key_field(number), key)]
    });
    let formats = columns.iter().filter_map(|column| {
        column.choice.as_ref().map(|choice| (column.format.clone(), choice.chosen.to_owned()))
    });
    let words = stages.iter().map(|word| (word.field.clone(), word.meaning.to_owned()));
    let mode = [("mode".to_owned(), import.mode.as_str().to_owned())];
    let fields: Vec<(String, String)> = fields.chain(formats).chain(words).chain(mode).collect();
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
    members.insert("formats".to_owned(), json!(formats(form, import, &mapping)));
    members.insert("mapping".to_owned(), json!(mapping));
    members.insert("status_words".to_owned(), json!(word_choice::chosen(form, import)));
    Request::parse(&members)
}

/// The formats of the columns that need one. A format for another kind of field is left out: the values decide.
fn formats(form: &Form, import: &Import, mapping: &Map<String, Value>) -> Map<String, Value> {
    let format = |(number, column): (usize, &rapport_domain::import::head::Column)| {
        let target = mapping.get(&column.name)?.as_str().and_then(|word| Target::parse(word).ok())?;
        let format = Format::parse(form.given(&format_field(number))?).ok()?;
        (Shape::of_target(&target) == Some(format.shape()))
            .then(|| (column.name.clone(), format.as_str().into()))
    };
    import.columns.iter().enumerate().filter_map(format).collect()
}

/// Moves faults from the names of columns to the numbered fields of the form.
fn beside_the_columns(mut invalid: Invalid, import: &Import) -> Invalid {
    for fault in &mut invalid.0 {
        let (rest, is_format) =
            match (fault.pointer.strip_prefix("/mapping"), fault.pointer.strip_prefix("/formats")) {
                (Some(rest), _) => (rest, false),
                (None, Some(rest)) => (rest, true),
                (None, None) => continue,
            };
        let name = rest.trim_start_matches('/').replace("~1", "/").replace("~0", "~");
        let Some(number) = import.columns.iter().position(|column| column.name == name) else {
            fault.pointer.clear();
            fault.detail = format!("the mapping {}", fault.detail);
            continue;
        };
        // A column that had no format has no field for it yet; its fault is beside the choice of its field.
        let has_field = is_format && Shape::of_target(&import.mapping.0[number]).is_some();
        fault.pointer = format!("/{}", if has_field { format_field(number) } else { target_field(number) });
        if fault.code == "ambiguous" {
            let value = fault.detail.split(" can be read").next().unwrap_or_default();
            fault.detail = format!("{value} can be read in two ways. Choose a format");
        }
    }
    invalid
}

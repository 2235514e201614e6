//! Everything that is stored about a company or about one of its accounts, as one file. `docs/full-export.md` describes it.
//!
//! - JSON lines: a line about the file, one for each row, and one that says that the file is complete.
//! - CSV: an archive with a file for each table (`archive`), and the first and last line as files of their own.
//!
//! It is read page by page, each in a snapshot of its own, so that it needs little memory and nothing waits for it.

mod archive;

use rapport_domain::company::Company;
use rapport_domain::file_format::Format;
use rapport_domain::id::AccountId;
use rapport_domain::time::Time;
use rapport_store::company_data::exported;
use rapport_store::{Snapshot, account};
use serde_json::{Map, Value, json};

use crate::account::is_known;
use crate::error::Error;
use crate::settings::shown;
use archive::Archive;

pub use rapport_store::company_data::{Place, Rows, Scope, Subject, page};

/// The version of the format. A reader should refuse one that it doesn't know.
pub const VERSION: u32 = 1;

/// The media type of a file.
pub const fn media_type(format: Format) -> &'static str {
    match format {
        Format::JsonLines => "application/jsonl",
        Format::Csv => "application/zip",
    }
}

/// The end of a file's name.
pub const fn extension(format: Format) -> &'static str {
    match format {
        Format::JsonLines => "jsonl",
        Format::Csv => "zip",
    }
}

/// An account to export. It may be deleted, as long as something about it is stored.
pub fn subject(snapshot: &mut Snapshot, id: AccountId) -> Result<Option<Subject>, rapport_store::Error> {
    if let Some(found) = account::get(snapshot, id)? {
        return Ok(Some(Subject { id, imported_id: found.imported_id }));
    }
    // The imported_id of a deleted account may be another one's by now.
    Ok(is_known(snapshot, id)?.then_some(Subject { id, imported_id: None }))
}

/// The same, by its id or its imported_id.
pub fn named(snapshot: &mut Snapshot, name: &str) -> Result<Option<Subject>, rapport_store::Error> {
    if let Ok(id) = name.parse()
        && let Some(found) = subject(snapshot, id)?
    {
        return Ok(Some(found));
    }
    match account::ids_by_imported_id(snapshot, &[name])?.pop() {
        Some((_, id)) => subject(snapshot, id),
        None => Ok(None),
    }
}

/// Turns pages into the bytes of a file.
pub struct Writer {
    form: Form,
    /// How many rows each table has so far.
    counts: Vec<(&'static str, u64)>,
}

enum Form {
    /// What comes before the next line.
    JsonLines(Vec<u8>),
    /// None once it is complete.
    Csv(Option<Box<Archive>>),
}

impl Writer {
    pub fn begin(format: Format, scope: &Scope, company: &Company, now: Time) -> Result<Self, Error> {
        let head = head(scope, company, now);
        let tables = exported(scope);
        let counts = tables.iter().map(|(table, _)| (*table, 0)).collect();
        let form = match format {
            Format::JsonLines => Form::JsonLines(line(&head)),
            Format::Csv => Form::Csv(Some(Box::new(Archive::begin(&head, tables, now).map_err(broken)?))),
        };
        Ok(Self { form, counts })
    }

    /// The number of rows so far.
    pub fn rows(&self) -> u64 {
        self.counts.iter().map(|(_, rows)| rows).sum()
    }

    /// The next bytes. With the last page, the file is complete.
    pub fn write(&mut self, Rows { table, rows, next }: Rows) -> Result<Vec<u8>, Error> {
        if let Some((_, count)) = self.counts.iter_mut().find(|(name, _)| *name == table) {
            *count += rows.len() as u64;
        }
        let end = next.is_none().then(|| self.end());
        match &mut self.form {
            Form::JsonLines(before) => {
                let mut text = std::mem::take(before);
                for row in rows {
                    text.extend(line(&json!({ "table": table, "row": row })));
                }
                text.extend(end.iter().flat_map(line));
                Ok(text)
            }
            Form::Csv(archive) => {
                let Some(open) = archive else { return Ok(Vec::new()) };
                if !rows.is_empty() {
                    open.write(table, rows).map_err(broken)?;
                }
                match (end, archive.take()) {
                    (Some(end), Some(open)) => open.end(&end).map_err(broken),
                    (_, open) => {
                        *archive = open;
                        Ok(archive.as_ref().map(|open| open.take()).unwrap_or_default())
                    }
                }
            }
        }
    }

    /// Says that the file is complete, and how many rows it has.
    fn end(&self) -> Value {
        let tables: Map<String, Value> =
            self.counts.iter().map(|(table, rows)| ((*table).to_owned(), (*rows).into())).collect();
        json!({ "end": true, "rows": self.rows(), "tables": tables })
    }
}

/// What a file is about.
fn head(scope: &Scope, company: &Company, now: Time) -> Value {
    let mut head = json!({
        "format": "rapport company export",
        "version": VERSION,
        "exported_at": now.to_string(),
        "project": company.slug.as_str(),
    });
    match scope {
        Scope::Company => {
            head["created_at"] = company.created_at.to_string().into();
            head["settings"] = shown(company);
        }
        Scope::Account(Subject { id, imported_id }) => {
            head["format"] = "rapport account export".into();
            head["account"] = id.to_string().into();
            head["imported_id"] = imported_id.clone().into();
        }
    }
    head
}

fn line(value: &Value) -> Vec<u8> {
    let mut line = value.to_string().into_bytes();
    line.push(b'\n');
    line
}

/// Memory doesn't fail, and each table is written once.
fn broken(error: impl std::fmt::Display) -> Error {
    Error::Internal(format!("failed to write an archive: {error}"))
}

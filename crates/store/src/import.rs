//! Imports and their progress. Their files, errors and changes are in `import_data`.

use std::collections::BTreeMap;

use rapport_domain::history::Actor;
use rapport_domain::id::{CompanyId, ImportId};
use rapport_domain::import::charset::Charset;
use rapport_domain::import::failure::Findings;
use rapport_domain::import::format::Format;
use rapport_domain::import::head::Column;
use rapport_domain::import::mapping::{Mapping, Target};
use rapport_domain::import::reading::{Delimiter, Position};
use rapport_domain::import::status_word::StatusWords;
use rapport_domain::import::{Counts, Import, Lease, Mode, State, Undo};
use rapport_domain::time::Time;
use serde_json::{Value as Json, json};

use crate::error::Error;
use crate::page::Page;
use crate::statement::{InsertMany, UpdateMany, statements};
use crate::tx::{Across, Snapshot, Tx};
use crate::value::{Row, Type, Value};
use crate::values;

macro_rules! select_import {
    ($rest:literal) => {
        concat!(
            "SELECT id, filename, state, bytes, charset, delimiter, columns, mapping, remembered, mode, ",
            "data_offset, data_line, at_offset, at_line, rows_done, rows_total, created, updated, unchanged, ",
            "skipped, failed, codes_unmatched, accounts, preview, undo_after, undo_done, undo_restored, ",
            "undo_removed, undo_kept, actor_kind, actor_id, actor_name, runner, lease_until, created_at, ",
            "started_at, finished_at, undone_at, formats, words, findings FROM import ",
            $rest
        )
    };
}

statements! {
    company GET = select_import!("WHERE company = $1 AND id = $2 AND deleted_at IS NULL");
    company LOCK = select_import!("WHERE company = $1 AND id = $2 AND deleted_at IS NULL FOR UPDATE");
    company LIST =
        select_import!("WHERE company = $1 AND id < $2 AND deleted_at IS NULL ORDER BY id DESC LIMIT $3");
    company OPEN = "SELECT count(*) FROM import WHERE company = $1 AND finished_at IS NULL AND deleted_at IS NULL";
    company DELETE = "UPDATE import SET deleted_at = $3, active = 0 WHERE company = $1 AND id = $2";
    reference ACTIVE = "SELECT company, id FROM import WHERE active = 1 ORDER BY company, id";
    reference OWNERS = "SELECT company, id FROM import WHERE id = $1 AND deleted_at IS NULL";
}

/// The columns that a step changes, after the key.
const PROGRESS: [(&str, Type); 23] = [
    ("state", Type::Text),
    ("active", Type::Int),
    ("at_offset", Type::Int),
    ("at_line", Type::Int),
    ("rows_done", Type::Int),
    ("rows_total", Type::Int),
    ("created", Type::Int),
    ("updated", Type::Int),
    ("unchanged", Type::Int),
    ("skipped", Type::Int),
    ("failed", Type::Int),
    ("codes_unmatched", Type::Int),
    ("accounts", Type::Int),
    ("undo_after", Type::Bytes),
    ("undo_done", Type::Int),
    ("undo_restored", Type::Int),
    ("undo_removed", Type::Int),
    ("undo_kept", Type::Int),
    ("runner", Type::Int),
    ("lease_until", Type::Int),
    ("finished_at", Type::Int),
    ("undone_at", Type::Int),
    ("findings", Type::Text),
];

/// The columns that are set once, or between two runs.
const REST: [(&str, Type); 17] = [
    ("filename", Type::Text),
    ("bytes", Type::Int),
    ("charset", Type::Text),
    ("delimiter", Type::Text),
    ("columns", Type::Text),
    ("mapping", Type::Text),
    ("remembered", Type::Int),
    ("mode", Type::Text),
    ("data_offset", Type::Int),
    ("data_line", Type::Int),
    ("preview", Type::Text),
    ("actor_kind", Type::Text),
    ("actor_id", Type::Bytes),
    ("actor_name", Type::Text),
    ("started_at", Type::Int),
    ("formats", Type::Text),
    ("words", Type::Text),
];

const fn joined<const N: usize>(first: &[(&'static str, Type)]) -> [(&'static str, Type); N] {
    let mut all = [("", Type::Int); N];
    let mut at = 0;
    while at < N {
        all[at] = if at < first.len() {
            first[at]
        } else if at < first.len() + PROGRESS.len() {
            PROGRESS[at - first.len()]
        } else {
            REST[at - first.len() - PROGRESS.len()]
        };
        at += 1;
    }
    all
}

const ALL: [(&str, Type); 40] = joined(&[]);
const INSERTED: [(&str, Type); 42] = joined(&[("id", Type::Bytes), ("created_at", Type::Int)]);
const KEY: &[(&str, Type)] = &[("id", Type::Bytes)];

pub(crate) static INSERT: InsertMany = InsertMany::new("import", &INSERTED, "");
pub(crate) static UPDATE: UpdateMany = UpdateMany::new("import", KEY, &ALL);
pub(crate) static UPDATE_PROGRESS: UpdateMany = UpdateMany::new("import", KEY, &PROGRESS);

pub fn get(snapshot: &mut Snapshot, id: ImportId) -> Result<Option<Import>, Error> {
    snapshot.query_opt(&GET, values![&id])?.map(read).transpose()
}

pub fn lock(tx: &mut Tx, id: ImportId) -> Result<Option<Import>, Error> {
    tx.query_opt(&LOCK, values![&id])?.map(read).transpose()
}

/// Newest first, before `before` if given.
pub fn list(snapshot: &mut Snapshot, before: Option<ImportId>, limit: i64) -> Result<Page<Import>, Error> {
    let before = before.unwrap_or(ImportId::from_bytes([0xff; 16]));
    let rows = snapshot.query(&LIST, values![&before, limit + 1])?;
    let imports = rows.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::from_one_more(imports, limit))
}

/// The number of open imports.
pub fn open(snapshot: &mut Snapshot) -> Result<i64, Error> {
    snapshot.query_opt(&OPEN, &[])?.map_or(Ok(0), |mut row| row.take())
}

pub fn insert(tx: &mut Tx, new: &Import) -> Result<(), Error> {
    let (texts, findings) = (Texts::of(new), new.findings.to_stored());
    let mut row = vec![Value::from(&new.id), new.created_at.into()];
    bind_progress(new, &findings, &mut row);
    bind_rest(new, &texts, &mut row);
    tx.insert(&INSERT, &row)?;
    Ok(())
}

/// Writes all columns.
pub fn update(tx: &mut Tx, changed: &Import) -> Result<(), Error> {
    let (texts, findings) = (Texts::of(changed), changed.findings.to_stored());
    let mut row = vec![Value::from(&changed.id)];
    bind_progress(changed, &findings, &mut row);
    bind_rest(changed, &texts, &mut row);
    tx.update(&UPDATE, &row)
}

/// Writes the progress only.
pub fn update_progress(tx: &mut Tx, changed: &Import) -> Result<(), Error> {
    let findings = changed.findings.to_stored();
    let mut row = vec![Value::from(&changed.id)];
    bind_progress(changed, &findings, &mut row);
    tx.update(&UPDATE_PROGRESS, &row)
}

/// Hides it immediately; its data is deleted in steps.
pub fn delete(tx: &mut Tx, id: ImportId, now: Time) -> Result<(), Error> {
    tx.execute(&DELETE, values![&id, now])?;
    Ok(())
}

/// The imports of all companies that a process has to work on.
pub fn active(across: &mut Across) -> Result<Vec<(CompanyId, ImportId)>, Error> {
    across.query(&ACTIVE, &[])?.into_iter().map(|mut row| Ok((row.take()?, row.take()?))).collect()
}

/// The company that an import belongs to.
pub fn company_of(across: &mut Across, id: ImportId) -> Result<Option<CompanyId>, Error> {
    across.query_opt(&OWNERS, values![&id])?.map(|mut row| row.take()).transpose()
}

/// The parts of an import that are stored as text.
struct Texts {
    delimiter: String,
    columns: String,
    mapping: String,
    preview: Option<String>,
    formats: String,
    words: String,
}

impl Texts {
    fn of(import: &Import) -> Self {
        let column = |column: &Column| json!([column.name, column.samples]);
        let targets: Vec<String> = import.mapping.0.iter().map(Target::as_text).collect();
        Self {
            delimiter: import.delimiter.text(),
            columns: Json::Array(import.columns.iter().map(column).collect()).to_string(),
            mapping: json!(targets).to_string(),
            preview: import.preview.as_ref().map(Json::to_string),
            formats: write_formats(&import.formats),
            words: write_words(&import.words),
        }
    }
}

fn bind_progress<'a>(import: &'a Import, findings: &'a str, row: &mut Vec<Value<'a>>) {
    let Import { counts, undo, .. } = import;
    row.extend::<[Value; 23]>([
        import.state.as_str().into(),
        import.state.is_active().into(),
        import.at.offset.into(),
        import.at.line.into(),
        import.rows_done.into(),
        import.rows_total.into(),
        counts.created.into(),
        counts.updated.into(),
        counts.unchanged.into(),
        counts.skipped.into(),
        counts.failed.into(),
        counts.promo_codes_unmatched.into(),
        import.accounts.into(),
        undo.after.as_ref().into(),
        undo.done.into(),
        undo.restored.into(),
        undo.removed.into(),
        undo.kept.into(),
        import.lease.map(|lease| lease.runner).into(),
        import.lease.map(|lease| lease.until).into(),
        import.finished_at.into(),
        import.undone_at.into(),
        findings.into(),
    ]);
}

fn bind_rest<'a>(import: &'a Import, texts: &'a Texts, row: &mut Vec<Value<'a>>) {
    row.extend::<[Value; 17]>([
        (&import.filename).into(),
        import.bytes.into(),
        import.charset.name().into(),
        (&texts.delimiter).into(),
        (&texts.columns).into(),
        (&texts.mapping).into(),
        import.remembered.into(),
        import.mode.as_str().into(),
        import.data.offset.into(),
        import.data.line.into(),
        texts.preview.as_deref().into(),
        import.actor.kind().into(),
        import.actor.id_bytes().map(<[u8; 16]>::as_slice).into(),
        import.actor.name().into(),
        import.started_at.into(),
        (&texts.formats).into(),
        (&texts.words).into(),
    ]);
}

fn read(mut row: Row) -> Result<Import, Error> {
    let row = &mut row;
    let mut import = Import {
        id: row.take()?,
        filename: row.take()?,
        state: State::parse(&row.take::<String>()?).ok_or_else(|| bad("state"))?,
        bytes: row.take()?,
        charset: Charset::from_stored(&row.take::<String>()?),
        delimiter: Delimiter::from_stored(&row.take::<String>()?),
        columns: read_columns(&row.take::<String>()?)?,
        mapping: read_mapping(&row.take::<String>()?)?,
        remembered: row.take()?,
        mode: Mode::parse(&row.take::<String>()?).map_err(|_| bad("mode"))?,
        data: Position { offset: row.take()?, line: row.take()? },
        at: Position { offset: row.take()?, line: row.take()? },
        rows_done: row.take()?,
        rows_total: row.take()?,
        counts: Counts {
            created: row.take()?,
            updated: row.take()?,
            unchanged: row.take()?,
            skipped: row.take()?,
            failed: row.take()?,
            promo_codes_unmatched: row.take()?,
        },
        accounts: row.take()?,
        preview: row
            .take::<Option<String>>()?
            .map(|text| serde_json::from_str(&text).map_err(|_| bad("preview")))
            .transpose()?,
        undo: Undo {
            after: row.take()?,
            done: row.take()?,
            restored: row.take()?,
            removed: row.take()?,
            kept: row.take()?,
        },
        actor: Actor::from_parts(&row.take::<String>()?, row.take()?, row.take()?),
        lease: match (row.take()?, row.take()?) {
            (Some(runner), Some(until)) => Some(Lease { runner, until }),
            (None, _) | (_, None) => None,
        },
        created_at: row.take()?,
        started_at: row.take()?,
        finished_at: row.take()?,
        undone_at: row.take()?,
        formats: Vec::new(),
        words: StatusWords::default(),
        findings: Findings::default(),
    };
    import.formats = read_formats(&row.take::<String>()?);
    import.words = read_words(&row.take::<String>()?);
    import.findings = Findings::from_stored(&row.take::<String>()?);
    Ok(import)
}

fn write_formats(formats: &[Option<Format>]) -> String {
    if formats.iter().all(Option::is_none) {
        return String::new();
    }
    json!(formats.iter().map(|format| format.map(Format::as_str)).collect::<Vec<_>>()).to_string()
}

fn read_formats(text: &str) -> Vec<Option<Format>> {
    let words: Vec<Option<String>> = serde_json::from_str(text).unwrap_or_default();
    words.into_iter().map(|word| Format::parse(&word?).ok()).collect()
}

fn write_words(words: &StatusWords) -> String {
    if words.is_empty() { String::new() } else { Json::Object(words.to_json()).to_string() }
}

fn read_words(text: &str) -> StatusWords {
    StatusWords::from_pairs(serde_json::from_str::<BTreeMap<String, String>>(text).unwrap_or_default())
}

fn read_columns(text: &str) -> Result<Vec<Column>, Error> {
    let stored: Vec<(String, Vec<String>)> = serde_json::from_str(text).map_err(|_| bad("columns"))?;
    Ok(stored.into_iter().map(|(name, samples)| Column { name, samples }).collect())
}

fn read_mapping(text: &str) -> Result<Mapping, Error> {
    let words: Vec<String> = serde_json::from_str(text).map_err(|_| bad("mapping"))?;
    let targets = words.iter().map(|word| Target::parse(word).map_err(|_| bad("mapping")));
    Ok(Mapping(targets.collect::<Result<_, _>>()?))
}

fn bad(what: &str) -> Error {
    Error::fault(format!("an import's stored {what} is not valid"))
}

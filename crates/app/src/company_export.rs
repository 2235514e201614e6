//! Everything that a company stored, as one file of JSON lines: a line about the file, one for each row, and one that
//! says that the file is complete. `docs/full-export.md` describes it.
//!
//! It is read page by page, each in a snapshot of its own, so that it needs little memory and nothing waits for it.

use rapport_domain::company::Company;
use rapport_domain::time::Time;
use serde_json::{Map, Value, json};

use crate::settings::shown;

pub use rapport_store::company_data::{Place, Rows, page};

/// The version of the format. A reader should refuse one that it doesn't know.
pub const VERSION: u32 = 1;
pub const MEDIA_TYPE: &str = "application/jsonl";
pub const EXTENSION: &str = "jsonl";

/// The first line: which company, and its settings.
pub fn head(company: &Company, now: Time) -> Vec<u8> {
    line(&json!({
        "format": "rapport company export",
        "version": VERSION,
        "exported_at": now.to_string(),
        "project": company.slug.as_str(),
        "created_at": company.created_at.to_string(),
        "settings": shown(company),
    }))
}

/// A line for each row.
pub fn lines(table: &str, rows: Vec<Map<String, Value>>) -> Vec<u8> {
    rows.into_iter().flat_map(|row| line(&json!({ "table": table, "row": row }))).collect()
}

/// The last line.
pub fn end(rows: u64) -> Vec<u8> {
    line(&json!({ "end": true, "rows": rows }))
}

fn line(value: &Value) -> Vec<u8> {
    let mut line = value.to_string().into_bytes();
    line.push(b'\n');
    line
}

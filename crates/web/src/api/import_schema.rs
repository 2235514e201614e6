//! Shapes of imports for the OpenAPI document alone: what the domain parses from raw members, and what it
//! keeps as it was found.

#![expect(dead_code, reason = "these types describe; nothing makes one")]

use utoipa::{IntoParams, ToSchema};

/// Where an import stands. `uploaded` waits for a dry run or the start.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum ImportState {
    Uploading,
    Uploaded,
    Previewing,
    Running,
    Finished,
    Cancelled,
    Undoing,
    Undone,
}

/// What rows may do: create accounts, update those that are there, or both.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum ImportMode {
    Create,
    Update,
    Both,
}

/// How a file is to be taken in. What is left out stays as the import says.
#[derive(ToSchema)]
pub struct ImportRequest {
    /// The field of each column by its name: `imported_id`, `name`, `status`, `promo_code`, `captured_value`,
    /// `captured_value_currency`, `cadence_days`, `custom_fields.KEY` or `ignore`. Columns that are not named
    /// are ignored.
    #[schema(value_type = Option<Object>, example = json!({"Record ID": "imported_id", "Company": "name", "Plan": "custom_fields.plan"}))]
    mapping: Option<String>,
    mode: Option<ImportMode>,
    /// UTF-8 or a single-byte encoding, such as `windows-1252`.
    encoding: Option<String>,
    /// One character, or `tab`.
    delimiter: Option<String>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct UploadParameters {
    /// What the file is called.
    #[param(max_length = 255)]
    filename: Option<String>,
    /// Its encoding, instead of finding it out: a byte order mark, else valid UTF-8, else Windows-1252.
    encoding: Option<String>,
    /// Its delimiter, instead of finding it out: one character, or `tab`.
    delimiter: Option<String>,
}

/// What a dry run found.
#[derive(ToSchema)]
pub struct ImportPreview {
    rows: i64,
    counts: ImportCounts,
    /// False for a file with more new accounts than are remembered: rows of one imported_id may then count as
    /// created twice.
    exact: bool,
    /// The first 20.
    differences: Vec<ImportDifference>,
    /// The first 20.
    errors: Vec<ImportError>,
}

#[derive(ToSchema)]
pub struct ImportCounts {
    created: i64,
    updated: i64,
    unchanged: i64,
    skipped: i64,
    failed: i64,
    promo_codes_unmatched: i64,
}

#[derive(ToSchema)]
pub struct ImportDifference {
    /// The line of the file.
    line: i64,
    account: ImportedAccount,
    #[schema(example = "custom_fields.plan")]
    field: String,
    #[schema(value_type = Value)]
    before: String,
    #[schema(value_type = Value)]
    after: String,
}

#[derive(ToSchema)]
pub struct ImportedAccount {
    id: String,
    #[schema(required = true)]
    imported_id: Option<String>,
    name: String,
}

#[derive(ToSchema)]
pub struct ImportError {
    line: i64,
    reason: String,
}

#[cfg(test)]
mod tests {
    use rapport_domain::import::{Mode, State};
    use serde_json::{Value, json};
    use utoipa::PartialSchema;

    use super::*;

    fn words<T: PartialSchema>() -> Value {
        serde_json::to_value(T::schema()).unwrap()["enum"].take()
    }

    #[test]
    fn the_words_are_the_domains() {
        assert_eq!(words::<ImportState>(), json!(State::ALL.map(State::as_str)));
        assert_eq!(words::<ImportMode>(), json!(Mode::ALL.map(Mode::as_str)));
    }
}

//! Schemas of imports for the OpenAPI document only. The domain parses the actual members and stores its results as
//! JSON.

#![expect(dead_code, reason = "these types only describe the API and are never constructed")]

use utoipa::{IntoParams, ToSchema};

/// The state of an import. `uploaded` means that it can be tried or started.
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

/// Whether rows may create accounts, update existing ones, or both.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum ImportMode {
    Create,
    Update,
    Both,
}

/// How to import a file. Fields you leave out keep the import's current values.
#[derive(ToSchema)]
pub struct ImportRequest {
    /// The field for each column name: `imported_id`, `name`, `status`, `promo_code`, `captured_value`,
    /// `captured_value_currency`, `cadence_days`, `custom_fields.KEY` or `ignore`. Columns that are not listed
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
    /// The file's name.
    #[param(max_length = 255)]
    filename: Option<String>,
    /// The file's encoding. Detected by default: from a byte order mark, otherwise UTF-8 if the file is valid UTF-8,
    /// otherwise Windows-1252.
    encoding: Option<String>,
    /// The file's delimiter: one character, or `tab`. Detected by default.
    delimiter: Option<String>,
}

/// The result of a dry run.
#[derive(ToSchema)]
pub struct ImportPreview {
    rows: i64,
    counts: ImportCounts,
    /// False if the file has too many new accounts to track. Rows with the same imported_id may then each count as
    /// created.
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
    /// The line in the file.
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
    fn enum_values_match_the_domain() {
        assert_eq!(words::<ImportState>(), json!(State::ALL.map(State::as_str)));
        assert_eq!(words::<ImportMode>(), json!(Mode::ALL.map(Mode::as_str)));
    }
}

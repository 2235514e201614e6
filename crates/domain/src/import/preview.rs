//! The findings of a dry run.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::Counts;
use super::failure::Group;
use crate::id::AccountId;

/// The result of a dry run.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ImportPreview)]
pub struct Preview<'a> {
    pub rows: i64,
    pub counts: Counts,
    /// False if the file has too many new accounts to track. Rows with the same imported_id may then each count as
    /// created.
    pub exact: bool,
    /// The first 20.
    pub differences: &'a [Difference],
    /// The first 20.
    pub errors: &'a [RowError],
    /// The rows that can't be imported by reason, those of most rows first.
    pub failures: Vec<&'a Group>,
    /// The first 20 promo codes that match no active code, in lower case.
    pub unmatched_promo_codes: Vec<&'a str>,
}

/// A field that an import would change.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = ImportDifference)]
pub struct Difference {
    /// The line in the file.
    pub line: i64,
    pub account: Named,
    #[schema(example = "custom_fields.plan")]
    pub field: String,
    pub before: Value,
    pub after: Value,
}

/// The account that a row updates.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = ImportedAccount)]
pub struct Named {
    #[schema(value_type = String, example = "acc_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    pub id: AccountId,
    #[schema(required = true)]
    pub imported_id: Option<String>,
    pub name: String,
}

/// A row that cannot be imported.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = ImportError)]
pub struct RowError {
    pub line: i64,
    pub reason: String,
}

//! What an erasure takes out of each table, and what it leaves there and why.

use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::audit::{KEPT, REMOVED};

/// How many rows an erasure took something out of, and how many it left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Erased {
    /// Events that had a payload.
    pub payloads: u64,
    /// Attempts that had a receiver's response.
    pub responses: u64,
    /// Entries of the audit log that had names or values.
    pub values: u64,
    /// Records of deleted accounts that had an imported_id.
    pub imported_ids: u64,
    /// Corrections that kept what they had changed or deleted.
    pub corrections: u64,
    /// The deliveries of those events, and their attempts.
    pub deliveries: u64,
    pub attempts: u64,
    /// Whether the account itself exists.
    pub accounts: u64,
}

/// What was taken out of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct RemovedRows {
    /// The table, as in a full export.
    #[schema(example = "event")]
    pub table: &'static str,
    /// The column that was emptied.
    #[schema(example = "payload")]
    pub column: &'static str,
    /// How many rows had something in it.
    pub rows: u64,
}

/// What was left in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct KeptRows {
    /// The table, as in a full export.
    #[schema(example = "delivery")]
    pub table: &'static str,
    pub rows: u64,
    /// Why these rows stay.
    #[schema(example = "They say when and where something was sent, and whether it arrived.")]
    pub reason: &'static str,
}

impl Erased {
    /// Adds what another step did.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            payloads: self.payloads + other.payloads,
            responses: self.responses + other.responses,
            values: self.values + other.values,
            imported_ids: self.imported_ids + other.imported_ids,
            corrections: self.corrections + other.corrections,
            deliveries: self.deliveries + other.deliveries,
            attempts: self.attempts + other.attempts,
            accounts: self.accounts + other.accounts,
        }
    }

    pub fn removed(self) -> [RemovedRows; 5] {
        let removed = |table, column, rows| RemovedRows { table, column, rows };
        [
            removed("event", "payload", self.payloads),
            removed("attempt", "excerpt", self.responses),
            removed("audit", "detail", self.values),
            removed("account_tombstone", "imported_id", self.imported_ids),
            removed("correction", "was", self.corrections),
        ]
    }

    /// The rows that were looked at and stay, without what was removed.
    pub fn kept(self) -> [KeptRows; 7] {
        let kept = |table, rows, reason| KeptRows { table, rows, reason };
        [
            kept("account", self.accounts, "An erasure doesn't delete an account. Delete it before."),
            kept("event", self.payloads, "They say what happened to which id and when, and nothing else."),
            kept(
                "delivery",
                self.deliveries,
                "They say when and where something was sent, and whether it arrived.",
            ),
            kept("attempt", self.attempts, "They say how each delivery went."),
            kept("audit", self.values, "They say who did what and when."),
            kept(
                "account_tombstone",
                self.imported_ids,
                "Consumers that follow the accounts learn from it which id was deleted.",
            ),
            kept("correction", self.corrections, "They say who corrected what and when."),
        ]
    }

    /// The same for the audit log: rows by table.
    pub fn to_json(self) -> Value {
        let removed = counts(self.removed().map(|part| (part.table, part.rows)));
        let kept = counts(self.kept().map(|part| (part.table, part.rows)));
        json!({ REMOVED: removed, KEPT: kept })
    }
}

/// Rows by table, without the tables that had none.
pub fn counts(rows: impl IntoIterator<Item = (&'static str, u64)>) -> Value {
    let some = rows.into_iter().filter(|(_, rows)| *rows > 0);
    Value::Object(some.map(|(table, rows)| (table.to_owned(), rows.into())).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_its_table() {
        let erased = Erased {
            payloads: 1,
            responses: 2,
            values: 3,
            imported_ids: 4,
            corrections: 8,
            deliveries: 5,
            attempts: 6,
            accounts: 7,
        };
        let removed: Vec<(&str, u64)> = erased.removed().iter().map(|part| (part.table, part.rows)).collect();
        let expected =
            [("event", 1), ("attempt", 2), ("audit", 3), ("account_tombstone", 4), ("correction", 8)];
        assert_eq!(removed, expected);
        let kept: Vec<(&str, u64)> = erased.kept().iter().map(|part| (part.table, part.rows)).collect();
        let expected = [
            ("account", 7),
            ("event", 1),
            ("delivery", 5),
            ("attempt", 6),
            ("audit", 3),
            ("account_tombstone", 4),
            ("correction", 8),
        ];
        assert_eq!(kept, expected);
        assert_eq!(erased.and(erased).deliveries, 10);
        assert_eq!(erased.and(Erased::default()), erased);
    }

    #[test]
    fn the_audit_log_names_tables_with_rows_only() {
        let erased = Erased { payloads: 2, deliveries: 1, ..Erased::default() };
        let expected = json!({"removed": {"event": 2}, "kept": {"event": 2, "delivery": 1}});
        assert_eq!(erased.to_json(), expected);
        assert_eq!(Erased::default().to_json(), json!({"removed": {}, "kept": {}}));
    }
}

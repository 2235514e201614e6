//! Rules for what a plan must not do.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use postgres::Client;
use serde_json::Value;

use super::exceptions::SHORT;

struct Index {
    table: String,
    unique: bool,
    columns: Vec<String>,
}

/// The existing indexes, by name.
pub(super) struct Schema(HashMap<String, Index>);

/// A table that is read without using the keys of the statement.
pub(super) struct Fault {
    pub relation: String,
    what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: {}", self.relation, self.what)
    }
}

impl Schema {
    pub fn read(client: &mut Client) -> Self {
        let rows = client.query(
            "SELECT i.relname::text, t.relname::text, x.indisunique, ARRAY(SELECT a.attname::text \
             FROM unnest(x.indkey::int[]) WITH ORDINALITY AS k(number, place) \
             JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.number ORDER BY k.place) \
             FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid \
             WHERE t.relnamespace = 'public'::regnamespace",
            &[],
        );
        let index = |row: &postgres::Row| {
            (row.get(0), Index { table: row.get(1), unique: row.get(2), columns: row.get(3) })
        };
        Self(rows.expect("the indexes").iter().map(index).collect())
    }

    pub fn faults(&self, plan: &Value) -> Vec<Fault> {
        let mut faults = Vec::new();
        self.look(plan, false, &mut faults);
        faults
    }

    fn look(&self, node: &Value, limited: bool, faults: &mut Vec<Fault>) {
        let kind = text(node, "Node Type");
        let relation = text(node, "Relation Name");
        let is_short = SHORT.iter().any(|(name, _)| *name == relation);
        let what = if relation.is_empty() || is_short {
            None
        } else if kind.contains("Index") {
            self.fault_of_index(node, limited)
        } else if kind == "ModifyTable" {
            None
        } else {
            Some(kind.to_owned())
        };
        if let Some(what) = what {
            faults.push(Fault { relation: relation.to_owned(), what });
        }
        // Rows pass through these one by one; a sort reads all of them first.
        let passes = matches!(kind, "Limit" | "LockRows" | "Subquery Scan" | "Result");
        for inner in node["Plans"].as_array().into_iter().flatten() {
            let is_outer = text(inner, "Parent Relationship") == "Outer";
            self.look(inner, (limited && passes && is_outer) || kind == "Limit", faults);
        }
    }

    fn fault_of_index(&self, node: &Value, limited: bool) -> Option<String> {
        let (name, condition, filter) =
            (text(node, "Index Name"), text(node, "Index Cond"), text(node, "Filter"));
        let index = &self.0[name];
        let bound: BTreeSet<&str> =
            index.columns.iter().map(String::as_str).filter(|column| names(condition, column)).collect();
        let shown = || format!("{name} by {condition}, then {filter}");
        if !bound.iter().any(|column| *column != "company") {
            // With a limit, the first rows in an index's order are no more than were asked for.
            return (!limited || !filter.is_empty()).then(shown);
        }
        if index.unique && bound.len() == index.columns.len() {
            return None;
        }
        // A key that this or another index could have been bound to.
        let better = |other: &Index| {
            let [first, second, ..] = &other.columns[..] else { return false };
            other.table == index.table && first == "company" && compared(filter, second)
        };
        self.0.values().any(better).then(shown)
    }
}

fn text<'a>(node: &'a Value, name: &str) -> &'a str {
    node[name].as_str().unwrap_or_default()
}

fn words(condition: &str) -> impl Iterator<Item = &str> {
    condition.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'))
}

fn names(condition: &str, column: &str) -> bool {
    words(condition).any(|word| word == column)
}

/// Whether rows are filtered by equality on a column: with a parameter, one of several values, or another
/// column.
fn compared(filter: &str, column: &str) -> bool {
    let parts = filter.split('(').filter_map(|part| part.split_once(" = "));
    parts.into_iter().any(|(left, right)| {
        let constant = right.starts_with('\'') || right.starts_with(|c: char| c.is_ascii_digit());
        left.rsplit('.').next() == Some(column) && !constant
    })
}

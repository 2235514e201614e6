//! The list of a company's tables is that of the database, and docs/full-export.md describes what an export has.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use rapport_store::company_data::{Described, described};
use rapport_store::company_deletion::SINGLES;
use rapport_store::{Database, migrate_only};
use rapport_testkit::raw;

use crate::support::for_each_database;

/// The columns of every table that has rows of a company, by table.
fn tables(database: &Database) -> BTreeMap<String, BTreeSet<String>> {
    let listed = match database {
        Database::Sqlite(_) => {
            "SELECT group_concat(m.name || ':' || p.name, ';') FROM sqlite_schema m \
             JOIN pragma_table_info(m.name) p WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%'"
        }
        Database::Postgres(_) => {
            "SELECT string_agg(c.table_name || ':' || c.column_name, ';') FROM information_schema.columns c \
             JOIN pg_tables t ON t.schemaname = c.table_schema AND t.tablename = c.table_name \
             WHERE c.table_schema = 'public'"
        }
    };
    let mut tables: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for entry in raw::ask(database, listed).split(';') {
        let (table, column) = entry.split_once(':').expect("a column");
        tables.entry(table.to_owned()).or_default().insert(column.to_owned());
    }
    tables.retain(|_, columns| columns.contains("company"));
    tables
}

#[test]
fn no_table_and_no_column_of_a_company_is_forgotten() {
    for_each_database(|database| {
        migrate_only(&database).expect("migrated");
        let mut known: BTreeMap<&str, Described> =
            described().into_iter().map(|table| (table.table, table)).collect();
        for (table, columns) in tables(&database) {
            if SINGLES.contains(&table.as_str()) {
                continue;
            }
            let Described { columns: shown, left_out, .. } =
                known.remove(table.as_str()).unwrap_or_else(|| {
                    panic!("list {table} in company_data/tables.rs, so that it is deleted and exported")
                });
            if shown.is_empty() {
                continue;
            }
            // The names and addresses of people are in another table.
            let joined = if table == "member" { &["email", "name"][..] } else { &[] };
            let listed = shown.iter().chain(left_out).filter(|column| !joined.contains(*column));
            let mut listed: BTreeSet<String> = listed.map(|column| (*column).to_owned()).collect();
            listed.insert("company".to_owned());
            assert_eq!(listed, columns, "{table}: export the column or list it as left out");
        }
        assert!(known.is_empty(), "not in the database: {:?}", known.keys());
    });
}

#[test]
fn the_documentation_lists_what_is_exported() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/full-export.md");
    let text = fs::read_to_string(path).expect("docs/full-export.md");
    for Described { table, columns, is_of_account, .. } in described() {
        let is_listed = text.contains(&format!("| `{table}` |"));
        assert_eq!(is_listed, !columns.is_empty(), "{table}");
        if is_listed {
            let columns: Vec<String> = columns.iter().map(|column| format!("`{column}`")).collect();
            let account = if is_of_account { " yes" } else { "" };
            let line = format!("| `{table}` |{account} | {} |", columns.join(", "));
            assert!(text.contains(&line), "docs/full-export.md should say:\n{line}");
        }
    }
}

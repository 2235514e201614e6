//! Every table of the database, from its own catalogue: to fill them with rows of a company, and to count those.

use std::collections::BTreeMap;

use rapport_domain::id::CompanyId;
use rapport_store::Database;
use rapport_testkit::{TestApp, raw};

/// The columns of each table with their types, by table.
pub type Tables = BTreeMap<String, Vec<(String, String)>>;

/// Tables with a column of this name.
pub fn with_column(app: &TestApp, wanted: &str) -> Tables {
    let listed = match app.database() {
        Database::Sqlite(_) => {
            "SELECT group_concat(m.name || ':' || p.name || ':' || p.type, ';') FROM sqlite_schema m \
             JOIN pragma_table_info(m.name) p WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%'"
        }
        Database::Postgres(_) => {
            "SELECT string_agg(c.table_name || ':' || c.column_name || ':' || c.data_type, ';') \
             FROM information_schema.columns c JOIN pg_tables t \
             ON t.schemaname = c.table_schema AND t.tablename = c.table_name WHERE c.table_schema = 'public'"
        }
    };
    let mut tables = Tables::new();
    for entry in raw::ask(app.database(), listed).split(';') {
        let [table, column, kind] = entry.split(':').collect::<Vec<_>>()[..] else { panic!("{entry}") };
        tables.entry(table.to_owned()).or_default().push((column.to_owned(), kind.to_lowercase()));
    }
    tables.retain(|_, columns| columns.iter().any(|(name, _)| name == wanted));
    tables
}

/// Adds rows of a company to every table, except for those that say whether it is deleted.
pub fn fill(app: &TestApp, company: CompanyId, rows: usize) {
    for (table, columns) in with_column(app, "company") {
        if table == "company_deletion" {
            continue;
        }
        // The database numbers these rows itself.
        let columns: Vec<_> = columns.into_iter().filter(|(name, _)| name != "seq").collect();
        let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
        let values: Vec<String> = columns.iter().map(|(name, kind)| value(name, kind, company)).collect();
        raw::run(
            app.database(),
            &format!(
                "WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < {rows}) \
                 INSERT INTO {table} ({}) SELECT {} FROM number WHERE n > 0 ON CONFLICT DO NOTHING",
                names.join(", "),
                values.join(", ")
            ),
        );
    }
}

fn value(name: &str, kind: &str, company: CompanyId) -> String {
    match (name, kind) {
        ("company", _) => company.0.to_string(),
        (_, "integer" | "bigint") => "n".to_owned(),
        (_, "blob") => "CAST(printf('%016d', n) AS BLOB)".to_owned(),
        (_, "bytea") => "convert_to(lpad(n::text, 16, '0'), 'UTF8')".to_owned(),
        _ => "'text-' || n".to_owned(),
    }
}

/// The number of rows of a company in each table.
pub fn count(app: &TestApp, company: CompanyId) -> BTreeMap<String, i64> {
    let tables = with_column(app, "company").into_keys();
    let count = |table: String| {
        let rows = app.number(&format!("SELECT count(*) FROM {table} WHERE company = {}", company.0));
        (table, rows)
    };
    tables.map(count).collect()
}

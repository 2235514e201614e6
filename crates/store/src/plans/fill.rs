//! Rows for every table, generated from the catalogue: most for one company, some for twenty others.

use std::fmt::Write as _;

use postgres::Client;

use super::exceptions::SHORT;

/// Rows of the first company in a table that grows, in one that stays short,
const ROWS: u32 = 8_000;
const SHORT_ROWS: u32 = 20;
/// and in one that every event and every delivery adds to.
const HOT_ROWS: u32 = 24_000;
const HOT: [&str; 10] = [
    "account",
    "account_field",
    "account_seen",
    "account_word",
    "activity",
    "activity_count",
    "attempt",
    "delivery",
    "event",
    "status_history",
];
const COMPANIES: u32 = 20;
/// The other companies have fewer rows by this factor.
const SMALLER: u32 = 50;
const FEW: u32 = 10;

/// The rows that ANALYZE sees before a table is filled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Few {
    /// One row, so that every column looks unique.
    One,
    /// Some rows of one company that differ only at the end of their key, so that every other column looks
    /// constant.
    Alike,
}

/// Keeps the server from collecting statistics on its own.
pub(crate) fn keep_statistics(client: &mut Client) {
    for table in tables(client) {
        client.batch_execute(&format!("ALTER TABLE {table} SET (autovacuum_enabled = off)")).expect("set");
    }
}

/// As if ANALYZE and VACUUM had never run.
pub(crate) fn forget_statistics(client: &mut Client) {
    let forgotten = client.batch_execute(
        "DELETE FROM pg_statistic USING pg_class c WHERE starelid = c.oid AND c.relnamespace = 'public'::regnamespace; \
         UPDATE pg_class SET reltuples = -1, relpages = 0, relallvisible = 0 \
         WHERE relkind IN ('r', 'i') AND relnamespace = 'public'::regnamespace",
    );
    forgotten.expect("forgotten");
}

pub(crate) fn few(client: &mut Client, few: Few) {
    let rows = if few == Few::One { 1 } else { FEW };
    insert(client, few == Few::Alike, |_| format!("SELECT 1 AS c, n FROM generate_series(1, {rows}) AS n"));
}

pub(super) fn many(client: &mut Client) {
    insert(client, false, |table| {
        let rows = match table {
            table if is_short(table) => SHORT_ROWS,
            table if HOT.contains(&table) => HOT_ROWS,
            _ => ROWS,
        };
        format!(
            "SELECT 1 AS c, n FROM generate_series(1, {rows}) AS n UNION ALL \
             SELECT c, n FROM generate_series(2, {COMPANIES}) AS c, generate_series(1, {}) AS n",
            (rows / SMALLER).max(1)
        )
    });
}

fn is_short(table: &str) -> bool {
    SHORT.iter().any(|(name, _)| *name == table)
}

fn tables(client: &mut Client) -> Vec<String> {
    let rows =
        client.query("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public' ORDER BY 1", &[]);
    rows.expect("the tables").iter().map(|row| row.get(0)).collect()
}

/// Inserts a row into each table for every `c` and `n` that `source` selects.
fn insert(client: &mut Client, alike: bool, source: impl Fn(&str) -> String) {
    for table in tables(client) {
        if table == "schema_version" {
            continue;
        }
        let columns = client.query(
            "SELECT a.attname::text, t.typname::text, a.attnum = (SELECT x.indkey[x.indnkeyatts - 1] FROM pg_index x \
             WHERE x.indrelid = a.attrelid AND x.indisprimary), EXISTS (SELECT 1 FROM pg_index x \
             WHERE x.indrelid = a.attrelid AND x.indisunique AND a.attnum = x.indkey[x.indnkeyatts - 1]) \
             FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid \
             WHERE a.attrelid = $1::text::regclass AND a.attnum > 0 AND a.attidentity <> 'a' ORDER BY a.attnum",
            &[&table],
        );
        let (mut names, mut values) = (String::new(), String::new());
        for column in columns.expect("the columns") {
            let (name, kind, unique): (&str, &str, bool) = (column.get(0), column.get(1), column.get(3));
            let last_of_key = column.get::<_, Option<bool>>(2) == Some(true);
            let n = if alike && !unique { "1" } else { "n" };
            let comma = if names.is_empty() { "" } else { ", " };
            let _ = write!(names, "{comma}{name}");
            let _ = write!(values, "{comma}{}", value_of(&table, name, kind, last_of_key).replace('#', n));
        }
        let filled = client.batch_execute(&format!(
            "INSERT INTO {table} ({names}) SELECT {values} FROM ({}) AS made ON CONFLICT DO NOTHING",
            source(&table)
        ));
        filled.unwrap_or_else(|error| panic!("{table}: {error:?}"));
    }
}

/// A value as SQL, for the company `c` and the row's number, which is written `#`.
fn value_of(table: &str, column: &str, kind: &str, last_of_key: bool) -> String {
    let several = |per: u32| format!("# / {per}");
    match (table, column, kind) {
        ("company" | "node", "id", _) | (_, "company", _) => "c".to_owned(),
        ("company", "slug", _) => "'company-' || c".to_owned(),
        (_, "webhook" | "channel" | "import", "bytea") => bytes("# % 200"),
        (_, "event" | "account", "bytea") if !last_of_key => bytes(&several(4)),
        (_, "delivery" | "conversation" | "content" | "person", "bytea") if !last_of_key => {
            bytes(&several(3))
        }
        (_, _, "bytea") => bytes("#"),
        (_, "state", _) => "CASE WHEN # % 100 < 3 THEN 0 WHEN # % 100 < 6 THEN 2 ELSE 1 END".to_owned(),
        (_, "owner", _) => "CASE WHEN # % 200 = 0 THEN 7 END".to_owned(),
        (_, "active" | "campaign_hold" | "disabled_by_hand" | "sample", _) => {
            "CASE WHEN # % 1000 = 0 THEN 1 ELSE 0 END".to_owned()
        }
        (_, "pinned" | "kept", _) => "CASE WHEN # % 20 = 0 THEN 1 ELSE 0 END".to_owned(),
        (_, "announced", _) => "CASE WHEN # % 50 = 0 THEN 0 ELSE 1 END".to_owned(),
        (_, "own", _) => "# % 20 / 19".to_owned(),
        (_, "day", _) => "20000 + # % 90".to_owned(),
        ("account_tombstone", "deleted_at", _) => "#".to_owned(),
        (_, "deleted_at" | "auto_disabled_at" | "deactivated_at" | "archived_at", "int8") => {
            "CASE WHEN # % 50 = 1 THEN # END".to_owned()
        }
        (_, "finished_at" | "cancelled_at", _) => "CASE WHEN # % 50 > 0 THEN # END".to_owned(),
        (_, _, "int8") => "#".to_owned(),
        (_, "status", _) => {
            "(ARRAY['prospect', 'contacted', 'in_negotiation', 'in_trial', 'customer', 'lost', \
                             'do_not_contact'])[# % 7 + 1]"
                .to_owned()
        }
        (_, "from_status", _) => "CASE WHEN # % 3 > 0 THEN 'prospect' END".to_owned(),
        (_, "snoozed_until", _) => "CASE WHEN # % 10 = 0 THEN '2026-01-0' || # % 9 + 1 END".to_owned(),
        (_, "direction", _) => "'outbound'".to_owned(),
        (_, "field", _) => "'field-' || # % 5".to_owned(),
        (_, "word", _) => "'word-' || # / 2".to_owned(),
        _ => "'text-' || #".to_owned(),
    }
}

fn bytes(number: &str) -> String {
    format!("decode(lpad(to_hex({number}), 32, '0'), 'hex')")
}

//! All differences between SQLite and PostgreSQL. There is no `if sqlite` anywhere else.
//!
//! Statements are written for PostgreSQL, in a small common subset:
//! - `$n` are parameters. SQLite would number `$n` by first appearance, so they become `?n`.
//! - `= ANY($n)` fetches many keys in one round trip. SQLite, where a statement costs no round trip, runs
//!   once per key with `= ?n`.
//! - `FOR UPDATE …` or `FOR SHARE` at the end locks rows. SQLite has only one writer and doesn't need the lock.
//! - `/*INDEXED BY …*/` after a table is a comment for PostgreSQL, which has statistics. SQLite obeys it:
//!   without statistics it assumes that a range of a primary key is short.

use std::fmt::Write;

use crate::statement::{DeleteMany, InsertMany, Numbering, UpdateMany};
use crate::value::Type;

/// The database's name and version, and its size in bytes.
pub const SQLITE_FACTS: &str = "SELECT 'SQLite ' || sqlite_version(), p.page_count * s.page_size \
                                FROM pragma_page_count() AS p, pragma_page_size() AS s";
pub const POSTGRES_FACTS: &str =
    "SELECT 'PostgreSQL ' || current_setting('server_version'), pg_database_size(current_database())";
/// The size of the tables: the sum of their doublings.
pub const POSTGRES_DOUBLINGS: &str = "SELECT CAST(coalesce(sum(floor(ln(1 + pg_relation_size(oid) / 8192) / ln(2))), 0) \
                                      AS BIGINT) FROM pg_class \
                                      WHERE relkind = 'r' AND relnamespace = CAST(current_schema() AS REGNAMESPACE)";

/// SQLite has no equivalent: an embedded database has no clock but the process's.
pub const POSTGRES_CLOCK: &str = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)";

/// The largest number that any change of a company `c` has; null if there is none.
macro_rules! newest_change {
    ($greatest:literal) => {
        concat!(
            "(SELECT max(",
            $greatest,
            "((SELECT coalesce(max(change), 0) FROM account_change WHERE company = c.id), \
             (SELECT coalesce(max(change), 0) FROM account_tombstone WHERE company = c.id), \
             (SELECT coalesce(max(change), 0) FROM event WHERE company = c.id))) FROM company c)"
        )
    };
}

/// Changes when another connection commits something.
pub const SQLITE_STATE: &str = "PRAGMA data_version";

/// The number that SQLite's writer counts changes from: above all that exist, and above all that a restored file may
/// have had before. Numbers are used up more slowly than microseconds pass.
pub const SQLITE_FIRST_CHANGE: &str = concat!(
    "SELECT max(CAST(strftime('%s', 'now') AS INTEGER) * 1000000, coalesce(",
    newest_change!("max"),
    ", 0)) + 1"
);

/// When the server started: it identifies a server.
macro_rules! server {
    () => {
        "CAST(extract(epoch FROM pg_postmaster_start_time()) * 1000000 AS BIGINT)"
    };
}

/// Begins a session that numbers changes. Returns a row unless the shift is another server's.
pub const POSTGRES_NUMBER_CHANGES: &str = concat!(
    "SELECT set_config('rapport.shift', CAST(shift AS TEXT), false) FROM change_clock WHERE id = 1 AND server = ",
    server!()
);

/// Chooses a shift for this server, while nobody writes.
pub const POSTGRES_SHIFT: &str = concat!(
    "BEGIN; LOCK TABLE change_clock IN EXCLUSIVE MODE; \
     LOCK TABLE account, account_tombstone, event IN SHARE ROW EXCLUSIVE MODE; \
     UPDATE change_clock SET server = ",
    server!(),
    ", shift = greatest(CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT), ",
    newest_change!("greatest"),
    ") + 1 - CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT) WHERE id = 1 AND server <> ",
    server!(),
    "; COMMIT"
);
/// A copied database is another server's.
pub const POSTGRES_FORGET_SHIFT: &str = "UPDATE change_clock SET server = 0";

/// The shift, the number of a transaction above all that have ended, and the number of each running transaction of the
/// company whose lock is `$1`, `$2`. A transaction takes that lock before it gets its number.
pub const POSTGRES_RUNNING: &str = "SELECT CAST(current_setting('rapport.shift') AS BIGINT), \
     CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS TEXT) AS BIGINT), CAST(CAST(a.backend_xid AS TEXT) AS BIGINT) \
     FROM (SELECT 1) AS always LEFT JOIN (pg_locks l JOIN pg_stat_get_activity(NULL) AS a ON a.pid = l.pid) \
     ON l.locktype = 'advisory' AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
     AND CAST(l.classid AS BIGINT) = $1 AND CAST(l.objid AS BIGINT) = $2 AND l.objsubid = 2 AND a.backend_xid IS NOT NULL";

/// Turns a statement into SQLite's form.
pub fn to_sqlite(sql: &str) -> String {
    let hinted = sql.replace("/*INDEXED BY ", "INDEXED BY ").replace("*/", "");
    let lock = hinted.find(" FOR UPDATE").or_else(|| hinted.find(" FOR SHARE"));
    let unlocked = lock.map_or(hinted.as_str(), |at| &hinted[..at]);
    let mut out = String::with_capacity(unlocked.len());
    let mut rest = unlocked;
    while let Some(at) = rest.find('$') {
        let digits = rest[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
        let number = &rest[at + 1..at + 1 + digits];
        let before = &rest[..at];
        let after = &rest[at + 1 + digits..];
        if let Some(before) = before.strip_suffix("ANY(") {
            out.push_str(before);
            let _ = write!(out, "?{number}");
            rest = after.strip_prefix(')').unwrap_or(after);
        } else {
            out.push_str(before);
            let _ = write!(out, "?{number}");
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

/// What a numbered row has after its own columns. On SQLite it is bound by the connection. On PostgreSQL it is the same for
/// all rows of a statement, which a query of its own computes once.
const CHANGE: &str = ", change";
const CHANGE_NUMBER: &str = ", (SELECT change_number())";

/// Nothing is returned: whether a row was written follows from the number of changes. For RETURNING, SQLite would make a
/// table in memory for each row.
pub fn insert_sqlite(insert: &InsertMany) -> String {
    let InsertMany { table, columns, tail, numbering, .. } = insert;
    let names = names(columns, ", ", ToOwned::to_owned);
    let width = columns.len() + usize::from(numbering.is_numbered());
    let places: Vec<String> = (2..width + 2).map(|n| format!("?{n}")).collect();
    let change = if numbering.is_numbered() { CHANGE } else { "" };
    format!("INSERT INTO {table} (company, {names}{change}) VALUES (?1, {}) {tail}", places.join(", "))
}

pub fn insert_postgres(insert: &InsertMany) -> String {
    let InsertMany { table, columns, postgres_tail: tail, numbering, tells_written, .. } = insert;
    let names = names(columns, ", ", ToOwned::to_owned);
    let (change, number) = if numbering.is_numbered() { (CHANGE, CHANGE_NUMBER) } else { ("", "") };
    let returning = if *tells_written { format!(" RETURNING {}", columns[0].0) } else { String::new() };
    let insert = format!(
        "INSERT INTO {table} (company, {names}{change}) SELECT $1, u.*{number} FROM unnest({}) AS u {tail}{returning}",
        arrays(columns)
    );
    match numbering {
        Numbering::Log => {
            // A new row can't be in the log yet, and without a check it costs less.
            logged_postgres(table, &format!("{insert}, change, updated_at"), "id", "")
        }
        Numbering::None | Numbering::Row => insert,
    }
}

/// Adds the change of a row to the log of its table.
pub fn log_sqlite(table: &str) -> String {
    format!("INSERT OR IGNORE INTO {table}_change (company, change, {table}, at) VALUES (?1, ?2, ?3, ?4)")
}

/// Adds the changes of the rows that a statement writes to the log of their table, in the same statement.
fn logged_postgres(table: &str, write: &str, returned: &str, tail: &str) -> String {
    format!(
        "WITH written AS ({write}), logged AS (INSERT INTO {table}_change (company, change, {table}, at) \
         SELECT $1, change, id, updated_at FROM written{tail}) SELECT {returned} FROM written"
    )
}

pub fn update_sqlite(update: &UpdateMany) -> String {
    let UpdateMany { table, keys, columns, numbering, .. } = update;
    let place =
        |offset: usize| move |(n, (name, _)): (usize, &(&str, Type))| format!("{name} = ?{}", n + offset);
    let wheres: Vec<String> = keys.iter().enumerate().map(place(2)).collect();
    let mut sets: Vec<String> = columns.iter().enumerate().map(place(2 + keys.len())).collect();
    if numbering.is_numbered() {
        sets.push(format!("change = ?{}", 2 + keys.len() + columns.len()));
    }
    format!("UPDATE {table} SET {} WHERE company = ?1 AND {}", sets.join(", "), wheres.join(" AND "))
}

pub fn update_postgres(update: &UpdateMany) -> String {
    let UpdateMany { table, keys, columns, numbering, .. } = update;
    // A row that has a higher number was changed by a transaction that began later and committed before: see
    // `engine/postgres/numbering.rs`. The engine notices that it isn't returned.
    let (number, in_order) = match numbering {
        Numbering::None => ("", ""),
        Numbering::Row | Numbering::Log => {
            (", change = (SELECT change_number())", " AND t.change <= (SELECT change_number())")
        }
    };
    let sets = names(columns, ", ", |name| format!("{name} = u.{name}"));
    let wheres = names(keys, " AND ", |name| format!("t.{name} = u.{name}"));
    let all: Vec<(&str, Type)> = keys.iter().chain(*columns).copied().collect();
    let listed = names(&all, ", ", ToOwned::to_owned);
    let update = format!(
        "UPDATE {table} AS t SET {sets}{number} FROM unnest({}) AS u({listed}) WHERE t.company = $1 AND {wheres}\
         {in_order}",
        arrays(&all)
    );
    match numbering {
        Numbering::None => update,
        Numbering::Row => format!("{update} RETURNING 1"),
        Numbering::Log => {
            let update = format!("{update} RETURNING t.id, t.change, t.updated_at");
            logged_postgres(table, &update, "1", " ON CONFLICT DO NOTHING")
        }
    }
}

pub fn delete_sqlite(delete: &DeleteMany) -> String {
    let DeleteMany { table, keys, .. } = delete;
    let wheres: Vec<String> =
        keys.iter().enumerate().map(|(n, (name, _))| format!("{name} = ?{}", n + 2)).collect();
    format!("DELETE FROM {table} WHERE company = ?1 AND {}", wheres.join(" AND "))
}

pub fn delete_postgres(delete: &DeleteMany) -> String {
    let DeleteMany { table, keys, .. } = delete;
    let wheres = names(keys, " AND ", |name| format!("t.{name} = u.{name}"));
    let listed = names(keys, ", ", ToOwned::to_owned);
    format!(
        "DELETE FROM {table} AS t USING unnest({}) AS u({listed}) WHERE t.company = $1 AND {wheres}",
        arrays(keys)
    )
}

fn names(columns: &[(&str, Type)], separator: &str, write: impl Fn(&str) -> String) -> String {
    columns.iter().map(|(name, _)| write(name)).collect::<Vec<_>>().join(separator)
}

fn arrays(columns: &[(&str, Type)]) -> String {
    let casts = columns.iter().enumerate().map(|(n, (_, kind))| {
        let kind = match kind {
            Type::Int => "bigint",
            Type::Text => "text",
            Type::Bytes => "bytea",
        };
        format!("${}::{kind}[]", n + 2)
    });
    casts.collect::<Vec<_>>().join(", ")
}

/// The placeholders in migrations for types and options of the engine, and for lines that are for one engine only.
pub const SQLITE_WORDS: [(&str, &str); 9] = [
    ("{int}", "INTEGER"),
    ("{text}", "TEXT"),
    ("{bytes}", "BLOB"),
    ("{identity}", "INTEGER PRIMARY KEY AUTOINCREMENT"),
    ("{sequence}", "INTEGER PRIMARY KEY"),
    ("{clustered}", "WITHOUT ROWID"),
    ("{hot}", "WITHOUT ROWID"),
    ("{only sqlite}", ""),
    ("{only postgres}", "-- "),
];

pub const POSTGRES_WORDS: [(&str, &str); 9] = [
    ("{int}", "BIGINT"),
    ("{text}", "TEXT COLLATE \"C\""),
    ("{bytes}", "BYTEA"),
    ("{identity}", "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"),
    ("{sequence}", "BIGINT GENERATED ALWAYS AS IDENTITY"),
    ("{clustered}", ""),
    // Rows that are updated in place: free space on the page avoids updates to the indexes.
    ("{hot}", "WITH (fillfactor = 80)"),
    ("{only sqlite}", "-- "),
    ("{only postgres}", ""),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_keep_their_numbers() {
        assert_eq!(
            to_sqlite("SELECT $2, $1 WHERE a = $2 AND b = $10"),
            "SELECT ?2, ?1 WHERE a = ?2 AND b = ?10"
        );
    }

    #[test]
    fn many_keys_become_one_key() {
        let sql = "SELECT a FROM t WHERE company = $1 AND b = ANY($2) AND c = $3";
        assert_eq!(to_sqlite(sql), "SELECT a FROM t WHERE company = ?1 AND b = ?2 AND c = ?3");
    }

    #[test]
    fn hints_are_taken() {
        let sql = "SELECT a FROM t /*INDEXED BY t_by_b*/ WHERE b = $1";
        assert_eq!(to_sqlite(sql), "SELECT a FROM t INDEXED BY t_by_b WHERE b = ?1");
    }

    #[test]
    fn locks_are_left_out() {
        assert_eq!(to_sqlite("SELECT a FROM t WHERE b = $1 FOR UPDATE OF t"), "SELECT a FROM t WHERE b = ?1");
    }
}

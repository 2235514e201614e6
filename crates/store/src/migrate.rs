//! Migrations: one text for both engines, applied in order at startup.
//!
//! An embedded database that isn't empty is first backed up next to itself.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rusqlite::{Connection as Sqlite, OptionalExtension};

use crate::dialect::{POSTGRES_WORDS, SQLITE_WORDS};
use crate::engine::Link;
use crate::engine::sqlite::in_words;
use crate::error::Error;

const MIGRATIONS: [&str; 17] = [
    include_str!("../migrations/0001_core.sql"),
    include_str!("../migrations/0002_webhooks.sql"),
    include_str!("../migrations/0003_conversations.sql"),
    include_str!("../migrations/0004_cadence.sql"),
    include_str!("../migrations/0005_mail.sql"),
    include_str!("../migrations/0006_fields.sql"),
    include_str!("../migrations/0007_imports.sql"),
    include_str!("../migrations/0008_sessions.sql"),
    include_str!("../migrations/0009_saved_views.sql"),
    include_str!("../migrations/0010_channel_totals.sql"),
    include_str!("../migrations/0011_stage_totals.sql"),
    include_str!("../migrations/0012_ingest_rejects.sql"),
    include_str!("../migrations/0013_covering.sql"),
    include_str!("../migrations/0014_standing.sql"),
    include_str!("../migrations/0015_statistics.sql"),
    include_str!("../migrations/0016_node_identity.sql"),
    include_str!("../migrations/0017_fan_out.sql"),
];
const STATISTICS: &str = include_str!("../migrations/statistics.postgres.sql");
const REPORTING: &str = include_str!("../migrations/reporting.postgres.sql");
const VERSION_TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL PRIMARY KEY)";
/// Processes that migrate the same database wait for each other at this lock.
const MIGRATION_LOCK: i64 = 0x7261_7070_6f72_7400;

/// Changing a table that others have locked must not make them queue behind the change for long.
const TABLE_LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '5s'";

/// The schema version that this program supports.
#[expect(clippy::cast_possible_wrap, reason = "a handful of migrations")]
pub const VERSION: i64 = MIGRATIONS.len() as i64;

pub fn sqlite(connection: &mut Sqlite, path: &Path) -> Result<i64, Error> {
    let found = sqlite_version(connection)?;
    refuse_newer(found)?;
    if found == VERSION {
        return Ok(VERSION);
    }
    if found > 0 {
        back_up(connection, path, found)?;
    }
    let bad = |error: rusqlite::Error| {
        Error::Unavailable(format!("the schema could not be upgraded: {}", in_words(&error)))
    };
    let tx = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).map_err(bad)?;
    tx.execute_batch(VERSION_TABLE).map_err(bad)?;
    // Another process may have been faster.
    let found = sqlite_version(&tx)?;
    for (version, text) in pending(found) {
        tx.execute_batch(&worded(text, &SQLITE_WORDS)).map_err(bad)?;
        tx.execute("INSERT INTO schema_version (version) VALUES (?1)", [version]).map_err(bad)?;
    }
    tx.commit().map_err(bad)?;
    Ok(VERSION)
}

pub fn sqlite_version(connection: &Sqlite) -> Result<i64, Error> {
    let bad = |error: rusqlite::Error| {
        Error::Unavailable(format!("the database cannot be read: {}", in_words(&error)))
    };
    let known: Option<i64> = connection
        .query_row("SELECT 1 FROM sqlite_schema WHERE name = 'schema_version'", [], |row| row.get(0))
        .optional()
        .map_err(bad)?;
    if known.is_none() {
        return Ok(0);
    }
    connection
        .query_row("SELECT coalesce(max(version), 0) FROM schema_version", [], |row| row.get(0))
        .map_err(bad)
}

/// Copies an embedded database next to itself. The copy gets its final name only once it is complete and on
/// the disk, so a process that is killed halfway leaves nothing that looks like a backup.
fn back_up(connection: &Sqlite, path: &Path, version: i64) -> Result<(), Error> {
    let failed = |cause: String| Error::Unavailable(format!("the backup before migrating failed: {cause}"));
    let lock_path = beside(path, ".migrating");
    let lock = File::create(&lock_path).map_err(|error| failed(error.to_string()))?;
    // A second process waits, and then finds the copy that the first one made.
    lock.lock().map_err(|error| failed(error.to_string()))?;
    let copy = beside(path, &format!(".before-v{VERSION}-from-v{version}"));
    let copied = if copy.exists() { Ok(()) } else { copy_into(connection, &copy).map_err(failed) };
    let _ = fs::remove_file(&lock_path);
    copied
}

fn copy_into(connection: &Sqlite, copy: &Path) -> Result<(), String> {
    let part = beside(copy, ".part");
    // Left behind by a killed process.
    for leftover in [part.clone(), beside(&part, "-journal")] {
        let _ = fs::remove_file(leftover);
    }
    connection.execute("VACUUM INTO ?1", [part.to_string_lossy()]).map_err(|error| in_words(&error))?;
    let synced = File::open(&part).and_then(|file| file.sync_all());
    let directory = copy.parent().filter(|directory| !directory.as_os_str().is_empty());
    let named = synced
        .and_then(|()| fs::rename(&part, copy))
        .and_then(|()| File::open(directory.unwrap_or(Path::new(".")))?.sync_all());
    named.map_err(|error| error.to_string())?;
    tracing::info!(backup = %copy.display(), "backed up the database before migrating");
    Ok(())
}

/// The path of a file in the same directory, with this suffix added to the name.
fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(end);
    path.with_file_name(name)
}

/// On an error the transaction ends with the link.
pub fn postgres(link: &mut Link) -> Result<i64, Error> {
    let bad = |error| match error {
        Error::Fault(text) => Error::fault(format!("the schema could not be upgraded: {text}")),
        other => other,
    };
    // The second process waits for the first, and building an index on a large table takes longer than any
    // statement of a request may.
    let begin = format!(
        "BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; \
         SELECT pg_advisory_xact_lock({MIGRATION_LOCK}); {TABLE_LOCK_TIMEOUT}; {VERSION_TABLE}"
    );
    link.batch(&begin).map_err(bad)?;
    let found = link.prepare("SELECT coalesce(max(version), 0) FROM schema_version").map_err(bad)?;
    let found = link.query(&found, &[]).map_err(bad)?;
    let found: i64 = found.first().ok_or_else(|| Error::fault("the schema version is missing"))?.get(0);
    refuse_newer(found)?;
    if found < VERSION {
        for (version, text) in pending(found) {
            link.batch(&worded(text, &POSTGRES_WORDS)).map_err(bad)?;
            let insert = format!("INSERT INTO schema_version (version) VALUES ({version})");
            link.batch(&insert).map_err(bad)?;
        }
        link.batch(STATISTICS).map_err(bad)?;
        link.batch(REPORTING).map_err(bad)?;
    }
    link.batch("COMMIT").map_err(bad)?;
    Ok(VERSION)
}

fn refuse_newer(found: i64) -> Result<(), Error> {
    if found > VERSION {
        return Err(Error::fault(format!(
            "the database has schema version {found}, but this rapport supports up to {VERSION}: \
             it was used by a newer rapport; start that one, or restore a backup"
        )));
    }
    Ok(())
}

fn pending(found: i64) -> impl Iterator<Item = (i64, &'static str)> {
    (1..).zip(MIGRATIONS).filter(move |(version, _)| *version > found)
}

fn worded(text: &str, words: &[(&str, &str)]) -> String {
    words.iter().fold(text.to_owned(), |text, (word, own)| text.replace(word, own))
}

#[cfg(test)]
mod tests {
    use rapport_testkit::PostgresServer;

    use super::*;

    /// The version before accounts had a row for their cadence.
    const BEFORE_CADENCE: i64 = 3;
    const ACCOUNTS: &str = "
        INSERT INTO account (company, id, name, name_folded, status, custom_fields, last_contact_at, cadence_days,
                             snoozed_until, tracked_since, campaign_hold, created_at, updated_at)
        VALUES (1, {a}, 'a', 'a', 'customer', '{}', NULL, NULL, NULL, 5, 0, 1, 1),
               (1, {b}, 'b', 'b', 'in_negotiation', '{}', NULL, NULL, NULL, NULL, 0, 1, 1),
               (1, {c}, 'c', 'c', 'in_negotiation', '{}', NULL, NULL, NULL, NULL, 0, 9, 9),
               (2, {d}, 'd', 'd', 'in_trial', '{}', 100, 2, '2026-05-01', 50, 0, 1, 1),
               (2, {e}, 'e', 'e', 'prospect', '{}', 100, NULL, NULL, NULL, 0, 1, 1);
        INSERT INTO status_history (company, account, id, to_status, source, actor_kind, at)
        VALUES (1, {b}, {a}, 'prospect', 'upsert', 'system', 3),
               (1, {b}, {b}, 'in_negotiation', 'upsert', 'system', 7);
        INSERT INTO node (started_at, heartbeat_at) VALUES (5, 9)";
    /// Older nodes have no identity that anyone could prove to be theirs.
    const NODES: &str = "SELECT count(*) FROM node WHERE identity IS NULL AND heartbeat_at = 9";
    const ROWS: &str = "SELECT status || ' ' || CAST(own AS TEXT) || ' ' || CAST(at AS TEXT) || ' ' \
                        || coalesce(snoozed_until, '-') || ' ' || CAST(last_contact_at AS TEXT) || ' ' \
                        || CAST(announced AS TEXT) FROM cadence ORDER BY account";
    const EXPECTED: [&str; 4] = [
        "customer 0 5 - -9000000000000000000 0",
        "in_negotiation 0 7 - -9000000000000000000 0",
        "in_negotiation 0 9 - -9000000000000000000 0",
        "in_trial 1 172800000100 2026-05-01 100 0",
    ];

    fn accounts(id: impl Fn(u8) -> String) -> String {
        (b'a'..=b'e').fold(ACCOUNTS.to_owned(), |text, letter| {
            text.replace(&format!("{{{}}}", letter as char), &id(letter))
        })
    }

    fn old_texts() -> impl Iterator<Item = (i64, &'static str)> {
        pending(0).take_while(|(version, _)| *version <= BEFORE_CADENCE)
    }

    #[test]
    fn existing_accounts_get_their_clocks_on_sqlite() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("rapport.db");
        let mut connection = Sqlite::open(&path).expect("opened");
        connection.execute_batch(VERSION_TABLE).expect("made");
        for (version, text) in old_texts() {
            connection.execute_batch(&worded(text, &SQLITE_WORDS)).expect("made");
            connection.execute("INSERT INTO schema_version VALUES (?1)", [version]).expect("noted");
        }
        connection.execute_batch(&accounts(|letter| format!("X'{letter:032x}'"))).expect("filled");
        sqlite(&mut connection, &path).expect("migrated");
        let mut rows = connection.prepare(ROWS).expect("prepared");
        let rows: Vec<String> =
            rows.query_map([], |row| row.get(0)).expect("read").collect::<Result<_, _>>().expect("read");
        assert_eq!(rows, EXPECTED);
        assert_eq!(connection.query_row(NODES, [], |row| row.get(0)), Ok(1_i64));
    }

    #[test]
    fn existing_accounts_get_their_clocks_on_postgres() {
        let url = PostgresServer::shared().fresh_database();
        let mut client = ::postgres::Client::connect(&url, ::postgres::NoTls).expect("connected");
        client.batch_execute(VERSION_TABLE).expect("made");
        for (version, text) in old_texts() {
            client.batch_execute(&worded(text, &POSTGRES_WORDS)).expect("made");
            client.execute("INSERT INTO schema_version VALUES ($1)", &[&version]).expect("noted");
        }
        client.batch_execute(&accounts(|letter| format!("'\\x{letter:032x}'::bytea"))).expect("filled");
        crate::engine::migrate_only(&crate::engine::Database::Postgres(url)).expect("migrated");
        let rows = client.query(ROWS, &[]).expect("read");
        let rows: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        assert_eq!(rows, EXPECTED);
        assert_eq!(client.query_one(NODES, &[]).expect("read").get::<_, i64>(0), 1);
    }

    /// The version before PostgreSQL was told how our keys are distributed.
    const BEFORE_STATISTICS: i64 = 13;

    #[test]
    fn a_filled_database_learns_how_its_keys_are_distributed() {
        let url = PostgresServer::shared().fresh_database();
        let mut client = ::postgres::Client::connect(&url, ::postgres::NoTls).expect("connected");
        client.batch_execute(VERSION_TABLE).expect("made");
        for (version, text) in pending(0).take_while(|(version, _)| *version <= BEFORE_STATISTICS) {
            client.batch_execute(&worded(text, &POSTGRES_WORDS)).expect("made");
            client.execute("INSERT INTO schema_version VALUES ($1)", &[&version]).expect("noted");
        }
        let insert = |from: u32, to: u32| {
            format!(
                "INSERT INTO event_mark (company, mark, at) SELECT 1, decode(lpad(to_hex(n), 32, '0'), 'hex'), n \
                 FROM generate_series({from}, {to}) AS n"
            )
        };
        client.batch_execute("ALTER TABLE event_mark SET (autovacuum_enabled = off)").expect("set");
        client.batch_execute(&insert(1, 1)).expect("one row");
        client.batch_execute("ANALYZE event_mark").expect("analyzed");
        client.batch_execute(&insert(2, 20_000)).expect("filled");
        let companies = "SELECT CAST(n_distinct AS BIGINT) FROM pg_stats WHERE tablename = 'event_mark' AND attname = 'company'";
        let mut known = || client.query_one(companies, &[]).expect("known").get::<_, i64>(0);
        assert_eq!(known(), -1, "as many as there are rows");
        crate::engine::migrate_only(&crate::engine::Database::Postgres(url)).expect("migrated");
        let known: i64 = client.query_one(companies, &[]).expect("known").get(0);
        assert_eq!(known, 1);
        let rows: i64 = client.query_one("SELECT count(*) FROM event_mark", &[]).expect("counted").get(0);
        assert_eq!(rows, 20_000);
    }
}

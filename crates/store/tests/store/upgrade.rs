//! Upgrades of a filled database of the first schema. `RAPPORT_UPGRADE_ROWS` sets the number of accounts.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use postgres::{Client, NoTls};
use rapport_store::{Config, Database, Progress, Store, migrate_and_tell, migrate_only};
use rapport_testkit::{PostgresServer, old_database, raw};

use crate::support::for_each_database;

const DEFAULT_ROWS: usize = 12_000;
/// The upgrade needs the processor too.
const BETWEEN_READS: Duration = Duration::from_millis(5);
/// For an upgrade of millions of rows on a busy machine.
const VERY_LONG: Duration = Duration::from_hours(1);

fn rows() -> usize {
    let Ok(text) = std::env::var("RAPPORT_UPGRADE_ROWS") else { return DEFAULT_ROWS };
    text.parse().unwrap_or_else(|_| panic!("RAPPORT_UPGRADE_ROWS must be a number, not {text:?}"))
}

fn count(database: &Database, table: &str) -> usize {
    raw::ask(database, &format!("SELECT count(*) FROM {table}")).parse().expect("a number")
}

fn old_postgres(rows: usize) -> (Database, String) {
    let url = PostgresServer::shared().fresh_database();
    let database = Database::Postgres(url.clone());
    old_database::create(&database, rows);
    (database, url)
}

fn print(line: &Progress) {
    println!("{line}");
}

/// Waits until a condition holds.
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < VERY_LONG, "waited for {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_filled_database_of_the_first_schema_becomes_the_newest() {
    let rows = rows();
    for_each_database(|database| {
        old_database::create(&database, rows);
        let before = old_database::TABLES.map(|table| (table, count(&database, table)));
        assert!(before.iter().all(|(_, rows)| *rows > 0), "{before:?}");
        let version = migrate_and_tell(&database, &mut print).expect("migrated");

        let after = old_database::TABLES.map(|table| (table, count(&database, table)));
        assert_eq!(after, before, "nothing is lost");
        let tracked = rows - rows.div_ceil(old_database::STAGES.len());
        let events: usize = (0..rows).map(|number| (number % 10 + 1) * old_database::DAYS).sum();
        for (sql, expected) in [
            ("max(version) FROM schema_version", version.to_string()),
            ("count(*) FROM cadence WHERE at = 7", tracked.to_string()),
            ("count(*) FROM account WHERE tracked_since = 7", tracked.to_string()),
            ("CAST(sum(count) AS BIGINT) FROM activity_day", events.to_string()),
            ("count(*) FROM activity_day", old_database::DAYS.to_string()),
            ("count(*) FROM field_fill", "1".to_owned()),
            // They are the oldest changes, in the order of their ids.
            ("count(*) FROM account WHERE change = 0", rows.to_string()),
            ("count(*) FROM account_seen WHERE last_seen_minute = 2", rows.to_string()),
            // Members neither export nor delete until the company grants it.
            ("count(*) FROM company WHERE export_role = 'admin' AND delete_role = 'admin'", "1".to_owned()),
        ] {
            assert_eq!(raw::ask(&database, &format!("SELECT {sql}")), expected, "{sql}");
        }
        Store::open(&Config::new(database)).expect("a database that opens");
    });
}

#[test]
fn nodes_that_start_at_once_upgrade_once() {
    for_each_database(|database| {
        old_database::create(&database, 2_000);
        let upgraded: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| migrate_only(&database))).collect();
            threads.into_iter().map(|thread| thread.join().expect("joined")).collect()
        });
        let version = *upgraded[0].as_ref().expect("migrated");
        assert!(upgraded.iter().all(Result::is_ok), "{upgraded:?}");
        assert_eq!(count(&database, "schema_version"), usize::try_from(version).expect("small"));
    });
}

/// As nodes set their sessions.
const OLD_SESSION: &str = "SET statement_timeout = '15s'; SET lock_timeout = '5s'; SET enable_seqscan = off; \
     SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off";

/// A node of the old version reads accounts and the audit log, each statement with a deadline as it has. A report holds
/// both tables in an open transaction, so the upgrade can't change them until that ends.
#[test]
fn an_old_node_goes_on_reading_while_postgres_is_upgraded() {
    let rows = rows();
    let (database, url) = old_postgres(rows);
    let mut report = Client::connect(&url, NoTls).expect("connected");
    report.batch_execute("BEGIN; SELECT 1 FROM account LIMIT 1; SELECT 1 FROM audit LIMIT 1").expect("read");
    let (is_blocked, is_done) = (AtomicBool::new(false), AtomicBool::new(false));
    let reads = AtomicU32::new(0);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut node = Client::connect(&url, NoTls).expect("connected");
            node.batch_execute(OLD_SESSION).expect("set");
            let mut longest = Duration::ZERO;
            while !is_done.load(Ordering::SeqCst) {
                let begun = Instant::now();
                let sql = "SELECT (SELECT count(*) FROM audit), (SELECT count(*) FROM \
                           (SELECT 1 FROM account WHERE company = 1 AND status = 'customer' LIMIT 100) AS first)";
                let row = node.query_one(sql, &[]).expect("a read that waits for no upgrade");
                assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (1, 100));
                longest = longest.max(begun.elapsed());
                reads.fetch_add(1, Ordering::SeqCst);
                thread::sleep(BETWEEN_READS);
            }
            longest
        });
        let upgrade = scope.spawn(|| {
            let upgraded = migrate_and_tell(&database, &mut |line| {
                print(line);
                if line.doing.starts_with("waiting for a lock") {
                    is_blocked.store(true, Ordering::SeqCst);
                }
            });
            is_done.store(true, Ordering::SeqCst);
            upgraded
        });
        wait_until("the report to block the upgrade", || {
            is_blocked.load(Ordering::SeqCst) || upgrade.is_finished()
        });
        let reads_before = reads.load(Ordering::SeqCst);
        wait_until("reads while the upgrade waits", || {
            reads.load(Ordering::SeqCst) > reads_before + 100 || reader.is_finished()
        });
        assert!(!upgrade.is_finished(), "the report ends first");
        report.batch_execute("COMMIT").expect("ended");
        upgrade.join().expect("joined").expect("migrated");
        println!(
            "{rows} rows, {} reads, the longest took {:?}",
            reads.load(Ordering::SeqCst),
            reader.join().expect("read")
        );
    });
    assert_eq!(count(&database, "cadence"), rows - rows.div_ceil(old_database::STAGES.len()));
}

/// A database may have a statement timeout of its own, and building an index waits for older snapshots, such as that
/// of a backup, however long they take.
#[test]
fn a_statement_of_an_upgrade_may_take_its_time() {
    let (database, url) = old_postgres(1_000);
    let mut other = Client::connect(&url, NoTls).expect("connected");
    let name = url.rsplit('/').next().expect("a name");
    let set = format!("ALTER DATABASE {name} SET statement_timeout = '1s'");
    other.batch_execute(&set).expect("set");
    let mut backup = Client::connect(&url, NoTls).expect("connected");
    backup
        .batch_execute(
            "SET statement_timeout = 0; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM company",
        )
        .expect("a snapshot");
    thread::scope(|scope| {
        let upgrade = scope.spawn(|| migrate_and_tell(&database, &mut print));
        // Longer than a statement may take before the server is asked about it.
        let builds = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                      AND query LIKE 'CREATE INDEX CONCURRENTLY%' AND clock_timestamp() - query_start > '5s'";
        wait_until("the index to wait", || {
            upgrade.is_finished() || other.query_one(builds, &[]).expect("asked").get::<_, i64>(0) == 1
        });
        assert!(!upgrade.is_finished(), "{:?}", upgrade.join());
        backup.batch_execute("COMMIT").expect("ended");
        upgrade.join().expect("joined").expect("migrated");
    });
}

fn old_sqlite(directory: &Path) -> (Database, PathBuf) {
    let path = directory.join("rapport.db");
    let database = Database::Sqlite(path.clone());
    old_database::create(&database, 100);
    (database, path)
}

fn beside(path: &Path, end: &str) -> PathBuf {
    PathBuf::from(format!("{}{end}", path.display()))
}

#[test]
fn the_backup_of_an_earlier_upgrade_is_neither_trusted_nor_replaced() {
    let directory = tempfile::tempdir().expect("a directory");
    let (database, path) = old_sqlite(directory.path());
    let version = migrate_only(&database).expect("migrated");
    let first = beside(&path, &format!(".before-v{version}-from-v1"));
    let old_rows = fs::read(&first).expect("a backup");
    // Rolled back, used, and upgraded again.
    fs::copy(&first, &path).expect("restored");
    for log in ["-wal", "-shm"] {
        let _ = fs::remove_file(beside(&path, log));
    }
    raw::run(&database, "UPDATE account SET name = 'since'");
    migrate_only(&database).expect("migrated");
    assert_eq!(fs::read(&first).expect("the first backup"), old_rows);
    let second = Database::Sqlite(beside(&first, ".2"));
    assert_eq!(raw::ask(&second, "SELECT count(*) FROM account WHERE name = 'since'"), "100");
}

/// A table that is in the way ends an upgrade early.
#[test]
fn an_upgrade_that_ended_early_needs_one_backup() {
    // Before any version was reached, the database may have been used since; later it has changed already.
    for (table, expected) in [("webhook", "100"), ("mail", "0")] {
        let directory = tempfile::tempdir().expect("a directory");
        let (database, path) = old_sqlite(directory.path());
        raw::run(&database, &format!("CREATE TABLE {table} (mine)"));
        let refused = migrate_only(&database).expect_err("refused").to_string();
        assert!(refused.contains("already exists"), "{refused}");
        assert!(beside(&path, ".migrating").exists(), "the upgrade isn't complete");
        raw::run(&database, &format!("DROP TABLE {table}; UPDATE account SET name = 'since'"));
        let version = migrate_only(&database).expect("migrated");
        let names =
            fs::read_dir(directory.path()).expect("listed").map(|entry| entry.expect("read").file_name());
        let mut backups: Vec<_> = names.filter(|name| name.to_string_lossy().contains(".db.")).collect();
        assert_eq!(backups.len(), 1, "{backups:?}");
        let backup = backups.remove(0);
        assert_eq!(backup.to_string_lossy(), format!("rapport.db.before-v{version}-from-v1"));
        let backup = Database::Sqlite(directory.path().join(backup));
        assert_eq!(raw::ask(&backup, "SELECT max(version) FROM schema_version"), "1");
        assert_eq!(
            raw::ask(&backup, "SELECT count(*) FROM account WHERE name = 'since'"),
            expected,
            "{table}"
        );
    }
}

#[test]
fn half_a_backup_never_counts_as_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let (database, path) = old_sqlite(directory.path());
    // What a process left that was killed while copying.
    let backup = beside(&path, ".before-v1000-from-v1");
    fs::write(beside(&path, ".migrating"), "1 rapport.db.before-v1000-from-v1").expect("written");
    fs::write(beside(&backup, ".part"), "half of a database").expect("written");
    fs::write(beside(&backup, ".part-journal"), "and its journal").expect("written");
    migrate_only(&database).expect("migrated");
    let kept = Database::Sqlite(backup.clone());
    assert_eq!(raw::ask(&kept, "SELECT max(version) FROM schema_version"), "1");
    assert_eq!(raw::ask(&kept, "PRAGMA integrity_check"), "ok");
    assert!(!beside(&backup, ".part").exists() && !beside(&path, ".migrating").exists());
}

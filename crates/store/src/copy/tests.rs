//! Copies of a database with rows in every table, in every direction, and what is refused.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rapport_domain::time::Time;
use rapport_testkit::PostgresServer;
use tempfile::TempDir;

use super::backup::{About, Verified, back_up, verify};
use super::part::part_of;
use super::*;
use crate::doctor::{Level, examine};
use crate::engine::{Config, Store, migrate_only};
use crate::plans::{Few, few};

/// Rows that hold every kind of value that is easily changed on the way, and rows that belong to nodes.
const ODD: &str = "
    INSERT INTO event (company, id, kind, account, payload, created_at) VALUES
        (1, '\\x00', '', NULL, NULL, -9223372036854775808),
        (1, '\\x', E'a\\tb\\n\\\\N', '\\xff00', 'ÆØÅ — 日本 😀', 9223372036854775807);
    INSERT INTO import_chunk (company, import, number, bytes)
        SELECT 1, '\\x01', 1, string_agg(decode(lpad(to_hex(n % 256), 2, '0'), 'hex'), '') FROM generate_series(0, 600000) AS n;
    UPDATE delivery SET owner = 7, state = 0 WHERE company = 1;
    UPDATE manual_attempt SET owner = 7";

fn fresh_server() -> Database {
    Database::Postgres(PostgresServer::shared().fresh_database())
}

fn filled_server() -> Database {
    let database = fresh_server();
    migrate_only(&database).expect("migrated");
    let Database::Postgres(url) = &database else { unreachable!("it is a server") };
    let mut client = ::postgres::Client::connect(url, ::postgres::NoTls).expect("connected");
    few(&mut client, Few::Alike);
    client.batch_execute(ODD).expect("filled");
    database
}

fn filled_file(directory: &TempDir) -> Database {
    let file = Database::Sqlite(directory.path().join("filled.db"));
    copy(&filled_server(), &file, &mut Watch::nobody()).expect("copied");
    file
}

/// Runs plain SQL. The test kit has this too, but for another build of this crate.
fn run(database: &Database, sql: &str) {
    match database {
        Database::Sqlite(path) => {
            rusqlite::Connection::open(path).expect("opened").execute_batch(sql).expect(sql);
        }
        Database::Postgres(url) => {
            ::postgres::Client::connect(url, ::postgres::NoTls)
                .expect("connected")
                .batch_execute(sql)
                .expect(sql);
        }
    }
}

/// The only value that a query returns, as text.
fn ask(database: &Database, sql: &str) -> String {
    let sql = format!("SELECT CAST(({sql}) AS TEXT)");
    match database {
        Database::Sqlite(path) => {
            let connection = rusqlite::Connection::open(path).expect("opened");
            connection.query_row(&sql, [], |row| row.get(0)).expect(&sql)
        }
        Database::Postgres(url) => {
            let mut client = ::postgres::Client::connect(url, ::postgres::NoTls).expect("connected");
            client.query_one(&sql, &[]).expect(&sql).get(0)
        }
    }
}

fn number(database: &Database, sql: &str) -> i64 {
    ask(database, sql).parse().expect("a number")
}

/// Everything in a table of PostgreSQL, told by PostgreSQL itself.
fn content(database: &Database, table: &str) -> String {
    ask(
        database,
        &format!("SELECT coalesce(md5(string_agg(t::text, '|' ORDER BY t::text)), '') FROM {table} AS t"),
    )
}

/// The tables of the newest schema, told by PostgreSQL.
fn tables(database: &Database) -> BTreeSet<String> {
    let names = ask(database, "SELECT string_agg(tablename, ' ') FROM pg_tables WHERE schemaname = 'public'");
    // What belongs to one server is not copied.
    let own = ["change_clock", "node", "schema_version"];
    names.split(' ').filter(|name| !own.contains(name)).map(str::to_owned).collect()
}

fn opens(database: &Database) -> Result<(), String> {
    Store::open(&Config::new(database.clone())).map(drop).map_err(|error| error.to_string())
}

#[test]
fn a_new_file_has_small_pages_and_an_existing_one_keeps_its_own() {
    let page_bytes = |database: &Database| number(database, "SELECT page_size FROM pragma_page_size()");
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| Database::Sqlite(directory.path().join(name));
    let new = file("new.db");
    opens(&new).expect("a service can start there");
    assert_eq!(page_bytes(&new), 2_048);

    let original = filled_file(&directory);
    assert_eq!(page_bytes(&original), 2_048, "also if its rows come from a server");
    run(&original, "PRAGMA page_size = 4096; VACUUM");
    opens(&original).expect("a service can start there");
    let copied = file("copied.db");
    copy(&original, &copied, &mut Watch::nobody()).expect("copied");
    for database in [&original, &copied] {
        assert_eq!(page_bytes(database), 4_096, "{database:?}");
    }
    opens(&copied).expect("a service can start there");
}

#[test]
fn every_table_arrives_whatever_the_direction() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| Database::Sqlite(directory.path().join(name));
    let original = filled_server();
    let (first, second, third, fourth) = (file("1.db"), file("2.db"), fresh_server(), fresh_server());
    let mut sums = Vec::new();
    for (from, to) in [(&original, &first), (&first, &second), (&second, &third), (&third, &fourth)] {
        sums.push(copy(from, to, &mut Watch::nobody()).unwrap_or_else(|error| panic!("{from:?}: {error}")));
    }
    let names: BTreeSet<String> = sums[0].iter().map(|sum| sum.table.clone()).collect();
    assert_eq!(names, tables(&original), "every table of the newest schema is copied");
    assert!(sums.iter().all(|other| *other == sums[0]), "all copies have the same sums");
    for TableSum { table, rows, .. } in &sums[0] {
        assert!(*rows > 0, "the test fills {table}");
        for copied in [&original, &first, &second, &third, &fourth] {
            let found = number(copied, &format!("SELECT count(*) FROM {table}"));
            assert_eq!(u64::try_from(found), Ok(*rows), "{table} in {copied:?}");
        }
        assert_eq!(content(&third, table), content(&fourth, table), "{table}");
        if !["delivery", "import", "manual_attempt"].contains(&table.as_str()) {
            assert_eq!(content(&original, table), content(&fourth, table), "{table}");
        }
    }
    for copied in [&first, &second, &third, &fourth] {
        for owned in [
            "SELECT count(*) FROM node",
            "SELECT count(*) FROM delivery WHERE owner IS NOT NULL",
            "SELECT count(*) FROM manual_attempt WHERE owner IS NOT NULL",
            "SELECT count(*) FROM import WHERE runner IS NOT NULL OR lease_until IS NOT NULL",
        ] {
            assert_eq!(number(copied, owned), 0, "{owned} in {copied:?}");
        }
        opens(copied).expect("a service can start there");
    }
    assert!(
        number(&original, "SELECT count(*) FROM delivery WHERE owner IS NOT NULL") > 0,
        "the source keeps its own"
    );
}

#[test]
fn a_copy_has_the_indexes_of_a_new_database() {
    let directory = tempfile::tempdir().expect("a directory");
    let (server, file) = (fresh_server(), Database::Sqlite(directory.path().join("rapport.db")));
    let source = filled_server();
    copy(&source, &server, &mut Watch::nobody()).expect("copied");
    copy(&source, &file, &mut Watch::nobody()).expect("copied");
    let (new_server, new_file) = (fresh_server(), Database::Sqlite(directory.path().join("new.db")));
    for new in [&new_server, &new_file] {
        migrate_only(new).expect("migrated");
    }
    let of_server =
        "SELECT string_agg(indexdef, ';' ORDER BY indexdef) FROM pg_indexes WHERE schemaname = 'public'";
    assert_eq!(ask(&server, of_server), ask(&new_server, of_server));
    let of_file = "SELECT group_concat(sql, ';') FROM (SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY sql)";
    assert_eq!(ask(&file, of_file), ask(&new_file, of_file));
}

#[test]
fn numbers_continue_after_the_highest_that_was_given_out() {
    let directory = tempfile::tempdir().expect("a directory");
    let source = filled_server();
    // The company with the highest number is gone.
    run(&source, "SELECT setval(pg_get_serial_sequence('company', 'id'), 500)");
    let (file, server) = (Database::Sqlite(directory.path().join("rapport.db")), fresh_server());
    copy(&source, &file, &mut Watch::nobody()).expect("copied");
    copy(&file, &server, &mut Watch::nobody()).expect("copied");
    assert_eq!(number(&file, "SELECT seq FROM sqlite_sequence WHERE name = 'company'"), 500);
    assert_eq!(number(&server, "SELECT nextval(pg_get_serial_sequence('company', 'id'))"), 501);
    let activities = number(&source, "SELECT max(seq) FROM activity");
    assert_eq!(number(&server, "SELECT nextval(pg_get_serial_sequence('activity', 'seq'))"), activities + 1);
}

#[test]
fn a_copy_that_is_stopped_marks_its_target_until_it_is_made_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let (server, file) = (filled_server(), filled_file(&directory));
    let new = |name: &str| Database::Sqlite(directory.path().join(name));
    for (from, to) in
        [(&server, new("1.db")), (&file, new("2.db")), (&server, fresh_server()), (&file, fresh_server())]
    {
        for stop_after in [0, 5, 60] {
            let mut steps = 0;
            let mut watch = Watch::new(Pace::Full, |_| {
                steps += 1;
                steps <= stop_after
            });
            let stopped = copy(from, &to, &mut watch).expect_err("stopped");
            assert!(matches!(stopped, Error::Stopped), "{stopped}");
            for refused in [opens(&to), migrate_only(&to).map(drop).map_err(|error| error.to_string())] {
                let refused = refused.expect_err("refused");
                assert!(refused.contains("was interrupted"), "{refused}");
            }
            let failed = |finding: &crate::doctor::Finding| {
                finding.level == Level::Fail && finding.text.contains("was interrupted")
            };
            assert!(examine(&to).iter().any(failed), "{:?}", examine(&to));
            assert!(
                copy(&to, &new("other.db"), &mut Watch::nobody()).is_err(),
                "nobody copies half a database"
            );
        }
        copy(from, &to, &mut Watch::nobody()).expect("copied again");
        opens(&to).expect("complete");
    }
}

#[test]
fn a_killed_copy_leaves_a_file_that_is_refused_and_replaced() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("rapport.db");
    let to = Database::Sqlite(path.clone());
    fs::write(part_of(&path), "half a database").expect("written");
    assert!(opens(&to).is_err());
    assert!(!path.exists(), "nothing is created next to it");
    copy(&filled_server(), &to, &mut Watch::nobody()).expect("copied");
    assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    opens(&to).expect("complete");
}

#[test]
fn only_an_empty_target_is_written_to() {
    let directory = tempfile::tempdir().expect("a directory");
    let (server, file) = (filled_server(), filled_file(&directory));
    for (from, to) in [(&server, &file), (&file, &server), (&file, &file), (&server, &server)] {
        let events = number(to, "SELECT count(*) FROM event");
        let refused = copy(from, to, &mut Watch::nobody()).expect_err("refused");
        assert!(matches!(&refused, Error::Refused(text) if text.contains("already has data")), "{refused}");
        assert_eq!(number(to, "SELECT count(*) FROM event"), events);
        opens(to).expect("it isn't marked");
    }
    let letter = directory.path().join("letter.txt");
    fs::write(&letter, "Dear Sir or Madam").expect("written");
    assert!(copy(&file, &Database::Sqlite(letter.clone()), &mut Watch::nobody()).is_err());
    assert_eq!(fs::read_to_string(&letter).expect("there"), "Dear Sir or Madam");
    // A service that started there and did nothing leaves an empty one.
    for empty in [Database::Sqlite(directory.path().join("empty.db")), fresh_server()] {
        opens(&empty).expect("created");
        run(&empty, "INSERT INTO node (started_at, heartbeat_at) VALUES (1, 1)");
        copy(&server, &empty, &mut Watch::nobody()).expect("copied");
        assert!(number(&empty, "SELECT count(*) FROM event") > 0);
    }
}

#[test]
fn a_source_of_another_version_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let known = migrate::VERSION;
    for from in [filled_server(), filled_file(&directory)] {
        let target = Database::Sqlite(directory.path().join("target.db"));
        let changes = [
            (format!("DELETE FROM schema_version WHERE version = {known}"), "rapport migrate"),
            (format!("INSERT INTO schema_version VALUES ({known}), ({known} + 1)"), "newer rapport"),
        ];
        for (change, advice) in changes {
            run(&from, &change);
            let refused = copy(&from, &target, &mut Watch::nobody()).expect_err("refused").to_string();
            assert!(refused.contains(advice), "{refused}");
            assert!(opens(&target).is_ok(), "nothing was begun");
        }
    }
    let nothing = Database::Sqlite(directory.path().join("nothing.db"));
    let refused = copy(&nothing, &fresh_server(), &mut Watch::nobody()).expect_err("refused").to_string();
    assert!(refused.contains("does not exist"), "{refused}");
}

fn restore(backup: &Path, to: &Database) -> Result<Verified, Error> {
    let verified = verify(backup, &mut Watch::nobody())?;
    backup::restore(backup, &verified, to, &mut Watch::nobody())?;
    Ok(verified)
}

fn about(from: &Database) -> About {
    About::new(from, Time::from_micros(7), "1.2.3")
}

#[test]
fn a_backup_of_either_engine_is_restored_into_either() {
    let directory = tempfile::tempdir().expect("a directory");
    let (server, file) = (filled_server(), filled_file(&directory));
    for (n, from) in [&server, &file].into_iter().enumerate() {
        let backup = directory.path().join(format!("{n}.backup"));
        let sums = back_up(from, &backup, &about(from), &mut Watch::nobody()).expect("backed up");
        assert_eq!(fs::metadata(&backup).expect("there").permissions().mode() & 0o777, 0o600);
        let verified = verify(&backup, &mut Watch::nobody()).expect("intact");
        // The key that the copied database names, which is made up here like all its rows.
        let fingerprint = verified.about.fingerprint.clone();
        assert!(fingerprint.as_ref().is_some_and(|text| text.starts_with("text-")), "{fingerprint:?}");
        assert_eq!((&verified.about, &verified.tables), (&About { fingerprint, ..about(from) }, &sums));
        for to in [Database::Sqlite(directory.path().join(format!("{n}.db"))), fresh_server()] {
            restore(&backup, &to).expect("restored");
            opens(&to).expect("a service can start there");
            let again = directory.path().join("again.backup");
            assert_eq!(back_up(&to, &again, &about(&to), &mut Watch::nobody()).expect("backed up"), sums);
            fs::remove_file(again).expect("removed");
            let leftover = "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'backup%'";
            if matches!(to, Database::Sqlite(_)) {
                assert_eq!(number(&to, leftover), 0);
            }
            assert!(restore(&backup, &to).is_err(), "it has data now");
        }
        let again = back_up(from, &backup, &about(from), &mut Watch::nobody()).expect_err("taken");
        assert!(again.to_string().contains("already exists"), "{again}");
        assert_eq!(files_like(directory.path(), "part"), 0, "no temporary file is left");
    }
}

#[test]
fn a_key_in_a_backup_does_not_stay_in_the_restored_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let from = filled_file(&directory);
    let (backup, path) = (directory.path().join("with-key.backup"), directory.path().join("rapport.db"));
    let key = "f0".repeat(32);
    back_up(&from, &backup, &About { key: Some(key.clone()), ..about(&from) }, &mut Watch::nobody())
        .expect("made");
    let holds =
        |path: &Path| fs::read(path).expect("read").windows(key.len()).any(|part| part == key.as_bytes());
    assert!(holds(&backup));
    let verified = restore(&backup, &Database::Sqlite(path.clone())).expect("restored");
    assert_eq!(verified.about.key.as_ref(), Some(&key));
    assert!(!holds(&path));
}

#[test]
fn a_damaged_or_incomplete_backup_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let from = filled_file(&directory);
    let good = directory.path().join("good.backup");
    back_up(&from, &good, &about(&from), &mut Watch::nobody()).expect("backed up");
    let bytes = fs::read(&good).expect("read");
    let sql = |sql: &'static str| move |path: &Path| run(&Database::Sqlite(path.to_owned()), sql);
    let write = |bytes: Vec<u8>| move |path: &Path| fs::write(path, &bytes).expect("written");
    let flipped = |at: usize| {
        let mut bytes = bytes.clone();
        bytes[at..at + 64].iter_mut().for_each(|byte| *byte = !*byte);
        bytes
    };
    type Damage<'a> = Box<dyn Fn(&Path) + 'a>;
    let damages: Vec<(&str, Damage, &str)> = vec![
        (
            "a changed row",
            Box::new(sql("UPDATE account SET name = 'Mallory'")),
            "checksum of the table account",
        ),
        (
            "a missing row",
            Box::new(sql("DELETE FROM event WHERE payload IS NULL")),
            "table event should have",
        ),
        ("a missing table", Box::new(sql("DROP TABLE saved_view")), "table saved_view is missing"),
        ("no metadata", Box::new(sql("DROP TABLE backup")), "not a complete Rapport backup"),
        ("no version", Box::new(sql("DELETE FROM backup WHERE name = 'schema'")), "its schema"),
        ("a short file", Box::new(write(bytes[..bytes.len() / 2].to_vec())), "damaged"),
        ("an empty file", Box::new(write(Vec::new())), "not a complete Rapport backup"),
        ("another file", Box::new(write(vec![b'x'; 10_000])), "damaged"),
        ("changed bytes", Box::new(write(flipped(bytes.len() / 2))), "damaged"),
    ];
    for (what, damage, expected) in damages {
        let bad = directory.path().join("bad.backup");
        fs::write(&bad, &bytes).expect("written");
        damage(&bad);
        let refused = verify(&bad, &mut Watch::nobody()).expect_err(what).to_string();
        assert!(refused.contains(expected), "{what}: {refused}");
        let to = directory.path().join("restored.db");
        restore(&bad, &Database::Sqlite(to.clone())).expect_err(what);
        assert_eq!(files_like(directory.path(), "restored"), 0, "{what}: nothing was begun");
    }
    verify(&good, &mut Watch::nobody()).expect("intact");
}

#[test]
fn an_older_backup_is_restored_into_a_file_only() {
    let directory = tempfile::tempdir().expect("a directory");
    let from = filled_file(&directory);
    let (old, path) = (directory.path().join("old.backup"), directory.path().join("rapport.db"));
    let about = About { schema: migrate::VERSION - 1, ..about(&from) };
    back_up(&from, &old, &about, &mut Watch::nobody()).expect("backed up");
    let refused = restore(&old, &fresh_server()).expect_err("refused").to_string();
    assert!(refused.contains("rapport migrate"), "{refused}");
    restore(&old, &Database::Sqlite(path)).expect("restored");
    let new = directory.path().join("new.backup");
    let about = About { schema: migrate::VERSION + 1, ..about };
    back_up(&from, &new, &about, &mut Watch::nobody()).expect("backed up");
    for to in [Database::Sqlite(directory.path().join("new.db")), fresh_server()] {
        let refused = restore(&new, &to).expect_err("refused").to_string();
        assert!(refused.contains("newer than this one"), "{refused}");
    }
}

fn files_like(directory: &Path, part: &str) -> usize {
    let entries = fs::read_dir(directory).expect("a directory").flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().contains(part)).count()
}

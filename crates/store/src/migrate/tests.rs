use std::path::{Path, PathBuf};

use ::postgres::{Client, NoTls};
use rapport_testkit::PostgresServer;
use rusqlite::Connection;

use super::progress::{Progress, Teller};
use super::*;
use crate::dialect::{POSTGRES_WORDS, SQLITE_WORDS};
use crate::engine::{Database, migrate_and_tell, migrate_only};

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
/// What makes a database one that is in use.
const COMPANY: &str = "INSERT INTO company (slug, name, cadence_days, tracked_stages, digest_enabled, digest_weekday, \
                       time_zone, default_currency, created_at) \
                       VALUES ('acme', 'Acme', 30, 'customer', 0, 'monday', 'UTC', 'EUR', 1)";
/// Columns and indexes, one per line.
const POSTGRES_SCHEMA: &str = "SELECT string_agg(line, E'\\n' ORDER BY line) FROM ( \
     SELECT indexdef AS line FROM pg_indexes WHERE schemaname = 'public' UNION ALL \
     SELECT concat_ws(' ', table_name, column_name, data_type, is_nullable, column_default, collation_name) \
     FROM information_schema.columns WHERE table_schema = 'public') AS lines";
const SQLITE_SCHEMA: &str =
    "SELECT group_concat(sql, char(10) ORDER BY name) FROM sqlite_schema WHERE sql IS NOT NULL";

fn accounts(id: impl Fn(u8) -> String) -> String {
    (b'a'..=b'e').fold(ACCOUNTS.to_owned(), |text, letter| {
        text.replace(&format!("{{{}}}", letter as char), &id(letter))
    })
}

/// The statements that create an older version.
fn up_to(version: i64, words: &[(&str, &str)]) -> String {
    let migrations = pending(0, words).expect("readable files");
    let texts = migrations.iter().take_while(|migration| migration.version <= version).map(Migration::whole);
    texts.fold(format!("{VERSION_TABLE};\n"), |all, text| format!("{all}{text};\n"))
}

fn old_sqlite(directory: &Path, version: i64) -> (PathBuf, Connection) {
    let path = directory.join("rapport.db");
    let connection = Connection::open(&path).expect("opened");
    connection.execute_batch(&up_to(version, &SQLITE_WORDS)).expect("made");
    (path, connection)
}

fn old_postgres(version: i64) -> (Database, Client) {
    let url = PostgresServer::shared().fresh_database();
    let mut client = Client::connect(&url, NoTls).expect("connected");
    client.batch_execute(&up_to(version, &POSTGRES_WORDS)).expect("made");
    (Database::Postgres(url), client)
}

fn number(client: &mut Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).expect("a number").get(0)
}

#[test]
fn existing_accounts_get_their_clocks_on_sqlite() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, mut connection) = old_sqlite(directory.path(), BEFORE_CADENCE);
    connection.execute_batch(&accounts(|letter| format!("X'{letter:032x}'"))).expect("filled");
    sqlite::run(&mut connection, &path, &mut Teller::new(&mut |_| {})).expect("migrated");
    let mut rows = connection.prepare(ROWS).expect("prepared");
    let rows: Vec<String> =
        rows.query_map([], |row| row.get(0)).expect("read").collect::<Result<_, _>>().expect("read");
    assert_eq!(rows, EXPECTED);
    assert_eq!(connection.query_row(NODES, [], |row| row.get(0)), Ok(1_i64));
}

#[test]
fn existing_accounts_get_their_clocks_on_postgres() {
    let (database, mut client) = old_postgres(BEFORE_CADENCE);
    client.batch_execute(&accounts(|letter| format!("'\\x{letter:032x}'::bytea"))).expect("filled");
    migrate_only(&database).expect("migrated");
    let rows = client.query(ROWS, &[]).expect("read");
    let rows: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(rows, EXPECTED);
    assert_eq!(number(&mut client, NODES), 1);
}

#[test]
fn older_versions_become_what_a_new_database_is() {
    let mut new = None;
    for version in [VERSION, VERSION - 1, 10, 1] {
        let (database, mut client) = old_postgres(version);
        client.batch_execute(COMPANY).expect("filled");
        migrate_only(&database).expect("migrated");
        let schema: String = client.query_one(POSTGRES_SCHEMA, &[]).expect("read").get(0);
        assert_eq!(&schema, new.get_or_insert_with(|| schema.clone()), "from version {version}");
        assert_eq!(number(&mut client, "SELECT count(*) FROM schema_version"), VERSION);
    }
    let mut new = None;
    for version in (1..=VERSION).rev() {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, connection) = old_sqlite(directory.path(), version);
        connection.execute_batch(COMPANY).expect("filled");
        migrate_only(&Database::Sqlite(path)).expect("migrated");
        let schema: String = connection.query_row(SQLITE_SCHEMA, [], |row| row.get(0)).expect("read");
        assert_eq!(&schema, new.get_or_insert_with(|| schema.clone()), "from version {version}");
    }
}

/// The version before PostgreSQL was told how our keys are distributed.
const BEFORE_STATISTICS: i64 = 13;

#[test]
fn a_filled_database_learns_how_its_keys_are_distributed() {
    let (database, mut client) = old_postgres(BEFORE_STATISTICS);
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
    assert_eq!(number(&mut client, companies), -1, "as many as there are rows");
    migrate_only(&database).expect("migrated");
    assert_eq!(number(&mut client, companies), 1);
    assert_eq!(number(&mut client, "SELECT count(*) FROM event_mark"), 20_000);
}

/// Two ranges of the fill that gives accounts their clocks, for each of two companies.
const MANY_ACCOUNTS: &str = "
    INSERT INTO account (company, id, name, name_folded, status, custom_fields, campaign_hold, created_at, updated_at)
    SELECT 1 + n % 2, decode(lpad(to_hex(n), 32, '0'), 'hex'), 'a', 'a', 'customer', '{}', 0, n, n
    FROM generate_series(1, 12000) AS n";
/// Counts how often each account is written, and refuses one of them.
const REFUSING: &str = "
    CREATE TABLE written (id BYTEA);
    CREATE FUNCTION write_down() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO written VALUES (new.id);
        IF new.created_at = 11999 THEN RAISE EXCEPTION 'refused'; END IF;
        RETURN new;
    END $$;
    CREATE TRIGGER write_down BEFORE UPDATE ON account FOR EACH ROW EXECUTE FUNCTION write_down()";
const ACCEPTING: &str = "
    CREATE OR REPLACE FUNCTION write_down() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO written VALUES (new.id);
        RETURN new;
    END $$";

#[test]
fn a_fill_that_ended_early_continues_where_it_stopped() {
    let (database, mut client) = old_postgres(BEFORE_CADENCE);
    client.batch_execute(&format!("{MANY_ACCOUNTS}; {REFUSING}")).expect("filled");
    let refused = migrate_only(&database).expect_err("refused").to_string();
    assert!(refused.contains("could not be upgraded") && refused.contains("refused"), "{refused}");
    assert_eq!(number(&mut client, "SELECT max(version) FROM schema_version"), BEFORE_CADENCE);
    assert_eq!(number(&mut client, "SELECT count(*) FROM written"), 11_000, "three ranges of rows");

    client.batch_execute(ACCEPTING).expect("changed");
    let mut lines = Vec::new();
    migrate_and_tell(&database, &mut |line: &Progress| lines.push(line.to_string())).expect("migrated");
    assert!(lines[0].starts_with("schema version 4: continuing, 11000 rows of account"), "{lines:?}");
    assert_eq!(number(&mut client, "SELECT count(*) FROM written"), 12_000, "each account once");
    assert_eq!(number(&mut client, "SELECT count(DISTINCT id) FROM written"), 12_000);
    assert_eq!(number(&mut client, "SELECT count(*) FROM cadence WHERE at < 12001"), 12_000);
    let left = client.query_one("SELECT to_regclass('schema_step')::text", &[]).expect("read");
    assert_eq!(left.get::<_, Option<String>>(0), None);
}

#[test]
fn an_index_that_was_not_finished_is_built_again() {
    let (database, mut client) = old_postgres(10);
    client.batch_execute(MANY_ACCOUNTS).expect("filled");
    // A build that fails leaves its index behind, as one does that is killed.
    let unfinished = "CREATE UNIQUE INDEX CONCURRENTLY account_by_status_next ON account (company)";
    client.batch_execute(unfinished).expect_err("not unique");
    let left = "SELECT count(*) FROM pg_index WHERE NOT indisvalid";
    assert_eq!(number(&mut client, left), 1);
    migrate_only(&database).expect("migrated");
    assert_eq!(number(&mut client, left), 0);
    let built = "SELECT pg_get_indexdef('account_by_status'::regclass)";
    let built: String = client.query_one(built, &[]).expect("read").get(0);
    assert!(built.contains("(company, status, id, value_currency, value_amount)"), "{built}");
}

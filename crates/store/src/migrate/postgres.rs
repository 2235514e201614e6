//! Upgrades on PostgreSQL, while nodes of the previous release go on serving.
//!
//! One process at a time upgrades: it holds a session's advisory lock. Waiting for that lock inside a statement would
//! hold a snapshot, for which an index that is built concurrently waits in turn, so the others ask for it again and
//! again. Each step is committed together with the fact that it is done. A step that needs a table's lock waits for
//! it only briefly, because everyone who comes later waits behind it, and then tries again.

use std::thread;
use std::time::Duration;

use super::progress::{Rows, Teller};
use super::steps::{Fill, Index, Kind, Step};
use super::{Migration, VERSION, VERSION_TABLE, pending, record, refuse_newer, steps};
use crate::dialect::POSTGRES_WORDS;
use crate::engine::Link;
use crate::error::Error;

const STATISTICS: &str = include_str!("../../migrations/statistics.postgres.sql");
const REPORTING: &str = include_str!("../../migrations/reporting.postgres.sql");

/// What only nodes of the previous release need, which a new database never had. The next release drops it elsewhere too.
const NOT_FOR_NEW: &str = "DROP TRIGGER account_changed ON account; DROP TRIGGER account_logged ON account; \
     DROP TRIGGER account_deleted ON account; DROP TRIGGER account_seen_minute ON account_seen; \
     DROP TRIGGER webhook_added ON webhook; DROP TRIGGER webhook_chosen ON webhook; \
     DROP INDEX account_seen_by_day";

/// Migrations may take as long as they need. Fills find their rows by the index that they walk, whatever the
/// statistics say. If the client vanishes, the server notices and gives the lock to the next one.
pub const SESSION: &str = "SET statement_timeout = 0; SET lock_timeout = 0; SET idle_session_timeout = 0; \
     SET idle_in_transaction_session_timeout = '10s'; SET tcp_user_timeout = '15s'; \
     SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3; \
     SET client_min_messages = warning; SET default_transaction_isolation = 'read committed'; SET jit = off; \
     SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; \
     DO $$ BEGIN PERFORM set_config(name, '0', false) FROM pg_settings WHERE name = 'transaction_timeout'; END $$";

/// Not the lock of releases up to schema version 17: they wait for theirs with a snapshot.
const MIGRATION_LOCK: i64 = 0x7261_7070_6f72_7401;
/// Everyone who wants to use a table waits this long at most behind a step that wants to change it.
const LOCK_TIMEOUT: &str = "500ms";
/// The same for further tries: an autovacuum makes way for those who have waited for the server's deadlock timeout,
/// which is a second unless someone changed it.
const LOCK_TIMEOUT_AGAIN: &str = "1500ms";
/// For locks that don't make readers or writers wait.
const NO_LOCK_TIMEOUT: &str = "0";
/// How long the others have the table for themselves before the step tries again.
const PAUSE: Duration = Duration::from_secs(2);
const ASK_FOR_TURN_EVERY: Duration = Duration::from_millis(250);

/// How far the upgrade to a version is: the steps done, and the rows of the next one.
const STEP_TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_step (version BIGINT NOT NULL PRIMARY KEY, \
     done BIGINT NOT NULL, company BIGINT, walked_to TEXT, walked BIGINT NOT NULL)";
/// Who most likely holds the lock that a step waits for.
const OLDEST_TRANSACTION: &str = "SELECT format('process %s (%s) has been in a transaction for %s s', pid, \
     coalesce(nullif(application_name, ''), usename, 'a process of the server'), floor(extract(epoch FROM clock_timestamp() - xact_start))) \
     FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() \
     AND xact_start IS NOT NULL ORDER BY xact_start LIMIT 1";

/// On an error, the transaction and the lock end with the link.
pub fn run(link: &mut Link, teller: &mut Teller) -> Result<i64, Error> {
    let upgraded = Upgrade { link, teller }.run();
    upgraded.map_err(|error| match error {
        Error::Fault(text) => Error::fault(format!("the schema could not be upgraded: {text}")),
        other => other,
    })
}

struct Upgrade<'a, 'b> {
    link: &'a mut Link,
    teller: &'a mut Teller<'b>,
}

/// How far a fill has walked: the last key, and the number of rows up to it.
#[derive(Default)]
struct Walk {
    to: Option<Key>,
    rows: u64,
}

struct Key {
    company: i64,
    /// In hexadecimal.
    bytes: String,
}

impl Upgrade<'_, '_> {
    fn run(mut self) -> Result<i64, Error> {
        if self.is_done_before_our_turn()? {
            return Ok(VERSION);
        }
        match self.version()? {
            0 => self.create()?,
            found => self.upgrade(found)?,
        }
        self.link.batch(&format!("SELECT pg_advisory_unlock({MIGRATION_LOCK})"))?;
        Ok(VERSION)
    }

    /// Waits until no other process upgrades this database, or until one of them is done with it.
    fn is_done_before_our_turn(&mut self) -> Result<bool, Error> {
        self.teller.begin(VERSION);
        let mut has_waited = false;
        loop {
            let found = self.version()?;
            refuse_newer(found)?;
            if found == VERSION {
                return Ok(true);
            }
            let taken = self.link.first_text(&format!("SELECT pg_try_advisory_lock({MIGRATION_LOCK})"))?;
            if taken.as_deref() == Some("t") {
                // The one before us may have finished since we looked.
                let found = self.version()?;
                return refuse_newer(found).map(|()| found == VERSION);
            }
            if !has_waited || self.teller.is_due() {
                self.teller
                    .say(format!("waiting for another process, which has reached version {found}"), None);
            }
            has_waited = true;
            thread::sleep(ASK_FOR_TURN_EVERY);
        }
    }

    fn version(&mut self) -> Result<i64, Error> {
        if self.link.first_text("SELECT to_regclass('schema_version')")?.is_none() {
            return Ok(0);
        }
        self.number("SELECT coalesce(max(version), 0) FROM schema_version")
    }

    /// A new database gets everything in one transaction: nobody uses it yet.
    fn create(&mut self) -> Result<(), Error> {
        let migrations: Vec<String> = pending(0, &POSTGRES_WORDS)?.iter().map(Migration::whole).collect();
        let migrations = migrations.join(";\n");
        self.transact(&format!("{VERSION_TABLE}; {migrations}; {NOT_FOR_NEW}; {STATISTICS}\n; {REPORTING}"))
    }

    fn upgrade(&mut self, found: i64) -> Result<(), Error> {
        self.transact(STEP_TABLE)?;
        for migration in pending(found, &POSTGRES_WORDS)? {
            let version = migration.version;
            self.teller.begin(version);
            let done = self.number(&format!(
                "SELECT coalesce(max(done), 0) FROM schema_step WHERE version = {version}"
            ))?;
            let done = usize::try_from(done).unwrap_or(0);
            for (number, step) in migration.steps.iter().enumerate().skip(done) {
                self.step(version, number, step)?;
            }
            let last = if version == VERSION { self.finish()? } else { "" };
            let forget = format!("DELETE FROM schema_step WHERE version = {version}");
            self.transact(&format!("{}; {forget}; {last}", record(version)))?;
            self.teller.done();
        }
        Ok(())
    }

    /// Applies what every upgrade ends with; the statement it returns belongs to the transaction that records it.
    fn finish(&mut self) -> Result<&'static str, Error> {
        for step in steps::read(STATISTICS).map_err(Error::fault)? {
            self.transact_within(&step.whole(), [NO_LOCK_TIMEOUT; 2])?;
        }
        let replaced = self.transact(REPORTING);
        replaced.map_err(|error| match error {
            Error::Fault(text) => Error::fault(format!(
                "the views of the reporting schema could not be replaced: {text}. Was one of them changed by hand? \
                 Drop it, and start again"
            )),
            other => other,
        })?;
        Ok("DROP TABLE schema_step")
    }

    fn step(&mut self, version: i64, number: usize, step: &Step) -> Result<(), Error> {
        let done = done(version, number + 1, &Walk::default());
        match &step.kind {
            Kind::Change => self.transact(&format!("{}; {done}", step.whole())),
            Kind::Fill(fill) => self.fill((version, number), step, fill),
            Kind::Index(index) => self.index(index, &done),
        }
    }

    fn fill(&mut self, (version, number): (i64, usize), step: &Step, fill: &Fill) -> Result<(), Error> {
        let Fill { table, .. } = fill;
        self.teller.begin_step();
        let about =
            format!("SELECT nullif(reltuples, -1)::bigint FROM pg_class WHERE oid = '{table}'::regclass");
        let about = self.link.first_text(&about)?.and_then(|rows| rows.parse().ok());
        let rows = |done| Some(Rows { table: table.clone(), done, about });
        let mut walk = self.walked(version)?;
        if walk.rows > 0 {
            self.teller.say("continuing", rows(walk.rows));
        }
        while let Some((key, more)) = self.next_rows(fill, walk.to.as_ref())? {
            let condition = condition(fill, walk.to.as_ref(), &key);
            walk = Walk { to: Some(key), rows: walk.rows + more };
            self.transact(&format!("{}; {}", step.for_rows(&condition), done(version, number, &walk)))?;
            if self.teller.is_due() {
                self.teller.say("filling", rows(walk.rows));
            }
        }
        self.transact(&done(version, number + 1, &Walk::default()))?;
        self.teller.say("filled", rows(walk.rows));
        Ok(())
    }

    fn walked(&mut self, version: i64) -> Result<Walk, Error> {
        let of = format!("FROM schema_step WHERE version = {version} AND walked_to IS NOT NULL");
        let Some(bytes) = self.link.first_text(&format!("SELECT walked_to {of}"))? else {
            return Ok(Walk::default());
        };
        let company = self.number(&format!("SELECT company {of}"))?;
        let rows = self.number(&format!("SELECT walked {of}"))?;
        Ok(Walk { to: Some(Key { company, bytes }), rows: rows.unsigned_abs() })
    }

    /// The last key of the next rows, and how many they are. They are rows of one company: its key and a range of the
    /// next column lead to the primary key, where a range over companies may lead to another index.
    fn next_rows(&mut self, fill: &Fill, after: Option<&Key>) -> Result<Option<(Key, u64)>, Error> {
        if let Some(after) = after {
            let next = self.next_of_company(fill, after.company, Some(after))?;
            if next.is_some() {
                return Ok(next);
            }
        }
        let later = after.map_or_else(String::new, |after| format!("WHERE company > {}", after.company));
        let company = format!("SELECT company FROM {} {later} ORDER BY company LIMIT 1", fill.table);
        match self.link.last_number(&company)? {
            Some(company) => self.next_of_company(fill, company, None),
            None => Ok(None),
        }
    }

    fn next_of_company(
        &mut self,
        fill: &Fill,
        company: i64,
        after: Option<&Key>,
    ) -> Result<Option<(Key, u64)>, Error> {
        let Fill { table, key, rows_at_a_time } = fill;
        let after =
            after.map_or_else(String::new, |after| format!("AND {key} > '\\x{}'::bytea", after.bytes));
        let last = self.link.first_text(&format!(
            "SELECT n || ' ' || encode({key}, 'hex') FROM (SELECT {key}, row_number() OVER (ORDER BY {key}) AS n \
             FROM {table} WHERE company = {company} {after} ORDER BY {key} LIMIT {rows_at_a_time}) AS next \
             ORDER BY n DESC LIMIT 1"
        ))?;
        let Some(last) = last else { return Ok(None) };
        let read = last
            .split_once(' ')
            .and_then(|(rows, bytes)| Some((Key { company, bytes: bytes.to_owned() }, rows.parse().ok()?)));
        read.map(Some).ok_or_else(|| Error::fault(format!("not a key of {table}: {last}")))
    }

    /// Builds an index next to the one that it replaces, if there is one. A killed build leaves an invalid index.
    fn index(&mut self, index: &Index, done: &str) -> Result<(), Error> {
        let Index { name, table, .. } = index;
        let next = format!("{name}_next");
        let state = format!("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('{next}')");
        self.teller.begin_step();
        self.teller.say(format!("building the index {name} on {table}"), None);
        loop {
            match self.link.first_text(&state)?.as_deref() {
                Some("t") => break,
                Some(_) => self.alone(&format!("DROP INDEX CONCURRENTLY {next}"))?,
                None => self.alone(&index.concurrently(&next))?,
            }
        }
        self.transact(&format!("DROP INDEX IF EXISTS {name}; ALTER INDEX {next} RENAME TO {name}; {done}"))?;
        self.teller.say(format!("built the index {name} on {table}"), None);
        Ok(())
    }

    /// Runs statements in a transaction. It may be blocked by others as often as it takes, but it blocks them only
    /// briefly.
    fn transact(&mut self, sql: &str) -> Result<(), Error> {
        self.transact_within(sql, [LOCK_TIMEOUT, LOCK_TIMEOUT_AGAIN])
    }

    fn transact_within(&mut self, sql: &str, [first, again]: [&str; 2]) -> Result<(), Error> {
        let mut has_waited = false;
        loop {
            let timeout = if has_waited { again } else { first };
            let sql = format!("BEGIN; SET LOCAL lock_timeout = '{timeout}'; {sql}\n; COMMIT");
            if !self.is_blocked(&sql)? {
                return Ok(());
            }
            self.link.batch("ROLLBACK")?;
            if !has_waited || self.teller.is_due() {
                let oldest = self.link.first_text(OLDEST_TRANSACTION)?;
                let oldest = oldest.map_or_else(String::new, |oldest| format!(": {oldest}"));
                self.teller.say(format!("waiting for a lock{oldest}"), None);
            }
            has_waited = true;
            thread::sleep(PAUSE);
        }
    }

    /// Runs a statement that can't be part of a transaction. Readers and writers don't wait behind it. The caller
    /// looks whether it succeeded.
    fn alone(&mut self, sql: &str) -> Result<(), Error> {
        if self.is_blocked(sql)? {
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Runs statements, and returns whether they failed because another transaction was in the way.
    fn is_blocked(&mut self, sql: &str) -> Result<bool, Error> {
        match self.link.batch(sql) {
            Ok(()) => Ok(false),
            Err(Error::Again) if self.link.was_blocked() => Ok(true),
            Err(Error::Again) => Err(Error::fault(format!("a unique key is violated by: {sql}"))),
            Err(error) => Err(error),
        }
    }

    fn number(&mut self, sql: &str) -> Result<i64, Error> {
        self.link.last_number(sql)?.ok_or_else(|| Error::fault(format!("no number: {sql}")))
    }
}

/// The statement that records how far the upgrade to a version is.
fn done(version: i64, steps: usize, walk: &Walk) -> String {
    let (company, to) = match &walk.to {
        Some(Key { company, bytes }) => (company.to_string(), format!("'{bytes}'")),
        None => ("NULL".to_owned(), "NULL".to_owned()),
    };
    format!(
        "INSERT INTO schema_step (version, done, company, walked_to, walked) \
         VALUES ({version}, {steps}, {company}, {to}, {}) ON CONFLICT (version) DO UPDATE SET done = excluded.done, \
         company = excluded.company, walked_to = excluded.walked_to, walked = excluded.walked",
        walk.rows
    )
}

/// Selects the rows of a company after one key, if that is of the same company, up to and including another.
fn condition(fill: &Fill, after: Option<&Key>, to: &Key) -> String {
    let Fill { table, key, .. } = fill;
    let after = after.filter(|after| after.company == to.company);
    let after =
        after.map_or_else(String::new, |after| format!("AND {table}.{key} > '\\x{}'::bytea ", after.bytes));
    format!("{table}.company = {} {after}AND {table}.{key} <= '\\x{}'::bytea", to.company, to.bytes)
}

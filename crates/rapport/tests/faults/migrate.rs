//! `rapport migrate` is killed at random moments while it migrates a filled database of the first schema. The next run
//! takes over and ends as if nothing had happened.

use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use rapport_store::Database;
use rapport_testkit::{Chance, PostgresServer, old_database, raw};

use crate::check::Findings;
use crate::program::Place;
use crate::report::Run;
use crate::size::KILLS_OF_MIGRATE;

const ACCOUNTS: usize = 4_000;
const POLL_INTERVAL: Duration = Duration::from_millis(1);

#[test]
fn a_killed_migration_is_taken_over_on_sqlite() {
    let original = Place::sqlite();
    old_database::create(&original.database(), ACCOUNTS);
    let copy = || {
        let place = Place::sqlite();
        std::fs::copy(original.path().join("rapport.db"), place.path().join("rapport.db")).unwrap();
        place
    };
    kill_migrations("kills during migrate on SQLite", &copy);
}

#[test]
fn a_killed_migration_is_taken_over_on_postgres() {
    let server = PostgresServer::shared();
    let original = server.fresh_database();
    old_database::create(&Database::Postgres(original.clone()), ACCOUNTS);
    kill_migrations("kills during migrate on PostgreSQL", &|| Place::on(server.copy_of(&original)));
}

fn kill_migrations(name: &'static str, copy: &dyn Fn() -> Place) {
    let mut run = Run::start(name);
    let chance = Chance::new(6);
    let mut usual = time_of_one(&copy());
    while run.faults < KILLS_OF_MIGRATE.get() {
        let place = copy();
        let moment = usual.mul_f64(f64::from(u8::try_from(chance.below(100)).unwrap()) / 100.0);
        let killed = kill_one(&place, moment);
        run.faults += usize::from(killed);
        // On a machine that is busy at times, the usual duration changes.
        usual = if killed { usual.mul_f64(1.05) } else { usual.mul_f64(0.9) };
        migrate(&place);
        verify(&place, &mut run.findings);
    }
    run.end();
}

fn migrate(place: &Place) {
    let ended = place.run(&["migrate"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

fn time_of_one(place: &Place) -> Duration {
    let started = Instant::now();
    migrate(place);
    started.elapsed()
}

/// Returns whether it was killed before it ended by itself.
fn kill_one(place: &Place, moment: Duration) -> bool {
    let mut command = place.command(&["migrate"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let started = Instant::now();
    while started.elapsed() < moment {
        thread::sleep(POLL_INTERVAL);
    }
    child.kill().unwrap();
    child.wait().unwrap().code().is_none()
}

/// Everything that was there is still there, and what migrations derive from it is there once.
fn verify(place: &Place, findings: &mut Findings) {
    let database = place.database();
    let known = rapport_store::doctor::examine(&database);
    let version = known.iter().find(|finding| finding.text.starts_with("schema version"));
    findings.expect(version.is_some_and(|finding| finding.level.as_str() == "ok"), || format!("{version:?}"));
    let events: usize = (0..ACCOUNTS).map(|number| (number % 10 + 1) * old_database::DAYS).sum();
    let tracked = ACCOUNTS - ACCOUNTS.div_ceil(old_database::STAGES.len());
    for (what, expected) in [
        ("count(*) FROM account", ACCOUNTS),
        ("count(*) FROM status_history", 2 * ACCOUNTS),
        ("count(*) FROM activity_count", old_database::DAYS * ACCOUNTS),
        ("count(*) FROM cadence", tracked),
        ("count(*) FROM field_fill", 1),
        ("CAST(sum(count) AS BIGINT) FROM activity_day", events),
    ] {
        let found = raw::ask(&database, &format!("SELECT {what}"));
        findings.expect(found == expected.to_string(), || format!("{what}: {found} instead of {expected}"));
    }
    if let Database::Sqlite(path) = &database {
        let damage = raw::ask(&database, "PRAGMA integrity_check(1)");
        findings.expect(damage == "ok", || damage.clone());
        verify_backup(path.parent().unwrap(), findings);
    }
}

/// The backup that is made before an embedded database is changed can be restored.
fn verify_backup(directory: &std::path::Path, findings: &mut Findings) {
    let entries = std::fs::read_dir(directory).unwrap().flatten().map(|entry| entry.path());
    let backups: Vec<_> = entries.filter(|path| path.to_string_lossy().contains(".before-v")).collect();
    findings.expect(backups.len() == 1, || format!("backups: {backups:?}"));
    for backup in backups {
        let database = Database::Sqlite(backup);
        for (query, expected) in [
            ("PRAGMA integrity_check(1)", "ok".to_owned()),
            ("SELECT max(version) FROM schema_version", "1".to_owned()),
            ("SELECT count(*) FROM account", ACCOUNTS.to_string()),
        ] {
            let found = raw::try_ask(&database, query);
            findings.expect(found.as_ref() == Ok(&expected), || format!("backup: {query}: {found:?}"));
        }
    }
}

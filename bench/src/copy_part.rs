//! Copies between the engines against what the engines do by themselves, and ingest while backups are made.

use std::fs::{self, File};
use std::io::{Write as _, copy as copy_bytes};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, anyhow, ensure};
use postgres::{Client, NoTls};
use rapport_store::Database;
use rapport_store::copy::{TableSum, Watch as CopyWatch, copy};

use crate::Plan;
use crate::body::IngestBatches;
use crate::core_part::{INGEST_CONNECTIONS, Loaded};
use crate::drive::{self, Driven, Times};
use crate::measure::Watch;
use crate::place::{Engine, Ground, Place};
use crate::report::{Report, Row, Target, whole};
use crate::service::{self, Service};

const LEAST_INGEST: f64 = 0.7;
const LONGEST_WAIT_MS: f64 = 1_000.0;

pub fn run(plan: &Plan, engine: Engine, report: &mut Report) -> anyhow::Result<()> {
    let accounts = plan.accounts.iter().max().copied().unwrap_or_default();
    report.heading(&format!("{engine}, copies of {accounts} accounts"));
    report.say("loading");
    let ground = Ground::prepare(engine);
    let loaded = Loaded::with(plan, &ground, accounts, &|_, _| {})?;
    // The round trip starts from SQLite; the other engine has nothing to add to it.
    if engine == Engine::Sqlite {
        round_trip(&ground, &loaded.place, report)?;
    }
    during_backups(plan, &ground, &loaded, (engine, report))
}

/// Every direction, and what each engine takes to copy the same rows without us.
fn round_trip(ground: &Ground, original: &Place, report: &mut Report) -> anyhow::Result<()> {
    let server = Ground::prepare(Engine::Postgres);
    let (first, second) = (server.fresh()?, server.fresh()?);
    let (third, fourth) = (ground.fresh()?, ground.fresh()?);
    let to_server = measured("SQLite to PostgreSQL", original, &first, report)?;
    let between_servers = measured("PostgreSQL to PostgreSQL", &first, &second, report)?;
    let to_file = measured("PostgreSQL to SQLite", &second, &third, report)?;
    let between_files = measured("SQLite to SQLite", &third, &fourth, report)?;
    let all = [&to_server, &between_servers, &to_file, &between_files];
    let different = all.iter().filter(|copied| copied.sums != to_server.sums).count();
    report.check(
        "copies whose checksums differ from the first",
        whole(different as u64),
        Target::AtMost(0.0),
    );

    let rows = to_server.rows();
    let raw_server = raw_server(&first.database, rows, report)?;
    let raw_inserts = raw_inserts(original, rows, report)?;
    let raw_pages = raw_pages(original, rows, report)?;
    for (what, copied, raw) in [
        ("SQLite to PostgreSQL relative to raw COPY", &to_server, raw_server),
        ("PostgreSQL to PostgreSQL relative to raw COPY", &between_servers, raw_server),
        ("PostgreSQL to SQLite relative to raw inserts", &to_file, raw_inserts),
        ("SQLite to SQLite relative to VACUUM INTO", &between_files, raw_pages),
    ] {
        report.add(Row::new(format!("copy: {what}")).with("ratio", copied.rate / raw));
    }
    Ok(())
}

struct Copied {
    sums: Vec<TableSum>,
    rate: f64,
}

impl Copied {
    fn rows(&self) -> u64 {
        self.sums.iter().map(|sum| sum.rows).sum()
    }
}

fn measured(what: &str, from: &Place, to: &Place, report: &mut Report) -> anyhow::Result<Copied> {
    let begun = Instant::now();
    let copied = copy(&from.database, &to.database, &mut CopyWatch::nobody());
    let sums = copied.map_err(|error| anyhow!("{what}: {error}"))?;
    let seconds = begun.elapsed().as_secs_f64();
    let rows: u64 = sums.iter().map(|sum| sum.rows).sum();
    let rate = whole(rows) / seconds;
    report.add(Row::new(format!("copy: {what}")).with("rate", rate).with("seconds", seconds));
    Ok(Copied { sums, rate })
}

/// Rows per second of a binary COPY of every table into another one with the same indexes, one table after another.
fn raw_server(database: &Database, rows: u64, report: &mut Report) -> anyhow::Result<f64> {
    let Database::Postgres(url) = database else { anyhow::bail!("the copy is on a server") };
    let (mut reader, mut writer) = (Client::connect(url, NoTls)?, Client::connect(url, NoTls)?);
    let names = "SELECT CAST(tablename AS TEXT) FROM pg_tables WHERE schemaname = 'public' ORDER BY 1";
    let tables: Vec<String> = reader.query(names, &[])?.iter().map(|row| row.get(0)).collect();
    writer.batch_execute("CREATE SCHEMA raw")?;
    let begun = Instant::now();
    for table in tables {
        writer.batch_execute(&format!(
            "CREATE TABLE raw.\"{table}\" (LIKE public.\"{table}\" INCLUDING ALL)"
        ))?;
        let mut from = reader.copy_out(&format!("COPY public.\"{table}\" TO STDOUT (FORMAT binary)"))?;
        let mut to = writer.copy_in(&format!("COPY raw.\"{table}\" FROM STDIN (FORMAT binary)"))?;
        copy_bytes(&mut from, &mut to)?;
        to.finish()?;
    }
    Ok(raw_row("COPY of every table, binary", rows, begun, report))
}

/// Rows per second of `INSERT … SELECT` into an empty database of the same schema, in one transaction.
fn raw_inserts(original: &Place, rows: u64, report: &mut Report) -> anyhow::Result<f64> {
    let home = tempfile::tempdir()?;
    let target = home.path().join("inserted.db");
    let connection = rusqlite::Connection::open(&target)?;
    connection.execute("ATTACH ?1 AS original", [text(file_of(original)?)?])?;
    let read = |sql: &str| -> anyhow::Result<Vec<(String, String)>> {
        let mut statement = connection.prepare(sql)?;
        let found = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(found.collect::<rusqlite::Result<_>>()?)
    };
    let schema = read(
        "SELECT name, sql FROM original.sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY type DESC",
    )?;
    let tables = read(
        "SELECT name, name FROM original.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
    )?;
    let begun = Instant::now();
    connection.execute_batch("BEGIN")?;
    for (_, sql) in &schema {
        connection.execute_batch(sql)?;
    }
    for (table, _) in &tables {
        connection
            .execute_batch(&format!("INSERT INTO main.\"{table}\" SELECT * FROM original.\"{table}\""))?;
    }
    connection.execute_batch("COMMIT")?;
    Ok(raw_row("INSERT … SELECT of every table", rows, begun, report))
}

/// Rows per second of SQLite's own copy. A plain copy of the file, which is only possible without a service, is shown
/// for comparison.
fn raw_pages(original: &Place, rows: u64, report: &mut Report) -> anyhow::Result<f64> {
    let home = tempfile::tempdir()?;
    let file = file_of(original)?;
    let begun = Instant::now();
    let plain = home.path().join("plain.db");
    fs::copy(file, &plain)?;
    File::open(&plain)?.sync_all()?;
    raw_row("a plain copy of the file", rows, begun, report);
    let begun = Instant::now();
    let vacuumed = home.path().join("vacuumed.db");
    rusqlite::Connection::open(file)?.execute("VACUUM INTO ?1", [text(&vacuumed)?])?;
    File::open(&vacuumed)?.sync_all()?;
    Ok(raw_row("VACUUM INTO", rows, begun, report))
}

fn raw_row(what: &str, rows: u64, begun: Instant, report: &mut Report) -> f64 {
    let seconds = begun.elapsed().as_secs_f64();
    let rate = whole(rows) / seconds;
    report.add(Row::new(format!("raw: {what}")).with("rate", rate).with("seconds", seconds));
    rate
}

fn file_of(place: &Place) -> anyhow::Result<&Path> {
    match &place.database {
        Database::Sqlite(path) => Ok(path),
        Database::Postgres(_) => Err(anyhow!("the original is a file")),
    }
}

fn text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().context("a path of plain text")
}

/// Ingest alone, and while one backup after another is made.
fn during_backups(
    plan: &Plan,
    ground: &Ground,
    loaded: &Loaded,
    (engine, report): (Engine, &mut Report),
) -> anyhow::Result<()> {
    let place = ground.copy(&loaded.place)?;
    let service = Service::start(plan, &place)?;
    let (mut rates, mut longest) = ([0.0; 2], 0.0);
    for (with_backups, label) in [(false, "ingest alone"), (true, "ingest while backups are made")] {
        let watch = Watch::start(service.process());
        let (driven, backups) = ingest(plan, (&service, &place), loaded, with_backups)?;
        let driven = driven.expect_all_accepted()?;
        let usage = watch.finish();
        longest = driven.latencies.percentile(100.0).unwrap_or(f64::INFINITY);
        rates[usize::from(with_backups)] = driven.work_per_second();
        let note = format!("the longest wait is {longest:.1} ms; {backups} backups");
        let row = Row::new(label).with("rate", driven.work_per_second()).with("longest_ms", longest);
        report.add(row.latencies(&driven.latencies).usage(&usage).note(note));
        ensure!(with_backups == (backups > 0), "{label}: {backups} backups were made");
    }
    service.stop()?;
    let what = format!("{engine}: ingest while backups are made, relative to alone");
    report.check(what, rates[1] / rates[0], Target::AtLeast(LEAST_INGEST));
    let what = format!("{engine}: longest wait of an ingest while backups are made, ms");
    report.check(what, longest, Target::AtMost(LONGEST_WAIT_MS));
    Ok(())
}

/// Drives the load; returns how many backups were made meanwhile. The last one may end after the load.
fn ingest(
    plan: &Plan,
    (service, place): (&Service, &Place),
    loaded: &Loaded,
    with_backups: bool,
) -> anyhow::Result<(Driven, usize)> {
    let accounts = loaded.dataset.ids.len();
    let seed = 11 + u64::from(with_backups);
    let batches = IngestBatches::many(&loaded.credentials, accounts, false, INGEST_CONNECTIONS, seed);
    let times = Times { warm_up: plan.warm_up, window: plan.window };
    let address = service.address;
    let has_ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let load = scope.spawn(|| {
            let driven = drive::closed_loop(address, times, batches, None);
            has_ended.store(true, Ordering::Relaxed);
            driven
        });
        let mut backups = 0;
        while with_backups && !has_ended.load(Ordering::Relaxed) {
            back_up(plan, place)?;
            backups += 1;
        }
        Ok((load.join().map_err(|_| anyhow!("the load panicked"))??, backups))
    })
}

/// Makes a backup with the real program, as an operator would.
fn back_up(plan: &Plan, place: &Place) -> anyhow::Result<()> {
    let home = tempfile::tempdir()?;
    let file = home.path().join("made.backup");
    let mut command = service::command(plan, place);
    let output =
        command.arg("backup").arg(&file).stdout(Stdio::null()).output().context("running rapport backup")?;
    if !output.status.success() {
        std::io::stderr().write_all(&output.stderr)?;
        anyhow::bail!("rapport backup failed");
    }
    Ok(())
}

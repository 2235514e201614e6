//! The benchmarks of record, and the raw limits they are compared with. `./scripts/bench` builds and runs this.
//!
//! The service under test is always the real program in its own process; everything else (load, receivers, raw
//! limits) is here. `README.md` next to this crate says what each figure means.

mod backlog;
mod bare_client;
mod body;
mod browser;
mod cadence_part;
mod chance;
mod compare_part;
mod copy_part;
mod core_part;
mod dataset;
mod dead;
mod drive;
mod fresh;
mod http;
mod import_part;
mod interference;
mod measure;
mod overload;
mod pages_part;
mod place;
mod raw;
mod raw_ingest;
mod raw_upsert;
mod receiver;
mod report;
mod service;
mod webhooks_part;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Parser, ValueEnum};

use crate::place::Engine;
use crate::report::Report;

/// Measures Rapport against the raw limits of the machine it runs on.
#[derive(Debug, Parser)]
#[command(name = "rapport-bench")]
pub struct Options {
    /// What to measure
    #[arg(value_enum, default_value_t = Part::All)]
    part: Part,
    /// Short runs on small data: they show that everything works, not how fast it is
    #[arg(long)]
    quick: bool,
    #[arg(long, value_enum, default_value_t = Engines::Both)]
    engine: Engines,
    /// Account counts of the core part (the cadence and pages parts take the smallest and the largest); by default 10000,100000,1000000 (with --quick: 2000)
    #[arg(long, value_delimiter = ',', value_name = "COUNTS")]
    accounts: Vec<usize>,
    /// Rows of the import part's file; by default 1000000 (with --quick: 5000)
    #[arg(long, value_name = "COUNT")]
    rows: Option<u64>,
    /// How long each figure is measured; by default 20, the fresh case 80 (with --quick: 2 and 8)
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,
    /// Only these cases of the webhooks part, for example one while profiling
    #[arg(long, value_enum, value_delimiter = ',', value_name = "CASES")]
    case: Vec<Case>,
    /// Only this work of the compare part
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WORK")]
    work: Vec<compare_part::Work>,
    /// The service's program; by default the one next to this program
    #[arg(long, value_name = "FILE")]
    rapport: Option<PathBuf>,
    /// Another build of the service to compare with: measured first by the fresh and dead cases, and needed by the compare part
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Where to write the figures as JSON
    #[arg(long, value_name = "FILE", default_value = "bench/results/latest.json")]
    results: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Ingest, upsert and overload
    Core,
    /// Delivery to receivers
    Webhooks,
    /// A CSV file of a million rows
    Import,
    /// Clients due for contact
    Cadence,
    /// How long each page takes
    Pages,
    /// Copies between the engines, and backups under load
    Copy,
    /// Ingest, upsert and delivery next to another build (--baseline)
    Compare,
    All,
}

/// The cases of the webhooks part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Case {
    /// Ingest moves to ten webhooks, starting from an empty database, second by second
    Fresh,
    /// One healthy webhook next to many whose receivers hang
    Dead,
    /// Ingest moves to one webhook, at full rate
    One,
    /// Single upserts to one webhook, at full rate
    Upserts,
    /// Ingest moves to ten webhooks, at full rate
    Ten,
    /// … that are all on one host
    TenOnOneHost,
    /// Ingest moves to a thousand webhooks, at full rate
    Thousand,
    /// The latency at a low rate
    LowRate,
    /// Healthy webhooks next to bad ones
    Interference,
    /// Due deliveries after downtime
    Backlog,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Engines {
    Sqlite,
    Postgres,
    Both,
}

/// How long and how large the runs are; the same for every part.
#[derive(Debug, Clone)]
pub struct Plan {
    pub quick: bool,
    pub accounts: Vec<usize>,
    pub import_rows: u64,
    cases: Vec<Case>,
    pub work: Vec<compare_part::Work>,
    pub window: Duration,
    pub warm_up: Duration,
    /// How long the fresh case runs: until after the server first analyses the tables by itself, which takes a minute.
    pub fresh_window: Duration,
    pub rapport: PathBuf,
    pub baseline: Option<PathBuf>,
}

impl Plan {
    fn of(options: &Options) -> anyhow::Result<Self> {
        let quick = options.quick;
        let accounts = match (options.accounts.is_empty(), quick) {
            (false, _) => options.accounts.clone(),
            (true, true) => vec![2_000],
            (true, false) => vec![10_000, 100_000, 1_000_000],
        };
        let rapport = match &options.rapport {
            Some(path) => path.clone(),
            None => std::env::current_exe().context("the path of this program")?.with_file_name("rapport"),
        };
        for program in [Some(&rapport), options.baseline.as_ref()].into_iter().flatten() {
            anyhow::ensure!(program.is_file(), "{} does not exist: build it first", program.display());
        }
        Ok(Self {
            quick,
            accounts,
            import_rows: options.rows.unwrap_or(if quick { 5_000 } else { 1_000_000 }),
            cases: options.case.clone(),
            work: options.work.clone(),
            window: Duration::from_secs(options.seconds.unwrap_or(if quick { 2 } else { 20 }).max(1)),
            warm_up: Duration::from_millis(if quick { 500 } else { 3_000 }),
            fresh_window: Duration::from_secs(options.seconds.unwrap_or(if quick { 8 } else { 80 }).max(5)),
            rapport,
            baseline: options.baseline.clone(),
        })
    }

    pub fn includes(&self, case: Case) -> bool {
        self.cases.is_empty() || self.cases.contains(&case)
    }

    /// Whether only these cases were asked for.
    pub fn is_only(&self, cases: &[Case]) -> bool {
        !self.cases.is_empty() && self.cases.iter().all(|case| cases.contains(case))
    }

    /// The long value, or the short one of a quick run.
    pub fn pick<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }
}

fn main() -> anyhow::Result<ExitCode> {
    let options = Options::parse();
    let plan = Plan::of(&options)?;
    let engines = match options.engine {
        Engines::Sqlite => vec![Engine::Sqlite],
        Engines::Postgres => vec![Engine::Postgres],
        Engines::Both => vec![Engine::Sqlite, Engine::Postgres],
    };
    let mut report = Report::start(&plan)?;
    let ran = engines.into_iter().try_for_each(|engine| run(&plan, options.part, engine, &mut report));
    // A run that is cut short still leaves what it has.
    report.write(&options.results)?;
    report.print_checks();
    println!("\nFigures as JSON: {}", options.results.display());
    ran?;
    report.expect_no_failures()?;
    Ok(ExitCode::SUCCESS)
}

fn run(plan: &Plan, part: Part, engine: Engine, report: &mut Report) -> anyhow::Result<()> {
    if matches!(part, Part::Core | Part::All) {
        core_part::run(plan, engine, report)?;
    }
    if matches!(part, Part::Webhooks | Part::All) {
        webhooks_part::run(plan, engine, report)?;
    }
    if matches!(part, Part::Import | Part::All) {
        import_part::run(plan, engine, report)?;
    }
    if matches!(part, Part::Cadence | Part::All) {
        cadence_part::run(plan, engine, report)?;
    }
    if matches!(part, Part::Pages | Part::All) {
        pages_part::run(plan, engine, report)?;
    }
    if matches!(part, Part::Copy | Part::All) {
        copy_part::run(plan, engine, report)?;
    }
    if part == Part::Compare {
        compare_part::run(plan, engine, report)?;
    }
    Ok(())
}

//! The core: ingest and upsert over HTTP against the raw engine, at several sizes, and under overload.

use std::net::SocketAddr;
use std::time::Duration;

use rapport_domain::account::Account;

use crate::Plan;
use crate::body::{IngestBatches, UpsertMix};
use crate::dataset::{self, Dataset};
use crate::drive::{self, Driven, Requests, Times};
use crate::measure::{Usage, Watch};
use crate::overload;
use crate::place::{Engine, Ground, Place};
use crate::raw::{DEFAULT_CHECKPOINTS, LATE_CHECKPOINTS};
use crate::raw_ingest::{self, Variant};
use crate::raw_upsert;
use crate::report::{Report, Row, Target};
use crate::service::{self, Credentials, Service};

pub const PROJECT: &str = "acme";
pub const INGEST_CONNECTIONS: usize = 32;
pub const UPSERT_CONNECTIONS: usize = 64;
/// The ratios to raw are checked at this many accounts, or at the nearest size that is run.
const RATIO_ACCOUNTS: usize = 100_000;
const MOST_MEMORY_MB: f64 = 200.0;
/// How long an ingest request may take on SQLite at full load, whatever its writer and its checkpoints do.
const INGEST_P999_MS: f64 = 500.0;

/// The targets of an engine.
struct Targets {
    ingest: f64,
    large_to_small: f64,
    upsert: f64,
}

fn targets(engine: Engine) -> Targets {
    match engine {
        Engine::Sqlite => Targets { ingest: 0.7, large_to_small: 0.7, upsert: 0.5 },
        Engine::Postgres => Targets { ingest: 0.5, large_to_small: 0.4, upsert: 0.5 },
    }
}

/// Events (without and with event_id) and upserts per second.
#[derive(Debug, Clone, Copy, Default)]
struct Rates {
    ingest: [f64; 2],
    upsert: f64,
}

/// A loaded database that is only ever copied.
pub struct Loaded {
    pub place: Place,
    pub dataset: Dataset,
    pub credentials: Credentials,
}

impl Loaded {
    fn make(plan: &Plan, ground: &Ground, accounts: usize) -> anyhow::Result<Self> {
        Self::with(plan, ground, accounts, &|_, _| {})
    }

    /// With accounts that differ from the plain ones that an upsert creates.
    pub fn with(
        plan: &Plan,
        ground: &Ground,
        accounts: usize,
        adjust: &dyn Fn(usize, &mut Account),
    ) -> anyhow::Result<Self> {
        let place = ground.fresh()?;
        let credentials = service::create_company(plan, &place, PROJECT)?;
        let dataset = dataset::load_with(&place, PROJECT, accounts, adjust)?;
        dataset::expect_loaded(&place, accounts)?;
        Ok(Self { place, dataset, credentials })
    }
}

pub fn run(plan: &Plan, engine: Engine, report: &mut Report) -> anyhow::Result<()> {
    let ground = Ground::prepare(engine);
    let at_ratio = plan.accounts.iter().copied().min_by_key(|accounts| accounts.abs_diff(RATIO_ACCOUNTS));
    let mut by_size: Vec<(usize, Rates)> = Vec::new();
    for &accounts in &plan.accounts {
        report.heading(&format!("{engine}, {accounts} accounts"));
        report.say("loading");
        let loaded = Loaded::make(plan, &ground, accounts)?;
        let is_reference = at_ratio == Some(accounts);
        let served = serve(plan, &ground, &loaded, is_reference, (engine, report))?;
        let raw = raw(plan, &ground, &loaded, is_reference, report)?;
        compare(engine, accounts, (served, raw), is_reference, report);
        by_size.push((accounts, served));
    }
    compare_sizes(engine, &by_size, report);
    Ok(())
}

/// Measures everything about the service at one size.
fn serve(
    plan: &Plan,
    ground: &Ground,
    loaded: &Loaded,
    with_overload: bool,
    (engine, report): (Engine, &mut Report),
) -> anyhow::Result<Rates> {
    let place = ground.copy(&loaded.place)?;
    let service = Service::start(plan, &place)?;
    let accounts = loaded.dataset.ids.len();
    let mut rates = Rates::default();
    let mut acknowledged = i64::try_from(accounts)?;
    let mut most_memory: f64 = 0.0;
    for with_event_id in [false, true] {
        let seed = 1 + u64::from(with_event_id);
        let batches =
            IngestBatches::many(&loaded.credentials, accounts, with_event_id, INGEST_CONNECTIONS, seed);
        let (driven, usage) = measure(plan, &service, batches)?;
        let ids = if with_event_id { "with" } else { "without" };
        report.add(row(&format!("ingest {ids} event_id, {INGEST_CONNECTIONS} connections"), &driven, &usage));
        if let (Engine::Sqlite, Some(millis)) = (engine, driven.latencies.percentile(99.9)) {
            let what = format!("{engine}: p99.9 in ms of ingest {ids} event_id, {accounts} accounts");
            report.check(what, millis, Target::AtMost(INGEST_P999_MS));
        }
        rates.ingest[usize::from(with_event_id)] = driven.work_per_second();
        acknowledged += i64::try_from(driven.total_work)?;
        most_memory = most_memory.max(usage.peak_memory);
    }
    let (driven, usage) =
        measure(plan, &service, UpsertMix::many(&loaded.credentials, accounts, UPSERT_CONNECTIONS))?;
    report.add(row(&format!("upsert, {UPSERT_CONNECTIONS} connections"), &driven, &usage));
    rates.upsert = driven.work_per_second();
    most_memory = most_memory.max(usage.peak_memory);
    report.check(
        format!("{engine}: RSS in MB with {accounts} accounts"),
        most_memory,
        Target::AtMost(MOST_MEMORY_MB),
    );
    if with_overload {
        acknowledged += overload::run(plan, &service, loaded, rates.ingest[1], (engine, report))?;
    }
    service.stop()?;
    let stored = place.count("SELECT count(*) FROM activity")?;
    let lost = u32::try_from((acknowledged - stored).max(0))?;
    let what = format!("{engine}: acknowledged events that are not stored, {accounts} accounts");
    report.check(what, f64::from(lost), Target::AtMost(0.0));
    Ok(rates)
}

/// Runs one closed loop while watching the service.
fn measure<R: Requests>(plan: &Plan, service: &Service, lines: Vec<R>) -> anyhow::Result<(Driven, Usage)> {
    let watch = Watch::start(service.process());
    let times = Times { warm_up: plan.warm_up, window: plan.window };
    let driven = drive::closed_loop(service.address, times, lines, None)?.expect_all_accepted()?;
    Ok((driven, watch.finish()))
}

fn row(label: &str, driven: &Driven, usage: &Usage) -> Row {
    Row::new(label)
        .with("rate", driven.work_per_second())
        .with("requests", driven.requests_per_second())
        .latencies(&driven.latencies)
        .usage(usage)
}

/// Writes the same rows without a service, from the same state.
fn raw(
    plan: &Plan,
    ground: &Ground,
    loaded: &Loaded,
    with_variants: bool,
    report: &mut Report,
) -> anyhow::Result<Rates> {
    let place = ground.copy(&loaded.place)?;
    let dataset = &loaded.dataset;
    let mut rates = Rates::default();
    for with_event_id in [false, true] {
        let variant = Variant { with_event_id, with_look_ups: false, checkpoints: LATE_CHECKPOINTS };
        let rate = raw_ingest::measure(&place, dataset, variant, plan.window)?;
        let ids = if with_event_id { "with" } else { "without" };
        report.add(Row::new(format!("raw ingest {ids} event_id")).with("rate", rate));
        rates.ingest[usize::from(with_event_id)] = rate;
    }
    rates.upsert = raw_upsert::measure(&place, dataset, plan.window)?;
    report.add(Row::new("raw upsert").with("rate", rates.upsert));
    if with_variants {
        let base = Variant { with_event_id: true, with_look_ups: false, checkpoints: LATE_CHECKPOINTS };
        let mut variants =
            vec![("raw ingest with event_id and lookups", Variant { with_look_ups: true, ..base })];
        if matches!(place.database, rapport_store::Database::Sqlite(_)) {
            let plain = Variant { checkpoints: DEFAULT_CHECKPOINTS, ..base };
            variants.push(("raw ingest with event_id, SQLite's default checkpoints", plain));
        }
        for (label, variant) in variants {
            let rate = raw_ingest::measure(&place, dataset, variant, plan.window)?;
            report.add(Row::new(label).with("rate", rate));
        }
    }
    Ok(rates)
}

fn compare(
    engine: Engine,
    accounts: usize,
    (served, raw): (Rates, Rates),
    is_reference: bool,
    report: &mut Report,
) {
    let Targets { ingest, upsert, .. } = targets(engine);
    let ratios = [
        ("ingest without event_id", served.ingest[0] / raw.ingest[0], ingest),
        ("ingest with event_id", served.ingest[1] / raw.ingest[1], ingest),
        ("upsert", served.upsert / raw.upsert, upsert),
    ];
    for (what, ratio, target) in ratios {
        report.add(Row::new(format!("{what} over HTTP relative to raw")).with("ratio", ratio));
        if is_reference {
            let what = format!("{engine}: {what} over HTTP relative to raw, {accounts} accounts");
            report.check(what, ratio, Target::AtLeast(target));
        }
    }
}

/// Compares the largest data with the smallest.
fn compare_sizes(engine: Engine, by_size: &[(usize, Rates)], report: &mut Report) {
    let Some((small, small_rates)) = by_size.iter().min_by_key(|(accounts, _)| *accounts) else { return };
    let Some((large, large_rates)) = by_size.iter().max_by_key(|(accounts, _)| *accounts) else { return };
    if small == large {
        return;
    }
    for (place, ids) in ["without", "with"].into_iter().enumerate() {
        let ratio = large_rates.ingest[place] / small_rates.ingest[place];
        let what = format!("{engine}: ingest {ids} event_id, {large} accounts relative to {small}");
        report.check(what, ratio, Target::AtLeast(targets(engine).large_to_small));
    }
}

/// Runs a short closed loop of ingest, to see the service's current rate.
pub fn ingest_rate_now(
    address: SocketAddr,
    loaded: &Loaded,
    (warm_up, window): (Duration, Duration),
    seed: u64,
) -> anyhow::Result<Driven> {
    let accounts = loaded.dataset.ids.len();
    let batches = IngestBatches::many(&loaded.credentials, accounts, true, INGEST_CONNECTIONS, seed);
    drive::closed_loop(address, Times { warm_up, window }, batches, None)
}

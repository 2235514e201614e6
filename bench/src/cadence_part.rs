//! The contact cadence: what a sweep costs over few and over many accounts, and how long an ingest waits while every
//! client of a large company becomes due at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{anyhow, ensure};
use parking_lot::Mutex;
use rapport_app::{App, Clock, Parts, Random, Vault};
use rapport_domain::account::Account;
use rapport_domain::company::DEFAULT_CADENCE_DAYS;
use rapport_domain::pipeline::Status;
use rapport_domain::time::Time;
use rapport_store::{Config, Store};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::Plan;
use crate::body::IngestBatches;
use crate::chance::Chance;
use crate::core_part::{INGEST_CONNECTIONS, Loaded};
use crate::drive::{self, Driven, Times};
use crate::http::Endpoint;
use crate::measure::{Latencies, Watch, now};
use crate::place::{Engine, Ground, Place};
use crate::report::{Report, Row, Target};
use crate::service::{Credentials, Service};

/// Accounts that become due from one sweep to the next.
const DUE: usize = 100;
const HOUR_SECONDS: i64 = 3_600;
/// How long ago the others were contacted, and the cadence that makes all of them due at once.
const CONTACTED_DAYS_AGO: i64 = 10;
const SHORTER_CADENCE_DAYS: i64 = 5;
const MOST_SLOWDOWN: f64 = 2.0;
const MOST_EXTRA_WAIT_MS: f64 = 100.0;

pub fn run(plan: &Plan, engine: Engine, report: &mut Report) -> anyhow::Result<()> {
    let ground = Ground::prepare(engine);
    let start = now();
    let (smallest, largest) = (plan.accounts.iter().min().copied(), plan.accounts.iter().max().copied());
    let mut medians: Vec<(usize, f64)> = Vec::new();
    let mut sizes: Vec<usize> = smallest.into_iter().chain(largest).collect();
    sizes.dedup();
    for accounts in sizes {
        report.heading(&format!("{engine}, cadence, {accounts} clients"));
        report.say("loading");
        let loaded =
            Loaded::with(plan, &ground, accounts, &|number, account| enlist(number, account, start))?;
        medians.push((accounts, sweeps(plan, &ground, &loaded, start, report)?));
        if Some(accounts) == largest {
            change_cadence(plan, &ground, &loaded, (engine, report))?;
        }
    }
    if let [(small, fast), (large, slow)] = medians[..] {
        let what = format!("{engine}: a sweep with {DUE} due, {large} clients relative to {small}");
        report.check(what, slow / fast, Target::AtMost(MOST_SLOWDOWN));
    }
    Ok(())
}

fn sweeps_of(plan: &Plan) -> usize {
    plan.pick(31, 5)
}

/// Makes an account a client. The first ones become due in groups, an hour apart.
fn enlist(number: usize, account: &mut Account, start: Time) {
    account.status = Status::Customer;
    account.tracked_since = Some(account.created_at);
    let group = i64::try_from(number / DUE).unwrap_or(i64::MAX);
    let due_at = start.plus_seconds((group + 1).saturating_mul(HOUR_SECONDS));
    let in_turn = due_at.plus_days(-DEFAULT_CADENCE_DAYS);
    account.last_contact_at = Some(in_turn.min(start.plus_days(-CONTACTED_DAYS_AGO)));
}

/// The median of several sweeps that each find a hundred due, in milliseconds.
fn sweeps(
    plan: &Plan,
    ground: &Ground,
    loaded: &Loaded,
    start: Time,
    report: &mut Report,
) -> anyhow::Result<f64> {
    let place = ground.copy(&loaded.place)?;
    let store = Store::open(&Config::new(place.database.clone())).map_err(|error| anyhow!("{error}"))?;
    let clock = Hands(Arc::new(AtomicI64::new(start.as_micros())));
    let dice = Dice(Mutex::new(Chance::new(0xcade)));
    let parts = Parts::new(Arc::new(clock.clone()), Arc::new(dice), Vault::new(&[7; 32]));
    let app = App::new(store, parts);
    let mut latencies = Latencies::default();
    let runtime = drive::runtime()?;
    for number in 0..sweeps_of(plan) {
        let hours = i64::try_from(number + 1)?;
        clock.0.store(start.plus_seconds(hours * HOUR_SECONDS).as_micros(), Ordering::Relaxed);
        let begun = Instant::now();
        let swept = runtime.block_on(rapport_jobs::cadence::round(&app, &CancellationToken::new()));
        swept.map_err(|error| anyhow!("a sweep failed: {error}"))?;
        // The first one fills the caches.
        if number > 0 {
            latencies.record(begun.elapsed());
        }
    }
    app.store().close();
    let announced = announced(&place)?;
    let expected = i64::try_from(sweeps_of(plan) * DUE)?;
    ensure!(announced == expected, "{announced} of {expected} clients were announced");
    report.add(Row::new(format!("a sweep with {DUE} due")).latencies(&latencies));
    Ok(latencies.percentile(50.0).unwrap_or(f64::INFINITY))
}

fn announced(place: &Place) -> anyhow::Result<i64> {
    place.count("SELECT count(*) FROM event WHERE kind = 'client.contact_due'")
}

/// Ingest while nothing else happens, and while a change of the cadence makes everybody due.
fn change_cadence(
    plan: &Plan,
    ground: &Ground,
    loaded: &Loaded,
    (engine, report): (Engine, &mut Report),
) -> anyhow::Result<()> {
    let place = ground.copy(&loaded.place)?;
    let service = Service::start(plan, &place)?;
    let mut longest = [0.0; 2];
    for (is_changed, label) in [(false, "ingest alone"), (true, "ingest while everybody becomes due")] {
        let watch = Watch::start(service.process());
        let driven = ingest(plan, &service, loaded, is_changed)?.expect_all_accepted()?;
        let usage = watch.finish();
        let wait = driven.latencies.percentile(100.0).unwrap_or(f64::INFINITY);
        longest[usize::from(is_changed)] = wait;
        let note = format!("the longest wait is {wait:.1} ms; {} clients announced", announced(&place)?);
        let row = Row::new(label).with("rate", driven.work_per_second()).with("longest_ms", wait);
        report.add(row.latencies(&driven.latencies).usage(&usage).note(note));
    }
    ensure!(announced(&place)? > 0, "nobody was announced: the change had no effect");
    service.stop()?;
    let what = format!("{engine}: longest wait of an ingest while the cadence changes, ms more than alone");
    report.check(what, longest[1] - longest[0], Target::AtMost(MOST_EXTRA_WAIT_MS));
    Ok(())
}

fn ingest(plan: &Plan, service: &Service, loaded: &Loaded, is_changed: bool) -> anyhow::Result<Driven> {
    let accounts = loaded.dataset.ids.len();
    let seed = 5 + u64::from(is_changed);
    let batches = IngestBatches::many(&loaded.credentials, accounts, false, INGEST_CONNECTIONS, seed);
    let times = Times { warm_up: plan.warm_up, window: plan.window };
    let address = service.address;
    thread::scope(|scope| {
        let load = scope.spawn(move || drive::closed_loop(address, times, batches, None));
        if is_changed {
            thread::sleep(plan.warm_up + plan.window / 4);
            set_cadence(service, &loaded.credentials)?;
        }
        load.join().map_err(|_| anyhow!("the load panicked"))?
    })
}

fn set_cadence(service: &Service, credentials: &Credentials) -> anyhow::Result<()> {
    let authorization = format!("authorization: Bearer {}", credentials.api_token);
    let endpoint = Endpoint::of("PATCH", "/api/settings/", &authorization);
    let body = json!({ "cadence_days": SHORTER_CADENCE_DAYS }).to_string();
    let mut request = Vec::new();
    endpoint.write(&mut request, body.as_bytes());
    let (status, answer) = drive::call(service.address, &request)?;
    ensure!(status == 200, "the cadence was answered {status}: {}", String::from_utf8_lossy(&answer));
    Ok(())
}

/// A clock that is set by hand.
#[derive(Clone)]
struct Hands(Arc<AtomicI64>);

impl Clock for Hands {
    fn now(&self) -> Time {
        Time::from_micros(self.0.load(Ordering::Relaxed))
    }
}

struct Dice(Mutex<Chance>);

impl Random for Dice {
    fn fill(&self, bytes: &mut [u8]) {
        let mut chance = self.0.lock();
        for byte in bytes {
            [*byte] = chance.bytes();
        }
    }
}

//! Delivery starting from an empty database: no statistics, tables that grow from nothing, and nobody who helps. Every
//! second is checked, not the mean: a service whose plans go stale delivers in bursts.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{anyhow, ensure};
use serde_json::json;

use crate::body::{EVENTS_PER_BATCH, Gate, MovingBatches, Stages};
use crate::drive::{self, Times};
use crate::http::Endpoint;
use crate::place::{Engine, Ground};
use crate::receiver::{Hosts, Receiver};
use crate::report::{Report, Row, Target, whole};
use crate::service::{self, Credentials, Service};
use crate::webhooks_part::{self as webhooks, DELIVERIES_PER_REQUEST, INGEST_CONNECTIONS, MOST_UNDER_WAY};
use crate::{Plan, dataset};

const WEBHOOKS: usize = 10;
const ACCOUNTS: usize = 2_000;
/// Connections that create the accounts.
const CREATORS: usize = 8;
/// In these, connections are opened and receivers prove themselves.
const FIRST_SECONDS: usize = 3;
const LOWEST_TO_MEDIAN: f64 = 0.5;
const TO_BASELINE: f64 = 2.0;
/// PostgreSQL has no statistics in these; its first ANALYZE comes about a minute after the tables have rows.
const UNANALYZED_SECONDS: usize = 40;
/// SQLite does not plan by statistics, so nothing may have become slower there.
const SQLITE_TO_BASELINE: f64 = 0.9;

/// Arrivals in each second of a run.
struct Seconds(Vec<f64>);

impl Seconds {
    fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / whole(self.0.len() as u64)
    }

    /// The mean of the seconds in which the baseline suffers from missing statistics, else of all.
    fn compared(&self, engine: Engine) -> f64 {
        let all = self.0.len();
        let seconds = if engine == Engine::Postgres { all.min(UNANALYZED_SECONDS) } else { all };
        Self(self.0[..seconds].to_vec()).mean()
    }

    fn after_the_first(&self) -> Vec<f64> {
        let mut later = self.0.get(FIRST_SECONDS..).unwrap_or_default().to_vec();
        later.sort_by(f64::total_cmp);
        later
    }

    fn median(&self) -> f64 {
        let later = self.after_the_first();
        later.get(later.len() / 2).copied().unwrap_or(0.0)
    }

    fn lowest(&self) -> f64 {
        self.after_the_first().first().copied().unwrap_or(0.0)
    }

    fn row(&self, label: String) -> Row {
        let shown: Vec<String> = self.0.iter().map(|count| format!("{count:.0}")).collect();
        Row::new(label)
            .with("rate", self.mean())
            .with("median", self.median())
            .with("lowest", self.lowest())
            .note(format!(
                "median {:.0}, lowest {:.0}; by second: {}",
                self.median(),
                self.lowest(),
                shown.join(" ")
            ))
    }
}

pub fn run(
    plan: &Plan,
    engine: Engine,
    ground: &Ground,
    receiver: &Receiver,
    report: &mut Report,
) -> anyhow::Result<()> {
    let baseline = plan.baseline.as_deref().map(|program| {
        let seconds = measure(plan, program, ground, receiver)?;
        report.add(seconds.row(format!("baseline: deliveries to {WEBHOOKS} from an empty database")));
        anyhow::Ok(seconds)
    });
    let baseline = baseline.transpose()?;
    let seconds = measure(plan, &plan.rapport, ground, receiver)?;
    let mut row = seconds.row(format!("deliveries to {WEBHOOKS} from an empty database"));
    if let Some(baseline) = &baseline {
        row = row.with("to_baseline", seconds.compared(engine) / baseline.compared(engine));
    }
    report.add(row);
    let what = format!("{engine}: lowest second relative to the median, from an empty database");
    report.check(what, seconds.lowest() / seconds.median(), Target::AtLeast(LOWEST_TO_MEDIAN));
    if let Some(baseline) = baseline {
        let target = if engine == Engine::Postgres { TO_BASELINE } else { SQLITE_TO_BASELINE };
        let when = if engine == Engine::Postgres { " before it has statistics" } else { "" };
        let what = format!("{engine}: deliveries from an empty database{when} relative to the baseline's");
        report.check(what, seconds.compared(engine) / baseline.compared(engine), Target::AtLeast(target));
    }
    Ok(())
}

/// Everything goes over HTTP, so that any build of the service can be measured.
fn measure(plan: &Plan, program: &Path, ground: &Ground, receiver: &Receiver) -> anyhow::Result<Seconds> {
    let plan = &Plan { rapport: program.to_owned(), ..plan.clone() };
    let place = ground.fresh()?;
    let credentials = service::create_company(plan, &place, webhooks::PROJECTS[0])?;
    let service = Service::start_trusting(plan, &place, receiver.authority())?;
    create_accounts(&service, &credentials, ACCOUNTS)?;
    let urls = (0..WEBHOOKS).map(|number| receiver.url("ok", number, Hosts::Own));
    webhooks::add_webhooks(&service, &credentials, urls)?;
    let arrivals = &receiver.arrivals;
    arrivals.begin(false);
    let gate = Gate {
        arrived: Arc::clone(&arrivals.healthy),
        caused: Arc::default(),
        per_change: WEBHOOKS as u64,
        most_under_way: MOST_UNDER_WAY[1],
    };
    let times = Times { warm_up: Duration::ZERO, window: plan.fresh_window };
    let events = (DELIVERIES_PER_REQUEST / WEBHOOKS).clamp(1, EVENTS_PER_BATCH);
    let batches =
        MovingBatches::many(&credentials, &Stages::new(ACCOUNTS), &gate, events, INGEST_CONNECTIONS);
    let over = AtomicBool::new(false);
    let (driven, seconds) = thread::scope(|scope| {
        let sampler = scope.spawn(|| sample(&arrivals.healthy, &over));
        let driven = drive::closed_loop(service.address, times, batches, Some(&arrivals.healthy));
        over.store(true, Ordering::SeqCst);
        sampler.join().map(|seconds| (driven, seconds)).map_err(|_| anyhow!("a thread panicked"))
    })?;
    let driven = driven?.expect_all_done()?;
    webhooks::wait_until_settled(&place, receiver, driven.total_work * WEBHOOKS as u64)?;
    service.stop()?;
    Ok(Seconds(seconds))
}

/// How much a counter grows in each whole second until it is over.
fn sample(counter: &AtomicU64, over: &AtomicBool) -> Vec<f64> {
    let started = Instant::now();
    let (mut seconds, mut before) = (Vec::new(), 0);
    loop {
        let next = Duration::from_secs(seconds.len() as u64 + 1);
        thread::sleep(next.saturating_sub(started.elapsed()));
        if over.load(Ordering::SeqCst) {
            return seconds;
        }
        let now = counter.load(Ordering::Relaxed);
        seconds.push(whole(now - before));
        before = now;
    }
}

pub fn create_accounts(service: &Service, credentials: &Credentials, count: usize) -> anyhow::Result<()> {
    let authorization = format!("authorization: Bearer {}", credentials.api_token);
    let endpoint = &Endpoint::post("/api/accounts/upsert-by-imported-id/", &authorization);
    let create = |number: usize| {
        let body = json!({ "project": credentials.project, "imported_id": dataset::imported_id(number) });
        let mut request = Vec::new();
        endpoint.write(&mut request, body.to_string().as_bytes());
        let (status, answer) = drive::call(service.address, &request)?;
        ensure!(status == 201, "an upsert was answered {status}: {}", String::from_utf8_lossy(&answer));
        Ok(())
    };
    thread::scope(|scope| {
        let creators: Vec<_> = (0..CREATORS)
            .map(|first| scope.spawn(move || (first..count).step_by(CREATORS).try_for_each(create)))
            .collect();
        creators
            .into_iter()
            .try_for_each(|creator| creator.join().map_err(|_| anyhow!("a thread panicked"))?)
    })
}

//! Webhooks: from a committed change to a signed request at its receiver, against a client with no storage.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use rapport_domain::event::{self, Occasion};
use rapport_domain::id::WebhookId;
use rapport_domain::pipeline::{Move, Source, Status};
use serde_json::{Value, json};

use crate::backlog;
use crate::bare_client;
use crate::body::{EVENTS_PER_BATCH, Gate, MovingBatches, MovingUpserts, Stages};
use crate::dataset::{self, Dataset, Ids};
use crate::dead;
use crate::drive::{self, Driven, Times};
use crate::fresh;
use crate::http::Endpoint;
use crate::interference;
use crate::measure::{Usage, Watch, now};
use crate::place::{Engine, Ground, Place};
use crate::receiver::{Hosts, Receiver};
use crate::report::{Report, Row, Target, whole};
use crate::service::{self, Credentials, Service};
use crate::{Case, Plan};

/// The company that changes, and another one next to it.
pub const PROJECTS: [&str; 2] = ["acme", "globex"];
pub const INGEST_CONNECTIONS: usize = 8;
const UPSERT_CONNECTIONS: usize = 64;
/// Deliveries in progress at full rate, to one webhook and to several: more than the sender has slots for, but
/// not more than it holds in memory.
pub const MOST_UNDER_WAY: [u64; 2] = [4_000, 10_000];
/// The most deliveries that a request may cause if there are many webhooks.
pub const DELIVERIES_PER_REQUEST: usize = 1_000;
/// One for each of a thousand webhooks, and a few more.
const HOSTS: usize = 1_024;
const LOW_RATE: f64 = 20.0;
const ARRIVE_LIMIT: Duration = Duration::from_mins(1);
const POSTGRES_SHARE: f64 = 0.4;

/// A loaded database with two companies that is only ever copied.
pub struct Loaded {
    pub place: Place,
    pub datasets: [Dataset; 2],
    pub credentials: [Credentials; 2],
}

/// A service on its own copy, with receivers to send to.
pub struct Stage<'a> {
    pub loaded: &'a Loaded,
    pub receiver: &'a Receiver,
    pub place: Place,
    pub service: Service,
}

impl<'a> Stage<'a> {
    pub fn open(
        plan: &Plan,
        ground: &Ground,
        loaded: &'a Loaded,
        receiver: &'a Receiver,
    ) -> anyhow::Result<Self> {
        let place = ground.copy(&loaded.place)?;
        let service = Service::start_trusting(plan, &place, receiver.authority())?;
        Ok(Self { loaded, receiver, place, service })
    }

    /// Creates webhooks of one company that receive every move.
    pub fn add_webhooks(
        &self,
        company: usize,
        behaviour: &str,
        count: usize,
        hosts: Hosts,
    ) -> anyhow::Result<Vec<WebhookId>> {
        let urls = (0..count).map(|number| self.receiver.url(behaviour, number, hosts));
        add_webhooks(&self.service, &self.loaded.credentials[company], urls)
    }
}

/// Creates webhooks that receive every move.
pub fn add_webhooks(
    service: &Service,
    credentials: &Credentials,
    urls: impl Iterator<Item = String>,
) -> anyhow::Result<Vec<WebhookId>> {
    let authorization = format!("authorization: Bearer {}", credentials.api_token);
    let endpoint = Endpoint::post("/api/webhooks/", &authorization);
    let mut ids = Vec::new();
    for url in urls {
        let body = json!({ "url": url, "events": ["account.status_changed"] }).to_string();
        let mut request = Vec::new();
        endpoint.write(&mut request, body.as_bytes());
        let (status, answer) = drive::call(service.address, &request)?;
        let text = String::from_utf8_lossy(&answer);
        ensure!(status == 201, "creating a webhook was answered {status}: {text}");
        let made: Value = serde_json::from_slice(&answer)?;
        let id = made["id"].as_str().and_then(|id| id.parse().ok());
        ids.push(id.with_context(|| format!("no id in {text}"))?);
    }
    Ok(ids)
}

/// Waits until every caused delivery has arrived and its outcome is stored; returns how long that took.
pub fn wait_until_settled(place: &Place, receiver: &Receiver, deliveries: u64) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let arrived = receiver.arrivals.wait_for(deliveries, ARRIVE_LIMIT);
    ensure!(arrived >= deliveries, "{arrived} of {deliveries} deliveries arrived within {ARRIVE_LIMIT:?}");
    while place.count("SELECT count(*) FROM delivery WHERE state = 0")? > 0 {
        ensure!(started.elapsed() < 2 * ARRIVE_LIMIT, "outcomes are not stored");
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(started.elapsed())
}

pub fn run(plan: &Plan, engine: Engine, report: &mut Report) -> anyhow::Result<()> {
    let ground = Ground::prepare(engine);
    report.heading(&format!("{engine}, webhooks"));
    let receiver = Receiver::start(HOSTS)?;
    if plan.includes(Case::Fresh) {
        fresh::run(plan, engine, &ground, &receiver, report)?;
    }
    if plan.includes(Case::Dead) {
        dead::run(plan, engine, &ground, &receiver, report)?;
    }
    if plan.is_only(&[Case::Fresh, Case::Dead]) {
        return Ok(());
    }
    report.say("loading");
    let loaded = load(plan, &ground)?;
    let bare = bare_limits(plan, &loaded, &receiver, report)?;
    let bench = Bench { plan, engine, ground: &ground, loaded: &loaded, receiver: &receiver, bare };
    let full_rate = [
        (Case::One, Way::Ingest, (1, Hosts::Own), Some(8_000.0)),
        (Case::Upserts, Way::Upsert, (1, Hosts::Own), Some(4_000.0)),
        (Case::Ten, Way::Ingest, (10, Hosts::Own), Some(15_000.0)),
        (Case::TenOnOneHost, Way::Ingest, (10, Hosts::One), None),
        (Case::Thousand, Way::Ingest, (plan.pick(1_000, 50), Hosts::Own), None),
    ];
    for (case, way, webhooks, target) in full_rate {
        if plan.includes(case) {
            bench.full_rate(way, webhooks, target, report)?;
        }
    }
    if plan.includes(Case::LowRate) {
        bench.low_rate(report)?;
    }
    if plan.includes(Case::Interference) {
        interference::run(&bench, report)?;
    }
    if plan.includes(Case::Backlog) {
        backlog::run(&bench, report)?;
    }
    Ok(())
}

/// What every case of this part needs.
pub struct Bench<'a> {
    pub plan: &'a Plan,
    pub engine: Engine,
    pub ground: &'a Ground,
    pub loaded: &'a Loaded,
    pub receiver: &'a Receiver,
    /// Posts per second without storage.
    pub bare: f64,
}

/// How accounts are made to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Ingest,
    Upsert,
}

fn load(plan: &Plan, ground: &Ground) -> anyhow::Result<Loaded> {
    let place = ground.fresh()?;
    let credentials = [
        service::create_company(plan, &place, PROJECTS[0])?,
        service::create_company(plan, &place, PROJECTS[1])?,
    ];
    let datasets = [
        dataset::load(&place, PROJECTS[0], plan.pick(100_000, 2_000))?,
        dataset::load(&place, PROJECTS[1], plan.pick(10_000, 2_000))?,
    ];
    Ok(Loaded { place, datasets, credentials })
}

fn bare_limits(
    plan: &Plan,
    loaded: &Loaded,
    receiver: &Receiver,
    report: &mut Report,
) -> anyhow::Result<f64> {
    let body = payload(&loaded.datasets[0]);
    let bare = bare_client::measure(receiver, &body, plan.window)?;
    report.add(Row::new("raw: a bare client, no storage").with("rate", bare));
    let own = bare_client::measure_own(receiver, &body, plan.window)?;
    report.add(
        Row::new("raw: the service's own client, no storage").with("rate", own).with("ratio", own / bare),
    );
    Ok(bare)
}

/// The payload of a move, as the service freezes it.
pub fn payload(dataset: &Dataset) -> String {
    let now = now();
    let account = dataset::account(dataset.ids[0], dataset::imported_id(0), dataset::name(0), now);
    let occasion = Occasion { id: Ids::new(0xb0d1).next(now), now, project: &dataset.project };
    let step = Move { from: Status::Prospect, to: Status::InTrial };
    event::status_changed(occasion, &account, step, Source::Automation).payload
}

impl Bench<'_> {
    pub fn stage(&self) -> anyhow::Result<Stage<'_>> {
        Stage::open(self.plan, self.ground, self.loaded, self.receiver)
    }

    /// The target of an engine: PostgreSQL's is a share of SQLite's.
    fn share(&self, target: f64) -> f64 {
        if self.engine == Engine::Postgres { target * POSTGRES_SHARE } else { target }
    }

    /// Moves accounts as fast as their deliveries arrive, with a limited number of deliveries in progress.
    fn full_rate(
        &self,
        way: Way,
        (webhooks, hosts): (usize, Hosts),
        target: Option<f64>,
        report: &mut Report,
    ) -> anyhow::Result<()> {
        let stage = self.stage()?;
        stage.add_webhooks(0, "ok", webhooks, hosts)?;
        let arrivals = &self.receiver.arrivals;
        arrivals.begin(false);
        let per_change = webhooks as u64;
        let gate = Gate {
            arrived: Arc::clone(&arrivals.healthy),
            caused: Arc::default(),
            per_change,
            most_under_way: MOST_UNDER_WAY[usize::from(webhooks > 1)],
        };
        let watch = Watch::start(stage.service.process());
        let driven = self.drive(&stage, way, &gate, webhooks)?.expect_all_done()?;
        let usage = watch.finish();
        let ages = arrivals.ages();
        let settled = wait_until_settled(&stage.place, self.receiver, driven.total_work * per_change)?;
        let rate = driven.counted_per_second();
        let changes = rate / whole(per_change);
        let by = if way == Way::Ingest { "ingest moves" } else { "single upserts" };
        let place = if hosts == Hosts::One { ", all on one host" } else { "" };
        report.add(
            full_rate_row(&format!("deliveries to {webhooks} by {by}{place}"), &driven, &usage)
                .with("rate", rate)
                .latencies(&ages)
                .with("changes", changes)
                .with("shed", whole(driven.shed))
                .with("ratio", rate / self.bare)
                .note(format!(
                    "{changes:.0} changes/s; the latency is from the frozen payload to the arrival; {} requests \
                     shed with 503 and sent again; all outcomes stored {:.1} s after the end",
                    driven.shed,
                    settled.as_secs_f64()
                )),
        );
        if let Some(target) = target {
            let (what, value) = match webhooks {
                1 => (format!("{}: changes/s by {by} delivered to one receiver", self.engine), changes),
                _ => (format!("{}: deliveries/s at {webhooks} per change", self.engine), rate),
            };
            report.check(what, value, Target::AtLeast(self.share(target)));
        }
        stage.service.stop()
    }

    fn drive(&self, stage: &Stage, way: Way, gate: &Gate, webhooks: usize) -> anyhow::Result<Driven> {
        let times = Times { warm_up: self.plan.warm_up, window: self.plan.window };
        let credentials = &self.loaded.credentials[0];
        let stages = Stages::new(self.loaded.datasets[0].ids.len());
        let arrivals = Arc::clone(&self.receiver.arrivals);
        let warm_up = times.warm_up;
        // Ages count from the end of the warm-up, like everything else.
        let forget = std::thread::spawn(move || {
            std::thread::sleep(warm_up);
            arrivals.begin_ages();
        });
        let counter = Some(&self.receiver.arrivals.healthy);
        let driven = match way {
            Way::Ingest => {
                let events = (DELIVERIES_PER_REQUEST / webhooks).clamp(1, EVENTS_PER_BATCH);
                let batches = MovingBatches::many(credentials, &stages, gate, events, INGEST_CONNECTIONS);
                drive::closed_loop(stage.service.address, times, batches, counter)
            }
            Way::Upsert => {
                let (upserts, _) = MovingUpserts::many(credentials, &stages, Some(gate), UPSERT_CONNECTIONS);
                drive::closed_loop(stage.service.address, times, upserts, counter)
            }
        };
        forget.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?;
        driven
    }

    /// From the answer of a single upsert to the arrival, with nothing else going on.
    fn low_rate(&self, report: &mut Report) -> anyhow::Result<()> {
        let stage = self.stage()?;
        stage.add_webhooks(0, "ok", 1, Hosts::Own)?;
        let waits = interference::paced(&stage, LOW_RATE, self.plan.window, &[0], 1)?;
        report.add(
            Row::new(format!("answer to arrival at {LOW_RATE} changes/s"))
                .with("rate", LOW_RATE)
                .latencies(&waits.from_answer),
        );
        report
            .add(Row::new("… from the frozen payload, including the commit").latencies(&waits.from_payload));
        let p50 = waits.from_answer.percentile(50.0).unwrap_or(f64::INFINITY);
        let what = format!("{}: p50 in ms from commit to arrival at {LOW_RATE}/s", self.engine);
        report.check(what, p50, Target::AtMost(1.0));
        stage.service.stop()
    }
}

fn full_rate_row(label: &str, driven: &Driven, usage: &Usage) -> Row {
    Row::new(label).with("requests", driven.requests_per_second()).usage(usage)
}

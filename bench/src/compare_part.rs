//! Two builds of the service side by side: did ingest, upsert or delivery become slower?
//!
//! Both run at the same time, each on its own database, and take turns: a few seconds of load for one, then the same for
//! the other, in changing order. What the machine does in a minute then happens to both. Everything goes over HTTP, so any
//! older build can be the baseline.
//!
//! Besides the rate, this measures the processor time that service and database use for one unit of work. It scatters less,
//! because what the machine and the disk do beside it doesn't count.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use anyhow::Context as _;
use clap::ValueEnum;

use crate::Plan;
use crate::body::{EVENTS_PER_BATCH, Gate, IngestBatches, MovingBatches, Stages, UpsertMix};
use crate::core_part::{INGEST_CONNECTIONS, UPSERT_CONNECTIONS};
use crate::drive::{self, Driven, Requests, Times};
use crate::fresh;
use crate::measure::processor_micros;
use crate::place::{Engine, Ground, Place};
use crate::receiver::{Hosts, Receiver};
use crate::report::{Report, Row, Target};
use crate::service::{self, Credentials, Service};
use crate::webhooks_part::{self as webhooks, MOST_UNDER_WAY, PROJECTS};

const ACCOUNTS: usize = 5_000;
/// An odd number, so that the median is one of them.
const ROUNDS: usize = 25;
const HOSTS: usize = 1;
/// What a build may lose.
const LEAST: f64 = 0.97;
const MOST: f64 = 1.03;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Work {
    Ingest,
    /// Ingest of events that have an event_id
    IngestWithId,
    Upsert,
    /// Deliveries to one webhook by ingest moves
    Delivery,
}

impl Work {
    fn text(self) -> &'static str {
        match self {
            Self::Ingest => "ingest without event_id",
            Self::IngestWithId => "ingest with event_id",
            Self::Upsert => "upsert",
            Self::Delivery => "deliveries to one webhook by ingest moves",
        }
    }
}

/// A build at work. One company has no webhooks, the other has one.
struct Side<'a> {
    ground: &'a Ground,
    service: Service,
    place: Place,
    companies: [Credentials; 2],
    receiver: &'a Receiver,
    /// The stages that upserts and moving batches have brought the accounts of each company to.
    stages: [Arc<Stages>; 2],
    created: Arc<AtomicUsize>,
}

/// What one turn of a side measured.
#[derive(Debug, Clone, Copy)]
struct Turn {
    /// Events, upserts or deliveries per second.
    rate: f64,
    /// Microseconds of processor time for each of them: by the service, and by the server of its database.
    micros: [f64; 2],
}

impl Turn {
    fn all_micros(self) -> f64 {
        self.micros.iter().sum()
    }
}

pub fn run(plan: &Plan, engine: Engine, report: &mut Report) -> anyhow::Result<()> {
    let baseline = plan.baseline.as_deref().context("name the other build with --baseline")?;
    let ground = Ground::prepare(engine);
    let receiver = Receiver::start(HOSTS)?;
    report.heading(&format!("{engine}, compared with the baseline"));
    let sides = [
        Side::start(plan, baseline, &ground, &receiver)?,
        Side::start(plan, &plan.rapport, &ground, &receiver)?,
    ];
    // A turn is short, because the machine may change between two of them, and many pairs say more than long ones.
    let times = Times { warm_up: plan.warm_up / 6, window: plan.window / 8 };
    let chosen = |work: &Work| plan.work.is_empty() || plan.work.contains(work);
    for &work in Work::value_variants().iter().filter(|work| chosen(work)) {
        let what = work.text();
        let mut turns = [Vec::new(), Vec::new()];
        for round in 0..plan.pick(ROUNDS, 1) {
            let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
            for side in order {
                turns[side].push(sides[side].measure(work, times, round as u64)?);
            }
        }
        let [before, now] = turns;
        let relative = |figure: fn(Turn) -> f64| {
            median(before.iter().zip(&now).map(|(before, now)| figure(*now) / figure(*before)))
        };
        let [rate, micros] = [relative(|turn| turn.rate), relative(Turn::all_micros)];
        report.add(row(format!("baseline: {what}"), &before));
        report.add(row(what, &now).with("to_baseline", rate).with("micros_to_baseline", micros).note(
            format!(
                "{rate:.3} of the baseline's rate and {micros:.3} of its processor time: medians of {} pairs",
                now.len()
            ),
        ));
        report.check(
            format!("{engine}: {what}, rate relative to the baseline"),
            rate,
            Target::AtLeast(LEAST),
        );
        report.check(
            format!("{engine}: {what}, processor time relative to the baseline"),
            micros,
            Target::AtMost(MOST),
        );
    }
    sides.into_iter().try_for_each(|side| side.service.stop())
}

impl<'a> Side<'a> {
    fn start(
        plan: &Plan,
        program: &Path,
        ground: &'a Ground,
        receiver: &'a Receiver,
    ) -> anyhow::Result<Self> {
        let plan = &Plan { rapport: program.to_owned(), ..plan.clone() };
        let place = ground.fresh()?;
        let companies = [
            service::create_company(plan, &place, PROJECTS[0])?,
            service::create_company(plan, &place, PROJECTS[1])?,
        ];
        let service = Service::start_trusting(plan, &place, receiver.authority())?;
        for company in &companies {
            fresh::create_accounts(&service, company, ACCOUNTS)?;
        }
        let url = receiver.url("ok", 0, Hosts::Own);
        webhooks::add_webhooks(&service, &companies[1], [url].into_iter())?;
        let stages = [Stages::new(ACCOUNTS), Stages::new(ACCOUNTS)];
        Ok(Self { ground, service, place, companies, receiver, stages, created: Arc::default() })
    }

    fn measure(&self, work: Work, times: Times, round: u64) -> anyhow::Result<Turn> {
        let before = self.processor_micros();
        let driven = self.work(work, times, round)?;
        let now = self.processor_micros();
        #[expect(clippy::cast_precision_loss, reason = "a few seconds of work fit")]
        let micros = [0, 1].map(|of| (now[of] - before[of]) / driven.total_work as f64);
        let rate = match work {
            Work::Ingest | Work::IngestWithId | Work::Upsert => driven.work_per_second(),
            Work::Delivery => driven.counted_per_second(),
        };
        Ok(Turn { rate, micros })
    }

    /// Used so far by the service, and by the server of its database.
    fn processor_micros(&self) -> [f64; 2] {
        [vec![self.service.process()], self.ground.processes()].map(|each| processor_micros(&each))
    }

    fn work(&self, work: Work, times: Times, round: u64) -> anyhow::Result<Driven> {
        match work {
            Work::Ingest | Work::IngestWithId => {
                let with_event_id = work == Work::IngestWithId;
                // The seed makes every event_id a new one.
                let seed = 1 + 2 * round + u64::from(with_event_id);
                let company = &self.companies[0];
                let batches = IngestBatches::many(company, ACCOUNTS, with_event_id, INGEST_CONNECTIONS, seed);
                self.drive(times, batches)
            }
            Work::Upsert => {
                let company = &self.companies[0];
                let upserts =
                    UpsertMix::going_on(company, &self.stages[0], &self.created, UPSERT_CONNECTIONS);
                self.drive(times, upserts)
            }
            Work::Delivery => self.deliver(times),
        }
    }

    fn drive<R: Requests>(&self, times: Times, lines: Vec<R>) -> anyhow::Result<Driven> {
        drive::closed_loop(self.service.address, times, lines, None)?.expect_all_accepted()
    }

    fn deliver(&self, times: Times) -> anyhow::Result<Driven> {
        let arrivals = &self.receiver.arrivals;
        arrivals.begin(false);
        let gate = Gate {
            arrived: Arc::clone(&arrivals.healthy),
            caused: Arc::default(),
            per_change: 1,
            most_under_way: MOST_UNDER_WAY[0],
        };
        let connections = webhooks::INGEST_CONNECTIONS;
        let batches =
            MovingBatches::many(&self.companies[1], &self.stages[1], &gate, EVENTS_PER_BATCH, connections);
        let counter = Some(&arrivals.healthy);
        let driven = drive::closed_loop(self.service.address, times, batches, counter)?.expect_all_done()?;
        webhooks::wait_until_settled(&self.place, self.receiver, driven.total_work)?;
        Ok(driven)
    }
}

/// The medians of what was measured in these turns.
fn row(label: impl Into<String>, turns: &[Turn]) -> Row {
    Row::new(label)
        .with("rate", median(turns.iter().map(|turn| turn.rate)))
        .with("service_micros", median(turns.iter().map(|turn| turn.micros[0])))
        .with("server_micros", median(turns.iter().map(|turn| turn.micros[1])))
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert!((median([3.0, 1.0, 2.0].into_iter()) - 2.0).abs() < f64::EPSILON);
        assert!(median(std::iter::empty()).abs() < f64::EPSILON);
    }
}

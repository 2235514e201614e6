//! Two builds of the service side by side: did ingest, upsert or delivery become slower?
//!
//! Both run at the same time, each on its own database, and take turns: a few seconds of load for one, then the same for
//! the other, in changing order. What the machine does in a minute then happens to both. Everything goes over HTTP, so any
//! older build can be the baseline.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use anyhow::Context as _;

use crate::Plan;
use crate::body::{EVENTS_PER_BATCH, Gate, IngestBatches, MovingBatches, Stages, UpsertMix};
use crate::core_part::{INGEST_CONNECTIONS, UPSERT_CONNECTIONS};
use crate::drive::{self, Driven, Requests, Times};
use crate::fresh;
use crate::place::{Engine, Ground, Place};
use crate::receiver::{Hosts, Receiver};
use crate::report::{Report, Row, Target};
use crate::service::{self, Credentials, Service};
use crate::webhooks_part::{self as webhooks, MOST_UNDER_WAY, PROJECTS};

const ACCOUNTS: usize = 5_000;
/// An odd number, so that the median is one of them.
const ROUNDS: usize = 9;
const HOSTS: usize = 1;
/// What a build may lose.
const LEAST: f64 = 0.97;

#[derive(Debug, Clone, Copy)]
enum Work {
    Ingest { with_event_id: bool },
    Upsert,
    Delivery,
}

const WORK: [(Work, &str); 4] = [
    (Work::Ingest { with_event_id: false }, "ingest without event_id"),
    (Work::Ingest { with_event_id: true }, "ingest with event_id"),
    (Work::Upsert, "upsert"),
    (Work::Delivery, "deliveries to one webhook by ingest moves"),
];

/// A build at work. One company has no webhooks, the other has one.
struct Side<'a> {
    service: Service,
    place: Place,
    companies: [Credentials; 2],
    receiver: &'a Receiver,
    /// The stages that upserts and moving batches have brought the accounts of each company to.
    stages: [Arc<Stages>; 2],
    created: Arc<AtomicUsize>,
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
    // A turn is short, because the machine may change between two of them.
    let times = Times { warm_up: plan.warm_up / 3, window: plan.window / 4 };
    for (work, what) in WORK {
        let mut rates = [Vec::new(), Vec::new()];
        for round in 0..plan.pick(ROUNDS, 1) {
            let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
            for side in order {
                rates[side].push(sides[side].measure(work, times, round as u64)?);
            }
        }
        let [before, now] = rates;
        let ratio = median(before.iter().zip(&now).map(|(before, now)| now / before).collect());
        report.add(Row::new(format!("baseline: {what}")).with("rate", median(before)));
        report.add(
            Row::new(what)
                .with("rate", median(now))
                .with("to_baseline", ratio)
                .note(format!("{ratio:.3} of the baseline: the median of {} pairs", plan.pick(ROUNDS, 1))),
        );
        report.check(format!("{engine}: {what} relative to the baseline"), ratio, Target::AtLeast(LEAST));
    }
    sides.into_iter().try_for_each(|side| side.service.stop())
}

impl<'a> Side<'a> {
    fn start(plan: &Plan, program: &Path, ground: &Ground, receiver: &'a Receiver) -> anyhow::Result<Self> {
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
        Ok(Self { service, place, companies, receiver, stages, created: Arc::default() })
    }

    /// Events, upserts or deliveries per second.
    fn measure(&self, work: Work, times: Times, round: u64) -> anyhow::Result<f64> {
        match work {
            Work::Ingest { with_event_id } => {
                // The seed makes every event_id a new one.
                let seed = 1 + 2 * round + u64::from(with_event_id);
                let company = &self.companies[0];
                let batches = IngestBatches::many(company, ACCOUNTS, with_event_id, INGEST_CONNECTIONS, seed);
                self.drive(times, batches).map(|driven| driven.work_per_second())
            }
            Work::Upsert => {
                let company = &self.companies[0];
                let upserts =
                    UpsertMix::going_on(company, &self.stages[0], &self.created, UPSERT_CONNECTIONS);
                self.drive(times, upserts).map(|driven| driven.work_per_second())
            }
            Work::Delivery => self.deliver(times),
        }
    }

    fn drive<R: Requests>(&self, times: Times, lines: Vec<R>) -> anyhow::Result<Driven> {
        drive::closed_loop(self.service.address, times, lines, None)?.expect_all_accepted()
    }

    fn deliver(&self, times: Times) -> anyhow::Result<f64> {
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
        Ok(driven.counted_per_second())
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert!((median(vec![3.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
        assert!(median(Vec::new()).abs() < f64::EPSILON);
    }
}

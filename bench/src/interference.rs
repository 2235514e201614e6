//! Healthy receivers next to bad ones: how long the healthy ones wait, alone and next to the others, in the same
//! company and in another.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::ensure;

use crate::body::{Answered, MovingUpserts, Stages};
use crate::drive::{self, Times};
use crate::measure::Latencies;
use crate::receiver::Hosts;
use crate::report::{Report, Row, Target};
use crate::webhooks_part::{Bench, Stage};

/// So many that a slow answer does not hold up the schedule.
const CONNECTIONS: usize = 8;
const MOST_SLOWDOWN: f64 = 2.0;
const LATE_LIMIT: Duration = Duration::from_secs(30);

/// Some healthy webhooks next to some bad ones, and how many changes per second they receive.
struct Case {
    name: &'static str,
    healthy: usize,
    bad: usize,
    behaviour: &'static str,
    changes_per_second: f64,
}

const CASES: [Case; 2] = [
    Case {
        name: "(a) one healthy, one that never answers, 40 events/s to both",
        healthy: 1,
        bad: 1,
        behaviour: "stall",
        changes_per_second: 40.0,
    },
    Case {
        name: "(b) ten healthy, a hundred flaky, 500 deliveries/s in all",
        healthy: 10,
        bad: 100,
        behaviour: "flaky",
        changes_per_second: 500.0 / 110.0,
    },
];

/// Where the bad ones are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beside {
    Nobody,
    SameCompany,
    OtherCompany,
}

/// How long healthy receivers waited.
pub struct Waits {
    pub from_answer: Latencies,
    pub from_payload: Latencies,
}

pub fn run(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    for case in &CASES {
        let alone = measure(bench, case, Beside::Nobody, report)?;
        for beside in [Beside::SameCompany, Beside::OtherCompany] {
            let together = measure(bench, case, beside, report)?;
            let place = if beside == Beside::SameCompany { "same company" } else { "other company" };
            let what = format!("{}: {}, {place}: p99 relative to alone", bench.engine, case.name);
            report.check(what, together / alone, Target::AtMost(MOST_SLOWDOWN));
        }
    }
    Ok(())
}

/// Returns the p99 of the healthy ones in milliseconds.
fn measure(bench: &Bench, case: &Case, beside: Beside, report: &mut Report) -> anyhow::Result<f64> {
    let stage = bench.stage()?;
    stage.add_webhooks(0, "ok", case.healthy, Hosts::Own)?;
    let companies: &[usize] = match beside {
        Beside::Nobody => &[0],
        Beside::SameCompany => {
            stage.add_webhooks(0, case.behaviour, case.bad, Hosts::Own)?;
            &[0]
        }
        Beside::OtherCompany => {
            stage.add_webhooks(1, case.behaviour, case.bad, Hosts::Own)?;
            &[0, 1]
        }
    };
    let time = bench.plan.pick(Duration::from_mins(1), Duration::from_secs(4));
    let waits = paced(&stage, case.changes_per_second, time, companies, case.healthy)?;
    let label = match beside {
        Beside::Nobody => format!("{}: alone", case.name),
        Beside::SameCompany => "… next to them in the same company".to_owned(),
        Beside::OtherCompany => "… next to them in another company".to_owned(),
    };
    let bad = stage.receiver.arrivals.others.load(Ordering::Relaxed);
    let note = format!(
        "{} arrivals at healthy ones, {bad} at the others; from the answer: p50 {:.2} ms, p99 {:.2} ms",
        waits.from_payload.count(),
        waits.from_answer.percentile(50.0).unwrap_or(0.0),
        waits.from_answer.percentile(99.0).unwrap_or(0.0),
    );
    report
        .add(Row::new(label).with("rate", case.changes_per_second).latencies(&waits.from_payload).note(note));
    stage.service.stop()?;
    // From the change, including its commit: an answer is often read after the arrival, and then says nothing.
    Ok(waits.from_payload.percentile(99.0).unwrap_or(f64::INFINITY))
}

/// Moves accounts of each company at a steady rate; returns how long the healthy webhooks of the first one waited.
pub fn paced(
    stage: &Stage,
    changes_per_second: f64,
    time: Duration,
    companies: &[usize],
    healthy: usize,
) -> anyhow::Result<Waits> {
    let arrivals = &stage.receiver.arrivals;
    arrivals.begin(true);
    let address = stage.service.address;
    let times = Times { warm_up: Duration::ZERO, window: time };
    let loads: Vec<(Vec<MovingUpserts>, Answered)> = companies
        .iter()
        .map(|&company| {
            let stages = Stages::new(stage.loaded.datasets[company].ids.len());
            MovingUpserts::many(&stage.loaded.credentials[company], &stages, None, CONNECTIONS)
        })
        .collect();
    let answered = std::sync::Arc::clone(&loads[0].1);
    let driven: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = loads
            .into_iter()
            .map(|(lines, _)| {
                scope.spawn(move || drive::open_loop(address, times, lines, changes_per_second))
            })
            .collect();
        threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    });
    for driven in driven {
        driven.map_err(|_| anyhow::anyhow!("a load thread panicked"))??.expect_all_accepted()?;
    }
    let answered: HashMap<usize, Instant> = answered.lock().drain(..).collect();
    let expected = answered.len() * healthy;
    let arrived = arrivals.wait_for(expected as u64, LATE_LIMIT);
    ensure!(arrived >= expected as u64, "{arrived} of {expected} deliveries arrived");
    let mut waits = Waits { from_answer: Latencies::default(), from_payload: Latencies::default() };
    let mut distinct = HashSet::new();
    for arrival in arrivals.take_kept() {
        distinct.insert((arrival.webhook, arrival.account));
        // A delivery that arrives before the answer is read did not wait at all.
        if let Some(answered) = answered.get(&arrival.account) {
            waits.from_answer.record(arrival.at.saturating_duration_since(*answered));
            waits.from_payload.record(arrival.age);
        }
    }
    // Nothing is late, so no repeated delivery makes up for a missing one.
    ensure!(distinct.len() >= expected, "{} of {expected} deliveries arrived", distinct.len());
    Ok(waits)
}

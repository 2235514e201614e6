//! Overload: four times what the service can take, then immediately the normal load again. It must shed with 503,
//! keep what it acknowledged, not grow, and be back when the overload ends.

use std::time::Duration;

use anyhow::ensure;

use crate::Plan;
use crate::body::{EVENTS_PER_BATCH, IngestBatches};
use crate::core_part::{Loaded, ingest_rate_now};
use crate::drive::{self, Times, per_second};
use crate::measure::Watch;
use crate::place::Engine;
use crate::report::{Report, Row, Target, whole};
use crate::service::Service;

const FACTOR: f64 = 4.0;
/// Enough to keep the schedule while each waits for its answer up to the second that the service allows.
const CONNECTIONS: usize = 2_048;
const LEAST_RECOVERED: f64 = 0.9;
const MOST_GROWTH: f64 = 1.25;

/// Returns how many events were acknowledged.
pub fn run(
    plan: &Plan,
    service: &Service,
    loaded: &Loaded,
    capacity: f64,
    (engine, report): (Engine, &mut Report),
) -> anyhow::Result<i64> {
    let rate = FACTOR * capacity / whole(EVENTS_PER_BATCH as u64);
    let time = plan.pick(Duration::from_secs(30), Duration::from_secs(5));
    let accounts = loaded.dataset.ids.len();
    // The disk and the size of the data change the rate within minutes, so what comes after is compared with right before.
    let window = plan.pick(Duration::from_secs(6), Duration::from_secs(1));
    let now = |seed| ingest_rate_now(service.address, loaded, (Duration::from_secs(1), window), seed);
    let before = now(0xbef0)?;
    ensure!(before.other == 0, "before the overload: {:?}", before.example);
    report.add(
        Row::new("ingest right before the overload")
            .with("rate", before.work_per_second())
            .with("requests", before.requests_per_second())
            .latencies(&before.latencies),
    );
    let batches = IngestBatches::many(&loaded.credentials, accounts, true, CONNECTIONS, 0x0fe4);
    let watch = Watch::start(service.process());
    let times = Times { warm_up: Duration::from_secs(1), window: time };
    let over = drive::open_loop(service.address, times, batches, rate)?;
    let usage = watch.finish();
    let offered = per_second(over.accepted + over.shed + over.other, time + times.warm_up);
    report.add(
        Row::new(format!("overload: ingest at {FACTOR} times capacity for {} s", time.as_secs()))
            .with("rate", over.work_per_second())
            .with("requests", over.requests_per_second())
            .latencies(&over.latencies)
            .usage(&usage)
            .with("offered_requests", offered)
            .with("accepted", whole(over.accepted))
            .with("shed", whole(over.shed))
            .with("other", whole(over.other))
            .note(format!(
                "{offered:.0} requests/s offered: {} accepted, {} shed with 503, {} otherwise ({})",
                over.accepted,
                over.shed,
                over.other,
                over.example.as_deref().unwrap_or("none refused"),
            )),
    );
    let after = now(0xaf7e)?;
    report.add(
        Row::new("ingest one second after the overload")
            .with("rate", after.work_per_second())
            .with("requests", after.requests_per_second())
            .latencies(&after.latencies)
            .with("shed", whole(after.shed)),
    );
    ensure!(after.other == 0, "after the overload: {:?}", after.example);
    let what = |text: &str| format!("{engine}: overload: {text}");
    report.check(what("requests shed"), whole(over.shed), Target::AtLeast(1.0));
    report.check(what("answers other than 200 and 503"), whole(over.other), Target::AtMost(0.0));
    let back = after.work_per_second() / before.work_per_second();
    report.check(
        what("rate one second after, relative to right before"),
        back,
        Target::AtLeast(LEAST_RECOVERED),
    );
    let [first, second] = usage.peak_of_halves;
    report.check(
        what("memory of the second half relative to the first"),
        second / first,
        Target::AtMost(MOST_GROWTH),
    );
    Ok(i64::try_from(before.total_work + over.total_work + after.total_work)?)
}

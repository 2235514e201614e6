//! A backlog of due deliveries after downtime: how fast the service starts with it, how much memory it takes,
//! and how fast the service drains it.

use std::time::{Duration, Instant};

use rapport_domain::event::{Event, Kind};
use rapport_domain::id::{DeliveryId, EventId, WebhookId};
use rapport_store::delivery::{self, NewDelivery};
use rapport_store::{Error, Tx, event};

use crate::dataset::{Ids, Loader};
use crate::drive::per_second;
use crate::measure::{Watch, now};
use crate::place::Place;
use crate::receiver::Hosts;
use crate::report::{Report, Row, Target};
use crate::service::Service;
use crate::webhooks_part::{Bench, payload};

const WEBHOOKS: usize = 10;
const EVENTS_PER_TRANSACTION: usize = 500;
const STARTS: usize = 3;
const FIRST_ARRIVAL_LIMIT: Duration = Duration::from_secs(30);
const MOST_MEMORY_MB: f64 = 250.0;
const MOST_EXTRA_SECONDS: f64 = 2.0;

pub fn run(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let deliveries: usize = bench.plan.pick(1_000_000, 50_000);
    let stage = bench.stage()?;
    let webhooks = stage.add_webhooks(0, "ok", WEBHOOKS, Hosts::Own)?;
    let place = stage.place;
    stage.service.stop()?;
    let empty = start_up(bench, &place)?;
    report.add(Row::new("start-up with an empty queue").with("seconds", empty.as_secs_f64()));
    report.say(&format!("writing a backlog of {deliveries} deliveries"));
    fill(bench, &place, &webhooks, deliveries / WEBHOOKS)?;
    drain(bench, &place, deliveries, empty, report)
}

/// The median of a few starts.
fn start_up(bench: &Bench, place: &Place) -> anyhow::Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let service = Service::start_trusting(bench.plan, place, bench.receiver.authority())?;
        times.push(service.started_in);
        service.stop()?;
    }
    times.sort_unstable();
    Ok(times[STARTS / 2])
}

/// Writes events and their deliveries as a service that ended would have left them: open, due, unowned.
fn fill(bench: &Bench, place: &Place, webhooks: &[WebhookId], events: usize) -> anyhow::Result<()> {
    let dataset = &bench.loaded.datasets[0];
    let loader = Loader::open(place, dataset.project.as_str())?;
    let (mut ids, payload) = (Ids::new(0xbac0), payload(dataset));
    let numbers: Vec<usize> = (0..events).collect();
    let transactions = numbers.chunks(EVENTS_PER_TRANSACTION).map(|numbers| {
        let now = now();
        let (mut events, mut deliveries) = (Vec::new(), Vec::new());
        for number in numbers {
            let (id, account): (EventId, _) = (ids.next(now), Some(dataset.ids[number % dataset.ids.len()]));
            let kind = Kind::AccountStatusChanged;
            events.push(Event { id, kind, account, payload: payload.clone(), created_at: now });
            deliveries.extend(webhooks.iter().map(|&webhook| NewDelivery {
                id: ids.next::<DeliveryId>(now),
                webhook,
                event: id,
                kind,
                account,
                owner: None,
                created_at: now,
            }));
        }
        move |tx: &mut Tx| -> Result<(), Error> {
            event::insert(tx, &events)?;
            delivery::insert(tx, &deliveries)
        }
    });
    loader.write_all(transactions)?;
    loader.close();
    place.settle()
}

fn drain(
    bench: &Bench,
    place: &Place,
    deliveries: usize,
    empty: Duration,
    report: &mut Report,
) -> anyhow::Result<()> {
    let arrivals = &bench.receiver.arrivals;
    arrivals.begin(false);
    let started = Instant::now();
    let service = Service::start_trusting(bench.plan, place, bench.receiver.authority())?;
    let watch = Watch::start(service.process());
    let extra = service.started_in.saturating_sub(empty);
    arrivals.wait_for(1, FIRST_ARRIVAL_LIMIT);
    let first_arrival = started.elapsed();
    let draining = Instant::now();
    let arrived = arrivals
        .wait_for(deliveries as u64, bench.plan.pick(Duration::from_mins(2), Duration::from_secs(20)));
    let rate = per_second(arrived, draining.elapsed());
    let usage = watch.finish();
    let engine = bench.engine;
    report.add(
        Row::new(format!("start-up with {deliveries} due deliveries"))
            .with("seconds", service.started_in.as_secs_f64())
            .with("first_arrival_seconds", first_arrival.as_secs_f64())
            .note(format!("the first delivery arrived after {:.2} s", first_arrival.as_secs_f64())),
    );
    report.add(
        Row::new("draining the backlog")
            .with("rate", rate)
            .with("ratio", rate / bench.bare)
            .with("seconds", draining.elapsed().as_secs_f64())
            .usage(&usage)
            .note(format!("{arrived} of {deliveries} arrived")),
    );
    let what = |text: &str| format!("{engine}: backlog of {deliveries}: {text}");
    report.check(what("RSS in MB"), usage.peak_memory, Target::AtMost(MOST_MEMORY_MB));
    report.check(
        what("start-up in seconds more than with an empty queue"),
        extra.as_secs_f64(),
        Target::AtMost(MOST_EXTRA_SECONDS),
    );
    service.stop()
}

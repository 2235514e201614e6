//! One healthy webhook next to very many whose receivers hang: from the start, or after working for a while. It
//! measures how long the healthy one waits, alone and next to them, and how soon the test of a new webhook arrives.
//! Everything goes over HTTP, so that any build of the service can be measured.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde_json::{Value, json};

use crate::Plan;
use crate::drive;
use crate::http::Endpoint;
use crate::measure::{Latencies, Thefts, Watch};
use crate::place::{Engine, Ground};
use crate::receiver::{Hosts, Receiver};
use crate::report::{Report, Row, Target, whole};
use crate::service::{self, Credentials, Service};
use crate::webhooks_part::{PROJECTS, add_webhooks};

/// How much longer than alone the healthy webhook's arrivals may take.
const MOST_SLOWDOWN: f64 = 2.0;
const MOST_TEST_MS: f64 = 1_000.0;
const LATE_LIMIT: Duration = Duration::from_secs(90);
/// A bad moment of the machine is the p99 of a hundred events. So alone and next to dead ones are measured in turns, and
/// the medians of the p99s of undisturbed events are compared.
const TURNS: usize = 3;
const STATUSES: [&str; 2] = ["contacted", "in_trial"];

struct Case {
    name: &'static str,
    behaviour: &'static str,
    dead: usize,
    per_second: u32,
    /// At least a hundred events, so that the slowest of them alone isn't the p99.
    time: Duration,
}

const CASES: [Case; 2] = [
    Case {
        name: "(c) 1,000 that hang, one event per second",
        behaviour: "stall",
        dead: 1_000,
        per_second: 1,
        time: Duration::from_secs(100),
    },
    Case {
        name: "(d) 100 that work for a while and then hang, ten events per second",
        behaviour: "tires",
        dead: 100,
        per_second: 10,
        time: Duration::from_mins(1),
    },
];

/// Where the dead ones are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beside {
    Nobody,
    SameCompany,
    OtherCompany,
}

impl Beside {
    const ALL: [Self; 3] = [Self::Nobody, Self::SameCompany, Self::OtherCompany];

    fn text(self) -> &'static str {
        match self {
            Self::Nobody => "alone",
            Self::SameCompany => "in the same company",
            Self::OtherCompany => "in another company",
        }
    }
}

/// What was observed in a turn.
struct Seen {
    waits: Latencies,
    /// Those during which nobody took the processors away.
    undisturbed: Latencies,
    missing: u64,
    test_ms: f64,
    rss: f64,
}

impl Seen {
    /// Of the undisturbed; what never arrived counts as having waited until the end.
    fn p99(&self) -> f64 {
        let worst = if self.missing > 0 { LATE_LIMIT.as_secs_f64() * 1_000.0 } else { 0.0 };
        self.undisturbed.percentile(99.0).unwrap_or(f64::INFINITY).max(worst)
    }

    fn row(&self, label: String) -> Row {
        let Self { waits, undisturbed, missing, test_ms, rss } = self;
        let note = format!(
            "{missing} missing; the test of a new webhook took {test_ms:.0} ms; {rss:.0} MB; p99 of {} undisturbed: {:.2} ms",
            undisturbed.count(),
            undisturbed.percentile(99.0).unwrap_or(f64::INFINITY),
        );
        Row::new(label).latencies(waits).with("test_ms", *test_ms).note(note)
    }
}

pub fn run(
    plan: &Plan,
    engine: Engine,
    ground: &Ground,
    receiver: &Receiver,
    report: &mut Report,
) -> anyhow::Result<()> {
    // The baseline has one turn: what it is compared for is a thousand times slower than a bad moment.
    let baseline = plan.baseline.iter().map(|program| (program.as_path(), "baseline: ", 1));
    let programs = baseline.chain([(plan.rapport.as_path(), "", plan.pick(TURNS, 1))]);
    for (program, prefix, turns) in programs {
        for case in &CASES {
            let mut seen = [const { Vec::new() }; Beside::ALL.len()];
            for _ in 0..turns {
                for (turns, beside) in seen.iter_mut().zip(Beside::ALL) {
                    let turn = measure(plan, program, ground, receiver, case, beside)?;
                    report.add(turn.row(format!("{prefix}{}: {}", case.name, beside.text())));
                    turns.push(turn);
                }
            }
            // A quick run shows only that everything works.
            if prefix.is_empty() && !plan.quick {
                check(engine, case, &seen, report);
            }
        }
    }
    Ok(())
}

fn check(engine: Engine, case: &Case, seen: &[Vec<Seen>; Beside::ALL.len()], report: &mut Report) {
    let [alone, ..] = seen;
    // A slow event is more often a disturbed one, so what is left of a noisy turn looks better than it is.
    if seen.iter().flatten().any(|turn| 2 * turn.undisturbed.count() < turn.waits.count()) {
        report.fail(format!("{engine}: {}: most events of a turn were disturbed", case.name));
        return;
    }
    for (turns, beside) in seen.iter().zip(Beside::ALL).skip(1) {
        let what = format!("{engine}: {}, {}", case.name, beside.text());
        report.check(
            format!("{what}: p99 relative to alone"),
            median_p99(turns) / median_p99(alone),
            Target::AtMost(MOST_SLOWDOWN),
        );
        let slowest_test = turns.iter().map(|turn| turn.test_ms).fold(0.0, f64::max);
        report.check(format!("{what}: ms until a test arrives"), slowest_test, Target::AtMost(MOST_TEST_MS));
    }
}

fn median_p99(turns: &[Seen]) -> f64 {
    let mut sorted: Vec<f64> = turns.iter().map(Seen::p99).collect();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn measure(
    plan: &Plan,
    program: &Path,
    ground: &Ground,
    receiver: &Receiver,
    case: &Case,
    beside: Beside,
) -> anyhow::Result<Seen> {
    let plan = &Plan { rapport: program.to_owned(), ..plan.clone() };
    let place = ground.fresh()?;
    let companies = [
        service::create_company(plan, &place, PROJECTS[0])?,
        service::create_company(plan, &place, PROJECTS[1])?,
    ];
    let service = Service::start_trusting(plan, &place, receiver.authority())?;
    let watch = Watch::start(service.process());
    for company in &companies {
        change(&service, company, "prospect")?;
    }
    let arrivals = &receiver.arrivals;
    arrivals.begin(true);
    add_webhooks(&service, &companies[0], [receiver.url("ok", 0, Hosts::Own)].into_iter())?;
    change(&service, &companies[0], "in_negotiation")?;
    ensure!(arrivals.wait_for(1, LATE_LIMIT) == 1, "the healthy webhook received nothing");
    let dead = plan.pick(case.dead, 50);
    let urls = (0..dead).map(|number| receiver.url(case.behaviour, number, Hosts::Own));
    let moved: &[Credentials] = match beside {
        Beside::Nobody => &companies[..1],
        Beside::SameCompany => {
            add_webhooks(&service, &companies[0], urls)?;
            &companies[..1]
        }
        Beside::OtherCompany => {
            add_webhooks(&service, &companies[1], urls)?;
            &companies
        }
    };
    let time = plan.pick(case.time, Duration::from_secs(4));
    arrivals.begin(true);
    let thefts = Thefts::watch();
    let caused = steadily(&service, moved, case.per_second, time)?;
    let arrived = arrivals.wait_for(caused, LATE_LIMIT);
    let thefts = thefts.finish();
    let (mut waits, mut undisturbed) = (Latencies::default(), Latencies::default());
    for arrival in arrivals.take_kept() {
        waits.record(arrival.age);
        if !thefts.iter().any(|[from, to]| *from < arrival.at && arrival.at < *to + arrival.age) {
            undisturbed.record(arrival.age);
        }
    }
    arrivals.begin(false);
    let test_ms = test_a_new_one(&service, &companies[0], receiver)?;
    let usage = watch.finish();
    service.stop()?;
    Ok(Seen { waits, undisturbed, missing: caused.saturating_sub(arrived), test_ms, rss: usage.peak_memory })
}

/// Moves an account of each company at a steady rate; returns how often.
fn steadily(
    service: &Service,
    companies: &[Credentials],
    per_second: u32,
    time: Duration,
) -> anyhow::Result<u64> {
    let every = Duration::from_secs(1) / per_second;
    let started = Instant::now();
    let mut changes: u32 = 0;
    while every * changes < time {
        thread::sleep((started + every * changes).saturating_duration_since(Instant::now()));
        for company in companies {
            change(service, company, STATUSES[changes as usize % STATUSES.len()])?;
        }
        changes += 1;
    }
    Ok(u64::from(changes))
}

fn change(service: &Service, company: &Credentials, status: &str) -> anyhow::Result<()> {
    let body = json!({ "project": company.project, "imported_id": "crm-00000001", "status": status });
    post(service, company, "/api/accounts/upsert-by-imported-id/", &body).map(drop)
}

/// Creates a webhook and presses Test; returns how many milliseconds later it arrives.
fn test_a_new_one(service: &Service, company: &Credentials, receiver: &Receiver) -> anyhow::Result<f64> {
    let url = receiver.url("ok", 1, Hosts::Own);
    let events = json!(["client.contact_due"]);
    let made = post(service, company, "/api/webhooks/", &json!({ "url": url, "events": events }))?;
    let path = format!("/api/webhooks/{}/test/", made["id"].as_str().unwrap_or_default());
    let pressed = Instant::now();
    post(service, company, &path, &json!({}))?;
    receiver.arrivals.wait_for(1, LATE_LIMIT);
    Ok(whole(u64::try_from(pressed.elapsed().as_millis())?))
}

fn post(service: &Service, company: &Credentials, path: &str, body: &Value) -> anyhow::Result<Value> {
    let endpoint = Endpoint::post(path, &format!("authorization: Bearer {}", company.api_token));
    let mut request = Vec::new();
    endpoint.write(&mut request, body.to_string().as_bytes());
    let (status, answer) = drive::call(service.address, &request)?;
    let text = String::from_utf8_lossy(&answer);
    ensure!((200..300).contains(&status), "{path} was answered {status}: {text}");
    Ok(serde_json::from_slice(&answer)?)
}

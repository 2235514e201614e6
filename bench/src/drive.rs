//! Load over HTTP: closed loops that send the next request once the last is answered, and open ones that send on
//! schedule whatever the service does. One thread creates all of it.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use tokio::runtime::Runtime;
use tokio::task::LocalSet;
use tokio::time::{Instant, sleep, sleep_until};

use crate::http::{Answer, Connection};
use crate::measure::Latencies;
use crate::report::whole;

const PAUSE: Duration = Duration::from_millis(1);
/// A service closes connections that are idle for longer, so a new one is opened then.
const LONGEST_IDLE: Duration = Duration::from_secs(5);

/// The requests of one connection.
pub trait Requests: 'static {
    /// Whether the next one may be sent yet.
    fn may_send(&self) -> bool {
        true
    }

    fn write_next(&mut self, request: &mut Vec<u8>);

    /// How much work is done, according to an answer of 200 or 201.
    fn done(&mut self, answer: &Answer, at: std::time::Instant) -> u64;
}

/// The result of a run. The window leaves out the warm-up; the totals do not.
#[derive(Debug, Default)]
pub struct Driven {
    pub window: Duration,
    pub requests_in_window: u64,
    pub work_in_window: u64,
    /// How much the watched counter grew in the window.
    pub counted_in_window: u64,
    /// Latencies of accepted requests in the window.
    pub latencies: Latencies,
    pub total_work: u64,
    pub accepted: u64,
    pub shed: u64,
    /// Requests that were neither accepted nor answered 503.
    pub other: u64,
    pub example: Option<String>,
}

impl Driven {
    pub fn work_per_second(&self) -> f64 {
        per_second(self.work_in_window, self.window)
    }

    pub fn requests_per_second(&self) -> f64 {
        per_second(self.requests_in_window, self.window)
    }

    pub fn counted_per_second(&self) -> f64 {
        per_second(self.counted_in_window, self.window)
    }

    /// Fails if a plain run met anything but success.
    pub fn expect_all_accepted(self) -> anyhow::Result<Self> {
        anyhow::ensure!(self.shed == 0, "{} requests were shed: {:?}", self.shed, self.example);
        self.expect_all_done()
    }

    /// Fails if a run met anything but success and 503.
    pub fn expect_all_done(self) -> anyhow::Result<Self> {
        anyhow::ensure!(self.other == 0, "{} requests were refused: {:?}", self.other, self.example);
        anyhow::ensure!(self.work_in_window > 0, "nothing was done within the time");
        Ok(self)
    }
}

pub fn per_second(count: u64, time: Duration) -> f64 {
    whole(count) / time.as_secs_f64()
}

/// When a run starts to count, and when it ends.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    pub warm_up: Duration,
    pub window: Duration,
}

/// Sends the next request of each connection once its last is answered, and sends again what was shed. `counter` is
/// read at the beginning and the end of the window.
pub fn closed_loop<R: Requests>(
    address: SocketAddr,
    times: Times,
    connections: Vec<R>,
    counter: Option<&Arc<AtomicU64>>,
) -> anyhow::Result<Driven> {
    run(times, counter, |tally, end| {
        let lines = connections.into_iter();
        lines.map(|requests| closed_line(address, requests, Rc::clone(&tally), end)).collect()
    })
}

/// Sends `rate` requests per second over all connections, each on its own schedule.
pub fn open_loop<R: Requests>(
    address: SocketAddr,
    times: Times,
    connections: Vec<R>,
    rate: f64,
) -> anyhow::Result<Driven> {
    let lines = whole(connections.len() as u64);
    let interval = Duration::from_secs_f64(lines / rate);
    run(times, None, |tally, end| {
        let numbered = connections.into_iter().enumerate();
        numbered
            .map(|(number, requests)| {
                let offset = interval.mul_f64(whole(number as u64) / lines);
                open_line(address, requests, Rc::clone(&tally), end, (offset, interval))
            })
            .collect()
    })
}

struct Tally {
    counts_from: Instant,
    driven: Driven,
}

impl Tally {
    fn add(&mut self, answer: &Answer, requests: &mut impl Requests, sent: Instant, end: Instant) {
        let now = Instant::now();
        let driven = &mut self.driven;
        match answer.status {
            200 | 201 => {
                let work = requests.done(answer, now.into_std());
                driven.accepted += 1;
                driven.total_work += work;
                if now >= self.counts_from && now <= end {
                    driven.requests_in_window += 1;
                    driven.work_in_window += work;
                    driven.latencies.record(now - sent);
                }
            }
            503 => {
                driven.shed += 1;
                driven.note(answer);
            }
            _ => {
                driven.other += 1;
                driven.note(answer);
            }
        }
    }
}

impl Driven {
    fn note(&mut self, answer: &Answer) {
        self.example
            .get_or_insert_with(|| format!("{}: {}", answer.status, String::from_utf8_lossy(answer.body)));
    }
}

fn run<F: Future<Output = anyhow::Result<()>> + 'static>(
    times: Times,
    counter: Option<&Arc<AtomicU64>>,
    lines: impl FnOnce(Rc<RefCell<Tally>>, Instant) -> Vec<F>,
) -> anyhow::Result<Driven> {
    let read =
        |counter: Option<&Arc<AtomicU64>>| counter.map_or(0, |counter| counter.load(Ordering::Relaxed));
    runtime()?.block_on(LocalSet::new().run_until(async {
        let counts_from = Instant::now() + times.warm_up;
        let end = counts_from + times.window;
        let driven = Driven { window: times.window, ..Driven::default() };
        let tally = Rc::new(RefCell::new(Tally { counts_from, driven }));
        let lines: Vec<_> = lines(Rc::clone(&tally), end).into_iter().map(tokio::task::spawn_local).collect();
        sleep_until(counts_from).await;
        let before = read(counter);
        sleep_until(end).await;
        let counted = read(counter) - before;
        for line in lines {
            line.await.context("a connection's task panicked")??;
        }
        let mut driven = std::mem::take(&mut tally.borrow_mut().driven);
        driven.counted_in_window = counted;
        Ok(driven)
    }))
}

pub fn runtime() -> anyhow::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("a runtime for the load")
}

async fn closed_line(
    address: SocketAddr,
    mut requests: impl Requests,
    tally: Rc<RefCell<Tally>>,
    end: Instant,
) -> anyhow::Result<()> {
    let mut connection = Connection::open(address).await.context("connecting to the service")?;
    let (mut request, mut last_used) = (Vec::new(), Instant::now());
    while Instant::now() < end {
        if !requests.may_send() {
            sleep(PAUSE).await;
            continue;
        }
        if last_used.elapsed() > LONGEST_IDLE {
            connection = Connection::open(address).await.context("connecting to the service")?;
        }
        requests.write_next(&mut request);
        loop {
            let sent = Instant::now();
            let answer = connection.send(&request).await.context("a request to the service")?;
            tally.borrow_mut().add(&answer, &mut requests, sent, end);
            if answer.status != 503 {
                break;
            }
            sleep(PAUSE).await;
        }
        last_used = Instant::now();
    }
    Ok(())
}

async fn open_line(
    address: SocketAddr,
    mut requests: impl Requests,
    tally: Rc<RefCell<Tally>>,
    end: Instant,
    (offset, interval): (Duration, Duration),
) -> anyhow::Result<()> {
    let mut next = Instant::now() + offset;
    let mut connection = Connection::open(address).await.context("connecting to the service")?;
    let mut request = Vec::new();
    loop {
        sleep_until(next).await;
        let sent = Instant::now();
        if sent >= end {
            return Ok(());
        }
        requests.write_next(&mut request);
        let answer = connection.send(&request).await.context("a request to the service")?;
        tally.borrow_mut().add(&answer, &mut requests, sent, end);
        next = (next + interval).max(Instant::now());
    }
}

/// Sends one request on its own connection; for the few that prepare a run.
pub fn call(address: SocketAddr, request: &[u8]) -> anyhow::Result<(u16, Vec<u8>)> {
    runtime()?.block_on(async {
        let mut connection = Connection::open(address).await?;
        let answer = connection.send(request).await?;
        Ok((answer.status, answer.body.to_vec()))
    })
}

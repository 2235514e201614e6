//! What is measured besides counts: latencies, and how much memory and processor time a process uses.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rapport_domain::time::Time;

const SAMPLE_EVERY: Duration = Duration::from_millis(50);
/// As long as a tick, in which the kernel counts stolen time.
const THEFT_EVERY: Duration = Duration::from_millis(10);
/// The unit in which Linux counts processor time, on every machine we know.
const TICKS_PER_SECOND: f64 = 100.0;
/// A process that uses less than this part of a processor for this long is idle.
const IDLE_PROCESSORS: f64 = 0.02;
const IDLE_LOOK: Duration = Duration::from_secs(5);
const LONGEST_MICROS: u64 = 600_000_000;

/// The time of day, to compare with the times in payloads.
pub fn now() -> Time {
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Time::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// Latencies in microseconds.
#[derive(Debug, Clone)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        Self(Histogram::new_with_max(LONGEST_MICROS, 3).expect("valid bounds of a histogram"))
    }
}

impl Latencies {
    pub fn record(&mut self, latency: Duration) {
        self.0.saturating_record(u64::try_from(latency.as_micros()).unwrap_or(LONGEST_MICROS));
    }

    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// In milliseconds; `None` if nothing was recorded.
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "microseconds of ten minutes fit")]
        (!self.0.is_empty()).then(|| self.0.value_at_percentile(percent) as f64 / 1_000.0)
    }
}

/// What a process used while it was watched.
#[derive(Debug, Clone, Default)]
pub struct Usage {
    /// Mebibytes, the largest seen.
    pub peak_memory: f64,
    /// … in the first and in the second half of the time.
    pub peak_of_halves: [f64; 2],
    /// Processors busy on average: 1.0 is one of them.
    pub processors: f64,
    /// The same for this process, which creates the load.
    pub own_processors: f64,
}

/// Takes samples on a thread until it is told to stop.
struct Sampler<T> {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<T>>,
}

impl<T: Send + 'static> Sampler<T> {
    fn start(every: Duration, mut sample: impl FnMut() -> Option<T> + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut samples = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                samples.extend(sample());
                thread::sleep(every);
            }
            samples
        });
        Self { stop, thread }
    }

    fn finish(self) -> Vec<T> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

/// Watches a process until it is told to stop.
pub struct Watch {
    process: u32,
    started: Instant,
    ticks: [f64; 2],
    memory: Sampler<f64>,
}

impl Watch {
    pub fn start(process: u32) -> Self {
        let memory = Sampler::start(SAMPLE_EVERY, move || resident_mebibytes(process));
        let ticks = [ticks(process), ticks(std::process::id())];
        Self { process, started: Instant::now(), ticks, memory }
    }

    pub fn finish(self) -> Usage {
        let seconds = self.started.elapsed().as_secs_f64();
        let used = |process, before| (ticks(process) - before) / TICKS_PER_SECOND / seconds;
        let processors = used(self.process, self.ticks[0]);
        let own_processors = used(std::process::id(), self.ticks[1]);
        let samples = self.memory.finish();
        let peak = |samples: &[f64]| samples.iter().copied().fold(0.0, f64::max);
        let (first, second) = samples.split_at(samples.len() / 2);
        Usage {
            peak_memory: peak(&samples),
            peak_of_halves: [peak(first), peak(second)],
            processors,
            own_processors,
        }
    }
}

/// How much of the processors' time a hypervisor gave to others: while that is much, latencies say little about the
/// service.
pub struct Stolen {
    /// Stolen and in all, in ticks since the machine's start.
    before: [f64; 2],
}

impl Default for Stolen {
    fn default() -> Self {
        Self { before: stolen_ticks() }
    }
}

impl Stolen {
    /// The percentage since it was last asked.
    pub fn percent(&mut self) -> f64 {
        let before = std::mem::replace(&mut self.before, stolen_ticks());
        let [stolen, all] = [self.before[0] - before[0], self.before[1] - before[1]];
        if all > 0.0 { stolen / all * 100.0 } else { 0.0 }
    }
}

/// Notes when a hypervisor takes the processors away.
pub struct Thefts(Sampler<[Instant; 2]>);

impl Thefts {
    pub fn watch() -> Self {
        let mut before = (Instant::now(), stolen_ticks()[0]);
        Self(Sampler::start(THEFT_EVERY, move || {
            let now = (Instant::now(), stolen_ticks()[0]);
            let before = std::mem::replace(&mut before, now);
            (now.1 > before.1).then_some([before.0, now.0])
        }))
    }

    /// The times in which something was taken.
    pub fn finish(self) -> Vec<[Instant; 2]> {
        self.0.finish()
    }
}

fn stolen_ticks() -> [f64; 2] {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let of_all = stat.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or_default();
    // User, nice, system, idle, waiting, interrupts, soft interrupts, stolen; what guests use is in the first two.
    let ticks: Vec<f64> = of_all.split_whitespace().take(8).filter_map(|field| field.parse().ok()).collect();
    [ticks.get(7).copied().unwrap_or(0.0), ticks.iter().sum()]
}

/// Waits until a process has almost nothing to do, when the work after its start is over. At most `patience`.
pub fn wait_until_idle(process: u32, patience: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < patience {
        let before = ticks(process);
        thread::sleep(IDLE_LOOK);
        if (ticks(process) - before) / TICKS_PER_SECOND / IDLE_LOOK.as_secs_f64() < IDLE_PROCESSORS {
            return;
        }
    }
}

pub fn resident_mebibytes(process: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse::<f64>().ok().map(|kibibytes| kibibytes / 1_024.0)
}

/// The processor time that processes have used so far, in microseconds, with that of their children that ended.
pub fn processor_micros(processes: &[u32]) -> f64 {
    let used = |&process| times(process).iter().sum::<f64>();
    processes.iter().map(used).sum::<f64>() / TICKS_PER_SECOND * 1_000_000.0
}

/// User and system time so far.
fn ticks(process: u32) -> f64 {
    times(process).iter().take(2).sum()
}

/// User and system time so far, then those of children that ended.
fn times(process: u32) -> Vec<f64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The second field is the program's name in parentheses and may contain anything.
    let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    fields.split(' ').skip(11).take(4).filter_map(|field| field.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_what_was_recorded() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.percentile(50.0), None);
        for millis in 1..=100 {
            latencies.record(Duration::from_millis(millis));
        }
        let p99 = latencies.percentile(99.0).unwrap();
        assert!((98.9..99.2).contains(&p99), "{p99}");
    }

    #[test]
    fn the_stolen_part_is_a_part() {
        let mut stolen = Stolen::default();
        assert!((0.0..=100.0).contains(&stolen.percent()));
        let [stolen, all] = stolen_ticks();
        assert!(stolen < all, "{stolen} of {all}");
    }

    #[test]
    fn a_busy_process_is_seen_to_be_busy() {
        let watch = Watch::start(std::process::id());
        let started = Instant::now();
        let mut spun = 0_u64;
        while started.elapsed() < Duration::from_millis(300) {
            spun = std::hint::black_box(spun + 1);
        }
        let usage = watch.finish();
        assert!(usage.processors > 0.0, "{usage:?}");
        assert!(usage.peak_memory > 1.0, "{usage:?}");
    }
}

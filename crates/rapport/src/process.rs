//! This process's use of the machine, from Linux's `/proc`, under the names that every Prometheus client uses.

use std::fs;

use rapport_app::metric::{self, Metric};
use rlimit::Resource;

/// Linux reports times to programs in hundredths of a second, whatever the kernel counts in.
const TICKS_PER_SECOND: f64 = 100.0;
/// Where `/proc/self/stat` has these, counted after the name of the program.
const USER_TICKS: usize = 11;
const SYSTEM_TICKS: usize = 12;
const STARTED_TICKS: usize = 19;

/// The line that the recorder cannot hold, because its counters are whole.
pub fn cpu_line() -> String {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    cpu_seconds(&stat).map_or_else(String::new, |seconds| line(&metric::PROCESS_CPU, seconds))
}

/// Updates the gauges. Where there is no `/proc`, they stay at 0.
pub fn update() {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let status = read("/proc/self/status");
    set(&metric::PROCESS_RESIDENT_MEMORY, bytes(&status, "VmRSS:"));
    set(&metric::PROCESS_VIRTUAL_MEMORY, bytes(&status, "VmSize:"));
    set(&metric::PROCESS_START_TIME, started(&read("/proc/self/stat"), &read("/proc/stat")));
    let open = fs::read_dir("/proc/self/fd").ok().map(Iterator::count);
    // Looking takes one itself.
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52 files")]
    set(&metric::PROCESS_OPEN_FDS, open.map(|open| open.saturating_sub(1) as f64));
    #[expect(clippy::cast_precision_loss, reason = "a limit, and beyond 2^52 it means none")]
    set(&metric::PROCESS_MAX_FDS, Resource::NOFILE.get_soft().ok().map(|limit| limit as f64));
}

fn set(metric: &Metric, value: Option<f64>) {
    if let Some(value) = value {
        metric.gauge([]).set(value);
    }
}

/// The name of the program is in parentheses and may contain anything, so fields are counted after it.
fn field(stat: &str, n: usize) -> Option<f64> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(n)?.parse().ok()
}

fn cpu_seconds(stat: &str) -> Option<f64> {
    Some((field(stat, USER_TICKS)? + field(stat, SYSTEM_TICKS)?) / TICKS_PER_SECOND)
}

fn started(stat: &str, machine: &str) -> Option<f64> {
    let boot = machine.lines().find_map(|line| line.strip_prefix("btime "))?;
    Some(boot.trim().parse::<f64>().ok()? + field(stat, STARTED_TICKS)? / TICKS_PER_SECOND)
}

fn bytes(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024.0)
}

fn line(metric: &Metric, value: f64) -> String {
    let (name, help, kind) = (metric.name, metric.help, metric.kind.as_str());
    format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_after_a_name_that_may_contain_anything() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194560 900 0 3 0 150 50 0 0 20 0 12 0 123456 1000 200 1";
        assert_eq!(cpu_seconds(stat), Some(2.0));
        assert_eq!(started(stat, "cpu 1 2\nbtime 1700000000\nprocesses 7\n"), Some(1_700_001_234.56));
        assert_eq!((cpu_seconds(""), started(stat, "")), (None, None));
    }

    #[test]
    fn memory_is_in_bytes() {
        let status = "Name:\trapport\nVmSize:\t  2048 kB\nVmRSS:\t    10 kB\n";
        assert_eq!(bytes(status, "VmRSS:"), Some(10_240.0));
        assert_eq!(bytes(status, "VmSwap:"), None);
    }
}

//! What a run shows and keeps: rows of figures, and checks of figures against their targets.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Instant;

use anyhow::Context as _;
use serde_json::{Map, Value, json};

use crate::Plan;
use crate::measure::{Latencies, Stolen, now};

const SYNC_TRIES: usize = 200;
const PAGE_BYTES: usize = 4_096;

/// The limit that a figure has to meet.
#[derive(Debug, Clone, Copy)]
pub enum Target {
    AtLeast(f64),
    AtMost(f64),
}

impl Target {
    fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bound) => value >= bound,
            Self::AtMost(bound) => value <= bound,
        }
    }

    fn text(self) -> String {
        match self {
            Self::AtLeast(bound) => format!("≥ {}", number(bound)),
            Self::AtMost(bound) => format!("≤ {}", number(bound)),
        }
    }
}

struct Check {
    what: String,
    value: f64,
    target: Target,
}

/// The columns of the table, in order, with their headings.
const COLUMNS: [(&str, &str); 14] = [
    ("rate", "rate/s"),
    ("requests", "requests/s"),
    ("p50_ms", "p50 ms"),
    ("p99_ms", "p99 ms"),
    ("p999_ms", "p99.9 ms"),
    ("kilobytes", "KB"),
    ("rss_mb", "RSS MB"),
    ("processors", "CPU"),
    ("own_processors", "CPU load"),
    ("service_micros", "µs service"),
    ("server_micros", "µs database"),
    ("ratio", "of raw"),
    ("seconds", "seconds"),
    ("stolen", "stolen %"),
];
const LABEL_WIDTH: usize = 62;
const COLUMN_WIDTH: usize = 11;

/// One measurement: its label and its figures.
#[derive(Debug, Clone)]
pub struct Row {
    label: String,
    figures: Map<String, Value>,
    note: String,
}

impl Row {
    pub fn new(label: impl Into<String>) -> Self {
        Self { label: label.into(), figures: Map::new(), note: String::new() }
    }

    /// A figure of `COLUMNS`, or one that appears only in the JSON.
    pub fn with(mut self, name: &str, value: f64) -> Self {
        self.figures.insert(name.to_owned(), json!(value));
        self
    }

    pub fn latencies(self, latencies: &Latencies) -> Self {
        let figures = [("p50_ms", 50.0), ("p99_ms", 99.0), ("p999_ms", 99.9)];
        figures.into_iter().fold(self, |row, (name, percent)| match latencies.percentile(percent) {
            Some(millis) => row.with(name, millis),
            None => row,
        })
    }

    pub fn usage(self, usage: &crate::measure::Usage) -> Self {
        self.with("rss_mb", usage.peak_memory)
            .with("processors", usage.processors)
            .with("own_processors", usage.own_processors)
    }

    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }
}

pub struct Report {
    facts: Value,
    rows: Vec<Row>,
    checks: Vec<Check>,
    failures: Vec<String>,
    stolen: Stolen,
}

impl Report {
    pub fn start(plan: &Plan) -> anyhow::Result<Self> {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let sync = sync_latencies()?;
        let facts = json!({
            "started_at": now().to_string(),
            "quick": plan.quick,
            "window_seconds": plan.window.as_secs_f64(),
            "processors": processors,
            "sync_p50_ms": sync.percentile(50.0),
            "sync_p99_ms": sync.percentile(99.0),
            "sqlite": rusqlite::version(),
        });
        println!(
            "{processors} processors; one durable write of {PAGE_BYTES} bytes takes {:.2} ms (p50), {:.2} ms (p99){}",
            sync.percentile(50.0).unwrap_or(0.0),
            sync.percentile(99.0).unwrap_or(0.0),
            if plan.quick { "; a quick run, so the figures mean nothing" } else { "" },
        );
        Ok(Self {
            facts,
            rows: Vec::new(),
            checks: Vec::new(),
            failures: Vec::new(),
            stolen: Stolen::default(),
        })
    }

    pub fn heading(&self, text: &str) {
        println!("\n{text}");
        let headings = COLUMNS.map(|(_, heading)| format!("{heading:>COLUMN_WIDTH$}")).concat();
        println!("{:LABEL_WIDTH$}{headings}", "");
        self.flush();
    }

    /// Reports progress, so that nobody waits in the dark.
    pub fn say(&self, text: &str) {
        println!("  … {text}");
        self.flush();
    }

    #[expect(clippy::unused_self, reason = "what a report prints, a report flushes")]
    fn flush(&self) {
        let _ = std::io::stdout().flush();
    }

    /// Adds a row, with how much of the processors' time was stolen since the row before.
    pub fn add(&mut self, row: Row) {
        let row = row.with("stolen", self.stolen.percent());
        let cells = COLUMNS.map(|(name, _)| {
            let value = row.figures.get(name).and_then(Value::as_f64);
            format!("{:>COLUMN_WIDTH$}", value.map_or(String::new(), number))
        });
        println!("{:<LABEL_WIDTH$}{}", row.label, cells.concat().trim_end());
        if !row.note.is_empty() {
            println!("    {}", row.note);
        }
        self.flush();
        self.rows.push(row);
    }

    /// Compares a figure with its target.
    pub fn check(&mut self, what: impl Into<String>, value: f64, target: Target) {
        self.checks.push(Check { what: what.into(), value, target });
    }

    /// Records that something could not be measured; the run goes on, and fails at its end.
    pub fn fail(&mut self, text: String) {
        self.failures.push(text);
    }

    pub fn expect_no_failures(&self) -> anyhow::Result<()> {
        anyhow::ensure!(self.failures.is_empty(), "not measured:\n  {}", self.failures.join("\n  "));
        Ok(())
    }

    pub fn print_checks(&self) {
        println!("\n{:<90}{:>12}{:>12}", "Targets", "is", "should");
        for Check { what, value, target } in &self.checks {
            let verdict = if target.is_met(*value) { "pass" } else { "MISS" };
            println!("{what:<90}{:>12}{:>12}  {verdict}", number(*value), target.text());
        }
    }

    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let rows = self.rows.iter().map(|row| {
            let mut members = row.figures.clone();
            members.insert("label".to_owned(), json!(row.label));
            if !row.note.is_empty() {
                members.insert("note".to_owned(), json!(row.note));
            }
            Value::Object(members)
        });
        let checks = self.checks.iter().map(|check| {
            json!({
                "what": check.what,
                "value": check.value,
                "target": check.target.text(),
                "pass": check.target.is_met(check.value),
            })
        });
        let all = json!({
            "facts": self.facts,
            "rows": rows.collect::<Vec<_>>(),
            "checks": checks.collect::<Vec<_>>(),
        });
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory).context("a directory for the results")?;
        }
        fs::write(path, serde_json::to_string_pretty(&all)?).with_context(|| path.display().to_string())
    }
}

/// A count as a figure.
#[expect(clippy::cast_precision_loss, reason = "counts of a run are small")]
pub fn whole(count: u64) -> f64 {
    count as f64
}

/// Three significant digits, without an exponent.
fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// How long the disk takes to make one page durable: the floor under every commit.
fn sync_latencies() -> anyhow::Result<Latencies> {
    let file = tempfile::tempfile().context("a file to measure the disk with")?;
    let mut latencies = Latencies::default();
    for _ in 0..SYNC_TRIES {
        let started = Instant::now();
        file.write_all_at(&[7; PAGE_BYTES], 0)?;
        file.sync_data()?;
        latencies.record(started.elapsed());
    }
    Ok(latencies)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_knows_on_which_side_of_its_target_it_is() {
        assert!(Target::AtLeast(0.7).is_met(0.7));
        assert!(!Target::AtLeast(0.7).is_met(0.69));
        assert!(Target::AtMost(200.0).is_met(199.0));
        assert!(!Target::AtMost(200.0).is_met(201.0));
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([41_234.5, 45.67, 0.7, 0.012].map(number), ["41234", "45.7", "0.70", "0.0120"]);
    }
}

//! The outcome of a run: one line for people, one for the table that `./scripts/faults` prints, and the verdict.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::time::Instant;

use crate::check::Findings;

/// The file that gets a line for each run, with its figures separated by tabs.
const REPORT: &str = "RAPPORT_FAULTS_REPORT";

pub struct Run {
    name: &'static str,
    started: Instant,
    pub faults: usize,
    pub acknowledged: usize,
    /// Arrivals at the receiver that no fault explains.
    pub needless: usize,
    pub open: usize,
    pub findings: Findings,
}

impl Run {
    pub fn start(name: &'static str) -> Self {
        let started = Instant::now();
        Self {
            name,
            started,
            faults: 0,
            acknowledged: 0,
            needless: 0,
            open: 0,
            findings: Findings::default(),
        }
    }

    /// Records the figures, and fails if something is wrong.
    pub fn end(self) {
        let Self { name, started, faults, acknowledged, needless, open, findings } = self;
        let (lost, seconds) = (findings.lost, started.elapsed().as_secs_f64());
        println!(
            "{name}: {faults} faults, {acknowledged} requests acknowledged, {lost} lost, {needless} needless \
             duplicates, {open} deliveries left open, {seconds:.0} s"
        );
        if let Some(path) = std::env::var_os(REPORT) {
            let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
            let wrong = findings.problems.len();
            let line = format!(
                "{name}\t{faults}\t{acknowledged}\t{lost}\t{needless}\t{open}\t{wrong}\t{seconds:.1}\n"
            );
            file.write_all(line.as_bytes()).unwrap();
        }
        assert!(findings.problems.is_empty(), "{name}: {:#?}", findings.problems);
        assert_eq!(needless, 0, "{name}: needless duplicates");
        assert_eq!(open, 0, "{name}: deliveries left open");
    }
}

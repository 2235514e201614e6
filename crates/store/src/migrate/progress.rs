//! What an upgrade says while it runs: in the log of a service, on the terminal of `rapport migrate`.

use std::fmt;
use std::time::{Duration, Instant};

/// The interval between two lines about one step.
const SAY_EVERY: Duration = Duration::from_secs(5);

/// One line about an upgrade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The schema version that the upgrade is getting to.
    pub version: i64,
    pub doing: String,
    pub rows: Option<Rows>,
    pub elapsed: Duration,
}

/// How many rows of a table are done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows {
    pub table: String,
    pub done: u64,
    /// How many there are, as far as the database knows without counting.
    pub about: Option<u64>,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "schema version {}: {}", self.version, self.doing)?;
        if let Some(Rows { table, done, about }) = &self.rows {
            write!(f, ", {done} rows of {table}")?;
            if let Some(about) = about {
                write!(f, " out of about {about}")?;
            }
        }
        write!(f, " ({:.1} s)", self.elapsed.as_secs_f64())
    }
}

/// Writes a line to the log of the service.
pub fn log(progress: &Progress) {
    let Progress { version, doing, rows, elapsed } = progress;
    let (table, done) = rows.as_ref().map(|rows| (rows.table.as_str(), rows.done)).unzip();
    tracing::info!(version, table, rows = done, elapsed_ms = elapsed.as_millis(), "migrating: {doing}");
}

/// Tells someone how far an upgrade is, not too often.
pub struct Teller<'a> {
    tell: &'a mut dyn FnMut(&Progress),
    version: i64,
    since: Instant,
    step_since: Instant,
    said: Instant,
}

impl<'a> Teller<'a> {
    pub fn new(tell: &'a mut dyn FnMut(&Progress)) -> Self {
        let now = Instant::now();
        Self { tell, version: 0, since: now, step_since: now, said: now }
    }

    /// What follows is about the way to this version.
    pub fn begin(&mut self, version: i64) {
        (self.version, self.since) = (version, Instant::now());
        self.begin_step();
    }

    pub fn begin_step(&mut self) {
        (self.step_since, self.said) = (Instant::now(), Instant::now());
    }

    /// Says something about the step.
    pub fn say(&mut self, doing: impl Into<String>, rows: Option<Rows>) {
        self.tell(doing.into(), rows, self.step_since.elapsed());
    }

    /// The version is reached.
    pub fn done(&mut self) {
        self.tell("done".to_owned(), None, self.since.elapsed());
    }

    fn tell(&mut self, doing: String, rows: Option<Rows>, elapsed: Duration) {
        (self.tell)(&Progress { version: self.version, doing, rows, elapsed });
        self.said = Instant::now();
    }

    /// Whether it is time for another line about the same step.
    pub fn is_due(&self) -> bool {
        self.said.elapsed() >= SAY_EVERY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_the_table_and_the_rows() {
        let rows = |about| Some(Rows { table: "account".to_owned(), done: 5_000, about });
        for (rows, expected) in [
            (None, "schema version 4: changed (1.5 s)"),
            (rows(None), "schema version 4: changed, 5000 rows of account (1.5 s)"),
            (rows(Some(9_000)), "schema version 4: changed, 5000 rows of account out of about 9000 (1.5 s)"),
        ] {
            let elapsed = Duration::from_millis(1_500);
            let progress = Progress { version: 4, doing: "changed".to_owned(), rows, elapsed };
            assert_eq!(progress.to_string(), expected);
        }
    }
}

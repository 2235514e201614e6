//! How many faults of each kind there are, or for how long: few by default, more if an environment variable says so.

pub const KILLS_ON_SQLITE: Size = Size { variable: "RAPPORT_FAULTS_KILLS_SQLITE", short: 3 };
pub const KILLS_ON_POSTGRES: Size = Size { variable: "RAPPORT_FAULTS_KILLS_POSTGRES", short: 3 };
pub const KILLS_OF_NODES: Size = Size { variable: "RAPPORT_FAULTS_KILLS_NODES", short: 3 };
/// Per engine.
pub const KILLS_OF_MIGRATE: Size = Size { variable: "RAPPORT_FAULTS_KILLS_MIGRATE", short: 3 };
pub const POWER_CUTS: Size = Size { variable: "RAPPORT_FAULTS_POWER_CUTS", short: 20 };
pub const RESTARTS: Size = Size { variable: "RAPPORT_FAULTS_RESTARTS", short: 3 };
pub const READ_ONLY_PHASES: Size = Size { variable: "RAPPORT_FAULTS_READ_ONLY", short: 1 };
pub const SILENCES: Size = Size { variable: "RAPPORT_FAULTS_SILENCES", short: 1 };
/// Of each kind.
pub const DISK_FAULTS: Size = Size { variable: "RAPPORT_FAULTS_DISK", short: 2 };
pub const TERMINATIONS: Size = Size { variable: "RAPPORT_FAULTS_TERMINATIONS", short: 3 };
/// On each engine.
pub const BACKUPS: Size = Size { variable: "RAPPORT_FAULTS_BACKUPS", short: 3 };
/// Cut connections, around a COMMIT.
pub const CUTS: Size = Size { variable: "RAPPORT_FAULTS_CUTS", short: 20 };

/// Requests with an idempotency key, on each engine. Each is sent by eight clients.
pub const REPEATS: Size = Size { variable: "RAPPORT_FAULTS_REPEATS", short: 1_200 };

/// How long a mixed load runs while consumers follow it, on each engine.
pub const FEED_SECONDS: Size = Size { variable: "RAPPORT_FAULTS_FEED_SECONDS", short: 6 };

pub struct Size {
    variable: &'static str,
    short: usize,
}

impl Size {
    pub fn get(&self) -> usize {
        let Ok(text) = std::env::var(self.variable) else { return self.short };
        text.parse().unwrap_or_else(|_| panic!("{} must be a number, not {text:?}", self.variable))
    }

    /// The same in parts of at most so many, each run on its own database: what one run keeps in memory to compare
    /// stays bounded, and a loss shows near its cause.
    pub fn in_parts(&self, most: usize) -> impl Iterator<Item = usize> {
        let all = self.get();
        (0..all).step_by(most).map(move |done| most.min(all - done))
    }
}

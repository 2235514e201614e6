//! Open files: every connection is one. When the service starts, it raises the soft limit, often 1,024, to the hard
//! limit. A limit that is still too low is reported.

use std::io;

use rlimit::Resource;

use crate::config::Config;

/// SQLite keeps the database, its log and the log's index open for each reader and writer.
const FILES_PER_DATABASE_CONNECTION: u64 = 3;
/// Standard streams, listeners, locks, timers, uploads, lookups and mail.
const OTHERS: u64 = 128;

/// How many files the service may need at once, by purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// Deliveries in progress, including those to receivers that hang.
    deliveries: u64,
    /// Connections to receivers, kept for the next request.
    kept: u64,
    /// Connections from clients.
    connections: u64,
    /// Readers and writers of the database.
    database: u64,
}

impl Needs {
    pub fn of(config: &Config) -> Self {
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let sending = rapport_jobs::Config::default();
        Self {
            deliveries: count(sending.most_connections()),
            kept: count(sending.slots),
            connections: count(rapport_web::Config::default().max_connections),
            database: u64::from(config.database_readers.value) + u64::from(config.database_writers.value),
        }
    }

    pub fn files(self) -> u64 {
        self.deliveries
            + self.kept
            + self.connections
            + self.database * FILES_PER_DATABASE_CONNECTION
            + OTHERS
    }

    /// Describes what is wrong with a limit, and what to do about it.
    pub fn shortage(self, limit: u64) -> Option<String> {
        let (needed, Self { deliveries, connections, .. }) = (self.files(), self);
        (limit < needed).then(|| {
            format!(
                "only {limit} files may be open; {deliveries} deliveries and {connections} connections at once \
                 need {needed}. Raise the hard limit: LimitNOFILE= in systemd, ulimit -n in a shell"
            )
        })
    }
}

/// Raises the soft limit to the hard limit, and warns if that is too low.
pub fn raise(needs: Needs) {
    match hard_limit().and_then(rlimit::increase_nofile_limit) {
        Ok(limit) => {
            if let Some(shortage) = needs.shortage(limit) {
                tracing::warn!(limit, needed = needs.files(), "{shortage}");
            }
        }
        Err(error) => tracing::warn!(%error, "failed to raise the limit on open files"),
    }
}

/// How many files the service can have open once it has raised its limit.
pub fn hard_limit() -> io::Result<u64> {
    Ok(Resource::NOFILE.get()?.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_below_what_can_be_needed_is_a_shortage() {
        let needs = Needs { deliveries: 1_024, kept: 512, connections: 4_096, database: 7 };
        assert_eq!(needs.files(), 1_024 + 512 + 4_096 + 21 + 128);
        assert_eq!(needs.shortage(needs.files()), None);
        let shortage = needs.shortage(needs.files() - 1).expect("one file too few");
        assert!(shortage.starts_with("only 5780 files may be open; 1024 deliveries"), "{shortage}");
    }
}

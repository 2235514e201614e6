//! The latest runs of this process's background jobs, for the System page. Kept in memory: reports start with
//! the process and don't cover other nodes.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use rapport_domain::time::Time;

/// How many characters of an error are kept.
const MAX_ERROR_CHARS: usize = 500;

/// A loop that runs in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Job {
    Deliveries,
    FanOut,
    Redeliveries,
    Cadence,
    Digest,
    Mail,
    Imports,
    Retention,
    Deletion,
    StageTotals,
    ChannelTotals,
    CustomFields,
    Backup,
    Monitoring,
}

impl Job {
    pub const ALL: [Self; 14] = [
        Self::Deliveries,
        Self::FanOut,
        Self::Redeliveries,
        Self::Cadence,
        Self::Digest,
        Self::Mail,
        Self::Imports,
        Self::Retention,
        Self::Deletion,
        Self::StageTotals,
        Self::ChannelTotals,
        Self::CustomFields,
        Self::Backup,
        Self::Monitoring,
    ];

    pub const fn label(self) -> &'static str {
        match self {
            Self::Deliveries => "Webhook deliveries",
            Self::FanOut => "Webhook fan-out",
            Self::Redeliveries => "Bulk redeliveries",
            Self::Cadence => "Contact reminders",
            Self::Digest => "Weekly digest",
            Self::Mail => "Mail",
            Self::Imports => "Imports",
            Self::Retention => "Cleanup",
            Self::Deletion => "Deletions",
            Self::StageTotals => "Stage totals",
            Self::ChannelTotals => "Channel totals",
            Self::CustomFields => "Custom field index",
            Self::Backup => "Backup",
            Self::Monitoring => "Monitoring",
        }
    }

    /// Its name in metrics.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Deliveries => "deliveries",
            Self::FanOut => "fan_out",
            Self::Redeliveries => "redeliveries",
            Self::Cadence => "cadence",
            Self::Digest => "digest",
            Self::Mail => "mail",
            Self::Imports => "imports",
            Self::Retention => "retention",
            Self::Deletion => "deletion",
            Self::StageTotals => "stage_totals",
            Self::ChannelTotals => "channel_totals",
            Self::CustomFields => "custom_fields",
            Self::Backup => "backup",
            Self::Monitoring => "monitoring",
        }
    }

    pub const fn what(self) -> &'static str {
        match self {
            Self::Deliveries => "Picks up waiting deliveries and takes over from dead nodes",
            Self::FanOut => "Creates the remaining deliveries of events that many webhooks select",
            Self::Redeliveries => "Runs bulk redeliveries",
            Self::Cadence => "Finds clients that became overdue for contact",
            Self::Digest => "Creates the digest on its weekday",
            Self::Mail => "Sends queued mail",
            Self::Imports => "Runs imports",
            Self::Retention => "Deletes expired history",
            Self::Deletion => "Deletes companies after their waiting period, and logins without a company",
            Self::StageTotals => "Counts the accounts in each stage of large companies",
            Self::ChannelTotals => "Counts accounts and values per channel and promo code",
            Self::CustomFields => "Indexes the custom fields of accounts from before an upgrade",
            Self::Backup => "Backs up the database if a backup directory is set",
            Self::Monitoring => "Counts waiting deliveries and mails for the metrics",
        }
    }
}

/// The state of a job.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobReport {
    /// When the current run began.
    pub running_since: Option<Time>,
    pub last_run: Option<Time>,
    /// When a run last ended without an error.
    pub last_success: Option<Time>,
    /// When it runs next, unless something wakes it earlier.
    pub next_run: Option<Time>,
    /// When a run last failed, and why; kept when later runs succeed.
    pub last_error: Option<(Time, String)>,
    /// The last run failed.
    pub is_failing: bool,
}

/// The reports of all jobs.
#[derive(Default)]
pub struct JobReports(Mutex<HashMap<Job, JobReport>>);

impl JobReports {
    pub fn begin(&self, job: Job, now: Time) {
        self.0.lock().entry(job).or_default().running_since = Some(now);
    }

    /// Ends a run; the next one begins after `pause`, if there is one.
    pub fn end<E: std::fmt::Display>(&self, job: Job, now: Time, error: Option<&E>, pause: Option<Duration>) {
        let mut reports = self.0.lock();
        let report = reports.entry(job).or_default();
        report.running_since = None;
        report.last_run = Some(now);
        report.next_run =
            pause.map(|pause| now.plus_millis(i64::try_from(pause.as_millis()).unwrap_or(i64::MAX)));
        report.is_failing = error.is_some();
        match error {
            None => report.last_success = Some(now),
            Some(error) => {
                report.last_error = Some((now, error.to_string().chars().take(MAX_ERROR_CHARS).collect()));
            }
        }
    }

    /// The report of each job, in the order of `Job::ALL`; empty for a job that hasn't run.
    pub fn all(&self) -> Vec<(Job, JobReport)> {
        let reports = self.0.lock();
        Job::ALL.into_iter().map(|job| (job, reports.get(&job).cloned().unwrap_or_default())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_says_the_last_run_the_next_one_and_the_last_error() {
        let (reports, now) = (JobReports::default(), Time::from_micros(0));
        let of = |job| reports.all().into_iter().find(|(found, _)| *found == job).unwrap().1;
        assert_eq!(of(Job::Mail), JobReport::default());
        reports.begin(Job::Mail, now);
        assert_eq!(of(Job::Mail).running_since, Some(now));
        reports.end(Job::Mail, now, Some(&"no disk"), Some(Duration::from_secs(5)));
        let report = of(Job::Mail);
        assert_eq!((report.last_run, report.next_run), (Some(now), Some(now.plus_seconds(5))));
        assert_eq!((report.running_since, report.is_failing), (None, true));
        assert_eq!(report.last_success, None);
        reports.end(Job::Mail, now.plus_seconds(5), None::<&String>, Some(Duration::from_secs(5)));
        let report = of(Job::Mail);
        assert_eq!(report.last_error, Some((now, "no disk".to_owned())));
        assert!(!report.is_failing);
        assert_eq!(report.last_success, Some(now.plus_seconds(5)));
    }
}

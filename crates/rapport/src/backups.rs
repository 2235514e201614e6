//! Assembles scheduled backups: the job, and what `/metrics` and `doctor` say about them.

use std::path::Path;

use data_encoding::HEXLOWER;
use rapport_app::{App, metric};
use rapport_domain::time::Time;
use rapport_jobs::backup::{self, Schedule};
use rapport_store::doctor::Level;
use ring::digest::{SHA256, digest};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::Config;

const TAG_BYTES: usize = 4;
/// A backup may be late by this many intervals before `doctor` warns.
const LATE_INTERVALS: u32 = 2;
const MICROS_PER_SECOND: f64 = 1e6;

/// The schedule that is configured, if there is one.
pub fn schedule(config: &Config) -> Option<Schedule> {
    let directory = config.backup_dir.value.clone();
    if directory.as_os_str().is_empty() {
        return None;
    }
    Some(Schedule {
        database: config.database.value.0.clone(),
        directory,
        every: config.backup_every.value.0,
        keep: config.backup_keep.value as usize,
        tag: tag(config),
        program: env!("CARGO_PKG_VERSION"),
    })
}

/// Differs between services that write to the same directory, and stays the same across restarts.
fn tag(config: &Config) -> String {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let data_dir = absolute(&config.data_dir.value);
    let service = format!("{}\n{}", data_dir.display(), config.database.value);
    HEXLOWER.encode(&digest(&SHA256, service.as_bytes()).as_ref()[..TAG_BYTES])
}

/// Starts making backups, if they are configured. It ends soon after `stop`.
pub fn start(app: &App, config: &Config, tasks: &TaskTracker, stop: &CancellationToken) {
    if let Some(schedule) = schedule(config) {
        tasks.spawn(backup::run(app.clone(), stop.clone(), schedule));
    }
}

#[expect(clippy::cast_precision_loss, reason = "times and sizes are far below 2^52 after the division")]
pub fn update_metrics(app: &App) {
    let Some(last) = app.services().backups().get().last else { return };
    metric::BACKUP_LAST_SUCCESS.gauge([]).set(last.made_at.as_micros() as f64 / MICROS_PER_SECOND);
    metric::BACKUP_BYTES.gauge([]).set(last.bytes as f64);
}

/// What `doctor` says about backups.
pub fn examine(config: &Config, now: Time) -> (Level, String) {
    let Some(schedule) = schedule(config) else {
        let advice = "not scheduled (--backup-dir); make them with `rapport backup`";
        return (Level::Warn, format!("backups: {advice}"));
    };
    let directory = schedule.directory.display();
    if schedule.directory.exists()
        && let Err(error) = tempfile::tempfile_in(&schedule.directory)
    {
        return (Level::Fail, format!("backups: {directory} is not writable (--backup-dir): {error}"));
    }
    let Some(last) = schedule.last() else {
        return (
            Level::Warn,
            format!("backups: none in {directory} yet; the service makes the first when it starts"),
        );
    };
    let micros = i64::try_from((schedule.every * LATE_INTERVALS).as_micros()).unwrap_or(i64::MAX);
    let text = format!("backups: the latest is {} from {} in {directory}", last.file, last.made_at);
    if now.micros_since(last.made_at) > micros {
        let every = config.backup_every.value;
        return (Level::Warn, format!("{text}; one is due every {every}: see the service's log"));
    }
    (Level::Ok, text)
}

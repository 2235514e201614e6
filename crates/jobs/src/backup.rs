//! Makes scheduled backups: one file after another in a directory, of which the latest few are kept.
//!
//! A file's name says which service made it and when. So a restarted service knows when the next backup is due, and
//! deletes nothing that it didn't make.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use rapport_app::App;
use rapport_app::backup_report::LastBackup;
use rapport_app::job_report::Job;
use rapport_domain::time::Time;
use rapport_store::Database;
use rapport_store::copy::backup::{About, back_up};
use rapport_store::copy::{Error, Pace, Watch};
use tokio_util::sync::CancellationToken;

use crate::rounds::Rounds;

/// How long after a failure it tries again, if the next backup isn't due earlier.
const RETRY_AFTER: Duration = Duration::from_mins(5);
const EXTENSION: &str = ".backup";
const TIME_FORMAT: &str = "%Y%m%d-%H%M%S";
const OWNER_ONLY: u32 = 0o700;

/// When backups are made, and where.
#[derive(Debug, Clone)]
pub struct Schedule {
    pub database: Database,
    pub directory: PathBuf,
    pub every: Duration,
    /// How many backups are kept.
    pub keep: usize,
    /// Tells this service's files from those of others in the same directory.
    pub tag: String,
    /// The version of the program.
    pub program: &'static str,
}

/// A backup that this service made.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Made {
    at: Time,
    path: PathBuf,
}

/// Runs until `stop`.
pub async fn run(app: App, stop: CancellationToken, schedule: Schedule) {
    app.services().backups().scheduled(schedule.last());
    let mut rounds = Rounds::of(Job::Backup, &app, &stop);
    while rounds.begin() {
        let ended = round(&app, &stop, &schedule).await;
        let pause = match &ended {
            Ok(()) => schedule.due_in(app.now()),
            Err(_) => schedule.every.min(RETRY_AFTER),
        };
        rounds.pause_after(ended, pause).await;
    }
}

/// Makes a backup, if one is due.
async fn round(app: &App, stop: &CancellationToken, schedule: &Schedule) -> Result<(), String> {
    let now = app.now();
    if !schedule.due_in(now).is_zero() {
        return Ok(());
    }
    let about = About {
        fingerprint: app.services().vault().fingerprints().into_iter().next(),
        ..About::new(&schedule.database, now, schedule.program)
    };
    let (work, stop) = (schedule.clone(), stop.clone());
    let made = tokio::task::spawn_blocking(move || work.make(&about, &stop)).await;
    let made = made.map_err(|error| error.to_string())?;
    match made {
        Ok(last) => {
            tracing::info!(file = last.file, bytes = last.bytes, "backed up the database");
            app.services().backups().scheduled(Some(last));
            schedule.prune()
        }
        // The service is stopping.
        Err(Error::Stopped) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

impl Schedule {
    /// The latest backup that this service made.
    pub fn last(&self) -> Option<LastBackup> {
        let last = self.made().pop()?;
        let bytes = fs::metadata(&last.path).ok()?.len();
        let file = last.path.file_name()?.to_string_lossy().into_owned();
        Some(LastBackup { made_at: last.at, bytes, file })
    }

    fn due_in(&self, now: Time) -> Duration {
        let Some(last) = self.made().pop() else { return Duration::ZERO };
        let passed = u64::try_from(now.micros_since(last.at)).map_or(Duration::ZERO, Duration::from_micros);
        self.every.saturating_sub(passed)
    }

    fn make(&self, about: &About, stop: &CancellationToken) -> Result<LastBackup, Error> {
        let unusable = |error: io::Error| {
            let directory = self.directory.display();
            Error::File(format!("the backup directory {directory} cannot be used (--backup-dir): {error}"))
        };
        DirBuilder::new().recursive(true).mode(OWNER_ONLY).create(&self.directory).map_err(unusable)?;
        self.remove_unfinished().map_err(unusable)?;
        let file = self.name(about.made_at);
        let path = self.directory.join(&file);
        let mut watch = Watch::new(Pace::Gentle, |_| !stop.is_cancelled());
        back_up(&self.database, &path, about, &mut watch)?;
        let bytes = fs::metadata(&path).map_err(unusable)?.len();
        Ok(LastBackup { made_at: about.made_at, bytes, file })
    }

    fn name(&self, at: Time) -> String {
        let at = at.to_timestamp().to_zoned(TimeZone::UTC);
        format!("{}{}{EXTENSION}", self.prefix(), at.strftime(TIME_FORMAT))
    }

    fn prefix(&self) -> String {
        format!("rapport-auto-{}-", self.tag)
    }

    /// This service's backups, oldest first.
    fn made(&self) -> Vec<Made> {
        let mut made: Vec<Made> = self.own_files().filter_map(|path| self.parse(path)).collect();
        made.sort_by_key(|made| made.at);
        made
    }

    fn own_files(&self) -> impl Iterator<Item = PathBuf> {
        let prefix = self.prefix();
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(move |path| name_of(path).starts_with(&prefix))
    }

    fn parse(&self, path: PathBuf) -> Option<Made> {
        let name = name_of(&path);
        let at = name.strip_prefix(&self.prefix())?.strip_suffix(EXTENSION)?;
        let at = DateTime::strptime(TIME_FORMAT, at).ok()?.to_zoned(TimeZone::UTC).ok()?;
        Some(Made { at: Time::from_timestamp(at.timestamp()), path })
    }

    /// Deletes what a killed process left.
    fn remove_unfinished(&self) -> io::Result<()> {
        let mut unfinished = self.own_files().filter(|path| name_of(path).contains(".backup.part"));
        unfinished.try_for_each(fs::remove_file)
    }

    /// Deletes the oldest backups of this service beyond those to keep.
    fn prune(&self) -> Result<(), String> {
        let made = self.made();
        let extra = made.len().saturating_sub(self.keep);
        made[..extra].iter().try_for_each(|old| {
            let removed = fs::remove_file(&old.path);
            removed.map_err(|error| format!("{} cannot be deleted: {error}", old.path.display()))
        })
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use rapport_app::backup_report::Backups;
    use rapport_store::copy::backup::verify;
    use rapport_testkit::{Engine, TestApp};

    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    fn schedule(app: &TestApp, directory: &Path) -> Schedule {
        let (database, directory) = (app.database().clone(), directory.join("backups"));
        Schedule { database, directory, every: DAY, keep: 2, tag: "abc".to_owned(), program: "1.2.3" }
    }

    fn files(schedule: &Schedule) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(&schedule.directory).unwrap().map(|entry| name_of(&entry.unwrap().path())).collect();
        names.sort();
        names
    }

    fn backups(app: &TestApp) -> Backups {
        app.app().services().backups().get()
    }

    async fn one_round(app: &TestApp, schedule: &Schedule) -> Result<(), String> {
        round(app.app(), &CancellationToken::new(), schedule).await
    }

    #[tokio::test]
    async fn a_backup_is_made_when_one_is_due_and_the_oldest_are_deleted() {
        for engine in [Engine::Sqlite, Engine::Postgres] {
            let (app, place) = (TestApp::on(engine), tempfile::tempdir().unwrap());
            let schedule = schedule(&app, place.path());
            for _ in 0..3 {
                one_round(&app, &schedule).await.unwrap();
                one_round(&app, &schedule).await.unwrap();
                app.clock().advance_days(1);
            }
            let expected =
                ["rapport-auto-abc-20260106-090000.backup", "rapport-auto-abc-20260107-090000.backup"];
            assert_eq!(files(&schedule), expected, "on {engine}");
            for file in expected {
                let verified = verify(&schedule.directory.join(file), &mut Watch::nobody()).unwrap();
                let fingerprint = app.app().services().vault().fingerprints().into_iter().next();
                assert_eq!(verified.about.fingerprint, fingerprint);
                assert_eq!(verified.about.key, None);
            }
            assert_eq!(backups(&app).last, schedule.last());
            assert_eq!(schedule.last().unwrap().file, expected[1]);
        }
    }

    #[tokio::test]
    async fn files_of_others_are_left_alone() {
        let (app, place) = (TestApp::on(Engine::Sqlite), tempfile::tempdir().unwrap());
        let schedule = Schedule { keep: 1, ..schedule(&app, place.path()) };
        fs::create_dir(&schedule.directory).unwrap();
        let others = [
            "rapport-20200101-000000.backup",
            "rapport-auto-abc-notes.txt",
            "rapport-auto-xyz-20200101-000000.backup",
            "rapport-auto-xyz-20200101-000000.backup.part",
        ];
        let own = ["rapport-auto-abc-20200101-000000.backup", "rapport-auto-abc-20200102-000000.backup.part"];
        for name in others.iter().chain(&own) {
            fs::write(schedule.directory.join(name), "a file").unwrap();
        }
        one_round(&app, &schedule).await.unwrap();
        let mut expected = vec!["rapport-auto-abc-20260105-090000.backup"];
        expected.extend(others);
        expected.sort_unstable();
        assert_eq!(files(&schedule), expected);
    }

    #[tokio::test]
    async fn a_failure_is_reported_and_the_next_round_tries_again() {
        let (app, place) = (TestApp::on(Engine::Sqlite), tempfile::tempdir().unwrap());
        let schedule = schedule(&app, place.path());
        fs::write(&schedule.directory, "not a directory").unwrap();
        let failed = one_round(&app, &schedule).await.unwrap_err();
        assert!(failed.contains("--backup-dir"), "{failed}");
        fs::remove_file(&schedule.directory).unwrap();
        one_round(&app, &schedule).await.unwrap();
        assert_eq!(files(&schedule).len(), 1);
    }

    #[tokio::test]
    async fn a_stopping_service_leaves_no_half_backup() {
        for engine in [Engine::Sqlite, Engine::Postgres] {
            let (app, place, stop) =
                (TestApp::on(engine), tempfile::tempdir().unwrap(), CancellationToken::new());
            let schedule = schedule(&app, place.path());
            stop.cancel();
            round(app.app(), &stop, &schedule).await.unwrap();
            assert_eq!(files(&schedule), Vec::<String>::new());
        }
    }

    #[tokio::test]
    async fn the_job_reports_each_run() {
        let (app, place, stop) =
            (TestApp::on(Engine::Sqlite), tempfile::tempdir().unwrap(), CancellationToken::new());
        let task = tokio::spawn(run(app.app().clone(), stop.clone(), schedule(&app, place.path())));
        let report = || {
            let reports = app.app().services().jobs().all();
            reports.into_iter().find(|(job, _)| *job == Job::Backup).unwrap().1
        };
        let made = async {
            while report().last_run.is_none() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_mins(1), made).await.expect("a backup");
        assert!(!report().is_failing);
        assert!(backups(&app).is_scheduled && backups(&app).last.is_some());
        stop.cancel();
        tokio::time::timeout(Duration::from_mins(1), task).await.expect("stopped").unwrap();
    }
}

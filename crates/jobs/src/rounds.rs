//! The loop that jobs share: rounds with pauses in between, and a report of each for the System page.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rapport_app::job_report::Job;
use rapport_app::{App, Error, log_failure};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// A company that was deleted in the meantime needs no more work.
pub fn unless_deleted<T: Default>(done: Result<T, Error>) -> Result<T, Error> {
    match done {
        Err(error) if error.is_deleted_company() => Ok(T::default()),
        done => done,
    }
}

/// ```ignore
/// let mut rounds = Rounds::of(Job::Digest, &app, &stop);
/// while rounds.begin() {
///     let ended = make_due(&app).await;
///     rounds.pause(ended, every).await;
/// }
/// ```
pub struct Rounds {
    job: Job,
    app: App,
    stop: CancellationToken,
    wake: Option<Arc<Notify>>,
    least: Duration,
    begun: Instant,
}

impl Rounds {
    pub fn of(job: Job, app: &App, stop: &CancellationToken) -> Self {
        Self {
            job,
            app: app.clone(),
            stop: stop.clone(),
            wake: None,
            least: Duration::ZERO,
            begun: Instant::now(),
        }
    }

    /// Ends a pause early when this is notified, but no sooner than `least` after the last round began.
    pub fn woken_by(self, wake: &Arc<Notify>, least: Duration) -> Self {
        Self { wake: Some(Arc::clone(wake)), least, ..self }
    }

    /// Begins a round, unless the service is stopping.
    pub fn begin(&mut self) -> bool {
        let goes_on = !self.stop.is_cancelled();
        if goes_on {
            self.begun = Instant::now();
            self.app.services().jobs().begin(self.job, self.app.now());
        }
        goes_on
    }

    /// Ends a round and waits for the next.
    pub async fn pause<T>(&self, ended: Result<T, Error>, pause: Duration) {
        self.report(ended.err().as_ref(), Some(pause));
        self.wait(pause).await;
    }

    /// The same for work that doesn't depend on the database alone, so its failure is always a warning.
    pub async fn pause_after<T>(&self, ended: Result<T, String>, pause: Duration) {
        if let Err(error) = &ended {
            tracing::warn!(error, job = self.job.label(), "a background job failed; trying again");
        }
        self.app.services().jobs().end(self.job, self.app.now(), ended.err().as_ref(), Some(pause));
        self.wait(pause).await;
    }

    async fn wait(&self, pause: Duration) {
        let stopped = self.stop.cancelled();
        match &self.wake {
            _ if pause.is_zero() => {}
            None => {
                tokio::select! {
                    () = stopped => {}
                    () = tokio::time::sleep(pause) => {}
                }
            }
            Some(wake) => {
                tokio::select! {
                    () = stopped => {}
                    () = tokio::time::sleep(pause) => {}
                    () = wake.notified() => {
                        let rest = self.least.saturating_sub(self.begun.elapsed());
                        self.stop.run_until_cancelled(tokio::time::sleep(rest)).await;
                    }
                }
            }
        }
    }

    /// Ends the last round: there is nothing left to do.
    pub fn finish(self) {
        self.report(None, None);
    }

    fn report(&self, error: Option<&Error>, pause: Option<Duration>) {
        if let Some(error) = error {
            log_failure!(error, job = self.job.label(), "a background job failed; trying again");
        }
        self.app.services().jobs().end(self.job, self.app.now(), error, pause);
    }
}

#[cfg(test)]
mod tests {
    use rapport_app::job_report::JobReport;
    use rapport_testkit::{Engine, TestApp};

    use super::*;

    const FOREVER: Duration = Duration::from_hours(24);
    const LIMIT: Duration = Duration::from_mins(1);

    fn report(app: &TestApp) -> JobReport {
        let reports = app.app().services().jobs().all();
        reports.into_iter().find(|(job, _)| *job == Job::Digest).expect("a report").1
    }

    #[tokio::test]
    async fn each_round_is_reported() {
        let (app, stop) = (TestApp::on(Engine::Sqlite), CancellationToken::new());
        let mut rounds = Rounds::of(Job::Digest, app.app(), &stop);
        assert!(rounds.begin());
        assert!(report(&app).running_since.is_some());
        rounds.pause(Err::<(), _>(Error::Busy), Duration::ZERO).await;
        let failed = report(&app);
        assert!(failed.is_failing && failed.last_error.is_some() && failed.next_run.is_some());
        assert!(rounds.begin());
        rounds.finish();
        let finished = report(&app);
        assert!(!finished.is_failing && finished.running_since.is_none() && finished.next_run.is_none());
    }

    #[tokio::test]
    async fn a_pause_ends_when_the_job_is_woken_or_stopped() {
        let (app, stop, wake) =
            (TestApp::on(Engine::Sqlite), CancellationToken::new(), Arc::new(Notify::new()));
        let mut rounds = Rounds::of(Job::Digest, app.app(), &stop).woken_by(&wake, Duration::ZERO);
        assert!(rounds.begin());
        wake.notify_one();
        tokio::time::timeout(LIMIT, rounds.pause(Ok(()), FOREVER)).await.expect("woken");
        assert!(rounds.begin());
        stop.cancel();
        tokio::time::timeout(LIMIT, rounds.pause(Ok(()), FOREVER)).await.expect("stopped");
        assert!(!rounds.begin());
    }
}

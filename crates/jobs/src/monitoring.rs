//! Counts what waits, for `/metrics`: a scrape itself never reads the database.

use std::time::Duration;

use rapport_app::job_report::Job;
use rapport_app::read::system::{backlog, facts};
use rapport_app::{App, Error, metric};
use rapport_domain::time::Time;
use tokio_util::sync::CancellationToken;

use crate::rounds::Rounds;

/// How often a round runs, unless a test sets another interval. Prometheus usually scrapes about as often.
pub const EVERY: Duration = Duration::from_secs(15);

/// Runs until `stop`.
pub async fn run(app: App, stop: CancellationToken, every: Duration) {
    let mut rounds = Rounds::of(Job::Monitoring, &app, &stop);
    while rounds.begin() {
        let ended = round(&app).await;
        rounds.pause(ended, every).await;
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are capped, and no database has 2^52 bytes")]
async fn round(app: &App) -> Result<(), Error> {
    let found = app.read_across(|across| Ok((backlog(across)?, facts(across)?))).await?;
    let (backlog, facts) = found;
    let now = app.now();
    let since = |time: Option<Time>| time.map_or(0.0, |time| now.micros_since(time).max(0) as f64 / 1e6);
    metric::DELIVERIES_OPEN.gauge([]).set(backlog.deliveries as f64);
    metric::DELIVERIES_OLDEST_AGE.gauge([]).set(since(backlog.oldest_delivery));
    metric::DELIVERIES_OVERDUE.gauge([]).set(since(backlog.next_due));
    metric::DELIVERIES_HELD.gauge([]).set(backlog.held as f64);
    metric::WEBHOOKS_DISABLED.gauge(["hand".into()]).set(backlog.disabled_by_hand as f64);
    metric::WEBHOOKS_DISABLED.gauge(["failures".into()]).set(backlog.disabled_by_failures as f64);
    metric::MAILS_OPEN.gauge([]).set(backlog.mails as f64);
    metric::MAILS_OLDEST_AGE.gauge([]).set(since(backlog.oldest_mail));
    metric::STORE_DATABASE_BYTES.gauge([]).set(facts.bytes as f64);
    Ok(())
}

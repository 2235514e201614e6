//! Background work of the service: started here, stopped after HTTP.

use std::collections::HashMap;
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;
use rapport_app::credential::NoteUses;
use rapport_app::session::NoteSessions;
use rapport_app::{Access, App, log_failure};
use rapport_domain::id::{CompanyId, CredentialId, SessionId};
use rapport_domain::time::Time;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

const NOTE_USES_EVERY: Duration = Duration::from_secs(30);
const METRICS_UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// Starts every background task on `tasks`; each ends soon after `stop`.
pub fn start(app: &App, metrics: PrometheusHandle, tasks: &TaskTracker, stop: &CancellationToken) {
    tasks.spawn(note_uses(app.clone(), stop.clone()));
    tasks.spawn(keep_metrics_small(metrics, stop.clone()));
    tasks.spawn(rapport_jobs::fields::run(app.clone(), stop.clone()));
    tasks.spawn(rapport_jobs::monitoring::run(app.clone(), stop.clone(), rapport_jobs::monitoring::EVERY));
    tasks.spawn(rapport_jobs::deletion::run(app.clone(), stop.clone(), rapport_jobs::deletion::EVERY));
    let every = rapport_jobs::stage_totals::EVERY;
    tasks.spawn(rapport_jobs::stage_totals::run(app.clone(), stop.clone(), every));
    let every = rapport_jobs::channel_totals::EVERY;
    tasks.spawn(rapport_jobs::channel_totals::run(app.clone(), stop.clone(), every));
}

/// Records when credentials were last used, periodically and once more at the end.
async fn note_uses(app: App, stop: CancellationToken) {
    let mut ticks = interval(NOTE_USES_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let stopping = tokio::select! {
            _ = ticks.tick() => false,
            () = stop.cancelled() => true,
        };
        write_uses(&app).await;
        if stopping {
            return;
        }
    }
}

async fn write_uses(app: &App) {
    let mut uses: HashMap<CompanyId, Vec<(CredentialId, Time)>> = HashMap::new();
    for (company, credential, at) in app.services().drain_uses() {
        uses.entry(company).or_default().push((credential, at));
    }
    let mut seen: HashMap<CompanyId, Vec<(SessionId, Time)>> = HashMap::new();
    for (company, session, at) in app.services().drain_sessions() {
        seen.entry(company).or_default().push((session, at));
    }
    for (company, seen) in seen {
        if let Err(error) = app.write(&Access::System(company), NoteSessions(seen)).await {
            log_failure!(error, company = company.0, "failed to record the last use of sessions");
        }
    }
    for (company, uses) in uses {
        if let Err(error) = app.write(&Access::System(company), NoteUses(uses)).await {
            // Nothing to make up for: a later use records a later time.
            log_failure!(error, company = company.0, "failed to record the last use of credentials");
        }
    }
}

async fn keep_metrics_small(metrics: PrometheusHandle, stop: CancellationToken) {
    let mut ticks = interval(METRICS_UPKEEP_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while stop.run_until_cancelled(ticks.tick()).await.is_some() {
        metrics.run_upkeep();
    }
}

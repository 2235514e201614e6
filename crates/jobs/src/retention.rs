//! Retention in the background: visits every company in turn, in small steps with pauses between them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rapport_app::job_report::Job;
use rapport_app::retention::{Round, step};
use rapport_app::{App, Error};
use rapport_domain::id::CompanyId;
use rapport_store::company;
use tokio_util::sync::CancellationToken;

use crate::rounds::{Rounds, unless_deleted};

/// How often a round runs, unless a test sets another interval.
pub const EVERY: Duration = Duration::from_mins(10);
/// The shortest pause after a step, which leaves storage to others.
const LEAST_PAUSE: Duration = Duration::from_millis(1);
const MOST_PAUSE: Duration = Duration::from_secs(1);

/// Runs until `stop`.
pub async fn run(app: App, stop: CancellationToken, every: Duration) {
    let mut rounds = Rounds::of(Job::Retention, &app, &stop);
    let mut companies: HashMap<CompanyId, Round> = HashMap::new();
    while rounds.begin() {
        let ended = all_companies(&app, &stop, &mut companies).await;
        rounds.pause(ended, every).await;
    }
}

async fn all_companies(
    app: &App,
    stop: &CancellationToken,
    rounds: &mut HashMap<CompanyId, Round>,
) -> Result<(), Error> {
    for company in app.read_across(company::list).await? {
        let round = rounds.entry(company.id).or_default();
        loop {
            let begun = Instant::now();
            if stop.is_cancelled() {
                return Ok(());
            }
            if !unless_deleted(step(app, company.id, round).await)? {
                break;
            }
            // Pause as long as the step took, so that this uses at most half of storage's time.
            tokio::time::sleep(begun.elapsed().clamp(LEAST_PAUSE, MOST_PAUSE)).await;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rapport_testkit::{Engine, TestApp};
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn every_company_is_pruned_round_after_round_until_it_stops() {
        for engine in Engine::BOTH {
            let app = TestApp::on(engine);
            let globex = app.company("globex");
            let stop = CancellationToken::new();
            let running = tokio::spawn(run(app.app().clone(), stop.clone(), Duration::from_millis(5)));
            for _ in 0..2 {
                app.upsert(json!({"imported_id": "crm-1", "status": "customer"}));
                globex.upsert(json!({"imported_id": "crm-1"}));
                app.upsert(json!({"imported_id": "crm-1", "status": "lost"}));
                assert!(app.rows("event") > 0, "on {engine}");
                app.clock().advance_days(91);
                let gone = async {
                    while app.rows("event") > 0 {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                };
                tokio::time::timeout(Duration::from_secs(30), gone).await.expect("pruned in time");
            }
            let reports = app.app().services().jobs().all();
            let report =
                reports.into_iter().find(|(job, _)| *job == Job::Retention).map(|(_, report)| report);
            let report = report.expect("every job has a report");
            assert!(report.last_run.is_some() && report.last_error.is_none(), "on {engine}: {report:?}");
            stop.cancel();
            tokio::time::timeout(Duration::from_secs(10), running)
                .await
                .expect("it stops")
                .expect("no panic");
        }
    }
}

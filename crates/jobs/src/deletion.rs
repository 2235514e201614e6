//! Deletions in the background: companies whose waiting is over, and logins that have had no company for a while. In
//! small steps with pauses between them. Any number of nodes may do this at once.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rapport_app::company_deletion::{Erasing, due, step};
use rapport_app::job_report::Job;
use rapport_app::{App, Error, departed};
use rapport_domain::id::CompanyId;
use tokio_util::sync::CancellationToken;

use crate::rounds::{Rounds, unless_deleted};

/// How often it looks for something to delete, unless a test sets another interval.
pub const EVERY: Duration = Duration::from_mins(1);
/// It looks at all logins once in so many rounds.
const LOGINS_EVERY: u64 = 60;
/// The shortest pause after a step, which leaves storage to others.
const LEAST_PAUSE: Duration = Duration::from_millis(1);
const MOST_PAUSE: Duration = Duration::from_secs(1);

/// Runs until `stop`.
pub async fn run(app: App, stop: CancellationToken, every: Duration) {
    let mut rounds = Rounds::of(Job::Deletion, &app, &stop);
    let mut companies = HashMap::new();
    let mut round = 0;
    while rounds.begin() {
        let mut ended = delete_companies(&app, &stop, &mut companies).await;
        if ended.is_ok() && round % LOGINS_EVERY == 0 {
            ended = end_logins(&app, &stop).await;
        }
        round += 1;
        rounds.pause(ended, every).await;
    }
}

/// Continues every deletion that is due until it is done.
async fn delete_companies(
    app: &App,
    stop: &CancellationToken,
    companies: &mut HashMap<CompanyId, Erasing>,
) -> Result<(), Error> {
    for company in due(app).await? {
        let erasing = companies.entry(company).or_default();
        loop {
            let begun = Instant::now();
            if stop.is_cancelled() {
                return Ok(());
            }
            if !unless_deleted(step(app, company, erasing).await)? {
                break;
            }
            rest(begun).await;
        }
        companies.remove(&company);
    }
    Ok(())
}

async fn end_logins(app: &App, stop: &CancellationToken) -> Result<(), Error> {
    let mut after = None;
    loop {
        let begun = Instant::now();
        after = departed::step(app, after).await?;
        if after.is_none() || stop.is_cancelled() {
            return Ok(());
        }
        rest(begun).await;
    }
}

/// Pauses as long as the step took, so that this uses at most half of storage's time.
async fn rest(begun: Instant) {
    tokio::time::sleep(begun.elapsed().clamp(LEAST_PAUSE, MOST_PAUSE)).await;
}

#[cfg(test)]
mod tests {
    use rapport_app::Access;
    use rapport_app::company_deletion::ScheduleDeletion;
    use rapport_app::member::RemoveMember;
    use rapport_domain::member::Role;
    use rapport_testkit::{Engine, TestApp};
    use serde_json::json;

    use super::*;

    const SOON: Duration = Duration::from_millis(5);

    async fn until(what: &str, holds: impl Fn() -> bool) {
        let held = async {
            while !holds() {
                tokio::time::sleep(SOON).await;
            }
        };
        tokio::time::timeout(Duration::from_mins(1), held)
            .await
            .unwrap_or_else(|_| panic!("waited until {what}"));
    }

    #[tokio::test]
    async fn companies_and_logins_are_deleted_when_their_time_has_come() {
        for engine in Engine::BOTH {
            let app = TestApp::on(engine);
            let globex = app.company("globex");
            for number in 0..300 {
                app.upsert(json!({"imported_id": format!("crm-{number}")}));
            }
            globex.upsert(json!({"imported_id": "crm-1"}));
            let bo = globex.employ("bo@globex.test", "Bo", Role::Member);
            globex.write(RemoveMember(bo.person)).expect("removed");
            app.write_as(&Access::CommandLine(app.id()), ScheduleDeletion { is_now: false })
                .expect("scheduled");
            let stop = CancellationToken::new();
            let running = tokio::spawn(run(app.app().clone(), stop.clone(), SOON));
            until("Bo is known to have left", || {
                app.number("SELECT count(*) FROM person WHERE left_at IS NOT NULL") == 1
            })
            .await;
            assert_eq!(app.rows("company"), 2, "on {engine}");
            app.clock().advance_days(14);
            until("the company is gone", || app.rows("company") == 1).await;
            assert_eq!((app.rows("account"), app.rows("person")), (1, 2), "on {engine}");
            app.clock().advance_days(16);
            until("the login is gone", || app.rows("person") == 1).await;
            let reports = app.app().services().jobs().all();
            let report = reports.into_iter().find(|(job, _)| *job == Job::Deletion).expect("a report").1;
            assert!(report.last_run.is_some() && report.last_error.is_none(), "on {engine}: {report:?}");
            stop.cancel();
            let ended = tokio::time::timeout(Duration::from_mins(1), running).await;
            ended.expect("it stops").expect("no panic");
        }
    }
}

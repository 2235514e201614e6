//! Makes accounts from before a migration searchable by their custom fields: once, in small steps, after the
//! start that migrated. Progress survives a restart.

use std::time::{Duration, Instant};

use rapport_app::fields::{fill_step, unfilled};
use rapport_app::job_report::Job;
use rapport_app::{App, Error};
use tokio_util::sync::CancellationToken;

use crate::rounds::Rounds;

/// The shortest pause after a step, which leaves storage to others.
const LEAST_PAUSE: Duration = Duration::from_millis(1);
const MOST_PAUSE: Duration = Duration::from_secs(1);
/// The pause before the next try when storage was busy or unavailable.
const AFTER_FAILURE: Duration = Duration::from_secs(10);

/// Runs until everything is done, or until `stop`.
pub async fn run(app: App, stop: CancellationToken) {
    let mut rounds = Rounds::of(Job::CustomFields, &app, &stop);
    while rounds.begin() {
        match all_companies(&app, &stop).await {
            Ok(()) => return rounds.finish(),
            Err(error) => rounds.pause(Err::<(), _>(error), AFTER_FAILURE).await,
        }
    }
}

async fn all_companies(app: &App, stop: &CancellationToken) -> Result<(), Error> {
    for company in unfilled(app).await? {
        loop {
            let begun = Instant::now();
            if stop.is_cancelled() {
                return Ok(());
            }
            if !fill_step(app, company).await? {
                break;
            }
            // Pause as long as the step took, so that this uses at most half of storage's time.
            tokio::time::sleep(begun.elapsed().clamp(LEAST_PAUSE, MOST_PAUSE)).await;
        }
        tracing::info!(company = company.0, "indexed the custom fields of older accounts");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rapport_store::Database;
    use rapport_testkit::{Engine, TestApp};
    use serde_json::json;

    use super::*;

    fn execute(app: &TestApp, sql: &str) {
        match app.database() {
            Database::Sqlite(path) => {
                let connection = rusqlite::Connection::open(path).expect("opened");
                connection.execute_batch(sql).expect("run");
            }
            Database::Postgres(_) => {
                std::thread::scope(|scope| {
                    scope.spawn(|| app.postgres().batch_execute(sql).expect("run")).join().expect("run");
                });
            }
        }
    }

    #[tokio::test]
    async fn older_accounts_are_found_by_their_fields_and_changed_ones_by_what_they_are_now() {
        for engine in Engine::BOTH {
            let app = TestApp::on(engine);
            for n in 0..250 {
                let fields = json!({"plan": "Pro", "seats": n, "tags": ["a", "b"]});
                app.upsert(json!({"imported_id": format!("crm-{n:03}"), "custom_fields": fields}));
            }
            let whole = app.rows("account_field");
            assert_eq!(whole, 4 * 250, "on {engine}");
            // As a migration leaves it, except for accounts that changed since.
            execute(
                &app,
                "DELETE FROM account_field; INSERT INTO field_fill (company) SELECT id FROM company",
            );
            app.upsert(json!({"imported_id": "crm-007", "custom_fields": {"plan": "free", "tags": null}}));
            app.upsert(json!({"imported_id": "crm-new", "custom_fields": {"plan": "free"}}));
            assert_eq!(app.rows("account_field"), 2, "on {engine}");
            assert!(fill_step(app.app(), app.id()).await.expect("a step"), "there is more, on {engine}");
            let half = app.rows("account_field");
            assert!(half < whole, "on {engine}");
            // A new start continues where the first was cut off.
            run(app.app().clone(), CancellationToken::new()).await;
            assert_eq!(app.rows("account_field"), whole - 2 + 1, "on {engine}");
            assert_eq!(app.rows("field_fill"), 0, "on {engine}");
            let of = |value: &str| {
                app.number(&format!(
                    "SELECT count(*) FROM account_field WHERE field = 'plan' AND value = '{value}'"
                ))
            };
            assert_eq!((of("spro"), of("sfree")), (249, 2), "on {engine}");
        }
    }
}

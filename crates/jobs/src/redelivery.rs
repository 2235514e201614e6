//! Runs bulk redeliveries step by step. Their state is in the database: after a restart they continue where
//! they were, and several nodes share the work without doing it twice.

use std::time::Duration;

use rapport_app::job_report::Job;
use rapport_app::redelivery::{Stepped, step};
use rapport_app::{App, Error};
use rapport_store::redelivery::running;
use tokio_util::sync::CancellationToken;

use crate::rounds::Rounds;

/// How often running redeliveries are processed, and how often it checks for new ones.
const BUSY: Duration = Duration::from_millis(250);
const IDLE: Duration = Duration::from_secs(1);
/// Steps of one redelivery before the next one's turn.
const TURN: usize = 5;

/// Runs until `stop`.
pub async fn run(app: App, stop: CancellationToken) {
    let mut rounds = Rounds::of(Job::Redeliveries, &app, &stop);
    while rounds.begin() {
        let ended = round(&app, &stop).await;
        let pause = if matches!(ended, Ok(true)) { BUSY } else { IDLE };
        rounds.pause(ended, pause).await;
    }
}

/// Gives every running redelivery its turn; returns whether there were any.
async fn round(app: &App, stop: &CancellationToken) -> Result<bool, Error> {
    let under_way = app.read_across(running).await?;
    for (company, id) in &under_way {
        for _ in 0..TURN {
            let stepped = match step(app, *company, *id).await {
                Err(error) if error.is_deleted_company() => break,
                stepped => stepped?,
            };
            if stop.is_cancelled() || stepped != Stepped::More {
                break;
            }
        }
    }
    Ok(!under_way.is_empty())
}

#[cfg(test)]
mod tests {
    use rapport_app::redelivery::{StartRedelivery, progress};
    use rapport_domain::delivery_list::Filter;
    use rapport_testkit::{Engine, TestApp, create_webhook};
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn what_was_started_before_is_taken_further() {
        for engine in Engine::BOTH {
            let app = TestApp::on(engine);
            let body = json!({"url": "https://example.com/", "events": ["account.created"]});
            app.write(create_webhook(app.app(), &body)).unwrap();
            for number in 0..5 {
                app.upsert(json!({"imported_id": format!("crm-{number}")}));
            }
            let id = app.write(StartRedelivery { filter: Filter::default(), total: 5 }).unwrap().id;
            let stop = CancellationToken::new();
            let running = tokio::spawn(run(app.app().clone(), stop.clone()));
            let queued = async {
                while app.rows("manual_attempt") < 5 {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            tokio::time::timeout(Duration::from_secs(30), queued).await.expect("queued in time");
            stop.cancel();
            tokio::time::timeout(Duration::from_secs(10), running)
                .await
                .expect("it stops")
                .expect("no panic");
            let found = app.read(move |snapshot| progress(snapshot, id)).unwrap();
            assert_eq!((found.redelivery.queued, found.unmade), (5, 5), "on {engine}");
        }
    }
}

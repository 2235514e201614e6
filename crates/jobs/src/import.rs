//! Runs imports, dry runs and undos step by step. Their state is in the database: after a restart they
//! continue where they were, and only one node at a time works on an import.

use std::collections::HashMap;
use std::time::Duration;

use rapport_app::import::{Runner, Stepped};
use rapport_app::job_report::Job;
use rapport_app::{App, Error, log_failure};
use rapport_domain::id::ImportId;
use rapport_store::import::active;
use tokio_util::sync::CancellationToken;

use crate::rounds::Rounds;

/// How often it checks for work.
const IDLE: Duration = Duration::from_millis(500);
/// Steps of one import before the next import's turn.
const TURN: usize = 20;

/// Runs until `stop`.
pub async fn run(app: App, stop: CancellationToken) {
    let mut rounds = Rounds::of(Job::Imports, &app, &stop);
    let mut runners = HashMap::new();
    while rounds.begin() {
        let ended = round(&app, &stop, &mut runners).await;
        let pause = if matches!(ended, Ok(true)) { Duration::ZERO } else { IDLE };
        rounds.pause(ended, pause).await;
    }
    for (_, runner) in runners {
        runner.release().await;
    }
}

/// Gives every open import its turn; returns whether one has more to do immediately.
async fn round(
    app: &App,
    stop: &CancellationToken,
    runners: &mut HashMap<ImportId, Runner>,
) -> Result<bool, Error> {
    let under_way = app.read_across(active).await?;
    runners.retain(|id, _| under_way.iter().any(|(_, import)| import == id));
    let mut is_busy = false;
    for (company, id) in under_way {
        let mut runner = runners.remove(&id).unwrap_or_else(|| Runner::new(app, company, id));
        match turn(&mut runner, stop).await {
            Ok(Stepped::More) => {
                is_busy = true;
                runners.insert(id, runner);
            }
            Ok(Stepped::Elsewhere | Stepped::Ended) => {}
            Err(error) => {
                log_failure!(error, import = %id, "failed to run an import; trying again");
                runners.insert(id, runner);
            }
        }
    }
    Ok(is_busy)
}

async fn turn(runner: &mut Runner, stop: &CancellationToken) -> Result<Stepped, Error> {
    for _ in 0..TURN {
        let stepped = runner.step().await?;
        if stepped != Stepped::More || stop.is_cancelled() {
            return Ok(stepped);
        }
    }
    Ok(Stepped::More)
}

#[cfg(test)]
mod tests {
    use rapport_app::import::{Purpose, UndoImport, Upload, UploadOptions, begin};
    use rapport_domain::import::{Import, Request, State};
    use rapport_testkit::{Engine, TestApp, TestCompany};

    use super::*;

    async fn uploaded(company: &TestCompany, text: &str) -> ImportId {
        let options = UploadOptions { filename: "a.csv".to_owned(), ..UploadOptions::default() };
        let mut upload = Upload::begin(company.app(), company.token(), options).await.unwrap();
        upload.take(text.as_bytes()).await.unwrap();
        upload.finish().await.unwrap().id
    }

    async fn until(company: &TestCompany, id: ImportId, state: State) -> Import {
        let waiting = async {
            loop {
                let found = company.read(move |snapshot| rapport_store::import::get(snapshot, id)).unwrap();
                if found.state == state {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_mins(1), waiting).await.expect("in time")
    }

    #[tokio::test]
    async fn a_dry_run_a_run_and_an_undo_go_by_themselves() {
        for engine in Engine::BOTH {
            let app = TestApp::on(engine);
            let rows = (0..1_500)
                .map(|number| format!("crm-{number},Account {number}\n"))
                .collect::<Vec<_>>()
                .concat();
            let id = uploaded(&app, &format!("id,name\n{rows}")).await;
            let stop = CancellationToken::new();
            let running = tokio::spawn(run(app.app().clone(), stop.clone()));
            let start = |purpose| begin(app.app(), app.token(), id, Request::default(), (purpose, None));
            start(Purpose::Preview).await.unwrap();
            let tried = until(&app, id, State::Uploaded).await;
            assert_eq!((tried.rows_total, app.rows("account")), (Some(1_500), 0), "on {engine}");
            assert_eq!(tried.preview.unwrap()["counts"]["created"], 1_500, "on {engine}");
            start(Purpose::Run).await.unwrap();
            let done = until(&app, id, State::Finished).await;
            assert_eq!((done.counts.created, app.rows("account")), (1_500, 1_500), "on {engine}");
            app.write(UndoImport { id, runner: None }).unwrap();
            let undone = until(&app, id, State::Undone).await;
            assert_eq!((undone.undo.removed, app.rows("account")), (1_500, 0), "on {engine}");
            stop.cancel();
            tokio::time::timeout(Duration::from_secs(10), running)
                .await
                .expect("it stops")
                .expect("no panic");
        }
    }

    #[tokio::test]
    async fn a_node_that_stops_lets_another_go_on_at_once() {
        for engine in Engine::BOTH {
            let app = TestApp::on(engine);
            let rows = (0..5_000).map(|number| format!("crm-{number}\n")).collect::<Vec<_>>().concat();
            let id = uploaded(&app, &format!("id\n{rows}")).await;
            begin(app.app(), app.token(), id, Request::default(), (Purpose::Run, None)).await.unwrap();
            let stop = CancellationToken::new();
            let running = tokio::spawn(run(app.app().clone(), stop.clone()));
            while app.rows("account") == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            stop.cancel();
            running.await.expect("no panic");
            let stop = CancellationToken::new();
            // The clock stands still, so no lease expires.
            let other = tokio::spawn(run(app.another_node(), stop.clone()));
            let done = until(&app, id, State::Finished).await;
            assert_eq!((done.counts.created, app.rows("account")), (5_000, 5_000), "on {engine}");
            stop.cancel();
            other.await.expect("no panic");
        }
    }
}

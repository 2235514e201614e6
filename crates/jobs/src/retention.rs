//! Retention in the background: every company in its turn, in small steps with pauses between them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rapport_app::retention::{Round, step};
use rapport_app::{App, Error};
use rapport_domain::id::CompanyId;
use rapport_store::company;
use tokio_util::sync::CancellationToken;

/// How often the rounds are made, unless a test wants it otherwise.
pub const EVERY: Duration = Duration::from_mins(10);
/// After a step storage has at least so long for others.
const LEAST_PAUSE: Duration = Duration::from_millis(1);
const MOST_PAUSE: Duration = Duration::from_secs(1);

/// Runs until `stop`.
pub async fn run(app: App, stop: CancellationToken, every: Duration) {
    let mut rounds: HashMap<CompanyId, Round> = HashMap::new();
    loop {
        if let Err(error) = all_companies(&app, &stop, &mut rounds).await {
            tracing::warn!(%error, "old history could not be pruned; trying again later");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(every) => {}
        }
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
            if !step(app, company.id, round).await? {
                break;
            }
            // As long as the step took: at most half of storage's time goes here.
            tokio::time::sleep(begun.elapsed().clamp(LEAST_PAUSE, MOST_PAUSE)).await;
        }
    }
    Ok(())
}

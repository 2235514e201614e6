//! Counts accounts and values per channel and promo code, one company after another, in small steps. After
//! each step it rests fifty times as long, so counting never takes more than two percent of the time, however
//! many accounts there are.

use std::time::{Duration, Instant};

use rapport_app::channel_total::{Count, due, keep, step};
use rapport_app::job_report::Job;
use rapport_app::{App, Error};
use rapport_domain::channel_total::SHARE;
use rapport_domain::id::CompanyId;
use tokio_util::sync::CancellationToken;

use crate::rounds::{Rounds, unless_deleted};

/// How often it checks for due counts, unless a test sets another interval.
pub const EVERY: Duration = Duration::from_secs(2);

/// Runs until `stop`.
pub async fn run(app: App, stop: CancellationToken, every: Duration) {
    let mut rounds = Rounds::of(Job::ChannelTotals, &app, &stop);
    while rounds.begin() {
        // A count rests between its steps, and can take long.
        let Some(ended) = stop.run_until_cancelled(all_companies(&app)).await else { return };
        rounds.pause(ended, every).await;
    }
}

async fn all_companies(app: &App) -> Result<(), Error> {
    for company in due(app).await? {
        unless_deleted(count(app, company).await)?;
    }
    Ok(())
}

async fn count(app: &App, company: CompanyId) -> Result<(), Error> {
    let mut count = Count::default();
    let mut spent = Duration::ZERO;
    loop {
        let begun = Instant::now();
        let more = step(app, company, &mut count).await?;
        let took = begun.elapsed();
        spent += took;
        if !more {
            keep(app, company, count, spent).await?;
            tokio::time::sleep(took * SHARE).await;
            return Ok(());
        }
        tokio::time::sleep(took * SHARE).await;
    }
}

#[cfg(test)]
mod tests {
    use rapport_testkit::{Engine, TestApp, TestCompany};
    use serde_json::json;

    use super::*;

    fn accounts(company: &TestCompany) -> Vec<(String, i64, i128)> {
        let totals = company.read(rapport_store::channel_total::all);
        totals.into_iter().map(|total| (total.code, total.accounts, total.sum)).collect()
    }

    #[tokio::test]
    async fn every_company_is_counted_again_and_again_until_it_stops() {
        for engine in Engine::BOTH {
            let app = TestApp::on(engine);
            let globex = app.company("globex");
            for company in [&*app, &globex] {
                company.channel("Fair", &["FAIR"]);
            }
            let stop = CancellationToken::new();
            let running = tokio::spawn(run(app.app().clone(), stop.clone(), Duration::from_millis(5)));
            for n in 1..=2 {
                let body =
                    json!({"imported_id": format!("crm-{n}"), "promo_code": "fair", "captured_value": "1.5"});
                app.upsert(body.clone());
                globex.upsert(body);
                app.clock().advance_seconds(60);
                let expected = [("FAIR".to_owned(), n, 15_000 * i128::from(n))];
                let counted = async {
                    while accounts(&app) != expected || accounts(&globex) != expected {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                };
                tokio::time::timeout(Duration::from_secs(30), counted).await.expect("counted in time");
            }
            stop.cancel();
            tokio::time::timeout(Duration::from_secs(10), running)
                .await
                .expect("it stops")
                .expect("no panic");
        }
    }
}

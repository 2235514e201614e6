//! Maintains the totals per stage that pages of large companies show.
//!
//! A company is counted after a commit here, and now and then for commits of other nodes. It is never counted
//! more often than every few seconds, and never so often that counting takes a noticeable part of the time.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rapport_app::job_report::Job;
use rapport_app::stage_totals::{counted_at, recount};
use rapport_app::{App, Error};
use rapport_domain::id::CompanyId;
use rapport_store::company;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::rounds::{Rounds, unless_deleted};

/// How often it checks for work, unless a test sets another interval.
pub const EVERY: Duration = Duration::from_secs(3);
/// A count may take one part in this many of the time.
const SHARE: u32 = 50;
/// How often companies are listed, and counted for commits of other nodes.
const ANYWAY: Duration = Duration::from_mins(1);
const ANYWAY_SECONDS: i64 = 60;

/// What is known about one company between two counts.
struct Watch {
    commits: watch::Receiver<()>,
    not_before: Instant,
    looked_at: Option<Instant>,
}

/// Runs until `stop`.
pub async fn run(app: App, stop: CancellationToken, every: Duration) {
    let mut rounds = Rounds::of(Job::StageTotals, &app, &stop);
    let mut watches = Watches::default();
    while rounds.begin() {
        let ended = watches.look(&app, &stop, every).await;
        rounds.pause(ended, every).await;
    }
}

/// The companies that are watched, and when they were last listed.
#[derive(Default)]
struct Watches {
    companies: HashMap<CompanyId, Watch>,
    listed_at: Option<Instant>,
}

impl Watches {
    /// Looks at every company. One that fails doesn't keep the others from their turn.
    async fn look(&mut self, app: &App, stop: &CancellationToken, every: Duration) -> Result<(), Error> {
        if self.listed_at.is_none_or(|at| at.elapsed() >= ANYWAY) {
            let listed = app.read_across(company::list).await?;
            self.companies.retain(|known, _| listed.iter().any(|company| company.id == *known));
            for company in listed {
                self.companies.entry(company.id).or_insert_with(|| Watch::new(app, company.id));
            }
            self.listed_at = Some(Instant::now());
        }
        let mut ended = Ok(());
        for (company, watch) in &mut self.companies {
            if stop.is_cancelled() {
                break;
            }
            let looked = unless_deleted(watch.look(app, *company, every).await);
            ended = ended.and(looked);
        }
        ended
    }
}

impl Watch {
    fn new(app: &App, company: CompanyId) -> Self {
        Self {
            commits: app.services().commits().listen(company),
            not_before: Instant::now(),
            looked_at: None,
        }
    }

    /// Counts if there is a reason to and enough time has passed.
    async fn look(&mut self, app: &App, company: CompanyId, every: Duration) -> Result<(), Error> {
        let changed = self.commits.has_changed().unwrap_or(false);
        let anyway = self.looked_at.is_none_or(|at| at.elapsed() >= ANYWAY);
        let begun = Instant::now();
        if begun < self.not_before || !(changed || anyway) {
            return Ok(());
        }
        self.looked_at = Some(begun);
        // Marked before the read, so that commits during it are counted next time.
        self.commits.mark_unchanged();
        let counted = count(app, company, changed).await;
        if counted.is_err() {
            self.commits.mark_changed();
        }
        self.not_before = Instant::now() + (begun.elapsed() * SHARE).max(every);
        counted
    }
}

async fn count(app: &App, company: CompanyId, changed: bool) -> Result<(), Error> {
    if !changed {
        // Another node may have just done it.
        let fresh = |at: rapport_domain::time::Time| app.now() < at.plus_seconds(ANYWAY_SECONDS);
        if counted_at(app, company).await?.is_some_and(fresh) {
            return Ok(());
        }
    }
    recount(app, company).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use rapport_domain::pipeline::Status;
    use rapport_store::stage_totals::{LIVE_ACCOUNTS, Stage, stages};
    use rapport_testkit::{Engine, TestApp};
    use serde_json::json;

    use super::*;

    /// A company with more prospects than are counted live, each worth 2 EUR.
    fn large_company(engine: Engine) -> TestApp {
        let app = TestApp::on(engine);
        let sql = "WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 2001) \
                   INSERT INTO account (company, id, name, name_folded, status, custom_fields, value_amount, \
                   value_currency, campaign_hold, created_at, updated_at) \
                   SELECT (SELECT min(id) FROM company), {id}, 'A', 'a', 'prospect', '{}', 20000, 'EUR', 0, 0, 0 \
                   FROM number";
        execute(
            &app,
            &sql.replace("{id}", "CAST(printf('%016d', n) AS BLOB)"),
            &sql.replace("{id}", "convert_to(lpad(n::text, 16, '0'), 'UTF8')"),
        );
        app
    }

    fn execute(app: &TestApp, on_sqlite: &str, on_postgres: &str) {
        match app.database() {
            rapport_store::Database::Sqlite(path) => {
                let connection = rusqlite::Connection::open(path).expect("opened");
                connection.execute_batch(on_sqlite).expect("executed");
            }
            rapport_store::Database::Postgres(_) => std::thread::scope(|scope| {
                let run = || app.postgres().batch_execute(on_postgres).expect("executed");
                scope.spawn(run).join().expect("run");
            }),
        }
    }

    async fn prospects(app: &TestApp) -> Stage {
        let access = rapport_app::Access::System(app.id());
        let read = app.app().read(&access, rapport_app::Needs::Server, |snapshot, _| stages(snapshot));
        let read = read.await.expect("read");
        read.reply.into_iter().find(|stage| stage.status == Status::Prospect).expect("a stage")
    }

    #[tokio::test]
    async fn totals_follow_what_is_committed() {
        for engine in Engine::BOTH {
            let app = large_company(engine);
            let before = prospects(&app).await;
            assert!(before.accounts.capped && before.accounts.count == LIVE_ACCOUNTS, "on {engine}");
            let stop = CancellationToken::new();
            let running = tokio::spawn(run(app.app().clone(), stop.clone(), Duration::from_millis(5)));
            for number in [2_001, 2_002] {
                let counted = async {
                    while prospects(&app).await.accounts.count != number {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                };
                tokio::time::timeout(Duration::from_secs(30), counted).await.expect("counted in time");
                let stage = prospects(&app).await;
                assert_eq!(stage.values[0].amount_text(), "4002.00", "on {engine}");
                assert!(stage.as_of.is_some() && !stage.accounts.capped, "on {engine}");
                app.upsert(json!({"imported_id": format!("crm-{number}")}));
            }
            stop.cancel();
            let ended = tokio::time::timeout(Duration::from_secs(10), running).await;
            ended.expect("it stops").expect("no panic");
        }
    }

    #[tokio::test]
    async fn nothing_is_written_where_pages_count_for_themselves_or_nothing_changed() {
        for engine in Engine::BOTH {
            let small = TestApp::on(engine);
            small.upsert(json!({"imported_id": "crm-1"}));
            assert!(!recount(small.app(), small.id()).await.expect("counted"), "on {engine}");
            let large = large_company(engine);
            assert!(recount(large.app(), large.id()).await.expect("counted"), "on {engine}");
            assert!(!recount(large.app(), large.id()).await.expect("counted"), "on {engine}");
            large.clock().advance_seconds(301);
            assert!(
                recount(large.app(), large.id()).await.expect("counted"),
                "\"as of\" stays true, on {engine}"
            );
        }
    }

    #[tokio::test]
    async fn a_stage_that_shrinks_is_counted_by_the_page_again() {
        for engine in Engine::BOTH {
            let app = large_company(engine);
            recount(app.app(), app.id()).await.expect("counted");
            let delete = "DELETE FROM account WHERE id = (SELECT min(id) FROM account)";
            execute(&app, delete, &delete.replace("min(id) FROM account", "id FROM account LIMIT 1"));
            assert!(recount(app.app(), app.id()).await.expect("counted"), "on {engine}");
            let stage = prospects(&app).await;
            assert_eq!((stage.accounts.count, stage.as_of), (LIVE_ACCOUNTS, None), "on {engine}");
            app.upsert(json!({"imported_id": "crm-1"}));
            assert!(prospects(&app).await.accounts.capped, "large again but not counted yet, on {engine}");
            assert!(recount(app.app(), app.id()).await.expect("counted"), "on {engine}");
        }
    }
}

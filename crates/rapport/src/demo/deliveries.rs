//! The deliveries of the past: claimed and recorded with the sender's own commands, with made-up answers.

use rapport_app::delivery::RecordAttempt;
use rapport_app::ownership::ClaimDue;
use rapport_app::{Access, App, Clock as _};
use rapport_domain::delivery::{Attempt, Failure, Outcome, Reason, Timings};
use rapport_domain::id::{CompanyId, DeliveryId, WebhookId};
use tokio::task::JoinSet;

use super::chance::Chance;
use super::past::PastClock;
use crate::commands::explained;

const SEED: u64 = 77;
/// What is claimed is recorded before anything else happens, so no sender ever sees this owner.
const NODE: i64 = 0;
const LIMIT: i64 = 100;
/// How many days ago the last webhook's receiver went down.
const DOWN_DAYS: i64 = 24;
/// A retry due this soon is waited for; later ones are sent with whatever happens next.
const SOON_SECONDS: i64 = 10;

pub struct PastSender {
    app: App,
    clock: PastClock,
    chance: Chance,
    company: CompanyId,
    /// The receiver's address, without the scheme.
    address: String,
    /// The receiver of the last one goes down.
    pub webhooks: Vec<WebhookId>,
}

impl PastSender {
    pub fn new(app: &App, clock: &PastClock, company: CompanyId, receiver: &str) -> Self {
        Self {
            app: app.clone(),
            clock: clock.clone(),
            chance: Chance::new(SEED),
            company,
            address: receiver.trim_start_matches("https://").to_owned(),
            webhooks: Vec::new(),
        }
    }

    /// Sends what is due, with the answers of `days_ago`.
    pub async fn send(&mut self, days_ago: i64) -> anyhow::Result<()> {
        loop {
            let due = self.claim().await?;
            if due.is_empty() {
                return Ok(());
            }
            let retry_at = self.record(due, days_ago).await?;
            let soon = self.clock.now().plus_seconds(SOON_SECONDS);
            let Some(retry_at) = retry_at.into_iter().flatten().min().filter(|at| *at < soon) else {
                return Ok(());
            };
            self.clock.forward_to(retry_at);
        }
    }

    /// Claims what is due for all webhooks, in parallel.
    async fn claim(&self) -> anyhow::Result<Vec<(WebhookId, DeliveryId)>> {
        let mut asked = JoinSet::new();
        for webhook in self.webhooks.iter().copied() {
            let (app, access) = (self.app.clone(), Access::System(self.company));
            asked.spawn(async move {
                let claim = ClaimDue { webhook, node: NODE, limit: LIMIT };
                app.write(&access, claim).await.map(|due| (webhook, due.claimed))
            });
        }
        let mut due = Vec::new();
        for claimed in asked.join_all().await {
            let (webhook, claimed) = claimed.map_err(explained)?;
            due.extend(claimed.into_iter().map(|(found, _)| (webhook, found.delivery)));
        }
        // The claims are answered in any order, but the made-up answers must be repeatable.
        due.sort_unstable();
        Ok(due)
    }

    /// Records an answer to each, and returns when each is due again.
    async fn record(
        &mut self,
        due: Vec<(WebhookId, DeliveryId)>,
        days_ago: i64,
    ) -> anyhow::Result<Vec<Option<rapport_domain::time::Time>>> {
        let attempts: Vec<RecordAttempt> = due
            .into_iter()
            .map(|(webhook, delivery)| {
                let attempt = self.attempt(webhook, days_ago);
                RecordAttempt::new(NODE, webhook, delivery, attempt, None)
            })
            .collect();
        let longest = attempts.iter().map(|record| record.attempt.timings.total).max().unwrap_or(0);
        self.clock.forward_to(self.clock.now().plus_millis(longest / 1000));
        let mut records = JoinSet::new();
        for attempt in attempts {
            let (app, access) = (self.app.clone(), Access::System(self.company));
            records.spawn(async move { app.write(&access, attempt).await.map(|recorded| recorded.retry_at) });
        }
        records.join_all().await.into_iter().map(|recorded| recorded.map_err(explained)).collect()
    }

    fn attempt(&mut self, webhook: WebhookId, days_ago: i64) -> Attempt {
        let is_down = days_ago < DOWN_DAYS && self.webhooks.last() == Some(&webhook);
        let (outcome, error) = self.answer(is_down);
        let timings = match outcome {
            Outcome::BrokenOff { .. } | Outcome::Failed(_) => {
                Timings { total: 15_000_000, ..Timings::default() }
            }
            Outcome::Answered { .. } => self.timings(),
        };
        let excerpt = match outcome {
            Outcome::Answered { code: 200, .. } => b"{\"ok\":true}".to_vec(),
            Outcome::Answered { code: 503, .. } => b"upstream connect error".to_vec(),
            _ => Vec::new(),
        };
        Attempt {
            started_at: self.clock.now(),
            reason: Reason::Automatic,
            outcome,
            error,
            timings,
            address: Some(self.address.clone()),
            excerpt,
            excerpt_cut: false,
        }
    }

    fn answer(&mut self, is_down: bool) -> (Outcome, Option<String>) {
        let answered = |code: u16, error: Option<&str>| {
            (Outcome::Answered { code, retry_after: None }, error.map(str::to_owned))
        };
        match (is_down, self.chance.between(1, 100)) {
            (true, 31..) => answered(503, Some("503 Service Unavailable")),
            (false, 1..=3) => answered(500, Some("500 Internal Server Error")),
            (false, 6) => answered(404, Some("404 Not Found")),
            (false, 7..=20) => answered(204, None),
            (false, 21..) => answered(200, None),
            _ => {
                let error = "no response within 15 s";
                (Outcome::Failed(Failure::Timeout), Some(error.to_owned()))
            }
        }
    }

    /// Each part is in microseconds. A kept connection needs no DNS, connect or TLS.
    fn timings(&mut self) -> Timings {
        let is_new = self.chance.percent(30);
        let mut part = |least, most| is_new.then(|| self.chance.between(least, most));
        let (dns, connect, tls) = (part(300, 9_000), part(4_000, 30_000), part(9_000, 45_000));
        let first_byte = self.chance.between(18_000, 240_000);
        let total = [dns, connect, tls].into_iter().flatten().sum::<i64>() + first_byte + 400;
        Timings { dns, connect, tls, first_byte: Some(first_byte), total }
    }
}

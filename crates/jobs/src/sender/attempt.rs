//! One attempt as a task: makes it, tells the sender, and records it however long the database takes.

use std::sync::Arc;
use std::time::Duration;

use rapport_app::delivery::{RecordAttempt, Recorded};
use rapport_app::dispatch::Dispatch;
use rapport_app::metric::{self, Counter, Histogram};
use rapport_app::{Access, App, Error};
use rapport_domain::delivery::{Attempt, Failure, Outcome, Reason, Timings, Verdict};
use rapport_domain::id::made_at;
use rapport_domain::time::Time;
use rapport_domain::webhook_header;
use tokio::sync::mpsc;

use super::Message;
use super::target::Target;
use crate::client::{Client, Post};
use crate::flights::Ticket;
use crate::lanes::Item;

/// The pause before trying again to record an attempt; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// What an attempt needs besides its content: the same for all.
pub struct Attempting {
    pub app: App,
    pub client: Arc<Client>,
    pub mail: mpsc::UnboundedSender<Message>,
    pub node: i64,
    pub meters: Meters,
}

impl Attempting {
    pub async fn run(self: Arc<Self>, ticket: Ticket, item: Item, target: Arc<Target>) {
        let key = item.key();
        let Item { dispatch, place } = item;
        let attempt = self.make(&dispatch, &target).await;
        let verdict = attempt.outcome.verdict();
        self.meters.count(verdict, attempt.timings.total);
        let _ = self.mail.send(Message::Answered { key, ticket, verdict });
        let recorded = self.record(&dispatch, attempt).await;
        if verdict == Verdict::Succeeded && dispatch.manual.is_none() {
            let took = self.app.now().micros_since(made_at(dispatch.delivery.as_bytes()));
            self.meters.deliveries.record(duration(took));
        }
        drop(place);
        let _ = self.mail.send(Message::Recorded { key, ticket, verdict, recorded });
    }

    async fn make(&self, dispatch: &Dispatch, target: &Target) -> Attempt {
        let (started_at, reason) = (self.app.now(), dispatch.reason());
        let opened = match target.opened(self.app.services().vault()) {
            Ok(opened) => opened,
            Err(error) => return not_made(started_at, reason, error),
        };
        let post = Post {
            destination: &opened.destination,
            key: &opened.key,
            event: dispatch.kind.as_str(),
            event_id: dispatch.event,
            delivery: dispatch.delivery.to_string(),
            number: dispatch.number,
            payload: &dispatch.payload,
            reason,
            started_at,
            headers: &opened.headers,
        };
        let mut attempt = self.client.attempt(post).await;
        webhook_header::mask(&mut attempt.excerpt, attempt.excerpt_cut, opened.secrets.values());
        attempt
    }

    /// The outcome is known and only needs to be stored: tries until it is, or until there is nothing left to
    /// store it on. The place is kept until then, so nobody sends the delivery a second time.
    async fn record(&self, dispatch: &Dispatch, attempt: Attempt) -> Option<Recorded> {
        let access = Access::System(dispatch.company);
        let (mut pause, mut maybe_recorded) = (FIRST_PAUSE, false);
        loop {
            let record = RecordAttempt {
                webhook: dispatch.webhook,
                delivery: dispatch.delivery,
                attempt: attempt.clone(),
                manual: dispatch.manual.map(|manual| manual.id),
                node: self.node,
                maybe_recorded,
            };
            match self.app.write(&access, record).await {
                Ok(recorded) => return Some(recorded),
                // It was pruned since, or the process is ending: the next incarnation gives it back and sends
                // it again.
                Err(Error::NotFound(_) | Error::Closed) => return None,
                Err(error) if error.is_deleted_company() => return None,
                Err(error) => {
                    tracing::debug!(%error, delivery = %dispatch.delivery, "failed to record an attempt; trying again");
                    maybe_recorded |= matches!(error, Error::OutcomeUnknown);
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// An attempt that failed before anything was sent, by a fault on our side.
fn not_made(started_at: Time, reason: Reason, error: &str) -> Attempt {
    Attempt {
        started_at,
        reason,
        outcome: Outcome::Failed(Failure::Own),
        error: Some(error.to_owned()),
        timings: Timings::default(),
        address: None,
        excerpt: Vec::new(),
        excerpt_cut: false,
    }
}

/// The metrics of attempts, looked up once.
pub struct Meters {
    deliveries: Histogram,
    succeeded: Meter,
    retried: Meter,
    failed: Meter,
    own_fault: Meter,
}

struct Meter {
    attempts: Counter,
    seconds: Histogram,
}

impl Meters {
    pub fn new() -> Self {
        let meter = |outcome: &'static str| Meter {
            attempts: metric::DELIVERY_ATTEMPTS.counter([outcome.into()]),
            seconds: metric::DELIVERY_ATTEMPT_SECONDS.histogram([outcome.into()]),
        };
        Self {
            deliveries: metric::DELIVERY_SECONDS.histogram([]),
            succeeded: meter("succeeded"),
            retried: meter("retried"),
            failed: meter("failed"),
            own_fault: meter("own_fault"),
        }
    }

    fn count(&self, verdict: Verdict, micros: i64) {
        let Meter { attempts, seconds } = match verdict {
            Verdict::Succeeded => &self.succeeded,
            Verdict::Again => &self.retried,
            Verdict::Final => &self.failed,
            Verdict::NotCharged => &self.own_fault,
        };
        attempts.increment(1);
        seconds.record(duration(micros));
    }
}

fn duration(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

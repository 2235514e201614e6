//! Requests that wait for something to happen: a bounded number of them, until the service stops.

use std::sync::Arc;
use std::time::Duration;

use rapport_app::{App, Error};
use rapport_domain::id::CompanyId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::edge::shares::Shares;

/// Each waiting request has a connection, of which there are a few thousand.
const PLACES: usize = 1_000;
const PER_COMPANY: usize = 32;
/// What other nodes commit is noticed after this time.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A company that commits all the time doesn't make its readers look all the time.
const REST: Duration = Duration::from_millis(50);
const RETRY_SECONDS: u64 = 5;

pub struct Waiting {
    all: Arc<Semaphore>,
    companies: Shares<CompanyId>,
    stopping: CancellationToken,
}

/// A request that waits. Dropping it gives its place back.
pub struct Waiter {
    commits: watch::Receiver<()>,
    stopping: CancellationToken,
    _places: [OwnedSemaphorePermit; 2],
}

impl Waiting {
    /// Nobody waits any longer once the service stops.
    pub fn until(stopping: CancellationToken) -> Self {
        Self { all: Arc::new(Semaphore::new(PLACES)), companies: Shares::new(PER_COMPANY), stopping }
    }

    pub fn is_over(&self) -> bool {
        self.stopping.is_cancelled()
    }

    /// Takes a place. What is committed from now on is noticed.
    pub fn enter(&self, app: &App, company: CompanyId) -> Result<Waiter, Error> {
        let places = || {
            let own = self.companies.of(company).try_acquire_owned().ok()?;
            Some([own, Arc::clone(&self.all).try_acquire_owned().ok()?])
        };
        let places = places().ok_or_else(|| {
            let detail = format!("too many requests are waiting; a company can have {PER_COMPANY}");
            Error::too_many("too_many_waiting", detail, RETRY_SECONDS)
        })?;
        let commits = app.services().commits().listen(company);
        Ok(Waiter { commits, stopping: self.stopping.clone(), _places: places })
    }
}

impl Waiter {
    /// Waits until it makes sense to look again, at most until the deadline.
    pub async fn turn(&mut self, deadline: Instant) {
        let now = Instant::now();
        let look_at = deadline.min(now + LOOK_EVERY);
        tokio::select! {
            _ = self.commits.changed() => sleep_until(deadline.min(now + REST)).await,
            () = sleep_until(look_at) => {}
            () = self.stopping.cancelled() => {}
        }
        self.commits.mark_unchanged();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_company_has_a_share_of_the_places() {
        let waiting = Waiting::until(CancellationToken::new());
        let take = |company| waiting.companies.of(CompanyId(company)).try_acquire_owned().ok();
        let taken: Vec<_> = (0..PER_COMPANY).map(|_| take(1).expect("a place")).collect();
        assert!(take(1).is_none());
        assert!(take(2).is_some(), "another company has its own share");
        drop(taken);
        assert!(take(1).is_some());
    }
}

//! What the webhooks of each company select, kept in memory, because every event needs all of it.
//!
//! The database has a version of it (`rapport_store::subscription`), which each transaction reads. What a transaction
//! read is kept only once it has committed: it may have read what it, or another one of its group, takes back.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rapport_domain::id::CompanyId;
use rapport_store::subscription::{self, Subscriber};
use rapport_store::{Error, Tx};

/// Webhooks in memory, of all companies together: a few megabytes.
const MOST: usize = 50_000;

#[derive(Default)]
pub struct Subscribers(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    companies: HashMap<CompanyId, (i64, Arc<[Subscriber]>)>,
    webhooks: usize,
}

impl Subscribers {
    /// All webhooks of the company as subscribers of events.
    pub fn of(self: &Arc<Self>, tx: &mut Tx) -> Result<Arc<[Subscriber]>, Error> {
        let (company, version) = (tx.company(), subscription::version(tx)?);
        if let Some((kept, subscribers)) = self.0.lock().companies.get(&company)
            && *kept == version
        {
            return Ok(Arc::clone(subscribers));
        }
        let read: Arc<[Subscriber]> = subscription::subscribers(tx)?.into();
        let (kept, subscribers) = (Arc::clone(self), Arc::clone(&read));
        tx.after_commit(move || kept.0.lock().keep(company, version, subscribers));
        Ok(read)
    }
}

impl Kept {
    fn keep(&mut self, company: CompanyId, version: i64, subscribers: Arc<[Subscriber]>) {
        if self.webhooks + subscribers.len() > MOST {
            *self = Self::default();
        }
        self.webhooks += subscribers.len();
        if let Some((_, before)) = self.companies.insert(company, (version, subscribers)) {
            self.webhooks = self.webhooks.saturating_sub(before.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use rapport_domain::id::WebhookId;
    use rapport_domain::webhook::Selection;

    use super::*;

    fn some(count: usize) -> Arc<[Subscriber]> {
        let subscriber = Subscriber {
            id: WebhookId::from_bytes([1; 16]),
            selection: Selection::from_stored("account.created"),
            enabled: true,
            filter: None,
        };
        vec![subscriber; count].into()
    }

    #[test]
    fn memory_is_bounded_whatever_companies_and_versions_come() {
        let mut kept = Kept::default();
        for version in 1..=3 {
            kept.keep(CompanyId(1), version, some(MOST / 4));
        }
        assert_eq!((kept.companies.len(), kept.webhooks), (1, MOST / 4), "one version of a company");
        for company in 2..10 {
            kept.keep(CompanyId(company), 1, some(MOST / 4));
            let held: usize = kept.companies.values().map(|(_, subscribers)| subscribers.len()).sum();
            assert!(held <= MOST && held == kept.webhooks, "{held}");
        }
        kept.keep(CompanyId(11), 1, some(MOST + 1));
        assert_eq!(kept.companies.len(), 1, "the last one is kept, however many webhooks it has");
    }
}

//! Notifies listeners that this process committed something for a company. It doesn't say what: a listener
//! reads again. Commits by other nodes go unnoticed, so listeners also poll now and then.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use rapport_domain::id::CompanyId;
use tokio::sync::watch;

/// How many counters there are. Companies share them, so another company's commit may look like one of this company,
/// which costs a reader one more look.
const COUNTERS: usize = 256;

pub struct Commits {
    counters: Vec<AtomicU64>,
    /// Usually nobody listens, and then a commit only costs one load of this counter.
    listeners: AtomicUsize,
    companies: Mutex<HashMap<CompanyId, watch::Sender<()>>>,
}

impl Default for Commits {
    fn default() -> Self {
        let counters = (0..COUNTERS).map(|_| AtomicU64::new(0)).collect();
        Self { counters, listeners: AtomicUsize::new(0), companies: Mutex::default() }
    }
}

impl Commits {
    /// A number that is another one after each commit of the company. Who reads it before a snapshot can tell later
    /// whether this process has committed anything since.
    pub fn number(&self, company: CompanyId) -> u64 {
        self.counter(company).load(Ordering::Acquire)
    }

    fn counter(&self, company: CompanyId) -> &AtomicU64 {
        let place = usize::try_from(company.0).unwrap_or_default() % self.counters.len();
        &self.counters[place]
    }

    /// Changes at every commit of the company from now on.
    pub fn listen(&self, company: CompanyId) -> watch::Receiver<()> {
        let mut companies = self.companies.lock();
        companies.retain(|_, sender| sender.receiver_count() > 0);
        let receiver = companies.entry(company).or_default().subscribe();
        self.listeners.store(companies.len(), Ordering::Release);
        receiver
    }

    pub(crate) fn note(&self, company: CompanyId) {
        self.counter(company).fetch_add(1, Ordering::AcqRel);
        if self.listeners.load(Ordering::Acquire) == 0 {
            return;
        }
        if let Some(sender) = self.companies.lock().get(&company) {
            sender.send_replace(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_hear_of_their_own_company_only() {
        let commits = Commits::default();
        let (first, second) = (commits.listen(CompanyId(1)), commits.listen(CompanyId(2)));
        commits.note(CompanyId(1));
        assert!(first.has_changed().unwrap());
        assert!(!second.has_changed().unwrap());
    }

    #[test]
    fn a_commit_changes_the_number_of_its_company() {
        let commits = Commits::default();
        let numbers = || [1, 2].map(|company| commits.number(CompanyId(company)));
        let before = numbers();
        commits.note(CompanyId(1));
        let after = numbers();
        assert_ne!(before[0], after[0], "also while nobody listens");
        assert_eq!(before[1], after[1]);
    }

    #[test]
    fn companies_nobody_listens_to_are_forgotten() {
        let commits = Commits::default();
        drop(commits.listen(CompanyId(1)));
        let _listener = commits.listen(CompanyId(2));
        assert_eq!(commits.companies.lock().len(), 1);
    }
}

//! Notifies listeners that this process committed something for a company. It doesn't say what: a listener
//! reads again. Commits by other nodes go unnoticed, so listeners also poll now and then.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use rapport_domain::id::CompanyId;
use tokio::sync::watch;

#[derive(Default)]
pub struct Commits {
    /// Usually nobody listens, and then a commit only costs one load of this counter.
    listeners: AtomicUsize,
    companies: Mutex<HashMap<CompanyId, watch::Sender<()>>>,
}

impl Commits {
    /// Changes at every commit of the company from now on.
    pub fn listen(&self, company: CompanyId) -> watch::Receiver<()> {
        let mut companies = self.companies.lock();
        companies.retain(|_, sender| sender.receiver_count() > 0);
        let receiver = companies.entry(company).or_default().subscribe();
        self.listeners.store(companies.len(), Ordering::Release);
        receiver
    }

    pub(crate) fn note(&self, company: CompanyId) {
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
    fn companies_nobody_listens_to_are_forgotten() {
        let commits = Commits::default();
        drop(commits.listen(CompanyId(1)));
        let _listener = commits.listen(CompanyId(2));
        assert_eq!(commits.companies.lock().len(), 1);
    }
}

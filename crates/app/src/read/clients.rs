//! Clients that are due for contact, and how many each tab has.

use rapport_store::{Error, Query as _, Snapshot, clients};

use crate::read::CappedCount;

pub use rapport_store::clients::{Client, ClientPage, ListClients, Place, Tab};

/// A page of clients, and the number of clients in each tab.
pub struct Listed {
    pub page: ClientPage,
    /// In the order of [`Tab::ALL`].
    pub counts: [(Tab, CappedCount); 4],
}

/// Lists clients, and counts those of each tab up to `cap`.
pub fn list(snapshot: &mut Snapshot, question: &ListClients, cap: i64) -> Result<Listed, Error> {
    let mut count = |tab: Tab| {
        let counted = clients::count_up_to(snapshot, tab, question.now, cap);
        counted.map(|count| (tab, count))
    };
    let [overdue, soon, snoozed, tracked] = Tab::ALL;
    let counts = [count(overdue)?, count(soon)?, count(snoozed)?, count(tracked)?];
    Ok(Listed { page: question.run(snapshot)?, counts })
}

//! What every page shows around its content: the counts in the navigation, and whether the company will be deleted.

use rapport_domain::company_deletion::Deletion;
use rapport_store::clients::{self, Tab};
use rapport_store::{Error, Snapshot, company_deletion, webhook};

use crate::read::{CappedCount, Viewer};

/// Overdue clients are counted up to this number.
const MANY: i64 = 99;

#[derive(Debug, Clone)]
pub struct Counts {
    pub overdue: CappedCount,
    pub webhooks_off: usize,
    /// Set while the company waits to be deleted.
    pub deletion: Option<Deletion>,
}

pub fn counts(snapshot: &mut Snapshot, viewer: &Viewer) -> Result<Counts, Error> {
    let overdue = clients::count_up_to(snapshot, Tab::Overdue, viewer.now, MANY)?;
    let webhooks = webhook::list(snapshot)?;
    let webhooks_off = webhooks.iter().filter(|webhook| webhook.switch.is_auto_disabled()).count();
    Ok(Counts { overdue, webhooks_off, deletion: company_deletion::get(snapshot)? })
}

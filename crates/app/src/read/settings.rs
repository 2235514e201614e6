//! The effect of settings before they are saved.

use rapport_domain::caps;
use rapport_domain::invalid::Invalid;
use rapport_store::cadence_preview::difference;
use rapport_store::clients::{self, Tab};
use rapport_store::{Error, Snapshot};
use serde_json::{Map, Value};

use crate::read::{CappedCount, Viewer};

pub use rapport_store::cadence_preview::Difference;
pub use rapport_store::company_deletion::get as deletion;

/// Who is overdue now, and how new settings would change that.
pub struct CadencePage {
    pub overdue: CappedCount,
    /// The effect of the new settings, if there are any.
    pub preview: Option<Result<Difference, Invalid>>,
}

pub fn cadence_page(
    snapshot: &mut Snapshot,
    viewer: &Viewer,
    wanted: Option<&Map<String, Value>>,
) -> Result<CadencePage, Error> {
    let (current, now) = (viewer.settings(), viewer.now);
    let overdue = clients::count_up_to(snapshot, Tab::Overdue, now, caps::ON_A_PAGE)?;
    let preview = match wanted.map(|members| current.patched(members)) {
        Some(Ok(wanted)) => Some(Ok(difference(snapshot, current, &wanted, now)?)),
        Some(Err(invalid)) => Some(Err(invalid)),
        None => None,
    };
    Ok(CadencePage { overdue, preview })
}

//! The audit log.

use rapport_domain::audit::Filter;
use rapport_domain::id::AuditId;
use rapport_domain::invalid::Invalid;
use rapport_domain::member::Member;
use rapport_store::{Error, Snapshot, member};
use serde_json::{Map, Value};

use crate::read::{DEFAULT_LIMIT, Page, Viewer, with_zone};

pub use rapport_store::audit::{AuditEntry, list};

/// The filter that a person typed. A time without a zone is in the company's.
pub fn filter(viewer: &Viewer, mut typed: Map<String, Value>) -> Result<Filter, Invalid> {
    for name in ["from", "to"] {
        if let Some(Value::String(text)) = typed.get_mut(name) {
            *text = with_zone(text, viewer.zone());
        }
    }
    Filter::parse(&typed)
}

/// Everything that the page shows.
pub struct LogPage {
    /// The filter as it was understood.
    pub filter: Result<Filter, Invalid>,
    /// Newest first; none if the filter is invalid.
    pub entries: Page<AuditEntry>,
    /// The people whom the filter offers and the entries may name.
    pub members: Vec<Member>,
}

/// Reads a page with a filter as a person typed it.
pub fn log_page(
    snapshot: &mut Snapshot,
    viewer: &Viewer,
    typed: Map<String, Value>,
    before: Option<AuditId>,
) -> Result<LogPage, Error> {
    let filter = filter(viewer, typed);
    let entries = match &filter {
        Ok(filter) => list(snapshot, filter, before, DEFAULT_LIMIT)?,
        Err(_) => Page { items: Vec::new(), more: false },
    };
    Ok(LogPage { filter, entries, members: member::list(snapshot)? })
}

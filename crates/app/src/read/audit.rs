//! The audit log.

use rapport_domain::id::AuditId;
use rapport_domain::member::Member;
use rapport_store::{Error, Snapshot, member};

use crate::read::{DEFAULT_LIMIT, Page};

pub use rapport_store::audit::{AuditEntry, list};

/// A page of entries, newest first, and the members whom they may name.
pub fn page(
    snapshot: &mut Snapshot,
    before: Option<AuditId>,
) -> Result<(Page<AuditEntry>, Vec<Member>), Error> {
    Ok((list(snapshot, before, DEFAULT_LIMIT)?, member::list(snapshot)?))
}

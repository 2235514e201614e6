//! What arrives from a company's product: its keys, and the events that were rejected.

use rapport_domain::id::RejectId;
use rapport_store::{Error, Snapshot};

use crate::read::credential::{Keys, keys};
use crate::read::{DEFAULT_LIMIT, Page};

pub use rapport_store::ingest_reject::{Reject, list as rejects};

/// Everything the page of ingest shows.
pub fn page(snapshot: &mut Snapshot, before: Option<RejectId>) -> Result<(Keys, Page<Reject>), Error> {
    Ok((keys(snapshot)?, rejects(snapshot, before, DEFAULT_LIMIT)?))
}

//! The service itself, across all companies.

use rapport_store::{Across, Error, company};

pub use rapport_store::backlog::{Backlog, read as backlog};
pub use rapport_store::facts::{Facts, read as facts};

/// Whether the service has no company yet.
pub fn is_new(across: &mut Across) -> Result<bool, Error> {
    Ok(company::list(across)?.is_empty())
}

/// Reads as little as possible, to see whether reading works.
pub fn probe(across: &mut Across) -> Result<(), Error> {
    company::by_slug(across, "").map(|_| ())
}

//! Imports and their files.

use rapport_domain::id::ImportId;
use rapport_domain::import::Import;
use rapport_store::{Error, Snapshot, import_data};

pub use rapport_store::import::{get as one, list};

/// An import, and the first piece of its file.
pub fn with_beginning(snapshot: &mut Snapshot, id: ImportId) -> Result<Option<(Import, Vec<u8>)>, Error> {
    let Some(found) = one(snapshot, id)? else { return Ok(None) };
    Ok(Some((found, import_data::chunk(snapshot, id, 0)?.unwrap_or_default())))
}

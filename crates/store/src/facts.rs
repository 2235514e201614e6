//! Facts about the database for the System page.

use crate::error::Error;
use crate::tx::Across;

/// The database and its size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Its name and version.
    pub engine: String,
    pub bytes: i64,
}

pub fn read(across: &mut Across) -> Result<Facts, Error> {
    let row = across.facts()?.into_iter().next();
    let mut row = row.ok_or_else(|| Error::fault("the database returned no facts about itself"))?;
    Ok(Facts { engine: row.take()?, bytes: row.take()? })
}

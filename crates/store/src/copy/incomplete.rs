//! The mark on a target whose copy isn't complete: a `.part` file next to a SQLite file, a table on PostgreSQL.
//! A service that started there would be empty or have half of the data.

use std::path::Path;

use super::Error;
use super::part::part_of;
use crate::engine::{Database, Link};

pub const MARK_TABLE: &str = "copy_incomplete";

/// Refuses a file that a copy into it left incomplete, or is still writing.
pub(crate) fn refuse_file(path: &Path) -> Result<(), crate::Error> {
    let part = part_of(path);
    if !part.exists() {
        return Ok(());
    }
    let (path, part) = (path.display(), part.display());
    Err(crate::Error::Unavailable(format!(
        "a copy into {path} was interrupted or is still running: run it again, or delete {part}"
    )))
}

pub(crate) fn refuse_server(link: &mut Link) -> Result<(), crate::Error> {
    if !is_marked(link)? {
        return Ok(());
    }
    Err(crate::Error::Unavailable(format!(
        "a copy into this database was interrupted or is still running: run it again, or drop the table {MARK_TABLE}"
    )))
}

/// Refuses to copy from a database that is itself incomplete.
pub fn refuse_source(from: &Database) -> Result<(), Error> {
    match from {
        Database::Sqlite(path) => refuse_file(path)?,
        Database::Postgres(url) => {
            let mut link = Link::to(url, super::postgres::SESSION, None)?;
            link.connect()?;
            refuse_server(&mut link)?;
        }
    }
    Ok(())
}

fn is_marked(link: &mut Link) -> Result<bool, crate::Error> {
    let sql = format!("SELECT count(*) FROM pg_class WHERE oid = to_regclass('{MARK_TABLE}')");
    Ok(link.last_number(&sql)? == Some(1))
}

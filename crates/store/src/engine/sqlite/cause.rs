//! Explains why SQLite failed, and what to fix.

use std::path::Path;

use rusqlite::{ErrorCode, ffi};

use crate::error::Error;

pub fn from_sqlite(error: rusqlite::Error) -> Error {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::Busy,
        _ => match named(&error) {
            Some(cause) => Error::Unavailable(cause),
            None => Error::fault(error.to_string()),
        },
    }
}

/// The error for a database that can't be opened.
pub fn cannot_open(path: &Path, error: &rusqlite::Error) -> Error {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    if let Some(missing) = directory.filter(|directory| !directory.exists()) {
        return Error::Unavailable(format!("the directory {} does not exist", missing.display()));
    }
    Error::Unavailable(format!("{}: {}", path.display(), in_words(error)))
}

pub fn read_only(path: &Path) -> Error {
    let advice = "give the user that runs Rapport write access to it and its directory";
    Error::Unavailable(format!("{} is read-only: {advice}", path.display()))
}

/// The cause if we know it, otherwise SQLite's message.
pub fn in_words(error: &rusqlite::Error) -> String {
    named(error).unwrap_or_else(|| error.to_string())
}

/// Causes outside of our control: the disk, its permissions, memory.
fn named(error: &rusqlite::Error) -> Option<String> {
    let words = match error.sqlite_error_code()? {
        ErrorCode::DiskFull => "the disk is full",
        ErrorCode::ReadOnly => "the database file, its directory or the file system is read-only",
        ErrorCode::CannotOpen => "the database file or its log cannot be opened; is the directory writable?",
        ErrorCode::OutOfMemory => "out of memory",
        ErrorCode::SystemIoFailure => match error.sqlite_error()?.extended_code {
            ffi::SQLITE_IOERR_WRITE | ffi::SQLITE_IOERR_TRUNCATE | ffi::SQLITE_IOERR_SHMSIZE => {
                "a write to the disk failed; the disk, a quota or a file size limit may be exhausted"
            }
            ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC => "the disk failed to sync written data",
            ffi::SQLITE_IOERR_READ | ffi::SQLITE_IOERR_SHORT_READ => "a read from the disk failed",
            code => return Some(format!("{error} (code {code})")),
        },
        _ => return None,
    };
    Some(words.to_owned())
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    #[test]
    fn a_full_disk_is_called_that() {
        // SQLite reports the same error when a file may have no more pages and when the disk is full.
        let connection = Connection::open_in_memory().expect("opened");
        connection.execute_batch("PRAGMA max_page_count = 10").expect("limited");
        let full = connection.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (zeroblob(100000))");
        let full = full.expect_err("no room");
        assert_eq!(in_words(&full), "the disk is full");
        assert!(matches!(from_sqlite(full), Error::Unavailable(cause) if cause == "the disk is full"));
    }

    #[test]
    fn a_fault_of_ours_is_none_of_the_disk() {
        let connection = Connection::open_in_memory().expect("opened");
        let bad = connection.execute_batch("SELECT * FROM missing").expect_err("no such table");
        assert!(matches!(from_sqlite(bad), Error::Fault(text) if text.contains("missing")));
    }
}

//! The meaning of PostgreSQL's errors to a caller.

use tokio_postgres::Error as PgError;
use tokio_postgres::error::{DbError, Severity};

use crate::error::Error;

/// Includes the cause: the library's own text stops at "error connecting to server".
pub fn described(error: &PgError) -> String {
    let cause = std::error::Error::source(error);
    cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

/// Whether the server closes the connection after this error. At a COMMIT it doesn't say whether that was
/// before or after.
pub fn ends_the_session(error: &PgError) -> bool {
    let severity = error.as_db_error().and_then(DbError::parsed_severity);
    matches!(severity, Some(Severity::Fatal | Severity::Panic))
}

/// Whether another transaction was in the way, rather than a key that is taken.
pub fn is_blocked(error: &PgError) -> bool {
    error.code().is_some_and(|state| meaning(state.code()) == Meaning::Again)
}

pub fn classify(error: &PgError) -> Error {
    let Some(state) = error.code() else {
        return Error::Unavailable(described(error));
    };
    match meaning(state.code()) {
        Meaning::Again => Error::Again,
        Meaning::Taken => {
            tracing::warn!(%error, "a unique key was taken in the meantime; retrying the transaction");
            Error::Again
        }
        Meaning::Away => Error::Unavailable(described(error)),
        Meaning::Fault => {
            Error::fault(error.as_db_error().map_or_else(|| error.to_string(), ToString::to_string))
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// Another transaction was in the way.
    Again,
    /// Another transaction took a key between our read and our write: the next run will see it.
    Taken,
    /// The server can't do this for anyone right now: a caller may retry.
    Away,
    /// Our mistake: the same statement would fail again.
    Fault,
}

/// Follows the classes in appendix A of PostgreSQL's documentation.
fn meaning(code: &str) -> Meaning {
    match code {
        // Serialization failure, deadlock, lock not available.
        "40001" | "40P01" | "55P03" => Meaning::Again,
        "23505" => Meaning::Taken,
        // Read-only (a standby, or switched by an operator), and transactions that the server ended because
        // of their age; the others in this class are our mistakes. Revoked privileges. A database that is
        // being dropped, renamed or copied.
        "25006" | "25P03" | "25P04" | "42501" | "55006" => Meaning::Away,
        // Connections; wrong passwords and roles; no such database.
        _ if ["08", "28", "3D"].iter().any(|class| code.starts_with(class)) => Meaning::Away,
        // Resources (disk, memory, connections); cancelled, shut down, starting up; the server's own disk.
        _ if ["53", "57", "58"].iter().any(|class| code.starts_with(class)) => Meaning::Away,
        _ => Meaning::Fault,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_cannot_write_now_is_away_and_our_mistakes_are_faults() {
        let table = [
            ("25006", Meaning::Away),  // read_only_sql_transaction
            ("25P03", Meaning::Away),  // idle_in_transaction_session_timeout
            ("25P04", Meaning::Away),  // transaction_timeout
            ("25P02", Meaning::Fault), // in_failed_sql_transaction
            ("08006", Meaning::Away),  // connection_failure
            ("08P01", Meaning::Away),  // protocol_violation, as poolers say when they close
            ("28P01", Meaning::Away),  // invalid_password
            ("3D000", Meaning::Away),  // invalid_catalog_name
            ("42501", Meaning::Away),  // insufficient_privilege
            ("53100", Meaning::Away),  // disk_full
            ("53200", Meaning::Away),  // out_of_memory
            ("53300", Meaning::Away),  // too_many_connections
            ("53400", Meaning::Away),  // configuration_limit_exceeded
            ("55006", Meaning::Away),  // object_in_use
            ("57014", Meaning::Away),  // query_canceled
            ("57P01", Meaning::Away),  // admin_shutdown
            ("57P02", Meaning::Away),  // crash_shutdown
            ("57P03", Meaning::Away),  // cannot_connect_now
            ("57P04", Meaning::Away),  // database_dropped
            ("57P05", Meaning::Away),  // idle_session_timeout
            ("58030", Meaning::Away),  // io_error
            ("58P01", Meaning::Away),  // undefined_file
            ("40001", Meaning::Again), // serialization_failure
            ("40P01", Meaning::Again), // deadlock_detected
            ("55P03", Meaning::Again), // lock_not_available
            ("23505", Meaning::Taken), // unique_violation
            ("23503", Meaning::Fault), // foreign_key_violation
            ("22001", Meaning::Fault), // string_data_right_truncation
            ("42601", Meaning::Fault), // syntax_error
            ("42P01", Meaning::Fault), // undefined_table
            ("XX000", Meaning::Fault), // internal_error
        ];
        for (code, expected) in table {
            assert_eq!(meaning(code), expected, "{code}");
        }
    }
}

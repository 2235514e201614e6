//! Recognizes a connection pooler that gives every transaction another session.
//!
//! We need sessions: settings and prepared statements live in them, and the check on a silent connection
//! asks about its session. Such a pooler would break all of this, mostly without an error.

use std::time::Duration;

use super::super::link::Link;
use super::address::Address;
use crate::error::Error;

const SESSION: &str = "SET statement_timeout = '15s'";
const LIMIT: Duration = Duration::from_secs(17);
/// Two servers may use the same process id, but hardly start it in the same microsecond.
const IDENTITY: &str =
    "SELECT CONCAT(pid, ' ', backend_start) FROM pg_stat_activity WHERE pid = pg_backend_pid()";

/// Fails if the connection of this link isn't a session of the server.
///
/// A pooler that reuses the session that was free last gives the same one to a second connection. One that
/// takes turns gives another one to the next transaction.
pub fn refuse(link: &mut Link, address: &Address) -> Result<(), Error> {
    let first = identity(link)?;
    let mut second = Link::new(address, SESSION, Some(LIMIT))?;
    second.connect()?;
    let is_shared = identity(&mut second)? == first;
    if is_shared || identity(link)? != first || identity(link)? != first {
        return Err(Error::Unavailable(
            "it is behind a connection pooler in transaction mode, which gives every transaction another session, \
             and Rapport needs sessions that last: use the pooler's session mode (pool_mode = session in PgBouncer), \
             or connect to PostgreSQL directly"
                .to_owned(),
        ));
    }
    Ok(())
}

fn identity(link: &mut Link) -> Result<Option<String>, Error> {
    link.last_text(IDENTITY)
}

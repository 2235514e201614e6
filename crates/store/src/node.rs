//! Nodes: the processes that send. Each start is a new incarnation with its own number.
//!
//! `heartbeat_at` grows with every beat. Other nodes check whether it has changed, never how old it is: that
//! would compare the clocks of two machines.

use rapport_domain::time::Time;

use crate::error::Error;
use crate::statement::statements;
use crate::tx::{Across, Tx};
use crate::values;

statements! {
    reference REGISTER = "INSERT INTO node (started_at, heartbeat_at, identity) VALUES ($1, $1, $2) RETURNING id";
    // A node that was removed while it was silent comes back with its next beat.
    reference BEAT = "INSERT INTO node (id, started_at, heartbeat_at, identity) VALUES ($1, $2, $2, $3) \
                      ON CONFLICT (id) DO UPDATE SET heartbeat_at = \
                      CASE WHEN node.heartbeat_at < excluded.heartbeat_at THEN excluded.heartbeat_at \
                      ELSE node.heartbeat_at + 1 END";
    reference BEATS = "SELECT id, heartbeat_at FROM node";
    reference FORGET = "DELETE FROM node WHERE id = $1 AND heartbeat_at = $2";
    reference FORGET_FORMER = "DELETE FROM node WHERE identity = $1";
    reference FORGET_ALL = "DELETE FROM node";
}

/// The last recorded beat of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beat {
    pub node: i64,
    pub beat: i64,
}

pub fn register(tx: &mut Tx, identity: Option<&str>, now: Time) -> Result<i64, Error> {
    let row = tx.query_opt(&REGISTER, values![now, identity])?;
    row.ok_or_else(|| Error::fault("the new node got no number"))?.take()
}

pub fn beat(tx: &mut Tx, node: i64, identity: Option<&str>, now: Time) -> Result<(), Error> {
    tx.execute(&BEAT, values![node, now, identity])?;
    Ok(())
}

pub fn beats(across: &mut Across) -> Result<Vec<Beat>, Error> {
    let rows = across.query(&BEATS, &[])?.into_iter();
    rows.map(|mut row| Ok(Beat { node: row.take()?, beat: row.take()? })).collect()
}

/// Removes a node that hasn't beaten since it was checked.
pub fn forget(tx: &mut Tx, last: Beat) -> Result<(), Error> {
    tx.execute(&FORGET, values![last.node, last.beat])?;
    Ok(())
}

/// Removes the earlier incarnations of an identity. A node that isn't in the table counts as dead.
pub fn forget_former(tx: &mut Tx, identity: &str) -> Result<(), Error> {
    tx.execute(&FORGET_FORMER, values![identity])?;
    Ok(())
}

/// Removes every node; for a node that is proved to be the only one.
pub fn forget_all(tx: &mut Tx) -> Result<(), Error> {
    tx.execute(&FORGET_ALL, &[])?;
    Ok(())
}

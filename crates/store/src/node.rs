//! Nodes: the processes that send. Each start is a new incarnation with a number of its own.

use rapport_domain::time::Time;

use crate::error::Error;
use crate::statement::statements;
use crate::tx::{Across, Tx};
use crate::values;

statements! {
    reference REGISTER = "INSERT INTO node (started_at, heartbeat_at) VALUES ($1, $1) RETURNING id";
    reference BEAT = "UPDATE node SET heartbeat_at = $2 WHERE id = $1";
    reference ALIVE = "SELECT id FROM node WHERE heartbeat_at > $1";
    reference FORGET = "DELETE FROM node WHERE heartbeat_at < $1";
}

pub fn register(tx: &mut Tx, now: Time) -> Result<i64, Error> {
    let mut row = tx.query_opt(&REGISTER, values![now])?.ok_or_else(|| Error::fault("no node number"))?;
    row.take()
}

pub fn beat(tx: &mut Tx, node: i64, now: Time) -> Result<(), Error> {
    tx.execute(&BEAT, values![node, now])?;
    Ok(())
}

/// The nodes heard of since `since`.
pub fn alive(across: &mut Across, since: Time) -> Result<Vec<i64>, Error> {
    across.query(&ALIVE, values![since])?.into_iter().map(|mut row| row.take()).collect()
}

pub fn forget(tx: &mut Tx, before: Time) -> Result<(), Error> {
    tx.execute(&FORGET, values![before])?;
    Ok(())
}

//! Channels and promo codes.

use rapport_domain::channel::{Attribution, Channel, ChannelCode, ChannelRef, PromoCode};
use rapport_domain::id::ChannelId;
use rapport_domain::text::fold;
use rapport_domain::time::Time;

use crate::error::Error;
use crate::statement::statements;
use crate::tx::{Snapshot, Tx};
use crate::value::{Row, Value};
use crate::values;

statements! {
    company LIVE_CODES = "SELECT p.code_folded, p.code, c.id, c.name FROM promo_code p \
                          JOIN channel c ON c.company = p.company AND c.id = p.channel \
                          WHERE p.company = $1 AND p.archived_at IS NULL AND p.code_folded = ANY($2)";
    company LIST = "SELECT id, name, created_at FROM channel WHERE company = $1 ORDER BY id DESC";
    company GET = "SELECT id, name, created_at FROM channel WHERE company = $1 AND id = $2";
    company LOCK = "SELECT id, name, created_at FROM channel WHERE company = $1 AND id = $2 FOR UPDATE";
    company INSERT = "INSERT INTO channel (company, id, name, name_folded, created_at) VALUES ($1, $2, $3, $4, $5) \
                      ON CONFLICT (company, name_folded) DO NOTHING RETURNING id";
    company NAME_TAKEN = "SELECT id FROM channel WHERE company = $1 AND name_folded = $2 AND id <> $3";
    company RENAME = "UPDATE channel SET name = $3, name_folded = $4 WHERE company = $1 AND id = $2";
    company DELETE = "DELETE FROM channel WHERE company = $1 AND id = $2";
    company IN_USE = "SELECT id FROM account WHERE company = $1 AND channel = $2 LIMIT 1";
    company CODES = "SELECT channel, code, archived_at, created_at FROM promo_code \
                     WHERE company = $1 AND channel = $2 ORDER BY code_folded";
    company ALL_CODES = "SELECT channel, code, archived_at, created_at FROM promo_code \
                         WHERE company = $1 ORDER BY code_folded";
    company INSERT_CODE = "INSERT INTO promo_code (company, code_folded, code, channel, created_at, archived_at) \
                           VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (company, code_folded) DO NOTHING \
                           RETURNING code";
    company ARCHIVE_CODE = "UPDATE promo_code SET archived_at = $4 WHERE company = $1 AND code_folded = $2 \
                            AND channel = $3";
    company DELETE_CODE = "DELETE FROM promo_code WHERE company = $1 AND code_folded = $2 AND channel = $3";
    company DELETE_CODES = "DELETE FROM promo_code WHERE company = $1 AND channel = $2";
}

/// The attributions of the live codes among these (folded), by folded code.
pub fn attributions(snapshot: &mut Snapshot, folded: &[String]) -> Result<Vec<(String, Attribution)>, Error> {
    let keys: Vec<Value> = folded.iter().map(Value::from).collect();
    let rows = snapshot.query_keys(&LIVE_CODES, &[], &keys)?;
    rows.into_iter()
        .map(|mut row| {
            let folded = row.take()?;
            let code = PromoCode::from_stored(row.take()?);
            let channel = ChannelRef { id: row.take()?, name: row.take()? };
            Ok((folded, Attribution { code, channel }))
        })
        .collect()
}

pub fn list(snapshot: &mut Snapshot) -> Result<Vec<Channel>, Error> {
    snapshot.query(&LIST, &[])?.into_iter().map(read).collect()
}

pub fn get(snapshot: &mut Snapshot, id: ChannelId) -> Result<Option<Channel>, Error> {
    snapshot.query_opt(&GET, values![&id])?.map(read).transpose()
}

pub fn lock(tx: &mut Tx, id: ChannelId) -> Result<Option<Channel>, Error> {
    tx.query_opt(&LOCK, values![&id])?.map(read).transpose()
}

/// Returns `false` if the name is taken.
pub fn insert(tx: &mut Tx, channel: &Channel) -> Result<bool, Error> {
    let folded = fold(&channel.name);
    let row = tx.query_opt(&INSERT, values![&channel.id, &channel.name, &folded, channel.created_at])?;
    Ok(row.is_some())
}

/// Returns `false` if the name is taken.
pub fn rename(tx: &mut Tx, id: ChannelId, name: &str) -> Result<bool, Error> {
    let folded = fold(name);
    if tx.query_opt(&NAME_TAKEN, values![&folded, &id])?.is_some() {
        return Ok(false);
    }
    tx.execute(&RENAME, values![&id, name, &folded])?;
    Ok(true)
}

pub fn is_in_use(snapshot: &mut Snapshot, id: ChannelId) -> Result<bool, Error> {
    Ok(snapshot.query_opt(&IN_USE, values![&id])?.is_some())
}

/// Removes the channel and its codes.
pub fn delete(tx: &mut Tx, id: ChannelId) -> Result<(), Error> {
    tx.execute(&DELETE_CODES, values![&id])?;
    tx.execute(&DELETE, values![&id])?;
    Ok(())
}

pub fn codes(snapshot: &mut Snapshot, channel: ChannelId) -> Result<Vec<ChannelCode>, Error> {
    snapshot.query(&CODES, values![&channel])?.into_iter().map(read_code).collect()
}

pub fn all_codes(snapshot: &mut Snapshot) -> Result<Vec<ChannelCode>, Error> {
    snapshot.query(&ALL_CODES, &[])?.into_iter().map(read_code).collect()
}

/// Returns `false` if the company already has the code, including archived ones.
pub fn insert_code(tx: &mut Tx, code: &ChannelCode) -> Result<bool, Error> {
    let folded = code.code.folded();
    let ChannelCode { channel, code, archived_at, created_at } = code;
    let row =
        tx.query_opt(&INSERT_CODE, values![&folded, code.as_str(), channel, *created_at, *archived_at])?;
    Ok(row.is_some())
}

pub fn archive_code(
    tx: &mut Tx,
    channel: ChannelId,
    code: &PromoCode,
    archived_at: Option<Time>,
) -> Result<bool, Error> {
    Ok(tx.execute(&ARCHIVE_CODE, values![&code.folded(), &channel, archived_at])? > 0)
}

pub fn delete_code(tx: &mut Tx, channel: ChannelId, code: &PromoCode) -> Result<bool, Error> {
    Ok(tx.execute(&DELETE_CODE, values![&code.folded(), &channel])? > 0)
}

fn read(mut row: Row) -> Result<Channel, Error> {
    Ok(Channel { id: row.take()?, name: row.take()?, created_at: row.take()? })
}

fn read_code(mut row: Row) -> Result<ChannelCode, Error> {
    Ok(ChannelCode {
        channel: row.take()?,
        code: PromoCode::from_stored(row.take()?),
        archived_at: row.take()?,
        created_at: row.take()?,
    })
}

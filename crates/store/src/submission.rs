//! Requests that were already done: forms that were submitted, and requests with a key, whose responses are kept.

use rapport_domain::id::{FormId, ResponseId, lowest_at};
use rapport_domain::repeat::RequestHash;
use rapport_domain::time::Time;

use crate::error::Error;
use crate::statement::statements;
use crate::tx::{Snapshot, Tx};
use crate::value::Value;
use crate::values;

statements! {
    company INSERT = "INSERT INTO submission (company, form) VALUES ($1, $2) \
                      ON CONFLICT (company, form) DO NOTHING RETURNING form";
    company PRUNE = "DELETE FROM submission WHERE company = $1 AND form < $2";
    company KEPT = "SELECT request, status, body, secret, at FROM kept_response WHERE company = $1 AND id = $2";
    company COUNT_SHARE = "SELECT count(*) FROM (SELECT id FROM kept_response WHERE company = $1 AND id >= $2 \
                           AND id <= $3 LIMIT $4) AS share";
    // Replaces a response only if it is forgotten.
    company KEEP = "INSERT INTO kept_response (company, id, request, status, body, secret, at) \
                    VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (company, id) DO UPDATE SET \
                    request = excluded.request, status = excluded.status, body = excluded.body, \
                    secret = excluded.secret, at = excluded.at WHERE kept_response.at <= $8 RETURNING id";
    company OLD = "SELECT id FROM kept_response WHERE company = $1 AND at <= $2 ORDER BY at LIMIT $3";
    // The sum keeps the index by time out: the ids are few.
    company FORGET = "DELETE FROM kept_response WHERE company = $1 AND at + 0 <= $2 AND id = ANY($3)";
}

/// Claims a form for the transaction; returns `false` if it was submitted before.
pub fn take(tx: &mut Tx, form: FormId) -> Result<bool, Error> {
    Ok(tx.query_opt(&INSERT, values![&form])?.is_some())
}

/// Deletes the forms that were shown before `cutoff`: their ids begin with the time.
pub fn prune(tx: &mut Tx, cutoff: Time) -> Result<(), Error> {
    tx.execute(&PRUNE, values![&lowest_at::<FormId>(cutoff)])?;
    Ok(())
}

/// The request that a key was used for, and its response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptResponse {
    pub request: Vec<u8>,
    pub status: i64,
    /// `None` if it is in `secret`, or was too large to keep.
    pub body: Option<String>,
    /// The body, sealed.
    pub secret: Option<Vec<u8>>,
}

/// The response that is kept, unless it is from `forgotten` or before.
pub fn kept(snapshot: &mut Snapshot, id: ResponseId, forgotten: Time) -> Result<Option<KeptResponse>, Error> {
    let Some(mut row) = snapshot.query_opt(&KEPT, values![&id])? else { return Ok(None) };
    let found =
        KeptResponse { request: row.take()?, status: row.take()?, body: row.take()?, secret: row.take()? };
    let at: Time = row.take()?;
    Ok((at > forgotten).then_some(found))
}

/// How many responses the company keeps in the share of this one: those whose ids have the same first byte. Counted up to
/// `limit`.
pub fn count_share(snapshot: &mut Snapshot, id: ResponseId, limit: i64) -> Result<i64, Error> {
    let (mut first, mut last) = ([0; 16], [u8::MAX; 16]);
    (first[0], last[0]) = (id.as_bytes()[0], id.as_bytes()[0]);
    let (first, last) = (ResponseId::from_bytes(first), ResponseId::from_bytes(last));
    snapshot.query_opt(&COUNT_SHARE, values![&first, &last, limit])?.map_or(Ok(0), |mut row| row.take())
}

/// Keeps a response; returns `false` if another transaction has kept one for the same key in the meantime. Then this one
/// must not be committed.
pub fn keep(
    tx: &mut Tx,
    id: ResponseId,
    request: &RequestHash,
    (status, body, secret): (i64, Option<&str>, Option<&[u8]>),
    (now, forgotten): (Time, Time),
) -> Result<bool, Error> {
    let values = values![&id, request.as_bytes().as_slice(), status, body, secret, now, forgotten];
    Ok(tx.query_opt(&KEEP, values)?.is_some())
}

/// Deletes some responses that were kept at `forgotten` or before; returns how many.
pub fn forget(tx: &mut Tx, forgotten: Time, limit: i64) -> Result<usize, Error> {
    let rows = tx.query(&OLD, values![forgotten, limit])?;
    let old: Vec<ResponseId> = rows.into_iter().map(|mut row| row.take()).collect::<Result<_, _>>()?;
    let keys: Vec<Value> = old.iter().map(Value::from).collect();
    tx.execute_keys(&FORGET, values![forgotten], &keys)?;
    Ok(old.len())
}

//! The latest rejected activity events, for people to look at: a small bounded number per company.

use rapport_domain::id::{RejectId, lowest_at};
use rapport_domain::time::Time;

use crate::error::Error;
use crate::page::Page;
use crate::statement::{InsertMany, statements};
use crate::tx::{Snapshot, Tx};
use crate::value::{Type, Value};
use crate::values;

statements! {
    company LIST = "SELECT id, at, place, account, kind, code, field, detail FROM ingest_reject \
                    WHERE company = $1 AND id < $2 ORDER BY id DESC LIMIT $3";
    // Skips the rows to keep by their key; older ones are deleted.
    company OLDEST_KEPT = "SELECT id FROM ingest_reject WHERE company = $1 ORDER BY id DESC LIMIT 1 OFFSET $2";
    company DELETE_BEFORE = "DELETE FROM ingest_reject WHERE company = $1 AND id < $2";
}

pub(crate) static INSERT: InsertMany = InsertMany::new(
    "ingest_reject",
    &[
        ("id", Type::Bytes),
        ("at", Type::Int),
        ("place", Type::Int),
        ("account", Type::Text),
        ("kind", Type::Text),
        ("code", Type::Text),
        ("field", Type::Text),
        ("detail", Type::Text),
    ],
    "",
);

/// A rejected event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reject {
    pub id: RejectId,
    /// When its batch arrived.
    pub at: Time,
    /// Its position in the batch.
    pub place: i64,
    /// The id it gave for its account, if any.
    pub account: Option<String>,
    pub kind: Option<String>,
    pub code: String,
    pub field: String,
    pub detail: String,
}

/// Stores some and deletes all but the newest `kept`.
pub fn insert(tx: &mut Tx, rejects: &[Reject], kept: i64) -> Result<(), Error> {
    let mut rows = Vec::with_capacity(rejects.len() * INSERT.width());
    for reject in rejects {
        rows.extend::<[Value; 8]>([
            (&reject.id).into(),
            reject.at.into(),
            reject.place.into(),
            reject.account.as_deref().into(),
            reject.kind.as_deref().into(),
            (&reject.code).into(),
            (&reject.field).into(),
            (&reject.detail).into(),
        ]);
    }
    tx.insert(&INSERT, &rows)?;
    let oldest: Option<RejectId> =
        tx.query_opt(&OLDEST_KEPT, values![kept - 1])?.map(|mut row| row.take()).transpose()?;
    if let Some(oldest) = oldest {
        tx.execute(&DELETE_BEFORE, values![&oldest])?;
    }
    Ok(())
}

/// Newest first, before `before` if given.
pub fn list(snapshot: &mut Snapshot, before: Option<RejectId>, limit: i64) -> Result<Page<Reject>, Error> {
    let before = before.unwrap_or(RejectId::from_bytes([0xff; 16]));
    let rows = snapshot.query(&LIST, values![&before, limit + 1])?;
    let rejects = rows.into_iter().map(|mut row| {
        Ok(Reject {
            id: row.take()?,
            at: row.take()?,
            place: row.take()?,
            account: row.take()?,
            kind: row.take()?,
            code: row.take()?,
            field: row.take()?,
            detail: row.take()?,
        })
    });
    Ok(Page::from_one_more(rejects.collect::<Result<Vec<_>, Error>>()?, limit))
}

/// Deletes those stored before `cutoff`.
pub fn prune(tx: &mut Tx, cutoff: Time) -> Result<(), Error> {
    tx.execute(&DELETE_BEFORE, values![&lowest_at::<RejectId>(cutoff)])?;
    Ok(())
}

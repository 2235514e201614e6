//! The outbox: events with their frozen payload, written in the transaction that caused them.

use rapport_domain::event::{Event, Kind};
use rapport_domain::id::{AccountId, EventId};

use crate::error::Error;
use crate::statement::{InsertMany, statements};
use crate::tx::{Snapshot, Tx};
use crate::value::{Row, Type, Value};
use crate::values;

statements! {
    company OF_ACCOUNT = "SELECT id, kind, account, coalesce(payload, ''), created_at FROM event \
                          WHERE company = $1 AND account = $2 ORDER BY id";
    company LATEST = "SELECT id, kind, account, coalesce(payload, ''), created_at FROM event \
                      WHERE company = $1 AND id < $2 ORDER BY id DESC LIMIT $3";
    company GET = "SELECT id, kind, account, coalesce(payload, ''), created_at FROM event \
                   WHERE company = $1 AND id = $2";
}

pub(crate) static INSERT: InsertMany = InsertMany::numbered(
    "event",
    &[
        ("id", Type::Bytes),
        ("kind", Type::Text),
        ("account", Type::Bytes),
        ("payload", Type::Text),
        ("created_at", Type::Int),
    ],
    "",
);

pub fn insert(tx: &mut Tx, events: &[Event]) -> Result<(), Error> {
    let mut rows = Vec::with_capacity(events.len() * INSERT.width());
    for event in events {
        rows.extend::<[Value; 5]>([
            (&event.id).into(),
            event.kind.as_str().into(),
            event.account.as_ref().into(),
            (&event.payload).into(),
            event.created_at.into(),
        ]);
    }
    tx.insert(&INSERT, &rows)?;
    Ok(())
}

pub fn get(snapshot: &mut Snapshot, id: EventId) -> Result<Option<Event>, Error> {
    snapshot.query_opt(&GET, values![&id])?.map(read).transpose()
}

/// Every event of an account, oldest first.
pub fn of_account(snapshot: &mut Snapshot, account: AccountId) -> Result<Vec<Event>, Error> {
    snapshot.query(&OF_ACCOUNT, values![&account])?.into_iter().map(read).collect()
}

/// The latest events of the company, newest first. An erased payload is empty.
pub fn latest(snapshot: &mut Snapshot, limit: i64) -> Result<Vec<Event>, Error> {
    let after_all = EventId::from_bytes([0xff; 16]);
    snapshot.query(&LATEST, values![&after_all, limit])?.into_iter().map(read).collect()
}

fn read(mut row: Row) -> Result<Event, Error> {
    Ok(Event {
        id: row.take()?,
        kind: Kind::parse(&row.take::<String>()?).ok_or_else(|| Error::fault("an unknown kind of event"))?,
        account: row.take()?,
        payload: row.take()?,
        created_at: row.take()?,
    })
}

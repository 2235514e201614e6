//! Contact recorded on accounts.

use rapport_domain::contact::{Contact, Kind};
use rapport_domain::history::Actor;
use rapport_domain::id::{AccountId, ContactId};
use rapport_domain::time::Time;

use crate::error::Error;
use crate::page::Page;
use crate::statement::{InsertMany, statements};
use crate::tx::{Snapshot, Tx};
use crate::value::{Row, Type, Value};
use crate::values;

statements! {
    company GET = "SELECT id, account, kind, note, actor_kind, actor_id, actor_name, occurred_at, created_at \
                   FROM contact WHERE company = $1 AND account = $2 AND id = $3";
    company LATEST = "SELECT occurred_at FROM contact /*INDEXED BY contact_by_time*/ WHERE company = $1 \
                      AND account = $2 ORDER BY occurred_at DESC, id DESC LIMIT 1";
    company UPDATE = "UPDATE contact SET kind = $4, note = $5, occurred_at = $6 \
                      WHERE company = $1 AND account = $2 AND id = $3";
    company DELETE_ONE = "DELETE FROM contact WHERE company = $1 AND account = $2 AND id = $3";
    company OF_ACCOUNT = "SELECT id, account, kind, note, actor_kind, actor_id, actor_name, occurred_at, created_at \
                          FROM contact /*INDEXED BY contact_by_time*/ WHERE company = $1 AND account = $2 \
                          AND (occurred_at, id) < ($3, $4) ORDER BY occurred_at DESC, id DESC LIMIT $5";
    company DELETE = "DELETE FROM contact WHERE company = $1 AND account = $2";
}

pub(crate) static INSERT: InsertMany = InsertMany::new(
    "contact",
    &[
        ("account", Type::Bytes),
        ("id", Type::Bytes),
        ("kind", Type::Text),
        ("note", Type::Text),
        ("actor_kind", Type::Text),
        ("actor_id", Type::Bytes),
        ("actor_name", Type::Text),
        ("occurred_at", Type::Int),
        ("created_at", Type::Int),
    ],
    "",
);

pub fn insert(tx: &mut Tx, contact: &Contact) -> Result<(), Error> {
    let row: [Value; 9] = [
        (&contact.account).into(),
        (&contact.id).into(),
        contact.kind.as_str().into(),
        contact.note.as_deref().into(),
        contact.actor.kind().into(),
        contact.actor.id_bytes().map(<[u8; 16]>::as_slice).into(),
        contact.actor.name().into(),
        contact.occurred_at.into(),
        contact.created_at.into(),
    ];
    tx.insert(&INSERT, &row)?;
    Ok(())
}

pub fn get(snapshot: &mut Snapshot, account: AccountId, id: ContactId) -> Result<Option<Contact>, Error> {
    snapshot.query_opt(&GET, values![&account, &id])?.map(read).transpose()
}

/// When an account's latest contact was.
pub fn latest(snapshot: &mut Snapshot, account: AccountId) -> Result<Option<Time>, Error> {
    snapshot.query_opt(&LATEST, values![&account])?.map(|mut row| row.take()).transpose()
}

/// Writes back what a correction can change.
pub fn update(tx: &mut Tx, contact: &Contact) -> Result<(), Error> {
    let Contact { account, id, kind, note, occurred_at, .. } = contact;
    tx.execute(&UPDATE, values![account, id, kind.as_str(), note.as_deref(), *occurred_at])?;
    Ok(())
}

pub fn delete(tx: &mut Tx, contact: &Contact) -> Result<(), Error> {
    tx.execute(&DELETE_ONE, values![&contact.account, &contact.id])?;
    Ok(())
}

/// An account's contacts, latest first by when they occurred, before `before` if given.
pub fn of_account(
    snapshot: &mut Snapshot,
    account: AccountId,
    before: Option<(Time, ContactId)>,
    limit: i64,
) -> Result<Page<Contact>, Error> {
    let (at, id) = before.unwrap_or((Time::from_micros(i64::MAX), ContactId::from_bytes([0xff; 16])));
    let rows = snapshot.query(&OF_ACCOUNT, values![&account, at, &id, limit + 1])?;
    let contacts = rows.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::from_one_more(contacts, limit))
}

pub(crate) fn delete_of_account(tx: &mut Tx, account: AccountId) -> Result<u64, Error> {
    tx.execute(&DELETE, values![&account])
}

pub(crate) fn read_kind(text: &str) -> Result<Kind, Error> {
    Kind::parse(text).map_err(|_| Error::fault("an unknown kind of contact in a column"))
}

fn read(mut row: Row) -> Result<Contact, Error> {
    let row = &mut row;
    Ok(Contact {
        id: row.take()?,
        account: row.take()?,
        kind: read_kind(&row.take::<String>()?)?,
        note: row.take()?,
        actor: Actor::from_parts(&row.take::<String>()?, row.take()?, row.take()?),
        occurred_at: row.take()?,
        created_at: row.take()?,
    })
}

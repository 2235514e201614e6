//! Notes on accounts.

use rapport_domain::history::Actor;
use rapport_domain::id::{AccountId, NoteId};
use rapport_domain::note::Note;

use crate::error::Error;
use crate::page::Page;
use crate::statement::{InsertMany, statements};
use crate::tx::{Snapshot, Tx};
use crate::value::{Row, Type, Value};
use crate::values;

statements! {
    company GET = "SELECT id, account, text, pinned, author_kind, author_id, author_name, created_at FROM note \
                   WHERE company = $1 AND account = $2 AND id = $3";
    company OF_ACCOUNT = "SELECT id, account, text, pinned, author_kind, author_id, author_name, created_at FROM note \
                          WHERE company = $1 AND account = $2 AND id < $3 ORDER BY id DESC LIMIT $4";
    company PINNED = "SELECT id, account, text, pinned, author_kind, author_id, author_name, created_at FROM note \
                      /*INDEXED BY note_pinned*/ WHERE company = $1 AND account = $2 AND pinned = 1 \
                      ORDER BY id DESC LIMIT $3";
    company UPDATE = "UPDATE note SET text = $4, pinned = $5 WHERE company = $1 AND account = $2 AND id = $3";
    company DELETE_ONE = "DELETE FROM note WHERE company = $1 AND account = $2 AND id = $3";
    company DELETE = "DELETE FROM note WHERE company = $1 AND account = $2";
}

pub(crate) static INSERT: InsertMany = InsertMany::new(
    "note",
    &[
        ("account", Type::Bytes),
        ("id", Type::Bytes),
        ("text", Type::Text),
        ("pinned", Type::Int),
        ("author_kind", Type::Text),
        ("author_id", Type::Bytes),
        ("author_name", Type::Text),
        ("created_at", Type::Int),
    ],
    "",
);

pub fn insert(tx: &mut Tx, note: &Note) -> Result<(), Error> {
    let row: [Value; 8] = [
        (&note.account).into(),
        (&note.id).into(),
        (&note.text).into(),
        note.pinned.into(),
        note.author.kind().into(),
        note.author.id_bytes().map(<[u8; 16]>::as_slice).into(),
        note.author.name().into(),
        note.created_at.into(),
    ];
    tx.insert(&INSERT, &row)?;
    Ok(())
}

pub fn get(snapshot: &mut Snapshot, account: AccountId, id: NoteId) -> Result<Option<Note>, Error> {
    snapshot.query_opt(&GET, values![&account, &id])?.map(read).transpose()
}

/// An account's notes, newest first, before `before` if given.
pub fn of_account(
    snapshot: &mut Snapshot,
    account: AccountId,
    before: Option<NoteId>,
    limit: i64,
) -> Result<Page<Note>, Error> {
    let before = before.unwrap_or(NoteId::from_bytes([0xff; 16]));
    let rows = snapshot.query(&OF_ACCOUNT, values![&account, &before, limit + 1])?;
    let notes = rows.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::from_one_more(notes, limit))
}

/// The newest pinned notes.
pub fn pinned(snapshot: &mut Snapshot, account: AccountId, limit: i64) -> Result<Vec<Note>, Error> {
    snapshot.query(&PINNED, values![&account, limit])?.into_iter().map(read).collect()
}

pub fn update(tx: &mut Tx, note: &Note) -> Result<(), Error> {
    tx.execute(&UPDATE, values![&note.account, &note.id, &note.text, note.pinned])?;
    Ok(())
}

pub fn delete(tx: &mut Tx, note: &Note) -> Result<(), Error> {
    tx.execute(&DELETE_ONE, values![&note.account, &note.id])?;
    Ok(())
}

pub(crate) fn delete_of_account(tx: &mut Tx, account: AccountId) -> Result<u64, Error> {
    tx.execute(&DELETE, values![&account])
}

fn read(mut row: Row) -> Result<Note, Error> {
    let row = &mut row;
    Ok(Note {
        id: row.take()?,
        account: row.take()?,
        text: row.take()?,
        pinned: row.take()?,
        author: Actor::from_parts(&row.take::<String>()?, row.take()?, row.take()?),
        created_at: row.take()?,
    })
}

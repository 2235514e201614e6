//! Corrections of contacts, messages and notes. What was deleted is kept here until it can't be restored any more.

use std::collections::HashMap;

use rapport_domain::correction::{Act, Content, Correction, Entry, Kept, Kind, Mark};
use rapport_domain::history::Actor;
use rapport_domain::id::{AccountId, CorrectionId, lowest_at};
use rapport_domain::time::Time;

use crate::error::Error;
use crate::page::Page;
use crate::statement::{InsertMany, statements};
use crate::tx::{Snapshot, Tx};
use crate::value::{Row, Type, Value};
use crate::values;

/// The columns of a correction in the order that `read` takes them.
macro_rules! select_correction {
    ($rest:literal) => {
        concat!(
            "SELECT id, account, entry_kind, entry, act, author_kind, author_id, author_name, at, actor_kind, ",
            "actor_id, actor_name, fields, was, became, undone_at, undone_kind, undone_id, undone_name FROM correction ",
            $rest
        )
    };
}

statements! {
    company GET = select_correction!("WHERE company = $1 AND account = $2 AND id = $3");
    company OF_ACCOUNT = select_correction!(
        "WHERE company = $1 AND account = $2 AND id < $3 ORDER BY id DESC LIMIT $4"
    );
    company EDITS = "SELECT entry, at, actor_kind, actor_id, actor_name FROM correction \
                     /*INDEXED BY correction_by_entry*/ WHERE company = $1 AND account = $2 AND act = 'edited' \
                     AND undone_at IS NULL AND entry = ANY($3)";
    company UNDO = "UPDATE correction SET undone_at = $4, undone_kind = $5, undone_id = $6, undone_name = $7 \
                    WHERE company = $1 AND account = $2 AND id = $3";
    company OLD = "SELECT account, id FROM correction /*INDEXED BY correction_kept*/ WHERE company = $1 AND kept = 1 \
                   AND id < $2 ORDER BY id LIMIT $3";
    company FORGET = "UPDATE correction SET was = NULL, became = NULL, kept = 0 \
                      WHERE company = $1 AND account = $2 AND id = $3";
    company FORGET_ALL = "UPDATE correction SET was = NULL, became = NULL, kept = 0 \
                          WHERE company = $1 AND account = $2 AND kept = 1";
    company DELETE = "DELETE FROM correction WHERE company = $1 AND account = $2";
}

pub(crate) static INSERT: InsertMany = InsertMany::new(
    "correction",
    &[
        ("account", Type::Bytes),
        ("id", Type::Bytes),
        ("entry_kind", Type::Text),
        ("entry", Type::Bytes),
        ("act", Type::Text),
        ("author_kind", Type::Text),
        ("author_id", Type::Bytes),
        ("author_name", Type::Text),
        ("actor_kind", Type::Text),
        ("actor_id", Type::Bytes),
        ("actor_name", Type::Text),
        ("fields", Type::Text),
        ("was", Type::Text),
        ("became", Type::Text),
        ("kept", Type::Int),
        ("at", Type::Int),
    ],
    "",
);

/// A correction that was just made.
pub fn insert(tx: &mut Tx, correction: &Correction) -> Result<(), Error> {
    let Correction { id, account, entry, act, author, done, fields, kept, .. } = correction;
    let json = |content: &Content| (!content.is_empty()).then(|| serde_json::json!(content).to_string());
    let (was, became) = match kept {
        Some(Kept { was, became }) => (json(was), json(became)),
        None => (None, None),
    };
    let fields = fields.join(",");
    let row: [Value; 16] = [
        account.into(),
        id.into(),
        entry.kind().as_str().into(),
        entry.id_bytes().as_slice().into(),
        act.as_str().into(),
        author.kind().into(),
        author.id_bytes().map(<[u8; 16]>::as_slice).into(),
        author.name().into(),
        done.by.kind().into(),
        done.by.id_bytes().map(<[u8; 16]>::as_slice).into(),
        done.by.name().into(),
        fields.as_str().into(),
        was.as_deref().into(),
        became.as_deref().into(),
        kept.is_some().into(),
        done.at.into(),
    ];
    tx.insert(&INSERT, &row)?;
    Ok(())
}

pub fn get(
    snapshot: &mut Snapshot,
    account: AccountId,
    id: CorrectionId,
) -> Result<Option<Correction>, Error> {
    snapshot.query_opt(&GET, values![&account, &id])?.map(read).transpose()
}

/// An account's corrections, newest first, before `before` if given.
pub fn of_account(
    snapshot: &mut Snapshot,
    account: AccountId,
    before: Option<CorrectionId>,
    limit: i64,
) -> Result<Page<Correction>, Error> {
    let before = before.unwrap_or(CorrectionId::from_bytes([0xff; 16]));
    let rows = snapshot.query(&OF_ACCOUNT, values![&account, &before, limit + 1])?;
    let found = rows.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::from_one_more(found, limit))
}

/// The last edits of entries that count, by the id of the entry.
pub type Edits = HashMap<[u8; 16], Mark>;

/// When and by whom each of these entries was last edited.
pub fn last_edits(snapshot: &mut Snapshot, account: AccountId, entries: &[Entry]) -> Result<Edits, Error> {
    let keys: Vec<Value> = entries.iter().map(|entry| entry.id_bytes().as_slice().into()).collect();
    let mut edits = Edits::new();
    for mut row in snapshot.query_keys(&EDITS, values![&account], &keys)? {
        let entry: [u8; 16] = row.take()?;
        let at = row.take()?;
        let mark = Mark { at, by: Actor::from_parts(&row.take::<String>()?, row.take()?, row.take()?) };
        if edits.get(&entry).is_none_or(|known| known.at <= at) {
            edits.insert(entry, mark);
        }
    }
    Ok(edits)
}

/// Notes that a correction was undone. It has nothing to keep then.
pub fn undo(tx: &mut Tx, correction: &Correction, by: &Mark) -> Result<(), Error> {
    let Correction { account, id, .. } = correction;
    let actor = by.by.id_bytes().map(<[u8; 16]>::as_slice);
    tx.execute(&UNDO, values![account, id, by.at, by.by.kind(), actor, by.by.name()])?;
    tx.execute(&FORGET, values![account, id])?;
    Ok(())
}

/// Forgets what some corrections from before `cutoff` removed; returns how many.
pub fn forget(tx: &mut Tx, cutoff: Time, limit: i64) -> Result<usize, Error> {
    let old = tx.query(&OLD, values![&lowest_at::<CorrectionId>(cutoff), limit])?;
    let count = old.len();
    for mut row in old {
        let (account, id): (AccountId, CorrectionId) = (row.take()?, row.take()?);
        tx.execute(&FORGET, values![&account, &id])?;
    }
    Ok(count)
}

/// Forgets what all corrections of an account removed; returns how many.
pub fn forget_of_account(tx: &mut Tx, account: AccountId) -> Result<u64, Error> {
    tx.execute(&FORGET_ALL, values![&account])
}

pub(crate) fn delete_of_account(tx: &mut Tx, account: AccountId) -> Result<u64, Error> {
    tx.execute(&DELETE, values![&account])
}

fn read(mut row: Row) -> Result<Correction, Error> {
    let row = &mut row;
    let (id, account) = (row.take()?, row.take()?);
    let kind = Kind::parse(&row.take::<String>()?).ok_or_else(|| Error::fault("an unknown kind of entry"))?;
    Ok(Correction {
        id,
        account,
        entry: Entry::from_parts(kind, row.take()?),
        act: Act::parse(&row.take::<String>()?)
            .ok_or_else(|| Error::fault("an unknown kind of correction"))?,
        author: actor(row)?,
        done: Mark { at: row.take()?, by: actor(row)? },
        fields: row.take::<String>()?.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
        kept: match (row.take::<Option<String>>()?, row.take::<Option<String>>()?) {
            (Some(was), became) => {
                Some(Kept { was: content(&was)?, became: content(&became.unwrap_or_default())? })
            }
            (None, _) => None,
        },
        undone: match (row.take::<Option<Time>>()?, row.take::<Option<String>>()?, row.take()?, row.take()?) {
            (Some(at), Some(kind), id, name) => Some(Mark { at, by: Actor::from_parts(&kind, id, name) }),
            _ => None,
        },
    })
}

fn actor(row: &mut Row) -> Result<Actor, Error> {
    Ok(Actor::from_parts(&row.take::<String>()?, row.take()?, row.take()?))
}

fn content(text: &str) -> Result<Content, Error> {
    if text.is_empty() {
        return Ok(Content::new());
    }
    serde_json::from_str(text).map_err(|_| Error::fault("what a correction keeps is not JSON"))
}

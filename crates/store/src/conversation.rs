//! Conversations of accounts.

use rapport_domain::conversation::{Conversation, ThreadMark};
use rapport_domain::id::{AccountId, ConversationId};
use rapport_domain::time::Time;

use crate::error::Error;
use crate::page::Page;
use crate::statement::statements;
use crate::tx::{Snapshot, Tx};
use crate::value::Row;
use crate::values;

statements! {
    company GET = "SELECT id, account, subject, channel, message_count, last_message_at, created_at \
                   FROM conversation WHERE company = $1 AND id = $2";
    company LOCK = "SELECT id, account, subject, channel, message_count, last_message_at, created_at \
                    FROM conversation WHERE company = $1 AND id = $2 FOR UPDATE";
    company OF_ACCOUNT = "SELECT id, account, subject, channel, message_count, last_message_at, created_at \
                          FROM conversation WHERE company = $1 AND account = $2 AND (last_message_at, id) < ($3, $4) \
                          ORDER BY last_message_at DESC, id DESC LIMIT $5";
    company BY_THREAD = "SELECT id FROM conversation /*INDEXED BY conversation_by_thread*/ WHERE company = $1 \
                         AND account = $2 AND thread = $3 ORDER BY last_message_at DESC, id DESC LIMIT 1";
    company INSERT = "INSERT INTO conversation (company, id, account, subject, channel, thread, message_count, \
                      last_message_at, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    company UPDATE = "UPDATE conversation SET message_count = $3, last_message_at = $4 \
                      WHERE company = $1 AND id = $2";
    company DELETE = "DELETE FROM conversation WHERE company = $1 AND account = $2";
}

pub fn get(snapshot: &mut Snapshot, id: ConversationId) -> Result<Option<Conversation>, Error> {
    snapshot.query_opt(&GET, values![&id])?.map(read).transpose()
}

/// Locks the conversation. Lock its account first.
pub fn lock(tx: &mut Tx, id: ConversationId) -> Result<Option<Conversation>, Error> {
    tx.query_opt(&LOCK, values![&id])?.map(read).transpose()
}

/// An account's conversations, latest message first, after the position `before` if given.
pub fn of_account(
    snapshot: &mut Snapshot,
    account: AccountId,
    before: Option<(Time, ConversationId)>,
    limit: i64,
) -> Result<Page<Conversation>, Error> {
    let first = (Time::from_micros(i64::MAX), ConversationId::from_bytes([0xff; 16]));
    let (at, id) = before.unwrap_or(first);
    let rows = snapshot.query(&OF_ACCOUNT, values![&account, at, &id, limit + 1])?;
    let found = rows.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::from_one_more(found, limit))
}

/// The account's newest email conversation with this subject.
pub fn by_thread(
    snapshot: &mut Snapshot,
    account: AccountId,
    thread: ThreadMark,
) -> Result<Option<ConversationId>, Error> {
    let mark = thread.as_bytes().as_slice();
    snapshot.query_opt(&BY_THREAD, values![&account, mark])?.map(|mut row| row.take()).transpose()
}

pub fn insert(tx: &mut Tx, conversation: &Conversation) -> Result<(), Error> {
    let Conversation { id, account, subject, channel, message_count, last_message_at, created_at } =
        conversation;
    let thread = conversation.thread();
    let thread = thread.as_ref().map(|mark| mark.as_bytes().as_slice());
    let subject = subject.as_deref();
    tx.execute(
        &INSERT,
        values![id, account, subject, channel, thread, *message_count, *last_message_at, *created_at],
    )?;
    Ok(())
}

/// Writes back the columns that a new message changes.
pub fn update(tx: &mut Tx, conversation: &Conversation) -> Result<(), Error> {
    let Conversation { id, message_count, last_message_at, .. } = conversation;
    tx.execute(&UPDATE, values![id, *message_count, *last_message_at])?;
    Ok(())
}

pub(crate) fn delete_of_account(tx: &mut Tx, account: AccountId) -> Result<u64, Error> {
    tx.execute(&DELETE, values![&account])
}

fn read(mut row: Row) -> Result<Conversation, Error> {
    let row = &mut row;
    Ok(Conversation {
        id: row.take()?,
        account: row.take()?,
        subject: row.take()?,
        channel: row.take()?,
        message_count: row.take()?,
        last_message_at: row.take()?,
        created_at: row.take()?,
    })
}

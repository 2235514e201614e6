//! Messages of conversations.

use rapport_domain::conversation::{Direction, Message, Sender};
use rapport_domain::history::Actor;
use rapport_domain::id::{AccountId, ConversationId, MessageId};
use rapport_domain::sender_check::{Method, SenderCheck};
use rapport_domain::time::Time;

use crate::error::Error;
use crate::page::Page;
use crate::statement::{InsertMany, statements};
use crate::tx::{Snapshot, Tx};
use crate::value::{Row, Type, Value};
use crate::values;

/// The columns of a message in the order that `read` takes them.
macro_rules! select_message {
    ($rest:literal) => {
        concat!(
            "SELECT id, conversation, account, direction, channel, subject, body, body_truncated, author_kind, ",
            "author_id, author_name, sender_address, sender_name, sender_check, sender_relay, attachments, automatic, ",
            "occurred_at, created_at ",
            "FROM message ",
            $rest
        )
    };
}

statements! {
    company SIZES = "SELECT body_bytes FROM message /*INDEXED BY message_by_conversation*/ WHERE company = $1 \
                     AND conversation = $2 AND (occurred_at, id) < ($3, $4) \
                     ORDER BY occurred_at DESC, id DESC LIMIT $5";
    company OF_CONVERSATION = select_message!(
        "/*INDEXED BY message_by_conversation*/ WHERE company = $1 AND conversation = $2 \
         AND (occurred_at, id) < ($3, $4) ORDER BY occurred_at DESC, id DESC LIMIT $5"
    );
    company GET = select_message!("WHERE company = $1 AND id = $2");
    company LATEST = "SELECT occurred_at FROM message /*INDEXED BY message_by_conversation*/ WHERE company = $1 \
                      AND conversation = $2 ORDER BY occurred_at DESC, id DESC LIMIT 1";
    company LATEST_CONTACT = "SELECT occurred_at FROM message /*INDEXED BY message_by_account*/ WHERE company = $1 \
                              AND account = $2 AND direction = 'outbound' AND automatic = 0 \
                              ORDER BY occurred_at DESC, id DESC LIMIT 1";
    company UPDATE = "UPDATE message SET direction = $3, channel = $4, subject = $5, body = $6, body_bytes = $7, \
                      occurred_at = $8 WHERE company = $1 AND id = $2";
    company DELETE_ONE = "DELETE FROM message WHERE company = $1 AND id = $2";
    company DELETE = "DELETE FROM message WHERE company = $1 AND account = $2";
}

pub(crate) static INSERT: InsertMany = InsertMany::new(
    "message",
    &[
        ("id", Type::Bytes),
        ("conversation", Type::Bytes),
        ("account", Type::Bytes),
        ("direction", Type::Text),
        ("channel", Type::Text),
        ("subject", Type::Text),
        ("body", Type::Text),
        ("body_bytes", Type::Int),
        ("body_truncated", Type::Int),
        ("author_kind", Type::Text),
        ("author_id", Type::Bytes),
        ("author_name", Type::Text),
        ("sender_address", Type::Text),
        ("sender_name", Type::Text),
        ("sender_check", Type::Text),
        ("sender_relay", Type::Text),
        ("attachments", Type::Text),
        ("automatic", Type::Int),
        ("occurred_at", Type::Int),
        ("created_at", Type::Int),
    ],
    "",
);

/// The `sender_check` of a sender who wasn't verified.
const UNVERIFIED: &str = "none";

/// The total size of the bodies on one page; a page of long messages ends early.
pub const MAX_PAGE_BYTES: i64 = 4 << 20;

/// A position in the list: the time and id of a message.
pub type Place = (Time, MessageId);

pub fn insert(tx: &mut Tx, message: &Message) -> Result<(), Error> {
    let sender = message.sender.as_ref();
    let check = message.sender_check.as_ref();
    let row: [Value; 20] = [
        (&message.id).into(),
        (&message.conversation).into(),
        (&message.account).into(),
        message.direction.as_str().into(),
        (&message.channel).into(),
        message.subject.as_deref().into(),
        (&message.body).into(),
        i64::try_from(message.body.len()).unwrap_or(i64::MAX).into(),
        message.body_truncated.into(),
        message.author.kind().into(),
        message.author.id_bytes().map(<[u8; 16]>::as_slice).into(),
        message.author.name().into(),
        sender.map(|sender| sender.address.as_str()).into(),
        sender.and_then(|sender| sender.name.as_deref()).into(),
        check.map(|check| check.method.map_or(UNVERIFIED, Method::as_str)).into(),
        check.map(|check| check.relay.as_str()).into(),
        message.attachments.as_deref().into(),
        message.automatic.into(),
        message.occurred_at.into(),
        message.created_at.into(),
    ];
    tx.insert(&INSERT, &row)?;
    Ok(())
}

pub fn get(snapshot: &mut Snapshot, id: MessageId) -> Result<Option<Message>, Error> {
    snapshot.query_opt(&GET, values![&id])?.map(read).transpose()
}

/// When a conversation's latest message was.
pub fn latest(snapshot: &mut Snapshot, conversation: ConversationId) -> Result<Option<Time>, Error> {
    snapshot.query_opt(&LATEST, values![&conversation])?.map(|mut row| row.take()).transpose()
}

/// When the latest message was that counts as contact with an account.
pub fn latest_contact(snapshot: &mut Snapshot, account: AccountId) -> Result<Option<Time>, Error> {
    snapshot.query_opt(&LATEST_CONTACT, values![&account])?.map(|mut row| row.take()).transpose()
}

/// Writes back what a correction can change.
pub fn update(tx: &mut Tx, message: &Message) -> Result<(), Error> {
    let Message { id, direction, channel, subject, body, occurred_at, .. } = message;
    let bytes = i64::try_from(body.len()).unwrap_or(i64::MAX);
    tx.execute(
        &UPDATE,
        values![id, direction.as_str(), channel, subject.as_deref(), body, bytes, *occurred_at],
    )?;
    Ok(())
}

pub fn delete(tx: &mut Tx, message: &Message) -> Result<(), Error> {
    tx.execute(&DELETE_ONE, values![&message.id])?;
    Ok(())
}

/// A conversation's messages, newest first, after the position `before` if given.
pub fn of_conversation(
    snapshot: &mut Snapshot,
    conversation: ConversationId,
    before: Option<Place>,
    limit: i64,
) -> Result<Page<Message>, Error> {
    let (at, id) = before.unwrap_or((Time::from_micros(i64::MAX), MessageId::from_bytes([0xff; 16])));
    let sizes = snapshot.query(&SIZES, values![&conversation, at, &id, limit + 1])?;
    let sizes: Vec<i64> = sizes.into_iter().map(|mut row| row.take()).collect::<Result<_, _>>()?;
    let fitting = fitting(&sizes, limit);
    let rows = snapshot.query(&OF_CONVERSATION, values![&conversation, at, &id, fitting])?;
    let items = rows.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(Page { more: sizes.len() > items.len(), items })
}

/// How many of these fit on a page: up to `limit` and the maximum size, but at least one.
fn fitting(sizes: &[i64], limit: i64) -> i64 {
    let mut bytes = 0;
    let fits = sizes.iter().take_while(|size| {
        bytes += **size;
        bytes <= MAX_PAGE_BYTES
    });
    i64::try_from(fits.count()).unwrap_or(limit).clamp(1, limit)
}

pub(crate) fn delete_of_account(tx: &mut Tx, account: AccountId) -> Result<u64, Error> {
    tx.execute(&DELETE, values![&account])
}

fn read(mut row: Row) -> Result<Message, Error> {
    let row = &mut row;
    Ok(Message {
        id: row.take()?,
        conversation: row.take()?,
        account: row.take()?,
        direction: direction(&row.take::<String>()?)?,
        channel: row.take()?,
        subject: row.take()?,
        body: row.take()?,
        body_truncated: row.take()?,
        author: Actor::from_parts(&row.take::<String>()?, row.take()?, row.take()?),
        sender: match (row.take::<Option<String>>()?, row.take()?) {
            (Some(address), name) => Some(Sender { address, name }),
            (None, _) => None,
        },
        sender_check: match (row.take::<Option<String>>()?, row.take()?) {
            (Some(method), Some(relay)) => Some(SenderCheck { relay, method: Method::parse(&method) }),
            _ => None,
        },
        attachments: row.take()?,
        automatic: row.take()?,
        occurred_at: row.take()?,
        created_at: row.take()?,
    })
}

pub(crate) fn direction(text: &str) -> Result<Direction, Error> {
    Direction::parse(text).map_err(|_| Error::fault("a message's direction is not valid"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_long_messages_ends_early_but_never_stands_still() {
        let half = MAX_PAGE_BYTES / 2;
        for (sizes, limit, fits) in [
            (vec![], 50, 1),
            (vec![10, 10, 10], 2, 2),
            (vec![half, half, 1], 50, 2),
            (vec![half, half + 1, 1], 50, 1),
            (vec![MAX_PAGE_BYTES * 2, 1], 50, 1),
        ] {
            assert_eq!(fitting(&sizes, limit), fits, "{sizes:?}");
        }
    }
}

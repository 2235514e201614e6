//! The Message-IDs of logged mails: none is logged twice, and replies find their conversation.

use rapport_domain::id::{AccountId, ConversationId, MessageId};
use rapport_domain::inbound::MailMark;

use crate::error::Error;
use crate::statement::statements;
use crate::tx::{Snapshot, Tx};
use crate::value::{Row, Value};
use crate::values;

statements! {
    company FIND = "SELECT mark, account, conversation, message FROM mail_reference \
                    WHERE company = $1 AND mark = ANY($2)";
    company INSERT = "INSERT INTO mail_reference (company, mark, account, conversation, message) \
                      VALUES ($1, $2, $3, $4, $5) ON CONFLICT (company, mark) DO NOTHING RETURNING mark";
    company DELETE = "DELETE FROM mail_reference WHERE company = $1 AND account = $2";
}

/// Where a mail was logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Logged {
    pub account: AccountId,
    pub conversation: ConversationId,
    pub message: MessageId,
}

/// Those of the marks that are in use.
pub fn find(snapshot: &mut Snapshot, marks: &[MailMark]) -> Result<Vec<(MailMark, Logged)>, Error> {
    let keys: Vec<Value> = marks.iter().map(|mark| Value::Bytes(mark.as_bytes())).collect();
    snapshot.query_keys(&FIND, &[], &keys)?.into_iter().map(read).collect()
}

/// Claims a mark; returns `false` if it is in use.
pub fn insert(tx: &mut Tx, mark: MailMark, logged: &Logged) -> Result<bool, Error> {
    let Logged { account, conversation, message } = logged;
    let mark = mark.as_bytes().as_slice();
    Ok(tx.query_opt(&INSERT, values![mark, account, conversation, message])?.is_some())
}

pub(crate) fn delete_of_account(tx: &mut Tx, account: AccountId) -> Result<(), Error> {
    tx.execute(&DELETE, values![&account])?;
    Ok(())
}

fn read(mut row: Row) -> Result<(MailMark, Logged), Error> {
    let mark: Vec<u8> = row.take()?;
    let mark = mark.try_into().map_err(|_| Error::fault("expected 32 bytes in a column"))?;
    let logged = Logged { account: row.take()?, conversation: row.take()?, message: row.take()? };
    Ok((MailMark::from_bytes(mark), logged))
}

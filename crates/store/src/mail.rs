//! Mail: written in the transaction that causes it, claimed for sending, settled. Secrets are stored only
//! encrypted, and are deleted once their mail is sent or given up.

use rapport_domain::id::{CompanyId, MailId, PersonId, lowest_at};
use rapport_domain::mail::{Kind, State};
use rapport_domain::member::Email;
use rapport_domain::time::Time;

use crate::error::Error;
use crate::page::Page;
use crate::statement::{InsertMany, statements};
use crate::tx::{Across, Snapshot, Tx};
use crate::value::{Row, Type, Value};
use crate::values;

statements! {
    company INSERT_CONTENT = "INSERT INTO mail_content (company, id, subject, plain, html, secret) \
                              VALUES ($1, $2, $3, $4, $5, $6)";
    company CONTENT = "SELECT id, subject, plain, html, secret FROM mail_content WHERE company = $1 AND id = $2";
    company DUE = "SELECT m.id, m.kind, m.person, m.recipient, m.attempts, m.not_after, \
                   c.id, c.subject, c.plain, c.html, c.secret FROM mail m /*INDEXED BY mail_waiting*/ \
                   JOIN mail_content c ON c.company = m.company AND c.id = m.content \
                   WHERE m.company = $1 AND m.state = 0 AND m.next_at <= $2 \
                   ORDER BY m.next_at, m.id LIMIT $3 FOR UPDATE OF m SKIP LOCKED";
    company TAKE = "UPDATE mail SET next_at = $2, attempts = attempts + 1 WHERE company = $1 AND id = ANY($3)";
    company SETTLE = "UPDATE mail SET state = $4, next_at = $5, error = $6, finished_at = $7 \
                      WHERE company = $1 AND id = $2 AND attempts = $3 AND state = 0";
    company FORGET_SECRET = "UPDATE mail_content SET secret = NULL WHERE company = $1 AND id = $2 \
                             AND secret IS NOT NULL";
    // Its secret was replaced by a newer one, so the link in this mail would not work.
    company WITHDRAW = "UPDATE mail SET state = 2, error = $4, finished_at = $5 \
                        WHERE company = $1 AND kind = $2 AND recipient = $3 AND state = 0 RETURNING content";
    company LIST = "SELECT m.id, m.kind, m.recipient, c.subject, m.state, m.attempts, m.next_at, m.error, \
                    m.created_at, m.finished_at FROM mail m \
                    JOIN mail_content c ON c.company = m.company AND c.id = m.content \
                    WHERE m.company = $1 AND m.id < $2 ORDER BY m.id DESC LIMIT $3";
    company STATES = "SELECT state, count(*) FROM mail WHERE company = $1 AND content = $2 GROUP BY state";
    company OLD = "SELECT id FROM mail WHERE company = $1 AND id < $2 ORDER BY id LIMIT $3";
    company DELETE = "DELETE FROM mail WHERE company = $1 AND id = ANY($2)";
    company OLD_CONTENTS = "SELECT id FROM mail_content WHERE company = $1 AND id < $2 ORDER BY id LIMIT $3";
    company DELETE_CONTENTS = "DELETE FROM mail_content WHERE company = $1 AND id = ANY($2)";
    reference COMPANIES_DUE = "SELECT DISTINCT company FROM mail WHERE state = 0 AND next_at <= $1";
}

const CONTENT_SLACK_SECONDS: i64 = 60;
const WAITING: i64 = 0;
const SENT: i64 = 1;
const FAILED: i64 = 2;

const COLUMNS: &[(&str, Type)] = &[
    ("id", Type::Bytes),
    ("kind", Type::Text),
    ("person", Type::Bytes),
    ("recipient", Type::Text),
    ("content", Type::Bytes),
    ("state", Type::Int),
    ("attempts", Type::Int),
    ("next_at", Type::Int),
    ("not_after", Type::Int),
    ("created_at", Type::Int),
];

pub(crate) static INSERT: InsertMany = InsertMany::new("mail", COLUMNS, "");

/// The content of one or more mails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    pub id: MailId,
    pub subject: String,
    pub plain: String,
    pub html: String,
    /// The secret of its link, encrypted.
    pub secret: Option<Vec<u8>>,
}

/// A new mail.
#[derive(Debug, Clone)]
pub struct NewMail {
    pub id: MailId,
    pub kind: Kind,
    /// If set, it is sent only while this person is an active member.
    pub person: Option<PersonId>,
    pub recipient: Email,
    pub content: MailId,
    pub not_after: Time,
    pub created_at: Time,
}

pub fn insert_content(tx: &mut Tx, content: &Content) -> Result<(), Error> {
    let Content { id, subject, plain, html, secret } = content;
    tx.execute(&INSERT_CONTENT, values![id, subject, plain, html, secret.as_deref()])?;
    Ok(())
}

pub fn content(snapshot: &mut Snapshot, id: MailId) -> Result<Option<Content>, Error> {
    snapshot.query_opt(&CONTENT, values![&id])?.map(|mut row| read_content(&mut row)).transpose()
}

pub fn insert(tx: &mut Tx, mails: &[NewMail]) -> Result<(), Error> {
    let mut rows = Vec::with_capacity(mails.len() * INSERT.width());
    for mail in mails {
        rows.extend::<[Value; 10]>([
            (&mail.id).into(),
            mail.kind.as_str().into(),
            mail.person.as_ref().into(),
            mail.recipient.as_str().into(),
            (&mail.content).into(),
            WAITING.into(),
            0.into(),
            mail.created_at.into(),
            mail.not_after.into(),
            mail.created_at.into(),
        ]);
    }
    tx.insert(&INSERT, &rows)?;
    Ok(())
}

/// A mail that is due.
#[derive(Debug, Clone)]
pub struct DueMail {
    pub id: MailId,
    pub kind: Kind,
    pub person: Option<PersonId>,
    pub recipient: Email,
    /// The number of earlier attempts; claiming it adds one.
    pub attempts: i64,
    pub not_after: Time,
    pub content: Content,
}

/// Locks some mails that are due, skipping those that another node has locked.
pub fn lock_due(tx: &mut Tx, now: Time, limit: i64) -> Result<Vec<DueMail>, Error> {
    let rows = tx.query(&DUE, values![now, limit])?;
    rows.into_iter()
        .map(|mut row| {
            let row = &mut row;
            Ok(DueMail {
                id: row.take()?,
                kind: read_kind(row)?,
                person: row.take()?,
                recipient: Email::from_stored(row.take()?),
                attempts: row.take()?,
                not_after: row.take()?,
                content: read_content(row)?,
            })
        })
        .collect()
}

/// Claims mails for one attempt each; they are due again when the lease ends.
pub fn take(tx: &mut Tx, ids: &[MailId], lease_ends: Time) -> Result<(), Error> {
    let keys: Vec<Value> = ids.iter().map(Value::from).collect();
    tx.execute_keys(&TAKE, values![lease_ends], &keys)?;
    Ok(())
}

/// The result of an attempt to send a mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled<'a> {
    Sent,
    Retry { at: Time, error: &'a str },
    Failed { error: &'a str },
}

/// Records how an attempt ended, unless a later one was made in the meantime; returns whether it did.
pub fn settle(tx: &mut Tx, id: MailId, attempts: i64, settled: Settled, now: Time) -> Result<bool, Error> {
    let (state, next_at, error, finished_at) = match settled {
        Settled::Sent => (SENT, now, None, Some(now)),
        Settled::Retry { at, error } => (WAITING, at, Some(error), None),
        Settled::Failed { error } => (FAILED, now, Some(error), Some(now)),
    };
    Ok(tx.execute(&SETTLE, values![&id, attempts, state, next_at, error, finished_at])? > 0)
}

pub fn forget_secret(tx: &mut Tx, content: MailId) -> Result<(), Error> {
    tx.execute(&FORGET_SECRET, values![&content])?;
    Ok(())
}

/// Cancels waiting mails of a kind to an address, because their link no longer works.
pub fn withdraw(tx: &mut Tx, kind: Kind, recipient: &Email, error: &str, now: Time) -> Result<(), Error> {
    for mut row in tx.query(&WITHDRAW, values![kind.as_str(), recipient.as_str(), error, now])? {
        forget_secret(tx, row.take()?)?;
    }
    Ok(())
}

/// The companies with mails that are due.
pub fn companies_due(across: &mut Across, now: Time) -> Result<Vec<CompanyId>, Error> {
    across.query(&COMPANIES_DUE, values![now])?.into_iter().map(|mut row| row.take()).collect()
}

/// A mail as shown, without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    pub id: MailId,
    pub kind: Kind,
    pub recipient: Email,
    pub subject: String,
    pub state: State,
    pub attempts: i64,
    /// When it will be tried next, while it is waiting.
    pub next_at: Option<Time>,
    pub error: Option<String>,
    pub created_at: Time,
    pub finished_at: Option<Time>,
}

/// Newest first, before `before` if given.
pub fn list(snapshot: &mut Snapshot, before: Option<MailId>, limit: i64) -> Result<Page<Mail>, Error> {
    let before = before.unwrap_or(MailId::from_bytes([0xff; 16]));
    let rows = snapshot.query(&LIST, values![&before, limit + 1])?;
    let mails = rows.into_iter().map(|mut row| {
        let row = &mut row;
        let (id, kind, recipient, subject) = (row.take()?, read_kind(row)?, row.take()?, row.take()?);
        let state = read_state(row.take()?);
        let (attempts, next_at) = (row.take()?, row.take()?);
        Ok(Mail {
            id,
            kind,
            recipient: Email::from_stored(recipient),
            subject,
            state,
            attempts,
            next_at: Some(next_at).filter(|_| state == State::Waiting),
            error: row.take()?,
            created_at: row.take()?,
            finished_at: row.take()?,
        })
    });
    Ok(Page::from_one_more(mails.collect::<Result<Vec<_>, Error>>()?, limit))
}

/// The number of mails with one content in each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    pub waiting: i64,
    pub sent: i64,
    pub failed: i64,
}

pub fn counts(snapshot: &mut Snapshot, content: MailId) -> Result<Counts, Error> {
    let mut counts = Counts::default();
    for mut row in snapshot.query(&STATES, values![&content])? {
        let (state, count): (i64, i64) = (row.take()?, row.take()?);
        match read_state(state) {
            State::Waiting => counts.waiting = count,
            State::Sent => counts.sent = count,
            State::Failed => counts.failed = count,
        }
    }
    Ok(counts)
}

/// Deletes some mails created before `cutoff`, whatever their state; returns how many.
pub fn prune(tx: &mut Tx, cutoff: Time, limit: i64) -> Result<usize, Error> {
    let removed = prune_by(tx, &OLD, &DELETE, cutoff, limit)?;
    if removed > 0 {
        return Ok(removed);
    }
    // A content is created just before its mails, so it is deleted a little later than they are.
    prune_by(tx, &OLD_CONTENTS, &DELETE_CONTENTS, cutoff.plus_seconds(-CONTENT_SLACK_SECONDS), limit)
}

fn prune_by(
    tx: &mut Tx,
    old: &'static crate::Statement,
    delete: &'static crate::Statement,
    cutoff: Time,
    limit: i64,
) -> Result<usize, Error> {
    let rows = tx.query(old, values![&lowest_at::<MailId>(cutoff), limit])?;
    let old: Vec<MailId> = rows.into_iter().map(|mut row| row.take()).collect::<Result<_, _>>()?;
    let keys: Vec<Value> = old.iter().map(Value::from).collect();
    tx.execute_keys(delete, &[], &keys)?;
    Ok(old.len())
}

fn read_content(row: &mut Row) -> Result<Content, Error> {
    Ok(Content {
        id: row.take()?,
        subject: row.take()?,
        plain: row.take()?,
        html: row.take()?,
        secret: row.take()?,
    })
}

fn read_kind(row: &mut Row) -> Result<Kind, Error> {
    Kind::parse(&row.take::<String>()?).ok_or_else(|| Error::fault("an unknown kind of mail"))
}

const fn read_state(state: i64) -> State {
    match state {
        WAITING => State::Waiting,
        SENT => State::Sent,
        _ => State::Failed,
    }
}

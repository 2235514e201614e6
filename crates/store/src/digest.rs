//! Weekly digests: one row per company and ISO week, and when the schedule last changed.

use rapport_domain::digest::Week;
use rapport_domain::id::MailId;
use rapport_domain::time::Time;

use crate::error::Error;
use crate::page::Page;
use crate::statement::statements;
use crate::tx::{Snapshot, Tx};
use crate::value::Row;
use crate::values;

statements! {
    company INSERT = "INSERT INTO digest (company, year, week, content, overdue, created_at) \
                      VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (company, year, week) DO NOTHING RETURNING week";
    company GET = "SELECT d.year, d.week, d.content, c.subject, d.overdue, d.created_at FROM digest d \
                   JOIN mail_content c ON c.company = d.company AND c.id = d.content \
                   WHERE d.company = $1 AND d.year = $2 AND d.week = $3";
    company LIST = "SELECT d.year, d.week, d.content, c.subject, d.overdue, d.created_at FROM digest d \
                    JOIN mail_content c ON c.company = d.company AND c.id = d.content \
                    WHERE d.company = $1 AND (d.year < $2 OR (d.year = $2 AND d.week < $3)) \
                    ORDER BY d.year DESC, d.week DESC LIMIT $4";
    company PRUNE = "DELETE FROM digest WHERE company = $1 AND created_at < $2";
    company SINCE = "SELECT since FROM digest_schedule WHERE company = $1";
    company SET_SINCE = "INSERT INTO digest_schedule (company, since) VALUES ($1, $2) \
                         ON CONFLICT (company) DO UPDATE SET since = $2";
}

/// A digest that was created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    pub week: Week,
    pub content: MailId,
    pub subject: String,
    /// How many clients were overdue.
    pub overdue: i64,
    pub created_at: Time,
}

/// Records that a week's digest was created; returns `false` if it already was.
pub fn insert(tx: &mut Tx, week: Week, content: MailId, overdue: i64, now: Time) -> Result<bool, Error> {
    let row = tx.query_opt(&INSERT, values![week.year, week.number, &content, overdue, now])?;
    Ok(row.is_some())
}

pub fn get(snapshot: &mut Snapshot, week: Week) -> Result<Option<Digest>, Error> {
    snapshot.query_opt(&GET, values![week.year, week.number])?.map(read).transpose()
}

/// Latest week first, before `before` if given.
pub fn list(snapshot: &mut Snapshot, before: Option<Week>, limit: i64) -> Result<Page<Digest>, Error> {
    let before = before.unwrap_or(Week { year: i64::MAX, number: 0 });
    let rows = snapshot.query(&LIST, values![before.year, before.number, limit + 1])?;
    Ok(Page::from_one_more(rows.into_iter().map(read).collect::<Result<Vec<_>, Error>>()?, limit))
}

pub fn prune(tx: &mut Tx, cutoff: Time) -> Result<(), Error> {
    tx.execute(&PRUNE, values![cutoff])?;
    Ok(())
}

/// When the schedule was last changed, if ever.
pub fn schedule_since(snapshot: &mut Snapshot) -> Result<Option<Time>, Error> {
    snapshot.query_opt(&SINCE, &[])?.map(|mut row| row.take()).transpose()
}

pub fn set_schedule_since(tx: &mut Tx, now: Time) -> Result<(), Error> {
    tx.execute(&SET_SINCE, values![now])?;
    Ok(())
}

fn read(mut row: Row) -> Result<Digest, Error> {
    let row = &mut row;
    Ok(Digest {
        week: Week { year: row.take()?, number: row.take()? },
        content: row.take()?,
        subject: row.take()?,
        overdue: row.take()?,
        created_at: row.take()?,
    })
}

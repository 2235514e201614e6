//! The contact cadence: a narrow row for every account in a trackable stage, written in the transaction that
//! changes the account; the queries of the sweep; and the episodes that were announced.
//!
//! An account on the company's cadence has no due date here, only the start of its clock: the company's
//! settings are read with every query, so changing them changes no rows. The SQL of the ranges is in
//! `cadence_ranges`.

use std::collections::HashSet;

use jiff::civil::Date;
use rapport_domain::account::Account;
use rapport_domain::cadence::{Earliest, Facts};
use rapport_domain::company::{Company, TrackedStages};
use rapport_domain::id::AccountId;
use rapport_domain::pipeline::Status;
use rapport_domain::time::Time;

use crate::account::Edit;
use crate::cadence_ranges::{Derived, Which, Window};
use crate::company::company_columns;
use crate::error::Error;
use crate::statement::{InsertMany, statements};
use crate::tx::{Across, Snapshot, Tx};
use crate::value::{Row, Type, Value};
use crate::{company, values};

/// The earliest dates of a stage, from the sweep's index, without a sort.
macro_rules! earliest {
    ($status:literal) => {
        concat!(
            "(SELECT k.at FROM cadence k /*INDEXED BY cadence_unannounced*/ WHERE k.company = c.id AND k.status = '",
            $status,
            "' AND k.own = 0 AND k.announced = 0 AND k.snoozed_until IS NULL ORDER BY k.at LIMIT 1 OFFSET 0), ",
            "(SELECT k.at FROM cadence k /*INDEXED BY cadence_unannounced*/ WHERE k.company = c.id AND k.status = '",
            $status,
            "' AND k.own = 1 AND k.announced = 0 AND k.snoozed_until IS NULL ORDER BY k.at LIMIT 1 OFFSET 0), ",
            "(SELECT k.snoozed_until FROM cadence k /*INDEXED BY cadence_snoozed*/ WHERE k.company = c.id ",
            "AND k.status = '",
            $status,
            "' AND k.snoozed_until IS NOT NULL ORDER BY k.snoozed_until LIMIT 1 OFFSET 0), "
        )
    };
}

statements! {
    company REMOVE = "DELETE FROM cadence WHERE company = $1 AND account = ANY($2)";
    company FORGET_EPISODES = "DELETE FROM contact_episode WHERE company = $1 AND account = $2";
    company ANNOUNCED_AT = "SELECT announced_at FROM contact_episode WHERE company = $1 AND account = $2 \
                            AND last_contact_at = $3";
    company ANNOUNCED = "UPDATE cadence SET announced = 1 WHERE company = $1 AND announced = 0 AND account = ANY($2)";
    company ENDED_SNOOZES = "SELECT account FROM cadence /*INDEXED BY cadence_snoozed*/ WHERE company = $1 AND status = $2 \
                             AND snoozed_until IS NOT NULL AND snoozed_until <= $3 \
                             ORDER BY snoozed_until, account LIMIT $4";
    company END_SNOOZES = "UPDATE cadence SET snoozed_until = NULL \
                           WHERE company = $1 AND snoozed_until <= $2 AND account = ANY($3)";
    reference OUTLOOK = concat!(
        "SELECT ", earliest!("customer"), earliest!("in_trial"), earliest!("in_negotiation"),
        company_columns!(), " FROM company c ORDER BY c.id"
    );
}

pub(crate) static KEEP: InsertMany = InsertMany::new(
    "cadence",
    &[
        ("account", Type::Bytes),
        ("status", Type::Text),
        ("own", Type::Int),
        ("at", Type::Int),
        ("snoozed_until", Type::Text),
        ("last_contact_at", Type::Int),
        ("announced", Type::Int),
    ],
    // Only contact begins a new episode.
    "ON CONFLICT (company, account) DO UPDATE SET status = excluded.status, own = excluded.own, \
     at = excluded.at, snoozed_until = excluded.snoozed_until, last_contact_at = excluded.last_contact_at, \
     announced = CASE WHEN cadence.last_contact_at = excluded.last_contact_at THEN cadence.announced ELSE 0 END",
);

pub(crate) static OPEN_EPISODE: InsertMany = InsertMany::new(
    "contact_episode",
    &[("account", Type::Bytes), ("last_contact_at", Type::Int), ("announced_at", Type::Int)],
    "ON CONFLICT (company, account, last_contact_at) DO NOTHING",
)
.telling_written();

/// The last contact of an account that was never contacted: before every real time.
const NEVER: i64 = -9_000_000_000_000_000_000;

/// Starts the clocks of new accounts.
pub(crate) fn begin(tx: &mut Tx, accounts: &[&Account]) -> Result<(), Error> {
    let clocks: Vec<Clock> = accounts.iter().filter_map(|account| Clock::of(account)).collect();
    keep(tx, &clocks)
}

/// Writes the clocks that changed; free if none did.
pub(crate) fn follow(tx: &mut Tx, edits: &[Edit]) -> Result<(), Error> {
    let (mut clocks, mut ended) = (Vec::new(), Vec::new());
    for Edit { before, after } in edits.iter().filter(|edit| edit.before.clock() != edit.after.clock()) {
        match Clock::of(after) {
            Some(clock) => clocks.push(clock),
            None if TrackedStages::may_contain(before.status) => ended.push(Value::from(&after.id)),
            None => {}
        }
    }
    tx.execute_keys(&REMOVE, &[], &ended)?;
    keep(tx, &clocks)
}

/// Returns the number of episodes.
pub(crate) fn delete_of_account(tx: &mut Tx, account: AccountId) -> Result<u64, Error> {
    tx.execute_keys(&REMOVE, &[], values![&account])?;
    tx.execute(&FORGET_EPISODES, values![&account])
}

/// An account's row.
struct Clock<'a> {
    account: &'a Account,
    at: Time,
    snoozed_until: Option<String>,
}

impl<'a> Clock<'a> {
    /// `None` in a stage that can't be tracked.
    fn of(account: &'a Account) -> Option<Self> {
        let clock: Facts = account.clock();
        let start = clock.start().filter(|_| TrackedStages::may_contain(clock.status))?;
        let at = clock.cadence_override.map_or(start, |days| start.plus_days(days));
        Some(Self { account, at, snoozed_until: clock.snoozed_until.map(|date| date.to_string()) })
    }
}

fn keep(tx: &mut Tx, clocks: &[Clock]) -> Result<(), Error> {
    let mut rows = Vec::with_capacity(clocks.len() * KEEP.width());
    for clock in clocks {
        rows.extend::<[Value; 7]>([
            (&clock.account.id).into(),
            clock.account.status.into(),
            clock.account.cadence_override.is_some().into(),
            clock.at.into(),
            clock.snoozed_until.as_deref().into(),
            episode(clock.account).into(),
            false.into(),
        ]);
    }
    tx.insert(&KEEP, &rows)?;
    Ok(())
}

fn episode(account: &Account) -> i64 {
    account.last_contact_at.map_or(NEVER, Time::as_micros)
}

/// Accounts that are overdue and not announced, most overdue first.
pub fn unannounced(snapshot: &mut Snapshot, now: Time, limit: i64) -> Result<Vec<AccountId>, Error> {
    let company =
        company::get(snapshot)?.ok_or_else(|| Error::fault("the company to sweep does not exist"))?;
    let derived = Derived::of(&company.settings, now);
    let sql = derived.ordered(Which::UNANNOUNCED, Window::until(now), None, limit);
    let rows = snapshot.query_text(sql.text(), sql.values())?;
    rows.into_iter().map(|mut row| row.take()).collect()
}

/// Opens the current episodes of these accounts; returns those that weren't opened before. No two
/// transactions get the same one.
pub fn open_episodes(tx: &mut Tx, accounts: &[&Account], now: Time) -> Result<HashSet<AccountId>, Error> {
    let rows: Vec<Value> = accounts
        .iter()
        .flat_map(|account| [Value::from(&account.id), Value::from(episode(account)), Value::from(now)])
        .collect();
    tx.insert(&OPEN_EPISODE, &rows)?.into_iter().map(|mut row| row.take()).collect()
}

/// When the account's current episode was announced.
pub fn announced_at(snapshot: &mut Snapshot, account: &Account) -> Result<Option<Time>, Error> {
    let found = snapshot.query_opt(&ANNOUNCED_AT, values![&account.id, episode(account)])?;
    found.map(|mut row| row.take()).transpose()
}

/// The sweep skips these until someone makes contact.
pub fn set_announced(tx: &mut Tx, accounts: &[&Account]) -> Result<(), Error> {
    let keys: Vec<Value> = accounts.iter().map(|account| Value::from(&account.id)).collect();
    tx.execute_keys(&ANNOUNCED, &[], &keys)?;
    Ok(())
}

/// Some accounts whose snooze ended by `date`.
pub fn ended_snoozes(snapshot: &mut Snapshot, date: Date, limit: i64) -> Result<Vec<AccountId>, Error> {
    let date = date.to_string();
    let mut ended = Vec::new();
    for status in TrackedStages::ALLOWED {
        let rows = snapshot.query(&ENDED_SNOOZES, values![status, &date, limit])?;
        ended.extend(rows.into_iter().map(|mut row| row.take()).collect::<Result<Vec<AccountId>, _>>()?);
    }
    Ok(ended)
}

/// Clears snoozes that ended by `date`; the account itself keeps the date.
pub fn end_snoozes(tx: &mut Tx, accounts: &[AccountId], date: Date) -> Result<(), Error> {
    let (date, keys): (String, Vec<Value>) = (date.to_string(), accounts.iter().map(Value::from).collect());
    tx.execute_keys(&END_SNOOZES, values![&date], &keys)?;
    Ok(())
}

/// A company and the earliest dates of each of its stages.
#[derive(Debug, Clone, PartialEq)]
pub struct Outlook {
    pub company: Company,
    pub earliest: Vec<Earliest>,
}

/// What the sweep has to check next, for each company.
pub fn outlook(across: &mut Across) -> Result<Vec<Outlook>, Error> {
    across.query(&OUTLOOK, &[])?.into_iter().map(read_outlook).collect()
}

fn read_outlook(mut row: Row) -> Result<Outlook, Error> {
    let earliest = [Status::Customer, Status::InTrial, Status::InNegotiation]
        .map(|status| {
            Ok(Earliest {
                status,
                started_at: row.take()?,
                own_due_at: row.take()?,
                snoozed_until: row.take::<Option<String>>()?.map(|text| read_date(&text)).transpose()?,
            })
        })
        .into_iter()
        .collect::<Result<_, Error>>()?;
    Ok(Outlook { company: company::read(row)?, earliest })
}

fn read_date(text: &str) -> Result<Date, Error> {
    text.parse().map_err(|_| Error::fault("a snooze is not a date"))
}

//! The number of accounts in each stage of the pipeline, and their value.
//!
//! A stage of up to `LIVE_ACCOUNTS` is counted when it is shown, from its index alone. A larger one shows the
//! last count from the background. Values in different currencies are never added up.

use rapport_domain::id::AccountId;
use rapport_domain::money::{Amount, Currency, Money};
use rapport_domain::pipeline::Status;
use rapport_domain::time::Time;

use crate::account_list::CappedCount;
use crate::error::Error;
use crate::statement::{InsertMany, statements};
use crate::tx::{Snapshot, Tx};
use crate::value::{Row, Type, Value};
use crate::values;

/// A stage with more accounts isn't counted while a page loads.
pub const LIVE_ACCOUNTS: i64 = 2_000;
/// Amounts are added up in two parts, both of which stay well within the range of an integer.
const PART: i128 = 1_000_000_000;

statements! {
    // One more than `LIVE_ACCOUNTS`.
    company LIVE = "SELECT value_currency, count(*), CAST(coalesce(sum(value_amount / 1000000000), 0) AS BIGINT), \
                    CAST(coalesce(sum(value_amount % 1000000000), 0) AS BIGINT) FROM (\
                    SELECT value_currency, value_amount FROM account /*INDEXED BY account_by_status*/ \
                    WHERE company = $1 AND status = $2 ORDER BY id LIMIT 2001) AS few GROUP BY value_currency";
    company STEP = "SELECT s.status, s.value_currency, count(*), \
                    CAST(coalesce(sum(s.value_amount / 1000000000), 0) AS BIGINT), \
                    CAST(coalesce(sum(s.value_amount % 1000000000), 0) AS BIGINT) \
                    FROM (SELECT a.status, a.value_currency, a.value_amount \
                    FROM account a /*INDEXED BY account_by_status*/ \
                    WHERE a.company = $1 AND (a.status, a.id) > ($2, $3) ORDER BY a.status, a.id LIMIT $4) s \
                    GROUP BY s.status, s.value_currency";
    // Where the next step begins.
    company END_OF_STEP = "SELECT a.status, a.id FROM account a /*INDEXED BY account_by_status*/ \
                           WHERE a.company = $1 AND (a.status, a.id) > ($2, $3) \
                           ORDER BY a.status, a.id LIMIT 1 OFFSET $4";
    company KEPT = "SELECT status, currency, accounts, amount, counted_at FROM stage_total WHERE company = $1 \
                    ORDER BY status, currency";
    company FORGET = "DELETE FROM stage_total WHERE company = $1 AND counted_at <> $2";
}

pub(crate) static KEEP: InsertMany = InsertMany::new(
    "stage_total",
    &[
        ("status", Type::Text),
        ("currency", Type::Text),
        ("accounts", Type::Int),
        ("amount", Type::Int),
        ("counted_at", Type::Int),
    ],
    "ON CONFLICT (company, status, currency) DO UPDATE SET accounts = excluded.accounts, \
     amount = excluded.amount, counted_at = excluded.counted_at",
);

/// A stage as shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    pub status: Status,
    pub accounts: CappedCount,
    /// Their value, one sum per currency; empty if they have none.
    pub values: Vec<Money>,
    /// When it was counted, unless that was just now.
    pub as_of: Option<Time>,
}

/// The accounts of one stage with values in one currency, or without a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Total {
    pub status: Status,
    pub accounts: i64,
    pub value: Option<Money>,
}

/// The last count from the background.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    pub totals: Vec<Total>,
    pub counted_at: Time,
}

/// Every stage, in pipeline order.
pub fn stages(snapshot: &mut Snapshot) -> Result<Vec<Stage>, Error> {
    let kept = kept(snapshot)?;
    Status::ALL.into_iter().map(|status| stage(snapshot, status, kept.as_ref())).collect()
}

/// A stage that was large in the last count isn't counted again just to find that it still is.
fn stage(snapshot: &mut Snapshot, status: Status, kept: Option<&Kept>) -> Result<Stage, Error> {
    let before = kept.map(|kept| (kept.of_stage(status), kept.counted_at));
    if let Some((totals, counted_at)) = &before
        && accounts_of(totals) > LIVE_ACCOUNTS
    {
        return Ok(shown(status, totals, Some(*counted_at)));
    }
    let live = live(snapshot, status)?;
    if accounts_of(&live) <= LIVE_ACCOUNTS {
        return Ok(shown(status, &live, None));
    }
    // It has become large since then: there are more than this.
    let accounts = CappedCount { count: LIVE_ACCOUNTS, capped: true };
    Ok(Stage { status, accounts, values: Vec::new(), as_of: None })
}

/// How many accounts some stages have together, and when they were counted: more than `most`, by the last count.
pub fn more_than(
    snapshot: &mut Snapshot,
    stages: &[Status],
    most: i64,
) -> Result<Option<(i64, Time)>, Error> {
    let Some(kept) = kept(snapshot)? else { return Ok(None) };
    let accounts =
        kept.totals.iter().filter(|total| stages.contains(&total.status)).map(|total| total.accounts).sum();
    Ok((accounts > most).then_some((accounts, kept.counted_at)))
}

impl Total {
    /// Adds more accounts with the same key. A sum beyond the range of an amount is the largest amount.
    fn add(&mut self, more: &Self) {
        self.accounts += more.accounts;
        if let (Some(value), Some(more)) = (&mut self.value, &more.value) {
            let sum = value.amount.ten_thousandths().saturating_add(more.amount.ten_thousandths());
            value.amount = Amount::from_ten_thousandths(sum);
        }
    }
}

impl Kept {
    fn of_stage(&self, status: Status) -> Vec<Total> {
        self.totals.iter().filter(|total| total.status == status).copied().collect()
    }
}

fn shown(status: Status, totals: &[Total], as_of: Option<Time>) -> Stage {
    let mut values: Vec<Money> = totals.iter().filter_map(|total| total.value).collect();
    values.retain(|value| value.amount.ten_thousandths() > 0);
    values.sort_unstable_by_key(|value| value.currency.code());
    Stage { status, accounts: CappedCount { count: accounts_of(totals), capped: false }, values, as_of }
}

fn accounts_of(totals: &[Total]) -> i64 {
    totals.iter().map(|total| total.accounts).sum()
}

fn live(snapshot: &mut Snapshot, status: Status) -> Result<Vec<Total>, Error> {
    let rows = snapshot.query(&LIVE, values![status])?;
    rows.into_iter().map(|mut row| read_sums(status, &mut row)).collect()
}

/// Counts every account of the company, `step` at a time. The time grows with their number, so this is for the background.
/// The memory doesn't: SQLite sorts only the accounts of one step.
pub fn count_all(snapshot: &mut Snapshot, step: i64) -> Result<Vec<Total>, Error> {
    let mut totals: Vec<Total> = Vec::new();
    let (mut status, mut account) = (String::new(), AccountId::from_bytes([0; 16]));
    loop {
        for mut row in snapshot.query(&STEP, values![&status, &account, step])? {
            let part = read_sums(row.take()?, &mut row)?;
            match totals.iter_mut().find(|total| key(total) == key(&part)) {
                Some(total) => total.add(&part),
                None => totals.push(part),
            }
        }
        let end = snapshot.query_opt(&END_OF_STEP, values![&status, &account, step - 1])?;
        let Some(mut end) = end else { break };
        (status, account) = (end.take()?, end.take()?);
    }
    totals.sort_unstable_by_key(key);
    Ok(totals)
}

/// Whether some stage is too large to be counted while a page loads.
pub fn has_large_stage(totals: &[Total]) -> bool {
    Status::ALL.into_iter().any(|status| {
        let of_stage = totals.iter().filter(|total| total.status == status);
        of_stage.map(|total| total.accounts).sum::<i64>() > LIVE_ACCOUNTS
    })
}

/// The last stored count, if there is one.
pub fn kept(snapshot: &mut Snapshot) -> Result<Option<Kept>, Error> {
    let mut totals = Vec::new();
    let mut counted_at: Option<Time> = None;
    for mut row in snapshot.query(&KEPT, &[])? {
        let row = &mut row;
        let (status, currency): (Status, String) = (row.take()?, row.take()?);
        let (accounts, amount): (i64, i64) = (row.take()?, row.take()?);
        let amount = Amount::from_ten_thousandths(amount);
        let value = read_currency(Some(currency).filter(|code| !code.is_empty()))?
            .map(|currency| Money { amount, currency });
        totals.push(Total { status, accounts, value });
        let at: Time = row.take()?;
        counted_at = Some(counted_at.map_or(at, |earliest| earliest.min(at)));
    }
    totals.sort_unstable_by_key(key);
    Ok(counted_at.map(|counted_at| Kept { totals, counted_at }))
}

/// Stores a new count in place of the last one.
pub fn keep(tx: &mut Tx, totals: &[Total], now: Time) -> Result<(), Error> {
    let mut rows = Vec::with_capacity(totals.len() * KEEP.width());
    for total in totals {
        rows.extend::<[Value; 5]>([
            total.status.into(),
            total.value.map_or("", |value| value.currency.code()).into(),
            total.accounts.into(),
            total.value.map_or(0, |value| value.amount.ten_thousandths()).into(),
            now.into(),
        ]);
    }
    tx.insert(&KEEP, &rows)?;
    tx.execute(&FORGET, values![now])?;
    Ok(())
}

fn key(total: &Total) -> (Status, Option<&'static str>) {
    (total.status, total.value.map(|value| value.currency.code()))
}

fn read_sums(status: Status, row: &mut Row) -> Result<Total, Error> {
    let currency = read_currency(row.take()?)?;
    let (accounts, high, low): (i64, i64, i64) = (row.take()?, row.take()?, row.take()?);
    // A sum beyond the range of an amount is stored as the largest amount.
    let sum = i128::from(high) * PART + i128::from(low);
    let amount = Amount::from_ten_thousandths(i64::try_from(sum).unwrap_or(i64::MAX));
    Ok(Total { status, accounts, value: currency.map(|currency| Money { amount, currency }) })
}

fn read_currency(code: Option<String>) -> Result<Option<Currency>, Error> {
    let unknown = |_| Error::fault("an unknown currency in a column");
    code.map(|code| Currency::parse(&code).map_err(unknown)).transpose()
}

//! Accounts and values per channel and promo code: read by pages, counted in steps in the background.

use std::collections::HashMap;

use rapport_domain::channel_total::{CodeTotal, Counted, Sum};
use rapport_domain::id::{AccountId, ChannelId, CompanyId};
use rapport_domain::money::Currency;

use crate::error::Error;
use crate::statement::{InsertMany, statements};
use crate::tx::{Across, Snapshot, Tx};
use crate::value::{Row, Type, Value};
use crate::values;

/// A sum is stored as a multiple of this and a remainder; neither can overflow for any realistic number of
/// accounts.
const PART: Sum = 1_000_000_000;

statements! {
    company STEP = "SELECT s.channel, coalesce(s.promo_code, ''), coalesce(s.value_currency, ''), count(*), \
                    CAST(coalesce(sum(s.value_amount / 1000000000), 0) AS BIGINT), \
                    CAST(coalesce(sum(s.value_amount % 1000000000), 0) AS BIGINT) \
                    FROM (SELECT a.channel, a.promo_code, a.value_currency, a.value_amount \
                    FROM account a /*INDEXED BY account_by_channel*/ \
                    WHERE a.company = $1 AND (a.channel, a.id) > ($2, $3) ORDER BY a.channel, a.id LIMIT $4) s \
                    GROUP BY s.channel, s.promo_code, s.value_currency";
    // Where the next step begins, from the index alone.
    company END_OF_STEP = "SELECT a.channel, a.id FROM account a /*INDEXED BY account_by_channel*/ \
                           WHERE a.company = $1 AND (a.channel, a.id) > ($2, $3) \
                           ORDER BY a.channel, a.id LIMIT 1 OFFSET $4";
    company ALL = "SELECT channel, code, currency, accounts, high, low FROM channel_total WHERE company = $1 \
                   ORDER BY channel, code_folded, currency";
    company OF_CHANNEL = "SELECT channel, code, currency, accounts, high, low FROM channel_total \
                          WHERE company = $1 AND channel = $2 ORDER BY code_folded, currency";
    company CLEAR = "DELETE FROM channel_total WHERE company = $1";
    company COUNTED = "SELECT counted_at, took FROM channel_count WHERE company = $1";
    company NOTE = "INSERT INTO channel_count (company, counted_at, took) VALUES ($1, $2, $3) \
                    ON CONFLICT (company) DO UPDATE SET counted_at = excluded.counted_at, took = excluded.took";
    reference ALL_COUNTED = "SELECT company, counted_at, took FROM channel_count";
}

pub(crate) static INSERT: InsertMany = InsertMany::new(
    "channel_total",
    &[
        ("channel", Type::Bytes),
        ("code_folded", Type::Text),
        ("currency", Type::Text),
        ("code", Type::Text),
        ("accounts", Type::Int),
        ("high", Type::Int),
        ("low", Type::Int),
    ],
    "",
);

/// The progress of a count: the last account counted.
pub type Place = (ChannelId, AccountId);

/// Sums up the next `limit` attributed accounts after `after`; also returns where to continue if there are
/// more.
pub fn step(
    snapshot: &mut Snapshot,
    after: Option<Place>,
    limit: i64,
) -> Result<(Vec<CodeTotal>, Option<Place>), Error> {
    let (channel, account) =
        after.unwrap_or((ChannelId::from_bytes([0; 16]), AccountId::from_bytes([0; 16])));
    let rows = snapshot.query(&STEP, values![&channel, &account, limit])?;
    let parts = rows.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let end = snapshot.query_opt(&END_OF_STEP, values![&channel, &account, limit - 1])?;
    let end = end.map(|mut row| Ok::<_, Error>((row.take()?, row.take()?))).transpose()?;
    Ok((parts, end))
}

/// All totals of the company, from the last count.
pub fn all(snapshot: &mut Snapshot) -> Result<Vec<CodeTotal>, Error> {
    snapshot.query(&ALL, &[])?.into_iter().map(read).collect()
}

pub fn of_channel(snapshot: &mut Snapshot, channel: ChannelId) -> Result<Vec<CodeTotal>, Error> {
    snapshot.query(&OF_CHANNEL, values![&channel])?.into_iter().map(read).collect()
}

/// When the company was last counted; `None` if never.
pub fn counted(snapshot: &mut Snapshot) -> Result<Option<Counted>, Error> {
    snapshot.query_opt(&COUNTED, &[])?.map(|mut row| read_counted(&mut row)).transpose()
}

/// The same for every company that was ever counted.
pub fn all_counted(across: &mut Across) -> Result<HashMap<CompanyId, Counted>, Error> {
    let rows = across.query(&ALL_COUNTED, &[])?;
    rows.into_iter().map(|mut row| Ok((row.take()?, read_counted(&mut row)?))).collect()
}

/// Replaces the previous count with a new one.
pub fn replace(tx: &mut Tx, totals: &[CodeTotal], counted: Counted) -> Result<(), Error> {
    // This comes first because nodes that finish at the same time wait for each other here.
    tx.execute(&NOTE, values![counted.at, counted.took_micros])?;
    tx.execute(&CLEAR, &[])?;
    let folded: Vec<String> = totals.iter().map(|total| total.code.to_ascii_lowercase()).collect();
    let mut rows: Vec<Value> = Vec::with_capacity(totals.len() * INSERT.width());
    for (total, folded) in totals.iter().zip(&folded) {
        let part = |sum: Sum| i64::try_from(sum).map_err(|_| Error::fault("a total is out of range"));
        rows.extend::<[Value; 7]>([
            (&total.channel).into(),
            folded.into(),
            total.currency.map_or("", Currency::code).into(),
            (&total.code).into(),
            total.accounts.into(),
            part(total.sum / PART)?.into(),
            part(total.sum % PART)?.into(),
        ]);
    }
    tx.insert(&INSERT, &rows)?;
    Ok(())
}

fn read(mut row: Row) -> Result<CodeTotal, Error> {
    let (channel, code, currency) = (row.take()?, row.take()?, row.take::<String>()?);
    let currency = match currency.as_str() {
        "" => None,
        code => Some(Currency::parse(code).map_err(|_| Error::fault("a total's currency is unknown"))?),
    };
    let (accounts, high, low): (i64, i64, i64) = (row.take()?, row.take()?, row.take()?);
    Ok(CodeTotal { channel, code, currency, accounts, sum: Sum::from(high) * PART + Sum::from(low) })
}

fn read_counted(row: &mut Row) -> Result<Counted, Error> {
    Ok(Counted { at: row.take()?, took_micros: row.take()? })
}

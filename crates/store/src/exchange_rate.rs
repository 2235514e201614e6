//! Exchange rates to a company's default currency.

use rapport_domain::exchange_rate::total::Rates;
use rapport_domain::exchange_rate::{ExchangeRate, Rate};
use rapport_domain::id::ExchangeRateId;
use rapport_domain::money::Currency;
use rapport_domain::time::Day;

use crate::error::Error;
use crate::page::Page;
use crate::statement::statements;
use crate::tx::{Snapshot, Tx};
use crate::value::Row;
use crate::values;

statements! {
    company GET = "SELECT id, base, currency, valid_from, rate, created_at FROM exchange_rate \
                   WHERE company = $1 AND id = $2";
    company ON_DAY = "SELECT id FROM exchange_rate \
                      WHERE company = $1 AND base = $2 AND currency = $3 AND valid_from = $4";
    company IN_FORCE = "SELECT id, base, currency, valid_from, rate, created_at FROM exchange_rate \
                        WHERE company = $1 AND base = $2 AND currency = $3 AND valid_from <= $4 \
                        ORDER BY valid_from DESC LIMIT 1";
    // The rest of a currency's rates, then those of the currencies after it.
    company OF_CURRENCY = "SELECT id, base, currency, valid_from, rate, created_at FROM exchange_rate \
                           WHERE company = $1 AND base = $2 AND currency = $3 AND valid_from < $4 \
                           ORDER BY valid_from DESC LIMIT $5";
    company FOLLOWING = "SELECT id, base, currency, valid_from, rate, created_at FROM exchange_rate \
                         WHERE company = $1 AND base = $2 AND currency > $3 \
                         ORDER BY currency, valid_from DESC LIMIT $4";
    company NEXT_BASE = "SELECT base FROM exchange_rate WHERE company = $1 AND base > $2 ORDER BY base LIMIT 1";
    company INSERT = "INSERT INTO exchange_rate (company, id, base, currency, valid_from, rate, created_at) \
                      VALUES ($1, $2, $3, $4, $5, $6, $7)";
    company UPDATE = "UPDATE exchange_rate SET valid_from = $3, rate = $4 WHERE company = $1 AND id = $2";
    company DELETE = "DELETE FROM exchange_rate WHERE company = $1 AND id = $2";
}

/// Which rates a list has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    pub base: Currency,
    /// All currencies if `None`.
    pub currency: Option<Currency>,
}

/// A place in a list: the currency and the day of the last rate.
pub type Place = (Currency, Day);

/// By currency, the latest day first.
pub fn list(
    snapshot: &mut Snapshot,
    listed: Listed,
    after: Option<Place>,
    limit: i64,
) -> Result<Page<ExchangeRate>, Error> {
    let Listed { base, currency } = listed;
    let from = after.or_else(|| currency.map(|currency| (currency, Day::from_number(i64::MAX))));
    let mut rates = match from {
        Some((currency, day)) => {
            let values = values![base.code(), currency.code(), day, limit + 1];
            read_all(snapshot.query(&OF_CURRENCY, values)?)?
        }
        None => Vec::new(),
    };
    let rest = limit + 1 - i64::try_from(rates.len()).unwrap_or(limit);
    if currency.is_none() && rest > 0 {
        let last = from.map_or("", |(currency, _)| currency.code());
        rates.extend(read_all(snapshot.query(&FOLLOWING, values![base.code(), last, rest])?)?);
    }
    Ok(Page::from_one_more(rates, limit))
}

/// The currencies that rates were entered for, in alphabetical order.
pub fn bases(snapshot: &mut Snapshot) -> Result<Vec<Currency>, Error> {
    let mut bases: Vec<Currency> = Vec::new();
    loop {
        let last = bases.last().map_or("", |base| base.code());
        let Some(mut row) = snapshot.query_opt(&NEXT_BASE, values![last])? else { return Ok(bases) };
        bases.push(read_currency(&row.take::<String>()?)?);
    }
}

pub fn get(snapshot: &mut Snapshot, id: ExchangeRateId) -> Result<Option<ExchangeRate>, Error> {
    snapshot.query_opt(&GET, values![&id])?.map(read).transpose()
}

/// The rate that is valid from exactly this day.
pub fn on_day(
    snapshot: &mut Snapshot,
    base: Currency,
    currency: Currency,
    day: Day,
) -> Result<Option<ExchangeRateId>, Error> {
    let row = snapshot.query_opt(&ON_DAY, values![base.code(), currency.code(), day])?;
    row.map(|mut row| row.take()).transpose()
}

/// The rates of these currencies in force on a day. One lookup each, however many rates there are.
pub fn in_force(
    snapshot: &mut Snapshot,
    base: Currency,
    currencies: impl IntoIterator<Item = Currency>,
    on: Day,
) -> Result<Rates, Error> {
    let mut wanted: Vec<Currency> = currencies.into_iter().filter(|currency| *currency != base).collect();
    wanted.sort_unstable_by_key(|currency| currency.code());
    wanted.dedup();
    let mut rates = Vec::new();
    for currency in wanted {
        let row = snapshot.query_opt(&IN_FORCE, values![base.code(), currency.code(), on])?;
        rates.extend(row.map(read).transpose()?);
    }
    Ok(Rates::new(base, rates))
}

pub fn insert(tx: &mut Tx, rate: &ExchangeRate) -> Result<(), Error> {
    let ExchangeRate { id, base, currency, valid_from, rate, created_at } = rate;
    let units = rate.ten_billionths();
    tx.execute(&INSERT, values![id, base.code(), currency.code(), *valid_from, units, *created_at])?;
    Ok(())
}

pub fn update(tx: &mut Tx, rate: &ExchangeRate) -> Result<(), Error> {
    tx.execute(&UPDATE, values![&rate.id, rate.valid_from, rate.rate.ten_billionths()])?;
    Ok(())
}

pub fn delete(tx: &mut Tx, id: ExchangeRateId) -> Result<(), Error> {
    tx.execute(&DELETE, values![&id])?;
    Ok(())
}

fn read_all(rows: Vec<Row>) -> Result<Vec<ExchangeRate>, Error> {
    rows.into_iter().map(read).collect()
}

fn read(mut row: Row) -> Result<ExchangeRate, Error> {
    let row = &mut row;
    Ok(ExchangeRate {
        id: row.take()?,
        base: read_currency(&row.take::<String>()?)?,
        currency: read_currency(&row.take::<String>()?)?,
        valid_from: row.take()?,
        rate: Rate::from_ten_billionths(row.take()?),
        created_at: row.take()?,
    })
}

fn read_currency(code: &str) -> Result<Currency, Error> {
    Currency::parse(code).map_err(|_| Error::fault("a rate's currency is unknown"))
}

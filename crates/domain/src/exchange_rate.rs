//! Exchange rates: what one unit of a currency is worth in the company's default currency, from a day on.
//!
//! - The rate in force on a day is the one with the latest `valid_from` that isn't after that day. Days are those of the
//!   company's time zone. Totals use the rates in force today.
//! - A rate belongs to the default currency that it was entered for, its base. When the default currency changes, the
//!   rates to the old one are kept but not used, so no rate is ever applied to another currency than its own. If the
//!   default currency is changed back, they are in force again.
//! - Nothing is converted without a rate, and never over a third currency.
//!
//! `total` converts sums.

pub mod total;

use serde_json::{Map, Value};

use crate::id::ExchangeRateId;
use crate::invalid::{Fault, Invalid, Members, as_date};
use crate::money::{Currency, Decimal};
use crate::time::{Day, Time};

/// The digits before and after the decimal point of a rate. Eighteen digits fit an integer in storage.
pub const RATE_WHOLE_DIGITS: usize = 8;
pub const RATE_DECIMALS: usize = 10;
/// A rate is stored in these parts of the base currency.
pub(crate) const UNITS: i64 = 10_000_000_000;
/// The first day that a rate can be valid from. Floating rates aren't older.
pub const FIRST_YEAR: i16 = 1971;

const RATE: Decimal =
    Decimal { what: "number", example: "0.92", whole_digits: RATE_WHOLE_DIGITS, decimals: RATE_DECIMALS };

/// How much of the base currency one unit is worth: an exact decimal number above zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate(i64);

impl Rate {
    pub const fn from_ten_billionths(units: i64) -> Self {
        Self(units)
    }

    pub const fn ten_billionths(self) -> i64 {
        self.0
    }

    pub fn parse(text: &str) -> Result<Self, Fault> {
        RATE.parse(text).and_then(Self::above_zero)
    }

    /// From a JSON string or a JSON number's literal text.
    pub fn from_json(value: &Value) -> Result<Self, Fault> {
        RATE.parse_json(value).and_then(Self::above_zero)
    }

    fn above_zero(units: i64) -> Result<Self, Fault> {
        if units > 0 { Ok(Self(units)) } else { Err(Fault::new("out_of_range", "must be more than zero")) }
    }

    /// The number without needless zeros: `0.92`, `1`.
    pub fn text(self) -> String {
        let text = format!("{}.{:0RATE_DECIMALS$}", self.0 / UNITS, self.0 % UNITS);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

/// A rate of a company.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExchangeRate {
    pub id: ExchangeRateId,
    /// The default currency that it was entered for.
    pub base: Currency,
    pub currency: Currency,
    pub valid_from: Day,
    pub rate: Rate,
    pub created_at: Time,
}

/// The rate in force on a day.
pub fn in_force(
    rates: &[ExchangeRate],
    base: Currency,
    currency: Currency,
    on: Day,
) -> Option<&ExchangeRate> {
    let fits = |rate: &&ExchangeRate| rate.base == base && rate.currency == currency && rate.valid_from <= on;
    rates.iter().filter(fits).max_by_key(|rate| rate.valid_from)
}

/// A request to add a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewRate {
    pub currency: Currency,
    pub valid_from: Day,
    pub rate: Rate,
}

impl NewRate {
    pub fn parse(body: &Map<String, Value>) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let currency = members.required("currency", Currency::from_json);
        let valid_from = members.required("valid_from", as_first_day);
        let rate = members.required("rate", Rate::from_json);
        members.refuse_unknown();
        members.build(|| Some(Self { currency: currency?, valid_from: valid_from?, rate: rate? }))
    }

    /// The default currency needs no rate to itself.
    pub fn refuse_base(&self, base: Currency) -> Result<(), Invalid> {
        if self.currency != base {
            return Ok(());
        }
        Err(Invalid::one("/currency", "default_currency", "is the default currency, which needs no rate"))
    }
}

/// A request to correct a rate. Its currency stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RatePatch {
    pub valid_from: Option<Day>,
    pub rate: Option<Rate>,
}

impl RatePatch {
    pub fn parse(body: &Map<String, Value>) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let valid_from = members.replaceable("valid_from", as_first_day);
        let rate = members.replaceable("rate", Rate::from_json);
        members.refuse_unknown();
        members.build(|| Some(Self { valid_from, rate }))
    }

    pub fn apply(self, to: &ExchangeRate) -> ExchangeRate {
        let Self { valid_from, rate } = self;
        ExchangeRate { valid_from: valid_from.unwrap_or(to.valid_from), rate: rate.unwrap_or(to.rate), ..*to }
    }
}

fn as_first_day(value: &Value) -> Result<Day, Fault> {
    let date = as_date(value)?;
    if date.year() < FIRST_YEAR {
        return Err(Fault::new("out_of_range", format!("must be in the year {FIRST_YEAR} or later")));
    }
    Ok(Day::of(date))
}

#[cfg(test)]
mod tests;

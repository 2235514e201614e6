//! How many accounts each promo code brought in and their total value, with one figure per currency: values
//! in different currencies are never added up.

use std::collections::BTreeMap;

use crate::id::ChannelId;
use crate::money::Currency;
use crate::time::Time;

/// The shortest wait before a company is counted again.
pub const LEAST_SECONDS: i64 = 5;
/// The wait is also this many times as long as the last count took, so counting uses at most two percent of
/// the time.
pub const SHARE: u32 = 50;
/// If nothing changed, the time of the count is still saved this often.
pub const SHOWN_SECONDS: i64 = 60;

/// The sum of many values, which can exceed the range of an `Amount`.
pub type Sum = i128;

/// The accounts of one code on one channel with values in one currency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeTotal {
    pub channel: ChannelId,
    /// The code as stored on the accounts; empty if they have none.
    pub code: String,
    /// `None`: accounts without a value.
    pub currency: Option<Currency>,
    pub accounts: i64,
    pub sum: Sum,
}

/// A count in progress.
#[derive(Debug, Clone, Default)]
pub struct Totals(BTreeMap<(ChannelId, String, &'static str), CodeTotal>);

impl Totals {
    pub fn add(&mut self, part: CodeTotal) {
        let currency = part.currency.map_or("", Currency::code);
        let key = (part.channel, part.code.to_ascii_lowercase(), currency);
        match self.0.entry(key) {
            std::collections::btree_map::Entry::Occupied(mut found) => {
                let found = found.get_mut();
                found.accounts += part.accounts;
                found.sum += part.sum;
            }
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(part);
            }
        }
    }

    /// Ordered by channel, code and currency.
    pub fn into_rows(self) -> Vec<CodeTotal> {
        self.0.into_values().collect()
    }
}

/// The totals of a channel or a code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Figures {
    pub accounts: i64,
    /// Ordered by currency code.
    pub values: Vec<(Currency, Sum)>,
}

impl Figures {
    pub fn of<'a>(totals: impl IntoIterator<Item = &'a CodeTotal>) -> Self {
        let mut figures = Self::default();
        for total in totals {
            figures.accounts += total.accounts;
            let Some(currency) = total.currency else { continue };
            match figures.values.iter_mut().find(|(known, _)| *known == currency) {
                Some((_, sum)) => *sum += total.sum,
                None => figures.values.push((currency, total.sum)),
            }
        }
        figures.values.sort_by_key(|(currency, _)| currency.code());
        figures
    }
}

/// When a company was counted, and how long that took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    pub at: Time,
    pub took_micros: i64,
}

impl Counted {
    /// When it may be counted again.
    pub fn next(self) -> Time {
        let rest = self.took_micros.saturating_mul(i64::from(SHARE));
        self.at.plus_seconds(LEAST_SECONDS).max(self.at.plus_millis(rest / 1_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(code: &str, currency: Option<&str>, accounts: i64, sum: Sum) -> CodeTotal {
        let currency = currency.map(|code| Currency::parse(code).unwrap());
        CodeTotal { channel: ChannelId::from_bytes([1; 16]), code: code.to_owned(), currency, accounts, sum }
    }

    #[test]
    fn parts_add_up_per_code_and_currency_and_never_over_currencies() {
        let mut totals = Totals::default();
        for one in [
            part("Fair", Some("EUR"), 2, 70_000),
            part("FAIR", Some("EUR"), 1, 5),
            part("Fair", Some("USD"), 4, 9),
            part("Fair", None, 3, 0),
            part("Other", Some("EUR"), 1, Sum::from(i64::MAX)),
        ] {
            totals.add(one);
        }
        let rows = totals.into_rows();
        let shown: Vec<(&str, i64, Sum)> =
            rows.iter().map(|row| (row.code.as_str(), row.accounts, row.sum)).collect();
        let most = Sum::from(i64::MAX);
        assert_eq!(shown, [("Fair", 3, 0), ("Fair", 3, 70_005), ("Fair", 4, 9), ("Other", 1, most)]);
        let figures = Figures::of(&rows);
        assert_eq!(figures.accounts, 11);
        let values: Vec<(&str, Sum)> =
            figures.values.iter().map(|(currency, sum)| (currency.code(), *sum)).collect();
        assert_eq!(values, [("EUR", most + 70_005), ("USD", 9)]);
    }

    #[test]
    fn counting_costs_a_fiftieth_of_the_time_at_most() {
        let at = Time::from_micros(0);
        assert_eq!(Counted { at, took_micros: 1_000 }.next(), at.plus_seconds(LEAST_SECONDS));
        assert_eq!(Counted { at, took_micros: 2_000_000 }.next(), at.plus_seconds(100));
    }
}

//! Sums of values in several currencies, converted to the default currency as far as there are rates.
//!
//! Each currency's sum is converted as a whole and rounded once, half up, to the minor digits of the default currency:
//! 0.5 cents become a cent. So a total is the sum of the parts that are shown beside it, to the last digit. What is in
//! the default currency already isn't rounded.

use crate::channel_total::Sum;
use crate::money::{Currency, DECIMALS};
use crate::time::Day;

use super::{ExchangeRate, Rate, UNITS};

impl Rate {
    /// A sum in ten-thousandths of the rate's currency, in ten-thousandths of `base`.
    pub fn convert(self, sum: Sum, base: Currency) -> Sum {
        // The smallest unit of the base, in ten-thousandths.
        let minor = (base.minor_digits()..DECIMALS).fold(1, |units: Sum, _| units * 10);
        let divisor = Sum::from(UNITS) * minor;
        let rate = Sum::from(self.0);
        // In two parts, neither of which can overflow.
        let (whole, rest) = (sum / divisor, sum % divisor);
        (whole * rate + (rest * rate + divisor / 2) / divisor) * minor
    }
}

/// The rates in force on one day, at most one per currency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rates {
    base: Currency,
    in_force: Vec<ExchangeRate>,
}

impl Rates {
    pub fn new(base: Currency, in_force: Vec<ExchangeRate>) -> Self {
        debug_assert!(in_force.iter().all(|rate| rate.base == base), "a rate to another currency");
        Self { base, in_force }
    }

    pub const fn base(&self) -> Currency {
        self.base
    }

    pub fn of(&self, currency: Currency) -> Option<&ExchangeRate> {
        self.in_force.iter().find(|rate| rate.currency == currency)
    }

    /// Adds up sums, at most one per currency.
    pub fn total(&self, sums: impl IntoIterator<Item = (Currency, Sum)>) -> Total {
        let part = |(currency, sum)| {
            let converted = self.of(currency).filter(|_| currency != self.base).map(|rate| Converted {
                sum: rate.rate.convert(sum, self.base),
                rate: rate.rate,
                valid_from: rate.valid_from,
            });
            Part { currency, sum, converted }
        };
        let mut parts: Vec<Part> = sums.into_iter().map(part).collect();
        parts
            .sort_by_key(|part| (part.currency != self.base, part.converted.is_none(), part.currency.code()));
        Total { base: self.base, parts }
    }
}

/// The sum of one currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub currency: Currency,
    pub sum: Sum,
    /// In the default currency. `None` if it is the default currency, or there is no rate.
    pub converted: Option<Converted>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Converted {
    pub sum: Sum,
    pub rate: Rate,
    pub valid_from: Day,
}

/// A total and its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Total {
    pub base: Currency,
    /// The default currency first, then those that were converted, then the others.
    pub parts: Vec<Part>,
}

impl Total {
    /// Everything that is in the default currency or was converted to it. `None` if nothing is.
    pub fn sum(&self) -> Option<Sum> {
        let in_base = |part: &Part| match part.converted {
            Some(converted) => Some(converted.sum),
            None => (part.currency == self.base).then_some(part.sum),
        };
        let sums: Vec<Sum> = self.parts.iter().filter_map(in_base).collect();
        (!sums.is_empty()).then(|| sums.into_iter().sum())
    }

    /// What couldn't be converted and isn't in the sum.
    pub fn unconverted(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(|part| part.converted.is_none() && part.currency != self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::ExchangeRateId;
    use crate::money::Amount;
    use crate::time::Time;

    fn currency(code: &str) -> Currency {
        Currency::parse(code).unwrap()
    }

    fn sum(text: &str) -> Sum {
        Sum::from(Amount::parse(text).unwrap().ten_thousandths())
    }

    #[test]
    fn a_sum_is_rounded_once_half_up_to_the_minor_digits_of_the_base() {
        let table = [
            ("1000", "1.05", "EUR", "1050"),
            ("0.01", "0.5", "EUR", "0.01"),
            ("0.01", "0.4999999999", "EUR", "0"),
            ("0.03", "0.5", "EUR", "0.02"),
            ("10.005", "1", "EUR", "10.01"),
            ("10.0049", "1", "EUR", "10"),
            ("7000", "0.0061234567", "EUR", "42.86"),
            ("1", "155.5", "JPY", "156"),
            ("1", "155.4999", "JPY", "155"),
            ("1", "0.30745", "KWD", "0.307"),
            ("1", "0.3075", "KWD", "0.308"),
            ("0", "1.05", "EUR", "0"),
            ("0.0001", "0.0000000001", "EUR", "0"),
            ("99999999999999.9999", "0.0000000001", "EUR", "10000"),
        ];
        for (from, rate, base, expected) in table {
            let converted = Rate::parse(rate).unwrap().convert(sum(from), currency(base));
            assert_eq!(converted, sum(expected), "{from} at {rate} in {base}");
        }
    }

    #[test]
    fn the_largest_sums_are_converted_exactly() {
        let most = Rate::parse("99999999.9999999999").unwrap();
        // A million accounts with the largest value.
        let sum = Sum::from(i64::MAX) * 1_000_000;
        // The rate is a ten-billionth below a hundred million: in cents, a little less than so many below.
        let cents = sum * 1_000_000 - (sum / 1_000_000_000_000 + 1);
        assert_eq!(most.convert(sum, currency("EUR")), cents * 100);
        assert_eq!(Rate::parse("1").unwrap().convert(sum, currency("EUR")), sum);
    }

    fn rate(of: &str, text: &str) -> ExchangeRate {
        ExchangeRate {
            id: ExchangeRateId::from_bytes([1; 16]),
            base: currency("EUR"),
            currency: currency(of),
            valid_from: Day::from_number(20_000),
            rate: Rate::parse(text).unwrap(),
            created_at: Time::from_micros(0),
        }
    }

    #[test]
    fn a_total_is_converted_as_far_as_there_are_rates_and_drops_nothing() {
        let rates = Rates::new(currency("EUR"), vec![rate("USD", "0.9"), rate("JPY", "0.005")]);
        type Codes = &'static [&'static str];
        type Case = (&'static [(&'static str, &'static str)], Option<&'static str>, Codes, Codes);
        // The sums, what they add up to, what has no rate, and the order in which the parts are shown.
        let table: [Case; 6] = [
            (&[], None, &[], &[]),
            (&[("EUR", "10.005")], Some("10.005"), &[], &["EUR"]),
            (&[("CHF", "7"), ("EUR", "10"), ("USD", "100")], Some("100"), &["CHF"], &["EUR", "USD", "CHF"]),
            (&[("JPY", "1"), ("USD", "1")], Some("0.91"), &[], &["JPY", "USD"]),
            (&[("SEK", "5"), ("CHF", "7")], None, &["CHF", "SEK"], &["CHF", "SEK"]),
            (&[("SEK", "5"), ("USD", "10")], Some("9"), &["SEK"], &["USD", "SEK"]),
        ];
        for (sums, expected, unconverted, order) in table {
            let total = rates.total(sums.iter().map(|(code, text)| (currency(code), sum(text))));
            assert_eq!(total.sum(), expected.map(sum), "{sums:?}");
            let left: Vec<&str> = total.unconverted().map(|part| part.currency.code()).collect();
            assert_eq!(left, unconverted, "{sums:?}");
            let parts: Vec<&str> = total.parts.iter().map(|part| part.currency.code()).collect();
            assert_eq!(parts, order, "{sums:?}");
            assert!(
                sums.iter().all(|(code, text)| total
                    .parts
                    .iter()
                    .any(|part| part.currency == currency(code) && part.sum == sum(text))),
                "{sums:?}"
            );
        }
    }
}

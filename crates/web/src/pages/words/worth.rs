//! A total over several currencies: the sum in the default currency, what couldn't be converted, and the parts.

use rapport_domain::channel_total::Sum;
use rapport_domain::exchange_rate::ExchangeRate;
use rapport_domain::exchange_rate::total::{Part, Rates, Total};
use rapport_domain::money::{Currency, Money};

use super::total::total;
use super::when::full_date;

/// A total as text. `parts::worth` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worth {
    /// In the default currency, else in the first of the currencies.
    pub sum: String,
    /// What there is besides, because it couldn't be converted.
    pub beside: Vec<String>,
    /// Every currency, unless the sum says it all.
    pub lines: Vec<Line>,
}

/// One currency of a total.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub amount: String,
    /// What it was converted to, and with which rate.
    pub converted: Option<(String, String)>,
    /// Whether it couldn't be converted.
    pub lacks_rate: bool,
}

impl Worth {
    /// `None` if there is nothing to add up.
    pub fn new(rates: &Rates, sums: impl IntoIterator<Item = (Currency, Sum)>) -> Option<Self> {
        let all = rates.total(sums);
        let (mut beside, base) = (all.unconverted().map(amount).collect::<Vec<_>>(), all.base);
        let sum = match all.sum() {
            Some(sum) => total(base, sum),
            None if beside.is_empty() => return None,
            None => beside.remove(0),
        };
        let is_plain = all.parts.len() == 1 && all.parts[0].converted.is_none();
        let lines = if is_plain { Vec::new() } else { lines(&all) };
        Some(Self { sum, beside, lines })
    }

    /// The value of a stage.
    pub fn of(rates: &Rates, values: &[Money]) -> Option<Self> {
        let sum = |value: &Money| (value.currency, Sum::from(value.amount.ten_thousandths()));
        Self::new(rates, values.iter().map(sum))
    }
}

fn amount(part: &Part) -> String {
    total(part.currency, part.sum)
}

fn lines(all: &Total) -> Vec<Line> {
    let line = |part: &Part| {
        let converted = part.converted.map(|converted| {
            let since = full_date(converted.valid_from.date());
            let rate = equation(part.currency, &converted.rate.text(), all.base);
            (total(all.base, converted.sum), format!("{rate} since {since}"))
        });
        let lacks_rate = converted.is_none() && part.currency != all.base;
        Line { amount: amount(part), converted, lacks_rate }
    };
    all.parts.iter().map(line).collect()
}

/// `1 CHF = 1.05 EUR`.
pub fn rate(rate: &ExchangeRate) -> String {
    equation(rate.currency, &rate.rate.text(), rate.base)
}

fn equation(currency: Currency, rate: &str, base: Currency) -> String {
    format!("1\u{a0}{} = {rate}\u{a0}{}", currency.code(), base.code())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rapport_domain::exchange_rate::Rate;
    use rapport_domain::id::ExchangeRateId;
    use rapport_domain::time::{Day, Time};

    fn currency(code: &str) -> Currency {
        Currency::parse(code).unwrap()
    }

    fn worth(sums: &[(&str, Sum)]) -> Option<Worth> {
        let chf = ExchangeRate {
            id: ExchangeRateId::from_bytes([1; 16]),
            base: currency("EUR"),
            currency: currency("CHF"),
            valid_from: Day::of("2026-11-01".parse().unwrap()),
            rate: Rate::parse("1.05").unwrap(),
            created_at: Time::from_micros(0),
        };
        let rates = Rates::new(currency("EUR"), vec![chf]);
        Worth::new(&rates, sums.iter().map(|(code, sum)| (currency(code), sum * 10_000)))
    }

    #[test]
    fn a_total_has_its_sum_and_what_could_not_be_converted_beside_it() {
        type Case = (&'static [(&'static str, Sum)], &'static str, &'static [&'static str], usize);
        let table: [Case; 5] = [
            (&[("EUR", 1_000)], "€1,000.00", &[], 0),
            (&[("USD", 5)], "$5.00", &[], 0),
            (&[("CHF", 1_000)], "€1,050.00", &[], 1),
            (&[("EUR", 1_000), ("CHF", 1_000), ("USD", 5)], "€2,050.00", &["$5.00"], 3),
            (&[("USD", 5), ("SEK", 7)], "SEK\u{a0}7.00", &["$5.00"], 2),
        ];
        for (sums, sum, beside, lines) in table {
            let found = worth(sums).unwrap();
            assert_eq!((found.sum.as_str(), found.lines.len()), (sum, lines), "{sums:?}");
            assert_eq!(found.beside, beside, "{sums:?}");
        }
        assert_eq!(worth(&[]), None);
    }

    #[test]
    fn its_parts_say_with_which_rate_they_were_converted() {
        let lines = worth(&[("EUR", 1), ("CHF", 1_000), ("USD", 5)]).unwrap().lines;
        let rate = "1\u{a0}CHF = 1.05\u{a0}EUR since 1 Nov 2026".to_owned();
        let line =
            |amount: &str, converted, lacks_rate| Line { amount: amount.to_owned(), converted, lacks_rate };
        let expected = [
            line("€1.00", None, false),
            line("CHF\u{a0}1,000.00", Some(("€1,050.00".to_owned(), rate)), false),
            line("$5.00", None, true),
        ];
        assert_eq!(lines, expected);
    }
}

//! Account value: an exact decimal amount and an ISO 4217 currency.
//!
//! Stored as integer ten-thousandths; a JSON number is read from its literal text, never through a float.

use std::fmt;

use serde_json::Value;

use crate::invalid::{Fault, as_str};

/// The digits after the decimal point of every amount.
pub(crate) const DECIMALS: usize = 4;
const MAX_WHOLE_DIGITS: usize = 14;
const UNITS: i64 = 10_000;

/// A non-negative amount in ten-thousandths of its currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(i64);

impl Amount {
    pub const fn from_ten_thousandths(units: i64) -> Self {
        Self(units)
    }

    pub const fn ten_thousandths(self) -> i64 {
        self.0
    }

    pub fn parse(text: &str) -> Result<Self, Fault> {
        AMOUNT.parse(text).map(Self)
    }

    /// From a JSON string or a JSON number's literal text.
    pub fn from_json(value: &Value) -> Result<Self, Fault> {
        AMOUNT.parse_json(value).map(Self)
    }
}

const AMOUNT: Decimal =
    Decimal { what: "amount", example: "1200.50", whole_digits: MAX_WHOLE_DIGITS, decimals: DECIMALS };

/// How an exact decimal number is read: as an integer of its smallest units.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decimal {
    pub what: &'static str,
    pub example: &'static str,
    pub whole_digits: usize,
    pub decimals: usize,
}

impl Decimal {
    pub fn parse(self, text: &str) -> Result<i64, Fault> {
        let Self { whole_digits, decimals, .. } = self;
        let (whole, fraction) = match text.split_once('.') {
            Some((_, "")) => return Err(self.malformed()),
            Some(parts) => parts,
            None => (text, ""),
        };
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !digits(whole) || !digits(fraction) {
            return Err(if text.starts_with('-') {
                Fault::new("negative", "must not be negative")
            } else {
                self.malformed()
            });
        }
        let whole = whole.trim_start_matches('0');
        if whole.len() > whole_digits || fraction.len() > decimals {
            return Err(Fault::new(
                "out_of_range",
                format!(
                    "must have at most {whole_digits} digits before the decimal point and {decimals} after it"
                ),
            ));
        }
        let padded = format!("{whole}{fraction:0<decimals$}");
        padded.parse().map_err(|_| self.malformed())
    }

    /// From a JSON string or a JSON number's literal text.
    pub fn parse_json(self, value: &Value) -> Result<i64, Fault> {
        match value {
            Value::String(text) => self.parse(text),
            Value::Number(number) => self.parse(&number.to_string()),
            _ => Err(Fault::new("wrong_type", format!("must be a string with a decimal {}", self.what))),
        }
    }

    fn malformed(self) -> Fault {
        let Self { what, example, .. } = self;
        let detail =
            format!("must be a decimal {what} such as \"{example}\", without an exponent or separators");
        Fault::new("malformed", detail)
    }
}

/// An ISO 4217 currency.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Currency(iso_currency::Currency);

impl Currency {
    pub const USD: Self = Self(iso_currency::Currency::USD);

    /// Reads a code in any case.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let upper = text.to_ascii_uppercase();
        iso_currency::Currency::from_code(&upper).map(Self).ok_or_else(|| {
            Fault::new("unknown_currency", "must be an ISO 4217 currency code such as EUR, USD or JPY")
        })
    }

    pub fn from_json(value: &Value) -> Result<Self, Fault> {
        Self::parse(as_str(value)?)
    }

    pub fn code(self) -> &'static str {
        self.0.code()
    }

    /// The digits after the decimal point of its smallest unit.
    pub(crate) fn minor_digits(self) -> usize {
        self.0.exponent().map_or(2, usize::from).min(DECIMALS)
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// An amount in a currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Money {
    pub amount: Amount,
    pub currency: Currency,
}

impl Money {
    /// The amount with the currency's minor digits, and more only if needed: `1200.50`, `2100000`.
    pub fn amount_text(&self) -> String {
        let (whole, fraction) = (self.amount.0 / UNITS, self.amount.0 % UNITS);
        let all = format!("{fraction:0DECIMALS$}");
        let needed = all.trim_end_matches('0').len().max(self.currency.minor_digits());
        if needed == 0 { whole.to_string() } else { format!("{whole}.{}", &all[..needed]) }
    }
}

/// A request's change to an account's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Capture {
    /// No change.
    #[default]
    Keep,
    /// Removes value and currency.
    Clear,
    Set {
        amount: Amount,
        currency: Option<Currency>,
    },
    /// A currency alone: it applies to the existing value.
    Denominate(Currency),
}

impl Capture {
    pub fn from_parts(amount: Option<Amount>, currency: Option<Currency>) -> Self {
        match (amount, currency) {
            (Some(amount), currency) => Self::Set { amount, currency },
            (None, Some(currency)) => Self::Denominate(currency),
            (None, None) => Self::Keep,
        }
    }

    /// The value that an account has afterwards. `default` is the company's currency.
    pub fn apply(self, current: Option<Money>, default: Currency) -> Option<Money> {
        match self {
            Self::Keep => current,
            Self::Clear => None,
            Self::Set { amount, currency } => {
                let kept = current.map_or(default, |money| money.currency);
                Some(Money { amount, currency: currency.unwrap_or(kept) })
            }
            Self::Denominate(currency) => current.map(|money| Money { currency, ..money }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(text: &str, currency: &str) -> String {
        Money { amount: Amount::parse(text).unwrap(), currency: Currency::parse(currency).unwrap() }
            .amount_text()
    }

    #[test]
    fn amounts_show_the_minor_digits_of_their_currency() {
        let table = [
            ("1200.5", "EUR", "1200.50"),
            ("1200.505", "eur", "1200.505"),
            ("2100000", "JPY", "2100000"),
            ("0.5", "JPY", "0.5"),
            ("1", "KWD", "1.000"),
            ("0", "USD", "0.00"),
            ("007", "USD", "7.00"),
            ("99999999999999.9999", "USD", "99999999999999.9999"),
        ];
        for (text, currency, expected) in table {
            assert_eq!(shown(text, currency), expected, "{text} {currency}");
        }
    }

    #[test]
    fn invalid_amounts_are_refused() {
        let table = [
            ("-1", "negative"),
            ("1e3", "malformed"),
            ("", "malformed"),
            (".5", "malformed"),
            ("5.", "malformed"),
            ("1,000", "malformed"),
            (" 1", "malformed"),
            ("+1", "malformed"),
            ("NaN", "malformed"),
            ("١", "malformed"),
            ("100000000000000", "out_of_range"),
            ("1.00001", "out_of_range"),
        ];
        for (text, code) in table {
            assert_eq!(Amount::parse(text).unwrap_err().code, code, "{text}");
        }
    }

    #[test]
    fn a_json_number_is_taken_by_its_literal_text() {
        let read = |json: &str| Amount::from_json(&serde_json::from_str(json).unwrap());
        assert_eq!(read("0.1").unwrap(), Amount::parse("0.1").unwrap());
        assert_eq!(read("99999999999999.9999").unwrap().ten_thousandths(), 999_999_999_999_999_999);
        assert_eq!(read("1e3").unwrap_err().code, "malformed");
        assert_eq!(read("1E+2").unwrap_err().code, "malformed");
        assert_eq!(read("true").unwrap_err().code, "wrong_type");
    }

    #[test]
    fn capture_follows_the_decided_table() {
        let (eur, usd) = (Currency::parse("EUR").unwrap(), Currency::USD);
        let amount = Amount::parse("10").unwrap();
        let five = Money { amount: Amount::parse("5").unwrap(), currency: eur };
        let held = Some(five);
        let set = |currency| Capture::Set { amount, currency };
        let table = [
            (Capture::Keep, held, held),
            (Capture::Clear, held, None),
            (set(None), held, Some(Money { amount, currency: eur })),
            (set(None), None, Some(Money { amount, currency: usd })),
            (set(Some(usd)), held, Some(Money { amount, currency: usd })),
            (Capture::Denominate(usd), held, Some(Money { currency: usd, ..five })),
            (Capture::Denominate(usd), None, None),
        ];
        for (capture, current, expected) in table {
            assert_eq!(capture.apply(current, usd), expected, "{capture:?} on {current:?}");
        }
    }

    proptest! {
        #[test]
        fn an_amount_reads_back_as_shown(units in 0_i64..1_000_000_000_000_000_000) {
            let amount = Amount::from_ten_thousandths(units);
            let money = Money { amount, currency: Currency::USD };
            prop_assert_eq!(Amount::parse(&money.amount_text()), Ok(amount));
        }
    }
}

//! Sums of money, however large.

use rapport_domain::channel_total::Sum;
use rapport_domain::money::{Amount, Currency, Money};

use super::money::money;
use super::number::group;

const UNITS: Sum = 10_000;

/// `€1,234,567.50`.
pub fn total(currency: Currency, sum: Sum) -> String {
    let amount = |units: Sum| Amount::from_ten_thousandths(i64::try_from(units).unwrap_or(i64::MAX));
    if i64::try_from(sum).is_ok() {
        return money(&Money { amount: amount(sum), currency });
    }
    // The sum is too large for an amount, so its whole part replaces the zero of the formatted rest.
    let rest = money(&Money { amount: amount(sum % UNITS), currency });
    rest.replacen('0', &group(&(sum / UNITS).to_string()), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_shown_whole() {
        let eur = Currency::parse("EUR").unwrap();
        let chf = Currency::parse("CHF").unwrap();
        let jpy = Currency::parse("JPY").unwrap();
        assert_eq!(total(eur, 12_345_000), "€1,234.50");
        assert_eq!(total(eur, 0), "€0.00");
        assert_eq!(total(eur, Sum::from(i64::MAX) * 10), "€9,223,372,036,854,775.807");
        assert_eq!(total(chf, 20_000_000_000_000_005_000), "CHF\u{a0}2,000,000,000,000,000.50");
        assert_eq!(total(jpy, 20_000_000_000_000_000_000), "¥2,000,000,000,000,000");
    }
}

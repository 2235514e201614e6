//! Money: `€48,000.00`, `CHF 1,200.00`.

use rapport_domain::money::Money;

use super::number::group;

/// Symbols that most people recognise. Other currencies are shown by their code.
const SYMBOLS: [(&str, &str); 5] = [("EUR", "€"), ("USD", "$"), ("GBP", "£"), ("JPY", "¥"), ("INR", "₹")];

pub fn money(money: &Money) -> String {
    let amount = money.amount_text();
    let (whole, fraction) = amount.split_once('.').unwrap_or((&amount, ""));
    let fraction = if fraction.is_empty() { String::new() } else { format!(".{fraction}") };
    let code = money.currency.code();
    let symbol = SYMBOLS.iter().find(|(known, _)| *known == code);
    let before = symbol.map_or_else(|| format!("{code}\u{a0}"), |(_, symbol)| (*symbol).to_owned());
    format!("{before}{}{fraction}", group(whole))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rapport_domain::money::{Amount, Currency};

    #[test]
    fn money_has_its_symbol_or_code_and_separators() {
        let table = [
            ("48000", "EUR", "€48,000.00"),
            ("1200.5", "CHF", "CHF\u{a0}1,200.50"),
            ("2100000", "JPY", "¥2,100,000"),
            ("0.1234", "USD", "$0.1234"),
        ];
        for (amount, currency, expected) in table {
            let amount = Amount::parse(amount).unwrap();
            let currency = Currency::parse(currency).unwrap();
            assert_eq!(money(&Money { amount, currency }), expected);
        }
    }
}

//! Numbers as people write them: `12.500,00`, `€1,200`, `CHF 1'250.50`, `12.500,-`.

use crate::invalid::Fault;
use crate::money::{Amount, Currency};

/// Which character separates the decimals. The other one, a space or an apostrophe may group the digits before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Decimal {
    Point,
    Comma,
}

/// The currency that is written with an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    Code(Currency),
    /// A plain `$`: the company's own dollar, if it has one.
    Dollar,
}

/// An amount, and the currency next to it.
pub type Written = (Amount, Option<Sign>);

const SIGNS: [(&str, &str); 9] = [
    ("€", "EUR"),
    ("euro", "EUR"),
    ("£", "GBP"),
    ("us$", "USD"),
    ("fr.", "CHF"),
    ("sfr.", "CHF"),
    ("¥", "JPY"),
    ("zł", "PLN"),
    ("₹", "INR"),
];
/// What a German writes after a whole amount.
const WHOLE_ENDINGS: [&str; 6] = [",--", ",-", ",–", ",—", ".--", ".-"];
/// The number of digits in a group.
const GROUP: usize = 3;

/// Characters that group digits whatever the decimal separator is: spaces and apostrophes.
fn is_neutral_grouping(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '\'' | '’')
}

/// Reads an amount.
pub fn read(text: &str, decimal: Decimal) -> Result<Written, Fault> {
    let (core, around) = split(text).ok_or_else(|| malformed(decimal))?;
    let mut sign = None;
    for word in around {
        let word = word.trim();
        let (word, is_negative) =
            match word.strip_prefix(['-', '−', '–']).or_else(|| word.strip_suffix(['-', '−'])) {
                Some(rest) => (rest.trim(), true),
                None => (word.trim_start_matches('+').trim(), false),
            };
        if is_negative {
            return Err(Fault::new("negative", "must not be negative"));
        }
        if !word.is_empty() {
            let found = currency(word).ok_or_else(|| malformed(decimal))?;
            if sign.is_some_and(|known| known != found) {
                return Err(malformed(decimal));
            }
            sign = Some(found);
        }
    }
    let plain = plain(core, decimal).ok_or_else(|| malformed(decimal))?;
    Amount::parse(&plain).map(|amount| (amount, sign))
}

fn malformed(decimal: Decimal) -> Fault {
    let example = match decimal {
        Decimal::Point => "1,200.50",
        Decimal::Comma => "1.200,50",
    };
    Fault::new("malformed", format!("must be an amount such as {example}"))
}

/// The digits with their separators, and the text before and after them.
fn split(text: &str) -> Option<(&str, [&str; 2])> {
    let text = text.trim();
    let text = WHOLE_ENDINGS.iter().find_map(|ending| text.strip_suffix(ending)).unwrap_or(text);
    let from = text.find(|letter: char| letter.is_ascii_digit())?;
    let to = text.rfind(|letter: char| letter.is_ascii_digit())? + 1;
    let after = &text[to..];
    // "12.500,- €": the currency follows the dash.
    let after = WHOLE_ENDINGS.iter().find_map(|ending| after.strip_prefix(ending)).unwrap_or(after);
    Some((&text[from..to], [&text[..from], after]))
}

/// The currency that a sign or a code means.
fn currency(word: &str) -> Option<Sign> {
    if word == "$" {
        return Some(Sign::Dollar);
    }
    let lower = word.to_lowercase();
    let code = SIGNS.iter().find(|(sign, _)| *sign == lower).map_or(word, |(_, code)| code);
    Currency::parse(code).ok().map(Sign::Code)
}

/// The number with a decimal point and no grouping; `None` if it isn't written in this way.
fn plain(core: &str, decimal: Decimal) -> Option<String> {
    let (point, grouping) = match decimal {
        Decimal::Point => ('.', ','),
        Decimal::Comma => (',', '.'),
    };
    let (whole, fraction) = core.split_once(point).map_or((core, None), |(whole, rest)| (whole, Some(rest)));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if fraction.is_some_and(|fraction| !digits(fraction)) {
        return None;
    }
    let used = whole.chars().find(|letter| !letter.is_ascii_digit());
    let whole = match used {
        None => whole.to_owned(),
        Some(used) if used == grouping || is_neutral_grouping(used) => {
            let groups: Vec<&str> = whole.split(used).collect();
            let (first, rest) = groups.split_first()?;
            let is_grouped = digits(first)
                && first.len() <= GROUP
                && !first.starts_with('0')
                && rest.iter().all(|group| digits(group) && group.len() == GROUP);
            is_grouped.then(|| groups.concat())?
        }
        Some(_) => return None,
    };
    Some(fraction.map_or_else(|| whole.clone(), |fraction| format!("{whole}.{fraction}")))
}

/// What a column's values say about its decimal separator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proposed<T> {
    Clear(T),
    /// Every value that would decide can be read either way.
    Unclear,
}

/// Whether most of these values are numbers, in whatever way they are written.
pub fn look_like_numbers<'a>(values: impl IntoIterator<Item = &'a str>) -> bool {
    let (mut all, mut numbers) = (0, 0);
    for value in values {
        all += 1;
        numbers += usize::from([Decimal::Point, Decimal::Comma].iter().any(|one| read(value, *one).is_ok()));
    }
    all > 0 && numbers * 2 > all
}

/// Proposes how to read a column. A value that can be read in only one way decides, by majority if they disagree.
pub fn propose<'a>(values: impl IntoIterator<Item = &'a str>) -> Proposed<Decimal> {
    let (mut point, mut comma, mut undecided) = (0, 0, 0);
    for value in values {
        match (read(value, Decimal::Point), read(value, Decimal::Comma)) {
            (Ok(_), Err(_)) => point += 1,
            (Err(_), Ok(_)) => comma += 1,
            (Ok(one), Ok(other)) => undecided += i32::from(one != other),
            (Err(_), Err(_)) => {}
        }
    }
    match (point, comma) {
        (0, 0) if undecided > 0 => Proposed::Unclear,
        (point, comma) if comma > point => Proposed::Clear(Decimal::Comma),
        _ => Proposed::Clear(Decimal::Point),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(text: &str, decimal: Decimal) -> String {
        match read(text, decimal) {
            Ok((amount, sign)) => {
                let units = amount.ten_thousandths();
                let sign = match sign {
                    None => "",
                    Some(Sign::Dollar) => " $",
                    Some(Sign::Code(code)) => &format!(" {}", code.code()),
                };
                format!("{}.{:04}{sign}", units / 10_000, units % 10_000)
            }
            Err(fault) => fault.code.to_owned(),
        }
    }

    #[test]
    fn numbers_are_read_as_people_write_them() {
        let table = [
            ("1200", "1200.0000", "1200.0000"),
            ("1200.5", "1200.5000", "malformed"),
            ("1200,5", "malformed", "1200.5000"),
            ("12.500,00", "malformed", "12500.0000"),
            ("12,500.00", "12500.0000", "malformed"),
            ("€1,200", "1200.0000 EUR", "1.2000 EUR"),
            ("1.200 €", "1.2000 EUR", "1200.0000 EUR"),
            ("EUR 1.200,50", "malformed", "1200.5000 EUR"),
            ("1.234.567", "malformed", "1234567.0000"),
            ("1,234,567", "1234567.0000", "malformed"),
            ("12 500,75", "malformed", "12500.7500"),
            ("12\u{a0}500", "12500.0000", "12500.0000"),
            ("12\u{202f}500,75 €", "malformed", "12500.7500 EUR"),
            ("CHF 1'250.50", "1250.5000 CHF", "malformed"),
            ("1’250", "1250.0000", "1250.0000"),
            ("12.500,-", "12.5000", "12500.0000"),
            ("950,- €", "950.0000 EUR", "950.0000 EUR"),
            ("950,--", "950.0000", "950.0000"),
            ("$1,200.00", "1200.0000 $", "malformed"),
            ("US$ 99", "99.0000 USD", "99.0000 USD"),
            ("usd 5", "5.0000 USD", "5.0000 USD"),
            ("0.500", "0.5000", "malformed"),
            ("0,500", "malformed", "0.5000"),
            ("+7", "7.0000", "7.0000"),
            ("-7", "negative", "negative"),
            ("€ -7", "negative", "negative"),
            ("1,5", "malformed", "1.5000"),
            ("1,2,3", "malformed", "malformed"),
            ("1.2.3", "malformed", "malformed"),
            ("12,34,567", "malformed", "malformed"),
            ("1 20", "malformed", "malformed"),
            ("12k", "malformed", "malformed"),
            ("a lot", "malformed", "malformed"),
            ("", "malformed", "malformed"),
            ("5.", "malformed", "malformed"),
            ("€ 5 $", "malformed", "malformed"),
            ("1.00001", "out_of_range", "malformed"),
        ];
        for (text, point, comma) in table {
            assert_eq!(shown(text, Decimal::Point), point, "{text} with a decimal point");
            assert_eq!(shown(text, Decimal::Comma), comma, "{text} with a decimal comma");
        }
    }

    #[test]
    fn the_column_decides() {
        use Proposed::{Clear, Unclear};
        let table: [(&[&str], Proposed<Decimal>); 11] = [
            (&[], Clear(Decimal::Point)),
            (&["1200", "7"], Clear(Decimal::Point)),
            (&["1.200", "99,50"], Clear(Decimal::Comma)),
            (&["1,200", "99.50"], Clear(Decimal::Point)),
            (&["1.200", "1.234.567"], Clear(Decimal::Comma)),
            (&["1.200", "0.500"], Clear(Decimal::Point)),
            (&["1.200", "12.500"], Unclear),
            (&["€1,200", "€2,400", "7"], Unclear),
            (&["1,200", "free", "n/a"], Unclear),
            (&["1,50", "2,50", "3.50"], Clear(Decimal::Comma)),
            (&["1,50", "3.50"], Clear(Decimal::Point)),
        ];
        for (values, expected) in table {
            assert_eq!(propose(values.iter().copied()), expected, "{values:?}");
        }
    }

    #[test]
    fn a_column_of_numbers_is_recognized() {
        assert!(look_like_numbers(["1.200", "€5", "free"]));
        assert!(!look_like_numbers(["Acme", "5"]));
        assert!(!look_like_numbers([]));
    }

    proptest! {
        #[test]
        fn what_is_written_in_a_dialect_reads_back(units in 0_i64..10_000_000_000_000, cents in 0_i64..100) {
            let plain = units.to_string();
            let grouped = |separator: &str| {
                let head = plain.len() % GROUP;
                let (first, rest) = plain.split_at(head);
                let mut groups: Vec<&str> = if first.is_empty() { Vec::new() } else { vec![first] };
                groups.extend(rest.as_bytes().chunks(GROUP).map(|group| str::from_utf8(group).unwrap()));
                groups.join(separator)
            };
            let expected = Amount::from_ten_thousandths(units * 10_000 + cents * 100);
            let german = format!("{},{cents:02}", grouped("."));
            let english = format!("{}.{cents:02}", grouped(","));
            prop_assert_eq!(read(&german, Decimal::Comma).unwrap().0, expected);
            prop_assert_eq!(read(&english, Decimal::Point).unwrap().0, expected);
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,24}") {
            let _ = (read(&text, Decimal::Point), read(&text, Decimal::Comma));
        }
    }
}

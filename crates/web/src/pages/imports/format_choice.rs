//! The formats that a column can be read in, each shown on one of the column's values.

use rapport_domain::import::Import;
use rapport_domain::import::date::{self, Order};
use rapport_domain::import::format::{Format, Shape, is_nothing};
use rapport_domain::import::mapping::Target;
use rapport_domain::import::number::{self, Decimal, Proposed};
use rapport_domain::money::{Amount, Currency, Money};

use crate::pages::words::number::grouped;
use crate::pages::words::when;

/// The choice of a column whose cells are numbers or dates.
pub struct FormatChoice {
    /// Values and labels.
    pub options: Vec<(&'static str, String)>,
    /// The format that was chosen or proposed; empty if the values can be read in two ways.
    pub chosen: &'static str,
    /// A value that can be read in two ways, if nothing else decides.
    pub unclear: Option<String>,
    format: Option<Format>,
}

impl FormatChoice {
    /// `None` if the column needs no format.
    pub fn of(import: &Import, number: usize, values: &[String]) -> Option<Self> {
        let values: Vec<&str> =
            values.iter().map(String::as_str).filter(|value| !is_nothing(value)).collect();
        let target = import.mapping.0.get(number).unwrap_or(&Target::Ignore);
        let shape = Shape::of_target(target).or_else(|| Shape::of_values(&values))?;
        let kept = import.formats.get(number).copied().flatten().filter(|format| format.shape() == shape);
        let proposed = match shape.propose(&values) {
            Proposed::Clear(format) => Some(format),
            Proposed::Unclear => None,
        };
        let telling = shape.telling(&values);
        let example = telling.or_else(|| values.first().copied()).unwrap_or_default();
        let format = kept.or(proposed);
        let unclear = telling.filter(|_| format.is_none()).map(str::to_owned);
        let mut options: Vec<(&'static str, String)> =
            shape.formats().map(|format| (format.as_str(), label(format, example))).collect();
        if unclear.is_some() {
            options.insert(0, ("", "Choose a format…".to_owned()));
        }
        Some(Self { options, chosen: format.map_or("", Format::as_str), unclear, format })
    }

    /// A value as it is read.
    pub fn read(&self, value: &str) -> Option<String> {
        self.format.filter(|_| !is_nothing(value)).map(|format| read(format, value))
    }
}

fn label(format: Format, example: &str) -> String {
    let name = match format {
        Format::Number(Decimal::Point) => "Decimal point",
        Format::Number(Decimal::Comma) => "Decimal comma",
        Format::Date(Order::DayFirst) => "Day first",
        Format::Date(Order::MonthFirst) => "Month first",
        Format::Date(Order::YearFirst) => "Year first",
    };
    if example.is_empty() {
        name.to_owned()
    } else {
        format!("{name}: {example} → {}", read(format, example))
    }
}

/// What a value means in a format.
fn read(format: Format, value: &str) -> String {
    match format {
        Format::Number(decimal) => number::read(value, decimal)
            .map_or_else(|_| "not a number".to_owned(), |(amount, _)| plain(amount)),
        Format::Date(order) => {
            let day = date::read(value, order).map(|moment| moment.date(&jiff::tz::TimeZone::UTC));
            day.map_or_else(|_| "not a date".to_owned(), when::date)
        }
    }
}

/// `12,500.00`.
fn plain(amount: Amount) -> String {
    let text = Money { amount, currency: Currency::USD }.amount_text();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, "00"));
    format!("{}.{fraction}", grouped(whole.parse().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_shown_on_a_value() {
        let table = [
            (Format::Number(Decimal::Comma), "12.500", "Decimal comma: 12.500 → 12,500.00"),
            (Format::Number(Decimal::Point), "12.500", "Decimal point: 12.500 → 12.50"),
            (Format::Number(Decimal::Point), "1.2,3", "Decimal point: 1.2,3 → not a number"),
            (Format::Date(Order::DayFirst), "03/04/2026", "Day first: 03/04/2026 → 3 Apr 2026"),
            (Format::Date(Order::MonthFirst), "31/12/2026", "Month first: 31/12/2026 → not a date"),
            (Format::Date(Order::YearFirst), "", "Year first"),
        ];
        for (format, value, expected) in table {
            assert_eq!(label(format, value), expected);
        }
    }
}

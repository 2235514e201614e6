//! How the cells of a column are written: chosen by a person, or proposed from the column's values.

use super::date::{self, Order};
use super::mapping::Target;
use super::number::{self, Decimal, Proposed};
use crate::invalid::Fault;
use crate::schema::words;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    Number(Decimal),
    Date(Order),
}

/// What a column holds, as far as its cells can be written in more than one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Number,
    Date,
}

impl Format {
    pub const ALL: [Self; 5] = [
        Self::Number(Decimal::Point),
        Self::Number(Decimal::Comma),
        Self::Date(Order::DayFirst),
        Self::Date(Order::MonthFirst),
        Self::Date(Order::YearFirst),
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Number(Decimal::Point) => "decimal_point",
            Self::Number(Decimal::Comma) => "decimal_comma",
            Self::Date(Order::DayFirst) => "day_first",
            Self::Date(Order::MonthFirst) => "month_first",
            Self::Date(Order::YearFirst) => "year_first",
        }
    }

    pub fn parse(text: &str) -> Result<Self, Fault> {
        Self::ALL
            .into_iter()
            .find(|format| format.as_str() == text)
            .ok_or_else(|| Fault::not_one_of("unknown_format", Self::ALL.map(Self::as_str)))
    }

    pub const fn shape(self) -> Shape {
        match self {
            Self::Number(_) => Shape::Number,
            Self::Date(_) => Shape::Date,
        }
    }
}

words!(Format, "ImportFormat", "How the numbers or dates of a column are written.");

impl Shape {
    /// What a column for this field must hold.
    pub const fn of_target(target: &Target) -> Option<Self> {
        match target {
            Target::Value => Some(Self::Number),
            Target::LastContact | Target::SnoozedUntil => Some(Self::Date),
            _ => None,
        }
    }

    /// What these values look like, if that leaves a choice.
    pub fn of_values(values: &[&str]) -> Option<Self> {
        let is_plain = |value: &&str| value.bytes().all(|byte| byte.is_ascii_digit());
        if date::look_like_dates(values.iter().copied()) {
            return Some(Self::Date);
        }
        let is_number = !values.iter().all(is_plain) && number::look_like_numbers(values.iter().copied());
        is_number.then_some(Self::Number)
    }

    pub fn formats(self) -> impl Iterator<Item = Format> {
        Format::ALL.into_iter().filter(move |format| format.shape() == self)
    }

    /// The format that the values of a column are in.
    pub fn propose(self, values: &[&str]) -> Proposed<Format> {
        let given = values.iter().copied().filter(|value| !is_nothing(value));
        match self {
            Self::Number => number::propose(given).map(Format::Number),
            Self::Date => date::propose(given).map(Format::Date),
        }
    }

    /// The first value that the formats read differently.
    pub fn telling<'a>(self, values: &[&'a str]) -> Option<&'a str> {
        let differs = |value: &&&str| match self {
            Self::Number => number::propose([**value]) == Proposed::Unclear,
            Self::Date => date::propose([**value]) == Proposed::Unclear,
        };
        values.iter().find(differs).copied()
    }
}

impl<T> Proposed<T> {
    fn map<U>(self, with: impl FnOnce(T) -> U) -> Proposed<U> {
        match self {
            Self::Clear(found) => Proposed::Clear(with(found)),
            Self::Unclear => Proposed::Unclear,
        }
    }
}

/// Words that people and programs write into a cell that has no value.
const NOTHING: [&str; 12] =
    ["-", "--", "–", "—", "n/a", "#n/a", "null", "none", "never", "nie", "k.a.", "k. a."];

/// Whether a cell for a number, a date or an address means "no value", such as `-`.
pub fn is_nothing(text: &str) -> bool {
    let text = text.trim().to_lowercase();
    text.is_empty() || NOTHING.contains(&text.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_have_their_words() {
        for format in Format::ALL {
            assert_eq!(Format::parse(format.as_str()), Ok(format));
        }
        assert_eq!(Format::parse("roman").unwrap_err().code, "unknown_format");
    }

    #[test]
    fn a_column_has_the_shape_of_its_values() {
        let table: [(&[&str], Option<Shape>); 6] = [
            (&["31.12.2026", "never"], None),
            (&["31.12.2026", "1.1.2027", "never"], Some(Shape::Date)),
            (&["1.200,50", "7"], Some(Shape::Number)),
            (&["1001", "1002"], None),
            (&["Acme", "Globex"], None),
            (&[], None),
        ];
        for (values, shape) in table {
            assert_eq!(Shape::of_values(values), shape, "{values:?}");
        }
    }

    #[test]
    fn a_value_that_tells_the_formats_apart_is_found() {
        assert_eq!(Shape::Date.telling(&["2026-12-31", "05/05/2026", "03/04/2026"]), Some("03/04/2026"));
        assert_eq!(Shape::Number.telling(&["7", "1.200"]), Some("1.200"));
        assert_eq!(Shape::Number.telling(&["7", "1.5"]), None);
    }

    #[test]
    fn empty_cells_do_not_decide() {
        assert_eq!(
            Shape::Number.propose(&["-", "n/a", "1,50"]),
            Proposed::Clear(Format::Number(Decimal::Comma))
        );
        assert!(is_nothing(" K.A. ") && is_nothing("") && !is_nothing("0"));
    }
}

//! Dates as people write them: `31/12/2026`, `31.12.26 14:30`, `3. März 2026`, `Dec 31, 2026`.

use jiff::civil::{Date, DateTime, Time as Clock};
use jiff::tz::TimeZone;

use super::number::Proposed;
use crate::invalid::Fault;
use crate::time::Time;

/// The order of day, month and year in a date of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    DayFirst,
    MonthFirst,
    YearFirst,
}

/// A date, a local date and time, or a point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    Date(Date),
    Local(DateTime),
    Exact(Time),
}

impl Moment {
    /// When it was; a date begins with its day in `zone`.
    pub fn at(self, zone: &TimeZone) -> Time {
        match self {
            Self::Date(date) => Time::start_of_day(date, zone),
            Self::Local(local) => zone.to_ambiguous_zoned(local).compatible().map_or_else(
                |_| Time::start_of_day(local.date(), zone),
                |zoned| Time::from_timestamp(zoned.timestamp()),
            ),
            Self::Exact(time) => time,
        }
    }

    pub fn date(self, zone: &TimeZone) -> Date {
        match self {
            Self::Date(date) => date,
            Self::Local(local) => local.date(),
            Self::Exact(time) => time.day_in(zone).date(),
        }
    }
}

/// Beginnings of the months' names in English and German, without dots.
const MONTHS: [(&str, i8); 23] = [
    ("january", 1),
    ("januar", 1),
    ("jänner", 1),
    ("february", 2),
    ("februar", 2),
    ("march", 3),
    ("märz", 3),
    ("maerz", 3),
    ("mrz", 3),
    ("april", 4),
    ("may", 5),
    ("mai", 5),
    ("june", 6),
    ("juni", 6),
    ("july", 7),
    ("juli", 7),
    ("august", 8),
    ("september", 9),
    ("october", 10),
    ("oktober", 10),
    ("november", 11),
    ("december", 12),
    ("dezember", 12),
];
const SHORTEST_MONTH: usize = 3;
/// Years of two digits from here on are in the last century.
const LAST_CENTURY: i16 = 70;

/// Reads a date, with or without a time of day.
pub fn read(text: &str, order: Order) -> Result<Moment, Fault> {
    let text = text.trim();
    let iso = text.as_bytes().get(4) == Some(&b'-');
    if iso
        && text.len() > 10
        && let Ok(time) = text.parse::<jiff::Timestamp>()
    {
        return Ok(Moment::Exact(Time::from_timestamp(time)));
    }
    let (day, clock) = clock_of(text);
    let date = named(day).or_else(|| numeric(day, order)).ok_or_else(|| malformed(order))?;
    Ok(match clock {
        Some(clock) => Moment::Local(date.to_datetime(clock)),
        None => Moment::Date(date),
    })
}

fn malformed(order: Order) -> Fault {
    let example = match order {
        Order::DayFirst => "31/12/2026 or 31.12.2026",
        Order::MonthFirst => "12/31/2026",
        Order::YearFirst => "2026-12-31",
    };
    Fault::new("malformed", format!("must be a date such as {example}"))
}

/// The text without its time of day, and that time.
fn clock_of(text: &str) -> (&str, Option<Clock>) {
    let cut = text.find(|letter: char| letter == 'T' || letter.is_whitespace() || letter == ',');
    let with_clock = cut.and_then(|_| {
        // The time is behind the last date part: look for the first token with a colon.
        let colon = text.find(':')?;
        let hour = text[..colon].rsplit(|letter: char| !letter.is_ascii_digit()).next()?;
        let start = colon - hour.len();
        let clock = clock(text[start..].trim())?;
        let day = text[..start]
            .trim_end_matches(|letter: char| letter == 'T' || letter.is_whitespace() || letter == ',');
        Some((day, clock))
    });
    with_clock.map_or((text, None), |(day, clock)| (day, Some(clock)))
}

/// `14:30`, `14:30:05`, `2:30 PM`, `14:30 Uhr`.
fn clock(text: &str) -> Option<Clock> {
    let lower = text.to_lowercase();
    let (digits, half) = match lower.trim_end_matches("uhr").trim() {
        text if text.ends_with("am") => (text.trim_end_matches("am").trim(), Some(0)),
        text if text.ends_with("pm") => (text.trim_end_matches("pm").trim(), Some(12)),
        text => (text, None),
    };
    let whole = digits.split_once('.').map_or(digits, |(whole, _)| whole);
    let parts: Vec<i8> = whole.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let (hour, minute, second) = match parts[..] {
        [hour, minute] => (hour, minute, 0),
        [hour, minute, second] => (hour, minute, second),
        _ => return None,
    };
    let hour = match half {
        Some(half) if (1..=12).contains(&hour) => hour % 12 + half,
        Some(_) => return None,
        None => hour,
    };
    Clock::new(hour, minute, second, 0).ok()
}

/// A date of three numbers.
fn numeric(text: &str, order: Order) -> Option<Date> {
    let separator = text.chars().find(|letter| !letter.is_ascii_digit())?;
    if !matches!(separator, '.' | '/' | '-' | ' ') {
        return None;
    }
    let parts: Vec<&str> = text.split(separator).map(str::trim).filter(|part| !part.is_empty()).collect();
    let [first, second, third] = parts[..] else { return None };
    // A year in front needs no order.
    let (year, month, day) = match order {
        _ if first.len() == 4 => (first, second, third),
        Order::DayFirst => (third, second, first),
        Order::MonthFirst => (third, first, second),
        Order::YearFirst => return None,
    };
    dated(year, number(month)?, day)
}

/// A date with the name of a month.
fn named(text: &str) -> Option<Date> {
    let lower = text.to_lowercase();
    let is_part = |letter: char| letter.is_whitespace() || matches!(letter, '.' | ',' | '-' | '/');
    let parts: Vec<&str> = lower.split(is_part).filter(|part| !part.is_empty()).collect();
    let parts = match parts[..] {
        // A weekday in front.
        [first, ..] if parts.len() == 4 && first.chars().all(char::is_alphabetic) => &parts[1..],
        _ => &parts[..],
    };
    let [first, second, third] = *parts else { return None };
    let (month, day) = match (month(first), month(second)) {
        (None, Some(month)) => (month, first),
        (Some(month), None) => (month, second),
        _ => return None,
    };
    let day = day.trim_end_matches("st").trim_end_matches("nd").trim_end_matches("rd").trim_end_matches("th");
    dated(third, month, day)
}

fn month(word: &str) -> Option<i8> {
    if word.chars().count() < SHORTEST_MONTH {
        return None;
    }
    MONTHS.iter().find(|(name, _)| name.starts_with(word)).map(|(_, number)| *number)
}

fn dated(year: &str, month: i8, day: &str) -> Option<Date> {
    let length = year.len();
    let year: i16 = Some(year).filter(|year| year.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()?;
    let year = match length {
        4 => year,
        2 if year < LAST_CENTURY => 2000 + year,
        2 => 1900 + year,
        _ => return None,
    };
    Date::new(year, month, number(day)?).ok()
}

fn number(text: &str) -> Option<i8> {
    Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
}

/// Whether most of these values are dates, in whatever way they are written.
pub fn look_like_dates<'a>(values: impl IntoIterator<Item = &'a str>) -> bool {
    let (mut all, mut dates) = (0, 0);
    for value in values {
        all += 1;
        dates +=
            usize::from([Order::DayFirst, Order::MonthFirst].iter().any(|one| read(value, *one).is_ok()));
    }
    all > 0 && dates * 2 > all
}

/// Proposes how to read a column. A value that can be read in only one way decides, by majority if they disagree. Dots
/// mean that the day is first: no country writes the month before a dot.
pub fn propose<'a>(values: impl IntoIterator<Item = &'a str>) -> Proposed<Order> {
    let (mut day, mut month, mut undecided) = (0, 0, 0);
    let mut has_numbers = false;
    for value in values {
        has_numbers |= read(value, Order::DayFirst).is_ok() && read(value, Order::YearFirst).is_err();
        match (read(value, Order::DayFirst), read(value, Order::MonthFirst)) {
            (Ok(_), Err(_)) => day += 1,
            (Err(_), Ok(_)) => month += 1,
            (Ok(one), Ok(other)) if one != other && is_dotted(value) => day += 1,
            (Ok(one), Ok(other)) => undecided += i32::from(one != other),
            (Err(_), Err(_)) => {}
        }
    }
    match (day, month) {
        (0, 0) if undecided > 0 => Proposed::Unclear,
        (0, 0) if !has_numbers => Proposed::Clear(Order::YearFirst),
        (day, month) if month > day => Proposed::Clear(Order::MonthFirst),
        _ => Proposed::Clear(Order::DayFirst),
    }
}

fn is_dotted(value: &str) -> bool {
    value.trim().chars().find(|letter| !letter.is_ascii_digit()) == Some('.')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(text: &str, order: Order) -> String {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        match read(text, order) {
            Ok(Moment::Date(date)) => date.to_string(),
            Ok(Moment::Local(local)) => local.to_string(),
            Ok(exact @ Moment::Exact(_)) => exact.at(&zone).to_string(),
            Err(fault) => fault.code.to_owned(),
        }
    }

    #[test]
    fn dates_are_read_as_people_write_them() {
        let table = [
            ("31/12/2026", "2026-12-31", "malformed"),
            ("12/31/2026", "malformed", "2026-12-31"),
            ("03/04/2026", "2026-04-03", "2026-03-04"),
            ("3.4.2026", "2026-04-03", "2026-03-04"),
            ("31.12.26", "2026-12-31", "malformed"),
            ("1/2/99", "1999-02-01", "1999-01-02"),
            ("31-12-2026", "2026-12-31", "malformed"),
            ("2026-12-31", "2026-12-31", "2026-12-31"),
            ("2026/12/31", "2026-12-31", "2026-12-31"),
            ("31. 12. 2026", "2026-12-31", "malformed"),
            ("3. März 2026", "2026-03-03", "2026-03-03"),
            ("3 Mar 2026", "2026-03-03", "2026-03-03"),
            ("03-Apr-26", "2026-04-03", "2026-04-03"),
            ("Dec 31, 2026", "2026-12-31", "2026-12-31"),
            ("December 31st 2026", "2026-12-31", "2026-12-31"),
            ("Mo., 4. Mai 2026", "2026-05-04", "2026-05-04"),
            ("31. Dez. 2026", "2026-12-31", "2026-12-31"),
            ("1 August 2026", "2026-08-01", "2026-08-01"),
            ("31.12.2026 14:30", "2026-12-31T14:30:00", "malformed"),
            ("31.12.2026, 14:30 Uhr", "2026-12-31T14:30:00", "malformed"),
            ("12/31/2026 2:30 PM", "malformed", "2026-12-31T14:30:00"),
            ("12/31/2026 12:05:09 am", "malformed", "2026-12-31T00:05:09"),
            ("2026-12-31 14:30:00", "2026-12-31T14:30:00", "2026-12-31T14:30:00"),
            ("2026-12-31T14:30:00", "2026-12-31T14:30:00", "2026-12-31T14:30:00"),
            ("2026-12-31T14:30:00+01:00", "2026-12-31T13:30:00Z", "2026-12-31T13:30:00Z"),
            ("30/02/2026", "malformed", "malformed"),
            ("31/12", "malformed", "malformed"),
            ("2026", "malformed", "malformed"),
            ("soon", "malformed", "malformed"),
            ("", "malformed", "malformed"),
            ("3 Mar Apr 2026", "malformed", "malformed"),
            ("12/31/2026 25:00", "malformed", "malformed"),
        ];
        for (text, day, month) in table {
            assert_eq!(shown(text, Order::DayFirst), day, "{text}, day first");
            assert_eq!(shown(text, Order::MonthFirst), month, "{text}, month first");
        }
        assert_eq!(shown("03/04/2026", Order::YearFirst), "malformed");
        assert_eq!(shown("2026-04-03", Order::YearFirst), "2026-04-03");
    }

    #[test]
    fn the_column_decides() {
        use Proposed::{Clear, Unclear};
        let table: [(&[&str], Proposed<Order>); 10] = [
            (&[], Clear(Order::YearFirst)),
            (&["2026-12-31", "3 Mar 2026"], Clear(Order::YearFirst)),
            (&["03/04/2026", "31/12/2026"], Clear(Order::DayFirst)),
            (&["03/04/2026", "12/31/2026"], Clear(Order::MonthFirst)),
            (&["03.04.2026"], Clear(Order::DayFirst)),
            (&["03/04/2026", "05/05/2026"], Unclear),
            (&["05/05/2026"], Clear(Order::DayFirst)),
            (&["03/04/2026", "2026-12-31", "never"], Unclear),
            (&["12/31/2026", "12/30/2026", "31/12/2026"], Clear(Order::MonthFirst)),
            (&["12/31/2026", "31/12/2026"], Clear(Order::DayFirst)),
        ];
        for (values, expected) in table {
            assert_eq!(propose(values.iter().copied()), expected, "{values:?}");
        }
    }

    #[test]
    fn a_moment_is_in_the_companys_zone() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let at = |text: &str| read(text, Order::DayFirst).unwrap().at(&zone).to_string();
        assert_eq!(at("01.07.2026"), "2026-06-30T22:00:00Z");
        assert_eq!(at("01.07.2026 14:30"), "2026-07-01T12:30:00Z");
        let late = read("2026-06-30T23:30:00Z", Order::DayFirst).unwrap();
        assert_eq!(late.date(&zone), Date::constant(2026, 7, 1));
    }

    #[test]
    fn a_column_of_dates_is_recognized() {
        assert!(look_like_dates(["31/12/2026", "12/31/2026", "never"]));
        assert!(!look_like_dates(["Acme", "5"]));
    }

    proptest! {
        #[test]
        fn any_date_reads_back_in_its_order(days in 0_i64..36_000) {
            let date = crate::time::Day::from_number(days).date();
            let (year, month, day) = (date.year(), date.month(), date.day());
            let german = format!("{day:02}.{month:02}.{year}");
            let american = format!("{month}/{day}/{year}");
            prop_assert_eq!(read(&german, Order::DayFirst), Ok(Moment::Date(date)));
            prop_assert_eq!(read(&american, Order::MonthFirst), Ok(Moment::Date(date)));
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,24}") {
            let _ = (read(&text, Order::DayFirst), read(&text, Order::MonthFirst));
        }
    }
}

//! Relative times, with the exact time on hover.

use std::fmt;

use askama::filters::HtmlSafe;
use jiff::Zoned;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use rapport_domain::time::Time;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const MICROS: i64 = 1_000_000;
/// How browsers write a time without a zone.
const LOCAL: &str = "%Y-%m-%dT%H:%M:%S";

/// A time as the value of a form field.
pub fn local(time: Time, zone: &TimeZone) -> String {
    Zoned::new(time.to_timestamp(), zone.clone()).strftime(LOCAL).to_string()
}

/// `3 Feb 2024, 14:05` in the company's zone.
pub fn exact(time: Time, zone: &TimeZone) -> String {
    Zoned::new(time.to_timestamp(), zone.clone()).strftime("%-d %b %Y, %H:%M").to_string()
}

/// `3 Feb 2024`.
pub fn full_date(date: Date) -> String {
    date.strftime("%-d %b %Y").to_string()
}

/// A `<time>` element with the exact time in the company's zone. The script converts it to the viewer's.
pub struct When {
    time: Time,
    text: String,
    exact: String,
}

impl When {
    pub fn new(time: Time, now: Time, zone: &TimeZone) -> Self {
        let at = Zoned::new(time.to_timestamp(), zone.clone());
        let exact = at.strftime("%-d %b %Y, %H:%M:%S %Z").to_string();
        Self { time, text: relative(time, now, zone), exact }
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Only numbers and fixed texts, so nothing needs escaping.
        let Self { time, text, exact } = self;
        write!(f, r#"<time datetime="{time}" title="{exact}">{text}</time>"#)
    }
}

impl HtmlSafe for When {}

/// `just now`, `5 min ago`, `yesterday`, `in 3 days`, `2 Sep`, `3 Feb 2024`.
pub fn relative(time: Time, now: Time, zone: &TimeZone) -> String {
    let seconds = now.micros_since(time) / MICROS;
    let (ago, distance) = (seconds >= 0, seconds.abs());
    if distance < MINUTE {
        return if ago { "just now".to_owned() } else { "in a moment".to_owned() };
    }
    if distance < DAY {
        let (number, unit) =
            if distance < HOUR { (distance / MINUTE, "min") } else { (distance / HOUR, "h") };
        return if ago { format!("{number} {unit} ago") } else { format!("in {number} {unit}") };
    }
    let days = now.day_in(zone).number() - time.day_in(zone).number();
    match days {
        1 => "yesterday".to_owned(),
        -1 => "tomorrow".to_owned(),
        2..=6 => format!("{days} days ago"),
        -6..=-2 => format!("in {} days", -days),
        _ => short_date(time.day_in(zone).date(), now.day_in(zone).date()),
    }
}

/// `2 Sep`, with the year if it is not the current one.
fn short_date(date: Date, today: Date) -> String {
    let pattern = if date.year() == today.year() { "%-d %b" } else { "%-d %b %Y" };
    date.strftime(pattern).to_string()
}

/// `3 Feb 2026`.
pub fn date(date: Date) -> String {
    date.strftime("%-d %b %Y").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_in_a_form_is_in_the_companys_zone() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        assert_eq!(local(Time::parse("2026-11-15T08:30:00Z").unwrap(), &zone), "2026-11-15T09:30:00");
    }

    #[test]
    fn times_are_told_from_now() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let now = Time::parse("2026-11-15T12:00:00Z").unwrap();
        let table = [
            ("2026-11-15T11:59:30Z", "just now"),
            ("2026-11-15T12:00:30Z", "in a moment"),
            ("2026-11-15T11:55:00Z", "5 min ago"),
            ("2026-11-15T09:00:00Z", "3 h ago"),
            ("2026-11-15T15:00:00Z", "in 3 h"),
            ("2026-11-14T09:00:00Z", "yesterday"),
            ("2026-11-16T14:00:00Z", "tomorrow"),
            ("2026-11-10T09:00:00Z", "5 days ago"),
            ("2026-11-20T09:00:00Z", "in 5 days"),
            ("2026-09-02T09:00:00Z", "2 Sep"),
            ("2024-02-03T09:00:00Z", "3 Feb 2024"),
        ];
        for (time, expected) in table {
            assert_eq!(relative(Time::parse(time).unwrap(), now, &zone), expected, "{time}");
        }
    }

    #[test]
    fn the_exact_time_is_in_the_zone_of_the_company() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let time = Time::parse("2026-11-15T11:55:00Z").unwrap();
        let shown = When::new(time, time, &zone).to_string();
        let expected =
            r#"<time datetime="2026-11-15T11:55:00Z" title="15 Nov 2026, 12:55:00 CET">just now</time>"#;
        assert_eq!(shown, expected);
    }
}

//! Points in time as the service stores them: UTC, whole microseconds, years 1 to 9999.

use std::fmt;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::{Offset, TimeZone};

const MICROS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// A point in time. Shown as RFC 3339 in UTC with `Z`; read as ISO 8601 with or without an offset.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an ISO 8601 date or time between the years 1 and 9999")]
pub struct NotATime;

impl Time {
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Whole seconds since 1970.
    pub const fn unix_seconds(self) -> i64 {
        self.0.div_euclid(MICROS_PER_SECOND)
    }

    pub fn from_timestamp(timestamp: Timestamp) -> Self {
        Self(timestamp.as_microsecond())
    }

    /// Clamped to the range of the calendar.
    pub fn to_timestamp(self) -> Timestamp {
        Timestamp::from_microsecond(self.0).unwrap_or(if self.0 < 0 {
            Timestamp::MIN
        } else {
            Timestamp::MAX
        })
    }

    /// Reads `2026-05-12T08:30:00.5+02:00`, `…+0200`, `…Z`, no offset (UTC), or a date (midnight UTC).
    pub fn parse(text: &str) -> Result<Self, NotATime> {
        let timestamp = match text.parse::<Timestamp>() {
            Ok(timestamp) => timestamp,
            Err(_) => text
                .parse::<DateTime>()
                .ok()
                .and_then(|civil| Offset::UTC.to_timestamp(civil).ok())
                .ok_or(NotATime)?,
        };
        let year = Offset::UTC.to_datetime(timestamp).year();
        if (1..=9999).contains(&year) { Ok(Self(timestamp.as_microsecond())) } else { Err(NotATime) }
    }

    #[must_use]
    pub const fn plus_seconds(self, seconds: i64) -> Self {
        Self(self.0.saturating_add(seconds.saturating_mul(MICROS_PER_SECOND)))
    }

    #[must_use]
    pub const fn plus_millis(self, millis: i64) -> Self {
        Self(self.0.saturating_add(millis.saturating_mul(1_000)))
    }

    #[must_use]
    pub const fn plus_days(self, days: i64) -> Self {
        self.plus_seconds(days.saturating_mul(SECONDS_PER_DAY))
    }

    /// The minute it is in, as a number. Sorted by their minutes and then themselves, times are sorted.
    pub const fn minute(self) -> i64 {
        self.0 / (60 * MICROS_PER_SECOND)
    }

    /// Whole days of 24 hours from `earlier` to `self`.
    pub const fn whole_days_since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0).div_euclid(SECONDS_PER_DAY * MICROS_PER_SECOND)
    }

    pub const fn micros_since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The calendar day in `zone`.
    pub fn day_in(self, zone: &TimeZone) -> Day {
        Day(days_from_epoch(zone.to_datetime(self.to_timestamp()).date()))
    }

    /// The first instant of `date` in `zone`.
    pub fn start_of_day(date: Date, zone: &TimeZone) -> Self {
        zone.to_ambiguous_zoned(date.at(0, 0, 0, 0))
            .compatible()
            .and_then(|zoned| zoned.start_of_day())
            .map_or(Self(i64::MAX), |zoned| Self::from_timestamp(zoned.timestamp()))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.to_timestamp(), f)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl serde::Serialize for Time {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A calendar day, counted from 1 January 1970.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Day(i64);

impl Day {
    pub const fn from_number(days: i64) -> Self {
        Self(days)
    }

    pub const fn number(self) -> i64 {
        self.0
    }

    #[must_use]
    pub const fn minus_days(self, days: i64) -> Self {
        Self(self.0 - days)
    }

    pub fn of(date: Date) -> Self {
        Self(days_from_epoch(date))
    }

    pub fn date(self) -> Date {
        let epoch = Date::constant(1970, 1, 1);
        epoch.saturating_add(jiff::Span::new().try_days(self.0).unwrap_or_default())
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.date(), f)
    }
}

fn days_from_epoch(date: Date) -> i64 {
    let midnight = Offset::UTC.to_timestamp(date.at(0, 0, 0, 0));
    midnight.map_or(0, |timestamp| timestamp.as_second().div_euclid(SECONDS_PER_DAY))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_iso_8601_and_shows_utc() {
        let table = [
            ("2026-05-12T08:30:00Z", "2026-05-12T08:30:00Z"),
            ("2026-05-12T08:30:00.5+02:00", "2026-05-12T06:30:00.5Z"),
            ("2026-05-12T08:30:00+0200", "2026-05-12T06:30:00Z"),
            ("2026-05-12T08:30:00", "2026-05-12T08:30:00Z"),
            ("2026-05-12 08:30:00", "2026-05-12T08:30:00Z"),
            ("2026-05-12T08:30", "2026-05-12T08:30:00Z"),
            ("2026-05-12", "2026-05-12T00:00:00Z"),
            ("2026-05-12T08:30:00.123456789Z", "2026-05-12T08:30:00.123456Z"),
        ];
        for (text, shown) in table {
            assert_eq!(Time::parse(text).map(|time| time.to_string()), Ok(shown.to_owned()), "{text}");
        }
    }

    #[test]
    fn refuses_invalid_times() {
        for text in [
            "",
            "now",
            "2026-13-01",
            "2026-02-30",
            "12:00",
            "1715500000",
            "2026-05-12T25:00:00Z",
            "-000001-01-01T00:00:00Z",
        ] {
            assert_eq!(Time::parse(text), Err(NotATime), "{text}");
        }
    }

    #[test]
    fn a_day_starts_at_its_first_instant_in_the_zone() {
        let zone = TimeZone::get("America/Sao_Paulo").unwrap();
        // Midnight didn't exist there on 4 November 2018: the clocks went from 24:00 to 01:00.
        let start = Time::start_of_day(Date::constant(2018, 11, 4), &zone);
        assert_eq!(start.to_string(), "2018-11-04T03:00:00Z");
    }

    proptest! {
        #[test]
        fn a_shown_time_reads_back(micros in -60_000_000_000_000_000_i64..250_000_000_000_000_000) {
            let time = Time::from_micros(micros);
            prop_assert_eq!(Time::parse(&time.to_string()), Ok(time));
        }

        #[test]
        fn a_day_number_is_its_date(number in -700_000_i64..2_900_000) {
            prop_assert_eq!(days_from_epoch(Day::from_number(number).date()), number);
        }
    }
}

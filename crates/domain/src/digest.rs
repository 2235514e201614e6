//! The weekly digest: when it is due, and its contents.

use std::fmt;

use jiff::ToSpan as _;
use jiff::civil::{Date, ISOWeekDate};
use serde_json::{Map, Value};

use crate::company::Settings;
use crate::id::PersonId;
use crate::invalid::{Fault, Invalid, Members, as_str};
use crate::time::Time;

/// The hour at which it is sent, in the company's time zone.
pub const HOUR: i8 = 8;
/// How many clients a digest lists.
pub const MAX_NAMED: usize = 50;
/// How late a digest may be. A process that was down on Sunday still sends it on Monday; after most of a week
/// it is skipped.
const LATE_DAYS: i64 = 3;

/// An ISO 8601 week: `2026-W03`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Week {
    pub year: i64,
    pub number: i64,
}

impl Week {
    fn of(date: Date) -> Self {
        let week = date.iso_week_date();
        Self { year: week.year().into(), number: week.week().into() }
    }

    /// Reads `2026-W03`.
    pub fn parse(text: &str) -> Option<Self> {
        let (year, number) = text.split_once("-W")?;
        if year.len() != 4
            || number.len() != 2
            || !(year.to_owned() + number).bytes().all(|b| b.is_ascii_digit())
        {
            return None;
        }
        let week =
            ISOWeekDate::new(year.parse().ok()?, number.parse().ok()?, jiff::civil::Weekday::Monday).ok()?;
        Some(Self { year: week.year().into(), number: week.week().into() })
    }
}

impl fmt::Display for Week {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-W{:02}", self.year, self.number)
    }
}

/// Who gets a digest that is sent on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    Everyone,
    Member(PersonId),
}

impl Audience {
    fn from_json(value: &Value) -> Result<Self, Fault> {
        let unknown = |_| Fault::new("unknown_audience", "must be everyone or a member's id");
        match as_str(value)? {
            "everyone" => Ok(Self::Everyone),
            id => id.parse().map(Self::Member).map_err(unknown),
        }
    }

    /// Parses a request to send the digest now.
    pub fn parse(body: &Map<String, Value>) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let to = members.optional("to", Self::from_json);
        members.refuse_unknown();
        members.finish().map(|()| to.unwrap_or(Self::Everyone))
    }
}

/// The week whose digest should have been sent by now, whether it was or not.
///
/// This is the latest week whose moment (the weekday at 08:00 in the company's zone) has passed, unless that
/// was too long ago or before `since`: the last change to the schedule, or the creation of the company.
pub fn due(settings: &Settings, since: Time, now: Time) -> Option<Week> {
    if !settings.digest_enabled {
        return None;
    }
    let today = now.day_in(&settings.time_zone).date();
    let (moment, week) = [today, today.checked_sub(7.days()).ok()?]
        .into_iter()
        .filter_map(|day| moment_in_week_of(day, settings))
        .find(|(moment, _)| *moment <= now)?;
    (moment >= since && now < moment.plus_days(LATE_DAYS)).then_some(week)
}

/// When the digest is due in the week that contains this day.
fn moment_in_week_of(day: Date, settings: &Settings) -> Option<(Time, Week)> {
    let week = day.iso_week_date();
    let weekday = settings.digest_weekday.to_civil();
    let date = ISOWeekDate::new(week.year(), week.week(), weekday).ok()?.date();
    // If the clocks skip 08:00, this is the moment after the gap; if they repeat it, the first of the two.
    let zoned = settings.time_zone.to_ambiguous_zoned(date.at(HOUR, 0, 0, 0)).compatible().ok()?;
    Some((Time::from_timestamp(zoned.timestamp()), Week::of(day)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::company::{Weekday, parse_time_zone};
    use serde_json::json;

    const EVER: Time = Time::from_micros(0);

    fn settings(weekday: &str, zone: &str) -> Settings {
        Settings {
            digest_weekday: Weekday::parse(weekday).unwrap(),
            time_zone: parse_time_zone(zone).unwrap(),
            ..Settings::default()
        }
    }

    fn due_at(settings: &Settings, now: &str) -> Option<String> {
        due(settings, EVER, Time::parse(now).unwrap()).map(|week| week.to_string())
    }

    #[test]
    fn it_is_due_from_eight_on_the_weekday() {
        let monday = settings("monday", "UTC");
        let table = [
            ("2026-01-05T07:59:59.999999Z", None),
            ("2026-01-05T08:00:00Z", Some("2026-W02")),
            ("2026-01-05T23:00:00Z", Some("2026-W02")),
            ("2026-01-08T07:59:59Z", Some("2026-W02")),
            ("2026-01-08T08:00:00Z", None),
            ("2026-01-12T07:59:59Z", None),
            ("2026-01-12T08:00:00Z", Some("2026-W03")),
        ];
        for (now, week) in table {
            assert_eq!(due_at(&monday, now).as_deref(), week, "{now}");
        }
    }

    #[test]
    fn sundays_digest_belongs_to_its_week_even_when_it_is_late() {
        let sunday = settings("sunday", "UTC");
        let table = [
            ("2026-01-11T07:00:00Z", None),
            ("2026-01-11T08:00:00Z", Some("2026-W02")),
            ("2026-01-12T01:00:00Z", Some("2026-W02")),
            ("2026-01-14T08:00:00Z", None),
            ("2026-01-18T08:00:00Z", Some("2026-W03")),
        ];
        for (now, week) in table {
            assert_eq!(due_at(&sunday, now).as_deref(), week, "{now}");
        }
    }

    #[test]
    fn eight_is_eight_in_the_companys_zone_in_summer_and_winter() {
        let berlin = settings("monday", "Europe/Berlin");
        // The clocks went forward on 29 March 2026 and go back on 25 October.
        let table = [
            ("2026-03-23T06:59:59Z", None),
            ("2026-03-23T07:00:00Z", Some("2026-W13")),
            ("2026-03-30T05:59:59Z", None),
            ("2026-03-30T06:00:00Z", Some("2026-W14")),
            ("2026-10-26T06:59:59Z", None),
            ("2026-10-26T07:00:00Z", Some("2026-W44")),
        ];
        for (now, week) in table {
            assert_eq!(due_at(&berlin, now).as_deref(), week, "{now}");
        }
        // Further east, Monday begins while it is still Sunday in UTC.
        let auckland = settings("monday", "Pacific/Auckland");
        assert_eq!(due_at(&auckland, "2026-01-04T19:00:00Z").as_deref(), Some("2026-W02"));
        assert_eq!(due_at(&auckland, "2026-01-04T18:59:59Z"), None);
    }

    #[test]
    fn a_year_has_the_weeks_that_iso_8601_gives_it() {
        let friday = settings("friday", "UTC");
        assert_eq!(due_at(&friday, "2027-01-01T09:00:00Z").as_deref(), Some("2026-W53"));
        assert_eq!(due_at(&friday, "2027-01-08T09:00:00Z").as_deref(), Some("2027-W01"));
    }

    #[test]
    fn a_digest_due_before_a_schedule_change_is_not_made_up() {
        let monday = settings("monday", "UTC");
        let wednesday = Time::parse("2026-01-07T10:00:00Z").unwrap();
        assert!(due(&monday, EVER, wednesday).is_some());
        assert_eq!(due(&monday, wednesday, wednesday), None);
        let next = Time::parse("2026-01-12T08:00:00Z").unwrap();
        assert!(due(&monday, wednesday, next).is_some());
        let off = Settings { digest_enabled: false, ..monday };
        assert_eq!(due(&off, EVER, next), None);
    }

    #[test]
    fn a_digest_goes_to_everyone_or_to_one_member() {
        let ana = PersonId::from_bytes([1; 16]);
        let parse =
            |body: Value| Audience::parse(body.as_object().unwrap()).map_err(|invalid| invalid.0[0].code);
        let table = [
            (json!({}), Ok(Audience::Everyone)),
            (json!({"to": "everyone"}), Ok(Audience::Everyone)),
            (json!({"to": ana.to_string()}), Ok(Audience::Member(ana))),
            (json!({"to": "me"}), Err("unknown_audience")),
            (json!({"to": 1}), Err("wrong_type")),
            (json!({"who": "everyone"}), Err("unknown_member")),
        ];
        for (body, expected) in table {
            assert_eq!(parse(body.clone()), expected, "{body}");
        }
    }

    #[test]
    fn weeks_read_back() {
        for text in ["2026-W01", "2026-W53", "2027-W01"] {
            assert_eq!(Week::parse(text).unwrap().to_string(), text);
        }
        for bad in
            ["", "2026", "2026-W00", "2026-W54", "2027-W53", "26-W01", "2026-W1", "2026-w01", "+026-W01"]
        {
            assert_eq!(Week::parse(bad), None, "{bad}");
        }
    }
}

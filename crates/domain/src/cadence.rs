//! The contact cadence: when a tracked account is due to be spoken to.

use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::company::Settings;
use crate::pipeline::Status;
use crate::time::Time;

/// What decides when an account is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    pub status: Status,
    pub last_contact_at: Option<Time>,
    /// When the account entered a tracked stage; the clock of an account never contacted.
    pub tracked_since: Option<Time>,
    pub cadence_override: Option<i64>,
    pub snoozed_until: Option<Date>,
}

/// Where an account stands in its cadence at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Due {
    pub tracked: bool,
    pub overdue: bool,
    /// When contact is due, snooze aside; `None` for an account that is not tracked.
    pub due_at: Option<Time>,
    /// Whole days of 24 hours since `due_at`; zero unless overdue.
    pub days_overdue: i64,
}

/// Overdue: tracked, `now` at or past start plus interval, and not snoozed.
pub fn due(facts: &Facts, settings: &Settings, now: Time) -> Due {
    if !settings.tracked_stages.contains(facts.status) {
        return Due::default();
    }
    let Some(start) = facts.last_contact_at.or(facts.tracked_since) else {
        return Due { tracked: true, ..Due::default() };
    };
    let due_at = start.plus_days(facts.cadence_override.unwrap_or(settings.cadence_days));
    let overdue = now >= due_at && !is_snoozed(facts.snoozed_until, &settings.time_zone, now);
    let days_overdue = if overdue { now.whole_days_since(due_at) } else { 0 };
    Due { tracked: true, overdue, due_at: Some(due_at), days_overdue }
}

/// A snooze ends at the start of its day in the company's zone.
pub fn is_snoozed(until: Option<Date>, zone: &TimeZone, now: Time) -> bool {
    until.is_some_and(|date| now < Time::start_of_day(date, zone))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000_000;

    fn facts() -> Facts {
        Facts {
            status: Status::Customer,
            last_contact_at: Some(Time::from_micros(0)),
            tracked_since: None,
            cadence_override: None,
            snoozed_until: None,
        }
    }

    fn at(days: i64) -> Time {
        Time::from_micros(days * DAY)
    }

    #[test]
    fn the_default_interval_is_42_days() {
        let settings = Settings::default();
        assert!(!due(&facts(), &settings, Time::from_micros(42 * DAY - 1)).overdue);
        let then = due(&facts(), &settings, at(42));
        assert!(then.overdue && then.days_overdue == 0 && then.due_at == Some(at(42)));
        assert_eq!(due(&facts(), &settings, at(45)).days_overdue, 3);
    }

    #[test]
    fn an_override_replaces_the_interval() {
        let facts = Facts { cadence_override: Some(7), ..facts() };
        assert_eq!(due(&facts, &Settings::default(), at(8)).days_overdue, 1);
    }

    #[test]
    fn only_tracked_stages_are_watched() {
        for status in Status::ALL {
            let watched = due(&Facts { status, ..facts() }, &Settings::default(), at(100));
            let tracked = matches!(status, Status::Customer | Status::InTrial);
            assert_eq!((watched.tracked, watched.overdue), (tracked, tracked), "{status}");
        }
    }

    #[test]
    fn never_contacted_counts_from_entering_a_tracked_stage() {
        let facts = Facts { last_contact_at: None, tracked_since: Some(at(10)), ..facts() };
        assert_eq!(due(&facts, &Settings::default(), at(52)).due_at, Some(at(52)));
    }

    #[test]
    fn a_snooze_ends_at_the_start_of_its_day_in_the_companys_zone() {
        let zone = TimeZone::get("America/New_York").unwrap();
        let settings = Settings { time_zone: zone, ..Settings::default() };
        let facts = Facts { snoozed_until: Some(Date::constant(1970, 3, 1)), ..facts() };
        let end = Time::parse("1970-03-01T05:00:00Z").unwrap();
        assert!(!due(&facts, &settings, Time::from_micros(end.as_micros() - 1)).overdue);
        assert!(due(&facts, &settings, end).overdue);
    }
}

//! The contact cadence: when a tracked account is due for contact.

use std::fmt::Write as _;

use jiff::civil::Date;
use jiff::tz::{Offset, TimeZone};

use crate::company::Settings;
use crate::contact;
use crate::pipeline::Status;
use crate::time::Time;

/// A due date within this many days is soon.
pub const DUE_SOON_DAYS: i64 = 7;
/// A day has begun in every time zone this many hours after it began in UTC.
const LATEST_ZONE_HOURS: i64 = 12;
const HOUR_SECONDS: i64 = 3_600;

/// The facts that decide when an account is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    pub status: Status,
    pub last_contact_at: Option<Time>,
    /// The start of the clock for an account that was never contacted.
    pub tracked_since: Option<Time>,
    pub cadence_override: Option<i64>,
    pub snoozed_until: Option<Date>,
}

impl Facts {
    /// When the clock started: at the last contact, or when an account never contacted became a client.
    pub fn start(&self) -> Option<Time> {
        self.last_contact_at.or(self.tracked_since)
    }

    /// In days of 24 hours.
    pub fn interval(&self, settings: &Settings) -> i64 {
        self.cadence_override.unwrap_or(settings.cadence_days)
    }
}

/// An account's place in its cadence at a given time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Due {
    pub tracked: bool,
    pub overdue: bool,
    /// When contact is due, ignoring any snooze; `None` for an account that isn't tracked.
    pub due_at: Option<Time>,
    /// Whole days of 24 hours since `due_at`; zero unless overdue.
    pub days_overdue: i64,
}

/// Overdue: tracked, `now` at or past start plus interval, and not snoozed.
pub fn due(facts: &Facts, settings: &Settings, now: Time) -> Due {
    if !settings.tracked_stages.contains(facts.status) {
        return Due::default();
    }
    let Some(start) = facts.start() else {
        return Due { tracked: true, ..Due::default() };
    };
    let due_at = start.plus_days(facts.interval(settings));
    let overdue = now >= due_at && !is_snoozed(facts.snoozed_until, &settings.time_zone, now);
    let days_overdue = if overdue { now.whole_days_since(due_at) } else { 0 };
    Due { tracked: true, overdue, due_at: Some(due_at), days_overdue }
}

/// A snooze ends at the start of its day in the company's zone.
pub fn is_snoozed(until: Option<Date>, zone: &TimeZone, now: Time) -> bool {
    until.is_some_and(|date| now < Time::start_of_day(date, zone))
}

/// The last date that has begun in every time zone: a snooze until then is over, whatever the company's zone
/// is or becomes.
pub fn begun_everywhere(now: Time) -> Date {
    let there = now.plus_seconds(-LATEST_ZONE_HOURS * HOUR_SECONDS);
    Offset::UTC.to_datetime(there.to_timestamp()).date()
}

/// The contents of a reminder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reminder {
    pub due_at: Time,
    pub days_overdue: i64,
    /// The interval that was in force.
    pub cadence_days: i64,
}

/// The reminder for an account that is overdue.
pub fn reminder(facts: &Facts, settings: &Settings, now: Time) -> Option<Reminder> {
    let Due { overdue, due_at, days_overdue, .. } = due(facts, settings, now);
    let due_at = due_at.filter(|_| overdue)?;
    Some(Reminder { due_at, days_overdue, cadence_days: facts.interval(settings) })
}

/// The earliest dates among a company's accounts in one stage that haven't been announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Earliest {
    pub status: Status,
    /// The earliest clock start among accounts on the company's cadence.
    pub started_at: Option<Time>,
    /// The earliest due date among accounts with a cadence override.
    pub own_due_at: Option<Time>,
    /// The earliest snooze to end.
    pub snoozed_until: Option<Date>,
}

/// The earliest time at which a client may become due.
pub fn next_due(earliest: &[Earliest], settings: &Settings) -> Option<Time> {
    let tracked = earliest.iter().filter(|stage| settings.tracked_stages.contains(stage.status));
    tracked
        .flat_map(|stage| {
            let on_default = stage.started_at.map(|start| start.plus_days(settings.cadence_days));
            let awake = stage.snoozed_until.map(|date| Time::start_of_day(date, &settings.time_zone));
            [on_default, stage.own_due_at, awake]
        })
        .flatten()
        .min()
}

/// How the last contact was made, as far as that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastContact {
    pub by: Means,
    /// The name of the person who made it.
    pub person: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Means {
    Contact(contact::Kind),
    /// An outbound message in a conversation.
    Message,
}

impl Means {
    const fn words(self) -> &'static str {
        match self {
            Self::Contact(contact::Kind::Call) => "call",
            Self::Contact(contact::Kind::Meeting) => "meeting",
            Self::Contact(contact::Kind::Email) => "email",
            Self::Contact(contact::Kind::Other) => "made",
            Self::Message => "message",
        }
    }
}

/// Explains a due date in one line: "last contact: call by a colleague, 12 May 2026; every 42 days".
pub fn why(facts: &Facts, settings: &Settings, last: Option<&LastContact>, now: Time) -> String {
    let mut line = match (facts.last_contact_at, facts.tracked_since) {
        (Some(at), _) => {
            let how = last.map(|LastContact { by, person }| {
                format!("{} by {}, ", by.words(), person.as_deref().unwrap_or("a colleague"))
            });
            format!("last contact: {}{}", how.unwrap_or_default(), day_of(at, settings))
        }
        (None, Some(since)) => format!("never contacted; client since {}", day_of(since, settings)),
        (None, None) => "never contacted".to_owned(),
    };
    let _ = match facts.interval(settings) {
        1 => write!(line, "; every day"),
        days => write!(line, "; every {days} days"),
    };
    line.push_str(if facts.cadence_override.is_some() { " (own cadence)" } else { "" });
    if let Some(date) = facts.snoozed_until
        && is_snoozed(Some(date), &settings.time_zone, now)
    {
        let _ = write!(line, "; snoozed until {}", written(date));
    }
    line
}

/// The day in the company's zone.
fn day_of(at: Time, settings: &Settings) -> String {
    written(at.day_in(&settings.time_zone).date())
}

fn written(date: Date) -> String {
    date.strftime("%-d %B %Y").to_string()
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

    #[test]
    fn a_snooze_is_over_everywhere_when_its_day_has_begun_in_the_last_zone() {
        let last = TimeZone::get("Etc/GMT+12").unwrap();
        let begins = Time::start_of_day(Date::constant(2026, 3, 2), &last);
        assert_eq!(begun_everywhere(begins), Date::constant(2026, 3, 2));
        let before = Time::from_micros(begins.as_micros() - 1);
        assert_eq!(begun_everywhere(before), Date::constant(2026, 3, 1));
    }

    #[test]
    fn a_reminder_says_which_interval_was_in_force() {
        let settings = Settings::default();
        assert_eq!(reminder(&facts(), &settings, at(41)), None);
        let expected = Reminder { due_at: at(42), days_overdue: 1, cadence_days: 42 };
        assert_eq!(reminder(&facts(), &settings, at(43)), Some(expected));
        let own = Facts { cadence_override: Some(7), ..facts() };
        let expected = Reminder { due_at: at(7), days_overdue: 36, cadence_days: 7 };
        assert_eq!(reminder(&own, &settings, at(43)), Some(expected));
        let snoozed = Facts { snoozed_until: Some(Date::constant(2000, 1, 1)), ..facts() };
        assert_eq!(reminder(&snoozed, &settings, at(43)), None);
    }

    #[test]
    fn the_next_to_become_due_is_the_earliest_of_the_tracked_stages() {
        let nobody = |status| Earliest { status, started_at: None, own_due_at: None, snoozed_until: None };
        let settings = Settings::default();
        assert_eq!(next_due(&[nobody(Status::Customer)], &settings), None);
        let trial = Earliest { started_at: Some(at(3)), ..nobody(Status::InTrial) };
        assert_eq!(next_due(&[trial], &settings), Some(at(45)));
        let own = Earliest { own_due_at: Some(at(44)), ..nobody(Status::Customer) };
        assert_eq!(next_due(&[trial, own], &settings), Some(at(44)));
        let snoozed = Earliest { snoozed_until: Some(Date::constant(1970, 1, 3)), ..own };
        assert_eq!(next_due(&[trial, snoozed], &settings), Some(at(2)));
        let untracked = Earliest { own_due_at: Some(at(1)), ..nobody(Status::InNegotiation) };
        assert_eq!(next_due(&[untracked, trial], &settings), Some(at(45)));
    }

    #[test]
    fn every_due_date_explains_itself() {
        let now = Time::parse("2026-05-20T10:00:00Z").unwrap();
        let contacted = Time::parse("2026-05-12T23:30:00Z").unwrap();
        let known = Facts { last_contact_at: Some(contacted), tracked_since: Some(at(9)), ..facts() };
        let never = Facts { last_contact_at: None, tracked_since: Some(contacted), ..facts() };
        let by =
            |by: Means, person: Option<&str>| Some(LastContact { by, person: person.map(str::to_owned) });
        let call = Means::Contact(contact::Kind::Call);
        let own = |facts: Facts, days: i64| Facts { cadence_override: Some(days), ..facts };
        let until =
            |facts: Facts, day: i8| Facts { snoozed_until: Some(Date::constant(2026, 5, day)), ..facts };
        let table = [
            (known, by(call, None), "last contact: call by a colleague, 12 May 2026; every 42 days"),
            (known, by(call, Some("Ada")), "last contact: call by Ada, 12 May 2026; every 42 days"),
            (
                known,
                by(Means::Contact(contact::Kind::Other), Some("Ada")),
                "last contact: made by Ada, 12 May 2026; every 42 days",
            ),
            (
                own(known, 7),
                by(Means::Message, Some("Ada")),
                "last contact: message by Ada, 12 May 2026; every 7 days (own cadence)",
            ),
            (known, None, "last contact: 12 May 2026; every 42 days"),
            (never, None, "never contacted; client since 12 May 2026; every 42 days"),
            (own(never, 1), None, "never contacted; client since 12 May 2026; every day (own cadence)"),
            (
                until(never, 21),
                None,
                "never contacted; client since 12 May 2026; every 42 days; snoozed until 21 May 2026",
            ),
            (until(never, 20), None, "never contacted; client since 12 May 2026; every 42 days"),
        ];
        for (facts, last, line) in table {
            assert_eq!(why(&facts, &Settings::default(), last.as_ref(), now), line);
        }
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let there = Settings { time_zone: zone, ..Settings::default() };
        let line = "last contact: 13 May 2026; every 42 days";
        assert_eq!(why(&known, &there, None, now), line, "the day is in the company's time zone");
    }
}

//! Texts on an account's page: who did something, and how.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use rapport_domain::activity;
use rapport_domain::cadence::Due;
use rapport_domain::company::Settings;
use rapport_domain::contact::Kind;
use rapport_domain::conversation::Direction;
use rapport_domain::history::Actor;
use rapport_domain::pipeline::{Source, Status};
use rapport_domain::time::Time;
use serde_json::{Map, Value};

use crate::pages::words::{number, when};

/// The length at which a name is cut in a message.
const NAME_CHARS: usize = 60;

/// `3 Feb 2026`.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "templates pass references")]
pub fn day(date: &Date) -> String {
    when::date(*date)
}

/// `1,932`.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "templates pass references")]
pub fn grouped(number: &i64) -> String {
    number::grouped(*number)
}

/// `1 account`, `2 accounts`.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "templates pass references")]
pub fn counted(number: &i64, one: &str, many: &str) -> String {
    number::counted(*number, one, many)
}

/// Who did something.
pub fn who(actor: &Actor) -> String {
    match actor {
        Actor::Person { name, .. } => name.clone(),
        Actor::Token { name, .. } => format!("token {name}"),
        Actor::IngestKey { .. } => "the ingest key".to_owned(),
        Actor::InboundKey { .. } => "the inbound key".to_owned(),
        Actor::CommandLine => "the command line".to_owned(),
        Actor::System => "Rapport".to_owned(),
    }
}

/// How an account was created or moved, and by whom.
pub fn by(source: Source, actor: &Actor) -> String {
    match source {
        Source::Operator => format!("By {}", who(actor)),
        Source::Upsert => format!("By upsert, {}", who(actor)),
        Source::Import => format!("By import, {}", who(actor)),
        Source::Lookup => format!("By lookup, {}", who(actor)),
        Source::Inbound => "By an inbound mail".to_owned(),
        Source::Automation => "By product activity".to_owned(),
    }
}

/// The hint beside a time field.
pub fn when_hint(zone: &TimeZone) -> String {
    format!("Leave empty for now. Times are in {}.", zone.iana_name().unwrap_or("UTC"))
}

/// The hint beside a time field that must have a time.
pub fn zone_hint(zone: &TimeZone) -> String {
    format!("Times are in {}.", zone.iana_name().unwrap_or("UTC"))
}

/// The directions of a message to choose from.
pub fn directions() -> [(&'static str, &'static str); 2] {
    Direction::ALL.map(|direction| match direction {
        Direction::Outbound => (direction.as_str(), "Outbound: we wrote"),
        Direction::Inbound => (direction.as_str(), "Inbound: they wrote"),
    })
}

/// The stages that a company tracks.
pub fn stages(settings: &Settings) -> String {
    let labels: Vec<&str> = settings.tracked_stages.statuses().into_iter().map(Status::label).collect();
    match labels.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

/// A kind of contact, as forms and lists name it.
pub const fn contact_label(kind: Kind) -> &'static str {
    match kind {
        Kind::Call => "Call",
        Kind::Meeting => "Meeting",
        Kind::Email => "Email",
        Kind::Other => "Other contact",
    }
}

/// The kinds of contact to choose from.
pub fn contact_kinds() -> [(&'static str, &'static str); 4] {
    Kind::ALL.map(|kind| (kind.as_str(), contact_label(kind)))
}

/// Describes an activity event.
pub fn happened(kind: &str, feature: Option<&str>) -> String {
    let feature = feature.unwrap_or_default();
    match activity::Kind::parse(kind) {
        Ok(activity::Kind::AppOpened) => "Opened the app".to_owned(),
        Ok(activity::Kind::FeatureUsed) => format!("Used {feature}"),
        Ok(activity::Kind::TrialStarted) => "Started a trial".to_owned(),
        Ok(activity::Kind::BecameCustomer) => "Became a customer".to_owned(),
        Ok(activity::Kind::Churned) => "Churned".to_owned(),
        Ok(activity::Kind::Custom) if feature.is_empty() => "Custom event".to_owned(),
        Ok(activity::Kind::Custom) => format!("Custom event {feature}"),
        Err(_) => kind.to_owned(),
    }
}

/// The text of an overdue client's badge: `31 days`, or less than one.
pub fn days_overdue(due: &Due) -> String {
    match due.days_overdue {
        0 => "Under a day".to_owned(),
        days => number::counted(days, "day", "days"),
    }
}

/// The badge's class.
pub const fn urgency(due: &Due) -> &'static str {
    if due.days_overdue >= 7 { "bad" } else { "warn" }
}

/// Splits the explanation of a due date in two: the last contact, and the cadence.
pub fn because(why: &str) -> (String, String) {
    let (what, often) = why.rfind("; every ").map_or((why, ""), |at| (&why[..at], &why[at + 2..]));
    let mut letters = what.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    (format!("{first}{}", letters.as_str()), often.to_owned())
}

/// Splits a text after so many characters.
pub fn cut(text: &str, chars: usize) -> (&str, &str) {
    text.char_indices().nth(chars).map_or((text, ""), |(at, _)| text.split_at(at))
}

/// A name, cut if it is long.
pub fn short(name: &str) -> String {
    let (head, rest) = cut(name, NAME_CHARS);
    if rest.is_empty() { head.to_owned() } else { format!("{}…", head.trim_end()) }
}

/// Reads a time typed into a form in the company's zone. An invalid time is left for its parser to refuse.
pub fn take_local_time(members: &mut Map<String, Value>, name: &str, zone: &TimeZone) {
    let typed = members.get(name).and_then(Value::as_str).and_then(|text| text.parse::<DateTime>().ok());
    let zoned = typed.and_then(|typed| zone.to_ambiguous_zoned(typed).compatible().ok());
    if let Some(zoned) = zoned {
        let time = Time::from_timestamp(zoned.timestamp());
        members.insert(name.to_owned(), Value::from(time.to_string()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_reason_is_told_in_two_lines() {
        let table = [
            (
                "last contact: call by Ada; every 3 days, 12 May 2026; every 42 days (own cadence)",
                ("Last contact: call by Ada; every 3 days, 12 May 2026", "every 42 days (own cadence)"),
            ),
            (
                "never contacted; client since 12 May 2026; every day; snoozed until 1 June 2026",
                ("Never contacted; client since 12 May 2026", "every day; snoozed until 1 June 2026"),
            ),
            ("", ("", "")),
        ];
        for (why, (what, often)) in table {
            assert_eq!(because(why), (what.to_owned(), often.to_owned()));
        }
    }

    #[test]
    fn typed_times_are_the_companys() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let table = [
            ("2026-05-12T08:30", "2026-05-12T06:30:00Z"),
            ("2026-05-12", "2026-05-11T22:00:00Z"),
            ("2026-05-12T08:30:00Z", "2026-05-12T08:30:00Z"),
            ("soon", "soon"),
        ];
        for (typed, expected) in table {
            let mut members = json!({"at": typed}).as_object().unwrap().clone();
            take_local_time(&mut members, "at", &zone);
            assert_eq!(members["at"], json!(expected), "{typed}");
        }
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        assert_eq!(short("Müller"), "Müller");
        assert_eq!(short(&"é".repeat(61)), format!("{}…", "é".repeat(60)));
        assert_eq!(cut("añb", 2), ("añ", "b"));
    }
}

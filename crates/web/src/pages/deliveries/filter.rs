//! The filter of the log, in the address and in the form. Its names are those of the API.

use jiff::Zoned;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use rapport_domain::delivery_list::{Filter, Shown};
use rapport_domain::id::AccountId;
use rapport_domain::invalid::Invalid;
use rapport_domain::time::Time;
use rapport_store::{Error, Snapshot, account};
use serde_json::{Map, Value};

use crate::pages::kit::form::Form;

const NAMES: [&str; 6] = ["webhook", "type", "state", "account", "since", "until"];
/// How browsers write a time without a zone.
const LOCAL: &str = "%Y-%m-%dT%H:%M:%S";

/// Reads the filter. A time without a zone is in the company's. An account may be given by either of its ids.
pub fn read(snapshot: &mut Snapshot, form: &Form, zone: &TimeZone) -> Result<Result<Filter, Invalid>, Error> {
    let mut given = Map::new();
    for name in NAMES {
        let Some(text) = form.given(name) else { continue };
        let text = match name {
            "since" | "until" => with_zone(text, zone),
            "account" => with_own_id(snapshot, text)?,
            _ => text.to_owned(),
        };
        given.insert(name.to_owned(), Value::from(text));
    }
    Ok(Filter::parse(&given))
}

fn with_zone(text: &str, zone: &TimeZone) -> String {
    // Without a zone the API would read it as UTC.
    let has_zone =
        text.rsplit_once(['T', 't', ' ']).is_some_and(|(_, time)| time.contains(['Z', 'z', '+', '-']));
    if has_zone {
        return text.to_owned();
    }
    let local = text.parse::<DateTime>().ok();
    let zoned = local.and_then(|local| zone.to_ambiguous_zoned(local).compatible().ok());
    zoned.map_or_else(|| text.to_owned(), |zoned| zoned.timestamp().to_string())
}

fn with_own_id(snapshot: &mut Snapshot, text: &str) -> Result<String, Error> {
    if text.parse::<AccountId>().is_ok() {
        return Ok(text.to_owned());
    }
    let found = account::ids_by_imported_id(snapshot, &[text])?.pop();
    Ok(found.map_or_else(|| text.to_owned(), |(_, id)| id.to_string()))
}

/// The filter as fields in canonical form, however it was typed.
pub fn fields(filter: &Filter) -> Vec<(&'static str, String)> {
    let values = [
        filter.webhook.map(|id| id.to_string()),
        filter.kind.map(|kind| kind.as_str().to_owned()),
        filter.state.map(|state| state.as_str().to_owned()),
        filter.account.map(|id| id.to_string()),
        filter.since.map(|time| time.to_string()),
        filter.until.map(|time| time.to_string()),
    ];
    NAMES.into_iter().zip(values).filter_map(|(name, value)| value.map(|value| (name, value))).collect()
}

/// The filter as a query string, followed by more fields.
pub fn query(filter: &Filter, more: &[(&str, &str)]) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(fields(filter)).extend_pairs(more);
    query.finish()
}

/// A time as the value of a form field.
pub fn local(time: Time, zone: &TimeZone) -> String {
    Zoned::new(time.to_timestamp(), zone.clone()).strftime(LOCAL).to_string()
}

/// `Held`.
pub const fn state_name(state: Shown) -> &'static str {
    match state {
        Shown::Pending => "Pending",
        Shown::Succeeded => "Succeeded",
        Shown::Failed => "Failed",
        Shown::Held => "Held",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rapport_domain::event::Kind;

    #[test]
    fn a_time_without_a_zone_is_the_companys() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let table = [
            ("2026-11-15T09:30", "2026-11-15T08:30:00Z"),
            ("2026-07-15T09:30:15", "2026-07-15T07:30:15Z"),
            ("2026-11-15", "2026-11-14T23:00:00Z"),
            ("2026-11-15T09:30:00Z", "2026-11-15T09:30:00Z"),
            ("soon", "soon"),
        ];
        for (typed, expected) in table {
            assert_eq!(with_zone(typed, &zone), expected, "{typed}");
        }
        assert_eq!(local(Time::parse("2026-11-15T08:30:00Z").unwrap(), &zone), "2026-11-15T09:30:00");
    }

    #[test]
    fn a_filter_is_written_as_the_api_reads_it() {
        let filter = Filter {
            state: Some(Shown::Failed),
            kind: Some(Kind::AccountCreated),
            since: Time::parse("2026-11-15T08:30:00Z").ok(),
            ..Filter::default()
        };
        let expected = "type=account.created&state=failed&since=2026-11-15T08%3A30%3A00Z&before=x";
        assert_eq!(query(&filter, &[("before", "x")]), expected);
    }
}

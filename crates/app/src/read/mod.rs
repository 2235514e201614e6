//! Everything that pages and endpoints show, each read named after the question it answers.
//!
//! A read is a function of a snapshot, and of the viewer if its answer depends on the company's settings or on
//! the time. It returns all that one page or endpoint shows of its subject, so that handlers don't compose
//! queries. The types it returns come from `domain`, or from the store and are re-exported beside it.

pub mod account;
pub mod accounts;
pub mod audit;
pub mod bulk;
pub mod campaign;
pub mod channel;
pub mod clients;
pub mod conversation;
pub mod correction;
pub mod credential;
pub mod dashboard;
pub mod delivery;
pub mod digest;
pub mod exchange_rate;
pub mod export;
pub mod factors;
pub mod feed;
pub mod first_steps;
pub mod frame;
pub mod import;
pub mod ingest;
pub mod mail;
pub mod members;
pub mod own_data;
pub mod pipeline;
pub mod profile;
pub mod pulse;
pub mod redelivery;
pub mod settings;
pub mod sso;
pub mod system;
pub mod timeline;
pub mod webhook;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use rapport_domain::company::Settings;
use rapport_domain::id::PersonId;
use rapport_domain::time::{Day, Time};

use crate::access::Caller;

pub use rapport_store::account_list::CappedCount;
pub use rapport_store::page::{DEFAULT_LIMIT, MAX_LIMIT, Page};

/// Who reads, and when. Checking the caller loaded the company, so no read loads it again.
#[derive(Debug, Clone)]
pub struct Viewer {
    pub caller: Caller,
    pub now: Time,
}

impl Viewer {
    pub fn settings(&self) -> &Settings {
        &self.caller.company.settings
    }

    /// The company's time zone.
    pub fn zone(&self) -> &TimeZone {
        &self.settings().time_zone
    }

    /// The current day in the company's time zone.
    pub fn today(&self) -> Day {
        self.now.day_in(self.zone())
    }

    /// The person who is logged in, if the caller is one.
    pub fn person(&self) -> Option<PersonId> {
        self.caller.actor.person()
    }
}

/// A time as a person typed it, in the company's time zone unless it names its own.
fn with_zone(text: &str, zone: &TimeZone) -> String {
    // Without a zone it would be read as UTC.
    let has_zone =
        text.rsplit_once(['T', 't', ' ']).is_some_and(|(_, time)| time.contains(['Z', 'z', '+', '-']));
    if has_zone {
        return text.to_owned();
    }
    let local = text.parse::<DateTime>().ok();
    let zoned = local.and_then(|local| zone.to_ambiguous_zoned(local).compatible().ok());
    zoned.map_or_else(|| text.to_owned(), |zoned| zoned.timestamp().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }
}

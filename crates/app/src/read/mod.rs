//! Everything that pages and endpoints show, each read named after the question it answers.
//!
//! A read is a function of a snapshot, and of the viewer if its answer depends on the company's settings or on
//! the time. It returns all that one page or endpoint shows of its subject, so that handlers don't compose
//! queries. The types it returns come from `domain`, or from the store and are re-exported beside it.

pub mod account;
pub mod accounts;
pub mod audit;
pub mod campaign;
pub mod channel;
pub mod clients;
pub mod conversation;
pub mod credential;
pub mod dashboard;
pub mod delivery;
pub mod digest;
pub mod export;
pub mod frame;
pub mod import;
pub mod ingest;
pub mod mail;
pub mod members;
pub mod pipeline;
pub mod profile;
pub mod pulse;
pub mod redelivery;
pub mod settings;
pub mod system;
pub mod timeline;
pub mod webhook;

use jiff::tz::TimeZone;
use rapport_domain::company::Settings;
use rapport_domain::history::Actor;
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
        match self.caller.actor {
            Actor::Person { id, .. } => Some(id),
            Actor::Token { .. }
            | Actor::IngestKey { .. }
            | Actor::InboundKey { .. }
            | Actor::CommandLine
            | Actor::System => None,
        }
    }
}

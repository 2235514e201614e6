//! Storage: the only crate that knows SQL, with SQLite and PostgreSQL behind one interface.
//!
//! - `engine/` owns the connections and threads; work reaches them as jobs through `queue`.
//! - `tx` is the interface: a `Tx` is one company's transaction, a `Snapshot` one company's read, an `Across`
//!   a read-only view of all companies.
//! - SQL is written once, with `$n`; differences between the engines are in `dialect`.
//! - `copy` copies whole databases: between engines, into backups and back.
//! - The other modules are the statements, one module per subject, returning domain types.

pub mod account;
pub mod account_address;
pub mod account_changes;
pub mod account_field;
pub mod account_list;
pub mod account_site;
pub mod activity;
pub mod activity_day;
pub mod address_change;
pub mod audit;
pub mod backlog;
pub mod bulk_change;
pub mod cadence;
pub mod cadence_preview;
mod cadence_ranges;
pub mod campaign;
pub mod change;
pub mod channel;
pub mod channel_total;
pub mod claimed_domain;
pub mod clients;
pub mod company;
pub mod company_data;
pub mod company_deletion;
pub mod contact;
pub mod conversation;
pub mod copy;
pub mod correction;
mod costs;
pub mod credential;
pub mod delivery;
pub mod delivery_health;
pub mod delivery_list;
mod delivery_state;
pub mod departed;
mod dialect;
pub mod digest;
pub mod doctor;
pub mod encryption_key;
mod engine;
pub mod erasure;
mod error;
pub mod event;
pub mod event_feed;
pub mod exchange_rate;
pub mod facts;
pub mod fan_out;
mod faults;
mod health;
pub mod history;
pub mod import;
pub mod import_data;
pub mod ingest_reject;
pub mod invitation;
pub mod mail;
pub mod mail_budget;
pub mod mail_reference;
pub mod manual_attempt;
pub mod member;
pub mod message;
mod migrate;
pub mod node;
pub mod note;
pub mod own_data;
pub mod page;
pub mod passkey;
pub mod password_reset;
#[cfg(test)]
mod plans;
mod queue;
pub mod recent;
pub mod recovery_code;
pub mod redelivery;
pub mod removed_member;
pub mod retention;
pub mod sample;
pub mod saved_view;
pub mod sealed;
pub mod second_factor;
pub mod session;
pub mod sso;
pub mod sso_identity;
pub mod stage_totals;
mod statement;
pub mod story;
pub mod submission;
pub mod subscription;
pub mod timeline;
pub mod tombstone;
pub mod totp;
mod tx;
mod value;
pub mod webhook;
pub mod webhook_choice;

pub use engine::{Config, Database, Figures, LogFigures, Query, Store, migrate_and_tell, migrate_only};
pub use error::Error;
pub use faults::{Fault, Faults};
pub use health::Outage;
pub use migrate::progress::{Progress, Rows};
pub use queue::{Job, Lane, Verdict};
pub use statement::{DeleteMany, InsertMany, Scope, Statement, UpdateMany};
pub use tx::{Across, Snapshot, Tx};
pub use value::{Cell, Row, Type, Value};

/// Every statement of the crate, for the test that prepares each one on both engines.
pub fn all_statements() -> Vec<&'static Statement> {
    [
        account::STATEMENTS,
        account_address::STATEMENTS,
        account_changes::STATEMENTS,
        account_field::STATEMENTS,
        account_list::STATEMENTS,
        account_list::groups::STATEMENTS,
        account_list::terms::STATEMENTS,
        account_site::STATEMENTS,
        activity::STATEMENTS,
        activity_day::STATEMENTS,
        address_change::STATEMENTS,
        audit::STATEMENTS,
        backlog::STATEMENTS,
        bulk_change::STATEMENTS,
        cadence::STATEMENTS,
        campaign::STATEMENTS,
        channel::STATEMENTS,
        channel_total::STATEMENTS,
        claimed_domain::STATEMENTS,
        clients::STATEMENTS,
        company::STATEMENTS,
        company_deletion::STATEMENTS,
        contact::STATEMENTS,
        conversation::STATEMENTS,
        correction::STATEMENTS,
        credential::STATEMENTS,
        delivery::STATEMENTS,
        delivery_health::STATEMENTS,
        delivery_list::STATEMENTS,
        departed::STATEMENTS,
        digest::STATEMENTS,
        encryption_key::STATEMENTS,
        erasure::STATEMENTS,
        event::STATEMENTS,
        event_feed::STATEMENTS,
        exchange_rate::STATEMENTS,
        fan_out::STATEMENTS,
        history::STATEMENTS,
        mail_reference::STATEMENTS,
        invitation::STATEMENTS,
        mail::STATEMENTS,
        mail_budget::STATEMENTS,
        import::STATEMENTS,
        import_data::STATEMENTS,
        ingest_reject::STATEMENTS,
        manual_attempt::STATEMENTS,
        member::STATEMENTS,
        message::STATEMENTS,
        node::STATEMENTS,
        note::STATEMENTS,
        own_data::STATEMENTS,
        passkey::STATEMENTS,
        password_reset::STATEMENTS,
        recent::STATEMENTS,
        recovery_code::STATEMENTS,
        redelivery::STATEMENTS,
        removed_member::STATEMENTS,
        retention::STATEMENTS,
        sample::STATEMENTS,
        saved_view::STATEMENTS,
        sealed::STATEMENTS,
        second_factor::STATEMENTS,
        session::STATEMENTS,
        sso::STATEMENTS,
        sso_identity::STATEMENTS,
        stage_totals::STATEMENTS,
        submission::STATEMENTS,
        subscription::STATEMENTS,
        timeline::STATEMENTS,
        tombstone::STATEMENTS,
        totp::STATEMENTS,
        webhook::STATEMENTS,
        webhook_choice::STATEMENTS,
    ]
    .concat()
}

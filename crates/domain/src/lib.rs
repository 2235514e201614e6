//! What the business means: types and pure rules.
//!
//! No I/O, no async, no clock, no SQL, no HTTP. A rule is a function of values; where it needs the
//! time it takes `now`. Validation is parsing: raw JSON members go in, typed values or a list of
//! field errors come out.

pub mod account;
pub mod activity;
pub mod cadence;
pub mod channel;
pub mod company;
pub mod credential;
pub mod custom_fields;
pub mod delivery;
pub mod delivery_list;
pub mod destination;
pub mod event;
pub mod history;
pub mod id;
pub mod import;
pub mod invalid;
pub mod member;
pub mod money;
pub mod pipeline;
pub mod redelivery;
pub mod search;
pub mod text;
pub mod time;
pub mod webhook;

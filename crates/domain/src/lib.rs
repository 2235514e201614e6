//! The business rules: types and pure functions.
//!
//! No I/O, no async, no clock, no SQL, no HTTP. A rule is a function of values; if it needs the time, it
//! takes `now`. Validation is parsing: raw JSON members go in, typed values or a list of field errors come
//! out.

pub mod account;
pub mod activity;
pub mod address_change;
pub mod audience;
pub mod audit;
pub mod bulk;
pub mod cadence;
pub mod campaign;
pub mod caps;
pub mod channel;
pub mod channel_total;
pub mod company;
pub mod company_deletion;
pub mod contact;
pub mod conversation;
pub mod credential;
pub mod custom_fields;
pub mod delivery;
pub mod delivery_list;
pub mod departed;
pub mod destination;
pub mod device;
pub mod digest;
pub mod email_domain;
pub mod event;
pub mod field_index;
pub mod history;
pub mod id;
pub mod import;
pub mod inbound;
pub mod invalid;
pub mod invitation;
pub mod json_layout;
pub mod lookup;
pub mod mail;
pub mod mail_limit;
pub mod member;
pub mod money;
pub mod password;
pub mod password_reset;
pub mod pipeline;
pub mod policy;
pub mod recovery_code;
pub mod redelivery;
pub mod relying_party;
pub mod request_id;
pub mod right;
pub mod saved_view;
pub mod schema;
pub mod search;
pub mod second_factor;
pub mod sender_check;
pub mod session;
pub mod signature;
pub mod sso;
pub mod standard_webhook;
pub mod standing;
pub mod text;
pub mod time;
pub mod totp;
pub mod upsert_batch;
pub mod webhook;

//! What storage promises, tested on SQLite and on PostgreSQL alike.

mod account;
mod activity;
mod clients;
mod delivery_list;
mod group_commit;
mod listing;
mod mail;
mod opening;
mod postgres;
mod queue;
mod records;
mod statements;
mod support;
mod tenancy;

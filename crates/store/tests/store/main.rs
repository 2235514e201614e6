//! The guarantees of storage, tested on both SQLite and PostgreSQL.

mod account;
mod activity;
mod activity_day;
mod clients;
mod delivery_list;
mod group_commit;
mod listing;
mod mail;
mod opening;
mod postgres;
mod queue;
mod recent;
mod records;
mod reporting;
mod silence;
mod sqlite_files;
mod sqlite_group;
mod sqlite_log;
mod stage_totals;
mod statements;
mod support;
mod tenancy;
mod upgrade;

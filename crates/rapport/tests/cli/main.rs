//! The real program, run as people run it: its commands, its service, its signals.

mod bad_options;
mod beside_service;
mod company;
mod configuration;
mod database_file;
mod demo;
mod doctor;
mod file_limit;
mod import;
mod lifecycle;
mod mail;
mod migrate;
mod misbehaving;
mod outage;
#[expect(dead_code, reason = "the fault tests use the rest")]
mod program;
mod receiving_webhooks;

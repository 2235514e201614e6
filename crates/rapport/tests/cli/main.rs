//! The real program, run as people run it: its commands, its service, its signals.

mod access_log;
mod backup;
mod bad_options;
mod beside_service;
mod company;
mod configuration;
mod copy;
mod data_directory;
mod database_file;
mod database_password;
mod demo;
mod doctor;
mod egress_proxy;
mod encryption_key;
mod file_limit;
mod health;
mod import;
mod lifecycle;
mod mail;
mod metrics;
mod migrate;
mod misbehaving;
mod outage;
mod person;
#[expect(dead_code, reason = "the fault tests use the rest")]
mod program;
mod receiving_webhooks;
mod reference;
mod security_log;
mod tour;

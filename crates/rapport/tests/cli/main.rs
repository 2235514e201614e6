//! The real program, run as people run it: its commands, its service, its signals.

mod bad_options;
mod beside_service;
mod company;
mod configuration;
mod crash;
mod demo;
mod doctor;
mod import;
mod lifecycle;
mod mail;
mod misbehaving;
mod outage;
mod program;
mod receiving_webhooks;

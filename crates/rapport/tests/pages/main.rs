//! The pages in a real Chromium, on the real program: each test does what a person would.

#[path = "../cli/program.rs"]
#[expect(dead_code, reason = "the tests of the command line use the rest")]
mod program;

mod account;
mod accounts;
mod board;
mod campaigns;
mod channels;
mod clients;
mod companies;
mod corrections;
mod credentials;
mod currencies;
mod dashboard;
mod deliveries;
mod documentation;
mod every_page;
mod factors;
mod first_run;
mod fit;
mod hostile_text;
mod identity;
mod imports;
mod keys;
mod mailbox;
mod members;
mod messages;
mod office;
mod paths;
mod people;
mod phone;
mod pipeline;
mod pulse;
mod roles;
mod samples;
mod sessions;
mod settings;
mod sso;
mod twice;
mod webhooks;

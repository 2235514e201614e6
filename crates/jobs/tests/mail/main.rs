//! Mail as it reaches a real mail server, on both engines: what is written is sent once, whatever fails between.

mod digest;
mod harness;
mod journeys;
mod mailer;
mod sending;

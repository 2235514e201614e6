//! Mail through a real mail server, on both engines: each mail is sent once, whatever fails in between.

mod digest;
mod harness;
mod journeys;
mod mailer;
mod sending;

//! The API over real HTTP, on both engines.

mod harness;
mod http;
mod smoke;

//! What every request passes on its way in and out.
//!
//! - `server`: the router, the accept loop and its limits. `front`: the middleware around every request. `health`.
//! - `auth`: credentials. `rate_limit`, `shares`, `slow_body`: how much one client may use. `hashing`: passwords, few
//!   at a time.
//! - `json`: request bodies. `problem`: the only place that maps errors to HTTP.

pub mod auth;
pub mod front;
pub mod hashing;
pub mod health;
pub mod json;
pub mod problem;
pub mod rate_limit;
pub mod server;
pub mod shares;
pub mod slow_body;

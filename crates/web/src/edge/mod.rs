//! What every request passes on its way in and out.
//!
//! - `server`: the router, the accept loop and its limits. `tls`: its handshake. `closing`: how it stops. `front`: the
//!   middleware around every request. `access_log`. `health`.
//! - `client`: who sent a request, with `forwarded`, a header of proxies. `host`, `origin`: other headers that say
//!   where it comes from.
//! - `auth`: credentials. `rate_limit`, `guessing`, `shares`, `slow_body`: how much one client may use. `hashing`: passwords, few
//!   at a time. `turned_away`: what the log says about requests that didn't pass.
//! - `etag`: versions of what is shown.
//! - `json`: request bodies. `compression`: response bodies. `problem`: the only place that maps errors to HTTP.
//!   `codes`: what error codes mean.

pub mod access_log;
pub mod auth;
pub mod client;
pub mod closing;
pub mod codes;
pub mod compression;
pub mod etag;
pub mod forwarded;
pub mod front;
pub mod guessing;
pub mod hashing;
pub mod health;
pub mod host;
pub mod json;
pub mod origin;
pub mod problem;
pub mod rate_limit;
pub mod server;
pub mod shares;
pub mod slow_body;
pub mod tls;
pub mod turned_away;

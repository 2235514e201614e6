//! The HTTP side of Rapport: pages for people and a JSON API for programs.
//!
//! A handler parses the request, calls one use case of `rapport_app` and renders the result. There is no SQL and
//! no business rule here. Only `problem` maps errors to HTTP.
//!
//! - `server`: the router, the accept loop and the limits. `front`: the middleware around every request.
//! - `api/`: the endpoints, one group per file, each with its part of the OpenAPI document.
//! - `pages/`: HTML for people.
//! - `json`, `auth`, `rate_limit`: request bodies, credentials and rate limits.
//! - `shares`, `slow_body`: how much of a shared resource one client may use.

mod api;
mod auth;
mod front;
mod hashing;
mod health;
mod json;
mod pages;
mod problem;
mod rate_limit;
mod server;
mod shares;
mod slow_body;

pub use api::openapi::document as openapi_document;
pub use pages::SetupSecret;
pub use rate_limit::Rate;
pub use server::{Config, MetricsText, router, serve};

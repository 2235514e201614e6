//! How people and programs reach it: the pages, and the JSON API.
//!
//! A handler parses, calls one use case of `rapport_app`, renders. No SQL and no rules here; what an
//! error means in HTTP is said in `problem` alone.
//!
//! - `server`: the router, the accept loop, the limits. `front`: what happens around every request.
//! - `api/`: the endpoints, one group a file, each with its part of the OpenAPI document.
//! - `pages/`: HTML for people.
//! - `json`, `auth`, `rate_limit`: what comes in, from whom, how often.
//! - `shares`, `slow_body`: what one client may take of what all share.

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

//! The HTTP side of Rapport: pages for people and a JSON API for programs.
//!
//! A handler parses the request, calls one use case of `rapport_app` and renders the result. There is no SQL and
//! no business rule here. Requests travel from `edge` to `api` or `pages`, which both use `shared`; neither of the two
//! knows the other.
//!
//! - `edge/`: what every request passes: the server, credentials, limits, bodies, errors.
//! - `shared/`: query parameters, cursors, filters and CSV files.
//! - `api/`: the endpoints, one group per file, each with its part of the OpenAPI document.
//! - `pages/`: HTML for people; `pages/kit/` is what all pages are made of.

mod api;
mod edge;
mod pages;
mod shared;

pub use api::openapi::document as openapi_document;
pub use edge::client::TrustedProxies;
pub use edge::closing::Drain;
pub use edge::rate_limit::Rate;
pub use edge::server::{Config, MetricsText, router, serve};
pub use pages::SetupSecret;
pub use pages::rules::{RULES as PAGE_RULES, Rule as PageRule};

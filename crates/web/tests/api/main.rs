//! The API over real HTTP, on both engines. Each row of the interface document's tables is a named test.

mod account_fields;
mod concurrency;
mod errors;
mod harness;
mod http;
mod imports;
mod ingest;
mod limits;
mod management;
mod openapi;
mod promo_codes;
mod rate_limits;
mod smoke;
mod transitions;
mod upsert;
mod webhooks;

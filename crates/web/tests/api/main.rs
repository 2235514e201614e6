//! The API over real HTTP, on both engines. Each row of the interface document's tables is a named test.

mod account_fields;
mod campaigns;
mod clients;
mod concurrency;
mod contacts;
mod conversations;
mod digests;
mod errors;
mod export;
mod field_filters;
mod harness;
mod http;
mod inbound;
mod ingest;
mod invitations;
mod limits;
mod lookup;
mod management;
mod openapi;
mod promo_codes;
mod rate_limits;
mod smoke;
mod timeline;
mod transitions;
mod upsert;
mod webhooks;

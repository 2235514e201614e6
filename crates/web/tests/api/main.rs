//! The API over real HTTP, on both engines. Each row of the interface document's tables is a named test.

mod harness;
mod http;
mod smoke;
mod webhooks;

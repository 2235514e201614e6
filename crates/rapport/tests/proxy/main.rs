//! The service behind real proxies, configured as `docs/proxy/` says, and with TLS of its own.

#[path = "../cli/program.rs"]
#[expect(dead_code, reason = "the command-line tests use the rest")]
mod program;

mod addresses;
mod caller;
mod proxies;
mod rolling;
mod tls;

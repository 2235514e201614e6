//! What the tests of the other crates share: the application on either engine with a clock that tests move, a
//! temporary PostgreSQL server, proxies that break or intercept connections to it, a pooler, a webhook receiver and an
//! identity provider that can misbehave, a mail server, a passkey, and a browser. Nothing here is part of the service.

mod acts;
pub mod app;
pub mod archive;
pub mod authenticator;
pub mod browser;
pub mod chance;
mod deadline;
pub mod disk;
mod drivers;
pub mod egress_proxy;
pub mod gate;
pub mod hands;
pub mod mail;
mod network;
pub mod oidc;
pub mod old_database;
mod opening;
pub mod pgbouncer;
pub mod postgres;
pub mod postgres_interceptor;
pub mod postgres_proxy;
pub mod power_cut;
pub mod providers;
pub mod raw;
pub mod receiver;
pub mod recording;
mod script_errors;
mod sight;
mod virtual_authenticator;
pub mod webhook;

pub use crate::app::{Engine, SeededRandom, TestApp, TestClock, TestCompany, all, block_on};
pub use crate::archive::Archive;
pub use crate::authenticator::Authenticator;
pub use crate::browser::Browser;
pub use crate::chance::Chance;
pub use crate::deadline::{Deadline, signal};
pub use crate::disk::{Disk, DiskError};
pub use crate::egress_proxy::{AskedTunnel, ProxyAnswer, TestEgressProxy};
pub use crate::gate::Gate;
pub use crate::hands::Hands;
pub use crate::mail::{MailSecurity, MailServer, ReceivedMail};
pub use crate::oidc::OidcProvider;
pub use crate::opening::open;
pub use crate::pgbouncer::Pgbouncer;
pub use crate::postgres::PostgresServer;
pub use crate::postgres_interceptor::PostgresInterceptor;
pub use crate::postgres_proxy::PostgresProxy;
pub use crate::power_cut::Unsynced;
pub use crate::providers::TestProviders;
pub use crate::receiver::{Behaviour, Hostile, Identity, Opening, ReceivedRequest, Receiver, Step};
pub use crate::recording::Recording;
pub use crate::sight::PATIENCE;
pub use crate::virtual_authenticator::VirtualAuthenticator;
pub use crate::webhook::{create_webhook, patch_webhook};

//! Background work: webhook delivery and the housekeeping around it, mail and digests. Calls `app`.
//!
//! - `sender` decides what is sent when: fairness, windows, hand-over, retries, takeover.
//! - `client` makes one attempt over HTTPS; `guard` decides which addresses it may dial.
//! - `egress` is the way through a proxy, if there is one.
//! - `failure` and `certificate` explain in a sentence why an attempt failed.
//! - `lookup` fetches home pages and `sso` talks to identity providers under the same rules, each with a guard of its
//!   own; `https` is what they have in common.
//! - `lanes`, `ring`, `flights` and `places` are the sender's bookkeeping, without I/O; `reconcile` compares
//!   it with the database.
//! - `nodes` shows that this node is alive and detects dead ones; `housekeeping` acts on it.
//! - `fan_out` creates the remaining deliveries of events that very many webhooks select.
//! - `rounds` is the loop that the periodic jobs below share.
//! - `cadence` announces clients that became overdue.
//! - `channel_totals` counts accounts and values per channel and promo code.
//! - `deletion` deletes companies whose waiting is over, and logins without a company.
//! - `fields` makes older accounts searchable by their custom fields.
//! - `mail` sends due mail through the `mailer`; `digest` creates the weekly digest.
//! - `import` runs imports.
//! - `backup` makes scheduled backups.
//! - `stage_totals` counts the accounts of large companies.
//! - `redelivery` runs bulk redeliveries; `retention` deletes expired data.
//! - `monitoring` counts what waits, for the metrics.

pub mod backup;
pub mod cadence;
mod certificate;
pub mod channel_totals;
pub mod client;
pub mod deletion;
pub mod digest;
pub mod egress;
mod failure;
mod fan_out;
pub mod fields;
mod flights;
pub mod guard;
mod housekeeping;
mod https;
pub mod import;
mod lanes;
pub mod lookup;
pub mod mail;
pub mod mailer;
pub mod monitoring;
mod nodes;
mod places;
mod reconcile;
pub mod redelivery;
pub mod retention;
mod ring;
mod rounds;
pub mod sender;
pub mod sso;
pub mod stage_totals;

pub use client::{Client, Limits};
pub use egress::EgressProxy;
pub use guard::{Guard, Resolver, SystemResolver};
pub use lookup::Lookup;
pub use mailer::{MailServer, Mailer, Security};
pub use sender::{Config, start};
pub use sso::SingleSignOn;

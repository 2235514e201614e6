//! What happens by itself: webhook delivery, and the housekeeping around it. Calls `app`.
//!
//! - `sender` decides what is sent when: fairness, windows, hand-over, retries, takeover.
//! - `client` makes one attempt over HTTPS; `guard` says which addresses it may dial.
//! - `lanes` and `places` are the sender's bookkeeping, without I/O.
//! - `import` takes imports further.
//! - `redelivery` takes redeliveries of many further; `retention` lets go of what is past its time.

pub mod client;
pub mod guard;
mod housekeeping;
pub mod import;
mod lanes;
mod places;
pub mod redelivery;
pub mod retention;
pub mod sender;

pub use client::{Client, Limits};
pub use guard::{Guard, Resolver, SystemResolver};
pub use sender::{Config, start};

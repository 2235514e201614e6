//! Following a company's events and accounts with a cursor, without missing one that is committed late.
//!
//! It takes two snapshots: [`settled`] asks in the first one how far the second one may read.

pub use rapport_store::account_changes::{AccountsAfter, Changes, after as accounts};
pub use rapport_store::change::{Place, Settled, settled};
pub use rapport_store::event_feed::{Events, EventsAfter, after as events};

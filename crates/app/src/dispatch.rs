//! Deliveries on their way to an attempt, and the sender of this process as commands see it.
//!
//! A row says which node owns a delivery or a manual attempt; a [`Place`] says that this process really holds
//! it. The two can diverge, after a commit whose answer was lost or a release that failed. So a place is
//! reserved inside the transaction that makes the node the owner, and anything owned without a place is found
//! and given back (`ownership::GiveBack`).

use std::sync::Arc;

use rapport_domain::delivery::Reason;
use rapport_domain::event::Kind;
use rapport_domain::id::{CompanyId, DeliveryId, EventId, RedeliveryId, WebhookId};
use rapport_domain::standing::Standing;

/// A delivery on its way to an attempt.
#[derive(Debug, Clone)]
pub struct Dispatch {
    pub company: CompanyId,
    pub webhook: WebhookId,
    pub delivery: DeliveryId,
    pub event: EventId,
    pub kind: Kind,
    /// The number its next attempt will get, unless another attempt comes first.
    pub number: i64,
    pub payload: Arc<str>,
    /// Set if someone asked for this attempt: then it is made whether the webhook is enabled or not.
    pub manual: Option<Manual>,
}

/// An attempt that someone asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manual {
    pub id: RedeliveryId,
    /// The bulk redelivery it is part of.
    pub bulk: Option<RedeliveryId>,
}

impl Dispatch {
    /// The row this process owns while it holds the dispatch.
    pub fn owned(&self) -> Owned {
        self.manual.map_or(Owned::Delivery(self.delivery), |manual| Owned::Manual(manual.id))
    }

    pub fn is_bulk(&self) -> bool {
        self.manual.is_some_and(|manual| manual.bulk.is_some())
    }

    /// Whether a person pressed a button and waits for the result.
    pub fn is_urgent(&self) -> bool {
        self.is_first_test() || self.manual.is_some_and(|manual| manual.bulk.is_none())
    }

    fn is_first_test(&self) -> bool {
        self.kind == Kind::WebhookTest && self.number == 1
    }

    /// Why the attempt is made: by schedule, unless someone asked for it. A test's first attempt is the test
    /// itself, no matter how it reached its sender.
    pub fn reason(&self) -> Reason {
        if self.manual.is_some() && !self.is_first_test() { Reason::Manual } else { Reason::Automatic }
    }
}

/// Something in the database that one node owns while it works on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owned {
    Delivery(DeliveryId),
    Manual(RedeliveryId),
}

/// Which kind of place is asked for, and so whether it can be refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    /// A committed change: if refused, it waits in the database.
    Ordinary,
    /// A person waits for it, so it skips its webhook's queue.
    Urgent,
    /// Claimed from the database, which happens only while there is room.
    Claimed,
}

/// The sender of this process, as commands see it.
pub trait Sender: Send + Sync + 'static {
    /// The number of this incarnation, recorded as the owner of what it holds.
    fn node(&self) -> i64;

    /// Reserves a place in memory. With `None` the delivery waits in the database.
    fn reserve(&self, company: CompanyId, webhook: WebhookId, owned: Owned, asking: Asking) -> Option<Place>;

    /// What this process knows about a receiver.
    fn standing(&self, webhook: WebhookId) -> Standing;

    /// Whether a place is reserved for this. Nobody works on something that is owned but not held.
    fn holds(&self, owned: Owned) -> bool;

    /// Takes committed deliveries, each with the place reserved for it.
    fn hand_over(&self, dispatches: Vec<(Dispatch, Place)>);

    /// Something of this webhook waits in the database, or the webhook was enabled or disabled.
    fn wake(&self, company: CompanyId, webhook: WebhookId);

    /// A manual attempt waits in the database.
    fn wake_manual(&self, company: CompanyId);
}

/// A reserved place, given back when dropped.
pub struct Place(Option<Box<dyn FnOnce() + Send>>);

impl Place {
    pub fn new(give_back: impl FnOnce() + Send + 'static) -> Self {
        Self(Some(Box::new(give_back)))
    }

    /// For callers that claim without a sender: nothing is counted.
    pub const fn uncounted() -> Self {
        Self(None)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(give_back) = self.0.take() {
            give_back();
        }
    }
}

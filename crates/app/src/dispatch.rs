//! Deliveries on their way to an attempt, and the sender of this process as commands see it.
//!
//! A row says which node owns a delivery or a manual attempt; a [`Place`] says that this process really holds it.
//! The two can part: a commit whose answer was lost, a release that failed. So a place is reserved inside the
//! transaction that makes the node the owner, and what is owned without a place is found and given back
//! (`ownership::GiveBack`).

use std::sync::Arc;

use rapport_domain::delivery::Reason;
use rapport_domain::event::Kind;
use rapport_domain::id::{CompanyId, DeliveryId, RedeliveryId, WebhookId};

/// A delivery on its way to an attempt.
#[derive(Debug, Clone)]
pub struct Dispatch {
    pub company: CompanyId,
    pub webhook: WebhookId,
    pub delivery: DeliveryId,
    pub kind: Kind,
    /// The number its next attempt will have, unless another one comes between.
    pub number: i64,
    pub payload: Arc<str>,
    /// Somebody asked for this attempt: it is made whether the webhook is enabled or not.
    pub manual: Option<Manual>,
}

/// An attempt that somebody asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manual {
    pub id: RedeliveryId,
    /// The bulk redelivery it is part of.
    pub bulk: Option<RedeliveryId>,
}

impl Dispatch {
    /// What this process owns while it holds the dispatch.
    pub fn owned(&self) -> Owned {
        self.manual.map_or(Owned::Delivery(self.delivery), |manual| Owned::Manual(manual.id))
    }

    pub fn is_bulk(&self) -> bool {
        self.manual.is_some_and(|manual| manual.bulk.is_some())
    }

    /// A person pressed a button and waits to see what happens.
    pub fn is_urgent(&self) -> bool {
        self.is_first_test() || self.manual.is_some_and(|manual| manual.bulk.is_none())
    }

    fn is_first_test(&self) -> bool {
        self.kind == Kind::WebhookTest && self.number == 1
    }

    /// Why an attempt counts as made: the schedule's, unless somebody asked for it. A test's first
    /// attempt is the test itself, however it got to its sender.
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

/// Whether a place can be refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    /// A committed change: without a place it waits in the database.
    Ordinary,
    /// A person waits for it: it does not queue up behind what its webhook has waiting.
    Urgent,
    /// Claimed from the database, which happens only while there is room.
    Claimed,
}

/// The sender of this process, as commands see it.
pub trait Sender: Send + Sync + 'static {
    /// The number of this incarnation: the owner of what it holds.
    fn node(&self) -> i64;

    /// A place in memory, or `None`: then the delivery waits in the database.
    fn reserve(&self, company: CompanyId, webhook: WebhookId, owned: Owned, asking: Asking) -> Option<Place>;

    /// Whether a place is reserved for this. What is owned and not held is worked on by nobody.
    fn holds(&self, owned: Owned) -> bool;

    /// Committed deliveries, each with the place that was reserved for it.
    fn hand_over(&self, dispatches: Vec<(Dispatch, Place)>);

    /// Something of this webhook waits in the database, or its switch was turned.
    fn wake(&self, company: CompanyId, webhook: WebhookId);

    /// An attempt that somebody asked for waits in the database.
    fn wake_manual(&self, company: CompanyId);
}

/// A reserved place; given back when dropped.
pub struct Place(Option<Box<dyn FnOnce() + Send>>);

impl Place {
    pub fn new(give_back: impl FnOnce() + Send + 'static) -> Self {
        Self(Some(Box::new(give_back)))
    }

    /// For who claims without a sender: nothing is counted.
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

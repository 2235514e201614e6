//! Places in memory for deliveries: bounded in all and per webhook, reserved by engine threads before
//! they commit. A delivery without a place waits in the database.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use rapport_app::delivery::Place;
use rapport_domain::id::WebhookId;

/// Deliveries in memory, all webhooks together.
const MAX_PLACES: usize = 20_000;
/// … and of one webhook: a proven one, and one that fails.
const MAX_PLACES_PROVEN: usize = 4096;
const MAX_PLACES_UNPROVEN: usize = 64;

/// Places in memory, asked for by engine threads before they commit.
#[derive(Default)]
pub struct Gates {
    total: AtomicUsize,
    webhooks: Mutex<HashMap<WebhookId, Gate>>,
}

#[derive(Default, Clone, Copy)]
struct Gate {
    held: usize,
    /// Others wait in the database: new ones queue up behind them.
    behind: bool,
    proven: bool,
}

impl Gates {
    /// A place for one delivery. What was claimed from the database always gets one: it was asked for
    /// only while there was room.
    pub fn reserve(self: &Arc<Self>, webhook: WebhookId, claimed: bool) -> Option<Place> {
        let mut webhooks = self.webhooks.lock();
        let gate = webhooks.entry(webhook).or_default();
        let most = if gate.proven { MAX_PLACES_PROVEN } else { MAX_PLACES_UNPROVEN };
        let full = gate.behind || gate.held >= most || self.total.load(Ordering::Relaxed) >= MAX_PLACES;
        if full && !claimed {
            return None;
        }
        gate.held += 1;
        self.total.fetch_add(1, Ordering::Relaxed);
        let gates = Arc::clone(self);
        Some(Place::new(move || gates.give_back(webhook)))
    }

    fn give_back(&self, webhook: WebhookId) {
        self.total.fetch_sub(1, Ordering::Relaxed);
        if let Some(gate) = self.webhooks.lock().get_mut(&webhook) {
            gate.held = gate.held.saturating_sub(1);
        }
    }

    pub fn set(&self, webhook: WebhookId, (behind, proven): (bool, bool)) {
        let mut webhooks = self.webhooks.lock();
        let gate = webhooks.entry(webhook).or_default();
        gate.behind = behind;
        gate.proven = proven;
    }

    pub fn forget_idle(&self) {
        self.webhooks.lock().retain(|_, gate| gate.held > 0 || gate.behind);
    }

    pub fn has_room(&self) -> bool {
        self.total.load(Ordering::Relaxed) < MAX_PLACES
    }
}

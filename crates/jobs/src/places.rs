//! Places in memory for deliveries: limited in total, per company and per webhook, and reserved by engine
//! threads before they commit. A delivery without a place waits in the database.
//!
//! The places also tell what this node works on: nobody works on an owned row without a place.
//!
//! Receivers that haven't proved themselves share a part of the places, and one company gets at most half of
//! that part: thousands of dead receivers leave room for healthy ones and for another company's new ones.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rapport_app::dispatch::{Asking, Owned, Place};
use rapport_domain::id::{CompanyId, WebhookId};
use rapport_domain::standing::Standing;

/// Deliveries in memory, for all webhooks together.
const MAX_PLACES: usize = 20_000;
/// Deliveries of new or failing receivers, and how many of those one company may have.
const MAX_UNPROVEN: usize = 8_000;
const MAX_UNPROVEN_OF_COMPANY: usize = MAX_UNPROVEN / 2;
/// Deliveries of one webhook.
const MAX_OF_PROVEN: usize = 4_096;
const MAX_OF_NEW: usize = 64;
const MAX_OF_FAILING: usize = 2;
/// How far deliveries that people wait for may exceed all of these limits.
const MAX_URGENT: usize = 1_024;

/// Places in memory, asked for by engine threads before they commit.
#[derive(Default)]
pub struct Gates {
    inside: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    webhooks: HashMap<WebhookId, Gate>,
    /// How many places each has: one that is claimed again may briefly have two.
    held: HashMap<Owned, u32>,
    total: usize,
    unproven: usize,
    unproven_of: HashMap<CompanyId, usize>,
}

#[derive(Default, Clone, Copy)]
struct Gate {
    held: usize,
    /// Others wait in the database, so new ones queue up behind them.
    behind: bool,
    standing: Option<Standing>,
}

impl Gate {
    fn standing(self) -> Standing {
        self.standing.unwrap_or(Standing::New)
    }

    fn most(self) -> usize {
        match self.standing() {
            Standing::Proven => MAX_OF_PROVEN,
            Standing::New => MAX_OF_NEW,
            Standing::Failing => MAX_OF_FAILING,
        }
    }
}

impl Inside {
    fn has_room(&self, company: CompanyId, standing: Standing) -> bool {
        let of_company = self.unproven_of.get(&company).copied().unwrap_or(0);
        let fits = self.unproven < MAX_UNPROVEN && of_company < MAX_UNPROVEN_OF_COMPANY;
        self.total < MAX_PLACES && (standing == Standing::Proven || fits)
    }
}

impl Gates {
    pub fn reserve(
        self: &Arc<Self>,
        company: CompanyId,
        webhook: WebhookId,
        owned: Owned,
        asking: Asking,
    ) -> Option<Place> {
        let mut inside = self.inside.lock();
        let gate = inside.webhooks.get(&webhook).copied().unwrap_or_default();
        let has_place = match asking {
            Asking::Claimed => true,
            Asking::Urgent => inside.total < MAX_PLACES + MAX_URGENT,
            Asking::Ordinary => {
                !gate.behind && gate.held < gate.most() && inside.has_room(company, gate.standing())
            }
        };
        if !has_place {
            return None;
        }
        let unproven = gate.standing() != Standing::Proven;
        inside.webhooks.entry(webhook).or_default().held += 1;
        *inside.held.entry(owned).or_default() += 1;
        inside.total += 1;
        if unproven {
            inside.unproven += 1;
            *inside.unproven_of.entry(company).or_default() += 1;
        }
        drop(inside);
        let gates = Arc::clone(self);
        Some(Place::new(move || gates.give_back(company, webhook, owned, unproven)))
    }

    fn give_back(&self, company: CompanyId, webhook: WebhookId, owned: Owned, unproven: bool) {
        let mut inside = self.inside.lock();
        inside.total -= 1;
        if let Some(gate) = inside.webhooks.get_mut(&webhook) {
            gate.held = gate.held.saturating_sub(1);
        }
        if let Some(places) = inside.held.get_mut(&owned) {
            *places -= 1;
            if *places == 0 {
                inside.held.remove(&owned);
            }
        }
        if unproven {
            inside.unproven -= 1;
            if let Some(count) = inside.unproven_of.get_mut(&company) {
                *count -= 1;
                if *count == 0 {
                    inside.unproven_of.remove(&company);
                }
            }
        }
    }

    pub fn standing(&self, webhook: WebhookId) -> Standing {
        self.inside.lock().webhooks.get(&webhook).copied().unwrap_or_default().standing()
    }

    /// Whether this process works on it, or is about to.
    pub fn holds(&self, owned: Owned) -> bool {
        self.inside.lock().held.contains_key(&owned)
    }

    /// Those this process isn't working on.
    pub fn not_held<T>(&self, found: Vec<T>, owned: impl Fn(&T) -> Owned) -> Vec<T> {
        let inside = self.inside.lock();
        found.into_iter().filter(|found| !inside.held.contains_key(&owned(found))).collect()
    }

    pub fn set(&self, webhook: WebhookId, behind: bool, standing: Standing) {
        let mut inside = self.inside.lock();
        let gate = inside.webhooks.entry(webhook).or_default();
        gate.behind = behind;
        gate.standing = Some(standing);
    }

    /// Forgets gates that hold no information; what is known about a receiver is kept.
    pub fn forget_idle(&self) {
        let idle = |gate: &Gate| gate.held == 0 && !gate.behind && gate.standing() == Standing::New;
        self.inside.lock().webhooks.retain(|_, gate| !idle(gate));
    }

    pub fn forget(&self, webhook: WebhookId) {
        self.inside.lock().webhooks.remove(&webhook);
    }

    /// Whether more may be claimed for a webhook of this standing.
    pub fn has_room(&self, company: CompanyId, standing: Standing) -> bool {
        self.inside.lock().has_room(company, standing)
    }
}

#[cfg(test)]
mod tests {
    use rapport_domain::id::DeliveryId;

    use super::*;

    const ACME: CompanyId = CompanyId(1);

    fn hook(number: u16) -> WebhookId {
        let mut bytes = [0; 16];
        bytes[..2].copy_from_slice(&number.to_be_bytes());
        WebhookId::from_bytes(bytes)
    }

    fn delivery(number: u32) -> Owned {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        Owned::Delivery(DeliveryId::from_bytes(bytes))
    }

    #[test]
    fn what_has_a_place_is_held_until_its_last_place_is_given_back() {
        let gates = Arc::new(Gates::default());
        let first = gates.reserve(ACME, hook(1), delivery(1), Asking::Ordinary);
        let second = gates.reserve(ACME, hook(1), delivery(1), Asking::Claimed);
        assert!(gates.holds(delivery(1)) && !gates.holds(delivery(2)));
        drop(first);
        assert!(gates.holds(delivery(1)), "it was claimed again before the first place was given back");
        drop(second);
        assert!(!gates.holds(delivery(1)));
    }

    #[test]
    fn dead_receivers_leave_places_for_the_healthy_and_for_other_companies() {
        let gates = Arc::new(Gates::default());
        let mut kept = Vec::new();
        let mut number = 0;
        let mut fill = |company: CompanyId, hooks: std::ops::Range<u16>| {
            for webhook in hooks {
                for _ in 0..MAX_OF_NEW {
                    number += 1;
                    let asked = gates.reserve(company, hook(webhook), delivery(number), Asking::Ordinary);
                    kept.extend(asked);
                }
            }
            kept.len()
        };
        assert_eq!(fill(ACME, 0..1000), MAX_UNPROVEN_OF_COMPANY);
        assert_eq!(fill(CompanyId(2), 1000..1001), MAX_UNPROVEN_OF_COMPANY + MAX_OF_NEW);
        gates.set(hook(2000), false, Standing::Proven);
        let asked = |asking| gates.reserve(ACME, hook(2000), delivery(1_000_000), asking).is_some();
        assert!(asked(Asking::Ordinary), "a proven webhook of the same company has room");
        assert!(gates.reserve(ACME, hook(1), delivery(1_000_001), Asking::Urgent).is_some());
        assert!(gates.reserve(ACME, hook(1), delivery(1_000_002), Asking::Ordinary).is_none());
    }

    #[test]
    fn what_a_receiver_has_shown_outlives_idleness() {
        let gates = Arc::new(Gates::default());
        gates.set(hook(1), false, Standing::Proven);
        gates.set(hook(2), false, Standing::New);
        gates.forget_idle();
        let known = [1, 2, 3].map(|number| gates.standing(hook(number)));
        assert_eq!(known, [Standing::Proven, Standing::New, Standing::New]);
        let inside = gates.inside.lock();
        assert!(inside.webhooks.contains_key(&hook(1)) && !inside.webhooks.contains_key(&hook(2)));
    }
}

//! The sender's bookkeeping: what waits in memory for each webhook, and who is next.
//!
//! Fair between companies first, then between a company's webhooks. Each webhook has a window of
//! requests under way: one until it has proved itself, doubled by every success, one again after a
//! failure. Webhooks that have not proved themselves, or whose last request failed, together never
//! take more than a quarter of the slots. So a dead receiver delays nobody but itself.

use std::collections::{HashMap, VecDeque};

use rapport_app::delivery::{Dispatch, Place};
use rapport_domain::id::{CompanyId, WebhookId};
use rapport_domain::time::Time;

pub const MAX_WINDOW: usize = 64;
/// How much is claimed at a time: a claim waits for a commit, and what it brings must last as long.
const CLAIM_PER_WINDOW: usize = 16;

/// How many requests may be under way at once.
#[derive(Debug, Clone, Copy)]
pub struct Slots {
    pub total: usize,
}

impl Slots {
    fn unproven(self) -> usize {
        (self.total / 4).max(1)
    }
}

pub type Key = (CompanyId, WebhookId);

/// A delivery in memory, with its place.
pub struct Item {
    pub dispatch: Dispatch,
    pub place: Place,
}

struct Lane {
    queue: VecDeque<Item>,
    under_way: usize,
    window: usize,
    proven: bool,
    /// In its company's ring.
    listed: bool,
    supply: Supply,
    next_due: Option<Time>,
}

/// What waits for a webhook in the database, as far as this node knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Supply {
    Nothing,
    Backlog,
    /// A claim is under way; `again` when more was reported meanwhile, which it may have missed.
    Claiming {
        again: bool,
    },
}

impl Default for Lane {
    fn default() -> Self {
        Self {
            queue: VecDeque::new(),
            under_way: 0,
            window: 1,
            proven: false,
            listed: false,
            supply: Supply::Nothing,
            next_due: None,
        }
    }
}

impl Lane {
    fn report_backlog(&mut self) {
        self.supply = match self.supply {
            Supply::Nothing | Supply::Backlog => Supply::Backlog,
            Supply::Claiming { .. } => Supply::Claiming { again: true },
        };
    }

    fn has_room(&self) -> bool {
        self.under_way < self.window
    }

    fn is_idle(&self) -> bool {
        let nothing_waits = self.supply == Supply::Nothing && self.next_due.is_none();
        self.queue.is_empty() && self.under_way == 0 && nothing_waits
    }
}

pub struct Lanes {
    slots: Slots,
    webhooks: HashMap<Key, Lane>,
    /// Companies with something that can be sent, in turn, and the webhooks of each, in turn.
    companies: VecDeque<CompanyId>,
    rings: HashMap<CompanyId, VecDeque<WebhookId>>,
    under_way: usize,
    unproven_under_way: usize,
    /// Could be sent, but for the quarter.
    parked: Vec<Key>,
}

impl Lanes {
    pub fn new(slots: Slots) -> Self {
        Self {
            slots,
            webhooks: HashMap::new(),
            companies: VecDeque::new(),
            rings: HashMap::new(),
            under_way: 0,
            unproven_under_way: 0,
            parked: Vec::new(),
        }
    }

    pub fn push(&mut self, item: Item) {
        let key = (item.dispatch.company, item.dispatch.webhook);
        let lane = self.webhooks.entry(key).or_default();
        // What somebody asked for and waits to see goes first.
        if item.dispatch.manual.is_some() {
            lane.queue.push_front(item);
        } else {
            lane.queue.push_back(item);
        }
        self.list(key);
    }

    /// Puts a webhook in the ring if it has something that can go now.
    fn list(&mut self, key: Key) {
        let Some(lane) = self.webhooks.get_mut(&key) else { return };
        if lane.listed || lane.queue.is_empty() || !lane.has_room() {
            return;
        }
        lane.listed = true;
        let ring = self.rings.entry(key.0).or_default();
        if ring.is_empty() {
            self.companies.push_back(key.0);
        }
        ring.push_back(key.1);
    }

    /// The next delivery to send, by turns; it is under way from now on.
    pub fn next(&mut self) -> Option<Item> {
        while self.under_way < self.slots.total {
            let company = self.companies.pop_front()?;
            let ring = self.rings.get_mut(&company)?;
            let webhook = ring.pop_front();
            if ring.is_empty() {
                self.rings.remove(&company);
            } else {
                self.companies.push_back(company);
            }
            let key = (company, webhook?);
            let Some(lane) = self.webhooks.get_mut(&key) else { continue };
            lane.listed = false;
            if !lane.proven && self.unproven_under_way >= self.slots.unproven() {
                self.parked.push(key);
                continue;
            }
            let Some(item) = lane.queue.pop_front() else { continue };
            lane.under_way += 1;
            self.under_way += 1;
            self.unproven_under_way += usize::from(!lane.proven);
            self.list(key);
            return Some(item);
        }
        None
    }

    /// A request was answered. A success doubles the window, and its slot is free. A failure shrinks the
    /// window to one, and its slot is free once it is recorded: it may be the one that switches the
    /// webhook off.
    pub fn answered(&mut self, key: Key, succeeded: bool) {
        let Some(lane) = self.webhooks.get_mut(&key) else { return };
        if lane.proven != succeeded {
            // The lane's other requests change sides with it.
            if succeeded {
                self.unproven_under_way = self.unproven_under_way.saturating_sub(lane.under_way);
            } else {
                self.unproven_under_way += lane.under_way;
            }
            lane.proven = succeeded;
        }
        lane.window = if succeeded { (lane.window * 2).min(MAX_WINDOW) } else { 1 };
        if succeeded {
            self.ended(key);
        }
    }

    /// A failure is recorded; or a request was not made after all, or says nothing about its receiver.
    pub fn ended(&mut self, key: Key) {
        if let Some(lane) = self.webhooks.get_mut(&key) {
            lane.under_way = lane.under_way.saturating_sub(1);
            self.under_way = self.under_way.saturating_sub(1);
            if !lane.proven {
                self.unproven_under_way = self.unproven_under_way.saturating_sub(1);
            }
        }
        self.list(key);
        if self.unproven_under_way < self.slots.unproven() {
            for key in std::mem::take(&mut self.parked) {
                self.list(key);
            }
        }
    }

    /// Takes a webhook's queue out: it was switched off.
    pub fn drain(&mut self, key: Key) -> Vec<Item> {
        let Some(lane) = self.webhooks.get_mut(&key) else { return Vec::new() };
        if lane.supply == Supply::Backlog {
            lane.supply = Supply::Nothing;
        }
        lane.next_due = None;
        let (manual, rest): (VecDeque<Item>, VecDeque<Item>) =
            lane.queue.drain(..).partition(|item| item.dispatch.manual.is_some());
        lane.queue = manual;
        rest.into()
    }

    pub fn drain_all(&mut self) -> Vec<Item> {
        self.webhooks.values_mut().flat_map(|lane| lane.queue.drain(..)).collect()
    }

    pub fn has_backlog(&mut self, key: Key) {
        self.webhooks.entry(key).or_default().report_backlog();
    }

    /// Something of this webhook is due then.
    pub fn due(&mut self, key: Key, at: Time) {
        let lane = self.webhooks.entry(key).or_default();
        lane.next_due = Some(lane.next_due.map_or(at, |due| due.min(at)));
    }

    /// The webhooks to claim for now, and how much: those with room and something due.
    pub fn claims(&mut self, now: Time) -> Vec<(Key, usize)> {
        let mut claims = Vec::new();
        for (key, lane) in &mut self.webhooks {
            if lane.next_due.is_some_and(|due| due <= now) {
                lane.next_due = None;
                lane.report_backlog();
            }
            if lane.supply == Supply::Backlog && lane.queue.len() < lane.window {
                lane.supply = Supply::Claiming { again: false };
                claims.push((*key, lane.window * CLAIM_PER_WINDOW));
            }
        }
        claims
    }

    /// A claim ended: whether more is due, and when the next is.
    pub fn claimed(&mut self, key: Key, more: bool, next_due: Option<Time>) {
        if let Some(lane) = self.webhooks.get_mut(&key) {
            let again = lane.supply == Supply::Claiming { again: true };
            lane.supply = if more || again { Supply::Backlog } else { Supply::Nothing };
            lane.next_due = lane.next_due.into_iter().chain(next_due).min();
        }
    }

    /// Whether new deliveries of this webhook should wait in the database behind its backlog, and
    /// how many it may have in memory.
    pub fn gate(&self, key: Key) -> (bool, bool) {
        self.webhooks.get(&key).map_or((false, false), |lane| (lane.supply != Supply::Nothing, lane.proven))
    }

    /// Forgets webhooks that nothing happens for; they prove themselves anew.
    pub fn forget_idle(&mut self) {
        self.webhooks.retain(|_, lane| lane.listed || !lane.is_idle());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rapport_domain::event::Kind;
    use rapport_domain::id::DeliveryId;

    fn item(company: i64, webhook: u8) -> Item {
        let dispatch = Dispatch {
            company: CompanyId(company),
            webhook: WebhookId::from_bytes([webhook; 16]),
            delivery: DeliveryId::from_bytes([0; 16]),
            kind: Kind::AccountCreated,
            number: 1,
            payload: "".into(),
            manual: None,
        };
        Item { dispatch, place: Place::new(|| {}) }
    }

    fn key(company: i64, webhook: u8) -> Key {
        (CompanyId(company), WebhookId::from_bytes([webhook; 16]))
    }

    fn sent(lanes: &mut Lanes) -> Vec<Key> {
        std::iter::from_fn(|| lanes.next())
            .map(|item| (item.dispatch.company, item.dispatch.webhook))
            .collect()
    }

    #[test]
    fn an_unproven_webhook_has_one_request_under_way() {
        let mut lanes = Lanes::new(Slots { total: 100 });
        (0..10).for_each(|_| lanes.push(item(1, 1)));
        assert_eq!(sent(&mut lanes).len(), 1);
        lanes.answered(key(1, 1), true);
        assert_eq!(sent(&mut lanes).len(), 2, "a success doubles the window");
        lanes.answered(key(1, 1), false);
        lanes.ended(key(1, 1));
        assert_eq!(sent(&mut lanes).len(), 0, "a failure shrinks it to one");
        lanes.answered(key(1, 1), false);
        assert_eq!(sent(&mut lanes).len(), 0, "nothing is sent until the failure is recorded");
        lanes.ended(key(1, 1));
        assert_eq!(sent(&mut lanes).len(), 1);
    }

    #[test]
    fn companies_take_turns_and_then_their_webhooks() {
        let mut lanes = Lanes::new(Slots { total: 100 });
        for webhook in 1..=3 {
            lanes.push(item(1, webhook));
        }
        lanes.push(item(2, 9));
        assert_eq!(sent(&mut lanes), [key(1, 1), key(2, 9), key(1, 2), key(1, 3)]);
    }

    #[test]
    fn failing_webhooks_never_take_more_than_a_quarter() {
        let mut lanes = Lanes::new(Slots { total: 8 });
        lanes.push(item(1, 100));
        assert_eq!(sent(&mut lanes).len(), 1);
        lanes.answered(key(1, 100), true);
        for webhook in 1..=50 {
            lanes.push(item(1, webhook));
        }
        assert_eq!(sent(&mut lanes).len(), 2, "a quarter of eight");
        lanes.push(item(1, 100));
        assert_eq!(sent(&mut lanes), [key(1, 100)], "the healthy one goes at once");
        lanes.answered(key(1, 1), false);
        lanes.ended(key(1, 1));
        assert_eq!(sent(&mut lanes).len(), 1, "a place of the quarter is free again");
    }

    #[test]
    fn a_backlog_is_claimed_when_there_is_room() {
        let mut lanes = Lanes::new(Slots { total: 8 });
        let now = Time::from_micros(10);
        lanes.due(key(1, 1), Time::from_micros(11));
        assert!(lanes.claims(now).is_empty());
        assert_eq!(lanes.claims(Time::from_micros(11)), [(key(1, 1), CLAIM_PER_WINDOW)]);
        assert!(lanes.claims(Time::from_micros(12)).is_empty(), "one claim at a time");
        lanes.claimed(key(1, 1), false, Some(Time::from_micros(50)));
        assert!(lanes.claims(Time::from_micros(49)).is_empty());
        assert_eq!(lanes.claims(Time::from_micros(50)).len(), 1);
        lanes.has_backlog(key(1, 1));
        lanes.claimed(key(1, 1), false, None);
        assert_eq!(lanes.claims(now).len(), 1, "what came during a claim is not forgotten with it");
    }
}

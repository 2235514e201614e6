//! The sender's bookkeeping: what waits in memory for each webhook, and whose turn is next.
//!
//! Fair between companies first, then between a company's webhooks; proven, new and failing receivers take
//! turns only among themselves. Each webhook has a window of concurrent requests: one until it has proved
//! itself, doubled by every success, one again after a failure or while one of its requests takes unusually
//! long. So a dead receiver delays only itself. What is known about a receiver outlives idleness: a lane that
//! knows something is kept.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::{Duration, Instant};

use rapport_app::dispatch::{Dispatch, Place};
use rapport_domain::id::{CompanyId, WebhookId};
use rapport_domain::standing::{FAILING_AFTER, Standing};
use rapport_domain::time::Time;

use crate::flights::{Flights, Pool, Slots, Ticket};
use crate::ring::Ring;

pub const MAX_WINDOW: usize = 64;
/// How much is claimed at a time: a claim waits for a commit, and its deliveries must last as long.
const CLAIM_PER_WINDOW: usize = 16;
/// A failing receiver gets one request at a time, and not often.
const CLAIM_OF_FAILING: usize = 2;
/// A request unanswered for this long is slow: for an unknown receiver, and for a proven one, unless it
/// usually takes longer.
const SLOW_AFTER_UNKNOWN: Duration = Duration::from_millis(250);
const SLOW_AFTER: Duration = Duration::from_secs(1);
const SLOW_FACTOR: u32 = 3;
/// Concurrent requests of one webhook that people wait for.
const MAX_URGENT: usize = 2;

pub type Key = (CompanyId, WebhookId);

/// A delivery in memory, with its place.
pub struct Item {
    pub dispatch: Dispatch,
    pub place: Place,
}

impl Item {
    pub fn key(&self) -> Key {
        (self.dispatch.company, self.dispatch.webhook)
    }
}

struct Lane {
    queue: VecDeque<Item>,
    urgent: VecDeque<Item>,
    under_way: usize,
    urgent_under_way: usize,
    /// Requests in progress that take unusually long.
    slow: usize,
    window: usize,
    proven: bool,
    streak: i64,
    /// How long its responses usually take.
    usual: Duration,
    /// The ring it is in.
    listed: Option<Standing>,
    urgent_listed: bool,
    /// Whether it is in the list of webhooks to claim for.
    to_claim: bool,
    supply: Supply,
    next_due: Option<Time>,
}

/// What waits for a webhook in the database, as far as this node knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Supply {
    Nothing,
    Backlog,
    /// A claim is in progress; `again` if more was reported since, which it may have missed.
    Claiming {
        again: bool,
    },
}

impl Default for Lane {
    fn default() -> Self {
        Self {
            queue: VecDeque::new(),
            urgent: VecDeque::new(),
            under_way: 0,
            urgent_under_way: 0,
            slow: 0,
            window: 1,
            proven: false,
            streak: 0,
            usual: Duration::ZERO,
            listed: None,
            urgent_listed: false,
            to_claim: false,
            supply: Supply::Nothing,
            next_due: None,
        }
    }
}

impl Lane {
    fn standing(&self) -> Standing {
        Standing::of(self.proven, self.streak)
    }

    fn report_backlog(&mut self) {
        self.supply = match self.supply {
            Supply::Nothing | Supply::Backlog => Supply::Backlog,
            Supply::Claiming { .. } => Supply::Claiming { again: true },
        };
    }

    /// While a request hangs, no other one is started.
    fn has_room(&self) -> bool {
        let window = if self.slow > 0 { 1 } else { self.window };
        self.under_way < window
    }

    fn wants_claim(&self) -> bool {
        self.supply == Supply::Backlog && self.queue.len() < self.window
    }

    fn claim_size(&self) -> usize {
        match self.standing() {
            Standing::Failing => CLAIM_OF_FAILING,
            Standing::New | Standing::Proven => self.window * CLAIM_PER_WINDOW,
        }
    }

    fn slow_after(&self) -> Duration {
        if self.proven { SLOW_AFTER.max(self.usual * SLOW_FACTOR) } else { SLOW_AFTER_UNKNOWN }
    }

    /// Whether the lane is idle and nothing is known about its receiver.
    fn is_forgettable(&self) -> bool {
        let nothing_waits = self.supply == Supply::Nothing && self.next_due.is_none();
        let idle =
            self.queue.is_empty() && self.urgent.is_empty() && self.under_way + self.urgent_under_way == 0;
        let listed = self.listed.is_some() || self.urgent_listed || self.to_claim;
        idle && nothing_waits && !listed && self.standing() == Standing::New
    }
}

pub struct Lanes {
    webhooks: HashMap<Key, Lane>,
    flights: Flights,
    /// Webhooks with something to send, in turn, by their standing.
    proven: Ring,
    new: Ring,
    failing: Ring,
    urgent: Ring,
    turn: usize,
    due: BTreeSet<(Time, Key)>,
    to_claim: Vec<Key>,
    /// Attempts of bulk redeliveries that wait in memory.
    bulk: HashMap<CompanyId, usize>,
}

impl Lanes {
    pub fn new(slots: Slots) -> Self {
        Self {
            webhooks: HashMap::new(),
            flights: Flights::new(slots),
            proven: Ring::default(),
            new: Ring::default(),
            failing: Ring::default(),
            urgent: Ring::default(),
            turn: 0,
            due: BTreeSet::new(),
            to_claim: Vec::new(),
            bulk: HashMap::new(),
        }
    }

    /// Records what was known about a receiver before this process started.
    pub fn remember(&mut self, key: Key, standing: Standing) {
        let lane = self.webhooks.entry(key).or_default();
        (lane.proven, lane.streak) = match standing {
            Standing::New => (false, 0),
            Standing::Proven => (true, 0),
            Standing::Failing => (false, FAILING_AFTER),
        };
    }

    pub fn push(&mut self, item: Item) {
        let key = item.key();
        let lane = self.webhooks.entry(key).or_default();
        if item.dispatch.is_urgent() {
            lane.urgent.push_back(item);
        } else {
            if item.dispatch.is_bulk() {
                *self.bulk.entry(key.0).or_default() += 1;
            }
            lane.queue.push_back(item);
        }
        self.list(key);
    }

    /// Puts a webhook into its ring if it has something that can be sent now.
    fn list(&mut self, key: Key) {
        let Some(lane) = self.webhooks.get_mut(&key) else { return };
        if !lane.urgent_listed && !lane.urgent.is_empty() && lane.urgent_under_way < MAX_URGENT {
            lane.urgent_listed = true;
            self.urgent.push(key);
        }
        if lane.listed.is_none() && !lane.queue.is_empty() && lane.has_room() {
            let standing = lane.standing();
            lane.listed = Some(standing);
            self.ring(standing).push(key);
        }
    }

    fn ring(&mut self, standing: Standing) -> &mut Ring {
        match standing {
            Standing::Proven => &mut self.proven,
            Standing::New => &mut self.new,
            Standing::Failing => &mut self.failing,
        }
    }

    /// The next delivery to send, by turns; from now on it is in progress.
    pub fn next(&mut self, now: Instant) -> Option<(Ticket, Item)> {
        const TURNS: [Standing; 3] = [Standing::Proven, Standing::New, Standing::Failing];
        if let Some(started) = self.next_urgent(now) {
            return Some(started);
        }
        for _ in TURNS {
            self.turn = (self.turn + 1) % TURNS.len();
            if let Some(started) = self.next_of(TURNS[self.turn], now) {
                return Some(started);
            }
        }
        None
    }

    fn next_urgent(&mut self, now: Instant) -> Option<(Ticket, Item)> {
        loop {
            let flights = &self.flights;
            let key = self.urgent.pop(|company| flights.has_room(company, Pool::Urgent))?;
            let Some(lane) = self.webhooks.get_mut(&key) else { continue };
            lane.urgent_listed = false;
            let Some(item) = lane.urgent.pop_front() else { continue };
            lane.urgent_under_way += 1;
            let ticket = self.flights.start(key, Pool::Urgent, now);
            self.list(key);
            return Some((ticket, item));
        }
    }

    fn next_of(&mut self, standing: Standing, now: Instant) -> Option<(Ticket, Item)> {
        let pool = Pool::from(standing);
        loop {
            let flights = &self.flights;
            let may_go = |company| flights.has_room(company, pool);
            let key = match standing {
                Standing::Proven => self.proven.pop(may_go),
                Standing::New => self.new.pop(may_go),
                Standing::Failing => self.failing.pop(may_go),
            }?;
            let Some(lane) = self.webhooks.get_mut(&key) else { continue };
            lane.listed = None;
            if lane.standing() != standing {
                // Its standing has changed since it was listed.
                self.list(key);
                continue;
            }
            if !lane.has_room() {
                continue;
            }
            let Some(item) = lane.queue.pop_front() else { continue };
            lane.under_way += 1;
            self.left(&item);
            let ticket = self.flights.start(key, pool, now);
            self.list(key);
            self.ask_for_claim(key);
            return Some((ticket, item));
        }
    }

    /// An attempt of a bulk redelivery no longer waits here.
    fn left(&mut self, item: &Item) {
        if item.dispatch.is_bulk()
            && let Some(count) = self.bulk.get_mut(&item.dispatch.company)
        {
            *count -= 1;
            if *count == 0 {
                self.bulk.remove(&item.dispatch.company);
            }
        }
    }

    /// How many attempts of bulk redeliveries of a company wait in memory.
    pub fn bulk_waiting(&self, company: CompanyId) -> usize {
        self.bulk.get(&company).copied().unwrap_or(0)
    }

    /// A request was answered. A success doubles the window and frees the slot. A failure shrinks the window
    /// to one and frees the slot only once it is recorded, because it may be the one that disables the
    /// webhook.
    pub fn answered(&mut self, ticket: Ticket, succeeded: bool, now: Instant) {
        let Some(flight) = self.flights.get(ticket) else { return };
        let Some(lane) = self.webhooks.get_mut(&flight.key) else { return };
        if !succeeded {
            lane.window = 1;
            lane.streak += 1;
            return;
        }
        let took = now - flight.since;
        lane.usual = if lane.proven { (lane.usual * 3 + took) / 4 } else { took };
        lane.window = (lane.window * 2).min(MAX_WINDOW);
        lane.proven = true;
        lane.streak = 0;
        self.ended(ticket);
        self.ask_for_claim(flight.key);
    }

    /// A failure was recorded, or a request wasn't made after all or says nothing about its receiver.
    pub fn ended(&mut self, ticket: Ticket) {
        let Some(flight) = self.flights.end(ticket) else { return };
        if let Some(lane) = self.webhooks.get_mut(&flight.key) {
            let count = if flight.urgent { &mut lane.urgent_under_way } else { &mut lane.under_way };
            *count = count.saturating_sub(1);
            if flight.pool == Pool::Slow && !flight.urgent {
                lane.slow = lane.slow.saturating_sub(1);
            }
        }
        self.list(flight.key);
    }

    /// A request wasn't made after all, so its delivery is next again.
    pub fn put_back(&mut self, ticket: Ticket, item: Item) {
        let key = item.key();
        let lane = self.webhooks.entry(key).or_default();
        if item.dispatch.is_urgent() {
            lane.urgent.push_front(item);
        } else {
            if item.dispatch.is_bulk() {
                *self.bulk.entry(key.0).or_default() += 1;
            }
            lane.queue.push_front(item);
        }
        self.ended(ticket);
    }

    /// Finds requests that take unusually long. They leave their pool, and their webhook starts no others.
    pub fn set_slow_aside(&mut self, now: Instant) {
        let webhooks = &self.webhooks;
        let limit = |key: Key| webhooks.get(&key).map_or(SLOW_AFTER, Lane::slow_after);
        for (key, urgent) in self.flights.set_slow_aside(now, limit) {
            if let Some(lane) = self.webhooks.get_mut(&key).filter(|_| !urgent) {
                lane.slow += 1;
            }
        }
    }

    /// Empties the queue of a webhook that was disabled. Manual attempts stay.
    pub fn drain(&mut self, key: Key) -> Vec<Item> {
        let Some(lane) = self.webhooks.get_mut(&key) else { return Vec::new() };
        if lane.supply == Supply::Backlog {
            lane.supply = Supply::Nothing;
        }
        if let Some(due) = lane.next_due.take() {
            self.due.remove(&(due, key));
        }
        let mut drained = Vec::new();
        for queue in [&mut lane.queue, &mut lane.urgent] {
            let (manual, rest): (VecDeque<Item>, VecDeque<Item>) =
                queue.drain(..).partition(|item| item.dispatch.manual.is_some());
            *queue = manual;
            drained.extend(rest);
        }
        drained
    }

    pub fn drain_all(&mut self) -> Vec<Item> {
        self.bulk.clear();
        let lanes = self.webhooks.values_mut();
        lanes.flat_map(|lane| lane.queue.drain(..).chain(lane.urgent.drain(..)).collect::<Vec<_>>()).collect()
    }

    pub fn has_backlog(&mut self, key: Key) {
        self.webhooks.entry(key).or_default().report_backlog();
        self.ask_for_claim(key);
    }

    /// Something of this webhook is due at that time.
    pub fn due(&mut self, key: Key, at: Time) {
        let lane = self.webhooks.entry(key).or_default();
        match lane.next_due {
            Some(known) if known <= at => return,
            Some(known) => drop(self.due.remove(&(known, key))),
            None => {}
        }
        lane.next_due = Some(at);
        self.due.insert((at, key));
    }

    fn ask_for_claim(&mut self, key: Key) {
        if let Some(lane) = self.webhooks.get_mut(&key)
            && lane.wants_claim()
            && !lane.to_claim
        {
            lane.to_claim = true;
            self.to_claim.push(key);
        }
    }

    /// The webhooks to claim for now, and how much: those with something due, if there is room.
    pub fn claims(&mut self, now: Time, room: impl Fn(CompanyId, Standing) -> bool) -> Vec<(Key, usize)> {
        while let Some((due, key)) = self.due.first().copied()
            && due <= now
        {
            self.due.pop_first();
            if let Some(lane) = self.webhooks.get_mut(&key) {
                lane.next_due = None;
            }
            self.has_backlog(key);
        }
        let mut claims = Vec::new();
        for key in std::mem::take(&mut self.to_claim) {
            let Some(lane) = self.webhooks.get_mut(&key) else { continue };
            if lane.wants_claim() && !room(key.0, lane.standing()) {
                self.to_claim.push(key);
                continue;
            }
            lane.to_claim = false;
            if lane.wants_claim() {
                lane.supply = Supply::Claiming { again: false };
                claims.push((key, lane.claim_size()));
            }
        }
        claims
    }

    /// A claim ended; `more` says whether more is due, `next_due` when the next delivery is.
    pub fn claimed(&mut self, key: Key, more: bool, next_due: Option<Time>) {
        if let Some(lane) = self.webhooks.get_mut(&key) {
            let again = lane.supply == Supply::Claiming { again: true };
            lane.supply = if more || again { Supply::Backlog } else { Supply::Nothing };
        }
        self.ask_for_claim(key);
        if let Some(at) = next_due {
            self.due(key, at);
        }
    }

    /// Whether new deliveries of this webhook should wait in the database behind its backlog, and its
    /// receiver's standing.
    pub fn gate(&self, key: Key) -> (bool, Standing) {
        self.webhooks
            .get(&key)
            .map_or((false, Standing::New), |lane| (lane.supply != Supply::Nothing, lane.standing()))
    }

    /// Forgets idle webhooks about which nothing is known.
    pub fn forget_idle(&mut self) {
        self.webhooks.retain(|_, lane| !lane.is_forgettable());
    }

    /// The webhook was deleted: forgets it once nothing of it is in progress.
    pub fn forget(&mut self, key: Key) {
        if let Some(lane) = self.webhooks.get_mut(&key) {
            (lane.proven, lane.streak) = (false, 0);
        }
    }
}

#[cfg(test)]
mod tests;
